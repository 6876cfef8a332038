// expect: scores are whole numbers, not floating point
// Scores in floating point, behind AnyRanker: which nodes tie would depend on the machine.
#include <gpusched/allocation/any.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return 500; }
#else
    double operator()(const Cluster&, TaskId, NodeId) const { return 0.5; }
#endif
};

const allocation::AnyRanker ranker = Mine{};
