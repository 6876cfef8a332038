// SPDX-License-Identifier: Apache-2.0
// Finds the blockers of a cluster, and plans without each of them.
#include "consolidation/checks.hpp"
#include "consolidation/explain_parts.hpp"
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/consolidation/blockers.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/threads.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/order.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

/// A blocker, or a pair, and the GPUs and nodes that it alone holds.
struct Candidate {
    std::vector<std::size_t> blockers;  // positions in BlockerSearch::found_
    std::int64_t gpus = 0, nodes = 0;
};

static FixedBy fixed_by(BlockerKind kind) {
    switch (kind) {
    case BlockerKind::budget:
        return FixedBy::budget;
    case BlockerKind::no_disruption:
        return FixedBy::no_disruption;
    case BlockerKind::no_controller:
        return FixedBy::no_controller;
    case BlockerKind::never_moves:
        return FixedBy::never_moves;
    case BlockerKind::bound_to_node:
        return FixedBy::bound_to_node;
    case BlockerKind::locked:
        return FixedBy::locked;
    case BlockerKind::cpu_local:
        return FixedBy::cpu_local;
    case BlockerKind::standby:
        return FixedBy::standby;
    case BlockerKind::core_members:
        return FixedBy::core_member;
    case BlockerKind::gang_domain:  // its members move, but only together
        break;
    }
    return FixedBy::none;
}

/// Removes blockers from a cluster until the end of its life.
class Without {
  public:
    explicit Without(Cluster& cluster) : cluster_(cluster) {}
    Without(const Without&) = delete;
    Without& operator=(const Without&) = delete;
    ~Without() {
        for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
    }

    /// @return false if the cluster cannot exist without the blocker: for example, if others use the
    ///     resources that a Standby task lends
    bool try_remove(const FixedTasks& blocker) {
        try {
            remove(blocker);
            return true;
        } catch (const InvalidInput&) {
            return false;
        }
    }

  private:
    void remove(const FixedTasks& blocker) {
        const auto& inv = cluster_.inventory();
        switch (blocker.kind) {
        case BlockerKind::budget: {
            const auto old =
                cluster_.budget_spec(static_cast<std::uint32_t>(inv.budget_names.find(blocker.name).value()));
            auto changed = old;
            changed.broken = false;
            changed.allowed_down = std::numeric_limits<std::int32_t>::max();
            cluster_.update_budget(changed);
            undo_.emplace_back([this, old] { cluster_.update_budget(old); });
            return;
        }
        case BlockerKind::no_disruption:
        case BlockerKind::core_members: {
            const auto job = make_id<JobId>(inv.job_names.find(blocker.name).value());
            const auto old = cluster_.job_spec(job);
            auto changed = old;
            if (blocker.kind == BlockerKind::no_disruption) {
                changed.max_disrupted.reset();
            } else {
                changed.min_members = 0;
                for (auto& subgroup : changed.subgroups) subgroup.min_members = 0;
            }
            cluster_.update_job(cluster_.handle(job), changed);
            undo_.emplace_back([this, job, old] { cluster_.update_job(cluster_.handle(job), old); });
            return;
        }
        default:
            for (const auto task : blocker.tasks) change(task, blocker.kind);
        }
    }
    void change(TaskId task, BlockerKind kind) {
        const auto old = cluster_.task_spec(task);
        auto changed = old;
        if (kind == BlockerKind::locked) changed.locked = false;
        if (kind == BlockerKind::standby) changed.standby = false;
        if (kind == BlockerKind::cpu_local) changed.cpu_local = false;
        if (kind == BlockerKind::no_controller || kind == BlockerKind::never_moves)
            changed.how = Mobility::restart;
        if (kind == BlockerKind::bound_to_node) open_nodes(changed);
        if (kind == BlockerKind::gang_domain) changed.network_affinity.reset();
        cluster_.update_task(cluster_.handle(task), changed);
        undo_.emplace_back([this, task, old] { cluster_.update_task(cluster_.handle(task), old); });
    }

