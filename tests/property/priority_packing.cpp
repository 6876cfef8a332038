// Priority packing against brute force: all placements of pending (and movable) tasks, judged by rules written down here.
#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/priority_packing.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

using namespace gpusched;
using namespace gpusched::milp;

namespace {

struct Random {
    ClusterSpec spec;

    explicit Random(Rng& rng) {
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
            if (task.gpu_count == 1 && rng.chance(0.5)) task.gpu_share_milli = 100 * rng.between(3, 8);
            if (rng.chance(0.25)) task.gpu_models = {"A"};
            if (rng.chance(0.3)) task.anti_affinity = {{"g", node_level, 1}};
            // Half of the tasks run already, one whole task after the other on a node's first cards.
            const auto n = static_cast<std::size_t>(rng.below(spec.nodes.size()));
            if (rng.chance(0.5) && task.gpu_share_milli == 1000) {
                task.node = spec.nodes[n].name;
                task.locked = rng.chance(0.2);
                int next = 0;
                for (const auto& other : spec.tasks)
                    if (other.node == task.node) next += static_cast<int>(other.gpu_count);
                for (int g = 0; g < task.gpu_count; ++g) task.gpus.push_back(next + g);
                spec.tasks.push_back(task);
                if (!fits()) {
                    spec.tasks.back().node.reset();
                    spec.tasks.back().locked = false;
                    spec.tasks.back().gpus.clear();
                }
            } else {
                spec.tasks.push_back(task);
            }
        }
        original = spec;
    }
    ClusterSpec original;

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
            if (task.gpu_share_milli < 1000) {
                fractions.push_back(static_cast<int>(task.gpu_share_milli));
            } else if (stays || original.tasks.empty()) {
                for (const int g : task.gpus) {
                    if (g >= gpus || free[static_cast<std::size_t>(g)] == 0) return false;
                    free[static_cast<std::size_t>(g)] = 0;
                }
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
                if (!home && (!node.schedulable || (!pending && (!allow_moves || task.locked)))) continue;
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

}  // namespace

TEST_CASE("priority packings of 150 random clusters are lexicographically optimal") {
    if (available_solvers().empty()) {
        WARN("no solver: not checked");
        return;
    }
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
            for (const auto& [priority, count] : placed) CHECK(shown[priority] == count);
            random.spec = random.original;
            moved += result.moves > 0;
        }
    }
    CHECK(moved > 5);
    CHECK(waiting > 30);
}
