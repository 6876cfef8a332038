// SPDX-License-Identifier: Apache-2.0
// The transition table as a finite model: small options and a small alphabet of windows make the controller's states
// finite up to the age of what happened, so that all of them are visited.
#include "support/instances.hpp"

#include <gpusched/control/control.hpp>

using namespace gpusched;
using namespace gpusched::control;

namespace {

/// Two parts with four slices: one protected tenant, a neighbour on its root, a client in its instance.
ControllerOptions small_options() {
    ControllerOptions o;
    o.host.roots = {{.numa = 0}, {.bridge = 1, .numa = 1}};
    o.host.gpus = {{.device = "A30-24GB", .root = 0, .numa = 0},
                   {.device = "A30-24GB", .root = 1, .numa = 1}};
    o.host.numa_nodes = 2;
    o.host.core_numa = {0, 0, 0, 1, 1, 1};
    o.host.tenants = {{.name = "T1", .is_protected = true, .start = {.gpu = 0, .instance = {0, 0}}},
                      {.name = "T2", .gpu = 0, .numa = 0},
                      {.name = "T3", .gpu = 0, .client_of = 0}};
    o.ema_weight = 1;
    o.persistence = 2;
    o.validation = o.cool_down = o.dwell = o.guard_dwell = o.relax_after = 1;
    o.stale_after = 2;
    o.reconfigure_timeout = 2;
    o.lease_s = 2;
    o.hour_s = 1;  // budgets have tests of their own
    o.loss_budget = 1;
    o.io_levels_mb_s = {500};
    o.quota_levels = {50};
    return o;
}

struct Input {
    double p99 = 10;   ///< 10 is low, 14.5 between the thresholds, 20 and 30 high; 0: no requests
    int pressure = 0;  ///< 0 none, 1 PCIe here, 2 PCIe there, 3 the client, 4 interrupts
    int feedback = 0;  ///< of a change in flight: 0 none yet, 1 done, 2 failed and undone, 3 device trouble
    bool enabled = true, resume = false, lost = false;
};

std::vector<Input> alphabet(const std::vector<int>& pressures) {
    std::vector<Input> out{{.p99 = 6},         {.p99 = 14.5},    {.p99 = 30},   {.p99 = 0},
                           {.enabled = false}, {.resume = true}, {.lost = true}};
    for (const int pressure : pressures)
        for (const double p99 : {10.0, 20.0}) out.push_back({.p99 = p99, .pressure = pressure});
    for (int feedback = 1; feedback < 4; ++feedback) out.push_back({.p99 = 20, .feedback = feedback});
    return out;
}

/// The controller and the layouts that stand.
struct Node {
    ControllerState state{};
    std::array<MigLayout, 2> layouts{};
};

Observation window_of(const Node& node, const Input& in, const ControllerOptions& o) {
    Observation seen;
    seen.window = node.state.last_window + 1;
    seen.time_s = static_cast<double>(seen.window + 1) * o.window_s;
    seen.enabled = in.enabled;
    seen.operator_resume = in.resume;
    seen.tenants.resize(3);
    seen.feedback.resize(3);
    auto& t1 = seen.tenants[0];
    if (in.p99 > 0) {
        t1.p99_ms = in.p99;
        t1.count = 100;
    }
    t1.offered_per_s = t1.completed_per_s = 50;
    t1.memory_used_mib = 1000;
    t1.pcie_bytes_per_s = 0;
    seen.tenants[1].pcie_bytes_per_s = in.pressure == 1 || in.pressure == 2 ? 15e9 : 0;
    seen.tenants[1].pcie_attribution = Attribution::measured;
    seen.tenants[2].sm_active = in.pressure == 3 ? 0.9 : 0.0;
    seen.roots = {{.bytes_per_s = in.pressure == 1 ? 16e9 : 0.0},
                  {.bytes_per_s = in.pressure == 2 ? 16e9 : 0.0}};
    seen.numa_io_bytes_per_s = {0, 0};
    seen.irq_per_s.assign(6, 100);
    if (in.pressure == 4) seen.irq_per_s[0] = 5000;
    seen.gpus.resize(2);
    for (std::size_t g = 0; g < 2; ++g) seen.gpus[g].layout = node.layouts[g];
    seen.gpus[0].lost = in.lost;
    return seen;
}

/// Everything that the future depends on, with ages that stop where they no longer matter.
std::string key_of(const Node& node, const ControllerOptions& o) {
    std::string key;
    const auto put = [&](auto... values) {
        const auto one = [&](std::int64_t value) {
            key.push_back(static_cast<char>(value & 0xFF));
            key.push_back(static_cast<char>(value >> 8 & 0xFF));
        };
        (one(static_cast<std::int64_t>(values)), ...);
    };
    const auto configuration = [&](const Configuration& c) {
        put(c.gpu, c.instance.profile, c.instance.start, c.quota_percent, c.cpus.words[0]);
    };
    const auto& s = node.state;
    const auto& t = s.tenants[0];
    const auto age = [&](std::int64_t then, std::int64_t most) { return std::min(s.now - then, most); };
    const auto counter = t.phase == Phase::exhausted ? std::min(t.counter, o.guard_dwell) : t.counter;
    put(t.phase, counter, t.seen.ema.known, 2 * t.seen.ema.value, t.seen.tail.on,
        std::min(t.seen.fresh.missing, o.stale_after));
    if (t.phase == Phase::hold) put(std::min(t.seen.fresh.fresh, 10));
    put(t.flags.now.bits(), t.change.in_flight, t.change.abandoned, t.episode.on, t.episode.throttled,
        t.told.suppressed, t.trial.resumes);
    put(t.admission_closed, t.frozen, t.flags.last, std::min(t.flags.same_windows, o.persistence));
    put(std::min(t.seen.good_windows, o.relax_after), std::min(t.seen.calm_windows, o.relax_after),
        t.lease.offender, t.episode.throttles > 0);
    put(t.past.ever_structural ? age(t.past.last_structural, o.dwell) : -1,
        t.past.ever_guard ? age(t.past.last_guard, o.guard_dwell) : -1);
    put(t.episode.throttled ? age(t.past.last_throttle, o.guard_dwell) : -1,
        t.lease.offender >= 0 ? t.lease.until_s - s.clock_s : 0);
    put(t.episode.entered[0] & 0xFFFF, t.episode.entered[0] >> 16, t.episode.entered[1] & 0xFFFF,
        t.episode.entered[1] >> 16);
    configuration(t.place.current);
    configuration(t.place.good);
    if (t.phase == Phase::reconfig || t.change.in_flight || t.change.abandoned)
        configuration(t.place.pending);
    put(t.change.settle, t.change.settling);
    if (t.phase == Phase::suspect && t.flags.same_windows < o.persistence)
        put(t.flags.recent, t.told.unsteady);
    // What is only read while a change is made or validated, or out of levers.
    if (t.phase == Phase::reconfig || t.phase == Phase::validate || t.trial.resumes) {
        configuration(t.place.before);
        put(t.change.lever, 2 * t.trial.before_ms, t.trial.before_flags, t.flags.reference.bits(),
            t.trial.waited, 2 * t.trial.tail.value, t.trial.tail.known);
    }
    if (t.phase == Phase::exhausted) put(t.flags.exhausted);
    std::vector<std::string> blocks;
    for (const auto& b : t.past.blocked) {
        if (b.until < s.now) continue;
        std::string outer;
        std::swap(outer, key);
        configuration(b.from);
        configuration(b.to);
        put(b.until - s.now);
        std::swap(outer, key);
        blocks.push_back(outer);
    }
    std::sort(blocks.begin(), blocks.end());
    for (const auto& b : blocks) key += b;
    for (std::size_t g = 0; g < 2; ++g) {
        std::uint64_t bits = 0, known = 0;
        for (const auto& i : node.layouts[g].instances())
            bits |= std::uint64_t{1} << (8u * i.profile + i.start);
        for (const auto& i : s.layouts[g].instances())
            known |= std::uint64_t{1} << (8u * i.profile + i.start);
        put(bits & 0xFFFF, bits >> 16 & 0xFFFF, bits >> 32, known & 0xFFFF, known >> 16 & 0xFFFF,
            known >> 32);
    }
    return key;
}

using Edge = std::tuple<int, Phase, Phase>;  // row, from, to

struct Model {
    std::size_t states = 0;
    std::size_t stuck = 0;  ///< states from which OBSERVE is out of reach
    std::string example{};
    std::set<Edge> edges{};
    std::set<Phase> phases{};
    std::size_t below = 0;    ///< states in which the tenant has less than at the start
    std::size_t smaller = 0;  ///< transitions by which it gives something back
    bool complete = true;
};

Model explore(const ControllerOptions& o, const std::vector<int>& pressures, std::size_t most) {
    Model out;
    const auto inputs = alphabet(pressures);
    std::vector<Node> nodes;
    std::unordered_map<std::string, std::uint32_t> index;
    std::vector<std::vector<std::uint32_t>> back;  // who leads here
    Node first{initial_state(o), {}};
    for (std::size_t g = 0; g < 2; ++g) first.layouts[g] = first.state.layouts[g];
    index.emplace(key_of(first, o), 0);
    nodes.push_back(first);
    back.emplace_back();
    StepResult result;
    for (std::uint32_t at = 0; at < nodes.size(); ++at) {
        if (nodes.size() > most) {
            out.complete = false;
            break;
        }
        for (const auto& in : inputs) {
            const auto& change = nodes[at].state.tenants[0].change;
            if (in.feedback > 0 && !change.in_flight && !change.abandoned) continue;
            Node next = nodes[at];
            auto seen = window_of(next, in, o);
            if (in.feedback > 0) {
                const auto& t = next.state.tenants[0];
                auto& f = seen.feedback[0];
                f.finished = true;
                if (in.feedback == 1) {
                    next.layouts[static_cast<std::size_t>(t.place.current.gpu)].remove(
                        t.place.current.instance);
                    next.layouts[static_cast<std::size_t>(t.place.pending.gpu)].add(t.place.pending.instance);
                    for (std::size_t g = 0; g < 2; ++g) seen.gpus[g].layout = next.layouts[g];
                } else {
                    f.status = in.feedback == 2 ? BackendStatus::in_use : BackendStatus::unknown;
                }
            }
            step(next.state, seen, o, result);
            for (const auto& e : result.events) {
                if (e.row != Row::remark || e.from != e.to)
                    out.edges.insert({static_cast<int>(e.row), e.from, e.to});
            }
            for (const auto& a : result.actions) out.smaller += a.lever == Lever::relax;
            const auto [found, added] =
                index.emplace(key_of(next, o), static_cast<std::uint32_t>(nodes.size()));
            const auto to = found->second;
            if (added) {
                nodes.push_back(std::move(next));
                back.emplace_back();
            }
            if (back[to].empty() || back[to].back() != at) back[to].push_back(at);
        }
    }
    out.states = nodes.size();
    std::vector<bool> good(nodes.size());
    std::vector<std::uint32_t> open;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        const auto& t = nodes[i].state.tenants[0];
        out.phases.insert(t.phase);
        const auto& profiles = mig_device("A30-24GB").profiles;
        const auto& now = profiles[t.place.current.instance.profile];
        const auto& start = profiles[o.host.tenants[0].start.instance.profile];
        out.below += now.sm_count < start.sm_count || now.memory_mib < start.memory_mib ||
                     t.place.current.quota_percent > o.host.tenants[0].start.quota_percent;
        if (t.phase == Phase::observe && !t.frozen && t.lease.offender < 0 && nodes[i].state.admission_open) {
            good[i] = true;
            open.push_back(i);
        }
    }
    while (!open.empty()) {
        const auto i = open.back();
        open.pop_back();
        for (const auto k : back[i])
            if (!good[k]) {
                good[k] = true;
                open.push_back(k);
            }
    }
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
        if (!good[i] && out.stuck++ == 0) out.example = enum_name(nodes[i].state.tenants[0].phase);
    return out;
}

