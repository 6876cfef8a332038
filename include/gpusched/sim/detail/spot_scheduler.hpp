// One decision of the spot replay: filter, rank, place, and preempt where nothing fits, as one plan.
#pragma once

#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/sim/spot_replay.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::sim::detail {

/// Which pods belong to which job: those of one job come one after the other.
struct Gangs {
    std::vector<std::size_t> first;   // by job, and one more
    std::vector<std::size_t> job_of;  // by task

    template <class F>
    void for_each_pod(std::size_t job, F&& f) const {
        for (auto i = first[job]; i < first[job + 1]; ++i) f(make_id<TaskId>(i));
    }
    [[nodiscard]] std::size_t job(TaskId task) const { return job_of[index(task)]; }
};

/// ASI's third criterion, with the history of the replay: evicted pods by node.
struct NodeEvictions {
    const std::vector<std::int64_t>* by_node;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        const auto evictions = (*by_node)[index(node)];
        return cluster.may_borrow(task) ? -evictions : evictions;
    }
};

inline constexpr std::size_t most_rankers = 6;

/// Rankers in a row, without allocating.
struct RankerRow {
    std::vector<allocation::AnyRanker> rankers{};
    std::array<std::int64_t, most_rankers> operator()(const Cluster& cluster, TaskId task, NodeId node,
                                                      Rng& rng) const {
        std::array<std::int64_t, most_rankers> scores{};
        for (std::size_t i = 0; i < rankers.size(); ++i) scores[i] = rankers[i](cluster, task, node, rng);
        return scores;
    }
};

class SpotScheduler {
  public:
    SpotScheduler(const SpotReplayOptions& options, const Cluster& cluster, const Gangs& gangs)
        : victims_(options.victims), gangs_(gangs), evictions_(cluster.node_count(), 0),
          rng_(Rng(options.seed).split(1)),
          picker_(allocation::make_gpu_picker(options.gpu_picker, cluster.inventory(), {})) {
        for (const auto& name : options.rankers)
            rank_.rankers.push_back(name == "eviction_history"
                                        ? allocation::AnyRanker(NodeEvictions{&evictions_})
                                        : allocation::make_ranker(name, cluster.inventory(), {}));
    }
    SpotScheduler(const SpotScheduler&) = delete;  // the rankers know where the history is
    SpotScheduler& operator=(const SpotScheduler&) = delete;

    void evicted(NodeId node) { ++evictions_[index(node)]; }

    struct Answer {
        std::optional<Plan> plan{};
        bool hopeless = false;  // one pod alone fits nowhere
    };
    /// Places for all pods of a job, with evictions if they help and are allowed. The cluster is left as it was.
    Answer decide(Cluster& cluster, std::size_t job, std::int64_t now, const preemption::CostFunction& cost) {
        Answer answer;
        Plan plan;
        const auto before = cluster.checkpoint();
        bool placed_all = true;
        gangs_.for_each_pod(job, [&](TaskId pod) {
            if (!placed_all) return;
            auto to = allocation::place(cluster, pod, rank_, picker_, rng_);
            if (!to && victims_ != Victims::none && !cluster.may_borrow(pod))
                to = make_room(cluster, pod, now, cost, plan);
            // What is placed was verified, whoever chose it.
            placed_all = to && find_obstacle(cluster, pod, to->node) == Obstacle::none &&
                         gpus_fit(cluster, pod, to->node, to->gpus);
            if (!placed_all) {
                answer.hopeless = plan.placements.empty();
                return;
            }
            cluster.assign(pod, to->node, to->gpus);
            plan.placements.push_back({pod, to->node, to->gpus});
        });
        auto& left = plan.vacated_nodes;  // so far all that lost a pod
        std::erase_if(left, [&](NodeId node) { return cluster.occupants(node) > 0; });
        std::sort(left.begin(), left.end());
        left.erase(std::unique(left.begin(), left.end()), left.end());
        cluster.rollback(before);
        if (!placed_all) return answer;
        std::sort(plan.evictions.begin(), plan.evictions.end());
        answer.plan = std::move(plan);
        return answer;
    }

  private:
    std::optional<allocation::Destination> make_room(Cluster& cluster, TaskId pod, std::int64_t now,
                                                     const preemption::CostFunction& cost, Plan& plan) {
        NodeId node = none<NodeId>;
        std::vector<TaskId> leave;
        if (victims_ == Victims::random) {
            std::tie(node, leave) = random_victims(cluster, pod);
        } else {
            const auto policy =
                victims_ == Victims::spot ? preemption::Policy::spot : preemption::Policy::spot_exact;
            auto found = preemption::preempt(cluster, pod, {.policy = policy, .now = now, .cost = cost});
            if (found.decision) {
                node = found.decision->node;
                leave = std::move(found.decision->victims);
            }
        }
        if (node == none<NodeId>) return std::nullopt;
        for (const auto task : leave) evict_gang(cluster, gangs_.job(task), plan);
        if (find_obstacle(cluster, pod, node) != Obstacle::none) return std::nullopt;
        if (cluster.inventory().tasks.gpu_count[index(pod)] == 0) return allocation::Destination{node, 0};
        return allocation::Destination{node, picker_(cluster, pod, node, rng_)};
    }

