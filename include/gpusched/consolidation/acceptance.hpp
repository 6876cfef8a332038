// SPDX-License-Identifier: Apache-2.0
// Acceptance: whether vacating a node is worth the moves it takes.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/value.hpp>

#include <cstdint>
#include <limits>

namespace gpusched::consolidation {

/// Every node that can be vacated is.
struct AcceptAll {
    bool operator()(const ChainSet&) const noexcept { return true; }
};

/// A node is vacated if it takes at most `others` moves beyond those of its own tasks, and is worth at least `price`
/// thousandths for each unit of what its moves cost, and what opening nodes for them costs. No limits by default.
struct PriceLimit {
    std::int64_t others = std::numeric_limits<std::int64_t>::max();
    std::int64_t price = 0;

    bool operator()(const ChainSet& chains) const noexcept {
        return chains.moves - chains.tasks <= others &&
               is_worth(chains.gain, chains.cost, price, chains.opening);
    }
    /// `max_others`, where it is set, and `price` replace the fields.
    [[nodiscard]] PriceLimit with_limits(const Options& options) const noexcept {
        return {.others = options.max_others.value_or(others), .price = options.price};
    }
};

}  // namespace gpusched::consolidation
