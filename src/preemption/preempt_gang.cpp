// SPDX-License-Identifier: Apache-2.0
// Preemption for all pods of a gang, domain by domain.
#include "allocation/exact_packing.hpp"
#include "model/placement_order.hpp"
#include "preemption/node_evaluator.hpp"
#include "preemption/placement_check.hpp"
#include "preemption/replace_victims.hpp"
#include "preemption/request.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/waiting.hpp>
#include <gpusched/preemption/preempt_gang.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace gpusched::preemption {
namespace detail {

// The losses by evictions.
struct Losses {
    std::int64_t over_budget = 0, gangs = 0, cost = 0;

    void add_cost(std::int64_t more) { cost = std::min(cost, INT64_MAX - more) + more; }
};

static std::vector<Placement> placements_of(const GangDecision& decision, std::span<const TaskId> pods) {
    std::vector<Placement> placements;
    for (std::size_t i = 0; i < pods.size(); ++i)
        placements.push_back({pods[i], decision.pods[i].node, decision.pods[i].gpus});
    return placements;
}

// The deepest network level that the pod or its job requires.
static std::optional<Level> required_level(const Inventory& inv, TaskId pod) {
    std::optional<Level> deepest;
    for (const auto& m : inv.affinity_memberships(pod)) {
        const auto& set = inv.group_sets[m.set];
        if (set.kind != GroupKind::network || deepest == node_level) continue;
        if (!deepest || set.level == node_level || set.level > *deepest) deepest = set.level;
    }
    return deepest;
}

/// Places the pods of one gang in one domain after the other, on a working copy of the cluster.
class GangSearch {
  public:
    GangSearch(const Cluster& cluster, std::span<const TaskId> pods, const Options& options, Budget& budget)
        : cluster_(cluster), pods_(pods), options_(options), budget_(budget), now_(cluster),
          spared_(cluster.task_slots(), 0) {
        now_.commit();
        evaluator_->watch(&budget);
        const auto& inv = cluster.inventory();
        std::optional<Level> level;
        // Requests with the same table of localities. Their addresses stay valid: `requests_` is reserved.
        std::map<std::pair<int, std::uint32_t>, const Request*> alike;
        requests_.reserve(pods.size());
        for (const auto pod : pods) {
            const Request* known_table = nullptr;
            std::pair<int, std::uint32_t> key;
            if (cluster.contains(pod)) {
                key = {inv.tasks.gpu_count[index(pod)], inv.tasks.affinities[index(pod)]};
                if (const auto at = alike.find(key); at != alike.end()) known_table = at->second;
            }
            requests_.emplace_back(cluster, pod, options, known_table);
            alike.try_emplace(key, &requests_.back());
            if (spared_[index(pod)]++ != 0)
                throw InvalidInput("pods: " + gpusched::quoted(cluster.name(pod)) + " is listed twice");
            const auto own = required_level(inv, pod);
            if (pod != pods.front() && own != level)
                throw InvalidInput(
                    "pods: " + gpusched::quoted(cluster.name(pod)) +
                    " requires another network level than the first pod; expected the same level");
            level = own;
            // The search stays within one domain, so network constraints hold already.
            const auto groups = inv.affinity_memberships(pod);
            requests_.back().grouped = !inv.anti_affinity_memberships(pod).empty() ||
                                       !inv.selection_memberships(pod).empty() ||
                                       std::any_of(groups.begin(), groups.end(), [&](const Membership& m) {
                                           return inv.group_sets[m.set].kind != GroupKind::network;
                                       });
        }
        unbroken_.assign(inv.job_names.size(), 0);
        for (const auto pod : pods)
            if (const auto job = inv.tasks.job[index(pod)]; job != none<JobId>) unbroken_[index(job)] = 1;
        down_.assign(inv.budgets.size(), 0);
        for (auto& request : requests_) {
            request.spared = spared_.data();
            request.unbroken = unbroken_.data();
            request.down = down_.data();
        }
        std::map<decltype(allocation::detail::shape_of(inv, TaskId{})), std::size_t> known;
        for (std::size_t i = 0; i < pods.size(); ++i) {
            const auto [at, is_new] =
                known.try_emplace(allocation::detail::shape_of(inv, pods[i]), shapes_.size());
            if (is_new) shapes_.push_back({{}, requests_[i].level});
            shapes_[at->second].pods.push_back(pods[i]);
            position_[pods[i]] = i;
        }
        before_.read(cluster);
        find_domains(level);
        order_ = order_by(pods.size(), [&](std::size_t i) {
            return std::tuple(-requests_[i].gpus, -requests_[i].cpu_milli);
        });
    }
    GangSearch(const GangSearch&) = delete;  // requests point to members
    GangSearch& operator=(const GangSearch&) = delete;

