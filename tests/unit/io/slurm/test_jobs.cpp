// SPDX-License-Identifier: Apache-2.0
// Jobs of Slurm: resources per node, permitted nodes, preemption.
#include "records.hpp"

#include "io/slurm/eligibility.hpp"
#include "io/slurm/values.hpp"

using namespace slurm_text;

TEST_CASE("Amounts, durations, states and lists as Slurm writes them", "[io][slurm]") {
    namespace slurm = io::detail::slurm;
    CHECK(slurm::amount_of("128G", 'M') == 128 * 1024);
    CHECK(slurm::amount_of("1.50T", 'M') == 1536 * 1024);
    CHECK(slurm::amount_of("1K", 'M') == 1);
    CHECK(slurm::amount_of("4000Mc", 'M') == 4000);
    CHECK(slurm::amount_of("500", 'M') == 500);
    CHECK(slurm::amount_of("4K") == 4096);
    CHECK(slurm::amount_of("9999999999999999") == largest_quantity);
    for (const char* const wrong : {"", "x", "-1", "1Q", "1GG", "nan", "inf"})
        CHECK_FALSE(slurm::amount_of(wrong).has_value());
    CHECK(slurm::duration_of("1-02:03:04") == 93'784);
    CHECK(slurm::duration_of("03:04") == 184);
    CHECK_FALSE(slurm::duration_of("UNLIMITED").has_value());
    CHECK(slurm::utc_of(1'795'327'200) == "2026-11-22T06:00:00Z");
    CHECK(slurm::utc_of(0).empty());
    CHECK(slurm::utc_of(largest_quantity).empty());
    CHECK(slurm::states_of("MIXED+PLANNED*") == slurm::Words{"MIXED", "NOT_RESPONDING", "PLANNED"});
    CHECK(slurm::indices_of("0-2,5") == std::vector<int>{0, 1, 2, 5});
    CHECK_FALSE(slurm::indices_of("0-9999").has_value());
    const auto gres =
        slurm::gres_of("gpu:(null):2(IDX:0-1),gres/shard:4,gres:nic:ib=3,tpu,cpu=4,license/x=1");
    REQUIRE(gres.has_value());
    REQUIRE(gres->size() == 4);
    CHECK((*gres)[0].type.empty());
    CHECK((*gres)[0].count == 2);
    CHECK(slurm::named_devices((*gres)[0]) == std::vector<int>{0, 1});
    CHECK((*gres)[1].count == 4);
    CHECK((*gres)[2].type == "ib");
    CHECK((*gres)[2].count == 3);
    CHECK((*gres)[3].count == 1);
    CHECK(slurm::gres_of("gpu(IDX:0-1,5)")->front().count == 3);
    CHECK(slurm::is_mig_type("nvidia_a100_3g.20gb"));
    CHECK(slurm::is_mig_type("1g.10gb+me"));
    CHECK_FALSE(slurm::is_mig_type("h100-80gb"));
}

TEST_CASE("Constraints on features", "[io][slurm]") {
    namespace slurm = io::detail::slurm;
    const auto every = [](std::string_view text) {
        return slurm::ConstraintReader(text).read().value().every;
    };
    CHECK(every("a&b") == slurm::Alternatives{{"a", "b"}});
    CHECK(every("a,b") == slurm::Alternatives{{"a", "b"}});
    CHECK(every("a|b&c") == slurm::Alternatives{{"a"}, {"b", "c"}});
    CHECK(every("(a|b)&c") == slurm::Alternatives{{"a", "c"}, {"b", "c"}});
    CHECK(slurm::ConstraintReader("[a|b]").read()->same_on_all);
    const auto counted = slurm::ConstraintReader("a*2&b*1&c").read();
    REQUIRE(counted.has_value());
    CHECK(counted->every == slurm::Alternatives{{"c"}});
    REQUIRE(counted->some.size() == 2);
    CHECK(counted->some[0].nodes == 2);
    for (const char* const wrong : {"", "a&", "(a", "a)", "a*", "a*0", "|", "((((((((((a))))))))))"})
        CHECK_FALSE(slurm::ConstraintReader(wrong).read().has_value());
}

TEST_CASE("Features of a job name the nodes that it may use", "[io][slurm]") {
    const auto reading =
        read({node("a", "ActiveFeatures=h100,rack1"), node("b", "ActiveFeatures=a100,rack1"),
              node("c", "AvailableFeatures=h100"), pending("1", "NumNodes=1 Features=h100&rack1"),
              pending("2", "NumNodes=1 Features=h100|a100"), pending("3", "NumNodes=2 Features=a100*1&rack1"),
              pending("4", "NumNodes=1 Features=h100&"), pending("5", "NumNodes=2 Features=[rack1|rack2]")});
    const auto cluster = Cluster::build(reading.cluster);
    const auto where = [&](const std::string& name) {
        std::string out;
        for (const char* const node : {"a", "b", "c"})
            if (fits(cluster, name, node)) out += node;
        return out;
    };
    CHECK(where("1/0") == "a");
    CHECK(where("2/0") == "abc");
    CHECK(where("3/0") == "b");
    CHECK(where("3/1") == "ab");
    CHECK(where("4/0") == "abc");
    CHECK(where("5/0") == "ab");
    CHECK(row(reading, "Job", "features of some nodes").errs == io::Errs::either);
    CHECK(row(reading, "Job", "features in brackets").errs == io::Errs::too_lax);
}

TEST_CASE("Nodes that a job requires and excludes, and its partitions", "[io][slurm]") {
    const auto reading =
        read({node("n0", "Partitions=x"), node("n1", "Partitions=x"), node("n2", "Partitions=y"),
              pending("1", "NumNodes=2 Partition=x,y ReqNodeList=n1 ExcNodeList=n0"),
              pending("2", "NumNodes=1 Partition=z"), pending("3", "NumNodes=1 Partition=y ReqNodeList=n[")});
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "1/0", "n1"));
    CHECK_FALSE(fits(cluster, "1/0", "n2"));
    CHECK_FALSE(fits(cluster, "1/1", "n0"));
    CHECK(fits(cluster, "1/1", "n2"));
    CHECK(fits(cluster, "2/0", "n0"));
    CHECK_FALSE(fits(cluster, "3/0", "n0"));
    CHECK(row(reading, "Job", "ReqNodeList").fidelity == io::Fidelity::ignored);
}

TEST_CASE("Tasks of a job of several nodes run on different nodes", "[io][slurm]") {
    const auto reading = read({node("n0"), node("n1"),
                               pending("1", "NumNodes=2 NumCPUs=3 ReqTRES=cpu=3,mem=5G,node=2,gres/gpu=3"),
                               running("2", "n0", "Nodes=n0 CPU_IDs=0 Mem=1 GRES=")});
    auto cluster = Cluster::build(reading.cluster);
    CHECK(task(reading, "1/0").cpu_milli == 2000);  // equal parts, rounded up
    CHECK(task(reading, "1/0").gpu_count == 2);
    CHECK(task(reading, "1/0").memory_mib == 2560);
    CHECK(row(reading, "Job", "request of each node").errs == io::Errs::too_strict);
    auto spec = reading.cluster;
    for (auto& one : spec.tasks)
        if (one.name == "1/0") one.node = "n0", one.assign_gpus = true;
    cluster = Cluster::build(spec);
    CHECK_FALSE(fits(cluster, "1/1", "n0"));
    CHECK(fits(cluster, "1/1", "n1"));
    CHECK(reading.cluster.jobs[0] == JobSpec{.name = "1", .min_members = 2});
}

TEST_CASE("A running job without details of its nodes holds equal parts", "[io][slurm]") {
    const auto reading =
        read({node("n0"), node("n1"),
              running("1", "n[0-1]", "", "AllocTRES=cpu=5,mem=4G,node=2,gres/gpu=3,gres/gpu:h100=3")});
    CHECK(task(reading, "1/0").cpu_milli == 3000);
    CHECK(task(reading, "1/1").cpu_milli == 2000);
    CHECK(task(reading, "1/0").gpu_count == 2);
    CHECK(task(reading, "1/1").gpus == std::vector<int>{0});
    CHECK(row(reading, "Job", "allocation of each node").errs == io::Errs::either);
    CHECK(row(reading, "Job", "which GPUs it holds").fidelity == io::Fidelity::approximated);
}

TEST_CASE("Requests for tasks, sockets and the whole job", "[io][slurm]") {
    const auto reading = read({node("n0", "", "gpu:h100:8,nic:4"),
                               pending("1", "NumNodes=2 NumTasks=4 TresPerTask=cpu=2,gres/gpu:h100:1"),
                               pending("2", "NumNodes=2 TresPerJob=gres/gpu:4 TresPerNode=gres/nic:1"),
                               pending("3", "NumNodes=1 TresPerSocket=gres/gpu:2 ReqTRES=cpu=2,gres/gpu=4")});
    CHECK(task(reading, "1/0").gpu_count == 2);
    CHECK(task(reading, "2/0").gpu_count == 2);
    CHECK(task(reading, "2/0").resources.at("gres/nic") == 1);
    CHECK(task(reading, "3/0").gpu_count == 4);
    CHECK(row(reading, "Job", "request by socket").errs == io::Errs::too_lax);
}

TEST_CASE("Cores and memory for each GPU", "[io][slurm]") {
    const auto reading = read(
        {node("n0"),
         pending("1",
                 "NumNodes=2-2 NumCPUs=2 MinCPUsNode=1 MinMemoryNode=0\n   ReqTRES=cpu=2,node=2,gres/gpu=16\n"
                 "   CpusPerTres=gres/gpu:11 MemPerTres=gres/gpu:2000\n   TresPerNode=gres/gpu:8"),
         pending("2", "NumNodes=1 NumCPUs=40 MinMemoryNode=0 CpusPerTres=gpu:4 TresPerJob=gres/gpu:2"),
         R"({"nodes": [], "jobs": [{"job_id": 3, "job_state": ["PENDING"], "node_count": 1, "cpus": 8,
          "requeue": true,
                  "cpus_per_tres": "gres/gpu:8", "memory_per_tres": "gres/gpu:1000",
                   "tres_per_node": "gres/gpu:4"}]})"});
    CHECK(task(reading, "1/0").cpu_milli == 88'000);
    CHECK(task(reading, "1/1").memory_mib == 16'000);
    CHECK(task(reading, "2/0").cpu_milli == 40'000);  // more than what comes with the GPUs
    CHECK(task(reading, "3/0").cpu_milli == 32'000);
    CHECK(task(reading, "3/0").memory_mib == 4'000);
}

TEST_CASE("Unread fields of jobs and partitions are reported", "[io][slurm]") {
    const auto reading = read(
        {node("n0"),
         pending("7", "NumNodes=1 Contiguous=1 Network=(null) CoreSpec=* Switches=1@1-00:00:00 QOS=high\n"
                      "   ReqB:S:C:T=0:0:*:* Socks/Node=* NtasksPerN:B:S:C=4:0:*:*"),
         "JobId=8 JobName=j\n   JobState=PENDING Reason=QOSMaxGRESPerUser\n   NumNodes=1\n\n",
         "JobId=9 ArrayJobId=9 ArrayTaskId=5-20%2 ArrayTaskThrottle=2 JobName=a\n   JobState=PENDING "
         "Reason=Priority\n"
         "   NumNodes=1\n\n",
         partition("gpu", "MaxNodes=1 MaxTime=UNLIMITED MaxCPUsPerNode=16 AllowAccounts=ALL AllowQos=high "
                          "QoS=N/A\n   Nodes=n0\n"
                          "   JobDefaults=DefCpuPerGPU=11,DefMemPerGPU=200000"),
         partition("open", "MaxNodes=UNLIMITED AllowGroups=ALL Nodes=n0 JobDefaults=(null)")});
    for (const auto* const key : {"Contiguous", "Switches", "NtasksPerN:B:S:C"})
        CHECK(row(reading, "Job", std::string("request ") + key).errs == io::Errs::too_lax);
    CHECK(row(reading, "Job", "request Switches").examples.front() == "7: Switches=1@1-00:00:00");
    CHECK(std::none_of(reading.report.rows.begin(), reading.report.rows.end(), [](const auto& found) {
        return found.what == "request CoreSpec" || found.what == "request ReqB:S:C:T" ||
               found.what == "request Network";
    }));
    CHECK(row(reading, "Job", "limits of its account and QOS").examples.front() == "7: high");
    CHECK(row(reading, "Job", "waits for something else than room").examples.front() ==
          "8: QOSMaxGRESPerUser");
    CHECK(row(reading, "Job", "throttled arrays").examples.front() == "9_[5-20%2]");
    const auto limits = row(reading, "Partition", "limits");
    CHECK(limits.count == 1);
    CHECK_THAT(limits.examples.front(), Mentions("gpu MaxNodes=1 MaxCPUsPerNode=16 AllowQos=high"));
    CHECK(row(reading, "Partition", "JobDefaults").examples.front() ==
          "gpu: DefCpuPerGPU=11,DefMemPerGPU=200000");
    const auto json = read({R"({"nodes": [{"name": "n0", "cpus": 4}],
         "jobs": [{"job_id": 3, "job_state": ["PENDING"], "contiguous": true,
        "required_switches": 1, "array_job_id": 3, "array_task_string": "0-9%2", "array_max_tasks": 2,
         "network": ""}],
        "partitions": [{"name": "p", "maximums": {"nodes": {"set": true, "infinite": false, "number": 1},
        "cpus_per_node": {"set": true, "infinite": true, "number": 0}}, "accounts": {"allowed": "ml"}}]})"});
    CHECK(row(json, "Job", "request contiguous").count == 1);
    CHECK(row(json, "Job", "request required_switches").count == 1);
    CHECK(row(json, "Job", "throttled arrays").count == 1);
    CHECK_THAT(row(json, "Partition", "limits").examples.front(),
               Mentions("p maximums/nodes=1 accounts/allowed=ml"));
}

TEST_CASE("States of jobs", "[io][slurm]") {
    const auto with = [](const std::string& id, const std::string& state) {
        return "JobId=" + id + " JobName=j\n   JobState=" + state +
               " Reason=None\n   Requeue=1 BatchFlag=1\n   NodeList=n0\n"
               "     Nodes=n0 CPU_IDs=0 Mem=10 GRES=gpu:h100:1(IDX:" +
               id + ")\n\n";
    };
    const auto reading =
        read({node("n0"), with("1", "RUNNING"), with("2", "COMPLETING"), with("3", "SUSPENDED"),
              with("4", "FAILED"), with("5", "CONFIGURING"), with("6", "REQUEUE_HOLD"), with("7", "ODD")});
    CHECK_FALSE(task(reading, "1/0").locked);
    CHECK(task(reading, "2/0").locked);
    CHECK(task(reading, "3/0").cpu_milli == 0);
    CHECK(task(reading, "3/0").gpus == std::vector<int>{3});
    CHECK(task(reading, "5/0").node == "n0");
    CHECK_FALSE(task(reading, "6/0").node.has_value());
    CHECK(row(reading, "Job", "ended").count == 2);
    CHECK(row(reading, "Job", "suspended").errs == io::Errs::too_lax);
}

TEST_CASE("Tiers of partitions come before priorities, and modes decide which jobs may be evicted",
          "[io][slurm]") {
    const auto on = [](const std::string& id, const std::string& name, const std::string& more) {
        return running(
            id, "n0", "Nodes=n0 CPU_IDs=0 Mem=1 GRES=", "Partition=" + name + " Priority=4294967295 " + more);
    };
    const std::vector<std::string> texts{node("n0"),
                                         on("1", "low", ""),
                                         on("2", "high", ""),
                                         on("3", "low", "OverSubscribe=NO"),
                                         partition("low", "Nodes=n0 PriorityTier=1 PreemptMode=REQUEUE"),
                                         partition("high", "Nodes=n0 PriorityTier=100 PreemptMode=OFF")};
    auto reading = read(texts);
    CHECK(task(reading, "1/0").priority == 4294967295);
    CHECK(task(reading, "2/0").priority == (std::int64_t{1} << 32) + 4294967295);
    CHECK(task(reading, "1/0").preemptible == true);
    CHECK(task(reading, "2/0").preemptible == false);
    CHECK(task(reading, "2/0").how == Mobility::restart);  // it moves, and is not evicted
    CHECK(task(read(texts, {.ignore_protection = true}), "2/0").preemptible == true);

    // If preemption is off everywhere it protects no job.
    reading = read(
        {node("n0"), on("2", "high", ""), partition("high", "Nodes=n0 PriorityTier=100 PreemptMode=OFF")});
    CHECK(task(reading, "2/0").preemptible == true);
    CHECK(task(reading, "2/0").priority == 4294967295);

    const auto kept = "JobId=9\n   JobState=RUNNING\n   Requeue=0\n   NodeList=n0\n   AllocTRES=cpu=1\n\n";
    CHECK(task(read({node("n0"), kept}), "9/0").preemptible == false);
    CHECK(task(read({node("n0"), kept}, {.evict_without_requeue = true}), "9/0").preemptible == true);
    CHECK(task(read({node("n0"), kept}, {.evict_without_requeue = true}), "9/0").how == Mobility::none);
}

TEST_CASE("Jobs that are alone on their nodes", "[io][slurm]") {
    const auto reading = read({node("n0"), node("n1"), node("n2"),
                               running("1", "n0", "Nodes=n0 CPU_IDs=0 Mem=1 GRES=", "OverSubscribe=NO"),
                               running("2", "n1", "Nodes=n1 CPU_IDs=0 Mem=1 GRES=", "OverSubscribe=USER"),
                               pending("3", "NumNodes=1"), pending("4", "NumNodes=1 Partition=whole"),
                               partition("whole", "Nodes=n[0-2] OverSubscribe=EXCLUSIVE")});
    const auto cluster = Cluster::build(reading.cluster);
    CHECK_FALSE(fits(cluster, "3/0", "n0"));
    CHECK(fits(cluster, "3/0", "n1"));
    CHECK_FALSE(fits(cluster, "4/0", "n1"));
    CHECK(fits(cluster, "4/0", "n2"));
    CHECK(row(reading, "Job", "shares nodes with its like only").count == 1);
}

TEST_CASE("Pending arrays become tasks, up to a number", "[io][slurm]") {
    const auto array = pending("20", "ArrayJobId=20 ArrayTaskId=0-6:3,9%2 NumNodes=1");
    CHECK(read({node("n0"), array}).cluster.tasks.size() == 4);
    const auto reading = read({node("n0"), array}, {.array_tasks = 2});
    CHECK(reading.cluster.tasks.size() == 2);
    CHECK(task(reading, "20_3/0").job == "20_3");
    CHECK(row(reading, "Job", "arrays").errs == io::Errs::too_lax);
    CHECK_THAT(refusal({node("n0")}, {.array_tasks = -1}), Mentions("array_tasks -1 0 100000"));
}

TEST_CASE("Components of a heterogeneous job are one gang", "[io][slurm]") {
    const auto reading = read({node("n0"), node("n1"), pending("30", "HetJobId=30 HetJobOffset=0 NumNodes=1"),
                               pending("31", "HetJobId=30 HetJobOffset=1 NumNodes=2")});
    CHECK(reading.cluster.jobs == std::vector<JobSpec>{{.name = "30", .min_members = 3}});
    CHECK(task(reading, "30+1/1").job == "30");
}

TEST_CASE("A job on nodes that were not read keeps its other tasks", "[io][slurm]") {
    const auto reading =
        read({node("n0"), running("1", "n[0-1]", "Nodes=n[0-1] CPU_IDs=0-3 Mem=1 GRES=gpu:h100:1(IDX:0)")});
    CHECK(reading.cluster.tasks.size() == 1);
    CHECK(reading.cluster.jobs[0].min_members == 1);
    CHECK(row(reading, "Job", "tasks on an unknown node").examples == std::vector<std::string>{"1 on n1"});
}

TEST_CASE("Temporary disk, and the same answers without names", "[io][slurm]") {
    const auto reading =
        read({node("small", "TmpDisk=1000"), node("large", "TmpDisk=5000 Partitions=p"), node("none"),
              pending("1", "NumNodes=1 MinTmpDiskNode=2G"), pending("2", "NumNodes=1 Partition=p")});
    const auto cluster = Cluster::build(reading.cluster);
    CHECK_FALSE(fits(cluster, "1/0", "small"));
    CHECK(fits(cluster, "1/0", "large"));
    CHECK_FALSE(fits(cluster, "1/0", "none"));
    const auto other = Cluster::build(io::anonymize(reading.cluster, 7));
    for (const auto task : cluster.tasks())
        for (const auto node : cluster.nodes())
            CHECK(find_obstacle(other, task, node) == find_obstacle(cluster, task, node));
}

TEST_CASE("Pending jobs say what they wait for by Slurm's reason", "[io][slurm]") {
    struct Case {
        std::string reason;
        std::optional<WaitingFor> waits_for;
    };
    std::vector<Case> cases{{"Resources", std::nullopt},
                            {"Priority", std::nullopt},
                            {"ReqNodeNotAvail,_UnavailableNodes:n0", std::nullopt},
                            {"Dependency", WaitingFor::dependency},
                            {"BeginTime", WaitingFor::begin_time},
                            {"JobHeldUser", WaitingFor::held},
                            {"Reservation", WaitingFor::reservation},
                            {"QOSMaxGRESPerUser", WaitingFor::limit},
                            {"AssocGrpGRES", WaitingFor::limit},
                            {"PartitionDown", WaitingFor::limit},
                            {"Cleaning", WaitingFor::other}};
    std::vector<std::string> texts{node("n0")};
    for (std::size_t i = 0; i < cases.size(); ++i)
        texts.push_back(
            "JobId=" + std::to_string(i + 1) + " JobName=j\n   JobState=PENDING Reason=" + cases[i].reason +
            "\n   StartTime=" + (i == 0 ? "2026-11-22T06:00:00" : "Unknown") + "\n   NumNodes=1\n\n");
    const auto reading = read(texts);
    for (std::size_t i = 0; i < cases.size(); ++i) {
        INFO(cases[i].reason);
        const auto& waiting = task(reading, std::to_string(i + 1) + "/0").waiting;
        CHECK(waiting.has_value() == cases[i].waits_for.has_value());
        if (waiting) CHECK(waiting->waits_for == *cases[i].waits_for);
    }
    CHECK(task(reading, "1/0").note == "Slurm plans to start it at 2026-11-22T06:00:00");
    CHECK(task(reading, "2/0").note.empty());
    // Names in reasons and notes are not published.
    for (const auto& one : io::anonymize(reading.cluster, 1).tasks) {
        CHECK((!one.waiting || one.waiting->detail.empty()));
        CHECK(one.note.empty());
    }
}
