// expect: a ranker returns a score with a total order .*not text, nor an optional
// An optional: whether nothing is good or bad is nobody's choice.
#include <gpusched/allocation/place.hpp>

#include <optional>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
#else
    std::optional<int> operator()(const Cluster&, TaskId, NodeId) const { return 0; }
#endif
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
