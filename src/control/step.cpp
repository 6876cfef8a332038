// SPDX-License-Identifier: Apache-2.0
// The transition table of the controller.
#include "control/stepper.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace gpusched::control {

namespace detail {

void Stepper::remark(std::size_t i, const char* reason, Row row) {
    const auto& t = s_.tenants[i];
    out_.events.push_back({static_cast<std::int32_t>(i), row, t.phase, t.phase, cause_of(t), reason, 0});
}

void Stepper::to(std::size_t i, Phase phase, Row row, const char* reason, double loss) {
    auto& t = s_.tenants[i];
    out_.events.push_back({static_cast<std::int32_t>(i), row, t.phase, phase, cause_of(t), reason, loss});
    t.phase = phase;
    s_.deeds += phase == Phase::guarded || phase == Phase::reconfig || phase == Phase::validate ||
                phase == Phase::cooldown || phase == Phase::hold;
    t.counter = t.change.settle = 0;
    t.change.settling = t.told.suppressed = t.told.unsteady = false;
}

bool Stepper::layout_as_known(const TenantState& t) const {
    const auto gpu = static_cast<std::size_t>(t.place.current.gpu);
    return seen_.gpus[gpu].readable && !seen_.gpus[gpu].lost && seen_.gpus[gpu].layout == s_.layouts[gpu];
}

void Stepper::expire_lease(std::size_t i) {
    auto& t = s_.tenants[i];
    // If windows are on time, the lease ends in the last window before its end time.
    if (t.lease.offender < 0 || s_.clock_s + lease_early_windows * o_.window_s < t.lease.until_s ||
        out_.wished.size() >= 2)
        return;
    Action a;
    a.kind = ActionKind::release_io;
    a.lever = Lever::throttle;
    a.tenant = static_cast<std::int32_t>(i);
    a.target = t.lease.offender;
    push(a);
    t.lease.offender = -1;
    if (t.phase != Phase::guarded) remark(i, "lease ended");
}

void Stepper::take_feedback(std::size_t i) {
    auto& t = s_.tenants[i];
    const auto& f = seen_.feedback[i];
    if (!f.finished) return;
    if (!t.change.in_flight) {
        if (t.change.abandoned && f.status == BackendStatus::ok) t.place.current = t.place.pending;
        t.change.abandoned = false;
        return;
    }
    t.change.in_flight = false;
    if (f.status == BackendStatus::ok) {
        // Flags kept between their thresholds belong to the old place.
        if (t.place.pending.gpu != t.place.current.gpu)
            t.flags.now.pcie.on = t.flags.now.io.on = t.flags.now.irq.on = false;
        if (t.change.disjoint) t.past.disjoint_pause_s = t.change.outage_s;
        t.place.current = t.place.pending;
        t.seen.tail_ahead = {};
        t.seen.fresh = {.stale_after = o_.stale_after};
        t.seen.calm_windows = t.seen.good_windows = 0;
        if (t.phase != Phase::reconfig) return;
        if (t.change.lever == Lever::rollback) return to(i, Phase::cooldown, Row::worse, "restored");
        to(i, Phase::validate, Row::changed, "changed");
        // The p99 covers `quantile_windows`, so it needs as many more windows to drop the change. Requests
        // delayed by a pause are served along with new ones; at a load of a third this takes half as long as
        // the pause. The sum is at most a validation.
        const double held = std::floor(std::round(t.change.held_s / o_.window_s) / 2);
        t.change.settle = static_cast<std::int32_t>(std::min<double>(o_.validation, quantile_windows + held));
        t.change.settling = true;
        t.flags.reference = t.flags.now;
        t.flags.reference.set(t.trial.before_flags);
        t.trial.restart();
        return;
    }
    t.frozen |= freezes(f.status) || !f.restored;
    if (t.phase != Phase::reconfig) return;
    if (t.frozen) return to(i, Phase::hold, Row::failed, enum_name(f.status));
    to(i, Phase::cooldown, Row::failed, enum_name(f.status));
}

/// Handles a guard that could not be set: it is not in place. Other levers may be tried at once, the same one
/// after the guards' dwell.
void Stepper::take_guard(std::size_t i) {
    if (seen_.guards.empty() || seen_.guards[i] == BackendStatus::ok) return;
    auto& t = s_.tenants[i];
    const char* const why = enum_name(seen_.guards[i]);
    if (t.change.lever == Lever::throttle) {
        if (t.lease.offender < 0) return;
        t.lease.offender = -1;
        --t.episode.throttles;
    } else if (!same_instance(t.place.current, t.place.before)) {
        // Cores and a quota are optional: the change of instance stays without them.
        t.place.current.cpus = t.place.before.cpus;
        t.place.current.quota_percent = t.place.before.quota_percent;
        return remark(i, why, Row::failed);
    } else {
        t.place.current = t.place.before;
    }
    if (t.change.lever == Lever::rollback)
        return remark(i, "a quota or cores cannot be put back: kept, alert", Row::worse);
    if (t.phase != Phase::guarded && t.phase != Phase::validate) return remark(i, why, Row::failed);
    if (t.change.lever == Lever::relax) return to(i, Phase::cooldown, Row::failed, why);
    to(i, t.seen.tail.on && in_time_ ? Phase::suspect : Phase::observe, Row::failed, why);
    if (t.phase != Phase::suspect) return;
    t.counter = o_.persistence;
    t.flags.recent = t.flags.last;
}

void Stepper::hold_if_needed(std::size_t i) {
    auto& t = s_.tenants[i];
    if (t.phase == Phase::hold || t.phase == Phase::disabled) return;
    const auto& gpu = seen_.gpus[static_cast<std::size_t>(t.place.current.gpu)];
    const char* reason = nullptr;
    if (gpu.lost) {
        reason = "GPU lost";
        t.frozen = true;
    } else if (t.frozen) {
        reason = "waits for the operator";  // disabled and enabled since
    } else if (t.phase == Phase::reconfig) {
        if (t.counter >= o_.reconfigure_timeout) {
            reason = "no answer to a reconfiguration";
            t.frozen = true;
        }
    } else if (t.seen.fresh.stale()) {
        reason = "stale telemetry";
    } else if (!t.change.in_flight && gpu.readable && !gpu.layout.contains(t.place.current.instance)) {
        reason = "own instance missing";
        t.frozen = true;
    }
    if (reason == nullptr) return;
    t.trial.resumes = t.phase == Phase::validate;
    t.seen.fresh.fresh = 0;
    to(i, Phase::hold, Row::hold, reason);
}

void Stepper::resume(std::size_t i) {
    auto& t = s_.tenants[i];
    if (t.frozen && seen_.operator_resume &&
        !seen_.gpus[static_cast<std::size_t>(t.place.current.gpu)].lost) {
        // The operator confirms the configuration that is read back.
        t.change.abandoned = t.change.in_flight;
        t.frozen = t.change.in_flight = false;
        for (std::size_t g = 0; g < s_.layouts.size(); ++g)
            if (seen_.gpus[g].readable) s_.layouts[g] = seen_.gpus[g].layout;
        t.seen.fresh.fresh = 0;
    }
    const auto& gpu = seen_.gpus[static_cast<std::size_t>(t.place.current.gpu)];
    if (t.frozen || t.change.in_flight || t.seen.fresh.fresh < windows_to_trust || !layout_as_known(t) ||
        !gpu.layout.contains(t.place.current.instance))
        return;
    if (!t.trial.resumes) return to(i, Phase::cooldown, Row::resumed, "telemetry is back");
    to(i, Phase::validate, Row::resumed, "telemetry is back; validation starts again");
    t.trial.restart();
}

void Stepper::disable(std::size_t i) {
    auto& t = s_.tenants[i];
    if (t.phase != Phase::disabled) to(i, Phase::disabled, Row::switched_off, "disabled");
    if (o_.release_on_disable) t.lease.until_s = s_.clock_s;
    expire_lease(i);
}

void Stepper::validate_window(std::size_t i) {
    auto& t = s_.tenants[i];
    if (t.change.settling) return;
    ++t.trial.waited;
    const bool comparable = t.seen.fresh.missing == 0 && (t.flags.reference.bits() == t.trial.before_flags ||
                                                          t.change.lever == Lever::relax);
    const auto& x = seen_.tenants[i];
    // The ratio of completed to offered requests is comparable under any pressure, but noisy over few
    // windows.
    if (t.seen.fresh.missing == 0 && is_plausible(x.completed_per_s, most_per_s)) {
        const bool known = is_plausible(x.offered_per_s, most_per_s) && x.offered_per_s > 0;
        t.trial.completed += x.completed_per_s;
        t.trial.offered += known ? x.offered_per_s : t.trial.before_rate;
    }
    if (comparable) {
        t.trial.tail.update(tail_ms(i));
        ++t.counter;
    }
    if (t.counter >= o_.validation || t.trial.waited >= most_validations * o_.validation) verdict(i);
}

void Stepper::verdict(std::size_t i) {
    auto& t = s_.tenants[i];
    const bool conclusive = t.counter >= o_.validation;
    const bool throughput =
        t.trial.offered <= 0 || t.trial.completed >= (1 - o_.loss_budget) * t.trial.offered;
    const double limit = t.change.lever == Lever::relax ? o_.relax_limit * tenant(i).tau_ms
                                                        : o_.worse_factor * t.trial.before_ms;
    const bool better = !conclusive || t.trial.tail.value <= limit;
    if (better && throughput) {
        if (conclusive) t.place.good = t.place.current;
        return to(i, Phase::cooldown, Row::kept, conclusive ? "kept" : "kept, inconclusive");
    }
    const char* reason = throughput ? "worse" : "throughput below budget";
    if (!o_.flags.rollback) return to(i, Phase::cooldown, Row::worse, "worse; rollback is off: kept, alert");
    // A guard undoes only itself. A structural change returns to the last validated configuration.
    const bool guard = same_instance(t.place.current, t.place.before);
    Choice back{.lever = Lever::rollback,
                .row = Row::worse,
                .open = true,
                .after = guard ? t.place.before : t.place.good};
    if (t.place.current == back.after)
        return to(i, Phase::cooldown, Row::worse, "worse; nothing to go back to");
    const bool structural = !same_instance(t.place.current, back.after);
    if (structural && (!touchable(i) || !can_create(device(back.after.gpu),
                                                    rest_of(i, static_cast<std::size_t>(back.after.gpu)),
                                                    back.after.instance)))
        return to(i, Phase::cooldown, Row::worse, "worse; the way back is taken: kept, alert");
    if (!room() || in_flight_on(s_, back.after.gpu, i) || in_flight_on(s_, t.place.current.gpu, i) ||
        (structural && any_frozen())) {
        t.trial.waited = most_validations * o_.validation;  // the next window decides again
        if (!t.told.suppressed) remark(i, "rollback waits its turn", Row::worse);
        t.told.suppressed = true;
        return;
    }
    auto& block = t.past.blocked[static_cast<std::size_t>(t.past.next_blocked)];
    block = {back.after, t.place.current, s_.now + blocked_dwells * o_.dwell};
    t.past.next_blocked = (t.past.next_blocked + 1) % static_cast<std::int32_t>(t.past.blocked.size());
    back.target = static_cast<std::int32_t>(i);
    remark(i, reason, Row::worse);
    act(i, back);
}

/// Handles a window above the threshold in SUSPECT.
void Stepper::suspect(std::size_t i, bool counted) {
    auto& t = s_.tenants[i];
    const auto most = most_persistences * o_.persistence;
    if (!counted) t.counter = std::min(t.counter + 1, most);
    if (t.counter < o_.persistence) return;
    // Waits until the flags are steady, because an average from before a change of flags is not comparable
    // with later windows. The wait is bounded: then all recent flags count, because a load may come and go.
    const bool steady = t.flags.same_windows >= o_.persistence;
    if (steady) t.counter = o_.persistence;
    if (!steady && t.counter < most) {
        if (!t.told.unsteady)
            remark(i, "suppressed: the flags of pressure have just changed", Row::suppressed);
        t.told.unsteady = true;
        return;
    }
    if (any_gate_open(i)) {
        const auto now = t.flags.now.bits();
        if (!steady) t.flags.now.set(t.flags.recent);
        diagnose(i);
        return t.flags.now.set(now);
    }
    if (!t.told.suppressed) remark(i, "suppressed: all gates are closed", Row::suppressed);
    t.told.suppressed = true;
}

void Stepper::advance(std::size_t i) {
    auto& t = s_.tenants[i];
    const bool present = in_time_ && t.seen.fresh.missing == 0;
    const bool high = present && t.seen.tail.on && t.seen.ema.known,
               low = present && t.seen.ema.known && t.seen.ema.value < t.seen.tail.low;
    bool counted = false;
    switch (t.phase) {
    case Phase::observe:
        if (high) {
            to(i, Phase::suspect, Row::tail_high, "tail above the threshold");
            t.counter = 1;
            t.flags.recent = t.flags.last;
            counted = true;
        } else {
            consider_relax(i);
            break;
        }
        [[fallthrough]];
    case Phase::suspect:
        if (low) return to(i, Phase::observe, Row::tail_low, "tail below");
        return high ? suspect(i, counted) : void();
    case Phase::guarded:
        if (t.lease.offender >= 0) return;
        if (low || !t.seen.tail.on) return to(i, Phase::observe, Row::lease_over, "lease ended, tail below");
        if (high) return diagnose(i);
        return;
    case Phase::reconfig:
        ++t.counter;
        return;
    case Phase::validate:
        return in_time_ ? validate_window(i) : void();
    case Phase::cooldown:
        if (++t.counter >= o_.cool_down) to(i, Phase::observe, Row::cooled_down, "cool-down over");
        return;
    case Phase::exhausted:
        if (low) return to(i, Phase::observe, Row::exhaustion_over, "tail below");
        ++t.counter;
        if (high && (t.flags.now.bits() != t.flags.exhausted || t.counter >= o_.guard_dwell)) diagnose(i);
        return;
    case Phase::hold:
        resume(i);
        return;
    case Phase::disabled:
        return;
    }
}

void Stepper::run() {
    out_.clear();
    in_time_ = tick();
    median_ = median_irq(seen_);
    if (in_time_) look_ahead();
    const auto n = s_.tenants.size();
    for (std::size_t i = 0; i < n; ++i)
        if (tenant(i).is_protected) read(i, in_time_);
    if (!seen_.enabled) {
        for (std::size_t i = 0; i < n; ++i)
            if (tenant(i).is_protected) {
                take_feedback(i);
                take_guard(i);
                disable(i);
            }
        return;
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (!tenant(i).is_protected) continue;
        if (s_.tenants[i].phase == Phase::disabled) {
            to(i, Phase::observe, Row::switched_on, "enabled");
            s_.tenants[i].seen.tail.on = false;
            s_.tenants[i].seen.ema.clear();
            end_episode(s_.tenants[i]);
        }
        take_feedback(i);
        take_guard(i);
        hold_if_needed(i);
        expire_lease(i);
    }
    // The worst tenant first: it gets the one action of this window.
    std::array<bool, 64> done{};
    for (std::size_t k = 0; k < n; ++k) {
        std::size_t worst = n;
        double most = -1;
        for (std::size_t i = 0; i < n; ++i) {
            if (!tenant(i).is_protected || done[i]) continue;
            const double ratio = s_.tenants[i].seen.ema.value / tenant(i).tau_ms;
            if (ratio > most) {
                most = ratio;
                worst = i;
            }
        }
        if (worst == n) break;
        done[worst] = true;
        advance(worst);
    }
    s_.admission_open = std::ranges::none_of(s_.tenants, &TenantState::admission_closed);
    // A tenant in HOLD is compared with the last known layout of its GPU, so that layout is kept.
    for (std::size_t g = 0; g < s_.layouts.size(); ++g) {
        bool keep = !seen_.gpus[g].readable || seen_.gpus[g].lost;
        for (std::size_t i = 0; i < n; ++i)
            keep |= tenant(i).is_protected && s_.tenants[i].phase == Phase::hold &&
                    static_cast<std::size_t>(s_.tenants[i].place.current.gpu) == g;
        if (!keep) s_.layouts[g] = seen_.gpus[g].layout;
    }
}

}  // namespace detail

