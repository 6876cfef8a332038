// SPDX-License-Identifier: Apache-2.0
// The module gpusched.sim: replay of traces.
#include "model/cluster_views.hpp"
#include "model/trace.hpp"
#include "sim/timeline.hpp"
#include "support/call.hpp"
#include "support/python_function.hpp"
#include "support/values.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/follower.hpp>
#include <gpusched/sim/replay.hpp>

namespace gpusched::python {

namespace {

using sim::ReplayOptions;
using sim::Timeline;

/// Calls a Python function `policy(cluster, task)` for each pending task.
///
/// The function gets a snapshot that follows the replay; other threads must not use it meanwhile. It is a
/// copy that this policy keeps up to date, so that Python objects that refer to it stay valid. Results: None
/// (the task does not fit), a node or its name (the tightest GPUs are used), or a pair of node and GPUs.
/// Exceptions pass through.
class PythonPlacement {
  public:
    explicit PythonPlacement(py::object policy) : policy_(shared_object(std::move(policy))) {}

    std::optional<allocation::Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng);

  private:
    /// The copy, which follows the replay.
    struct Mirror {
        ClusterPtr cluster{};
        std::vector<NodeId> behind{};  // nodes of each task
        void rebuild(const Cluster& of);
        void usage_changed(const Cluster&, NodeId node) { behind.push_back(node); }
        void catch_up(const Cluster& with);
    };

    std::shared_ptr<py::object> policy_;  // shared, because references are counted only under the lock
    Followed<Mirror> mirror_;
};

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

struct ReplayArguments : ReplayOptions {
    /// Placement policy: a name of `allocation.placement_names`, or a callable (cluster, task) that returns
    /// None, a node, or a pair (node, gpus).
    Typed<"str | Callable[[Cluster, Task], None | str | Node | tuple[str | Node, Sequence[int]]]"> policy =
        "least_allocated";
    ProgressLike progress = py::none();
};

struct Outcome {
    ClusterPtr cluster;
    std::vector<std::string> unplaced;
    std::shared_ptr<Timeline> timeline;
    StopReason stop_reason;
};

void bind_outcome(py::module_& m) {
    const auto parts = [](const Outcome& r) {
        return std::tuple(r.cluster, r.unplaced, r.timeline, r.stop_reason);
    };
    py::class_<Outcome> type(m, "ReplayResult", "The final state of a replay, and its course.");
    define_value(type, parts, [](const std::invoke_result_t<decltype(parts), const Outcome&>& state) {
        return std::make_from_tuple<Outcome>(state);
    });
    type.def_property_readonly(
            "cluster", [](const Outcome& r) { return r.cluster; }, doc("sim::ReplayResult::cluster"))
        .def_property_readonly(
            "unplaced", [](const Outcome& r) { return r.unplaced; }, doc("sim::ReplayResult::unplaced"))
        .def_property_readonly(
            "timeline", [](const Outcome& r) { return r.timeline; }, "State after every arrival.")
        .def_property_readonly(
            "stop_reason", [](const Outcome& r) { return r.stop_reason; }, "The reason why the replay ended.")
        .def("__repr__", [](const Outcome& r) {
            return "<gpusched.sim.ReplayResult: " + std::to_string(r.timeline->size()) + " arrivals, " +
                   std::to_string(r.unplaced.size()) + " unplaced>";
        });
}

}  // namespace

void bind_replay(py::module_& m) {
    bind_timeline<Timeline>(m, "Timeline", "Course of a replay: read-only arrays with one entry per arrival.",
                            "arrivals");
    bind_outcome(m);
    const auto options =
        Keywords<ReplayArguments>()
            .field("placement", &ReplayArguments::policy, doc("python::ReplayArguments::policy"))
            .fields<sim::ReplayOptions>({"until", "ignore_departures", "resample_to", "shuffle", "seed"})
            .field("progress", &ReplayArguments::progress, progress_text)
            .shared_as("sim.replay");
    options.def(
        m, "replay",
        [](ReplayArguments arguments, const TracePtr& trace) {
            std::optional<PythonPlacement> policy;
            if (py::isinstance<py::str>(arguments.policy))
                arguments.placement = OptionType<std::string>::read("placement", arguments.policy);
            else if (PyCallable_Check(arguments.policy.ptr()) != 0)
                policy.emplace(arguments.policy);
            else
                bad_option("placement", arguments.policy, "a name or a callable (cluster, task)");
            const ReplayOptions& o = arguments;
            return Call(arguments.progress).run([&](const Context& context) {
                auto result =
                    policy ? sim::replay(*trace, *policy, o, context) : sim::replay(*trace, o, context);
                return Outcome{std::make_shared<Cluster>(std::move(result.cluster)),
                               std::move(result.unplaced),
                               std::make_shared<Timeline>(std::move(result.timeline)), result.stop_reason};
            });
        },
        doc("sim::replay"), py::arg("trace"));
}

}  // namespace gpusched::python
