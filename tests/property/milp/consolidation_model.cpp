// SPDX-License-Identifier: Apache-2.0
// Consolidation models against brute force over all placements, judged by rules written down here.
#include "support/instances.hpp"
#include "support/solvers.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/milp.hpp>

using namespace gpusched;
using namespace gpusched::milp;

namespace {

struct Random {
    ClusterSpec spec;
    std::vector<std::size_t> home;

    explicit Random(Rng& rng) {
        const auto nodes = rng.between(2, 4);
        for (int n = 0; n < nodes; ++n) {
            NodeSpec node{.name = "n" + std::to_string(n),
                          .gpu_model = rng.chance(0.7) ? "A" : "B",
                          .gpu_count = rng.between(2, 4),
                          .cpu_milli = 1000 * rng.between(4, 10),
                          .memory_mib = rng.between(4, 12),
                          .schedulable = !rng.chance(0.1)};
            spec.nodes.push_back(node);
        }
        for (int t = 0, count = static_cast<int>(rng.between(2, 6)); t < count; ++t) {
            TaskSpec task{.name = "t" + std::to_string(t)};
            task.gpu_count = rng.between(0, 2);
            task.cpu_milli = rng.chance(0.2) ? 0 : 1000 * rng.between(1, 4);
            task.memory_mib = rng.chance(0.5) ? 0 : rng.between(1, 5);
            task.locked = rng.chance(0.2);
            if (rng.chance(0.3)) task.gpu_models = {"A"};
            if (rng.chance(0.3)) task.anti_affinity = {{"g", node_level, 1}};
            if (rng.chance(0.2)) task.anti_affinity.push_back({"h", node_level, 2});
            // First node with space from a random one on; skipped if there is none.
            const auto start = rng.below(spec.nodes.size());
            for (std::size_t k = 0; k < spec.nodes.size(); ++k) {
                const auto n = (start + k) % spec.nodes.size();
                auto tasks = spec.tasks;
                tasks.push_back(task);
                auto places = home;
                places.push_back(n);
                if (!fits(tasks, places)) continue;
                int next = 0;
                for (std::size_t o = 0; o < home.size(); ++o)
                    if (home[o] == n) next += static_cast<int>(spec.tasks[o].gpu_count);
                for (int g = 0; g < task.gpu_count; ++g) task.gpus.push_back(next + g);
                task.node = spec.nodes[n].name;
                spec.tasks.push_back(task);
                home = places;
                break;
            }
        }
        // Sometimes a daemon on every node.
        base_ = spec.tasks.size();
        if (rng.chance(0.3))
            for (const auto& node : spec.nodes)
                spec.tasks.push_back({.name = "d" + node.name,
                                      .cpu_milli = 0,
                                      .memory_mib = 0,
                                      .daemon = true,
                                      .node = node.name});
    }

    bool fits(const std::vector<TaskSpec>& tasks, const std::vector<std::size_t>& place) const {
        for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
            std::int64_t gpus = 0, cpu = 0, memory = 0;
            std::map<std::string, int> members;
            std::map<std::string, int> limits;
            for (std::size_t t = 0; t < place.size(); ++t) {
                if (place[t] != n) continue;
                gpus += tasks[t].gpu_count;
                cpu += tasks[t].cpu_milli;
                memory += tasks[t].memory_mib;
                if (!tasks[t].gpu_models.empty() && spec.nodes[n].gpu_model != "A") return false;
                for (const auto& a : tasks[t].anti_affinity) {
                    ++members[a.group];
                    limits[a.group] = a.limit;
                }
            }
            for (const auto& [group, count] : members)
                if (count > limits[group]) return false;
            if (gpus > spec.nodes[n].gpu_count || cpu > spec.nodes[n].cpu_milli ||
                memory > spec.nodes[n].memory_mib)
                return false;
        }
        return true;
    }

