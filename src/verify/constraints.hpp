// SPDX-License-Identifier: Apache-2.0
// The constraints that every arrival of a task on a node must satisfy.
#pragma once

#include "verify/state.hpp"

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
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

// A task that arrives on a node. Its violations are collected first and reported in plan order.
struct Arrival {
    Pod* pod;
    int node;
    const std::vector<int>& cards;
    std::string step;
    std::vector<std::string> found{};
    bool restarts = false;  ///< it has left its old node
};

template <class Report>
void check_fixed(const TaskSpec& task, const Report& report) {
    if (task.locked) report("locked: the task must stay");
    if (task.standby) report("standby: the task must stay");
    if (task.daemon) report("daemon: the task must stay");
}

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
    for (const auto& affinity : task.hardware_affinity) {
        if (affinity.qos != HardwareQos::guaranteed) continue;
        const bool numa_level = affinity.level == HardwareLevel::numa;
        const std::string what =
            "hardware affinity: guaranteed " + std::string(numa_level ? "NUMA node" : "socket");
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

/// Reads an integer like Go's ParseInt.
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

/// The devices must have the requested number and one class that the task accepts.
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

inline void check_node(const State& state, Arrival& a) {
    const auto& task = *a.pod->spec;
    const auto& node = *state.machine(a.node).spec;
    const auto cordons = [](const Taint& taint) {
        return taint.key == "node.kubernetes.io/unschedulable" && taint.effect == "NoSchedule";
    };
    // A node with that taint receives tasks that tolerate the taint; the loop over taints checks this.
    if (!node.schedulable && std::none_of(node.taints.begin(), node.taints.end(), cordons)) {
        const bool ready = std::none_of(node.taints.begin(), node.taints.end(), [](const Taint& taint) {
            return taint.key == "node.kubernetes.io/not-ready" ||
                   taint.key == "node.kubernetes.io/unreachable";
        });
        a.found.push_back(std::string(ready ? "cordoned" : "not ready") + ": the node receives nothing");
    }
    if (!task.gpu_models.empty() &&
        std::find(task.gpu_models.begin(), task.gpu_models.end(), node.gpu_model) == task.gpu_models.end())
        a.found.push_back("GPU model: " + named(node.gpu_model) +
                          " is not among those that the task accepts");
    for (const auto& [key, value] : task.node_selector) {
        const auto label = node.labels.find(key);
        if (label == node.labels.end() || label->second != value)
            a.found.push_back("node selector: the node lacks label " + key + "=" + value);
    }
    if (!affinity_holds(task.node_affinity, node))
        a.found.push_back("node affinity: the node satisfies none of its terms");
    for (const auto& taint : node.taints)
        if (keeps_away(taint, task.tolerations))
            a.found.push_back("taint: " + taint.key + "=" + taint.value + ":" + taint.effect +
                              " is not tolerated");
    const auto whole =
        std::count_if(a.cards.begin(), a.cards.end(), [&](int card) { return card < node.gpu_count; });
    if (whole != task.gpu_count)
        a.found.push_back("gpus: names " + std::to_string(whole) + ", but the task asks for " +
                          std::to_string(task.gpu_count));
    check_devices(a, task, state.machine(a.node));
    if (task.cpu_local)
        a.found.push_back("cpu_local: cannot be checked, because the checker does not count cores");
    check_locality(a, task, node);
}

// Called after the arrival was added: this arrival or an earlier one exceeds the capacity.
inline void check_room(const State& state, Arrival& a) {
    const auto& task = *a.pod->spec;
    const auto& m = state.machine(a.node);
    const auto over = [&](const std::string& what, std::int64_t asked, std::int64_t used,
                          std::int64_t capacity) {
        if (asked > 0 && used > capacity)
            a.found.push_back(what + ": needs " + std::to_string(asked) + ", but " +
                              std::to_string(capacity - (used - asked)) + " of " + std::to_string(capacity) +
                              " is free");
    };
    const auto most = [&](const InUse& use) {
        return std::max(State::consumes(task) ? use.consumed : 0, State::claims(task) ? use.claimed : 0);
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

inline void check_group(const State& state, Arrival& a, const Tally& tally) {
    const auto home = state.domain(tally.level, a.node);
    if (home == nowhere) {
        if (tally.kind == Tally::Kind::together)
            a.found.push_back("affinity: the node has no domain at " + state.level_text(tally.level));
        return;
    }
    const auto& here = tally.domains.at(home);
    const int old = a.pod->node == nowhere ? nowhere : state.domain(tally.level, a.pod->node);
    const auto where = " at " + state.level_text(tally.level);
    if (tally.kind == Tally::Kind::spread) {
        const auto copies = here.copies - (old == home ? 1 : 0);  // its own old copy does not count
        if (!here.limits.empty() && copies > here.limits.begin()->first)
            a.found.push_back("anti-affinity: group " + named(tally.name) + where + " would have " +
                              std::to_string(copies) + (copies == 1 ? " member" : " members") +
                              " together, the limit is " + std::to_string(here.limits.begin()->first));
        return;
    }
    const bool network = tally.kind == Tally::Kind::network;
    const bool old_excused = !network && old != nowhere && old != home;
    if (tally.copies - here.copies - (old_excused ? 1 : 0) > 0)
        a.found.push_back(std::string(network ? "network affinity: gang " : "affinity: group ") +
                          named(tally.name) + where + " would be spread over several domains");
}

/// Checks groups that a task avoids, wants near or spreads, and tasks that avoid its groups. The task's new
/// copy is in the state; its old copy does not count.
class SelectionCheck {
  public:
    SelectionCheck(const State& state, Arrival& arrival)
        : state_(state), a_(arrival), task_(*arrival.pod->spec), self_(state.number(*arrival.pod)) {}

    void run() {
        avoid();
        near();
        for (const auto& term : task_.spread) spread(term);
    }

  private:
    static bool lists(const TaskSpec& task, std::string_view group) {
        return std::find(task.groups.begin(), task.groups.end(), group) != task.groups.end();
    }
    [[nodiscard]] const TaskSpec& spec(int pod) const {
        return *state_.pods[static_cast<std::size_t>(pod)].spec;
    }
    [[nodiscard]] int domain(Level level, int node) const { return state_.domain(level, node); }

    // Calls `visit(pod, node, copies)` for all copies of other tasks.
    template <class Visit>
    void others(const std::map<std::string_view, State::Copies>& of, std::string_view group,
                Visit&& visit) const {
        const auto found = of.find(group);
        if (found == of.end()) return;
        for (const auto& [copy, count] : found->second)
            if (copy.first != self_) visit(copy.first, copy.second, count);
    }

    void avoid() {
        for (const auto& term : task_.avoid) {
            const int home = domain(term.level, a_.node);
            bool met = false;
            others(state_.members, term.group, [&](int, int node, int) {
                met = met || (home != nowhere && domain(term.level, node) == home);
            });
            if (met)
                a_.found.push_back("pod anti-affinity: members of group " + named(term.group) +
                                   " are in its domain at " + state_.level_text(term.level));
        }
        for (const auto& group : task_.groups) {
            bool met = false;
            others(state_.avoiding, group, [&](int pod, int node, int) {
                for (const auto& term : spec(pod).avoid)
                    met = met || (term.group == group && domain(term.level, a_.node) != nowhere &&
                                  domain(term.level, a_.node) == domain(term.level, node));
            });
            if (met)
                a_.found.push_back("pod anti-affinity: a task that avoids group " + named(group) +
                                   ", which the task lists, is in its domain");
        }
    }

    void near() {
        if (task_.near.empty()) return;
        const auto has_all_groups = [&](const TaskSpec& other) {
            return std::all_of(task_.near.begin(), task_.near.end(),
                               [&](const Near& term) { return lists(other, term.group); });
        };
        bool anywhere = false;
        const Near* unmet = nullptr;
        for (const auto& term : task_.near) {
            const int home = domain(term.level, a_.node);
            if (home == nowhere) {
                a_.found.push_back("pod affinity: the node has no domain at " +
                                   state_.level_text(term.level));
                return;
            }
            bool here = false;
            others(state_.members, term.group, [&](int pod, int node, int) {
                const int there = domain(term.level, node);
                if (there == nowhere || !has_all_groups(spec(pod))) return;
                anywhere = true;
                here = here || there == home;
            });
            if (!here) unmet = &term;
        }
        if (unmet != nullptr && (anywhere || !has_all_groups(task_)))
            a_.found.push_back("pod affinity: no member of group " + named(unmet->group) +
                               " is in its domain at " + state_.level_text(unmet->level));
    }

    [[nodiscard]] bool counts(const Spread& term, int node) const {
        for (const auto& other : task_.spread)
            if (domain(other.level, node) == nowhere) return false;
        const auto& n = *state_.machine(node).spec;
        if (term.honor_node_affinity) {
            for (const auto& [key, value] : task_.node_selector) {
                const auto label = n.labels.find(key);
                if (label == n.labels.end() || label->second != value) return false;
            }
            if (!affinity_holds(task_.node_affinity, n)) return false;
        }
        return !term.honor_taints || std::none_of(n.taints.begin(), n.taints.end(), [&](const Taint& taint) {
            return keeps_away(taint, task_.tolerations);
        });
    }

    void spread(const Spread& term) {
        const int home = domain(term.level, a_.node);
        if (home == nowhere) {
            a_.found.push_back("topology spread: the node has no domain at " + state_.level_text(term.level));
            return;
        }
        std::map<int, std::int64_t> filled;  // members in each domain that counts
        for (int node = 0; node < static_cast<int>(state_.machines.size()); ++node)
            if (counts(term, node)) filled.try_emplace(domain(term.level, node), 0);
        others(state_.members, term.group, [&](int, int node, int copies) {
            if (counts(term, node)) filled.at(domain(term.level, node)) += copies;
        });
        std::int64_t fewest = filled.empty() ? 0 : INT64_MAX;
        for (const auto& [id, members] : filled) fewest = std::min(fewest, members);
        if (static_cast<std::int64_t>(filled.size()) < term.min_domains) fewest = 0;
        const auto here = filled.find(home);
        const auto members = (here == filled.end() ? 0 : here->second) + (lists(task_, term.group) ? 1 : 0);
        if (members - fewest > term.max_skew)
            a_.found.push_back("topology spread: its domain at " + state_.level_text(term.level) +
                               " would hold " + std::to_string(members) +
                               (members == 1 ? " member" : " members") + " of group " + named(term.group) +
                               ", another " + std::to_string(fewest) + "; maxSkew is " +
                               std::to_string(term.max_skew));
    }

    const State& state_;
    Arrival& a_;
    const TaskSpec& task_;
    int self_;
};

}  // namespace gpusched::verify::detail
