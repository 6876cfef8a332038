// A placement policy written in Python.
#pragma once

#include "model/cluster_views.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/follower.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace gpusched::python {

/// Asks a Python callable `policy(cluster, task)` where a pending task goes.
///
/// The callable gets a snapshot that follows the replay; it must not be used by other threads meanwhile. It is a
/// copy that this policy keeps in step, so that whatever Python holds on to stays alive. Answers: None (it fits
/// nowhere), a node or its name (the tightest GPUs are taken), or a pair of node and GPUs. Exceptions pass through.
class PythonPlacement {
  public:
    explicit PythonPlacement(py::object policy);

    std::optional<allocation::Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng);

  private:
    /// The copy, a follower.
    struct Mirror {
        ClusterPtr cluster{};
        std::vector<NodeId> behind{};  // nodes on which it is
        void rebuild(const Cluster& of);
        void usage_changed(const Cluster&, NodeId node) { behind.push_back(node); }
        void catch_up(const Cluster& with);
    };

    std::shared_ptr<py::object> policy_;  // shared: references are counted only while the lock is held
    Followed<Mirror> mirror_;
};

}  // namespace gpusched::python
