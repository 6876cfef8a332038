// SPDX-License-Identifier: Apache-2.0
// A serving request as its document has it: GPU types, models and workloads by name.
#pragma once

#include <gpusched/json/forms.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::serving::detail {

inline constexpr std::string_view request_format = "gpusched.serving-request";
inline constexpr int newest_request_version = 2;

/// How the documents of serving look: real numbers are real numbers to every reader.
inline json::Style document_style(int indent) {
    return {.indent = indent, .line_per_value = true, .point = true};
}

/// A GPU type that can be rented; its name stands before it.
struct RentableDocument : GpuType {
    std::optional<std::string> type{};
    std::optional<int> available{}, machines{};
    std::optional<RentalTerms> terms{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RentableDocument>, F&& field) {
    field("type", &RentableDocument::type);
    json::visit_other_fields<GpuType>({"name"}, field);
    field("available", &RentableDocument::available, at_least(0));
    field("machines", &RentableDocument::machines, Since{2}, at_least(0));
    field("terms", &RentableDocument::terms, Inlined{});
}

/// Requests of one kind; its name stands before it.
struct WorkloadDocument {
    RequestShape shape{};
    std::optional<double> requests{}, rate{};
    LatencyTargets targets{};
};
template <class F>
constexpr void visit_fields(std::type_identity<WorkloadDocument>, F&& field) {
    field("shape", &WorkloadDocument::shape, Inlined{});
    field("requests", &WorkloadDocument::requests, within(0.0, largest_finite));
    field("rate", &WorkloadDocument::rate, Since{2}, within(0.0, largest_finite));
    field("targets", &WorkloadDocument::targets, Since{2}, UnlessDefault{});
}

/// A language model and what it is asked for; its name stands before it.
struct ServedDocument : LanguageModel {
    std::optional<std::string> type{};
    json::ByName<WorkloadDocument> workloads{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ServedDocument>, F&& field) {
    field("type", &ServedDocument::type);
    json::visit_other_fields<LanguageModel>({"name"}, field);
    field("workloads", &ServedDocument::workloads, Required{});
}

struct RequestDocument {
    std::optional<double> budget{};
    LatencyTargets targets{};  ///< of all kinds
    json::ByName<RentableDocument> gpus{};
    json::ByName<ServedDocument> models{};
    std::vector<MeasuredThroughput> measured{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RequestDocument>, F&& field) {
    field("budget", &RequestDocument::budget, within(0.0, largest_finite));
    field("targets", &RequestDocument::targets, Since{2}, UnlessDefault{});
    field("gpus", &RequestDocument::gpus, Required{});
    field("models", &RequestDocument::models, Required{});
    field("measured", &RequestDocument::measured, UnlessDefault{});
}

}  // namespace gpusched::serving::detail
