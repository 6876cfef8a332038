// SPDX-License-Identifier: Apache-2.0
#include "random_snapshot.hpp"

using namespace gpusched;
using namespace gpusched::fragmentation;
using namespace fragmentation_test;

namespace {

static_assert(NodeMetric<ReportMetric>);

// One node with 8 GPUs and 64 cores on which tasks leave `idle` thousandths of a GPU and `cpu` of a core.
Cluster node_with(std::int64_t idle, std::int64_t cpu) {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_model = "A", .gpu_count = 8, .cpu_milli = 64000});
    spec.tasks.push_back({.name = "cpu", .cpu_milli = 64000 - cpu, .node = "n"});
    std::int64_t used = 8000 - idle;
    for (int g = 0; used > 0; ++g, used -= 1000)
        spec.tasks.push_back({.name = "g" + std::to_string(g),
                              .gpu_count = 1,
                              .gpu_share_milli = std::min<std::int64_t>(used, 1000),
                              .node = "n",
                              .gpus = {g}});
    return Cluster::build(spec);
}

ReportRow row_of(std::int64_t idle, std::int64_t cpu, Shape shape) {
    const std::vector<Shape> shapes{shape};
    return report(node_with(idle, cpu), shapes).at(0);
}

// The table of causes, in GPUs and as it reads.
struct Causes {
    double fractional = 0, stranded = 0, insufficient_cpu = 0, total = 0;
};
Causes causes(double idle, double cpus, int g, double c) {
    const double w = static_cast<double>(static_cast<int>(idle));
    Causes out;
    out.total = idle;
    if (cpus >= c && w >= g && idle > w) out.fractional = idle - w;
    if (cpus >= c && 0 < w && w < g) out.stranded = w;
    if (cpus < c && idle >= g) out.insufficient_cpu = g;
    if (cpus < c && 0 < idle && idle < g) out.insufficient_cpu = idle;
    return out;
}

}  // namespace

TEST_CASE("every cell of the table of causes, by hand") {
    struct Case {
        std::int64_t idle, cpu;
        Shape shape;
        std::int64_t fractional, stranded, insufficient_cpu;
    };
    const auto c = GENERATE(values<Case>({
        // enough CPU
        {4000, 32000, {4, 32000}, 0, 0, 0},     // fits exactly
        {4500, 32000, {4, 32000}, 500, 0, 0},   // fits, half a GPU is left over
        {3000, 32000, {4, 32000}, 0, 3000, 0},  // three are stranded
        {3700, 32000, {4, 32000}, 0, 3000, 0},  // the part of a GPU is not stranded
        {700, 32000, {1, 8000}, 0, 0, 0},       // no whole GPU: none of the causes
        {700, 32000, {4, 32000}, 0, 0, 0},
        {0, 32000, {1, 8000}, 0, 0, 0},
        {8000, 64000, {1, 8000}, 0, 0, 0},
        // CPU is short by a thousandth of a core
        {4000, 31999, {4, 32000}, 0, 0, 4000},  // g of idle = g
        {7500, 31999, {4, 32000}, 0, 0, 4000},  // g of idle > g
        {3700, 31999, {4, 32000}, 0, 0, 3700},  // all of idle < g
        {700, 7999, {1, 8000}, 0, 0, 700},
        {0, 0, {1, 8000}, 0, 0, 0},
        // no CPU asked for
        {1500, 0, {1, 0}, 500, 0, 0},
    }));
    const auto row = row_of(c.idle, c.cpu, c.shape);
    INFO("idle " << c.idle << " cpu " << c.cpu << " gpus " << c.shape.gpus);
    CHECK(row == ReportRow{"", c.shape, c.fractional, c.stranded, c.insufficient_cpu, c.idle});
}

TEST_CASE("idle parts of several GPUs add up to whole ones, as the definition sums a node's idle quantity") {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_model = "A", .gpu_count = 2, .cpu_milli = 8000});
    for (int g : {0, 1})
        spec.tasks.push_back(
            {.name = std::to_string(g), .gpu_count = 1, .gpu_share_milli = 500, .node = "n", .gpus = {g}});
    const std::vector<Shape> shapes{{1, 8000}, {2, 8000}};
    const auto rows = report(Cluster::build(spec), shapes);
    CHECK(rows.at(0) == ReportRow{"", {1, 8000}, 0, 0, 0, 1000});
    CHECK(rows.at(1) == ReportRow{"", {2, 8000}, 0, 1000, 0, 1000});
}

TEST_CASE("counts in GPUs and percentages of the idle GPUs") {
    const auto row = row_of(3700, 32000, {4, 32000});
    CHECK(row.total_idle() == Catch::Approx(3.7));
    CHECK(row.stranded() == Catch::Approx(3.0));
    CHECK(row.stranded_pct() == Catch::Approx(100 * 3.0 / 3.7));
    CHECK(row_of(4500, 32000, {4, 32000}).fractional_pct() == Catch::Approx(100 * 0.5 / 4.5));
    CHECK(row_of(7500, 31999, {4, 32000}).insufficient_cpu_pct() == Catch::Approx(100 * 4 / 7.5));
    CHECK(row_of(7500, 31999, {4, 32000}).insufficient_cpu() == Catch::Approx(4.0));
    CHECK(row_of(4500, 32000, {4, 32000}).fractional() == Catch::Approx(0.5));
    CHECK(row_of(0, 0, {1, 8000}).stranded_pct() == 0.0);
}

