// The function gpusched.consolidation.what_if.
#include "fragmentation/report_table.hpp"
#include "model/cluster_views.hpp"
#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/consolidation/what_if.hpp>
#include <gpusched/io/cluster_forms.hpp>

namespace gpusched::python {

namespace c = consolidation;

namespace {

using AddNodes = Typed<"Mapping[str, int] | Iterable[tuple[str | Node | Mapping[str, Any], int]] | None">;

struct WhatIfArguments : c::WhatIfOptions {
    AddNodes added = py::none();
    ProgressLike progress = py::none();
};

struct NamedCase {
    /// 'now', 'changed' or 'consolidated'.
    c::WhatIfState state{};
    /// Jobs that wait.
    std::int64_t jobs = 0;
    /// Jobs that start in the order of the queue.
    std::int64_t starts = 0;
    /// Jobs that would start if no other job were waiting.
    std::int64_t alone = 0;
    /// Pods that find a place in the order of the queue.
    std::int64_t pods = 0;
    /// Idle whole GPUs of schedulable nodes, before jobs start.
    std::int64_t idle_gpus = 0;
    /// Schedulable nodes with GPUs that hold daemons at most, before jobs start.
    std::int64_t empty_nodes = 0;
    /// Moves of the consolidation.
    std::int64_t moves = 0;
    /// Idle GPUs that requests of each shape cannot use, before jobs start: as `fragmentation.report`.
    Typed<"gpusched._views.tables.Report"> fragmentation = py::none();
    /// Placements of the pods, in the order in which they start.
    std::vector<PlanSpec::Placement> placements{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedCase>, F&& field) {
    field("state", &NamedCase::state);
    field("jobs", &NamedCase::jobs);
    field("starts", &NamedCase::starts);
    field("alone", &NamedCase::alone);
    field("pods", &NamedCase::pods);
    field("idle_gpus", &NamedCase::idle_gpus);
    field("empty_nodes", &NamedCase::empty_nodes);
    field("moves", &NamedCase::moves);
    field("fragmentation", &NamedCase::fragmentation);
    field("placements", &NamedCase::placements);
}

struct NamedWhatIf {
    /// The cluster now; after the change, if there is one; after a consolidation, if requested.
    std::vector<NamedCase> states;
    /// The jobs in the order of the queue: highest priority first, then the oldest, then by name.
    std::vector<c::WaitingJob> jobs;
    /// Tasks of removed nodes that nothing starts again.
    std::vector<std::string> lost;
    /// The reason why the search ended.
    StopReason stop_reason{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedWhatIf>, F&& field) {
    field("states", &NamedWhatIf::states);
    field("jobs", &NamedWhatIf::jobs);
    field("lost", &NamedWhatIf::lost);
    field("stop_reason", &NamedWhatIf::stop_reason);
}

NamedWhatIf named(c::WhatIf&& found) {
    NamedWhatIf out;
    for (auto& one : found.states)
        out.states.push_back(
            {one.state, one.jobs, one.starts, one.alone, one.pods, one.idle_gpus, one.empty_nodes, one.moves,
             report_table(one.fragmentation, fragmentation::GroupBy::none), std::move(one.placements)});
    out.jobs = std::move(found.jobs);
    out.lost = std::move(found.lost);
    out.stop_reason = found.stop_reason;
    return out;
}

constexpr const char* add_expected =
    "a dict of node names and numbers, or a list of pairs (name or dict of a node, number)";

/// Reads `{"node-1": 10}` or `[(node, 10)]`; a node is the name of one of the cluster, or a description.
std::vector<c::AddedNodes> added_nodes(const py::object& given, const Cluster& cluster) {
    std::vector<c::AddedNodes> out;
    if (given.is_none()) return out;
    if (py::isinstance<py::str>(given) || !py::isinstance<py::iterable>(given))
        bad_type("add_nodes", given, add_expected);
    const py::object pairs = is_mapping(given) ? py::object(given.attr("items")()) : given;
    Problems problems;
    std::size_t i = 0;
    for (const auto pair : pairs) {
        const auto field = "add_nodes[" + std::to_string(i++) + "]";
        collect(problems, [&] {
            if (py::isinstance<py::str>(pair) || !py::isinstance<py::sequence>(pair) || py::len(pair) != 2)
                bad_option(field, pair, "a pair (name or dict of a node, number)");
            const auto parts = py::reinterpret_borrow<py::sequence>(pair);
            const auto count =
                read_within<std::int64_t>(field + ": number", parts[1], 1, c::most_added_nodes);
            const auto node = names_of(parts[0]);
            if (is_mapping(node))
                out.push_back({from_python<NodeSpec>(field, node), count, {}});
            else
                out.push_back(c::nodes_like(cluster, OptionType<NodeId>::read(field, node, cluster), count));
        });
    }
    problems.throw_if_any();
    return out;
}

}  // namespace

void bind_what_if(py::module_& m) {
    bind_record<c::JobOutcome>(m, "JobOutcome");
    bind_record<c::WaitingJob>(m, "WaitingJob");
    bind_record<NamedCase>(m, "WhatIfCase", doc("consolidation::WhatIfCase"));
    auto what_if = bind_record<NamedWhatIf>(
        m, "WhatIf", "Which pending jobs would start in each state of the cluster; `str` gives it in words.");
    define_in_python<py::str>(what_if, "__str__", "_views.maintenance.what_if_text", "The answer in words.");
    define_in_python<Frame>(what_if, "to_pandas", "_views.maintenance.what_if_to_pandas",
                            "A pandas DataFrame with one row per job and state.");
    define_in_python<py::str>(what_if, "_repr_html_", "_views.maintenance.what_if_html",
                              "The answer as HTML, for notebooks.");
    const auto keywords =
        Keywords<WhatIfArguments>()
            .field(
                "add_nodes", &WhatIfArguments::added,
                "Nodes to add: {\"node-1\": 10} adds ten nodes like node-1, healthy and with its daemons. Or "
                "pairs (node, number); a node is a name, or a dict in the cluster format.")
            .fields<c::WhatIfOptions>()
            .field("progress", &WhatIfArguments::progress, progress_text)
            .shared_as("consolidation.what_if");
    m.def(
        "what_if",
        [keywords](const ClusterPtr& cluster, const py::kwargs& given) {
            Problems problems;
            auto o = keywords.read("what_if", given, problems, cluster.get());
            collect(problems, [&] { o.add_nodes = added_nodes(o.added, *cluster); });
            problems.throw_if_any();
            return named(Call(o.progress).run([&](const Context& context) {
                return c::what_if(*cluster, o, context);
            }));
        },
        py::arg("cluster"), keywords.documented(doc("consolidation::what_if")));
}

}  // namespace gpusched::python
