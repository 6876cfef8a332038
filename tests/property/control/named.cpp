// SPDX-License-Identifier: Apache-2.0
// The invariants I1 to I20 of docs/control.md, each by name, over 260,000 windows of random signals, failures, layouts and
// options, for the paper's policy and for ours (`predict`), the controller being killed and started again now and then. One
// run of each looks at all of them; every test case asks for its own, and that it was put to the test often enough.
#include "support/allocations.hpp"
#include "support/control_findings.hpp"
#include "support/control_signals.hpp"
#include "support/instances.hpp"

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::test;

namespace {
const int rounds = testing_support::instances(260);
constexpr int windows = 1000;

/// One round: a controller with random options in a random environment.
class Round {
  public:
    Round(Findings& findings, int round, bool predict)
        : f_(findings), round_(round), rng_(Rng(31).split(static_cast<std::uint64_t>(round))),
          o_(options(rng_, predict)), host_(o_), state_(initial_state(o_)),
          limits_(o_.host.tenants.size(), 0), observed_(o_.host.tenants.size()) {
        out_.actions.reserve(4);
        out_.wished.reserve(4);
        out_.events.reserve(256);
        out_.candidates.reserve(512);
        const auto all = all_layouts(device_);
        for (std::size_t g = 0; g < 2; ++g)
            for (const auto& instance : rng_.pick(std::span(all)).instances())
                if (rng_.chance(0.4) && can_create(device_, host_.layouts[g], instance)) {
                    host_.layouts[g].add(instance);
                    foreign_[g].push_back(instance);
                }
    }

    void run() {
        auto hash = options_hash(o_);
        auto twin = state_;
        StepResult again;
        std::string line, other;
        for (std::int64_t w = 0; w < windows; ++w) {
            w_ = w;
            if (rng_.chance(0.03)) regime_ = rng_.below(512);
            // An offender that comes and goes, for a while at a time.
            if (rng_.chance(0.01)) toggles_ = !toggles_;
            if (toggles_ && w % 2 == 0) regime_ ^= 1u << 4;
            auto seen = test::control_window(o_, w);
            // Some windows come late, a few by more than ten of them.
            true_s_ += o_.window_s * (rng_.chance(0.1)     ? 1 + 8 * rng_.uniform()
                                      : rng_.chance(0.003) ? 30
                                                           : 1);
            seen.time_s = true_s_;
            test::random_signals(seen, rng_, regime_, 0.1);
            seen.guards = failing_;
            for (const std::size_t i : {std::size_t{0}, std::size_t{3}})
                if (const auto& t = state_.tenants[i];
                    std::exchange(failing_[i], BackendStatus::ok) != BackendStatus::ok &&
                    t.change.lever == Lever::throttle && t.lease.offender >= 0)
                    limits_[static_cast<std::size_t>(t.lease.offender)] = 0;
            host_.fill(seen);
            const auto before = state_;
            const auto allocated = testing_support::allocations.load();
            step(state_, seen, o_, out_);
            look(18, ++since_start_ <= 3 || testing_support::allocations == allocated, "an allocation");
            ++f_.steps;
            line.clear();
            append_audit_line(line, seen, state_, out_, hash);
            step(twin, round_ % 10 == 0 ? parse_audit_observation(line) : seen, o_, again);
            other.clear();
            append_audit_line(other, seen, twin, again, hash);
            look(12, line == other, "the same observation decided otherwise");
            window(seen, before, line);
            if (state_.deeds != before.deeds) remember();
            carry_out();
            after(seen);
            if (restarts_ && rng_.chance(0.005)) {
                restart();
                twin = state_;
                hash = options_hash(o_);
            }
        }
    }

