// SPDX-License-Identifier: Apache-2.0
// One decision of the spot replay as one plan: filters, ranks and places, and preempts if no node fits.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/preemption/preempt_gang.hpp>
#include <gpusched/sim/spot_replay.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::sim::detail {

/// Maps between jobs and pods. The pods of a job are contiguous.
struct Gangs {
    std::vector<std::size_t> first;   // by job, and one more
    std::vector<std::size_t> job_of;  // by task

    template <class F>
    void for_each_pod(std::size_t job, F&& f) const {
        for (auto i = first[job]; i < first[job + 1]; ++i) f(make_id<TaskId>(i));
    }
    [[nodiscard]] std::size_t job(TaskId task) const { return job_of[index(task)]; }
};

/// `allocation::EvictionHistory` plus the pods that the replay evicted, by node. It does not use
/// `Cluster::update_node`, which is rejected while placements of the same moment can still be undone.
struct NodeEvictions {
    const std::vector<std::int64_t>* by_node;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        const auto evictions = (*by_node)[index(node)];
        return cluster.may_borrow(task) ? -evictions : evictions;
    }
};

inline constexpr std::size_t most_rankers = 6;

/// A list of rankers; unlike `allocation::RankerList`, scoring does not allocate.
struct RankerRow {
    std::vector<allocation::AnyRanker> rankers{};
    std::array<std::int64_t, most_rankers> operator()(const Cluster& cluster, TaskId task, NodeId node,
                                                      Rng& rng) const {
        std::array<std::int64_t, most_rankers> scores{};
        for (std::size_t i = 0; i < rankers.size(); ++i) scores[i] = rankers[i](cluster, task, node, rng);
        return scores;
    }
    [[nodiscard]] RankerRow for_task(const Cluster& cluster, TaskId task) const {
        RankerRow row;
        for (const auto& ranker : rankers) row.rankers.push_back(ranker.for_task(cluster, task));
        return row;
    }
};

class SpotScheduler {
  public:
    SpotScheduler(const SpotReplayOptions& options, const Cluster& cluster, const Gangs& gangs,
                  const allocation::Registries& known)
        : victims_(options.victims), gangs_(gangs), evictions_(cluster.inventory().nodes.eviction_count),
          rng_(Rng(options.seed).split(1)),
          picker_(known.gpu_pickers.make(options.gpu_picker, cluster.inventory(), {})) {
        for (const auto& name : options.rankers)
            rank_.rankers.push_back(ranker(name, options, cluster, known));
        for (const auto& name : options.filters) passes_.filters.push_back(known.filters.make(name));
    }
    SpotScheduler(const SpotScheduler&) = delete;  // the rankers point to the history
    SpotScheduler& operator=(const SpotScheduler&) = delete;

    void evicted(NodeId node) { ++evictions_[index(node)]; }

