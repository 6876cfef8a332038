// Compile-time checks of the policies of allocation: filters, rankers, GPU pickers and placement policies.
//
// Every function and class that takes policies begins with these checks. They are static_asserts, because a compiler reports
// an unsatisfied concept as "no matching function" and prints the cause many lines later. A member that resembles an
// optional hook, but has another name or other parameters, is an error: the library would never call it.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/core/detail/policy_checks.hpp>

#include <concepts>

GPUSCHED_DEFINE_HAS_MEMBER(node_local)
GPUSCHED_DEFINE_HAS_MEMBER(is_local)
GPUSCHED_DEFINE_HAS_MEMBER(nodelocal)
GPUSCHED_DEFINE_HAS_MEMBER(node_locality)
GPUSCHED_DEFINE_HAS_MEMBER(is_node_local)
GPUSCHED_DEFINE_HAS_MEMBER(prepare)
GPUSCHED_DEFINE_HAS_MEMBER(prepare_node)
GPUSCHED_DEFINE_HAS_MEMBER(for_task)
GPUSCHED_DEFINE_HAS_MEMBER(for_tasks)
GPUSCHED_DEFINE_HAS_MEMBER(per_task)
GPUSCHED_DEFINE_HAS_MEMBER(changed)
GPUSCHED_DEFINE_HAS_MEMBER(change)
GPUSCHED_DEFINE_HAS_MEMBER(on_change)
GPUSCHED_DEFINE_HAS_MEMBER(on_changed)

namespace GPUSCHED_NAMESPACE::allocation::detail {

/// A type that is callable with the arguments of rankers and GPU pickers; its result type is not checked.
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
template <class P>
concept HearsOfChanges = requires(P& policy, NodeId node) { policy.changed(node); };
/// Whether a ranker returns a floating-point score. False if it is not callable: another check reports that.
template <class P>
inline constexpr bool scores_in_floating_point = [] {
    if constexpr (AsksAboutNode<P>)
        return std::floating_point<
            std::remove_cvref_t<decltype(detail::ask(std::declval<const P&>(), std::declval<const Cluster&>(),
                                                     TaskId{}, NodeId{}, std::declval<Rng&>()))>>;
    else
        return false;
}();

}  // namespace GPUSCHED_NAMESPACE::allocation::detail

#define GPUSCHED_CHECK_LOCALITY(T)                                                                           \
    static_assert(!gpusched::detail::has_node_local<T> ||                                                    \
                      (gpusched::allocation::detail::SaysTypeIsLocal<T>),                                    \
                  GPUSCHED_UNUSED_HOOK("node_local", "static constexpr bool node_local"));                   \
    static_assert(!gpusched::detail::has_is_node_local<T> ||                                                 \
                      (gpusched::allocation::detail::TellsLocality<T>),                                      \
                  GPUSCHED_UNUSED_HOOK("is_node_local", "bool is_node_local() const"));                      \
    static_assert(!gpusched::detail::has_is_local<T>, GPUSCHED_MISSPELT("is_local", "node_local"));          \
    static_assert(!gpusched::detail::has_nodelocal<T>, GPUSCHED_MISSPELT("nodelocal", "node_local"));        \
    static_assert(!gpusched::detail::has_node_locality<T>, GPUSCHED_MISSPELT("node_locality", "node_local"))

#define GPUSCHED_CHECK_RANKER(T)                                                                             \
    static_assert(gpusched::allocation::detail::AsksAboutNode<T>,                                            \
                  "a ranker is called as `ranker(const Cluster&, TaskId, NodeId)`, or with an `Rng&` as a "  \
                  "last argument, and its operator() is const");                                             \
    static_assert(!gpusched::allocation::detail::scores_in_floating_point<T>,                                \
                  "a ranker's scores are whole numbers, not floating point: ties would depend on the "       \
                  "machine; scale them, for example to thousandths");                                        \
    static_assert(!gpusched::allocation::detail::AsksAboutNode<T> ||                                         \
                      gpusched::allocation::detail::scores_in_floating_point<T> ||                           \
                      gpusched::allocation::NodeRanker<T>,                                                   \
                  "a ranker returns a score with a total order (== and <): a whole number, or a tuple");     \
    GPUSCHED_CHECK_LOCALITY(T);                                                                              \
    static_assert(!gpusched::detail::has_prepare<T> ||                                                       \
                      (gpusched::allocation::detail::PreparingRanker<T> &&                                   \
                       gpusched::allocation::detail::TakesWhatItPrepares<T>),                                \
                  GPUSCHED_UNUSED_HOOK("prepare", "State prepare(const Cluster&, NodeId) const, and a call " \
                                                  "operator that takes the State after the node"));          \
    static_assert(!gpusched::detail::has_for_task<T> || (gpusched::allocation::detail::TaskRanker<T>),       \
                  GPUSCHED_UNUSED_HOOK("for_task", "auto for_task(const Cluster&, TaskId) const"));          \
    static_assert(!gpusched::detail::has_prepare_node<T>, GPUSCHED_MISSPELT("prepare_node", "prepare"));     \
    static_assert(!gpusched::detail::has_for_tasks<T>, GPUSCHED_MISSPELT("for_tasks", "for_task"));          \
    static_assert(!gpusched::detail::has_per_task<T>, GPUSCHED_MISSPELT("per_task", "for_task"))

#define GPUSCHED_CHECK_GPU_PICKER(T)                                                                         \
    static_assert(gpusched::allocation::detail::AsksAboutNode<T>,                                            \
                  "a GPU picker is called as `picker(const Cluster&, TaskId, NodeId)`, or with an `Rng&` "   \
                  "as a last argument, and its operator() is const");                                        \
    static_assert(!gpusched::allocation::detail::AsksAboutNode<T> || gpusched::allocation::GpuPicker<T>,     \
                  "a GPU picker returns a GpuMask, bit g for GPU g, or what converts to it; not a list, a "  \
                  "bool or a double")

#define GPUSCHED_CHECK_FILTER(T)                                                                             \
    static_assert(gpusched::allocation::NodeFilter<T>,                                                       \
                  "a node filter is called as `filter(const Cluster&, TaskId, NodeId)`, returns bool, and "  \
                  "its operator() is const");                                                                \
    GPUSCHED_CHECK_LOCALITY(T)

#define GPUSCHED_CHECK_PLACEMENT(T)                                                                          \
    static_assert(gpusched::allocation::PlacementPolicy<T>,                                                  \
                  "a placement policy is called as `policy(const Cluster&, TaskId, Rng&)` and returns "      \
                  "std::optional<Destination>");                                                             \
    static_assert(!gpusched::detail::has_changed<T> || (gpusched::allocation::detail::HearsOfChanges<T>),    \
                  GPUSCHED_UNUSED_HOOK("changed", "void changed(NodeId)"));                                  \
    static_assert(!gpusched::detail::has_change<T>, GPUSCHED_MISSPELT("change", "changed"));                 \
    static_assert(!gpusched::detail::has_on_change<T>, GPUSCHED_MISSPELT("on_change", "changed"));           \
    static_assert(!gpusched::detail::has_on_changed<T>, GPUSCHED_MISSPELT("on_changed", "changed"))
