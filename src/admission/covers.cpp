// SPDX-License-Identifier: Apache-2.0
// Enumerates the minimal sets of tasks to displace from a node.
#include "admission/covers.hpp"
#include "model/placement_order.hpp"

#include <gpusched/config.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <tuple>

namespace gpusched::admission::detail {

bool CoverFinder::free_alike(TaskId a, TaskId b) const {
    const auto x = snapshot_.gpus_of(a), y = snapshot_.gpus_of(b);
    const auto as_many = [&](GpuMask kind) { return gpu_count(x & kind) == gpu_count(y & kind); };
    if (((x | y) & shared_) != 0 || !as_many(snapshot_.healthy_gpus(on_))) return false;
    const auto& devices = inv_.node_devices[inv_.nodes.devices[index(on_)]];
    return std::all_of(devices.classes.begin(), devices.classes.end(), [&](const auto& one) {
        return as_many(one.devices) && as_many(one.devices & inv_.nodes.failed_gpus[index(on_)]);
    });
}

bool CoverFinder::alike(TaskId a, TaskId b) const {
    if (snapshot_.node_of(a) != on_ || snapshot_.node_of(b) != on_) return false;
    if (passes_ || inv_.nodes.hardware[index(on_)] != NodeTable::no_hardware) return false;
    const auto& t = inv_.tasks;
    const auto& x = prices_[a];
    const auto& y = prices_[b];
    return t.job[index(a)] == none<JobId> && t.job[index(b)] == none<JobId> && !snapshot_.is_fraction(a) &&
           request_key(snapshot_, a) == request_key(snapshot_, b) &&
           t.traits[index(a)] == t.traits[index(b)] && t.profile[index(a)] == t.profile[index(b)] &&
           t.affinities[index(a)] == t.affinities[index(b)] &&
           t.gpu_memory_mib[index(a)] == t.gpu_memory_mib[index(b)] && inv_.budgets_of(a).empty() &&
           inv_.budgets_of(b).empty() && x.move == y.move && x.replace == y.replace && x.lose == y.lose &&
           free_alike(a, b);
}

std::int64_t CoverFinder::cost_of_place(TaskId task) const {
    const auto& price = prices_[task];
    const auto place = price.move < never ? bounds_.elsewhere(snapshot_, task) : never;
    return std::min({place < never ? price.move + place : never, price.replace, price.lose}) - price.least;
}

GPUSCHED_EXPORT bool CoverFinder::find(TaskId task, NodeId node, std::int64_t most_cost, bool defers,
                                       std::vector<Cover>& covers) {
    constexpr std::int64_t most_sets = 2000;
    for_ = task;
    on_ = node;
    most_cost_ = most_cost;
    defers_ = defers;
    sets_left_ = most_sets;
    covers_ = &covers;
    covers.clear();
    candidates_.clear();
    chosen_.clear();
    GpuMask held = 0;
    shared_ = 0;
    for (const auto other : state_.work.tasks_on(node)) {
        const auto gpus = state_.work.gpus_of(other);
        shared_ |= held & gpus;
        held |= gpus;
        if (state_.fate[index(other)] == SearchState::untouched && prices_[other].least <= most_cost)
            candidates_.push_back(other);
    }
    const auto on_node = candidates_.size();
    const bool all_members = add_conflicting_members();
    if (candidates_.size() > on_node && is_hopeless()) return all_members;
    const auto& t = inv_.tasks;
    const auto key = [&](TaskId x) {
        return std::tuple(-snapshot_.gpu_milli(x), prices_[x].least, -t.cpu_milli[index(x)],
                          -t.memory_mib[index(x)], prices_[x].lose, x);
    };
    std::sort(candidates_.begin(), candidates_.end(), [&](TaskId a, TaskId b) { return key(a) < key(b); });
    rest_.assign(candidates_.size() + 1, {0, 0, 0});
    for (auto i = candidates_.size(); i-- > 0;) {
        const auto x = candidates_[i];
        rest_[i] = rest_[i + 1];
        if (snapshot_.node_of(x) != node) continue;
        rest_[i].gpus += gpu_count(state_.work.gpus_of(x) & ~state_.work.devices(node));
        rest_[i].cpu += t.cpu_milli[index(x)];
        rest_[i].memory += t.memory_mib[index(x)];
    }
    find(0, 0);
    const bool all = sets_left_ > 0;
    if (!all) find_one();
    for (auto& cover : covers) {
        bool here = true;
        for (const auto x : cover.tasks) {
            const auto more = cost_of_place(x);
            cover.estimate = std::min(
                never, cover.estimate + std::max(prices_[x].least + more, bounds_.estimate(snapshot_, x)));
            cover.most = std::max(cover.most, more);
            here = here && snapshot_.node_of(x) == node;
        }
        // The bound on a place assumes that the tasks of other nodes are not paid for yet.
        if (!here) cover.most = 0;
    }
    std::stable_sort(covers.begin(), covers.end(), [](const Cover& a, const Cover& b) {
        return std::tuple(a.estimate, a.least, a.tasks.size()) <
               std::tuple(b.estimate, b.least, b.tasks.size());
    });
    return all && all_members;
}

const std::map<DomainId, std::vector<TaskId>>& CoverFinder::members_of(std::uint32_t id) {
    const auto [known, is_new] = members_.try_emplace(id);
    if (!is_new) return known->second;
    const auto& set = inv_.group_sets[id];
    const bool joins = set.kind == GroupKind::affinity || set.kind == GroupKind::network;
    for (const auto x : snapshot_.tasks()) {
        const auto of = inv_.memberships(x);
        if (prices_[x].least < never &&
            std::any_of(of.begin(), of.end(), [&](const Membership& m) { return m.set == id; }))
            known->second[joins ? none<DomainId> : inv_.domain_at(set.level, snapshot_.node_of(x))].push_back(
                x);
    }
    return known->second;
}

bool CoverFinder::fits() const {
    const auto obstacle = find_obstacle(state_.work, for_, on_);
    return obstacle == Obstacle::none || (defers_ && gpusched::detail::may_pass(obstacle));
}

/// If groups keep the task off the node, adds as candidates the members on other nodes that can be the cause:
/// those in the node's domain, or for constraints that keep members together those in other domains.
/// @return false if there are too many, so that the most expensive ones were omitted
bool CoverFinder::add_conflicting_members() {
    constexpr std::size_t most_members = 64;
    const auto memberships = inv_.memberships(for_);
    if (memberships.empty() || find_group_obstacle(state_.work, for_, on_) == Obstacle::none) return true;
    const auto on_node = candidates_.size();
    const auto listed = [&](TaskId x) {
        return std::find(candidates_.begin() + static_cast<std::ptrdiff_t>(on_node), candidates_.end(), x) !=
               candidates_.end();
    };
    for (const auto& membership : memberships) {
        const auto& set = inv_.group_sets[membership.set];
        const bool joins = set.kind == GroupKind::affinity || set.kind == GroupKind::network;
        if (set.kind > GroupKind::avoid || (set.level == node_level && !joins)) continue;
        const auto domain = inv_.domain_at(set.level, on_);
        const auto& members = members_of(membership.set);
        const auto found = members.find(joins ? none<DomainId> : domain);
        if (found == members.end()) continue;
        for (const auto x : found->second) {
            const auto at = snapshot_.node_of(x);
            if (at == on_ || (joins && inv_.domain_at(set.level, at) == domain && domain != none<DomainId>) ||
                state_.fate[index(x)] != SearchState::untouched || prices_[x].least > most_cost_ || listed(x))
                continue;
            candidates_.push_back(x);
        }
    }
    if (candidates_.size() - on_node <= most_members) return true;
    const auto rest = candidates_.begin() + static_cast<std::ptrdiff_t>(on_node + most_members);
    std::nth_element(
        candidates_.begin() + static_cast<std::ptrdiff_t>(on_node), rest, candidates_.end(),
        [&](TaskId a, TaskId b) { return std::pair(prices_[a].least, a) < std::pair(prices_[b].least, b); });
    candidates_.erase(rest, candidates_.end());
    return false;
}

/// Whether the task cannot be placed on the node even if all candidates leave.
bool CoverFinder::is_hopeless() {
    const auto before = state_.work.checkpoint();
    for (const auto x : candidates_) state_.work.remove(x);
    const auto left = find_obstacle(state_.work, for_, on_);
    state_.work.rollback(before);
    return left != Obstacle::none && !gpusched::detail::may_pass(left);
}

/// Finds one set: removes all candidates, then returns the most expensive first, if the task still fits.
void CoverFinder::find_one() {
    const auto before = state_.work.checkpoint();
    for (const auto x : candidates_) state_.work.remove(x);
    if (fits()) {
        auto order = candidates_;
        std::sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
            return std::pair(-prices_[a].least, a) < std::pair(-prices_[b].least, b);
        });
        Cover cover;
        for (const auto x : order) {
            put_back(x);
            if (fits()) continue;
            state_.work.remove(x);
            cover.tasks.push_back(x);
            cover.least = std::min(never, cover.least + prices_[x].least);
        }
        if (!cover.tasks.empty() && cover.least <= most_cost_) covers_->push_back(std::move(cover));
    }
    state_.work.rollback(before);
}

