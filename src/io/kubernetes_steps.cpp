// SPDX-License-Identifier: Apache-2.0
#include "io/kubernetes_names.hpp"
#include "io/kubernetes_steps_script.hpp"
#include "io/plan_text.hpp"

#include <gpusched/config.hpp>
#include <gpusched/io/kubernetes_steps.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace gpusched::io {

namespace detail {

/// FNV-1a in hexadecimal digits: tells one script's steps from another's.
static std::string fingerprint(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, 16).ptr;
    return {digits.data(), end};
}

/// The nodes that pods leave and none moves to, but for those that are vacated: where replacements must not come back to while the plan
/// is carried out.
static std::set<std::string> held_nodes(const PlanSpec& plan) {
    std::set<std::string> out;
    for (const auto& move : plan.moves) out.insert(move.from);
    for (const auto& move : plan.moves) out.erase(move.to);
    for (const auto& node : plan.vacated_nodes) out.erase(node);
    return out;
}

/// The calls of the shell functions, in order.
static std::string kubernetes_steps(const PlanSpec& plan, std::string_view default_namespace) {
    // Names hold lower-case letters, digits, '-' and '.' only, so that nothing needs quoting below.
    const auto pod = [&](const std::string& task) {
        const auto name = pod_name(task, default_namespace);
        return std::string(name.space) + " " + std::string(name.name);
    };
    const auto gpus = [](const std::vector<int>& list) {
        return list.empty() ? std::string() : "  # GPU " + join(list, " ");
    };
    std::string out;
    const auto held = held_nodes(plan);
    if (!plan.vacated_nodes.empty()) out += "  # Nothing may start on the nodes to be vacated.\n";
    for (const auto& node : plan.vacated_nodes) out += "  cordon " + node + "\n";
    if (!held.empty())
        out += plan.vacated_nodes.empty()
                   ? "  # Until all have moved, nothing may start on the nodes from which pods move.\n"
                   : "  # Nor, until all have moved, on those from which pods move.\n";
    for (const auto& node : held) out += "  cordon " + node + "\n";
    for (const auto& task : plan.evictions) out += "  evict " + pod(task) + "\n";
    const auto moves = moves_by_wave(plan);
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const auto& move = *moves[i];
        const auto wave = std::to_string(move.wave);
        out += "  move " + wave + " " + pod(move.task) + " " + move.from + " " + move.to + gpus(move.gpus);
        if (move.how == MoveMode::restart) out += move.gpus.empty() ? "  # restarts" : ", restarts";
        out += "\n";
        if (i + 1 == moves.size() || moves[i + 1]->wave != move.wave) out += "  finish_wave " + wave + "\n";
    }
    for (const auto& node : held) out += "  release " + node + "\n";
    for (const auto& placement : plan.placements)
        out += "  placed " + pod(placement.task) + " " + placement.node + gpus(placement.gpus) + "\n";
    return out.empty() ? "  :\n" : out;
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_kubernetes_steps(const PlanSpec& plan,
                                                     const KubernetesStepsOptions& options) {
    detail::require_kubernetes_names(plan, options.default_namespace);
    const auto counted = [](auto count, const std::string& noun) {
        return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
    };
    const auto steps = detail::kubernetes_steps(plan, options.default_namespace);
    std::string nodes;
    for (const auto& node : plan.vacated_nodes) nodes += (nodes.empty() ? "" : " ") + node;
    std::string out = "#!/bin/sh\n# A plan: " + counted(plan.evictions.size(), "eviction") + ", " +
                      counted(plan.moves.size(), "move") + " in " + counted(plan.waves, "wave") + ", " +
                      counted(plan.placements.size(), "placement") + "; vacates " +
                      counted(plan.vacated_nodes.size(), "node") + ".\n";
    out += R"(#
#   sh FILE        carries it out with kubectl; after an interruption, the same goes on where it was
#   sh FILE check  changes nothing: are the pods where the plan takes them from, and do disruption budgets allow their eviction?
#   sh FILE undo   takes the cordons back; pods that were evicted stay where they are then
#
)";
    out += plan.moves.empty() ? "# Nodes that evicted pods leave are not cordoned, or what the plan makes "
                                "room for could not start there either: another\n"
                                "# pending pod may take the room.\n"
                              : "# Nodes from which pods move are cordoned: for good where they are to be "
                                "vacated, else until all pods have moved.\n";
    out +=
        R"(# Evictions go through the Eviction API. One that a disruption budget refuses (429) is tried again. After each wave the script waits until
# the controllers of the pods have as many ready pods as before.
#
# What a stock Kubernetes cannot be told: where a replacement starts (kube-scheduler chooses, and may start another pending pod in
# the room meanwhile), which GPUs it gets, and to start it before the old pod ends. The script says where replacements went, and asks
# before it goes on where that is not what the plan wants, and before it begins where most pods are gone or elsewhere, or where a
# disruption budget allows no eviction of a pod. Standard input answers. It ends with status 0, with 1 where it stopped, and with 3 where all pods were gone or elsewhere.
#
# GPUSCHED_WAIT_S (600) and GPUSCHED_POLL_S (5): seconds until it gives up, and between two looks. GPUSCHED_YES=1: go on wherever
# replacements are. GPUSCHED_BARE_PODS=1: evict pods without a controller, too; they are lost. GPUSCHED_STATE (FILE.state): what was done.
# KUBECTL (kubectl): the command, such as "kubectl --context prod".
set -eu
)";
    out += "\nplan=" + detail::fingerprint(steps) + "\nnodes='" + nodes + "'\n";
    out += detail::kubernetes_steps_script;
    return out + "\nsteps() {\n" + steps + "}\n\nmain \"$@\"\n";
}

}  // namespace gpusched::io
