// SPDX-License-Identifier: Apache-2.0
// Priority packing against brute force: all placements of pending (and movable) tasks, judged by rules written down here.
#include "support/solvers.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/milp.hpp>

using namespace gpusched;
using namespace gpusched::milp;

namespace priority_packing_tests {

struct Random {
    ClusterSpec spec;

    explicit Random(Rng& rng, bool fractions = false) {
        for (int n = 0, count = static_cast<int>(rng.between(1, 3)); n < count; ++n)
            spec.nodes.push_back({.name = "n" + std::to_string(n),
                                  .gpu_model = rng.chance(0.7) ? "A" : "B",
                                  .gpu_count = rng.between(1, 3),
                                  .cpu_milli = 1000 * rng.between(2, 8),
                                  .memory_mib = rng.between(3, 9),
                                  .schedulable = !rng.chance(0.1)});
        for (int t = 0, count = static_cast<int>(rng.between(2, 6)); t < count; ++t) {
            TaskSpec task{.name = "t" + std::to_string(t),
                          .cpu_milli = 1000 * rng.between(0, 3),
                          .memory_mib = rng.between(0, 3),
                          .gpu_count = rng.between(0, 2),
                          .priority = rng.between(0, 2)};
            if (fractions && rng.chance(0.8))
                task = {.name = task.name, .gpu_count = 1, .priority = task.priority};
            if (task.gpu_count == 1 && rng.chance(fractions ? 0.9 : 0.5))
                task.gpu_share_milli = 100 * rng.between(fractions ? 2 : 3, fractions ? 6 : 8);
            if (rng.chance(0.25)) task.gpu_models = {"A"};
            if (rng.chance(0.3)) task.anti_affinity = {{"g", node_level, 1}};
            // Half of the tasks run already, each on a node's first cards with room.
            const auto& node = spec.nodes[static_cast<std::size_t>(rng.below(spec.nodes.size()))];
            if (rng.chance(0.5)) {
                task.node = node.name;
                task.locked = rng.chance(0.2);
                const auto room = card_room(node, [](const TaskSpec&) { return true; });
                for (int g = 0; g < node.gpu_count; ++g)
                    if (static_cast<int>(task.gpus.size()) < task.gpu_count &&
                        room[static_cast<std::size_t>(g)] >= task.gpu_share_milli)
                        task.gpus.push_back(g);
            }
            spec.tasks.push_back(task);
            if (task.node && (static_cast<int>(task.gpus.size()) < task.gpu_count || !fits())) {
                spec.tasks.back().node.reset();
                spec.tasks.back().locked = false;
                spec.tasks.back().gpus.clear();
            }
        }
        original = spec;
    }
    ClusterSpec original;

    /// What the running tasks that count leave of each card, in thousandths.
    std::vector<std::int64_t> card_room(const NodeSpec& node,
                                        const std::function<bool(const TaskSpec&)>& counts) const {
        std::vector<std::int64_t> room(static_cast<std::size_t>(node.gpu_count), 1000);
        for (const auto& task : spec.tasks)
            if (task.node == node.name && counts(task))
                for (const int g : task.gpus) room[static_cast<std::size_t>(g)] -= task.gpu_share_milli;
        return room;
    }

    /// Can the cards of a node be shared out? Whole tasks that stay keep theirs.
    bool cards(const std::string& name, int gpus) const {
        std::vector<int> free(static_cast<std::size_t>(gpus), 1000);
        std::vector<int> whole;
        std::vector<int> fractions;
        for (std::size_t t = 0; t < spec.tasks.size(); ++t) {
            const auto& task = spec.tasks[t];
            if (task.node != name || task.gpu_count == 0) continue;
            const bool stays =
                !original.tasks.empty() && t < original.tasks.size() && original.tasks[t].node == name;
            if (stays || original.tasks.empty()) {
                for (const int g : task.gpus) {
                    if (g >= gpus || free[static_cast<std::size_t>(g)] < task.gpu_share_milli) return false;
                    free[static_cast<std::size_t>(g)] -= static_cast<int>(task.gpu_share_milli);
                }
            } else if (task.gpu_share_milli < 1000) {
                fractions.push_back(static_cast<int>(task.gpu_share_milli));
            } else {
                whole.push_back(static_cast<int>(task.gpu_count));
            }
        }
        int needed = 0;
        for (const int g : whole) needed += g;
        std::function<bool(std::size_t)> place = [&](std::size_t f) {
            if (f == fractions.size()) return std::count(free.begin(), free.end(), 1000) >= needed;
            for (auto& card : free) {
                if (card < fractions[f]) continue;
                card -= fractions[f];
                const bool ok = place(f + 1);
                card += fractions[f];
                if (ok) return true;
            }
            return false;
        };
        return place(0);
    }

