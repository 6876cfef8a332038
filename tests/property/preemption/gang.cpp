// SPDX-License-Identifier: Apache-2.0
// Gangs of preemptors against brute force: all sets of victims of a domain, with every way to place the pods beside the rest.
#include "support/instances.hpp"
#include "support/mixed_gangs.hpp"
#include "support/plans.hpp"
#include "support/policies.hpp"
#include "support/subgroups.hpp"

#include <gpusched/preemption/preemption.hpp>

using namespace gpusched;
using namespace gpusched::preemption;

namespace {

struct Instance {
    ClusterSpec spec{};
    std::vector<TaskId> pods{};
};

Instance random_instance(Rng& rng) {
    Instance x;
    auto& spec = x.spec;
    spec.now = 1000;
    const auto nodes = rng.between(2, 5);
    for (int n = 0; n < nodes; ++n) {
        NodeSpec node{.name = "n" + std::to_string(n),
                      .gpu_model = "A",
                      .gpu_count = rng.between(2, 4),
                      .cpu_milli = 8000,
                      .memory_mib = 16};
        if (!rng.chance(0.1)) node.network = {"s" + std::to_string(rng.below(2))};
        if (rng.chance(0.5)) {
            Hardware hardware;
            for (int socket = 0; socket < 2; ++socket) hardware.numa_nodes.push_back({socket, 8, 0});
            for (int g = 0; g < node.gpu_count; ++g) hardware.numa_nodes[rng.below(2)].gpus |= gpu_bit(g);
            node.hardware = hardware;
        }
        if (rng.chance(0.05)) node.schedulable = false;
        spec.nodes.push_back(node);
    }
    const auto jobs = rng.below(3);
    for (std::uint64_t j = 0; j < jobs; ++j)
        spec.jobs.push_back({.name = "j" + std::to_string(j), .min_members = rng.between(0, 2)});
    for (int n = 0; n < nodes; ++n)
        for (int at = 0; at < spec.nodes[static_cast<std::size_t>(n)].gpu_count && spec.tasks.size() < 9;) {
            const auto left = static_cast<int>(spec.nodes[static_cast<std::size_t>(n)].gpu_count) - at;
            const auto size = std::min<int>(left, static_cast<int>(rng.between(1, 2)));
            TaskSpec task{.name = "t" + std::to_string(spec.tasks.size())};
            task.gpu_count = size;
            task.cpu_milli = rng.between(0, 2) * 1000;
            task.memory_mib = rng.between(0, 4);
            task.priority = rng.between(0, 3) * 10;
            task.priority_class = PriorityClass::lp;
            task.preemptible = rng.chance(0.85);
            task.start_time = rng.between(0, 9) * 100;
            if (jobs > 0 && rng.chance(0.4)) task.job = "j" + std::to_string(rng.below(jobs));
            task.node = spec.nodes[static_cast<std::size_t>(n)].name;
            for (int g = at; g < at + size; ++g) task.gpus.push_back(g);
            at += size;
            if (rng.chance(0.2)) continue;
            spec.tasks.push_back(task);
        }
    testing_support::add_subgroups(rng, spec);
    const auto count = rng.between(1, 3);
    const bool required = rng.chance(0.5), apart = rng.chance(0.25), near = rng.chance(0.3);
    const auto same = rng.between(1, 3);
    for (int i = 0; i < count; ++i) {
        TaskSpec pod{.name = "p" + std::to_string(i), .job = "gang"};
        pod.gpu_count = rng.chance(0.6) ? same : rng.between(1, 3);
        pod.cpu_milli = rng.between(0, 4) * 1000;
        pod.memory_mib = rng.between(0, 6);
        pod.priority = 100;
        pod.priority_class = PriorityClass::hp;
        if (required && i == 0) pod.network_affinity = NetworkAffinity{0, NetworkMode::required};
        if (apart) pod.anti_affinity = {{"apart", node_level, 1}};
        if (near && pod.gpu_count > 1)
            pod.hardware_affinity = {{HardwareLevel::socket, HardwareQos::guaranteed}};
        x.pods.push_back(make_id<TaskId>(spec.tasks.size()));
        spec.tasks.push_back(pod);
    }
    if (rng.chance(0.2)) {  // a member that runs already
        auto member = spec.tasks.back();
        const auto n = rng.below(static_cast<std::uint64_t>(nodes));
        auto& node = spec.nodes[n];
        node.gpu_count += 1;
        if (node.hardware) node.hardware->numa_nodes[0].gpus |= gpu_bit(static_cast<int>(node.gpu_count) - 1);
        member.name = "runs";
        member.gpu_count = 1;
        member.cpu_milli = member.memory_mib = 0;
        member.hardware_affinity.clear();
        member.anti_affinity.clear();
        member.node = node.name;
        member.gpus = {static_cast<int>(node.gpu_count) - 1};
        spec.tasks.push_back(member);
    }
    return x;
}

bool all_placed(Cluster& cluster, const std::vector<TaskId>& pods, std::size_t i) {
    if (i == pods.size()) return true;
    const auto count = cluster.inventory().tasks.gpu_count[index(pods[i])];
    for (const auto node : cluster.nodes()) {
        if (find_obstacle(cluster, pods[i], node) != Obstacle::none) continue;
        for (unsigned mask = 0; mask < (1u << cluster.gpu_count(node)); ++mask) {
            const auto gpus = static_cast<GpuMask>(mask);
            if (gpu_count(gpus) != count || (count > 0 && !gpus_fit(cluster, pods[i], node, gpus))) continue;
            cluster.assign(pods[i], node, gpus);
            const bool good = all_placed(cluster, pods, i + 1);
            cluster.remove(pods[i]);
            if (good) return true;
        }
    }
    return false;
}

using Key = std::tuple<std::int64_t, std::int64_t, std::size_t>;  // cost, gangs, victims

// What the victims lose; nothing for a part of a gang that leaves it with too few.
std::optional<Key> losses(const Instance& x, const std::vector<TaskId>& victims) {
    std::map<std::string, std::pair<std::vector<std::size_t>, std::int64_t>>
        of_job;  // members evicted, their cost
    std::int64_t cost = 0, gangs = 0;
    const auto own = [&](const TaskSpec& t) { return t.gpu_count * 1000 * (x.spec.now - t.start_time); };
    for (const auto victim : victims) {
        const auto& t = x.spec.tasks[index(victim)];
        if (t.job.empty()) {
            ++gangs;
            cost += own(t);
        } else {
            of_job[t.job].first.push_back(index(victim));
            of_job[t.job].second += own(t);
        }
    }
    for (const auto& [job, evicted] : of_job) {
        std::size_t running = 0;
        std::int64_t all = 0;
        for (const auto& t : x.spec.tasks)
            if (t.job == job && t.node) ++running, all += own(t);
        const bool lost = !testing_support::stays_a_gang(x.spec, job, evicted.first);
        if (lost && evicted.first.size() < running) return std::nullopt;
        gangs += lost;
        cost += lost ? all : evicted.second;
    }
    return Key{cost, gangs, victims.size()};
}

std::optional<Key> brute_force(const Instance& x, const Cluster& cluster) {
    std::vector<TaskId> open;
    for (const auto task : cluster.tasks()) {
        const auto& t = x.spec.tasks[index(task)];
        if (t.node && t.preemptible.value_or(t.priority_class == PriorityClass::lp) && t.priority < 100)
            open.push_back(task);
    }
    const auto possible = [&](const std::vector<TaskId>& victims) {
        Cluster after(cluster);
        for (const auto victim : victims) after.remove(victim);
        return all_placed(after, x.pods, 0);
    };
    std::optional<Key> best;
    for (unsigned set = 0; set < (1u << open.size()); ++set) {
        std::vector<TaskId> victims;
        for (std::size_t i = 0; i < open.size(); ++i)
            if ((set >> i & 1) != 0) victims.push_back(open[i]);
        const auto key = losses(x, victims);
        if (key && (!best || *key < *best) && possible(victims)) best = key;
    }
    return best;
}

}  // namespace

