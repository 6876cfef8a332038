// expect: a node's load is a whole number, not floating point
// Loads in floating point: which nodes tie would depend on the machine.
#include <gpusched/allocation/power_of_d.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, NodeId) const { return 500; }
#else
    double operator()(const Cluster&, NodeId) const { return 0.5; }
#endif
};

allocation::PowerOfD<allocation::TightestGpu, allocation::AnyNode, Mine> placement;
