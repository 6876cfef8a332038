// SPDX-License-Identifier: Apache-2.0
#include "consolidation/check_goal.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/value.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace gpusched::consolidation {

namespace detail {

// The goal, and what has no effect beside it.
static void check_goal(Problems& problems, const Options& options, const Cluster& cluster) {
    const auto& goal = *options.goal;
    check_fields(problems, goal, "goal");
    if (goal.empty_nodes.has_value() == goal.slots.has_value())
        problems.add(std::string("goal: ") +
                     (goal.slots ? "empty_nodes and slots" : "neither empty_nodes nor slots") +
                     "; expected one of the two");
    if (goal.empty_nodes && goal.count)
        problems.add(bad_value("count", std::to_string(*goal.count), "none beside empty_nodes", "goal"));
    if (goal.slots) {
        check_fields(problems, *goal.slots, "goal: slots");
        if (*goal.slots == SlotShape{})
            problems.add(
                "goal: slots: nothing is asked for; expected gpu_count, cpu_milli or memory_mib above 0");
    }
    check_goal_names(problems, goal, cluster);
    if (options.preset == Preset::ipc)
        problems.add(bad_value("preset", enum_name(options.preset), "fast or best beside a goal"));
    if (options.objective != Objective{})
        problems.add(bad_value("objective", enum_name(options.objective),
                               "its default beside a goal, which says what counts"));
    if (options.polish_time)
        problems.add(bad_value("polish_time", number_text(*options.polish_time),
                               "none beside a goal, where the search ends"));
}

static void check_options(Problems& problems, const Options& options, const Cluster& cluster) {
    check_fields(problems, options);
    const auto known = [&](const char* field, const std::vector<NodeId>& nodes) {
        for (const auto node : nodes)
            if (!cluster.contains(node))
                problems.add(std::string(field) + ": there is no node " + std::to_string(index(node)) +
                             "; expected less than " + std::to_string(cluster.node_slots()));
    };
    if (options.clear) known("clear", *options.clear);
    known("exempt", options.exempt);
    if (options.goal) check_goal(problems, options, cluster);
    if (!options.clear && options.open_price && *options.open_price >= 0 && *options.open_price < milli)
        problems.add(bad_value("open_price", std::to_string(*options.open_price),
                               "at least 1000 where clear does not say which nodes are to be vacated"));
    if (!options.clear || options.exempt.empty()) return;
    auto exempt = options.exempt;
    std::sort(exempt.begin(), exempt.end());
    for (const auto node : *options.clear)
        if (cluster.contains(node) && std::binary_search(exempt.begin(), exempt.end(), node))
            problems.add(bad_value("clear", gpusched::quoted(cluster.name(node)),
                                   "a node that exempt does not list, too"));
}

GPUSCHED_EXPORT void validate_beside_policies(const Options& options, const Cluster& cluster,
                                              bool takes_limits) {
    Problems problems;
    check_options(problems, options, cluster);
    const Options defaults;
    const auto unused = [&](const char* field, const std::string& value, const char* instead) {
        problems.add(
            bad_value(field, value, "the default beside policies of your own: " + std::string(instead)));
    };
    if (options.preset != defaults.preset)
        unused("preset", enum_name(options.preset), "start from those of presets.hpp instead");
    if (options.goal) problems.add("goal: it has no effect beside policies of your own; expected none");
    if (options.objective != defaults.objective)
        unused("objective", enum_name(options.objective), "their weight says what a node is worth");
    constexpr const char* no_limits = "their acceptance takes no limits, as PriceLimit would";
    if (options.max_others && !takes_limits)
        unused("max_others", std::to_string(*options.max_others), no_limits);
    if (options.price != defaults.price && !takes_limits)
        unused("price", std::to_string(options.price), no_limits);
    problems.throw_if_any();
}

}  // namespace detail

GPUSCHED_EXPORT void validate(const Options& options, const Cluster& cluster) {
    Problems problems;
    detail::check_options(problems, options, cluster);
    problems.throw_if_any();
}

}  // namespace gpusched::consolidation
