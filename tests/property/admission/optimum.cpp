// SPDX-License-Identifier: Apache-2.0
// admit on tiny crowded clusters against every way of admission, feature by feature: no proof that a cheaper plan
// refutes, no bound above the optimum, hardly ever a possible job refused, and no refusal because an option was
// relaxed. And under limits of moves, evictions and cost, with exempt nodes and spared tasks.
#include "support/every_admission.hpp"
#include "support/instances.hpp"
#include "support/plans.hpp"

#include <gpusched/admission/admission.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;

namespace optimum_tests {

enum class Feature {
    whole_gpus,
    fractions,
    node_groups,
    rack_groups,
    avoid,
    affinity,
    near,
    spread,
    budgets,
    budget_price,
    standby,
    gangs,
    network,
    numa,
    all
};
constexpr std::array features{
    std::pair{Feature::whole_gpus, "whole GPUs"},
    std::pair{Feature::fractions, "fractions"},
    std::pair{Feature::node_groups, "node groups"},
    std::pair{Feature::rack_groups, "rack groups"},
    std::pair{Feature::avoid, "avoid"},
    std::pair{Feature::affinity, "affinity"},
    std::pair{Feature::near, "near"},
    std::pair{Feature::spread, "spread"},
    std::pair{Feature::budgets, "budgets"},
    std::pair{Feature::budget_price, "budget price"},
    std::pair{Feature::standby, "Standby"},
    std::pair{Feature::gangs, "gangs"},
    std::pair{Feature::network, "network level"},
    std::pair{Feature::numa, "NUMA nodes"},
    std::pair{Feature::all, "all of these"},
};

struct Case {
    ClusterSpec spec;
    admission::Options options;
};

/// A crowded cluster of at most 4 nodes and 8 tasks, of them 1 to 4 pods.
Case random_case(std::uint64_t seed, Feature feature) {
    Rng rng(seed);
    Case made;
    auto& spec = made.spec;
    auto& options = made.options;
    spec.now = 5000;
    const auto has = [&](Feature f) { return feature == f || (feature == Feature::all && rng.chance(0.3)); };
    const bool standby = has(Feature::standby), numa = has(Feature::numa), gangs = has(Feature::gangs);
    const bool node_groups = has(Feature::node_groups), rack_groups = has(Feature::rack_groups);
    const bool avoid = has(Feature::avoid), affinity = has(Feature::affinity);
    const bool near = has(Feature::near), spread = has(Feature::spread);
    const bool budget_price = has(Feature::budget_price), budgets = budget_price || has(Feature::budgets);
    const bool fractions = has(Feature::fractions) || rng.chance(standby ? 0.4 : 0.1);
    const bool full = rng.chance(0.5);  // fewer nodes and GPUs, more tasks
    const auto nodes = full ? rng.between(1, 3) : rng.between(2, 4);
    for (std::int64_t n = 0; n < nodes; ++n) {
        const auto gpus = numa ? rng.between(2, 4) : rng.between(1, full ? 3 : 4);
        NodeSpec node{
            .name = "n" + std::to_string(n), .gpu_count = gpus, .cpu_milli = 64'000, .memory_mib = 1024};
        node.schedulable = !rng.chance(0.04);
        node.network = {"r" + std::to_string(rng.between(0, nodes > 2 ? 1 : 0))};
        if (rng.chance(0.5)) node.labels["k"] = "0";
        if (numa && rng.chance(0.8)) {
            node.hardware = Hardware{};
            const auto half = rng.between(1, gpus - 1);
            const auto mask = (GpuMask{1} << half) - 1;
            node.hardware->numa_nodes = {{0, 64, mask}, {1, 64, ((GpuMask{1} << gpus) - 1) & ~mask}};
        }
        spec.nodes.push_back(node);
    }
    const auto jobs = gangs ? rng.between(1, 2) : 0;
    for (std::int64_t j = 0; j < jobs; ++j) {
        JobSpec job{.name = "j" + std::to_string(j), .min_members = rng.between(0, 3)};
        if (rng.chance(0.15)) job.max_disrupted = rng.between(0, 1);
        spec.jobs.push_back(job);
    }
    const auto group = [&](TaskSpec& task) {
        if (!rng.chance(0.6)) return;
        const Level level = rng.chance(0.5) ? 0 : node_level;
        const auto limit = static_cast<int>(rng.between(1, 2));
        if (node_groups) task.anti_affinity.push_back({"g", node_level, limit});
        if (rack_groups) task.anti_affinity.push_back({"g", 0, limit});
        if ((avoid || near || spread) && rng.chance(0.6)) task.groups.push_back("g");
        if (avoid && rng.chance(0.5)) task.avoid.push_back({"g", level});
        if (near && rng.chance(0.4)) task.near.push_back({"g", level});
        if (spread && rng.chance(0.5))
            task.spread.push_back({.group = "g", .level = level, .max_skew = limit});
        if (affinity && rng.chance(0.6)) task.affinity.push_back({"g", level});
    };
    const auto prices = [&](TaskSpec& task) {
        task.priority = rng.between(-2, 2);
        task.preemptible = rng.chance(0.6);
        task.locked = rng.chance(0.08);
        task.move_cost = rng.between(0, 3);
        task.start_time = spec.now - (rng.chance(0.5) ? 0 : rng.between(0, 3000));
        task.how = rng.chance(0.75) ? Mobility::copy : rng.chance(0.5) ? Mobility::restart : Mobility::none;
    };
    const auto request = [&](TaskSpec& task, std::int64_t most) {
        task.gpu_count = rng.chance(0.5) ? 1 : rng.between(1, most);
        task.gpu_share_milli = 1000;
        task.hardware_affinity.clear();
        if (fractions && rng.chance(0.7)) {
            task.gpu_count = 1;
            task.gpu_share_milli = std::array{250, 300, 500, 700}[rng.below(4)];
        }
        if (numa && task.gpu_count == 2 && rng.chance(0.6))
            task.hardware_affinity = {{HardwareLevel::numa, HardwareQos::guaranteed}};
    };
    // Nodes are filled in random order; Standby tasks come first, so that LP tasks find what they lend.
    struct Gpu {
        std::int64_t used = 0, claimed = 0;
    };
    std::vector<std::vector<Gpu>> gpus;
    for (const auto& node : spec.nodes) gpus.emplace_back(std::size_t(node.gpu_count));
    const auto running = full ? rng.between(4, 7) : rng.between(2, 7);
    for (std::int64_t t = 0; t < running; ++t) {
        TaskSpec task{.name = "t" + std::to_string(t)};
        prices(task);
        request(task, 3);
        group(task);
        if (standby && t < 2) {
            task.standby = true;
            task.locked = false;
            task.priority_class = PriorityClass::hp;
        } else if (standby && rng.chance(0.5)) {
            task.priority_class = PriorityClass::lp;
        }
        if (rng.chance(0.15)) task.node_selector["k"] = "0";
        if (jobs > 0 && rng.chance(0.7)) task.job = spec.jobs[rng.below(spec.jobs.size())].name;
        std::vector<std::size_t> order(spec.nodes.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        rng.shuffle(std::span(order));
        for (const auto n : order) {
            std::vector<int> free;
            for (std::size_t g = 0; g < gpus[n].size(); ++g)
                if (gpus[n][g].used + task.gpu_share_milli <= 1000 &&
                    (task.priority_class == PriorityClass::lp ||
                     gpus[n][g].claimed + task.gpu_share_milli <= 1000))
                    free.push_back(static_cast<int>(g));
            if (std::ssize(free) < task.gpu_count) continue;
            rng.shuffle(std::span(free));
            free.resize(std::size_t(task.gpu_count));
            std::sort(free.begin(), free.end());
            for (const int g : free) {
                if (!task.standby) gpus[n][std::size_t(g)].used += task.gpu_share_milli;
                if (task.priority_class != PriorityClass::lp)
                    gpus[n][std::size_t(g)].claimed += task.gpu_share_milli;
            }
            task.node = spec.nodes[n].name;
            task.gpus = free;
            spec.tasks.push_back(task);
            break;
        }
    }
    if (budgets)
        for (auto b = rng.between(1, 2); b > 0; --b) {
            BudgetSpec budget{.name = "b" + std::to_string(b), .allowed_down = rng.between(0, 1)};
            for (const auto& task : spec.tasks)
                if (rng.chance(0.6)) budget.tasks.push_back(task.name);
            spec.budgets.push_back(budget);
        }
    const auto pods = rng.chance(0.5) ? 1 : rng.between(2, 4);
    TaskSpec pod{.name = "p0", .priority = rng.between(0, 4)};
    request(pod, pods == 1 ? 4 : 2);
    group(pod);
    if (standby && rng.chance(0.7)) pod.priority_class = PriorityClass::lp;
    for (std::int64_t p = 0; p < pods && spec.tasks.size() < 8; ++p) {
        pod.name = "p" + std::to_string(p);
        if (p > 0 && rng.chance(0.2)) request(pod, 2);
        spec.tasks.push_back(pod);
    }
    if (has(Feature::network)) options.mode = NetworkMode::required;
    if (budget_price) options.prices.budget_price_s = rng.between(0, 20) * 100;
    if (rng.chance(0.2)) {
        options.prices.move_price_s = options.prices.restart_s = options.prices.loss_s = 0;
        options.prices.task_price_s = 1;
        options.prices.work = false;
    } else if (rng.chance(0.15)) {
        options.prices.restart_s = 0;
    }
    if (feature == Feature::all) {
        if (rng.chance(0.2)) options.max_moves = rng.between(0, 2);
        if (rng.chance(0.2)) options.max_evictions = rng.between(0, 2);
        if (rng.chance(0.1)) options.max_cost_s = rng.between(0, 8000);
        if (rng.chance(0.1)) options.exempt.push_back(make_id<NodeId>(rng.below(spec.nodes.size())));
        if (rng.chance(0.1) && spec.tasks[0].node) options.spare.push_back(make_id<TaskId>(0));
    }
    options.moves = !rng.chance(0.1);
    options.evictions = !rng.chance(0.1);
    options.replace = !rng.chance(0.1);
    return made;
}

/// A tiny cluster with subgroups, budgets, priorities of any sign, tasks that restart, and limits of the options.
Case random_limited_case(std::uint64_t seed) {
    Rng rng(seed);
    Case made;
    auto& spec = made.spec;
    spec.now = 5000;
    const auto nodes = rng.between(2, 4);
    std::vector<std::int64_t> idle, next_gpu;
    for (std::int64_t n = 0; n < nodes; ++n) {
        const auto gpus = rng.between(1, 4);
        spec.nodes.push_back({.name = "n" + std::to_string(n),
                              .gpu_model = "A",
                              .gpu_count = gpus,
                              .cpu_milli = rng.between(2, 8) * 1000,
                              .memory_mib = 1024});
        spec.nodes.back().schedulable = !rng.chance(0.08);
        idle.push_back(spec.nodes.back().cpu_milli);
        next_gpu.push_back(0);
    }
    const auto jobs = rng.between(0, 2);
    for (std::int64_t j = 0; j < jobs; ++j) {
        JobSpec job{.name = "j" + std::to_string(j), .min_members = rng.between(0, 3)};
        if (rng.chance(0.2)) job.max_disrupted = rng.between(0, 1);
        if (rng.chance(0.5)) {
            std::int64_t sum = 0;
            for (const char* name : {"a", "b"}) {
                job.subgroups.push_back({name, rng.between(0, 2)});
                sum += job.subgroups.back().min_members;
            }
            job.min_members = std::max(job.min_members, sum);
        }
        spec.jobs.push_back(job);
    }
    const auto join = [&](TaskSpec& task) {
        if (jobs == 0 || rng.chance(0.3)) return;
        const auto& job = spec.jobs[rng.below(spec.jobs.size())];
        task.job = job.name;
        if (!job.subgroups.empty() && rng.chance(0.8)) task.subgroup = rng.chance(0.5) ? "a" : "b";
    };
    const auto running = rng.between(2, 6);
    for (std::int64_t t = 0; t < running; ++t) {
        TaskSpec task{.name = "t" + std::to_string(t)};
        task.gpu_count = rng.chance(0.15) ? 0 : rng.between(1, 3);
        task.cpu_milli = rng.between(0, 4) * 500;
        task.priority = rng.between(-6, 6);
        task.preemptible = rng.chance(0.7);
        task.locked = rng.chance(0.06);
        task.daemon = rng.chance(0.04);
        task.move_cost = rng.between(0, 3);
        task.start_time = spec.now - rng.between(-100, 3000);
        task.how = rng.chance(0.6)   ? Mobility::copy
                   : rng.chance(0.7) ? Mobility::restart
                   : rng.chance(0.5) ? Mobility::suspend
                                     : Mobility::none;
        join(task);
        std::vector<std::size_t> order;
        for (std::size_t n = 0; n < spec.nodes.size(); ++n) order.push_back(n);
        rng.shuffle(std::span(order));
        for (const auto n : order) {
            if (next_gpu[n] + task.gpu_count > spec.nodes[n].gpu_count || task.cpu_milli > idle[n]) continue;
            task.node = spec.nodes[n].name;
            for (std::int64_t g = 0; g < task.gpu_count; ++g)
                task.gpus.push_back(static_cast<int>(next_gpu[n]++));
            idle[n] -= task.cpu_milli;
            spec.tasks.push_back(task);
            break;
        }
    }
    for (std::int64_t b = rng.between(0, 2); b > 0; --b) {
        BudgetSpec budget{.name = "b" + std::to_string(b), .allowed_down = rng.between(0, 2)};
        for (const auto& task : spec.tasks)
            if (rng.chance(0.5)) budget.tasks.push_back(task.name);
        budget.broken = rng.chance(0.1);
        spec.budgets.push_back(budget);
    }
    const auto pods = rng.between(1, 3);
    for (std::int64_t p = 0; p < pods; ++p) {
        TaskSpec pod{.name = "p" + std::to_string(p)};
        pod.gpu_count = rng.between(pods == 1 ? 1 : 0, pods == 1 ? 4 : 2);
        pod.cpu_milli = rng.between(0, 4) * 500;
        pod.priority = rng.between(-6, 8);
        spec.tasks.push_back(pod);
    }
    if (jobs > 0 && rng.chance(0.15))
        for (auto& task : spec.tasks)
            if (!task.node) task.job = spec.jobs[0].name;

    auto& options = made.options;
    if (rng.chance(0.3)) {
        options.prices.move_price_s = options.prices.restart_s = options.prices.loss_s = 0;
        options.prices.task_price_s = 1;
        options.prices.work = false;
    }
    options.moves = !rng.chance(0.15);
    options.evictions = !rng.chance(0.3);
    options.replace = !rng.chance(0.2);
    if (rng.chance(0.3)) options.max_moves = rng.between(0, 2);
    if (rng.chance(0.3)) options.max_evictions = rng.between(0, 2);
    if (rng.chance(0.2)) options.max_cost_s = rng.between(0, 8000);
    if (rng.chance(0.15)) options.exempt.push_back(make_id<NodeId>(rng.below(spec.nodes.size())));
    if (rng.chance(0.2) && !spec.tasks.empty() && spec.tasks[0].node)
        options.spare.push_back(make_id<TaskId>(0));
    return made;
}

/// The same case without the feature; nothing = the feature is the whole case.
std::optional<Case> without(const Case& with, Feature feature) {
    auto made = with;
    switch (feature) {
    case Feature::whole_gpus:
    case Feature::all:
        return std::nullopt;
    case Feature::fractions:
        std::erase_if(made.spec.tasks, [](const TaskSpec& t) { return t.node && t.gpu_share_milli < 1000; });
        break;
    case Feature::budgets:
        made.spec.budgets.clear();
        break;
    case Feature::budget_price:
        made.options.prices.budget_price_s.reset();
        break;
    case Feature::standby:
        made.options.standby = false;
        break;
    case Feature::gangs:
        for (auto& task : made.spec.tasks) task.job.clear();
        break;
    case Feature::network:
        made.options.mode.reset();
        break;
    case Feature::numa:
        for (auto& task : made.spec.tasks) task.hardware_affinity.clear();
        break;
    default:
        for (auto& task : made.spec.tasks) {
            task.anti_affinity.clear(), task.avoid.clear(), task.affinity.clear();
            task.near.clear(), task.spread.clear();
        }
    }
    return made;
}

std::vector<TaskId> pods_of(const ClusterSpec& spec) {
    std::vector<TaskId> pods;
    for (std::size_t t = 0; t < spec.tasks.size(); ++t)
        if (!spec.tasks[t].node) pods.push_back(make_id<TaskId>(t));
    return pods;
}

admission::Admission admit(const Case& c) {
    return admission::admit(Cluster::build(c.spec, IdOrder::as_listed), pods_of(c.spec), c.options);
}

constexpr std::int64_t unlimited = INT64_MAX / 4;

/// A plan that costs less than the one that was made.
std::optional<testing_support::EveryAdmission::Found> better_than(const Case& c,
                                                                  const admission::Admission& made) {
    // Tasks move to empty nodes only if nothing else admits the pods.
    const bool opens = !made.admitted || !made.plan.opened_nodes.empty();
    return testing_support::EveryAdmission(c.spec, c.options, opens)
        .cheapest_below(made.admitted ? made.cost.total() : unlimited);
}

/// The least cost of any plan: `made`'s, if it is not refuted.
std::int64_t optimum(const Case& c, const admission::Admission& made) {
    const auto better = better_than(c, made);
    if (!better) return made.admitted ? made.cost.total() : unlimited;
    // A plan beyond a budget is right if it has its price, but the verifier refuses it.
    if (!c.options.prices.budget_price_s) {
        testing_support::require_valid(c.spec, better->plan);
    }
    return better->cost;
}

struct Counts {
    int tried = 0, binding = 0, possible = 0, false_proofs = 0, above = 0, refused = 0, optimal = 0,
        proven = 0, relaxed = 0, invalid = 0;
    std::string which{};
};

/// Every option that is on, or priced, taken away.
std::vector<Case> restricted(const Case& c) {
    std::vector<Case> all;
    const auto add = [&](bool on, auto&& change) {
        if (!on) return;
        all.push_back(c);
        change(all.back().options);
    };
    using admission::Options;
    add(c.options.moves, [](Options& o) { o.moves = false; });
    add(c.options.evictions, [](Options& o) { o.evictions = false; });
    add(c.options.replace, [](Options& o) { o.replace = false; });
    add(c.options.standby, [](Options& o) { o.standby = false; });
    add(c.options.prices.budget_price_s.has_value(), [](Options& o) { o.prices.budget_price_s.reset(); });
    return all;
}

void judge(const Case& c, std::uint64_t seed, Counts& counts, Feature feature) {
    ++counts.tried;
    const auto made = admit(c);
    const auto least = optimum(c, made);
    const auto note = [&](bool wrong, int& count, const char* name) {
        count += wrong;
        if (wrong && counts.which.size() < 2000)
            counts.which += " " + std::string(name) + ":" + std::to_string(seed);
    };
    const bool exists = least < unlimited;
    const bool best = made.admitted ? made.cost.total() == least : !exists;
    note(made.proven && !best, counts.false_proofs, "proof");
    note(made.bound ? *made.bound > least : exists, counts.above, "bound");
    if (made.admitted && made.broken_budgets.empty()) {
        const auto report =
            verify::plan(c.spec, to_spec(made.plan, Cluster::build(c.spec, IdOrder::as_listed)));
        counts.invalid += !report.ok;
    }
    if (const auto plain = without(c, feature)) {
        if (optimum(*plain, admit(*plain)) == least) return;
    } else if (made.admitted && least == 0) {
        return;
    }
    ++counts.binding;
    counts.proven += made.proven;
    counts.possible += exists;
    counts.optimal += exists && best;
    note(exists && !made.admitted, counts.refused, "refused");
    if (!made.admitted)
        for (const auto& less : restricted(c))
            if (admit(less).admitted) {
                note(true, counts.relaxed, "relaxed");
                break;
            }
}

TEST_CASE("admission against every way, by feature") {
    const auto [feature, name] = GENERATE(from_range(features));
    Counts counts;
    const int wanted = testing_support::instances(60);
    for (std::uint64_t seed = 0; counts.binding < wanted; ++seed) {
        const auto c = random_case(seed, feature);
        if (pods_of(c.spec).empty()) continue;
        INFO(name << ", seed " << seed);
        judge(c, seed, counts, feature);
    }
    if (testing_support::times() > 1)  // the row of docs/admission-measurements.md
        WARN("| " << name << " | " << counts.tried << " | " << counts.binding << " | " << counts.possible
                  << " | " << counts.optimal << " | " << counts.proven << " | " << counts.refused << " | "
                  << counts.relaxed << " | " << counts.false_proofs << " | " << counts.above << " |");
    CAPTURE(name, counts.tried, counts.binding, counts.possible, counts.optimal, counts.proven,
            counts.refused, counts.relaxed, counts.which);
    CHECK(counts.false_proofs == 0);
    CHECK(counts.above == 0);
    CHECK(counts.invalid == 0);
    CHECK(counts.relaxed == 0);
    // Some plans need a deeper nesting, or tasks that restart at the same time.
    CHECK(counts.refused <= (counts.possible + 999) / 1000);
}

TEST_CASE("means that are added prevent no admission, however few steps the search has") {
    int refused = 0, prevented = 0;
    std::string which;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(2000); ++seed) {
        auto c = random_case(seed, Feature::all);
        if (pods_of(c.spec).empty()) continue;
        c.options.search.search_limit = 1 + static_cast<std::int64_t>(seed % 20);
        if (admit(c).admitted) continue;
        ++refused;
        const auto less = restricted(c);
        if (std::none_of(less.begin(), less.end(), [](const Case& x) { return admit(x).admitted; })) continue;
        ++prevented;
        which += " " + std::to_string(seed);
    }
    CAPTURE(refused, prevented, which);
    CHECK(refused > testing_support::instances(500));
    CHECK(prevented == 0);
}

/// The cost of the plan, recounted, and the limits of the options.
std::int64_t counted_cost(const ClusterSpec& spec, const admission::Options& options, const Plan& plan) {
    const auto size = [&](TaskId task) {
        const auto& t = spec.tasks[index(task)];
        return t.gpu_count > 0 ? 1000 * t.gpu_count : std::max<std::int64_t>(100, t.cpu_milli / 16);
    };
    std::int64_t cost = 0;
    for (const auto& move : plan.moves)
        cost += size(move.task) * options.prices.move_price_s * spec.tasks[index(move.task)].move_cost +
                1000 * options.prices.task_price_s;
    for (const auto& gone : plan.evictions) {
        const auto& t = spec.tasks[index(gone)];
        const bool again = std::any_of(plan.placements.begin(), plan.placements.end(),
                                       [&](const auto& p) { return p.task == gone; });
        cost += size(gone) * ((options.prices.work ? std::max<std::int64_t>(0, spec.now - t.start_time) : 0) +
                              (again ? options.prices.restart_s : options.prices.loss_s)) +
                1000 * options.prices.task_price_s;
    }
    return cost;
}

TEST_CASE("60,000 tiny clusters with limits, subgroups and budgets: no better way, and none where none is "
          "said to be") {
    int disturbed = 0, refused = 0, cheaper = 0, missed = 0, missed_opening = 0, proven = 0, limited = 0,
        with_subgroups = 0;
    std::string which;
    const auto cases = testing_support::instances<std::uint64_t>(60'000);
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
        const auto c = random_limited_case(seed);
        INFO("seed " << seed);
        const auto cluster = Cluster::build(c.spec, IdOrder::as_listed);
        const auto pods = pods_of(c.spec);
        const auto made = admission::admit(cluster, pods, c.options);
        if (find_waiting(cluster, pods)) {  // a gang with too few members
            REQUIRE_FALSE(made.admitted);
            continue;
        }
        const auto best = better_than(c, made);
        testing_support::require_valid(c.spec, cluster, made.plan);
        if (made.admitted) {
            REQUIRE(counted_cost(c.spec, c.options, made.plan) == made.cost.total());
            REQUIRE(std::ssize(made.plan.moves) <= c.options.max_moves.value_or(100));
            REQUIRE(std::ssize(made.plan.evictions) <= c.options.max_evictions.value_or(100));
            REQUIRE(made.cost.total() <= 1000 * c.options.max_cost_s.value_or(1'000'000'000));
        }
        if (best) {
            REQUIRE_FALSE(made.proven);
            REQUIRE(made.bound);
            REQUIRE(*made.bound <= best->cost);
        }
        disturbed += made.admitted && made.cost.total() > 0;
        refused += !made.admitted;
        proven += made.proven;
        limited += c.options.max_moves || c.options.max_evictions || c.options.max_cost_s;
        with_subgroups += std::any_of(c.spec.tasks.begin(), c.spec.tasks.end(),
                                      [](const TaskSpec& t) { return !t.subgroup.empty(); });
        cheaper += best && made.admitted;
        if (best && !made.admitted) {
            const bool only_by_opening =
                !testing_support::EveryAdmission(c.spec, c.options, false).cheapest_below(unlimited);
            ++(only_by_opening ? missed_opening : missed);
        }
        if (best) which += " " + std::to_string(seed);
    }
    CAPTURE(disturbed, refused, cheaper, missed, missed_opening, proven, limited, with_subgroups, which);
    CHECK(disturbed > testing_support::instances(2000));
    CHECK(refused > testing_support::instances(15'000));
    CHECK(limited > testing_support::instances(20'000));
    CHECK(with_subgroups > testing_support::instances(10'000));
    CHECK(proven > testing_support::instances(50'000));
    CHECK((cheaper + missed) * 100 <= disturbed);
    CHECK(missed_opening * 100 <= disturbed);  // possible only with moves onto empty nodes
}

}  // namespace optimum_tests
