// SPDX-License-Identifier: Apache-2.0
// What a cluster publishes, when, and how followers catch up.
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

#include <new>

using namespace gpusched;

namespace {

NodeSpec node(const std::string& name) {
    return {.name = name, .gpu_count = 4, .cpu_milli = 64'000, .memory_mib = 1'024};
}
TaskSpec task(const std::string& name) { return {.name = name, .cpu_milli = 1'000, .gpu_count = 1}; }

Cluster small() {
    ClusterSpec spec;
    spec.nodes = {node("a"), node("b")};
    spec.tasks = {task("x"), task("y")};
    auto cluster = Cluster::build(spec);
    cluster.keep_events();
    return cluster;
}

std::vector<Event> since(const Cluster& cluster, std::uint64_t seen) {
    std::vector<Event> events;
    while (seen < cluster.events()->version()) events.push_back((*cluster.events())[++seen]);
    return events;
}

constexpr NodeId a{0}, b{1};
constexpr TaskId x{0}, y{1};

// Counts its notifications.
struct Counting {
    int rebuilt = 0, nodes = 0, usage = 0, tasks = 0, jobs = 0, budgets = 0, times = 0;
    void rebuild(const Cluster&) { ++rebuilt; }
    void node_changed(const Cluster&, NodeId) { ++nodes; }
    void usage_changed(const Cluster&, NodeId) { ++usage; }
    void task_changed(const Cluster&, TaskId) { ++tasks; }
    void job_changed(const Cluster&, JobId) { ++jobs; }
    void budgets_changed(const Cluster&) { ++budgets; }
    void time_changed(const Cluster&) { ++times; }
};

// How many GPUs are idle on each node.
struct Idle {
    std::vector<GpuMask> gpus;
    void rebuild(const Cluster& cluster) {
        gpus.assign(cluster.node_slots(), 0);
        for (const auto node : cluster.nodes()) usage_changed(cluster, node);
    }
    void usage_changed(const Cluster& cluster, NodeId node) {
        gpus.resize(cluster.node_slots());
        gpus[index(node)] = cluster.idle_gpus(node);
    }
};

}  // namespace

TEST_CASE("every committed change is one event") {
    auto cluster = small();
    const auto& log = *cluster.events();
    CHECK(log.version() == 0);
    const auto added = cluster.add_node(node("c"));
    const auto z = cluster.add_task(task("z"));
    cluster.bind(z, added, 1);
    cluster.bind(z, cluster.handle(a), 2);
    cluster.bind(z, cluster.handle(a), 2);  // as it was: no change
    cluster.unbind(z);
    cluster.unbind(z);
    auto spec = cluster.task_spec(z.id);
    spec.priority = 7;
    cluster.update_task(z, spec);
    auto broken = cluster.node_spec(a);
    broken.failed_gpus = {3};
    cluster.update_node(cluster.handle(a), broken);
    cluster.remove_task(z);
    cluster.remove_node(added);
    const auto job = cluster.add_job({.name = "j"});
    cluster.update_job(job, {.name = "j", .min_members = 2});
    cluster.remove_job(job);
    const auto w = cluster.add_task(task("w"));
    cluster.add_budget({.name = "q", .tasks = {"x"}, .allowed_down = 1});
    cluster.update_budget({.name = "q", .tasks = {"x"}, .allowed_down = 0});
    cluster.remove_budget("q");
    cluster.add_budget({.name = "q", .tasks = {"w"}});
    cluster.remove_task(w);  // which the budget named
    cluster.remove_budget("q");
    cluster.set_now(5);
    using K = EventKind;
    const std::vector<Event> expected{
        {.version = 1, .kind = K::node_added, .node = added},
        {.version = 2, .kind = K::task_added, .task = z},
        {.version = 3, .kind = K::bound, .node = added, .task = z},
        {.version = 4, .kind = K::bound, .from = added.id, .node = {a, 0}, .task = z},
        {.version = 5, .kind = K::unbound, .node = {a, 0}, .task = z},
        {.version = 6, .kind = K::task_updated, .task = z},
        {.version = 7, .kind = K::node_updated, .node = {a, 0}},
        {.version = 8, .kind = K::task_removed, .task = z},
        {.version = 9, .kind = K::node_removed, .node = added},
        {.version = 10, .kind = K::job_added, .job = job},
        {.version = 11, .kind = K::job_updated, .job = job},
        {.version = 12, .kind = K::job_removed, .job = job},
        {.version = 13, .kind = K::task_added, .task = w},
        {.version = 14, .kind = K::budgets},
        {.version = 15, .kind = K::budgets},
        {.version = 16, .kind = K::budgets},
        {.version = 17, .kind = K::budgets},
        {.version = 18, .kind = K::task_removed, .task = w},
        {.version = 19, .kind = K::budgets},
        {.version = 20, .kind = K::budgets},
        {.version = 21, .kind = K::time},
    };
    CHECK(since(cluster, 0) == expected);
    // What is refused is no event.
    CHECK_THROWS_AS(cluster.add_node(node("a")), InvalidInput);
    CHECK_THROWS_AS(cluster.remove_task(z), InvalidInput);
    CHECK_THROWS_AS(cluster.remove_budget("q"), InvalidInput);
    CHECK_THROWS_AS(cluster.add_budget({.name = "r", .tasks = {"nobody"}}), InvalidInput);
    CHECK(log.version() == 21);
}

TEST_CASE("what-if is private until commit, which publishes its net changes") {
    auto cluster = small();
    const auto& log = *cluster.events();
    cluster.assign(x, a, 1);
    cluster.reserve(y, b, 1);
    const auto point = cluster.checkpoint();
    cluster.assign(x, b, 2);
    cluster.rollback(point);
    CHECK(log.version() == 0);
    cluster.rollback(0);
    cluster.commit();
    CHECK(log.version() == 0);
    // To and fro is nothing, and over a detour is one step.
    cluster.assign(x, a, 1);
    cluster.remove(x);
    cluster.assign(y, a, 1);
    cluster.assign(y, b, 2);
    cluster.reserve(y, a, 1);
    cluster.reserve(x, a, 2);
    cluster.unreserve(x, a, 2);
    cluster.commit();
    const std::vector<Event> expected{
        {.version = 1, .kind = EventKind::bound, .node = {b, 0}, .task = {y, 0}},
        {.version = 2, .kind = EventKind::reserved, .node = {a, 0}, .task = {y, 0}},
    };
    CHECK(since(cluster, 0) == expected);
    cluster.assign(y, b, 4);  // the same node, another GPU
    cluster.unreserve(y, a, 1);
    cluster.commit();
    REQUIRE(log.version() == 4);
    CHECK(log[3].kind == EventKind::bound);
    CHECK(log[3].from == b);
    CHECK(log[4].kind == EventKind::unreserved);
    cluster.assign(y, b, 4);  // again where it is, as the first and only task
    cluster.commit();
    CHECK(log.version() == 4);
    cluster.assign(x, b, 1);
    cluster.commit();
    cluster.assign(y, b, 4);  // now it is the first of two
    cluster.commit();
    REQUIRE(log.version() == 6);
    CHECK(log[6].kind == EventKind::bound);
    CHECK(log[6].task == cluster.handle(y));
}

TEST_CASE("a log keeps a window of its own cluster's events") {
    auto cluster = small();
    cluster.keep_events(3);
    const auto& log = *cluster.events();
    CHECK(log.window() == 4);
    for (int i = 1; i <= 10; ++i) cluster.set_now(i);
    CHECK(log.version() == 10);
    CHECK(log.oldest() == 6);
    CHECK(log[7].version == 7);
    CHECK_THROWS_AS(cluster.keep_events(0), InvalidInput);
    const auto copy = cluster;
    CHECK(copy.events() == nullptr);
    const auto id = log.id();
    const auto moved = std::move(cluster);
    REQUIRE(moved.events() != nullptr);
    CHECK(moved.events()->id() == id);
    auto other = small();
    CHECK(other.events()->id() != id);
    other = copy;
    CHECK(other.events() == nullptr);
}

TEST_CASE("followers detect another cluster, and restart if necessary") {
    auto cluster = small();
    cluster.keep_events(4);
    Followed<Counting> followed;
    CHECK(followed.of(cluster).rebuilt == 1);
    CHECK(followed.of(cluster).rebuilt == 1);
    cluster.bind(cluster.handle(x), cluster.handle(a), 1);
    cluster.bind(cluster.handle(x), cluster.handle(b), 1);
    CHECK(followed.of(cluster).usage == 3);
    CHECK(followed.last().tasks == 2);
    cluster.set_now(3);
    const auto job = cluster.add_job({.name = "j"});
    CHECK(followed.of(cluster).times == 1);
    CHECK(followed.last().jobs == 1);
    cluster.remove_job(job);
    cluster.update_node(cluster.handle(a), node("a"));
    CHECK(followed.of(cluster).nodes == 1);
    CHECK(followed.last().rebuilt == 1);
    // Out of the window.
    for (int i = 0; i < 5; ++i) cluster.set_now(i);
    CHECK(followed.of(cluster).rebuilt == 2);
    // A copy is another cluster, and so is the original after it.
    const auto copy = cluster;
    CHECK(followed.of(copy).rebuilt == 3);
    CHECK(followed.of(copy).rebuilt == 4);
    CHECK(followed.of(cluster).rebuilt == 5);
    CHECK(followed.of(cluster).rebuilt == 5);
}

TEST_CASE("a cluster built at the address of another is another") {
    // Followers once went by addresses, and answered for the cluster that had been there.
    alignas(Cluster) unsigned char room[sizeof(Cluster)];
    Followed<Idle> followed;
    auto* first = new (room) Cluster(small());
    CHECK(followed.of(*first).gpus == std::vector<GpuMask>{0xF, 0xF});
    first->~Cluster();
    ClusterSpec spec;
    spec.nodes = {node("a"), node("b")};
    spec.nodes[1].failed_gpus = {0, 1, 2, 3};
    auto* second = new (room) Cluster(Cluster::build(spec));
    second->keep_events();
    CHECK(followed.of(*second).gpus == std::vector<GpuMask>{0xF, 0});
    second->~Cluster();
}

TEST_CASE("followers see changes that can be undone, and their undoing") {
    auto cluster = small();
    Followed<Idle> followed;
    (void)followed.of(cluster);
    cluster.assign(x, a, 0b1);
    CHECK(followed.of(cluster).gpus == std::vector<GpuMask>{0b1110, 0b1111});
    cluster.assign(x, b, 0b1);
    CHECK(followed.of(cluster).gpus == std::vector<GpuMask>{0b1111, 0b1110});
    cluster.rollback(0);
    CHECK(followed.of(cluster).gpus == std::vector<GpuMask>{0b1111, 0b1111});
    cluster.reserve(y, b, 0b11 & 0b10);
    CHECK(followed.of(cluster).gpus == std::vector<GpuMask>{0b1111, 0b1101});
    cluster.commit();
    cluster.remove_node(cluster.handle(a));
    CHECK(followed.of(cluster).gpus == std::vector<GpuMask>{0, 0b1101});
}

TEST_CASE("a follower that throws receives everything again") {
    struct Fragile {
        int failures = 0, seen = 0;
        void rebuild(const Cluster&) {}
        void usage_changed(const Cluster&, NodeId) {
            if (failures-- > 0) throw std::runtime_error("not now");
            ++seen;
        }
    };
    auto cluster = small();
    Followed<Fragile> followed;
    (void)followed.of(cluster);
    followed.of(cluster).failures = 1;
    cluster.bind(cluster.handle(x), cluster.handle(a), 1);
    CHECK_THROWS_AS(followed.of(cluster), std::runtime_error);
    CHECK(followed.of(cluster).seen == 1);
}
