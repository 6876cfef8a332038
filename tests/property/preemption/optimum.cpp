// SPDX-License-Identifier: Apache-2.0
// Every policy and engine against all sets of victims of the whole cluster, judged by independent rules: random hardware graphs, whole
// GPUs and fractions, CPU, memory, local cores, Standby lenders, LP borrowers, priorities of any sign, gangs and disruption budgets.
#include "support/crowded_nodes.hpp"
#include "support/instances.hpp"
#include "support/policies.hpp"
#include "support/subgroups.hpp"

#include <gpusched/core/order.hpp>
#include <gpusched/preemption/preemption.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::instances;
using testing_support::no_place;
using testing_support::place_after;

namespace {

/// A crowded cluster.
ClusterSpec random_free_spec(Rng& rng, bool cpu_local) {
    return testing_support::random_spec(rng, static_cast<int>(rng.between(1, 3)), 9, cpu_local);
}

/// A crowded cluster whose tasks are in jobs and budgets.
ClusterSpec random_bound_spec(Rng& rng) {
    auto spec = random_free_spec(rng, false);
    const auto jobs = rng.below(3), budgets = rng.below(4);
    for (std::uint64_t j = 0; j < jobs; ++j)
        spec.jobs.push_back({.name = "j" + std::to_string(j), .min_members = rng.between(0, 3)});
    for (std::uint64_t b = 0; b < budgets; ++b) {
        BudgetSpec budget{
            .name = "b" + std::to_string(b), .allowed_down = rng.between(0, 2), .broken = rng.chance(0.05)};
        if (rng.chance(0.4)) budget.groups = {"g" + std::to_string(rng.below(2))};
        for (const auto& task : spec.tasks)
            if (rng.chance(0.3)) budget.tasks.push_back(task.name);
        spec.budgets.push_back(budget);
    }
    for (auto& task : spec.tasks) {
        if (jobs > 0 && rng.chance(task.name == "preemptor" ? 0.3 : 0.6))
            task.job = "j" + std::to_string(rng.below(jobs));
        if (rng.chance(0.3)) task.groups = {"g" + std::to_string(rng.below(2))};
        if (rng.chance(0.4)) task.priority = rng.between(-50, 1);
        if (task.name != "preemptor" && rng.chance(0.5)) task.preemptible = true;
    }
    testing_support::add_subgroups(rng, spec);
    return spec;
}

bool in_budget(const BudgetSpec& budget, const TaskSpec& task) {
    return std::count(budget.tasks.begin(), budget.tasks.end(), task.name) > 0 ||
           std::any_of(budget.groups.begin(), budget.groups.end(), [&](const std::string& group) {
               return std::count(task.groups.begin(), task.groups.end(), group) > 0;
           });
}

/// Tasks down beyond what each budget allows, by name.
std::map<std::string, std::int64_t> beyond_budgets(const ClusterSpec& spec,
                                                   const std::vector<TaskId>& victims) {
    std::map<std::string, std::int64_t> out;
    for (const auto& budget : spec.budgets) {
        std::int64_t down = 0;
        for (const auto victim : victims) down += in_budget(budget, spec.tasks[index(victim)]);
        const auto over = down - (budget.broken ? 0 : budget.allowed_down);
        if (down > 0 && over > 0) out[budget.name] = over;
    }
    return out;
}

std::int64_t total(const std::map<std::string, std::int64_t>& over) {
    std::int64_t sum = 0;
    for (const auto& [name, more] : over) sum += more;
    return sum;
}

/// Of each job with victims: whole, or only tasks of the node that leave a gang behind.
bool keeps_gangs(const ClusterSpec& spec, const Cluster& cluster, const std::vector<TaskId>& victims,
                 const std::string& own_job, const std::set<NodeId>& nodes) {
    std::map<std::string, std::vector<TaskId>> of_job;
    for (const auto victim : victims) {
        const auto& job = spec.tasks[index(victim)].job;
        if (job.empty()) {
            if (!nodes.contains(cluster.node_of(victim))) return false;
        } else {
            of_job[job].push_back(victim);
        }
    }
    for (const auto& [job, leaving] : of_job) {
        std::size_t running = 0;
        for (const auto& t : spec.tasks) running += t.job == job && t.node;
        std::vector<std::size_t> here;
        for (const auto victim : leaving)
            if (nodes.contains(cluster.node_of(victim))) here.push_back(index(victim));
        if (running < 2                                      ? here.empty()
            : testing_support::stays_a_gang(spec, job, here) ? here.size() < leaving.size()
                                                             : leaving.size() < running || job == own_job)
            return false;
    }
    return true;
}

struct Option {
    NodeId node;
    std::vector<TaskId> victims{};
    int place = 0;
    std::int64_t over = 0;
    double score = 0;
    std::int64_t count = 0, max_priority = INT64_MIN, cost = 0;
    std::vector<std::string> names{};
};

bool may_leave(const ClusterSpec& spec, TaskId task, const TaskSpec& p, bool spot) {
    const auto& v = spec.tasks[index(task)];
    if (!v.node || !v.preemptible.value_or(false) || v.locked || v.standby || v.daemon) return false;
    return spot ? v.priority_class == PriorityClass::lp : v.priority < p.priority;
}

/// Every set of victims that gangs allow and that makes room, with how far it goes beyond budgets; and the nodes on which the
/// preemptor fits without.
std::pair<std::vector<Option>, std::set<NodeId>> enumerate(const ClusterSpec& spec, const Cluster& cluster,
                                                           TaskId task, bool spot, ScoreForm form) {
    const auto& p = spec.tasks[index(task)];
    const double topology[] = {1, 0.5, 0};
    std::vector<TaskId> open;
    for (const auto t : cluster.tasks())
        if (may_leave(spec, t, p, spot)) open.push_back(t);
    std::vector<Option> options;
    std::set<NodeId> fitting;
    for (const auto node : cluster.nodes()) {
        if (place_after(spec, cluster, {}, task, node) != no_place) {
            fitting.insert(node);
            continue;
        }
        for (unsigned set = 1; set < (1u << open.size()); ++set) {
            Option o{.node = node};
            for (std::size_t i = 0; i < open.size(); ++i)
                if ((set >> i & 1) != 0) o.victims.push_back(open[i]);
            if (!keeps_gangs(spec, cluster, o.victims, p.job, {node})) continue;
            o.place = place_after(spec, cluster, o.victims, task, node);
            if (o.place == no_place) continue;
            std::int64_t sum = 0;
            long double weights = 0;
            for (const auto victim : o.victims) {
                const auto& v = spec.tasks[index(victim)];
                o.names.push_back(v.name);
                sum += v.priority;
                weights +=
                    v.priority >= 1
                        ? static_cast<long double>(v.priority)
                        : std::round(0x1p44L / (2.0L - static_cast<long double>(v.priority))) * 0x1p-44L;
                ++o.count;
                o.max_priority = std::max(o.max_priority, v.priority);
                o.cost += v.gpu_count * v.gpu_share_milli *
                          (spec.now - v.last_checkpoint_time.value_or(v.start_time));
            }
            std::sort(o.names.begin(), o.names.end(), comes_before);
            o.over = total(beyond_budgets(spec, o.victims));
            const auto t = p.hardware_affinity.empty() ? 0 : topology[o.place];
            const auto w = static_cast<double>(weights), s = static_cast<double>(sum);
            if (form == ScoreForm::paper)
                o.score = sum >= 1 ? 0.5 / s + 0.5 * t : 0.5 * (2 - 1 / (1 - s)) + 0.5 * t;
            else
                o.score = (w >= 1 ? 0.5 / w : 0.5 * (2 - w)) + 0.5 * t;
            options.push_back(o);
        }
    }
    return {options, fitting};
}

std::optional<Option> best_of(const Cluster& c, std::vector<Option> options, Policy policy,
                              bool break_budgets) {
    if (!break_budgets) std::erase_if(options, [](const Option& o) { return o.over > 0; });
    if (policy == Policy::imp) {
        std::map<NodeId, std::pair<std::int64_t, std::int64_t>> least;
        for (const auto& o : options) {
            const std::pair key(o.over, o.count);
            auto& known = least.try_emplace(o.node, key).first->second;
            known = std::min(known, key);
        }
        std::erase_if(options, [&](const Option& o) { return std::pair(o.over, o.count) != least[o.node]; });
    }
    const auto key = [&](const Option& o) {
        const double first = policy == Policy::spot_exact ? static_cast<double>(o.cost) : -o.score;
        return std::tuple(o.over, first, o.count, o.max_priority, o.cost);
    };
    const auto is_better = [&](const Option& a, const Option& b) {
        if (key(a) != key(b)) return key(a) < key(b);
        if (a.node != b.node) return comes_before(c.name(a.node), c.name(b.node));
        return std::lexicographical_compare(a.names.begin(), a.names.end(), b.names.begin(), b.names.end(),
                                            comes_before);
    };
    std::optional<Option> best;
    for (const auto& o : options)
        if (!best || is_better(o, *best)) best = o;
    return best;
}

std::map<std::string, std::int64_t> named(const Cluster& cluster, const std::vector<BrokenBudget>& broken) {
    std::map<std::string, std::int64_t> out;
    for (const auto& b : broken) out[cluster.inventory().budget_names[b.budget]] = b.over;
    return out;
}

void check_plan(const ClusterSpec& spec, const Cluster& cluster, const Plan& plan,
                const std::map<std::string, std::int64_t>& broken) {
    const auto report = verify::plan(spec, to_spec(plan, cluster));
    INFO((report.violations.empty() ? "" : report.violations.front()));
    REQUIRE(broken == beyond_budgets(spec, plan.evictions));
    const auto arrives = [&](const auto& placement) { return spec.tasks[index(placement.task)].cpu_local; };
    if (std::ranges::any_of(plan.placements, arrives)) return;  // the checker does not count cores
    REQUIRE(report.ok == broken.empty());
    for (const auto& violation : report.violations) REQUIRE(violation.find("budgets: ") != std::string::npos);
}

}  // namespace

