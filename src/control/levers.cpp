// SPDX-License-Identifier: Apache-2.0
// The levers of the controller, their gates, and the actions that they produce.
#include "control/stepper.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace gpusched::control::detail {

Cause Stepper::cause_of(const TenantState& t) const {
    const auto& p = t.flags.now;
    return p.pcie.on      ? Cause::pcie
           : p.io.on      ? Cause::io
           : p.compute.on ? Cause::compute
           : p.irq.on     ? Cause::irq
                          : Cause::unknown;
}

void Stepper::push(const Action& action) {
    out_.wished.push_back(action);
    // A dry run still ends leases: an operator may switch to it during a lease.
    if (!o_.flags.dry_run || action.kind == ActionKind::release_io) out_.actions.push_back(action);
}

MigLayout Stepper::rest_of(std::size_t i, std::size_t gpu) const {
    auto rest = seen_.gpus[gpu].layout;
    if (s_.tenants[i].place.current.gpu == static_cast<std::int32_t>(gpu))
        rest.remove(s_.tenants[i].place.current.instance);
    return rest;
}

bool Stepper::touchable(std::size_t i) const {
    const auto& gpu = seen_.gpus[static_cast<std::size_t>(s_.tenants[i].place.current.gpu)];
    if (!gpu.readable || gpu.lost || !gpu.layout.contains(s_.tenants[i].place.current.instance)) return false;
    for (std::size_t j = 0; j < s_.tenants.size(); ++j)
        if (tenant(j).client_of == static_cast<std::int32_t>(i) && seen_.tenants[j].present &&
            !tenant(j).follows)
            return false;
    return true;
}

bool Stepper::blocked(const TenantState& t, const Configuration& to) const {
    return std::ranges::any_of(t.past.blocked, [&](const Blocked& b) {
        // Another start of the same profile makes no difference to the tenant.
        return s_.now < b.until && b.to.gpu == to.gpu && b.to.instance.profile == to.instance.profile &&
               b.to.quota_percent == to.quota_percent && b.from.gpu == t.place.current.gpu &&
               b.from.instance.profile == t.place.current.instance.profile;
    });
}

std::optional<CandidateVerdict> Stepper::ruled_out(const TenantState& t, const Configuration& to,
                                                   double score) const {
    if (!std::isfinite(score)) return CandidateVerdict::no_score;
    if (entered(t, to.gpu, to.instance)) return CandidateVerdict::entered_before;
    if (blocked(t, to)) return CandidateVerdict::blocked;
    return std::nullopt;
}

/// Returns whether any tenant's change ended in an unknown configuration; then no instance is touched.
bool Stepper::any_frozen() const { return std::ranges::any_of(s_.tenants, &TenantState::frozen); }

bool Stepper::guard_gate(const TenantState& t) const {
    return !t.past.ever_guard || s_.now - t.past.last_guard >= o_.guard_dwell;
}

bool Stepper::structural_gate(std::size_t i, const Configuration& after, bool disjoint, double& loss) const {
    const auto& t = s_.tenants[i];
    const double pause = !disjoint ? o_.pause_s : o_.flags.predict ? t.past.disjoint_pause_s : 0;
    double pauses = 2 * pause;  // this one and a rollback
    std::int32_t recent = 0;
    const auto kept = std::min<std::int32_t>(t.past.structural_count,
                                             static_cast<std::int32_t>(t.past.structural_s.size()));
    for (std::int32_t k = 0; k < kept; ++k)
        if (s_.clock_s - t.past.structural_s[static_cast<std::size_t>(k)] < o_.hour_s) {
            ++recent;
            pauses += t.past.pause_s[static_cast<std::size_t>(k)];
        }
    loss = pauses / o_.hour_s;
    const auto n = static_cast<double>(std::max<std::size_t>(1, s_.tenants.size()));
    return (!t.past.ever_structural || s_.now - t.past.last_structural >= o_.dwell) &&
           recent + 2 <= o_.structural_per_hour && loss <= o_.loss_budget &&
           loss / n <= o_.system_loss_budget && !t.change.in_flight &&
           !in_flight_on(s_, t.place.current.gpu, i) && !in_flight_on(s_, after.gpu, i) && !any_frozen();
}

bool Stepper::any_gate_open(std::size_t i) const {
    const auto& t = s_.tenants[i];
    double loss = 0;
    const auto& f = o_.flags;
    return ((f.guard_io || f.guard_mps || f.pin) && guard_gate(t)) ||
           ((f.place || f.mig) && structural_gate(i, t.place.current, true, loss));
}

