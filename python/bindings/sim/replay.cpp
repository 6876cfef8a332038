// The module gpusched.sim: replay of traces.
#include "model/cluster_views.hpp"
#include "model/trace.hpp"
#include "sim/python_placement.hpp"
#include "sim/timeline.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"
#include "support/values.hpp"

#include <gpusched/sim/replay.hpp>

namespace gpusched::python {

namespace {

using sim::ReplayOptions;
using sim::Timeline;

struct ReplayArguments : ReplayOptions {
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
            .field("placement", &ReplayArguments::policy,
                   "Placement policy: a name of `allocation.placement_names`, or a callable (cluster, task) "
                   "that returns None, a node, or a pair (node, gpus).")
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
