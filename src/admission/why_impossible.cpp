// SPDX-License-Identifier: Apache-2.0
// Inquiry: could the nodes hold the pods if other tasks left?
#include "admission/inquiry.hpp"
#include "model/node_match.hpp"
#include "model/pod_room.hpp"

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace gpusched::admission::detail {

Cluster Inquiry::emptied() const {
    Cluster pool(cluster_);
    pool.commit();
    for (const auto node : nodes_) {
        const auto& taints = inv_.node_attributes[inv_.nodes.attributes[index(node)]].taints;
        if (!inv_.nodes.is_cordoned(node) &&
            std::none_of(taints.begin(), taints.end(), gpusched::detail::is_state))
            continue;
        auto spec = cluster_.node_spec(node);
        spec.schedulable = true;
        std::erase_if(spec.taints, gpusched::detail::is_state);
        pool.update_node(pool.handle(node), spec);
    }
    for (const auto task : cluster_.tasks())
        if (leaves(task)) pool.remove(task);
    return pool;
}

bool Inquiry::leaves(TaskId task) const {
    return cluster_.is_placed(task) && (inv_.terminating.contains(task) ||
                                        (!inv_.tasks.locked[index(task)] && !inv_.tasks.daemon[index(task)]));
}

Packed Inquiry::holds(Cluster& pool) {
    const auto nodes = std::ssize(nodes_);
    if ((steps_ -= nodes * std::ssize(kinds_)) < 0) return Packed::unknown;
    if (place_best_of(pool) == 0) return Packed::yes;
    if (why_.pods.size() == 1) return Packed::no;
    if (lacks_room(pool)) return Packed::no;
    steps_ -= nodes * std::ssize(why_.pods);
    auto found =
        options_.on ? Packed::unknown : Gang(pool, why_.pods, as_it_is_, &budget_).packs(Obstacle::none);
    if (found == Packed::unknown) {
        auto left = std::min(steps_, most_tries);
        steps_ -= left;
        found = try_all(pool, why_.pods, left);
        steps_ += left;
    }
    return found;
}

bool Inquiry::lacks_room(const Cluster& pool) {
    using Kinds = std::vector<const Kind*>;
    const auto holds_all = [&](const Kinds& kinds, std::span<const NodeId> nodes) {
        std::int64_t has = 0, needs = 0;
        for (const auto node : nodes)
            for (int g = 0; g < pool.gpu_count(node); ++g)
                has += std::max<std::int64_t>(0, pool.gpu_free_milli(node, g, Lent::yes));
        for (const auto* const kind : kinds) {  // as if it had no constraints on groups
            const auto all = std::ssize(kind->pods);
            needs += all * cluster_.gpu_milli(kind->sample());
            std::int64_t room = 0;
            for (const auto node : nodes)
                if ((room += gpusched::detail::pod_room(pool, kind->sample(), node, all)) >= all) break;
            if (room < all) return false;
        }
        return needs <= has;
    };
    const auto no_domain_holds = [&](const Kinds& kinds, Level level) {
        std::map<DomainId, std::vector<NodeId>> domains;
        for (const auto node : nodes_)
            if (const auto domain = inv_.domain_at(level, node); domain != none<DomainId>)
                domains[domain].push_back(node);
        const bool too_small = std::none_of(domains.begin(), domains.end(), [&](const auto& domain) {
            return holds_all(kinds, domain.second);
        });
        if (too_small) small_ = level;
        return too_small;
    };
    Kinds all;
    for (const auto& kind : kinds_) all.push_back(&kind);
    if (!holds_all(all, nodes_)) return true;
    if (level_ && no_domain_holds(all, *level_)) return true;
    // Pods that must be near each other are in the domains of other members of their group, or else the first one
    // chooses the domain.
    const auto& inv = pool.inventory();
    for (const auto& m : inv.selection_memberships(kinds_.front().sample())) {
        const auto& set = inv.group_sets[m.set];
        if (set.kind != GroupKind::near || !m.is_member()) continue;
        Kinds tied;
        bool others_choose = false;
        for (const auto& kind : kinds_)
            for (const auto& own : inv.selection_memberships(kind.sample()))
                if (own.set == m.set) {
                    if (own.is_bound()) tied.push_back(&kind);
                    others_choose = others_choose || !own.is_bound();
                }
        if (others_choose) continue;
        if (pool.group_domains(m.set) == 0) {
            if (no_domain_holds(tied, set.level)) return true;
            continue;
        }
        std::vector<NodeId> near;
        for (const auto node : nodes_)
            if (const auto domain = inv.domain_at(set.level, node);
                domain != none<DomainId> && pool.group_count(m.set, domain) > 0)
                near.push_back(node);
        if (!holds_all(tied, near)) return true;
    }
    return false;
}

Packed Inquiry::try_all(Cluster& pool, const std::vector<TaskId>& pods, std::int64_t& steps) {
    if (pods.empty()) return Packed::yes;
    std::vector<bool> tried(kinds_.size());  // equal pods have equal places
    for (std::size_t p = 0; p < pods.size(); ++p) {
        const auto kind = kind_of_.at(pods[p]);
        if (tried[kind]) continue;
        tried[kind] = true;
        auto rest = pods;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(p));
        for (const auto node : nodes_) {
            if (--steps < 0 || budget_.exhausted()) return Packed::unknown;
            if (find_obstacle(pool, pods[p], node) != Obstacle::none) continue;
            for (const auto gpus : gpu_choices(pool, pods[p], node, rest.empty(), steps)) {
                if (--steps < 0 || budget_.exhausted()) return Packed::unknown;
                const auto start = pool.checkpoint();
                pool.assign(pods[p], node, gpus);
                const auto found = try_all(pool, rest, steps);
                pool.rollback(start);
                if (found != Packed::no) return found;
            }
        }
    }
    return steps < 0 ? Packed::unknown : Packed::no;
}

