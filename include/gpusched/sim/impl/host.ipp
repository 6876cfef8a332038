#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/sim/detail/host_simulation.hpp>

#include <string>
#include <utility>

namespace gpusched::sim {

GPUSCHED_INLINE HostScenario host_scenario(std::string_view name) {
    HostScenario s;
    if (name == "table3") return s;
    if (name == "noisy_counters")
        s.counter_noise = 0.5;
    else if (name == "no_counters")
        s.counter_noise = -1;
    else if (name == "quota_at_restart")
        s.quota_live = false;
    else if (name == "neighbours")
        s.neighbours = true;
    else if (name == "faults")
        s.failure_rate = 0.3;
    else
        throw InvalidInput(
            bad_value("scenario", gpusched::quoted(name),
                      "table3, noisy_counters, no_counters, quota_at_restart, neighbours or faults"));
    return s;
}

GPUSCHED_INLINE void validate(const HostScenario& s) {
    Problems problems;
    const auto& device = control::mig_device(s.device);
    const int profile = device.find(s.start_profile);
    if (profile < 0)
        problems.add(
            bad_value("start_profile", gpusched::quoted(s.start_profile), "a profile of " + s.device));
    else
        check_range(problems, "start_slice", s.start_slice, 0, device.memory_slices - 1);
    const auto above = [&](std::string_view field, double value, double top) {
        if (!(value > 0 && value <= top))
            problems.add(bad_value(field, number_text(value), "above 0, at most " + number_text(top)));
    };
    above("duration_s", s.duration_s, 1e6);
    check_range(problems, "window_s", s.window_s, 0.1, 60);
    above("tau_ms", s.tau_ms, 1e6);
    above("root_bytes_per_s", s.root_bytes_per_s, 1e13);
    check_range(problems, "background_weight", s.background_weight.size(), 2u, 2u, "length");
    for (const double w : s.background_weight) check_range(problems, "background_weight", w, 0, 0.95);
    check_range(problems, "t2_weight", s.t2_weight, 0, 1000);
    check_range(problems, "t2_bytes_per_s", s.t2_bytes_per_s, 0, 1e13);
    for (const double mean : {s.t2_on_s, s.t2_off_s, s.t3_on_s, s.t3_off_s})
        above("t2_on_s, t2_off_s, t3_on_s, t3_off_s", mean, 1e7);
    above("t2_bytes_per_io_byte", s.t2_bytes_per_io_byte, 1000);
    check_range(problems, "beta", s.beta, 0, 100);
    check_range(problems, "rates_per_s", s.rates_per_s.size(), 2u, 2u, "length");
    for (const double rate : s.rates_per_s) above("rates_per_s", rate, 1e5);
    check_range(problems, "state_s", s.state_s.size(), 2u, 2u, "length");
    for (const double mean : s.state_s) above("state_s", mean, 1e7);
    double shares = 0;
    for (const auto& c : s.classes) {
        check_range(problems, "share", c.share, 0, 1);
        check_range(problems, "bytes", c.bytes, 0, 1e12);
        check_range(problems, "compute_ms", c.compute_ms, 0, 1e6);
        shares += c.share;
    }
    if (!(std::abs(shares - 1) < 1e-9))
        problems.add(bad_value("classes", number_text(shares), "shares that sum to 1"));
    check_range(problems, "noise_sigma", s.noise_sigma, 0, 3);
    check_range(problems, "serial_fraction", s.serial_fraction, 0, 1);
    check_range(problems, "servers", s.servers, 1, 64);
    for (const double ms : {s.host_base_ms, s.host_jitter_ms, s.io_jitter_ms})
        check_range(problems, "host_base_ms, host_jitter_ms, io_jitter_ms", ms, 0, 1e4);
    check_range(problems, "pause_s", s.pause_s, 0, 3600);
    check_range(problems, "pause_sigma_s", s.pause_sigma_s, 0, 600);
    check_range(problems, "counter_noise", s.counter_noise, -1, 5);
    check_range(problems, "failure_rate", s.failure_rate, 0, 1);
    problems.throw_if_any();
}

GPUSCHED_INLINE HostRun run_host(const HostScenario& scenario, const control::ControllerFlags& flags,
                                 std::uint64_t seed, std::string* audit) {
    validate(scenario);
    return detail::HostSimulation(scenario, flags, seed, audit).run();
}

GPUSCHED_INLINE control::ControllerOptions host_options(const HostScenario& scenario,
                                                        const control::ControllerFlags& flags) {
    validate(scenario);
    return detail::HostSimulation(scenario, flags, 0, nullptr).options();
}

GPUSCHED_INLINE HostResult simulate_host(const HostScenario& scenario, std::string_view variant,
                                         std::span<const std::uint64_t> seeds) {
    const auto flags = control::variant_flags(variant);
    HostResult out;
    for (const auto seed : seeds) {
        const auto base = run_host(scenario, control::variant_flags("static"), seed);
        const auto run = variant == "static" ? base : run_host(scenario, flags, seed);
        const auto ratio = [](double a, double b) { return b > 0 ? a / b : 1.0; };
        const double t1 = ratio(static_cast<double>(run.completed), static_cast<double>(base.completed));
        out.throughput.push_back(t1);
        out.system_throughput.push_back(
            (t1 + ratio(run.t2_bytes, base.t2_bytes) + ratio(run.t3_work_s, base.t3_work_s)) / 3);
        out.runs.push_back(run);
    }
    return out;
}

GPUSCHED_INLINE double kingman_wait(double rho, double ca2, double cs2, double mean_service) {
    Problems problems;
    check_range(problems, "rho", rho, 0, 1);
    check_range(problems, "ca2", ca2, 0, 1e6);
    check_range(problems, "cs2", cs2, 0, 1e6);
    check_range(problems, "mean_service", mean_service, 0, 1e12);
    problems.throw_if_any();
    if (rho == 1) return std::numeric_limits<double>::infinity();
    return rho / (1 - rho) * (ca2 + cs2) / 2 * mean_service;
}

GPUSCHED_INLINE bool is_stable(std::span<const double> demand, std::span<const double> throttle,
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
