// SPDX-License-Identifier: Apache-2.0
// Inquiry: changes after which all pods find a place.
#include "admission/inquiry.hpp"
#include "admission/prices.hpp"
#include "model/node_match.hpp"

#include <gpusched/consolidation/what_if.hpp>
#include <gpusched/core/text.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace gpusched::admission::detail {

void Inquiry::add_remedy(RemedyKind kind, std::optional<std::int64_t> cost, std::string text,
                         const Cluster& changed, std::span<const Placement> places) {
    why_.remedies.push_back({kind, cost, std::move(text) + earlier_in_queue(changed, places), {}});
}

std::string Inquiry::earlier_in_queue(const Cluster& changed, std::span<const Placement> places) {
    std::vector<std::string> earlier;
    for (const auto& job : consolidation::earlier_in_queue(changed, places, context_))
        earlier.push_back(job.name);
    return earlier.empty() ? std::string()
                           : "; jobs earlier in the queue may take the place: " + listed(earlier);
}

std::vector<Placement> Inquiry::ask_again(const Cluster& changed) {
    if (!options_.on) return placement(changed, why_.pods);
    Cluster copy(changed);
    copy.commit();
    if (!place_some(copy, kinds_, nodes_).empty()) return {};
    std::vector<Placement> pods;
    for (const auto pod : why_.pods) pods.push_back({pod, copy.node_of(pod), copy.gpus_of(pod)});
    return pods;
}

void Inquiry::ask_others() {
    ask_to_wait();
    ask_admit();
}

void Inquiry::ask_to_wait() {
    std::vector<TaskId> leaving;
    for (const auto task : inv_.terminating)
        if (cluster_.is_placed(task)) leaving.push_back(task);
    if (leaving.empty()) return;
    const auto without = [&](std::span<const TaskId> tasks) {
        Cluster changed(cluster_);
        changed.commit();
        for (const auto task : tasks) changed.remove(task);
        return changed;
    };
    const auto pods = ask_again(without(leaving));
    if (pods.empty()) return;
    std::vector<TaskId> needed;
    for (const auto task : leaving)
        if (uses(pods, cluster_.node_of(task))) needed.push_back(task);
    if (ask_again(without(needed)).empty()) needed = leaving;  // a group needs more than room
    constexpr std::size_t most_to_reduce = 16;
    if (needed.size() <= most_to_reduce)
        reduce(needed, [&](std::span<const TaskId> tasks) { return !ask_again(without(tasks)).empty(); });
    std::vector<std::string> names;
    for (const auto task : needed)
        names.push_back(cluster_.name(task) + " has left " + cluster_.name(cluster_.node_of(task)));
    const auto changed = without(needed);
    add_remedy(RemedyKind::wait, 0, "wait until " + listed(names), changed, ask_again(changed));
}

void Inquiry::ask_to_uncordon() {
    std::vector<NodeId> cordoned;
    for (const auto& kind : kinds_) {
        const Refusals refusals(cluster_, kind.sample(), options_.order);
        for (const auto node : nodes_) {
            const auto set = refusals.of(node);
            if (set.size() == 1 && refusals.rows()[set.front()].constraint == Constraint::cordoned &&
                std::find(cordoned.begin(), cordoned.end(), node) == cordoned.end())
                cordoned.push_back(node);
        }
    }
    if (cordoned.empty()) return;
    const auto with = [&](std::span<const NodeId> nodes) {
        Cluster changed(cluster_);
        changed.commit();
        for (const auto node : nodes) {
            auto spec = cluster_.node_spec(node);
            spec.schedulable = true;
            std::erase_if(spec.taints,
                          [](const Taint& taint) { return taint.key == gpusched::detail::cordon_taint; });
            changed.update_node(changed.handle(node), spec);
        }
        return changed;
    };
    const auto pods = ask_again(with(cordoned));
    if (pods.empty()) return;
    std::erase_if(cordoned, [&](NodeId node) { return !uses(pods, node); });
    constexpr std::size_t most_to_reduce = 16;
    if (cordoned.size() <= most_to_reduce)
        reduce(cordoned, [&](std::span<const NodeId> nodes) { return !ask_again(with(nodes)).empty(); });
    std::vector<std::string> names;
    bool reasons = false;
    for (const auto node : cordoned) {
        const auto reason =
            gpusched::detail::closed_reason(inv_, node, concat(" (", words_of(inv_).closed, ": "), ")");
        reasons = reasons || !reason.empty();
        names.push_back(cluster_.name(node) + reason);
    }
    const auto changed = with(cordoned);
    add_remedy(RemedyKind::uncordon, 0,
               concat(words_of(inv_).reopen, " ", listed(names), reasons ? " if that is fixed" : ""), changed,
               ask_again(changed));
}

