// The function gpusched.why and its result.
#include "model/named.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/admission/why.hpp>

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
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedRemedy>, F&& field) {
    field("kind", &NamedRemedy::kind);
    field("cost", &NamedRemedy::cost);
    field("text", &NamedRemedy::text);
}

struct NamedWhy {
    /// The pending pods that the answer is about.
    std::vector<std::string> pods;
    /// What it waits for if it does not wait for room, such as "gate"; None = it waits for room.
    std::optional<WaitingFor> waiting_for;
    /// True if all pods find a place as it is.
    bool fits = false;
    /// The number of pods that find a place together.
    std::int64_t places = 0;
    /// One entry per kind of pod, the largest first.
    std::vector<admission::WhyKind> kinds;
    /// If the pods must share a domain: its domains, most places first.
    std::vector<admission::WhyDomain> domains;
    /// The kind of the cause; "constraint" and "constraints" are named in `constraints`.
    admission::Cause cause_kind{};
    /// The constraints to blame, as in the tables.
    std::vector<std::string> constraints;
    /// The cause in one sentence, with its figures.
    std::string cause;
    /// True: proven that the nodes would not hold the pods if all tasks left except daemons and locked ones. False: a
    /// placement on the emptied nodes was found. None: not decided.
    std::optional<bool> impossible;
    /// Changes that help, the cheapest first.
    std::vector<NamedRemedy> remedies;
    /// The reason why the search ended.
    StopReason stop_reason{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedWhy>, F&& field) {
    field("pods", &NamedWhy::pods);
    field("waiting_for", &NamedWhy::waiting_for);
    field("fits", &NamedWhy::fits);
    field("places", &NamedWhy::places);
    field("kinds", &NamedWhy::kinds);
    field("domains", &NamedWhy::domains);
    field("cause_kind", &NamedWhy::cause_kind);
    field("constraints", &NamedWhy::constraints);
    field("cause", &NamedWhy::cause);
    field("impossible", &NamedWhy::impossible);
    field("remedies", &NamedWhy::remedies);
    field("stop_reason", &NamedWhy::stop_reason);
}

NamedWhy named_why(const Cluster& cluster, admission::Why&& why) {
    NamedWhy out{.pods = {},
                 .waiting_for = why.waiting_for,
                 .fits = why.fits,
                 .places = why.places,
                 .kinds = std::move(why.kinds),
                 .domains = std::move(why.domains),
                 .cause_kind = why.cause_kind,
                 .constraints = std::move(why.constraints),
                 .cause = std::move(why.cause),
                 .impossible = why.impossible,
                 .remedies = {},
                 .stop_reason = why.stop_reason};
    for (const auto pod : why.pods) out.pods.push_back(cluster.name(pod));
    for (auto& remedy : why.remedies) {
        std::optional<double> cost;
        if (remedy.cost) cost = static_cast<double>(*remedy.cost) / 1000;
        out.remedies.push_back({remedy.kind, cost, std::move(remedy.text)});
    }
    return out;
}

Typed<"str | tuple[str, ...] | None"> binding(const NamedWhy& why) {
    using admission::Cause;
    switch (why.cause_kind) {
    case Cause::none:
        return py::none();
    case Cause::constraint:
        return py::str(why.constraints.front());
    case Cause::constraints:
        return py::tuple(py::cast(why.constraints));
    default:
        return py::str(std::string(enum_name(why.cause_kind)));
    }
}

/// The table of the first kind with a pod that finds no place.
std::vector<admission::WhyRow> table(const NamedWhy& why) {
    for (const auto& kind : why.kinds)
        if (kind.places < kind.pods) return kind.table;
    return why.kinds.empty() ? std::vector<admission::WhyRow>{} : why.kinds.front().table;
}

}  // namespace

void bind_why(py::module_& m) {
    bind_record<admission::WhyRow>(m, "WhyRow");
    bind_record<admission::WhyKind>(m, "WhyKind");
    bind_record<admission::WhyDomain>(m, "WhyDomain");
    bind_record<NamedRemedy>(m, "Remedy", "A change after which all pods find a place.");
    auto type = bind_record<NamedWhy>(m, "Why", "The result of `why`; `str` gives it in words.");
    type.def_property_readonly(
        "binding", binding,
        "The constraint to blame, a tuple of constraints, or \"waiting\", \"impossible\", "
        "\"topology\", \"fragmentation\" or \"capacity\"; None if it fits.");
    type.def_property_readonly("table", table,
                               "The rows of the first kind of pod that does not find all its places.");
    define_in_python<py::str>(type, "__str__", "_views.why.text",
                              "The answer as text, as the console prints it.");
    define_in_python<Frame>(type, "to_pandas", "_views.why.to_pandas",
                            "A pandas DataFrame with one row per constraint and kind of pod.");
    define_in_python<py::str>(type, "_repr_html_", "_views.why.html", "The answer as HTML, for notebooks.");
    const auto keywords = keywords_with_progress<admission::WhyOptions>().shared_as("admission.why");
    m.def(
        "why",
        [keywords](const ClusterPtr& cluster, const Typed<"str | Task">& name, const py::kwargs& given) {
            Problems problems;
            const auto options = keywords.read("why", given, problems, cluster.get());
            std::string called;
            collect(problems, [&] { called = OptionType<std::string>::read("name", names_of(name)); });
            problems.throw_if_any();
            return Call(options.progress).run([&](const Context& context) {
                return named_why(*cluster, admission::why(*cluster, called, options, context));
            });
        },
        py::arg("cluster"), py::arg("name"), keywords.documented(doc("admission::why")));
}

}  // namespace gpusched::python
