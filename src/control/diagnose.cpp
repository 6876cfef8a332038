// SPDX-License-Identifier: Apache-2.0
// Choice of levers by the model of the tenant's tail, and the return of resources that a tenant no longer
// needs.
#include "control/stepper.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace gpusched::control::detail {

// Smallest worth of a change and of a guard, as a part of all requests.
constexpr double worth_a_change = 0.003, worth_a_guard = 0.002;

void Stepper::look_ahead() {
    const double fall = outlook_fall();
    for (std::size_t r = 0; r < s_.roots.size(); ++r) {
        double bytes = seen_.roots[r].bytes_per_s;
        if (!is_plausible(bytes, most_capacities * o_.host.roots[r].capacity_bytes_per_s)) continue;
        double own = 0;
        std::size_t unknown = s_.tenants.size();
        for (std::size_t i = 0; i < s_.tenants.size(); ++i) {
            const auto gpu = static_cast<std::size_t>(s_.tenants[i].place.current.gpu);
            if (!tenant(i).is_protected || static_cast<std::size_t>(o_.host.gpus[gpu].root) != r) continue;
            if (const double x = seen_.tenants[i].pcie_bytes_per_s; is_usable(x))
                own += x;
            else
                unknown = i;
        }
        // As in `others_on_root`: traffic that is not known to come from others does not count as theirs.
        if (unknown < s_.tenants.size()) bytes = known_others(o_.host, seen_, s_, unknown, r);
        if (!std::isnan(bytes - own))
            s_.roots[r].update(std::clamp((bytes - own + nic_on_root(o_.host, seen_, r)) /
                                              o_.host.roots[r].capacity_bytes_per_s,
                                          0.0, 1.0),
                               fall);
    }
    for (std::size_t n = 0; n < s_.numa_io.size(); ++n)
        if (is_plausible(seen_.numa_io_bytes_per_s[n], most_io_bytes_per_s))
            s_.numa_io[n].update(std::min(1.0, seen_.numa_io_bytes_per_s[n] / full_io_bytes_per_s), fall);
    for (std::size_t i = 0; i < s_.tenants.size(); ++i)
        if (const double activity = client_activity(i, false); !std::isnan(activity))
            s_.tenants[i].seen.client.update(std::min(activity, 1.0), fall);
}

double Stepper::client_activity(std::size_t i, bool with_dram) const {
    double busiest = unknown_signal;
    for (std::size_t j = 0; j < s_.tenants.size(); ++j) {
        if (tenant(j).client_of != static_cast<std::int32_t>(i)) continue;
        const auto& x = seen_.tenants[j];
        double activity = x.present ? x.sm_active : 0;
        if (with_dram && x.present && is_usable(x.dram_active))
            activity = is_usable(activity) ? std::max(activity, x.dram_active) : x.dram_active;
        if (!is_usable(activity)) continue;
        // A quota caps the visible activity, not the demand, so the activity is divided by the quota.
        activity = activity * 100 / s_.tenants[i].place.current.quota_percent;
        busiest = std::isnan(busiest) ? activity : std::max(busiest, activity);
    }
    return busiest;
}

Exposure Stepper::exposure(std::size_t i, const Configuration& c, double pcie, double io,
                           double client) const {
    const auto& start = tenant(i).start;
    const double had = device(start.gpu).profiles[start.instance.profile].sm_count;
    const double size = had / device(c.gpu).profiles[c.instance.profile].sm_count;
    // Cores away from the interrupts of block I/O are hardly affected by it.
    return {pcie, c.cpus == CpuSet{} ? io : 0, size, size * client * c.quota_percent / 100};
}

Exposure Stepper::exposure_now(std::size_t i) const {
    const auto& c = s_.tenants[i].place.current;
    const auto gpu = static_cast<std::size_t>(c.gpu);
    const auto known = [](double x) { return is_usable(x) ? std::min(x, 1.0) : 0.0; };
    return exposure(i, c, known(others_on_root(o_.host, seen_, s_, i, gpu, false)),
                    known(seen_.numa_io_bytes_per_s[static_cast<std::size_t>(o_.host.gpus[gpu].numa)] /
                          full_io_bytes_per_s),
                    known(std::min(client_activity(i, false), 1.0)));
}

