// SPDX-License-Identifier: Apache-2.0
// Constraints of the caller's own: one that is the same for ever, one that keeps count.
#include "example_clusters.hpp"
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

using namespace testing_support;
using con::Preset;

namespace {

/// Tasks of one tenant never come to nodes of one kind; here both are told by the beginning of their names.
struct TenantsApart {
    static constexpr bool is_static = true;
    std::string tenant, nodes;
    [[nodiscard]] std::string name() const { return "tenants apart"; }
    [[nodiscard]] bool allows(const Cluster& cluster, TaskId task, NodeId node) const {
        return !cluster.name(task).starts_with(tenant) || !cluster.name(node).starts_with(nodes);
    }
};

/// Each domain of a level takes in at most so many tasks, both copies of a moving task counted. A task that is where it was before the plan has
/// not moved.
class MovedPerDomain {
  public:
    MovedPerDomain(const Cluster& before, Level level, std::int64_t most)
        : level_(level), most_(most), arrived_(before.inventory().domain_count(level)) {
        for (const auto task : before.tasks()) home_[task] = before.node_of(task);
    }
    [[nodiscard]] const char* name() const { return "moved per domain"; }
    [[nodiscard]] bool allows(const Cluster& cluster, TaskId task, NodeId node) const {
        return node == home_.at(task) || arrived_[index(cluster.inventory().domain(level_, node))] < most_;
    }
    void enter(const Cluster& cluster, TaskId task, NodeId node) { count(cluster, task, node, 1); }
    void leave(const Cluster& cluster, TaskId task, NodeId node) { count(cluster, task, node, -1); }

  private:
    void count(const Cluster& cluster, TaskId task, NodeId node, int sign) {
        if (node != home_.at(task)) arrived_[index(cluster.inventory().domain(level_, node))] += sign;
    }
    Level level_;
    std::int64_t most_;
    std::vector<std::int64_t> arrived_;  // by domain
    std::map<TaskId, NodeId> home_;
};

/// The same rule for the checker, which knows names alone.
auto moved_per_node_for_verify(const ClusterSpec& spec, std::int64_t most) {
    std::map<std::string_view, std::string_view> home;
    for (const auto& t : spec.tasks)
        if (t.node) home[t.name] = *t.node;
    return [home, most](const TaskSpec& task, const NodeSpec& node, std::span<const verify::Copy> copies) {
        if (home.at(task.name) == node.name) return std::string();
        const auto arrived = std::count_if(copies.begin(), copies.end(), [&](const verify::Copy& copy) {
            return copy.node->name == node.name && home.at(copy.task->name) != node.name;
        });
        return arrived <= most ? std::string() : "more than " + std::to_string(most) + " moved tasks";
    };
}

/// Two nodes of one task each, which fit on a third one that cannot be vacated.
ClusterSpec two_and_one() {
    return {.nodes = {node("a"), node("b"), node("home")},
            .tasks = {task("red", "a", {0, 1}), task("blue", "b", {0, 1}), task("l", "home", {0}, true)}};
}

}  // namespace

