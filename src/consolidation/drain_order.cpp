// SPDX-License-Identifier: Apache-2.0
// Fills batches of nodes to drain one after another, for several orders of the nodes.
#include "consolidation/checks.hpp"
#include "consolidation/explain_parts.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/drain_order.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/threads.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/rng.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

/// The capacity of some nodes in one resource, and what is idle of it on the nodes that receive. A batch has
/// at most the idle capacity, because the other nodes then hold all tasks.
struct Supply {
    std::vector<std::int64_t> capacity;  ///< by NodeId, without what daemons use; 0 = not counted
    std::int64_t idle = 0;
};

/// The supplies of a cluster: CPU, memory, GPUs, and GPUs of each model.
class Supplies {
  public:
    explicit Supplies(const Cluster& cluster) : inv_(cluster.inventory()) {
        const auto& t = inv_.tasks;
        const auto confined = confined_models(cluster);
        all_.assign(of_models + inv_.gpu_models.size(), {});
        for (auto& supply : all_) supply.capacity.resize(cluster.node_slots());
        for (const auto node : cluster.nodes()) {
            if (inv_.nodes.is_cordoned(node)) continue;
            const auto i = index(node);
            const auto model = inv_.nodes.gpu_model[i];
            const auto healthy = cluster.healthy_gpus(node);
            // The last entry counts only tasks that need this GPU model.
            std::array<std::int64_t, 4> capacity{inv_.nodes.cpu_milli[i], inv_.nodes.memory_mib[i],
                                                 whole_gpu_milli * std::int64_t{gpu_count(healthy)}, 0};
            capacity[3] = capacity[2];
            std::array<std::int64_t, 4> used{};
            for (const auto task : cluster.tasks_on(node)) {
                const auto k = index(task);
                if (t.standby[k]) continue;  // others may use what it lends
                const auto gpus = std::int64_t{gpu_count(cluster.gpus_of(task) & healthy)} *
                                  std::int64_t{t.gpu_share_milli[k]};
                const bool counts = t.daemon[k] || confined[t.requirement[k]] == model;
                const std::array amounts{t.cpu_milli[k], t.memory_mib[k], gpus, counts ? gpus : 0};
                for (std::size_t r = 0; r < amounts.size(); ++r)
                    (t.daemon[k] ? capacity[r] : used[r]) += t.daemon[k] ? -amounts[r] : amounts[r];
            }
            for (std::size_t r = 0; r < capacity.size(); ++r) {
                if (r == of_models && model == none<GpuModelId>) break;
                auto& supply = all_[r < of_models ? r : of_models + index(model)];
                supply.capacity[i] = std::max<std::int64_t>(0, capacity[r]);
                supply.idle += std::max<std::int64_t>(0, supply.capacity[i] - used[r]);
            }
        }
    }