void CoverFinder::find(std::size_t next, std::int64_t cost) {
    if (--sets_left_ <= 0) return;
    ++stats_.sets_checked;
    const auto& t = inv_.tasks;
    const auto i = index(for_);
    const auto lent = state_.work.lent_to(for_);
    const bool whole = t.gpu_count[i] > 0 && !state_.work.is_fraction(for_);
    const auto idle = whole ? gpu_count(state_.work.idle_gpus(on_, lent)) : 0;
    if ((!whole || idle >= t.gpu_count[i]) && !chosen_.empty() && fits()) {
        // Omits the set unless it is minimal: every task must be necessary.
        for (const auto x : chosen_) {
            if (chosen_.size() == 1) break;
            const auto before = state_.work.checkpoint();
            put_back(x);
            const bool needless = fits();
            state_.work.rollback(before);
            if (needless) return;
        }
        covers_->push_back({cost, 0, 0, chosen_});
        return;
    }
    if (next == candidates_.size()) return;
    if (whole && idle + rest_[next].gpus < t.gpu_count[i]) return;
    if (state_.work.cpu_free_milli(on_, Lent::yes) + rest_[next].cpu < t.cpu_milli[i]) return;
    if (state_.work.memory_free_mib(on_) + rest_[next].memory < t.memory_mib[i]) return;
    const auto x = candidates_[next];
    if (cost + prices_[x].least <= most_cost_) {
        const auto before = state_.work.checkpoint();
        state_.work.remove(x);
        chosen_.push_back(x);
        find(next + 1, cost + prices_[x].least);
        chosen_.pop_back();
        state_.work.rollback(before);
    }
    do ++next;
    while (next < candidates_.size() && alike(x, candidates_[next]));
    find(next, cost);
}

}  // namespace gpusched::admission::detail
