// SPDX-License-Identifier: Apache-2.0
// allocate_many(): places jobs one after another, then searches for better orders.
#include "allocation/gang.hpp"
#include "model/placement_order.hpp"

#include <gpusched/allocation/allocate_many.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::allocation {
namespace detail {

/// Places jobs in one working copy of the cluster, one after another, and again in other orders.
class JointSearch {
  public:
    JointSearch(const Cluster& cluster, std::span<const GangRequest> jobs, Budget& budget)
        : cluster_(cluster), replayed_(cluster), jobs_(jobs), budget_(budget), placed_(jobs.size()),
          alone_(jobs.size(), 0) {
        cluster_.commit();
        replayed_.commit();
        std::vector<bool> seen(cluster.task_slots());  // by TaskId
        for (const auto& job : jobs) {
            if (job.options.time_limit)
                throw InvalidInput(bad_value("time_limit", number_text(*job.options.time_limit),
                                             "none in a job's options: one limit holds for all jobs"));
            gangs_.push_back(std::make_unique<Gang>(cluster_, job.pods, job.options, &budget));
            gangs_.back()->explains = false;
            std::int64_t gpus = 0;
            for (const auto pod : job.pods) {
                if (seen[index(pod)])
                    throw InvalidInput("pods: " + gpusched::quoted(cluster.name(pod)) + " is in two jobs");
                seen[index(pod)] = true;
                gpus += cluster.gpu_milli(pod);
                grouped_ = grouped_ || !inventory().memberships(pod).empty() ||
                           !inventory().selection_memberships(pod).empty();
            }
            gpus_.push_back(gpus);
            all_gpus_ += gpus;
        }
        order_ = order_by(jobs.size(), [&](std::size_t j) { return -gpus_[j]; });
    }

    /// Places one job after another, the most GPUs first.
    void place_by_size() {
        for (const auto j : order_) place(j);
        sequence_ = order_;
    }

    /// Removes jobs and places them again until the budget is used up or no job can be better off. Returns
    /// the trials.
    std::int64_t improve(const JointOptions& options, Budget& budget) {
        look_alone();
        Rng rng(options.seed);
        auto now = value();
        std::int64_t trials = 0;
        const auto nodes = static_cast<std::int64_t>(cluster_.node_slots());
        std::int64_t visits = 0;
        std::vector<std::size_t> set;
        std::vector<Allocation> before;
        while (trials < options.iterations && visits < options.node_visits && !budget.exhausted()) {
            budget.report("joint allocation", trials, options.iterations);
            if (!choose(rng, set)) break;
            ++trials;
            const auto start = cluster_.checkpoint();
            before.clear();
            for (const auto j : set) before.push_back(placed_[j]);
            for (const auto j : set) take_off(j);
            for (std::size_t i = 0; i < set.size(); ++i) {
                const auto j = set[i];
                if (rng.chance(0.25)) close_one(*gangs_[j], before[i], rng);
                place(j);
                gangs_[j]->closed.clear();
                visits += nodes;
            }
            const auto then = value();
            if (then <= now && keeps_order(set)) {
                now = then;
                continue;
            }
            cluster_.rollback(start);
            for (std::size_t i = 0; i < set.size(); ++i) placed_[set[i]] = std::move(before[i]);
        }
        return trials;
    }

    void report(JointAllocations& result) {
        place_left_out();
        result.proven = true;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (placed_[j].placed) {
                ++result.placed;
                result.entropy += weight(j) * placed_[j].entropy;
                result.cross_traffic += placed_[j].cross_traffic;
            } else {
                // Failing with the capacity that the others leave proves nothing about the job alone.
                placed_[j].proven = false;
            }
            result.proven = result.proven && !unhappy(j);
        }
        for (const auto j : sequence_)
            if (placed_[j].placed) result.order.push_back(j);
        result.jobs = std::move(placed_);
    }