    /// Calls `visit(supply, number)` for the supplies in which the node counts.
    template <class Visit>
    void for_each(NodeId node, Visit&& visit) const {
        for (std::size_t s = 0; s < of_models; ++s) visit(all_[s], s);
        if (const auto model = inv_.nodes.gpu_model[index(node)]; model != none<GpuModelId>)
            visit(all_[of_models + index(model)], of_models + index(model));
    }
    [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
    [[nodiscard]] const std::vector<Supply>& all() const noexcept { return all_; }
    /// The number of the supply that is most likely to limit the node: GPUs of its model, or CPU.
    [[nodiscard]] std::size_t group(NodeId node) const noexcept {
        const auto model = inv_.nodes.gpu_model[index(node)];
        return model == none<GpuModelId> ? 0 : of_models + index(model);
    }

  private:
    static constexpr std::size_t of_models = 3;

    // For each requirement, the only GPU model of the nodes that it accepts; none = several.
    static std::vector<GpuModelId> confined_models(const Cluster& cluster) {
        const auto& inv = cluster.inventory();
        std::vector<std::vector<GpuModelId>> models(inv.node_classes.size());  // by class, each once
        for (const auto node : cluster.nodes()) {
            auto& of_class = models[inv.nodes.node_class[index(node)]];
            const auto model = inv.nodes.gpu_model[index(node)];
            if (cluster.gpu_count(node) > 0 && !inv.nodes.is_cordoned(node) &&
                std::find(of_class.begin(), of_class.end(), model) == of_class.end())
                of_class.push_back(model);
        }
        std::vector<GpuModelId> confined(inv.requirements.size(), none<GpuModelId>);
        for (std::uint32_t r = 0; r < confined.size(); ++r) {
            bool several = false;
            for (std::uint32_t c = 0; c < models.size(); ++c)
                if (!models[c].empty() && inv.eligible(r, c))
                    for (const auto model : models[c]) {
                        several = several || model == none<GpuModelId> ||
                                  (confined[r] != none<GpuModelId> && confined[r] != model);
                        confined[r] = model;
                    }
            if (several) confined[r] = none<GpuModelId>;
        }
        return confined;
    }

    const Inventory& inv_;
    std::vector<Supply> all_;
};

// Returns the fewest batches in which these capacities fit, if each batch has at most `idle`.
static std::int64_t batches_for(std::vector<std::int64_t> capacities, std::int64_t idle) {
    if (capacities.empty()) return 0;
    std::sort(capacities.begin(), capacities.end());
    std::int64_t sum = 0, at_once = 0, smallest = 0;
    for (const auto capacity : capacities) {
        sum += capacity;
        if (smallest + capacity > idle) continue;
        smallest += capacity;
        ++at_once;
    }
    if (at_once == 0) return 0;  // none of these nodes can be drained
    const auto count = std::ssize(capacities);
    return std::max((count + at_once - 1) / at_once, (sum + idle - 1) / idle);
}

static std::int64_t batches_at_least(const Supplies& supplies, const std::vector<NodeId>& nodes,
                                     std::int64_t batch) {
    const auto count = std::ssize(nodes);
    auto least = (count - 1) / batch + (count > 0 ? 1 : 0);
    for (const auto& supply : supplies.all()) {
        std::vector<std::int64_t> capacities;
        for (const auto node : nodes)
            if (supply.capacity[index(node)] > 0) capacities.push_back(supply.capacity[index(node)]);
        least = std::max(least, batches_for(std::move(capacities), supply.idle));
    }
    return least;
}

/// Drains nodes in one order.
class Drain {
  public:
    /// @param nodes  in order
    /// @param singly as many nodes at the start of the order are drained one by one
    Drain(const Cluster& cluster, const DrainOptions& options, const Options& scope, const Supplies& supplies,
          std::vector<NodeId> nodes, std::size_t singly, const Context& context, Budget& budget)
        : state_(cluster), options_(options), scope_(scope), supplies_(supplies), waiting_(std::move(nodes)),
          context_(context), budget_(budget), total_(waiting_.size()), singly_(singly),
          to_drain_(cluster.node_slots()), failed_(cluster.node_slots()), batches_of_(cluster.task_slots()),
          batches_of_job_(cluster.inventory().job_names.size()) {
        for (const auto node : waiting_) to_drain_[index(node)] = 1;
    }

    void run() {
        bool progress = false;
        while (!budget_.exhausted()) {
            if (waiting_.empty()) {
                if (stuck_.empty() || !progress) break;
                waiting_ = std::exchange(stuck_, {});  // earlier batches may have made room
                progress = false;
            }
            auto next = fill();
            progress = progress || !next.nodes.empty();
            if (!next.nodes.empty()) commit(std::move(next));
            budget_.report("drain order", static_cast<std::int64_t>(total_ - waiting_.size()),
                           static_cast<std::int64_t>(total_));
        }
        for (const auto node : waiting_)
            if (!failed_[index(node)]) untried_.push_back(node);
        stuck_.insert(stuck_.end(), waiting_.begin(), waiting_.end());
        std::sort(stuck_.begin(), stuck_.end());
        std::sort(untried_.begin(), untried_.end());
    }

    /// Smaller is better. The statistics are those of `order`.
    [[nodiscard]] auto rank() const {
        return std::tuple(stuck_.size(), order.batches.size(), order.move_cost, order.moved_twice);
    }
    [[nodiscard]] const std::vector<NodeId>& stuck() const noexcept { return stuck_; }
    /// Those of stuck() that the search did not come to before it was stopped.
    [[nodiscard]] const std::vector<NodeId>& untried() const noexcept { return untried_; }
    [[nodiscard]] const Cluster& state() const noexcept { return state_; }

    DrainOrder order;

  private:
    /// A batch that may still grow.
    struct Trial {
        std::vector<NodeId> nodes;
        Result result;
    };

