// SPDX-License-Identifier: Apache-2.0
// Small traces for the spot replay, and what it did to them in words.
#pragma once

#include "support/catch.hpp"

#include <gpusched/sim/sim.hpp>

namespace spot_cases {

using namespace gpusched;
using sim::replay_spot;
using sim::SpotJob;
using sim::SpotReplayOptions;
using sim::SpotTrace;
using sim::Victims;

inline NodeSpec machine(std::string name, std::int64_t gpus) {
    NodeSpec n{.name = std::move(name), .gpu_count = gpus, .cpu_milli = 64'000, .memory_mib = 1 << 20};
    return n;
}

inline SpotJob job(std::string name, PriorityClass priority_class, std::int64_t gpus, std::int64_t arrival,
                   std::int64_t work, std::int64_t checkpoint = 0, std::int64_t pods = 1) {
    SpotJob j;
    j.pod.name = std::move(name);
    j.pod.priority_class = priority_class;
    j.pod.gpu_count = gpus;
    j.pod.cpu_milli = 1000;
    j.pod.checkpoint_interval = checkpoint;
    j.pods = pods;
    j.arrival_s = arrival;
    j.work_s = work;
    return j;
}
inline constexpr auto hp = PriorityClass::hp, lp = PriorityClass::lp;

// Evicted tasks leave after five seconds.
inline SpotReplayOptions plain(Victims victims = Victims::spot) {
    SpotReplayOptions o;
    o.rankers = {"first_fit"};
    o.victims = victims;
    o.start_delay_s = 0;
    o.eviction.shutdown_ms.fill(5000);
    return o;
}

// "0 lp>a" for every placement, "500 lp!" for every eviction, in order.
inline std::string log_of(const SpotTrace& trace, SpotReplayOptions options) {
    std::string log;
    options.observer = [&](std::int64_t now, const Cluster& before, const Plan& plan) {
        const auto add = [&](const std::string& what) {
            log += (log.empty() ? "" : ", ") + std::to_string(now) + " " + what;
        };
        for (const auto task : plan.evictions) add(before.name(task) + "!");
        for (const auto& m : plan.moves) add(before.name(m.task) + "=" + before.name(m.to));
        for (const auto& p : plan.placements) add(before.name(p.task) + ">" + before.name(p.node));
    };
    (void)replay_spot(trace, options);
    return log;
}

}  // namespace spot_cases
