// SPDX-License-Identifier: Apache-2.0
// Several jobs at once against brute force over all counts of pods on all nodes.
#include "support/plans.hpp"
#include "support/solvers.hpp"

#include <gpusched/allocation/allocation.hpp>
#include <gpusched/milp/milp.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace {

struct Instance {
    ClusterSpec spec{};
    std::vector<JobRequest> jobs{};
};

Instance random_instance(Rng& rng) {
    Instance made;
    const int nodes = static_cast<int>(rng.between(2, 5));
    for (int n = 0; n < nodes; ++n) {
        NodeSpec node{.name = "n" + std::to_string(n), .gpu_model = "A", .gpu_count = rng.between(1, 6)};
        node.network = {"s" + std::to_string(rng.between(0, 2))};
        made.spec.nodes.push_back(node);
    }
    const bool same = rng.chance(0.5);
    const auto shape = rng.between(1, 2);
    for (int j = 0, jobs = static_cast<int>(rng.between(1, 3)); j < jobs; ++j) {
        PodRequest pods{.count = rng.between(1, nodes > 4 ? 4 : 6)};
        pods.pod.gpu_count = same ? shape : rng.between(1, 3);
        made.jobs.push_back({"j" + std::to_string(j), {pods}});
    }
    return made;
}

/// (jobs left out, entropy weighed by GPUs), the best there is.
std::pair<int, double> brute_force(const Instance& x) {
    std::vector<std::int64_t> idle;
    for (const auto& node : x.spec.nodes) idle.push_back(node.gpu_count);
    double all = 0;
    for (const auto& job : x.jobs)
        all += static_cast<double>(job.pods[0].count) * static_cast<double>(job.pods[0].pod.gpu_count);
    std::pair<int, double> best{static_cast<int>(x.jobs.size()) + 1, 0};
    std::function<void(std::size_t, int, double)> job = [&](std::size_t j, int out, double entropy) {
        if (std::pair(out, entropy) >= best) return;
        if (j == x.jobs.size()) {
            best = {out, entropy};
            return;
        }
        const auto count = x.jobs[j].pods[0].count;
        const auto gpus = x.jobs[j].pods[0].pod.gpu_count;
        std::vector<double> part(3, 0);
        std::function<void(std::size_t, std::int64_t)> node = [&](std::size_t n, std::int64_t left) {
            if (n == idle.size()) {
                if (left > 0) return;
                double h = 0;
                for (const double p : part)
                    if (p > 0) h -= p / static_cast<double>(count) * std::log(p / static_cast<double>(count));
                job(j + 1, out, entropy + static_cast<double>(count * gpus) / all * h);
                return;
            }
            const auto s = static_cast<std::size_t>(x.spec.nodes[n].network[0][1] - '0');
            for (std::int64_t k = 0; k <= std::min(left, idle[n] / gpus); ++k) {
                idle[n] -= k * gpus;
                part[s] += static_cast<double>(k);
                node(n + 1, left - k);
                part[s] -= static_cast<double>(k);
                idle[n] += k * gpus;
            }
        };
        node(0, count);
        job(j + 1, out + 1, entropy);
    };
    job(0, 0, 0);
    return best;
}

struct Requests {
    ClusterWithJobs with{};
    std::vector<GangRequest> jobs{};
    explicit Requests(const Instance& x) : with(with_jobs(Cluster::build(x.spec), x.jobs)) {
        for (const auto& job : with.jobs) jobs.push_back({job.pods, {}});
    }
};

}  // namespace

