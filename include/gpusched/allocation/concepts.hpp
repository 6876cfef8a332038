// SPDX-License-Identifier: Apache-2.0
// Concepts for the policies that place one task. A policy is a small value; it gets random numbers as an
// argument.
#pragma once

#include <gpusched/core/detail/policy_checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace gpusched::allocation {

/// A node and GPUs for a task.
struct Destination {
    NodeId node = none<NodeId>;
    GpuMask gpus = 0;
    bool operator==(const Destination&) const = default;
};

namespace detail {
template <class T>
concept RankerScore = std::totally_ordered<T> && !gpusched::detail::has_floating_point<T> &&
                      !gpusched::detail::has_part<gpusched::detail::IsTextOrOptional, T>;
template <class T>
concept Mask = std::convertible_to<T, GpuMask> && !std::floating_point<std::remove_cvref_t<T>> &&
               !std::same_as<std::remove_cvref_t<T>, bool>;
}  // namespace detail

/// Decides whether `task` may go to `node`, in addition to feasibility, which is always checked
/// (find_obstacle).
///
/// Optional: `node_local`, as for rankers.
template <class F>
concept NodeFilter = requires(const F& policy, const Cluster& cluster, TaskId task, NodeId node) {
    { policy(cluster, task, node) } -> std::same_as<bool>;
};

/// Scores a feasible node for a task: the greatest score wins, ties go to the first node.
///
/// Scores are integers, or another type with a total order, for example tuples of integers. Not accepted:
/// floating point, or a tuple, pair, array or list with a floating-point part, because ties would depend on
/// the machine; text; an optional. A ranker may take an `Rng&` as a last argument. Optional:
///
/// - `static constexpr bool node_local`. True promises that the score depends only on the node's own state
///   and the task's request (quantities, models, priority class, guaranteed locality). Such scores may be
///   kept until something changes on the node. Without it, every placement calls the ranker again. A policy
///   that knows this only at run time has `bool is_node_local() const` instead.
/// - `prepare(cluster, node)` of a node-local ranker: data about the node that does not depend on the task.
///   If the caller keeps it, it is passed as the last argument, after the node.
/// - `for_task(cluster, task)`: the ranker for that task alone, with data about the cluster that does not
///   depend on the node. Called once per placement; returns a ranker with scores of the same type.
template <class R>
concept NodeRanker = requires(const R& policy, const Cluster& cluster, TaskId task, NodeId node) {
    { policy(cluster, task, node) } -> detail::RankerScore;
} || requires(const R& policy, const Cluster& cluster, TaskId task, NodeId node, Rng& rng) {
    { policy(cluster, task, node, rng) } -> detail::RankerScore;
};

/// Chooses the GPUs that a task takes on a node that fits it; the result must satisfy `gpus_fit`.
///
/// Not called for tasks without GPUs. A picker may take an `Rng&` as a last argument. It may return any type
/// that converts to a GpuMask, for example the `int` that results from arithmetic with masks.
template <class P>
concept GpuPicker = requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node) {
    { policy(cluster, task, node) } -> detail::Mask;
} || requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node, Rng& rng) {
    { policy(cluster, task, node, rng) } -> detail::Mask;
};

/// Measures the load of a node, independent of the task; the least loaded node wins. Loads have the same types
/// as scores of rankers. See PowerOfD.
template <class L>
concept NodeLoad = requires(const L& policy, const Cluster& cluster, NodeId node) {
    { policy(cluster, node) } -> detail::RankerScore;
};

/// Places one pending task after another on a cluster that it watches.
///
/// Returns nothing if the task fits nowhere. A policy that keeps data about the cluster keeps it as a
/// follower (follower.hpp) and updates it when it is called.
template <class P>
concept PlacementPolicy = requires(P& policy, const Cluster& cluster, TaskId task, Rng& rng) {
    { policy(cluster, task, rng) } -> std::convertible_to<std::optional<Destination>>;
};

/// True for rankers and filters with a type that declares them node-local; see NodeRanker.
template <class R>
inline constexpr bool is_node_local = [] {
    if constexpr (requires { static_cast<bool>(R::node_local); })
        return static_cast<bool>(R::node_local);
    else
        return false;
}();

