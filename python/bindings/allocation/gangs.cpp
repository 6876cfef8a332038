// gpusched.allocation: jobs over switches.
#include "allocation/gangs.hpp"
#include "model/plan.hpp"
#include "model/task_argument.hpp"
#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/allocation/allocate_many.hpp>

#include <map>
#include <optional>
#include <variant>

namespace gpusched::python {

namespace {

namespace a = allocation;
using Gpus = std::variant<std::int64_t, double>;

struct NamedAllocation {
    /// The job's name.
    std::string job;
    /// All pods have a place; none has otherwise.
    bool placed = false;
    /// Where the pods go, in the order of the job; pods of a new job are `<job>-0` and on. Empty unless placed.
    std::vector<PlanSpec::Placement> pods;
    /// Where the entropy is measured: an index, or "node".
    std::variant<std::int64_t, std::string> level;
    /// GPUs per domain of `level` that is used; a node of unknown position has its own name, with " (node)" behind
    /// it where a domain is called the same.
    std::map<std::string, Gpus> per_domain;
    /// over their GPUs (over pods where there is no GPU), in nats
    double entropy = 0;
    /// what crosses domains, in the unit of `traffic`
    double cross_traffic = 0;
    /// The best possible: the entropy is the least (with traffic: none crosses), or no placement exists. False
    /// where a search over several shapes hit a limit or may have missed a better spread, where one over group
    /// constraints across domains may have missed something, and for Algorithm 2 unless its entropy is the least.
    bool proven = false;
    /// Where it is not placed: what binds, such as "gpu"; else "none".
    Obstacle obstacle{};
    /// The same in words, with figures; empty when placed.
    std::string reason;
    /// Why the search ended: where a limit ended it, a job without a place may have one all the same.
    StopReason stop_reason{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedAllocation>, F&& field) {
    field("job", &NamedAllocation::job);
    field("placed", &NamedAllocation::placed);
    field("pods", &NamedAllocation::pods);
    field("level", &NamedAllocation::level);
    field("per_domain", &NamedAllocation::per_domain);
    field("entropy", &NamedAllocation::entropy);
    field("cross_traffic", &NamedAllocation::cross_traffic);
    field("proven", &NamedAllocation::proven);
    field("obstacle", &NamedAllocation::obstacle);
    field("reason", &NamedAllocation::reason);
    field("stop_reason", &NamedAllocation::stop_reason);
}

/// Each job of a list is called by its place in it.
std::vector<JobArgument> job_arguments(const py::iterable& jobs, const ClusterPtr& cluster) {
    std::vector<JobArgument> out;
    for (const auto& job : jobs)
        out.push_back(job_argument(py::reinterpret_borrow<py::object>(job), cluster.get(),
                                   "jobs[" + std::to_string(out.size()) + "]"));
    return out;
}

Gpus gpus_of(std::int64_t milli) {
    if (milli % 1000 == 0) return milli / 1000;
    return static_cast<double>(milli) / 1000;
}

struct NamedJointAllocation {
    /// An `Allocation` per job, in the order given.
    std::vector<Typed<"Allocation">> jobs;
    /// Indices of the placed jobs. In this order each is feasible while those before it stand: a job may want another one near.
    std::vector<int> order;
    /// How many jobs are placed.
    std::int64_t placed = 0;
    /// of the placed jobs, each weighed with its part of all jobs' GPUs; nats
    double entropy = 0;
    /// of the placed jobs
    double cross_traffic = 0;
    /// As many jobs are placed as have a place alone, each with the least entropy that it would have alone.
    bool proven = false;
    /// Trials of the local search.
    std::int64_t trials = 0;
    /// Why the search ended.
    StopReason stop_reason{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedJointAllocation>, F&& field) {
    field("jobs", &NamedJointAllocation::jobs);
    field("order", &NamedJointAllocation::order);
    field("placed", &NamedJointAllocation::placed);
    field("entropy", &NamedJointAllocation::entropy);
    field("cross_traffic", &NamedJointAllocation::cross_traffic);
    field("proven", &NamedJointAllocation::proven);
    field("trials", &NamedJointAllocation::trials);
    field("stop_reason", &NamedJointAllocation::stop_reason);
}

/// What the job's own description and the keywords say; a field that both name follows the keyword.
struct AllocateArguments : a::AllocateOptions {
    Typed<"Sequence[Mapping[str, Any]] | None"> further_dicts = py::none();
    Typed<"Sequence[Sequence[float]] | None"> traffic_rows = py::none();
    ProgressLike progress = py::none();
};

Keywords<AllocateArguments> allocate_keywords() {
    using A = AllocateArguments;
    return Keywords<A>()
        .fields<a::AllocateOptions>()
        .field("further", &A::further_dicts,
               "Wishes at other levels, a list of {\"level\", \"mode\"}; None = those of the job's dict.")
        .field("traffic", &A::traffic_rows,
               "Traffic between groups of pods, a symmetric matrix; None = that of the job's dict. The "
               "groups of a job by "
               "name are its pending pods that ask for the same, in the order of their first pods.")
        .field("progress", &A::progress, progress_text)
        .shared_as("allocation.allocate");
}

a::AllocateOptions merged(a::AllocateOptions own, const AllocateArguments& keywords) {
    own.policy = keywords.policy;
    if (keywords.level) own.level = keywords.level;
    if (keywords.mode) own.mode = keywords.mode;
    own.time_limit = keywords.time_limit;
    Problems problems;
    if (!keywords.further_dicts.is_none())
        collect(problems, [&] { own.further = further_levels(keywords.further_dicts); });
    if (!keywords.traffic_rows.is_none())
        collect(problems, [&] { own.traffic = TrafficMatrix::read("traffic", keywords.traffic_rows); });
    problems.throw_if_any();
    return own;
}

void bind_joint(py::module_& m) {
    using J = NamedJointAllocation;
    auto result =
        py::class_<J>(m, "JointAllocation", "Where the pods of several jobs go; see `allocate_many`.");
    define_record(result);
    using O = a::JointOptions;
    struct WithProgress : O {
        ProgressLike progress = py::none();
    };
    const auto options = Keywords<WithProgress>()
                             .fields<O>()
                             .field("progress", &WithProgress::progress, progress_text)
                             .shared_as("allocation.allocate_many");
    m.def(
        "allocate_many",
        [options](const ClusterPtr& cluster, const Typed<"Iterable[Mapping[str, Any] | str]">& jobs,
                  const py::kwargs& keywords) {
            const auto o = options.read("allocate_many", keywords);
            require_list("jobs", jobs, "a list of jobs, each a dict or the name of a job of the cluster");
            const auto arguments = job_arguments(jobs, cluster);
            const auto with = in_cluster(cluster, arguments);
            std::vector<a::GangRequest> requests;
            for (std::size_t j = 0; j < arguments.size(); ++j) {
                requests.push_back({with.jobs[j].pods, arguments[j].options});
                requests.back().options.groups = with.jobs[j].groups;
            }
            const auto found = Call(o.progress).run([&](const Context& context) {
                return a::allocate_many(*with.cluster, requests, o, context);
            });
            J out{{},
                  std::vector<int>(found.order.begin(), found.order.end()),
                  found.placed,
                  found.entropy,
                  found.cross_traffic,
                  found.proven,
                  found.trials,
                  found.stop_reason};
            for (std::size_t j = 0; j < arguments.size(); ++j)
                out.jobs.push_back(named_allocation(*with.cluster, arguments[j].name, found.jobs[j]));
            return out;
        },
        py::arg("cluster"), py::arg("jobs"),
        options
            .documented(
                "allocate_many(cluster, jobs",
                "Where the pods of several jobs go, each job whole or not at all: a `JointAllocation`.\n\n"
                "Places the most jobs it can, then with the least traffic across domains, then with the "
                "least entropy, each job's weighed with its GPUs. Jobs are what `allocate` takes. Starts "
                "from "
                "the jobs sorted by size and only improves on that. The cluster is not changed.")
            .c_str());
}

}  // namespace

py::object named_allocation(const Cluster& cluster, const std::string& job, const a::Allocation& found) {
    NamedAllocation out;
    out.job = job;
    out.placed = found.placed;
    out.pods = named_placements(cluster, found.pods);
    if (found.level == node_level)
        out.level = std::string("node");
    else
        out.level = std::int64_t{found.level};
    for (const auto& share : found.per_domain) {
        // A node of unknown position may be called as a domain is, which comes first.
        auto domain = cluster.inventory().domain_name(found.level, share.domain);
        while (!out.per_domain.emplace(domain, gpus_of(share.gpu_milli)).second) domain += " (node)";
    }
    out.entropy = found.entropy;
    out.cross_traffic = found.cross_traffic;
    out.proven = found.proven;
    out.obstacle = found.obstacle;
    out.reason = found.reason;
    out.stop_reason = found.stop_reason;
    return py::cast(std::move(out));
}

void bind_gangs(py::module_& m) {
    // For the console script, which says in which file a job is wrong.
    m.def(
        "_require_job",
        [](const JobLike& job, const ClusterPtr& cluster) {
            static_cast<void>(job_argument(job, cluster.get()));
        },
        py::arg("job"), py::arg("cluster"));
    using A = NamedAllocation;
    auto result = py::class_<A>(m, "Allocation", "Where the pods of a job go; see `allocate`.");
    define_record(result);
    const auto options = allocate_keywords();
    m.def(
        "allocate",
        [options](const ClusterPtr& cluster, const JobLike& job,
                  const py::kwargs& keywords) -> Typed<"Allocation"> {
            const auto k = options.read("allocate", keywords);
            const auto argument = job_argument(job, cluster.get());
            const auto with = in_cluster(cluster, {argument});
            auto o = merged(argument.options, k);
            o.groups = with.jobs.front().groups;
            const auto found = Call(k.progress).run([&](const Context& context) {
                return a::allocate(*with.cluster, with.jobs.front().pods, o, context);
            });
            return named_allocation(*with.cluster, argument.name, found);
        },
        py::arg("cluster"), py::arg("job"),
        options
            .documented(
                "allocate(cluster, job",
                "Where all pods of a job go, all or none, without moving or evicting anybody: an "
                "`Allocation`.\n\n"
                "`job` is a dict: \"name\"; \"pods\", a list of groups, each a task as in the cluster format "
                "with a \"count\"; and, if wanted, \"min_members\" and \"subgroups\" as a job of that format "
                "has "
                "them (a group says its \"subgroup\"), \"mode\" (\"required\": one domain of `level`, or not "
                "placed; \"preferred\", the default: least entropy), \"level\", \"further\" (a list of "
                "{\"level\", \"mode\"} for other levels) and \"traffic\" (a symmetric matrix between groups, "
                "of which as little as possible crosses domains). Or it is the name of a job of the cluster, "
                "whose pending tasks are placed; their own `network_affinity` binds. Keywords win over the "
                "dict. The cluster is not changed; a job given as a dict costs as much as building the "
                "snapshot again. See docs/allocation.md for the rules.")
            .c_str());
    bind_joint(m);
    m.def(
        "with_job",
        [](const ClusterPtr& cluster, const py::Args<JobLike>& jobs) {
            return in_cluster(cluster, job_arguments(jobs, cluster)).cluster;
        },
        py::arg("cluster"),
        documented("with_job(cluster, *jobs)", "The cluster with the pods of new jobs, pending: what plans "
                                               "that place the jobs are applied to and checked against.")
            .c_str());
    m.def(
        "pending_pods",
        [](const ClusterPtr& cluster, const std::string& job) {
            std::vector<std::string> names;
            for (const auto pod : a::pending_pods(*cluster, job)) names.push_back(cluster->name(pod));
            return names;
        },
        py::arg("cluster"), py::arg("job"),
        documented("pending_pods(cluster, job)", "The names of a job's pending tasks, in snapshot order.")
            .c_str());
    m.def(
        "with_task",
        [](const ClusterPtr& cluster, const py::Args<Typed<"Mapping[str, Any]">>& tasks) {
            std::vector<TaskSpec> fresh;
            for (const auto& task : tasks) {
                if (!is_mapping(task)) bad_type("task", task, "a dict");
                fresh.push_back(task_spec(task, cluster.get()));
            }
            return with_tasks(cluster, std::move(fresh));
        },
        py::arg("cluster"),
        documented(
            "with_task(cluster, *tasks)",
            "The cluster with new tasks, dicts as in the cluster format: what decisions about them are "
            "applied to and checked against.")
            .c_str());
    m.def(
        "to_plan",
        [](const py::Args<NamedAllocation>& found) {
            NamedPlan plan;
            for (std::size_t i = 0; i < found.size(); ++i) {
                const py::handle one = found[i];
                if (!py::isinstance<NamedAllocation>(one))
                    bad_type("allocations[" + std::to_string(i) + "]", one, "an Allocation");
                for (const auto& pod : one.cast<const NamedAllocation&>().pods)
                    plan.spec.placements.push_back(pod);
            }
            return plan;
        },
        documented("to_plan(*allocations)", "The placements of these `Allocation`s as one `Plan`.").c_str());
}

}  // namespace gpusched::python
