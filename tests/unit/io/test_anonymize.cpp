// SPDX-License-Identifier: Apache-2.0
#include "support/random_cluster.hpp"

#include <gpusched/io/io.hpp>
#include <gpusched/model/feasibility.hpp>

using namespace gpusched;

namespace {

ClusterSpec secret_cluster() {
    ClusterSpec spec;
    for (const auto* name : {"secret-a", "secret-b", "secret-c"})
        spec.nodes.push_back({.name = name,
                              .gpu_model = "A100",
                              .gpu_count = 8,
                              .cpu_milli = 128000,
                              .memory_mib = 1000000,
                              .network = {"secret-root", std::string(name) + "-rack"},
                              .labels = {{"secret-key", name}, {"a-secret", ""}},
                              .taints = {{"secret-key", "secret-value", "NoSchedule"}},
                              .hardware = hardware_preset("a100x8")});
    TaskSpec task{.name = "secret-task",
                  .job = "secret-job",
                  .gpu_count = 1,
                  .gpu_models = {"A100"},
                  .node_selector = {{"secret-key", "secret-b"}},
                  .tolerations = {{"secret-key", "Equal", "secret-value", ""}, {"", "Exists", "", ""}},
                  .anti_affinity = {{"secret-group", 1, 1}},
                  .affinity = {{"secret-group", 0}},
                  .node = "secret-b",
                  .gpus = {5},
                  .owner_kind = "secret-kind"};
    spec.tasks.push_back(task);
    spec.jobs = {{"secret-job", 1, 1}, {"secret-idle", 0, {}}};
    spec.jobs[1].waiting = WaitingReason{WaitingFor::quota, "secret-queue"};
    return spec;
}

/// How many entries of `wanted` are in `given`.
std::size_t common(const Labels& wanted, const Labels& given) {
    std::size_t count = 0;
    for (const auto& entry : wanted)
        count += given.contains(entry.first) && given.at(entry.first) == entry.second;
    return count;
}

}  // namespace

TEST_CASE("Anonymised resources and node affinity pose the same question", "[io]") {
    Rng rng(3);
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
        const auto before = testing_support::random_cluster(rng, {.extras = 0.3});
        const auto after = io::anonymize(before, static_cast<std::uint64_t>(i));
        CHECK(io::cluster_to_json(after).find("rdma/hca") == std::string::npos);
        const auto a = Cluster::build(before), b = Cluster::build(after);
        for (const auto task : a.tasks())
            for (const auto node : a.nodes()) {
                REQUIRE(find_obstacle(a, task, node) == find_obstacle(b, task, node));
                const auto why = find_eligibility_obstacle(a, task, node);
                REQUIRE(why == find_eligibility_obstacle(b, task, node));
                refused += why == Obstacle::node_affinity;
            }
    }
    CHECK(refused > 100);
}

TEST_CASE("Classes of devices keep the names that vendors gave, and lose others") {
    const std::vector<std::string> kept{"1g.10gb",
                                        "gpu:3g.40gb+me",
                                        "nvidia.com/mig-1g.10gb",
                                        "nvidia.com/mig-1g.10gb.me",
                                        "nvidia.com/mig-7g.141gb.shared",
                                        "amd.com/cpx_nps4",
                                        "amd.com/spx_nps1",
                                        "nvidia.com/gpu",
                                        "nvidia.com/gpu.shared",
                                        "nvidia.com/gpu (shared)",
                                        "nvidia.com/gpu (MIG 1g.10gb)"};
    const std::vector<std::string> renamed{"secret",
                                           "gpu:secret",
                                           "gpu.secret.com",
                                           "nvidia.com/gpu-secret",
                                           "nvidia.com/gpu (MIG secret)",
                                           "nvidia.com/gpu (MIG 1g.10gb",
                                           "nvidia.com/mig-secret",
                                           "amd.com/secret_nps1",
                                           "amd.com/xpx_nps1",
                                           "amd.com/cpx_nps3",
                                           "amd.com/cpx_nps1secret",
                                           "cpx_nps1",
                                           "nvidia.com/mig-1g.10gb.secret",
                                           "nvidia.com/mig-",
                                           "1g.10gb-secret",
                                           "20261g.10gb",
                                           "1g.12345gb",
                                           "1g.gb",
                                           "gpu:"};
    ClusterSpec spec;
    spec.nodes = {{.name = "n", .cpu_milli = 1000}};
    TaskSpec task{.name = "t", .device_count = 1};
    for (const auto* names : {&kept, &renamed})
        for (const auto& name : *names) {
            spec.nodes[0].devices.push_back({.device_class = name, .count = 1});
            task.device_classes.push_back(name);
        }
    spec.tasks = {task};
    const auto after = io::anonymize(spec, 5);
    CHECK(io::cluster_to_json(after).find("secret") == std::string::npos);
    std::set<std::string> distinct;
    for (std::size_t i = 0; i < task.device_classes.size(); ++i) {
        const auto& name = after.tasks[0].device_classes[i];
        INFO(task.device_classes[i] << " -> " << name);
        CHECK((i < kept.size() ? name == kept[i] : name.starts_with("device-")));
        CHECK(after.nodes[0].devices[i].device_class == name);
        distinct.insert(name);
    }
    CHECK(distinct.size() == task.device_classes.size());
}

