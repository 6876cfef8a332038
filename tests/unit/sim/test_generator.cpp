// SPDX-License-Identifier: Apache-2.0
// Generated clusters: counts, shares, shapes and structure; the numbers come from the published description.
#include "support/catch.hpp"

#include <gpusched/sim/sim.hpp>

using namespace gpusched;
using sim::generate_cluster;
using sim::Layout;

namespace {

double gpus(const TaskSpec& task) {
    return static_cast<double>(task.gpu_count * task.gpu_share_milli) / 1000.0;
}

struct Share {
    double capacity = 0, allocated = 0;
    [[nodiscard]] double value() const { return allocated / capacity; }
};

std::map<std::string, Share> shares(const ClusterSpec& spec) {
    std::map<std::string, Share> out;
    std::map<std::string, std::string> model_of;
    for (const auto& node : spec.nodes) {
        out[node.gpu_model].capacity += static_cast<double>(node.gpu_count);
        model_of[node.name] = node.gpu_model;
    }
    for (const auto& task : spec.tasks) out[model_of.at(*task.node)].allocated += gpus(task);
    return out;
}

}  // namespace

TEST_CASE("the ASI-like cluster has the published nodes and switches") {
    const auto spec = generate_cluster();
    CHECK(spec.nodes.size() == 37'707);
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> count;
    std::int64_t total = 0;
    std::map<std::string, std::vector<std::size_t>> switches;
    std::map<std::string, std::set<std::string>> switches_of;
    for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
        const auto& node = spec.nodes[i];
        ++count[{node.gpu_model, node.gpu_count}];
        total += node.gpu_count;
        REQUIRE(node.network.size() == 3);
        CHECK(node.network[0] == "cluster-0");
        switches[node.network[2]].push_back(i);
        switches_of[node.network[1]].insert(node.network[2]);
    }
    CHECK(total == 155'410);
    CHECK(count.size() == 14);
    CHECK(count[{"H20", 8}] == 4200);
    CHECK(count[{"T4", 4}] == 1500);
    CHECK(count[{"T4", 2}] == 3503);
    CHECK(count[{"A10", 1}] == 9204);
    const auto& h20 = spec.nodes.front();
    CHECK(h20.cpu_milli == 192'000);
    CHECK(h20.memory_mib == 2000 * 1024);

    std::size_t short_ones = 0, full_aggregations = 0;
    for (const auto& [name, members] : switches) {
        CHECK(members.back() - members.front() + 1 == members.size());  // consecutive
        const auto& first = spec.nodes[members.front()];
        for (const auto i : members) REQUIRE(spec.nodes[i].gpu_model == first.gpu_model);
        CHECK(members.size() <= 64);
        short_ones += members.size() < 32 ? 1 : 0;
    }
    CHECK(short_ones <= 14);  // at most the last one of each kind
    const auto mean = 37'707.0 / static_cast<double>(switches.size());
    CHECK(mean == Catch::Approx(48).epsilon(0.05));
    for (const auto& [name, below] : switches_of) full_aggregations += below.size() == 16 ? 1 : 0;
    CHECK(full_aggregations >= switches_of.size() - 1);
}

TEST_CASE("every model reaches its share, under every layout and load") {
    const std::map<std::string, double> usual{{"H20", .90}, {"XPU-A", .62}, {"A100", .88}, {"H800", .92},
                                              {"L20", .80}, {"A800", .86},  {"V100", .75}, {"PPU-B", .60},
                                              {"T4", .75},  {"L40S", .80},  {"P100", .65}, {"A10", .80},
                                              {"RTX", .70}};
    const auto layout = GENERATE(Layout::random, Layout::spread, Layout::packed);
    const auto load = GENERATE(1.0, 0.85, 1.15);
    const auto spec = generate_cluster({.nodes = 7000, .seed = 5, .layout = layout, .load = load});
    CHECK(spec.nodes.size() == 7000);
    for (const auto& [model, share] : shares(spec)) {
        INFO(model);
        CHECK(share.value() == Catch::Approx(std::min(0.97, usual.at(model) * load)).margin(0.015));
    }
    REQUIRE_NOTHROW(Cluster::build(spec));
}

TEST_CASE("layouts scatter idle GPUs differently") {
    const auto empty_and_full = [](Layout layout) {
        const auto cluster = Cluster::build(generate_cluster({.nodes = 4000, .layout = layout}));
        std::pair<int, int> out;
        for (const auto node : cluster.nodes()) {
            out.first += cluster.occupants(node) == 0 ? 1 : 0;
            out.second += cluster.idle_gpus(node) == 0 ? 1 : 0;
        }
        return out;
    };
    const auto random = empty_and_full(Layout::random), spread = empty_and_full(Layout::spread),
               packed = empty_and_full(Layout::packed);
    CHECK(spread.first < random.first);
    CHECK(random.first < packed.first);
    CHECK(spread.second < random.second);
    CHECK(random.second < packed.second);
}

TEST_CASE("tasks of the ASI-like cluster have the published shapes") {
    // Little load, so that everything fits and nothing is selected for its size.
    const auto spec = generate_cluster({.seed = 3, .load = 0.4});
    std::map<std::string, const NodeSpec*> node_of;
    for (const auto& node : spec.nodes) node_of[node.name] = &node;
    std::map<std::int64_t, double> on_large;
    double large = 0, ones = 0, fractions = 0, locked = 0, lp = 0, all_gpus = 0, per_gpu = 0;
    std::map<std::string, std::vector<const TaskSpec*>> jobs;
    for (const auto& task : spec.tasks) {
        const auto& node = *node_of.at(*task.node);
        REQUIRE(task.gpu_models == std::vector<std::string>{node.gpu_model});
        if (node.gpu_count == 8) {
            ++on_large[task.gpu_count];
            ++large;
        }
        ones += task.gpu_count == 1 ? 1 : 0;
        fractions += task.gpu_share_milli < 1000 ? 1 : 0;
        locked += task.locked ? 1 : 0;
        all_gpus += gpus(task);
        if (task.priority_class == PriorityClass::lp) lp += gpus(task);
        per_gpu += static_cast<double>(task.cpu_milli) / 1000.0;
        // T4 nodes come in two sizes; a task made for the larger may run on the smaller.
        const bool two_sizes = node.gpu_model == "T4";
        CHECK((two_sizes || task.cpu_milli * 100 <= node.cpu_milli * 98));
        CHECK((two_sizes || task.memory_mib * 100 <= node.memory_mib * 98));
        const double ratio = static_cast<double>(node.cpu_milli) / static_cast<double>(node.gpu_count * 1000);
        const double asked = static_cast<double>(task.cpu_milli) / 1000.0 / gpus(task);
        CHECK(asked <= (node.gpu_count <= 2 && !two_sizes ? 16.0 : 1.5 * ratio) + 1e-9);
        CHECK(task.start_time < spec.now);
        CHECK(task.checkpoint_interval >= 600);
        CHECK(task.checkpoint_interval <= 7200);
        CHECK(*task.last_checkpoint_time >= task.start_time);
        CHECK(*task.last_checkpoint_time + task.checkpoint_interval > spec.now);
        jobs[task.job].push_back(&task);
    }
    CHECK(on_large[1] / large == Catch::Approx(.40).margin(.02));
    CHECK(on_large[2] / large == Catch::Approx(.22).margin(.02));
    CHECK(on_large[4] / large == Catch::Approx(.16).margin(.02));
    CHECK(on_large[8] / large == Catch::Approx(.22).margin(.02));
    CHECK(fractions / ones == Catch::Approx(.04).margin(.01));
    CHECK(locked / static_cast<double>(spec.tasks.size()) == Catch::Approx(.40).margin(.01));
    CHECK(lp / all_gpus == Catch::Approx(25.0 / 93.0).margin(.03));
    CHECK(per_gpu / all_gpus == Catch::Approx(10.0).margin(1.0));  // the mean of the published list is 10.2

    double several = 0, anti_affine = 0;
    for (const auto& [name, members] : jobs) {
        CHECK(members.size() <= 16);
        if (members.size() < 2) continue;
        ++several;
        const bool apart = !members.front()->anti_affinity.empty();
        anti_affine += apart ? 1 : 0;
        std::set<std::string> nodes;
        for (const auto* task : members) {
            CHECK(task->priority_class == members.front()->priority_class);
            CHECK(task->gpu_count == members.front()->gpu_count);
            CHECK(task->cpu_milli == members.front()->cpu_milli);
            CHECK(task->anti_affinity.empty() != apart);
            nodes.insert(*task->node);
        }
        if (apart) CHECK(nodes.size() == members.size());
    }
    CHECK(several / static_cast<double>(jobs.size()) ==
          Catch::Approx(.28).margin(.05));  // churn spares large jobs
    CHECK(anti_affine / several == Catch::Approx(.5).margin(.03));
}

TEST_CASE("CPU-tight tasks request more cores, and locked_fraction sets the share of locked tasks") {
    const auto cores_per_gpu = [](const ClusterSpec& spec) {
        double cores = 0, all = 0;
        for (const auto& task : spec.tasks) {
            cores += static_cast<double>(task.cpu_milli) / 1000.0;
            all += gpus(task);
        }
        return cores / all;
    };
    const auto usual = generate_cluster({.nodes = 3000, .load = 0.95});
    const auto tight =
        generate_cluster({.nodes = 3000, .load = 0.95, .cpu_tight = true, .locked_fraction = 0.0});
    CHECK(cores_per_gpu(tight) > 1.4 * cores_per_gpu(usual));
    CHECK(std::none_of(tight.tasks.begin(), tight.tasks.end(), [](const TaskSpec& t) { return t.locked; }));
}

TEST_CASE("the openb-like cluster has the published nodes and mix of pods") {
    const auto layout = GENERATE(Layout::random, Layout::packed);
    const auto spec = generate_cluster({.preset = "openb", .seed = 8, .layout = layout});
    CHECK(spec.nodes.size() == 1213);
    double capacity = 0, allocated = 0, hp = 0;
    std::map<std::string, double> mix;
    for (const auto& node : spec.nodes) capacity += static_cast<double>(node.gpu_count);
    for (const auto& task : spec.tasks) {
        allocated += gpus(task);
        if (task.priority_class == PriorityClass::hp) hp += gpus(task);
        ++mix[task.gpu_count == 0           ? "none"
              : task.gpu_share_milli < 1000 ? "fraction"
              : task.gpu_count == 1         ? "one"
                                            : "more"];
        CHECK(task.gpu_models.empty());
    }
    CHECK(capacity == 6212);
    CHECK(allocated / capacity == Catch::Approx(.93).margin(.01));
    CHECK(hp / capacity == Catch::Approx(.68).margin(.04));
    const auto count = static_cast<double>(spec.tasks.size());
    CHECK(mix["none"] / count == Catch::Approx(.13).margin(.015));
    CHECK(mix["fraction"] / count == Catch::Approx(.38).margin(.025));
    CHECK(mix["one"] / count == Catch::Approx(.48).margin(.025));
    REQUIRE_NOTHROW(Cluster::build(spec));
}

TEST_CASE("the FlexTopo cluster is Table 3, aligned or not") {
    const auto spec = generate_cluster({.preset = "flextopo-4090", .seed = 1});
    const auto cluster = Cluster::build(spec);
    REQUIRE(spec.nodes.size() == 100);
    std::map<char, int> count;
    for (const auto& task : spec.tasks) {
        ++count[task.name[0]];
        CHECK(task.cpu_milli == 8000 * task.gpu_count);
        CHECK_FALSE(task.locked);
    }
    CHECK(count == std::map<char, int>{{'A', 20}, {'B', 40}, {'C', 200}, {'D', 80}});
    for (const auto node : cluster.nodes()) CHECK(cluster.idle_gpus(node) == 0);
    const auto& b = *std::find_if(spec.tasks.begin(), spec.tasks.end(),
                                  [](const TaskSpec& t) { return t.name[0] == 'B'; });
    CHECK(b.priority == 1000);
    CHECK(b.priority_class == PriorityClass::hp);
    const auto& d = spec.tasks.back();
    CHECK(d.name[0] == 'D');
    CHECK(d.priority == 200);
    CHECK(d.priority_class == PriorityClass::lp);

    const auto within_a_socket = [](const ClusterSpec& s) {
        int good = 0, all = 0;
        for (const auto& task : s.tasks) {
            if (task.name[0] != 'B' && task.name[0] != 'C') continue;
            ++all;
            good += std::all_of(task.gpus.begin(), task.gpus.end(),
                                [&](int g) { return g / 4 == task.gpus.front() / 4; })
                        ? 1
                        : 0;
        }
        return static_cast<double>(good) / all;
    };
    CHECK(within_a_socket(spec) == 1.0);
    CHECK(within_a_socket(generate_cluster({.preset = "flextopo-4090", .seed = 1, .aligned_gpus = false})) <
          0.6);
    CHECK(generate_cluster({.preset = "flextopo-4090", .nodes = 33, .load = 0.5}).tasks.size() > 20);
}

TEST_CASE("the same options give the same cluster, other seeds another") {
    const auto make = [](std::uint64_t seed) {
        return Cluster::build(generate_cluster({.nodes = 500, .seed = seed}));
    };
    const auto a = make(1), b = make(1), c = make(2);
    const auto digest = [](const Cluster& cluster) {
        std::uint64_t sum = 0;
        for (const auto task : cluster.tasks())
            sum = sum * 1099511628211u + index(cluster.node_of(task)) * 65536u + cluster.gpus_of(task);
        return sum;
    };
    CHECK(digest(a) == digest(b));
    CHECK(digest(a) != digest(c));
}

TEST_CASE("the generated clusters stay the same from version to version") {
    const auto digest = [](const char* preset, Layout layout, double load) {
        std::uint64_t sum = 0;
        const auto add = [&](auto value) { sum = sum * 1099511628211u + static_cast<std::uint64_t>(value); };
        for (const auto& task :
             generate_cluster({.preset = preset, .nodes = 500, .seed = 1, .layout = layout, .load = load})
                 .tasks) {
            for (const char c : *task.node) add(static_cast<unsigned char>(c));
            for (const auto gpu : task.gpus) add(gpu);
            add(task.cpu_milli);
        }
        return sum;
    };
    CHECK(digest("asi", Layout::random, 1.0) == 0xbca087545c07f306u);
    CHECK(digest("asi", Layout::spread, 1.15) == 0x679cfceaecbc0666u);
    CHECK(digest("asi", Layout::packed, 1.3) == 0xaa3ac9d913f9ea52u);
    CHECK(digest("openb", Layout::random, 1.3) == 0x11e949bc1a6c259au);
    CHECK(digest("constrained", Layout::random, 1.0) == 0x3c693c7375f9844eu);
    CHECK(digest("flextopo-4090", Layout::random, 1.0) == 0x7e2e6cfa9ddc0339u);
}

TEST_CASE("tiny clusters and no load are fine") {
    for (const std::int64_t nodes : {1, 2, 13, 40}) {
        const auto spec = generate_cluster({.nodes = nodes});
        CHECK(static_cast<std::int64_t>(spec.nodes.size()) == nodes);
        REQUIRE_NOTHROW(Cluster::build(spec));
    }
    CHECK(generate_cluster({.nodes = 100, .load = 0}).tasks.empty());
}

TEST_CASE("a cancelled generator returns a valid part of the cluster") {
    std::stop_source source;
    ManualClock clock(1'000'000);  // a millisecond per reading
    std::int64_t reports = 0;
    const Context context{
        .stop = source.get_token(), .clock = &clock, .executor = {}, .progress = [&](const Progress&) {
            if (++reports == 3) source.request_stop();
        }};
    const sim::GeneratorOptions options{.nodes = 2000};
    const auto part = generate_cluster(options, context);
    CHECK(reports == 3);
    CHECK(part.nodes.size() == 2000);
    CHECK(!part.tasks.empty());
    CHECK(part.tasks.size() < generate_cluster(options).tasks.size());
    CHECK_NOTHROW(Cluster::build(part));
}

TEST_CASE("generator options out of range are named, all at once") {
    REQUIRE_THROWS_MESSAGE(generate_cluster({.preset = "helios"}), InvalidInput,
                           "preset 'helios' one of asi openb");
    REQUIRE_THROWS_MESSAGE(generate_cluster({.nodes = 0}), InvalidInput, "nodes 0 1 1000000");
    REQUIRE_THROWS_MESSAGE(generate_cluster({.layout = static_cast<Layout>(7)}), InvalidInput,
                           "layout 7 random spread packed");
    REQUIRE_THROWS_MESSAGE(generate_cluster({.load = -1}), InvalidInput, "load -1 0 10");
    REQUIRE_THROWS_MESSAGE(generate_cluster({.load = std::numeric_limits<double>::quiet_NaN()}), InvalidInput,
                           "load nan 0 10");
    REQUIRE_THROWS_MESSAGE(generate_cluster({.locked_fraction = 1.5}), InvalidInput,
                           "locked_fraction 1.5 0 1");
    REQUIRE_THROWS_MESSAGE(generate_cluster({.preset = "openb", .cpu_tight = true}), InvalidInput,
                           "cpu_tight true false preset 'openb'");
    CHECK(testing_support::problems_in<InvalidInput>([&] {
              (void)generate_cluster({.nodes = -4, .load = 11});
          }).size() == 2);
}
