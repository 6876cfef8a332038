// SPDX-License-Identifier: Apache-2.0
// Generated clusters with constraints: every constraint is there, holds, and costs the default cluster nothing.
#include "support/catch.hpp"

#include <gpusched/sim/sim.hpp>

using namespace gpusched;
using sim::generate_cluster;

namespace {

struct Digest {
    std::uint64_t value = 14695981039346656037u;
    void add(std::uint64_t x) { value = (value ^ x) * 1099511628211u; }
    void add(std::string_view text) {
        for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    }
};

// Of everything that the generator wrote before it knew of constraints.
std::uint64_t digest(const ClusterSpec& spec) {
    Digest d;
    for (const auto& node : spec.nodes) {
        d.add(node.name);
        d.add(node.gpu_model);
        for (const auto value : {node.gpu_count, node.cpu_milli, node.memory_mib})
            d.add(static_cast<std::uint64_t>(value));
        for (const auto& name : node.network) d.add(name);
    }
    for (const auto& task : spec.tasks) {
        for (const auto& text : {task.name, task.job, *task.node}) d.add(text);
        for (const auto& model : task.gpu_models) d.add(model);
        for (const auto value :
             {task.cpu_milli, task.memory_mib, task.gpu_count, task.gpu_share_milli, task.priority,
              task.start_time, *task.last_checkpoint_time, task.checkpoint_interval, task.eviction_count})
            d.add(static_cast<std::uint64_t>(value));
        for (const int gpu : task.gpus) d.add(static_cast<std::uint64_t>(gpu));
        d.add(task.locked ? 1u : 0u);
        d.add(task.anti_affinity.size());
    }
    return d.value;
}

template <class Has>
auto tasks_with(const ClusterSpec& spec, Has&& has) {
    return std::count_if(spec.tasks.begin(), spec.tasks.end(), has);
}

}  // namespace

TEST_CASE("clusters without constraints stay the same") {
    CHECK(digest(generate_cluster({.nodes = 700, .seed = 4})) == 4810092890486853208u);
    CHECK(digest(generate_cluster(
              {.preset = "openb", .nodes = 300, .seed = 5, .layout = sim::Layout::spread})) ==
          6430451459328904570u);
    CHECK(digest(generate_cluster({.preset = "flextopo-4090", .seed = 6})) == 3659254897643532882u);
    const auto spec = generate_cluster({.nodes = 200});
    CHECK(spec.label_levels.empty());
    CHECK(spec.budgets.empty());
    CHECK(spec.jobs.empty());
    for (const auto& node : spec.nodes) CHECK(node.labels.empty());
    // A share of 0 is the same as none.
    sim::GeneratorOptions none{.nodes = 200};
    visit_fields(std::type_identity<sim::ConstraintShares>{},
                 [&](const char*, auto share, auto...) { none.constraints.*share = 0; });
    CHECK(generate_cluster(none) == spec);
}

