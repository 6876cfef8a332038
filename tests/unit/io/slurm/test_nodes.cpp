// SPDX-License-Identifier: Apache-2.0
// Nodes of Slurm: states, GPUs of several types and forms, what they say is taken, over-commitment.
#include "records.hpp"
#include "support/real_data.hpp"

using namespace slurm_text;

TEST_CASE("States of nodes that receive no task", "[io][slurm]") {
    for (const char* const state :
         {"DOWN", "DOWN*", "IDLE+DRAIN", "DRAINED", "MIXED+DRAINING", "IDLE+NOT_RESPONDING", "FAIL", "ERROR",
          "UNKNOWN", "IDLE+REBOOT_REQUESTED", "IDLE@", "IDLE+POWERING_DOWN", "IDLE%", "IDLE+MAINTENANCE",
          "IDLE+RESERVED", "IDLE+INVALID_REG", "IDLE+BLOCKED"}) {
        INFO(state);
        CHECK_FALSE(read({node("n0", "", "gpu:2", state)}).cluster.nodes[0].schedulable);
    }
    for (const char* const state : {"IDLE", "MIXED", "ALLOCATED", "COMPLETING", "IDLE+CLOUD",
                                    "IDLE+POWERED_DOWN", "IDLE~", "MIXED-", "IDLE+DYNAMIC_NORM", "idle"}) {
        INFO(state);
        CHECK(read({node("n0", "", "gpu:2", state)}).cluster.nodes[0].schedulable);
    }
    const auto reading =
        read({node("n0"), node("n1", "", "gpu:2", "IDLE+FUTURE"), node("n2", "", "", "MIXED+PLANNED")});
    CHECK(reading.cluster.nodes.size() == 2);
    CHECK(row(reading, "Node", "FUTURE").fidelity == io::Fidelity::left_out);
    CHECK(row(reading, "Node", "planned").examples == std::vector<std::string>{"n2"});
}

TEST_CASE("The reason why a node is closed is in the answers about it", "[io][slurm]") {
    const auto reading = read({node("n0", "Reason=bad fan [root@2026-11-28T09:00:00]", "gpu:2", "IDLE+DRAIN"),
                               node("n1", "Reason=Not responding", "gpu:2", "DOWN*"),
                               node("n2", "Reason=was slow", "gpu:2"), pending("1", "NumNodes=1")});
    CHECK(node_of(reading, "n0").labels.at("slurm/reason") == "bad fan");
    CHECK_FALSE(node_of(reading, "n2").labels.contains("slurm/reason"));
    const auto cluster = Cluster::build(reading.cluster);
    const auto obstacle = [&](const char* on) {
        return describe_obstacle(cluster, cluster.find_task("1/0"), cluster.find_node(on));
    };
    CHECK(testing_support::mentions(obstacle("n0"), "drained bad fan"));
    CHECK(testing_support::mentions(obstacle("n1"), "not ready Not responding"));
    CHECK(obstacle("n2").empty());
}

TEST_CASE("Nodes alone are of Slurm, too", "[io][slurm]") {
    const auto reading = read({node("n0", "Partitions=p", "gpu:2", "IDLE+DRAIN")});
    CHECK(words_of(Cluster::build(reading.cluster).inventory()).closed == "drained");
}

TEST_CASE("A reserved node is for jobs of its reservation", "[io][slurm]") {
    const auto reading = read({node("n0", "ReservationName=maint", "gpu:2", "IDLE+RESERVED"), node("n1"),
                               pending("1", "NumNodes=1 Reservation=maint"), pending("2", "NumNodes=1"),
                               pending("3", "NumNodes=1 Reservation=other")});
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "1/0", "n0"));
    CHECK_FALSE(fits(cluster, "1/0", "n1"));
    CHECK_FALSE(fits(cluster, "2/0", "n0"));
    CHECK(fits(cluster, "2/0", "n1"));
}

TEST_CASE("GPUs without a type, with one, and of several types on a node", "[io][slurm]") {
    const auto reading = read({node("plain", "", "gpu:4"), node("typed", "", "gpu:a100:8(S:0-1)"),
                               node("mixed", "", "gpu:v100:1,gpu:a100:2"),
                               running("1", "mixed", "Nodes=mixed CPU_IDs=0 Mem=1 GRES=gpu:v100:1(IDX:0)"),
                               running("2", "mixed", "Nodes=mixed CPU_IDs=1 Mem=1 GRES=gpu:a100:1(IDX:2)"),
                               pending("3", "NumNodes=1 TresPerNode=gres/gpu:v100:1"),
                               pending("4", "NumNodes=1 TresPerNode=gres/gpu:2")});
    CHECK(node_of(reading, "plain").gpu_model == "gpu");
    CHECK(node_of(reading, "typed").gpu_model == "a100");
    const auto& mixed = node_of(reading, "mixed");
    CHECK(mixed.gpu_model == "a100");
    CHECK(mixed.gpu_count == 2);
    CHECK(mixed.devices == std::vector<DeviceSpec>{{.device_class = "gpu:v100", .count = 1}});
    // Slurm counts the V100 first, the snapshot whole cards first.
    CHECK(task(reading, "1/0").gpus == std::vector<int>{2});
    CHECK(task(reading, "2/0").gpus == std::vector<int>{1});
    CHECK(task(reading, "3/0").device_classes == std::vector<std::string>{"gpu:v100"});
    CHECK(task(reading, "4/0").gpu_models.empty());
    CHECK(row(reading, "Node", "GPU type v100").fidelity == io::Fidelity::approximated);
}

