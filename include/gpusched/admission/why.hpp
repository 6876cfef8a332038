// SPDX-License-Identifier: Apache-2.0
// why(): why a pending task or job does not run, and what would help.
#pragma once

#include <gpusched/allocation/refusals.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/waiting.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::admission {

using allocation::Constraint;
using allocation::ConstraintOrder;

/// Options of `why`.
struct WhyOptions {
    /// The order of the rows, which also decides the first constraint that refuses a node.
    ConstraintOrder order = ConstraintOrder::permanence;
    std::optional<NodeId> on{};  ///< answer for this node only, and of several pods for one; absent = for all
    /// Most seconds, >= 0. Remedies that were not computed by then are missing.
    std::optional<double> time_limit{};
};
template <class F>
constexpr void visit_fields(std::type_identity<WhyOptions>, F&& field) {
    field("order", &WhyOptions::order);
    field("on", &WhyOptions::on);
    field("time_limit", &WhyOptions::time_limit, at_least(0));
}

/// A constraint and the nodes that it refuses.
struct WhyRow {
    std::string constraint{};      ///< for a named resource: `resource` and its name
    std::int64_t nodes_first = 0;  ///< nodes whose first refusing constraint it is
    std::int64_t nodes_alone = 0;  ///< nodes that it alone refuses
    /// Of the nodes that it alone refuses, the one with the least missing, then the first by name.
    std::optional<std::string> best_node{};
    bool operator==(const WhyRow&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<WhyRow>, F&& field) {
    field("constraint", &WhyRow::constraint);
    field("nodes_first", &WhyRow::nodes_first);
    field("nodes_alone", &WhyRow::nodes_alone);
    field("best_node", &WhyRow::best_node);
}

/// Equal pods of a job, and the constraints that keep them off nodes.
struct WhyKind {
    std::string pod{};            ///< the name of the first one
    std::int64_t pods = 0;        ///< their number
    std::int64_t places = 0;      ///< of these, find a place as it is, without the other pods of the job
    std::int64_t nodes_fit = 0;   ///< nodes that could take one as it is
    std::vector<WhyRow> table{};  ///< constraints that refuse at least one node
    bool operator==(const WhyKind&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<WhyKind>, F&& field) {
    field("pod", &WhyKind::pod);
    field("pods", &WhyKind::pods);
    field("places", &WhyKind::places);
    field("nodes_fit", &WhyKind::nodes_fit);
    field("table", &WhyKind::table);
}

/// The pods of a job that find a place in one domain of the level that they must share.
struct WhyDomain {
    std::string domain{};     ///< its name
    std::int64_t places = 0;  ///< the number of pods
    bool operator==(const WhyDomain&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<WhyDomain>, F&& field) {
    field("domain", &WhyDomain::domain);
    field("places", &WhyDomain::places);
}

/// The kinds of causes.
enum class Cause : std::uint8_t {
    none,           ///< all pods find a place as it is
    waiting,        ///< it does not wait for room
    impossible,     ///< the nodes would not hold it even if they were empty
    topology,       ///< it fits, but not within one domain
    fragmentation,  ///< enough GPUs are idle, but too few on one node
    capacity,       ///< too few GPUs are idle
    constraint,     ///< one other constraint
    constraints,    ///< several constraints together
};

enum class RemedyKind : std::uint8_t {
    wait,       ///< until named tasks that are about to leave have left
    uncordon,   ///< named nodes
    moves,      ///< of other tasks, by `admit`
    evictions,  ///< of other tasks, and moves, by `admit`
    add_nodes,  ///< more nodes of a model
};

/// A change after which all pods find a place. Each is computed, not guessed.
struct Remedy {
    RemedyKind kind = RemedyKind::wait;
    std::optional<std::int64_t> cost{};  ///< thousandths of a GPU-second; absent = new nodes
    std::string text{};
    std::optional<Plan> plan{};  ///< of moves and evictions, with the places of the pods
    bool operator==(const Remedy&) const = default;
};

/// The result of `why`.
struct Why {
    std::vector<TaskId> pods{};               ///< the pending pods that it is about
    std::optional<WaitingFor> waiting_for{};  ///< such as `gate`; absent = it waits for room
    bool fits = false;                        ///< all pods find a place as it is
    std::int64_t places = 0;                  ///< pods that find a place together
    std::vector<WhyKind> kinds{};             ///< by kind of pod, the largest first
    std::vector<WhyDomain> domains{};         ///< with cause `topology`: all domains, most places first
    Cause cause_kind = Cause::none;           ///< the kind of the cause; the constraints are in `constraints`
    std::vector<std::string> constraints{};   ///< the constraints to blame, as in the tables
    std::string cause{};                      ///< the cause in one sentence, with its figures
    /// True: proven that the nodes would not hold the pods if all tasks left except daemons and locked ones. Cordoned
    /// nodes and nodes that are not ready count. False: a placement on the emptied nodes was found. Absent: a limit
    /// ended the search.
    std::optional<bool> impossible{};
    std::vector<Remedy> remedies{};                  ///< the cheapest first
    StopReason stop_reason = StopReason::completed;  ///< why the search ended
};

/// Says why a pending task, or the pending tasks of a job, do not run.
///
/// A table counts the nodes that each constraint refuses, each asked alone. The cause is the first that applies: it
/// does not wait for room; it is impossible; a gang fits, but in no domain that it must share; one constraint, the one
/// that costs least to remove; the smallest set of constraints. The removal of the named constraints changes the
/// answer. If some pods of a job find a place, the cause is that of the next pod. Remedies are asked from `admit`, or
/// by asking again with other nodes.
///
/// @param name of a job or a task; the task of a gang is answered for the gang if it cannot start without the others.
///   For tasks that have a node already the answer names it
/// @return see Why; the cluster is not changed
/// @throws InvalidInput for a name without tasks, and options out of range
/// O(nodes x constraints) for each kind of pod, and the costs of `allocate` and `admit` for remedies.
/// Deterministic, unless a time limit or a cancellation ends the search.
[[nodiscard]] Why why(const Cluster& cluster, std::string_view name, const WhyOptions& options = {},
                      const Context& context = {});

}  // namespace gpusched::admission
