// SPDX-License-Identifier: Apache-2.0
// Joint allocation over switches against brute force: all counts of pods of all jobs on all switches.
#include "support/solvers.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/milp.hpp>

using namespace gpusched;
using namespace gpusched::milp;

namespace {

/// (most jobs placed, least weighed entropy), all jobs of one shape.
std::pair<int, double> brute_force(const JointProblem& p) {
    auto room = p.shapes.front().slots;
    double all = 0;
    for (const auto& job : p.jobs) all += job.pods;
    std::pair<int, double> best{0, 0};  // jobs placed, minus entropy
    std::function<void(std::size_t, int, double)> job = [&](std::size_t j, int placed, double entropy) {
        if (j == p.jobs.size()) {
            best = std::max(best, {placed, -entropy});
            return;
        }
        job(j + 1, placed, entropy);
        std::vector<int> pods(room.size(), 0);
        std::function<void(std::size_t, int)> spread = [&](std::size_t s, int left) {
            if (s == room.size()) {
                if (left > 0) return;
                const auto used = std::count_if(pods.begin(), pods.end(), [](int n) { return n > 0; });
                if (p.jobs[j].mode == NetworkMode::required && used > 1) return;
                double h = 0;
                for (const int n : pods)
                    if (n > 0)
                        h += static_cast<double>(n) / p.jobs[j].pods *
                             std::log(static_cast<double>(p.jobs[j].pods) / n);
                job(j + 1, placed + 1, entropy + p.jobs[j].pods / all * h);
                return;
            }
            for (int n = 0; n <= std::min(left, room[s]); ++n) {
                pods[s] = n;
                room[s] -= n;
                spread(s + 1, left - n);
                room[s] += n;
            }
            pods[s] = 0;
        };
        spread(0, p.jobs[j].pods);
    };
    job(0, 0, 0);
    return {best.first, -best.second};
}

}  // namespace

TEST_CASE("joint allocations of 150 random problems equal brute force") {
    if (testing_support::lacks_solver()) return;
    Rng rng(3);
    int partly = 0;
    for (int i = 0; i < 150; ++i) {
        JointProblem p;
        PodShape shape{.gpu_milli = 1000 * rng.between(1, 3)};
        for (int s = 0, count = static_cast<int>(rng.between(1, 3)); s < count; ++s) {
            p.switches.push_back("s" + std::to_string(s));
            shape.slots.push_back(static_cast<int>(rng.between(0, 8)));
        }
        p.shapes = {shape};
        for (int j = 0, count = static_cast<int>(rng.between(1, 3)); j < count; ++j)
            p.jobs.push_back({"j" + std::to_string(j), static_cast<int>(rng.between(1, 6))});
        const auto [placed, entropy] = brute_force(p);
        partly += placed < static_cast<int>(p.jobs.size());
        CAPTURE(i, placed, entropy);
        const auto m = joint_allocation(p);
        const auto s = solve(m);
        REQUIRE(s.status == Status::optimal);
        CHECK(s.objective == Catch::Approx(entropy - m.placed_worth * placed).margin(1e-6));
        const auto allocation = m.decode(s.x);
        CHECK(evaluate(m, m.encode(allocation)).feasible(1e-9));
        double all = 0, sum = 0;
        for (const auto& job : p.jobs) all += job.pods;
        for (std::size_t j = 0; j < p.jobs.size(); ++j)
            sum += p.jobs[j].pods / all * spread_entropy(allocation[j]);
        CHECK(sum == Catch::Approx(entropy).margin(1e-6));
        // The documented size.
        int columns = static_cast<int>(p.jobs.size()), count = 0;
        for (const auto& job : p.jobs)
            for (const int slots : shape.slots) {
                if (slots > 0) columns += std::min(job.pods, slots) + 1;
                count += slots > 0;
            }
        CHECK(m.columns() == columns);
        CHECK(m.rows() == count + static_cast<int>(p.jobs.size() + p.switches.size()));
    }
    CHECK(partly > 30);
    CHECK(partly < 130);
}