    // Chooses up to `count` waiting nodes that fit beside `with`. The supply that needs the most batches
    // comes first, and of its nodes the first in the order.
    std::vector<NodeId> pick(const std::vector<NodeId>& with, const std::vector<std::uint8_t>& tried,
                             std::size_t count) const {
        std::vector<std::vector<NodeId>> groups(supplies_.count());
        std::vector<std::int64_t> left(supplies_.count()), used(supplies_.count());
        for (const auto node : with)
            supplies_.for_each(node,
                               [&](const Supply& s, std::size_t i) { used[i] += s.capacity[index(node)]; });
        for (auto at = waiting_.rbegin(); at != waiting_.rend(); ++at) {
            if (tried[index(*at)]) continue;
            const auto group = supplies_.group(*at);
            groups[group].push_back(*at);
            left[group] += supplies_.all()[group].capacity[index(*at)];
        }
        std::vector<NodeId> chosen;
        while (chosen.size() < count) {
            std::size_t most = groups.size();
            double pressure = -1;
            for (std::size_t g = 0; g < groups.size(); ++g) {
                const auto idle = static_cast<double>(std::max<std::int64_t>(1, supplies_.all()[g].idle));
                if (groups[g].empty() || static_cast<double>(left[g]) / idle <= pressure) continue;
                pressure = static_cast<double>(left[g]) / idle;
                most = g;
            }
            if (most == groups.size()) break;
            const auto node = groups[most].back();
            groups[most].pop_back();
            left[most] -= supplies_.all()[most].capacity[index(node)];
            bool fits = true;
            supplies_.for_each(node, [&](const Supply& s, std::size_t i) {
                fits = fits && (s.capacity[index(node)] == 0 || used[i] + s.capacity[index(node)] <= s.idle);
            });
            if (!fits && !(with.empty() && chosen.empty())) continue;
            supplies_.for_each(node,
                               [&](const Supply& s, std::size_t i) { used[i] += s.capacity[index(node)]; });
            chosen.push_back(node);
        }
        return chosen;
    }

    // Returns the next batch. Nodes that cannot be drained even alone become stuck.
    Trial fill() {
        const auto most_failures = std::clamp<std::size_t>(2000 / std::max<std::size_t>(1, total_), 2, 16);
        const auto most = static_cast<std::size_t>(options_.batch);
        Trial best;
        if (singly_ > 0) {
            --singly_;
            best = drain({waiting_.front()});
            if (!best.nodes.empty()) return best;
        }
        std::vector<std::uint8_t> tried(state_.node_slots());
        std::size_t failures = 0, step = most;
        while (best.nodes.size() < most && (failures < most_failures || best.nodes.empty()) &&
               !budget_.exhausted()) {
            const auto added = pick(best.nodes, tried, std::min(step, most - best.nodes.size()));
            if (added.empty()) break;
            auto nodes = best.nodes;
            nodes.insert(nodes.end(), added.begin(), added.end());
            auto found = drain(nodes);
            if (found.nodes.size() > best.nodes.size()) {
                for (const auto node : added) tried[index(node)] = 1;
                best = std::move(found);
            } else if (added.size() > 1) {
                step = added.size() / 2;
            } else {
                tried[index(added.front())] = 1;
                ++failures;
                if (best.nodes.empty() && !budget_.exhausted()) {
                    stuck_.push_back(added.front());
                    failed_[index(added.front())] = 1;
                    std::erase(waiting_, added.front());
                }
            }
        }
        return best;
    }