  private:
    static ControllerOptions options(Rng& rng, bool predict) {
        auto o = test::random_options(rng);
        o.flags.predict = predict;
        o.flags.join_guards = rng.chance(0.3);
        o.flags.own_gpu_first = rng.chance(0.3);
        o.flags.largest_first = rng.chance(0.3);
        return o;
    }
    /// Into a document, as a controller on a host does.
    void remember() {
        carryover_ = carryover_of(state_, o_);
        carryover_text_ = write_carryover(carryover_, o_.host);
        carryover_s_ = true_s_;
    }
    /// Killed, and started again some time later; limits have been ended, changes brought to one of their ends.
    void restart() {
        for (const std::size_t i : {std::size_t{0}, std::size_t{3}})
            o_.host.tenants[i].start = state_.tenants[i].place.current;
        for (const auto& c : host_.changes) {
            const bool done = c.outcome.status == BackendStatus::ok;
            o_.host.tenants[static_cast<std::size_t>(c.action.tenant)].start =
                done ? c.action.after : c.action.before;
            if (!done) continue;
            host_.layouts[static_cast<std::size_t>(c.action.before.gpu)].remove(c.action.before.instance);
            host_.layouts[static_cast<std::size_t>(c.action.after.gpu)].add(c.action.after.instance);
        }
        host_.changes.clear();
        std::fill(limits_.begin(), limits_.end(), 0);
        std::fill(failing_.begin(), failing_.end(), BackendStatus::ok);
        for (auto& was : observed_) {
            was.entered.clear();
            was.phase = Phase::observe;
        }
        if (rng_.chance(0.5)) true_s_ += 20 * o_.window_s * rng_.uniform();
        Problems problems;
        auto read = parse_carryover(json::Document::parse(carryover_text_, "carryover", problems), o_.host);
        look(0, carryover_.empty() || read == carryover_, "a carryover that is read back otherwise");
        for (const std::size_t i : {std::size_t{0}, std::size_t{3}}) {
            read[i] = aged(read[i], true_s_ - carryover_s_, o_.window_s);
            if (!read[i].floor) read[i].floor = o_.host.tenants[i].start;
        }
        state_ = initial_state(o_, read);
        since_start_ = 0;
    }
    void look(int n, bool holds, const char* what) { f_.look(n, holds, round_, w_, what); }
    int sms(const Configuration& c) const { return device_.profiles[c.instance.profile].sm_count; }

    void window(const Observation& seen, const ControllerState& before, const std::string& line) {
        const bool in_time =
            !before.started || (seen.time_s > before.last_time_s && seen.window > before.last_window &&
                                seen.time_s - before.last_time_s <= 10 * o_.window_s);
        look(2,
             !o_.flags.dry_run ||
                 std::all_of(out_.actions.begin(), out_.actions.end(),
                             [](const Action& a) { return a.kind == ActionKind::release_io; }),
             "an action in a dry run");
        if (!in_time) {
            for (const auto& a : out_.wished)
                look(19, a.kind == ActionKind::release_io, "an action out of time");
            for (const std::size_t i : {std::size_t{0}, std::size_t{3}})
                look(19, state_.tenants[i].phase != Phase::suspect, "persistence outlived a jump of time");
        }
        for (const auto& e : out_.events) {
            f_.edges.insert({e.from, e.to});
            f_.rows.insert(static_cast<int>(e.row));
            look(16, e.tenant == 0 || e.tenant == 3, "an event of a tenant that is not protected");
            look(20, line.find(e.reason) != std::string::npos, "an event without its line");
        }
        look(17,
             out_.actions.size() <= 2 && out_.wished.size() <= 2 &&
                 std::ranges::count(out_.wished, ActionKind::release_io, &Action::kind) + 1 >=
                     std::ssize(out_.wished),
             "more than one action besides releases");
        for (const auto& a : out_.wished) {
            ++f_.kinds[a.kind];
            look(16, a.tenant == 0 || a.tenant == 3, "an action for a tenant that is not protected");
            look(17,
                 a.kind == ActionKind::throttle_io || a.kind == ActionKind::release_io ||
                     a.kind == ActionKind::set_quota || a.kind == ActionKind::pin || structural(a),
                 "an action of another kind");
            look(20,
                 a.kind == ActionKind::release_io || std::any_of(out_.events.begin(), out_.events.end(),
                                                                 [&](const AuditEvent& e) {
                                                                     return e.tenant == a.tenant &&
                                                                            e.row != Row::remark;
                                                                 }),
                 "an action without an event");
            if (a.kind != ActionKind::release_io) decided(a, seen, before);
        }
        for (const std::size_t i : {std::size_t{0}, std::size_t{3}}) {
            const auto& x = seen.tenants[i];
            // I13: a tail that cannot be right moves no average.
            if (!(x.p99_ms >= 0 && x.p99_ms < 1e7))
                look(13,
                     state_.tenants[i].seen.ema.value == before.tenants[i].seen.ema.value ||
                         state_.tenants[i].phase != before.tenants[i].phase,
                     "an average took a value that cannot be right");
            suppressed(i, in_time && x.count >= o_.least_samples && x.p99_ms >= 0 && x.p99_ms < 1e6);
        }
    }

