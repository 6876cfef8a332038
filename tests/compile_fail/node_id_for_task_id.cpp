// expect: NodeId.*TaskId|TaskId.*NodeId
// Ids of different kinds cannot be mixed up.
#include <gpusched/model/cluster.hpp>

bool ask(const gpusched::Cluster& cluster) {
    const gpusched::TaskId task{0};
#ifdef GPUSCHED_CONTROL
    return cluster.is_placed(task);
#else
    const gpusched::NodeId node{0};
    return cluster.is_placed(node) || cluster.is_placed(task);
#endif
}