TEST_CASE("a static rule keeps tasks away from nodes in every search") {
    const auto spec = two_and_one();
    const auto cluster = Cluster::build(spec);
    const auto red = cluster.find_task("red"), blue = cluster.find_task("blue");
    const auto home = cluster.find_node("home");
    for (const auto preset : {Preset::ipc, Preset::fast, Preset::best}) {
        con::Options options{.preset = preset, .rule = TenantsApart{"red", "home"}};
        options.clear = std::vector{cluster.find_node("a"), cluster.find_node("b")};
        const auto result = con::consolidate(cluster, options);
        INFO(enum_name(preset));
        REQUIRE(result.plan.moves.size() == 1);
        CHECK(result.plan.moves[0].task == blue);
        options.rule = {};
        CHECK(con::consolidate(cluster, options).plan.moves.size() == 2);
    }
    con::Options options{.clear = std::vector{cluster.find_node("a"), cluster.find_node("b")},
                         .rule = TenantsApart{"red", "home"}};
    const auto why = con::explain(cluster, {}, cluster.find_node("a"), options);
    CHECK(why.fate == con::NodeFate::has_stuck);
    REQUIRE(why.blockers.size() == 1);
    CHECK(why.blockers[0].nodes_refused == 1);
    CHECK_THAT(why.text, Mentions("rule 'tenants apart' on 1 of 1 node"));
    const auto move = con::explain_move(cluster, red, home, options);
    CHECK(move.fate == con::MoveFate::refused);
    CHECK_THAT(move.text, Mentions("cannot move rule 'tenants apart' rejects it"));
    CHECK(con::explain_move(cluster, blue, home, options).fate == con::MoveFate::possible);
}

TEST_CASE("goals and frontiers keep to a rule") {
    const auto spec = two_and_one();
    const auto cluster = Cluster::build(spec);
    con::Options goal{.goal = Goal{.empty_nodes = 2}};
    CHECK(con::consolidate(cluster, goal).plan.goal_reached == true);
    goal.rule = MovedPerDomain(cluster, node_level, 1);
    CHECK(con::consolidate(cluster, goal).plan.goal_reached == false);
    // Slots are made on nodes that stay in use as well.
    goal.goal = Goal{.slots = SlotShape{.gpu_count = 7}, .count = 3};
    CHECK(con::consolidate(cluster, goal).plan.goal_reached == false);
    con::FrontierOptions options;
    options.rule = MovedPerDomain(cluster, node_level, 0);
    CHECK(con::frontier(cluster, options).points.empty());
}

TEST_CASE("a rule that keeps count holds with both copies of all moving tasks") {
    // x and y change places by way of c: of each node, at most one moved task may be there.
    const ClusterSpec spec{.nodes = {node("a", 2), node("b", 2), node("c", 2)},
                           .tasks = {task("x", "a", {0, 1}), task("y", "b", {0, 1}), task("z", "c", {0})}};
    const auto cluster = Cluster::build(spec);
    const auto at = [&](const char* name) { return cluster.find_node(name); };
    const std::vector<con::Step> steps{{cluster.find_task("z"), at("c"), at("a"), gpu_bit(0), 0},
                                       {cluster.find_task("x"), at("a"), at("c"), GpuMask{3}, 0}};
    const std::vector<std::uint8_t> closed(3);
    con::Options options;
    options.rule = MovedPerDomain(cluster, node_level, 0);
    CHECK(con::order_into_waves(cluster, steps, closed, options).moves.empty());
    // Of b and c, one node at a time: what lets the first move in refuses the second.
    const ClusterSpec two{.nodes = {node("a"), node("b"), node("c")},
                          .tasks = {task("x", "a", {0}), task("y", "b", {0}), task("z", "c", {0})}};
    const auto three = Cluster::build(two);
    const std::vector<con::Step> both{
        {three.find_task("x"), three.find_node("a"), three.find_node("c"), gpu_bit(1), 0},
        {three.find_task("y"), three.find_node("b"), three.find_node("c"), gpu_bit(2), 1}};
    options.rule = MovedPerDomain(three, node_level, 1);
    const auto order = con::order_into_waves(three, both, closed, options);
    CHECK(order.moves.size() == 1);
    CHECK(order.dropped_chains == 1);
}

