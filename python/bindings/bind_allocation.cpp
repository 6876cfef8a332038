// gpusched.allocation: placing one task.
#include "cluster_views.hpp"
#include "options.hpp"

#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/io/cluster_json.hpp>

namespace gpusched::python {

namespace {

using allocation::PlaceOptions;

/// The task to place, in a cluster that has it: the name of a pending one, or a description of a new one.
std::pair<ClusterPtr, TaskId> task_argument(const ClusterPtr& cluster, const py::object& task) {
    if (py::isinstance<py::str>(task)) return {cluster, cluster->find_task(task.cast<std::string>())};
    if (!py::isinstance<py::dict>(task))
        throw py::type_error("expected a task: a dict, or the name of a pending one");
    py::dict document;
    document["format"] = "gpusched.cluster";
    document["version"] = 1;
    document["nodes"] = py::list();
    document["tasks"] = py::make_tuple(task);
    const auto text = json_text(document);
    return unlocked([&] {
        auto spec = cluster->to_spec();
        spec.tasks.push_back(std::move(io::cluster_from_json(text, "<task>").tasks.front()));
        auto with_task = std::make_shared<Cluster>(Cluster::build(spec));
        const auto id = make_id<TaskId>(spec.tasks.size() - 1);
        return std::pair{std::move(with_task), id};
    });
}

template <class Names>
py::list name_list(Names names) {
    py::list list;
    for (const auto name : names) list.append(py::str(std::string(name)));
    return list;
}

}  // namespace

void bind_allocation(py::module_& parent) {
    auto m = submodule(parent, "allocation");
    m.def(
        "ranker_names", [] { return name_list(allocation::ranker_names()); },
        documented("ranker_names()", "The rankers that `place` knows by name.").c_str());
    m.def(
        "placement_names", [] { return name_list(allocation::placement_names()); },
        documented("placement_names()", doc("allocation::placement_names")).c_str());

    const auto options = Options<PlaceOptions>("allocation::PlaceOptions")
                             .field("rankers", &PlaceOptions::rankers)
                             .field("gpu_picker", &PlaceOptions::gpu_picker)
                             .field("seed", &PlaceOptions::seed);
    m.def(
        "place",
        [options](const ClusterPtr& cluster, const py::object& task,
                  const py::kwargs& keywords) -> py::object {
            const auto o = options.read("place", keywords);
            const auto [with_task, id] = task_argument(cluster, task);
            const auto place = unlocked([&, c = with_task, t = id] { return allocation::place(*c, t, o); });
            if (!place) return py::none();
            return py::make_tuple(with_task->name(place->node), gpu_list(place->gpus));
        },
        py::arg("cluster"), py::arg("task"),
        options
            .documented(
                "place(cluster, task",
                "Where one task would go without moving or evicting anybody: (node, gpus), or None.\n\n"
                "`task` is a dict as in the cluster format, or the name of a task of the cluster. Feasible "
                "nodes "
                "are ranked by the first ranker, its ties by the second and so on, the last by name; see "
                "`ranker_names`. The default is ASI's non-preemptive scheduling. The cluster is not changed.")
            .c_str());
}

}  // namespace gpusched::python