std::vector<GpuMask> Inquiry::gpu_choices(const Cluster& pool, TaskId pod, NodeId node, bool any,
                                          std::int64_t& steps) const {
    const auto& t = inv_.tasks;
    const auto devices = inv_.extras[t.extras[index(pod)]].device_count;
    const bool alike = !cluster_.is_fraction(pod) && t.gpu_memory_mib[index(pod)] == 0 && devices == 0 &&
                       !inv_.task_affinities[t.affinities[index(pod)]].guaranteed_level();
    if (any || alike) return {allocation::pick_gpus(allocation::ByWish{}, pool, pod, node)};
    const auto all = gpu_list(candidate_gpus(pool, pod, node) | (devices > 0 ? pool.free_devices(node) : 0));
    std::vector<GpuMask> choices;
    const auto extend = [&](const auto& self, std::size_t from, GpuMask chosen, int missing) -> void {
        if (missing == 0) {
            if (gpus_fit(pool, pod, node, chosen)) choices.push_back(chosen);
            return;
        }
        for (auto i = from; i < all.size() && --steps >= 0; ++i)
            self(self, i + 1, chosen | gpu_bit(all[i]), missing - 1);
    };
    extend(extend, 0, 0, t.gpu_count[index(pod)] + devices);
    return choices;
}

std::size_t Inquiry::place_best_of(Cluster& pool) {
    const auto level = level_ ? level_ : near_level(pool);
    std::map<DomainId, std::vector<NodeId>> domains;
    for (const auto node : nodes_)
        if (const auto domain = level ? inv_.domain_at(*level, node) : DomainId{}; domain != none<DomainId>)
            domains[domain].push_back(node);
    auto least = why_.pods.size();
    const auto start = pool.checkpoint();
    for (const auto& [domain, nodes] : domains) {
        least = std::min(least, place_some(pool, kinds_, nodes).size());
        pool.rollback(start);
    }
    return least;
}

std::optional<bool> Inquiry::is_impossible() {
    auto pool = emptied();
    const auto start = pool.checkpoint();
    auto found = holds(pool);
    if (found == Packed::no) {
        // Tasks that the pods need near, or that are spread with them, need not all leave.
        const auto stay = possible_neighbours(true);
        if (stay.size() <= 12) {
            for (std::uint32_t which = 1; which < 1u << stay.size() && found != Packed::yes; ++which) {
                if (budget_.exhausted() || steps_ < 0) return std::nullopt;
                for (std::size_t i = 0; i < stay.size(); ++i)
                    if ((which >> i & 1) != 0)
                        pool.assign(stay[i], cluster_.node_of(stay[i]), cluster_.gpus_of(stay[i]));
                if (const auto with = holds(pool); with != Packed::no) found = with;
                pool.rollback(start);
            }
        } else {
            found = holds_next_to(pool, stay) ? Packed::yes : Packed::unknown;
        }
        // Neighbours can move, too: one alone, or as `admit` finds it. Pending ones may run before.
        auto movable = stay;
        for (const auto task : possible_neighbours(false)) movable.push_back(task);
        for (const auto task : movable)
            for (const auto node : cluster_.nodes()) {
                if (found != Packed::no) break;
                if (budget_.exhausted() || --steps_ < 0) return std::nullopt;
                if (find_obstacle(pool, task, node) != Obstacle::none) continue;
                pool.assign(task, node, allocation::pick_gpus(allocation::ByWish{}, pool, task, node));
                found = holds(pool);
                pool.rollback(start);
            }
        if (found == Packed::no && !stay.empty() && !options_.on) {
            Options options;
            options.time_limit = budget_.remaining_s();
            if (admit(cluster_, why_.pods, options, context_).admitted) found = Packed::yes;
        }
    }
    emptied_ = std::move(pool);
    if (found == Packed::unknown) return std::nullopt;
    return found == Packed::no;
}