/// All transitions by row of the table in docs/control.md. Rows 3, 5, 10 and 22 count, or lead on within the window;
/// row 25 is the caller's.
const char* const table =
    "1: observe disabled, suspect disabled, guarded disabled, reconfig disabled, validate disabled, cooldown "
    "disabled, exhausted disabled, hold disabled\n"
    "2: observe suspect\n"
    "4: suspect observe\n"
    "6: suspect suspect\n"
    "7: suspect guarded, guarded guarded, exhausted guarded\n"
    "8: suspect validate, exhausted validate\n"
    "9: guarded observe\n"
    "11: suspect reconfig, guarded reconfig, exhausted reconfig\n"
    "12: suspect reconfig, guarded reconfig, exhausted reconfig\n"
    "13: suspect suspect, suspect exhausted, guarded suspect, guarded exhausted, exhausted suspect\n"
    "14: reconfig validate\n"
    "15: reconfig cooldown, reconfig hold\n"
    "16: validate cooldown\n"
    "17: reconfig cooldown, validate reconfig, validate validate, validate cooldown\n"
    "18: cooldown observe\n"
    "19: observe reconfig, observe validate\n"
    "20: observe hold, suspect hold, guarded hold, reconfig hold, validate hold, cooldown hold, exhausted "
    "hold\n"
    "21: exhausted observe\n"
    "23: hold validate, hold cooldown\n"
    "24: disabled observe\n";