GPUSCHED_EXPORT void step_with(ControllerState& state, const Observation& seen,
                               const ControllerOptions& options, ScoreRef score, StepResult& result) {
    const auto& h = options.host;
    if (seen.tenants.size() != h.tenants.size() ||
        (!seen.guards.empty() && seen.guards.size() != h.tenants.size()) ||
        (!seen.nic_bytes_per_s.empty() && seen.nic_bytes_per_s.size() != h.roots.size()) ||
        seen.feedback.size() != h.tenants.size() || seen.roots.size() != h.roots.size() ||
        seen.gpus.size() != h.gpus.size() || seen.irq_per_s.size() != h.core_numa.size() ||
        seen.numa_io_bytes_per_s.size() != static_cast<std::size_t>(h.numa_nodes) ||
        state.tenants.size() != h.tenants.size() || state.layouts.size() != h.gpus.size() ||
        state.roots.size() != h.roots.size() || state.numa_io.size() != seen.numa_io_bytes_per_s.size())
        throw InvalidInput(
            "observation: expected vectors as long as the host's tenants, roots, GPUs, cores and NUMA nodes");
    for (std::size_t g = 0; g < h.gpus.size(); ++g) {
        const auto& device = mig_device(h.gpus[g].device);
        for (const auto& i : seen.gpus[g].layout.instances())
            if (i.profile >= device.profiles.size() || i.start >= device.memory_slices)
                throw InvalidInput("observation: GPU " + number_text(g) + ": expected instances of " +
                                   std::string(device.name));
    }
    detail::Stepper(state, seen, options, score, result).run();
}

}  // namespace gpusched::control
