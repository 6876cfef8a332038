// expect: node_order returns whole numbers, not floating point
// A key in floating point would be cut off to a whole number, also behind AnyNodeOrder.
#include <gpusched/consolidation/any.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    std::int64_t operator()(const Cluster&, NodeId) const { return 500; }
#else
    double operator()(const Cluster&, NodeId) const { return 0.5; }
#endif
};

const consolidation::AnyNodeOrder order = Mine{};
