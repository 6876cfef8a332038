// SPDX-License-Identifier: Apache-2.0
// The module gpusched.io.
#include "model/cluster_views.hpp"
#include "model/plan.hpp"
#include "model/trace.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"

#include <gpusched/io/anonymize.hpp>
#include <gpusched/io/openb.hpp>
#include <gpusched/io/plan_export.hpp>

#include <set>
#include <string>
#include <utility>

namespace gpusched::python {

// The parts of the module in other files.
void bind_readings(py::module_& m);
void bind_clusters(py::module_& m);

/// The plan without the starts of tasks that it adds: a script makes room for them, but cannot wait for them.
static PlanSpec plan_for_script(const py::object& plan) {
    auto named = named_plan(plan);
    std::set<std::string> added;
    for (const auto& task : named.brought.tasks) added.insert(task.name);
    std::erase_if(named.spec.placements,
                  [&](const auto& placement) { return added.contains(placement.task); });
    return std::move(named.spec);
}

void bind_io(py::module_& parent) {
    auto m = submodule(parent, "io");
    Keywords<io::OpenbOptions>().fields().def(
        m, "read_openb",
        [](const io::OpenbOptions& options, const PathLike& node_csv, const PathLike& pod_csv) {
            const auto nodes = path_text(node_csv, "node_csv"), pods = path_text(pod_csv, "pod_csv");
            return unlocked([&] {
                return std::make_shared<NamedTrace>(NamedTrace{io::read_openb(nodes, pods, options), {}, {}});
            });
        },
        doc("io::read_openb"), py::arg("node_csv"), py::arg("pod_csv"));
    m.def(
        "anonymize",
        [](const ClusterPtr& cluster, const Integer& seed) {
            const auto number = OptionType<std::uint64_t>::read("seed", seed);
            return unlocked([&] {
                return std::make_shared<Cluster>(Cluster::build(io::anonymize(cluster->to_spec(), number)));
            });
        },
        py::arg("cluster"), py::kw_only(), py::arg("seed") = 0, documented(doc("io::anonymize")));
    m.def(
        "plan_to_csv", [](const PlanLike& plan) { return io::plan_to_csv(plan_argument(plan)); },
        py::arg("plan"), documented(doc("io::plan_to_csv")));

    using K = io::KubernetesStepsOptions;
    const auto kubernetes = Keywords<K>().fields().shared_as("io.plan_to_kubernetes_steps");
    m.def(
        "plan_to_kubernetes_steps",
        [kubernetes](const PlanLike& plan, const py::kwargs& keywords) {
            return io::plan_to_kubernetes_steps(plan_for_script(plan),
                                                kubernetes.read("plan_to_kubernetes_steps", keywords));
        },
        py::arg("plan"), kubernetes.documented(doc("io::plan_to_kubernetes_steps")));

    m.def(
        "plan_to_slurm_steps",
        [](const PlanLike& plan, const ClusterPtr& cluster) {
            return io::plan_to_slurm_steps(plan_for_script(plan), cluster->to_spec());
        },
        py::arg("plan"), py::arg("cluster"), documented(doc("io::plan_to_slurm_steps")));

    using J = io::KoordinatorOptions;
    const auto koordinator = Keywords<J>().fields().shared_as("io.plan_to_pod_migration_jobs");
    m.def(
        "plan_to_pod_migration_jobs",
        [koordinator](const PlanLike& plan, const ClusterPtr& cluster, const py::kwargs& keywords) {
            return io::plan_to_pod_migration_jobs(plan_argument(plan), cluster->to_spec(),
                                                  koordinator.read("plan_to_pod_migration_jobs", keywords));
        },
        py::arg("plan"), py::arg("cluster"), koordinator.documented(doc("io::plan_to_pod_migration_jobs")));
    bind_readings(m);
    bind_clusters(m);
}

}  // namespace gpusched::python
