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

/// What a committed change did.
enum class EventKind : std::uint8_t {
    node_added,
    node_updated,  ///< also a GPU that failed or was repaired, a cordon, a label
    node_removed,
    task_added,
    task_updated,
    task_removed,
    bound,       ///< a task runs on a node, or on other GPUs of it
    unbound,     ///< a task is pending
    reserved,    ///< room is held for a second copy of a task
    unreserved,  ///< such room was given back
    job_added,
    job_updated,
    job_removed,
    budgets,  ///< a disruption budget came, changed or left, or a task that one named left
    time,     ///< `Inventory::now`
};

/// One committed change: what happened, and to whom. It holds no data of the node or task: read these from the cluster, which may
/// have changed again since.
struct Event {
    std::uint64_t version = 0;  ///< 1 for the first event of a log, and one more for each
    EventKind kind = EventKind::time;
    NodeId from = none<NodeId>;  ///< of `bound`: where the task ran before; none = it was pending
    NodeHandle
        node{};  ///< the node; of a task the one that it runs on, or left; none = it was and is pending
    TaskHandle task{};
    JobHandle job{};  ///< of `job_*` only. Jobs that tasks alone name come and go with these, without events
    bool operator==(const Event&) const = default;
};

/// The last events of one cluster in a ring of fixed size: whoever has seen version `oldest()` or later can catch up from it,
/// all others start again from the cluster. It belongs to one cluster and is not copied with it; `id()` tells it from every
/// other log of the process.
class EventLog {
  public:
    /// @param window how many events are kept, 1 .. 2^30; rounded up to a power of two
    explicit EventLog(std::size_t window);

    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// How many events there were: the version of the last one.
    [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
    /// All events after that version are still there.
    [[nodiscard]] std::uint64_t oldest() const noexcept {
        return version_ - std::min<std::uint64_t>(version_, ring_.size());
    }
    [[nodiscard]] std::size_t window() const noexcept { return ring_.size(); }
    /// The event of that version, oldest() + 1 .. version().
    [[nodiscard]] const Event& operator[](std::uint64_t version) const noexcept {
        GPUSCHED_ASSERT(version > oldest() && version <= version_);
        return ring_[version & (ring_.size() - 1)];
    }

    /// Gives the event its version and keeps it instead of the oldest.
    void publish(Event event) noexcept {
        event.version = ++version_;
        ring_[version_ & (ring_.size() - 1)] = event;
    }

  private:
    std::vector<Event> ring_;
    std::uint64_t id_, version_ = 0;
};

}  // namespace gpusched