Configuration Stepper::placed(std::size_t i, std::size_t gpu, MigInstance instance, bool pinned) const {
    Configuration c = s_.tenants[i].place.current;
    c.gpu = static_cast<std::int32_t>(gpu);
    c.instance = instance;
    if (pinned && o_.flags.pin) c.cpus = quiet_cores(o_.host, seen_, o_.host.gpus[gpu].numa);
    // Cores of another NUMA node are worse than no pinning.
    else if (o_.host.gpus[gpu].numa !=
             o_.host.gpus[static_cast<std::size_t>(s_.tenants[i].place.current.gpu)].numa)
        c.cpus = {};
    return c;
}

Configuration Stepper::upgraded(std::size_t i, std::size_t gpu, MigInstance instance) const {
    auto c = placed(i, gpu, instance, true);
    if (!o_.flags.join_guards || !o_.flags.guard_mps || client_in_instance(i) < 0) return c;
    if (const auto level = stricter_quota(i); level > 0 && affordable_quota(level)) c.quota_percent = level;
    return c;
}

std::int32_t Stepper::client_in_instance(std::size_t i) const {
    std::int32_t found = -1;
    for (std::size_t j = 0; j < s_.tenants.size(); ++j)
        if (tenant(j).client_of == static_cast<std::int32_t>(i) && seen_.tenants[j].present)
            found = static_cast<std::int32_t>(j);
    return found;
}

std::int32_t Stepper::stricter_quota(std::size_t i) const {
    for (const auto level : o_.quota_levels)
        if (level < s_.tenants[i].place.current.quota_percent) return level;
    return 0;
}

Choice Stepper::throttle(std::size_t i, Cause cause, bool structural_left) {
    const auto& t = s_.tenants[i];
    Choice out{.lever = Lever::throttle, .row = Row::throttle};
    if ((cause != Cause::pcie && cause != Cause::io) || !o_.flags.guard_io || o_.io_levels_mb_s.empty())
        return {};
    if (t.episode.throttled && structural_left) return {};
    double most = 0;
    const auto& gpu = o_.host.gpus[static_cast<std::size_t>(t.place.current.gpu)];
    const auto level = o_.io_levels_mb_s.begin() +
                       std::min<std::ptrdiff_t>(t.episode.throttles, std::ssize(o_.io_levels_mb_s) - 1);
    for (std::size_t j = 0; j < s_.tenants.size(); ++j) {
        const auto& x = seen_.tenants[j];
        if (tenant(j).is_protected || !x.present) continue;
        const bool near =
            cause == Cause::pcie
                ? tenant(j).gpu >= 0 && o_.host.gpus[static_cast<std::size_t>(tenant(j).gpu)].root == gpu.root
                : tenant(j).numa == gpu.numa;
        const double bytes = cause == Cause::pcie ? x.pcie_bytes_per_s : x.io_bytes_per_s;
        const auto how = cause == Cause::pcie ? x.pcie_attribution : x.io_attribution;
        const double top =
            cause == Cause::pcie
                ? most_capacities * o_.host.roots[static_cast<std::size_t>(gpu.root)].capacity_bytes_per_s
                : most_io_bytes_per_s;
        bool leased = false;
        for (const auto& other : s_.tenants) leased |= other.lease.offender == static_cast<std::int32_t>(j);
        if (!near || leased || how == Attribution::unknown || !is_plausible(bytes, top) || bytes <= most)
            continue;
        // Takes the first level from this one on that is below the offender's current rate; a higher level
        // would have no effect. The rate without a limit is unknown if the limit ends in this window.
        double rate = is_plausible(x.io_bytes_per_s, most_io_bytes_per_s) ? x.io_bytes_per_s : bytes;
        for (const auto& a : out_.wished)
            if (a.kind == ActionKind::release_io && a.target == static_cast<std::int32_t>(j)) rate = top;
        const auto effective = std::find_if(level, o_.io_levels_mb_s.end(),
                                            [&](std::int32_t mb_s) { return 1e6 * mb_s < rate; });
        if (effective == o_.io_levels_mb_s.end()) continue;
        most = bytes;
        out.target = static_cast<std::int32_t>(j);
        out.value = *effective;
    }
    if (out.target < 0) return {};
    const double system = o_.lease_s / o_.hour_s / static_cast<double>(s_.tenants.size());
    out.open = guard_gate(t) && t.lease.offender < 0 && system <= o_.system_loss_budget &&
               (!t.episode.throttled || s_.now - t.past.last_throttle >= o_.guard_dwell);
    return out;
}