TEST_CASE("Cards are devices on the node that has more of another type, not elsewhere", "[io][slurm]") {
    const auto reading = read({node("a", "", "gpu:a100:8"), node("h", "", "gpu:h100:8"),
                               node("i", "", "gpu:h100:8"), node("odd", "", "gpu:h100:4,gpu:a100:4"),
                               running("1", "odd", "Nodes=odd CPU_IDs=0 Mem=1 GRES=gpu:a100:2(IDX:4-5)"),
                               running("2", "odd", "Nodes=odd CPU_IDs=1 Mem=1 GRES=gpu:h100:3(IDX:0-2)"),
                               pending("3", "NumNodes=1 TresPerNode=gres/gpu:a100:8"),
                               pending("4", "NumNodes=1 TresPerNode=gres/gpu:8")});
    CHECK(node_of(reading, "a").gpu_count == 8);
    CHECK(node_of(reading, "odd").gpu_model == "h100");  // as many of each: the type with more in the cluster
    CHECK(node_of(reading, "odd").gpu_count == 4);
    CHECK(node_of(reading, "odd").devices ==
          std::vector<DeviceSpec>{{.device_class = "gpu:a100", .count = 4}});
    CHECK(task(reading, "1/0").gpus == std::vector<int>{4, 5});
    CHECK(task(reading, "1/0").device_count == 2);
    CHECK(task(reading, "2/0").gpu_count == 3);
    CHECK(task(reading, "3/0").gpu_count == 8);
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "3/0", "a"));
    CHECK_FALSE(fits(cluster, "3/0", "h"));
    CHECK(fits(cluster, "4/0", "a"));
    CHECK(fits(cluster, "4/0", "h"));
    const auto found = row(reading, "Node", "GPU type a100");
    CHECK(found.errs == io::Errs::too_strict);
    CHECK(found.examples == std::vector<std::string>{"odd"});
}

TEST_CASE("A request for any GPU if all are instances of cards", "[io][slurm]") {
    const auto reading = read({node("n0", "", "gpu:1g.10gb:7"), node("n1", "", "gpu:nvidia_a100_2g.20gb:3"),
                               pending("1", "NumNodes=1 TresPerNode=gres/gpu:1")});
    CHECK(task(reading, "1/0").device_count == 1);
    CHECK(task(reading, "1/0").device_classes ==
          std::vector<std::string>{"gpu:1g.10gb", "gpu:nvidia_a100_2g.20gb"});
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "1/0", "n0"));
    CHECK(fits(cluster, "1/0", "n1"));
}

TEST_CASE("Shards and MPS are shares of a GPU", "[io][slurm]") {
    const auto reading = read({node("n0", "", "gpu:l4:2,shard:l4:6"), node("n1", "", "gpu:l4:1,mps:100"),
                               running("1", "n0", "Nodes=n0 CPU_IDs=0 Mem=1 GRES=shard:l4:2(0/3,2/3)"),
                               pending("2", "NumNodes=1 TresPerNode=gres/shard:1"),
                               pending("3", "NumNodes=1 TresPerNode=gres/shard:6"),
                               pending("4", "NumNodes=1 TresPerNode=gres/mps:50")});
    CHECK(task(reading, "1/0").gpus == std::vector<int>{1});
    CHECK(task(reading, "1/0").gpu_share_milli == 666);
    CHECK(task(reading, "2/0").gpu_share_milli == 333);  // three fit on a GPU
    CHECK(task(reading, "3/0").gpu_count == 2);
    CHECK(task(reading, "4/0").gpu_share_milli == 500);
}