    void evict_gang(Cluster& cluster, std::size_t job, Plan& plan) const {
        gangs_.for_each_pod(job, [&](TaskId pod) {
            if (!cluster.is_placed(pod)) return;
            plan.vacated_nodes.push_back(cluster.node_of(pod));
            plan.evictions.push_back(pod);
            cluster.remove(pod);
        });
    }

    static std::vector<TaskId> evictable_on(const Cluster& cluster, NodeId node) {
        const auto& t = cluster.inventory().tasks;
        std::vector<TaskId> found;
        for (const auto task : cluster.tasks_on(node)) {
            const auto i = index(task);
            if (cluster.may_borrow(task) && t.preemptible[i] && !t.locked[i] && !t.standby[i] && !t.daemon[i])
                found.push_back(task);
        }
        return found;
    }

    std::pair<NodeId, std::vector<TaskId>> random_victims(Cluster& cluster, TaskId pod) {
        std::vector<NodeId> hosts;
        const auto before = cluster.checkpoint();
        for (const auto node : cluster.nodes()) {
            const auto spot = evictable_on(cluster, node);
            if (spot.empty()) continue;
            for (const auto task : spot) cluster.remove(task);
            if (find_obstacle(cluster, pod, node) == Obstacle::none) hosts.push_back(node);
            cluster.rollback(before);
        }
        if (hosts.empty()) return {none<NodeId>, {}};
        const auto node = rng_.pick(std::span(hosts));
        auto order = evictable_on(cluster, node);
        rng_.shuffle(std::span(order));
        std::vector<TaskId> leave;
        Plan scratch;
        for (const auto task : order) {
            if (!cluster.is_placed(task)) continue;  // left with its gang
            evict_gang(cluster, gangs_.job(task), scratch);
            leave.push_back(task);
            if (find_obstacle(cluster, pod, node) == Obstacle::none) break;
        }
        cluster.rollback(before);
        return {node, std::move(leave)};
    }

    Victims victims_;
    const Gangs& gangs_;
    std::vector<std::int64_t> evictions_;  // pods, by node
    Rng rng_;
    RankerRow rank_;
    allocation::AnyGpuPicker picker_;
};

/// Pods that fit nowhere in one pass over the waiting jobs, during which the cluster only gets fuller: whoever asks for as
/// much need not be asked.
class Hopeless {
  public:
    explicit Hopeless(const Cluster& cluster) : tasks_(cluster.inventory().tasks) {
        // Groups and localities make some pods fit where smaller ones do not.
        for (const auto& affinities : cluster.inventory().task_affinities)
            plain_.push_back(affinities == TaskAffinities{});
    }
    void clear() { pods_.clear(); }
    void add(TaskId pod) { pods_.push_back(pod); }
    [[nodiscard]] bool covers(TaskId pod) const {
        const auto p = index(pod);
        return std::any_of(pods_.begin(), pods_.end(), [&](TaskId failed) {
            const auto f = index(failed);
            // A fraction fits wherever whole GPUs fit, not the other way round.
            const bool as_many_gpus =
                tasks_.gpu_share_milli[f] < whole_gpu_milli
                    ? tasks_.gpu_count[p] >= 1 && tasks_.gpu_share_milli[p] >= tasks_.gpu_share_milli[f]
                    : tasks_.gpu_share_milli[p] == whole_gpu_milli &&
                          tasks_.gpu_count[p] >= tasks_.gpu_count[f];
            return as_many_gpus && tasks_.cpu_milli[p] >= tasks_.cpu_milli[f] &&
                   tasks_.memory_mib[p] >= tasks_.memory_mib[f] &&
                   tasks_.gpu_memory_mib[p] >= tasks_.gpu_memory_mib[f] &&
                   tasks_.priority_class[p] == tasks_.priority_class[f] &&
                   tasks_.requirement[p] == tasks_.requirement[f] && plain_[tasks_.affinities[p]] &&
                   plain_[tasks_.affinities[f]];
        });
    }

  private:
    const TaskTable& tasks_;
    std::vector<bool> plain_;  // by index into task_affinities
    std::vector<TaskId> pods_;
};

}  // namespace gpusched::sim::detail