std::string Inquiry::with_reason(NodeId node) const {
    return cluster_.name(node) + gpusched::detail::closed_reason(inv_, node, " (", ")");
}

void Inquiry::ask_admit() {
    Options options;
    if (options_.on)
        options.filter = allocation::AnyFilter([this](const Cluster&, TaskId task, NodeId node) {
            return node == *options_.on ||
                   std::find(why_.pods.begin(), why_.pods.end(), task) == why_.pods.end();
        });
    const auto ask = [&] {
        options.time_limit = budget_.remaining_s();
        return admit(cluster_, why_.pods, options, context_);
    };
    const auto made = ask();
    if (!made.admitted) {
        const auto rule = rule_of_slurm(cluster_, why_.pods);
        if (made.proven)
            why_.cause +=
                "; no moves or evictions help (proven" + (rule.empty() ? ")" : ", given that " + rule + ")");
        else if (!rule.empty())
            why_.cause += "; " + rule;
        return;
    }
    if (!made.plan.evictions.empty()) {
        add_admission(RemedyKind::evictions, made);
        options.evictions = false;
        if (const auto moves = ask(); moves.admitted) add_admission(RemedyKind::moves, moves);
    } else {
        add_admission(RemedyKind::moves, made);
    }
}

void Inquiry::add_admission(RemedyKind kind, const Admission& made) {
    std::vector<std::string> moves, evictions;
    Cluster changed(cluster_);
    changed.commit();
    std::set<std::string> restarted;  // Slurm restarts whole jobs
    const bool slurm = gpusched::detail::is_slurm(inv_);
    for (const auto& move : made.plan.moves) {
        const bool copied = inv_.tasks.how(move.task) == Mobility::copy;
        const auto job = inv_.tasks.job[index(move.task)];
        if (!copied)
            restarted.insert(slurm && job != none<JobId> ? inv_.job_names[index(job)]
                                                         : cluster_.name(move.task));
        moves.push_back(cluster_.name(move.task) + " to " + cluster_.name(move.to) +
                        (copied ? "" : " (restarts)"));
        changed.remove(move.task);
    }
    for (const auto task : made.plan.evictions) {
        changed.remove(task);
        const auto again = std::find_if(made.plan.placements.begin(), made.plan.placements.end(),
                                        [&](const Placement& p) { return p.task == task; });
        evictions.push_back(
            cluster_.name(task) +
            (again == made.plan.placements.end() ? "" : " (restarts on " + cluster_.name(again->node) + ")"));
    }
    std::string text;
    if (!evictions.empty())
        text += "evict " + counted(static_cast<std::int64_t>(evictions.size()), "task") + ": " +
                listed(evictions);
    if (!moves.empty())
        text += (text.empty() ? "" : "; ") +
                ("move " + counted(static_cast<std::int64_t>(moves.size()), "task")) + ": " + listed(moves);
    if (text.empty()) text = "borrow from Standby tasks";
    const auto seconds = [](std::int64_t cost) { return thousands((cost + 999) / 1000); };
    text += "; costs " + seconds(made.cost.total()) + " GPU-seconds";
    if (made.cost.lost_work > 0) text += ", " + seconds(made.cost.lost_work) + " of them lost work";
    if (!restarted.empty())
        text += "; not counted: work lost by " +
                counted(std::ssize(restarted), "restarted " + (slurm ? "job" : task_));
    for (const auto& move : made.plan.moves) changed.assign(move.task, move.to, move.gpus);
    for (const auto& p : made.plan.placements)
        if (std::find(why_.pods.begin(), why_.pods.end(), p.task) == why_.pods.end())
            changed.assign(p.task, p.node, p.gpus);
    add_remedy(kind, made.cost.total(), std::move(text), changed, made.pods);
    why_.remedies.back().plan = made.plan;
}

