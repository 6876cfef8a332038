// expect: a ranker returns a score with a total order .*not text, nor an optional
// Text: which node wins would depend on spelling.
#include <gpusched/allocation/place.hpp>

#include <string>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
#else
    std::string operator()(const Cluster&, TaskId, NodeId) const { return "best"; }
#endif
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
