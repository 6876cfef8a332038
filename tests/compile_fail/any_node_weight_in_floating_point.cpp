// expect: weight returns whole numbers, not floating point
// A weight in floating point would be cut off to a whole number, also behind AnyNodeWeight.
#include <gpusched/consolidation/any.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, NodeId) const { return 2; }
#else
    float operator()(const Cluster&, NodeId) const { return 1.5F; }
#endif
};

const consolidation::AnyNodeWeight weight = Mine{};
