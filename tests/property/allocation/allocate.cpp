// SPDX-License-Identifier: Apache-2.0
// Gangs of equal pods on random snapshots with every kind of constraint, against enumeration of all placements by the naive
// rules of reference.hpp; every placement is replayed by the checker.
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;
namespace ref = ::reference;

namespace {

TaskSpec random_pod(Rng& rng, bool grouped, bool extras = false) {
    TaskSpec pod;
    pod.gpu_count = rng.between(0, 3);
    pod.cpu_milli = rng.between(0, 6) * 500;
    pod.memory_mib = rng.between(0, 4) * 512;
    if (pod.gpu_count == 1 && rng.chance(0.4)) pod.gpu_share_milli = rng.between(1, 9) * 100;
    if (pod.gpu_count > 0 && rng.chance(0.2)) pod.gpu_memory_mib = rng.between(1, 12) * 1024;
    if (pod.gpu_count > 1 && rng.chance(0.3))
        pod.hardware_affinity.push_back(
            {rng.chance(0.5) ? HardwareLevel::numa : HardwareLevel::socket,
             rng.chance(0.7) ? HardwareQos::guaranteed : HardwareQos::best_effort});
    if (rng.chance(0.2)) pod.gpu_models = {"A"};
    if (rng.chance(0.1)) pod.node_selector["zone"] = "z0";
    if (rng.chance(0.2)) pod.tolerations.push_back({"dedicated", "Exists", "", ""});
    if (rng.chance(0.3)) pod.priority_class = PriorityClass::lp;
    if (grouped) {
        const auto level = static_cast<Level>(rng.between(-1, 1));
        if (rng.chance(0.6))
            pod.anti_affinity.push_back({"spread0", level, static_cast<int>(rng.between(1, 3))});
        if (rng.chance(0.2)) pod.affinity.push_back({"near0", static_cast<Level>(rng.between(-1, 1))});
    }
    if (extras) {
        if (rng.chance(0.5)) pod.resources["pods"] = rng.between(1, 3);
        if (rng.chance(0.5)) {
            pod.device_count = rng.between(1, 2);
            pod.device_classes = {"mig-1g"};
            if (rng.chance(0.3)) pod.device_classes.push_back("mig-2g");
        }
        if (rng.chance(0.2))
            pod.node_affinity.push_back({{{"kubernetes.io/hostname", MatchOperator::not_in, {"n0"}}}, {}});
        if (rng.chance(0.2))
            pod.node_affinity.push_back({{}, {{"metadata.name", MatchOperator::in, {"n1", "n2", "n3"}}}});
    }
    return pod;
}

/// The domain of a node at a level, by name.
std::string domain_of(const ClusterSpec& spec, Level level, std::size_t node) {
    const auto& path = spec.nodes[node].network;
    if (level == node_level || static_cast<std::size_t>(level) >= path.size())
        return "node " + spec.nodes[node].name;
    return path[static_cast<std::size_t>(level)];
}

double entropy_at(const ClusterSpec& spec, Level level, const std::vector<std::size_t>& nodes) {
    std::map<std::string, double> parts;
    for (const auto n : nodes) parts[domain_of(spec, level, n)] += 1.0 / static_cast<double>(nodes.size());
    double h = 0;
    for (const auto& [name, p] : parts) h -= p * std::log(p);
    return std::max(h, 0.0);
}

/// Visits the nodes of every placement of the pods (the last tasks of the snapshot).
void all_placements(const ClusterSpec& spec, std::size_t first,
                    const std::function<void(const std::vector<std::size_t>&)>& visit) {
    auto state = ref::initial(spec);
    std::vector<std::size_t> nodes;
    std::function<void(std::size_t)> place = [&](std::size_t task) {
        if (task == spec.tasks.size()) return visit(nodes);
        for (std::size_t n = nodes.empty() ? 0 : nodes.back(); n < spec.nodes.size(); ++n) {
            if (ref::obstacle(state, task, n) != "none") continue;
            const auto sets = ref::gpu_sets(state, task, n);
            state.copies.push_back({task, n, sets.empty() ? std::vector<int>{} : sets.front()});
            nodes.push_back(n);
            place(task + 1);
            nodes.pop_back();
            state.copies.pop_back();
        }
    };
    place(first);
}

struct Best {
    std::vector<double> key{};  // entropy at the level, then at the further ones
    std::int64_t placements = 0;
};

Best brute_force(const ClusterSpec& spec, std::size_t first, Level level, const AllocateOptions& options) {
    Best best;
    all_placements(spec, first, [&](const std::vector<std::size_t>& nodes) {
        const auto together = [&](Level l) { return entropy_at(spec, l, nodes) < 1e-12; };
        if (options.mode == NetworkMode::required && !together(level)) return;
        std::vector<double> key{entropy_at(spec, level, nodes)};
        for (const auto& wish : options.further) {
            if (wish.mode == NetworkMode::required && !together(wish.level)) return;
            if (wish.mode == NetworkMode::preferred) key.push_back(entropy_at(spec, wish.level, nodes));
        }
        const auto less = [&] {
            for (std::size_t i = 0; i < key.size(); ++i)
                if (std::abs(key[i] - best.key[i]) > 1e-7) return key[i] < best.key[i];
            return false;
        };
        if (best.placements++ == 0 || less()) best.key = key;
    });
    return best;
}

}  // namespace