    // Empties as many of the nodes as possible. Destinations that need not be drained later come first.
    Trial drain(const std::vector<NodeId>& nodes) {
        const bool in_use =
            std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return state_.occupants(node) > 0; });
        if (!in_use) return {nodes, {}};
        auto options = scope_;
        options.clear = nodes;
        std::vector<std::uint8_t> chosen(state_.node_slots());
        for (const auto node : nodes) chosen[index(node)] = 1;
        std::size_t settled = 0;
        for (const auto node : state_.nodes()) {
            if (chosen[index(node)]) continue;
            if (to_drain_[index(node)])
                options.exempt.push_back(node);
            else
                ++settled;
        }
        Trial best;
        const auto attempt = [&] {
            options.time_limit = budget_.remaining_s();
            auto result = consolidate(state_, options, context_);
            const auto& vacated = result.plan.vacated_nodes;
            std::vector<NodeId> empty;
            for (const auto node : nodes)
                if (state_.occupants(node) == 0 || std::binary_search(vacated.begin(), vacated.end(), node))
                    empty.push_back(node);
            if (empty.size() > best.nodes.size()) best = {std::move(empty), std::move(result)};
        };
        if (settled > scope_.exempt.size()) attempt();
        if (best.nodes.size() < nodes.size() && options.exempt.size() > scope_.exempt.size()) {
            options.exempt = scope_.exempt;
            attempt();
        }
        return best;
    }

    void commit(Trial next) {
        std::vector<TaskId> moved;
        std::vector<JobId> jobs;  // that restart
        for (const auto& move : next.result.plan.moves) {
            moved.push_back(move.task);
            if (const auto job = state_.inventory().tasks.job[index(move.task)];
                job != none<JobId> && move.how == MoveMode::restart)
                jobs.push_back(job);
        }
        std::sort(moved.begin(), moved.end());
        moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
        for (const auto task : moved) {
            const auto batches = ++batches_of_[index(task)];
            order.moved_tasks += batches == 1 ? 1 : 0;
            order.moved_twice += batches == 2 ? 1 : 0;
        }
        std::sort(jobs.begin(), jobs.end());
        jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
        std::erase_if(jobs, [&](JobId job) {
            const auto batches = ++batches_of_job_[index(job)];
            order.jobs_restarted_twice += batches == 2 ? 1 : 0;
            return batches == 1;
        });
        order.moves += std::ssize(next.result.plan.moves);
        order.move_cost += next.result.stats.relocation_cost;
        state_ = apply(state_, next.result.plan);
        for (const auto node : next.nodes) to_drain_[index(node)] = 0;
        std::erase_if(waiting_, [&](NodeId node) { return to_drain_[index(node)] == 0; });
        std::sort(next.nodes.begin(), next.nodes.end());
        order.batches.push_back({std::move(next.nodes), std::move(next.result.plan), std::move(jobs)});
    }

    Cluster state_;
    const DrainOptions& options_;
    const Options& scope_;
    const Supplies& supplies_;
    std::vector<NodeId> waiting_, stuck_, untried_;
    const Context& context_;
    Budget& budget_;
    std::size_t total_, singly_;
    std::vector<std::uint8_t> to_drain_;    // by NodeId: waiting or stuck
    std::vector<std::uint8_t> failed_;      // by NodeId: could not be drained even alone
    std::vector<std::int64_t> batches_of_;  // by TaskId
    std::vector<std::int64_t> batches_of_job_;
};

static Explanation explain_untried(const Cluster& cluster, NodeId node) {
    return {.node = node,
            .fate = NodeFate::not_worthwhile,
            .text = "node " + gpusched::quoted(cluster.name(node)) + " was not tried: the search ended"};
}

// The order of the nodes in one try: the least used first, the most used first, then random orders.
static void sort_nodes(const Cluster& cluster, std::vector<NodeId>& nodes, std::int64_t number, Rng& rng) {
    if (number >= 2) return rng.shuffle(std::span(nodes));
    const auto used = [&](NodeId node) {
        std::int64_t gpus = 0, cpu = 0;
        for (const auto task : cluster.tasks_on(node)) {
            if (cluster.inventory().tasks.daemon[index(task)]) continue;
            gpus += cluster.gpu_milli(task);
            cpu += cluster.inventory().tasks.cpu_milli[index(task)];
        }
        const auto sign = number == 0 ? 1 : -1;
        return std::tuple(sign * gpus, sign * cpu, node);
    };
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return used(a) < used(b); });
}

// Returns the name of the GPU model.
static std::string validate_drain(const DrainOptions& options, const Cluster& cluster) {
    Problems problems;
    check_fields(problems, options);
    check_nodes(problems, "exempt", cluster, options.exempt);
    if (options.nodes) check_nodes(problems, "nodes", cluster, *options.nodes, options.exempt);
    auto model = full_gpu_model(problems, cluster, options.gpu_model);
    problems.throw_if_any();
    return model;
}

}  // namespace detail

GPUSCHED_EXPORT std::int64_t drain_batches_at_least(const Cluster& cluster, std::vector<NodeId> nodes,
                                                    std::int64_t batch) {
    require_range("batch", batch, 1, std::numeric_limits<std::int64_t>::max());
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return detail::batches_at_least(detail::Supplies(cluster), nodes, batch);
}

