// SPDX-License-Identifier: Apache-2.0
// Interference: curves, what is learnt from observations, and the policies that rank and limit by them, worked out by hand.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace interference_tests {

NodeSpec node(std::string name, std::int64_t gpus) {
    NodeSpec n{.name = std::move(name), .gpu_count = gpus, .cpu_milli = 100'000, .memory_mib = 1 << 20};
    return n;
}

TaskSpec task(std::string name, std::int64_t gpus, std::int64_t cores, std::string on = {}) {
    TaskSpec t{.name = std::move(name), .gpu_count = gpus};
    t.cpu_milli = cores * 1000;
    if (!on.empty()) t.node = std::move(on), t.assign_gpus = gpus > 0;
    return t;
}

TaskSpec fraction(std::string name, PriorityClass of, std::int64_t milli, int gpu = -1) {
    auto t = task(std::move(name), 1, 1);
    t.gpu_share_milli = milli;
    t.priority_class = of;
    if (gpu >= 0) t.node = "a", t.gpus = {gpu};
    return t;
}

constexpr auto hp = PriorityClass::hp, lp = PriorityClass::lp;

// a: CPU-only tasks hold 30 of 100 cores, 4 GPUs work. b: 10 cores, 1 GPU. c: 60 cores, no GPU works. d has no GPU.
ClusterSpec sample() {
    ClusterSpec spec;
    spec.nodes = {node("a", 8), node("b", 8), node("c", 8), node("d", 0)};
    spec.tasks = {task("a-cpu", 0, 30, "a"), task("a-gpu", 4, 20, "a"), task("b-cpu", 0, 10, "b"),
                  task("b-gpu", 1, 40, "b"), task("c-cpu", 0, 60, "c"), task("gpus", 2, 10),
                  task("cores", 0, 20)};
    auto daemon = task("daemon", 0, 10, "a");
    daemon.daemon = true;
    auto standby = task("standby", 2, 10, "a");
    standby.standby = true;
    standby.priority_class = hp;
    spec.tasks.push_back(daemon);
    spec.tasks.push_back(standby);
    return spec;
}

TEST_CASE("a slowdown curve is linear between its values") {
    const SlowdownCurve curve{{100, 100, 300, 700}};
    CHECK(curve(0, 80) == 0);
    CHECK(curve(10, 80) == 50);
    CHECK(curve(20, 80) == 100);
    CHECK(curve(30, 80) == 100);
    CHECK(curve(45, 80) == 150);
    CHECK(curve(79, 80) == 680);
    CHECK(curve(80, 80) == 700);
    CHECK(curve(90, 80) == 700);
    CHECK(curve(5, 0) == 0);
    CHECK(SlowdownCurve{}(50, 80) == 0);
    CHECK(curve(largest_quantity - 1, largest_quantity) == 699);
    CHECK(published_slowdown()(50, 100) == 111);   // 1 / 0.90
    CHECK(published_slowdown()(100, 100) == 220);  // 1 / 0.82
}

TEST_CASE("curves out of range are named by their values") {
    Problems problems;
    check_slowdown(problems, "curve", {-1, 50, 40, 5000});
    check_slowdown(problems, "long", std::vector<std::int64_t>(17, 1));
    REQUIRE(problems.count() == 4);
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] { problems.throw_if_any(); }),
               MentionsEach({"curve[0]: -1; expected 0", "curve[2]: 40; expected at least 50",
                             "curve[3]: 5000; expected", "long: 17 values; expected at most 16"}));
}

