// The data of a snapshot in the natural order of names.
#pragma once

#include <gpusched/core/natural_order.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace GPUSCHED_NAMESPACE::detail {

/// True where nothing comes before what is listed ahead of it.
template <class Named>
[[nodiscard]] bool is_in_name_order(const std::vector<Named>& list) {
    return std::is_sorted(list.begin(), list.end(),
                          [](const Named& a, const Named& b) { return comes_before(a.name, b.name); });
}

template <class Named>
[[nodiscard]] std::vector<Named> in_name_order(const std::vector<Named>& list) {
    std::vector<std::size_t> order(list.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return comes_before(list[a].name, list[b].name); });
    std::vector<Named> sorted;
    sorted.reserve(list.size());
    for (const auto at : order) sorted.push_back(list[at]);
    return sorted;
}

[[nodiscard]] inline bool is_in_name_order(const ClusterSpec& spec) {
    return is_in_name_order(spec.nodes) && is_in_name_order(spec.tasks) && is_in_name_order(spec.jobs) &&
           is_in_name_order(spec.budgets);
}

/// Label levels keep their order, which numbers them.
[[nodiscard]] inline ClusterSpec in_name_order(const ClusterSpec& spec) {
    return {.now = spec.now,
            .nodes = in_name_order(spec.nodes),
            .tasks = in_name_order(spec.tasks),
            .jobs = in_name_order(spec.jobs),
            .budgets = in_name_order(spec.budgets),
            .label_levels = spec.label_levels};
}

}  // namespace GPUSCHED_NAMESPACE::detail
