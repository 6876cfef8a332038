// SPDX-License-Identifier: Apache-2.0
// why(): causes with their figures, waiting reasons, remedies, the answer for one node, and errors.
#include "support/catch.hpp"
#include "support/messages.hpp"
#include "support/specs.hpp"
#include "why_cases.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/admission/why.hpp>
#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/consolidation/what_if.hpp>

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::admission;
using namespace why_cases;
using testing_support::node;

TEST_CASE("why names the cause that a change would remove") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64), node("n1", 8, 64)};
    spec.tasks = {pod("asks", 8)};
    auto& n0 = spec.nodes[0];
    auto& n1 = spec.nodes[1];
    auto& asks = spec.tasks[0];

    SECTION("it fits") {
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.fits);
        CHECK(found.cause_kind == Cause::none);
        CHECK(found.kinds.front().nodes_fit == 2);
        CHECK(found.kinds.front().table.empty());
        CHECK(found.remedies.empty());
    }
    SECTION("too few idle GPUs; uncordoning the other node gains nothing") {
        n0.labels["pool"] = "a";
        n1.labels["pool"] = "b";
        n1.schedulable = false;
        asks.node_selector["pool"] = "a";
        spec.tasks.push_back(running("half", "n0", first(4)));
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.cause_kind == Cause::capacity);
        CHECK(found.constraints == std::vector<std::string>{"gpu"});
        CHECK(found.impossible == false);
        CHECK(row(found, "gpu").nodes_alone == 1);
        CHECK(row(found, "gpu").best_node == "n0");
        CHECK(row(found, "cordoned").nodes_alone == 0);
        CHECK(row(found, "node_selector").nodes_first == 1);
        CHECK_FALSE(remedy(found, RemedyKind::uncordon));
        CHECK(remedy(found, RemedyKind::add_nodes)->text == "add 1 M node like n0");
    }
    SECTION("fragmentation, and the moves that cure it") {
        spec.nodes.push_back(node("n2", 8, 64));
        for (const char* const name : {"n0", "n1", "n2"})
            spec.tasks.push_back(running("on-" + std::string(name), name, first(4)));
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.cause_kind == Cause::fragmentation);
        CHECK_THAT(found.cause, Mentions("3 M nodes pass every other constraint and have 12 idle GPUs"));
        CHECK_THAT(found.cause, Mentions("none of them has more than 4 idle; the pod needs 8"));
        const auto moves = remedy(found, RemedyKind::moves);
        REQUIRE(moves);
        CHECK(moves->cost == 120'000);  // 4 GPUs, 30 s
        CHECK(moves->text.starts_with("move 1 task: "));
        CHECK_FALSE(remedy(found, RemedyKind::evictions));
        CHECK(found.remedies.back().kind == RemedyKind::add_nodes);
    }
    SECTION("evictions") {
        asks.priority = 1;
        for (const char* const name : {"n0", "n1"}) {
            spec.tasks.push_back(running("on-" + std::string(name), name, first(8)));
            spec.tasks.back().preemptible = true;
            spec.tasks.back().how = Mobility::none;
        }
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.cause_kind == Cause::capacity);
        CHECK(remedy(found, RemedyKind::evictions)->text.starts_with("evict 1 task: "));
    }
    SECTION("a cordoned node, named") {
        n1.schedulable = false;
        spec.tasks.push_back(running("half", "n0", first(4)));
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.cause_kind == Cause::constraint);
        CHECK(found.constraints == std::vector<std::string>{"cordoned"});
        CHECK(remedy(found, RemedyKind::uncordon)->text == "uncordon n1");
        CHECK(remedy(found, RemedyKind::uncordon)->cost == 0);
        CHECK(found.remedies.front().kind == RemedyKind::uncordon);
    }
    SECTION("a node that is not ready is not cordoned") {
        n1.schedulable = false;
        n1.taints.push_back({"node.kubernetes.io/not-ready", "", "NoSchedule"});
        spec.tasks.push_back(running("half", "n0", first(4)));
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(row(found, "not_ready").nodes_alone == 1);
        CHECK(found.impossible == false);
        CHECK_FALSE(remedy(found, RemedyKind::uncordon));
    }
    SECTION("nor is it for allocate and admit") {
        for (const char* const key : {"not-ready", "unreachable", "disk-pressure", "unschedulable"}) {
            const bool is_cordon = key == std::string("unschedulable");
            const auto expected = is_cordon ? Obstacle::cordoned : Obstacle::not_ready;
            n0.taints = n1.taints = {{"node.kubernetes.io/" + std::string(key), "", "NoSchedule"}};
            n0.schedulable = !is_cordon;
            const auto cluster = Cluster::build(spec);
            const auto pods = allocation::pending_pods(cluster, "asks");
            INFO(key);
            CHECK(allocation::allocate(cluster, pods).obstacle == expected);
            CHECK(admit(cluster, pods).obstacle == expected);
            for (const auto one : allocation::find_obstacles(cluster, pods.front())) CHECK(one == expected);
        }
    }
    SECTION("remedies name jobs that come earlier in the queue and fit there") {
        asks.priority = 1;
        asks.start_time = 100;
        for (auto* n : {&n0, &n1}) {
            spec.tasks.push_back(running("on-" + n->name, n->name, first(8)));
            spec.tasks.back().preemptible = n->name == "n0";
        }
        spec.tasks.back().terminating = true;
        const auto add = [&](const char* name, std::int64_t gpus, std::int64_t priority,
                             std::int64_t created) {
            auto one = pod(name, gpus);
            one.priority = priority;
            one.start_time = created;
            spec.tasks.push_back(one);
        };
        add("older", 1, 1, 50);
        add("younger", 1, 1, 200);
        add("lesser", 1, 0, 0);
        add("urgent", 2, 2, 300);
        add("larger", 9, 2, 0);
        add("held", 1, 3, 0);
        spec.tasks.back().waiting = WaitingReason{WaitingFor::gate, ""};
        const auto found = why(Cluster::build(spec), "asks");
        for (const auto kind : {RemedyKind::wait, RemedyKind::evictions, RemedyKind::add_nodes}) {
            const auto one = remedy(found, kind);
            REQUIRE(one);
            CHECK_THAT(one->text, Mentions("urgent, older"));
            for (const char* const other : {"younger", "lesser", "larger", "held"})
                CHECK_THAT(one->text, !Mentions(other));
        }
    }
    SECTION("failed GPUs") {
        n0.failed_gpus = {3};
        n1.failed_gpus = {0, 1};
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(row(found, "failed_gpus").nodes_alone == 2);
        CHECK(row(found, "failed_gpus").best_node == "n0");
        CHECK(found.impossible == true);  // as the GPUs are
    }
    SECTION("several constraints together") {
        asks.cpu_milli = 1000;
        for (const char* const name : {"n0", "n1"}) {
            spec.tasks.push_back(running("on-" + std::string(name), name, first(8)));
            spec.tasks.back().cpu_milli = 64'000;
        }
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.cause_kind == Cause::constraints);
        CHECK(found.constraints == std::vector<std::string>{"gpu", "cpu"});
        CHECK_THAT(found.cause, Mentions("too few idle GPUs and too few free cores together: 2 nodes 'n0'"));
        CHECK_THAT(found.cause, Mentions("needs 8 0 of 8; needs 1 core 0 free"));
    }
    SECTION("several constraints together, and some idle GPUs") {
        asks.cpu_milli = 60'000;
        for (const char* const name : {"n0", "n1"}) {
            spec.tasks.push_back(running("on-" + std::string(name), name, first(5)));
            spec.tasks.back().cpu_milli = 40'000;
        }
        CHECK_THAT(
            why(Cluster::build(spec), "asks").cause,
            Mentions("together: 2 nodes pass every other constraint and have 6 idle GPUs, at most 3 on "
                     "one, like 'n0'"));
    }
    SECTION("nothing is missing") {
        const auto cause = why(Cluster::build(spec), "asks").cause;
        CHECK_THAT(cause, Mentions("fits as it is") && !Mentions("Not checked"));
    }
    SECTION(
        "impossible: the closest node is the best of the table, and its figures are those of an empty node") {
        asks.gpu_count = 9;
        spec.tasks.push_back(running("on-n0", "n0", first(2)));
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(row(found, "gpu").best_node == "n1");
        CHECK_THAT(found.cause, Mentions("closest is 'n1': needs 9 has 8 of 8, even if empty"));
    }
    SECTION("Slurm resumes drained nodes") {
        n1.schedulable = false;
        spec.tasks.push_back(running("half", "n0", first(4)));
        for (auto& task : spec.tasks) task.owner_kind = "Slurm job";
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.constraints == std::vector<std::string>{"drained"});
        CHECK(row(found, "drained").nodes_alone == 1);
        CHECK(remedy(found, RemedyKind::uncordon)->text == "resume n1");
    }
    SECTION("Slurm has partitions and features") {
        asks.owner_kind = "Slurm job";
        asks.node_affinity = {{{{"slurm/partition.big", MatchOperator::exists, {}},
                                {"slurm/feature.b200", MatchOperator::exists, {}}},
                               {}}};
        n1.labels["slurm/partition.big"] = "";
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.constraints == std::vector<std::string>{"node_affinity"});
        CHECK_THAT(found.cause, Mentions("only the partition, features or excluded nodes forbid it, like") &&
                                    Mentions("does not satisfy feature 'b200'") && !Mentions("slurm/"));
    }
    SECTION("a cordoned node is no cause of its own if its return does not help") {
        asks.gpu_count = 4;
        spec.jobs = {{.name = "gang", .min_members = 3}};
        spec.tasks = {pod("g0", 8, "gang"), pod("g1", 8, "gang"), pod("g2", 8, "gang")};
        n1.schedulable = false;
        spec.nodes.push_back(node("n2", 8, 64));
        spec.tasks.push_back(running("small", "n2", first(1)));
        spec.tasks.back().how = Mobility::none;
        spec.tasks.push_back(running("large", "n0", first(8)));
        const auto found = why(Cluster::build(spec), "gang");
        CHECK_FALSE(remedy(found, RemedyKind::uncordon));
        CHECK(found.constraints == std::vector<std::string>{"cordoned", "gpu"});
    }
    SECTION("fractions name the most that is free on one GPU") {
        spec.nodes = {node("n0", 1, 64)};
        asks.gpu_count = 1;
        asks.gpu_share_milli = 500;
        spec.tasks.push_back(running("part", "n0", first(1)));
        spec.tasks.back().gpu_share_milli = 700;
        CHECK_THAT(why(Cluster::build(spec), "asks").cause,
                   Mentions("GPUs has more than 0.3 free; needs 0.5 on one GPU"));
    }
    SECTION("a new node has room beside its daemons, and is like the largest one") {
        n1.cpu_milli = 128'000;
        asks.cpu_milli = 70'000;
        for (const bool fits : {true, false}) {
            auto full = spec;
            full.tasks.push_back(running("all", "n1", first(8)));
            full.tasks.push_back(running("daemon", "n1", {}));
            full.tasks.back().daemon = true;
            full.tasks.back().cpu_milli = fits ? 58'000 : 58'001;
            const auto found = why(Cluster::build(full), "asks");
            CHECK(remedy(found, RemedyKind::add_nodes).has_value() == fits);
            if (fits) CHECK(remedy(found, RemedyKind::add_nodes)->text == "add 1 M node like n1");
        }
    }
    SECTION("one node, or one set of constraints, that would not hold it") {
        asks.gpu_models = {"M"};
        n1.gpu_model = "other";
        asks.gpu_count = 16;
        CHECK_THAT(why(Cluster::build(spec), "asks").cause,
                   Mentions("only node it may use not hold it; closest 'n0': needs 16"));
        asks.cpu_milli = 65'000;
        CHECK_THAT(why(Cluster::build(spec), "asks").cause,
                   Mentions("example 'n0': needs 16 needs 65 cores"));
    }
    SECTION("impossible: no node is large enough") {
        asks.gpu_count = 16;
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.cause_kind == Cause::impossible);
        CHECK(found.impossible == true);
        CHECK_THAT(found.cause, Mentions("needs 16 idle GPUs, has 8 of 8, even if empty"));
        CHECK(found.remedies.empty());
    }
    SECTION("impossible: no node passes what never changes") {
        asks.gpu_models = {"other"};
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.cause_kind == Cause::impossible);
        CHECK(found.constraints == std::vector<std::string>{"gpu_model"});
        CHECK_THAT(found.cause, Mentions("it may use none of the 2 nodes; for 2 nodes only the GPU model "
                                         "forbids it no node has 'other' models are 'M'"));
    }
    SECTION("possible next to a task that must stay") {
        asks.near.push_back({"cache"});
        asks.gpu_count = 6;
        auto cache = running("cache", "n0", first(1));
        cache.groups = {"cache"};
        spec.tasks.push_back(cache);
        spec.tasks.push_back(running("other", "n0", {1, 2, 3}));
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.impossible == false);
        CHECK(row(found, "near").nodes_alone == 1);
    }
    SECTION("ports, claims and named resources have rows of their own") {
        asks.gpu_count = 0;
        asks.resources = {{"pods", 1}, {"rdma/hca", 2}};
        asks.groups = {"host port TCP/80", "claim d/x"};
        asks.avoid = {{"host port TCP/80"}, {"claim d/x"}};
        n0.resources = {{"pods", 0}, {"rdma/hca", 1}};
        n1.resources = {{"pods", 1}, {"rdma/hca", 2}};
        auto user = running("user", "n1", {});
        user.groups = {"host port TCP/80", "claim d/x"};
        spec.tasks.push_back(user);
        const auto found = why(Cluster::build(spec), "asks");
        const auto& table = found.kinds.front().table;
        std::vector<std::string> names;
        for (const auto& one : table) names.push_back(one.constraint);
        CHECK(names == std::vector<std::string>{"resource rdma/hca", "pods", "port", "volume_in_use"});
        CHECK(found.constraints.size() == 2);
    }
}

