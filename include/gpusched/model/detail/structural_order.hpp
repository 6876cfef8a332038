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

inline bool operator<(const NodeAttributes& a, const NodeAttributes& b) {
    return std::tie(a.labels, a.taints) < std::tie(b.labels, b.taints);
}

inline bool operator<(const NodeClass& a, const NodeClass& b) {
    return std::tie(a.gpu_model, a.labels, a.taints) < std::tie(b.gpu_model, b.labels, b.taints);
}

inline bool operator<(const Requirement& a, const Requirement& b) {
    return std::tie(a.gpu_models, a.node_selector, a.tolerations) <
           std::tie(b.gpu_models, b.node_selector, b.tolerations);
}

inline bool operator<(const TaskAffinities& a, const TaskAffinities& b) {
    return std::tie(a.anti_affinity, a.affinity, a.network_affinity, a.hardware_affinity, a.cpu_local,
                    a.cores) < std::tie(b.anti_affinity, b.affinity, b.network_affinity, b.hardware_affinity,
                                        b.cpu_local, b.cores);
}

}  // namespace GPUSCHED_NAMESPACE