TEST_CASE("a constrained cluster has every kind of constraint") {
    const auto preset = GENERATE("constrained", "openb");
    sim::GeneratorOptions options{.preset = preset, .nodes = 1200, .seed = 2};
    if (options.preset == "openb")
        visit_fields(std::type_identity<sim::ConstraintShares>{},
                     [&](const char*, auto share, auto...) { options.constraints.*share = 0.3; });
    const auto spec = generate_cluster(options);
    INFO(preset);
    std::map<std::string, int> nodes;
    for (const auto& node : spec.nodes) {
        CHECK(node.labels.at("kubernetes.io/hostname") == node.name);
        std::int64_t devices = 0;
        for (const auto& group : node.devices) devices += group.count;
        nodes["mig"] += devices == 10;
        nodes["shared"] += devices == 4;
        nodes["large"] += node.gpu_count == 32;
        nodes["rdma"] += node.resources.contains("rdma/hca");
        nodes["more than 15 devices"] += node.gpu_count + devices > 15;
    }
    for (const auto* kind : {"mig", "shared", "large", "rdma", "more than 15 devices"}) {
        INFO(kind);
        CHECK(nodes[kind] > 3);
    }
    CHECK(tasks_with(spec, [](auto& t) { return t.device_count > 0; }) > 50);
    CHECK(tasks_with(spec, [](auto& t) { return t.device_count > 1; }) > 0);
    CHECK(tasks_with(spec, [](auto& t) { return t.device_classes.size() > 1; }) > 0);
    CHECK(tasks_with(spec, [](auto& t) { return t.resources.contains("rdma/hca"); }) > 3);
    CHECK(tasks_with(spec, [](auto& t) { return !t.avoid.empty(); }) > 20);
    CHECK(tasks_with(spec, [](auto& t) { return !t.avoid.empty() && t.avoid.back().group != t.job; }) > 5);
    CHECK(tasks_with(spec, [](auto& t) { return !t.near.empty(); }) > 20);
    for (const Level level : {node_level, first_label_level, first_label_level + 1})
        CHECK(tasks_with(spec, [&](auto& t) { return !t.spread.empty() && t.spread[0].level == level; }) > 5);
    CHECK(tasks_with(spec, [](auto& t) { return !t.node_affinity.empty(); }) > 20);
    for (const auto how : {Mobility::restart, Mobility::suspend, Mobility::none})
        CHECK(tasks_with(spec, [&](auto& t) { return t.how == how; }) > 20);
    std::set<bool> by_group, broken;
    std::set<std::int64_t> allowed;
    for (const auto& budget : spec.budgets) {
        by_group.insert(!budget.groups.empty());
        broken.insert(budget.broken);
        allowed.insert(budget.allowed_down);
    }
    CHECK(by_group.size() == 2);
    CHECK(broken.size() == 2);
    CHECK(allowed.contains(0));
    CHECK(allowed.contains(1));
    CHECK(spec.jobs.size() > 5);
    CHECK(std::any_of(spec.jobs.begin(), spec.jobs.end(), [](const JobSpec& job) {
        return job.subgroups.size() == 2 && job.min_members == 1 + job.subgroups[1].min_members;
    }));

    // Each task may run on its node.
    auto cluster = Cluster::build(spec);
    for (const auto task : cluster.tasks()) {
        const auto node = cluster.node_of(task);
        const auto gpus = cluster.gpus_of(task);
        const auto before = cluster.checkpoint();
        cluster.remove(task);
        REQUIRE(find_obstacle(cluster, task, node) == Obstacle::none);
        REQUIRE(gpus_fit(cluster, task, node, gpus));
        cluster.rollback(before);
    }
    CHECK(generate_cluster(options) == spec);
}

TEST_CASE("each share stands for its own constraint") {
    using S = sim::ConstraintShares;
    const auto only = [](std::optional<double> S::*share) {
        sim::GeneratorOptions options{.preset = "constrained", .nodes = 600, .seed = 3};
        visit_fields(std::type_identity<S>{},
                     [&](const char*, auto other, auto...) { options.constraints.*other = 0; });
        options.constraints.*share = 1;
        return generate_cluster(options);
    };
    for (const auto& node : only(&S::mig_fraction).nodes)
        CHECK((node.gpu_count == 6) == !node.devices.empty());
    for (const auto& node : only(&S::shared_fraction).nodes)
        CHECK((node.gpu_count == 3 || (node.gpu_count == 1 && node.cpu_milli == 64'000 &&
                                       !node.devices.empty())) == !node.devices.empty());
    for (const auto& node : only(&S::large_fraction).nodes) CHECK(node.gpu_count != 8);
    const auto all_move = only(&S::gang_fraction);
    for (const auto& task : all_move.tasks) {
        CHECK(task.how == Mobility::copy);
        CHECK(task.groups.empty());
    }
    CHECK(all_move.budgets.empty());
    CHECK(!all_move.jobs.empty());
    for (const auto& task : only(&S::restart_fraction).tasks) CHECK(task.how == Mobility::restart);
    for (const auto& task : only(&S::fixed_fraction).tasks) CHECK(task.how == Mobility::none);
}

TEST_CASE("constraint shares out of range, and those of a cluster without jobs, are named") {
    REQUIRE_THROWS_MESSAGE(generate_cluster({.constraints = {.mig_fraction = 1.5}}), InvalidInput,
                           "mig_fraction 1.5 0 1");
    REQUIRE_THROWS_MESSAGE(
        generate_cluster({.preset = "flextopo-4090", .constraints = {.gang_fraction = 0.5}}), InvalidInput,
        "gang_fraction 0.5 none preset 'flextopo-4090'");
    for (const std::int64_t nodes : {1, 2, 13, 40})
        REQUIRE_NOTHROW(Cluster::build(generate_cluster({.preset = "constrained", .nodes = nodes})));
}
