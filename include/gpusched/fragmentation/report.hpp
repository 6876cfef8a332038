// SPDX-License-Identifier: Apache-2.0
// Report: the idle GPUs that each request shape cannot use, by cause of fragmentation.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/allocation_ratio.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::fragmentation {

/// A request of whole GPUs on one node, and CPU in thousandths of a core.
struct Shape {
    int gpus = 1;                ///< 1 to 64
    std::int64_t cpu_milli = 0;  ///< >= 0
    bool operator==(const Shape&) const = default;
};

/// The request shapes of the ASI paper's Fig. 13: 1G8C, 1G12C, 4G32C, 4G48C, 4G64C, 8G64C, 8G96C, 8G128C.
inline constexpr std::array<Shape, 8> asi_shapes{
    {{1, 8000}, {1, 12000}, {4, 32000}, {4, 48000}, {4, 64000}, {8, 64000}, {8, 96000}, {8, 128000}}};

/// Returns one shape per GPU count that a running or pending task requests or a node has, in ascending order.
///
/// The CPU of a shape is the median CPU of the tasks with this GPU count (the upper median). If only nodes
/// have this GPU count, it is the median CPU per GPU over all tasks with GPUs, times the GPU count. Fractions
/// count as one GPU. Daemons, nodes without GPUs and cordoned nodes do not count. If there are neither tasks
/// nor nodes with GPUs, the result is one GPU without CPU.
///
/// O(n log n) in the number of tasks and nodes.
[[nodiscard]] std::vector<Shape> own_shapes(const Cluster& cluster);

/// The cause that makes idle GPUs of a node unusable for a request; see `report`.
enum class Cause : std::uint8_t { fractional, stranded, insufficient_cpu };

/// The idle GPUs of a node that a request cannot use, and the cause.
struct Unusable {
    Cause cause = Cause::stranded;
    std::int64_t milli = 0;  ///< thousandths of a GPU
};
/// Returns the unusable idle GPUs of one node for `shape`.
/// @param idle_milli idle GPUs of the node, in thousandths
/// @param cpu_milli idle CPU of the node, in thousandths of a core
[[nodiscard]] constexpr Unusable unusable(const Shape& shape, std::int64_t idle_milli,
                                          std::int64_t cpu_milli) noexcept {
    const std::int64_t asked = std::int64_t{whole_gpu_milli} * shape.gpus;
    const auto whole = idle_milli / whole_gpu_milli * whole_gpu_milli;
    if (cpu_milli < shape.cpu_milli)
        return {Cause::insufficient_cpu, idle_milli < asked ? idle_milli : asked};
    if (whole >= asked) return {Cause::fractional, idle_milli - whole};
    return {Cause::stranded, whole};
}

/// The grouping of nodes: a report has one set of rows per group.
enum class GroupBy : std::uint8_t {
    none,       ///< all nodes together
    gpu_model,  ///< in order of first appearance; nodes without a model come last, with an empty name
    cluster,    ///< domains of the top network level; last, `unknown_position` for nodes of unknown position
};

/// The group name of nodes with unknown network position.
inline constexpr std::string_view unknown_position = "(unknown position)";

/// Options of report().
struct ReportOptions {
    std::optional<int>
        max_gpus_per_node{};        ///< ignore nodes with more GPUs (the paper's figure: 8); none = all
    GroupBy by = GroupBy::none;     ///< one set of rows per GPU model or cluster, named in `group`
    bool include_cordoned = false;  ///< count GPUs of cordoned nodes as idle, too
    Accounting accounting = Accounting::all;  ///< tasks that hold capacity; `hp` as in the paper's figure
};
template <class F>
constexpr void visit_fields(std::type_identity<ReportOptions>, F&& field) {
    field("max_gpus_per_node", &ReportOptions::max_gpus_per_node, within(1, gpusched::max_gpus_per_node));
    field("by", &ReportOptions::by);
    field("include_cordoned", &ReportOptions::include_cordoned);
    field("accounting", &ReportOptions::accounting);
}

/// Checks shapes and options.
/// @throws InvalidInput with every shape and option that is out of range
void validate(std::span<const Shape> shapes, const ReportOptions& options);

/// One shape in one group of nodes. Fields are exact counts in thousandths of a GPU. Functions return GPUs,
/// or percentages of the group's idle GPUs (0 if no GPU is idle).
struct ReportRow {
    std::string group{};  ///< GPU model (empty = nodes without one) or cluster; empty without grouping
    Shape shape{};
    std::int64_t fractional_milli = 0;
    std::int64_t stranded_milli = 0;
    std::int64_t insufficient_cpu_milli = 0;
    std::int64_t total_idle_milli = 0;
    bool operator==(const ReportRow&) const = default;

