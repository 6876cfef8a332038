// expect: NodeOrder
// The order in which nodes are tried is a key per node; a policy without one is named by the concept.
#include <gpusched/consolidation/concepts.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    std::int64_t operator()(const Cluster&, NodeId) const { return 0; }
#else
    const char* operator()(const Cluster&, NodeId) const { return "first"; }
#endif
};

template <consolidation::NodeOrder O>
void try_in(const O&) {}

void use() { try_in(Mine{}); }