    /// Lets the task run on nodes of any name, and reach its volumes from all of them.
    static void open_nodes(TaskSpec& task) {
        task.node_selector.erase(hostname);
        for (auto& term : task.node_affinity) {
            term.match_fields.clear();
            std::erase_if(term.match_expressions,
                          [](const NodeMatch& match) { return match.key == hostname; });
        }
        if (std::any_of(task.node_affinity.begin(), task.node_affinity.end(),
                        [](const NodeTerm& term) { return term.match_expressions.empty(); }))
            task.node_affinity.clear();
        std::erase_if(task.resources,
                      [](const auto& resource) { return gpusched::detail::is_volume(resource.first); });
    }

    Cluster& cluster_;
    std::vector<std::function<void()>> undo_;
};

class BlockerSearch {
  public:
    BlockerSearch(const Cluster& cluster, const BlockerOptions& options, const Context& outer)
        : cluster_(cluster), inv_(cluster.inventory()), options_(options), context_(outer),
          budget_(outer, options.time_limit), held_by_(cluster.node_slots()) {
        plan_options_.seed = options.seed;
        plan_options_.threads = options.threads;
        plan_options_.exempt = options.exempt;
        plan_options_.protect_core_members = options.protect_core_members;
        plan_options_.search.bound_method = BoundMethod::none;
        policies_ = make_policies(options.preset, {}, options.objective);
        // A node that takes no tasks is of no use when it is empty.
        const auto is_open = [&](NodeId node) {
            return !inv_.nodes.is_cordoned(node) &&
                   !gpusched::detail::is_not_ready(
                       inv_.node_classes[inv_.nodes.node_class[index(node)]].taints);
        };
        const auto nodes = cluster.nodes();
        if (options.gpu_model.empty() && std::all_of(nodes.begin(), nodes.end(), is_open)) return;
        counts_.assign(cluster.node_slots(), 0);
        if (options.gpu_model.empty())
            for (const auto node : nodes) counts_[index(node)] = is_open(node);
        else
            for (const auto node : goal_nodes(cluster, {.empty_nodes = 1, .gpu_model = options.gpu_model}))
                counts_[index(node)] = is_open(node);
        policies_.node_weight = [this, weight = policies_.node_weight](const Cluster& c, NodeId n) {
            return counts_[index(n)] ? weight(c, n) : 0;
        };
    }

    BlockerRanking run() {
        const Threads threads(plan_options_, context_);
        context_.executor = threads.executor();
        context_.progress = {};
        auto base = plan(cluster_);
        result_.preset = options_.preset;
        base_nodes_ = counted(base.plan.vacated_nodes);
        result_.vacated_nodes = std::ssize(base_nodes_);
        result_.vacated_gpus = gpus(base_nodes_);
        base_value_ = base.stats.value_milli;
        find();
        find_gangs(base.plan.vacated_nodes);
        result_.found = std::ssize(found_);
        result_.plan = std::move(base.plan);

        std::vector<Candidate> single(found_.size());
        std::map<std::vector<std::size_t>, Candidate> pairs;
        for (std::size_t b = 0; b < found_.size(); ++b) single[b].blockers = {b};
        for (const auto node : cluster_.nodes()) {
            const auto& held_by = held_by_[index(node)];
            if (held_by.empty() || !counts(node)) continue;
            for (const auto number : held_by) ++found_[number].nodes;
            ++result_.nodes_held;
            result_.gpus_held += gpu_count(cluster_.healthy_gpus(node));
            if (held_by.size() > 2) continue;
            auto& holder = held_by.size() == 1 ? single[held_by[0]] : pairs[held_by];
            holder.blockers = held_by;
            add(holder, node);
        }
        for (const auto& [gang, node] : gang_nodes_) {
            ++found_[gang].nodes;
            add(single[gang], node);
        }
        Cluster trial = cluster_;
        const bool all_help = plan_without_all(trial);
        if (all_help)
            plan_without(trial, single);
        else
            for (const auto& blocker : found_)
                result_.not_removable += Without(trial).try_remove(blocker) ? 0 : 1;
        if (result_.ranked.empty()) list_others();
        const bool all_tried = result_.planned + result_.not_removable == result_.found;
        if (result_.ranked.empty() && all_help && all_tried && !budget_.exhausted()) {
            result_.pairs = true;
            add_pairs(single, pairs);
            std::vector<Candidate> list;
            for (auto& [key, candidate] : pairs) list.push_back(std::move(candidate));
            plan_without(trial, std::move(list));
        }
        if (budget_.exhausted()) result_.stop_reason = budget_.reason();
        return std::move(result_);
    }

