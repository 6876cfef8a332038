// SPDX-License-Identifier: Apache-2.0
// The module gpusched.preemption: preemption for gangs, and decisions as plans.
#include "allocation/gangs.hpp"
#include "model/named.hpp"
#include "model/plan.hpp"
#include "preemption/preemption.hpp"
#include "support/call.hpp"
#include "support/records.hpp"

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/model/waiting.hpp>
#include <gpusched/preemption/preempt_gang.hpp>

#include <variant>

namespace gpusched::python {

namespace {

namespace p = preemption;

/// Placements of all pods of a gang, and the tasks to evict for them.
struct NamedGangDecision {
    /// One `Decision` per pod, with the victims that this pod adds.
    std::vector<NamedDecision> pods;
    /// Victims of all pods, in snapshot order.
    std::vector<std::string> victims;
    /// Nodes that keep only daemons, in snapshot order.
    std::vector<std::string> vacated_nodes;
    /// Tasks down beyond the limit of each disruption budget, by name; empty unless `break_budgets` is set.
    std::map<std::string, std::int64_t> broken_budgets;
    /// New placements of victims, in this order; empty unless `replace_victims` is set.
    std::vector<PlanSpec::Placement> replaced;
    /// Number of gangs that stop completely, counting tasks without a job.
    std::int64_t lost_gangs = 0;
    /// Lost work in GPU-seconds.
    double cost = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedGangDecision>, F&& field) {
    field("pods", &NamedGangDecision::pods);
    field("victims", &NamedGangDecision::victims);
    field("vacated_nodes", &NamedGangDecision::vacated_nodes);
    field("broken_budgets", &NamedGangDecision::broken_budgets);
    field("replaced", &NamedGangDecision::replaced);
    field("lost_gangs", &NamedGangDecision::lost_gangs);
    field("cost", &NamedGangDecision::cost);
}

using GangLike = Typed<"Mapping[str, Any] | str | Task | Iterable[str | Task]">;

struct GangOptions : DecisionArguments {
    /// First criterion for comparing domains: "cost", least lost work, or "lost_gangs", fewest gangs that lose
    /// their work.
    p::GangObjective objective = p::GangObjective::cost;
};

/// A gang: its pods, and a snapshot that contains them.
struct GangInCluster {
    ClusterPtr cluster{};
    std::vector<TaskId> pods{};
};

/// The job's preferences about the network become part of its pods.
void require_level(JobArgument& job, const Cluster& cluster) {
    auto& options = job.options;
    if (!options.further.empty() || !options.traffic.empty())
        throw InvalidInput("job: further and traffic are not supported with evictions; expected neither");
    const auto level = options.level.value_or(cluster.inventory().deepest_level());
    if (options.mode != NetworkMode::required) return;
    for (auto& group : job.request.pods)
        group.pod.network_affinity = NetworkAffinity{level, NetworkMode::required};
}

GangInCluster gang_argument(const ClusterPtr& cluster, const py::object& given) {
    GangInCluster out{cluster};
    const auto pods = names_of(given);
    if (py::isinstance<py::str>(pods) || is_mapping(pods)) {
        auto job = job_argument(pods, cluster.get());
        require_level(job, *cluster);
        auto with = in_cluster(cluster, {job});
        out.cluster = with.cluster;
        out.pods = std::move(with.jobs.front().pods);
        return out;
    }
    out.pods = pending_pods_argument("pods", pods, *cluster);
    return out;
}

/// Finds space for all pods of a gang, with evictions if necessary. Returns a `GangDecision`, or None if a pod
/// cannot be placed; no task is evicted then.
///
/// The pods go into one domain of the network level that they require ("mode": "required" of a dict,
/// `network_affinity` of tasks); if members already run, into their domain. The policy chooses the node of each
/// pod exactly; the whole is a heuristic. The cluster is not changed; `allocation.with_job` returns the cluster
/// with the pods of a dict.
///
/// `pods`: a job as for `allocate` (a dict, or the name of a job of the cluster), or a list of names of pending
/// tasks.
std::optional<NamedGangDecision> preempt_gang(GangOptions o, const ClusterPtr& cluster,
                                              const GangLike& pods) {
    const auto gang = gang_argument(cluster, pods);
    use_functions(o, gang.cluster);
    const auto found = Call().run([&](const Context& context) {
        return p::preempt_gang(*gang.cluster, gang.pods, o, o.objective, context);
    });
    if (!found.decision) {
        if (!found.proven) warn_of_limit(found.stop_reason, "evictions may still help");
        return std::nullopt;
    }
    const auto& decision = *found.decision;
    NamedGangDecision out;
    for (std::size_t i = 0; i < gang.pods.size(); ++i)
        out.pods.push_back(named_decision(*gang.cluster, gang.pods[i], decision.pods[i], found.proven));
    out.victims = with_names(*gang.cluster, decision.victims);
    out.vacated_nodes = with_names(*gang.cluster, decision.vacated_nodes);
    out.broken_budgets = named_budgets(*gang.cluster, decision.broken_budgets);
    out.replaced = named_placements(*gang.cluster, decision.replaced);
    out.lost_gangs = decision.lost_gangs;
    out.cost = static_cast<double>(decision.cost) / 1000;
    return out;
}

/// Explains in words why `preempt_gang` finds nothing: the closest domain, and the pod that does not fit there;
/// or why the pods do not wait for room. Returns an empty text if it finds something.
std::string explain_gang(GangOptions o, const ClusterPtr& cluster, const GangLike& pods) {
    const auto gang = gang_argument(cluster, pods);
    use_functions(o, gang.cluster);
    return Call().run([&](const Context& context) {
        return p::preempt_gang(*gang.cluster, gang.pods, o, o.objective, context).reason;
    });
}

}  // namespace

void bind_preempt_gang(py::module_& m) {
    bind_record<NamedGangDecision>(m, "GangDecision");
    const auto options = decision_options<GangOptions>().field("objective", &GangOptions::objective);
    options.shared_as("preemption.preempt_gang")
        .def(m, "preempt_gang", &preempt_gang, doc("python::preempt_gang"), py::arg("cluster"),
             py::arg("pods"));
    options.def(m, "explain_gang", &explain_gang, doc("python::explain_gang"), py::arg("cluster"),
                py::arg("pods"));
    m.def(
        "_waits_for_room",
        [](const ClusterPtr& cluster, const GangLike& pods) {
            const auto gang = gang_argument(cluster, pods);
            return !find_waiting(*gang.cluster, gang.pods);
        },
        py::arg("cluster"), py::arg("pods"), "Returns False if the pods wait for something else.");
    m.def(
        "to_plan",
        [](const std::variant<NamedDecision, NamedGangDecision>& decision) {
            NamedPlan plan;
            if (const auto* one = std::get_if<NamedDecision>(&decision)) {
                plan.spec.evictions = one->victims;
                plan.spec.placements.push_back({one->task, one->node, one->gpus});
                const auto& again = one->replaced;
                plan.spec.placements.insert(plan.spec.placements.end(), again.begin(), again.end());
                plan.spec.vacated_nodes = one->vacated_nodes;
                return plan;
            }
            const auto& gang = std::get<NamedGangDecision>(decision);
            plan.spec.evictions = gang.victims;
            plan.spec.vacated_nodes = gang.vacated_nodes;
            for (const auto& pod : gang.pods) plan.spec.placements.push_back({pod.task, pod.node, pod.gpus});
            plan.spec.placements.insert(plan.spec.placements.end(), gang.replaced.begin(),
                                        gang.replaced.end());
            return plan;
        },
        py::arg("decision"),
        documented(
            "Returns a `Decision` or `GangDecision` as a plan: evictions, then placements, with restarted "
            "victims last."));
}

}  // namespace gpusched::python
