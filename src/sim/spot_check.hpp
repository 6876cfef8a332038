// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of the spot replay.
#pragma once

#include "sim/spot_scheduler.hpp"

#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/slowdown.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/preemption/standby.hpp>
#include <gpusched/sim/spot_replay.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace gpusched::sim::detail {

inline void validate_spot(const SpotTrace& trace, const SpotReplayOptions& o,
                          const allocation::Registries& known) {
    Problems problems;
    if (o.rankers.empty() || o.rankers.size() > most_rankers)
        problems.add(bad_value("rankers", std::to_string(o.rankers.size()) + " names",
                               "1 to " + std::to_string(most_rankers)));
    for (const auto& name : o.rankers)
        if (known.rankers.expects_workload(name))
            problems.add(bad_value("rankers", gpusched::quoted(name), "rankers that need no workload"));
    if (known.gpu_pickers.expects_workload(o.gpu_picker))
        problems.add(
            bad_value("gpu_picker", gpusched::quoted(o.gpu_picker), "a picker that needs no workload"));
    allocation::check_slowdown(problems, "cpu_slowdown_milli", o.cpu_slowdown_milli);
    allocation::check_slowdown(problems, "offline_slowdown_milli", o.offline_slowdown_milli);
    const auto before = problems.count();
    check_fields(problems, o);
    if (problems.count() == before && o.measure_until_s)
        check_range(problems, "measure_until_s", *o.measure_until_s, o.measure_from_s, longest_replay_s);
    std::int64_t last = 0;
    for (const auto& job : trace.jobs) {
        const auto owner = "job " + gpusched::quoted(job.pod.name);
        check_range(problems, "pods", job.pods, 1, 10'000, owner);
        check_range(problems, "work_s", job.work_s, 1, longest_replay_s, owner);
        check_range(problems, "checkpoint_interval", job.pod.checkpoint_interval, 0, longest_replay_s, owner);
        if (check_range(problems, "arrival_s", job.arrival_s, 0, longest_replay_s, owner) &&
            job.arrival_s < last)
            problems.add(bad_value("arrival_s", number_text(job.arrival_s),
                                   "at least that of the job before, " + number_text(last), owner));
        last = std::max(last, job.arrival_s);
        if (job.pod.priority_class == PriorityClass::other)
            problems.add(bad_value("priority_class", "other", "HP or LP", owner));
        if (job.pod.node) problems.add(bad_value("node", gpusched::quoted(*job.pod.node), "none", owner));
    }
    problems.throw_if_any();
    preemption::validate(o.eviction);
}

}  // namespace gpusched::sim::detail
