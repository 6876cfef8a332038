// SPDX-License-Identifier: Apache-2.0
// Rankers made of rankers: applied in order, or weighted.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

namespace gpusched::allocation {

/// Each ranker breaks the ties that those before it leave.
template <NodeRanker... R>
struct Lexicographic {
    static constexpr bool node_local = (is_node_local<R> && ...);
    std::tuple<R...> rankers;

    explicit Lexicographic(R... r) : rankers(std::move(r)...) {}

    auto operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        return std::apply(
            [&](const R&... r) {
                return std::tuple<Score<R>...>{detail::ask(r, cluster, task, node, rng)...};
            },
            rankers);
    }
    [[nodiscard]] bool is_node_local() const {
        return std::apply([](const R&... r) { return (detail::node_local(r) && ...); }, rankers);
    }
    [[nodiscard]] auto for_task(const Cluster& cluster, TaskId task) const
        requires(detail::TaskRanker<R> || ...)
    {
        return std::apply(
            [&](const R&... r) {
                return Lexicographic<detail::ForTask<R>...>(detail::for_task(r, cluster, task)...);
            },
            rankers);
    }
};

/// A ranker with its weight.
template <NodeRanker R>
struct Part {
    std::int64_t weight;
    R ranker;
};
template <class R>
Part(std::int64_t, R) -> Part<R>;

/// `Weighted(Part{2, BestFit{}}, Part{1, Packing{}})`: the sum of weight x score.
///
/// Use scores with similar ranges (LeastAllocated, MostAllocated and the published scores: 0 to 100).
template <NodeRanker... R>
    requires(std::integral<Score<R>> && ...)
struct Weighted {
    static constexpr bool node_local = (is_node_local<R> && ...);
    std::tuple<R...> rankers;
    std::array<std::int64_t, sizeof...(R)> weights;

    explicit Weighted(Part<R>... parts) : rankers(std::move(parts.ranker)...), weights{parts.weight...} {}

    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        // Braces guarantee the order of calls, so that rankers draw random numbers in order.
        const auto scores = std::apply(
            [&](const R&... r) {
                return std::array<std::int64_t, sizeof...(R)>{
                    static_cast<std::int64_t>(detail::ask(r, cluster, task, node, rng))...};
            },
            rankers);
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < scores.size(); ++i) sum += weights[i] * scores[i];
        return sum;
    }
    [[nodiscard]] bool is_node_local() const {
        return std::apply([](const R&... r) { return (detail::node_local(r) && ...); }, rankers);
    }
    [[nodiscard]] auto for_task(const Cluster& cluster, TaskId task) const
        requires(detail::TaskRanker<R> || ...)
    {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return Weighted<detail::ForTask<R>...>(Part<detail::ForTask<R>>{
                weights[I], detail::for_task(std::get<I>(rankers), cluster, task)}...);
        }(std::index_sequence_for<R...>{});
    }
};

}  // namespace gpusched::allocation
