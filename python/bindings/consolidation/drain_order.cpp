// The function gpusched.consolidation.drain_order.
#include "model/cluster_views.hpp"
#include "model/named.hpp"
#include "model/plan.hpp"
#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"

#include <gpusched/consolidation/drain_order.hpp>

namespace gpusched::python {

namespace c = consolidation;

namespace {

struct NamedBatch {
    /// The nodes that are down together.
    std::vector<std::string> nodes;
    /// Empties the nodes, in the cluster as the batches before leave it.
    NamedPlan plan;
    /// The jobs with tasks that restart in it and in an earlier batch.
    std::vector<std::string> restarted_again;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedBatch>, F&& field) {
    field("nodes", &NamedBatch::nodes);
    field("plan", &NamedBatch::plan);
    field("restarted_again", &NamedBatch::restarted_again);
}

struct NamedDrainOrder {
    /// The batches, in order.
    std::vector<NamedBatch> batches;
    /// The nodes that cannot be drained, each with the tasks that keep it occupied. A task that may move is
    /// judged in the cluster as the last batch leaves it. A node that was not tried before the search was
    /// stopped is `not_worthwhile`, without tasks.
    std::vector<Named<c::Explanation>> left;
    /// Lower bound by counting on the number of batches of every order that drains the same nodes.
    std::int64_t batches_at_least = 0;
    /// Moves of all batches, including intermediate moves.
    std::int64_t moves = 0;
    /// Number of tasks that move.
    std::int64_t moved_tasks = 0;
    /// Number of tasks that move in more than one batch.
    std::int64_t moved_twice = 0;
    /// Number of jobs with tasks that restart in more than one batch.
    std::int64_t jobs_restarted_twice = 0;
    /// Sum of `move_cost` over the tasks that each batch moves.
    std::int64_t move_cost = 0;
    /// The reason why the search ended.
    StopReason stop_reason{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedDrainOrder>, F&& field) {
    field("batches", &NamedDrainOrder::batches);
    field("left", &NamedDrainOrder::left);
    field("batches_at_least", &NamedDrainOrder::batches_at_least);
    field("moves", &NamedDrainOrder::moves);
    field("moved_tasks", &NamedDrainOrder::moved_tasks);
    field("moved_twice", &NamedDrainOrder::moved_twice);
    field("jobs_restarted_twice", &NamedDrainOrder::jobs_restarted_twice);
    field("move_cost", &NamedDrainOrder::move_cost);
    field("stop_reason", &NamedDrainOrder::stop_reason);
}

NamedDrainOrder named(const Cluster& cluster, const c::DrainOrder& order) {
    NamedDrainOrder out;
    for (const auto& batch : order.batches) {
        std::vector<std::string> jobs;
        for (const auto job : batch.restarted_again)
            jobs.push_back(cluster.inventory().job_names[index(job)]);
        out.batches.push_back({with_names(cluster, batch.nodes),
                               NamedPlan{to_spec(batch.plan, cluster), StopReason::completed},
                               std::move(jobs)});
    }
    out.left = with_names(cluster, order.left);
    out.batches_at_least = order.batches_at_least;
    out.moves = order.moves;
    out.moved_tasks = order.moved_tasks;
    out.moved_twice = order.moved_twice;
    out.jobs_restarted_twice = order.jobs_restarted_twice;
    out.move_cost = order.move_cost;
    out.stop_reason = order.stop_reason;
    return out;
}

}  // namespace

void bind_drain_order(py::module_& m) {
    bind_record<NamedBatch>(m, "DrainBatch", doc("consolidation::DrainBatch"));
    auto order = bind_record<NamedDrainOrder>(
        m, "DrainOrder",
        doc("consolidation::DrainOrder") + " `str` gives them in words. True if all nodes can be drained.");
    order.def("__bool__", [](const NamedDrainOrder& o) { return o.left.empty(); });
    define_in_python<py::str>(order, "__str__", "_views.maintenance.drain_text", "The order in words.");
    define_in_python<Frame>(
        order, "to_pandas", "_views.maintenance.drain_to_pandas",
        "A pandas DataFrame with one row per node; the batch is -1 for a node that cannot "
        "be drained.");
    define_in_python<py::str>(order, "_repr_html_", "_views.maintenance.drain_html",
                              "The order as HTML, for notebooks.");
    const auto keywords = keywords_with_progress<c::DrainOptions>().shared_as("consolidation.drain_order");
    m.def(
        "drain_order",
        [keywords](const ClusterPtr& cluster, const py::kwargs& given) {
            const auto o = keywords.read("drain_order", given, cluster.get());
            return named(*cluster, Call(o.progress).run([&](const Context& context) {
                return c::drain_order(*cluster, o, context);
            }));
        },
        py::arg("cluster"), keywords.documented(doc("consolidation::drain_order")));
}

}  // namespace gpusched::python
