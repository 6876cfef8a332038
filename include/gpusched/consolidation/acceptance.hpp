// Acceptance: whether vacating a node is worth the moves it takes.
#pragma once

#include <gpusched/consolidation/concepts.hpp>

#include <cstdint>
#include <limits>

namespace gpusched::consolidation {

/// Every node that can be vacated is.
struct AcceptAll {
    bool operator()(const ChainSet&) const noexcept { return true; }
};

/// At most `moves` moves for one node beyond those of its own tasks; no limit by default.
struct AtMostOthers {
    std::int64_t moves = std::numeric_limits<std::int64_t>::max();
    bool operator()(const ChainSet& chains) const noexcept { return chains.moves - chains.tasks <= moves; }
};

}  // namespace gpusched::consolidation