    struct Domain {
        std::string name{};
        std::vector<NodeId> nodes{};
    };
    [[nodiscard]] const std::vector<Domain>& domains() const noexcept { return domains_; }
    /// Returns whether running members restrict the pods to at most one domain.
    [[nodiscard]] bool is_bound() const noexcept { return bound_; }

    [[nodiscard]] bool proven() const noexcept { return evaluator_->proven() && fits_known_; }
    /// The losses of the last `place`.
    [[nodiscard]] const Losses& losses() const noexcept { return losses_; }
    /// The number of pods that it placed, and the pod that did not fit.
    [[nodiscard]] std::size_t placed() const noexcept { return placed_; }
    [[nodiscard]] TaskId stuck() const noexcept { return pods_[order_[placed_]]; }

    /// Places all pods within the domain. Evicts no task if they fit together without evictions.
    /// @return false if some pod does not fit
    [[nodiscard]] bool place(const Domain& domain, GangDecision& made) {
        const bool found = place_in_order(domain, made);
        if ((found && made.victims.empty()) || budget_.reason() != StopReason::completed) return found;
        if (place_as_it_is(domain)) {
            made = std::move(without_);
            return true;
        }
        return found;
    }

  private:
    /// Places the pods in sequence; a pod that does not fit evicts tasks.
    [[nodiscard]] bool place_in_order(const Domain& domain, GangDecision& made) {
        start(made);
        for (placed_ = 0; placed_ < pods_.size(); ++placed_) {
            const auto i = order_[placed_];
            const auto& request = requests_[i];
            const auto [chosen, at] = choose(request, domain.nodes);
            if (!chosen.found()) return false;
            evaluator_->read(now_, request, options_.cost, at, &gangs_);
            auto& decision = made.pods[i];
            evaluator_->decide(chosen, request.spot, decision);
            require_placement(now_, request, decision, &gangs_);
            for (const auto victim : decision.victims) {
                losses_.add_cost(cost_of(cluster_, victim, request.now, options_.cost));
                made.victims.push_back(victim);
                now_.remove(victim);
                gangs_.evict(victim);
                for (const auto budget : cluster_.inventory().budgets_of(victim)) ++down_[budget];
            }
            now_.assign(pods_[i], decision.node, decision.gpus);
        }
        finish(made);
        return holds_in_some_order(made);
    }

    /// In the plan all victims leave before the first pod starts. That can violate `spread`,
    /// because a victim of a later pod may have counted.
    [[nodiscard]] bool holds_in_some_order(const GangDecision& made) const {
        const auto& inv = cluster_.inventory();
        if (std::all_of(pods_.begin(), pods_.end(),
                        [&](TaskId pod) { return inv.selection_memberships(pod).empty(); }))
            return true;
        Cluster after(cluster_);
        for (const auto victim : made.victims) after.remove(victim);
        return gpusched::detail::can_be_placed(after, placements_of(made, pods_));
    }

    /// Places all pods without evictions, by the exact search, into `without_`.
    [[nodiscard]] bool place_as_it_is(const Domain& domain) {
        // Equal pods without locality or group constraints: placing them in sequence is already exact.
        const auto& any = requests_.front();
        if (shapes_.size() == 1 && !any.level && !any.grouped && !any.cpu_local) return false;
        const auto lost = losses_;
        start(without_);
        const bool grouped =
            std::any_of(requests_.begin(), requests_.end(), [](const Request& r) { return r.grouped; });
        auto steps = allocation::detail::packing_steps;
        std::vector<Placement> packed;
        const auto found =
            allocation::detail::pack(now_, shapes_, domain.nodes, grouped, steps, packed, &budget_);
        fits_known_ = fits_known_ && found != allocation::detail::Packed::unknown;
        // First with the GPUs that each pod chooses, then with the GPUs of the search.
        for (const bool chosen : {true, false}) {
            if (found != allocation::detail::Packed::yes) break;
            start(without_);
            if (!std::all_of(packed.begin(), packed.end(),
                             [&](const Placement& p) { return put_as_it_is(p, chosen); }))
                continue;
            finish(without_);
            return true;
        }
        // The search ignores local cores, so other packings may exist.
        fits_known_ = fits_known_ && found == allocation::detail::Packed::no;
        losses_ = lost;
        return false;
    }
    [[nodiscard]] bool put_as_it_is(const Placement& at, bool chosen) {
        if (!passes(at.task, at.node)) return false;
        const auto i = position_.at(at.task);
        const auto& request = requests_[i];
        auto& decision = without_.pods[i];
        evaluator_->forget();
        evaluator_->read(now_, request, options_.cost, at.node, &gangs_);
        Answer as_it_is;
        as_it_is.locality = evaluator_->locality_now();
        if (as_it_is.locality == infeasible) return false;
        evaluator_->decide(as_it_is, request.spot, decision);
        if (!chosen && decision.gpus != at.gpus) {
            const auto& inv = now_.inventory();
            const auto h = inv.nodes.hardware[index(at.node)];
            decision.gpus = at.gpus;
            const auto* const hardware = h == NodeTable::no_hardware ? nullptr : &inv.hardware[h];
            decision.topology = static_cast<topology::GpuLocality>(
                request.locality(hardware, at.gpus & ~now_.devices(at.node)));
        }
        if (!placement_holds(now_, request, decision)) return false;
        now_.assign(at.task, at.node, decision.gpus);
        return true;
    }