namespace detail {

/// Calls a ranker or picker with or without the generator.
template <class P>
[[nodiscard]] auto ask(const P& policy, const Cluster& cluster, TaskId task, NodeId node, Rng& rng) {
    if constexpr (requires { policy(cluster, task, node, rng); })
        return policy(cluster, task, node, rng);
    else
        return policy(cluster, task, node);
}

/// Returns the picker's choice as a mask. Call for tasks with GPUs only.
template <class P>
[[nodiscard]] GpuMask pick(const P& picker, const Cluster& cluster, TaskId task, NodeId node, Rng& rng) {
    return static_cast<GpuMask>(detail::ask(picker, cluster, task, node, rng));
}

/// @throws InvalidInput always: a picker returned GPUs that the task cannot take
[[noreturn]] inline void refuse_picked(const Cluster& cluster, TaskId task, NodeId node, GpuMask gpus) {
    std::string list;
    for_each_gpu(gpus, [&](int gpu) { list += (list.empty() ? "" : ", ") + std::to_string(gpu); });
    throw InvalidInput("the GPU picker answers with GPUs [" + list + "] of node " +
                       gpusched::quoted(cluster.name(node)) + ", which task " +
                       gpusched::quoted(cluster.name(task)) + " cannot take");
}

/// A policy that decides at run time whether it is node-local.
template <class P>
concept TellsLocality = requires(const P& policy) {
    { policy.is_node_local() } -> std::same_as<bool>;
};
template <class P>
inline constexpr bool may_be_node_local = is_node_local<P> || TellsLocality<P>;

template <class P>
[[nodiscard]] bool node_local(const P& policy) {
    if constexpr (!is_node_local<P> && TellsLocality<P>)
        return policy.is_node_local();
    else
        return is_node_local<P>;
}

/// A ranker with `for_task`, see NodeRanker.
template <class R>
concept TaskRanker =
    requires(const R& ranker, const Cluster& cluster, TaskId task) { ranker.for_task(cluster, task); };

/// A ranker with `prepare(cluster, node)`, see NodeRanker.
template <class R>
concept PreparingRanker =
    requires(const R& ranker, const Cluster& cluster, NodeId node) { ranker.prepare(cluster, node); };

/// Returns the ranker for that task alone, or the ranker itself if it has no `for_task`.
template <class R>
[[nodiscard]] decltype(auto) for_task(const R& ranker, const Cluster& cluster, TaskId task) {
    if constexpr (TaskRanker<R>)
        return ranker.for_task(cluster, task);
    else
        return (ranker);
}
template <class R>
using ForTask = std::remove_cvref_t<decltype(detail::for_task(std::declval<const R&>(),
                                                              std::declval<const Cluster&>(), TaskId{}))>;

}  // namespace detail

/// Returns the GPUs that the picker chooses (none for a task without GPUs) and the task's other devices
/// (free_devices_for). The node must fit the task. The result is checked, because types alone do not
/// distinguish a picker from a ranker.
/// @throws InvalidInput if the picker returns GPUs that the task cannot take
template <class P>
    requires detail::Mask<std::invoke_result_t<const P&, const Cluster&, TaskId, NodeId>>
[[nodiscard]] GpuMask pick_gpus(const P& picker, const Cluster& cluster, TaskId task, NodeId node) {
    auto gpus = free_devices_for(cluster, task, node);
    if (cluster.inventory().tasks.gpu_count[index(task)] != 0)
        gpus |= static_cast<GpuMask>(picker(cluster, task, node));
    if (!gpus_fit(cluster, task, node, gpus)) detail::refuse_picked(cluster, task, node, gpus);
    return gpus;
}
/// The same, with random numbers for a picker that takes them.
template <GpuPicker P>
[[nodiscard]] GpuMask pick_gpus(const P& picker, const Cluster& cluster, TaskId task, NodeId node, Rng& rng) {
    const auto ask = [&](const Cluster& c, TaskId t, NodeId n) { return detail::pick(picker, c, t, n, rng); };
    return pick_gpus(ask, cluster, task, node);
}

/// The type of a ranker's scores.
template <NodeRanker R>
using Score = decltype(detail::ask(std::declval<const R&>(), std::declval<const Cluster&>(), TaskId{},
                                   NodeId{}, std::declval<Rng&>()));

}  // namespace gpusched::allocation