TEST_CASE("a curve is fitted to observations") {
    std::vector<SlowdownObservation> seen;
    const auto fit = [&](int values) { return fit_slowdown(seen, values).milli; };
    SECTION("exactly, if observations lie on one") {
        const SlowdownCurve truth{{100, 100, 300, 700}};
        for (int x = 0; x <= 40; ++x)
            seen.push_back({x / 40.0, static_cast<double>(truth(x * 10, 400)) / 1000});
        CHECK(fit(4) == truth.milli);
    }
    SECTION("one value is the slope through the origin") {
        seen = {{0.5, 0.1}, {1, 0.3}};
        CHECK(fit(1) == std::vector<std::int64_t>{280});  // (0.05 + 0.3) / 1.25
    }
    SECTION("falling values become their mean") {
        // 3 observations at one half, 1 at the whole: (3 x 0.4 + 0.2) / 4.
        seen = {{0.5, 0.4}, {0.5, 0.4}, {0.5, 0.4}, {1, 0.2}};
        CHECK(fit(2) == std::vector<std::int64_t>{350, 350});
    }
    SECTION("faster runs are no slowdown; unobserved values are flat") {
        seen = {{0.3, -0.1}};
        CHECK(fit(2) == std::vector<std::int64_t>{0, 0});
        seen = {{0.25, 0.1}};
        CHECK(fit(2) == std::vector<std::int64_t>{200, 200});
        seen = {{1, 1e9}};
        CHECK(fit(1) == std::vector<std::int64_t>{most_slowdown_milli});
    }
    SECTION("the largest slowdown is part of the least squares") {
        // Only a rise of 10^7 just above one half would meet both: without it their mean is best.
        seen = {{0.5 + 1e-8, 0.3}, {0.5, 0.1}};
        CHECK(fit(2) == std::vector<std::int64_t>{200, 200});
        // At 4 in the end: least squares of 0.5 a + 2 against 1, and of a against 3, is at a = 2.
        seen = {{0.5, 3}, {0.75, 1}, {1, 100}};
        CHECK(fit(2) == std::vector<std::int64_t>{2000, most_slowdown_milli});
        seen = {{0.5, 1e308}, {1, 1e308}, {1, 1e308}};
        CHECK(fit(2) == std::vector<std::int64_t>{most_slowdown_milli, most_slowdown_milli});
        Rng rng(11);
        for (int round = 0; round < 200; ++round) {
            seen.clear();
            for (int i = 0; i < 4; ++i)
                seen.push_back({static_cast<double>(rng.below(101)) / 100,
                                static_cast<double>(rng.between(-50, 900)) / 100});
            const auto squares = [&](std::int64_t half, std::int64_t whole) {
                double sum = 0;
                for (const auto& s : seen) {
                    const auto at = s.held <= 0.5 ? 2 * s.held * static_cast<double>(half)
                                                  : static_cast<double>(half) +
                                                        (2 * s.held - 1) * static_cast<double>(whole - half);
                    sum += (s.slowdown - at / 1000) * (s.slowdown - at / 1000);
                }
                return sum;
            };
            double least = std::numeric_limits<double>::infinity();
            for (std::int64_t half = 0; half <= most_slowdown_milli; half += 50)
                for (std::int64_t whole = half; whole <= most_slowdown_milli; whole += 50)
                    least = std::min(least, squares(half, whole));
            const auto got = fit(2);
            CAPTURE(round, got[0], got[1]);
            CHECK(got[1] <= most_slowdown_milli);
            CHECK(squares(got[0], got[1]) <= least + 1e-4);
        }
    }
    SECTION("the least squares of all curves on a grid") {
        Rng rng(7);
        for (int round = 0; round < 20; ++round) {
            seen.clear();
            for (int i = 0; i < 6; ++i)
                seen.push_back({static_cast<double>(rng.below(101)) / 100,
                                static_cast<double>(rng.between(-20, 100)) / 100});
            const auto squares = [&](std::int64_t half, std::int64_t whole) {
                double sum = 0;
                for (const auto& s : seen) {
                    const auto first = std::min(2 * s.held, 1.0), second = std::max(2 * s.held - 1, 0.0);
                    const auto off = s.slowdown - (static_cast<double>(half) * first +
                                                   static_cast<double>(whole - half) * second) /
                                                      1000;
                    sum += off * off;
                }
                return sum;
            };
            double least = std::numeric_limits<double>::infinity();
            for (std::int64_t half = 0; half <= 1500; half += 10)
                for (std::int64_t whole = half; whole <= 1500; whole += 10)
                    least = std::min(least, squares(half, whole));
            const auto got = fit(2);
            CHECK(squares(got[0], got[1]) <= least + 1e-5);
        }
    }
}

TEST_CASE("observations that cannot be fitted are named") {
    const std::vector<SlowdownObservation> wrong{{0.5, 0.1}, {1.5, 0.1}, {0.5, -1}};
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] { return fit_slowdown(wrong, 9); }),
               MentionsEach({"values: 9; expected 1 8", "observations[1]: held: 1.5; expected 0 1",
                             "observations[2]: slowdown: -1; expected above -1"}));
    CHECK_THROWS_AS(fit_slowdown({}, 1), InvalidInput);
}

TEST_CASE("interference ranks by the GPU work that is lost") {
    const auto cluster = Cluster::build(sample());
    const auto score = [&](const char* task, const char* node) {
        return Interference{{{100, 300}}}(cluster, cluster.find_task(task), cluster.find_node(node));
    };
    // 2 GPUs at 60, 20, 140 and 0 thousandths; daemons do not count.
    CHECK(score("gpus", "a") == -2000 * 60);
    CHECK(score("gpus", "b") == -2000 * 20);
    CHECK(score("gpus", "c") == -2000 * 140);
    CHECK(score("gpus", "d") == 0);
    // 20 cores more: from 60 to 100 beside 4 GPUs (Standby's do not work), from 20 to 60 beside 1, beside none.
    CHECK(score("cores", "a") == -4000 * 40);
    CHECK(score("cores", "b") == -1000 * 40);
    CHECK(score("cores", "c") == 0);
    CHECK(score("cores", "d") == 0);
}

TEST_CASE("by name, interference separates GPU tasks from CPU-only tasks, and packing does not") {
    auto spec = sample();
    std::erase_if(spec.nodes, [](const auto& n) { return n.name == "c" || n.name == "d"; });
    std::erase_if(spec.tasks, [](const auto& t) { return t.node == "c"; });
    const auto cluster = Cluster::build(spec);
    const auto where = [&](const char* name, std::vector<std::string> rankers) {
        return cluster.name(place(cluster, cluster.find_task(name), {.rankers = std::move(rankers)})->node);
    };
    CHECK(where("gpus", {"packing"}) == "a");
    CHECK(where("gpus", {"interference", "packing"}) == "b");
    CHECK(where("cores", {"packing"}) == "a");
    CHECK(where("cores", {"interference", "packing"}) == "b");
}

