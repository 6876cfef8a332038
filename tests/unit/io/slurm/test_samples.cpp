// SPDX-License-Identifier: Apache-2.0
// Samples of a cluster as scontrol prints it: text and JSON say the same.
#include "records.hpp"

using namespace slurm_text;

TEST_CASE("A cluster as text is a snapshot", "[io][slurm]") {
    const auto reading =
        read({sample("nodes.txt"), sample("jobs.txt"), sample("partitions.txt"), sample("topology.conf")});
    const auto& spec = reading.cluster;
    REQUIRE(spec.nodes.size() == 6);
    const auto& gpu01 = node_of(reading, "gpu01");
    CHECK(gpu01.cpu_milli == 184'000);
    CHECK(gpu01.memory_mib == 2'063'000 - 16'384);
    CHECK(gpu01.gpu_model == "h100");
    CHECK(gpu01.gpu_count == 8);
    CHECK(gpu01.network == std::vector<std::string>{"spine", "leaf1"});
    CHECK(gpu01.resources == Resources{{"gres/nic", 4}, {"gres/nic:ib", 4}});
    CHECK(gpu01.labels.contains("slurm/feature.nvlink"));
    CHECK(node_of(reading, "gpu03").failed_gpus == std::vector<int>{5});
    CHECK_FALSE(node_of(reading, "gpu03").schedulable);
    CHECK(node_of(reading, "mig01").devices ==
          std::vector<DeviceSpec>{{.device_class = "gpu:1g.10gb", .count = 7},
                                  {.device_class = "gpu:3g.40gb", .count = 2}});
    CHECK(node_of(reading, "cloud01").schedulable);

    // A job of two nodes is two tasks that must both run, on two nodes.
    const auto& first = task(reading, "1201/0");
    CHECK(first.job == "1201");
    CHECK(first.node == "gpu01");
    CHECK(first.gpus == std::vector<int>{1, 2, 4, 5});
    CHECK(first.cpu_milli == 32'000);
    CHECK(first.memory_mib == 524'288);
    CHECK(first.how == Mobility::restart);
    CHECK(first.preemptible == false);  // its partition has PreemptMode=OFF, another has not
    CHECK(first.eviction_count == 2);
    CHECK(first.gpu_models == std::vector<std::string>{"h100"});
    CHECK(task(reading, "1201/1").gpus == std::vector<int>{0, 1, 2, 3});
    CHECK(spec.jobs[0] == JobSpec{.name = "1201", .min_members = 2});

    const auto& notebook = task(reading, "1202/0");  // interactive: Slurm cannot requeue it
    CHECK(notebook.how == Mobility::none);
    CHECK(spec.now == notebook.start_time + 9000);  // when the last job had run for so long
    CHECK(notebook.preemptible == false);
    CHECK(notebook.gpu_models.empty());  // it asked for GPUs of any type
    CHECK(notebook.resources == Resources{{"gres/nic", 2}, {"gres/nic:ib", 2}});
    CHECK(task(reading, "1203/0").gpus == std::vector<int>{2});
    CHECK(task(reading, "1203/0").preemptible == true);
    CHECK(task(reading, "1204/0").gpu_share_milli == 750);
    CHECK(task(reading, "1204/0").gpus == std::vector<int>{0});

    const auto& wide = task(reading, "1210/1");
    CHECK_FALSE(wide.node.has_value());
    CHECK(wide.gpu_count == 8);
    CHECK(wide.cpu_milli == 64'000);
    CHECK(wide.memory_mib == 64 * 8192);
    CHECK(wide.node_affinity.size() == 4);  // two partitions, two racks
    CHECK(wide.avoid == std::vector<Avoid>{{"slurm/all", node_level}});
    CHECK(task(reading, "1220_9/0").gpu_count == 1);
    CHECK(task(reading, "1230+1/0").job == "1230");

    // What mig01 says is taken, and no job holds.
    const auto& rest = task(reading, "mig01/allocated");
    CHECK(rest.cpu_milli == 2000);
    CHECK(rest.locked);
    CHECK(task(reading, "mig01/allocated/gpu:3g.40gb").gpus == std::vector<int>{10});
    CHECK(row(reading, "Node", "allocated").examples == std::vector<std::string>{"mig01"});
    CHECK(row(reading, "Node", "reason").examples.front().find("Partitions=none") != std::string::npos);
    CHECK(row(reading, "Job", "licenses").errs == io::Errs::too_lax);
    CHECK(row(reading, "Job", "ended").count == 1);

    const auto cluster = Cluster::build(spec);
    CHECK_FALSE(fits(cluster, "1210/0", "gpu01"));  // others run there
    CHECK_FALSE(fits(cluster, "1210/0", "gpu03"));  // drained, excluded
    CHECK(fits(cluster, "1220_0/0", "mig01"));
    CHECK(fits(cluster, "1220_0/0", "cloud01"));
    CHECK_FALSE(fits(cluster, "1220_0/0", "gpu02"));  // another partition
}

TEST_CASE("The same cluster as JSON is the same snapshot", "[io][slurm]") {
    const auto text = read({sample("nodes.txt"), sample("jobs.txt"), sample("partitions.txt")});
    for (const char* const parser : {"v0.0.40", "v0.0.43"}) {
        INFO(parser);
        auto json = read({sample(std::string("cluster-") + parser + ".json")});
        json.cluster.now = text.cluster.now;
        for (auto& task : json.cluster.tasks)
            if (task.note.ends_with('Z')) task.note.pop_back();  // the text does not name its zone
        CHECK(io::cluster_to_json(json.cluster) == io::cluster_to_json(text.cluster));
    }
}

TEST_CASE("Records in one line each are the same records", "[io][slurm]") {
    const auto one_line = [](const std::string& text) {
        std::string out;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '\n') {
                out += text[i];
                continue;
            }
            if (text.compare(i, 2, "\n\n") == 0) {
                out += '\n';
                ++i;
                continue;
            }
            out += ' ';
            while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
        }
        return out;
    };
    // Text of users that looks like a field cannot be told from one there; the samples have it in one job, and in
    // the reason of a node.
    auto jobs = sample("jobs.txt");
    jobs.erase(jobs.find(" Partition=none"), 15);
    auto several = read({sample("nodes.txt"), jobs});
    auto one = read({one_line(sample("nodes.txt")), one_line(jobs)});
    for (auto* const reading : {&several, &one})
        for (auto& node : reading->cluster.nodes) node.labels.erase("slurm/reason");
    CHECK(one.cluster == several.cluster);
    CHECK(row(one, "(all)", "fields that occur twice").errs == io::Errs::either);
}
