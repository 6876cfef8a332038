#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/report.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace GPUSCHED_NAMESPACE::fragmentation {

GPUSCHED_INLINE void validate(std::span<const Shape> shapes, const ReportOptions& options) {
    Problems problems;
    if (shapes.empty()) problems.add(bad_value("shapes", "0 entries", "at least 1"));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto owner = "shapes[" + std::to_string(i) + "]";
        check_range(problems, "gpus", shapes[i].gpus, 1, gpusched::max_gpus_per_node, owner);
        check_range(problems, "cpu_milli", shapes[i].cpu_milli, 0, 1'000'000'000'000, owner);
    }
    check_fields(problems, options);
    problems.throw_if_any();
}

GPUSCHED_INLINE ReportMetric::ReportMetric(const Inventory& inventory, std::span<const Shape> shapes,
                                           const ReportOptions& options)
    : shapes_(shapes.begin(), shapes.end()) {
    validate(shapes, options);
    constexpr auto nowhere = std::numeric_limits<std::size_t>::max();
    const auto key = [&](NodeId node) -> std::size_t {
        switch (options.by) {
        case GroupBy::none:
            return 0;
        case GroupBy::gpu_model:
            return detail::model_index(inventory, node);
        case GroupBy::cluster:
            return inventory.network_depth(node) == 0 ? nowhere : index(inventory.domain(0, node));
        }
        return 0;
    };
    // Groups in ascending order of their key, whatever the order of the nodes.
    const auto nodes = inventory.living_nodes();
    std::vector<std::size_t> keys;
    if (options.by == GroupBy::none) keys.push_back(0);
    for (const auto node : nodes)
        if (detail::counts(inventory.nodes, node, true, options.max_gpus_per_node)) keys.push_back(key(node));
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    for (const auto k : keys) {
        std::string name;
        if (options.by == GroupBy::gpu_model) name = detail::model_name(inventory, k);
        if (options.by == GroupBy::cluster)
            name =
                k == nowhere ? std::string(unknown_position) : inventory.domain_name(0, make_id<DomainId>(k));
        for (const auto& shape : shapes_) rows_.push_back({.group = name, .shape = shape});
    }
    group_of_node_.resize(inventory.nodes.names.size(), not_counted);
    for (const auto node : nodes) {
        const bool counted =
            detail::counts(inventory.nodes, node, options.include_cordoned, options.max_gpus_per_node);
        if (counted)
            group_of_node_[index(node)] = static_cast<std::uint32_t>(
                std::lower_bound(keys.begin(), keys.end(), key(node)) - keys.begin());
    }
}

GPUSCHED_INLINE ReportMetric::State ReportMetric::state(const Cluster& cluster, NodeId node) const noexcept {
    if (group_of_node_[index(node)] == not_counted) return {};
    return {cluster.gpu_free_total_milli(node), cluster.cpu_free_milli(node)};
}

GPUSCHED_INLINE void ReportMetric::add(Total& total, NodeId node, const State& state,
                                       int sign) const noexcept {
    if (state.idle_milli == 0) return;
    const auto idle = state.idle_milli;
    const auto whole = idle / whole_gpu_milli * whole_gpu_milli;
    auto* row = total.data() + group_of_node_[index(node)] * shapes_.size();
    for (const auto& shape : shapes_) {
        const std::int64_t asked = std::int64_t{whole_gpu_milli} * shape.gpus;
        row->total_idle_milli += sign * idle;
        if (state.cpu_milli < shape.cpu_milli)
            row->insufficient_cpu_milli += sign * std::min(asked, idle);
        else if (whole >= asked)
            row->fractional_milli += sign * (idle - whole);
        else
            row->stranded_milli += sign * whole;
        ++row;
    }
}

GPUSCHED_INLINE Report report(const Cluster& cluster, std::span<const Shape> shapes,
                              const ReportOptions& options) {
    return evaluate(ReportMetric(cluster.inventory(), shapes, options), cluster);
}

}  // namespace GPUSCHED_NAMESPACE::fragmentation
