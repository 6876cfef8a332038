// SPDX-License-Identifier: Apache-2.0
// The function gpusched.why and its result.
#include "model/named.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/admission/why.hpp>

namespace gpusched::admission {

/// Attributes of the result in Python.
template <class F>
constexpr void visit_fields(std::type_identity<Why>, F&& field) {
    field("pods", &Why::pods);
    field("waiting_for", &Why::waiting_for);
    field("fits", &Why::fits);
    field("places", &Why::places);
    field("kinds", &Why::kinds);
    field("domains", &Why::domains);
    field("cause_kind", &Why::cause_kind);
    field("constraints", &Why::constraints);
    field("cause", &Why::cause);
    field("impossible", &Why::impossible);
    field("remedies", &Why::remedies);
    field("stop_reason", &Why::stop_reason);
}

}  // namespace gpusched::admission

namespace gpusched::python {

namespace {

/// A change after which all pods find a place. Each is computed, not guessed.
struct NamedRemedy {
    /// The kind of the change.
    admission::RemedyKind kind{};
    /// Its cost in GPU-seconds; None = new nodes.
    std::optional<double> cost;
    /// The change in words, with the names of nodes and tasks.
    std::string text;
    /// The plan of moves and evictions, with the places of the pods; None for other kinds.
    std::optional<NamedPlan> plan;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedRemedy>, F&& field) {
    field("kind", &NamedRemedy::kind);
    field("cost", &NamedRemedy::cost);
    field("text", &NamedRemedy::text);
    field("plan", &NamedRemedy::plan);
}

}  // namespace

template <>
struct Shown<admission::Remedy> {
    using type = NamedRemedy;
    static type of(const Cluster& cluster, const admission::Remedy& remedy) {
        NamedRemedy out{remedy.kind, {}, remedy.text, with_names(cluster, remedy.plan)};
        if (remedy.cost) out.cost = static_cast<double>(*remedy.cost) / 1000;
        return out;
    }
};

namespace {

Typed<"str | tuple[str, ...] | None"> binding(const py::object& why) {
    using admission::Cause;
    const py::object kind = why.attr("cause_kind"), constraints = why.attr("constraints");
    switch (kind.cast<Cause>()) {
    case Cause::none:
        return py::none();
    case Cause::constraint:
        return constraints[py::int_(0)];
    case Cause::constraints:
        return py::tuple(constraints);
    default:
        return kind;
    }
}

/// The rows of the first kind of pod that does not find all its places.
Typed<"list[WhyRow]"> table(const py::object& why) {
    const py::list kinds = why.attr("kinds");
    for (const auto kind : kinds)
        if (kind.attr("places") < kind.attr("pods")) return kind.attr("table");
    return kinds.empty() ? py::object(py::list()) : kinds[0].attr("table");
}

}  // namespace

void bind_why(py::module_& m) {
    bind_record<Named<admission::WhyRow>>(m, "WhyRow");
    bind_record<Named<admission::WhyKind>>(m, "WhyKind");
    bind_record<Named<admission::WhyDomain>>(m, "WhyDomain");
    bind_record<NamedRemedy>(m, "Remedy");
    auto type = bind_record<Named<admission::Why>>(m, "Why", "The result of `why`; `str` gives it in words.");
    type.def_property_readonly(
        "binding", binding,
        "The constraint to blame, a tuple of constraints, or \"waiting\", \"impossible\", "
        "\"topology\", \"fragmentation\" or \"capacity\"; None if it fits.");
    type.def_property_readonly("table", table, doc("python::table"));
    define_views(type, "_views.why.", "one row per constraint and kind of pod");
    const auto keywords = keywords_with_progress<admission::WhyOptions>().shared_as("admission.why");
    m.def(
        "why",
        [keywords](const ClusterPtr& cluster, const Typed<"str | Task">& name, const py::kwargs& given) {
            Problems problems;
            const auto options = keywords.read("why", given, problems, cluster.get());
            std::string called;
            collect(problems, [&] { called = OptionType<std::string>::read("name", names_of(name)); });
            problems.throw_if_any();
            return with_names(*cluster, Call(options.progress).run([&](const Context& context) {
                return admission::why(*cluster, called, options, context);
            }));
        },
        py::arg("cluster"), py::arg("name"), keywords.documented(doc("admission::why")));
}

}  // namespace gpusched::python
