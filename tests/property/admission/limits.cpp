// SPDX-License-Identifier: Apache-2.0
// admit under limits against every way of admission: subgroups, budgets, priorities of any sign, tasks that restart, exempt nodes, spared
// tasks, and limits on moves, evictions and cost.
#include "support/every_admission.hpp"
#include "support/instances.hpp"
#include "support/plans.hpp"

#include <gpusched/admission/admission.hpp>

using namespace gpusched;

namespace limits_tests {

struct Case {
    ClusterSpec spec;
    admission::Options options;
};

Case random_case(std::uint64_t seed) {
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
        const auto c = random_case(seed);
        INFO("seed " << seed);
        const auto cluster = Cluster::build(c.spec, IdOrder::as_listed);
        std::vector<TaskId> pods;
        for (std::size_t t = 0; t < c.spec.tasks.size(); ++t)
            if (!c.spec.tasks[t].node) pods.push_back(make_id<TaskId>(t));
        const auto made = admission::admit(cluster, pods, c.options);
        if (find_waiting(cluster, pods)) {  // a gang with too few members
            REQUIRE_FALSE(made.admitted);
            continue;
        }
        const auto limit = made.admitted ? made.cost.total() : INT64_MAX / 4;
        const bool opens = !made.admitted || !made.plan.opened_nodes.empty();
        const auto best = testing_support::EveryAdmission(c.spec, c.options, opens).cheapest_below(limit);
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
                !testing_support::EveryAdmission(c.spec, c.options, false).cheapest_below(limit);
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

}  // namespace limits_tests
