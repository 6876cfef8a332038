// SPDX-License-Identifier: Apache-2.0
// Pods and answers for the tests of why().
#pragma once

#include "support/catch.hpp"

#include <gpusched/admission/admission.hpp>

namespace why_cases {

inline gpusched::TaskSpec pod(const std::string& name, std::int64_t gpus, const std::string& job = "") {
    return {.name = name, .job = job, .gpu_count = gpus};
}
inline gpusched::TaskSpec running(const std::string& name, const std::string& on, std::vector<int> gpus) {
    auto task = pod(name, static_cast<std::int64_t>(gpus.size()));
    task.node = on;
    task.gpus = std::move(gpus);
    return task;
}
inline std::vector<int> first(int gpus) {
    std::vector<int> all(static_cast<std::size_t>(gpus));
    std::iota(all.begin(), all.end(), 0);
    return all;
}
inline const gpusched::admission::WhyRow& row(const gpusched::admission::Why& found,
                                              const std::string& constraint) {
    for (const auto& one : found.kinds.front().table)
        if (one.constraint == constraint) return one;
    throw std::logic_error("no row " + constraint);
}
inline std::optional<gpusched::admission::Remedy> remedy(const gpusched::admission::Why& found,
                                                         gpusched::admission::RemedyKind kind) {
    for (const auto& one : found.remedies)
        if (one.kind == kind) return one;
    return std::nullopt;
}

}  // namespace why_cases
