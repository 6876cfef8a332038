// SPDX-License-Identifier: Apache-2.0
// The invariants of docs/control.md over random signals, failures and layouts, and the model of the transition table.
#include "support/control_signals.hpp"
#include "support/instances.hpp"

#include <new>

using namespace gpusched;
using namespace gpusched::control;
using test::bad_value_of;
using test::control_options;
using test::control_window;
using test::ControlHost;
using test::random_options;
using test::random_signals;

namespace {

std::size_t allocations = 0;
bool counting = false;

bool is_guard(Lever lever) {
    return lever == Lever::throttle || lever == Lever::quota || lever == Lever::pin;
}

#define ALWAYS(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            CAPTURE(round, w);                                                                               \
            FAIL(#condition);                                                                                \
        }                                                                                                    \
    } while (false)

}  // namespace

// All forms, so that no memory of one allocator comes to the other, whatever else replaces some of them.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    if (counting) ++allocations;
    return std::malloc(size == 0 ? 1 : size);
}
void* operator new(std::size_t size) {
    if (void* p = operator new(size, std::nothrow)) return p;
    throw std::bad_alloc();
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return operator new(size, std::nothrow);
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }

TEST_CASE("invariants hold over random signals, failures and layouts") {
    const auto& device = mig_device("A100-40GB");
    const auto all = all_layouts(device);
    std::map<ActionKind, int> kinds;
    std::set<std::pair<Phase, Phase>> edges;
    std::set<int> rows;
    std::int64_t steps = 0;
    for (int round = 0; round < testing_support::instances(200); ++round) {
        Rng rng = Rng(11).split(static_cast<std::uint64_t>(round));
        auto o = random_options(rng);
        o.flags.predict = round % 2 == 1;
        o.flags.join_guards = o.flags.own_gpu_first = o.flags.largest_first = round % 4 == 2;
        ControlHost host(o);
        // Instances of others, around those of the tenants.
        std::vector<std::vector<MigInstance>> foreign(2);
        for (std::size_t g = 0; g < 2; ++g)
            for (const auto& instance : rng.pick(std::span(all)).instances())
                if (rng.chance(0.4) && can_create(device, host.layouts[g], instance)) {
                    host.layouts[g].add(instance);
                    foreign[g].push_back(instance);
                }
        auto state = initial_state(o);
        auto twin = state;
        StepResult out, again;
        for (auto* r : {&out, &again}) {
            r->actions.reserve(4);
            r->wished.reserve(4);
            r->events.reserve(256);
            r->candidates.reserve(512);
        }
        std::uint64_t regime = 0;
        std::map<int, std::int64_t> last_structural, leased;
        std::map<int, int> high;
        std::map<std::size_t, std::vector<std::int64_t>> structural;
        for (std::int64_t w = 0; w < 1000; ++w, ++steps) {
            if (rng.chance(0.03)) regime = rng.below(512);
            auto seen = control_window(o, w);
            random_signals(seen, rng, regime, 0.1);
            host.fill(seen);
            const auto before = state;
            allocations = 0;
            counting = true;
            step(state, seen, o, out);
            counting = false;
            ALWAYS(w < 3 || allocations == 0);
            step(twin, seen, o, again);  // I12: the same input, the same output
            ALWAYS(out.actions.size() == again.actions.size() && out.events.size() == again.events.size());

            ALWAYS(out.actions.size() <= 2 && out.wished.size() <= 2);
            ALWAYS(std::count_if(out.wished.begin(), out.wished.end(),
                                 [](const Action& a) { return a.kind != ActionKind::release_io; }) <= 1);
            for (const auto& e : out.events) {
                edges.insert({e.from, e.to});
                rows.insert(static_cast<int>(e.row));
                ALWAYS(e.tenant == 0 || e.tenant == 3);
            }
            const bool in_time = seen.time_s > before.last_time_s && seen.window > before.last_window;
            for (const auto& a : out.wished) {
                ++kinds[a.kind];
                ALWAYS(!o.flags.dry_run || out.actions.empty() || a.kind == ActionKind::release_io);  // I2
                const auto i = static_cast<std::size_t>(a.tenant);
                const auto& was = before.tenants[i];
                if (a.kind == ActionKind::release_io) {
                    ALWAYS(leased.count(a.target) == 1);
                    leased.erase(a.target);
                    continue;
                }
                // I20: there is a line for it.
                ALWAYS(std::any_of(out.events.begin(), out.events.end(), [&](const AuditEvent& e) {
                    return e.tenant == a.tenant && e.row != Row::remark;
                }));
                // I2, I13, I19
                ALWAYS(was.phase != Phase::hold && was.phase != Phase::disabled && seen.enabled);
                ALWAYS(was.phase != Phase::cooldown || was.counter + 1 >= o.cool_down);
                ALWAYS(in_time || before.last_window < 0);
                // I3: an episode's first lever only after enough windows above.
                const bool escalation =
                    is_guard(a.lever) || a.lever == Lever::move || a.lever == Lever::enlarge;
                if (escalation && was.phase == Phase::suspect) ALWAYS(was.counter + 1 >= o.persistence);
                if (escalation && was.phase == Phase::observe) ALWAYS(o.persistence == 1);
                if (escalation) ALWAYS(state.tenants[i].seen.tail.on);
                // I11
                ALWAYS(a.lever != Lever::throttle || o.flags.guard_io);
                ALWAYS(a.lever != Lever::quota || o.flags.guard_mps);
                ALWAYS(a.lever != Lever::pin || o.flags.pin);
                ALWAYS(a.lever != Lever::move || o.flags.place);
                ALWAYS(a.lever != Lever::enlarge || o.flags.mig);
                ALWAYS(a.lever != Lever::rollback || o.flags.rollback);
                ALWAYS(a.lever != Lever::relax || o.flags.relax);
                ALWAYS(o.flags.pin || a.after.cpus == a.before.cpus || a.after.cpus == CpuSet{} ||
                       a.lever == Lever::rollback);
                if (a.kind == ActionKind::throttle_io) {  // I9
                    ALWAYS(!o.host.tenants[static_cast<std::size_t>(a.target)].is_protected);
                    ALWAYS(a.value >= 100 && a.value <= 500);
                    ALWAYS(seen.tenants[static_cast<std::size_t>(a.target)].pcie_attribution !=
                               Attribution::unknown ||
                           seen.tenants[static_cast<std::size_t>(a.target)].io_attribution !=
                               Attribution::unknown);
                    if (!o.flags.dry_run) leased[a.target] = w;
                }
                ALWAYS(a.after.quota_percent >= 50 && a.after.quota_percent <= 100);
                if (a.lever == Lever::rollback && a.kind == ActionKind::reconfigure)
                    ALWAYS(a.after == was.place.good);  // I7
                if (a.kind != ActionKind::reconfigure) continue;
                // I1 in the controller's own windows
                if (a.lever != Lever::rollback && last_structural.count(a.tenant))
                    ALWAYS(state.now - last_structural[a.tenant] >= o.dwell);
                last_structural[a.tenant] = state.now;
                structural[i].push_back(w);
                // I5, I6: valid on the way, and only the own instance goes.
                const auto from = static_cast<std::size_t>(a.before.gpu),
                           target = static_cast<std::size_t>(a.after.gpu);
                ALWAYS(seen.gpus[from].layout.contains(a.before.instance));
                auto rest = seen.gpus[from].layout;
                if (from == target)
                    rest.remove(a.before.instance);
                else
                    rest = seen.gpus[target].layout;
                ALWAYS(can_create(device, rest, a.after.instance));
                ALWAYS(a.make_before_break == can_create(device, seen.gpus[target].layout, a.after.instance));
                ALWAYS(a.tenant != 0 || o.host.tenants[2].follows || !seen.tenants[2].present);
                // I14
                for (const auto& c : host.changes)
                    ALWAYS(c.action.before.gpu != a.after.gpu && c.action.after.gpu != a.after.gpu &&
                           c.action.before.gpu != a.before.gpu && c.action.after.gpu != a.before.gpu);
                // I15
                if (a.lever == Lever::relax)
                    ALWAYS(seen.tenants[i].memory_used_mib <=
                           device.profiles[a.after.instance.profile].memory_mib);
                if (a.lever == Lever::relax)
                    ALWAYS(device.profiles[a.after.instance.profile].sm_count >=
                           device.profiles[o.host.tenants[i].start.instance.profile].sm_count);
                // I4
                if (a.lever == Lever::move || a.lever == Lever::enlarge)
                    ALWAYS(device.profiles[a.after.instance.profile].sm_count >=
                           device.profiles[a.before.instance.profile].sm_count);
            }
            // I8, I10: leases end in time, structural actions within the hour
            if (in_time)
                for (const auto& [target, since] : leased) ALWAYS(w - since < 15);
            for (const std::size_t i : {std::size_t{0}, std::size_t{3}}) {
                ALWAYS(std::count_if(structural[i].begin(), structural[i].end(), [&](std::int64_t then) {
                           return static_cast<double>(w - then) * o.window_s < o.hour_s;
                       }) <= o.structural_per_hour);
            }
            for (const auto& a : out.actions)
                if (a.kind == ActionKind::reconfigure) {
                    Feedback outcome{.finished = true};
                    if (rng.chance(0.15)) {
                        outcome.status = static_cast<BackendStatus>(1 + rng.below(10));
                        outcome.restored = !rng.chance(0.2);
                    }
                    host.start(a, w, static_cast<std::int64_t>(1 + rng.below(12)), outcome);
                }
            for (std::size_t g = 0; g < 2; ++g) {
                ALWAYS(is_valid(device, host.layouts[g]));
                for (const auto& instance : foreign[g]) ALWAYS(host.layouts[g].contains(instance));
            }
        }
    }
    CHECK(steps >= testing_support::instances(100'000));
    for (const auto kind : {ActionKind::throttle_io, ActionKind::release_io, ActionKind::set_quota,
                            ActionKind::pin, ActionKind::reconfigure}) {
        INFO(enum_name(kind));
        CHECK(kinds[kind] > testing_support::instances(50));
    }
    // Every row of the table was taken (3 and 5 leave no line: they only count).
    for (const int row : {1, 2, 4, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24}) {
        INFO(row);
        CHECK(rows.count(row) == 1);
    }
    // No state without a way in or out.
    for (const auto phase : {Phase::observe, Phase::suspect, Phase::guarded, Phase::reconfig, Phase::validate,
                             Phase::cooldown, Phase::exhausted, Phase::hold, Phase::disabled}) {
        INFO(enum_name(phase));
        CHECK(std::any_of(edges.begin(), edges.end(),
                          [&](const auto& e) { return e.first == phase && e.second != phase; }));
        CHECK(std::any_of(edges.begin(), edges.end(),
                          [&](const auto& e) { return e.second == phase && e.first != phase; }));
    }
}

TEST_CASE("signals that cannot be right never cause an action") {
    Rng rng(12);
    for (int round = 0; round < 20; ++round) {
        auto o = control_options();
        o.flags.predict = round % 4 >= 2;
        auto state = initial_state(o);
        StepResult out;
        for (std::int64_t w = 0; w < 500; ++w) {
            auto seen = control_window(o, w);
            for (auto& x : seen.tenants) {
                x.p99_ms = bad_value_of(rng);
                x.pcie_bytes_per_s = bad_value_of(rng);
                x.io_bytes_per_s = 1e300;
                x.io_attribution = Attribution::measured;
                x.sm_active = bad_value_of(rng);
            }
            for (auto& io : seen.numa_io_bytes_per_s) io = 1e300;
            if (round % 2 == 1) seen.time_s = bad_value_of(rng);
            step(state, seen, o, out);
            ALWAYS(out.actions.empty());
        }
    }
}

TEST_CASE("from every reachable state a quiet host leads back to observing") {
    for (int round = 0; round < 60; ++round) {
        Rng rng = Rng(13).split(static_cast<std::uint64_t>(round));
        auto o = random_options(rng);
        o.flags.predict = round % 2 == 1;
        o.flags.join_guards = o.flags.own_gpu_first = o.flags.largest_first = round % 4 == 2;
        ControlHost host(o);
        auto state = initial_state(o);
        StepResult out;
        std::int64_t w = 0;
        const auto go = [&](std::int64_t n, bool quiet) {
            for (const auto end = w + n; w < end; ++w) {
                auto seen = control_window(o, w);
                if (!quiet) random_signals(seen, rng, rng.below(512), 0.1);
                seen.time_s = static_cast<double>(w + 1) * o.window_s + 1000;
                seen.window = w;
                seen.operator_resume = quiet;
                host.fill(seen);
                step(state, seen, o, out);
                for (const auto& a : out.actions)
                    if (a.kind == ActionKind::reconfigure) host.start(a, w, 3);
            }
        };
        go(static_cast<std::int64_t>(rng.below(400)), false);
        go(400, true);
        for (const std::size_t i : {std::size_t{0}, std::size_t{3}})
            ALWAYS(state.tenants[i].phase == Phase::observe);
        for (const std::size_t i : {std::size_t{0}, std::size_t{3}})
            ALWAYS(state.tenants[i].lease.offender < 0);
        ALWAYS(state.admission_open);
    }
}
