// A placement policy written in Python.
#pragma once

#include "model/cluster_views.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/follower.hpp>

namespace gpusched::python {

/// Calls a Python function `policy(cluster, task)` for each pending task.
///
/// The function gets a snapshot that follows the replay; other threads must not use it meanwhile. It is a
/// copy that this policy keeps up to date, so that Python objects that refer to it stay valid. Results: None
/// (the task does not fit), a node or its name (the tightest GPUs are used), or a pair of node and GPUs.
/// Exceptions pass through.
class PythonPlacement {
  public:
    explicit PythonPlacement(py::object policy);

    std::optional<allocation::Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng);

  private:
    /// The copy, which follows the replay.
    struct Mirror {
        ClusterPtr cluster{};
        std::vector<NodeId> behind{};  // nodes of each task
        void rebuild(const Cluster& of);
        void usage_changed(const Cluster&, NodeId node) { behind.push_back(node); }
        void catch_up(const Cluster& with);
    };

    std::shared_ptr<py::object> policy_;  // shared, because references are counted only under the lock
    Followed<Mirror> mirror_;
};

}  // namespace gpusched::python