TEST_CASE("largest job first is not jointly optimal") {
    if (available_solvers().empty()) return;
    const JointProblem p{{{"a", 4}, {"b", 3}}, {"s", "t"}, {{.slots = {1, 6}}}};
    const auto m = joint_allocation(p);
    const auto s = solve(m);
    // Job a in one piece; b as 1 + 2. The paper's normalisation divides by nothing else: 3/7 of 0.6365.
    CHECK(s.objective + 2 * m.placed_worth < 4.0 / 7 * spread_entropy({1, 3}));
    CHECK(m.decode(s.x)[0] == std::vector<int>{0, 4});
    REQUIRE_THROWS_MESSAGE(joint_allocation({{{"a", 0}}, {}, {{}}}), InvalidInput,
                           "job 'a': pods: 0; expected");
    REQUIRE_THROWS_MESSAGE(joint_allocation({{{"a", 1, 1}}, {}, {{}}}), InvalidInput,
                           "job 'a': shape: 1; expected");
    for (const auto& [shape, message] :
         {std::pair<PodShape, const char*>{{.slots = {-1}}, "shape 0: slots: -1; expected"},
          {{}, "shape 0: slots: 0 entries; expected 1, switch"},
          {{.gpu_milli = -1, .slots = {1}}, "shape 0: gpu_milli: -1; expected"},
          {{.slots = {1}, .in_place = {1, 0}}, "shape 0: in_place: 2 entries; expected 1, shape"}})
        REQUIRE_THROWS_MESSAGE(joint_allocation({{{"a", 1}}, {"s"}, {shape}}), InvalidInput, message);
    REQUIRE_THROWS_MESSAGE(m.encode({{4, 0}, {0, 3}}), InvalidInput, "pods: 4; expected slots");
}

namespace {

/// Nodes of two switches, and one pending sample per job.
struct Sampled {
    Cluster cluster{};
    std::vector<JobOfSample> jobs{};
};

struct Wanted {
    std::string name{};
    int pods = 1;
    TaskSpec pod{};
    NetworkMode mode = NetworkMode::preferred;
};

Sampled sampled(ClusterSpec spec, const std::vector<Wanted>& jobs) {
    for (const auto& job : jobs) {
        spec.tasks.push_back(job.pod);
        spec.tasks.back().name = job.name;
    }
    Sampled made{Cluster::build(spec), {}};
    for (const auto& job : jobs)
        made.jobs.push_back({job.name, made.cluster.find_task(job.name), job.pods, job.mode});
    return made;
}

/// The most jobs that nodes really host, by trying every node for every pod.
/// @param put (job, node, sign) puts a pod of the job on the node, or takes it back; does all still fit?
template <class Put>
int most_placed(const std::vector<Wanted>& wanted, std::size_t nodes, Put put) {
    int best = 0;
    const std::function<void(std::size_t, int, int)> next = [&](std::size_t j, int pods, int placed) {
        if (j == wanted.size()) {
            best = std::max(best, placed);
            return;
        }
        if (pods == wanted[j].pods) return next(j + 1, 0, placed + 1);
        if (pods == 0) next(j + 1, 0, placed);
        for (std::size_t n = 0; n < nodes; ++n) {
            if (put(j, n, 1)) next(j, pods + 1, placed);
            (void)put(j, n, -1);
        }
    };
    next(0, 0, 0);
    return best;
}

}  // namespace

