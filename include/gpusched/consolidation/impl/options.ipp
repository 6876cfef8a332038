#pragma once

#include <gpusched/consolidation/options.hpp>

#include <string>

namespace GPUSCHED_NAMESPACE::consolidation {

GPUSCHED_INLINE void validate(const Options& options, const Cluster& cluster) {
    Problems problems;
    check_fields(problems, options);
    const auto known = [&](const char* field, const std::vector<NodeId>& nodes) {
        for (const auto node : nodes)
            if (!cluster.contains(node))
                problems.add(std::string(field) + ": there is no node " + std::to_string(index(node)) +
                             "; expected less than " + std::to_string(cluster.node_slots()));
    };
    if (options.clear) known("clear", *options.clear);
    known("exempt", options.exempt);
    problems.throw_if_any();
}

}  // namespace GPUSCHED_NAMESPACE::consolidation
