// SPDX-License-Identifier: Apache-2.0
#include "admission/pod_bounds.hpp"

#include <gpusched/config.hpp>

#include <algorithm>

namespace gpusched::admission::detail {

GPUSCHED_EXPORT std::int64_t PodBounds::of_region(std::span<const NodeId> region) {
    std::vector<std::uint8_t> inside;
    if (!region.empty()) {
        inside.assign(snapshot_.node_slots(), 0);
        for (const auto node : region) inside[index(node)] = 1;
    }
    // One shape that fits only once on every node: each pod needs a node of its own, and what it displaces there is its own.
    const auto key = request_key(snapshot_, pods_.front());
    bool alone = inv_.tasks.gpu_count[index(pods_.front())] > 0 && !snapshot_.is_fraction(pods_.front());
    std::int64_t least = 0;
    for (const auto pod : pods_) alone = alone && request_key(snapshot_, pod) == key;
    TaskId last = none<TaskId>;
    for (const auto pod : pods_) {
        if (last != none<TaskId> && request_key(snapshot_, pod) == request_key(snapshot_, last)) continue;
        last = pod;
        auto& ranking = bounds_.ranking(snapshot_, pod);
        std::vector<std::int64_t> found;
        if (inside.empty() && !alone) {
            if (ranking.size() > 0) found.push_back(ranking.least_without(none<NodeId>));
        } else {
            for (const auto& entry : ranking.unsorted())
                if (inside.empty() || inside[index(entry.node)]) {
                    found.push_back(entry.bound);
                    alone = alone && snapshot_.gpu_count(entry.node) < 2 * inv_.tasks.gpu_count[index(pod)];
                }
        }
        if (found.empty()) return never;
        least = std::max(least, *std::min_element(found.begin(), found.end()));
    }
    cheapest_.clear();
    at_.clear();
    if (alone) {
        if (!find(inside)) return never;
        least = cheapest_.back();
    }
    if (needed_milli_ > 0) {
        const auto loss = bounds_.loss_of_at_least(needed_milli_);
        if (loss >= never) return never;
        least += loss;
    }
    return least;
}

/// Of pods that are alike and need a node each. Where nothing must be lost for good, their displaced tasks of some size and more have the
/// cost of their places on top: these are other nodes than those of the pods, beside which nobody of that size fits.
bool PodBounds::find(std::span<const std::uint8_t> inside) {
    const auto pod = pods_.front();
    const auto wanted = inv_.tasks.gpu_count[index(pod)];
    std::vector<Ranking::Entry> nodes;
    int beside = 0;
    for (const auto& entry : bounds_.ranking(snapshot_, pod).unsorted())
        if (inside.empty() || inside[index(entry.node)]) {
            nodes.push_back(entry);
            beside = std::max(beside, snapshot_.gpu_count(entry.node) - wanted);
        }
    if (nodes.size() < pods_.size()) return false;
    const auto last = nodes.begin() + static_cast<std::ptrdiff_t>(pods_.size());
    // The cheapest come first; what they cost together.
    const auto total = [&] {
        std::nth_element(nodes.begin(), last - 1, nodes.end(),
                         [](const auto& a, const auto& b) { return a.bound < b.bound; });
        std::int64_t sum = 0;
        for (auto entry = nodes.begin(); entry != last; ++entry) sum = std::min(never, sum + entry->bound);
        return sum;
    };
    auto least = total();
    if (needed_milli_ <= 0) {
        // One size for all nodes: what leaves for tasks of different sizes may leave for all of them at once.
        const auto without = nodes;
        for (int size = beside + 1; size <= wanted; ++size) {
            if (!bounds_.has_size(size) || bounds_.place_of_size(size) == 0) continue;
            const auto known = nodes;
            std::copy(without.begin(), without.end(), nodes.begin());
            // Nodes whose own bounds are above the dearest of as many with places need no further look.
            std::int64_t most = 0;
            for (auto entry = nodes.begin(); entry != nodes.end(); ++entry)
                if (entry < last || entry->bound < most) {
                    entry->bound =
                        std::max(entry->bound, bounds_.bound_with_places(snapshot_, pod, entry->node, size));
                    if (entry < last) most = std::max(most, entry->bound);
                }
            if (const auto sum = total(); sum > least)
                least = sum;
            else
                std::copy(known.begin(), known.end(), nodes.begin());
        }
    }
    at_.assign(snapshot_.node_slots(), 0);
    for (const auto& entry : nodes) at_[index(entry.node)] = entry.bound;
    std::sort(nodes.begin(), last, [](const auto& a, const auto& b) { return a.bound < b.bound; });
    cheapest_.assign(1, 0);
    for (auto entry = nodes.begin(); entry != last; ++entry)
        cheapest_.push_back(std::min(never, cheapest_.back() + entry->bound));
    return true;
}

}  // namespace gpusched::admission::detail