TEST_CASE("the paper's shapes, in its order") {
    const auto rows = report(node_with(8000, 64000), asi_shapes);
    REQUIRE(rows.size() == 8);
    const std::vector<std::pair<int, int>> expected{{1, 8},  {1, 12}, {4, 32}, {4, 48},
                                                    {4, 64}, {8, 64}, {8, 96}, {8, 128}};
    for (std::size_t i = 0; i < 8; ++i)
        CHECK(rows[i].shape == Shape{expected[i].first, 1000 * expected[i].second});
    CHECK(rows[5].insufficient_cpu_milli == 0);
    CHECK(rows[6].insufficient_cpu_milli == 8000);
}

TEST_CASE("not idle: failed GPUs, Standby claims, cordoned and CPU-only nodes; daemons use CPU") {
    ClusterSpec spec;
    spec.nodes.push_back(
        {.name = "n", .gpu_model = "A", .gpu_count = 4, .cpu_milli = 16000, .failed_gpus = {3}});
    spec.nodes.push_back(
        {.name = "cordoned", .gpu_model = "A", .gpu_count = 2, .cpu_milli = 16000, .schedulable = false});
    spec.nodes.push_back({.name = "cpu", .cpu_milli = 64000});
    spec.tasks.push_back({.name = "lent",
                          .cpu_milli = 4000,
                          .gpu_count = 1,
                          .priority_class = PriorityClass::hp,
                          .standby = true,
                          .node = "n",
                          .gpus = {0}});
    spec.tasks.push_back({.name = "spot",
                          .cpu_milli = 4000,
                          .gpu_count = 1,
                          .priority_class = PriorityClass::lp,
                          .node = "n",
                          .gpus = {0}});
    spec.tasks.push_back({.name = "agent", .cpu_milli = 1000, .daemon = true, .node = "n"});
    const auto cluster = Cluster::build(spec);
    const std::vector<Shape> shapes{{2, 11000}, {2, 11001}, {3, 0}};
    const auto rows = report(cluster, shapes);
    CHECK(rows[0] == ReportRow{"", {2, 11000}, 0, 0, 0, 2000});
    CHECK(rows[1] == ReportRow{"", {2, 11001}, 0, 0, 2000, 2000});
    CHECK(rows[2] == ReportRow{"", {3, 0}, 0, 2000, 0, 2000});
    CHECK(report(cluster, shapes, {.include_cordoned = true})[2] == ReportRow{"", {3, 0}, 0, 4000, 0, 4000});
}

TEST_CASE("groups and the filter on node size") {
    ClusterSpec spec;
    spec.nodes.push_back(
        {.name = "a", .gpu_model = "B", .gpu_count = 16, .cpu_milli = 1, .network = {"east", "s0"}});
    spec.nodes.push_back(
        {.name = "b", .gpu_model = "A", .gpu_count = 8, .cpu_milli = 1, .network = {"west"}});
    spec.nodes.push_back({.name = "c", .gpu_count = 4, .cpu_milli = 1});
    spec.nodes.push_back(
        {.name = "d", .gpu_model = "A", .gpu_count = 2, .cpu_milli = 1, .network = {"east", "s1"}});
    spec.nodes.push_back({.name = "e", .gpu_model = "C", .cpu_milli = 1, .network = {"north"}});
    spec.nodes.push_back(
        {.name = "f", .gpu_model = "D", .gpu_count = 1, .cpu_milli = 1, .schedulable = false});
    const auto cluster = Cluster::build(spec);
    const std::vector<Shape> shapes{{1, 0}, {2, 0}};
    const auto idle = [&](const ReportOptions& options) {
        std::vector<std::pair<std::string, std::int64_t>> out;
        const auto rows = report(cluster, shapes, options);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            CHECK(rows[i].shape == shapes[i % 2]);
            if (i % 2 == 0) out.emplace_back(rows[i].group, rows[i].total_idle_milli / 1000);
        }
        return out;
    };
    using Expected = std::vector<std::pair<std::string, std::int64_t>>;
    CHECK(idle({}) == Expected{{"", 30}});
    CHECK(idle({.max_gpus_per_node = 8}) == Expected{{"", 14}});
    CHECK(idle({.by = GroupBy::gpu_model}) == Expected{{"B", 16}, {"A", 10}, {"D", 0}, {"", 4}});
    CHECK(idle({.max_gpus_per_node = 8, .by = GroupBy::gpu_model}) == Expected{{"A", 10}, {"D", 0}, {"", 4}});
    // Nodes c and f are nowhere: together, and last.
    CHECK(idle({.by = GroupBy::cluster}) == Expected{{"east", 18}, {"west", 8}, {"(unknown position)", 4}});
}

