// SPDX-License-Identifier: Apache-2.0
// Plans as `gpusched.plan` documents (JSON, versions 1 and 2).
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/model/plan.hpp>

#include <string>
#include <string_view>

namespace gpusched::io {

/// Reads a plan from text.
///
/// The format is documented in docs/io.md and as a JSON Schema in docs/schema. This checks shape and types;
/// `verify::plan` checks the plan against a snapshot.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
/// @throws InvalidInput as `cluster_from_json` does
[[nodiscard]] PlanSpec plan_from_json(std::string_view text, std::string_view source = "<text>");

/// The same of a parsed document.
[[nodiscard]] PlanSpec plan_from_json(const json::Document& document);

/// Reads a plan from a file.
/// @throws BackendError if the file cannot be read
/// @throws InvalidInput as `plan_from_json` does
[[nodiscard]] PlanSpec read_plan(const std::string& path);

/// Writes a plan as text: every field in a fixed order, in the first version that can hold all of it. The
/// same plan gives the same bytes, and reading them gives the same plan.
/// @param indent  spaces per level (1 .. 16), with one move or placement per line; 0 = no white space
/// @throws InvalidInput for a name that is not UTF-8, a statistic that is not finite, or another indent
[[nodiscard]] std::string plan_to_json(const PlanSpec& plan, int indent = 1);

/// Writes a plan to a file, as `plan_to_json` does.
/// @throws BackendError if the file cannot be written
void write_plan(const PlanSpec& plan, const std::string& path);

}  // namespace gpusched::io