TEST_CASE("why counts the pods for which a repair or a volume makes room") {
    // n0 would hold one of the two pods. The other nodes would hold both, but two constraints refuse them.
    auto asks = pod("asks-0", 8, "asks");
    NodeSpec n0{.name = "n0", .gpu_count = 8, .cpu_milli = 64'000, .memory_mib = 1'000};
    SECTION("failed GPUs") { n0.failed_gpus = {3}; }
    SECTION("a volume") {
        asks.gpu_count = 4;
        asks.cpu_milli = 40'000;
        asks.resources = {{"volumes like d", 1}};
    }
    ClusterSpec spec{.nodes = {n0, n0, n0}, .jobs = {{.name = "asks", .min_members = 2}}};
    for (const std::size_t n : {1u, 2u}) {
        auto& other = spec.nodes[n];
        other.name = "n" + std::to_string(n);
        other.failed_gpus.clear();
        other.schedulable = false;
        for (const auto& [name, amount] : asks.resources) other.resources[name] = 1'000;
        spec.tasks.push_back(running("on-" + other.name, other.name, first(8)));
    }
    spec.tasks.push_back(asks);
    asks.name = "asks-1";
    spec.tasks.push_back(asks);
    const auto found = why(Cluster::build(spec), "asks");
    CHECK(found.impossible == false);
    CHECK(found.constraints == std::vector<std::string>{"cordoned", "gpu"});
    // With one pod fewer, n0 alone suffices.
    spec.tasks.pop_back();
    spec.jobs[0].min_members = 1;
    const auto one = why(Cluster::build(spec), "asks");
    CHECK(one.constraints == std::vector<std::string>{asks.resources.empty() ? "failed_gpus" : "volume"});
}

