// expect: NodeId.*TaskId|TaskId.*NodeId
// Task first, then node.
#include <gpusched/model/cluster.hpp>

void put(gpusched::Cluster& cluster, gpusched::TaskId task, gpusched::NodeId node) {
#ifdef GPUSCHED_CONTROL
    cluster.assign(task, node, 0);
#else
    cluster.assign(node, task, 0);
#endif
}
