// SPDX-License-Identifier: Apache-2.0
// Inquiry: the constraints to blame, in words.
#include "admission/inquiry.hpp"
#include "model/node_match.hpp"
#include "model/pod_room.hpp"

#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

namespace gpusched::admission::detail {

bool Inquiry::say_topology() {
    const bool each_fits = std::all_of(why_.kinds.begin(), why_.kinds.end(),
                                       [](const WhyKind& kind) { return kind.nodes_fit > 0; });
    if (!level_ || !each_fits || why_.domains.size() < 2) {
        why_.domains.clear();
        return false;
    }
    Cluster copy(cluster_);
    copy.commit();
    const Gang gang(copy, why_.pods, as_it_is_, &budget_);
    const auto level = !gang.required_level        ? Obstacle::near
                       : gang.required_by_affinity ? Obstacle::affinity
                                                   : Obstacle::network;
    if (!gang.fits_without(level)) return false;
    why_.cause_kind = Cause::topology;
    why_.constraints.emplace_back(enum_name(level));
    const auto all = thousands(static_cast<std::int64_t>(why_.pods.size()));
    std::vector<std::string> nodes;
    for (const auto node : best_nodes_)
        if (std::any_of(why_.pods.begin(), why_.pods.end(),
                        [&](TaskId pod) { return work_->node_of(pod) == node; }))
            nodes.push_back(cluster_.name(node));
    const auto most = why_.domains.front().places;
    why_.cause = "topology: all " + all + " " + task_ + "s must be in one " + describe_level(inv_, *level_) +
                 ", and they fit only without that; at most " + thousands(most) +
                 (most == 1 ? " finds" : " find") +
                 " a place in one: " + gpusched::quoted(why_.domains.front().domain) + " (" + listed(nodes) +
                 "), of " + counted(static_cast<std::int64_t>(why_.domains.size()), "domain");
    return true;
}

void Inquiry::say_constraint() {
    const auto pod = unplaced_.front();
    best_nodes_ = allocation::detail::without_own_obstacles(*work_, pod, best_nodes_, [&](NodeId node) {
        return find_obstacle(cluster_, pod, node) == Obstacle::none;
    });
    const Tally tally(*work_, pod, best_nodes_, options_.order);
    if (why_.pods.size() > 1) {
        why_.cause =
            thousands(why_.places) + " of " + counted(static_cast<std::int64_t>(why_.pods.size()), task_);
        why_.cause += why_.places == 1 ? " finds a place" : " find a place";
        if (level_) why_.cause += " in the best domain";
        why_.cause += enough_to_start() + "; ";
    }
    const auto row = tally.row_to_blame([&](std::size_t r) { return cost_to_remove(tally, r); });
    const auto all = std::count_if(unplaced_.begin(), unplaced_.end(),
                                   [&](TaskId other) { return kind_of_.at(other) == kind_of_.at(pod); });
    if (emptied_)  // the others get what these leave
        for (const auto other : why_.pods)
            if (work_->is_placed(other))
                emptied_->assign(other, work_->node_of(other), work_->gpus_of(other));
    std::int64_t room = 0;
    if (emptied_ && row)
        for (const auto node : best_nodes_)
            if (const auto set = tally.refusals.of(node); set.size() == 1 && set.front() == *row)
                room += room_without(tally, node, all);
    if (emptied_ && !options_.on && all > 1 && room < all)
        if (const auto rows = fewest_that_help(tally, all); !rows.empty())
            return rows.size() == 1 ? say_row(tally, rows.front()) : say_rows(tally, rows);
    if (row) {
        say_row(tally, *row);
        if (emptied_ && !options_.on && room < all)
            why_.cause +=
                "; this alone gives places to at most " + thousands(room) + " of " + counted(all, task_);
    } else if (const auto* const set = tally.smallest()) {
        say_rows(tally, set->first);
    } else {
        why_.cause_kind = Cause::constraint;
        why_.cause += reason_.empty() ? "no placement of all " + task_ + "s was found" : reason_;
    }
}

std::int64_t Inquiry::room_without(const Tally& tally, NodeId node, std::int64_t count) {
    // In `emptied_`, failed GPUs and volumes still refuse.
    auto spec = emptied_->node_spec(node);
    bool changes = false;
    for (const auto row : tally.refusals.of(node))
        if (tally.constraint(row) == Constraint::failed_gpus) {
            spec.failed_gpus.clear();
            changes = true;
        } else if (tally.constraint(row) == Constraint::volume) {
            spec.resources[inv_.resource_names[tally.refusals.rows()[row].resource]] = largest_quantity;
            changes = true;
        }
    if (!changes) return gpusched::detail::room_by_resources(*emptied_, tally.refusals.task(), node, count);
    if (!repaired_) {
        repaired_ = *emptied_;
        repaired_->commit();
    }
    repaired_->update_node(repaired_->handle(node), spec);
    return gpusched::detail::room_by_resources(*repaired_, tally.refusals.task(), node, count);
}

Inquiry::Rows Inquiry::fewest_that_help(const Tally& tally, std::int64_t count) {
    Rows known;  // the rows that refuse nodes, which are bits of a mask
    for (const auto& [set, group] : tally.sets)
        for (const auto row : set)
            if (std::find(known.begin(), known.end(), row) == known.end()) known.push_back(row);
    constexpr std::size_t most_rows = 12;
    if (known.size() > most_rows) return {};
    std::sort(known.begin(), known.end());
    struct Room {
        std::int64_t pods = 0, nodes = 0;
    };
    std::map<unsigned, Room> rooms;
    for (const auto node : best_nodes_) {
        unsigned mask = 0;
        for (const auto row : tally.refusals.of(node))
            mask |= 1u << (std::find(known.begin(), known.end(), row) - known.begin());
        if (mask == 0) continue;
        auto& room = rooms[mask];
        ++room.nodes;
        room.pods += room_without(tally, node, count);
    }
    unsigned best = 0;
    std::int64_t most = 0;
    for (unsigned mask = 1; mask < 1u << known.size(); ++mask) {
        Room without;
        for (const auto& [of, room] : rooms)
            if ((of & ~mask) == 0) without.pods += room.pods, without.nodes += room.nodes;
        if (without.pods < count) continue;
        const auto size = std::popcount(mask), least = std::popcount(best);
        if (best != 0 && (size > least || (size == least && without.nodes <= most))) continue;
        best = mask;
        most = without.nodes;
    }
    Rows rows;
    for (std::size_t i = 0; i < known.size(); ++i)
        if ((best >> i & 1) != 0) rows.push_back(known[i]);
    return rows;
}

void Inquiry::say_rows(const Tally& tally, const Rows& rows) {
    why_.cause_kind = Cause::constraints;
    std::string names;
    for (const auto row : rows) {
        why_.constraints.push_back(tally.refusals.name(row));
        names += (names.empty() ? "" : row == rows.back() ? " and " : ", ") + tally.refusals.words(row);
    }
    std::int64_t nodes = 0;
    const Tally::Set* like = nullptr;  // refused by most of the rows
    for (const auto& set : tally.sets) {
        if (!std::includes(rows.begin(), rows.end(), set.first.begin(), set.first.end())) continue;
        nodes += set.second.nodes;
        if (like == nullptr || set.first.size() > like->first.size()) like = &set;
    }
    std::int64_t idle = 0, most = 0;
    const bool gpus = tally.constraint(rows.front()) == Constraint::gpu && why_.places == 0;
    for (const auto node : best_nodes_)
        if (const auto set = tally.refusals.of(node);
            gpus && !set.empty() && std::includes(rows.begin(), rows.end(), set.begin(), set.end())) {
            idle += tally.refusals.idle(node).milli;
            most = std::max(most, tally.refusals.idle(node).most);
        }
    const auto have = idle == 0 ? std::string()
                                : " and " + std::string(nodes == 1 ? "has " : "have ") + gpus_text(idle) +
                                      " idle GPU" + (idle == whole_gpu_milli ? "" : "s") + ", at most " +
                                      gpus_text(most) + " on one";
    why_.cause += (options_.on ? "refused by " + names
                               : names + " together: " + counted(nodes, "node") +
                                     (nodes == 1 ? " passes" : " pass") + " every other constraint" + have +
                                     ", like " + gpusched::quoted(cluster_.name(like->second.first))) +
                  "; " + tally.describe(like->first, like->second.first);
}

std::int64_t Inquiry::cost_to_remove(const Tally& tally, std::size_t row) {
    const auto pod = tally.refusals.task();
    const auto constraint = tally.constraint(row);
    const auto without_plan = std::numeric_limits<std::int64_t>::max() / 2 +  // above any plan
                              allocation::detail::effort_to_remove(constraint);
    if (constraint == Constraint::cordoned)
        return std::any_of(why_.remedies.begin(), why_.remedies.end(),
                           [](const Remedy& r) { return r.kind == RemedyKind::uncordon; })
                   ? 0
                   : without_plan;
    if (constraint <= Constraint::failed_gpus) return without_plan;
    std::vector<std::uint8_t> alone(cluster_.node_slots());
    for (const auto node : best_nodes_)
        if (const auto set = tally.refusals.of(node); set.size() == 1 && set.front() == row)
            alone[index(node)] = 1;
    Options options;
    options.time_limit = budget_.remaining_s();
    options.filter = allocation::AnyFilter([&, pod](const Cluster&, TaskId task, NodeId node) {
        return task != pod || alone[index(node)] != 0;
    });
    const auto made = admit(*work_, {&pod, 1}, options, context_);
    return made.admitted ? made.cost.total() : without_plan;
}

void Inquiry::say_row(const Tally& tally, std::size_t row) {
    const auto& count = tally.rows[row];
    const auto constraint = tally.constraint(row);
    const auto name = tally.refusals.words(row);
    why_.constraints.push_back(tally.refusals.name(row));
    why_.cause_kind = Cause::constraint;
    if (constraint == Constraint::gpu) return say_gpus(tally, row);
    auto best = tally.refusals.describe(row, count.closest);
    if (constraint == Constraint::near)
        if (auto missing = gpusched::detail::missing_neighbours(*work_, tally.refusals.task());
            !missing.empty())
            best = std::move(missing);
    if (options_.on) {
        why_.cause += "refused only by " + name + ": " + best;
        return;
    }
    const auto [passing, pass] = tally.passing(row);
    why_.cause += name + ": " + counted(passing, "node") + pass + "; ";
    if (constraint != Constraint::cordoned) {
        why_.cause += (passing == 1 ? "this is " : "the closest is ") +
                      gpusched::quoted(cluster_.name(count.closest)) + ": " + best;
        if (allocation::is_permanent(constraint)) why_.cause += tally.describe_pool();
        return;
    }
    std::vector<std::string> names;
    for (const auto node : best_nodes_)
        if (const auto set = tally.refusals.of(node); set.size() == 1 && set.front() == row)
            names.push_back(with_reason(node));
    why_.cause += (count.alone == 1 ? "it is " : "they are ") + name + ": " + listed(names);
}

void Inquiry::say_gpus(const Tally& tally, std::size_t row) {
    const auto alone = tally.passing(row).first;
    std::int64_t idle = 0, idle_now = 0, most = 0, needs = 0;
    const Refusals now(cluster_, tally.refusals.task(), options_.order);
    auto model = none<GpuModelId>;
    bool one_model = true;
    for (const auto node : best_nodes_) {
        const auto set = tally.refusals.of(node);
        if (set.size() != 1 || set.front() != row) continue;
        const auto here = tally.refusals.idle(node);
        idle += here.milli;
        idle_now += now.idle(node).milli;
        most = std::max(most, here.most);
        const auto its = inv_.nodes.gpu_model[index(node)];
        one_model = one_model && (model == none<GpuModelId> || its == model);
        model = its;
    }
    for (const auto pod : unplaced_) needs += cluster_.gpu_milli(pod);
    why_.cause_kind = idle >= needs ? Cause::fragmentation : Cause::capacity;
    const auto each = cluster_.gpu_milli(tally.refusals.task());
    const bool fraction = cluster_.is_fraction(tally.refusals.task());
    const auto nodes = one_model && model != none<GpuModelId>
                           ? counted(alone, inv_.gpu_models[index(model)] + " node")
                           : counted(alone, "node");
    why_.cause += std::string(enum_name(why_.cause_kind)) + ": " + nodes +
                  (alone == 1 ? " passes" : " pass") + " every other constraint and " +
                  (alone == 1 ? "has " : "have ") + gpus_text(idle_now) +
                  (idle_now == whole_gpu_milli ? " idle GPU" : " idle GPUs");
    const bool changed = idle != idle_now;
    if (changed)
        why_.cause += ", " + gpus_text(idle) + " once the " + task_ + "s that find a place are there";
    if ((alone > 1 || fraction) && most > 0)
        why_.cause += std::string(changed ? "; then none of " : "; none of ") +
                      (!fraction    ? "them"
                       : alone == 1 ? "its GPUs"
                                    : "their GPUs") +
                      " has more than " + gpus_text(most) + (fraction ? " free" : " idle");
    why_.cause += unplaced_.size() > 1
                      ? "; the " + thousands(static_cast<std::int64_t>(unplaced_.size())) +
                            (why_.places > 0 ? " other " : " ") + task_ + "s need " + gpus_text(needs) +
                            ", " + gpus_text(each) + " on one" + (fraction ? " GPU" : " node")
                      : "; the " + task_ + " needs " + gpus_text(each) +
                            (fraction                 ? " on one GPU"
                             : each > whole_gpu_milli ? " on one"
                                                      : "");
}

}  // namespace gpusched::admission::detail
