// SPDX-License-Identifier: Apache-2.0
// What-if on tiny clusters: jobs come in the order of the queue; those that start have valid places, and
// for those that do not start a search through all places finds none.
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>

using namespace gpusched;
using testing_support::instances;
namespace con = gpusched::consolidation;

namespace {

/// The jobs of a snapshot that wait, by a plain sort of the data.
struct Waiting {
    std::string name;
    std::vector<std::size_t> pods;
    std::int64_t priority = INT64_MIN, created = INT64_MAX;
    std::int64_t needed = 0;  ///< -1: too few pods
    bool subgroups = false, one_by_one = false;
};
std::vector<Waiting> waiting_jobs(const ClusterSpec& spec) {
    std::map<std::pair<bool, std::string>, Waiting> jobs;
    std::map<std::string, std::int64_t> running;
    for (std::size_t t = 0; t < spec.tasks.size(); ++t) {
        const auto& task = spec.tasks[t];
        if (task.node) ++running[task.job];
        if (task.node || task.daemon) continue;
        auto& job = jobs[{!task.job.empty(), task.job.empty() ? task.name : task.job}];
        job.name = task.job.empty() ? task.name : task.job;
        job.pods.push_back(t);
        job.priority = std::max(job.priority, task.priority);
        job.created = std::min(job.created, task.start_time);
    }
    std::vector<Waiting> list;
    for (auto& [key, job] : jobs) {
        job.needed = std::ssize(job.pods);
        for (const auto& known : spec.jobs)
            if (key.first && known.name == job.name) {
                job.subgroups = !known.subgroups.empty();
                job.one_by_one = known.min_members == 1;
                if (known.min_members > 1) {
                    const auto lacks = std::max<std::int64_t>(1, known.min_members - running[job.name]);
                    job.needed = lacks > std::ssize(job.pods) ? -1 : lacks;
                }
            }
        list.push_back(job);
    }
    std::sort(list.begin(), list.end(), [](const Waiting& a, const Waiting& b) {
        return std::tuple(-a.priority, a.created, a.name) < std::tuple(-b.priority, b.created, b.name);
    });
    return list;
}

/// Whether at least `needed` of the pods from the `next`-th on find a place, by trying every place of each.
bool fits(const reference::State& state, const std::vector<std::size_t>& pods, std::size_t next,
          std::int64_t needed, int& steps) {
    if (needed <= 0) return true;
    if (std::ssize(pods) - static_cast<std::int64_t>(next) < needed || ++steps > 20'000) return false;
    for (std::size_t node = 0; node < state.spec->nodes.size(); ++node) {
        if (reference::obstacle(state, pods[next], node) != "none") continue;
        for (auto& gpus : reference::gpu_sets(state, pods[next], node)) {
            auto after = state;
            after.copies.push_back({pods[next], node, std::move(gpus)});
            if (fits(after, pods, next + 1, needed - 1, steps)) return true;
        }
    }
    return fits(state, pods, next + 1, needed, steps);
}

}  // namespace

TEST_CASE("what-if starts what a search through all places starts") {
    int jobs = 0, starting = 0, refused = 0, missed = 0, alone = 0, alone_wrong = 0;
    std::string seeds;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(600); ++seed) {
        Rng rng(seed + 40);
        auto how = testing_support::tiny_cluster;
        how.pending = 0.4;
        how.max_tasks = 10;
        auto spec = testing_support::random_cluster(rng, how);
        for (auto& task : spec.tasks)
            if (!task.node) task.start_time = rng.between(0, 2), task.priority = rng.between(0, 2);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto found = con::what_if(cluster, {.consolidate = false, .threads = 1});
        REQUIRE(found.states.size() == 1);
        const auto expected = waiting_jobs(spec);
        INFO("seed " << seed);
        REQUIRE(found.jobs.size() == expected.size());
        std::map<std::string, PlanSpec::Placement> placements;
        for (const auto& placement : found.states[0].placements) placements[placement.task] = placement;
        REQUIRE(placements.size() == found.states[0].placements.size());
        const auto start = reference::initial(spec);
        auto state = start;
        for (std::size_t j = 0; j < expected.size(); ++j) {
            const auto& job = expected[j];
            REQUIRE(found.jobs[j].name == job.name);
            REQUIRE(found.jobs[j].pods == std::ssize(job.pods));
            const auto& outcome = found.jobs[j].outcomes.at(0);
            ++jobs;
            int steps = 0;
            if (!job.subgroups) {
                const bool possible = job.needed > 0 && fits(start, job.pods, 0, job.needed, steps);
                if (steps <= 20'000) {
                    REQUIRE((possible || !outcome.alone));
                    alone_wrong += possible != outcome.alone ? 1 : 0;
                    alone += possible ? 1 : 0;
                }
            }
            std::int64_t placed = 0;
            for (const auto pod : job.pods) placed += placements.contains(spec.tasks[pod].name) ? 1 : 0;
            REQUIRE(placed == outcome.pods);
            if (!outcome.starts) {
                REQUIRE((placed == 0 || (job.one_by_one && placed < job.needed)));
                REQUIRE_FALSE(outcome.reason.empty());
                ++refused;
                steps = 0;
                if (job.needed > 0 && !job.subgroups && fits(state, job.pods, 0, job.needed, steps)) {
                    ++missed;
                    seeds += " " + std::to_string(seed);
                }
            } else {
                ++starting;
                REQUIRE(placed >= job.needed);
            }
            // Each next pod that fits is placed: members may have to come first.
            auto left = job.pods;
            std::erase_if(left, [&](std::size_t pod) { return !placements.contains(spec.tasks[pod].name); });
            while (!left.empty()) {
                const auto next = std::find_if(left.begin(), left.end(), [&](std::size_t pod) {
                    const auto& at = placements.at(spec.tasks[pod].name);
                    const auto node = reference::node_index(spec, at.node);
                    if (reference::obstacle(state, pod, node) != "none") return false;
                    const auto sets = reference::gpu_sets(state, pod, node);
                    return std::find(sets.begin(), sets.end(), at.gpus) != sets.end();
                });
                REQUIRE(next != left.end());
                const auto& at = placements.at(spec.tasks[*next].name);
                state.copies.push_back({*next, reference::node_index(spec, at.node), at.gpus});
                left.erase(next);
            }
        }
    }
    CAPTURE(jobs, starting, refused, missed, seeds, alone, alone_wrong);
    CHECK(jobs > instances(900));
    CHECK(starting > instances(300));
    CHECK(refused > instances(100));
    CHECK(missed * 100 <= refused);
    CHECK(alone_wrong * 100 <= jobs);
}
