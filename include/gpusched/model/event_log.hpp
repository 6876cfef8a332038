// SPDX-License-Identifier: Apache-2.0
// EventLog: the last committed changes of a cluster.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/event.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched {

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
