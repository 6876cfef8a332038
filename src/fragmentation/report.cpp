// SPDX-License-Identifier: Apache-2.0
// Computes reports, their shapes, and the nodes behind them.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/report.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>

namespace gpusched::fragmentation {

namespace detail {

static std::int64_t upper_median(std::vector<std::int64_t>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<Shape> own_shapes(const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    std::map<int, std::vector<std::int64_t>> asked;  // CPU of the tasks, by GPU count
    std::vector<std::int64_t> per_gpu;
    for (const auto task : cluster.tasks()) {
        const int gpus = inv.tasks.gpu_count[index(task)];
        if (gpus == 0 || inv.tasks.is(TaskTrait::daemon, task)) continue;
        asked[gpus].push_back(inv.tasks.cpu_milli[index(task)]);
        per_gpu.push_back(inv.tasks.cpu_milli[index(task)] / gpus);
    }
    for (const auto node : cluster.nodes())
        if (!inv.nodes.is_cordoned(node) && cluster.gpu_count(node) > 0)
            (void)asked[cluster.gpu_count(node)];  // no tasks if none requests this GPU count
    const auto usual = per_gpu.empty() ? 0 : detail::upper_median(per_gpu);
    std::vector<Shape> shapes;
    for (auto& [gpus, cpu] : asked)
        shapes.push_back({gpus, cpu.empty() ? usual * gpus : detail::upper_median(cpu)});
    if (shapes.empty()) shapes.push_back({1, 0});
    return shapes;
}

GPUSCHED_EXPORT void validate(std::span<const Shape> shapes, const ReportOptions& options) {
    Problems problems;
    if (shapes.empty()) problems.add(bad_value("shapes", "0 entries", "at least 1"));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto owner = "shapes[" + std::to_string(i) + "]";
        check_range(problems, "gpus", shapes[i].gpus, 1, gpusched::max_gpus_per_node, owner);
        check_range(problems, "cpu_milli", shapes[i].cpu_milli, 0, largest_quantity, owner);
    }
    check_fields(problems, options);
    problems.throw_if_any();
}

namespace detail {
/// The key of the group of nodes with unknown position; sorts after all other keys.
constexpr auto nowhere = std::numeric_limits<std::size_t>::max();
}  // namespace detail

GPUSCHED_EXPORT ReportMetric::NodeFacts ReportMetric::facts_of(const Inventory& inventory,
                                                               NodeId node) const {
    if (!detail::counts(inventory.nodes, node, true, options_.max_gpus_per_node)) return {};
    NodeFacts out{
        true, detail::counts(inventory.nodes, node, options_.include_cordoned, options_.max_gpus_per_node),
        0};
    if (options_.by == GroupBy::gpu_model) out.key = detail::model_index(inventory, node);
    if (options_.by == GroupBy::cluster)
        out.key = inventory.network_depth(node) == 0 ? detail::nowhere : index(inventory.domain(0, node));
    return out;
}

GPUSCHED_EXPORT std::string ReportMetric::group_name(const Inventory& inventory, std::size_t key) const {
    if (options_.by == GroupBy::gpu_model) return detail::model_name(inventory, key);
    if (options_.by == GroupBy::none) return {};
    return key == detail::nowhere ? std::string(unknown_position)
                                  : inventory.domain_name(0, make_id<DomainId>(key));
}

GPUSCHED_EXPORT ReportMetric::ReportMetric(const Inventory& inventory, std::span<const Shape> shapes,
                                           const ReportOptions& options)
    : options_(options), serial_(inventory.serial), shapes_(shapes.begin(), shapes.end()) {
    validate(shapes, options);
    const auto nodes = inventory.living_nodes();
    std::vector<std::size_t> keys;
    if (options.by == GroupBy::none) keys.push_back(0);
    facts_.resize(inventory.nodes.names.size());
    for (const auto node : nodes) {
        const auto& here = facts_[index(node)] = facts_of(inventory, node);
        if (here.shown) keys.push_back(here.key);
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    for (const auto key : keys)
        for (const auto& shape : shapes_)
            rows_.push_back({.group = group_name(inventory, key), .shape = shape});
    group_of_node_.resize(inventory.nodes.names.size(), not_counted);
    for (const auto node : nodes)
        if (const auto& here = facts_[index(node)]; here.counted)
            group_of_node_[index(node)] = static_cast<std::uint32_t>(
                std::lower_bound(keys.begin(), keys.end(), here.key) - keys.begin());
}

GPUSCHED_EXPORT void ReportMetric::renew(const Inventory& inventory) {
    if (inventory.serial == serial_) return;
    const auto shapes = shapes_;
    *this = ReportMetric(inventory, shapes, options_);
}

GPUSCHED_EXPORT bool ReportMetric::renew(const Inventory& inventory, NodeId node) {
    if (index(node) < facts_.size() && facts_of(inventory, node) == facts_[index(node)]) {
        const auto group = group_of_node_[index(node)];
        if (group == not_counted ||
            rows_[group * shapes_.size()].group == group_name(inventory, facts_[index(node)].key))
            return false;
    }
    renew(inventory);
    return true;
}

GPUSCHED_EXPORT ReportMetric::State ReportMetric::state(const Cluster& cluster, NodeId node) const noexcept {
    if (group_of_node_[index(node)] == not_counted) return {};
    const auto idle = detail::idle_on(cluster, node, options_.accounting);
    return {idle.gpu_milli, idle.cpu_milli};
}

GPUSCHED_EXPORT void ReportMetric::add(Total& total, NodeId node, const State& state,
                                       int sign) const noexcept {
    if (state.idle_milli == 0) return;
    auto* row = total.data() + group_of_node_[index(node)] * shapes_.size();
    for (const auto& shape : shapes_) {
        const auto [cause, milli] = unusable(shape, state.idle_milli, state.cpu_milli);
        row->total_idle_milli += sign * state.idle_milli;
        (cause == Cause::stranded     ? row->stranded_milli
         : cause == Cause::fractional ? row->fractional_milli
                                      : row->insufficient_cpu_milli) += sign * milli;
        ++row;
    }
}

GPUSCHED_EXPORT Report report(const Cluster& cluster, std::span<const Shape> shapes,
                              const ReportOptions& options) {
    return evaluate(ReportMetric(cluster.inventory(), shapes, options), cluster);
}

GPUSCHED_EXPORT Report report(const Cluster& cluster, const ReportOptions& options) {
    return report(cluster, own_shapes(cluster), options);
}

GPUSCHED_EXPORT std::vector<UnusableNode> unusable_nodes(const Cluster& cluster, const Shape& shape,
                                                         const ReportOptions& options) {
    validate(std::span(&shape, 1), options);
    std::vector<UnusableNode> found;
    for (const auto node : cluster.nodes()) {
        if (!detail::counts(cluster.inventory().nodes, node, options.include_cordoned,
                            options.max_gpus_per_node))
            continue;
        const auto idle = detail::idle_on(cluster, node, options.accounting);
        const auto [cause, milli] = unusable(shape, idle.gpu_milli, idle.cpu_milli);
        if (milli > 0) found.push_back({node, cause, milli});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const UnusableNode& a, const UnusableNode& b) { return a.milli > b.milli; });
    return found;
}

}  // namespace gpusched::fragmentation
