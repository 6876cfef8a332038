// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/online.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace gpusched::preemption {

GPUSCHED_EXPORT OnlinePreemption::OnlinePreemption(const Cluster& snapshot, Options options,
                                                   std::size_t most_shapes)
    : cluster_(snapshot), index_([&] {
          if (const auto now = std::exchange(options.now, std::nullopt)) cluster_.set_now(*now);
          return PreemptionIndex(std::move(options), most_shapes);
      }()) {
    cluster_.commit();
    cluster_.keep_events();
}

GPUSCHED_EXPORT void OnlinePreemption::require_idle() const {
    if (deciding_)
        throw InvalidInput("preemption: a decision is being made; expected events and further "
                           "questions after it, not from its cost function or another thread");
}

GPUSCHED_EXPORT void OnlinePreemption::require_fit(TaskId task, NodeId node, GpuMask gpus) const {
    const auto& inventory = cluster_.inventory();
    const auto wanted = int{inventory.tasks.gpu_count[gpusched::index(task)]};
    const auto devices = gpus & cluster_.devices(node);
    const auto& extras = inventory.extras[inventory.tasks.extras[gpusched::index(task)]];
    if (!gpusched::detail::are_of_one_class(inventory, extras, node, devices))
        throw InvalidInput("gpus: devices that task " + gpusched::quoted(cluster_.name(task)) +
                           " does not ask for; expected " + std::to_string(extras.device_count) +
                           " of one class that it accepts, of node " + gpusched::quoted(cluster_.name(node)));
    gpus &= ~devices;
    if (gpu_count(gpus) != wanted || (gpus & ~first_gpus(cluster_.gpu_count(node))) != 0)
        throw InvalidInput("gpus: " + std::to_string(gpu_count(gpus)) + " for task " +
                           gpusched::quoted(cluster_.name(task)) + "; expected " + std::to_string(wanted) +
                           " of node " + gpusched::quoted(cluster_.name(node)));
    if (has_failed(node))
        throw InvalidInput("node " + gpusched::quoted(cluster_.name(node)) +
                           ": has failed; expected one that runs");
}

GPUSCHED_EXPORT void OnlinePreemption::place(TaskId task, NodeId node, GpuMask gpus) {
    require_idle();
    require_fit(task, node, gpus);
    cluster_.assign(task, node, gpus);
    cluster_.commit();
}

GPUSCHED_EXPORT void OnlinePreemption::remove(TaskId task) {
    require_idle();
    if (cluster_.is_placed(task)) cluster_.remove(task);
    cluster_.commit();
}

GPUSCHED_EXPORT void OnlinePreemption::fail_gpu(NodeId node, int gpu, bool failed) {
    require_idle();
    if (gpu < 0 || gpu >= cluster_.gpu_count(node))
        throw InvalidInput(bad_value("gpu", std::to_string(gpu),
                                     "a GPU of node " + gpusched::quoted(cluster_.name(node)) +
                                         ", which has " + std::to_string(cluster_.gpu_count(node))));
    auto spec = cluster_.node_spec(node);
    std::erase(spec.failed_gpus, gpu);
    if (failed) spec.failed_gpus.push_back(gpu);
    std::sort(spec.failed_gpus.begin(), spec.failed_gpus.end());
    cluster_.update_node(cluster_.handle(node), spec);
}

GPUSCHED_EXPORT void OnlinePreemption::fail_node(NodeId node, bool failed) {
    require_idle();
    if (failed)
        while (!cluster_.tasks_on(node).empty()) cluster_.remove(*cluster_.tasks_on(node).begin());
    cluster_.commit();
    if (failed == has_failed(node)) return;
    auto spec = cluster_.node_spec(node);
    if (failed) {
        // Without taints: a cordon by a taint would let tasks in that tolerate it.
        failed_[node] = {spec.schedulable, std::exchange(spec.taints, {})};
        spec.schedulable = false;
    } else {
        spec.schedulable = failed_[node].schedulable;
        spec.taints = failed_[node].taints;
    }
    cluster_.update_node(cluster_.handle(node), spec);
    if (!failed) failed_.erase(node);
}

GPUSCHED_EXPORT void OnlinePreemption::set_now(std::int64_t now) {
    require_idle();
    cluster_.set_now(now);
}

GPUSCHED_EXPORT void OnlinePreemption::apply(const Decision& decision, TaskId preemptor) {
    require_idle();
    require_fit(preemptor, decision.node, decision.gpus);
    for (const auto& again : decision.replaced) require_fit(again.task, again.node, again.gpus);
    for (const auto victim : decision.victims)
        if (cluster_.is_placed(victim)) cluster_.remove(victim);
    cluster_.assign(preemptor, decision.node, decision.gpus);
    for (const auto& again : decision.replaced) cluster_.assign(again.task, again.node, again.gpus);
    cluster_.commit();
}

GPUSCHED_EXPORT const Decision* OnlinePreemption::decide(TaskId preemptor) {
    require_idle();
    const struct Deciding {
        bool& flag;
        explicit Deciding(bool& f) : flag(f) { flag = true; }
        Deciding(const Deciding&) = delete;
        Deciding& operator=(const Deciding&) = delete;
        ~Deciding() { flag = false; }
    } now(deciding_);
    return index_.decide(cluster_, preemptor);
}

}  // namespace gpusched::preemption