TEST_CASE("plans of all presets keep to a rule that keeps count, at every moment") {
    int smaller = 0, moved = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(200); ++seed) {
        Rng rng(seed + 4711);
        testing_support::RandomClusterOptions how;
        if (seed % 2 == 1) how = testing_support::tiny_cluster;
        const auto spec = testing_support::random_cluster(rng, how);
        const auto cluster = Cluster::build(spec);
        for (const auto preset : {Preset::ipc, Preset::fast, Preset::best}) {
            con::Options options{.preset = preset, .seed = seed, .threads = 1};
            if (seed % 3 == 0) options.open_price = 1000;
            const auto free = con::consolidate(cluster, options);
            options.rule = MovedPerDomain(cluster, node_level, 1);
            const auto result = con::consolidate(cluster, options);
            INFO("seed " << seed << ", " << enum_name(preset));
            verify::Options check{.rule = moved_per_node_for_verify(spec, 1)};
            const auto report = verify::plan(spec, to_spec(result.plan, cluster), check);
            INFO((report.ok ? "" : report.violations.front()));
            REQUIRE(report.ok);
            options.threads = 2;
            REQUIRE(con::consolidate(cluster, options).plan == result.plan);
            smaller += result.stats.value_milli < free.stats.value_milli ? 1 : 0;
            moved += result.plan.moves.empty() ? 0 : 1;
            if (!verify::plan(spec, to_spec(free.plan, cluster), check).ok) continue;
            REQUIRE((preset != Preset::best || seed % 2 == 0 ||
                     result.stats.value_milli >= free.stats.value_milli * 9 / 10));
        }
    }
    CHECK(smaller > testing_support::instances(20));
    CHECK(moved > testing_support::instances(60));
}

TEST_CASE("verify applies the caller's rule to every arrival") {
    const auto spec = two_and_one();
    PlanSpec plan{.waves = 1,
                  .moves = {{.task = "red", .from = "a", .to = "home", .gpus = {1, 2}},
                            {.task = "blue", .from = "b", .to = "home", .gpus = {3, 4}}},
                  .vacated_nodes = {"a", "b"}};
    CHECK(verify::plan(spec, plan).ok);
    CHECK(verify::plan(spec, plan, {.rule = moved_per_node_for_verify(spec, 2)}).ok);
    const auto report = verify::plan(spec, plan, {.rule = moved_per_node_for_verify(spec, 1)});
    CHECK_THAT(report.violations,
               MentionsEach({"wave 1, move #0 of task 'red' from 'a' to 'home': rule: more 1 moved",
                             "wave 1, move #1 of task 'blue' from 'b' to 'home': rule: more 1 moved"}));
}

TEST_CASE("a table of classes is a rule") {
    const auto cluster = Cluster::build(two_and_one(), IdOrder::as_listed);
    con::AllowedClasses table{.text = "table",
                              .task_class = {0, 1, 1},
                              .node_class = {0, 0, 1},
                              .node_classes = 2,
                              .allowed = {1, 0, 1, 1}};
    con::Options options{.rule = table};
    CHECK(options.rule.name() == "table");
    CHECK(options.rule.is_static());
    CHECK_FALSE(options.rule.allows(cluster, cluster.find_task("red"), cluster.find_node("home")));
    CHECK(options.rule.allows(cluster, cluster.find_task("blue"), cluster.find_node("home")));
    CHECK(con::AnyPlacementRule().allows(cluster, cluster.find_task("red"), cluster.find_node("home")));
}

TEST_CASE("explanations name no useless victims, and report a rule that refuses every node") {
    const ClusterSpec spec{
        .nodes = {node("a"), node("home", 2)},
        .tasks = {task("red", "a", {0, 1}), task("small", "home", {0}), task("l", "home", {}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto red = cluster.find_task("red");
    const auto home = cluster.find_node("home");
    CHECK(con::explain_move(cluster, red, home).victims == std::vector{cluster.find_task("small")});
    const con::Options options{.rule = TenantsApart{"red", "home"}};
    const auto move = con::explain_move(cluster, red, home, options);
    CHECK(move.fate == con::MoveFate::obstacle);
    CHECK(move.victims.empty());
    const auto why = con::explain(cluster, {}, cluster.find_node("a"), options);
    CHECK_THAT(why.text, Mentions("; rule 'tenants apart' rejects every other node"));
}