TEST_CASE("Nodes without jobs report their used resources", "[io][slurm]") {
    const auto reading =
        read({"NodeName=n0 CPUAlloc=16 CPUEfctv=64 CPUTot=64\n   Gres=gpu:h100:8\n"
              "   GresUsed=gpu:h100:3(IDX:0-1,7)\n   RealMemory=1000 AllocMem=500\n   State=MIXED\n",
              "NodeName=n1 CPUAlloc=0 CPUTot=64\n   Gres=gpu:h100:8\n   GresUsed=gpu:h100:2\n"
              "   RealMemory=1000 AllocMem=0\n   State=MIXED\n"});
    const auto& held = task(reading, "n0/allocated");
    CHECK(held.cpu_milli == 16'000);
    CHECK(held.memory_mib == 500);
    CHECK(held.gpus == std::vector<int>{0, 1, 7});
    CHECK(held.locked);
    CHECK(task(reading, "n1/allocated").gpus == std::vector<int>{0, 1});
    CHECK(reading.report.absent.size() == 3);  // jobs, partitions, a topology
}

TEST_CASE("A node with overcommitted jobs is clipped and receives nothing", "[io][slurm]") {
    const auto reading =
        read({node("n0"), node("n1"),
              running("1", "n0", "Nodes=n0 CPU_IDs=0-63 Mem=60000 GRES=gpu:h100:8(IDX:0-7)"),
              running("2", "n0", "Nodes=n0 CPU_IDs=0-63 Mem=60000 GRES=gpu:h100:2(IDX:0-1)"),
              running("3", "n0", "Nodes=n0 CPU_IDs=0 Mem=1 GRES=nic:3"), pending("4", "NumNodes=1")});
    const auto& spec = node_of(reading, "n0");
    CHECK(spec.cpu_milli == 129'000);
    CHECK(spec.memory_mib == 120'001);
    CHECK(spec.resources.at("gres/nic") == 3);
    CHECK_FALSE(spec.schedulable);
    CHECK(task(reading, "2/0").gpu_count == 0);
    CHECK(row(reading, "Job", "GPUs beyond those of its node").examples == std::vector<std::string>{"2/0"});
    CHECK(row(reading, "Node", "over-committed").examples.front() ==
          "n0: CPU (thousandths) 129000 of 64000, memory (MiB) 120001 of 100000, gres/nic 3 of 0");
    const auto cluster = Cluster::build(reading.cluster);
    CHECK_FALSE(fits(cluster, "4/0", "n0"));
    CHECK(fits(cluster, "4/0", "n1"));
}

TEST_CASE("More GPUs than have numbers, drained ones without an index", "[io][slurm]") {
    const auto reading = read({node("n0", "", "gpu:h100:70"), node("n1", "GresDrain=gpu:h100:2")});
    CHECK(node_of(reading, "n0").gpu_count == 64);
    CHECK(row(reading, "Node", "GPUs beyond 64").errs == io::Errs::too_strict);
    CHECK(node_of(reading, "n1").failed_gpus == std::vector<int>{6, 7});
    CHECK(row(reading, "Node", "drained GPUs").fidelity == io::Fidelity::approximated);
}

TEST_CASE("Positions in the network come from a topology", "[io][slurm]") {
    const std::string yaml = "- topology: default\n  cluster_default: true\n  tree:\n    switches:\n"
                             "    - switch: top\n      children: s[0-1]\n    - switch: s0\n      nodes: n0\n"
                             "    - switch: s1\n      nodes: n1\n";
    const auto of_conf =
        read({node("n0"), node("n1"), node("n2"),
              "# tree\nSwitchName=s0 Nodes=n0\nSwitchName=s1 Nodes=n1\nSwitchName=top Switches=s[0-1]\n"});
    CHECK(node_of(of_conf, "n1").network == std::vector<std::string>{"top", "s1"});
    CHECK(node_of(of_conf, "n2").network.empty());
    CHECK(io::reading_report_to_text(of_conf.report).find("the topology does not name it") !=
          std::string::npos);
    CHECK_THAT(refusal({node("n0"), "SwitchName=s0 Nodes=n0\n", "SwitchName=s0 Nodes=n0\n"}),
               Mentions("expected one topology"));
    if (json::reads_yaml())
        CHECK(node_of(read({node("n0"), node("n1"), yaml}), "n0").network ==
              std::vector<std::string>{"top", "s0"});
    else
        CHECK_THROWS_AS(read({node("n0"), node("n1"), yaml}), BackendError);
}

TEST_CASE("A topology of Slurm's own tests places all its nodes", "[io][slurm][data]") {
    const auto path = testing_support::real_data("slurm") / "testcase1" / "topology.conf";
    if (!testing_support::is_here(path)) return;
    const auto topology = read_file(path.string());
    std::string nodes;
    for (const auto& of_network : io::slurm_topology_from_conf(topology).nodes)
        nodes += node(of_network.name);
    const auto reading = read({nodes, topology});
    CHECK(reading.cluster.nodes.size() > 500);
    for (const auto& placed : reading.cluster.nodes) CHECK_FALSE(placed.network.empty());
}
