// SPDX-License-Identifier: Apache-2.0
// Measures the cost of the controller itself: nanoseconds of a step with 32 protected tenants and of its
// audit line, and the share of a core that the runner needs with one window per second.
//
// It counts CPU time, which excludes other programs on the machine. It reports medians of repetitions, with
// quartiles.
//
// There are two loads: quiet, and every tenant above its target all the time, so that the controller looks
// for levers in every window. Signals come from memory; bench_control_live_cost reads them from a host.
#include "../support/command_line.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/control/control.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

using namespace gpusched;

namespace {

constexpr int tenants = 32;

control::ControllerOptions host(control::Variant variant) {
    control::ControllerOptions o;
    o.flags = control::variant_flags(variant);
    o.window_s = 1;
    o.host.roots.resize(8);
    o.host.core_numa.assign(64, 0);
    for (int g = 0; g < 16; ++g) o.host.gpus.push_back({.root = g / 2});
    for (int t = 0; t < tenants; ++t)
        o.host.tenants.push_back(
            {.name = "T" + std::to_string(t),
             .is_protected = true,
             .start = {.gpu = t / 2, .instance = {3, static_cast<std::uint8_t>(t % 2 * 4)}}});
    return o;
}

/// Signals from memory.
struct Source {
    const control::ControllerOptions& o;
    bool loaded = false;
    std::int64_t window = 0;

    void read(control::Observation& seen) {
        ++window;
        for (std::size_t g = 0; g < seen.gpus.size(); ++g) {
            seen.gpus[g].layout = {};
            for (const auto& t : o.host.tenants)
                if (static_cast<std::size_t>(t.start.gpu) == g) seen.gpus[g].layout.add(t.start.instance);
        }
        for (auto& root : seen.roots) root.bytes_per_s = loaded ? 12e9 : 1e9;
        seen.numa_io_bytes_per_s[0] = 0;
        for (auto& rate : seen.irq_per_s) rate = 100;
        for (std::size_t t = 0; t < seen.tenants.size(); ++t) {
            auto& x = seen.tenants[t];
            x.count = 100;
            x.offered_per_s = x.completed_per_s = 100;
            x.p99_ms = (loaded ? 20 : 8) + static_cast<double>((window + static_cast<std::int64_t>(t)) % 5);
            // Every change fails at once, so that no tenant moves.
            seen.feedback[t] = {.finished = true, .status = control::BackendStatus::in_use};
        }
    }
};

struct NoActuator {
    control::ActionReport act(const control::Decision&) { return {}; }
};
struct CountingSink {
    std::size_t bytes = 0;
    void write(std::string_view line) { bytes += line.size(); }
};
struct Seconds {
    double now = 0;
    double monotonic_s() { return now += 1; }
    double wall_s() { return now; }
};

void report(const char* what, control::Variant variant, bool loaded, const std::vector<double>& ns) {
    using bench::rounded;
    const auto at = [&](double q) { return bench::quantile(ns, q); };
    bench::print({{"what", what},
                  {"variant", enum_name(variant)},
                  {"load", loaded ? "all above" : "quiet"},
                  {"tenants", tenants},
                  {"median_ns", rounded(at(0.5), 0)},
                  {"q1_ns", rounded(at(0.25), 0)},
                  {"q3_ns", rounded(at(0.75), 0)},
                  {"core_share_at_1s", rounded(at(0.5) * 1e-9, 8)}});
    std::fprintf(
        stderr, "%-30s %-5s %-9s %9.0f ns (%.0f to %.0f): %.4f %% of a core at one window a second\n", what,
        enum_name(variant), loaded ? "all above" : "quiet", at(0.5), at(0.25), at(0.75), at(0.5) * 1e-7);
}

void measure(control::Variant variant, bool loaded, int repetitions, int windows) {
    const auto o = host(variant);
    std::vector<double> steps, runner;
    for (int k = 0; k < repetitions; ++k) {
        Source source{o, loaded};
        auto state = control::initial_state(o);
        control::StepResult result;
        control::Observation seen;
        seen.tenants.resize(tenants);
        seen.feedback.resize(tenants);
        seen.roots.resize(8);
        seen.gpus.resize(16);
        seen.numa_io_bytes_per_s.resize(1);
        seen.irq_per_s.resize(64);
        double spent = 0;
        for (int w = 0; w < windows; ++w) {
            source.read(seen);
            seen.window = w;
            seen.time_s = w + 1;
            const double start = bench::processor_s();
            control::step(state, seen, o, result);
            spent += 1e9 * (bench::processor_s() - start);
        }
        steps.push_back(spent / windows);
        NoActuator actuator;
        CountingSink sink;
        Seconds clock;
        control::Runner all(o, source, actuator, clock, sink);
        const double before = bench::processor_s();
        for (int w = 0; w < windows; ++w) all.window();
        runner.push_back(1e9 * (bench::processor_s() - before) / windows);
        if (sink.bytes == 0) std::fprintf(stderr, "no audit lines\n");
    }
    report("step, CPU", variant, loaded, steps);
    report("runner with audit line, CPU", variant, loaded, runner);
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Cost of a step of the controller.", argc, argv);
    line.read();
    const bool smoke = line.smoke();
    for (const auto variant : {control::Variant::full, control::Variant::ours})
        for (const bool loaded : {false, true}) measure(variant, loaded, smoke ? 2 : 9, smoke ? 50 : 1000);
}