  private:
    [[nodiscard]] bool counts(NodeId node) const { return counts_.empty() || counts_[index(node)] != 0; }
    [[nodiscard]] std::vector<NodeId> counted(const std::vector<NodeId>& nodes) const {
        std::vector<NodeId> some;
        std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(some),
                     [&](NodeId node) { return counts(node); });
        return some;
    }
    [[nodiscard]] std::int64_t gpus(const std::vector<NodeId>& nodes) const {
        std::int64_t sum = 0;
        for (const auto node : nodes) sum += gpu_count(cluster_.healthy_gpus(node));
        return sum;
    }
    void add(Candidate& candidate, NodeId node) const {
        candidate.gpus += gpu_count(cluster_.healthy_gpus(node));
        ++candidate.nodes;
    }

    // Adds the pairs of the blockers that alone hold the most, as many as can be planned.
    void add_pairs(std::vector<Candidate> single,
                   std::map<std::vector<std::size_t>, Candidate>& pairs) const {
        std::stable_sort(single.begin(), single.end(), [](const Candidate& a, const Candidate& b) {
            return std::pair(-a.gpus, -a.nodes) < std::pair(-b.gpus, -b.nodes);
        });
        const auto left =
            static_cast<std::size_t>(std::max<std::int64_t>(0, options_.max_plans - result_.planned));
        for (std::size_t b = 1; b < single.size() && pairs.size() < left; ++b)
            for (std::size_t a = 0; a < b; ++a) {
                auto key = {std::min(single[a].blockers[0], single[b].blockers[0]),
                            std::max(single[a].blockers[0], single[b].blockers[0])};
                pairs[key].blockers = key;
            }
        std::map<std::size_t, const Candidate*> alone;
        for (const auto& one : single) alone[one.blockers[0]] = &one;
        for (auto& [key, pair] : pairs)
            for (const auto number : key) {
                pair.gpus += alone[number]->gpus;
                pair.nodes += alone[number]->nodes;
            }
    }

    std::size_t blocker(BlockerKind kind, const std::string& name, TaskId task) {
        // Jobs and tasks may share a name.
        const bool is_job = inv_.tasks.job[index(task)] != none<JobId>;
        const auto [at, is_new] =
            number_.try_emplace({kind, kind != BlockerKind::budget && is_job, name}, found_.size());
        if (is_new) {
            auto reason = kind == BlockerKind::gang_domain ? "its job must stay within one network domain"
                                                           : fixed_text(cluster_, task, fixed_by(kind));
            found_.push_back({kind, name, std::move(reason), {}, 0});
        } else if (kind == BlockerKind::locked &&
                   fixed_text(cluster_, task, FixedBy::locked) != found_[at->second].reason) {
            found_[at->second].reason = enum_name(FixedBy::locked);  // for several reasons
        }
        auto& tasks = found_[at->second].tasks;
        if (tasks.empty() || tasks.back() != task) tasks.push_back(task);
        return at->second;
    }
    [[nodiscard]] const std::string& owner(TaskId task) const {
        const auto job = inv_.tasks.job[index(task)];
        return job == none<JobId> ? cluster_.name(task) : inv_.job_names[index(job)];
    }

    // Finds everything that keeps a task from moving, and the nodes that it holds.
    void find() {
        const auto& t = inv_.tasks;
        const auto scope = make_scope(cluster_, plan_options_);
        std::vector<std::uint8_t> exempt(cluster_.node_slots());
        for (const auto node : options_.exempt) exempt[index(node)] = 1;
        for (const auto task : cluster_.tasks()) {
            const auto i = index(task);
            if (!cluster_.is_placed(task) || t.daemon[i] || exempt[index(cluster_.node_of(task))]) continue;
            auto& held_by = held_by_[index(cluster_.node_of(task))];
            bool fixed = false;
            const auto hold = [&](BlockerKind kind, const std::string& name) {
                const auto number = blocker(kind, name, task);
                fixed = true;
                if (std::find(held_by.begin(), held_by.end(), number) == held_by.end())
                    held_by.push_back(number);
            };
            if (t.locked[i]) hold(BlockerKind::locked, owner(task));
            if (t.standby[i]) hold(BlockerKind::standby, owner(task));
            if (inv_.task_affinities[t.affinities[i]].cpu_local) hold(BlockerKind::cpu_local, owner(task));
            if (t.how(task) == Mobility::none)
                hold(has_no_controller(inv_, task) ? BlockerKind::no_controller : BlockerKind::never_moves,
                     owner(task));
            if (is_bound(task)) hold(BlockerKind::bound_to_node, owner(task));
            const auto job = t.job[i];
            if (job != none<JobId> && inv_.job_max_disrupted[index(job)] == 0)
                hold(BlockerKind::no_disruption, owner(task));
            if (t.how(task) != Mobility::copy)
                for (const auto budget : inv_.budgets_of(task))
                    if (inv_.budgets[budget].allows() == 0)
                        hold(BlockerKind::budget, inv_.budget_names[budget]);
            if (!fixed && !scope.movable[i] && job != none<JobId>)
                hold(BlockerKind::core_members, owner(task));
        }
        for (auto& held_by : held_by_) std::sort(held_by.begin(), held_by.end());
    }

    // True if no node except its own passes the names of nodes and the volumes that the task asks for.
    bool is_bound(TaskId task) {
        const auto i = index(task);
        const auto [at, is_new] = bound_.try_emplace(
            {inv_.tasks.requirement[i], inv_.tasks.extras[i], cluster_.node_of(task)}, false);
        if (is_new) at->second = !bound_by(cluster_, task).empty();
        return at->second;
    }

    // Finds the gangs that must stay within one domain, and the nodes that they use and nothing else holds.
    void find_gangs(const std::vector<NodeId>& vacated) {
        for (const auto task : cluster_.tasks()) {
            const auto& network = inv_.task_affinities[inv_.tasks.affinities[index(task)]].network_affinity;
            if (!network || network->mode != NetworkMode::required || !cluster_.is_movable(task) ||
                inv_.tasks.job[index(task)] == none<JobId>)
                continue;
            const auto number = blocker(BlockerKind::gang_domain, owner(task), task);
            const auto node = cluster_.node_of(task);
            if (held_by_[index(node)].empty() && counts(node) &&
                !std::binary_search(vacated.begin(), vacated.end(), node))
                gang_nodes_.insert({number, node});
        }
    }

    // Plans without any blocker: no single one frees more. Returns whether that frees more than with all.
    bool plan_without_all(Cluster& trial) {
        result_.nodes_without_all = result_.vacated_nodes;
        result_.gpus_without_all = result_.vacated_gpus;
        if (found_.empty() || budget_.exhausted()) return false;
        Without without(trial);
        for (const auto& blocker : found_) without.try_remove(blocker);
        const auto plan = this->plan(trial);
        if (plan.stats.value_milli <= base_value_) return false;
        const auto nodes = counted(plan.plan.vacated_nodes);
        result_.nodes_without_all = std::ssize(nodes);
        result_.gpus_without_all = gpus(nodes);
        return true;
    }
    void list_others() {
        constexpr std::size_t most = 10;
        result_.others = found_;
        std::stable_sort(result_.others.begin(), result_.others.end(), [](const auto& a, const auto& b) {
            return std::tuple(-a.nodes, a.kind, std::string_view(a.name)) <
                   std::tuple(-b.nodes, b.kind, std::string_view(b.name));
        });
        if (result_.others.size() > most) result_.others.resize(most);
    }
    [[nodiscard]] Result plan(const Cluster& trial) {
        plan_options_.time_limit = budget_.remaining_s();
        return consolidate(trial, policies_, plan_options_, context_);
    }

    // Plans without each candidate in turn and keeps those that free more.
    void plan_without(Cluster& trial, std::vector<Candidate> candidates) {
        const bool by_gpus = options_.objective == Objective::gpus;
        const auto names = [&](const Candidate& c) {
            std::vector<std::tuple<BlockerKind, std::string_view, std::size_t>> list;
            for (const auto b : c.blockers) list.emplace_back(found_[b].kind, found_[b].name, b);
            return list;
        };
        std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
            const auto key = [&](const Candidate& c) {
                return by_gpus ? std::pair(-c.gpus, -c.nodes) : std::pair(-c.nodes, -c.gpus);
            };
            return std::tuple(key(a), names(a)) < std::tuple(key(b), names(b));
        });
        std::int64_t done = 0;
        for (const auto& candidate : candidates) {
            if (budget_.exhausted() || result_.planned + result_.pairs_planned >= options_.max_plans) break;
            budget_.report(result_.pairs ? "pairs of blockers" : "blockers", done++,
                           static_cast<std::int64_t>(candidates.size()));
            Without without(trial);
            const bool possible = std::all_of(candidate.blockers.begin(), candidate.blockers.end(),
                                              [&](auto b) { return without.try_remove(found_[b]); });
            if (!possible) {
                result_.not_removable += result_.pairs ? 0 : 1;
                continue;
            }
            ++(result_.pairs ? result_.pairs_planned : result_.planned);
            const auto plan = this->plan(trial);
            if (plan.stats.value_milli <= base_value_) continue;
            const auto nodes = counted(plan.plan.vacated_nodes);
            RankedBlocker ranked;
            for (const auto b : candidate.blockers) ranked.blockers.push_back(found_[b]);
            ranked.nodes = std::ssize(nodes) - result_.vacated_nodes;
            ranked.gpus = gpus(nodes) - result_.vacated_gpus;
            std::set_difference(nodes.begin(), nodes.end(), base_nodes_.begin(), base_nodes_.end(),
                                std::back_inserter(ranked.freed));
            result_.ranked.push_back(std::move(ranked));
        }
        const auto tasks = [](const RankedBlocker& r) {
            std::size_t sum = 0;
            for (const auto& blocker : r.blockers) sum += blocker.tasks.size();
            return sum;
        };
        std::stable_sort(result_.ranked.begin(), result_.ranked.end(), [&](const auto& a, const auto& b) {
            const auto key = [&](const RankedBlocker& r) {
                return by_gpus ? std::tuple(-r.gpus, -r.nodes, tasks(r))
                               : std::tuple(-r.nodes, -r.gpus, tasks(r));
            };
            return key(a) < key(b);
        });
    }

    const Cluster& cluster_;
    const Inventory& inv_;
    const BlockerOptions& options_;
    Context context_;
    Budget budget_;
    Options plan_options_;
    AnyPolicies policies_ = presets::fast();
    std::vector<std::uint8_t> counts_;  // by NodeId; empty = all nodes
    std::vector<NodeId> base_nodes_;
    std::int64_t base_value_ = 0;
    std::vector<FixedTasks> found_;
    // Positions in found_; true = of a job.
    std::map<std::tuple<BlockerKind, bool, std::string>, std::size_t> number_;
    std::vector<std::vector<std::size_t>> held_by_;  // by NodeId
    std::set<std::pair<std::size_t, NodeId>> gang_nodes_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, NodeId>, bool> bound_;  // by requirement, extras, node
    BlockerRanking result_;
};

}  // namespace detail

GPUSCHED_EXPORT BlockerRanking blockers(const Cluster& cluster, const BlockerOptions& options,
                                        const Context& context) {
    Problems problems;
    check_fields(problems, options);
    detail::check_nodes(problems, "exempt", cluster, options.exempt);
    auto resolved = options;
    resolved.gpu_model = detail::full_gpu_model(problems, cluster, options.gpu_model);
    problems.throw_if_any();
    return detail::BlockerSearch(cluster, resolved, context).run();
}

}  // namespace gpusched::consolidation
