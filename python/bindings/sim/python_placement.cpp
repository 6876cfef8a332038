#include "sim/python_placement.hpp"

#include "support/call.hpp"
#include "support/python_function.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/feasibility.hpp>

namespace gpusched::python {

PythonPlacement::PythonPlacement(py::object policy) : policy_(shared_object(std::move(policy))) {}

void PythonPlacement::Mirror::rebuild(const Cluster& of) {
    cluster = std::make_shared<Cluster>(of);
    cluster->commit();
    behind.clear();
}

// Node by node: a task that has left a node may not have reached its new node yet.
void PythonPlacement::Mirror::catch_up(const Cluster& with) {
    auto& mirror = *cluster;
    std::vector<TaskId> gone;
    for (const auto node : behind)
        for (const auto task : mirror.tasks_on(node))
            if (with.node_of(task) != node || with.gpus_of(task) != mirror.gpus_of(task))
                gone.push_back(task);
    for (const auto task : gone) mirror.remove(task);
    for (const auto node : behind)
        for (const auto task : with.tasks_on(node))
            if (mirror.node_of(task) != node) mirror.assign(task, node, with.gpus_of(task));
    mirror.commit();
    behind.clear();
}

std::optional<allocation::Destination> PythonPlacement::operator()(const Cluster& cluster, TaskId task,
                                                                   Rng&) {
    const WithLock lock;
    auto& mirror = mirror_.of(cluster);
    mirror.catch_up(cluster);
    auto answer = ask_function("placement", *policy_, "(cluster, task)", mirror.cluster,
                               TaskView{mirror.cluster, task});
    if (answer.is_none()) return std::nullopt;
    const auto about = "task " + gpusched::quoted(cluster.name(task));
    const auto field = "the placement policy's result for " + about;
    constexpr const char* expected = "None, a node, or a pair (node, gpus)";
    std::optional<GpuMask> gpus;
    if (py::isinstance<py::tuple>(answer)) {
        const auto pair = answer.cast<py::tuple>();
        if (pair.size() != 2) bad_type(field, answer, expected);
        GpuMask mask = 0;
        for (const int gpu : OptionType<std::vector<int>>::read(field, pair[1])) {
            if (gpu < 0 || gpu >= max_gpus_per_node)
                throw InvalidInput(bad_value("the policy returned for " + about + " with GPU",
                                             std::to_string(gpu),
                                             "0 to " + std::to_string(max_gpus_per_node - 1)));
            mask = static_cast<GpuMask>(mask | gpu_bit(gpu));
        }
        gpus = mask;
        answer = pair[0];
    }
    NodeId node = none<NodeId>;
    if (py::isinstance<NodeView>(answer)) {
        const auto& view = answer.cast<const NodeView&>();
        // Copies of a snapshot share the inventory, and ids mean the same in all of them.
        if (&view.cluster->inventory() != &cluster.inventory())
            throw InvalidInput("the policy returned for " + about + " with node " +
                               gpusched::quoted(view.cluster->name(view.id)) +
                               " of another cluster; expected a node of its argument");
        node = view.id;
    } else if (py::isinstance<py::str>(answer))
        node = OptionType<NodeId>::read(field, answer, cluster);
    else
        bad_type(field, answer, expected);
    if (gpus) return allocation::Destination{node, *gpus};
    const auto& tasks = cluster.inventory().tasks;
    if (tasks.gpu_count[index(task)] == 0 && tasks.extras[index(task)] == 0)
        return allocation::Destination{node, 0};
    const auto obstacle = find_obstacle(cluster, task, node);
    if (obstacle != Obstacle::none)
        throw InvalidInput("the policy returned node '" + cluster.name(node) + "' for task '" +
                           cluster.name(task) +
                           "', but the task does not fit there: " + describe_obstacle(cluster, task, node));
    return allocation::Destination{node,
                                   allocation::pick_gpus(allocation::TightestGpu{}, cluster, task, node)};
}

}  // namespace gpusched::python