    [[nodiscard]] bool passes(TaskId pod, NodeId node) const {
        return !options_.filter || (*options_.filter)(now_, pod, node);
    }

    void start(GangDecision& made) {
        now_.rollback(0);
        gangs_ = before_;
        std::fill(down_.begin(), down_.end(), 0);
        losses_ = {};
        made = {};
        made.pods.resize(pods_.size());
    }
    void finish(GangDecision& made) {
        const auto& inv = cluster_.inventory();
        std::sort(made.victims.begin(), made.victims.end());
        const auto placed = placements_of(made, pods_);
        if (options_.replace_victims && !made.victims.empty())
            made.replaced = place_victims_again(cluster_, made.victims, placed);
        list_vacated_nodes(
            cluster_, made.victims,
            [&](NodeId node) {
                const auto here = [&](const Placement& p) {
                    return p.node == node && inv.tasks.daemon[index(p.task)] == 0;
                };
                return std::any_of(placed.begin(), placed.end(), here) ||
                       std::any_of(made.replaced.begin(), made.replaced.end(), here);
            },
            made.vacated_nodes);
        for (std::uint32_t b = 0; b < down_.size(); ++b)
            if (down_[b] > inv.budgets[b].allows()) {
                made.broken_budgets.push_back({b, down_[b] - inv.budgets[b].allows()});
                losses_.over_budget += made.broken_budgets.back().over;
            }
        // A task without a job, or without other running members, is a gang of its own.
        std::set<JobId> jobs;
        for (const auto victim : made.victims) {
            const auto job = inv.tasks.job[index(victim)];
            if (job == none<JobId>)
                ++losses_.gangs;
            else if (jobs.insert(job).second && gangs_.running(job) < before_.running(job) &&
                     gangs_.running(job) < std::max<std::int64_t>(inv.job_min_members[index(job)], 1))
                ++losses_.gangs;
        }
        made.lost_gangs = losses_.gangs;
        made.cost = losses_.cost;
    }

    void find_domains(std::optional<Level> level) {
        const auto& inv = cluster_.inventory();
        // Running members determine the domain.
        std::set<JobId> jobs;
        for (const auto pod : pods_)
            if (const auto job = inv.tasks.job[index(pod)]; job != none<JobId>) jobs.insert(job);
        std::set<DomainId> bound;
        if (level)
            for (const auto task : cluster_.tasks())
                if (cluster_.is_placed(task) && jobs.contains(inv.tasks.job[index(task)]))
                    bound.insert(inv.domain(*level, cluster_.node_of(task)));
        bound_ = !bound.empty();
        // By name and id: a node with unknown position can have the name of a switch.
        std::map<std::pair<std::string, DomainId>, std::vector<NodeId>> found;
        for (const auto node : cluster_.nodes()) {
            if (!inv.nodes.receives(node)) continue;
            if (!level) {
                found[{"", none<DomainId>}].push_back(node);
                continue;
            }
            const auto domain = inv.domain(*level, node);
            if (bound.empty() || (bound.size() == 1 && bound.contains(domain)))
                found[{inv.domain_name(*level, domain), domain}].push_back(node);
        }
        for (auto& [key, nodes] : found) domains_.push_back({key.first, std::move(nodes)});
    }