Exposure Stepper::exposure_ahead(std::size_t i, const Configuration& c) const {
    const auto& gpu = o_.host.gpus[static_cast<std::size_t>(c.gpu)];
    return exposure(i, c, s_.roots[static_cast<std::size_t>(gpu.root)].expected(),
                    s_.numa_io[static_cast<std::size_t>(gpu.numa)].expected(),
                    s_.tenants[i].seen.client.expected());
}

double Stepper::misses_ahead(std::size_t i, const Configuration& c) const {
    const auto& t = s_.tenants[i];
    return expected_misses(t.seen.model.predict(exposure_ahead(i, c), t.seen.ema.value) / tenant(i).tau_ms);
}

void Stepper::learn(std::size_t i) {
    auto& t = s_.tenants[i];
    // A tail far above the target has another cause, for example a backlog. The model must not attribute it
    // to the place.
    const double tail = std::min(t.seen.ema.value, 3 * tenant(i).tau_ms);
    t.seen.model.update(exposure_now(i), t.seen.ema.weight, tail, tenant(i).tau_ms);
}

/// Returns the place and size with the fewest expected misses, including requests lost in the pause. One
/// change may combine another GPU and a larger profile if both are allowed. Among equally good choices it
/// takes the smallest.
Choice Stepper::best_place(std::size_t i) {
    const auto& t = s_.tenants[i];
    if ((!o_.flags.place && !o_.flags.mig) || !touchable(i) || !t.seen.model.known()) return {};
    const auto& own = device(t.place.current.gpu).profiles[t.place.current.instance.profile];
    const double stay = misses_ahead(i, t.place.current);
    const double horizon = std::max(o_.dwell * o_.window_s, o_.hour_s / std::max(1, o_.structural_per_hour));
    Choice best{};
    int best_sm = 0;
    double best_score = 0;
    for (std::size_t g = 0; g < seen_.gpus.size(); ++g) {
        const bool here = static_cast<std::int32_t>(g) == t.place.current.gpu;
        if ((!here && !o_.flags.place) || !seen_.gpus[g].readable || seen_.gpus[g].lost) continue;
        const auto& d = device(static_cast<std::int32_t>(g));
        const auto rest = rest_of(i, g);
        for (std::size_t p = 0; p < d.profiles.size(); ++p) {
            const auto& profile = d.profiles[p];
            // Ranks never fall; otherwise an episode could cycle.
            if (profile.media || profile.sm_count < own.sm_count ||
                has_less_memory(static_cast<std::int32_t>(g), profile, t.place.current))
                continue;
            if (profile.key != own.key ? !o_.flags.mig : here)
                continue;  // another start makes no difference to the tenant
            for_each_free_placement(d, rest, p, [&](MigInstance at) {
                if (here && at == t.place.current.instance) return;
                const auto after = placed(i, g, at, true);
                const bool disjoint = can_create(d, seen_.gpus[g].layout, at);
                const double pause = disjoint ? t.past.disjoint_pause_s : o_.pause_s;
                const double misses = misses_ahead(i, after) + pause / horizon;
                const double score = score_(placement_terms(o_.host, seen_, s_, i, g, at, rest, after.cpus));
                const double worth = stay - misses;
                auto verdict = CandidateVerdict::worse;
                // Sizes come in rising order: a larger one must be better by more than the resolution.
                const bool better =
                    best.lever == Lever::none || worth > best.worth + worth_a_guard ||
                    (worth > best.worth - worth_a_guard &&
                     (profile.sm_count < best_sm || (profile.sm_count == best_sm && score < best_score)));
                if (const auto obstacle = ruled_out(t, after, score)) {
                    verdict = *obstacle;
                } else if (worth >= worth_a_change && better) {
                    verdict = CandidateVerdict::better;
                    best.lever = profile.key == own.key ? Lever::move : Lever::enlarge;
                    best.row = best.lever == Lever::move ? Row::move : Row::enlarge;
                    best.target = static_cast<std::int32_t>(i);
                    best.after = after;
                    best.make_before_break = disjoint;
                    best.worth = worth;
                    best_sm = profile.sm_count;
                    best_score = score;
                }
                out_.candidates.push_back(
                    {static_cast<std::int32_t>(i), static_cast<std::int32_t>(g), at, misses, verdict});
            });
        }
    }
    if (best.lever != Lever::none)
        best.open = structural_gate(i, best.after, best.make_before_break, best.loss);
    return best;
}

