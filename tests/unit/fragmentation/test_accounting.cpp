// SPDX-License-Identifier: Apache-2.0
// Accounting: capacity that HP tasks alone hold, as in the ASI paper's figures, by hand.
#include "support/catch.hpp"

#include <gpusched/fragmentation/fragmentation.hpp>

using namespace gpusched;
using namespace gpusched::fragmentation;

namespace {

TaskSpec running(PriorityClass priority_class, const char* node, std::vector<int> gpus, std::int64_t cores) {
    static int number = 0;
    TaskSpec task{.name = "t" + std::to_string(number++), .priority_class = priority_class, .node = node};
    task.gpu_count = static_cast<std::int64_t>(gpus.size());
    task.gpus = std::move(gpus);
    task.cpu_milli = cores * 1000;
    return task;
}

/// Node "a": A = 2, S = 3, L = 2 (on lent GPUs), 40 of 96 cores asked for by HP. Node "b": LP alone. "c": no known switch.
ClusterSpec three_nodes() {
    ClusterSpec spec;
    for (const char* name : {"a", "b", "c"}) {
        NodeSpec node{.name = name, .gpu_model = "A", .gpu_count = 8, .cpu_milli = 96'000};
        if (name[0] != 'c') node.network = {"cluster", "switch"};
        spec.nodes.push_back(node);
    }
    spec.tasks = {running(PriorityClass::hp, "a", {0, 1}, 30), running(PriorityClass::hp, "a", {2, 3, 4}, 10),
                  running(PriorityClass::lp, "a", {2, 3}, 10),
                  running(PriorityClass::lp, "b", {0, 1, 2, 3, 4, 5}, 96),
                  running(PriorityClass::hp, "c", {0}, 0)};
    spec.tasks[1].standby = true;
    return spec;
}

}  // namespace

TEST_CASE("with accounting hp spot tasks hold nothing, and use lent GPUs") {
    const auto cluster = Cluster::build(three_nodes());
    const auto a = requests_on(cluster, cluster.find_node("a"));
    CHECK(a.hp_active == 2000);
    CHECK(a.hp_standby == 3000);
    CHECK(a.lp == 2000);
    CHECK(a.unborrowed() == 1000);
    CHECK(a.idle_gpus() == 5000);  // 8 - (2 + 1)
    CHECK(a.idle_cpu() == 56'000);
    CHECK(a.held() == 5000);  // min(2 + 2, 8) + 1
    const auto b = requests_on(cluster, cluster.find_node("b"));
    CHECK(b.idle_gpus() == 8000);
    CHECK(b.idle_cpu() == 96'000);
    CHECK_FALSE(b.has_hp);

    const std::vector<Shape> shapes{{.gpus = 4, .cpu_milli = 60'000}};
    const auto published = report(cluster, shapes, {.accounting = Accounting::hp}).at(0);
    CHECK(published.total_idle_milli == (5 + 8 + 7) * 1000);
    CHECK(published.insufficient_cpu_milli == 4000);  // a has 56 cores: 4 of its 5 GPUs count
    CHECK(published.stranded_milli == 0);
    const auto own = report(cluster, shapes).at(0);
    CHECK(own.total_idle_milli == (3 + 2 + 7) * 1000);
    const auto nodes = unusable_nodes(cluster, shapes[0], {.accounting = Accounting::hp});
    REQUIRE(nodes.size() == 1);
    CHECK(cluster.name(nodes[0].node) == "a");
}

TEST_CASE("slots with accounting hp count nodes with an HP task and a known switch") {
    const auto cluster = Cluster::build(three_nodes());
    auto without_network = three_nodes();
    for (auto& node : without_network.nodes) node.network.clear();
    for (const auto& row :
         switch_slots(Cluster::build(without_network), {.gpus = 1, .accounting = Accounting::hp})) {
        CHECK(row.across == 0);
        CHECK(row.within == 0);
    }
    const auto jobs = [&](SwitchSlotOptions options) {
        options.accounting = Accounting::hp;
        return switch_slots(cluster, options).back().within;
    };
    // Of a: 8 - 5 requested GPUs and floor(56 / 12) = 4 by cores, so 3 slots; b has no HP task, c no switch.
    CHECK(jobs({.gpus = 1}) == 3);
    CHECK(jobs({.gpus = 2}) == 1);
    CHECK(jobs({.gpus = 1, .cores_per_gpu = 28}) == 2);
    REQUIRE_THROWS_MESSAGE(jobs({.gpus = 8, .gpus_per_pod = 8}), InvalidInput,
                           "gpus_per_pod cannot be combined with accounting 'hp'");
}

TEST_CASE("every server weighs the same in the published ratios") {
    auto spec = three_nodes();
    spec.nodes.push_back({.name = "cpu", .cpu_milli = 1000});  // no GPUs: no server of the figures
    const auto rows = server_ratios(Cluster::build(spec));
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].gpu_model == "A");
    CHECK(rows[1].gpu_model == "*");
    for (const auto& row : rows) {
        CHECK(row.servers == 3);
        CHECK(row.hp == Catch::Approx((3.0 / 8 + 0 + 1.0 / 8) / 3));
        CHECK(row.hp_and_lp == Catch::Approx((5.0 / 8 + 6.0 / 8 + 1.0 / 8) / 3));
        CHECK(row.standby_servers == 1);
        CHECK(row.standby_used == Catch::Approx(2.0 / 3));
    }
}
