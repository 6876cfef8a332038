// SPDX-License-Identifier: Apache-2.0
// Named resources and devices of nodes as capacities of linear rows.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::milp::detail {

/// A named resource, or the devices of a list of classes that some task accepts. Tasks that accept only
/// classes of the list count in its demand. The class of each device is relaxed.
class ExtraCapacity {
  public:
    /// All kinds that some of the tasks need.
    static std::vector<ExtraCapacity> all(const Cluster& cluster, const std::vector<TaskId>& tasks) {
        const auto& inv = cluster.inventory();
        std::set<std::uint32_t> resources;
        std::set<std::vector<std::uint32_t>> classes;
        for (const auto task : tasks) {
            const auto& extras = inv.extras[inv.tasks.extras[index(task)]];
            for (const auto& one : extras.resources) resources.insert(one.resource);
            if (extras.device_count > 0) classes.insert(sorted(extras.device_classes));
        }
        std::vector<ExtraCapacity> out;
        for (const auto resource : resources) out.push_back({cluster, resource, {}});
        for (const auto& accepted : classes) out.push_back({cluster, 0, accepted});
        return out;
    }

    [[nodiscard]] std::string name() const {
        if (is_resource()) return inv_->resource_names[resource_];
        std::string text;
        for (const auto one : classes_) text += (text.empty() ? "" : "|") + inv_->device_classes[one];
        return text;
    }
    [[nodiscard]] std::int64_t demand(TaskId task) const {
        const auto& extras = inv_->extras[inv_->tasks.extras[index(task)]];
        if (is_resource()) {
            for (const auto& [resource, amount] : extras.resources)
                if (resource == resource_) return amount;
            return 0;
        }
        const auto own = sorted(extras.device_classes);
        return std::includes(classes_.begin(), classes_.end(), own.begin(), own.end()) ? extras.device_count
                                                                                       : 0;
    }
    /// The capacity of a node, without failed devices.
    [[nodiscard]] std::int64_t capacity(NodeId node) const {
        return is_resource() ? inv_->node_resources[index(node) * inv_->resource_names.size() + resource_]
                             : gpu_count(devices(node) & ~inv_->nodes.failed_gpus[index(node)]);
    }
    /// The free capacity in a cluster with the same inventory.
    [[nodiscard]] std::int64_t free(const Cluster& cluster, NodeId node) const {
        return is_resource() ? cluster.resource_free(node, resource_)
                             : gpu_count(devices(node) & cluster.free_devices(node));
    }

  private:
    ExtraCapacity(const Cluster& cluster, std::uint32_t resource, std::vector<std::uint32_t> classes)
        : inv_(&cluster.inventory()), resource_(resource), classes_(std::move(classes)) {}

    static std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> classes) {
        std::sort(classes.begin(), classes.end());
        return classes;
    }
    [[nodiscard]] bool is_resource() const { return classes_.empty(); }
    [[nodiscard]] GpuMask devices(NodeId node) const {
        GpuMask all = 0;
        for (const auto one : classes_) all |= gpusched::detail::devices_of_class(*inv_, node, one);
        return all;
    }

    const Inventory* inv_;
    std::uint32_t resource_;
    std::vector<std::uint32_t> classes_;  // empty = a resource
};

}  // namespace gpusched::milp::detail