TEST_CASE("why orders rows by permanence, or as kube-scheduler runs its filters") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64)};
    spec.nodes[0].schedulable = false;
    spec.tasks = {pod("asks", 16)};
    spec.tasks[0].node_selector["a"] = "b";
    const auto cluster = Cluster::build(spec);
    const auto first_of = [&](ConstraintOrder order) {
        return why(cluster, "asks", {.order = order}).kinds.front().table.front();
    };
    CHECK(first_of(ConstraintOrder::permanence).constraint == "node_selector");
    CHECK(first_of(ConstraintOrder::permanence).nodes_first == 1);
    CHECK(first_of(ConstraintOrder::kube).constraint == "cordoned");
    CHECK(first_of(ConstraintOrder::kube).nodes_first == 1);
}

TEST_CASE("why answers for one node") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64), node("n1", 8, 64), node("n2", 8, 64)};
    spec.nodes[1].taints.push_back({"team", "a", "NoSchedule"});
    spec.tasks = {pod("asks", 8), running("half", "n1", first(4)), running("one", "n2", first(1))};
    const auto cluster = Cluster::build(spec);
    const auto free = why(cluster, "asks", {.on = cluster.find_node("n0")});
    CHECK(free.fits);
    const auto found = why(cluster, "asks", {.on = cluster.find_node("n1")});
    CHECK_FALSE(found.fits);
    CHECK(found.cause_kind == Cause::impossible);  // the taint never changes
    spec.tasks[0].tolerations.push_back({"team", "Exists", "", ""});
    const auto tolerant = Cluster::build(spec);
    const auto full = why(tolerant, "asks", {.on = tolerant.find_node("n1")});
    CHECK(full.cause_kind == Cause::capacity);
    CHECK(full.kinds.front().table.size() == 1);
    CHECK(remedy(full, RemedyKind::moves)->text == "move 1 task: half to n2; costs 120 GPU-seconds");

    // No node holds all pods of a gang, so the answer is for one of them.
    spec.jobs = {{.name = "gang", .min_members = 3}};
    for (const char* const name : {"g0", "g1", "g2"})
        spec.tasks.push_back(pod(name, name[1] == '0' ? 2 : 8, "gang"));
    spec.tasks.back().tolerations = spec.tasks[spec.tasks.size() - 2].tolerations = spec.tasks[0].tolerations;
    const auto gang = Cluster::build(spec);
    for (const auto& [on, fits, text] :
         {std::tuple("n0", true, "one of its 3 pods, 'g1': it fits on this node"),
          std::tuple("n2", false, "one of its 3 pods, 'g1': capacity: the pod needs 8")}) {
        INFO(on);
        const auto of_gang = why(gang, "gang", {.on = gang.find_node(on)});
        CHECK(of_gang.fits == fits);
        CHECK(of_gang.impossible.value_or(false) == false);
        CHECK(of_gang.pods == std::vector{gang.find_task("g1")});
        CHECK_THAT(of_gang.cause, Mentions(text) && !Mentions("scheduler"));
    }
    CHECK_THAT(why(gang, "g1", {.on = gang.find_node("n0")}).cause,
               Mentions("it fits on this node") && !Mentions("scheduler"));
    CHECK_THAT(free.cause, Mentions("the scheduler should place it"));
}

