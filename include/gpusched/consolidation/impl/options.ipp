#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/checks.hpp>

#include <string>

namespace gpusched::consolidation {

GPUSCHED_INLINE void validate(const Options& options, const Cluster& cluster) {
    Problems problems;
    const auto at_least = [&](const char* field, auto value, auto least) {
        check_at_least(problems, field, value, least);
    };
    const auto optional_at_least = [&](const char* field, const auto& value, auto least) {
        if (value) at_least(field, *value, least);
    };
    at_least("partition_size", options.partition_size, std::size_t{1});
    const auto one_of = [&](const char* field, auto value) {
        if (static_cast<std::size_t>(value) >= enum_names(value).size())
            problems.add(std::string(field) + ": no value with the number " +
                         std::to_string(static_cast<int>(value)));
    };
    one_of("preset", options.preset);
    one_of("objective", options.objective);
    one_of("bound_method", options.bound_method);
    check_range(problems, "depth", options.depth, 1, most_depth);
    at_least("rounds", options.rounds, 1);
    optional_at_least("time_limit", options.time_limit, 0.0);
    optional_at_least("polish_time", options.polish_time, 0.0);
    optional_at_least("max_moves", options.max_moves, std::int64_t{0});
    optional_at_least("max_move_cost", options.max_move_cost, std::int64_t{0});
    optional_at_least("max_others", options.max_others, std::int64_t{0});
    optional_at_least("max_price_ratio", options.max_price_ratio, 1.0);
    optional_at_least("max_disrupted", options.max_disrupted, std::int64_t{0});
    optional_at_least("max_moves_per_wave", options.max_moves_per_wave, std::int64_t{1});
    optional_at_least("max_moves_per_node", options.max_moves_per_node, std::int64_t{1});
    const auto known = [&](const char* field, const std::vector<NodeId>& nodes) {
        for (const auto node : nodes)
            if (index(node) >= cluster.node_count())
                problems.add(std::string(field) + ": there is no node " + std::to_string(index(node)) +
                             "; expected less than " + std::to_string(cluster.node_count()));
    };
    if (options.clear) known("clear", *options.clear);
    known("exempt", options.exempt);
    problems.throw_if_any();
}

}  // namespace gpusched::consolidation