void Inquiry::ask_for_nodes() {
    if (options_.on) return;
    // The largest node of each GPU model, by GPUs, cores and memory, that no permanent constraint keeps from any pod.
    std::map<std::string, NodeId> templates;
    std::vector<Refusals> refusals;
    for (const auto& kind : kinds_) refusals.emplace_back(cluster_, kind.sample());
    for (const auto node : nodes_) {
        if (!std::all_of(refusals.begin(), refusals.end(),
                         [&](const Refusals& of_kind) { return of_kind.in_pool(node); }))
            continue;
        const auto model = inv_.nodes.gpu_model[index(node)];
        auto& known =
            templates.try_emplace(model == none<GpuModelId> ? "" : inv_.gpu_models[index(model)], node)
                .first->second;
        const auto size = [&](NodeId of) {
            return std::tuple(cluster_.gpu_count(of), inv_.nodes.cpu_milli[index(of)],
                              inv_.nodes.memory_mib[index(of)]);
        };
        if (size(node) > size(known)) known = node;
    }
    const auto all = static_cast<std::int64_t>(why_.pods.size());
    std::int64_t fewest = all + 1;
    std::string model;
    constexpr std::size_t most_models = 8;
    for (const auto& [name, node] : templates) {
        if (templates.size() > most_models && fewest <= all) break;
        const auto helps = [&](std::int64_t count) {
            return !budget_.exhausted() && !placement(with_nodes(node, count), why_.pods).empty();
        };
        auto most = fewest - 1;
        if (most < 1 || !helps(most)) continue;
        std::int64_t least = 0;  // does not help
        while (most - least > 1) {
            const auto middle = least + (most - least) / 2;
            (helps(middle) ? most : least) = middle;
        }
        fewest = most;
        model = name;
    }
    if (fewest > all) return;
    const auto node = templates.at(model);
    const auto changed = with_nodes(node, fewest);
    add_remedy(RemedyKind::add_nodes, std::nullopt,
               "add " + counted(fewest, model.empty() ? "node" : model + " node") + " like " +
                   cluster_.name(node),
               changed, placement(changed, why_.pods));
}

Cluster Inquiry::with_nodes(NodeId like, std::int64_t count) const {
    Cluster changed(cluster_);
    changed.commit();
    auto spec = cluster_.node_spec(like);
    spec.schedulable = true;
    spec.failed_gpus.clear();
    std::erase_if(spec.taints, gpusched::detail::is_state);
    for (const auto task : cluster_.tasks_on(like)) {  // a new node runs the daemons, too
        if (!inv_.tasks.daemon[index(task)]) continue;
        spec.cpu_milli = std::max<std::int64_t>(0, spec.cpu_milli - inv_.tasks.cpu_milli[index(task)]);
        spec.memory_mib = std::max<std::int64_t>(0, spec.memory_mib - inv_.tasks.memory_mib[index(task)]);
        for (const auto& [resource, amount] : inv_.extras[inv_.tasks.extras[index(task)]].resources)
            if (auto held = spec.resources.find(inv_.resource_names[resource]); held != spec.resources.end())
                held->second = std::max<std::int64_t>(0, held->second - amount);
    }
    const auto hostname = spec.labels.find("kubernetes.io/hostname");
    for (std::int64_t i = 0, added = 0; added < count; ++i) {
        spec.name = concat(cluster_.name(like), " (new ", i, ")");
        if (inv_.nodes.names.find(spec.name)) continue;
        if (hostname != spec.labels.end()) hostname->second = spec.name;
        changed.add_node(spec);
        ++added;
    }
    return changed;
}

}  // namespace gpusched::admission::detail
