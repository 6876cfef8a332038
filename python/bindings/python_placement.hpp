// A placement policy written in Python.
#pragma once

#include "cluster_views.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/core/rng.hpp>

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
    void changed(NodeId node) { changed_.push_back(node); }

  private:
    void follow(const Cluster& cluster);

    std::shared_ptr<py::object> policy_;  // shared: references are counted only while the lock is held
    ClusterPtr mirror_;
    std::vector<NodeId> changed_;
};

}  // namespace gpusched::python
