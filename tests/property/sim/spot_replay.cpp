// SPDX-License-Identifier: Apache-2.0
// Spot replay on random traces: every plan is checked by the plan checker, gangs are whole, nobody but LP is evicted, and the
// books of all jobs are those of a second accountant, who sees nothing but the plans. With interference the work done is that of a
// second clock with steps of one second.
#include "support/catch.hpp"

#include <gpusched/allocation/slowdown.hpp>
#include <gpusched/sim/sim.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::sim;

namespace {

constexpr std::int64_t leaves_after_s = 7;

SpotTrace random_trace(Rng& rng) {
    SpotTrace trace;
    const auto nodes = rng.between(1, 6);
    for (std::int64_t i = 0; i < nodes; ++i) {
        NodeSpec n;
        n.name = "n" + std::to_string(i);
        n.gpu_count = rng.between(1, 8);
        n.cpu_milli = 1000 * rng.between(8, 40);
        n.memory_mib = 1024 * rng.between(8, 64);
        n.gpu_model = rng.below(4) == 0 ? "B" : "A";
        if (rng.below(3) != 0) n.network = {"s" + std::to_string(rng.below(2))};
        trace.nodes.push_back(n);
    }
    const auto jobs = rng.between(5, 40);
    std::int64_t arrival = 0;
    for (std::int64_t i = 0; i < jobs; ++i) {
        SpotJob j;
        arrival += rng.between(0, 200);
        j.arrival_s = arrival;
        j.pod.name = "j" + std::to_string(i);
        j.pod.priority_class = rng.below(2) == 0 ? PriorityClass::hp : PriorityClass::lp;
        j.pod.gpu_count = rng.between(0, 4);
        if (j.pod.gpu_count == 1 && rng.below(3) == 0) j.pod.gpu_share_milli = 100 * rng.between(2, 7);
        j.pod.cpu_milli = 1000 * rng.between(1, 8);
        j.pod.memory_mib = 1024 * rng.between(1, 8);
        if (rng.below(3) == 0) j.pod.gpu_models = {rng.below(2) == 0 ? "A" : "B"};
        if (rng.below(12) == 0) j.pod.preemptible = false;
        j.pods = rng.below(3) == 0 ? rng.between(2, 4) : 1;
        if (j.pods > 1 && rng.below(4) == 0)
            j.pod.network_affinity = NetworkAffinity{0, NetworkMode::required};
        if (rng.below(10) == 0) j.pod.anti_affinity = {{"g", node_level, 1}};
        j.work_s = rng.between(1, 1500);
        j.pod.checkpoint_interval = rng.below(4) == 0 ? 0 : rng.between(1, 400);
        trace.jobs.push_back(j);
    }
    return trace;
}

SpotReplayOptions random_options(Rng& rng) {
    static const std::vector<std::vector<std::string>> rankers{{"packing"},
                                                               {"packing", "homogeneous", "eviction_history"},
                                                               {"random"},
                                                               {"least_allocated", "eviction_history"}};
    SpotReplayOptions o;
    o.rankers = rankers[rng.below(rankers.size())];
    o.victims = static_cast<Victims>(rng.below(4));
    o.start_delay_s = rng.between(0, 30);
    o.consolidate_every_h = rng.below(3) == 0 ? 1 : 0;
    o.spot_jobs = rng.below(12) != 0;
    o.eviction.shutdown_ms.fill(leaves_after_s * 1000);
    o.seed = rng();
    return o;
}

std::string job_of(const std::string& task) { return task.substr(0, task.find('/')); }

// Knows the jobs and what the plans did to them.
struct Accountant {
    const SpotTrace& trace;
    const SpotReplayOptions& options;
    std::map<std::string, std::size_t> by_name{};
    struct Run {
        std::int64_t start = 0, works_from = 0;
    };
    std::map<std::size_t, Run> running{};
    std::vector<SpotJobRecord> books{};