    /// Computes the cost (entropy plus traffic) that every job would have alone in the cluster. Call while
    /// all or none are placed.
    void look_alone() {
        const auto start = cluster_.checkpoint();
        const auto kept = placed_;
        for (std::size_t j = 0; j < jobs_.size(); ++j) take_off(j);
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (budget_.exhausted()) {  // the others stay unknown
                sure_ = false;
                std::fill(alone_.begin() + static_cast<std::ptrdiff_t>(j), alone_.end(), -1.0);
                break;
            }
            const auto here = cluster_.checkpoint();
            place(j);
            const auto& own = placed_[j];
            alone_[j] = !own.placed                         ? -1
                        : own.proven || own.entropy < 1e-12 ? own.entropy + own.cross_traffic
                                                            : 0;
            sure_ = sure_ && (own.placed || own.proven);
            cluster_.rollback(here);
        }
        cluster_.rollback(start);
        placed_ = kept;
    }

  private:
    // Less is better: jobs left out, traffic, entropy. Rounded to steps that absorb floating-point noise.
    using Value = std::tuple<std::int64_t, double, double>;

    [[nodiscard]] double weight(std::size_t j) const {
        return all_gpus_ > 0 ? static_cast<double>(gpus_[j]) / static_cast<double>(all_gpus_) : 0;
    }
    [[nodiscard]] Value value() const {
        std::int64_t left_out = 0;
        double traffic = 0, entropy = 0;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            left_out += !placed_[j].placed;
            traffic += placed_[j].cross_traffic;
            entropy += weight(j) * placed_[j].entropy;
        }
        return {left_out, std::round(traffic * 1e9), std::round(entropy * 1e9)};
    }
    /// True if the job is left out although it can be placed alone, or is worse off than alone.
    [[nodiscard]] bool unhappy(std::size_t j) const {
        const auto& own = placed_[j];
        return own.placed ? own.entropy + own.cross_traffic > alone_[j] + 1e-9 : alone_[j] >= 0 || !sure_;
    }
    void place(std::size_t j) {
        if (!budget_.exhausted() || budget_.reason() != StopReason::cancelled) {
            placed_[j] = gangs_[j]->place();
            return;
        }
        placed_[j] = {};
        placed_[j].level = gangs_[j]->level;
        placed_[j].stop_reason = StopReason::cancelled;
        placed_[j].reason = "the search was cancelled before this job had its turn";
    }
    /// Tries each job that is left out once more, the largest first: a trial may leave capacity for a job
    /// that it did not try. A second pass records a reason for the jobs that still fail, while all others are
    /// placed.
    void place_left_out() {
        for (const bool explains : {false, true})
            for (const auto j : order_)
                if (!placed_[j].placed) {
                    gangs_[j]->explains = explains;
                    place(j);
                    if (!placed_[j].placed) continue;
                    std::erase(sequence_, j);
                    sequence_.push_back(j);
                }
    }
    /// Finds an order in which all placed jobs are feasible one after another. There may be none: a job may
    /// have been placed near another one that has moved since.
    /// @param moved the jobs that were placed last; the others were feasible in the order before
    /// @return false, and nothing changed, if there is none
    bool keeps_order(std::span<const std::size_t> moved) {
        auto left = sequence_;
        for (const auto j : moved) std::erase(left, j);
        left.insert(left.end(), moved.begin(), moved.end());
        if (!grouped_) {
            sequence_ = std::move(left);
            return true;
        }
        const auto start = replayed_.checkpoint();
        std::vector<std::size_t> found;
        const auto waiting = gpusched::detail::place_in_some_order(left.size(), [&](std::size_t i) {
            const bool stands = replay(placed_[left[i]]);
            if (stands) found.push_back(left[i]);
            return stands;
        });
        replayed_.rollback(start);
        if (!waiting.empty()) return false;
        sequence_ = std::move(found);
        return true;
    }
    /// Places the pods on their planned nodes, or none of them.
    bool replay(const Allocation& job) {
        const auto mark = replayed_.checkpoint();
        for (const auto& pod : job.pods) {
            if (find_obstacle(replayed_, pod.task, pod.node) != Obstacle::none) {
                replayed_.rollback(mark);
                return false;
            }
            replayed_.assign(pod.task, pod.node, pod.gpus);
        }
        return true;
    }
    void take_off(std::size_t j) {
        if (!placed_[j].placed) return;
        for (const auto& p : placed_[j].pods) cluster_.remove(p.task);
        placed_[j] = Allocation{};
    }
    static void close_one(Gang& gang, const Allocation& was, Rng& rng) {
        if (was.per_domain.empty() || gang.count_level != was.level) return;
        gang.closed.assign(gang.domains(), 0);
        gang.closed[index(rng.pick(std::span(was.per_domain)).domain)] = 1;
    }

    /// Chooses a job that could be better off, and up to three in its way, in the order in which they are
    /// placed again.
    bool choose(Rng& rng, std::vector<std::size_t>& set) {
        set.clear();
        std::vector<std::size_t> candidates;
        for (std::size_t j = 0; j < jobs_.size(); ++j)
            if (unhappy(j)) candidates.push_back(j);
        if (candidates.empty()) return false;
        const auto target = rng.pick(std::span(candidates));
        set.push_back(target);
        candidates.clear();
        const auto at = gangs_[target]->level;
        if (rng.chance(0.7) && inventory().domain_count(at) > 0) {
            // The jobs in one used domain.
            std::vector<DomainId> used;
            for (const auto& other : placed_)
                if (other.placed && other.level == at)
                    for (const auto& share : other.per_domain) used.push_back(share.domain);
            if (!used.empty()) {
                const auto domain = rng.pick(std::span(used));
                for (std::size_t j = 0; j < jobs_.size(); ++j)
                    if (j != target && placed_[j].placed && placed_[j].level == at &&
                        std::any_of(placed_[j].per_domain.begin(), placed_[j].per_domain.end(),
                                    [&](const DomainShare& s) { return s.domain == domain; }))
                        candidates.push_back(j);
            }
        }
        if (candidates.empty())
            for (std::size_t j = 0; j < jobs_.size(); ++j)
                if (j != target) candidates.push_back(j);
        rng.shuffle(std::span(candidates));
        const auto most = static_cast<std::size_t>(rng.between(1, 3));
        for (std::size_t i = 0; i < std::min(most, candidates.size()); ++i) set.push_back(candidates[i]);
        if (rng.chance(0.5)) rng.shuffle(std::span(set));
        return true;
    }
    [[nodiscard]] const Inventory& inventory() const { return cluster_.inventory(); }

    Cluster cluster_;
    Cluster replayed_;  // without the jobs, except during the search for an order
    std::span<const GangRequest> jobs_;
    Budget& budget_;
    std::vector<std::unique_ptr<Gang>> gangs_;
    std::vector<std::int64_t> gpus_;  // of each job, in thousandths
    std::int64_t all_gpus_ = 0;
    std::vector<std::size_t> order_;     // by size
    std::vector<std::size_t> sequence_;  // an order in which all placed jobs are feasible one after another
    bool grouped_ = false;               // whether a pod has group constraints
    std::vector<Allocation> placed_;
    std::vector<double> alone_;  // lower bound of each job's cost alone; -1 = no placement
    bool sure_ = true;           // jobs that could not be placed alone are proven to be infeasible
};

}  // namespace detail

GPUSCHED_EXPORT JointAllocations allocate_many(const Cluster& cluster, std::span<const GangRequest> jobs,
                                               const JointOptions& options, const Context& context) {
    require_fields(options);
    Budget budget(context, options.time_limit);
    JointAllocations result;
    detail::JointSearch search(cluster, jobs, budget);
    search.place_by_size();
    if (options.policy == JointPolicy::joint)
        result.trials = search.improve(options, budget);
    else
        search.look_alone();
    search.report(result);
    result.stop_reason = budget.reason();
    return result;
}

GPUSCHED_EXPORT Plan to_plan(const JointAllocations& allocations) {
    Plan plan;
    for (const auto j : allocations.order) {
        const auto own = to_plan(allocations.jobs[j]);
        plan.placements.insert(plan.placements.end(), own.placements.begin(), own.placements.end());
    }
    return plan;
}

}  // namespace gpusched::allocation
