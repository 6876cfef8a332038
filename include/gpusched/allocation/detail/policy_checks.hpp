// SPDX-License-Identifier: Apache-2.0
// Checks policies at the entrance of every function and class that takes them: the compiler's first message
// is the cause.
//
// A failed concept is reported as "no matching function", with the cause many lines below. So these checks
// use static_assert. They also reject members with a name or signature close to that of an optional hook:
// such a member would silently never be called.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/core/detail/policy_checks.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace gpusched::allocation::detail {

/// Callable like a ranker or picker, with any return type.
template <class P>
concept AsksAboutNode = requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node) {
    policy(cluster, task, node);
} || requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node, Rng& rng) {
    policy(cluster, task, node, rng);
};
template <class P>
concept SaysTypeIsLocal = requires { typename std::bool_constant<static_cast<bool>(P::node_local)>; };
template <class P>
concept TakesWhatItPrepares =
    requires(const P& policy, const Cluster& cluster, TaskId task, NodeId node, Rng& rng) {
        policy(cluster, task, node, policy.prepare(cluster, node));
    };
/// False also for types that are not callable: those have a message of their own.
template <class P>
inline constexpr bool scores_in_floating_point = [] {
    if constexpr (AsksAboutNode<P>)
        return gpusched::detail::has_floating_point<decltype(detail::ask(
            std::declval<const P&>(), std::declval<const Cluster&>(), TaskId{}, NodeId{},
            std::declval<Rng&>()))>;
    else
        return false;
}();

template <class P>
inline constexpr bool loads_in_floating_point = [] {
    if constexpr (requires(const P& policy, const Cluster& cluster, NodeId node) { policy(cluster, node); })
        return gpusched::detail::has_floating_point<decltype(std::declval<const P&>()(
            std::declval<const Cluster&>(), NodeId{}))>;
    else
        return false;
}();
/// True if the type has a hook of this name. A template has no address to take, and a hook may wrongly be
/// non-const. So the check also tries a call on a non-const object.
template <class P>
concept HasPrepare = requires { &P::prepare; } || requires(P& policy, const Cluster& cluster, NodeId node) {
    policy.prepare(cluster, node);
};
template <class P>
concept HasForTask = requires { &P::for_task; } || requires(P& policy, const Cluster& cluster, TaskId task) {
    policy.for_task(cluster, task);
};
/// True if `for_task` returns a ranker with scores that compare with those of the ranker itself.
template <class P>
concept AnswersLikeItself = NodeRanker<ForTask<P>> && std::same_as<Score<ForTask<P>>, Score<P>>;

/// Each check is a function that holds only static_asserts and returns true. Each assert spells its condition
/// out, because compilers show the line of the condition and its message first.
template <class T>
constexpr bool check_locality() {
    static_assert(
        !requires { &T::node_local; } || SaysTypeIsLocal<T>,
        "the policy has a hook `node_local` that would never be used: expected `static constexpr bool "
        "node_local`");
    static_assert(
        !requires { &T::is_node_local; } || TellsLocality<T>,
        "the policy has a hook `is_node_local` that would never be used: expected `bool "
        "is_node_local() const`");
    static_assert(
        !requires { &T::is_local; }, "the member `is_local` is never called; the hook is named `node_local`");
    static_assert(
        !requires { &T::nodelocal; },
        "the member `nodelocal` is never called; the hook is named `node_local`");
    static_assert(
        !requires { &T::node_locality; },
        "the member `node_locality` is never called; the hook is named `node_local`");
    return true;
}

template <class T>
constexpr bool check_ranker() {
    static_assert(
        AsksAboutNode<T>,
        "a ranker is called as `ranker(const Cluster&, TaskId, NodeId)`, or with an `Rng&` as a last "
        "argument, and its operator() is const");
    static_assert(
        !scores_in_floating_point<T>,
        "a ranker's scores are whole numbers, not floating point, nor tuples with a part in it: ties "
        "would depend on the machine; scale them, for example to thousandths");
    static_assert(
        !AsksAboutNode<T> || scores_in_floating_point<T> || NodeRanker<T>,
        "a ranker returns a score with a total order (== and <): a whole number, or a tuple; not text, "
        "nor an optional");
    static_assert(!HasPrepare<T> || (PreparingRanker<T> && TakesWhatItPrepares<T>),
                  "the policy has a hook `prepare` that would never be used: expected `State prepare(const "
                  "Cluster&, NodeId) const`, and a call operator that takes the State after the node");
    static_assert(
        !HasPrepare<T> || requires { &T::node_local; } || requires { &T::is_node_local; },
        "the policy has a hook `prepare` that would never be used: only what a node-local ranker prepares "
        "is kept; expected also `static constexpr bool node_local = true`");
    static_assert(!HasForTask<T> || TaskRanker<T>,
                  "the policy has a hook `for_task` that would never be used: expected `auto for_task(const "
                  "Cluster&, TaskId) const`");
    if constexpr (NodeRanker<T> && TaskRanker<T>)
        static_assert(
            AnswersLikeItself<T>,
            "the hook `for_task` returns a ranker whose scores are of the same type as those of the "
            "policy itself");
    static_assert(
        !requires { &T::prepare_node; },
        "the member `prepare_node` is never called; the hook is named `prepare`");
    static_assert(
        !requires { &T::for_tasks; }, "the member `for_tasks` is never called; the hook is named `for_task`");
    static_assert(
        !requires { &T::per_task; }, "the member `per_task` is never called; the hook is named `for_task`");
    return check_locality<T>();
}

template <class T>
constexpr bool check_gpu_picker() {
    static_assert(
        AsksAboutNode<T>,
        "a GPU picker is called as `picker(const Cluster&, TaskId, NodeId)`, or with an `Rng&` as a "
        "last argument, and its operator() is const");
    static_assert(
        !AsksAboutNode<T> || GpuPicker<T>,
        "a GPU picker returns a GpuMask, bit g for GPU g, or what converts to it; not a list, a bool "
        "or a double");
    return true;
}

template <class T>
constexpr bool check_filter() {
    static_assert(
        NodeFilter<T>,
        "a node filter is called as `filter(const Cluster&, TaskId, NodeId)`, returns bool, and its "
        "operator() is const");
    return check_locality<T>();
}

template <class T>
constexpr bool check_node_load() {
    static_assert(!loads_in_floating_point<T>,
                  "a node's load is a whole number, not floating point, nor a tuple with a part in it: ties "
                  "would depend on the machine; scale it, for example to thousandths");
    static_assert(
        loads_in_floating_point<T> || NodeLoad<T>,
        "a node load is called as `load(const Cluster&, NodeId)`, returns what has a total order (== "
        "and <), not text nor an optional, and its operator() is const");
    return true;
}

template <class T>
constexpr bool check_placement() {
    static_assert(PlacementPolicy<T>,
                  "a placement policy is called as `policy(const Cluster&, TaskId, Rng&)` and returns "
                  "std::optional<Destination>");
    static_assert(
        !requires { &T::changed; },
        "the member `changed` is never called; use Followed (model/follower.hpp), which is updated when "
        "the policy is called");
    return true;
}

}  // namespace gpusched::allocation::detail
