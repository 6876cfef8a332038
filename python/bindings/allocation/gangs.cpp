// SPDX-License-Identifier: Apache-2.0
// The module gpusched.allocation: placement of jobs over switches.
#include "allocation/gangs.hpp"
#include "model/plan.hpp"
#include "model/task_argument.hpp"
#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/allocation/allocate_many.hpp>

#include <variant>

namespace gpusched::python {

namespace {

namespace a = allocation;
using Gpus = std::variant<std::int64_t, double>;

/// Placement of a job; see `allocate`.
struct NamedAllocation {
    /// Name of the job.
    std::string job;
    /// True if all pods are placed; otherwise none is.
    bool placed = false;
    /// Placements of the pods, in the order of the job; pods of a new job are named `<job>-0`, `<job>-1`, ...
    /// Empty unless placed.
    std::vector<PlanSpec::Placement> pods;
    /// Level of the entropy: an index, or "node".
    std::variant<std::int64_t, std::string> level;
    /// GPUs per used domain of `level`. A node of unknown position appears with its own name, with " (node)"
    /// appended if a domain has the same name.
    std::map<std::string, Gpus> per_domain;
    /// Entropy over GPUs (over pods if there are no GPUs), in nats.
    double entropy = 0;
    /// Traffic between domains, in the unit of `traffic`.
    double cross_traffic = 0;
    /// True if the result is proved optimal: the entropy is minimal (with traffic: no traffic crosses
    /// domains), or no placement exists. False if a limit ended the search, if the search may have missed a
    /// better result, or for Algorithm 2 unless its entropy is minimal.
    bool proven = false;
    /// The binding constraint if the job is not placed, such as "gpu"; otherwise "none".
    Obstacle obstacle{};
    /// The reason in words, with figures; empty if placed.
    std::string reason;
    /// The reason why the search ended. If a limit ended it, a job that is not placed may still have a
    /// placement.
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

/// Messages name each job of a list by its position.
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

/// Placements of several jobs; see `allocate_many`.
struct NamedJointAllocation {
    /// One `Allocation` per job, in the given order.
    std::vector<Typed<"Allocation">> jobs;
    /// Indices of the placed jobs. In this order, each is feasible after those before it, because a job may
    /// depend on another one being near.
    std::vector<int> order;
    /// Number of placed jobs.
    std::int64_t placed = 0;
    /// Mean entropy of the placed jobs in nats, weighted by their share of all jobs' GPUs.
    double entropy = 0;
    /// Traffic between domains of the placed jobs.
    double cross_traffic = 0;
    /// True if all jobs that fit alone are placed, each with the minimal entropy that it has alone.
    bool proven = false;
    /// Trials of the local search.
    std::int64_t trials = 0;
    /// The reason why the search ended.
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

/// Reads the job's description and the keywords. A keyword overrides the field of the same name.
struct AllocateArguments : a::AllocateOptions {
    /// Preferences at other levels: a list of {"level", "mode"}; None = as in the job's dict.
    Typed<"Sequence[Mapping[str, Any]] | None"> further_dicts = py::none();
    /// Traffic between groups of pods: a symmetric matrix; None = as in the job's dict. Groups of a job given
    /// by name are its pending pods with equal requests, in the order of their first pods.
    Typed<"Sequence[Sequence[float]] | None"> traffic_rows = py::none();
    ProgressLike progress = py::none();
};

Keywords<AllocateArguments> allocate_keywords() {
    using A = AllocateArguments;
    return Keywords<A>()
        .fields<a::AllocateOptions>()
        .field("further", &A::further_dicts, doc("python::AllocateArguments::further_dicts"))
        .field("traffic", &A::traffic_rows, doc("python::AllocateArguments::traffic_rows"))
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

/// Places several jobs, each completely or not at all. Returns a `JointAllocation`.
///
/// Maximises the number of placed jobs, then minimises the traffic between domains, then the entropy weighted
/// by GPUs. Starts with the jobs sorted by size and improves this result. `jobs`: as for `allocate`. The
/// cluster is not changed.
NamedJointAllocation allocate_many(const WithProgress<a::JointOptions>& o, const ClusterPtr& cluster,
                                   const Typed<"Iterable[Mapping[str, Any] | str]">& jobs) {
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
    NamedJointAllocation out{{},
                             {found.order.begin(), found.order.end()},
                             found.placed,
                             found.entropy,
                             found.cross_traffic,
                             found.proven,
                             found.trials,
                             found.stop_reason};
    for (std::size_t j = 0; j < arguments.size(); ++j)
        out.jobs.push_back(named_allocation(*with.cluster, arguments[j].name, found.jobs[j]));
    return out;
}

/// Places all pods of a job without moving or evicting tasks, or none. Returns an `Allocation`.
///
/// `job`: the name of a job of the cluster with pending tasks, or a dict with "name" and "pods", a list of
/// groups; a group is a task as in the cluster format with a "count". Optional keys: "min_members" and
/// "subgroups" (as in the cluster format; a group names its "subgroup"), "mode" ("required": one domain of
/// `level`, or not placed; "preferred", the default: minimal entropy), "level", "further" (a list of
/// {"level", "mode"} for other levels) and "traffic" (a symmetric matrix between groups; traffic between
/// domains is minimised).
///
/// Keywords override the dict. The cluster is not changed. A job given as a dict takes as long as building
/// the snapshot. See docs/allocation.md.
Typed<"Allocation"> allocate(const AllocateArguments& k, const ClusterPtr& cluster, const JobLike& job) {
    const auto argument = job_argument(job, cluster.get());
    const auto with = in_cluster(cluster, {argument});
    auto o = merged(argument.options, k);
    o.groups = with.jobs.front().groups;
    const auto found = Call(k.progress).run([&](const Context& context) {
        return a::allocate(*with.cluster, with.jobs.front().pods, o, context);
    });
    return named_allocation(*with.cluster, argument.name, found);
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
        // If a domain and a node of unknown position have the same name, the domain comes first.
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
    // For the console script, which reports the file of a job.
    m.def(
        "_require_job",
        [](const JobLike& job, const ClusterPtr& cluster) {
            static_cast<void>(job_argument(job, cluster.get()));
        },
        py::arg("job"), py::arg("cluster"));
    bind_record<NamedAllocation>(m, "Allocation");
    allocate_keywords().def(m, "allocate", &allocate, doc("python::allocate"), py::arg("cluster"),
                            py::arg("job"));
    bind_record<NamedJointAllocation>(m, "JointAllocation");
    keywords_with_progress<a::JointOptions>()
        .shared_as("allocation.allocate_many")
        .def(m, "allocate_many", &allocate_many, doc("python::allocate_many"), py::arg("cluster"),
             py::arg("jobs"));
    m.def(
        "with_job",
        [](const ClusterPtr& cluster, const py::Args<JobLike>& jobs) {
            return in_cluster(cluster, job_arguments(jobs, cluster)).cluster;
        },
        py::arg("cluster"),
        documented(
            "Returns the cluster with the pending pods of new jobs, for applying and verifying plans that "
            "place them.",
            "*jobs"));
    m.def(
        "pending_pods",
        [](const ClusterPtr& cluster, const std::string& job) {
            std::vector<std::string> names;
            for (const auto pod : a::pending_pods(*cluster, job)) names.push_back(cluster->name(pod));
            return names;
        },
        py::arg("cluster"), py::arg("job"),
        documented(doc("allocation::pending_pods") + "\n\nReturns their names."));
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
        documented("Returns the cluster with new tasks (dicts as in the cluster format), for applying and "
                   "verifying decisions about them.",
                   "*tasks"));
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
        documented("Returns the placements of these `Allocation`s as one `Plan`.", "*allocations"));
}

}  // namespace gpusched::python
