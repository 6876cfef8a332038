// expect: concurrency
// An executor says how many indices may run at once.
#include <gpusched/core/executor.hpp>

#include <cstddef>

struct Mine {
    void run(std::size_t count, gpusched::IndexTask task) {
        for (std::size_t i = 0; i < count; ++i) task(i);
    }
#ifdef GPUSCHED_CONTROL
    std::size_t concurrency() const { return 1; }
#endif
};

void use(Mine& mine) {
    gpusched::ExecutorRef executor(mine);
    (void)executor;
}
