// SPDX-License-Identifier: Apache-2.0
// A small host for tests of the controller: two GPUs, two protected tenants, a client that follows, one that does not
// move, and instances of others; and an environment that carries out what is asked, or fails.
#pragma once

#include "support/catch.hpp"

#include <gpusched/control/audit.hpp>
#include <gpusched/core/rng.hpp>

namespace gpusched::test {

inline control::ControllerOptions control_options() {
    using namespace control;
    ControllerOptions o;
    o.host.roots = {{.numa = 0}, {.bridge = 1, .numa = 1}};
    o.host.gpus = {{.root = 0, .numa = 0}, {.root = 1, .numa = 1}};
    o.host.numa_nodes = 2;
    o.host.core_numa = {0, 0, 0, 0, 1, 1, 1, 1};
    const auto& device = mig_device("A100-40GB");
    const auto at = [&](const char* key, int start) {
        return MigInstance{static_cast<std::uint8_t>(device.find(key)), static_cast<std::uint8_t>(start)};
    };
    o.host.tenants = {{.name = "T1", .is_protected = true, .start = {.gpu = 0, .instance = at("2g", 0)}},
                      {.name = "T2", .gpu = 0, .numa = 0},
                      {.name = "T3", .gpu = 0, .client_of = 0},
                      {.name = "T4", .is_protected = true, .start = {.gpu = 1, .instance = at("1g", 0)}}};
    return o;
}

/// Quiet signals of one window.
inline control::Observation control_window(const control::ControllerOptions& o, std::int64_t window) {
    control::Observation seen;
    seen.window = window;
    seen.time_s = static_cast<double>(window + 1) * o.window_s;
    seen.tenants.resize(o.host.tenants.size());
    seen.feedback.resize(o.host.tenants.size());
    seen.roots.resize(o.host.roots.size());
    seen.gpus.resize(o.host.gpus.size());
    seen.numa_io_bytes_per_s.assign(static_cast<std::size_t>(o.host.numa_nodes), 0);
    seen.irq_per_s.assign(o.host.core_numa.size(), 100);
    for (auto& root : seen.roots) root.bytes_per_s = 1e9;
    for (std::size_t i = 0; i < seen.tenants.size(); ++i) {
        auto& x = seen.tenants[i];
        x.pcie_bytes_per_s = 0;
        x.io_bytes_per_s = 0;
        x.sm_active = x.dram_active = 0;
        x.memory_used_mib = 4000;
        if (!o.host.tenants[i].is_protected) continue;
        x.count = 100;
        x.p99_ms = 10;
        x.offered_per_s = x.completed_per_s = 50;
        seen.gpus[static_cast<std::size_t>(o.host.tenants[i].start.gpu)].layout.add(
            o.host.tenants[i].start.instance);
    }
    return seen;
}

/// Carries out changes after some windows, in the order of `transition`.
struct ControlHost {
    control::ControllerOptions options;
    std::vector<control::MigLayout> layouts{};
    struct Change {
        control::Action action{};
        std::int64_t due = 0;
        control::Feedback outcome{};
    };
    std::vector<Change> changes{};

    explicit ControlHost(control::ControllerOptions o) : options(std::move(o)) {
        for (const auto& gpu : control_window(options, 0).gpus) layouts.push_back(gpu.layout);
    }
    /// Puts layouts and answers of this window into `seen`.
    void fill(control::Observation& seen) {
        for (std::size_t k = 0; k < changes.size();) {
            auto& c = changes[k];
            if (c.due > seen.window) {
                ++k;
                continue;
            }
            if (c.outcome.status == control::BackendStatus::ok) {
                layouts[static_cast<std::size_t>(c.action.before.gpu)].remove(c.action.before.instance);
                layouts[static_cast<std::size_t>(c.action.after.gpu)].add(c.action.after.instance);
            }
            seen.feedback[static_cast<std::size_t>(c.action.tenant)] = c.outcome;
            changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(k));
        }
        for (std::size_t g = 0; g < layouts.size(); ++g) seen.gpus[g].layout = layouts[g];
    }
    void start(const control::Action& action, std::int64_t window, std::int64_t delay,
               control::Feedback outcome = {.finished = true}) {
        changes.push_back({action, window + delay, outcome});
    }
};

/// The controller on a ControlHost, window by window, with its actions, its events and its audit log.
struct ControlRun {
    control::ControllerOptions o;
    ControlHost host;
    control::ControllerState state;
    control::StepResult out{};
    std::vector<control::Action> actions{};
    std::vector<double> action_times{};
    std::vector<control::AuditEvent> events{};
    std::string log{};
    std::int64_t window = 0;
    std::int64_t reconfigure_windows = 5;
    control::Feedback outcome{.finished = true};  ///< of each reconfiguration

    explicit ControlRun(control::ControllerOptions options,
                        const control::ControllerCarryover& carryover = {})
        : o(std::move(options)), host(o), state(initial_state(o, carryover)) {
        append_start_record(log, o, carryover);
    }
    control::TenantState& t1() { return state.tenants[0]; }
    /// `n` windows; `change` edits the signals of each.
    void go(int n, const std::function<void(control::Observation&)>& change = {}) {
        for (int k = 0; k < n; ++k, ++window) {
            auto seen = control_window(o, window);
            host.fill(seen);
            if (change) change(seen);
            step(state, seen, o, out);
            append_audit_line(log, seen, state, out, options_hash(o));
            for (const auto& a : out.actions) {
                actions.push_back(a);
                action_times.push_back(seen.time_s);
                if (a.kind == control::ActionKind::reconfigure)
                    host.start(a, window, reconfigure_windows, outcome);
            }
            events.insert(events.end(), out.events.begin(), out.events.end());
        }
    }
    /// The options of a restart: T1 starts at its present place.
    [[nodiscard]] control::ControllerOptions found() const {
        auto options = o;
        options.host.tenants[0].start = state.tenants[0].place.current;
        return options;
    }
};

inline std::string_view profile_of(const control::ControllerOptions& o, const control::Configuration& c) {
    const auto& device = o.host.gpus[static_cast<std::size_t>(c.gpu)].device;
    return control::mig_device(device).profiles[c.instance.profile].key;
}

}  // namespace gpusched::test
