#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/io/plan_json.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace GPUSCHED_NAMESPACE::io {

namespace detail {
inline constexpr std::string_view plan_format = "gpusched.plan";
inline constexpr int newest_plan_version = 2;

/// @throws InvalidInput with every list of GPUs that names one twice
inline void require_distinct_gpus(const PlanSpec& plan, std::string_view source) {
    Problems problems;
    const auto check = [&](const auto& steps, const char* field) {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            auto gpus = steps[i].gpus;
            std::sort(gpus.begin(), gpus.end());
            if (const auto twice = std::adjacent_find(gpus.begin(), gpus.end()); twice != gpus.end())
                problems.add(std::string(source) + ": /" + field + "/" + std::to_string(i) + "/gpus: GPU " +
                             std::to_string(*twice) + " is named twice");
        }
    };
    check(plan.moves, "moves");
    check(plan.placements, "placements");
    problems.throw_if_any();
}
}  // namespace detail

GPUSCHED_INLINE PlanSpec plan_from_json(std::string_view text, std::string_view source) {
    auto plan =
        json::read_document<PlanSpec>(text, source, {detail::plan_format, detail::newest_plan_version});
    detail::require_distinct_gpus(plan, source);
    return plan;
}

GPUSCHED_INLINE PlanSpec read_plan(const std::string& path) { return plan_from_json(read_file(path), path); }

GPUSCHED_INLINE std::string plan_to_json(const PlanSpec& plan, int indent) {
    return json::write_document(detail::plan_format, plan, {.indent = indent}, json::version_for(plan));
}

GPUSCHED_INLINE void write_plan(const PlanSpec& plan, const std::string& path) {
    write_file(path, plan_to_json(plan));
}

}  // namespace GPUSCHED_NAMESPACE::io