TEST_CASE("the slots of a switch are the pods that its nodes can host") {
    ClusterSpec spec;
    for (int n = 0; n < 4; ++n)
        spec.nodes.push_back({.name = "n" + std::to_string(n),
                              .gpu_model = n < 2 ? "A" : "B",
                              .gpu_count = 8,
                              .cpu_milli = 40'000,
                              .memory_mib = 800,
                              .schedulable = n != 3,
                              .network = {"core", n < 2 ? "s0" : "s1"}});
    TaskSpec running{.name = "t", .cpu_milli = 20'000, .memory_mib = 100, .gpu_count = 3, .node = "n0"};
    running.gpus = {0, 1, 2};
    spec.tasks = {running};
    const TaskSpec one{.gpu_count = 1}, cores{.cpu_milli = 10'000, .gpu_count = 1},
        memory{.memory_mib = 200, .gpu_count = 1}, two{.gpu_count = 2};
    TaskSpec only_b = cores, half{.gpu_count = 1, .gpu_share_milli = 500};
    only_b.gpu_models = {"B"};
    const auto s = sampled(spec, {{"one", 2, one},
                                  {"cores", 2, cores},
                                  {"memory", 2, memory},
                                  {"two", 2, two},
                                  {"b", 2, only_b},
                                  {"half", 2, half},
                                  {"again", 3, one, NetworkMode::required}});
    const auto p = joint_problem(s.cluster, s.jobs);
    CHECK(p.switches == std::vector<std::string>{"s0", "s1"});
    REQUIRE(p.shapes.size() == 6);
    CHECK(p.jobs.back() == SwitchJob{"again", 3, 0, NetworkMode::required});
    const std::vector<std::vector<int>> slots{{13, 8}, {6, 4}, {7, 4}, {6, 4}, {0, 4}, {26, 16}};
    for (std::size_t k = 0; k < slots.size(); ++k) CHECK(p.shapes[k].slots == slots[k]);
    CHECK(p.shapes[5].gpu_milli == 500);
    // In the place of a pod: as many of the other shape as it leaves GPUs, cores and memory for, where both may run.
    CHECK(p.shapes[0].in_place == std::vector<int>{1, 0, 0, 0, 0, 0});
    CHECK(p.shapes[1].in_place == std::vector<int>{1, 1, 0, 0, 0, 0});
    CHECK(p.shapes[3].in_place == std::vector<int>{2, 0, 0, 1, 0, 0});
    CHECK(p.shapes[4].in_place == std::vector<int>{1, 1, 0, 0, 1, 0});
    CHECK(joint_problem(s.cluster, s.jobs, 0).shapes[0].slots == std::vector<int>{21});
    CHECK(joint_problem(s.cluster, s.jobs, node_level).switches.size() == 4);
    REQUIRE_THROWS_MESSAGE(joint_problem(s.cluster, s.jobs, 2), InvalidInput, "level: 2; expected 0 1");
}

TEST_CASE("joint problems reject constraints outside the model") {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_model = "A", .gpu_count = 8, .network = {"core", "s0"}});
    TaskSpec apart{.gpu_count = 1}, near{.gpu_count = 1}, whole{.gpu_count = 1};
    apart.anti_affinity = {{.group = "g", .level = node_level, .limit = 1}};
    near.network_affinity = NetworkAffinity{0, NetworkMode::required};
    whole.network_affinity = NetworkAffinity{1, NetworkMode::required};
    const auto s = sampled(spec, {{"apart", 1, apart}, {"near", 1, near}, {"whole", 2, whole}});
    REQUIRE_THROWS_MESSAGE(joint_problem(s.cluster, s.jobs), InvalidInput,
                           "job 'apart': pods group constraints");
    REQUIRE_THROWS_MESSAGE(
        joint_problem(s.cluster, s.jobs), InvalidInput,
        "job 'near': network_affinity.level: 0; expected 1, level of the joint allocation");
    CHECK(joint_problem(s.cluster, std::span(s.jobs).subspan(2)).jobs[0].mode == NetworkMode::required);
    const std::vector<JobOfSample> nobody{{.name = "x"}};
    REQUIRE_THROWS_MESSAGE(joint_problem(s.cluster, nobody), InvalidInput,
                           "job 'x': sample: expected pending task");
}