TEST_CASE("why and what_if add the note of a pending task") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64)};
    spec.tasks = {pod("small", 1), pod("large", 9)};
    for (auto& task : spec.tasks) task.note = "Slurm plans to start it at noon";
    const auto cluster = Cluster::build(spec);
    CHECK(Cluster::build(cluster.to_spec()).to_spec().tasks == cluster.to_spec().tasks);
    const auto fits = why(cluster, "small");
    CHECK(fits.fits);
    CHECK_THAT(
        fits.cause,
        Mentions(
            "it fits as it is, on 1 node; the scheduler should place it; Slurm plans to start it at noon"));
    CHECK_THAT(why(cluster, "large").cause,
               Mentions("impossible has 8 of 8, even if empty; Slurm plans to start it at noon"));
    const auto jobs = consolidation::what_if(cluster, {.consolidate = false}).jobs;
    for (const auto& job : jobs)
        CHECK((job.outcomes.front().reason.ends_with("Slurm plans to start it at noon")) ==
              (job.name == "large"));

    for (const auto& [note, shown] : {std::pair(std::string(300, 'a'), std::string(200, 'a') + "..."),
                                      std::pair(std::string("a\x1b[31m\r\n\0b", 10), std::string())}) {
        spec.tasks[0].note = note;
        const auto cause = why(Cluster::build(spec), "small").cause;
        CHECK_THAT(cause, Mentions(shown) && !Mentions(std::string(201, 'a')));
        CHECK(std::none_of(cause.begin(), cause.end(), [](char c) { return c >= 0 && c < ' '; }));
    }
}

