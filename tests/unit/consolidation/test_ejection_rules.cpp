// SPDX-License-Identifier: Apache-2.0
// Ejection rules: the victims of each, by hand.
#include "example_clusters.hpp"

using namespace testing_support;

namespace {

using Names = std::vector<std::string>;

/// Node "full" with tasks that may leave, and tasks on "other" that want to come.
struct Place {
    Cluster cluster;
    Names moved{};  ///< of the tasks on "full", those that have left their homes already

    /// The victims by name; nothing if the rule refuses.
    template <class Rule>
    std::optional<Names> victims(const Rule& rule, const char* task) const {
        const auto at = cluster.find_node("full");
        std::vector<con::Victim> movable, found;
        for (const auto there : cluster.tasks_on(at)) {
            if (!cluster.is_movable(there)) continue;
            const bool has_moved = std::find(moved.begin(), moved.end(), cluster.name(there)) != moved.end();
            movable.push_back({.task = there, .moved = has_moved});
        }
        std::sort(movable.begin(), movable.end(), [](auto a, auto b) { return a.task < b.task; });
        if (!rule(cluster, cluster.find_task(task), at, movable, found)) return std::nullopt;
        Names names;
        for (const auto& victim : found) names.push_back(cluster.name(victim.task));
        return names;
    }
};

/// Of the GPUs of "full" one is idle; on the others tasks of one, two and four GPUs.
Place one_two_four() {
    return {Cluster::build(
        {.nodes = {node("full"), node("other", 16)},
         .tasks = {task("one", "full", {0}), task("two", "full", {1, 2}), task("four", "full", {3, 4, 5, 6}),
                   task("wants_3", "other", {0, 1, 2}), task("wants_4", "other", {3, 4, 5, 6}),
                   task("wants_8", "other", {7, 8, 9, 10, 11, 12, 13, 14})}})};
}

/// Four GPUs of "full" stay in use; on the others tasks of one, one and two GPUs.
Place pairs(Names moved = {}) {
    return {Cluster::build({.nodes = {node("full"), node("other")},
                            .tasks = {task("one_a", "full", {0}), task("one_b", "full", {1}),
                                      task("two", "full", {2, 3}), task("stays", "full", {4, 5, 6, 7}, true),
                                      task("wants_1", "other", {0}), task("wants_3", "other", {1, 2, 3})}}),
            std::move(moved)};
}

/// GPU 0 of "full" holds 600 and 300 thousandths, all else stays in use.
Place shared() {
    return {Cluster::build(
        {.nodes = {node("full", 1), node("other", 2)},
         .tasks = {fraction("large", "full", 0, 600), fraction("small", "full", 0, 300),
                   fraction("wants_400", "other", 0, 400), fraction("wants_500", "other", 0, 500)}})};
}

}  // namespace

TEST_CASE("first victims are all movable tasks, if together they free enough") {
    CHECK(one_two_four().victims(con::FirstVictims{}, "wants_3") == Names{"four", "one", "two"});
    CHECK(one_two_four().victims(con::FirstVictims{}, "wants_8") == Names{"four", "one", "two"});
    CHECK(pairs().victims(con::FirstVictims{}, "wants_3") == Names{"one_a", "one_b", "two"});
    CHECK(shared().victims(con::FirstVictims{}, "wants_500") == Names{"large", "small"});
    auto with_one_locked = one_two_four().cluster.to_spec();
    for (auto& one : with_one_locked.tasks) one.locked = one.name == "one";
    CHECK_FALSE(Place{Cluster::build(with_one_locked)}.victims(con::FirstVictims{}, "wants_8"));
}

TEST_CASE("easier victims are the fewest and smallest that suffice, and easier to place than the task") {
    const con::EasierVictims rule;
    // Two GPUs are missing: "one" is too small, "four" is no easier to place.
    CHECK(one_two_four().victims(rule, "wants_3") == Names{"two"});
    // Three are missing, and "four" has as many GPUs and cores as the task.
    CHECK(one_two_four().victims(rule, "wants_4") == Names{"two", "one"});
    // All three are easier to place than eight GPUs, and only together make room; the largest first.
    CHECK(one_two_four().victims(rule, "wants_8") == Names{"four", "two", "one"});
    // No GPU is idle: three are freed by "two" and the first of the others.
    CHECK(pairs().victims(rule, "wants_3") == Names{"two", "one_a"});
    // No task has fewer GPUs, or as many with fewer cores.
    CHECK_FALSE(pairs().victims(rule, "wants_1"));
}

TEST_CASE("of as many GPUs the task with fewer cores is easier to place") {
    auto spec = one_two_four().cluster.to_spec();
    for (auto& one : spec.tasks)
        if (one.name == "wants_4") one.cpu_milli = 8000;
    CHECK(Place{Cluster::build(spec)}.victims(con::EasierVictims{}, "wants_4") == Names{"four"});
}

TEST_CASE("tasks that have moved already come before those that have not") {
    CHECK(pairs({"one_b"}).victims(con::EasierVictims{}, "wants_3") == Names{"two", "one_b"});
    auto spec = pairs().cluster.to_spec();
    for (auto& one : spec.tasks)
        if (one.name == "wants_1") one.cpu_milli = 8000;
    CHECK(Place{Cluster::build(spec)}.victims(con::EasierVictims{}, "wants_1") == Names{"one_a"});
    CHECK(Place{Cluster::build(spec), {"one_b"}}.victims(con::EasierVictims{}, "wants_1") == Names{"one_b"});
}

TEST_CASE("a share of a GPU is free once enough of the others on it have left") {
    // 100 are free. 300 more make room for 400; 600 is no easier to place.
    CHECK(shared().victims(con::EasierVictims{}, "wants_400") == Names{"small"});
    CHECK_FALSE(shared().victims(con::EasierVictims{}, "wants_500"));
}

TEST_CASE("cheapest victims are the easier ones, compared over all destinations") {
    static_assert(con::detail::takes_cheapest_first(con::CheapestVictims{}) &&
                  !con::detail::takes_cheapest_first(con::EasierVictims{}) &&
                  !con::detail::skips_victims(con::CheapestVictims{}));
    for (const auto* wanted : {"wants_3", "wants_4", "wants_8"})
        CHECK(one_two_four().victims(con::CheapestVictims{}, wanted) ==
              one_two_four().victims(con::EasierVictims{}, wanted));
}