Choice Stepper::quota(std::size_t i, Cause cause) {
    const auto& t = s_.tenants[i];
    if (cause != Cause::compute || !o_.flags.guard_mps) return {};
    Choice out{.lever = Lever::quota,
               .row = Row::quota_or_pin,
               .target = client_in_instance(i),
               .value = stricter_quota(i),
               .after = t.place.current};
    if (out.target < 0 || out.value == 0) return {};
    out.after.quota_percent = out.value;
    if (blocked(t, out.after)) return {};
    out.open = guard_gate(t) && affordable_quota(out.value);
    return out;
}

Choice Stepper::pin(std::size_t i, Cause cause) {
    const auto& t = s_.tenants[i];
    if (cause != Cause::irq || !o_.flags.pin) return {};
    Choice out{.lever = Lever::pin, .row = Row::quota_or_pin, .target = static_cast<std::int32_t>(i)};
    out.after = placed(i, static_cast<std::size_t>(t.place.current.gpu), t.place.current.instance, true);
    if (out.after == t.place.current || out.after.cpus == CpuSet{}) return {};
    out.open = guard_gate(t);
    return out;
}

Choice Stepper::move(std::size_t i) {
    const auto& t = s_.tenants[i];
    if (!o_.flags.place || !touchable(i)) return {};
    const auto& own = device(t.place.current.gpu).profiles[t.place.current.instance.profile];
    const auto here = static_cast<std::size_t>(t.place.current.gpu);
    const double score = score_(placement_terms(o_.host, seen_, s_, i, here, t.place.current.instance,
                                                rest_of(i, here), t.place.current.cpus));
    Choice out{.lever = Lever::move, .row = Row::move, .target = static_cast<std::int32_t>(i)};
    double best = score - o_.better_by;
    bool found = false;
    // Tries the same GPU first, so a tie stays there; then the lowest (GPU, start).
    for (std::size_t k = 0; k <= seen_.gpus.size(); ++k) {
        const auto g = k == 0 ? here : k - 1;
        if ((k > 0 && g == here) || !seen_.gpus[g].readable || seen_.gpus[g].lost) continue;
        const auto& d = device(static_cast<std::int32_t>(g));
        const int p = d.find(own.key);
        if (p < 0) continue;
        const auto& profile = d.profiles[static_cast<std::size_t>(p)];
        if (profile.sm_count < own.sm_count ||
            has_less_memory(static_cast<std::int32_t>(g), profile, t.place.current))
            continue;
        const auto rest = rest_of(i, g);
        for_each_free_placement(d, rest, static_cast<std::size_t>(p), [&](MigInstance at) {
            if (g == here && at == t.place.current.instance) return;
            const auto after = upgraded(i, g, at);
            const double x = score_(placement_terms(o_.host, seen_, s_, i, g, at, rest, after.cpus));
            auto verdict = CandidateVerdict::worse;
            if (const auto obstacle = ruled_out(t, after, x)) {
                verdict = *obstacle;
            } else if (x < best) {
                verdict = CandidateVerdict::better;
                best = x;
                out.after = after;
                out.make_before_break = can_create(d, seen_.gpus[g].layout, at);
                found = true;
            }
            out_.candidates.push_back(
                {static_cast<std::int32_t>(i), static_cast<std::int32_t>(g), at, x, verdict});
        });
        if (found && k == 0 && o_.flags.own_gpu_first) break;
    }
    if (!found) return {};
    out.open = structural_gate(i, out.after, out.make_before_break, out.loss);
    return out;
}

Choice Stepper::enlarge(std::size_t i) {
    const auto& t = s_.tenants[i];
    if (!o_.flags.mig || !touchable(i)) return {};
    const auto gpu = static_cast<std::size_t>(t.place.current.gpu);
    const auto& d = device(t.place.current.gpu);
    const auto& own = d.profiles[t.place.current.instance.profile];
    std::array<MigInstance, 16> found{};
    const auto count =
        enlargements(d, seen_.gpus[gpu].layout, t.place.current.instance, found, o_.flags.largest_first);
    // More memory alone comes last: the next profile with more SMs has as much memory, and occupies no more.
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(count);
    const auto more_sms = [&](MigInstance at) { return d.profiles[at.profile].sm_count > own.sm_count; };
    std::rotate(found.begin(), std::find_if(found.begin(), end, more_sms), end);
    for (std::size_t k = 0; k < count; ++k) {
        const auto& profile = d.profiles[found[k].profile];
        const auto after = upgraded(i, gpu, found[k]);
        const bool fit = profile.memory_slices >= own.memory_slices;
        const auto verdict =
            ruled_out(t, after, 0).value_or(fit ? CandidateVerdict::larger : CandidateVerdict::less_memory);
        out_.candidates.push_back({static_cast<std::int32_t>(i), t.place.current.gpu, found[k], 0, verdict});
        if (verdict != CandidateVerdict::larger) continue;
        Choice out{.lever = Lever::enlarge,
                   .row = Row::enlarge,
                   .target = static_cast<std::int32_t>(i),
                   .after = after};
        out.make_before_break = can_create(d, seen_.gpus[gpu].layout, found[k]);
        out.open = structural_gate(i, after, out.make_before_break, out.loss);
        return out;
    }
    return {};
}

