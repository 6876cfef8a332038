// SPDX-License-Identifier: Apache-2.0
// The module gpusched.allocation: placement of one task.
#include "allocation/gangs.hpp"
#include "allocation/python_policies.hpp"
#include "fragmentation/fragmentation.hpp"
#include "model/cluster_views.hpp"
#include "model/task_argument.hpp"
#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"
#include "support/python_function.hpp"

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/slowdown.hpp>
#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/model/feasibility.hpp>

#include <array>

namespace gpusched::python {

// The parts of the module in other files.
void bind_gangs(py::module_& m);

ClusterPtr with_tasks(const ClusterPtr& cluster, std::vector<TaskSpec> tasks) {
    return unlocked([&] {
        auto spec = cluster->to_spec();
        for (auto& task : tasks) spec.tasks.push_back(std::move(task));
        return std::make_shared<Cluster>(Cluster::build(spec));
    });
}

std::pair<ClusterPtr, TaskId> task_argument(const ClusterPtr& cluster, const py::object& task) {
    if (py::isinstance<py::str>(task))
        return {cluster, cluster->find_task(OptionType<std::string>::read("task", task))};
    if (py::isinstance<TaskView>(task)) {
        const auto& view = task.cast<const TaskView&>();
        if (view.cluster != cluster)
            throw InvalidInput(bad_value("task", repr_text(task), "a task of this cluster"));
        return {cluster, view.id};
    }
    if (!is_mapping(task)) bad_type("task", task, "a dict, the name of a pending task, or a Task");
    auto fresh = task_spec(task, cluster.get());
    const auto name = fresh.name;
    auto with_task = with_tasks(cluster, {std::move(fresh)});
    const auto id = with_task->find_task(name);
    return {std::move(with_task), id};
}

namespace {

namespace a = allocation;

struct ObstaclesArguments {
    /// For a running task: it "stays" and holds its resources until the new copy runs, or it "leaves" first.
    a::OldCopy old_copy = a::OldCopy::stays;
};

/// Policies: names, or Python functions.
struct PlaceArguments {
    /// Rankers in order of precedence; each breaks the ties of the ones before. Names (`ranker_names`) or
    /// callables (cluster, task, node) -> integer; at least one.
    std::vector<RankerChoice> rankers{py::str("packing"), py::str("homogeneous"),
                                      py::str("eviction_history")};
    /// Filters that a node must pass. Names (`filter_names`) or callables (cluster, task, node) -> bool.
    std::vector<FilterChoice> filters;
    /// Chooses the GPUs of the node: a name (`gpu_picker_names`), a `ByLinks`, or a callable
    /// (cluster, task, node) -> list of GPUs.
    Typed<"str | ByLinks | Callable[[Cluster, Task, Node], Sequence[int]]"> gpu_picker =
        py::str(a::PlaceOptions{}.gpu_picker);
    /// Expected workload of "fgd" and "expected_fill": a `fragmentation.Workload` or a source of one. None:
    /// the tasks of the cluster, which takes O(tasks) per call.
    Typed<"Workload | Trace | Cluster | Sequence[Mapping[str, Any]] | None"> workload = py::none();
    std::uint64_t seed = 0;