    /// The size of a consolidation model as its documentation has it, from the snapshot alone.
    struct Size {
        int columns = 0;
        std::map<std::string, int> rows{};
    };
    Size size(const ConsolidationOptions& options) const {
        const bool plain = options.form == ConsolidationForm::plain;
        const auto tasks = static_cast<int>(home.size());
        const auto movable = [&](std::size_t t) { return !spec.tasks[t].locked && !spec.tasks[t].standby; };
        std::vector<std::size_t> occupied;
        for (std::size_t n = 0; n < spec.nodes.size(); ++n)
            if (std::count(home.begin(), home.end(), n) > 0) occupied.push_back(n);
        const auto N = static_cast<int>(occupied.size());
        std::vector<std::vector<std::size_t>> classes;
        for (std::size_t t = 0; t < home.size(); ++t) {
            if (!plain && !movable(t)) continue;
            const auto alike = [&](const std::vector<std::size_t>& other) {
                const auto &a = spec.tasks[t], &b = spec.tasks[other.front()];
                const bool lp = a.priority_class == PriorityClass::lp;
                return a.gpu_count == b.gpu_count && a.cpu_milli == b.cpu_milli &&
                       a.memory_mib == b.memory_mib && a.gpu_models == b.gpu_models &&
                       a.anti_affinity == b.anti_affinity && lp == (b.priority_class == PriorityClass::lp);
            };
            const auto same = plain ? classes.end() : std::find_if(classes.begin(), classes.end(), alike);
            if (same == classes.end())
                classes.push_back({t});
            else
                same->push_back(t);
        }
        Size s{N, {{"assign", static_cast<int>(classes.size())}, {"gpu", N}, {"cpu", N}}};
        bool memory = false;
        for (int t = 0; t < tasks; ++t) {
            const auto& task = spec.tasks[static_cast<std::size_t>(t)];
            memory = memory || task.memory_mib > 0;
            s.rows["lock"] +=
                plain && options.locks == LockForm::rows && !movable(static_cast<std::size_t>(t));
        }
        s.rows["memory"] = options.memory && memory ? N : 0;
        s.rows["budget"] = options.max_moves ? 1 : 0;
        s.rows["bound"] = options.occupied_at_least ? 1 : 0;
        s.rows["vacated"] = options.vacated_gpus_at_least ? 1 : 0;
        for (const auto n : occupied) {
            const auto& node = spec.nodes[n];
            bool lends = false;
            for (std::size_t t = 0; t < home.size(); ++t)
                lends = lends || (home[t] == n && spec.tasks[t].standby);
            s.rows["gpu"] += lends;
            s.rows["cpu"] += lends;
            std::set<std::string> groups;
            for (const auto& members : classes) {
                const auto& task = spec.tasks[members.front()];
                bool here = false;
                for (const auto t : members) here = here || home[t] == n;
                const bool receives = node.schedulable && task.gpu_count <= node.gpu_count &&
                                      task.cpu_milli <= node.cpu_milli &&
                                      (!options.memory || task.memory_mib <= node.memory_mib) &&
                                      (task.gpu_models.empty() || node.gpu_model == "A");
                if (!here && !receives) continue;
                ++s.columns;
                s.rows["link"] += !plain || (task.gpu_count == 0 && task.cpu_milli == 0);
                for (const auto& a : task.anti_affinity) groups.insert(a.group);
                if (plain || !here || (options.goal == ConsolidationGoal::nodes && !options.max_moves))
                    continue;
                ++s.columns;
                ++s.rows["moved"];
            }
            s.rows["anti_affinity"] += static_cast<int>(groups.size());
        }
        return s;
    }

    /// Calls `seen(occupied nodes, GPUs of vacated nodes, moves)` for every placement.
    template <class Seen>
    void for_each_placement(Seen&& seen) const {
        std::vector<bool> used(spec.nodes.size(), false);
        for (const auto n : home) used[n] = true;
        std::vector<std::size_t> place = home;
        const std::vector<TaskSpec> tasks(spec.tasks.begin(),
                                          spec.tasks.begin() + static_cast<std::ptrdiff_t>(base_));
        std::function<void(std::size_t)> visit = [&](std::size_t t) {
            if (t == tasks.size()) {
                if (!fits(tasks, place)) return;
                std::vector<bool> now(spec.nodes.size(), false);
                int moves = 0;
                for (std::size_t i = 0; i < place.size(); ++i) {
                    now[place[i]] = true;
                    moves += place[i] != home[i];
                }
                int gpus = 0;
                for (std::size_t n = 0; n < now.size(); ++n)
                    gpus += used[n] && !now[n] ? static_cast<int>(spec.nodes[n].gpu_count) : 0;
                seen(static_cast<int>(std::count(now.begin(), now.end(), true)), gpus, moves);
                return;
            }
            for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
                if (n != home[t] && (tasks[t].locked || !used[n] || !spec.nodes[n].schedulable)) continue;
                place[t] = n;
                visit(t + 1);
            }
            place[t] = home[t];
        };
        visit(0);
    }

    /// The fewest nodes, and the fewest moves for those.
    std::pair<int, int> best() const {
        std::pair<int, int> found{1000, 1000};
        for_each_placement([&](int nodes, int, int moves) { found = std::min(found, {nodes, moves}); });
        return found;
    }

    /// The fewest moves by numbers of vacated GPUs: at [g] those for g or more.
    std::map<int, int> fewest_moves() const {
        std::map<int, int> found;
        for_each_placement([&](int, int gpus, int moves) {
            for (int g = 0; g <= gpus; ++g) {
                const auto [at, fresh] = found.try_emplace(g, moves);
                at->second = std::min(at->second, moves);
            }
        });
        return found;
    }

  private:
    std::size_t base_ = 0;
};

}  // namespace

