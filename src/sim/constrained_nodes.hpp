// SPDX-License-Identifier: Apache-2.0
// Adds devices and labels to generated nodes (MIG instances, shared cards, RDMA adapters), and the tasks that
// request the devices.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/spec.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::sim::detail {

inline constexpr const char* zone_label = "topology.kubernetes.io/zone";
inline constexpr const char* rack_label = "topology.example.com/rack";
inline constexpr const char* hostname_label = "kubernetes.io/hostname";
inline constexpr const char* product_label = "nvidia.com/gpu.product";
inline constexpr const char* rdma_resource = "rdma/hca";

/// Shares of preset "constrained" for options that are absent.
inline constexpr ConstraintShares usual_shares{.mig_fraction = 0.1,
                                               .shared_fraction = 0.1,
                                               .large_fraction = 0.03,
                                               .rdma_fraction = 0.3,
                                               .named_node_fraction = 0.05,
                                               .spread_fraction = 0.3,
                                               .avoid_fraction = 0.3,
                                               .near_fraction = 0.1,
                                               .budget_fraction = 0.3,
                                               .restart_fraction = 0.2,
                                               .suspend_fraction = 0.05,
                                               .fixed_fraction = 0.05,
                                               .gang_fraction = 0.3};

/// The effective shares: the options, or the preset's values for absent options.
class Shares {
  public:
    explicit Shares(const GeneratorOptions& options)
        : said_(options.constraints), usual_(options.preset == "constrained") {}
    [[nodiscard]] double operator()(std::optional<double> ConstraintShares::*share) const {
        return (said_.*share).value_or(usual_ ? *(usual_shares.*share) : 0);
    }
    /// Returns false if no node and no job has a constraint.
    [[nodiscard]] bool any() const {
        bool some = false;
        visit_fields(std::type_identity<ConstraintShares>{},
                     [&](const char*, auto share, auto...) { some = some || (*this)(share) > 0; });
        return some;
    }

  private:
    ConstraintShares said_;
    bool usual_;
};

/// Adds labels and devices to nodes. Call `next_switch` before the first node of each access switch.
class NodeConstraints {
  public:
    NodeConstraints(const Shares& shares, Rng rng) : shares_(shares), rng_(rng) {}

    void next_switch() {
        ++switch_;
        in_switch_ = 0;
    }

    void apply(NodeSpec& node) {
        const auto within_switch = std::to_string(in_switch_++ / 8);
        node.labels = {{zone_label, "zone-" + std::to_string(switch_ % 3)},
                       {rack_label, "rack-" + std::to_string(switch_) + "-" + within_switch},
                       {hostname_label, node.name},
                       {product_label, node.gpu_model}};
        using S = ConstraintShares;
        if (node.gpu_count == 8) {
            if (rng_.chance(shares_(&S::large_fraction))) {
                node.gpu_count *= 4;
                node.cpu_milli *= 4;
                node.memory_mib *= 4;
            } else if (rng_.chance(shares_(&S::mig_fraction))) {
                split_cards(node);
            }
        } else if ((node.gpu_count == 2 || node.gpu_count == 4) &&
                   rng_.chance(shares_(&S::shared_fraction))) {
            const auto card = static_cast<int>(--node.gpu_count);
            node.devices = {{"nvidia.com/gpu.shared", 4, std::vector<int>(4, card), 0}};
        }
        if (node.gpu_count >= 6 && shares_(&S::rdma_fraction) > 0)
            node.resources[rdma_resource] = node.gpu_count / 2;
    }

  private:
    // Splits one card into 7 instances of the smallest profile, and one into 3 of the next.
    static void split_cards(NodeSpec& node) {
        node.gpu_count -= 2;
        const auto card = static_cast<int>(node.gpu_count);
        node.devices = {{"nvidia.com/mig-1g.10gb", 7, std::vector<int>(7, card), 10'240},
                        {"nvidia.com/mig-2g.20gb", 3, std::vector<int>(3, card + 1), 20'480}};
    }

    const Shares& shares_;
    Rng rng_;
    std::size_t switch_ = std::numeric_limits<std::size_t>::max();  // before the first switch
    int in_switch_ = 0;
};

/// Draws tasks that request the devices of nodes. The other tasks must already run.
class DeviceTasks {
  public:
    struct Asked {
        std::uint32_t node;
        GpuMask devices;
        std::vector<std::string> classes;
        std::int64_t cpu_milli, memory_mib;
    };

    explicit DeviceTasks(const ClusterSpec& spec) : spec_(spec) {
        std::unordered_map<std::string_view, std::size_t> number;
        for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
            number.emplace(spec.nodes[n].name, n);
            free_.emplace_back(spec.nodes[n].cpu_milli, spec.nodes[n].memory_mib);
        }
        for (const auto& task : spec.tasks) {
            auto& [cpu, memory] = free_[number.at(*task.node)];
            cpu -= task.cpu_milli;
            memory -= task.memory_mib;
        }
    }

    /// Gives each device a task with probability 0.8 times `load`, as far as CPU and memory allow.
    [[nodiscard]] std::vector<Asked> draw(double load, Rng& rng) const {
        std::vector<Asked> out;
        for (std::uint32_t n = 0; n < spec_.nodes.size(); ++n) {
            auto [cpu, memory] = free_[n];
            int device = static_cast<int>(spec_.nodes[n].gpu_count);
            for (const auto& group : spec_.nodes[n].devices)
                for (std::int64_t i = 0; i < group.count; ++i, ++device) {
                    if (!rng.chance(std::min(0.97, 0.8 * load))) continue;
                    Asked asked{n, gpu_bit(device), {group.device_class}, 0, 0};
                    asked.cpu_milli = 1000 * rng.between(1, 3);
                    asked.memory_mib = asked.cpu_milli / 1000 * 4096;
                    if (asked.classes[0].ends_with("1g.10gb") && rng.chance(0.25))
                        asked.classes.emplace_back("nvidia.com/mig-2g.20gb");
                    // A tenth of the tasks also take the next device of the class.
                    if (i + 1 < group.count && rng.chance(0.1)) {
                        asked.devices |= gpu_bit(device + 1);
                        ++i;
                        ++device;
                    }
                    if (asked.cpu_milli > cpu || asked.memory_mib > memory) continue;
                    cpu -= asked.cpu_milli;
                    memory -= asked.memory_mib;
                    out.push_back(std::move(asked));
                }
        }
        return out;
    }

  private:
    const ClusterSpec& spec_;
    std::vector<std::pair<std::int64_t, std::int64_t>> free_;  // CPU and memory, by node
};

}  // namespace gpusched::sim::detail
