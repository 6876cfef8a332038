#pragma once

#include <gpusched/preemption/detail/search.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace GPUSCHED_NAMESPACE::preemption::detail {

template <class Set>
template <class Before>
Choice<Set> Search<Set>::prefix(const Node& node, const Request& request, Before&& before) {
    make_places(order_, node.size());
    for (int i = 0; i < node.size(); ++i) order_[static_cast<std::size_t>(i)] = i;
    std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
        if (before(a, b) != before(b, a)) return before(a, b);
        return a != b && node.names_before(only<Set>(a), only<Set>(b));
    });
    Set chosen{};
    for (int i = 0; i < node.size(); ++i) {
        insert(chosen, order_[static_cast<std::size_t>(i)]);
        ++steps_;
        if (const auto found = node.locality(chosen); found != infeasible)
            return make(node, request, chosen, found);
    }
    return {};
}

template <class Set>
Choice<Set> Search<Set>::cheapest_prefix(const Node& node, const Request& request) {
    return prefix(node, request, [&](int a, int b) { return node.first_cost(a) < node.first_cost(b); });
}

template <class Set>
Choice<Set> Search<Set>::first_fit(const Node& node, const Request& request) {
    return prefix(node, request,
                  [&](int a, int b) { return node.victim(a).priority < node.victim(b).priority; });
}

template <class Set>
Choice<Set> Search<Set>::in_order(const Cluster& cluster, const Node& node, const Request& request,
                                  const VictimPolicy& policy) {
    std::vector<std::int64_t> keys;
    for (int i = 0; i < node.size(); ++i)
        keys.push_back(policy.key(cluster, node.victim(i).task, request.now));
    const auto enough = prefix(node, request, [&](int a, int b) {
        return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    });
    if (!enough.found()) return enough;
    auto leaving = enough.victims;
    for (int i = enough.count - 2; i >= 0; --i) {  // without the last one it was not enough
        const auto kept = minus(leaving, only<Set>(order_[static_cast<std::size_t>(i)]));
        ++steps_;
        if (node.locality(kept) != infeasible) leaving = kept;
    }
    return make(node, request, leaving, node.locality(leaving));
}

template <class Set>
Choice<Set> Search<Set>::reprieve(const Cluster& cluster, const Node& node, const Request& request) {
    auto leaving = node.all();
    if (is_empty(leaving) || node.locality(leaving) == infeasible) return {};
    const auto& t = cluster.inventory().tasks;
    make_places(order_, node.size());
    for (int i = 0; i < node.size(); ++i) order_[static_cast<std::size_t>(i)] = i;
    std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
        const auto& v = node.victim(a);
        const auto& w = node.victim(b);
        const auto since = [&](const Victim& x) { return t.start_time[index(x.task)]; };
        if (v.priority != w.priority) return v.priority > w.priority;
        if (since(v) != since(w)) return since(v) < since(w);
        return a != b && node.names_before(only<Set>(a), only<Set>(b));
    });
    for (int i = 0; i < node.size(); ++i) {
        const auto kept = minus(leaving, only<Set>(order_[static_cast<std::size_t>(i)]));
        ++steps_;
        if (node.locality(kept) != infeasible) leaving = kept;
    }
    if (is_empty(leaving)) return {};
    return make(node, request, leaving, node.locality(leaving));
}

}  // namespace GPUSCHED_NAMESPACE::preemption::detail