TEST_CASE("consolidation models of 200 random clusters have the documented size") {
    Rng rng(19);
    std::map<std::string, int> seen;
    for (int i = 0; i < testing_support::instances(200); ++i) {
        Random random(rng);
        for (auto& task : random.spec.tasks) {
            if (task.daemon) continue;
            if (rng.chance(0.2))
                task.priority_class = rng.chance(0.5) ? PriorityClass::lp : PriorityClass::hp;
            task.standby = task.priority_class == PriorityClass::hp && rng.chance(0.7);
        }
        const auto cluster = Cluster::build(random.spec);
        for (const auto form : {ConsolidationForm::plain, ConsolidationForm::classes})
            for (const auto locks : {LockForm::bounds, LockForm::rows})
                for (const auto goal : {ConsolidationGoal::nodes_then_moves, ConsolidationGoal::nodes,
                                        ConsolidationGoal::moves}) {
                    ConsolidationOptions options{.form = form, .locks = locks, .goal = goal};
                    options.memory = rng.chance(0.5);
                    if (rng.chance(0.5)) options.max_moves = 2;
                    if (rng.chance(0.5)) options.occupied_at_least = 0;
                    if (rng.chance(0.5)) options.vacated_gpus_at_least = 0;
                    CAPTURE(i, enum_name(form), enum_name(locks), enum_name(goal), options.memory,
                            options.max_moves.has_value());
                    const auto m = consolidation(cluster, options);
                    const auto size = random.size(options);
                    CHECK(m.columns() == size.columns);
                    int rows = 0;
                    for (const auto& [group, count] : size.rows) {
                        CAPTURE(group);
                        CHECK(m.rows_in(group) == count);
                        rows += count;
                        seen[group] += count;
                    }
                    CHECK(m.rows() == rows);
                }
    }
    for (const char* group : {"assign", "gpu", "cpu", "memory", "lock", "anti_affinity", "budget", "bound",
                              "vacated", "link", "moved"}) {
        CAPTURE(group);
        CHECK(seen[group] > testing_support::instances(100));
    }
}

TEST_CASE("consolidation models of 200 random clusters equal brute force, in both forms") {
    if (testing_support::lacks_solver()) return;
    Rng rng(11);
    int vacated = 0;
    for (int i = 0; i < testing_support::instances(200); ++i) {
        const Random random(rng);
        const auto cluster = Cluster::build(random.spec);
        const auto [nodes, moves] = random.best();
        int occupied = 0;
        for (const auto node : cluster.nodes()) occupied += cluster.occupants(node) > 0;
        vacated += nodes < occupied;
        for (const auto form : {ConsolidationForm::plain, ConsolidationForm::classes})
            for (const auto locks : {LockForm::bounds, LockForm::rows}) {
                CAPTURE(i, enum_name(form), enum_name(locks));
                const auto m = consolidation(cluster, {.form = form, .locks = locks});
                const auto s = solve(m);
                REQUIRE(s.status == Status::optimal);
                const auto placement = m.decode(s.x);
                CHECK(m.occupied(placement) == nodes);
                CHECK(m.moves(placement) == moves);
                const double n = static_cast<double>(random.home.size());
                CHECK(s.objective == Catch::Approx(nodes + moves / (n + 1)).margin(1e-6));
                const auto x = m.encode(placement);
                CHECK(evaluate(m, x).feasible(1e-9));
                CHECK(evaluate(m, x).objective == Catch::Approx(s.objective).margin(1e-6));
                // Now, as it is, is a solution too.
                CHECK(evaluate(m, m.encode(m.home)).feasible(1e-9));
                // A budget of one move less gives more nodes or nothing better.
                if (moves == 0) continue;
                const auto tight =
                    solve(consolidation(cluster, {.form = form, .locks = locks, .max_moves = moves - 1}));
                REQUIRE(tight.status == Status::optimal);
                CHECK(tight.objective > s.objective + 0.5 / (n + 1));
            }
    }
    CHECK(vacated > testing_support::instances(50));
}

TEST_CASE("fewest moves that vacate so many GPUs equal brute force, in both forms") {
    if (testing_support::lacks_solver()) return;
    Rng rng(12);
    int compared = 0, impossible = 0;
    for (int i = 0; i < 100; ++i) {
        const Random random(rng);
        const auto cluster = Cluster::build(random.spec);
        std::int64_t all = 0;
        for (const auto node : cluster.nodes())
            if (cluster.occupants(node) > 0) all += cluster.gpu_count(node);
        const auto fewest = random.fewest_moves();
        for (const auto form : {ConsolidationForm::plain, ConsolidationForm::classes})
            for (std::int64_t gpus = 0; gpus <= all; gpus += 2) {
                CAPTURE(i, enum_name(form), gpus);
                const auto m = consolidation(
                    cluster, {.form = form, .goal = ConsolidationGoal::moves, .vacated_gpus_at_least = gpus});
                const auto s = solve(m);
                if (!fewest.contains(static_cast<int>(gpus))) {
                    CHECK(s.status == Status::infeasible);
                    ++impossible;
                    continue;
                }
                REQUIRE(s.status == Status::optimal);
                CHECK(s.objective == Catch::Approx(fewest.at(static_cast<int>(gpus))).margin(1e-6));
                CHECK(m.moves(m.decode(s.x)) == fewest.at(static_cast<int>(gpus)));
                compared += gpus > 0;
            }
        CHECK_THROWS_AS(consolidation(cluster, {.vacated_gpus_at_least = all + 1}), InvalidInput);
    }
    CHECK(compared > 50);
    CHECK(impossible > 50);
}