    bool fits() const {
        for (const auto& node : spec.nodes) {
            std::int64_t cpu = 0, memory = 0;
            int group = 0;
            for (const auto& task : spec.tasks) {
                if (task.node != node.name) continue;
                cpu += task.cpu_milli;
                memory += task.memory_mib;
                group += task.anti_affinity.empty() ? 0 : 1;
                if (!task.gpu_models.empty() && node.gpu_model != "A") return false;
            }
            if (cpu > node.cpu_milli || memory > node.memory_mib || group > 1 ||
                !cards(node.name, static_cast<int>(node.gpu_count)))
                return false;
        }
        return true;
    }

    /// Fractions that run stay.
    static bool moves(const TaskSpec& task, bool allow_moves) {
        return allow_moves && !task.locked && task.gpu_share_milli == 1000;
    }

    /// How many are placed of each priority, highest first; the lexicographically largest.
    std::map<std::int64_t, int, std::greater<>> best(bool allow_moves) {
        std::map<std::int64_t, int, std::greater<>> found, now;
        bool any = false;
        std::function<void(std::size_t)> visit = [&](std::size_t t) {
            if (t == spec.tasks.size()) {
                if (!fits()) return;
                if (!any || std::lexicographical_compare(found.begin(), found.end(), now.begin(), now.end()))
                    found = now;
                any = true;
                return;
            }
            auto& task = spec.tasks[t];
            const bool pending = !original.tasks[t].node;
            if (pending) {
                now.try_emplace(task.priority, 0);
                visit(t + 1);
            }
            for (const auto& node : spec.nodes) {
                const bool home = original.tasks[t].node == node.name;
                if (!home && (!node.schedulable || (!pending && !moves(task, allow_moves)))) continue;
                task.node = node.name;
                now[task.priority] += pending ? 1 : 0;
                visit(t + 1);
                now[task.priority] -= pending ? 1 : 0;
            }
            task.node = original.tasks[t].node;
        };
        for (const auto& task : spec.tasks)
            if (!task.node) now[task.priority] = 0;
        visit(0);
        spec = original;
        return found;
    }
};

/// The size of a packing model as its documentation has it, from the snapshot alone.
struct Size {
    int columns = 0;
    std::map<std::string, int> rows{};

