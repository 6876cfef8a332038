#pragma once

#include <gpusched/core/file.hpp>
#include <gpusched/io/plan_json.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace GPUSCHED_NAMESPACE::io {

namespace detail {
inline constexpr std::string_view plan_format = "gpusched.plan";
inline constexpr int newest_plan_version = 2;
}  // namespace detail

GPUSCHED_INLINE PlanSpec plan_from_json(std::string_view text, std::string_view source) {
    return json::read_document<PlanSpec>(text, source, {detail::plan_format, detail::newest_plan_version});
}

GPUSCHED_INLINE PlanSpec read_plan(const std::string& path) { return plan_from_json(read_file(path), path); }

GPUSCHED_INLINE std::string plan_to_json(const PlanSpec& plan, int indent) {
    return json::write_document(detail::plan_format, plan, {.indent = indent}, json::version_for(plan));
}

GPUSCHED_INLINE void write_plan(const PlanSpec& plan, const std::string& path) {
    write_file(path, plan_to_json(plan));
}

}  // namespace GPUSCHED_NAMESPACE::io