TEST_CASE("1,500 joint allocations: valid, never worse than sorted by size, mostly optimal") {
    int optimal = 0, sorted_optimal = 0, proven = 0, better = 0, left_out = 0;
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
        Rng rng(seed);
        const auto x = random_instance(rng);
        const Requests r(x);
        INFO("seed " << seed);
        const auto [out, entropy] = brute_force(x);
        const auto sorted = allocate_many(r.with.cluster, r.jobs, {.policy = JointPolicy::size_sorted});
        const auto joint = allocate_many(r.with.cluster, r.jobs, {.seed = seed, .iterations = 300});
        const auto n = static_cast<int>(x.jobs.size());
        const std::pair best{out, entropy}, got{n - static_cast<int>(joint.placed), joint.entropy},
            simple{n - static_cast<int>(sorted.placed), sorted.entropy};
        REQUIRE(got.first >= best.first);
        if (got.first == best.first) REQUIRE(got.second >= best.second - 1e-9);
        REQUIRE(got.first <= simple.first);
        if (got.first == simple.first) REQUIRE(got.second <= simple.second + 1e-9);
        const bool is_best = got.first == best.first && got.second < best.second + 1e-9;
        if (joint.proven || sorted.proven) REQUIRE(is_best);
        // All placements together are one valid plan.
        Plan plan;
        for (const auto& a : joint.jobs)
            for (const auto& p : a.pods) plan.placements.push_back(p);
        testing_support::require_valid(r.with.cluster.to_spec(), r.with.cluster, plan);
        for (const auto& a : joint.jobs) REQUIRE((a.placed ? !a.pods.empty() : !a.reason.empty()));
        const auto again = allocate_many(r.with.cluster, r.jobs, {.seed = seed, .iterations = 300});
        REQUIRE(again.entropy == joint.entropy);
        optimal += is_best;
        sorted_optimal += simple.first == best.first && simple.second < best.second + 1e-9;
        proven += joint.proven;
        better += got.first < simple.first || got.second < simple.second - 1e-9;
        left_out += got.first > 0;
    }
    INFO("optimal: joint " << optimal << ", sorted " << sorted_optimal << "; proven " << proven << ", better "
                           << better << ", some job left out " << left_out);
    CHECK(optimal > 1480);
    CHECK(better > 30);
    CHECK(proven > 500);
    CHECK(left_out > 200);
}

TEST_CASE("2,000 searches that end early count exactly the jobs that they place") {
    const ManualClock clock(1'000'000);  // every look at it takes a millisecond
    int filled = 0;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        Rng rng(seed + 5'000'000);
        Instance x;
        for (int n = 0, nodes = static_cast<int>(rng.between(3, 7)); n < nodes; ++n) {
            NodeSpec node{.name = "n" + std::to_string(n),
                          .gpu_model = "A",
                          .gpu_count = std::int64_t{1} << rng.between(1, 3),
                          .network = {"s" + std::to_string(rng.below(3))}};
            x.spec.nodes.push_back(node);
        }
        for (int j = 0, jobs = static_cast<int>(rng.between(2, 6)); j < jobs; ++j) {
            PodRequest pods{.count = rng.between(1, 4)};
            pods.pod.gpu_count = std::int64_t{1} << rng.below(3);
            x.jobs.push_back({"j" + std::to_string(j), {pods}});
        }
        Requests r(x);
        for (auto& job : r.jobs)
            if (rng.chance(0.5)) job.options.mode = NetworkMode::required;
        INFO("seed " << seed);
        const auto sorted = allocate_many(r.with.cluster, r.jobs, {.policy = JointPolicy::size_sorted});
        JointOptions options{.seed = seed, .iterations = rng.between(0, 3)};
        if (seed % 4 == 1) options.time_limit = 0;
        if (seed % 4 == 2) options.time_limit = static_cast<double>(rng.between(1, 4)) * 1e-3;
        if (seed % 4 == 3) options.node_visits = rng.between(0, 40);
        const auto joint = allocate_many(r.with.cluster, r.jobs, options, {.clock = &clock});
        for (const auto* const found : {&sorted, &joint}) {
            // Recounted from the pods alone.
            std::int64_t placed = 0;
            double entropy = 0, all = 0;
            Plan plan;
            for (std::size_t j = 0; j < x.jobs.size(); ++j) {
                const auto& pods = x.jobs[j].pods[0];
                const auto gpus = static_cast<double>(pods.count * pods.pod.gpu_count);
                all += gpus;
                const auto& a = found->jobs[j];
                REQUIRE(a.pods.size() == (a.placed ? static_cast<std::size_t>(pods.count) : 0));
                REQUIRE(a.placed == a.reason.empty());
                placed += a.placed;
                std::map<std::string, double> part;
                for (const auto& p : a.pods) {
                    plan.placements.push_back(p);
                    part[x.spec.nodes[index(p.node)].network[0]] += 1 / static_cast<double>(pods.count);
                }
                for (const auto& [name, share] : part) entropy -= gpus * share * std::log(share);
            }
            REQUIRE(found->placed == placed);
            REQUIRE(found->entropy == Catch::Approx(entropy / all).margin(1e-9));
            testing_support::require_valid(r.with.cluster.to_spec(), r.with.cluster, plan);
            // A job that is left out does not fit next to the others.
            const auto after = apply(r.with.cluster, plan);
            for (std::size_t j = 0; j < x.jobs.size(); ++j)
                if (!found->jobs[j].placed)
                    REQUIRE_FALSE(allocate(after, r.jobs[j].pods, r.jobs[j].options).placed);
        }
        REQUIRE(joint.placed >= sorted.placed);
        if (joint.placed == sorted.placed) REQUIRE(joint.entropy <= sorted.entropy + 1e-9);
        filled += joint.placed > sorted.placed;
    }
    CHECK(filled > 5);
}

