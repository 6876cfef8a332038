// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preemption/search.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpusched::preemption::detail {

template <class Set>
template <class Before>
Choice<Set> Search<Set>::prefix(const Node& node, const Request& request, Before&& before) {
    make_places(order_, node.size());
    make_places(sorted_, node.size());
    for (int i = 0; i < node.size(); ++i) order_[static_cast<std::size_t>(i)] = i;
    std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
        if (before(a, b) != before(b, a)) return before(a, b);
        return a != b && node.names_before(only<Set>(a), only<Set>(b));
    });
    Set chosen{};
    for (int i = 0; i < node.size(); ++i) {
        if (!node.is_bound()) {
            insert(chosen, order_[static_cast<std::size_t>(i)]);
        } else {
            if (contains(chosen, order_[static_cast<std::size_t>(i)])) continue;
            const auto wider = node.closed(with<Set>(chosen, order_[static_cast<std::size_t>(i)]));
            if (!node.allows(wider) || node.over_budget(wider) > 0) continue;
            chosen = wider;
        }
        ++steps_;
        if (const auto found = node.locality(chosen); found != infeasible)
            return make(node, request, chosen, found);
    }
    return {};
}

template <class Set>
Choice<Set> Search<Set>::or_exact(const Node& node, const Request& request, Choice<Set> found,
                                  Objective objective) {
    if (!node.is_bound() || (found.found() && found.over_budget == 0)) return found;
    auto exact = best(node, request, objective);
    if (found.found() && (!exact.found() || found.over_budget <= exact.over_budget)) return found;
    return exact;
}

template <class Set>
Choice<Set> Search<Set>::cheapest_prefix(const Node& node, const Request& request) {
    return or_exact(
        node, request,
        prefix(node, request, [&](int a, int b) { return node.first_cost(a) < node.first_cost(b); }),
        Objective::cost);
}

template <class Set>
Choice<Set> Search<Set>::first_fit(const Node& node, const Request& request) {
    return or_exact(node, request,
                    prefix(node, request,
                           [&](int a, int b) { return node.victim(a).priority < node.victim(b).priority; }),
                    Objective::fewest);
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
    if (!enough.found()) return or_exact(node, request, enough, Objective::cost);
    auto leaving = enough.victims;
    if (node.is_bound()) {
        auto& position = sorted_;
        for (int i = 0; i < node.size(); ++i)
            position[static_cast<std::size_t>(order_[static_cast<std::size_t>(i)])] = i;
        const auto later = [&](int a, int b) {
            return position[static_cast<std::size_t>(a)] > position[static_cast<std::size_t>(b)];
        };
        for (int i = node.size(); i-- > 0;) {
            const int victim = order_[static_cast<std::size_t>(i)];
            if (!contains(leaving, victim)) continue;
            const auto kept = node.with_back(leaving, victim, later);
            ++steps_;
            if (node.locality(kept) != infeasible) leaving = kept;
        }
        return make(node, request, leaving, node.locality(leaving));
    }
    for (int i = enough.count - 2; i >= 0; --i) {  // without the last one it was not enough
        const auto kept = minus(leaving, only<Set>(order_[static_cast<std::size_t>(i)]));
        ++steps_;
        if (node.locality(kept) != infeasible) leaving = kept;
    }
    return make(node, request, leaving, node.locality(leaving));
}

template <class Set>
Choice<Set> Search<Set>::reprieve(const Cluster& cluster, const Node& node, const Request& request) {
    if (node.size() == 0 || node.locality(node.all()) == infeasible) return {};
    const auto& t = cluster.inventory().tasks;
    make_places(order_, node.size());
    make_places(sorted_, node.size());
    for (int i = 0; i < node.size(); ++i) order_[static_cast<std::size_t>(i)] = i;
    std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
        const auto& v = node.victim(a);
        const auto& w = node.victim(b);
        const auto since = [&](const Victim& x) { return t.start_time[index(x.task)]; };
        if (v.priority != w.priority) return v.priority > w.priority;
        if (since(v) != since(w)) return since(v) < since(w);
        return a != b && node.names_before(only<Set>(a), only<Set>(b));
    });
    auto leaving = node.all_that_may(order_.data(), node.size());
    if (node.locality(leaving) == infeasible) return or_exact(node, request, {}, Objective::fewest);
    // Those whose leaving would break a budget come back first.
    auto& position = sorted_;
    const auto earlier = [&](int a, int b) {
        return position[static_cast<std::size_t>(a)] < position[static_cast<std::size_t>(b)];
    };
    const auto number = [&] {
        for (int i = 0; i < node.size(); ++i)
            position[static_cast<std::size_t>(order_[static_cast<std::size_t>(i)])] = i;
    };
    if (node.is_bound()) {
        number();
        const auto beyond = node.beyond_budgets(order_.data(), node.size());
        std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
            if (contains(beyond, a) != contains(beyond, b)) return contains(beyond, a);
            return earlier(a, b);
        });
        number();
    }
    for (int i = 0; i < node.size(); ++i) {
        const int victim = order_[static_cast<std::size_t>(i)];
        if (!contains(leaving, victim)) continue;
        const auto kept = node.with_back(leaving, victim, earlier);
        ++steps_;
        if (node.locality(kept) != infeasible) leaving = kept;
    }
    if (is_empty(leaving)) return {};
    auto found = make(node, request, leaving, node.locality(leaving));
    if (!node.allows(leaving)) found = {};
    return or_exact(node, request, std::move(found), Objective::fewest);
}

}  // namespace gpusched::preemption::detail
