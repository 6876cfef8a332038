// expect: NodeId
// A plain number is no id: make_id says that it is meant.
#include <gpusched/model/cluster.hpp>

int ask(const gpusched::Cluster& cluster, unsigned number) {
#ifdef GPUSCHED_CONTROL
    return cluster.occupants(gpusched::make_id<gpusched::NodeId>(number));
#else
    return cluster.occupants(number);
#endif
}
