// expect: an executor has .run
// An executor runs tasks by index.
#include <gpusched/core/executor.hpp>

#include <cstddef>

struct Mine {
#ifdef GPUSCHED_CONTROL
    void run(std::size_t count, gpusched::IndexTask task) {
        for (std::size_t i = 0; i < count; ++i) task(i);
    }
#endif
};

void use(Mine& mine) {
    gpusched::ExecutorRef executor(mine);
    (void)executor;
}
