// SPDX-License-Identifier: Apache-2.0
// Replays a trace with a placement policy, and resamples its tasks to a given GPU demand.
#include "model/name_order.hpp"

#include <gpusched/allocation/named.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/follower.hpp>
#include <gpusched/sim/replay.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gpusched::sim {

GPUSCHED_EXPORT Trace resample(const Trace& trace, double ratio, Rng& rng,
                               std::vector<std::size_t>* originals) {
    if (!(ratio > 0 && ratio <= 1000))
        throw InvalidInput(bad_value("ratio", number_text(ratio), "above 0, at most 1000"));
    std::int64_t capacity = 0, demand = 0;
    for (const auto& node : trace.nodes)
        capacity += whole_gpu_milli * (node.gpu_count - static_cast<std::int64_t>(node.failed_gpus.size()));
    const auto milli = [](const TraceTask& task) { return task.task.gpu_count * task.task.gpu_share_milli; };
    for (const auto& task : trace.tasks) demand += milli(task);
    if (demand <= 0) throw InvalidInput("trace: no task asks for a GPU; expected one to resample");
    const auto wanted = std::llround(ratio * static_cast<double>(capacity));

    std::vector<std::size_t> tasks(trace.tasks.size());  // of the result, by index in the trace
    std::iota(tasks.begin(), tasks.end(), std::size_t{0});
    while (demand > wanted) {
        auto& victim = rng.pick(std::span(tasks));
        demand -= milli(trace.tasks[victim]);
        victim = tasks.back();
        tasks.pop_back();
    }
    std::vector<std::string> names;  // of the copies, which come last
    if (tasks.size() == trace.tasks.size()) {
        std::unordered_set<std::string> taken;
        for (const auto& task : trace.tasks) taken.insert(task.task.name);
        for (std::size_t copy = 0;;) {
            const auto& original = rng.pick(std::span(trace.tasks));
            if (demand + milli(original) > wanted) break;
            demand += milli(original);
            tasks.push_back(static_cast<std::size_t>(&original - trace.tasks.data()));
            auto& name = names.emplace_back();
            do name = original.task.name + "-copy-" + std::to_string(copy++);
            while (!taken.insert(name).second);
        }
    }
    std::vector<std::size_t> order(tasks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    rng.shuffle(std::span(order));
    Trace out{trace.nodes, {}};
    out.tasks.reserve(order.size());
    if (originals != nullptr) originals->clear();
    const auto kept = tasks.size() - names.size();
    for (const auto k : order) {
        out.tasks.push_back(trace.tasks[tasks[k]]);
        if (k >= kept) out.tasks.back().task.name = std::move(names[k - kept]);
        if (originals != nullptr) originals->push_back(tasks[k]);
    }
    return out;
}

namespace detail {

/// One replay: events in, cluster and timeline out.
class Replay {
  public:
    Replay(const Trace& original, const ReplayOptions& options, const Context& context)
        : options_(options), timeless_(options.shuffle || options.resample_to), budget_(context),
          rng_(options.seed) {
        if (options.until && timeless_)
            throw InvalidInput(bad_value("until", number_text(*options.until),
                                         "none with shuffle or resample_to, which ignore times"));
        if (options.resample_to && !(*options.resample_to > 0 && *options.resample_to <= 1000))
            throw InvalidInput(
                bad_value("resample_to", number_text(*options.resample_to), "above 0, at most 1000"));
        workload_ = fragmentation::typical_workload(original);
        Rng order = rng_.split(0);
        trace_ = options.resample_to ? resample(original, *options.resample_to, order) : original;
        auto& tasks = trace_.tasks;
        if (options.shuffle && !options.resample_to) order.shuffle(std::span(tasks));
        if (!timeless_) std::ranges::stable_sort(tasks, {}, &TraceTask::creation_time);
        rng_ = rng_.split(1);

        // Policies give ties to the first node: by name, unless resampling shuffles the nodes.
        ClusterSpec spec;
        spec.nodes = gpusched::detail::in_name_order(trace_.nodes);
        if (options.resample_to) order.shuffle(std::span(spec.nodes));
        Problems problems;
        spec.tasks.reserve(tasks.size());
        for (const auto& task : tasks) {
            if (task.task.node)
                problems.add(bad_value("node", gpusched::quoted(*task.task.node),
                                       "none, as for every task of a trace",
                                       "task " + gpusched::quoted(task.task.name)));
            spec.tasks.push_back(task.task);
        }
        problems.throw_if_any();
        cluster_ = Cluster::build(spec, IdOrder::as_listed);
        cluster_.keep_events();
    }

    [[nodiscard]] const Cluster& cluster() const { return cluster_; }

    ReplayResult run(allocation::AnyPlacement& policy) {
        using Fragmented = fragmentation::Incremental<fragmentation::Fgd>;
        std::optional<Followed<Fragmented>> fragmented;
        if (!workload_.shapes.empty())
            fragmented.emplace(Fragmented(fragmentation::Fgd(workload_, cluster_.inventory())));
        const bool departing = !timeless_ && !options_.ignore_departures;
        std::int64_t allocated = 0, requested = 0, running = 0;
        ReplayResult out;
        const auto depart_until = [&](std::int64_t time) {
            for (; !departures_.empty() && departures_.top().first <= time; departures_.pop()) {
                const auto task = make_id<TaskId>(departures_.top().second);
                cluster_.remove(task);
                cluster_.commit();
                allocated -= cluster_.gpu_milli(task);
                --running;
            }
        };

        const auto count = trace_.tasks.size();
        std::size_t arrived = 0;
        std::int64_t now = 0;
        for (; arrived < count; ++arrived) {
            const auto& arrival = trace_.tasks[arrived];
            const auto time = timeless_ ? static_cast<std::int64_t>(arrived) : arrival.creation_time;
            if (options_.until && time > *options_.until) break;
            if (arrived % 64 == 0) {
                budget_.report("replay", static_cast<std::int64_t>(arrived),
                               static_cast<std::int64_t>(count));
                if (budget_.exhausted()) break;
            }
            now = time;
            depart_until(now);
            const auto task = make_id<TaskId>(arrived);
            requested += cluster_.gpu_milli(task);
            if (const auto chosen = policy(cluster_, task, rng_)) {
                check(task, *chosen);
                cluster_.assign(task, chosen->node, chosen->gpus);
                cluster_.commit();
                allocated += cluster_.gpu_milli(task);
                ++running;
                trace_.tasks[arrived].scheduled_time = now;
                if (departing && arrival.deletion_time) departures_.emplace(*arrival.deletion_time, arrived);
            } else {
                out.unplaced.push_back(arrival.task.name);
            }
            auto& t = out.timeline;
            t.time.push_back(now);
            t.requested_gpu_milli.push_back(requested);
            t.allocated_gpu_milli.push_back(allocated);
            t.running.push_back(running);
            t.unplaced.push_back(static_cast<std::int64_t>(out.unplaced.size()));
            t.fragmented_gpus.push_back(fragmented ? fragmented->of(cluster_).result() : 0.0);
        }
        out.stop_reason = budget_.reason();
        if (options_.until && out.stop_reason == StopReason::completed) {
            now = *options_.until;
            depart_until(now);
        }
        out.cluster = final_state(arrived, now, out.unplaced);
        return out;
    }

  private:
    void check(TaskId task, const allocation::Destination& chosen) const {
        if (!cluster_.contains(chosen.node))
            throw InvalidInput("placement: task " + gpusched::quoted(cluster_.name(task)) +
                               " was sent to a node that does not exist");
        const auto obstacle = find_obstacle(cluster_, task, chosen.node);
        if (obstacle != Obstacle::none || !gpus_fit(cluster_, task, chosen.node, chosen.gpus)) {
            std::string gpus;
            for_each_gpu(chosen.gpus,
                         [&](int gpu) { gpus += (gpus.empty() ? "" : ", ") + std::to_string(gpu); });
            throw InvalidInput("placement: the policy chose node " +
                               gpusched::quoted(cluster_.name(chosen.node)) + " for task " +
                               gpusched::quoted(cluster_.name(task)) + ", but the task does not fit there: " +
                               (obstacle != Obstacle::none ? describe_obstacle(cluster_, task, chosen.node)
                                                           : "not on GPUs [" + gpus + "]"));
        }
    }

    // Returns the final cluster without the tasks that left or never arrived.
    [[nodiscard]] Cluster final_state(std::size_t arrived, std::int64_t now,
                                      const std::vector<std::string>& unplaced) const {
        ClusterSpec spec;
        spec.now = now;
        spec.nodes = trace_.nodes;
        spec.tasks.reserve(arrived);
        std::size_t next_unplaced = 0;
        for (std::size_t i = 0; i < arrived; ++i) {
            const auto task = make_id<TaskId>(i);
            const auto& name = trace_.tasks[i].task.name;
            const bool pending = next_unplaced < unplaced.size() && unplaced[next_unplaced] == name;
            if (pending) ++next_unplaced;
            if (!pending && !cluster_.is_placed(task)) continue;
            spec.tasks.push_back(trace_.tasks[i].task);
            if (pending) continue;
            auto& placed = spec.tasks.back();
            placed.start_time = *trace_.tasks[i].scheduled_time;
            placed.last_checkpoint_time.reset();
            placed.node = cluster_.name(cluster_.node_of(task));
            placed.gpus = gpu_list(cluster_.gpus_of(task));
        }
        return Cluster::build(spec);
    }

    // Time, task; departures of the same second are in order of arrival.
    using Departure = std::pair<std::int64_t, std::size_t>;

    const ReplayOptions& options_;
    bool timeless_;
    Budget budget_;
    Rng rng_;
    fragmentation::Workload workload_;
    Trace trace_;
    Cluster cluster_;
    std::priority_queue<Departure, std::vector<Departure>, std::greater<>> departures_;
};

}  // namespace detail

GPUSCHED_EXPORT ReplayResult replay(const Trace& trace, const ReplayOptions& options, const Context& context,
                                    const allocation::Registries& known) {
    detail::Replay replay(trace, options, context);
    const auto expected =
        fragmentation::typical_workload(trace, known.placements.workload_options(options.placement));
    auto policy = known.placements.make(options.placement, replay.cluster().inventory(), expected);
    return replay.run(policy);
}

GPUSCHED_EXPORT ReplayResult replay(const Trace& trace, allocation::AnyPlacement policy,
                                    const ReplayOptions& options, const Context& context) {
    return detail::Replay(trace, options, context).run(policy);
}

}  // namespace gpusched::sim