TEST_CASE("4,000 gangs of preemptors: valid, never better than brute force, mostly as good") {
    Rng rng(11);
    int placed = 0, impossible = 0, missed = 0, optimal = 0, bound = 0, evicting = 0;
    for (int round = 0; round < 4000; ++round) {
        const auto x = random_instance(rng);
        const auto cluster = Cluster::build(x.spec, IdOrder::as_listed);
        const auto best = brute_force(x, cluster);
        INFO("round " << round);
        for (const auto policy : testing_support::all_policies()) {
            INFO(enum_name(policy));
            const auto result = preempt_gang(cluster, x.pods, {.policy = policy});
            if (!result.decision) {
                REQUIRE(!result.reason.empty());
                if (policy == Policy::spot_exact) (best ? missed : impossible) += 1;
                if (x.pods.size() == 1) REQUIRE(!best);
                continue;
            }
            const auto& d = *result.decision;
            REQUIRE(result.reason.empty());
            REQUIRE(best);
            testing_support::require_valid(x.spec, cluster, to_plan(d, x.pods));
            const auto whole = losses(x, d.victims);
            REQUIRE(whole);
            const auto& key = *whole;
            REQUIRE(std::tuple(d.cost, d.lost_gangs) == std::tuple(std::get<0>(key), std::get<1>(key)));
            REQUIRE(key >= *best);
            // Of one node's victims for one pod, the cheapest.
            if (policy == Policy::spot_exact && x.pods.size() == 1) REQUIRE(d.cost == std::get<0>(*best));
            if (policy != Policy::spot_exact) continue;
            ++placed;
            evicting += !d.victims.empty();
            optimal += d.cost == std::get<0>(*best);
            bound += x.spec.tasks.back().name == "runs";
        }
    }
    CAPTURE(placed, impossible, missed, optimal, bound, evicting);
    CHECK(placed > 2000);
    CHECK(evicting > 1400);
    CHECK(impossible > 800);
    CHECK(bound > 300);
    CHECK(missed <= 20);
    CHECK(optimal * 100 >= placed * 93);
}