TEST_CASE("joint allocations of 200 random clusters with scarce cores equal brute force over nodes") {
    if (testing_support::lacks_solver()) return;
    int partly = 0, by_cores = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Rng rng(seed + 77);
        ClusterSpec spec;
        for (int n = 0, nodes = static_cast<int>(rng.between(2, 5)); n < nodes; ++n)
            spec.nodes.push_back({.name = "n" + std::to_string(n),
                                  .gpu_model = rng.chance(0.7) ? "A" : "B",
                                  .gpu_count = rng.between(1, 6),
                                  .cpu_milli = 1000 * rng.between(1, 12),
                                  .memory_mib = 100 * rng.between(1, 8),
                                  .network = {"s" + std::to_string(rng.below(3))}});
        TaskSpec pod{.cpu_milli = 1000 * rng.between(0, 4),
                     .memory_mib = 100 * rng.between(0, 2),
                     .gpu_count = rng.between(1, 2)};
        if (rng.chance(0.5)) pod.gpu_models = {"A"};
        std::vector<Wanted> wanted;
        for (int j = 0, jobs = static_cast<int>(rng.between(1, 3)); j < jobs; ++j)
            wanted.push_back({"j" + std::to_string(j), static_cast<int>(rng.between(1, 5)), pod,
                              rng.chance(0.3) ? NetworkMode::required : NetworkMode::preferred});
        // Slots counted from the specification, without the library.
        std::map<std::string, int> slots, by_gpus;
        for (const auto& node : spec.nodes) {
            auto room = node.gpu_count / pod.gpu_count;
            const bool accepted = pod.gpu_models.empty() || node.gpu_model == "A";
            by_gpus[node.network[0]] += accepted ? static_cast<int>(room) : 0;
            if (pod.cpu_milli > 0) room = std::min(room, node.cpu_milli / pod.cpu_milli);
            if (pod.memory_mib > 0) room = std::min(room, node.memory_mib / pod.memory_mib);
            slots[node.network[0]] += accepted ? static_cast<int>(room) : 0;
        }
        by_cores += slots != by_gpus;
        const auto s = sampled(spec, wanted);
        const auto p = joint_problem(s.cluster, s.jobs);
        INFO("seed " << seed);
        REQUIRE(p.switches.size() == slots.size());
        for (std::size_t d = 0; d < p.switches.size(); ++d)
            REQUIRE(p.shapes.at(0).slots[d] == slots.at(p.switches[d]));
        const auto [placed, entropy] = brute_force(p);
        partly += placed < static_cast<int>(wanted.size());
        const auto m = joint_allocation(p);
        const auto solution = solve(m);
        REQUIRE(solution.status == Status::optimal);
        CHECK(solution.objective == Catch::Approx(entropy - m.placed_worth * placed).margin(1e-6));
        const auto found = m.decode(solution.x);
        CHECK(evaluate(m, m.encode(found)).feasible(1e-9));
        for (std::size_t j = 0; j < wanted.size(); ++j)
            if (wanted[j].mode == NetworkMode::required) CHECK(spread_entropy(found[j]) == 0);
    }
    CAPTURE(partly, by_cores);
    CHECK(partly > 40);
    CHECK(by_cores > 80);
}

TEST_CASE("joint allocations of HP and LP jobs with Standby tasks place as many jobs as brute force") {
    const TaskSpec hp{.gpu_count = 1, .priority_class = PriorityClass::hp},
        lp{.gpu_count = 1, .priority_class = PriorityClass::lp};
    auto standby = hp;
    standby.standby = true;
    const TaskSpec kinds[]{hp, lp};
    if (testing_support::lacks_solver()) return;
    int partly = 0, borrowed = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Rng rng(seed + 313);
        ClusterSpec spec;
        std::vector<int> idle, lent;
        for (int n = 0, nodes = static_cast<int>(rng.between(1, 2)); n < nodes; ++n) {
            const auto name = "n" + std::to_string(n);
            const int gpus = static_cast<int>(rng.between(1, 5)),
                      claimed = static_cast<int>(rng.between(0, gpus));
            spec.nodes.push_back(
                {.name = name, .gpu_model = "A", .gpu_count = gpus, .network = {"s" + std::to_string(n)}});
            auto running = standby;
            running.name = "lender" + std::to_string(n);
            running.gpu_count = claimed;
            running.node = name;
            for (int g = 0; g < claimed; ++g) running.gpus.push_back(g);
            if (claimed > 0) spec.tasks.push_back(running);
            idle.push_back(gpus - claimed);
            lent.push_back(claimed);
        }
        std::vector<Wanted> wanted;
        std::vector<std::size_t> kind;
        for (int j = 0, jobs = static_cast<int>(rng.between(2, 3)); j < jobs; ++j) {
            kind.push_back(rng.below(2));
            wanted.push_back(
                {"j" + std::to_string(j), static_cast<int>(rng.between(1, 6)), kinds[kind.back()]});
        }
        // Pods by kind and node. LP pods take what is lent first.
        std::vector<std::vector<int>> pods(idle.size(), std::vector<int>(2, 0));
        const int best = most_placed(wanted, idle.size(), [&](std::size_t j, std::size_t n, int sign) {
            auto& here = pods[n];
            here[kind[j]] += sign;
            return here[0] + std::max(0, here[1] - lent[n]) <= idle[n];
        });
        const auto s = sampled(spec, wanted);
        const auto m = joint_allocation(joint_problem(s.cluster, s.jobs));
        const auto solution = solve(m);
        INFO("seed " << seed);
        REQUIRE(solution.status == Status::optimal);
        int placed = 0;
        const auto found = m.decode(solution.x);
        for (std::size_t j = 0; j < wanted.size(); ++j) {
            const auto sum = std::accumulate(found[j].begin(), found[j].end(), 0);
            placed += sum > 0;
            borrowed += kind[j] == 1 && sum > std::accumulate(idle.begin(), idle.end(), 0);
        }
        REQUIRE(placed == best);
        partly += placed < static_cast<int>(wanted.size());
    }
    CAPTURE(partly, borrowed);
    CHECK(partly > 50);
    CHECK(borrowed > 10);
}