    /// I20: who is above the target for long enough and still in SUSPECT has a line of that stay that says why.
    void suppressed(std::size_t i, bool present) {
        auto& was = observed_[i];
        const auto phase = state_.tenants[i].phase;
        if (was.phase != Phase::suspect) was.high = 0, was.told = false;
        was.phase = phase;
        for (const auto& e : out_.events)
            if (e.tenant == static_cast<std::int32_t>(i) && e.to == Phase::suspect)
                was.told |= e.row == Row::suppressed || e.row == Row::no_lever;
        was.high += present && state_.tenants[i].seen.ema.value > o_.host.tenants[i].tau_ms;
        if (phase == Phase::suspect && was.high >= o_.persistence)
            look(20, was.told, "a suppressed trigger without a line");
    }

    void decided(const Action& a, const Observation& seen, const ControllerState& before) {
        const auto i = static_cast<std::size_t>(a.tenant);
        const auto& was = before.tenants[i];
        const auto& now = state_.tenants[i];
        look(2, was.phase != Phase::hold && was.phase != Phase::disabled && seen.enabled,
             "an action in HOLD or DISABLED");
        look(2, was.phase != Phase::cooldown, "an action in COOLDOWN");
        if (escalates(a)) {
            if (was.phase == Phase::suspect) look(3, was.counter + 1 >= o_.persistence, "too early");
            if (was.phase == Phase::observe) look(3, o_.persistence == 1, "too early");
            look(13, now.seen.tail.on && now.seen.fresh.missing == 0,
                 "an action without a tail above the threshold");
        }
        const std::pair<Lever, bool> flags[] = {
            {Lever::throttle, o_.flags.guard_io}, {Lever::quota, o_.flags.guard_mps},
            {Lever::pin, o_.flags.pin},           {Lever::move, o_.flags.place},
            {Lever::enlarge, o_.flags.mig},       {Lever::rollback, o_.flags.rollback},
            {Lever::relax, o_.flags.relax}};
        for (const auto& [lever, on] : flags)
            if (a.lever == lever) look(11, on, "a lever that is off");
        // Ours moves and enlarges in one change: then both must be on.
        if (a.lever == Lever::move || a.lever == Lever::enlarge) {
            look(11, o_.flags.place || a.after.gpu == a.before.gpu, "another GPU with placement off");
            look(11, o_.flags.mig || a.after.instance.profile == a.before.instance.profile,
                 "another profile with resizing off");
        }
        if (!o_.flags.pin && a.lever != Lever::rollback)
            look(11, a.after.cpus == a.before.cpus || a.after.cpus == CpuSet{},
                 "cores changed with pinning off");
        if (a.kind == ActionKind::throttle_io) {
            const auto& target = seen.tenants[static_cast<std::size_t>(a.target)];
            look(9, a.value >= 100 && a.value <= 500, "a limit out of range");
            look(9, !o_.host.tenants[static_cast<std::size_t>(a.target)].is_protected,
                 "a protected offender");
            look(9,
                 target.pcie_attribution != Attribution::unknown ||
                     target.io_attribution != Attribution::unknown,
                 "an offender that nothing points to");
        }
        look(9, a.after.quota_percent >= 50 && a.after.quota_percent <= 100, "a quota out of range");
        if (a.lever == Lever::rollback) {
            const bool same =
                a.before.gpu == was.place.before.gpu && a.before.instance == was.place.before.instance;
            look(7, a.after == (same ? was.place.before : was.place.good), "a rollback to something else");
        }
        if (a.lever == Lever::relax) {
            look(15, sms(a.after) <= sms(a.before), "giving back took more");
            look(15, no_less(device_, a.after, first_[i].start), "less than at the very first start");
            if (structural(a)) {
                look(15,
                     seen.tenants[i].memory_used_mib <= device_.profiles[a.after.instance.profile].memory_mib,
                     "less memory than is used");
                auto rest = seen.gpus[static_cast<std::size_t>(a.after.gpu)].layout;
                rest.remove(a.before.instance);
                const auto terms =
                    placement_terms(o_.host, seen, before, i, static_cast<std::size_t>(a.after.gpu),
                                    a.after.instance, rest, a.after.cpus);
                look(15, WeightedScore{}(terms) < o_.relax_score, "a score above the bound");
            }
        }
        if (!structural(a)) return;
        auto& seen_before = observed_[i];
        if (a.lever == Lever::rollback) seen_before.undone.emplace_back(a, true_s_);
        for (const auto& [undo, when] : seen_before.undone)
            if (a.lever != Lever::rollback && true_s_ - when < 4 * o_.dwell * o_.window_s - 1e-6)
                look(0,
                     a.before.gpu != undo.after.gpu ||
                         a.before.instance.profile != undo.after.instance.profile ||
                         a.after.gpu != undo.before.gpu ||
                         a.after.instance.profile != undo.before.instance.profile ||
                         a.after.quota_percent != undo.before.quota_percent,
                     "a change that was rolled back, again");
        if (a.lever != Lever::rollback && seen_before.last_structural_s >= 0)
            look(1, true_s_ - seen_before.last_structural_s >= o_.dwell * o_.window_s - 1e-6,
                 "sooner than the dwell");
        seen_before.last_structural_s = true_s_;
        const auto from = static_cast<std::size_t>(a.before.gpu), to = static_cast<std::size_t>(a.after.gpu);
        auto rest = seen.gpus[to].layout;
        if (from == to) rest.remove(a.before.instance);
        look(5, can_create(device_, rest, a.after.instance), "an instance that does not fit");
        look(5, a.make_before_break == can_create(device_, seen.gpus[to].layout, a.after.instance),
             "both instances are said to have room, or not to have it, wrongly");
        look(6,
             seen.gpus[from].layout.contains(a.before.instance) &&
                 (a.before == was.place.current || (was.change.in_flight && a.before == was.place.pending) ||
                  (seen.guards[i] != BackendStatus::ok && a.before == was.place.before)),
             "an instance of another");
        look(6, a.tenant != 0 || o_.host.tenants[2].follows || !seen.tenants[2].present,
             "an instance with another owner");
        for (const auto& c : host_.changes)
            for (const auto gpu : {a.before.gpu, a.after.gpu})
                look(14, c.action.before.gpu != gpu && c.action.after.gpu != gpu, "two changes on a GPU");
        // A dry run enters nothing, so it may wish the same again.
        if (!o_.flags.dry_run && (a.lever == Lever::move || a.lever == Lever::enlarge)) {
            look(4, sms(a.after) >= sms(a.before), "an escalation to fewer SMs");
            // The old episode's placements are forgotten with it.
            if (!was.episode.on) seen_before.entered.clear();
            look(4,
                 seen_before.entered.insert({a.after.instance.profile, a.after.gpu, a.after.instance.start})
                     .second,
                 "a placement entered twice in an episode");
        }
        // Counted again from the actions; what no free placement would have saved is a pause.
        seen_before.structural.emplace_back(true_s_, a.make_before_break ? 0 : o_.pause_s);
        std::int32_t recent = 0;
        double pauses = 0;
        for (const auto& [when, pause] : seen_before.structural)
            if (true_s_ - when < o_.hour_s - 1e-6) {
                ++recent;
                pauses += pause;
            }
        look(10, recent <= o_.structural_per_hour, "too many structural actions in an hour");
        if (a.lever != Lever::rollback)
            look(10, pauses <= o_.loss_budget * o_.hour_s, "pauses above the budget");
    }

