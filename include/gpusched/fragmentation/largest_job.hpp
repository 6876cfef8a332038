// SPDX-License-Identifier: Apache-2.0
// LargestJob: the largest job that could start now, with and without the requirement of a single switch.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/detail/slot_sums.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::fragmentation {

/// Options of largest_job().
struct LargestJobOptions {
    int gpus_per_pod = 1;           ///< whole GPUs of each pod of the job, 1 to 64
    int cores_per_gpu = 12;         ///< >= 0; 0 ignores CPU
    std::optional<Level> level{};   ///< level of the switches; none = the deepest known level
    bool include_cordoned = false;  ///< count GPUs of cordoned nodes as idle, too
};
template <class F>
constexpr void visit_fields(std::type_identity<LargestJobOptions>, F&& field) {
    field("gpus_per_pod", &LargestJobOptions::gpus_per_pod, within(1, gpusched::max_gpus_per_node));
    field("cores_per_gpu", &LargestJobOptions::cores_per_gpu, within(0, 1'000'000));
    field("level", &LargestJobOptions::level, IsLevel{});
    field("include_cordoned", &LargestJobOptions::include_cordoned);
}

/// The largest job on the idle GPUs of one model, and the domains that it fits.
struct LargestJobRow {
    std::string gpu_model{};  ///< "*" = all models together; empty = nodes without a model name
    std::int64_t across = 0;  ///< GPUs of the largest job that may use a whole cluster (top network domain)
    std::int64_t within = 0;  ///< GPUs of the largest job under one switch
    std::string cluster{};    ///< the cluster of `across`; empty if `across` is 0
    std::string domain{};     ///< the switch of `within`; empty if `within` is 0
    bool operator==(const LargestJobRow&) const = default;
};

/// Returns the most GPUs that one job of equal pods could get now, per GPU model.
///
/// A pod needs `gpus_per_pod` fully idle GPUs of one node, and `cores_per_gpu` cores per GPU. Capacity is
/// idle if a task without spot (LP) rights could take it now: failed GPUs, Standby claims and cordoned nodes
/// are not idle. A node of unknown position is its own domain. Among equally good domains, the result names
/// the domain of the first node.
///
/// @return one row per GPU model in order of first appearance, then "*"
/// @throws InvalidInput if an option is out of range
///
/// O(nodes log nodes).
[[nodiscard]] std::vector<LargestJobRow> largest_job(const Cluster& cluster,
                                                     const LargestJobOptions& options = {});

/// The largest job as a node metric for `Incremental` (incremental.hpp). O(1) per changed node, O(switches)
/// per result.
class LargestJobMetric {
  public:
    explicit LargestJobMetric(const Inventory& inventory, const LargestJobOptions& options = {});

    using State = detail::SlotSums::State;
    using Total = detail::SlotSums::Total;
    [[nodiscard]] State state(const Cluster& cluster, NodeId node) const noexcept {
        return sums_.state(cluster, node);
    }
    [[nodiscard]] Total zero() const { return sums_.zero(); }
    void add(Total& total, NodeId node, State slots, int sign) const noexcept {
        sums_.add(total, node, slots, sign);
    }
    void renew(const Inventory& inventory);
    bool renew(const Inventory& inventory, NodeId node);
    [[nodiscard]] std::vector<LargestJobRow> result(const Total& total) const;

  private:
    [[nodiscard]] const std::string& domain_name(const Inventory& inventory, std::uint32_t cell) const;

    LargestJobOptions options_;
    detail::SlotSums sums_;
    std::vector<std::string> names_;  // domain names, by cell
};

}  // namespace gpusched::fragmentation