    [[nodiscard]] std::pair<Answer, NodeId> choose(const Request& request, const std::vector<NodeId>& nodes) {
        const auto& inv = cluster_.inventory();
        const auto by = traits_of(options_.policy).objective;
        Answer chosen;
        NodeId at = none<NodeId>;
        evaluator_->forget();
        std::size_t evaluated = 0;
        for (const auto node : nodes) {
            if (evaluated++ % 16 == 0 ? budget_.exhausted() : budget_.reason() != StopReason::completed)
                return {};
            if (!request.may_run_on(inv, node) || !passes(request.task, node)) continue;
            evaluator_->read(now_, request, options_.cost, node, &gangs_);
            Answer candidate;
            if (const auto found = evaluator_->locality_now(); found != infeasible)
                candidate.locality = found;
            else if (evaluator_->size() > 0 && !(request.spot && request.borrows))
                candidate = evaluator_->best(options_);
            if (!candidate.found()) continue;
            if (chosen.found()) {
                const bool fits = candidate.count == 0, did = chosen.count == 0;
                int order = did - fits;
                if (fits && did && request.qos != Qos::none)
                    order = int{candidate.locality} - int{chosen.locality};
                if (!fits && !did) order = compare(candidate, chosen, by, true);
                if (order > 0 || (order == 0 && comes_before(now_.name(at), now_.name(node)))) continue;
            }
            chosen = std::move(candidate);
            at = node;
        }
        return {std::move(chosen), at};
    }

    const Cluster& cluster_;
    std::span<const TaskId> pods_;
    const Options& options_;
    Budget& budget_;
    Cluster now_;
    std::vector<std::uint8_t> spared_, unbroken_;
    std::vector<std::int64_t> down_;  // tasks evicted so far, by budget
    std::vector<Request> requests_;
    std::vector<allocation::detail::PodShape> shapes_;
    std::map<TaskId, std::size_t> position_;
    std::vector<Domain> domains_;
    std::vector<std::size_t> order_;
    GangDecision without_;    // result of place_as_it_is
    bool fits_known_ = true;  // no exact search hit a limit
    GangTable before_, gangs_;
    Losses losses_;
    std::size_t placed_ = 0;
    bool bound_ = false;
    std::unique_ptr<NodeEvaluator> evaluator_ = std::make_unique_for_overwrite<NodeEvaluator>();
};

}  // namespace detail

GPUSCHED_EXPORT GangResult preempt_gang(const Cluster& cluster, std::span<const TaskId> pods,
                                        const Options& options, GangObjective objective,
                                        const Context& context) {
    validate(options);
    Budget budget(context, options.time_limit);
    if (pods.empty()) throw InvalidInput("pods: none; expected at least one");
    detail::GangSearch search(cluster, pods, options, budget);
    GangResult result;
    if (const auto waiting = find_waiting(cluster, pods)) {
        result.reason = "does not wait for room: " + describe_waiting(*waiting);
        return result;
    }
    std::optional<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::size_t>> best;
    std::size_t most = 0;
    GangDecision made;
    for (const auto& domain : search.domains()) {
        budget.report("preemption of a gang", result.domains_considered,
                      static_cast<std::int64_t>(search.domains().size()));
        ++result.domains_considered;
        const bool placed = search.place(domain, made);
        if (!placed && budget.reason() != StopReason::completed) break;  // an incomplete search
        if (!placed) {
            if (best || (search.placed() <= most && !result.reason.empty())) continue;
            most = search.placed();
            const auto closest =
                domain.name.empty() ? std::string("the cluster") : "domain " + gpusched::quoted(domain.name);
            result.reason = closest + " comes closest: it holds " + std::to_string(most) + " of " +
                            std::to_string(pods.size()) +
                            concat(" ", words_of(cluster.inventory()).task, pods.size() == 1 ? "" : "s") +
                            ", with evictions; " + gpusched::quoted(cluster.name(search.stuck())) +
                            " does not fit in addition";
            continue;
        }
        const auto& lost = search.losses();
        std::tuple key(lost.over_budget, lost.cost, lost.gangs, made.victims.size());
        if (objective == GangObjective::lost_gangs)
            key = {lost.over_budget, lost.gangs, lost.cost, made.victims.size()};
        if (best && *best <= key) continue;
        best = key;
        result.decision = std::move(made);
        result.reason.clear();
    }
    result.stop_reason = budget.reason();
    result.proven = search.proven() && result.stop_reason == StopReason::completed;
    if (!result.decision && result.stop_reason != StopReason::completed)
        result.reason = std::string("the search ended early (") + enum_name(result.stop_reason) + ")" +
                        (result.reason.empty() ? "" : "; " + result.reason);
    if (search.domains().empty())
        result.reason = search.is_bound() ? "no domain has all running members and a schedulable node"
                                          : "no node is schedulable";
    return result;
}

GPUSCHED_EXPORT Plan to_plan(const GangDecision& decision, std::span<const TaskId> pods) {
    Plan plan;
    plan.evictions = decision.victims;
    plan.vacated_nodes = decision.vacated_nodes;
    plan.placements = detail::placements_of(decision, pods);
    plan.placements.insert(plan.placements.end(), decision.replaced.begin(), decision.replaced.end());
    return plan;
}

}  // namespace gpusched::preemption
