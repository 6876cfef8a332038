// SPDX-License-Identifier: Apache-2.0
// Events: the committed changes of a cluster, and the log that keeps the last of them.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/ids.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched {

/// The kind of a committed change.
enum class EventKind : std::uint8_t {
    node_added,
    node_updated,  ///< includes failed and repaired GPUs, cordons, labels
    node_removed,
    task_added,
    task_updated,
    task_removed,
    bound,       ///< a task was placed on a node, on other GPUs of it, or again, now first of its tasks
    unbound,     ///< a task became pending
    reserved,    ///< resources were reserved for a second copy of a task
    unreserved,  ///< such a reservation was released
    job_added,
    job_updated,
    job_removed,
    budgets,  ///< a disruption budget was added, updated or removed, or a task that one names was removed
    time,     ///< `Inventory::now` changed
};

/// One committed change. It contains no data of the node or task: read these from the cluster, which may have
/// changed again since.
struct Event {
    std::uint64_t version = 0;  ///< counts the events of a log, from 1
    EventKind kind = EventKind::time;
    NodeId from = none<NodeId>;  ///< of `bound`: the previous node of the task; none = it was pending
    NodeHandle node{};  ///< the node, or the node on which the task runs or ran; none = it was and is pending
    TaskHandle task{};
    JobHandle job{};  ///< of `job_*` only; jobs that only tasks name appear and disappear without events
    bool operator==(const Event&) const = default;
};

/// The last events of one cluster, in a ring of fixed size. A follower that has seen version `oldest()` or
/// later can catch up; any other must start again from the cluster. A log belongs to one cluster and is not
/// copied with it. Its `id()` is unique in the process.
class EventLog {
  public:
    /// @param window number of events to keep, 1 to 2^30; rounded up to a power of two
    explicit EventLog(std::size_t window);

    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// Number of events so far: the version of the last one.
    [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
    /// All events after this version are still in the log.
    [[nodiscard]] std::uint64_t oldest() const noexcept {
        return version_ - std::min<std::uint64_t>(version_, ring_.size());
    }
    [[nodiscard]] std::size_t window() const noexcept { return ring_.size(); }
    /// The event of a version from oldest() + 1 to version().
    [[nodiscard]] const Event& operator[](std::uint64_t version) const noexcept {
        GPUSCHED_ASSERT(version > oldest() && version <= version_);
        return ring_[version & (ring_.size() - 1)];
    }

    /// Gives the event its version and stores it in place of the oldest.
    void publish(Event event) noexcept {
        event.version = ++version_;
        ring_[version_ & (ring_.size() - 1)] = event;
    }

  private:
    std::vector<Event> ring_;
    std::uint64_t id_, version_ = 0;
};

}  // namespace gpusched
