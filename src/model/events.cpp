// SPDX-License-Identifier: Apache-2.0
// EventLog, and how a cluster publishes its changes.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/events.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace gpusched {

GPUSCHED_EXPORT EventLog::EventLog(std::size_t window) : id_(Inventory::next_serial()) {
    require_range("window", window, 1, std::size_t{1} << 30);
    ring_.resize(std::bit_ceil(window));
}

GPUSCHED_EXPORT void Cluster::keep_events(std::size_t window) { events_.emplace(window); }

// Publishes the net effect of the changes that can be undone.
GPUSCHED_EXPORT void Cluster::publish_open_changes() {
    const auto key = [&](std::uint32_t i) {
        const auto& c = log_[i];
        return c.kind == Change::Kind::assign ? std::tuple(0, c.task, NodeId{0}, GpuMask{0})
                                              : std::tuple(1, c.task, c.node, c.gpus);
    };
    auto& order = published_;
    order.resize(log_.size());
    std::iota(order.begin(), order.end(), 0u);
    if (order.size() > 1)
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(key(a), a) < std::pair(key(b), b);
        });
    for (std::size_t i = 0; i < order.size();) {
        const auto& first = log_[order[i]];
        const auto same = key(order[i]);
        int held = 0;
        for (; i < order.size() && key(order[i]) == same; ++i)
            held += log_[order[i]].kind == Change::Kind::reserve ? 1 : -1;
        const auto task = handle(first.task);
        if (first.kind == Change::Kind::assign) {
            // The first change of the task has its original place, also in the order of the node's tasks.
            const auto node = node_of(first.task);
            if (node == first.node &&
                (node == none<NodeId> ||
                 (gpus_of(first.task) == first.gpus && place_[index(first.task)].previous == first.previous)))
                continue;
            if (node == none<NodeId>)
                events_->publish({.kind = EventKind::unbound, .node = handle(first.node), .task = task});
            else
                events_->publish(
                    {.kind = EventKind::bound, .from = first.node, .node = handle(node), .task = task});
        } else if (held != 0) {
            events_->publish({.kind = held > 0 ? EventKind::reserved : EventKind::unreserved,
                              .node = handle(first.node),
                              .task = task});
        }
    }
}

}  // namespace gpusched