/// Returns the highest quota that should bring the tail below the target, or else the lowest. Returns no
/// quota if it changes little.
Choice Stepper::best_quota(std::size_t i, Cause cause) {
    auto out = quota(i, cause);
    if (out.lever == Lever::none) return out;
    const auto& t = s_.tenants[i];
    auto now = exposure_now(i);
    const double at_full = now.client * 100 / t.place.current.quota_percent;
    double fewer = 0;
    for (const auto level : o_.quota_levels) {
        if (level >= t.place.current.quota_percent) continue;
        now.client = at_full * level / 100;
        const double tail = t.seen.model.predict(now, t.seen.ema.value);
        auto after = out.after;
        after.quota_percent = level;
        if (blocked(t, after)) break;
        out.value = level;
        out.after = after;
        fewer =
            expected_misses(t.seen.ema.value / tenant(i).tau_ms) - expected_misses(tail / tenant(i).tau_ms);
        if (tail < tenant(i).tau_ms) break;
    }
    out.open = out.open && affordable_quota(out.value);
    out.worth = fewer;
    return fewer >= worth_a_guard ? out : Choice{};
}

/// Returns whether the dwell of a structural change ends before a guard would finish validation and
/// cool-down.
bool Stepper::opens_soon(std::size_t i, const Choice& choice) const {
    const auto& t = s_.tenants[i];
    double loss = 0;
    static_cast<void>(structural_gate(i, choice.after, choice.make_before_break, loss));
    return loss <= o_.loss_budget && t.past.ever_structural && !any_frozen() &&
           t.past.last_structural + o_.dwell - s_.now < o_.validation + o_.cool_down;
}

void Stepper::use_first(std::size_t i, std::span<const Choice> choices) {
    bool applies = false;
    for (const auto& choice : choices) {
        if (choice.open && room()) return act(i, choice);
        applies |= choice.lever != Lever::none;
    }
    auto& t = s_.tenants[i];
    if (applies) {
        const bool first = t.phase != Phase::suspect || !t.told.suppressed;
        if (first) to(i, Phase::suspect, Row::no_lever, "a lever applies, its gate is closed");
        t.told.suppressed = true;
        t.counter = o_.persistence;
        return;
    }
    if (o_.flags.admission) t.admission_closed = true;
    if (t.phase != Phase::exhausted) to(i, Phase::exhausted, Row::no_lever, "no lever left: alert");
    t.counter = 0;
    t.flags.exhausted = t.flags.now.bits();
}

/// Takes a change of place or size first if it is worth most and allowed. Guards bridge the time until it is
/// allowed.
void Stepper::diagnose_by_model(std::size_t i) {
    const auto cause = cause_of(s_.tenants[i]);
    const auto place = best_place(i);
    const bool structural = place.lever != Lever::none;
    auto client = best_quota(i, cause), cores = pin(i, cause);
    // A quota would take longer to validate and cool down than the wait for the better choice.
    for (auto* guard : {&client, &cores})
        if (structural && place.worth > guard->worth && opens_soon(i, place)) guard->open = false;
    use_first(i, std::array{place, throttle(i, cause, structural && place.open), client, cores});
}

