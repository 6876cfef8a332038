// SPDX-License-Identifier: Apache-2.0
// Destination rankings and the index that they ask: which nodes are offered, in which order, worked out by hand.
#include "example_clusters.hpp"

using namespace testing_support;

namespace {

using Names = std::vector<std::string>;

/// Idle GPUs: 8 on "empty", 2 on "two" and on "busy", whose cores are taken, 1 on "one"; "closed" takes nobody. 400 thousandths are left
/// of a GPU of "one", 700 of one of "two".
ClusterSpec nodes_by_idle_gpus() {
    ClusterSpec spec{.nodes = {node("busy"), node("closed"), node("empty"), node("one"), node("two")},
                     .tasks = {task("t1", "one", {0, 1, 2, 3, 4, 5}), fraction("f1", "one", 6, 600),
                               task("t2", "two", {0, 1, 2, 3, 4}), fraction("f2", "two", 5, 300),
                               task("t3", "busy", {0, 1, 2, 3, 4, 5}), task("cores", "busy", {})}};
    spec.nodes[1].schedulable = false;
    spec.tasks.back().gpu_count = 0;
    spec.tasks.back().cpu_milli = 20'000;
    const auto add = [&](std::string name, std::int64_t gpus, std::int64_t share = 1000) {
        spec.tasks.push_back({.name = std::move(name)});
        spec.tasks.back().gpu_count = gpus;
        spec.tasks.back().gpu_share_milli = share;
        spec.tasks.back().cpu_milli = 1000;
    };
    add("wants_2", 2);
    add("wants_300", 1, 300);
    add("wants_500", 1, 500);
    return spec;
}

struct Ranking {
    Cluster cluster = Cluster::build(nodes_by_idle_gpus());
    con::FreeIndex index{};
    Ranking() { index.rebuild(cluster); }

    auto offer_all(Names& names) const {
        return [&](NodeId node) {
            names.push_back(cluster.name(node));
            return false;
        };
    }
    template <class R>
    Names visit(const R& ranking, const char* task) const {
        Names names;
        CHECK_FALSE(ranking.visit(cluster, index, cluster.find_task(task), offer_all(names)));
        return names;
    }
    template <class R>
    Names visit_full(const R& ranking, const char* task) const {
        Names names;
        CHECK_FALSE(ranking.visit_full(cluster, index, cluster.find_task(task), offer_all(names)));
        return names;
    }
};

}  // namespace

TEST_CASE("group order offers every receiving node, full or not") {
    const Ranking r;
    CHECK(r.visit(con::GroupOrder{}, "wants_2") == Names{"busy", "empty", "one", "two"});
    CHECK(r.visit_full(con::GroupOrder{}, "wants_2") == Names{"busy", "empty", "one", "two"});
}

TEST_CASE("tightest fit offers the fewest idle GPUs first, then the fewest free cores") {
    const Ranking r;
    CHECK(r.visit(con::TightestFit{}, "wants_2") == Names{"busy", "two", "empty"});
    // Full nodes: those that lack the fewest GPUs first, and what has more than enough last.
    CHECK(r.visit_full(con::TightestFit{}, "wants_2") == Names{"busy", "two", "one", "empty"});
}

TEST_CASE("tightest fit offers a fraction the GPU with the least left, before it breaks into an idle one") {
    const Ranking r;
    CHECK(r.visit(con::TightestFit{}, "wants_300") == Names{"one", "two", "one", "busy", "two", "empty"});
    CHECK(r.visit(con::TightestFit{}, "wants_500") == Names{"two", "one", "busy", "two", "empty"});
}

TEST_CASE("a ranking ends with the first offer that is taken") {
    const Ranking r;
    int offers = 0;
    CHECK(con::TightestFit{}.visit(r.cluster, r.index, r.cluster.find_task("wants_2"),
                                   [&](NodeId) { return ++offers == 2; }));
    CHECK(offers == 2);
}

TEST_CASE("rankings follow changes on nodes, and skip closed nodes until they are opened") {
    Ranking r;
    r.cluster.assign(r.cluster.find_task("wants_2"), r.cluster.find_node("busy"), GpuMask{0b1100'0000});
    r.index.usage_changed(r.cluster, r.cluster.find_node("busy"));
    CHECK(r.visit(con::TightestFit{}, "wants_2") == Names{"two", "empty"});
    r.index.close(r.cluster.find_node("two"));
    CHECK(r.visit(con::TightestFit{}, "wants_2") == Names{"empty"});
    CHECK(r.visit(con::GroupOrder{}, "wants_2") == Names{"busy", "empty", "one"});
    CHECK(r.visit(con::TightestFit{}, "wants_500") == Names{"one", "empty"});
    r.index.open(r.cluster, r.cluster.find_node("two"));
    CHECK(r.visit(con::TightestFit{}, "wants_2") == Names{"two", "empty"});
    // Once no GPU of "one" is partly used it is offered for its idle ones alone.
    r.cluster.remove(r.cluster.find_task("f1"));
    r.index.usage_changed(r.cluster, r.cluster.find_node("one"));
    const auto offered = r.visit(con::TightestFit{}, "wants_300");
    CHECK(offered.front() == "two");
    CHECK(std::count(offered.begin(), offered.end(), "one") == 1);
}