TEST_CASE("Slurm requeues whole jobs, so no remedy moves a part of one") {
    // `asks` fits if one task moves to n2, and not if both tasks of the job must leave.
    ClusterSpec spec;
    spec.nodes = {node("n0", 4, 64), node("n1", 4, 64), node("n2", 2, 64)};
    spec.jobs = {{.name = "7", .min_members = 2}};
    spec.tasks = {pod("asks", 4), running("7/0", "n0", first(2)), running("7/1", "n1", first(2))};
    for (auto& task : spec.tasks) {
        if (task.node) task.job = "7";
        task.how = Mobility::restart;
        task.preemptible = true;
    }
    spec.tasks[0].priority = 1;
    struct Case {
        const char* owner_kind;
        bool preemptible;
        std::string joined;  // names two components of a heterogeneous job
        std::optional<RemedyKind> kind;
    };
    for (const auto& [owner_kind, preemptible, joined, kind] :
         {Case{"Job", false, "", RemedyKind::moves}, Case{"Slurm job", false, "", std::nullopt},
          Case{"Slurm job", true, "", RemedyKind::evictions}, Case{"Slurm job", true, "+1", std::nullopt}}) {
        INFO(owner_kind << preemptible << joined);
        auto changed = spec;
        for (auto& task : changed.tasks) {
            task.owner_kind = owner_kind;
            if (!task.node) continue;
            task.preemptible = preemptible;
            task.name.insert(1, joined);
        }
        const auto cluster = Cluster::build(changed);
        const auto found = why(cluster, "asks");
        for (const auto one : {RemedyKind::moves, RemedyKind::evictions})
            CHECK(remedy(found, one).has_value() == (kind == one));
        const auto* const rule = !joined.empty()
                                     ? "heterogeneous jobs stay, because Slurm requeues whole jobs"
                                 : !kind ? "jobs with several tasks do not move"
                                         : "";
        for (const auto& text :
             {found.cause, admit(cluster, allocation::pending_pods(cluster, "asks")).reason}) {
            CHECK_THAT(text, Mentions(rule));
            CHECK((text.find("because Slurm requeues") == text.npos) == (*rule == '\0'));
            CHECK_THAT(text, !Mentions("help (proven)"));
        }
        if (kind == RemedyKind::evictions) {
            CHECK_THAT(remedy(found, *kind)->text, Mentions("evict 2 tasks: 7/0 7/1"));
            const auto made = admit(cluster, allocation::pending_pods(cluster, "asks"));
            CHECK(made.plan.moves.empty());
        }
    }
}

TEST_CASE("why, allocate and admit say what a job waits for if it does not wait for room") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64)};
    spec.jobs = {{.name = "gang", .min_members = 3},
                 {.name = "suspended", .waiting = {{WaitingFor::quota, "full"}}}};
    spec.tasks = {pod("gated", 1), pod("g0", 1, "gang"), pod("g1", 1, "gang"), pod("free", 1)};
    spec.tasks[0].waiting = {WaitingFor::gate, "example.com/approval"};
    const auto cluster = Cluster::build(spec);
    struct Case {
        std::string name;
        WaitingFor waits_for;
        std::string text;
    };
    for (const auto& [name, waits_for, text] :
         {Case{"gated", WaitingFor::gate, "scheduling gates are not removed yet: example.com/approval"},
          Case{"gang", WaitingFor::gang_incomplete, "needs 3 members, but only 2 exist"},
          Case{"g0", WaitingFor::gang_incomplete, "needs 3 members, but only 2 exist"},
          Case{"suspended", WaitingFor::quota, "no quota for it yet: full"}}) {
        INFO(name);
        const auto found = why(cluster, name);
        CHECK(found.waiting_for == waits_for);
        CHECK(found.cause_kind == Cause::waiting);
        CHECK_THAT(found.cause, Mentions(text));
        CHECK_FALSE(found.fits);
        const auto pods = allocation::pending_pods(cluster, name);
        if (pods.empty()) continue;
        const auto placed = allocation::allocate(cluster, pods);
        CHECK_FALSE(placed.placed);
        CHECK(placed.obstacle == Obstacle::waiting);
        CHECK_THAT(placed.reason, Mentions(text));
        const auto admitted = admit(cluster, pods);
        CHECK_FALSE(admitted.admitted);
        CHECK(admitted.obstacle == Obstacle::waiting);
        CHECK(admitted.reason == placed.reason);
    }
    CHECK(why(cluster, "free").fits);

    // Members that wait for something else make a gang wait if it needs them.
    spec.jobs[0].min_members = 2;
    spec.tasks.push_back(pod("g2", 1, "gang"));
    spec.tasks.back().waiting = {WaitingFor::volume_claim, "d/data does not exist"};
    const auto others = Cluster::build(spec);
    CHECK(why(others, "gang").fits);
    CHECK(why(others, "gang").pods.size() == 2);
    CHECK(allocation::pending_pods(others, "gang") == why(others, "gang").pods);
    CHECK(allocation::allocate(others, allocation::pending_pods(others, "gang")).placed);
    spec.jobs[0].min_members = 3;
    const auto needed = why(Cluster::build(spec), "gang");
    CHECK(needed.waiting_for == WaitingFor::volume_claim);
    CHECK_THAT(needed.cause, Mentions("1 of 3 pods does not wait for room, and the gang needs it"));
}