    Accountant(const SpotTrace& t, const SpotReplayOptions& o) : trace(t), options(o), books(t.jobs.size()) {
        for (std::size_t i = 0; i < t.jobs.size(); ++i) by_name[t.jobs[i].pod.name] = i;
    }
    [[nodiscard]] std::int64_t end_of(std::size_t j) const {
        return running.at(j).works_from + trace.jobs[j].work_s - books[j].kept_s;
    }
    void leave(std::size_t j, std::int64_t now, bool finished, bool evicted) {
        auto& b = books[j];
        const auto run = running.at(j);
        b.held_s += now - run.start;
        b.startup_s += std::min(now, run.works_from) - run.start;
        std::int64_t done = std::max<std::int64_t>(0, now - run.works_from), safe = 0;
        const auto interval = trace.jobs[j].pod.checkpoint_interval;
        while (interval > 0 && safe + interval <= done) safe += interval;
        if (finished) safe = done;
        b.kept_s += safe;
        (evicted ? b.lost_s : b.open_s) += done - safe;
        b.evictions += evicted ? 1 : 0;
        if (finished) b.finish_s = now;
        running.erase(j);
    }
    // Jobs that end by then.
    void pass(std::int64_t now) {
        std::vector<std::size_t> over;
        for (const auto& [j, run] : running)
            if (end_of(j) <= now) over.push_back(j);
        for (const auto j : over) leave(j, end_of(j), true, false);
    }
    void see(std::int64_t now, const Cluster& before, const Plan& plan) {
        pass(now);
        std::set<std::size_t> placed;
        for (const auto task : before.tasks())
            if (before.is_placed(task)) placed.insert(by_name.at(job_of(before.name(task))));
        std::set<std::size_t> known;
        for (const auto& [j, run] : running) known.insert(j);
        REQUIRE(placed == known);
        std::set<std::size_t> out;
        for (const auto task : plan.evictions) out.insert(by_name.at(job_of(before.name(task))));
        for (const auto j : out) {
            REQUIRE(trace.jobs[j].pod.priority_class == PriorityClass::lp);
            leave(j, now, false, true);
        }
        std::set<std::size_t> in;
        for (const auto& p : plan.placements) in.insert(by_name.at(job_of(before.name(p.task))));
        REQUIRE(in.size() <= 1);
        std::int64_t pods_in = 0, pods_out = 0;
        for (const auto j : in) {
            const bool high = trace.jobs[j].pod.priority_class == PriorityClass::hp;
            if (!out.empty()) REQUIRE(high);
            REQUIRE(trace.jobs[j].arrival_s <= now);
            const auto delay = high ? (out.empty() ? 0 : leaves_after_s) : options.start_delay_s;
            if (books[j].first_start_s < 0) {
                books[j].first_start_s = now;
                books[j].wait_s = now + (high ? delay : 0) - trace.jobs[j].arrival_s;
            }
            running[j] = {now, now + delay};
            pods_in += trace.jobs[j].pods;
        }
        for (const auto j : out) pods_out += trace.jobs[j].pods;
        REQUIRE(pods_in == static_cast<std::int64_t>(plan.placements.size()));  // gangs come and go whole
        REQUIRE(pods_out == static_cast<std::int64_t>(plan.evictions.size()));
        if (plan.placements.empty()) REQUIRE(plan.evictions.empty());
        if (options.victims == Victims::none) REQUIRE(plan.evictions.empty());
    }
};

/// A pod on a node, from one second to another.
struct Stay {
    std::size_t job;
    std::string node;
    GpuMask gpus;
    std::int64_t start, works_from, end = -1;
};

/// The places of pods, from plans and the ends of jobs.
struct Stays {
    const SpotTrace& trace;
    const SpotReplayOptions& options;
    std::map<std::string, std::size_t> by_name{};
    std::map<std::string, Stay> open{};  // by pod
    std::vector<Stay> closed{};