TEST_CASE("gangs on 12,000 random snapshots equal enumeration") {
    int placed = 0, refused = 0, spread = 0, unproven = 0, by_region = 0;
    std::map<std::string, int> reasons;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(12'000); ++seed) {
        Rng rng(seed);
        auto options_of_cluster = testing_support::tiny_cluster;
        options_of_cluster.min_nodes = 2;
        options_of_cluster.max_nodes = 7;
        options_of_cluster.max_gpus = 8;
        const bool extras = seed % 4 == 3;
        if (extras) options_of_cluster.extras = 0.2;
        const auto base = testing_support::random_cluster(rng, options_of_cluster);
        const bool grouped = rng.chance(0.25);
        const JobRequest job{"gang", {{rng.between(1, 5), random_pod(rng, grouped, extras)}}};
        const auto with = with_job(Cluster::build(base), job);
        const auto spec = with.cluster.to_spec();
        const auto levels = with.cluster.inventory().network_levels();
        AllocateOptions options;
        if (rng.chance(0.7)) options.level = static_cast<Level>(rng.between(-1, levels - 1));
        const auto level = options.level.value_or(with.cluster.inventory().deepest_level());
        if (rng.chance(0.5)) options.mode = rng.chance(0.5) ? NetworkMode::required : NetworkMode::preferred;
        if (rng.chance(0.3))
            options.further.push_back(
                {static_cast<Level>(rng.between(-1, levels - 1)), NetworkMode::required});
        if (const int above = level == node_level ? levels - 1 : level - 1; above >= 0 && rng.chance(0.4))
            options.further.push_back({static_cast<Level>(rng.between(0, above)), NetworkMode::preferred});
        INFO("seed " << seed);
        const auto best = brute_force(spec, base.tasks.size(), level, options);
        const auto found = allocate(with.cluster, with.pods, options);
        INFO("reason " << found.reason);
        REQUIRE(found.level == level);
        unproven += !found.proven;
        if (!grouped) REQUIRE(found.proven);
        if (!found.placed) {
            if (found.proven) REQUIRE(best.placements == 0);
            REQUIRE(found.pods.empty());
            REQUIRE(found.per_domain.empty());
            REQUIRE_FALSE(found.reason.empty());
            REQUIRE(found.obstacle != Obstacle::none);
            ++reasons[enum_name(found.obstacle)];
            ++refused;
            continue;
        }
        ++placed;
        REQUIRE(best.placements > 0);
        const auto plan = to_plan(found);
        testing_support::require_valid(spec, with.cluster, plan);
        std::vector<std::size_t> nodes;
        for (const auto& p : found.pods) nodes.push_back(index(p.node));
        REQUIRE(found.entropy == Catch::Approx(entropy_at(spec, level, nodes)).margin(1e-9));
        if (found.proven) {
            REQUIRE(found.entropy == Catch::Approx(best.key[0]).margin(1e-7));
            std::size_t k = 0;
            for (const auto& wish : options.further)
                if (wish.mode == NetworkMode::preferred)
                    REQUIRE(entropy_at(spec, wish.level, nodes) == Catch::Approx(best.key[++k]).margin(1e-7));
        } else {
            REQUIRE(found.entropy >= best.key[0] - 1e-9);
        }
        for (const auto& wish : options.further)
            if (wish.mode == NetworkMode::required) REQUIRE(entropy_at(spec, wish.level, nodes) < 1e-12);
        spread += found.entropy > 0;
        by_region += options.mode == NetworkMode::required;

        // In place: the same, and undone without a trace. Algorithm 2 is never better.
        auto live = with.cluster;
        const auto start = live.checkpoint();
        REQUIRE(place_gang(live, with.pods, options).pods == found.pods);
        REQUIRE(live.same_placement(apply(with.cluster, plan)));
        live.rollback(start);
        options.policy = AllocatePolicy::entropy;
        const auto literal = place_gang(live, with.pods, options);
        if (found.proven) REQUIRE(literal.placed);
        if (found.proven) REQUIRE(literal.entropy >= found.entropy - 1e-9);
        live.rollback(start);
        REQUIRE(live.same_placement(with.cluster));
    }
    // Enough of everything happens.
    CHECK(placed > testing_support::instances(1500));
    CHECK(refused > testing_support::instances(1000));
    CHECK(spread > testing_support::instances(300));
    CHECK(by_region > testing_support::instances(200));
    CHECK(unproven > testing_support::instances(10));
    for (const char* reason : {"gpu", "cpu", "memory", "network", "gpu_model", "hardware", "anti_affinity"}) {
        INFO(reason);
        CHECK(reasons[reason] > 0);
    }
    std::string text;
    for (const auto& [reason, count] : reasons) text += reason + " " + std::to_string(count) + "  ";
    INFO(placed << " placed, " << refused << " refused, " << spread << " spread, " << unproven
                << " unproven, " << text);
    CHECK(true);
}
