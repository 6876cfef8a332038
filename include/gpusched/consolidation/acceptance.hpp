// Acceptance: whether vacating a node is worth the moves it takes.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/options.hpp>

#include <cstdint>
#include <limits>

namespace GPUSCHED_NAMESPACE::consolidation {

/// Every node that can be vacated is.
struct AcceptAll {
    bool operator()(const ChainSet&) const noexcept { return true; }
};

/// A node is vacated if it takes at most `others` moves beyond those of its own tasks, and, where it takes more than one,
/// at most `times_mean` times as many moves for what it is worth as the nodes before it took on average. The mean counts
/// once it is one of 32 nodes that are worth something. No limits by default.
struct PriceLimit {
    static constexpr std::int64_t always_others = 1, enough_nodes = 32;
    std::int64_t others = std::numeric_limits<std::int64_t>::max();
    double times_mean = std::numeric_limits<double>::infinity();
    bool waived_by_clear = false;  ///< no `times_mean` where `Options::clear` names the nodes

    bool operator()(const ChainSet& chains) const noexcept {
        const auto further = chains.moves - chains.tasks;
        const auto& mean = chains.before;
        if (further > others) return false;
        if (further <= always_others || mean.nodes < enough_nodes) return true;
        const auto price = static_cast<double>(chains.moves) * static_cast<double>(mean.gain);
        const auto usual = static_cast<double>(mean.moves) * static_cast<double>(chains.gain);
        return !(price > times_mean * usual);  // true where infinity meets nothing gained
    }
    /// `max_others` and `max_price_ratio`, where they are set, replace the fields.
    [[nodiscard]] PriceLimit with_limits(const Options& options) const noexcept {
        auto limit = *this;
        if (options.clear && waived_by_clear) limit.times_mean = PriceLimit{}.times_mean;
        limit.others = options.max_others.value_or(limit.others);
        limit.times_mean = options.max_price_ratio.value_or(limit.times_mean);
        return limit;
    }
};

}  // namespace GPUSCHED_NAMESPACE::consolidation
