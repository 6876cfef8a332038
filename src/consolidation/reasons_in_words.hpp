// in_words: why tasks stay and nodes receive nothing, as explanations say it.
#pragma once

#include <gpusched/consolidation/explain.hpp>

#include <string>

namespace GPUSCHED_NAMESPACE::consolidation::detail {

[[nodiscard]] inline std::string in_words(FixedBy by) {
    switch (by) {
    case FixedBy::never_moves:
        return "nobody would start it anew: its how is none";
    case FixedBy::exempt_node:
        return "exempt node";
    case FixedBy::no_disruption:
        return "max_disrupted is 0";
    case FixedBy::budget:
        return "disruption budget";
    case FixedBy::core_member:
        return "core member";
    default:
        return std::string(enum_name(by));
    }
}

[[nodiscard]] inline std::string in_words(ClosedBy by) {
    switch (by) {
    case ClosedBy::emptied:
        return "vacated by the plan";
    case ClosedBy::empty:
        return "empty before the plan";
    case ClosedBy::to_clear:
        return "to be cleared itself";
    default:
        return std::string(enum_name(by));
    }
}

}  // namespace GPUSCHED_NAMESPACE::consolidation::detail
