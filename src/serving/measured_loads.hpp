// SPDX-License-Identifier: Apache-2.0
// What is told of measured latencies whose loads say little of what a deployment serves.
#pragma once

#include "serving/calibrator.hpp"
#include "serving/replica_capacity.hpp"

#include <gpusched/serving/plan_serving.hpp>

#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// A sentence for each deployment and kind of requests whose measured latencies end at half of what it serves or less, since the highest
/// load of its rows counts as the most that it serves; and for those whose lowest load misses a target that an idle replica keeps, since
/// below it nothing is known. They are joined by semicolons; empty where there is none.
inline std::string told_of_loads(const ServingRequest& request, const PlannerOptions& options) {
    std::string told;
    const Calibrator calibrator(request, options.estimate);
    auto one = options.estimate;
    one.max_batch = 1;
    const auto alone = [&](const Calibrator::Row& row) {  // what an idle replica takes
        const auto& served = request.models[row.model];
        return estimate_throughput(served.model, request.gpus, row.deployment,
                                   served.workloads[row.workload].shape, one);
    };
    for (const auto& row : calibrator.rows()) {
        const auto& served = request.models[row.model];
        const auto& kind = served.workloads[row.workload];
        const auto name = gpusched::quoted(row.deployment.name);
        const auto of_kind =
            " requests/s of " + gpusched::quoted(kind.name) + " of " + gpusched::quoted(served.model.name);
        const auto tell = [&](const std::string& sentence) { told += (told.empty() ? "" : "; ") + sentence; };
        if ((row.ttft_s || row.tpot_s) && row.measured <= 0.5 * row.estimate.requests_per_s) {
            tell(name + " counts as serving at most " + number_text(row.measured) + of_kind +
                 ", the highest load of its rows, where " + number_text(row.estimate.requests_per_s) +
                 " are estimated: give what it serves when saturated, and latencies at higher loads");
            continue;
        }
        std::vector<MeasuredThroughput> rows;
        for (const auto& m : request.measured)
            if (m.model == served.model.name && m.deployment == row.deployment.name &&
                m.workload == kind.name)
                rows.push_back(m);
        for (const auto& target : list_of(merged(kind.targets, options.targets))) {
            const auto known = rows_with(rows, target.first_token);
            if (known.empty()) continue;
            const double idle = target.first_token ? alone(row).first_token_s : alone(row).step_s;
            const auto least = known.front().requests_per_s, most = known.back().requests_per_s;
            if (*latency_of(known.front(), target.first_token) > target.seconds && idle <= target.seconds)
                tell(name + " counts as missing " + target.name + " at any load, because it misses it at " +
                     number_text(least) + of_kind +
                     ", the lowest load of its rows: give latencies at lower loads");
            else if (*latency_of(known.back(), target.first_token) <= target.seconds &&
                     most <= 0.5 * row.measured)
                tell(name + " counts as keeping " + target.name + " up to " + number_text(most) + of_kind +
                     ", the highest load of its rows with this latency, where it serves " +
                     number_text(row.measured) + ": give latencies at higher loads");
        }
    }
    return told;
}

/// Adds to the message of a plan what is told of the loads that were measured.
inline void tell_of_loads(ServingPlan& plan, const ServingRequest& request, const PlannerOptions& options) {
    if (const auto told = told_of_loads(request, options); !told.empty())
        plan.message += (plan.message.empty() ? "" : "; ") + told;
}

}  // namespace gpusched::serving::detail
