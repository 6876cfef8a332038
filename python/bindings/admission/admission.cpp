// SPDX-License-Identifier: Apache-2.0
// The module gpusched.admission.
#include "allocation/gangs.hpp"
#include "allocation/python_policies.hpp"
#include "model/plan.hpp"
#include "preemption/preemption.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/admission/admit.hpp>

namespace gpusched::python {

// In why.cpp.
void bind_why(py::module_& m);

namespace {

/// The result of `admit`. True if the job is admitted.
struct NamedAdmission {
    /// True if all pods are admitted.
    bool admitted = false;
    /// Evictions, waves of moves, and the placements of all pods and of victims that restart; empty unless
    /// admitted.
    NamedPlan plan;
    /// Cost of the plan in GPU-seconds.
    double cost = 0;
    /// The cost by parts: "moves", "lost_work", "restarts", "losses", "tasks", "recalls", "budgets".
    std::map<std::string, double> cost_parts;
    /// Lower bound on the cost of every plan, in GPU-seconds; None if the job cannot be admitted at all.
    std::optional<double> bound;
    /// True if the cost equals the bound, or if it is proved that no plan exists.
    bool proven = false;
    /// Placements of the pods, in the order of the job; empty unless admitted.
    std::vector<PlanSpec::Placement> pods;
    /// Tasks that move to another node, in the order of the plan.
    std::vector<std::string> moved;
    /// Evicted tasks, including those that restart.
    std::vector<std::string> evicted;
    /// Evicted tasks that do not restart, in snapshot order.
    std::vector<std::string> lost;
    /// Tasks down beyond the limit of each disruption budget, by name; empty unless `budget_price_s` is set.
    std::map<std::string, std::int64_t> broken_budgets;
    /// The binding constraint if there is no plan, such as "gpu"; otherwise "none".
    Obstacle obstacle{};
    /// The reason in words; empty if admitted.
    std::string reason;
    /// Statistics of the search: "steps", "sets_checked", "plans_found", "unorderable", "domains_considered".
    std::map<std::string, std::int64_t> stats;
    /// The reason why the search ended.
    StopReason stop_reason{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedAdmission>, F&& field) {
    field("admitted", &NamedAdmission::admitted);
    field("plan", &NamedAdmission::plan);
    field("cost", &NamedAdmission::cost);
    field("cost_parts", &NamedAdmission::cost_parts);
    field("bound", &NamedAdmission::bound);
    field("proven", &NamedAdmission::proven);
    field("pods", &NamedAdmission::pods);
    field("moved", &NamedAdmission::moved);
    field("evicted", &NamedAdmission::evicted);
    field("lost", &NamedAdmission::lost);
    field("broken_budgets", &NamedAdmission::broken_budgets);
    field("obstacle", &NamedAdmission::obstacle);
    field("reason", &NamedAdmission::reason);
    field("stats", &NamedAdmission::stats);
    field("stop_reason", &NamedAdmission::stop_reason);
}

using AdmittedJob = Typed<"Mapping[str, Any] | str | Task | Iterable[str | Task]">;

struct AdmitArguments : admission::Options {
    /// Additional constraint on the target nodes of pods and of displaced tasks: a name (`filter_names`) or a
    /// callable (cluster, task, node) -> bool that gets the unchanged snapshot. None: no constraint.
    Typed<"str | Callable[[Cluster, Task, Node], bool] | None"> own_filter = py::none();
    ProgressLike progress = py::none();
};

struct JobToAdmit {
    ClusterPtr cluster{};
    std::vector<TaskId> pods{};
    bool is_new = false;  // its pods are not in any snapshot yet
    allocation::AllocateOptions options{};
};

JobToAdmit job_to_admit(const ClusterPtr& cluster, const py::object& given) {
    const auto job = names_of(given);
    if (py::isinstance<py::str>(job) || is_mapping(job)) {
        const auto argument = job_argument(job, cluster.get());
        auto with = in_cluster(cluster, {argument});
        return {with.cluster, std::move(with.jobs.front().pods), !argument.request.name.empty(),
                argument.options};
    }
    return {cluster, pending_pods_argument("job", job, *cluster), false, {}};
}

NamedAdmission named_admission(const JobToAdmit& job, admission::Admission&& made) {
    const auto& cluster = *job.cluster;
    NamedAdmission out;
    out.admitted = made.admitted;
    out.plan = {to_spec(made.plan, cluster), made.stop_reason};
    if (job.is_new && made.admitted) out.plan.brought = brought_pods(cluster, job.pods);
    visit_fields(std::type_identity<admission::Cost>{}, [&](const char* name, auto member, const auto&...) {
        out.cost_parts[name] = static_cast<double>(made.cost.*member) / 1000;
    });
    out.cost = static_cast<double>(made.cost.total()) / 1000;
    if (made.admitted) out.plan.spec.cost = out.cost_parts;
    out.plan.spec.stats = out.cost_parts;
    out.plan.spec.stats["total"] = out.cost;
    if (made.bound) out.bound = static_cast<double>(*made.bound) / 1000;
    out.proven = made.proven;
    out.pods = named_placements(cluster, made.pods);
    for (const auto task : made.moved()) out.moved.push_back(cluster.name(task));
    for (const auto task : made.evicted()) out.evicted.push_back(cluster.name(task));
    for (const auto task : made.lost) out.lost.push_back(cluster.name(task));
    out.broken_budgets = named_budgets(cluster, made.broken_budgets);
    out.obstacle = made.obstacle;
    out.reason = std::move(made.reason);
    visit_fields(
        std::type_identity<admission::Statistics>{},
        [&](const char* name, auto member, const auto&...) { out.stats[name] = made.stats.*member; });
    out.stop_reason = made.stop_reason;
    return out;
}

/// Admits a job at the lowest cost. Returns an `Admission` with one plan.
///
/// If the job does not fit, the plan moves tasks (make before break), evicts tasks with or without a new
/// placement, and lets LP tasks borrow GPUs from Standby tasks. It may move the same tasks as `consolidate`
/// and evict the same tasks as `preempt`. Costs are in GPU-seconds. A plan for a job given as a dict contains
/// its pods, so `verify.plan(cluster, plan)` and `apply(cluster, plan)` accept it.
///
/// `job`: a job as for `allocate` (a dict, or the name of a job of the cluster), or a list of names of pending
/// tasks.
NamedAdmission admit(const Keywords<AdmitArguments>& keywords, const char* function,
                     const ClusterPtr& cluster, const py::object& job, const py::kwargs& given,
                     bool moves_alone) {
    Problems problems;
    const auto in = job_to_admit(cluster, job);
    // Names become ids of the cluster with the new pods, because these pods shift the ids of the caller's
    // cluster.
    auto options = keywords.read(function, given, problems, in.cluster.get());
    if (moves_alone && given.contains("evictions") && py::object(given["evictions"]).ptr() == Py_True)
        problems.add("evictions: True; expected False, because make_room only moves tasks");
    options.evictions = options.evictions && !moves_alone;
    collect(problems, [&] { admission::validate(options, *in.cluster); });
    problems.throw_if_any();
    if (!options.own_filter.is_none())
        options.filter = chosen_filter("filter", "filter", options.own_filter, in.cluster);
    if (!options.level) options.level = in.options.level;
    if (!options.mode) options.mode = in.options.mode;
    return Call(options.progress).run([&](const Context& context) {
        return named_admission(in, admission::admit(*in.cluster, in.pods, options, context));
    });
}

}  // namespace

void bind_admission(py::module_& parent) {
    auto m = submodule(parent, "admission");
    auto type = bind_record<NamedAdmission>(m, "Admission");
    type.def("__bool__", [](const NamedAdmission& r) { return r.admitted; });
    const auto keywords =
        Keywords<AdmitArguments>()
            .fields<admission::Options>()
            .field("filter", &AdmitArguments::own_filter, doc("python::AdmitArguments::own_filter"))
            .field("progress", &AdmitArguments::progress, progress_text)
            .group("search", "Options of the search for experts.", {"depth", "search_limit"})
            .shared_as("admission.admit");
    m.def(
        "admit",
        [keywords](const ClusterPtr& cluster, const AdmittedJob& job, const py::kwargs& given) {
            return admit(keywords, "admit", cluster, job, given, false);
        },
        py::arg("cluster"), py::arg("job"), keywords.documented(doc("python::admit")));
    m.def(
        "make_room",
        [keywords](const ClusterPtr& cluster, const AdmittedJob& job,
                   const py::kwargs& given) -> Typed<"Plan | None"> {
            auto made = admit(keywords, "make_room", cluster, job, given, true);
            if (!made.admitted) return py::none();
            return py::cast(std::move(made.plan));
        },
        py::arg("cluster"), py::arg("job"), keywords.documented(doc("admission::make_room")));
    bind_why(m);
}

}  // namespace gpusched::python
