// SPDX-License-Identifier: Apache-2.0
// Plans that the checker accepts, and what two plans have in common.
#pragma once

#include "support/catch.hpp"

#include <gpusched/model/plan.hpp>
#include <gpusched/verify/plan.hpp>

namespace testing_support {

/// The checker accepts the plan. Returns its report.
inline gpusched::verify::Report require_valid(const gpusched::ClusterSpec& spec,
                                              const gpusched::PlanSpec& plan) {
    auto report = gpusched::verify::plan(spec, plan);
    INFO((report.ok ? std::string() : report.violations.front()));
    REQUIRE(report.ok);
    return report;
}
inline gpusched::verify::Report require_valid(const gpusched::ClusterSpec& spec,
                                              const gpusched::Cluster& cluster, const gpusched::Plan& plan) {
    return require_valid(spec, gpusched::to_spec(plan, cluster));
}

/// The moves of a plan by task and destination.
using Pairs = std::set<std::pair<std::string, std::string>>;
inline Pairs pairs(const gpusched::PlanSpec& plan) {
    Pairs out;
    for (const auto& move : plan.moves) out.emplace(move.task, move.to);
    return out;
}
inline std::size_t common(const gpusched::PlanSpec& a, const gpusched::PlanSpec& b) {
    const auto first = pairs(a), second = pairs(b);
    return static_cast<std::size_t>(
        std::ranges::count_if(first, [&](const auto& move) { return second.contains(move); }));
}

}  // namespace testing_support