TEST_CASE("why offers to wait for tasks that are about to leave") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64), node("n1", 8, 64)};
    spec.tasks = {pod("asks", 8), running("leaves", "n0", first(8)), running("stays", "n1", first(1)),
                  running("leaves-too", "n1", {1})};
    for (auto& task : spec.tasks) {
        task.terminating = task.name.starts_with("leaves");
        task.locked = task.terminating;
    }
    const auto found = why(Cluster::build(spec), "asks");
    REQUIRE(remedy(found, RemedyKind::wait));
    CHECK(remedy(found, RemedyKind::wait)->text == "wait until leaves has left n0");
    CHECK(found.remedies.front().kind == RemedyKind::wait);
}

TEST_CASE("what tasks wait for is kept by changes of membership") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64)};
    auto cluster = Cluster::build(spec);
    auto task = pod("t", 1);
    task.waiting = {WaitingFor::held, "by a person"};
    const auto added = cluster.add_task(task);
    CHECK(cluster.task_spec(added.id).waiting == task.waiting);
    CHECK(Cluster::build(cluster.to_spec()).to_spec().tasks == cluster.to_spec().tasks);
    CHECK(why(cluster, "t").waiting_for == WaitingFor::held);
    task.waiting.reset();
    cluster.update_task(added, task);
    CHECK_FALSE(why(cluster, "t").waiting_for);
    task.waiting = {WaitingFor::held, ""};
    cluster.update_task(added, task);
    cluster.bind(added, cluster.handle(cluster.find_node("n0")), 1);
    CHECK_FALSE(cluster.task_spec(added.id).waiting);  // it runs
    cluster.remove_task(added);
    CHECK(cluster.inventory().waiting.empty());
}

TEST_CASE("why, allocate and admit name the same cause, and what helps alone or together") {
    const Taint gpu_taint{.key = "gpu", .value = "present", .effect = "NoSchedule"};
    const Taint cordon{.key = "node.kubernetes.io/unschedulable", .effect = "NoSchedule"};
    ClusterSpec spec;
    spec.nodes = {node("a0", 8, 64), node("h0", 8, 64), node("h1", 8, 64)};
    spec.nodes[0].gpu_model = "A";
    spec.nodes[0].schedulable = false;
    for (auto& n : spec.nodes) n.taints = {gpu_taint}, n.labels["pool"] = n.name.substr(0, 1);
    spec.nodes[0].taints.push_back(cordon);
    spec.tasks = {running("half", "h0", first(4)), running("part", "h1", first(3)), pod("asks", 8)};
    spec.tasks[0].locked = spec.tasks[1].locked = true;
    auto& asks = spec.tasks.back();
    struct Case {
        std::string name;
        Labels selector;
        std::vector<std::string> models;
        bool tolerates;
        std::vector<std::string> constraints;  // of why; empty = it is impossible for several reasons
        Obstacle obstacle;                     // of allocate and admit
        std::string text;                      // in the reasons of both
    };
    for (const auto& c : {
             Case{"neither the selector nor the taint alone keeps it off the cordoned node",
                  {{"pool", "h"}},
                  {},
                  true,
                  {"gpu"},
                  Obstacle::gpu,
                  "'h1'"},
             Case{"a GPU model, and the taint that all its nodes have",
                  {},
                  {"M"},
                  false,
                  {},
                  Obstacle::taint,
                  "gpu=present"},
             Case{"a GPU model that no node has",
                  {},
                  {"h10"},
                  true,
                  {"gpu_model"},
                  Obstacle::gpu_model,
                  "no node has the GPU model 'h10'; the models are 'A', 'M'"},
         }) {
        INFO(c.name);
        asks.node_selector = c.selector;
        asks.gpu_models = c.models;
        asks.tolerations = {};
        if (c.tolerates) asks.tolerations = {{.key = "gpu", .op = "Exists"}};
        asks.gpu_count = c.obstacle == Obstacle::taint ? 2 : 8;
        const auto cluster = Cluster::build(spec);
        const auto found = why(cluster, "asks");
        INFO(found.cause);
        if (!c.constraints.empty()) CHECK(found.constraints == c.constraints);
        if (c.obstacle == Obstacle::gpu_model) CHECK_THAT(found.cause, Mentions(c.text));
        const auto pods = allocation::pending_pods(cluster, "asks");
        const auto placed = allocation::allocate(cluster, pods);
        CHECK(placed.obstacle == c.obstacle);
        CHECK_THAT(placed.reason, Mentions(c.text));
        const auto admitted = admit(cluster, pods);
        CHECK(admitted.obstacle == c.obstacle);
        CHECK_THAT(admitted.reason, Mentions(c.text));
    }
}

TEST_CASE("allocate counts the nodes of the constraint that why names because it costs least") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 4, 64), node("n1", 4, 64), node("n2", 4, 8)};
    spec.tasks = {pod("asks", 4), running("a", "n0", first(4)), running("b", "n1", first(4)),
                  running("cores", "n2", {})};
    spec.tasks[0].cpu_milli = spec.tasks[3].cpu_milli = 8'000;
    spec.tasks[1].locked = spec.tasks[2].locked = true;
    const auto cluster = Cluster::build(spec);
    CHECK(why(cluster, "asks").constraints == std::vector<std::string>{"cpu"});
    const auto found = allocation::allocate(cluster, allocation::pending_pods(cluster, "asks"));
    CHECK(found.obstacle == Obstacle::gpu);
    CHECK_THAT(found.reason, Mentions("2 nodes 'n0' 1 other node refused only by too few free cores"));
}

