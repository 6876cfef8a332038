// SPDX-License-Identifier: Apache-2.0
// Plans that the checker accepts.
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

}  // namespace testing_support
