// gpusched.admission.
#include "allocation/gangs.hpp"
#include "allocation/python_policies.hpp"
#include "model/plan.hpp"
#include "preemption/preemption.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/admission/admit.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::python {

namespace {

struct NamedAdmission {
    /// All pods are let in.
    bool admitted = false;
    /// Evictions, waves of moves, and the placements of all pods and of the victims that run again; without steps unless admitted.
    NamedPlan plan;
    /// What the plan costs, in GPU-seconds.
    double cost = 0;
    /// The cost by parts: "moves", "lost_work", "restarts", "losses", "tasks", "recalls", "budgets".
    std::map<std::string, double> cost_parts;
    /// No way of letting the job in costs less, in GPU-seconds; None: there is no way at all.
    std::optional<double> bound;
    /// The plan costs no more than the bound; without a plan: there is no way.
    bool proven = false;
    /// Where the pods go, in the order of the job; empty unless admitted.
    std::vector<PlanSpec::Placement> pods;
    /// Who moves to another node, in the order of the plan.
    std::vector<std::string> moved;
    /// Who is evicted, whether or not it is placed again.
    std::vector<std::string> evicted;
    /// Evicted and not placed again, in snapshot order.
    std::vector<std::string> lost;
    /// How many more tasks of which disruption budgets are down than they allow, by name; empty unless `budget_price_s`.
    std::map<std::string, std::int64_t> broken_budgets;
    /// Without a plan: what binds, such as "gpu"; else "none".
    Obstacle obstacle{};
    /// The same in words; empty when admitted.
    std::string reason;
    /// How the search went: "steps", "sets_checked", "plans_found", "unorderable", "domains_considered".
    std::map<std::string, std::int64_t> stats;
    /// Why the search ended.
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
    Typed<"str | Callable[[Cluster, Task, Node], bool] | None"> own_filter = py::none();
    ProgressLike progress = py::none();
};

struct JobToAdmit {
    ClusterPtr cluster{};
    std::vector<TaskId> pods{};
    bool is_new = false;  // its pods are in no snapshot yet
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
    constexpr const char* expected =
        "a job (a dict, or the name of one of the cluster) or a list of names of pending tasks";
    if (!py::isinstance<py::iterable>(job)) bad_type("job", job, expected);
    JobToAdmit out{cluster, {}, false, {}};
    for (const auto& pod : job) {
        if (!py::isinstance<py::str>(pod)) bad_type("job", job, expected);
        out.pods.push_back(cluster->find_task(OptionType<std::string>::read("job", pod)));
    }
    return out;
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

}  // namespace

void bind_admission(py::module_& parent) {
    auto m = submodule(parent, "admission");
    using R = NamedAdmission;
    auto type = py::class_<R>(m, "Admission", "The answer of `admit`; true when the job is let in.");
    define_record(type);
    type.def("__bool__", [](const R& r) { return r.admitted; });
    const auto keywords =
        Keywords<AdmitArguments>()
            .fields<admission::Options>()
            .field("filter", &AdmitArguments::own_filter,
                   "Where tasks may go, on top of all constraints of the cluster: a name "
                   "(`filter_names`) or a callable (cluster, task, node), asked of the pods "
                   "and of whoever is displaced, with the snapshot as it is. None: "
                   "everywhere.")
            .field("progress", &AdmitArguments::progress, progress_text)
            .shared_as("admission.admit");
    const auto decide = [keywords](const char* name, const ClusterPtr& cluster, const py::object& job,
                                   const py::kwargs& given, bool moves_alone) {
        Problems problems;
        const auto in = job_to_admit(cluster, job);
        // Names become ids of the cluster that has the new pods: they shift those of the caller's.
        auto options = keywords.read(name, given, problems, in.cluster.get());
        if (moves_alone && given.contains("evictions") && py::object(given["evictions"]).ptr() == Py_True)
            problems.add("evictions: True; expected False: make_room moves tasks, and evicts nobody");
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
    };
    m.def(
        "admit",
        [decide](const ClusterPtr& cluster, const AdmittedJob& job, const py::kwargs& given) {
            return decide("admit", cluster, job, given, false);
        },
        py::arg("cluster"), py::arg("job"),
        keywords
            .documented(
                "admit(cluster, job",
                "Lets a job in at the least cost over all means together: an `Admission` with one plan.\n\n"
                "`job` is a job as for `allocate` (a dict, or the name of one of the cluster, whose pending "
                "tasks are "
                "meant), or a list of names of pending tasks. Where it does not fit, tasks are moved (make "
                "before "
                "break), evicted and placed again, or evicted, and LP tasks borrow what Standby tasks lend, "
                "as the "
                "prices say; who may be moved is as for `consolidate`, who may be evicted as for `preempt`. "
                "Costs are "
                "in GPU-seconds. The plan brings along the pods of a job given as a dict, so that "
                "`verify.plan(cluster, plan)` and `apply(cluster, plan)` know them, also from "
                "a file.")
            .c_str());
    m.def(
        "make_room",
        [decide](const ClusterPtr& cluster, const AdmittedJob& job,
                 const py::kwargs& given) -> Typed<"Plan | None"> {
            auto made = decide("make_room", cluster, job, given, true);
            if (!made.admitted) return py::none();
            return py::cast(std::move(made.plan));
        },
        py::arg("cluster"), py::arg("job"),
        keywords
            .documented("make_room(cluster, job",
                        "The plan of `admit` without evictions: moves that make room for all pods of a job, "
                        "and where these go. None where moves alone do not let the job in; `admit` says why.")
            .c_str());
}

}  // namespace gpusched::python
