// SPDX-License-Identifier: Apache-2.0
// Follower: what is derived from a cluster and kept in step with it.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/events.hpp>

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpusched {

/// Something derived from a cluster. One call is required, `rebuild(const Cluster&)`: start again from this cluster, whatever
/// came before. The other calls are optional, and say which part is another one; the follower reads the cluster as it is now:
///
///     usage_changed(const Cluster&, NodeId)   what runs on the node or is reserved there, and the data of those tasks
///     node_changed(const Cluster&, NodeId)    the node came, changed or left; without this call, `usage_changed`
///     task_changed(const Cluster&, TaskId)    the task came, changed, left, or runs somewhere else
///     job_changed(const Cluster&, JobId)      the job was added, updated or removed
///     budgets_changed(const Cluster&)         a disruption budget was added, updated or removed, or a task that one named left
///     time_changed(const Cluster&)            `Inventory::now`
///
/// A slot may be new, or one that nobody has any more (`Cluster::contains`). Nodes are told first, all else in the order in which
/// it happened; the cluster is as it is now all the while, and may hold tasks of which the follower hears later. Calls come more
/// often than something changed, so they must do the same whether they come once or twice. A follower without any of them is
/// rebuilt whenever something has changed; one that has some does not depend on what the others would say.
template <class F>
concept Follower = requires(F& follower, const Cluster& cluster) { follower.rebuild(cluster); };

namespace detail {

template <class F>
concept HearsOfUsage =
    requires(F& follower, const Cluster& cluster, NodeId node) { follower.usage_changed(cluster, node); };
template <class F>
concept HearsOfNodes =
    requires(F& follower, const Cluster& cluster, NodeId node) { follower.node_changed(cluster, node); };
template <class F>
concept HearsOfTasks =
    requires(F& follower, const Cluster& cluster, TaskId task) { follower.task_changed(cluster, task); };
template <class F>
concept HearsOfJobs =
    requires(F& follower, const Cluster& cluster, JobId job) { follower.job_changed(cluster, job); };
template <class F>
concept HearsOfBudgets = requires(F& follower, const Cluster& cluster) { follower.budgets_changed(cluster); };
template <class F>
concept HearsOfTime = requires(F& follower, const Cluster& cluster) { follower.time_changed(cluster); };
template <class F>
concept HearsOfParts = HearsOfUsage<F> || HearsOfNodes<F> || HearsOfTasks<F> || HearsOfJobs<F> ||
                       HearsOfBudgets<F> || HearsOfTime<F>;

template <class F>
constexpr bool check_follower() {
    static_assert(Follower<F>, "a follower has the member `void rebuild(const Cluster&)`");
    static_assert(
        !requires { &F::usage_changed; } || HearsOfUsage<F>,
        "the follower has a hook `usage_changed` that would never be called: expected `void "
        "usage_changed(const Cluster&, NodeId)`");
    static_assert(
        !requires { &F::node_changed; } || HearsOfNodes<F>,
        "the follower has a hook `node_changed` that would never be called: expected `void "
        "node_changed(const Cluster&, NodeId)`");
    static_assert(
        !requires { &F::task_changed; } || HearsOfTasks<F>,
        "the follower has a hook `task_changed` that would never be called: expected `void "
        "task_changed(const Cluster&, TaskId)`");
    static_assert(
        !requires { &F::job_changed; } || HearsOfJobs<F>,
        "the follower has a hook `job_changed` that would never be called: expected `void "
        "job_changed(const Cluster&, JobId)`");
    static_assert(
        !requires { &F::budgets_changed; } || HearsOfBudgets<F>,
        "the follower has a hook `budgets_changed` that would never be called: expected `void "
        "budgets_changed(const Cluster&)`");
    static_assert(
        !requires { &F::time_changed; } || HearsOfTime<F>,
        "the follower has a hook `time_changed` that would never be called: expected `void "
        "time_changed(const Cluster&)`");
    static_assert(
        !requires { &F::changed; },
        "the follower has a member `changed`, which nobody calls: the hooks are named "
        "`usage_changed`, `node_changed` and `task_changed`");
    return true;
}

}  // namespace detail

/// Up to where a follower has followed which cluster. A copy of a cluster, one that was assigned to or built again is another
/// cluster, wherever in memory it lies.
class FollowerPosition {
  public:
    /// Brings the follower in step with the cluster: through the events since it last was, or by `rebuild` where it has
    /// followed another cluster, the events are no longer there, or the cluster keeps none (`Cluster::keep_events`).
    ///
    /// What can still be undone is followed too, and so is its undoing, at the cost of all that can be undone.
    template <class F>
    void catch_up(F& follower, const Cluster& cluster) {
        static_assert(detail::check_follower<F>());
        const auto* const log = cluster.events();
        if (log != nullptr && log->id() == log_ && version_ >= log->oldest()) {
            const bool nothing_new =
                version_ == log->version() && cluster.checkpoint() == 0 && private_.empty();
            if (nothing_new) return;
            if constexpr (detail::HearsOfParts<F>) {
                // Nodes first: what is told of tasks is read from nodes as they are now.
                for (auto next = version_ + 1; next <= log->version(); ++next)
                    if ((*log)[next].kind <= EventKind::node_removed) tell(follower, cluster, (*log)[next]);
                for (const auto& part : private_) tell(follower, cluster, part.task, part.node);
                for (auto next = version_ + 1; next <= log->version(); ++next)
                    if ((*log)[next].kind > EventKind::node_removed) tell(follower, cluster, (*log)[next]);
                // Where a call above throws, all of them come again.
                read_private(cluster);
                for (const auto& part : private_) tell(follower, cluster, part.task, part.node);
                version_ = log->version();
                return;
            }
        }
        log_ = 0;  // where `rebuild` throws, it comes again
        follower.rebuild(cluster);
        if (log == nullptr) return;
        read_private(cluster);
        version_ = log->version();
        log_ = log->id();
    }

  private:
    struct Part {
        TaskId task;
        NodeId node;
    };

    void read_private(const Cluster& cluster) {
        // What was read before may be undone by now; it was told again above, and need not be remembered.
        private_.clear();
        cluster.for_each_open_change([&](TaskId task, NodeId node) { private_.push_back({task, node}); });
    }

    template <class F>
    static void tell_usage(F& follower, const Cluster& cluster, NodeId node) {
        if constexpr (detail::HearsOfUsage<F>)
            if (node != none<NodeId>) follower.usage_changed(cluster, node);
    }
    template <class F>
    static void tell(F& follower, const Cluster& cluster, TaskId task, NodeId node) {
        if constexpr (detail::HearsOfTasks<F>) follower.task_changed(cluster, task);
        tell_usage(follower, cluster, node);
    }
    template <class F>
    static void tell(F& follower, const Cluster& cluster, const Event& event) {
        switch (event.kind) {
        case EventKind::node_added:
        case EventKind::node_updated:
        case EventKind::node_removed:
            if constexpr (detail::HearsOfNodes<F>)
                follower.node_changed(cluster, event.node.id);
            else
                tell_usage(follower, cluster, event.node.id);
            break;
        case EventKind::task_added:
        case EventKind::task_updated:
        case EventKind::task_removed:
        case EventKind::unbound:
            tell(follower, cluster, event.task.id, event.node.id);
            break;
        case EventKind::bound:
            if (event.from != event.node.id) tell_usage(follower, cluster, event.from);
            tell(follower, cluster, event.task.id, event.node.id);
            break;
        case EventKind::reserved:
        case EventKind::unreserved:
            tell_usage(follower, cluster, event.node.id);
            break;
        case EventKind::job_added:
        case EventKind::job_updated:
        case EventKind::job_removed:
            if constexpr (detail::HearsOfJobs<F>) follower.job_changed(cluster, event.job.id);
            break;
        case EventKind::budgets:
            if constexpr (detail::HearsOfBudgets<F>) follower.budgets_changed(cluster);
            break;
        case EventKind::time:
            if constexpr (detail::HearsOfTime<F>) follower.time_changed(cluster);
            break;
        }
    }

    std::uint64_t log_ = 0, version_ = 0;  // of which log, and what of it was seen; 0 = none
    std::vector<Part> private_;            // read while it could be undone
};

/// A follower that is brought in step whenever it is asked for.
///
///     Followed<fragmentation::Incremental<fragmentation::Fgd>> fragmented(metric);
///     cluster.keep_events();
///     ...
///     const double gpus = fragmented.of(cluster).result();
template <class F>
class Followed {
    static_assert(detail::check_follower<F>());

  public:
    Followed()
        requires std::default_initializable<F>
    = default;
    explicit Followed(F follower) : follower_(std::move(follower)) {}

    /// The follower in step with the cluster; see FollowerPosition::catch_up.
    [[nodiscard]] F& of(const Cluster& cluster) {
        position_.catch_up(follower_, cluster);
        return follower_;
    }
    /// As it was when it was last asked for.
    [[nodiscard]] const F& last() const noexcept { return follower_; }

  private:
    F follower_{};
    FollowerPosition position_;
};

}  // namespace gpusched