    Stays(const SpotTrace& t, const SpotReplayOptions& o) : trace(t), options(o) {
        for (std::size_t i = 0; i < t.jobs.size(); ++i) by_name[t.jobs[i].pod.name] = i;
    }
    void close(const std::string& pod, std::int64_t end) {
        auto stay = open.at(pod);
        open.erase(pod);
        stay.end = end;
        closed.push_back(stay);
    }
    void see(std::int64_t now, const Cluster& before, const Plan& plan) {
        for (const auto task : plan.evictions) close(before.name(task), now);
        for (const auto& p : plan.placements) {
            const auto j = by_name.at(job_of(before.name(p.task)));
            const bool high = trace.jobs[j].pod.priority_class == PriorityClass::hp;
            const auto delay = high ? (plan.evictions.empty() ? 0 : leaves_after_s) : options.start_delay_s;
            open[before.name(p.task)] = {j, before.name(p.node), p.gpus, now, now + delay};
        }
    }
    void finish(const SpotReplayResult& result) {
        std::vector<std::string> pods;
        for (const auto& [pod, stay] : open) pods.push_back(pod);
        for (const auto& pod : pods) {
            const auto finish = result.jobs[open.at(pod).job].finish_s;
            close(pod, finish >= 0 ? finish : result.end_s);
        }
    }
    /// The slowdown of a pod in one second, in parts.
    [[nodiscard]] double slowdown(const Stay& pod, std::int64_t second) const {
        std::int64_t cores = 0, offline = 0, all = 0;
        for (const auto& n : trace.nodes)
            if (n.name == pod.node) all = n.cpu_milli;
        for (const auto& other : closed) {
            if (other.node != pod.node || second < other.start || second >= other.end) continue;
            const auto& o = trace.jobs[other.job].pod;
            if (o.gpu_count == 0) cores += o.cpu_milli;
            if (o.priority_class == PriorityClass::lp && (other.gpus & pod.gpus) != 0)
                offline += o.gpu_share_milli;
        }
        const auto& of = trace.jobs[pod.job].pod;
        auto milli = allocation::SlowdownCurve{options.cpu_slowdown_milli}(cores, all);
        if (of.gpu_share_milli < 1000 && of.priority_class == PriorityClass::hp)
            milli += allocation::SlowdownCurve{options.offline_slowdown_milli}(offline, 1000);
        return of.gpu_count == 0 ? 0 : static_cast<double>(milli) / 1000;
    }
    /// Work in a run of a job, and in its last second.
    [[nodiscard]] std::pair<double, double> work(std::size_t job, std::int64_t start) const {
        std::vector<const Stay*> pods;
        for (const auto& stay : closed)
            if (stay.job == job && stay.start == start) pods.push_back(&stay);
        double sum = 0, last = 0;
        for (auto second = pods[0]->works_from; second < pods[0]->end; ++second) {
            double most = 0;
            for (const auto* pod : pods) most = std::max(most, slowdown(*pod, second));
            sum += last = 1 / (1 + most);
        }
        return {sum, last};
    }
};

}  // namespace

TEST_CASE("every plan is valid and the books are right") {
    std::int64_t plans = 0, evictions = 0, moves = 0, waiting = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        CAPTURE(seed);
        Rng rng(seed);
        const auto trace = random_trace(rng);
        auto options = random_options(rng);
        Accountant accountant(trace, options);
        const auto unobserved = replay_spot(trace, options);
        options.observer = [&](std::int64_t now, const Cluster& before, const Plan& plan) {
            const auto snapshot = before.to_spec();
            REQUIRE_NOTHROW(Cluster::build(snapshot));
            const auto report = verify::plan(snapshot, to_spec(plan, before));
            if (!report.ok) FAIL(report.violations.front());
            accountant.see(now, before, plan);
            ++plans;
            evictions += static_cast<std::int64_t>(plan.evictions.size());
            moves += static_cast<std::int64_t>(plan.moves.size());
        };
        const auto result = replay_spot(trace, options);
        REQUIRE(result.jobs == unobserved.jobs);  // the same again, observed or not
        REQUIRE(result.timeline == unobserved.timeline);
        accountant.pass(result.end_s);
        while (!accountant.running.empty())
            accountant.leave(accountant.running.begin()->first, result.end_s, false, false);
        REQUIRE(result.jobs == accountant.books);
        for (std::size_t j = 0; j < trace.jobs.size(); ++j) {
            const auto& b = result.jobs[j];
            REQUIRE(b.held_s == b.startup_s + b.kept_s + b.lost_s + b.open_s);
            REQUIRE(b.kept_s <= trace.jobs[j].work_s);
            if (b.finish_s >= 0) REQUIRE(b.kept_s == trace.jobs[j].work_s);
            waiting += b.first_start_s < 0 ? 1 : 0;
        }
    }
    CHECK(plans > 5000);  // the test is about something
    CHECK(evictions > 500);
    CHECK(moves > 10);
    CHECK(waiting > 100);
}