TEST_CASE("domains of a joint problem have different names") {
    ClusterSpec spec;
    spec.nodes = {{.name = "s", .gpu_model = "A", .gpu_count = 2},
                  {.name = "n", .gpu_model = "A", .gpu_count = 3, .network = {"core", "s"}}};
    const auto s = sampled(spec, {{"j", 5, TaskSpec{.gpu_count = 1}}});
    auto names = joint_problem(s.cluster, s.jobs).switches;
    std::ranges::sort(names);
    CHECK(names == std::vector<std::string>{"s", "s (node)"});
}

TEST_CASE("joint allocations of jobs with different shapes are bounds of brute force over nodes") {
    if (available_solvers().empty()) return;
    int equal = 0, below = 0;
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        Rng rng(seed + 991);
        ClusterSpec spec;
        for (int n = 0, nodes = static_cast<int>(rng.between(1, 3)); n < nodes; ++n)
            spec.nodes.push_back({.name = "n" + std::to_string(n),
                                  .gpu_model = rng.chance(0.6) ? "A" : "B",
                                  .gpu_count = rng.between(1, 4),
                                  .cpu_milli = 1000 * rng.between(1, 8),
                                  .network = {"s" + std::to_string(rng.below(2))}});
        std::vector<Wanted> wanted;
        for (int j = 0, jobs = static_cast<int>(rng.between(2, 3)); j < jobs; ++j) {
            TaskSpec pod{.cpu_milli = 1000 * rng.between(0, 3), .gpu_count = rng.between(1, 2)};
            if (rng.chance(0.4)) pod.gpu_models = {"A"};
            wanted.push_back({"j" + std::to_string(j), static_cast<int>(rng.between(1, 3)), pod});
        }
        const auto s = sampled(spec, wanted);
        const auto m = joint_allocation(joint_problem(s.cluster, s.jobs));
        const auto solution = solve(m);
        INFO("seed " << seed);
        REQUIRE(solution.status == Status::optimal);
        std::vector<std::pair<std::int64_t, std::int64_t>> left;
        for (const auto& node : spec.nodes) left.emplace_back(node.gpu_count, node.cpu_milli);
        const int best = most_placed(wanted, left.size(), [&](std::size_t j, std::size_t n, int sign) {
            const auto& pod = wanted[j].pod;
            left[n].first -= sign * pod.gpu_count;
            left[n].second -= sign * pod.cpu_milli;
            return (pod.gpu_models.empty() || spec.nodes[n].gpu_model == "A") && left[n].first >= 0 &&
                   left[n].second >= 0;
        });
        int placed = 0;
        for (const auto& counts : m.decode(solution.x))
            placed += std::any_of(counts.begin(), counts.end(), [](int n) { return n > 0; });
        REQUIRE(placed >= best);
        equal += placed == best;
        below += placed > best;
    }
    CAPTURE(equal, below);
    CHECK(equal > 120);
}