TEST_CASE("a limit of co-location binds CPU-only tasks on nodes with GPUs") {
    const auto cluster = Cluster::build(sample());
    const auto passes = [&](std::int64_t limit, const char* task, const char* node) {
        return CoLocationLimit{limit}(cluster, cluster.find_task(task), cluster.find_node(node));
    };
    CHECK(passes(500, "cores", "a"));
    CHECK_FALSE(passes(499, "cores", "a"));
    CHECK(passes(300, "cores", "b"));
    CHECK_FALSE(passes(500, "cores", "c"));
    CHECK(passes(0, "cores", "d"));
    CHECK(passes(0, "gpus", "c"));
    const auto on_c = [&](std::vector<std::string> filters) {
        PlaceOptions options{.rankers = {"packing"}, .filters = std::move(filters)};
        auto spec = sample();
        std::erase_if(spec.nodes, [](const auto& n) { return n.name != "c"; });
        std::erase_if(spec.tasks, [](const auto& t) { return t.node && t.node != "c"; });
        const auto only = Cluster::build(spec);
        return place(only, only.find_task("cores"), options).has_value();
    };
    CHECK(on_c({}));
    CHECK_FALSE(on_c({"co_location_limit"}));
}

TEST_CASE("daemons neither slow tasks nor are slowed") {
    auto spec = sample();
    const auto as_daemon = [&](TaskSpec t) {
        t.daemon = true;
        spec.tasks.push_back(t);
    };
    as_daemon(task("agent-gpu", 2, 1, "b"));
    as_daemon(task("agent-cores", 0, 90));
    as_daemon(task("agent-gpus", 2, 1));
    auto exporter = fraction("exporter", lp, 300);
    exporter.node = "c", exporter.gpus = {0};
    as_daemon(exporter);
    auto online = fraction("online", hp, 300);
    online.node = "c", online.gpus = {0};
    spec.tasks.push_back(online);
    spec.tasks.push_back(fraction("guest", lp, 200));
    as_daemon(fraction("probe", lp, 400));
    const auto cluster = Cluster::build(spec);
    const auto find = [&](const char* name) { return cluster.find_task(name); };
    const auto b = cluster.find_node("b"), c = cluster.find_node("c");
    const Interference ranker{{{100, 300}}};
    CHECK(ranker(cluster, find("cores"), b) == -1000 * 40);  // beside one GPU that works
    CHECK(ranker(cluster, find("agent-cores"), b) == 0);
    CHECK(ranker(cluster, find("agent-gpus"), c) == 0);
    CHECK(CoLocationLimit{0}(cluster, find("agent-cores"), b));
    CHECK(sharing(cluster, c, 0).offline_milli == 0);
    CHECK(OfflineLimitGpus{200}(cluster, find("guest"), c) == gpu_bit(0));
    CHECK(OfflineLimitGpus{0}(cluster, find("probe"), c) == gpu_bit(0));
}

TEST_CASE("offline fractions share GPUs with online ones up to a limit") {
    // GPU 0: online 500, offline 200. GPU 1: online 300. GPU 2: offline 600. GPU 3: a whole task.
    ClusterSpec spec;
    spec.nodes = {node("a", 4)};
    spec.tasks = {fraction("on-0", hp, 500, 0),  fraction("off-0", lp, 200, 0), fraction("on-1", hp, 300, 1),
                  fraction("off-2", lp, 600, 2), fraction("offline", lp, 200),  fraction("online", hp, 300)};
    auto whole = task("whole", 1, 1);
    whole.node = "a", whole.gpus = {3};
    spec.tasks.push_back(whole);
    const auto cluster = Cluster::build(spec);
    const auto offline = cluster.find_task("offline"), online = cluster.find_task("online");
    const auto a = cluster.find_node("a");
    const auto picked = [&](std::int64_t limit, TaskId task) {
        return OfflineLimitGpus{limit}(cluster, task, a);
    };
    CHECK(picked(400, offline) == gpu_bit(0));  // the tightest
    CHECK(picked(399, offline) ==
          gpu_bit(2));  // 400 would be too much; beside offline work alone it never is
    CHECK(picked(200, online) == gpu_bit(0));
    CHECK(picked(199, online) == gpu_bit(1));
    const auto passes = [&](std::int64_t limit, const Cluster& in, TaskId task) {
        return OfflineLimit{limit}(in, task, a);
    };
    CHECK(passes(0, cluster, offline));  // GPU 2
    CHECK(passes(0, cluster, online));
    auto fuller = cluster;
    fuller.remove(cluster.find_task("off-2"));
    fuller.assign(online, a, gpu_bit(2));  // online work on every shared GPU
    CHECK_FALSE(passes(199, fuller, offline));
    CHECK(passes(200, fuller, offline));  // GPU 1 or 2
    CHECK(passes(0, fuller, fuller.find_task("whole")));
}

}  // namespace interference_tests