GPUSCHED_EXPORT DrainOrder drain_order(const Cluster& cluster, const DrainOptions& options,
                                       const Context& context) {
    const auto model = detail::validate_drain(options, cluster);
    Options scope_options;
    scope_options.preset = options.preset;
    scope_options.seed = options.seed;
    scope_options.threads = options.threads;
    scope_options.open_price = 0;
    scope_options.protect_core_members = options.protect_core_members;
    scope_options.objective = Objective::nodes;
    scope_options.exempt = options.exempt;
    scope_options.limits = options.limits;
    scope_options.search.bound_method = BoundMethod::none;
    std::vector<std::uint8_t> exempt(cluster.node_slots());
    for (const auto node : options.exempt) exempt[index(node)] = 1;
    std::vector<NodeId> nodes;
    if (options.nodes) {
        nodes = *options.nodes;
        std::sort(nodes.begin(), nodes.end());
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    } else {
        for (const auto node : cluster.nodes())
            if (!exempt[index(node)]) nodes.push_back(node);
    }
    if (!model.empty())
        std::erase_if(nodes,
                      [&, id = make_id<GpuModelId>(cluster.inventory().gpu_models.find(model).value())](
                          NodeId node) { return cluster.inventory().nodes.gpu_model[index(node)] != id; });

    Budget budget(context, options.time_limit);
    const detail::Threads threads(scope_options, context);
    auto inner = context;
    inner.executor = threads.executor();
    inner.progress = {};
    const auto scope = make_scope(cluster, scope_options);
    const detail::Supplies supplies(cluster);
    std::vector<NodeId> fixed, drainable;
    std::int64_t least_cost = 0;
    for (const auto node : nodes) {
        const auto tasks = cluster.tasks_on(node);
        const bool stays = std::any_of(tasks.begin(), tasks.end(), [&](TaskId task) {
            return !cluster.inventory().tasks.daemon[index(task)] && !scope.movable[index(task)];
        });
        (stays ? fixed : drainable).push_back(node);
        if (!stays) least_cost += detail::cost_of_leaving(cluster, scope, node);
    }

    Rng rng(options.seed);
    std::optional<detail::Drain> best;
    for (std::int64_t number = 0; number < options.tries && !(best && budget.exhausted()); ++number) {
        auto in_order = drainable;
        detail::sort_nodes(cluster, in_order, number, rng);
        const auto run = [&](std::size_t singly) {
            detail::Drain drain(cluster, options, scope_options, supplies, in_order, singly, inner, budget);
            drain.run();
            auto stuck = drain.stuck();
            if (!best || drain.rank() < best->rank()) best.emplace(std::move(drain));
            return stuck;
        };
        if (const auto stuck = run(0); !stuck.empty() && !budget.exhausted()) {
            // Other batches may have filled these nodes, so they come first, one by one.
            std::stable_partition(in_order.begin(), in_order.end(), [&](NodeId node) {
                return std::binary_search(stuck.begin(), stuck.end(), node);
            });
            run(stuck.size());
        }
        const auto least = detail::batches_at_least(supplies, drainable, options.batch);
        if (best->stuck().empty() && std::ssize(best->order.batches) == least &&
            best->order.move_cost == least_cost)
            break;
    }

    auto result = std::move(best->order);
    std::vector<std::uint8_t> left(cluster.node_slots());
    for (auto& why : detail::explain_each(best->state(), fixed, scope_options))
        result.left.push_back(std::move(why));
    for (const auto node : best->stuck()) {
        left[index(node)] = 1;
        if (std::binary_search(best->untried().begin(), best->untried().end(), node)) {
            result.left.push_back(detail::explain_untried(cluster, node));
            continue;
        }
        auto alone = scope_options;
        alone.clear = {node};
        result.left.push_back(explain(best->state(), {}, node, alone));
    }
    std::sort(result.left.begin(), result.left.end(),
              [](const Explanation& a, const Explanation& b) { return a.node < b.node; });
    std::erase_if(drainable, [&](NodeId node) { return left[index(node)] != 0; });
    result.batches_at_least = detail::batches_at_least(supplies, drainable, options.batch);
    result.stop_reason = budget.reason();
    return result;
}

}  // namespace gpusched::consolidation
