// SPDX-License-Identifier: Apache-2.0
// Reads an observation into the controller's state: time, tails, pressure and outages.
#include "control/stepper.hpp"

#include <algorithm>
#include <cmath>

namespace gpusched::control::detail {

/// Advances the controller's own clock. Returns false if this window cannot be trusted.
bool Stepper::tick() {
    const double dt = seen_.time_s - s_.last_time_s;
    const bool known = std::isfinite(seen_.time_s);
    const bool newer = !s_.started || (seen_.window > s_.last_window && dt > 0);
    const bool usable = known && newer;
    const bool late = s_.started && usable && dt > 10 * o_.window_s;
    // A window without a usable time counts as on time, until a later window gives the elapsed time.
    passed_s_ = o_.window_s;
    if (s_.started && known && dt > 0) {
        passed_s_ = std::min(dt, 1e9);
        if (seen_.time_s > s_.peak_s)
            passed_s_ = std::clamp(seen_.time_s - s_.peak_s - s_.since_peak_s, 0.0, passed_s_);
    }
    if (known && (!s_.started || seen_.time_s > s_.peak_s)) {
        s_.peak_s = seen_.time_s;
        s_.since_peak_s = 0;
    } else {
        s_.since_peak_s += passed_s_;
    }
    s_.clock_s += passed_s_;
    // A late window counts as the number of windows that it lasted; any other counts as one.
    s_.now += late ? std::max<std::int64_t>(1, static_cast<std::int64_t>(passed_s_ / o_.window_s)) : 1;
    if (known) s_.last_time_s = seen_.time_s;
    s_.last_window = seen_.window;
    s_.started = true;
    return usable && !late;
}

/// Returns the tail that the controller keeps below the threshold: the p99, or the p999 scaled to the p99's
/// threshold if it is nearer to its own threshold.
double Stepper::tail_ms(std::size_t i) const {
    const auto& x = seen_.tenants[i];
    const auto& t = tenant(i);
    if (!(t.tau_p999_ms > 0) || !is_plausible(x.p999_ms, most_latency_ms)) return x.p99_ms;
    return std::max(x.p99_ms, x.p999_ms * t.tau_ms / t.tau_p999_ms);
}

/// Returns other tenants' traffic on the tenant's root over its capacity. If replays count, returns the
/// replays over the number with equal pressure when that is higher. NaN if unknown.
double Stepper::pcie_pressure(std::size_t i, std::size_t gpu) const {
    const double traffic = others_on_root(o_.host, seen_, s_, i, gpu, false);
    const double replays = seen_.roots[static_cast<std::size_t>(o_.host.gpus[gpu].root)].replays / passed_s_;
    if (!(o_.replays_high_per_s > 0) || !is_plausible(replays, most_per_s)) return traffic;
    const double part = o_.pcie_high * replays / o_.replays_high_per_s;
    return is_usable(traffic) ? std::max(traffic, part) : part;
}

void Stepper::end_episode(TenantState& t) {
    t.episode.on = t.episode.throttled = false;
    t.episode.throttles = 0;
    t.seen.good_windows = 0;
    t.episode.entered = {};
}

/// Adds the time that a change blocks requests: all of a window without requests. If the caller waits for the
/// change, it is one long window instead, with requests from before and after.
void Stepper::note_outage(std::size_t i) {
    auto& t = s_.tenants[i];
    const auto& x = seen_.tenants[i];
    if (x.count < o_.least_samples) {
        t.change.held_s += passed_s_;
        t.change.outage_s += passed_s_;
        return;
    }
    const double beyond = passed_s_ - o_.window_s;
    if (beyond < 0.5 * o_.window_s) return;
    t.change.held_s += beyond;
    // The tenant may not have waited for all of it. Requests that waited show it in their latency; rejected
    // requests are missing.
    double lost = is_plausible(x.p99_ms, most_latency_ms) ? x.p99_ms / 1000 : 0;
    const double offered = is_plausible(x.offered_per_s, most_per_s) ? x.offered_per_s
                           : t.seen.rate.known                       ? t.seen.rate.value
                                                                     : 0;
    if (offered > 0 && is_plausible(x.completed_per_s, most_per_s))
        lost = std::max(lost, passed_s_ * (1 - x.completed_per_s / offered));
    t.change.outage_s += std::min(lost, beyond);
}

void Stepper::read(std::size_t i, bool in_time) {
    auto& t = s_.tenants[i];
    const auto& x = seen_.tenants[i];
    if (t.phase == Phase::reconfig) note_outage(i);
    if (!in_time) {
        if (t.phase == Phase::suspect) to(i, Phase::observe, Row::remark, "time went back or stood still");
        t.seen.good_windows = t.seen.calm_windows = 0;
        return;
    }
    read_pressure(i, t.flags.now, t.place.current);
    t.flags.same_windows =
        t.flags.now.bits() == t.flags.last ? std::min(t.flags.same_windows + 1, o_.persistence) : 1;
    t.flags.last = t.flags.now.bits();
    t.flags.recent = static_cast<std::uint8_t>(
        t.flags.same_windows >= o_.persistence ? t.flags.last : t.flags.recent | t.flags.last);
    if (t.phase == Phase::validate) read_pressure(i, t.flags.reference, t.place.before);
    if (t.phase == Phase::reconfig) {  // a pause has no requests; this is not a loss of telemetry
        t.change.settling = false;
        return;
    }
    const bool present = x.present && x.count >= o_.least_samples && is_plausible(x.p99_ms, most_latency_ms);
    t.seen.fresh.update(present);
    t.change.settling = t.change.settle > 0;
    t.change.settle -= t.change.settling;
    if (!present || t.change.settling) return;
    t.seen.ema.update(tail_ms(i));
    t.seen.tail_ahead.update(tail_ms(i), outlook_fall());
    if (is_plausible(x.completed_per_s, most_per_s)) t.seen.rate.update(x.completed_per_s);
    learn(i);
    const bool high = t.seen.tail.update(t.seen.ema.value);
    const bool low = t.seen.ema.value < t.seen.tail.low;
    t.seen.good_windows = t.seen.ema.value <= t.seen.tail.high ? t.seen.good_windows + 1 : 0;
    t.seen.calm_windows = t.seen.ema.value < o_.relax_below * tenant(i).tau_ms ? t.seen.calm_windows + 1 : 0;
    if (high && !t.episode.on) {
        end_episode(t);
        t.episode.on = true;
        enter(t, t.place.current);
    } else if (t.episode.on && (low || t.seen.good_windows >= o_.relax_after)) {
        end_episode(t);
    }
    if (low) t.admission_closed = false;
}

void Stepper::read_pressure(std::size_t i, Pressure& p, const Configuration& where) {
    const auto gpu = static_cast<std::size_t>(where.gpu);
    p.pcie.update(pcie_pressure(i, gpu));
    const double io = seen_.numa_io_bytes_per_s[static_cast<std::size_t>(o_.host.gpus[gpu].numa)];
    if (is_plausible(io, most_io_bytes_per_s)) p.io.update(io);
    if (median_ > 0) p.irq.update(busiest_irq(o_.host, seen_, o_.host.gpus[gpu].numa, where.cpus) / median_);
    p.compute.update(client_activity(i, true));
}

}  // namespace gpusched::control::detail
