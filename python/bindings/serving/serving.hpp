// SPDX-License-Identifier: Apache-2.0
// Shared parts of the bindings of gpusched.serving.
#pragma once

#include "support/arguments.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"
#include "support/struct_states.hpp"

#include <gpusched/serving/plan_json.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/sensitivity.hpp>

/// A point of a measured table: a row of its size and the seconds.
template <>
struct gpusched::json::Form<gpusched::serving::ProfilePoint>
    : gpusched::python::RowForm<gpusched::serving::ProfilePoint> {};

/// A pair of indices of GPU types.
template <>
struct gpusched::json::Form<std::pair<int, int>> {
    static void read(Reader& reader, std::uint32_t at, std::pair<int, int>& out) {
        if (reader.kind(at) != Kind::array || reader.document()[at].size != 2)
            return reader.expected(at, "a pair of indices of GPU types");
        reader.read(at + 1, out.first);
        reader.read(reader.document()[at + 1].end, out.second);
    }
};

namespace gpusched::python {

/// A request as described in docs/serving.md, as a dict.
using Request = Typed<"Mapping[str, Any]">;

namespace detail {

template <class A, class B>
struct StateOf<std::pair<A, B>> {
    static py::object save(const std::pair<A, B>& value) {
        return py::make_tuple(StateOf<A>::save(value.first), StateOf<B>::save(value.second));
    }
    static std::pair<A, B> load(const py::handle& from) {
        const auto state = from.cast<py::tuple>();
        if (state.size() != 2) throw InvalidInput("pickle: expected a pair");
        return {StateOf<A>::load(state[0]), StateOf<B>::load(state[1])};
    }
};

}  // namespace detail

/// A plan with the names of its request.
struct PlannedServing : serving::ServingPlan {
    std::vector<std::string> gpus{};
    std::vector<serving::ServedModel> models{};
    std::vector<serving::PriceRange> price_ranges{};
    // Request (none = price ranges are known), options and solver for computing `price_ranges`.
    std::vector<serving::ServingRequest> asked{};
    serving::PlannerOptions planner{};
    std::string chosen_solver{};
    std::optional<std::vector<serving::PriceRange>> found_ranges{};  // after the first access
};
template <class F>
constexpr void visit_fields(std::type_identity<PlannedServing>, F&& field) {
    visit_fields(std::type_identity<serving::ServingPlan>{}, field);
    field("gpus", &PlannedServing::gpus);
    field("models", &PlannedServing::models);
    field("price_ranges", &PlannedServing::price_ranges);
    field("asked", &PlannedServing::asked);
    field("planner", &PlannedServing::planner);
    field("chosen_solver", &PlannedServing::chosen_solver);
}
inline void validate(const PlannedServing& plan) {
    if (plan.rented.size() > plan.gpus.size()) throw InvalidInput("it rents GPUs of unknown types");
}

/// A pair of indices of GPU types.
template <>
struct OptionType<std::pair<int, int>> {
    static std::pair<int, int> read(const std::string& field, py::handle value);
    static std::string literal(const std::pair<int, int>&) { return "()"; }
    static std::string type() { return "tuple[int, int]"; }
};

/// Reads a request as described in docs/serving.md.
/// @param rate of all kinds together, or by kind; empty or None = the rates of the request
serving::ServingRequest read_serving_request(const py::object& request, const py::object& rate = {});
/// An equivalent request as a dict with all values that the reader adds: prices, fields of types and models.
py::dict write_serving_request(const serving::ServingRequest& request);
/// Documents of plans as dicts.
py::dict write_serving_plan(const PlannedServing& plan, const serving::PlanExtras& extras = {});
py::dict write_serving_curve(const std::vector<double>& rates,
                             const std::vector<serving::LatencyTargets>& targets,
                             const std::vector<const PlannedServing*>& plans);
py::dict write_serving_sweep(const std::vector<double>& budgets,
                             const std::vector<const PlannedServing*>& plans);
/// The replicas of a plan: a plan, its document (docs/schema, `gpusched.serving-plan`), or its replicas as
/// dicts.
using Replicas = Typed<"ServingPlan | Mapping[str, Any] | Sequence[Mapping[str, Any]]">;
std::vector<serving::GpuType> gpu_types_argument(const py::object& gpus);
/// Models, deployments and counts of replicas.
std::vector<serving::PlannedReplicas> read_running(const py::object& given,
                                                   const serving::ServingRequest& request);

}  // namespace gpusched::python