void Stepper::diagnose(std::size_t i) {
    if (o_.flags.predict) return diagnose_by_model(i);
    const auto cause = cause_of(s_.tenants[i]);
    const auto enlarged = enlarge(i);
    const auto moved = move(i);
    const bool structural = enlarged.lever != Lever::none || moved.lever != Lever::none;
    const bool alone = !structural || !o_.flags.join_guards;
    use_first(i, std::array{throttle(i, cause, structural), alone ? quota(i, cause) : Choice{},
                            alone ? pin(i, cause) : Choice{}, moved, enlarged});
}

/// Row 19, one step: raises the quota, then takes a smaller profile. It reverses the controller's changes in
/// reverse order and ends at the initial configuration (`floor`). Fewer SMs, less memory or a client with a
/// higher quota than in `floor` would take resources that the controller never gave.
void Stepper::consider_relax(std::size_t i) {
    auto& t = s_.tenants[i];
    double loss = 0;
    if (!o_.flags.relax || !t.seen.ema.known || t.seen.calm_windows < o_.relax_after || !in_time_ ||
        t.lease.offender >= 0 || !room())
        return;
    if (t.past.ever_structural && s_.now - t.past.last_structural < o_.dwell) return;
    // With `predict`, assume that the maximum of the last half hour returns: resources returned now are
    // available again only after a dwell.
    const double expected =
        o_.flags.predict ? std::max(t.seen.ema.value, t.seen.tail_ahead.expected()) : t.seen.ema.value;
    if (o_.flags.predict && expected >= o_.relax_limit * tenant(i).tau_ms) return;
    Choice out{
        .lever = Lever::relax, .row = Row::relax, .open = true, .target = static_cast<std::int32_t>(i)};
    out.after = t.place.current;
    if (t.place.current.quota_percent < t.place.floor.quota_percent) {
        if (!o_.flags.guard_mps) return;
        out.after.quota_percent = t.place.floor.quota_percent;
        for (const auto level : o_.quota_levels)
            if (level > t.place.current.quota_percent)
                out.after.quota_percent = std::min(level, t.place.floor.quota_percent);
        t.seen.calm_windows = 0;
        if (!blocked(t, out.after)) act(i, out);
        return;
    }
    if (!o_.flags.mig || !touchable(i)) return;
    const auto gpu = static_cast<std::size_t>(t.place.current.gpu);
    const auto& d = device(t.place.current.gpu);
    const auto rest = rest_of(i, gpu);
    const double used = seen_.tenants[i].memory_used_mib;
    const auto& own = d.profiles[t.place.current.instance.profile];
    const auto& least = device(t.place.floor.gpu).profiles[t.place.floor.instance.profile];
    // The next smaller profile: the largest one with fewer SMs, or with as many SMs and less memory. Skips it
    // unless its memory is known to fit.
    for (std::size_t p = d.profiles.size(); p-- > 0;) {
        const auto& profile = d.profiles[p];
        // Only a tenant that had media engines at first gets them back; no enlarged instance has them.
        const bool less = profile.sm_count < least.sm_count || profile.memory_mib < least.memory_mib ||
                          (profile.sm_count == least.sm_count && least.media && !profile.media);
        const bool smaller = profile.sm_count < own.sm_count ||
                             (profile.sm_count == own.sm_count && profile.memory_mib < own.memory_mib);
        if (less || !smaller || (profile.media && !least.media) || !is_usable(used) ||
            used > profile.memory_mib)
            continue;
        const auto at = least_fragmenting(d, rest, static_cast<int>(p));
        if (!at) continue;
        const double predicted =
            expected * own.sm_count / profile.sm_count;  // as if all of the time were compute time
        out.after = placed(i, gpu, *at, true);
        const double score = score_(placement_terms(o_.host, seen_, s_, i, gpu, *at, rest, out.after.cpus));
        if (!(score < o_.relax_score) || predicted >= o_.relax_limit * tenant(i).tau_ms ||
            blocked(t, out.after))
            return;
        out.make_before_break = can_create(d, seen_.gpus[gpu].layout, *at);
        if (structural_gate(i, out.after, out.make_before_break, loss)) {
            out.loss = loss;
            t.seen.calm_windows = 0;
            act(i, out);
        }
        return;
    }
}

}  // namespace gpusched::control::detail