    [[nodiscard]] bool any_python() const {
        const auto python = [](const py::object& policy) {
            return !py::isinstance<py::str>(policy) && !py::isinstance<a::ByLinks>(policy);
        };
        return std::any_of(rankers.begin(), rankers.end(), python) ||
               std::any_of(filters.begin(), filters.end(), python) || python(gpu_picker);
    }
};

struct PythonPicker : PythonPolicy {
    GpuMask operator()(const Cluster& c, TaskId task, NodeId node) const {
        const auto answer = ask(task, node);
        const auto about = answer_about(task, node);
        GpuMask mask = 0;
        for (const int gpu : OptionType<std::vector<int>>::read(about, answer)) {
            if (gpu < 0 || gpu >= c.gpu_count(node)) bad_option(about, answer, "GPUs of the node");
            mask = static_cast<GpuMask>(mask | gpu_bit(gpu));
        }
        if (!gpus_fit(c, task, node, mask | free_devices_for(c, task, node)))
            bad_option(about, answer, "GPUs of the node that are free for the task");
        return mask;
    }
};

/// Chooses a node for one task without moving or evicting tasks: (node, gpus), or None.
///
/// `task`: a dict as in the cluster format, or a pending task of the cluster (its name or `Task`).
///
/// Feasible nodes that pass the filters are ranked; remaining ties go to the first node of the cluster. The
/// default is ASI's non-preemptive scheduling. The cluster is not changed. A task given as a dict takes as
/// long as building the snapshot.
Typed<"tuple[str, list[int]] | None"> place(const PlaceArguments& arguments, const ClusterPtr& cluster,
                                            const TaskLike& task) {
    if (arguments.rankers.empty()) throw InvalidInput(bad_value("rankers", "0 entries", "at least 1"));
    const auto [with_task, id] = task_argument(cluster, task);
    if (with_task->is_placed(id))
        throw InvalidInput(bad_value("task", gpusched::quoted(with_task->name(id)),
                                     "a pending task; this one runs on node " +
                                         gpusched::quoted(with_task->name(with_task->node_of(id)))));
    const auto& inventory = with_task->inventory();
    const auto workload_of = [&, c = with_task](const auto& registry, std::string_view name) {
        if (!registry.expects_workload(name)) return fragmentation::Workload{};
        return arguments.workload.is_none()
                   ? fragmentation::typical_workload(*c, registry.workload_options(name))
                   : workload_argument(arguments.workload);
    };
    a::RankerList rankers;
    for (const auto& ranker : arguments.rankers)
        rankers.rankers.push_back(policy<a::AnyRanker, PythonRanker>(
            "rankers", function_name("rankers", rankers.rankers.size(), ranker), ranker, with_task,
            [&](const std::string& name) {
                return a::rankers().make(name, inventory, workload_of(a::rankers(), name));
            }));
    a::FilterList filters;
    for (const auto& filter : arguments.filters)
        filters.filters.push_back(chosen_filter(
            "filters", function_name("filters", filters.filters.size(), filter), filter, with_task));
    const auto picker =
        py::isinstance<a::ByLinks>(arguments.gpu_picker)
            ? a::AnyGpuPicker(arguments.gpu_picker.cast<a::ByLinks>())
            : policy<a::AnyGpuPicker, PythonPicker>(
                  "gpu_picker", "gpu_picker", arguments.gpu_picker, with_task, [&](const std::string& name) {
                      return a::gpu_pickers().make(name, inventory, workload_of(a::gpu_pickers(), name));
                  });

    const auto search = [&, c = with_task, t = id] {
        Rng rng(arguments.seed);
        return a::place(*c, t, rankers, picker, rng, filters);
    };
    const auto found = arguments.any_python() ? search() : unlocked(search);
    if (!found) return py::none();
    return py::make_tuple(with_task->name(found->node), gpu_list(found->gpus));
}

/// Reads machines by name from a dict of graphs.
std::map<std::string, topology::HardwareGraph> graphs_by_name(const char* field, const py::object& value,
                                                              Problems& problems) {
    std::map<std::string, topology::HardwareGraph> out;
    collect(problems, [&] {
        if (!is_mapping(value)) bad_option(field, value, "a dict from names to HardwareGraphs");
        for (const auto& [key, graph] : py::dict(value)) {
            const auto name = OptionType<std::string>::read(std::string(field) + ", a key", key);
            if (!py::isinstance<topology::HardwareGraph>(graph))
                bad_option(std::string(field) + "[" + gpusched::quoted(name) + "]", graph, "a HardwareGraph");
            out.emplace(name, graph.cast<const topology::HardwareGraph&>());
        }
    });
    return out;
}

using Graphs = Typed<"Mapping[str, HardwareGraph]">;

/// A `gpu_picker` for `place` that prefers well-connected GPUs.
///
/// `by_gpu_model`, `by_node`: dicts from GPU models and from nodes to `gpusched.topology.HardwareGraph`s; a
/// node's own graph takes precedence. Holders and failures of GPUs are read from the cluster, not from the
/// graphs.
a::ByLinks make_by_links(const ClusterPtr& cluster, const Graphs& by_gpu_model, const Graphs& by_node) {
    Problems problems;
    a::MachineGraphs machines{graphs_by_name("by_gpu_model", by_gpu_model, problems),
                              graphs_by_name("by_node", by_node, problems)};
    problems.throw_if_any();
    return a::ByLinks(cluster->inventory(), std::move(machines));
}

void bind_by_links(py::module_& m) {
    py::class_<a::ByLinks>(m, "ByLinks", doc("allocation::ByLinks"))
        .def(py::init(&make_by_links), py::arg("cluster"), py::kw_only(),
             py::arg("by_gpu_model") = py::dict(), py::arg("by_node") = py::dict(),
             documented(doc("python::make_by_links")))
        .def("__repr__", [](const a::ByLinks&) { return "<gpusched.allocation.ByLinks>"; })
        .def("__copy__", [](const a::ByLinks& p) { return p; })
        .def(
            "__deepcopy__", [](const a::ByLinks& p, const py::dict&) { return p; }, py::arg("memo"));
}

void bind_switch_counts(py::module_& m) {
    using Counts = OptionType<std::vector<std::int64_t>>;
    m.def(
        "entropy_greedy",
        [](const Typed<"Iterable[int]">& capacity, const Integer& pods) {
            return a::entropy_greedy(Counts::read("capacity", capacity),
                                     OptionType<std::int64_t>::read("pods", pods));
        },
        py::arg("capacity"), py::arg("pods"), documented(doc("allocation::entropy_greedy")));
    m.def(
        "least_entropy",
        [](const Typed<"Iterable[int]">& capacity, const Integer& pods,
           const Typed<"Iterable[Iterable[int]]">& groups) {
            return a::least_entropy(
                Counts::read("capacity", capacity), OptionType<std::int64_t>::read("pods", pods),
                OptionType<std::vector<std::vector<std::uint32_t>>>::read("groups", groups));
        },
        py::arg("capacity"), py::arg("pods"), py::arg("groups") = py::list(),
        documented(
            doc("allocation::least_entropy") +
            "\n\n`groups`: for each further level, the most important first, the group of every switch. "
            "Ties are broken by the entropy over these groups."));
}

void bind_slowdown(py::module_& m) {
    using Pairs = Typed<"Iterable[tuple[float, float]]">;
    m.def(
        "fit_slowdown",
        [](const Pairs& observations, const Integer& values) {
            std::vector<a::SlowdownObservation> seen;
            for (const auto& [held, slowdown] :
                 OptionType<std::vector<std::array<double, 2>>>::read("observations", observations))
                seen.push_back({held, slowdown});
            const auto count = OptionType<int>::read("values", values);
            return unlocked([&] { return a::fit_slowdown(seen, count).milli; });
        },
        py::arg("observations"), py::arg("values") = 1,
        documented(
            doc("allocation::fit_slowdown") +
            "\n\n`observations`: pairs of the share that neighbours held, 0 to 1, and the relative "
            "slowdown of the work (0.1 = 10 %). Returns thousandths at 1/n, 2/n, ... of n values, as for "
            "`sim.replay_spot`."));
}

template <class Names>
Strings name_list(Names names) {
    py::list list;
    for (const auto& name : names) list.append(py::str(std::string(name)));
    return list;
}

}  // namespace

void bind_allocation(py::module_& parent) {
    auto m = submodule(parent, "allocation");
    m.def(
        "ranker_names", [] { return name_list(a::rankers().names()); },
        documented("Names of the rankers for `place`."));
    m.def(
        "filter_names", [] { return name_list(a::filters().names()); },
        documented("Names of the node filters for `place`."));
    m.def(
        "gpu_picker_names", [] { return name_list(a::gpu_pickers().names()); },
        documented("Names of the GPU pickers for `place`."));
    m.def(
        "placement_names", [] { return name_list(a::placements().names()); },
        documented(doc("allocation::placements")));

    Keywords<PlaceArguments>()
        .field("rankers", &PlaceArguments::rankers)
        .field("filters", &PlaceArguments::filters)
        .field("gpu_picker", &PlaceArguments::gpu_picker)
        .field("seed", &PlaceArguments::seed, doc("allocation::PlaceOptions::seed"))
        .field("workload", &PlaceArguments::workload)
        .def(m, "place", &place, doc("python::place"), py::arg("cluster"), py::arg("task"));
    m.def(
        "feasible_nodes",
        [](const ClusterPtr& cluster, const TaskLike& task) {
            const auto [with_task, id] = task_argument(cluster, task);
            const auto found = unlocked([&, c = with_task, t = id] { return a::feasible_nodes(*c, t); });
            std::vector<std::int64_t> positions;
            for (const auto node : found) positions.push_back(static_cast<std::int64_t>(index(node)));
            return own(std::move(positions));
        },
        py::arg("cluster"), py::arg("task"),
        documented(
            doc("allocation::feasible_nodes") +
            "\n\nReturns an array of positions in `cluster.nodes`, which indexes its columns. `task`: as "
            "for `place`, or a running task."));
    Keywords<ObstaclesArguments>()
        .field("old_copy", &ObstaclesArguments::old_copy)
        .def(
            m, "find_obstacles",
            [](const ObstaclesArguments& given, const ClusterPtr& cluster, const TaskLike& task) -> Strings {
                const auto [with_task, id] = task_argument(cluster, task);
                const auto found =
                    unlocked([&, c = with_task, t = id] { return a::find_obstacles(*c, t, given.old_copy); });
                py::list names;
                for (const auto obstacle : found) names.append(obstacle);
                return names;
            },
            doc("allocation::find_obstacles") +
                "\n\nReturns the name of an obstacle for each of `cluster.nodes`, \"none\" if the task "
                "fits. `task`: as for `place`, or a running task.",
            py::arg("cluster"), py::arg("task"));
    bind_by_links(m);
    bind_slowdown(m);
    bind_switch_counts(m);
    bind_gangs(m);
}

}  // namespace gpusched::python
