// SPDX-License-Identifier: Apache-2.0
// what_if(): which pending jobs would start if nodes came, went or were uncordoned.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/report.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// The maximum of `AddedNodes::count`.
inline constexpr std::int64_t most_added_nodes = 100'000;

/// Equal new nodes, called `<name>-new-1` and so on.
struct AddedNodes {
    NodeSpec node{};                  ///< labels with the node's name as value get the new name
    std::int64_t count = 1;           ///< 1 to 100,000
    std::vector<TaskSpec> daemons{};  ///< run on each new node; `node` is ignored
};

/// Returns new nodes like one of the cluster: healthy, not cordoned, without its tasks, with its daemons.
[[nodiscard]] AddedNodes nodes_like(const Cluster& cluster, NodeId node, std::int64_t count);

/// Options of `what_if`: the change, and the consolidation after it.
struct WhatIfOptions {
    /// Nodes to add.
    std::vector<AddedNodes> add_nodes{};
    /// Nodes to remove. Their tasks wait for a new place, after all others of their priority. Locked tasks are
    /// lost, and so are tasks that never move unless a controller recreates them.
    std::vector<NodeId> remove{};
    /// Cordoned nodes that become schedulable.
    std::vector<NodeId> uncordon{};
    /// Also answer for the cluster after a consolidation.
    bool consolidate = true;
    /// Set of policies of the consolidation: `fast`, `best` (ours) or `ipc` (the paper's).
    Preset preset = Preset::best;
    /// Seed of random choices.
    std::uint64_t seed = 0;
    /// Number of threads; 0 = one per hardware thread. The result does not depend on it.
    std::size_t threads = 0;
    /// Seconds, >= 0. When they have passed, jobs that were not tried count as waiting. The consolidation
    /// comes last and gets half of the seconds that are left.
    std::optional<double> time_limit{};
};
template <class F>
constexpr void visit_fields(std::type_identity<WhatIfOptions>, F&& field) {
    field("remove", &WhatIfOptions::remove);
    field("uncordon", &WhatIfOptions::uncordon);
    field("consolidate", &WhatIfOptions::consolidate);
    field("preset", &WhatIfOptions::preset);
    field("seed", &WhatIfOptions::seed);
    field("threads", &WhatIfOptions::threads);
    field("time_limit", &WhatIfOptions::time_limit, at_least(0));
}

/// The cluster for which a question is answered.
enum class WhatIfState : std::uint8_t {
    now,           ///< as it is
    changed,       ///< after the change
    consolidated,  ///< after the change, if there is one, and a consolidation
};

/// What becomes of one job in one state.
struct JobOutcome {
    std::int64_t pods = 0;  ///< pods that find a place in the order of the queue
    bool starts = false;    ///< as many pods as the job needs find a place in the order of the queue
    bool alone = false;     ///< the same if no other job were waiting
    std::string reason{};   ///< why it does not start; empty if it does
    bool operator==(const JobOutcome&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<JobOutcome>, F&& field) {
    field("pods", &JobOutcome::pods);
    field("starts", &JobOutcome::starts);
    field("alone", &JobOutcome::alone);
    field("reason", &JobOutcome::reason);
}

/// A job, or a task without a job, that waits.
struct WaitingJob {
    std::string name{};                  ///< of the job, or of the task without a job
    std::int64_t priority = 0;           ///< the highest of its pods
    std::int64_t created = 0;            ///< the least `start_time` of its pods, in seconds
    std::int64_t pods = 0;               ///< pods that wait
    double gpus = 0;                     ///< GPUs that they request
    bool displaced = false;              ///< it waits only because its nodes are removed
    std::vector<JobOutcome> outcomes{};  ///< one per state of `WhatIf::states`
};
template <class F>
constexpr void visit_fields(std::type_identity<WaitingJob>, F&& field) {
    field("name", &WaitingJob::name);
    field("priority", &WaitingJob::priority);
    field("created", &WaitingJob::created);
    field("pods", &WaitingJob::pods);
    field("gpus", &WaitingJob::gpus);
    field("displaced", &WaitingJob::displaced);
    field("outcomes", &WaitingJob::outcomes);
}

/// One state of the cluster, before jobs start.
struct WhatIfCase {
    WhatIfState state = WhatIfState::now;           ///< the state of the cluster
    std::int64_t jobs = 0;                          ///< jobs that wait
    std::int64_t starts = 0;                        ///< jobs that start in the order of the queue
    std::int64_t alone = 0;                         ///< jobs that would start if no other job were waiting
    std::int64_t pods = 0;                          ///< pods that find a place in the order of the queue
    std::int64_t idle_gpus = 0;                     ///< idle whole GPUs of schedulable nodes
    std::int64_t empty_nodes = 0;                   ///< schedulable nodes with GPUs that hold daemons at most
    std::int64_t moves = 0;                         ///< moves of the consolidation
    fragmentation::Report fragmentation{};          ///< idle GPUs that requests of each shape cannot use
    std::vector<PlanSpec::Placement> placements{};  ///< places of the pods, in the order in which they start
};

/// The answer: states in the order of `WhatIfState`, and jobs in the order of the queue.
struct WhatIf {
    std::vector<WhatIfCase> states;  ///< `now`; `changed`, if there is a change; `consolidated`, if requested
    std::vector<WaitingJob> jobs;    ///< highest priority first, then the oldest, then by name
    std::vector<std::string> lost;   ///< tasks of removed nodes that nothing starts again
    StopReason stop_reason = StopReason::completed;  ///< why the search ended
};

/// Tells which pending jobs would start without evictions if nodes were added, removed or uncordoned; without a
/// change, what starts now.
///
/// In the order of the queue, `allocate` places each job in what those before it leave; a job that does not fit
/// lets the next one pass. A gang (`min_members` > 1) starts if it reaches `min_members` with the members that
/// already run. Any other job starts if all its pods fit; if `min_members` is 1, those that fit take their places
/// also if others do not. The same is asked for each job alone, and again after a consolidation.
///
/// @throws InvalidInput for options out of range, unknown nodes, a node in `uncordon` that is not cordoned or
///     that is removed, and nodes to add that the cluster rejects
/// @note same input gives the same result for any number of threads, unless a time limit or a cancellation
///     ends the search
/// Complexity: O(states x jobs) calls of `allocate`, and one of `consolidate`.
[[nodiscard]] WhatIf what_if(const Cluster& cluster, const WhatIfOptions& options = {},
                             const Context& context = {});

/// A pending job that may start instead of another one.
struct EarlierJob {
    std::string name;
    std::int64_t pods = 0;  ///< of the job, that fit on the other's nodes
};

/// Returns the jobs that come earlier in the queue than the last of `pods`, and that may take their places: some of
/// their pods fit on these nodes, if no other job starts, and a gang finds room for all that it needs.
/// @param cluster in which `pods` are pending
/// @param pods places of pending tasks, which are free
/// Complexity: O(earlier pods x nodes), and a call of `allocate` per gang.
[[nodiscard]] std::vector<EarlierJob>
earlier_in_queue(const Cluster& cluster, std::span<const Placement> pods, const Context& context = {});

}  // namespace gpusched::consolidation