    struct Answer {
        std::optional<Plan> plan{};
        bool hopeless = false;  // one pod alone fits on no node
    };
    /// Finds places for all pods of a job, with evictions if they help and are allowed. Leaves the cluster
    /// unchanged.
    Answer decide(Cluster& cluster, std::size_t job, std::int64_t now, const preemption::CostFunction& cost) {
        Answer answer;
        Plan plan;
        const auto before = cluster.checkpoint();
        const Asked asked{job, now, cost};
        const auto first = make_id<TaskId>(gangs_.first[job]);
        const bool evicts = victims_ != Victims::none && !cluster.may_borrow(first);
        bool placed_all = false;
        if (const auto level = required_level(cluster, job)) {
            placed_all = place_in_a_domain(cluster, asked, *level, false, plan);
            if (!placed_all && evicts)
                placed_all = victims_ == Victims::random
                                 ? place_in_a_domain(cluster, asked, *level, true, plan)
                                 : preempt_in_a_domain(cluster, asked, *level, plan);
        } else {
            placed_all = place_all(cluster, asked, allocation::AnyNode{}, evicts, plan);
            answer.hopeless = !placed_all && plan.placements.empty();
        }
        auto& left = plan.vacated_nodes;  // so far all nodes that lost a pod
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
    struct Asked {
        std::size_t job;
        std::int64_t now;
        const preemption::CostFunction& cost;
    };

    [[nodiscard]] allocation::AnyRanker ranker(const std::string& name, const SpotReplayOptions& options,
                                               const Cluster& cluster,
                                               const allocation::Registries& known) const {
        if (name == "eviction_history") return NodeEvictions{&evictions_};
        if (name == "interference" && !options.cpu_slowdown_milli.empty())
            return allocation::Interference{{options.cpu_slowdown_milli}};
        return known.rankers.make(name, cluster.inventory(), {});
    }

    /// Returns the level within which all pods of the job must be.
    [[nodiscard]] std::optional<Level> required_level(const Cluster& cluster, std::size_t job) const {
        if (gangs_.first[job + 1] - gangs_.first[job] < 2) return std::nullopt;
        const auto& inv = cluster.inventory();
        const auto& wish = inv.task_affinities[inv.tasks.affinities[gangs_.first[job]]].network_affinity;
        if (!wish || wish->mode != NetworkMode::required) return std::nullopt;
        return wish->level;
    }

    /// Applies a placement from any source if it is valid.
    static bool assign_if_it_holds(Cluster& cluster, const Placement& p, Plan& plan) {
        if (find_obstacle(cluster, p.task, p.node) != Obstacle::none ||
            !gpus_fit(cluster, p.task, p.node, p.gpus))
            return false;
        cluster.assign(p.task, p.node, p.gpus);
        plan.placements.push_back(p);
        return true;
    }

    /// Places one pod after the other, each on the best-ranked of the allowed nodes.
    template <class Filter>
    bool place_all(Cluster& cluster, const Asked& asked, const Filter& allowed, bool evicts, Plan& plan) {
        for (auto i = gangs_.first[asked.job]; i < gangs_.first[asked.job + 1]; ++i) {
            const auto pod = make_id<TaskId>(i);
            const auto passes = [&](const Cluster& c, TaskId task, NodeId node) {
                return allowed(c, task, node) && passes_(c, task, node);
            };
            auto to = allocation::place(cluster, pod, rank_, picker_, rng_, passes);
            if (!to && evicts) to = make_room(cluster, pod, asked, passes, plan);
            if (!to || !assign_if_it_holds(cluster, {pod, to->node, to->gpus}, plan)) return false;
        }
        return true;
    }

    /// Tries domains until one has room for all pods, or no node of another domain fits. The first pod picks
    /// each domain by rank. `allocation::allocate` is not used: it chooses domains by entropy and does not
    /// use rankers.
    bool place_in_a_domain(Cluster& cluster, const Asked& asked, Level level, bool evicts, Plan& plan) {
        const auto before = cluster.checkpoint();
        // Each try ranks all nodes. If evictions may help, free capacity cannot show that a domain will fail.
        auto tried = evicts ? std::set<DomainId>() : too_full(cluster, asked.job, level);
        const auto untried = [&](const Cluster& c, TaskId, NodeId node) {
            return !tried.contains(c.inventory().domain(level, node));
        };
        while (true) {
            plan = {};
            if (place_all(cluster, asked, untried, evicts, plan)) return true;
            cluster.rollback(before);
            if (plan.placements.empty()) return false;
            tried.insert(cluster.inventory().domain(level, plan.placements.front().node));
        }
    }

    /// Returns the domains with too little free capacity for the pods, without group constraints. `pod_room`
    /// would exclude more domains. But their tries draw random numbers, so with the ranker "random" the same
    /// seed would give other replays.
    [[nodiscard]] std::set<DomainId> too_full(const Cluster& cluster, std::size_t job, Level level) const {
        const auto& inv = cluster.inventory();
        const auto& t = inv.tasks;
        const auto pod = gangs_.first[job];
        const auto pods = static_cast<std::int64_t>(gangs_.first[job + 1] - pod);
        const bool whole = t.gpu_share_milli[pod] == whole_gpu_milli;
        std::map<DomainId, std::int64_t> room;
        for (const auto node : cluster.nodes()) {
            auto& sum = room[inv.domain(level, node)];
            if (sum >= pods || !inv.eligible(make_id<TaskId>(pod), node)) continue;
            auto most = pods;
            const auto bounded_by = [&](std::int64_t free, std::int64_t each) {
                if (each > 0) most = std::min(most, std::max<std::int64_t>(0, free / each));
            };
            bounded_by(cluster.cpu_free_milli(node, Lent::yes), t.cpu_milli[pod]);
            bounded_by(cluster.memory_free_mib(node), t.memory_mib[pod]);
            if (whole)
                bounded_by(gpusched::gpu_count(cluster.idle_gpus(node, Lent::yes)), t.gpu_count[pod]);
            else
                bounded_by(cluster.gpu_free_total_milli(node, Lent::yes), t.gpu_share_milli[pod]);
            sum += most;
        }
        std::set<DomainId> full;
        for (const auto& [domain, sum] : room)
            if (sum < pods) full.insert(domain);
        return full;
    }

    /// Preempts in the domain that loses the least work.
    bool preempt_in_a_domain(Cluster& cluster, const Asked& asked, Level level, Plan& plan) {
        std::vector<TaskId> pods;
        gangs_.for_each_pod(asked.job, [&](TaskId pod) { pods.push_back(pod); });
        plan = {};
        const auto found = preemption::preempt_gang(
            cluster, pods,
            {.policy = policy(), .now = asked.now, .cost = asked.cost, .filter = as_filter(passes_)});
        // With filters, evictions for one pod after the other may still succeed.
        if (!found.decision)
            return !passes_.filters.empty() && place_in_a_domain(cluster, asked, level, true, plan);
        for (const auto task : found.decision->victims) evict_gang(cluster, gangs_.job(task), plan);
        for (std::size_t i = 0; i < pods.size(); ++i) {
            const auto& chosen = found.decision->pods[i];
            if (!assign_if_it_holds(cluster, {pods[i], chosen.node, chosen.gpus}, plan)) return false;
        }
        return true;
    }

    [[nodiscard]] preemption::Policy policy() const {
        return victims_ == Victims::spot ? preemption::Policy::spot : preemption::Policy::spot_exact;
    }

    template <class Filter>
    std::optional<allocation::Destination> make_room(Cluster& cluster, TaskId pod, const Asked& asked,
                                                     const Filter& allowed, Plan& plan) {
        NodeId node = none<NodeId>;
        std::vector<TaskId> leave;
        if (victims_ == Victims::random) {
            std::tie(node, leave) = random_victims(cluster, pod, allowed);
        } else {
            auto found = preemption::preempt(
                cluster, pod,
                {.policy = policy(), .now = asked.now, .cost = asked.cost, .filter = as_filter(allowed)});
            if (found.decision) {
                node = found.decision->node;
                leave = std::move(found.decision->victims);
            } else if (!passes_.filters.empty()) {
                std::tie(node, leave) = victims_for_filters(cluster, pod, asked, allowed);
            }
        }
        if (node == none<NodeId>) return std::nullopt;
        for (const auto task : leave) evict_gang(cluster, gangs_.job(task), plan);
        if (!fits(cluster, pod, node, allowed)) return std::nullopt;
        return allocation::Destination{node, allocation::pick_gpus(picker_, cluster, pod, node, rng_)};
    }

    /// Returns the filters for `preempt`; empty if the replay has none.
    template <class Filter>
    [[nodiscard]] std::optional<allocation::AnyFilter> as_filter(const Filter& allowed) const {
        if (passes_.filters.empty()) return std::nullopt;
        return allocation::AnyFilter([&allowed](const Cluster& cluster, TaskId task, NodeId node) {
            return allowed(cluster, task, node);
        });
    }

    template <class Filter>
    static bool fits(const Cluster& cluster, TaskId pod, NodeId node, const Filter& allowed) {
        return find_obstacle(cluster, pod, node) == Obstacle::none && allowed(cluster, pod, node);
    }

    /// Picks victims for a pod that a filter accepts only after LP pods have left. They leave cheapest first
    /// until it does. Then those that need not leave come back, the most expensive first. Returns the node
    /// that loses the least work, and its victims.
    template <class Filter>
    std::pair<NodeId, std::vector<TaskId>>
    victims_for_filters(Cluster& cluster, TaskId pod, const Asked& asked, const Filter& allowed) const {
        std::pair<NodeId, std::vector<TaskId>> best{none<NodeId>, {}};
        std::int64_t least = 0;
        const auto before = cluster.checkpoint();
        for (const auto node : cluster.nodes()) {
            if (allowed(cluster, pod, node)) continue;  // `preempt` has tried it
            std::map<std::size_t, TaskId> on_node;      // one pod per job
            for (const auto task : evictable_on(cluster, node)) on_node.emplace(gangs_.job(task), task);
            std::vector<std::pair<std::int64_t, TaskId>> order;
            for (const auto& [job, task] : on_node) {
                std::int64_t lost = 0;
                gangs_.for_each_pod(job, [&](TaskId of) {
                    if (cluster.is_placed(of)) lost += asked.cost(cluster, of, asked.now);
                });
                order.emplace_back(lost, task);
            }
            std::sort(order.begin(), order.end());
            Plan scratch;
            std::size_t count = 0;
            while (count < order.size() && !fits(cluster, pod, node, allowed))
                evict_gang(cluster, gangs_.job(order[count++].second), scratch);
            const bool helps = count > 0 && fits(cluster, pod, node, allowed);
            order.resize(count);
            for (auto k = order.size(); helps && k-- > 0;) {
                cluster.rollback(before);
                for (std::size_t other = 0; other < order.size(); ++other)
                    if (other != k) evict_gang(cluster, gangs_.job(order[other].second), scratch);
                if (fits(cluster, pod, node, allowed))
                    order.erase(order.begin() + static_cast<std::ptrdiff_t>(k));
            }
            cluster.rollback(before);
            std::int64_t cost = 0;
            for (const auto& one : order) cost += one.first;
            if (!helps || (best.first != none<NodeId> && cost >= least)) continue;
            least = cost;
            best = {node, {}};
            for (const auto& one : order) best.second.push_back(one.second);
        }
        return best;
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
        for (const auto task : cluster.tasks_on(node))
            if (cluster.may_borrow(task) && t.is(TaskTrait::evictable, task)) found.push_back(task);
        return found;
    }

    template <class Filter>
    std::pair<NodeId, std::vector<TaskId>> random_victims(Cluster& cluster, TaskId pod,
                                                          const Filter& allowed) {
        std::vector<NodeId> hosts;
        const auto before = cluster.checkpoint();
        for (const auto node : cluster.nodes()) {
            const auto spot = evictable_on(cluster, node);
            if (spot.empty()) continue;
            for (const auto task : spot) cluster.remove(task);
            if (fits(cluster, pod, node, allowed)) hosts.push_back(node);
            cluster.rollback(before);
        }
        if (hosts.empty()) return {none<NodeId>, {}};
        const auto node = rng_.pick(std::span(hosts));
        auto order = evictable_on(cluster, node);
        rng_.shuffle(std::span(order));
        std::vector<TaskId> leave;
        Plan scratch;
        for (const auto task : order) {
            if (!cluster.is_placed(task)) continue;  // already left with its gang
            evict_gang(cluster, gangs_.job(task), scratch);
            leave.push_back(task);
            if (fits(cluster, pod, node, allowed)) break;
        }
        cluster.rollback(before);
        return {node, std::move(leave)};
    }

    Victims victims_;
    const Gangs& gangs_;
    std::vector<std::int64_t> evictions_;  // pods, by node
    Rng rng_;
    RankerRow rank_;
    allocation::FilterList passes_;
    allocation::AnyGpuPicker picker_;
};

}  // namespace gpusched::sim::detail