TEST_CASE("60 larger joint allocations against the optimum of the integer programme") {
    if (testing_support::lacks_solver()) return;
    int optimal = 0, sorted_optimal = 0, left_out = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Rng rng(seed + 1'000'000);
        Instance x;
        const int switches = static_cast<int>(rng.between(2, 5));
        for (int n = 0, nodes = static_cast<int>(rng.between(4, 12)); n < nodes; ++n) {
            NodeSpec node{.name = "n" + std::to_string(n), .gpu_model = "A", .gpu_count = rng.between(2, 8)};
            node.network = {"s" + std::to_string(rng.below(static_cast<std::uint64_t>(switches)))};
            x.spec.nodes.push_back(node);
        }
        const int gpus = static_cast<int>(rng.between(1, 3));
        for (int j = 0, jobs = static_cast<int>(rng.between(3, 5)); j < jobs; ++j) {
            PodRequest pods{.count = rng.between(2, 9)};
            pods.pod.gpu_count = gpus;
            x.jobs.push_back({"j" + std::to_string(j), {pods}});
        }
        const Requests r(x);
        std::vector<milp::JobOfSample> samples;
        for (std::size_t j = 0; j < x.jobs.size(); ++j)
            samples.push_back(
                {x.jobs[j].name, r.with.jobs[j].pods.front(), static_cast<int>(x.jobs[j].pods[0].count)});
        const auto model = milp::joint_allocation(milp::joint_problem(r.with.cluster, samples, 0));
        const auto solution = milp::solve(model);
        INFO("seed " << seed);
        REQUIRE(solution.status == milp::Status::optimal);
        std::int64_t placed = 0;
        for (const auto& counts : model.decode(solution.x)) {
            int pods = 0;
            for (const int count : counts) pods += count;
            placed += pods > 0;
        }
        const double entropy = solution.objective + model.placed_worth * static_cast<double>(placed);
        const auto equal = [&](const JointAllocations& found) {
            REQUIRE(found.placed <= placed);
            if (found.placed == placed) REQUIRE(found.entropy >= entropy - 1e-6);
            const bool best = found.placed == placed && found.entropy < entropy + 1e-6;
            if (found.proven) REQUIRE(best);
            return best;
        };
        optimal += equal(allocate_many(r.with.cluster, r.jobs, {.seed = seed, .iterations = 1000}));
        sorted_optimal += equal(allocate_many(r.with.cluster, r.jobs, {.policy = JointPolicy::size_sorted}));
        left_out += placed < static_cast<std::int64_t>(x.jobs.size());
    }
    CAPTURE(optimal, sorted_optimal, left_out);
    CHECK(optimal >= 58);
    CHECK(sorted_optimal < 45);
    CHECK(left_out > 20);
}

TEST_CASE("jobs that each fit in one piece stay whole, and bad arguments") {
    ClusterSpec spec;
    for (int n = 0; n < 2; ++n) {
        NodeSpec node{.name = "n" + std::to_string(n), .gpu_model = "A", .gpu_count = n == 0 ? 4 : 6};
        node.network = {"s" + std::to_string(n)};
        spec.nodes.push_back(node);
    }
    PodRequest five{.count = 5}, four{.count = 4}, one{.count = 1};
    five.pod.gpu_count = four.pod.gpu_count = one.pod.gpu_count = 1;
    const auto with =
        with_jobs(Cluster::build(spec), std::vector<JobRequest>{{"b", {four}}, {"a", {five}}, {"c", {one}}});
    std::vector<GangRequest> jobs;
    for (const auto& job : with.jobs) jobs.push_back({job.pods, {}});
    const auto found = allocate_many(with.cluster, jobs);
    CHECK(found.placed == 3);
    CHECK(found.entropy == 0);
    CHECK(found.proven);
    CHECK_THROWS_MESSAGE(allocate_many(with.cluster, jobs, {.iterations = -1}), InvalidInput,
                         "iterations: -1; expected 0");
    CHECK_THROWS_MESSAGE(allocate_many(with.cluster, jobs, {.time_limit = -1.0}), InvalidInput,
                         "time_limit: -1; expected 0");
    jobs.push_back(jobs.front());
    CHECK_THROWS_MESSAGE(allocate_many(with.cluster, jobs), InvalidInput, "pods: 'b-0' in two jobs");
}