    Size(const Random& random, bool allow_moves, int above) {
        const auto& spec = random.spec;
        const auto stays = [&](const TaskSpec& t) { return t.node && !Random::moves(t, allow_moves); };
        rows = {{"place", 0}, {"gpu", 0},  {"cpu", 0},           {"memory", 0},
                {"card", 0},  {"hold", 0}, {"anti_affinity", 0}, {"above", above}};
        for (const auto& task : spec.tasks) rows["place"] += stays(task) ? 0 : 1;
        for (const auto& node : spec.nodes) {
            for (const char* name : {"gpu", "cpu", "memory"}) ++rows[name];
            auto cpu = node.cpu_milli, memory = node.memory_mib;
            for (const auto& task : spec.tasks)
                if (task.node == node.name && stays(task)) {
                    cpu -= task.cpu_milli;
                    memory -= task.memory_mib;
                }
            const auto room = random.card_room(node, stays);
            const auto untouched = std::count(room.begin(), room.end(), 1000);
            std::vector<bool> shared(room.size(), false);
            bool member = false;
            for (const auto& task : spec.tasks) {
                if (stays(task)) continue;
                const bool asks = node.schedulable && task.cpu_milli <= cpu && task.memory_mib <= memory &&
                                  (task.gpu_models.empty() || node.gpu_model == "A");
                int places = 0;
                if (task.gpu_share_milli == 1000) {
                    places = task.node == node.name || (asks && task.gpu_count <= untouched) ? 1 : 0;
                } else if (asks) {
                    for (std::size_t g = 0; g < room.size(); ++g)
                        if (room[g] >= task.gpu_share_milli) {
                            ++places;
                            shared[g] = true;
                        }
                }
                columns += places;
                member = member || (places > 0 && !task.anti_affinity.empty());
            }
            for (std::size_t g = 0; g < room.size(); ++g) {
                rows["card"] += shared[g];
                if (!shared[g] || room[g] < 1000) continue;
                ++columns;  // used
                for (const auto& task : spec.tasks)
                    rows["hold"] += task.node == node.name && !stays(task) &&
                                    std::count(task.gpus.begin(), task.gpus.end(), g) > 0;
            }
            rows["anti_affinity"] += member;
        }
    }
};

TEST_CASE("packing models of 300 random clusters have the documented size") {
    Rng rng(23);
    std::map<std::string, int> seen;
    for (int i = 0; i < 300; ++i) {
        const Random random(rng);
        const auto cluster = Cluster::build(random.spec);
        std::set<std::int64_t> above;
        for (const auto& task : random.spec.tasks)
            if (!task.node && task.priority > 0) above.insert(task.priority);
        for (const bool moves : {false, true}) {
            const std::vector<std::int64_t> placed(above.size(), 0);
            const auto m = packing_model(cluster, 0, placed, {.allow_moves = moves});
            const Size size(random, moves, static_cast<int>(placed.size()));
            CAPTURE(i, moves);
            CHECK(m.columns() == size.columns);
            CHECK(m.integer_columns() == size.columns);
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
    CHECK(seen["hold"] > 20);
    CHECK(seen["card"] > seen["hold"]);
    CHECK(seen["anti_affinity"] > 100);
    CHECK(seen["above"] > 100);
}

TEST_CASE("encoded placements are feasible exactly if they are legal, and decode to themselves") {
    Rng rng(29);
    int legal = 0, illegal = 0, refused = 0, fractions = 0;
    for (int i = 0; i < 400; ++i) {
        Random random(rng, i % 2 == 1);
        const auto cluster = Cluster::build(random.spec);
        for (const bool moves : {false, true}) {
            const auto m = packing_model(cluster, 1, {}, {.allow_moves = moves});
            std::vector<NodeId> placement;
            int counted = 0, shares = 0;
            for (const auto task : cluster.tasks()) {
                auto& spec = random.spec.tasks[index(task)];
                const bool pending = !spec.node;
                auto node = cluster.node_of(task);
                if (pending ? rng.chance(0.8) : Random::moves(spec, moves) && rng.chance(0.5))
                    node = make_id<NodeId>(static_cast<std::size_t>(rng.below(cluster.node_count())));
                placement.push_back(node);
                counted += pending && node != none<NodeId> && spec.priority == 1;
                shares += pending && node != none<NodeId> && spec.gpu_share_milli < 1000;
                if (node != none<NodeId>) spec.node = cluster.name(node);
            }
            bool cordoned = false;  // or of a node that receives nothing
            for (const auto task : cluster.tasks())
                cordoned = cordoned || (placement[index(task)] != cluster.node_of(task) &&
                                        !random.spec.nodes[index(placement[index(task)])].schedulable);
            const bool fits = random.fits() && !cordoned;
            random.spec = random.original;
            CAPTURE(i, moves);
            std::vector<double> x;
            try {
                x = m.encode(cluster, placement);
            } catch (const InvalidInput&) {
                CHECK_FALSE(fits);
                ++refused;
                continue;
            }
            CHECK(m.decode(cluster, x) == placement);
            const auto found = evaluate(m, x);
            CHECK(found.objective == counted);
            CHECK(found.fractionality == 0);
            CHECK(found.feasible() == fits);
            (fits ? legal : illegal) += 1;
            fractions += fits && shares > 1;
        }
    }
    CHECK(legal > 100);
    CHECK(illegal > 50);
    CHECK(refused > 50);
    CHECK(fractions > 30);
}

TEST_CASE("priority packings of 150 random clusters are lexicographically optimal") {
    if (testing_support::lacks_solver()) return;
    Rng rng(17);
    int moved = 0, waiting = 0;
    for (int i = 0; i < 150; ++i) {
        Random random(rng);
        const auto cluster = Cluster::build(random.spec);
        for (const bool moves : {false, true}) {
            CAPTURE(i, moves);
            const auto best = random.best(moves);
            const auto result = priority_packing(cluster, {.allow_moves = moves});
            CHECK(result.optimal);
            std::map<std::int64_t, int, std::greater<>> placed;
            for (const auto& step : result.steps) {
                placed[step.priority] = static_cast<int>(step.placed);
                CHECK(step.bound == step.placed);
                waiting += step.placed < step.pending;
            }
            for (const auto& [priority, count] : best)
                if (placed.count(priority) != 0) {
                    CAPTURE(priority);
                    CHECK(placed[priority] == count);
                } else {
                    CHECK(count == 0);
                }
            // What is returned is a placement by the rules above, and shows the counts.
            std::map<std::int64_t, int, std::greater<>> shown;
            for (const auto task : cluster.tasks()) {
                const auto node = result.placement[index(task)];
                auto& spec = random.spec.tasks[index(task)];
                if (node == none<NodeId>)
                    spec.node.reset();
                else
                    spec.node = cluster.name(node);
                if (!cluster.is_placed(task) && node != none<NodeId>) ++shown[spec.priority];
                if (!moves && cluster.is_placed(task)) CHECK(node == cluster.node_of(task));
            }
            CHECK(random.fits());
            std::vector<std::int64_t> above;
            for (const auto& step : result.steps) {
                const auto m = packing_model(cluster, step.priority, above, {.allow_moves = moves});
                const auto x = m.encode(cluster, result.placement);
                CHECK(evaluate(m, x).feasible());
                CHECK(evaluate(m, x).objective == step.placed);
                CHECK(m.decode(cluster, x) == result.placement);
                above.push_back(step.placed);
            }
            for (const auto& [priority, count] : placed) CHECK(shown[priority] == count);
            random.spec = random.original;
            moved += result.moves > 0;
        }
    }
    CHECK(moved > 5);
    CHECK(waiting > 30);
}

}  // namespace priority_packing_tests