TEST_CASE("why, allocate and admit blame the state of a node that a pod selects, and why says what refuses "
          "that node") {
    struct Case {
        const char* what;
        std::function<void(NodeSpec&, ClusterSpec&)> change;  // of the node that it selects
        std::string constraint;
        std::string text;  // in the cause
    };
    const auto fill = [](std::int64_t cpu_milli) {
        return [=](NodeSpec& n, ClusterSpec& spec) {
            auto full = running("full", n.name, first(8));
            full.cpu_milli = cpu_milli;
            spec.tasks.push_back(full);
        };
    };
    for (const auto& [what, change, constraint, text] : {
             Case{"not ready",
                  [](NodeSpec& n, ClusterSpec&) {
                      n.taints = {{.key = "node.kubernetes.io/not-ready", .effect = "NoSchedule"}};
                  },
                  "not_ready", "not ready: 1 node passes every other constraint; 'n1'"},
             Case{"without room", fill(0), "gpu", "capacity: 1 M node passes every other constraint"},
             Case{"without room for two reasons", fill(64'000), "node_selector",
                  "3 nodes pass every other constraint; the only node that it may use is 'n1': needs 8 "
                  "needs"},
         }) {
        INFO(what);
        ClusterSpec spec;
        for (const char* const name : {"n0", "n1", "n2", "n3"}) spec.nodes.push_back(node(name, 8, 64));
        for (auto& n : spec.nodes) n.labels["host"] = n.name;
        spec.tasks = {pod("asks", 8)};
        spec.tasks[0].cpu_milli = 1000;
        spec.tasks[0].node_selector["host"] = "n1";
        change(spec.nodes[1], spec);
        const auto cluster = Cluster::build(spec);
        const auto found = why(cluster, "asks");
        CHECK(found.constraints == std::vector<std::string>{constraint});
        CHECK_THAT(found.cause, Mentions(text));
        CHECK_THAT(found.cause, !Mentions("at most 0"));
        const auto pods = allocation::pending_pods(cluster, "asks");
        const auto placed = allocation::allocate(cluster, pods);
        CHECK(enum_name(placed.obstacle) == constraint);
        CHECK_THAT(placed.reason, Mentions("no node takes 'asks' 'n1'"));
        if (const auto admitted = admit(cluster, pods); !admitted.admitted)
            CHECK_THAT(admitted.reason, Mentions("'n1'"));
    }
}

TEST_CASE("of what never changes why names only the fewest constraints without which a node is left") {
    const Taint gpu_taint{.key = "gpu", .value = "present", .effect = "NoSchedule"};
    struct Case {
        const char* what;
        Labels selector;
        std::vector<Taint> taints;  // of the nodes a0 to a2, but not of b0
        std::vector<std::string> constraints;
        std::string text;
    };
    for (const auto& [what, selector, taints, constraints, text] : {
             Case{"a value that no node has",
                  {{"pool", "a"}, {"zone", "row-d"}},
                  {},
                  {"node_selector"},
                  "for 4 nodes only the node selector forbids it no node has the label 'zone=row-d'; its "
                  "values are "
                  "'row-a', 'row-b'"},
             Case{"a key that no node has",
                  {{"fabric", "x"}},
                  {},
                  {"node_selector"},
                  "no node has the label 'fabric=x'"},
             Case{"values that no node has together",
                  {{"pool", "a"}, {"zone", "row-b"}},
                  {},
                  {"node_selector"},
                  "like 'a1': label 'zone' is 'row-a'; selects 'row-b'"},
             Case{
                 "a taint of all nodes that it selects",
                 {{"pool", "a"}},
                 {gpu_taint},
                 {"taint"},
                 "for 3 nodes only the taint gpu=present:NoSchedule forbids it; if it tolerated every taint, "
                 "2 have room now, such as 'a1'"},
         }) {
        INFO(what);
        ClusterSpec spec;
        spec.nodes = {node("a0", 8, 64), node("a1", 8, 64), node("a2", 8, 64), node("b0", 0, 64)};
        spec.nodes[3].gpu_model.clear();
        for (auto& n : spec.nodes) {
            const bool of_a = n.name.starts_with('a');
            n.labels = {{"pool", n.name.substr(0, 1)}, {"zone", of_a ? "row-a" : "row-b"}};
            if (of_a) n.taints = taints;
        }
        spec.tasks = {pod("asks", 8), running("one", "a0", first(1))};
        spec.tasks[0].node_selector = selector;
        if (!taints.empty()) spec.tasks[0].gpu_models = {"M"};
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.cause_kind == Cause::impossible);
        CHECK(found.constraints == constraints);
        CHECK_THAT(found.cause, Mentions(text));
    }
}