/// With sanitizers only the states nearest to the first one are visited.
constexpr bool all_states = testing_support::stride == 1;

}  // namespace

TEST_CASE("all states of small models: each can be left, all transitions are the table's") {
    struct Variant {
        const char* name;
        std::vector<int> pressures;
        std::vector<bool ControllerFlags::*> flags;
        const char* start = "1g";
    };
    using F = ControllerFlags;
    const Variant variants[] = {
        {"throttle", {0, 1}, {&F::guard_io, &F::admission, &F::rollback, &F::relax}},
        {"quota", {0, 3}, {&F::guard_mps, &F::admission, &F::rollback, &F::relax}},
        {"pin", {0, 4}, {&F::pin, &F::rollback}},
        {"placement", {0, 1}, {&F::place, &F::rollback, &F::admission}},
        {"mig", {0}, {&F::mig, &F::rollback, &F::relax, &F::admission}},
        {"mig from 2g", {0}, {&F::mig, &F::rollback, &F::relax, &F::admission}, "2g"},
        {"mig without rollback", {0}, {&F::mig, &F::relax}},
        {"throttle and mig", {0, 1}, {&F::guard_io, &F::mig, &F::rollback}},
        {"guards and placement", {0, 1}, {&F::guard_io, &F::place, &F::rollback}},
        {"mig with guards joined", {3}, {&F::guard_mps, &F::mig, &F::join_guards}, "2g"},
        {"static", {0, 1, 3, 4}, {}},
    };
    std::set<Edge> edges;
    std::set<Phase> phases;
    for (const auto& variant : variants) {
        auto o = small_options();
        o.flags = variant_flags(control::Variant::static_configuration);
        for (const auto flag : variant.flags) o.flags.*flag = true;
        o.host.tenants[0].start.instance.profile =
            static_cast<std::uint8_t>(mig_device("A30-24GB").find(variant.start));
        // From 2g there is no larger one beside it.
        if (o.host.tenants[0].start.instance.profile != 0) o.pause_s = 0;
        const auto model = explore(o, variant.pressures, all_states ? 200'000 : 2'000);
        INFO(variant.name);
        INFO(model.example);
        UNSCOPED_INFO(variant.name << ": " << model.states << " states");
        CHECK((model.complete || !all_states));
        CHECK(model.states > 20);
        if (model.complete) CHECK(model.stuck == 0);
        CHECK(model.below == 0);
        if (model.complete && o.flags.relax && (o.flags.mig || o.flags.guard_mps)) CHECK(model.smaller > 0);
        edges.insert(model.edges.begin(), model.edges.end());
        phases.insert(model.phases.begin(), model.phases.end());
    }
    CHECK(phases.size() == 9);
    std::string all;
    int row = 0;
    for (const auto& [number, from, to] : edges) {
        all += number == row ? ", " : (row == 0 ? "" : "\n") + std::to_string(number) + ": ";
        all.append(enum_name(from)).append(" ").append(enum_name(to));
        row = number;
    }
    if (all_states) {
        CHECK(all + "\n" == table);
        return;
    }
    const std::string lines = std::string("\n") + table;
    for (const auto& [number, from, to] : edges) {
        const auto begin = lines.find("\n" + std::to_string(number) + ": ");
        const auto transition = std::string(enum_name(from)).append(" ").append(enum_name(to));
        INFO(number << ": " << transition);
        REQUIRE(begin != lines.npos);
        CHECK_THAT(lines.substr(begin + 1, lines.find('\n', begin + 1) - begin - 1),
                   Catch::Matchers::ContainsSubstring(transition));
    }
}