namespace {

/// Tasks that hold one GPU each, or one or two, on full nodes; some run for the jobs of the pods.
Instance random_growing_jobs(Rng& rng, bool of_one_size) {
    Instance x;
    auto& spec = x.spec;
    const auto jobs = rng.between(1, 3);
    for (int j = 0; j < jobs; ++j)
        spec.jobs.push_back({.name = "j" + std::to_string(j), .min_members = rng.between(0, 3)});
    const auto some_job = [&] { return "j" + std::to_string(rng.below(static_cast<std::uint64_t>(jobs))); };
    const auto nodes = rng.between(1, 3);
    for (int n = 0; n < nodes; ++n) {
        NodeSpec node{.name = "n" + std::to_string(n), .gpu_count = rng.between(1, 4)};
        for (int at = 0; at < node.gpu_count;) {
            const bool two = !of_one_size && at + 1 < node.gpu_count && rng.chance(0.4);
            TaskSpec task{.name = "t" + std::to_string(spec.tasks.size()), .gpu_count = two ? 2 : 1};
            for (int g = 0; g < task.gpu_count; ++g) task.gpus.push_back(at++);
            if (rng.chance(0.05)) continue;
            if (rng.chance(0.8)) task.job = some_job();
            task.priority = rng.between(-1, 2);
            task.priority_class = PriorityClass::lp;
            task.preemptible = rng.chance(0.95);
            task.node = node.name;
            spec.tasks.push_back(task);
        }
        spec.nodes.push_back(node);
    }
    const auto pods = rng.between(1, 5);
    for (int i = 0; i < pods; ++i) {
        TaskSpec pod{.name = "p" + std::to_string(i),
                     .job = rng.chance(0.8) ? "j0" : some_job(),
                     .gpu_count = of_one_size ? 1 : rng.between(1, 2),
                     .priority = 10,
                     .priority_class = PriorityClass::hp};
        x.pods.push_back(make_id<TaskId>(spec.tasks.size()));
        spec.tasks.push_back(pod);
    }
    return x;
}

/// The running tasks of a job, and how many of them may leave.
struct Running {
    std::int64_t all = 0, open = 0, surplus = 0;
    bool own = false;  ///< it is a job of the pods

    /// One running task is no gang.
    [[nodiscard]] bool may_break() const { return open == all && (all < 2 || !own); }
    [[nodiscard]] std::int64_t most_leave() const { return may_break() ? all : std::min(surplus, open); }
};

std::map<std::string, Running> running_jobs(const ClusterSpec& spec) {
    std::map<std::string, Running> jobs;
    for (const auto& t : spec.tasks) {
        auto& job = jobs[t.job.empty() ? "alone: " + t.name : t.job];
        if (t.node) ++job.all, job.open += *t.preemptible;
        job.own = job.own || !t.node;
    }
    for (const auto& j : spec.jobs)
        if (j.min_members > 0)
            jobs[j.name].surplus = std::max<std::int64_t>(0, jobs[j.name].all - j.min_members);
    return jobs;
}

}  // namespace