TEST_CASE("Of values that are compared as numbers only the integers stay") {
    ClusterSpec spec;
    for (const auto* value : {"5", "-7", "+3", "secret", "5secret", "99999999999999999999"})
        spec.nodes.push_back(
            {.name = value, .cpu_milli = 1000, .labels = {{"size", value}, {"other", value}}});
    TaskSpec task{.name = "t", .node_selector = {{"size", "secret"}}};
    task.node_affinity = {{.match_expressions = {{"size", MatchOperator::gt, {"-8"}}}},
                          {.match_expressions = {{"size", MatchOperator::in, {"5", "secret"}}}}};
    spec.tasks = {task};
    const auto after = io::anonymize(spec, 2);
    CHECK(io::cluster_to_json(after).find("secret") == std::string::npos);
    const auto key = after.tasks[0].node_affinity[0].match_expressions[0].key;
    CHECK(key != "size");
    for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
        const auto& old = spec.nodes[i].labels.at("size");
        const auto& value = after.nodes[i].labels.at(key);
        INFO(old << " -> " << value);
        CHECK((value == old) == (i < 3));
        for (const auto& label : after.nodes[i].labels)
            if (label.first != key) CHECK(label.second.starts_with("value-"));
    }
    CHECK(after.tasks[0].node_selector.at(key) == after.nodes[3].labels.at(key));
    CHECK(after.tasks[0].node_affinity[0].match_expressions[0].values == std::vector<std::string>{"-8"});
    CHECK(after.tasks[0].node_affinity[1].match_expressions[0].values ==
          std::vector<std::string>{"5", after.nodes[3].labels.at(key)});
}

TEST_CASE("An anonymised cordon still lets tasks in that tolerate it", "[io]") {
    ClusterSpec spec;
    spec.nodes = {{.name = "n", .cpu_milli = 1, .schedulable = false}};
    spec.nodes[0].taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
    spec.tasks = {{.name = "tolerant"}, {.name = "other"}};
    spec.tasks[0].tolerations = {{.key = "node.kubernetes.io/unschedulable", .op = "Exists"}};
    const auto after = Cluster::build(io::anonymize(spec, 1), IdOrder::as_listed);
    CHECK(find_obstacle(after, TaskId{0}, NodeId{0}) == Obstacle::none);
    CHECK(find_obstacle(after, TaskId{1}, NodeId{0}) != Obstacle::none);
}

TEST_CASE("Anonymised groups that others select pose the same question", "[io]") {
    Rng rng(4);
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
        const auto before = testing_support::random_cluster(rng, {.selected = 0.3});
        const auto after = io::anonymize(before, static_cast<std::uint64_t>(i));
        for (const char* name : {"rack", "zone", "nobody has this", "group0"}) {
            INFO(name);
            CHECK(io::cluster_to_json(after).find('"' + std::string(name) + '"') == std::string::npos);
        }
        const auto a = Cluster::build(before), b = Cluster::build(after);
        for (const auto task : a.tasks())
            for (const auto node : a.nodes()) {
                const auto why = find_group_obstacle(a, task, node);
                REQUIRE(why == find_group_obstacle(b, task, node));
                refused += why >= Obstacle::avoid;
            }
    }
    CHECK(refused > 100);
}

