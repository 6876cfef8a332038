// SPDX-License-Identifier: Apache-2.0
// What every arrival of a task on a node must satisfy, judged by the checker's own books.
#pragma once

#include "verify/books.hpp"

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::verify::detail {

inline std::string named(std::string_view name) { return gpusched::quoted(name); }

inline bool keeps_away(const Taint& taint, const std::vector<Toleration>& tolerations) {
    if (taint.effect == "PreferNoSchedule") return false;
    for (const auto& t : tolerations) {
        const bool same_effect = t.effect.empty() || t.effect == taint.effect;
        const bool same_key = t.key == taint.key || (t.key.empty() && t.op == "Exists");
        const bool same_value = t.op == "Exists" || t.value == taint.value;
        if (same_effect && same_key && same_value) return false;
    }
    return true;
}

// A step that puts a task somewhere; its violations are gathered first and reported in plan order.
struct Arrival {
    Pod* pod;
    int node;
    const std::vector<int>& cards;
    std::string step;
    std::vector<std::string> found{};
    bool restarts = false;  ///< it has left its old place
};

template <class Report>
void check_fixed(const TaskSpec& task, const Report& report) {
    if (task.locked) report("locked: the task must stay");
    if (task.standby) report("standby: the task must stay");
    if (task.daemon) report("daemon: the task must stay");
}

/// Whether the task can be moved so.
template <class Report>
void check_how(const TaskSpec& task, MoveMode how, const Report& report) {
    if (task.how == Mobility::none) return report("how: the task never moves");
    const bool by_copy = task.how == Mobility::copy;
    if (by_copy != (how == MoveMode::copy))
        report("how: is " + std::string(enum_name(how)) + ", but the task can move by " +
               std::string(enum_name(task.how)));
}

inline bool gpus_exist(const Machine& machine, const std::vector<int>& gpus,
                       std::vector<std::string>& found) {
    const int count = machine.gpus();
    std::set<int> seen;
    bool exist = true;
    for (const int g : gpus) {
        if (g < 0 || g >= count) {
            found.push_back("gpus: names GPU " + std::to_string(g) + ", but " + named(machine.spec->name) +
                            " has " + std::to_string(count));
            exist = false;
        } else if (!seen.insert(g).second) {
            found.push_back("gpus: names GPU " + std::to_string(g) + " twice");
            exist = false;
        }
    }
    return exist;
}

inline void check_locality(Arrival& a, const TaskSpec& task, const NodeSpec& node) {
    std::vector<int> whole = a.cards;
    std::erase_if(whole, [&](int card) { return card >= node.gpu_count; });
    if (whole.size() < 2) return;  // one GPU is always close to itself
    for (const auto& wish : task.hardware_affinity) {
        if (wish.qos != HardwareQos::guaranteed) continue;
        const bool numa_level = wish.level == HardwareLevel::numa;
        const std::string what =
            "hardware_affinity: guaranteed " + std::string(numa_level ? "NUMA node" : "socket");
        if (!node.hardware) {
            a.found.push_back(what + ", but the node's hardware is not known");
            continue;
        }
        const auto preset = hardware_preset(node.hardware->preset);
        const auto& numa = preset ? preset->numa_nodes : node.hardware->numa_nodes;
        std::set<int> places;
        for (const int card : whole)
            for (std::size_t i = 0; i < numa.size(); ++i)
                if ((numa[i].gpus >> card & 1) != 0)
                    places.insert(numa_level ? static_cast<int>(i) : numa[i].socket);
        if (places.size() != 1)
            a.found.push_back(what + ", but its GPUs span " + std::to_string(places.size()));
    }
}

/// An integer as Go's ParseInt reads it.
inline bool parse_label(const std::string& text, std::int64_t& value) {
    std::size_t digits = text.find_first_not_of("+-");
    if (digits == std::string::npos || digits > 1) return false;
    std::uint64_t size = 0;
    for (std::size_t i = digits; i < text.size(); ++i) {
        if (text[i] < '0' || text[i] > '9' || size > (UINT64_MAX - 9) / 10) return false;
        size = 10 * size + static_cast<std::uint64_t>(text[i] - '0');
    }
    const bool negative = text[0] == '-';
    if (size > std::uint64_t{INT64_MAX} + (negative ? 1 : 0)) return false;
    value = negative ? static_cast<std::int64_t>(0 - size) : static_cast<std::int64_t>(size);
    return true;
}

inline bool condition_holds(const NodeMatch& match, bool present, const std::string& label) {
    const bool among = present && std::count(match.values.begin(), match.values.end(), label) > 0;
    if (match.op == MatchOperator::in) return among;
    if (match.op == MatchOperator::not_in) return !among;
    if (match.op == MatchOperator::exists) return present;
    if (match.op == MatchOperator::does_not_exist) return !present;
    std::int64_t here = 0, bound = 0;
    if (!present || match.values.size() != 1 || !parse_label(label, here) ||
        !parse_label(match.values[0], bound))
        return false;
    return match.op == MatchOperator::gt ? bound < here : here < bound;
}

inline bool affinity_holds(const std::vector<NodeTerm>& terms, const NodeSpec& node) {
    if (terms.empty()) return true;
    for (const auto& term : terms) {
        std::size_t conditions = 0, met = 0;
        for (const auto& match : term.match_expressions) {
            const auto label = node.labels.find(match.key);
            const bool present = label != node.labels.end();
            ++conditions;
            if (condition_holds(match, present, present ? label->second : std::string())) ++met;
        }
        for (const auto& match : term.match_fields) {
            ++conditions;
            if (condition_holds(match, true, node.name)) ++met;
        }
        if (conditions > 0 && met == conditions) return true;
    }
    return false;
}

/// As many devices as asked for, all of one class that the task accepts.
inline void check_devices(Arrival& a, const TaskSpec& task, const Machine& m) {
    std::map<std::string_view, std::int64_t> of_class;
    for (const int card : a.cards)
        if (card >= m.spec->gpu_count)
            ++of_class[m.devices[static_cast<std::size_t>(card - m.spec->gpu_count)].device_class];
    if (task.device_count == 0 && of_class.empty()) return;
    const bool accepted =
        of_class.size() == 1 &&
        std::count(task.device_classes.begin(), task.device_classes.end(), of_class.begin()->first) > 0;
    if (!accepted || of_class.begin()->second != task.device_count) {
        std::string text = "devices: names";
        for (const auto& [name, count] : of_class)
            text += " " + std::to_string(count) + " of class " + named(name);
        a.found.push_back(text + (of_class.empty() ? " none" : "") + ", but the task asks for " +
                          std::to_string(task.device_count) + " of one class that it accepts");
    }
}

inline void check_node(const Books& books, Arrival& a) {
    const auto& task = *a.pod->spec;
    const auto& node = *books.machine(a.node).spec;
    const auto cordons = [](const Taint& taint) {
        return taint.key == "node.kubernetes.io/unschedulable" && taint.effect == "NoSchedule";
    };
    // With that taint it receives tasks that tolerate the taint, which is checked below.
    if (!node.schedulable && std::none_of(node.taints.begin(), node.taints.end(), cordons))
        a.found.push_back("cordoned: the node receives nothing");
    if (!task.gpu_models.empty() &&
        std::find(task.gpu_models.begin(), task.gpu_models.end(), node.gpu_model) == task.gpu_models.end())
        a.found.push_back("gpu_model: " + named(node.gpu_model) +
                          " is not among those that the task accepts");
    for (const auto& [key, value] : task.node_selector) {
        const auto label = node.labels.find(key);
        if (label == node.labels.end() || label->second != value)
            a.found.push_back("node_selector: the node lacks label " + key + "=" + value);
    }
    if (!affinity_holds(task.node_affinity, node))
        a.found.push_back("node_affinity: the node satisfies none of its terms");
    for (const auto& taint : node.taints)
        if (keeps_away(taint, task.tolerations))
            a.found.push_back("taint: " + taint.key + "=" + taint.value + ":" + taint.effect +
                              " is not tolerated");
    const auto whole =
        std::count_if(a.cards.begin(), a.cards.end(), [&](int card) { return card < node.gpu_count; });
    if (whole != task.gpu_count)
        a.found.push_back("gpus: names " + std::to_string(whole) + ", but the task asks for " +
                          std::to_string(task.gpu_count));
    check_devices(a, task, books.machine(a.node));
    if (task.cpu_local) a.found.push_back("cpu_local: cannot be judged, because cores are not accounted for");
    check_locality(a, task, node);
}

// Resources after the arrival was entered; what is over capacity is this arrival's doing or that of one before it.
inline void check_room(const Books& books, Arrival& a) {
    const auto& task = *a.pod->spec;
    const auto& m = books.machine(a.node);
    const auto over = [&](const std::string& what, std::int64_t asked, std::int64_t used,
                          std::int64_t capacity) {
        if (asked > 0 && used > capacity)
            a.found.push_back(what + ": needs " + std::to_string(asked) + ", but " +
                              std::to_string(capacity - (used - asked)) + " of " + std::to_string(capacity) +
                              " is free");
    };
    const auto most = [&](const InUse& use) {
        return std::max(Books::consumes(task) ? use.consumed : 0, Books::claims(task) ? use.claimed : 0);
    };
    over("cpu_milli", task.cpu_milli, most(m.cpu), m.spec->cpu_milli);
    over("memory_mib", task.memory_mib, m.memory_mib, m.spec->memory_mib);
    for (const auto& [name, amount] : task.resources) {
        const auto has = m.spec->resources.find(name);
        over("resource " + named(name), amount, m.resources.at(name),
             has == m.spec->resources.end() ? 0 : has->second);
    }
    for (const int c : a.cards) {
        if (c >= m.spec->gpu_count) {
            const auto& device = m.devices[static_cast<std::size_t>(c - m.spec->gpu_count)];
            if (device.failed) a.found.push_back("devices: " + std::to_string(c) + " has failed");
            if (device.holders > 1)
                a.found.push_back("devices: " + std::to_string(c) + " is held by another task");
            continue;
        }
        const auto& card = m.cards[static_cast<std::size_t>(c)];
        const auto gpu = "GPU " + std::to_string(c);
        if (card.failed)
            a.found.push_back("gpus: " + gpu + " has failed");
        else
            over("gpus: " + gpu, task.gpu_share_milli, most(card.milli), 1000);
        if (m.spec->gpu_memory_mib)
            over("gpu_memory_mib: " + gpu, task.gpu_memory_mib, card.memory_mib, *m.spec->gpu_memory_mib);
    }
}

inline void check_group(const Books& books, Arrival& a, const Tally& tally) {
    const auto home = books.domain(tally.level, a.node);
    if (home == nowhere) {
        if (tally.kind == Tally::Kind::together)
            a.found.push_back("affinity: the node has no domain at " + books.level_text(tally.level));
        return;
    }
    const auto& here = tally.domains.at(home);
    const int old = a.pod->node == nowhere ? nowhere : books.domain(tally.level, a.pod->node);
    const auto where = " at " + books.level_text(tally.level);
    if (tally.kind == Tally::Kind::spread) {
        const auto copies = here.copies - (old == home ? 1 : 0);  // its own old copy does not count
        if (!here.limits.empty() && copies > here.limits.begin()->first)
            a.found.push_back("anti_affinity: group " + named(tally.name) + where + " would have " +
                              std::to_string(copies) + " members together, the limit is " +
                              std::to_string(here.limits.begin()->first));
        return;
    }
    const bool network = tally.kind == Tally::Kind::network;
    const bool old_excused = !network && old != nowhere && old != home;
    if (tally.copies - here.copies - (old_excused ? 1 : 0) > 0)
        a.found.push_back(std::string(network ? "network_affinity: gang " : "affinity: group ") +
                          named(tally.name) + where + " would be spread over several domains");
}

}  // namespace gpusched::verify::detail
