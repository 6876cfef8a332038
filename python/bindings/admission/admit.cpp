// gpusched.admission.
#include "allocation/gangs.hpp"
#include "core/call.hpp"
#include "core/keywords.hpp"
#include "core/records.hpp"
#include "model/plan.hpp"
#include "preemption/preemption.hpp"

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
    /// What the plan costs, in GPU-seconds: "moves", "lost_work", "restarts", "losses", "tasks", "recalls", "budgets", and "total".
    std::map<std::string, double> cost;
    /// No way of letting the job in costs less, in GPU-seconds; None: there is no way at all.
    std::optional<double> lower_bound;
    /// The plan costs no more than the lower bound; without a plan: there is no way.
    bool proven = false;
    /// Where the pods go, in the order of the job; empty unless admitted.
    std::vector<PlanSpec::Placement> pods;
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
    field("lower_bound", &NamedAdmission::lower_bound);
    field("proven", &NamedAdmission::proven);
    field("pods", &NamedAdmission::pods);
    field("lost", &NamedAdmission::lost);
    field("broken_budgets", &NamedAdmission::broken_budgets);
    field("obstacle", &NamedAdmission::obstacle);
    field("reason", &NamedAdmission::reason);
    field("stats", &NamedAdmission::stats);
    field("stop_reason", &NamedAdmission::stop_reason);
}

using AdmittedJob = Typed<"Mapping[str, Any] | str | Iterable[str]">;

struct AdmitArguments : admission::Options {
    ProgressLike progress = py::none();
};

struct JobToAdmit {
    ClusterPtr cluster{};
    std::vector<TaskId> pods{};
    bool is_new = false;  // its pods are in no snapshot yet
    allocation::AllocateOptions options{};
};

JobToAdmit job_to_admit(const ClusterPtr& cluster, const py::object& job) {
    if (py::isinstance<py::str>(job) || py::isinstance<py::dict>(job)) {
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
    if (job.is_new && made.admitted) out.plan.brought = Brought(cluster, job.pods);
    visit_fields(std::type_identity<admission::Cost>{}, [&](const char* name, auto member, const auto&...) {
        out.cost[name] = static_cast<double>(made.cost.*member) / 1000;
    });
    out.cost["total"] = static_cast<double>(made.cost.total()) / 1000;
    out.plan.spec.stats = out.cost;
    if (made.lower_bound) out.lower_bound = static_cast<double>(*made.lower_bound) / 1000;
    out.proven = made.proven;
    out.pods = named_placements(cluster, made.pods);
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
    const auto keywords = Keywords<AdmitArguments>()
                              .fields<admission::Options>()
                              .field("progress", &AdmitArguments::progress, progress_text)
                              .shared_as("admission.admit");
    m.def(
        "admit",
        [keywords](const ClusterPtr& cluster, const AdmittedJob& job, const py::kwargs& given) {
            Problems problems;
            const auto in = job_to_admit(cluster, job);
            // Names become ids of the cluster that has the new pods: they shift those of the caller's.
            auto options = keywords.read("admit", given, problems, in.cluster.get());
            collect(problems, [&] { admission::validate(options, *in.cluster); });
            problems.throw_if_any();
            if (!options.level) options.level = in.options.level;
            if (!options.mode) options.mode = in.options.mode;
            return Call(options.progress).run([&](const Context& context) {
                return named_admission(in, admission::admit(*in.cluster, in.pods, options, context));
            });
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
                "`verify.plan(cluster, plan)` and `apply(cluster, plan)` know them; a file of it does not, "
                "and goes with `allocation.with_job(cluster, job)`.")
            .c_str());
}

}  // namespace gpusched::python
