// SPDX-License-Identifier: Apache-2.0
// The module gpusched.consolidation: blockers, drain orders and what-if answers.
#include "fragmentation/fragmentation.hpp"
#include "model/named.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"

#include <gpusched/consolidation/blockers.hpp>
#include <gpusched/consolidation/drain_order.hpp>
#include <gpusched/consolidation/what_if.hpp>
#include <gpusched/io/cluster_forms.hpp>

namespace gpusched::consolidation {

// Attributes of the results in Python.
template <class F>
constexpr void visit_fields(std::type_identity<DrainBatch>, F&& field) {
    field("nodes", &DrainBatch::nodes);
    field("plan", &DrainBatch::plan);
    field("restarted_again", &DrainBatch::restarted_again);
}
template <class F>
constexpr void visit_fields(std::type_identity<DrainOrder>, F&& field) {
    field("batches", &DrainOrder::batches);
    field("left", &DrainOrder::left);
    field("batches_at_least", &DrainOrder::batches_at_least);
    field("moves", &DrainOrder::moves);
    field("moved_tasks", &DrainOrder::moved_tasks);
    field("moved_twice", &DrainOrder::moved_twice);
    field("jobs_restarted_twice", &DrainOrder::jobs_restarted_twice);
    field("move_cost", &DrainOrder::move_cost);
    field("stop_reason", &DrainOrder::stop_reason);
}
template <class F>
constexpr void visit_fields(std::type_identity<WhatIfCase>, F&& field) {
    field("state", &WhatIfCase::state);
    field("jobs", &WhatIfCase::jobs);
    field("starts", &WhatIfCase::starts);
    field("alone", &WhatIfCase::alone);
    field("pods", &WhatIfCase::pods);
    field("idle_gpus", &WhatIfCase::idle_gpus);
    field("empty_nodes", &WhatIfCase::empty_nodes);
    field("moves", &WhatIfCase::moves);
    field("fragmentation", &WhatIfCase::fragmentation);
    field("placements", &WhatIfCase::placements);
}
template <class F>
constexpr void visit_fields(std::type_identity<WhatIf>, F&& field) {
    field("states", &WhatIf::states);
    field("jobs", &WhatIf::jobs);
    field("lost", &WhatIf::lost);
    field("stop_reason", &WhatIf::stop_reason);
}

}  // namespace gpusched::consolidation

namespace gpusched::python {

namespace c = consolidation;

template <>
struct Shown<fragmentation::Report> {
    using type = Typed<"gpusched._views.tables.Report">;
    static type of(const Cluster&, const fragmentation::Report& report) {
        return report_table(report, fragmentation::GroupBy::none);
    }
};

namespace {

void bind_blockers(py::module_& m) {
    bind_record<Named<c::FixedTasks>>(m, "FixedTasks");
    bind_record<Named<c::RankedBlocker>>(m, "RankedBlocker");
    auto ranking = bind_record<Named<c::BlockerRanking>>(
        m, "BlockerRanking",
        "What keeps nodes from being freed, ranked; `str` gives it in words. `len` and indices go over "
        "`ranked`.");
    ranking.def("__len__", [](const py::object& self) { return py::len(self.attr("ranked")); });
    ranking.def(
        "__getitem__", [](const py::object& self, std::int64_t index) -> Typed<"RankedBlocker"> {
            return self.attr("ranked")[py::int_(index)];
        },
        py::arg("index"));
    define_views(ranking, "_views.maintenance.blockers_", "one row per blocker or pair that helps");
    using Options = WithProgress<c::BlockerOptions>;
    keywords_with_progress<c::BlockerOptions>()
        .shared_as("consolidation.blockers")
        .def(
            m, "blockers",
            [](const Options& o, const ClusterPtr& cluster) {
                return with_names(*cluster, Call(o.progress).run([&](const Context& context) {
                    return c::blockers(*cluster, o, context);
                }));
            },
            doc("consolidation::blockers"), py::arg("cluster"));
}

void bind_drain_order(py::module_& m) {
    bind_record<Named<c::DrainBatch>>(m, "DrainBatch");
    auto order = bind_record<Named<c::DrainOrder>>(
        m, "DrainOrder",
        doc("consolidation::DrainOrder") + " `str` gives them in words. True if all nodes can be drained.");
    order.def("__bool__", [](const py::object& self) { return py::len(self.attr("left")) == 0; });
    define_views(order, "_views.maintenance.drain_",
                 "one row per node; the batch is -1 for a node that cannot be drained");
    using Options = WithProgress<c::DrainOptions>;
    keywords_with_progress<c::DrainOptions>()
        .shared_as("consolidation.drain_order")
        .def(
            m, "drain_order",
            [](const Options& o, const ClusterPtr& cluster) {
                return with_names(*cluster, Call(o.progress).run([&](const Context& context) {
                    return c::drain_order(*cluster, o, context);
                }));
            },
            doc("consolidation::drain_order"), py::arg("cluster"));
}

using AddNodes = Typed<"Mapping[str, int] | Iterable[tuple[str | Node | Mapping[str, Any], int]] | None">;

struct WhatIfArguments : c::WhatIfOptions {
    /// Nodes to add: {"node-1": 10} adds ten nodes like node-1, healthy and with its daemons. Or pairs
    /// (node, number); a node is a name, or a dict in the cluster format.
    AddNodes added = py::none();
    ProgressLike progress = py::none();
};

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

void bind_what_if(py::module_& m) {
    bind_record<Named<c::JobOutcome>>(m, "JobOutcome");
    bind_record<Named<c::WaitingJob>>(m, "WaitingJob");
    bind_record<Named<c::WhatIfCase>>(m, "WhatIfCase");
    auto what_if = bind_record<Named<c::WhatIf>>(
        m, "WhatIf", "Which pending jobs would start in each state of the cluster; `str` gives it in words.");
    define_views(what_if, "_views.maintenance.what_if_", "one row per job and state");
    const auto keywords =
        Keywords<WhatIfArguments>()
            .field("add_nodes", &WhatIfArguments::added, doc("python::WhatIfArguments::added"))
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
            return with_names(*cluster, Call(o.progress).run([&](const Context& context) {
                return c::what_if(*cluster, o, context);
            }));
        },
        py::arg("cluster"), keywords.documented(doc("consolidation::what_if")));
    m.def(
        "_earlier_in_queue",
        [](const ClusterPtr& cluster, const std::vector<std::string>& started) {
            return unlocked([&] {
                Cluster freed(*cluster);
                std::vector<Placement> pods;
                for (const auto& name : started) {
                    const auto task = freed.find_task(name);
                    pods.push_back({task, freed.node_of(task), freed.gpus_of(task)});
                    freed.remove(task);
                }
                std::map<std::string, std::int64_t> found;
                for (auto& job : c::earlier_in_queue(freed, pods))
                    found.emplace(std::move(job.name), job.pods);
                return found;
            });
        },
        py::arg("cluster"), py::arg("started"),
        "The number of pending pods, by job, that come earlier in the queue than these placed tasks and may "
        "take their places.");
}

}  // namespace

void bind_maintenance(py::module_& m) {
    bind_blockers(m);
    bind_drain_order(m);
    bind_what_if(m);
}

}  // namespace gpusched::python
