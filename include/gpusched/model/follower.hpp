// SPDX-License-Identifier: Apache-2.0
// Follower: data derived from a cluster and kept in step with it.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/events.hpp>

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpusched {

/// Data derived from a cluster. One call is required, `rebuild(const Cluster&)`: start again from this
/// cluster. The other calls are optional hooks. They name the part that changed, and the follower reads its
/// current state from the cluster:
///
///     usage_changed(const Cluster&, NodeId)   tasks on the node, their data, or reservations changed
///     node_changed(const Cluster&, NodeId)    the node was added, updated, removed; default: `usage_changed`
///     task_changed(const Cluster&, TaskId)    the task was added, updated, removed, or placed elsewhere
///     job_changed(const Cluster&, JobId)      the job was added, updated or removed
///     budgets_changed(const Cluster&)         a budget was added, updated or removed, or lost a task
///     time_changed(const Cluster&)            `Inventory::now` changed
///
/// The slot may be new or free (`Cluster::contains`). Calls about nodes come first, the others in the order
/// of the changes. During all calls the cluster is in its current state, so it may contain tasks for which a
/// call is still to come. A call may come twice, so it must be idempotent. A follower without hooks is
/// rebuilt after every change. A follower with some hooks must not depend on the changes that the other hooks
/// report.
template <class F>
concept Follower = requires(F& follower, const Cluster& cluster) { follower.rebuild(cluster); };

namespace detail {

template <class F>
concept HasUsageHook =
    requires(F& follower, const Cluster& cluster, NodeId node) { follower.usage_changed(cluster, node); };
template <class F>
concept HasNodeHook =
    requires(F& follower, const Cluster& cluster, NodeId node) { follower.node_changed(cluster, node); };
template <class F>
concept HasTaskHook =
    requires(F& follower, const Cluster& cluster, TaskId task) { follower.task_changed(cluster, task); };
template <class F>
concept HasJobHook =
    requires(F& follower, const Cluster& cluster, JobId job) { follower.job_changed(cluster, job); };
template <class F>
concept HasBudgetHook = requires(F& follower, const Cluster& cluster) { follower.budgets_changed(cluster); };
template <class F>
concept HasTimeHook = requires(F& follower, const Cluster& cluster) { follower.time_changed(cluster); };
template <class F>
concept HasHooks = HasUsageHook<F> || HasNodeHook<F> || HasTaskHook<F> || HasJobHook<F> || HasBudgetHook<F> ||
                   HasTimeHook<F>;

template <class F>
constexpr bool check_follower() {
    static_assert(Follower<F>, "a follower has the member `void rebuild(const Cluster&)`");
    static_assert(
        !requires { &F::usage_changed; } || HasUsageHook<F>,
        "the follower has a hook `usage_changed` that would never be called: expected `void "
        "usage_changed(const Cluster&, NodeId)`");
    static_assert(
        !requires { &F::node_changed; } || HasNodeHook<F>,
        "the follower has a hook `node_changed` that would never be called: expected `void "
        "node_changed(const Cluster&, NodeId)`");
    static_assert(
        !requires { &F::task_changed; } || HasTaskHook<F>,
        "the follower has a hook `task_changed` that would never be called: expected `void "
        "task_changed(const Cluster&, TaskId)`");
    static_assert(
        !requires { &F::job_changed; } || HasJobHook<F>,
        "the follower has a hook `job_changed` that would never be called: expected `void "
        "job_changed(const Cluster&, JobId)`");
    static_assert(
        !requires { &F::budgets_changed; } || HasBudgetHook<F>,
        "the follower has a hook `budgets_changed` that would never be called: expected `void "
        "budgets_changed(const Cluster&)`");
    static_assert(
        !requires { &F::time_changed; } || HasTimeHook<F>,
        "the follower has a hook `time_changed` that would never be called: expected `void "
        "time_changed(const Cluster&)`");
    return true;
}

}  // namespace detail

/// The cluster that a follower follows, and the last version that it has seen. A copy of a cluster is another
/// cluster, and so is a cluster after an assignment or a rebuild.
class FollowerPosition {
  public:
    /// Brings the follower in step with the cluster by the events since the last call. It calls `rebuild`
    /// instead if the follower has followed another cluster, if the events are no longer kept, or if the
    /// cluster keeps none (`Cluster::keep_events`).
    ///
    /// Also follows changes that can be undone, and their undoing. That costs as much as all changes that can
    /// be undone.
    template <class F>
    void catch_up(F& follower, const Cluster& cluster) {
        static_assert(detail::check_follower<F>());
        const auto* const log = cluster.events();
        if (log != nullptr && log->id() == log_ && version_ >= log->oldest()) {
            const bool nothing_new = version_ == log->version() && cluster.checkpoint() == 0 && open_.empty();
            if (nothing_new) return;
            if constexpr (detail::HasHooks<F>) {
                // Nodes first: the calls about tasks read the current nodes.
                for (auto next = version_ + 1; next <= log->version(); ++next)
                    if ((*log)[next].kind <= EventKind::node_removed) notify(follower, cluster, (*log)[next]);
                for (const auto& change : open_) notify(follower, cluster, change.task, change.node);
                for (auto next = version_ + 1; next <= log->version(); ++next)
                    if ((*log)[next].kind > EventKind::node_removed) notify(follower, cluster, (*log)[next]);
                // If a call above throws, all of them are repeated.
                read_open_changes(cluster);
                for (const auto& change : open_) notify(follower, cluster, change.task, change.node);
                version_ = log->version();
                return;
            }
        }
        log_ = 0;  // if `rebuild` throws, it is repeated
        follower.rebuild(cluster);
        if (log == nullptr) return;
        read_open_changes(cluster);
        version_ = log->version();
        log_ = log->id();
    }

  private:
    struct OpenChange {
        TaskId task;
        NodeId node;
    };

    void read_open_changes(const Cluster& cluster) {
        open_.clear();
        cluster.for_each_open_change([&](TaskId task, NodeId node) { open_.push_back({task, node}); });
    }

    template <class F>
    static void notify_usage(F& follower, const Cluster& cluster, NodeId node) {
        if constexpr (detail::HasUsageHook<F>)
            if (node != none<NodeId>) follower.usage_changed(cluster, node);
    }
    template <class F>
    static void notify(F& follower, const Cluster& cluster, TaskId task, NodeId node) {
        if constexpr (detail::HasTaskHook<F>) follower.task_changed(cluster, task);
        notify_usage(follower, cluster, node);
    }
    template <class F>
    static void notify(F& follower, const Cluster& cluster, const Event& event) {
        switch (event.kind) {
        case EventKind::node_added:
        case EventKind::node_updated:
        case EventKind::node_removed:
            if constexpr (detail::HasNodeHook<F>)
                follower.node_changed(cluster, event.node.id);
            else
                notify_usage(follower, cluster, event.node.id);
            break;
        case EventKind::task_added:
        case EventKind::task_updated:
        case EventKind::task_removed:
        case EventKind::unbound:
            notify(follower, cluster, event.task.id, event.node.id);
            break;
        case EventKind::bound:
            if (event.from != event.node.id) notify_usage(follower, cluster, event.from);
            notify(follower, cluster, event.task.id, event.node.id);
            break;
        case EventKind::reserved:
        case EventKind::unreserved:
            notify_usage(follower, cluster, event.node.id);
            break;
        case EventKind::job_added:
        case EventKind::job_updated:
        case EventKind::job_removed:
            if constexpr (detail::HasJobHook<F>) follower.job_changed(cluster, event.job.id);
            break;
        case EventKind::budgets:
            if constexpr (detail::HasBudgetHook<F>) follower.budgets_changed(cluster);
            break;
        case EventKind::time:
            if constexpr (detail::HasTimeHook<F>) follower.time_changed(cluster);
            break;
        }
    }

    std::uint64_t log_ = 0, version_ = 0;  // id of the log and its last version that was seen; 0 = none
    std::vector<OpenChange> open_;         // changes that could be undone at the last call
};

/// A follower that is brought in step at every access.
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
    /// The follower as of the last call of `of`.
    [[nodiscard]] const F& last() const noexcept { return follower_; }

  private:
    F follower_{};
    FollowerPosition position_;
};

}  // namespace gpusched