TEST_CASE("exact policies find the best of all victim sets, with and without gangs and budgets") {
    std::map<std::string, int> seen;
    const auto rounds = instances(18'000);
    for (int round = 0; round < rounds; ++round) {
        Rng rng(static_cast<std::uint64_t>(round) + 31);
        const bool free = round % 3 == 0;
        const auto spec = free ? random_free_spec(rng, round % 4 == 3) : random_bound_spec(rng);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto task = cluster.find_task("preemptor");
        const auto& p = spec.tasks[index(task)];
        const auto form = rng.chance(0.3) ? ScoreForm::paper : ScoreForm::weighted;
        const bool break_budgets = rng.chance(0.5);
        if (testing_support::is_incomplete(spec, p.job)) {
            CHECK(!preempt(cluster, task).decision);
            continue;
        }
        INFO("round " << round << " break_budgets " << break_budgets << " " << enum_name(form));
        for (const bool spot : {false, true}) {
            const auto [options, fitting] = enumerate(spec, cluster, task, spot, form);
            const bool fits = !fitting.empty();
            const bool nobody = spot && p.priority_class == PriorityClass::lp;
            std::vector<VictimPolicy> policies{Policy::imp, Policy::exhaustive, Policy::reprieve,
                                               Policy::first_fit, testing_support::Scattered{}};
            if (spot) policies = {Policy::spot_exact, Policy::spot};
            std::int64_t least_over = INT64_MAX;
            for (const auto& o : options) least_over = std::min(least_over, o.over);
            for (const auto& policy : policies)
                for (const auto engine : {Engine::masks, Engine::plain}) {
                    const bool exact =
                        policy == Policy::imp || policy == Policy::exhaustive || policy == Policy::spot_exact;
                    if (engine == Engine::plain && !exact) continue;
                    INFO(policy.name() << " " << enum_name(engine));
                    const auto result = preempt(
                        cluster, task,
                        {.policy = policy, .engine = engine, .score = form, .break_budgets = break_budgets});
                    REQUIRE(result.proven);
                    if (fits) {
                        REQUIRE(result.decision);
                        REQUIRE(result.decision->victims.empty());
                        REQUIRE(!result.decision->score);
                        ++seen["fits"];
                        continue;
                    }
                    const bool helps = !options.empty() && !nobody && (break_budgets || least_over == 0);
                    REQUIRE(result.decision.has_value() == helps);
                    if (!helps) {
                        ++seen[options.empty() ? "nothing" : "held by budgets"];
                        continue;
                    }
                    const auto& d = *result.decision;
                    const auto broken = named(cluster, d.broken_budgets);
                    REQUIRE(total(broken) == least_over);
                    check_plan(spec, cluster, to_plan(d, task), broken);
                    REQUIRE(keeps_gangs(spec, cluster, d.victims, p.job, {d.node}));
                    for (const auto victim : d.victims) REQUIRE(may_leave(spec, victim, p, spot));
                    REQUIRE(place_after(spec, cluster, d.victims, task, d.node) ==
                            static_cast<int>(d.topology));
                    const bool far = std::any_of(d.victims.begin(), d.victims.end(), [&](TaskId victim) {
                        return cluster.node_of(victim) != d.node;
                    });
                    if (p.gpu_count > 0) {
                        Cluster after(cluster);
                        for (const auto victim : d.victims) after.remove(victim);
                        REQUIRE(gpus_fit(after, task, d.node, d.gpus));
                    }
                    if (!spot && free) ++seen["evicts without gangs"];
                    seen["evicts elsewhere"] += far;
                    seen["breaks a budget"] += !broken.empty();
                    ++seen["evicts"];
                    if (exact) {
                        const auto best = best_of(cluster, options, *policy.named(), break_budgets);
                        REQUIRE(d.node == best->node);
                        REQUIRE(d.victims == best->victims);
                        REQUIRE(d.cost == best->cost);
                        if (!spot) REQUIRE(*d.score == best->score);
                    } else if (policy == Policy::spot) {
                        const auto cheapest = best_of(cluster, options, Policy::spot_exact, break_budgets);
                        REQUIRE((d.cost >= cheapest->cost || !broken.empty()));
                        seen["published prefix is dearer"] += d.cost > cheapest->cost;
                    } else if (policy == Policy::reprieve || !policy.named()) {
                        // No needless eviction: neither a victim without a job nor all of one job could stay.
                        for (const auto victim : d.victims) {
                            const auto& job = spec.tasks[index(victim)].job;
                            auto kept = d.victims;
                            std::erase_if(kept, [&](TaskId other) {
                                return job.empty() ? other == victim : spec.tasks[index(other)].job == job;
                            });
                            REQUIRE(place_after(spec, cluster, kept, task, d.node) == no_place);
                            ++seen["needed"];
                        }
                    }
                }
            if (spot) continue;
            for (const auto node : cluster.nodes()) {
                const auto found = minimal_victim_sets(cluster, task, node,
                                                       {.qos = std::nullopt, .break_budgets = break_budgets});
                std::pair<std::int64_t, std::int64_t> least{INT64_MAX, 0};
                for (const auto& o : options)
                    if (o.node == node && (break_budgets || o.over == 0))
                        least = std::min(least, {o.over, o.count});
                std::vector<std::vector<TaskId>> expected;
                for (const auto& o : options)
                    if (o.node == node && std::pair(o.over, o.count) == least) expected.push_back(o.victims);
                if (fitting.contains(node)) expected = {{}};
                std::sort(expected.begin(), expected.end());
                REQUIRE(found.proven);
                REQUIRE(found.sets == expected);
            }
            const auto why = explain(cluster, task);
            REQUIRE((why.obstacle == Obstacle::none) == (fits || (!options.empty() && least_over == 0)));
            if (!fits && !options.empty() && least_over > 0) {
                REQUIRE(why.obstacle == Obstacle::disruption_budget);
                REQUIRE(why.missing == least_over);
                ++seen["explained"];
            }
        }
    }
    std::string text;
    for (const auto& [name, count] : seen) text += name + " " + std::to_string(count) + "  ";
    CAPTURE(text);
    for (const char* kind : {"fits", "nothing", "held by budgets", "evicts elsewhere", "breaks a budget",
                             "evicts", "evicts without gangs", "explained"}) {
        INFO(kind);
        CHECK(seen[kind] >= instances(300));
    }
    CHECK(seen["published prefix is dearer"] > instances(20));
}

TEST_CASE("with many victims the bounded search finds the same sets as enumeration") {
    Rng rng(4);
    int many = 0;
    for (int round = 0; round < instances(600); ++round) {
        auto spec = testing_support::random_spec(rng, 1, 30, round % 4 == 3, 16);
        spec.tasks.back().gpu_count = spec.tasks.back().gpu_share_milli < 1000 ? 1 : rng.between(4, 8);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto task = cluster.find_task("preemptor");
        INFO("round " << round);
        for (const auto policy : {Policy::imp, Policy::exhaustive}) {
            const auto fast = preempt(cluster, task, {.policy = policy});
            const auto plain =
                preempt(cluster, task, {.policy = policy, .engine = Engine::plain, .search_limit = 1 << 22});
            REQUIRE(fast.proven);
            REQUIRE(plain.proven);
            REQUIRE(fast.decision == plain.decision);
            many += plain.stats.sets_checked > 2000 ? 1 : 0;
            if (!fast.decision) continue;
            const auto& d = *fast.decision;
            check_plan(spec, cluster, to_plan(d, task), {});
            REQUIRE(place_after(spec, cluster, d.victims, task, d.node) == static_cast<int>(d.topology));
        }
    }
    CHECK(many > instances(100));
}

TEST_CASE("gangs of preemptors keep budgets and whole gangs, and victims that fit elsewhere run again") {
    std::map<std::string, int> seen;
    const auto rounds = instances(12'000);
    for (int round = 0; round < rounds; ++round) {
        Rng rng(static_cast<std::uint64_t>(round) + 70'000);
        auto spec = random_bound_spec(rng);
        // More room elsewhere, sometimes.
        if (rng.chance(0.5)) {
            NodeSpec spare{.name = "spare", .gpu_model = "B", .gpu_count = 4, .cpu_milli = 6000};
            spare.memory_mib = 20;
            spec.nodes.push_back(spare);
        }
        auto second = spec.tasks.back();
        for (auto* pod : {&spec.tasks.back(), &second}) pod->gpu_models = {"A"};
        second.name = "second";
        spec.tasks.push_back(second);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const std::vector<TaskId> pods{cluster.find_task("preemptor"), cluster.find_task("second")};
        const auto policy = std::array{Policy::imp,  Policy::exhaustive, Policy::spot_exact,
                                       Policy::spot, Policy::reprieve,   Policy::first_fit}[rng.below(6)];
        const Options options{
            .policy = policy, .break_budgets = rng.chance(0.4), .replace_victims = rng.chance(0.7)};
        INFO("round " << round << " " << enum_name(policy));
        const auto check = [&](const std::vector<TaskId>& asked, const Plan& plan,
                               const std::vector<TaskId>& victims, const std::vector<Placement>& replaced,
                               const std::vector<BrokenBudget>& broken) {
            check_plan(spec, cluster, plan, named(cluster, broken));
            if (!options.break_budgets) REQUIRE(broken.empty());
            if (!options.replace_victims) REQUIRE(replaced.empty());
            std::set<NodeId> nodes;
            for (std::size_t i = 0; i < asked.size(); ++i) nodes.insert(plan.placements[i].node);
            REQUIRE(keeps_gangs(spec, cluster, victims, spec.tasks[index(asked[0])].job, nodes));
            if (!options.replace_victims) return;
            Cluster after(cluster);
            for (const auto victim : victims) after.remove(victim);
            for (const auto& placement : plan.placements)
                after.assign(placement.task, placement.node, placement.gpus);
            std::map<std::string, std::int64_t> again, gone;
            for (const auto& placement : replaced) {
                REQUIRE(std::count(victims.begin(), victims.end(), placement.task) == 1);
                ++again[spec.tasks[index(placement.task)].job];
            }
            for (const auto victim : victims) {
                const auto& t = spec.tasks[index(victim)];
                if (!t.job.empty()) ++gone[t.job];
                // What does not run again fits nowhere, unless its gang cannot run again.
                if (after.is_placed(victim) || !t.job.empty()) continue;
                for (const auto node : cluster.nodes())
                    REQUIRE(find_obstacle(after, victim, node) != Obstacle::none);
                ++seen["finds no place again"];
            }
            for (const auto& [job, count] : gone) {
                std::int64_t running = 0, needed = 0;
                for (const auto& t : spec.tasks) running += t.job == job && t.node;
                for (const auto& j : spec.jobs)
                    if (j.name == job) needed = j.min_members;
                if (count == running && again[job] > 0)
                    REQUIRE(again[job] >= (needed == 0 ? count : std::min(needed, count)));
            }
            seen["runs again"] += !replaced.empty();
        };
        const auto one = preempt(cluster, pods[0], options);
        if (one.decision) {
            const auto& d = *one.decision;
            check({pods[0]}, to_plan(d, pods[0]), d.victims, d.replaced, d.broken_budgets);
            auto without = options;
            without.replace_victims = false;
            auto same = *preempt(cluster, pods[0], without).decision;
            same.replaced = d.replaced;
            same.vacated_nodes = d.vacated_nodes;
            REQUIRE(same == d);
            ++seen["one"];
        }
        const auto gang = preempt_gang(cluster, pods, options);
        if (!gang.decision) continue;
        const auto& d = *gang.decision;
        check(pods, to_plan(d, pods), d.victims, d.replaced, d.broken_budgets);
        std::int64_t cost = 0;
        for (const auto victim : d.victims) cost += lost_work(cluster, victim, spec.now);
        REQUIRE(d.cost == cost);
        seen["gang evicts"] += !d.victims.empty();
        seen["gang breaks a budget"] += !d.broken_budgets.empty();
    }
    std::string text;
    for (const auto& [name, count] : seen) text += name + " " + std::to_string(count) + "  ";
    CAPTURE(text);
    for (const char* kind :
         {"one", "gang evicts", "gang breaks a budget", "runs again", "finds no place again"}) {
        INFO(kind);
        CHECK(seen[kind] >= instances(120));
    }
}
