// SPDX-License-Identifier: Apache-2.0
// Reads and writes `gpusched.plan` documents.
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/plan_json.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace gpusched::json {

/// Numbers of at least 0 by the names of the parts.
template <>
struct MarkedForm<CostParts> {
    static void read(Reader& reader, std::uint32_t at, std::map<std::string, double>& out) {
        reader.each_member(at, [&](std::string_view name, std::uint32_t child) {
            if (name.starts_with("x-")) return;
            if (std::ranges::find(cost_part_names, name) == cost_part_names.end())
                return reader.report_unknown(child, cost_part_names);
            reader.read_field(child, out[std::string(name)], at_least(0.0));
        });
    }
    static void write(Writer& writer, const std::map<std::string, double>& cost) { writer.write(cost); }
};

}  // namespace gpusched::json

namespace gpusched::io {

namespace detail {
constexpr std::string_view plan_format = "gpusched.plan";
constexpr int newest_plan_version = 2;

/// @param problems  those found before
/// @throws InvalidInput with every problem; if the form has none, with every list of GPUs that names one
///         twice
static PlanSpec plan_of(const json::Document& document, Problems& problems) {
    auto plan = json::read_document<PlanSpec>(document, {plan_format, newest_plan_version}, problems);
    const auto check = [&](const auto& steps, const char* field) {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            auto gpus = steps[i].gpus;
            std::ranges::sort(gpus);
            if (const auto twice = std::ranges::adjacent_find(gpus); twice != gpus.end())
                problems.add(
                    concat(document.where(0), "/", field, "/", i, "/gpus: GPU ", *twice, " is named twice"));
        }
    };
    check(plan.moves, "moves");
    check(plan.placements, "placements");
    problems.throw_if_any();
    return plan;
}
}  // namespace detail

GPUSCHED_EXPORT PlanSpec plan_from_json(std::string_view text, std::string_view source) {
    Problems problems;
    const auto document = json::Document::parse(text, source, problems);
    return detail::plan_of(document, problems);
}

GPUSCHED_EXPORT PlanSpec plan_from_json(const json::Document& document) {
    Problems problems;
    return detail::plan_of(document, problems);
}

GPUSCHED_EXPORT PlanSpec read_plan(const std::string& path) { return plan_from_json(read_file(path), path); }

GPUSCHED_EXPORT std::string plan_to_json(const PlanSpec& plan, int indent) {
    return json::write_document(detail::plan_format, plan, {.indent = indent}, json::version_for(plan));
}

GPUSCHED_EXPORT void write_plan(const PlanSpec& plan, const std::string& path) {
    write_file(path, plan_to_json(plan));
}

}  // namespace gpusched::io
