// An order over the parts of specs, for interning. Here rather than beside the types, which everybody includes: defaulted
// three-way comparisons of strings and vectors are slow to compile.
#pragma once

#include <gpusched/model/inventory.hpp>

#include <tuple>

namespace GPUSCHED_NAMESPACE {

inline bool operator<(const Taint& a, const Taint& b) {
    return std::tie(a.key, a.value, a.effect) < std::tie(b.key, b.value, b.effect);
}

inline bool operator<(const Toleration& a, const Toleration& b) {
    return std::tie(a.key, a.op, a.value, a.effect) < std::tie(b.key, b.op, b.value, b.effect);
}

inline bool operator<(const NodeMatch& a, const NodeMatch& b) {
    return std::tie(a.key, a.op, a.values) < std::tie(b.key, b.op, b.values);
}

inline bool operator<(const NodeTerm& a, const NodeTerm& b) {
    return std::tie(a.match_expressions, a.match_fields) < std::tie(b.match_expressions, b.match_fields);
}

inline bool operator<(const DeviceSpec& a, const DeviceSpec& b) {
    return std::tie(a.device_class, a.count, a.parents, a.memory_mib) <
           std::tie(b.device_class, b.count, b.parents, b.memory_mib);
}

inline bool operator<(const AntiAffinity& a, const AntiAffinity& b) {
    return std::tie(a.group, a.level, a.limit) < std::tie(b.group, b.level, b.limit);
}

inline bool operator<(const Affinity& a, const Affinity& b) {
    return std::tie(a.group, a.level) < std::tie(b.group, b.level);
}

inline bool operator<(const NetworkAffinity& a, const NetworkAffinity& b) {
    return std::tie(a.level, a.mode) < std::tie(b.level, b.mode);
}

inline bool operator<(const HardwareAffinity& a, const HardwareAffinity& b) {
    return std::tie(a.level, a.qos) < std::tie(b.level, b.qos);
}

inline bool operator<(const Avoid& a, const Avoid& b) {
    return std::tie(a.group, a.level) < std::tie(b.group, b.level);
}

inline bool operator<(const Near& a, const Near& b) {
    return std::tie(a.group, a.level) < std::tie(b.group, b.level);
}

inline bool operator<(const Spread& a, const Spread& b) {
    return std::tie(a.group, a.level, a.max_skew, a.min_domains, a.honor_node_affinity, a.honor_taints) <
           std::tie(b.group, b.level, b.max_skew, b.min_domains, b.honor_node_affinity, b.honor_taints);
}

inline bool operator<(const GroupTerms& a, const GroupTerms& b) {
    return std::tie(a.groups, a.avoid, a.near, a.spread) < std::tie(b.groups, b.avoid, b.near, b.spread);
}

inline bool operator<(const NearRule& a, const NearRule& b) { return a.groups < b.groups; }

inline bool operator<(const SpreadRule& a, const SpreadRule& b) {
    return std::tie(a.level, a.max_skew, a.min_domains, a.label_levels, a.node_selector, a.node_affinity,
                    a.honors_taints, a.tolerations) <
           std::tie(b.level, b.max_skew, b.min_domains, b.label_levels, b.node_selector, b.node_affinity,
                    b.honors_taints, b.tolerations);
}

inline bool operator<(const NodeAttributes& a, const NodeAttributes& b) {
    return std::tie(a.labels, a.taints) < std::tie(b.labels, b.taints);
}

inline bool operator<(const NodeClass& a, const NodeClass& b) {
    return std::tie(a.gpu_model, a.labels, a.taints) < std::tie(b.gpu_model, b.labels, b.taints);
}

inline bool operator<(const Requirement& a, const Requirement& b) {
    const auto usual = std::tie(a.gpu_models, a.node_selector, a.tolerations);
    const auto others = std::tie(b.gpu_models, b.node_selector, b.tolerations);
    if (usual < others) return true;
    return !(a.node_affinity.empty() && b.node_affinity.empty()) && usual == others &&
           a.node_affinity < b.node_affinity;
}

inline bool operator<(const NodeDevices& a, const NodeDevices& b) {
    return std::tie(a.first, a.written) < std::tie(b.first, b.written);
}

inline bool operator<(const NodeSet& a, const NodeSet& b) {
    return std::tie(a.requirement, a.node_selector, a.node_affinity) <
           std::tie(b.requirement, b.node_selector, b.node_affinity);
}

inline bool operator<(const Extras::Amount& a, const Extras::Amount& b) {
    return std::tie(a.resource, a.amount) < std::tie(b.resource, b.amount);
}

inline bool operator<(const Extras& a, const Extras& b) {
    return std::tie(a.resources, a.device_count, a.device_classes, a.node_set) <
           std::tie(b.resources, b.device_count, b.device_classes, b.node_set);
}

inline bool operator<(const TaskAffinities& a, const TaskAffinities& b) {
    return std::tie(a.anti_affinity, a.affinity, a.network_affinity, a.hardware_affinity, a.cpu_local,
                    a.cores, a.group_terms) < std::tie(b.anti_affinity, b.affinity, b.network_affinity,
                                                       b.hardware_affinity, b.cpu_local, b.cores,
                                                       b.group_terms);
}

}  // namespace GPUSCHED_NAMESPACE