void Stepper::act(std::size_t i, const Choice& choice) {
    auto& t = s_.tenants[i];
    acted_ = true;
    t.place.before = t.place.current;
    t.trial.before_ms = std::max(t.seen.ema.value, is_usable(seen_.tenants[i].p99_ms) ? tail_ms(i) : 0.0);
    t.trial.before_flags = t.flags.now.bits();
    t.trial.before_rate = t.seen.rate.known ? t.seen.rate.value : 0;
    t.flags.reference = t.flags.now;
    t.change.lever = choice.lever;
    t.trial.restart();
    Action a;
    a.lever = choice.lever;
    a.tenant = static_cast<std::int32_t>(i);
    a.target = choice.target;
    a.value = choice.value;
    a.before = t.place.current;
    a.after = choice.after;
    const bool guard =
        choice.lever == Lever::throttle || choice.lever == Lever::quota || choice.lever == Lever::pin;
    if (guard) {
        t.past.ever_guard = true;
        t.past.last_guard = s_.now;
    }
    if (choice.lever == Lever::throttle) {
        a.kind = ActionKind::throttle_io;
        a.after = t.place.current;
        push(a);
        t.episode.throttled = true;
        t.past.last_throttle = s_.now;
        ++t.episode.throttles;
        if (o_.flags.dry_run) return to(i, Phase::cooldown, choice.row, "dry run: would limit block I/O");
        t.lease.offender = choice.target;
        t.lease.until_s = s_.clock_s + o_.lease_s;
        return to(i, Phase::guarded, choice.row, "block I/O limited");
    }
    if (!same_instance(t.place.current, choice.after)) return reconfigure(i, choice);
    a.kind =
        t.place.current.quota_percent != choice.after.quota_percent ? ActionKind::set_quota : ActionKind::pin;
    if (a.kind == ActionKind::set_quota) {
        a.value = choice.after.quota_percent;
        for (std::size_t j = 0; j < s_.tenants.size(); ++j)
            if (tenant(j).client_of == static_cast<std::int32_t>(i)) a.target = static_cast<std::int32_t>(j);
    }
    push(a);
    if (o_.flags.dry_run) return to(i, Phase::cooldown, choice.row, "dry run: would change quota or cores");
    t.place.current = choice.after;
    if (choice.lever == Lever::rollback)
        to(i, Phase::cooldown, choice.row, "undone");
    else
        to(i, Phase::validate, choice.row, a.kind == ActionKind::pin ? "pinned" : "quota changed");
}

void Stepper::reconfigure(std::size_t i, const Choice& choice) {
    auto& t = s_.tenants[i];
    Action a;
    a.kind = ActionKind::reconfigure;
    a.lever = choice.lever;
    a.tenant = a.target = static_cast<std::int32_t>(i);
    a.before = t.place.current;
    a.after = choice.after;
    a.make_before_break = can_create(
        device(a.after.gpu), seen_.gpus[static_cast<std::size_t>(a.after.gpu)].layout, a.after.instance);
    push(a);
    t.past.ever_structural = true;
    t.past.last_structural = s_.now;
    const auto slot = static_cast<std::size_t>(t.past.structural_count) % t.past.structural_s.size();
    t.past.structural_s[slot] = s_.clock_s;
    t.past.pause_s[slot] = !a.make_before_break ? o_.pause_s : o_.flags.predict ? t.past.disjoint_pause_s : 0;
    ++t.past.structural_count;
    if (o_.flags.dry_run)
        return to(i, Phase::cooldown, choice.row, "dry run: would reconfigure", choice.loss);
    t.place.pending = choice.after;
    t.change.disjoint = a.make_before_break;
    t.change.held_s = t.change.outage_s = 0;
    t.change.in_flight = true;
    t.change.abandoned = false;
    enter(t, choice.after);
    to(i, Phase::reconfig, choice.row, enum_name(choice.lever), choice.loss);
}

}  // namespace gpusched::control::detail