TEST_CASE("6,000 gangs of preemptors keep min_members of their own jobs, and are placed if that allows it") {
    std::map<std::string, int> seen;
    const auto rounds = testing_support::instances(6000);
    for (int round = 0; round < rounds; ++round) {
        Rng rng(static_cast<std::uint64_t>(round) + 130'000);
        const bool of_one_size = rng.chance(0.6);
        const auto x = random_growing_jobs(rng, of_one_size);
        const auto cluster = Cluster::build(x.spec, IdOrder::as_listed);
        const auto jobs = running_jobs(x.spec);
        const bool incomplete = std::any_of(x.pods.begin(), x.pods.end(), [&](TaskId pod) {
            return testing_support::is_incomplete(x.spec, x.spec.tasks[index(pod)].job);
        });
        std::int64_t room = 0;  // GPUs that are idle or can become so
        for (const auto& node : x.spec.nodes) room += node.gpu_count;
        for (const auto& [name, job] : jobs) room -= job.all - job.most_leave();
        for (const auto policy : testing_support::all_policies()) {
            INFO("round " << round << " " << enum_name(policy));
            const auto found = preempt_gang(cluster, x.pods, {.policy = policy}).decision;
            if (of_one_size) REQUIRE(found.has_value() == (!incomplete && room >= std::ssize(x.pods)));
            ++seen[found ? "finds room" : "finds none"];
            if (!found) continue;
            testing_support::require_valid(x.spec, cluster, to_plan(*found, x.pods));
            std::map<std::string, std::int64_t> gone;
            for (const auto victim : found->victims) {
                const auto& t = x.spec.tasks[index(victim)];
                ++gone[t.job.empty() ? "alone: " + t.name : t.job];
            }
            for (const auto& [name, count] : gone) {
                const auto& job = jobs.at(name);
                INFO(name << ": " << count << " of " << job.all << " leave, the surplus is " << job.surplus);
                REQUIRE((count <= job.surplus || (count == job.all && job.may_break())));
                if (!job.own || job.all < 2) continue;
                ++seen["some of an own gang leave"];
                seen["one of an own gang is left"] += count == job.all - 1;
            }
        }
    }
    for (const char* kind :
         {"finds room", "finds none", "some of an own gang leave", "one of an own gang is left"}) {
        INFO(kind << ": " << seen[kind]);
        CHECK(seen[kind] >= testing_support::instances(500));
    }
}

TEST_CASE("4,000 gangs of two and three shapes evict no task if they fit without evictions") {
    std::map<std::string, int> seen;
    const auto rounds = testing_support::instances(std::uint64_t{4000});
    for (std::uint64_t seed = 0; seed < rounds; ++seed) {
        Rng rng(seed + 90'000);
        const auto x = testing_support::random_mixed_gang(rng, rng.chance(0.5));
        const auto with = allocation::with_job(Cluster::build(x.spec, IdOrder::as_listed), x.job);
        const bool possible = testing_support::EveryPlacement(x).any();
        const auto policy = std::array{Policy::imp, Policy::spot_exact, Policy::first_fit}[seed % 3];
        const auto found = preempt_gang(with.cluster, with.pods, {.policy = policy});
        INFO("seed " << seed << " " << enum_name(policy) << " " << found.reason);
        REQUIRE(found.proven);
        REQUIRE((found.decision && found.decision->victims.empty()) == possible);
        ++seen[possible ? "fits" : found.decision ? "evicts" : "none"];
        if (!found.decision) continue;
        const auto& d = *found.decision;
        if (possible) REQUIRE(std::tuple(d.cost, d.lost_gangs) == std::tuple(0, 0));
        testing_support::require_valid(with.cluster.to_spec(), with.cluster, to_plan(d, with.pods));
    }
    for (const char* kind : {"fits", "evicts", "none"}) {
        INFO(kind);
        CHECK(seen[kind] >= testing_support::instances(200));
    }
}