TEST_CASE("neighbours that cost nothing change nothing") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        Rng rng(seed);
        const auto trace = random_trace(rng);
        auto options = random_options(rng);
        const auto without = replay_spot(trace, options);
        options.cpu_slowdown_milli = options.offline_slowdown_milli = {0, 0};
        options.filters = {"any"};
        const auto with = replay_spot(trace, options);
        REQUIRE(with.jobs == without.jobs);
        REQUIRE(with.timeline == without.timeline);
        REQUIRE(with.end_s == without.end_s);
    }
}

TEST_CASE("slowed work equals a simulation with steps of one second") {
    std::int64_t slowed = 0, lost = 0, jobs = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        CAPTURE(seed);
        Rng rng(seed);
        const auto trace = random_trace(rng);
        auto options = random_options(rng);
        options.consolidate_every_h = 0;
        options.cpu_slowdown_milli = {100 * rng.between(0, 9), 1000, 100 * rng.between(10, 40)};
        options.offline_slowdown_milli = {100 * rng.between(0, 30)};
        if (rng.below(2) == 0) options.rankers = {"interference", "packing"};
        if (rng.below(2) == 0) options.filters = {"co_location_limit", "offline_limit"};
        Stays stays(trace, options);
        options.observer = [&](std::int64_t now, const Cluster& before, const Plan& plan) {
            stays.see(now, before, plan);
        };
        const auto result = replay_spot(trace, options);
        stays.finish(result);
        for (std::size_t j = 0; j < trace.jobs.size(); ++j) {
            CAPTURE(j);
            const auto& b = result.jobs[j];
            REQUIRE(b.held_s == b.startup_s + b.kept_s + b.lost_s + b.open_s + b.slowed_s);
            REQUIRE(b.slowed_s >= 0);
            if (b.finish_s < 0) continue;
            REQUIRE(b.kept_s == trace.jobs[j].work_s);
            std::set<std::int64_t> starts;
            for (const auto& stay : stays.closed)
                if (stay.job == j) starts.insert(stay.start);
            double done = 0, kept = 0;
            for (const auto start : starts) {
                const auto [work, last] = stays.work(j, start);
                if (start == *starts.rbegin()) {
                    // It ends in the second in which the rest of its work is done.
                    const auto rest = static_cast<double>(trace.jobs[j].work_s) - kept;
                    REQUIRE(work >= rest - 0.01);
                    REQUIRE(work - last < rest + 0.01);
                    continue;
                }
                const auto seconds = std::floor(work + 1e-3),
                           interval = static_cast<double>(trace.jobs[j].pod.checkpoint_interval);
                done += seconds;
                kept += interval > 0 ? std::floor(seconds / interval) * interval : 0;
            }
            REQUIRE(std::abs(static_cast<double>(b.lost_s) - (done - kept)) <=
                    static_cast<double>(starts.size()));
            slowed += b.slowed_s;
            lost += b.lost_s;
            ++jobs;
        }
    }
    CHECK(slowed > 10'000);  // the test is about something
    CHECK(lost > 1000);
    CHECK(jobs > 400);
}
