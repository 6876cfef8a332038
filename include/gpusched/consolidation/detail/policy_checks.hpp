// Checks of the policies of consolidation, where they come together: the compiler's first message is the cause.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/core/detail/policy_checks.hpp>

GPUSCHED_DEFINE_HAS_MEMBER(may_skip_victims)
GPUSCHED_DEFINE_HAS_MEMBER(may_skip_victim)
GPUSCHED_DEFINE_HAS_MEMBER(skip_victims)
GPUSCHED_DEFINE_HAS_MEMBER(cheapest_first)
GPUSCHED_DEFINE_HAS_MEMBER(cheapest)
GPUSCHED_DEFINE_HAS_MEMBER(wants_cheapest_first)
GPUSCHED_DEFINE_HAS_MEMBER(with_limits)
GPUSCHED_DEFINE_HAS_MEMBER(with_limit)
GPUSCHED_DEFINE_HAS_MEMBER(with_options)

namespace gpusched::consolidation::detail {

template <class P>
concept SaysSkipping = requires { typename std::bool_constant<static_cast<bool>(P::may_skip_victims)>; };
template <class P>
concept SaysCheapestFirst = requires { typename std::bool_constant<static_cast<bool>(P::cheapest_first)>; };

/// Gives a number per node, but one in floating point.
template <class P>
concept FloatPerNode = requires(const P& policy, const Cluster& cluster, NodeId node) {
    { policy(cluster, node) } -> std::floating_point;
};

}  // namespace gpusched::consolidation::detail

#define GPUSCHED_CHECK_PARTITIONER(T)                                                                        \
    static_assert(gpusched::consolidation::Partitioner<T>,                                                   \
                  "Policies::partitioner is called as `partitioner(const Cluster&, std::size_t "             \
                  "partition_size, Rng&)`, returns a Partition, and its operator() is const")

#define GPUSCHED_CHECK_NUMBER_PER_NODE(T, field)                                                             \
    static_assert(!gpusched::consolidation::detail::FloatPerNode<T>,                                         \
                  "Policies::" field " returns whole numbers, not floating point, which would be cut off; "  \
                  "scale them, for example to thousandths");                                                 \
    static_assert(gpusched::consolidation::NodeWeight<T> ||                                                  \
                      gpusched::consolidation::detail::FloatPerNode<T>,                                      \
                  "Policies::" field " is called as `policy(const Cluster&, NodeId)`, returns a whole "      \
                  "number, and its operator() is const")

#define GPUSCHED_CHECK_DESTINATIONS(T)                                                                       \
    static_assert(gpusched::consolidation::DestinationRanking<T>,                                            \
                  "Policies::destinations has the const members `bool visit(const Cluster&, const "          \
                  "FreeIndex&, TaskId, offer)` and `bool visit_full(...)` with the same parameters, where "  \
                  "`offer` is called with a NodeId")

#define GPUSCHED_CHECK_EJECTION(T)                                                                           \
    static_assert(gpusched::consolidation::EjectionRule<T>,                                                  \
                  "Policies::ejection is called as `rule(const Cluster&, TaskId, NodeId, std::span<const "   \
                  "Victim> movable, std::vector<Victim>& victims)`, returns bool, and its operator() is "    \
                  "const");                                                                                  \
    static_assert(!gpusched::detail::has_may_skip_victims<T> ||                                              \
                      (gpusched::consolidation::detail::SaysSkipping<T>),                                    \
                  GPUSCHED_UNUSED_HOOK("may_skip_victims", "static constexpr bool may_skip_victims"));       \
    static_assert(!gpusched::detail::has_cheapest_first<T> ||                                                \
                      (gpusched::consolidation::detail::SaysCheapestFirst<T>),                               \
                  GPUSCHED_UNUSED_HOOK("cheapest_first", "static constexpr bool cheapest_first"));           \
    static_assert(!gpusched::detail::has_may_skip_victim<T>,                                                 \
                  GPUSCHED_MISSPELT("may_skip_victim", "may_skip_victims"));                                 \
    static_assert(!gpusched::detail::has_skip_victims<T>,                                                    \
                  GPUSCHED_MISSPELT("skip_victims", "may_skip_victims"));                                    \
    static_assert(!gpusched::detail::has_cheapest<T>, GPUSCHED_MISSPELT("cheapest", "cheapest_first"));      \
    static_assert(!gpusched::detail::has_wants_cheapest_first<T>,                                            \
                  GPUSCHED_MISSPELT("wants_cheapest_first", "cheapest_first"))

#define GPUSCHED_CHECK_ACCEPTANCE(T)                                                                         \
    static_assert(gpusched::consolidation::Acceptance<T>,                                                    \
                  "Policies::acceptance is called as `accept(const ChainSet&)`, returns bool, and its "      \
                  "operator() is const");                                                                    \
    static_assert(!gpusched::detail::has_with_limits<T> ||                                                   \
                      (gpusched::consolidation::detail::TakesLimits<T>),                                     \
                  GPUSCHED_UNUSED_HOOK("with_limits", "Acceptance with_limits(const Options&) const"));      \
    static_assert(!gpusched::detail::has_with_limit<T>, GPUSCHED_MISSPELT("with_limit", "with_limits"));     \
    static_assert(!gpusched::detail::has_with_options<T>, GPUSCHED_MISSPELT("with_options", "with_limits"))

#define GPUSCHED_CHECK_CONSOLIDATION_PICKER(T)                                                               \
    static_assert(gpusched::consolidation::PurePicker<T>,                                                    \
                  "Policies::picker is called as `picker(const Cluster&, TaskId, NodeId)`, without an "      \
                  "Rng&, returns a GpuMask or what converts to it, and its operator() is const")