TEST_CASE("why names the tasks and nodes that decide") {
    struct Case {
        std::string constraint;
        std::function<void(TaskSpec& asks, ClusterSpec&)> change;
        std::string text;
    };
    const std::string chat = "serving+web/app=chat";
    for (
        const auto& [constraint, change, text] : {
            Case{"device",
                 [](TaskSpec& asks, ClusterSpec& spec) {
                     asks.device_classes = {"mig"}, asks.device_count = 2;
                     spec.nodes[1].devices = {{"mig", 2}};
                     spec.tasks[1].device_classes = {"mig"}, spec.tasks[1].device_count = 1;
                     spec.tasks[1].gpus = {8};
                 },
                 "devices: 1 node passes every other constraint and has such devices; 'n1' needs 2 of 'mig', "
                 "has 1 free of 2"},
            Case{"resource rdma/ib",
                 [](TaskSpec& asks, ClusterSpec& spec) {
                     asks.resources = {{"rdma/ib", 2}};
                     spec.tasks[1].resources = {{"rdma/ib", 1}};
                     spec.nodes[1].resources = {{"rdma/ib", 2}};
                 },
                 "1 node passes every other constraint and has any of it"},
            Case{
                "port",
                [](TaskSpec& asks, ClusterSpec& spec) {
                    asks.node_selector["kubernetes.io/hostname"] = "n1";
                    for (auto* task : {&asks, &spec.tasks[1]})
                        task->groups = {"host port TCP/80"}, task->avoid = {{"host port TCP/80", node_level}};
                },
                "host port TCP/80 is taken on node 'n1' by 'user'"},
            Case{"volume_in_use",
                 [](TaskSpec& asks, ClusterSpec& spec) {
                     for (auto* task : {&asks, &spec.tasks[1]})
                         task->groups = {"claim d/x"}, task->avoid = {{"claim d/x", first_label_level}};
                 },
                 "claim d/x is in use by 'user' on node 'n1'"},
            Case{"avoid",
                 [&](TaskSpec& asks, ClusterSpec& spec) {
                     asks.avoid = {{chat, first_label_level}};
                     spec.tasks[1].groups = {chat};
                 },
                 "excludes pods with label 'app=chat' in namespaces serving, web; domain 'all' holds 1: "
                 "'user'"},
            Case{"avoid",
                 [&](TaskSpec& asks, ClusterSpec& spec) {
                     asks.groups = {chat};
                     spec.tasks[1].avoid = {{chat, first_label_level}};
                 },
                 "the anti-affinity of 'user' in domain 'all' excludes pods with label 'app=chat'"},
            Case{"near",
                 [&](TaskSpec& asks, ClusterSpec&) {
                     asks.near = {{.group = "d/app=none", .level = node_level}};
                 },
                 "it must run next to a pod with label 'app=none' in namespace d, and none exists"},
        }) {
        INFO(constraint);
        ClusterSpec spec;
        spec.label_levels = {"all"};
        for (const char* const name : {"n0", "n1"}) {
            spec.nodes.push_back(node(name, 8, 64));
            spec.nodes.back().labels = {{"kubernetes.io/hostname", name}, {"all", "all"}};
        }
        spec.tasks = {pod("asks", 1), running("user", "n1", {})};
        change(spec.tasks[0], spec);
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.constraints == std::vector<std::string>{constraint});
        CHECK_THAT(found.cause, Mentions(text));
    }
}

TEST_CASE("of independent pods why names the one that is impossible, and how many find a place") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64), node("n1", 8, 64)};
    spec.jobs = {{.name = "job", .min_members = 1}};
    spec.tasks = {pod("small", 1, "job"), pod("large", 16, "job")};
    const auto found = why(Cluster::build(spec), "job");
    CHECK(found.impossible == true);
    CHECK(found.places == 1);
    CHECK_THAT(found.cause,
               Mentions("none of the 2 nodes would hold pod 'large'; 1 of the pods finds a place as it is"));
    CHECK_THAT(found.cause, !Mentions("enough for the gang"));
}

TEST_CASE("why says where tasks are that have a node already") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64), node("n1", 8, 64)};
    spec.nodes[1].schedulable = false;
    spec.nodes[1].taints = {{.key = "node.kubernetes.io/not-ready", .effect = "NoSchedule"}};
    spec.jobs = {{.name = "job"}};
    spec.tasks = {running("runs", "n0", first(1)), running("bound", "n1", first(1)),
                  running("leaves", "n0", {1})};
    for (auto& task : spec.tasks) task.job = "job";
    spec.tasks[2].terminating = true;
    const auto cluster = Cluster::build(spec);
    for (const auto& [name, text] :
         {std::pair{"runs", "runs on n0"},
          {"bound", "bound to n1, which is not ready"},
          {"leaves", "it is being deleted; it runs on n0"},
          {"job", "1 of 3 is being deleted; it is bound to n1, which is not ready; it runs on n0"}}) {
        const auto found = why(cluster, name);
        CHECK(found.cause_kind == Cause::waiting);
        CHECK_THAT(found.cause, Mentions(text));
    }
}

TEST_CASE("why refuses unknown names, and options out of range") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 8, 64)};
    spec.jobs = {{.name = "job"}};
    spec.tasks = {pod("asks", 8), pod("team/asks", 8, "team/job"), pod("other/single", 1)};
    const auto cluster = Cluster::build(spec);
    CHECK_THROWS_WITH(why(cluster, "nothing"), Mentions("name: 'nothing'; expected a job or a task"));
    CHECK_THROWS_WITH(why(cluster, "single"), Mentions("did you mean 'other/single'?"));
    CHECK_THROWS_WITH(why(cluster, "job"), Mentions("expected a job with tasks"));
    CHECK_THROWS_WITH(why(cluster, "asks", {.on = make_id<NodeId>(7)}), Mentions("on: #7"));
    CHECK_THROWS_WITH(why(cluster, "asks", {.time_limit = -1.0}), Mentions("time_limit"));
}