    void carry_out() {
        for (const auto& a : out_.actions) {
            const auto target = static_cast<std::size_t>(a.target);
            const bool guard = a.kind != ActionKind::release_io && !structural(a);
            if (guard && rng_.chance(0.15))
                failing_[static_cast<std::size_t>(a.tenant)] = static_cast<BackendStatus>(1 + rng_.below(10));
            if (a.kind == ActionKind::throttle_io) {
                look(8, limits_[target] == 0, "a limit over a limit");
                limits_[target] = true_s_;
            } else if (a.kind == ActionKind::release_io) {
                look(8, limits_[target] != 0, "a release without a limit");
                limits_[target] = 0;
            } else if (structural(a)) {
                Feedback outcome{.finished = true};
                if (rng_.chance(0.15)) {
                    outcome.status = static_cast<BackendStatus>(1 + rng_.below(10));
                    outcome.restored = !rng_.chance(0.2);
                }
                host_.start(a, w_, static_cast<std::int64_t>(1 + rng_.below(12)), outcome);
            }
        }
    }

    void after(const Observation& seen) {
        for (std::size_t j = 0; j < limits_.size(); ++j) {
            const bool leased =
                std::any_of(state_.tenants.begin(), state_.tenants.end(), [&](const TenantState& t) {
                    return t.lease.offender == static_cast<std::int32_t>(j);
                });
            if (limits_[j] != 0 || leased)
                look(8, (limits_[j] != 0) == leased, "a limit that nobody will lift");
            // In seconds, whenever the controller was told how late it is.
            if (limits_[j] != 0 && seen.time_s == true_s_)
                look(9, true_s_ - limits_[j] < o_.lease_s + 1e-6, "a lease beyond its end");
        }
        for (const std::size_t i : {std::size_t{0}, std::size_t{3}})
            if (!state_.tenants[i].episode.on) observed_[i].entered.clear();
        for (std::size_t g = 0; g < 2; ++g) {
            look(5, is_valid(device_, host_.layouts[g]), "an invalid layout");
            for (const auto& instance : foreign_[g])
                look(6, host_.layouts[g].contains(instance), "an instance of another is gone");
        }
    }
    Findings& f_;
    const MigDevice& device_ = mig_device("A100-40GB");
    int round_;
    std::int64_t w_ = 0;
    Rng rng_;
    ControllerOptions o_;
    ControlHost host_;
    ControllerState state_;
    double true_s_ = 0;
    bool restarts_ = round_ % 3 == 0;
    ControllerCarryover carryover_{};
    std::string carryover_text_ = "{}";
    double carryover_s_ = 0;
    bool toggles_ = false;
    std::vector<double> limits_;
    std::vector<BackendStatus> failing_ = std::vector<BackendStatus>(4, BackendStatus::ok);  ///< guards
    std::vector<Observed> observed_;
    std::array<std::vector<MigInstance>, 2> foreign_{};
    std::int64_t since_start_ = 0;                     ///< windows
    std::vector<HostTenant> first_ = o_.host.tenants;  ///< as configured, whatever restarts found
    std::uint64_t regime_ = 0;
    StepResult out_{};
};
const Findings& findings(bool predict) {
    const auto run = [](bool ours) {
        Findings f;
        for (int round = 0; round < rounds; ++round) Round(f, round, ours).run();
        return f;
    };
    static const std::array<Findings, 2> all{run(false), run(true)};
    return all[predict];
}

void holds(int n, std::int64_t occasions) {
    for (const bool predict : {false, true}) {
        const auto& f = findings(predict);
        INFO((predict ? "ours" : "the paper's policy"));
        CHECK(f.steps >= testing_support::instances(100'000));
        CHECK(f.first[static_cast<std::size_t>(n)] == "");
        CHECK(f.occasions[static_cast<std::size_t>(n)] >= testing_support::instances(occasions));
    }
}

}  // namespace

TEST_CASE("a change that was rolled back is not repeated for four dwells, over restarts too") {
    holds(0, 100);
}
TEST_CASE("I1 structural actions of a tenant are at least the dwell apart") { holds(1, 100); }
TEST_CASE("I2 no action in COOLDOWN, HOLD, DISABLED or a dry run, but releases") { holds(2, 1000); }
TEST_CASE("I3 no episode starts before the tail was high for long enough") { holds(3, 100); }
TEST_CASE("I4 upgrades of an episode never fall and enter nothing twice") { holds(4, 100); }
TEST_CASE("I5 every layout is valid") { holds(5, 100'000); }
TEST_CASE("I6 only the tenant's own instance is replaced") { holds(6, 100'000); }
TEST_CASE("I7 a rollback restores exactly") { holds(7, 100); }
TEST_CASE("I8 limits end when their leases do") { holds(8, 1000); }
TEST_CASE("I9 quotas, limits and leases are in range, offenders not protected") { holds(9, 1000); }
TEST_CASE("I10 structural actions and pauses of an hour are within their caps") { holds(10, 100); }
TEST_CASE("I11 a flag that is off never acts") { holds(11, 1000); }
TEST_CASE("I12 the same observations decide the same, read back from the log too") { holds(12, 100'000); }
TEST_CASE("I13 signals that cannot be right cause nothing") { holds(13, 1000); }
TEST_CASE("I14 one structural change at a time on a GPU") { holds(14, 25); }
TEST_CASE("I15 giving back respects score, memory and the start configuration") { holds(15, 50); }
TEST_CASE("I16 actions are for protected tenants, none is sent away") { holds(16, 1000); }
TEST_CASE("I17 no action but those of the five kinds: MIG mode is none of them") { holds(17, 1000); }
TEST_CASE("nothing is allocated after three windows") { holds(18, 100'000); }
TEST_CASE("I19 time that jumps ends persistence and causes nothing") { holds(19, 100); }
TEST_CASE("I20 a line for every action and every suppressed trigger") { holds(20, 1000); }

TEST_CASE("every kind of action, every row of the table and every state occurs") {
    const auto &paper = findings(false), &ours = findings(true);
    for (const auto kind : {ActionKind::throttle_io, ActionKind::release_io, ActionKind::set_quota,
                            ActionKind::pin, ActionKind::reconfigure}) {
        INFO(enum_name(kind));
        CHECK(paper.kinds.at(kind) > testing_support::instances(50));
        CHECK(ours.kinds.at(kind) > testing_support::instances(50));
    }
    // Rows 3 and 5 leave no line: they only count.
    for (const int row : {1, 2, 4, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24}) {
        INFO(row);
        CHECK((paper.rows.contains(row) || ours.rows.contains(row)));
    }
    // No state without a way in or out.
    std::set<Phase> left, entered;
    for (const auto* findings : {&paper, &ours})
        for (const auto& [from, to] : findings->edges)
            if (from != to) left.insert(from), entered.insert(to);
    CHECK(left.size() == 9);
    CHECK(entered == left);
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
            REQUIRE(out.actions.empty());
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
            REQUIRE(state.tenants[i].phase == Phase::observe);
        for (const std::size_t i : {std::size_t{0}, std::size_t{3}})
            REQUIRE(state.tenants[i].lease.offender < 0);
        REQUIRE(state.admission_open);
    }
}
