// expect: IndexTask
// What an executor runs takes an index.
#include <gpusched/core/executor.hpp>

#include <string>

void use() {
#ifdef GPUSCHED_CONTROL
    auto body = [](std::size_t) {};
#else
    auto body = [](const std::string&) {};
#endif
    gpusched::SerialExecutor{}.run(3, body);
}
