// SPDX-License-Identifier: Apache-2.0
// What few tasks ask of groups whose members others select: GroupTerms as written, and the rules that come of them.
#pragma once

#include <gpusched/core/ids.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpusched {

/// As written, shared by all tasks that wrote the same.
struct GroupTerms {
    std::vector<std::string> groups;
    std::vector<Avoid> avoid;
    std::vector<Near> near;
    std::vector<Spread> spread;
    bool operator==(const GroupTerms&) const = default;
};

/// A label key whose values are domains.
struct LabelLevel {
    std::string key;
    std::vector<DomainId> domain_of;  ///< by node; none = it lacks the label
    std::vector<std::string> values;  ///< by domain; of those that no node has any more an empty text
};

/// The groups that a task must be a member of to be wanted near.
struct NearRule {
    std::vector<std::string> groups;  ///< sorted, each once
    bool operator==(const NearRule&) const = default;
};

/// How evenly members are to be spread, and over which nodes; shared by all sets of groups alike in it.
struct SpreadRule {
    Level level = node_level;
    int max_skew = 0;  ///< 0 = nobody has the rule
    int min_domains = 1;
    // An eligible node has these labels, satisfies selector and affinity, and its taints are tolerated.
    std::vector<Level> label_levels;  ///< sorted, each once
    Labels node_selector;
    std::vector<NodeTerm> node_affinity;
    bool honors_taints = false;
    std::vector<Toleration> tolerations;  ///< only with `honors_taints`

    std::vector<bool> eligible;           ///< by node
    std::vector<std::uint32_t> nodes_in;  ///< eligible nodes, by domain of `level`
    std::uint32_t domains = 0;            ///< with an eligible node
};

}  // namespace gpusched