TEST_CASE("nodes of unknown position are one group by cluster; a cluster without nodes has none") {
    ClusterSpec spec;
    CHECK(report(Cluster::build(spec), asi_shapes, {.by = GroupBy::cluster}).empty());
    CHECK(report(Cluster::build(spec), asi_shapes).size() == 8);
    spec.nodes.push_back({.name = "x", .gpu_count = 1});
    spec.nodes.push_back({.name = "y", .gpu_count = 1});
    const std::vector<Shape> shapes{{1, 0}};
    const auto rows = report(Cluster::build(spec), shapes, {.by = GroupBy::cluster});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].group == unknown_position);
    CHECK(rows[0].total_idle_milli == 2000);
}

TEST_CASE("reports agree with the table of causes on random clusters") {
    const std::vector<Shape> shapes{{1, 0}, {1, 8000}, {2, 9500}, {4, 32000}, {8, 64000}, {16, 1000}};
    std::int64_t seen_fractional = 0, seen_stranded = 0, seen_cpu = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto spec = random_snapshot(seed);
        const auto cluster = Cluster::build(spec);
        const auto free = free_nodes(spec);
        ReportOptions options{.include_cordoned = seed % 2 == 0};
        if (seed % 3 == 0) options.max_gpus_per_node = 8;
        for (const auto by : {GroupBy::none, GroupBy::gpu_model, GroupBy::cluster}) {
            options.by = by;
            std::map<std::pair<std::string, std::size_t>, Causes> expected;
            for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
                const auto& node = spec.nodes[i];
                if (!node.schedulable && !options.include_cordoned) continue;
                if (node.gpu_count > options.max_gpus_per_node.value_or(64)) continue;
                const auto group = by == GroupBy::none        ? std::string()
                                   : by == GroupBy::gpu_model ? node.gpu_model
                                   : node.network.empty()     ? std::string(unknown_position)
                                                              : node.network[0];
                for (std::size_t s = 0; s < shapes.size(); ++s) {
                    const auto c =
                        causes(free[i].idle_milli() / 1000.0, static_cast<double>(free[i].cpu_milli) / 1000.0,
                               shapes[s].gpus, static_cast<double>(shapes[s].cpu_milli) / 1000.0);
                    auto& sum = expected[{group, s}];
                    sum.fractional += c.fractional;
                    sum.stranded += c.stranded;
                    sum.insufficient_cpu += c.insufficient_cpu;
                    sum.total += c.total;
                }
            }
            const auto rows = report(cluster, shapes, options);
            std::size_t at = 0;
            for (const auto& row : rows) {
                const auto e = expected[{row.group, at++ % shapes.size()}];
                REQUIRE(row.fractional() == Catch::Approx(e.fractional).margin(1e-9));
                REQUIRE(row.stranded() == Catch::Approx(e.stranded).margin(1e-9));
                REQUIRE(row.insufficient_cpu() == Catch::Approx(e.insufficient_cpu).margin(1e-9));
                REQUIRE(row.total_idle() == Catch::Approx(e.total).margin(1e-9));
                seen_fractional += row.fractional_milli;
                seen_stranded += row.stranded_milli;
                seen_cpu += row.insufficient_cpu_milli;
                expected.erase({row.group, (at - 1) % shapes.size()});
            }
            for (const auto& [key, rest] : expected) REQUIRE(rest.total == 0.0);  // nothing idle is left out
        }
    }
    REQUIRE(std::min({seen_fractional, seen_stranded, seen_cpu}) > 0);
}

TEST_CASE("reports refuse options out of range") {
    const auto cluster = node_with(8000, 64000);
    const auto fails = [&](std::vector<Shape> shapes, const ReportOptions& options, const std::string& text) {
        REQUIRE_THROWS_MESSAGE(report(cluster, shapes, options), InvalidInput, text);
    };
    fails({}, {}, "shapes: 0 entries; expected 1");
    fails({{0, 0}}, {}, "shapes[0]: gpus: 0; expected 1 64");
    fails({{65, 0}}, {}, "shapes[0]: gpus: 65; expected 1 64");
    fails({{1, -1}}, {}, "shapes[0]: cpu_milli: -1; expected 0 1000000000000");
    fails({{1, 0}}, {.max_gpus_per_node = 0}, "max_gpus_per_node: 0; expected 1 64");
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] {
                   validate(std::vector<Shape>{{0, 8000}, {1, 1000}, {99, -1}}, {.max_gpus_per_node = 65});
               }),
               MentionsEach({"shapes[0]: gpus: 0; expected 1 64", "shapes[2]: gpus: 99; expected 1 64",
                             "shapes[2]: cpu_milli: -1; expected 0 1000000000000",
                             "max_gpus_per_node: 65; expected 1 64"}));
    CHECK(std::string(enum_name(GroupBy::none)) == "none");
    CHECK(std::string(enum_name(GroupBy::gpu_model)) == "gpu_model");
    CHECK(std::string(enum_name(GroupBy::cluster)) == "cluster");
}