std::vector<TaskId> Inquiry::possible_neighbours(bool running) const {
    std::vector<std::uint32_t> sets;
    for (const auto& kind : kinds_)
        for (const auto& m : inv_.selection_memberships(kind.sample()))
            if (inv_.group_sets[m.set].kind != GroupKind::avoid && m.is_bound()) sets.push_back(m.set);
    std::vector<TaskId> tasks;
    if (sets.empty()) return tasks;
    std::set<decltype(allocation::detail::shape_of(inv_, TaskId{}))> shapes;
    for (const auto task : cluster_.tasks()) {
        if (running ? !leaves(task) : cluster_.is_placed(task) || kind_of_.contains(task)) continue;
        const auto of = inv_.selection_memberships(task);
        if (std::none_of(of.begin(), of.end(), [&](const Membership& m) {
                return m.is_member() && std::find(sets.begin(), sets.end(), m.set) != sets.end();
            }))
            continue;
        if (running || shapes.insert(allocation::detail::shape_of(inv_, task)).second) tasks.push_back(task);
    }
    return tasks;
}

bool Inquiry::holds_next_to(Cluster& pool, std::span<const TaskId> stay) {
    const auto start = pool.checkpoint();
    for (const auto task : stay) pool.assign(task, cluster_.node_of(task), cluster_.gpus_of(task));
    auto found = holds(pool) == Packed::yes;
    for (std::size_t n = 0; n < nodes_.size() && !found && why_.pods.size() == 1; ++n) {
        const auto before = pool.checkpoint();
        for (const auto task : stay)
            if (cluster_.node_of(task) == nodes_[n]) pool.remove(task);
        found = find_obstacle(pool, why_.pods.front(), nodes_[n]) == Obstacle::none;
        pool.rollback(before);
    }
    pool.rollback(start);
    return found;
}

void Inquiry::say_permanent(const Tally& tally) {
    const auto [rows, text] = tally.describe_unusable(nodes_);
    for (const auto row : rows) why_.constraints.push_back(tally.refusals.name(row));
    why_.cause = "impossible: " + text;
}

bool Inquiry::say_impossible() {
    why_.cause_kind = Cause::impossible;
    const auto sample = kinds_.front().sample();
    const Tally as_it_is(cluster_, sample, nodes_, options_.order);
    std::vector<NodeId> pool;
    for (const auto node : nodes_)
        if (as_it_is.refusals.in_pool(node)) pool.push_back(node);
    if (pool.empty()) {
        say_permanent(as_it_is);
        return true;
    }
    why_.cause = "impossible: even if all tasks left except daemons and locked tasks, ";
    const Tally emptied(*emptied_, sample, pool, options_.order);
    const auto nodes = counted(static_cast<std::int64_t>(pool.size()), "node");
    const auto* const set = emptied.smallest();
    if (emptied.fit == 0 && set != nullptr) {
        for (const auto row : set->first) why_.constraints.push_back(emptied.refusals.name(row));
        auto closest = set->second.first;
        bool near = false;
        if (set->first.size() == 1) {
            const auto row = set->first.front();
            near = emptied.constraint(row) == Constraint::near;
            if (const auto missing = gpusched::detail::missing_neighbours(cluster_, sample, false);
                near && !missing.empty()) {
                const auto room = as_it_is.rows[row].alone;
                why_.cause = "impossible: " + missing;
                if (room > 0)
                    why_.cause +=
                        "; " + counted(room, "node") + (room == 1 ? " has" : " have") + " room otherwise";
                say_places();
                return true;
            }
            closest = emptied.rows[row].best;
            // The table names the best node of the cluster as it is.
            if (const auto best = as_it_is.rows[row].best;
                best != none<NodeId> && emptied.refusals.of(best) == set->first)
                closest = best;
        }
        why_.cause += (pool.size() == 1 ? "the only node that it may use would not hold "
                                        : "none of the " + nodes + " that it may use would hold ") +
                      (why_.pods.size() == 1 ? "it" : task_ + " " + gpusched::quoted(cluster_.name(sample))) +
                      (set->first.size() == 1 ? "; the closest is " : "; for example ") +
                      gpusched::quoted(cluster_.name(closest)) + ": ";
        why_.cause += near ? gpusched::detail::describe_lonely(cluster_, sample, false)
                           : emptied.describe(set->first, closest);
        say_places();
        return true;
    }
    const auto all = why_.pods.size();
    const auto shared = small_ ? small_ : level_;
    const auto placed = all - place_best_of(*emptied_);
    std::int64_t has = 0, needs = 0;
    for (const auto node : pool) has += std::int64_t{whole_gpu_milli} * gpu_count(emptied_->idle_gpus(node));
    for (const auto pod : why_.pods) needs += cluster_.gpu_milli(pod);
    why_.cause +=
        "the " + nodes + " that it may use would " +
        (kinds_.size() == 1 ? "hold only " + thousands(static_cast<std::int64_t>(placed)) + " of "
                            : "not hold all of the ") +
        counted(static_cast<std::int64_t>(all), task_) +
        (shared ? " in one " + describe_level(inv_, *shared) : "") +
        (has < needs ? "; they have " + gpus_text(has) + " GPUs, the " + task_ + "s need " + gpus_text(needs)
                     : "");
    say_places();
    return true;
}

void Inquiry::say_places() {
    if (why_.places > 0)
        why_.cause += "; " + thousands(why_.places) + " of the " + task_ + "s " +
                      (why_.places == 1 ? "finds" : "find") + " a place as it is" + enough_to_start();
}

}  // namespace gpusched::admission::detail