TEST_CASE("No name survives anonymising, and all else does", "[io]") {
    const auto before = secret_cluster();
    const auto after = io::anonymize(before, 1);
    CHECK(io::cluster_to_json(after).find("secret") == std::string::npos);

    CHECK(after.nodes[1].gpu_model == "A100");
    CHECK(after.nodes[1].hardware == before.nodes[1].hardware);
    CHECK(after.tasks[0].gpus == before.tasks[0].gpus);
    CHECK(after.tasks[0].node == after.nodes[1].name);
    CHECK(after.tasks[0].job == after.jobs[0].name);
    CHECK(after.tasks[0].anti_affinity[0].group == after.tasks[0].affinity[0].group);
    CHECK(after.tasks[0].anti_affinity[0].level == 1);
    CHECK(after.tasks[0].tolerations[0].key == after.nodes[0].taints[0].key);
    CHECK(after.tasks[0].tolerations[1] == Toleration{"", "Exists", "", ""});
    CHECK(after.nodes[0].network[0] == after.nodes[2].network[0]);
    CHECK(after.nodes[0].network[1] != after.nodes[2].network[1]);
    CHECK(after.jobs[1].max_disrupted == std::nullopt);

    // The key is the same wherever it occurs; an empty value stays empty.
    const auto& key = after.nodes[0].taints[0].key;
    REQUIRE(after.tasks[0].node_selector.contains(key));
    CHECK(after.tasks[0].node_selector.at(key) == after.nodes[1].labels.at(key));
    for (const auto& [other, value] : after.nodes[1].labels)
        if (other != key) CHECK(value.empty());
}

TEST_CASE("Anonymising depends on the seed alone", "[io]") {
    auto spec = secret_cluster();
    for (int i = 0; i < 100; ++i) spec.jobs.push_back({"extra-" + std::to_string(i)});
    CHECK(io::anonymize(spec, 7) == io::anonymize(spec, 7));
    CHECK(io::anonymize(spec, 7) != io::anonymize(spec, 8));
    // Nothing to tell the two apart but the order of the old names.
    const auto once = io::anonymize(spec, 7);
    CHECK(io::anonymize(io::anonymize(once, 3), 4).jobs.size() == spec.jobs.size());
}

TEST_CASE("An anonymised snapshot poses the same problem", "[io]") {
    Rng rng(20);
    for (int round = 0; round < 40; ++round) {
        const auto spec = testing_support::RandomCluster(rng, {}).make();
        const auto hidden = io::anonymize(spec, rng());
        const auto a = Cluster::build(spec);
        const auto b = Cluster::build(hidden);

        std::set<std::string> names;
        for (const auto& node : hidden.nodes) names.insert(node.name);
        CHECK(names.size() == spec.nodes.size());  // distinct stays distinct
        for (const auto task : a.tasks()) {
            CHECK(a.node_of(task) == b.node_of(task));
            CHECK(a.gpus_of(task) == b.gpus_of(task));
            for (const auto node : a.nodes()) {
                CHECK(find_obstacle(a, task, node) == find_obstacle(b, task, node));
                CHECK(find_eligibility_obstacle(a, task, node) == find_eligibility_obstacle(b, task, node));
                CHECK(candidate_gpus(a, task, node) == candidate_gpus(b, task, node));
                CHECK(common(spec.tasks[index(task)].node_selector, spec.nodes[index(node)].labels) ==
                      common(hidden.tasks[index(task)].node_selector, hidden.nodes[index(node)].labels));
            }
        }
        CHECK(a.inventory().job_size == b.inventory().job_size);
        CHECK(a.inventory().job_min_members == b.inventory().job_min_members);
        CHECK(a.inventory().tasks.subgroup == b.inventory().tasks.subgroup);
        for (const auto& subgroup : b.inventory().subgroups) CHECK(subgroup.name.starts_with("subgroup-"));
        for (int level = 0; level < a.inventory().network_levels(); ++level)
            for (const auto node : a.nodes())
                CHECK(a.inventory().domain(level, node) == b.inventory().domain(level, node));
    }
}
