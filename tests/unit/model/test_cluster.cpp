// SPDX-License-Identifier: Apache-2.0
#include "support/aborts.hpp"
#include "support/catch.hpp"

#include "model/group_counts.hpp"
#include <gpusched/core/rng.hpp>
#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace {

// One node with 4 GPUs and 10 cores; tasks of 2 cores and 1 GPU each, pending, of the given classes.
Cluster one_node(const std::vector<PriorityClass>& classes, std::int64_t share = 1000) {
    ClusterSpec spec;
    spec.nodes.push_back(
        {.name = "n", .gpu_model = "A", .gpu_count = 4, .cpu_milli = 10'000, .memory_mib = 100});
    for (const auto priority_class : classes) {
        TaskSpec t;
        t.name = "t" + std::to_string(spec.tasks.size());
        t.cpu_milli = 2'000;
        t.memory_mib = 10;
        t.gpu_count = 1;
        t.gpu_share_milli = share;
        t.priority_class = priority_class;
        spec.tasks.push_back(t);
    }
    return Cluster::build(spec);
}

std::vector<std::size_t> order(const Cluster& c, NodeId node) {
    std::vector<std::size_t> tasks;
    for (const auto t : c.tasks_on(node)) tasks.push_back(index(t));
    return tasks;
}

constexpr NodeId n{0};
constexpr TaskId t0{0}, t1{1}, t2{2};
constexpr auto other = PriorityClass::other;

static_assert(std::copyable<Cluster>);
static_assert(std::input_iterator<Cluster::TaskIterator>);
static_assert(std::is_nothrow_move_constructible_v<Cluster>);

}  // namespace

TEST_CASE("a placed task uses its node, a removed one gives all back") {
    auto c = one_node({other, other});
    c.assign(t0, n, 0b0100);
    REQUIRE(c.node_of(t0) == n);
    REQUIRE(c.gpus_of(t0) == 0b0100);
    REQUIRE(c.cpu_free_milli(n) == 8'000);
    REQUIRE(c.memory_free_mib(n) == 90);
    REQUIRE(c.idle_gpus(n) == 0b1011);
    REQUIRE(c.gpu_free_total_milli(n) == 3'000);
    REQUIRE(c.occupants(n) == 1);
    c.remove(t0);
    REQUIRE_FALSE(c.is_placed(t0));
    REQUIRE(c.cpu_free_milli(n) == 10'000);
    REQUIRE(c.idle_gpus(n) == 0b1111);
    REQUIRE(c.tasks_on(n).empty());
    REQUIRE(c.occupants(n) == 0);
}

TEST_CASE("fractions share a card") {
    auto c = one_node({other, other, other}, 300);
    c.assign(t0, n, 0b0001);
    c.assign(t1, n, 0b0001);
    REQUIRE(c.gpu_free_milli(n, 0) == 400);
    REQUIRE(c.idle_gpus(n) == 0b1110);
    REQUIRE(c.gpu_milli(t0) == 300);
    REQUIRE(c.is_fraction(t0));
    c.assign(t0, n, 0b0010);  // from one card to another of the same node
    REQUIRE(c.gpu_free_milli(n, 0) == 700);
    REQUIRE(c.gpu_free_milli(n, 1) == 700);
    c.remove(t1);
    REQUIRE(c.idle_gpus(n) == 0b1101);
}

TEST_CASE("a Standby claim is open to LP tasks alone") {
    ClusterSpec spec = one_node({PriorityClass::hp, PriorityClass::lp, other}).to_spec();
    spec.tasks[0].standby = true;
    spec.tasks[0].node = "n";
    spec.tasks[0].gpus = {0};
    auto c = Cluster::build(spec);
    REQUIRE(c.cpu_free_milli(n) == 8'000);
    REQUIRE(c.cpu_free_milli(n, Lent::yes) == 10'000);
    REQUIRE(c.memory_free_mib(n) == 90);  // memory is not lent
    REQUIRE(c.idle_gpus(n) == 0b1110);
    REQUIRE(c.idle_gpus(n, Lent::yes) == 0b1111);
    REQUIRE(c.gpu_free_milli(n, 0) == 0);
    REQUIRE(c.gpu_free_milli(n, 0, Lent::yes) == 1'000);
    REQUIRE(c.may_borrow(t1));
    REQUIRE_FALSE(c.may_borrow(t2));
    REQUIRE_FALSE(c.is_movable(t0));

    c.assign(t1, n, 0b0001);  // the borrower takes what was lent, and nothing else
    REQUIRE(c.cpu_free_milli(n) == 8'000);
    REQUIRE(c.cpu_free_milli(n, Lent::yes) == 8'000);
    REQUIRE(c.idle_gpus(n, Lent::yes) == 0b1110);
    c.assign(t1, n, 0b0010);  // in addition to the claim it counts against every task
    REQUIRE(c.idle_gpus(n) == 0b1100);
    REQUIRE(c.cpu_free_milli(n) == 8'000);
}

TEST_CASE("failed GPUs offer nothing, before and after their task goes") {
    auto spec = one_node({other}).to_spec();
    spec.nodes[0].failed_gpus = {0, 3};
    spec.tasks[0].node = "n";
    spec.tasks[0].gpus = {0};
    auto c = Cluster::build(spec);
    REQUIRE(c.healthy_gpus(n) == 0b0110);
    REQUIRE(c.idle_gpus(n) == 0b0110);
    REQUIRE(c.gpu_free_milli(n, 0) == 0);
    c.remove(t0);
    REQUIRE(c.idle_gpus(n) == 0b0110);
    REQUIRE(c.gpu_free_total_milli(n) == 2'000);
    REQUIRE(c.warnings().empty());
}

TEST_CASE("daemons use resources, but do not occupy") {
    auto spec = one_node({other, other}).to_spec();
    spec.tasks[0].daemon = true;
    auto c = Cluster::build(spec);
    c.assign(t0, n, 1);
    REQUIRE(c.occupants(n) == 0);
    REQUIRE(c.cpu_free_milli(n) == 8'000);
    REQUIRE_FALSE(c.is_movable(t0));
    REQUIRE(order(c, n) == std::vector<std::size_t>{0});
}

TEST_CASE("tasks are listed in input order, new ones in front, and undo restores the order") {
    auto spec = one_node({other, other, other}).to_spec();
    for (int i = 0; i < 3; ++i) {
        spec.tasks[static_cast<std::size_t>(i)].node = "n";
        spec.tasks[static_cast<std::size_t>(i)].gpus = {i};
    }
    auto c = Cluster::build(spec);
    REQUIRE(order(c, n) == std::vector<std::size_t>{0, 1, 2});
    REQUIRE(c.checkpoint() == 0);
    c.assign(t1, n, 0b1000);
    REQUIRE(order(c, n) == std::vector<std::size_t>{1, 0, 2});
    c.remove(t0);
    c.remove(t2);
    c.undo();
    c.undo();
    c.undo();
    REQUIRE(order(c, n) == std::vector<std::size_t>{0, 1, 2});
    REQUIRE(c.gpus_of(t1) == 0b0010);
}

TEST_CASE("reservations hold resources without moving any task") {
    auto c = one_node({other, other});
    c.assign(t0, n, 1);
    const auto before = c.checkpoint();
    c.reserve(t0, n, 0b0010);
    REQUIRE(c.cpu_free_milli(n) == 6'000);
    REQUIRE(c.idle_gpus(n) == 0b1100);
    REQUIRE(c.node_of(t0) == n);
    REQUIRE(c.gpus_of(t0) == 1);
    REQUIRE(c.occupants(n) == 1);
    c.unreserve(t0, n, 0b0010);
    REQUIRE(c.cpu_free_milli(n) == 8'000);
    c.undo();  // the reservation is back
    REQUIRE(c.idle_gpus(n) == 0b1100);
    c.rollback(before);
    REQUIRE(c.idle_gpus(n) == 0b1110);
}

TEST_CASE("copies do not see each other's changes") {
    auto a = one_node({other});
    const auto b = a;
    a.assign(t0, n, 1);
    REQUIRE_FALSE(b.is_placed(t0));
    REQUIRE(b.idle_gpus(n) == 0b1111);
    REQUIRE_FALSE(a.same_placement(b));
    a.undo();
    REQUIRE(a.same_placement(b));
    REQUIRE(&a.inventory() == &b.inventory());
}

TEST_CASE("names are found, and unknown ones refused") {
    const auto c = one_node({other});
    REQUIRE(c.find_node("n") == n);
    REQUIRE(c.find_task("t0") == t0);
    REQUIRE_THROWS_MESSAGE((void)c.find_node("x"), InvalidInput, "unknown node 'x'");
    REQUIRE_THROWS_MESSAGE((void)c.find_task("n"), InvalidInput, "unknown task 'n'");
}

TEST_CASE("nodes of unknown position are domains of their own") {
    ClusterSpec spec;
    for (const auto& path : std::vector<std::vector<std::string>>{{"r", "a"}, {"r", "a"}, {"r"}, {}, {}})
        spec.nodes.push_back({.name = "n" + std::to_string(spec.nodes.size()), .network = path});
    const auto c = Cluster::build(spec);
    const auto& inv = c.inventory();
    REQUIRE(inv.network_levels() == 2);
    REQUIRE(inv.domain(0, NodeId{0}) == inv.domain(0, NodeId{2}));
    REQUIRE(inv.domain(1, NodeId{0}) == inv.domain(1, NodeId{1}));
    REQUIRE(inv.domain(1, NodeId{2}) != inv.domain(1, NodeId{3}));
    REQUIRE(inv.domain(0, NodeId{3}) != inv.domain(0, NodeId{4}));
    REQUIRE(inv.domain_count(1) == 4);
    REQUIRE(inv.domain_name(1, inv.domain(1, NodeId{0})) == "a");
    REQUIRE(inv.domain_name(1, inv.domain(1, NodeId{2})) == "n2");
    REQUIRE(inv.domain_name(node_level, inv.domain(node_level, NodeId{3})) == "n3");
    REQUIRE_FALSE(inv.position_known(1, NodeId{2}));
    REQUIRE(inv.position_known(0, NodeId{2}));
    REQUIRE(inv.position_known(node_level, NodeId{4}));
    REQUIRE(inv.network_depth(NodeId{4}) == 0);
}

TEST_CASE("a snapshot comes back as data, field by field") {
    ClusterSpec spec;
    spec.now = 42;
    spec.nodes.push_back({.name = "n",
                          .gpu_model = "A",
                          .gpu_count = 8,
                          .cpu_milli = 64'000,
                          .memory_mib = 1'000,
                          .gpu_memory_mib = 24'000,
                          .schedulable = false,
                          .network = {"r", "s"},
                          .labels = {{"unused", "label"}, {"zone", "z"}},
                          .taints = {{"k", "v", "NoSchedule"}, {"p", "", "PreferNoSchedule"}},
                          .hardware = hardware_preset("rtx4090x8"),
                          .failed_gpus = {7}});
    TaskSpec t{.name = "t",
               .job = "j",
               .cpu_milli = 1,
               .memory_mib = 2,
               .gpu_count = 2,
               .gpu_memory_mib = 3,
               .gpu_models = {"A", "B"},
               .priority = -4,
               .priority_class = PriorityClass::hp,
               .locked = true,
               .preemptible = true,
               .standby = true,
               .node_selector = {{"zone", "z"}},
               .tolerations = {{"k", "Equal", "v", ""}},
               .anti_affinity = {{"g", 1, 2}},
               .affinity = {{"h", node_level}},
               .network_affinity = NetworkAffinity{1, NetworkMode::preferred},
               .hardware_affinity = {{HardwareLevel::socket, HardwareQos::guaranteed}},
               .cpu_local = true,
               .cores = std::vector{3, 4},
               .move_cost = 5,
               .start_time = 6,
               .last_checkpoint_time = 7,
               .checkpoint_interval = 8,
               .eviction_count = 9,
               .node = "n",
               .gpus = {2, 3}};
    spec.tasks.push_back(t);
    TaskSpec daemon{.name = "d"};
    daemon.daemon = true;
    daemon.preemptible = false;
    spec.tasks.push_back(daemon);
    spec.jobs = {{"j", 1, 0}, {"empty", 0, {}}};
    REQUIRE(Cluster::build(spec).to_spec() == spec);
}

TEST_CASE("tasks are preemptible by default when they are LP, and jobs come into being when named") {
    ClusterSpec spec;
    for (const auto priority_class : {PriorityClass::hp, PriorityClass::lp, other}) {
        TaskSpec t{.name = "t" + std::to_string(spec.tasks.size()), .job = "j"};
        t.priority_class = priority_class;
        spec.tasks.push_back(t);
    }
    const auto c = Cluster::build(spec);
    REQUIRE(c.inventory().tasks.preemptible == std::vector<std::uint8_t>{0, 1, 0});
    REQUIRE(c.inventory().job_names.size() == 1);
    REQUIRE(c.inventory().job_size == std::vector<std::uint32_t>{3});
    REQUIRE(c.to_spec().jobs == std::vector<JobSpec>{{"j", 0, {}}});
}

TEST_CASE("counts per domain agree with a map") {
    Rng rng(3);
    for (int round = 0; round < 200; ++round) {
        gpusched::detail::DomainCounts counts;
        const auto members = static_cast<std::uint32_t>(rng.between(1, 12));
        const auto tables = static_cast<std::uint32_t>(rng.between(1, 3));
        for (std::uint32_t t = 0; t < tables; ++t) REQUIRE(counts.add_table(members) == t);
        std::vector<std::map<std::uint32_t, std::uint32_t>> expected(tables);
        std::vector<std::pair<std::uint32_t, std::uint32_t>> present;
        for (int i = 0; i < 400; ++i) {
            const auto table = static_cast<std::uint32_t>(rng.below(tables));
            std::uint32_t held = 0;
            for (const auto& [domain, count] : expected[table]) held += count;
            if (rng.chance(0.5) && held < 3 * members) {
                const auto domain = static_cast<std::uint32_t>(rng.below(round % 2 == 0 ? 20 : 1u << 20));
                counts.increment(table, DomainId{domain});
                ++expected[table][domain];
            } else if (!expected[table].empty()) {
                auto at = expected[table].begin();
                std::advance(at, static_cast<std::ptrdiff_t>(rng.below(expected[table].size())));
                counts.decrement(table, DomainId{at->first});
                if (--at->second == 0) expected[table].erase(at);
            }
            REQUIRE(counts.domains(table) == expected[table].size());
            for (const auto& [domain, count] : expected[table])
                REQUIRE(counts.count(table, DomainId{domain}) == count);
            REQUIRE(counts.count(table, DomainId{0xFFFFF0}) == 0);
        }
    }
}

#if defined(GPUSCHED_CHECKED) || !defined(NDEBUG)
TEST_CASE("impossible calls are caught if assertions are on") {
    ClusterSpec spec;
    spec.nodes = {{.name = "n", .gpu_count = 2, .cpu_milli = 4'000, .memory_mib = 10}};
    spec.tasks = {{.name = "t", .cpu_milli = 1'000, .gpu_count = 1}};
    auto c = Cluster::build(spec);
    const NodeId no_node{1};
    const TaskId t{0}, no_task{1};
    CHECK_FALSE(testing_support::aborts([&] { c.assign(t, n, 0b01); }));
    CHECK(testing_support::aborts([&] { (void)c.node_of(no_task); }));
    CHECK(testing_support::aborts([&] { (void)c.cpu_free_milli(no_node); }));
    CHECK(testing_support::aborts([&] { (void)c.gpu_free_milli(n, 2); }));
    CHECK(testing_support::aborts([&] { (void)c.gpu_free_milli(n, -1); }));
    CHECK(testing_support::aborts([&] { (void)c.gpu_memory_free_mib(n, 2); }));
    CHECK(testing_support::aborts([&] { (void)c.tasks_on(no_node); }));
    CHECK(testing_support::aborts([&] { c.assign(no_task, n, 0b01); }));
    CHECK(testing_support::aborts([&] { c.assign(t, no_node, 0b01); }));
    CHECK(testing_support::aborts([&] { c.assign(t, n, 0b100); }));
    CHECK(testing_support::aborts([&] { c.assign(t, n, 0b11); }));
    CHECK(testing_support::aborts([&] { c.unreserve(t, n, 0b01); }));  // nothing was reserved
    CHECK(testing_support::aborts([&] { c.undo(); }));
    CHECK(testing_support::aborts([&] { c.rollback(1); }));
    CHECK(testing_support::aborts([&] { (void)c.group_count(0, DomainId{0}); }));
    CHECK(testing_support::aborts([&] { (void)c.group_domains(0); }));
}
#endif
