// SPDX-License-Identifier: Apache-2.0
// Runs the host simulator over hosts and seeds, and computes queueing formulas.
#include "sim/host_simulation.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace gpusched::sim {

GPUSCHED_EXPORT HostRun run_host(const HostScenario& scenario, const control::ControllerFlags& flags,
                                 std::uint64_t seed, std::string* audit) {
    validate(scenario);
    detail::HostTotals totals;
    totals.run.services = scenario.layout.hosts * static_cast<std::int32_t>(detail::services_of(scenario));
    for (std::int32_t h = 0; h < scenario.layout.hosts; ++h)
        detail::HostSimulation(scenario, flags, seed, h, totals, h == 0 ? audit : nullptr).run();
    return detail::result_of(scenario, std::move(totals));
}

GPUSCHED_EXPORT control::ControllerOptions host_options(const HostScenario& scenario,
                                                        const control::ControllerFlags& flags) {
    validate(scenario);
    detail::HostTotals totals;
    return detail::HostSimulation(scenario, flags, 0, 0, totals, nullptr).options();
}

GPUSCHED_EXPORT HostResult simulate_host(const HostScenario& scenario, control::Variant variant,
                                         std::span<const std::uint64_t> seeds) {
    constexpr auto unmanaged = control::Variant::static_configuration;
    const auto flags = control::variant_flags(variant);
    HostResult out;
    for (const auto seed : seeds) {
        const auto base = run_host(scenario, control::variant_flags(unmanaged), seed);
        const auto run = variant == unmanaged ? base : run_host(scenario, flags, seed);
        const auto ratio = [](double a, double b) { return b > 0 ? a / b : 1.0; };
        const double t1 = ratio(static_cast<double>(run.completed), static_cast<double>(base.completed));
        out.throughput.push_back(t1);
        out.system_throughput.push_back(
            (t1 + ratio(run.t2_bytes, base.t2_bytes) + ratio(run.t3_work_s, base.t3_work_s)) / 3);
        out.runs.push_back(run);
    }
    return out;
}

GPUSCHED_EXPORT double kingman_wait(double rho, double ca2, double cs2, double mean_service) {
    Problems problems;
    check_range(problems, "rho", rho, 0, 1);
    check_range(problems, "ca2", ca2, 0, 1e6);
    check_range(problems, "cs2", cs2, 0, 1e6);
    check_range(problems, "mean_service", mean_service, 0, double(largest_quantity));
    problems.throw_if_any();
    if (rho == 1) return std::numeric_limits<double>::infinity();
    return rho / (1 - rho) * (ca2 + cs2) / 2 * mean_service;
}

GPUSCHED_EXPORT bool is_stable(std::span<const double> demand, std::span<const double> throttle,
                               double capacity, double arrival_rate, double service_rate) {
    Problems problems;
    if (demand.size() != throttle.size())
        problems.add(bad_value("throttle", number_text(throttle.size()), "as many as demands"));
    for (const double d : demand) check_at_least(problems, "demand", d, 0);
    for (const double t : throttle) check_at_least(problems, "throttle", t, 0);
    for (const double x : {capacity, arrival_rate, service_rate})
        check_at_least(problems, "capacity, arrival_rate, service_rate", x, 0);
    problems.throw_if_any();
    double sum = 0;
    for (std::size_t i = 0; i < demand.size(); ++i) sum += std::min(demand[i], throttle[i]);
    return sum < capacity && arrival_rate < service_rate;
}

}  // namespace gpusched::sim