    [[nodiscard]] double fractional() const noexcept { return static_cast<double>(fractional_milli) / 1000; }
    [[nodiscard]] double stranded() const noexcept { return static_cast<double>(stranded_milli) / 1000; }
    [[nodiscard]] double insufficient_cpu() const noexcept {
        return static_cast<double>(insufficient_cpu_milli) / 1000;
    }
    [[nodiscard]] double total_idle() const noexcept { return static_cast<double>(total_idle_milli) / 1000; }
    [[nodiscard]] double fractional_pct() const noexcept { return percent(fractional_milli); }
    [[nodiscard]] double stranded_pct() const noexcept { return percent(stranded_milli); }
    [[nodiscard]] double insufficient_cpu_pct() const noexcept { return percent(insufficient_cpu_milli); }

  private:
    [[nodiscard]] double percent(std::int64_t milli) const noexcept {
        return total_idle_milli == 0
                   ? 0.0
                   : 100.0 * static_cast<double>(milli) / static_cast<double>(total_idle_milli);
    }
};

/// The rows of the first group in the order of the shapes, then the rows of the next group.
using Report = std::vector<ReportRow>;

/// Returns the idle GPUs that a request of each shape cannot use, by cause.
///
/// Uses the definitions behind Fig. 13 of the ASI paper (section 4.1). With a node's idle GPUs `idle`, `w` =
/// floor(idle), its idle cores `cpus`, and a request of g GPUs and c cores, a node adds
///   fractional:        idle - w  if cpus >= c, w >= g and idle > w
///   stranded:          w         if cpus >= c and 0 < w < g
///   insufficient CPU:  g         if cpus < c and idle >= g;   idle  if cpus < c and 0 < idle < g
/// Capacity is idle if a task without spot (LP) rights could take it now: failed GPUs, Standby claims and
/// cordoned nodes are not idle. As in the paper, `idle` is a sum over GPUs: two half-used GPUs give w = 1.
/// With accounting `hp`, `idle` and `cpus` are the values of the paper's figure: `NodeRequests::idle_gpus`
/// and `idle_cpu`.
///
/// @param shapes at least one; each shape gets one row per group. `asi_shapes` are the shapes of the figure
/// @throws InvalidInput if a shape or an option is out of range
///
/// O(nodes x (GPUs + shapes)).
[[nodiscard]] Report report(const Cluster& cluster, std::span<const Shape> shapes,
                            const ReportOptions& options = {});
/// Returns the report for the cluster's `own_shapes`.
[[nodiscard]] Report report(const Cluster& cluster, const ReportOptions& options = {});

/// The report as a node metric for `Incremental` (incremental.hpp). O(shapes) per changed node.
class ReportMetric {
  public:
    ReportMetric(const Inventory& inventory, std::span<const Shape> shapes,
                 const ReportOptions& options = {});

    struct State {
        std::int64_t idle_milli = 0;
        std::int64_t cpu_milli = 0;
        bool operator==(const State&) const = default;
    };
    using Total = Report;
    [[nodiscard]] State state(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] Total zero() const { return rows_; }
    void add(Total& total, NodeId node, const State& state, int sign) const noexcept;
    [[nodiscard]] static Report result(const Total& total) { return total; }
    void renew(const Inventory& inventory);
    bool renew(const Inventory& inventory, NodeId node);

  private:
    // The properties of a node that decide its group and the list of groups.
    struct NodeFacts {
        bool shown = false, counted = false;
        std::size_t key = 0;  // groups are sorted by key
        bool operator==(const NodeFacts&) const = default;
    };
    [[nodiscard]] NodeFacts facts_of(const Inventory& inventory, NodeId node) const;
    [[nodiscard]] std::string group_name(const Inventory& inventory, std::size_t key) const;

    ReportOptions options_;
    std::uint64_t serial_;  // of the inventory
    std::vector<NodeFacts> facts_;
    std::vector<Shape> shapes_;
    std::vector<std::uint32_t> group_of_node_;  // not_counted = the node is ignored
    Report rows_;                               // empty rows, [group][shape]
    static constexpr std::uint32_t not_counted = 0xFFFFFFFFu;
};

/// A node's part in one row of a report.
struct UnusableNode {
    NodeId node = none<NodeId>;
    Cause cause = Cause::stranded;
    std::int64_t milli = 0;  ///< thousandths of a GPU, more than 0
    bool operator==(const UnusableNode&) const = default;

    [[nodiscard]] double gpus() const noexcept { return static_cast<double>(milli) / 1000; }
};

/// Returns the nodes behind the figures of `report` for this shape: nodes with the most GPUs first, then in
/// the order of the nodes. Each node has one cause. The sums by cause equal the report's row. Grouping
/// (`options.by`) has no effect.
///
/// @throws InvalidInput if the shape or an option is out of range
///
/// O(n log n) in the number of nodes, and O(GPUs).
[[nodiscard]] std::vector<UnusableNode> unusable_nodes(const Cluster& cluster, const Shape& shape,
                                                       const ReportOptions& options = {});

}  // namespace gpusched::fragmentation
