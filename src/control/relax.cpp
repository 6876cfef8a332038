// SPDX-License-Identifier: Apache-2.0
// Relaxing: returns resources that a tenant no longer needs.
#include "control/stepper.hpp"

#include <algorithm>

namespace gpusched::control::detail {

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
    const int sm = d.profiles[t.place.current.instance.profile].sm_count;
    const auto& least = device(t.place.floor.gpu).profiles[t.place.floor.instance.profile];
    // The next smaller profile: the largest one with fewer SMs. Skips it unless its memory is known to fit.
    for (std::size_t p = d.profiles.size(); p-- > 0;) {
        const auto& profile = d.profiles[p];
        // Only a tenant that had media engines at first gets them back; no enlarged instance has them.
        const bool less = profile.sm_count < least.sm_count || profile.memory_mib < least.memory_mib ||
                          (profile.sm_count == least.sm_count && least.media && !profile.media);
        if (less || profile.sm_count >= sm || (profile.media && !least.media) || !is_usable(used) ||
            used > profile.memory_mib)
            continue;
        const auto at = least_fragmenting(d, rest, static_cast<int>(p));
        if (!at) continue;
        const double predicted = expected * sm / profile.sm_count;  // as if all of the time were compute time
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
