// SPDX-License-Identifier: Apache-2.0
// The rules of placement a second time, as naively as possible: every question is answered by looking at all copies
// of all tasks. Generators, oracles and tests of the model rest on it; it shares no code with what they test.
#pragma once

#include "support/catch.hpp"

#include <gpusched/model/spec.hpp>

namespace reference {

using gpusched::ClusterSpec;
using gpusched::Level;
using gpusched::NodeSpec;
using gpusched::PriorityClass;
using gpusched::TaskSpec;

/// One copy of a task on a node. During a move a task has two.
struct Copy {
    std::size_t task = 0;
    std::size_t node = 0;
    std::vector<int> gpus{};
    auto operator<=>(const Copy&) const = default;
};

/// Everything that holds resources now. The order of copies does not matter.
struct State {
    const ClusterSpec* spec;
    std::vector<Copy> copies{};

    [[nodiscard]] const TaskSpec& task(std::size_t t) const { return spec->tasks[t]; }
    [[nodiscard]] const NodeSpec& node(std::size_t n) const { return spec->nodes[n]; }
};

inline std::size_t node_index(const ClusterSpec& spec, const std::string& name) {
    for (std::size_t n = 0; n < spec.nodes.size(); ++n)
        if (spec.nodes[n].name == name) return n;
    throw std::logic_error("no node " + name);
}

/// The copies as the snapshot's placements give them.
inline State initial(const ClusterSpec& spec) {
    State state{&spec};
    for (std::size_t t = 0; t < spec.tasks.size(); ++t)
        if (const auto& task = spec.tasks[t]; task.node)
            state.copies.push_back({t, node_index(spec, *task.node), task.gpus});
    return state;
}

inline bool is_lp(const TaskSpec& task) { return task.priority_class == PriorityClass::lp; }

/// What is left of `capacity` for a task that may (LP) or may not overlap Standby claims.
template <class Amount>
std::int64_t left(const State& s, std::size_t node, std::int64_t capacity, bool borrow, Amount amount) {
    std::int64_t consumed = 0, claimed = 0;
    for (const auto& c : s.copies) {
        if (c.node != node) continue;
        if (!s.task(c.task).standby) consumed += amount(c);
        if (!is_lp(s.task(c.task))) claimed += amount(c);
    }
    return borrow ? capacity - consumed : std::min(capacity - consumed, capacity - claimed);
}

inline std::int64_t cpu_free_milli(const State& s, std::size_t node, bool borrow) {
    return left(s, node, s.node(node).cpu_milli, borrow,
                [&](const Copy& c) { return s.task(c.task).cpu_milli; });
}

inline std::int64_t memory_free_mib(const State& s, std::size_t node) {
    auto free = s.node(node).memory_mib;
    for (const auto& c : s.copies)
        if (c.node == node) free -= s.task(c.task).memory_mib;
    return free;
}

inline bool holds(const Copy& c, int gpu) {
    return std::find(c.gpus.begin(), c.gpus.end(), gpu) != c.gpus.end();
}

inline bool has_failed(const NodeSpec& node, int gpu) {
    return std::find(node.failed_gpus.begin(), node.failed_gpus.end(), gpu) != node.failed_gpus.end();
}

inline std::int64_t gpu_free_milli(const State& s, std::size_t node, int gpu, bool borrow) {
    if (has_failed(s.node(node), gpu)) return 0;
    return std::max<std::int64_t>(0, left(s, node, 1000, borrow, [&](const Copy& c) {
                                      return holds(c, gpu) ? s.task(c.task).gpu_share_milli : 0;
                                  }));
}

inline std::int64_t gpu_memory_free_mib(const State& s, std::size_t node, int gpu) {
    auto free = *s.node(node).gpu_memory_mib;
    for (const auto& c : s.copies)
        if (c.node == node && holds(c, gpu)) free -= s.task(c.task).gpu_memory_mib;
    return free;
}

/// GPUs that could each serve the task, its memory need set aside unless `with_memory`.
inline std::vector<int> candidates(const State& s, std::size_t task, std::size_t node,
                                   bool with_memory = true) {
    const auto& t = s.task(task);
    std::vector<int> found;
    if (t.gpu_count == 0) return found;
    for (int g = 0; g < s.node(node).gpu_count; ++g) {
        if (gpu_free_milli(s, node, g, is_lp(t)) < t.gpu_share_milli) continue;
        if (with_memory && t.gpu_memory_mib > 0 && s.node(node).gpu_memory_mib &&
            gpu_memory_free_mib(s, node, g) < t.gpu_memory_mib)
            continue;
        found.push_back(g);
    }
    return found;
}

/// NUMA node (or socket) of a GPU in the task's strictest guarantee; -1 = hardware unknown.
inline int locality(const NodeSpec& node, bool numa_level, int gpu) {
    if (!node.hardware) return -1;
    const auto& numa = node.hardware->numa_nodes;
    for (std::size_t i = 0; i < numa.size(); ++i)
        if ((numa[i].gpus >> gpu & 1) != 0) return numa_level ? static_cast<int>(i) : numa[i].socket;
    return -1;
}

inline bool is_guaranteed(const TaskSpec& task) {
    return task.gpu_count >= 2 &&
           std::any_of(task.hardware_affinity.begin(), task.hardware_affinity.end(),
                       [](const auto& w) { return w.qos == gpusched::HardwareQos::guaranteed; });
}

inline bool wants_numa(const TaskSpec& task) {
    return std::any_of(task.hardware_affinity.begin(), task.hardware_affinity.end(), [](const auto& w) {
        return w.qos == gpusched::HardwareQos::guaranteed && w.level == gpusched::HardwareLevel::numa;
    });
}

inline std::int64_t resource_free(const State& s, std::size_t node, const std::string& name) {
    const auto amount = [&](const gpusched::Resources& resources) {
        return resources.contains(name) ? resources.at(name) : 0;
    };
    auto free = amount(s.node(node).resources);
    for (const auto& c : s.copies)
        if (c.node == node) free -= amount(s.task(c.task).resources);
    return free;
}

/// Healthy, free devices of a class.
inline std::vector<int> free_devices(const State& s, std::size_t node, const std::string& device_class) {
    std::vector<int> found;
    int number = static_cast<int>(s.node(node).gpu_count);
    for (const auto& group : s.node(node).devices)
        for (std::int64_t i = 0; i < group.count; ++i, ++number)
            if (group.device_class == device_class && !has_failed(s.node(node), number) &&
                std::none_of(s.copies.begin(), s.copies.end(),
                             [&](const Copy& c) { return c.node == node && holds(c, number); }))
                found.push_back(number);
    return found;
}

inline bool enough_resources(const State& s, std::size_t task, std::size_t node) {
    const auto& asked = s.task(task).resources;
    return std::all_of(asked.begin(), asked.end(),
                       [&](const auto& one) { return one.second <= resource_free(s, node, one.first); });
}

inline bool enough_devices(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    return t.device_count == 0 ||
           std::any_of(t.device_classes.begin(), t.device_classes.end(), [&](const auto& accepted) {
               return static_cast<std::int64_t>(free_devices(s, node, accepted).size()) >= t.device_count;
           });
}

/// All sets of devices beside whole GPUs that the task could take now.
inline std::vector<std::vector<int>> device_sets(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    if (t.device_count == 0) return {{}};
    std::vector<std::vector<int>> sets;
    for (const auto& accepted : t.device_classes) {
        const auto open = free_devices(s, node, accepted);
        if (static_cast<std::int64_t>(open.size()) < t.device_count) continue;
        std::vector<bool> chosen(open.size(), false);
        std::fill(chosen.end() - t.device_count, chosen.end(), true);
        do {
            auto& set = sets.emplace_back();
            for (std::size_t i = 0; i < open.size(); ++i)
                if (chosen[i]) set.push_back(open[i]);
        } while (std::next_permutation(chosen.begin(), chosen.end()));
    }
    return sets;
}

/// All sets of GPUs and other devices that the task could take now; of whole GPUs in ascending order.
inline std::vector<std::vector<int>> gpu_sets(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    const auto open = candidates(s, task, node);
    std::vector<std::vector<int>> sets;
    std::vector<int> chosen;
    const auto local = [&] {
        if (!is_guaranteed(t)) return true;
        std::set<int> places;
        for (const int g : chosen) places.insert(locality(s.node(node), wants_numa(t), g));
        return places.size() == 1 && !places.contains(-1);
    };
    const auto extend = [&](const auto& self, std::size_t from) -> void {
        if (static_cast<std::int64_t>(chosen.size()) == t.gpu_count) {
            if (local()) sets.push_back(chosen);
            return;
        }
        for (auto i = from; i < open.size(); ++i) {
            chosen.push_back(open[i]);
            if (local()) self(self, i + 1);
            chosen.pop_back();
        }
    };
    extend(extend, 0);
    if (t.device_count == 0) return sets;
    std::vector<std::vector<int>> both;
    for (const auto& devices : device_sets(s, task, node))
        for (auto set : sets) {
            set.insert(set.end(), devices.begin(), devices.end());
            both.push_back(set);
        }
    return both;
}

inline bool tolerated(const TaskSpec& task, const gpusched::Taint& taint) {
    for (const auto& t : task.tolerations) {
        if (t.effect != "" && t.effect != taint.effect) continue;
        if (t.op == "Exists" && (t.key == "" || t.key == taint.key)) return true;
        if (t.op == "Equal" && t.key == taint.key && t.value == taint.value) return true;
    }
    return false;
}

inline bool match_holds(const gpusched::NodeMatch& match, const std::string* has) {
    using Op = gpusched::MatchOperator;
    const bool listed =
        has != nullptr && std::find(match.values.begin(), match.values.end(), *has) != match.values.end();
    switch (match.op) {
    case Op::in:
        return listed;
    case Op::not_in:
        return !listed;
    case Op::exists:
        return has != nullptr;
    case Op::does_not_exist:
        return has == nullptr;
    default:
        break;
    }
    if (has == nullptr) return false;
    try {
        std::size_t read = 0;
        const auto value = std::stoll(*has, &read);
        if (read != has->size() || has->find(' ') != std::string::npos) return false;
        const auto bound = std::stoll(match.values.at(0));
        return match.op == Op::gt ? value > bound : value < bound;
    } catch (const std::exception&) {
        return false;
    }
}

/// Does some term hold? Without terms every node will do.
inline bool affinity_holds(const TaskSpec& task, const NodeSpec& node) {
    if (task.node_affinity.empty()) return true;
    for (const auto& term : task.node_affinity) {
        bool all = !term.match_expressions.empty() || !term.match_fields.empty();
        for (const auto& match : term.match_expressions)
            all = all &&
                  match_holds(match, node.labels.contains(match.key) ? &node.labels.at(match.key) : nullptr);
        for (const auto& match : term.match_fields) all = all && match_holds(match, &node.name);
        if (all) return true;
    }
    return false;
}

/// "gpu_model", "node_selector", "node_affinity", "taint" or "none".
inline std::string eligibility(const TaskSpec& task, const NodeSpec& node) {
    if (!task.gpu_models.empty() &&
        std::count(task.gpu_models.begin(), task.gpu_models.end(), node.gpu_model) == 0)
        return "gpu_model";
    for (const auto& [key, value] : task.node_selector)
        if (!node.labels.contains(key) || node.labels.at(key) != value) return "node_selector";
    if (!affinity_holds(task, node)) return "node_affinity";
    for (const auto& taint : node.taints)
        if (taint.effect != "PreferNoSchedule" && !tolerated(task, taint)) return "taint";
    return "none";
}

inline bool same_domain(const ClusterSpec& spec, Level level, std::size_t a, std::size_t b) {
    if (a == b) return true;
    if (level == gpusched::node_level) return false;
    const auto depth = static_cast<std::size_t>(level) + 1;
    const auto& x = spec.nodes[a].network;
    const auto& y = spec.nodes[b].network;
    return x.size() >= depth && y.size() >= depth && std::equal(x.begin(), x.begin() + level + 1, y.begin());
}

inline bool lists(const TaskSpec& task, const std::string& spread_group) {
    return std::any_of(task.anti_affinity.begin(), task.anti_affinity.end(),
                       [&](const auto& a) { return a.group == spread_group; });
}

/// The node's label of a label level; nullptr if the node lacks it or the level is no label level.
inline const std::string* label_of(const ClusterSpec& spec, Level level, std::size_t node) {
    if (level < gpusched::first_label_level) return nullptr;
    const auto& key = spec.label_levels.at(static_cast<std::size_t>(level - gpusched::first_label_level));
    const auto& labels = spec.nodes[node].labels;
    return labels.contains(key) ? &labels.at(key) : nullptr;
}

inline bool has_domain(const ClusterSpec& spec, Level level, std::size_t node) {
    return level < gpusched::first_label_level || label_of(spec, level, node) != nullptr;
}

/// In one domain of any level, labels included?
inline bool share_domain(const ClusterSpec& spec, Level level, std::size_t a, std::size_t b) {
    if (level < gpusched::first_label_level) return same_domain(spec, level, a, b);
    const auto *x = label_of(spec, level, a), *y = label_of(spec, level, b);
    return x != nullptr && y != nullptr && *x == *y;
}

inline bool is_member(const TaskSpec& task, const std::string& group) {
    return std::count(task.groups.begin(), task.groups.end(), group) > 0;
}

/// Members that a task avoids, or tasks that avoid one of its groups, in the node's domain.
inline bool avoids(const State& s, std::size_t task, std::size_t node) {
    const auto against = [&](const TaskSpec& one, const TaskSpec& other, std::size_t where) {
        return std::any_of(one.avoid.begin(), one.avoid.end(), [&](const auto& term) {
            return is_member(other, term.group) && share_domain(*s.spec, term.level, where, node);
        });
    };
    return std::any_of(s.copies.begin(), s.copies.end(), [&](const Copy& c) {
        return c.task != task && (against(s.task(task), s.task(c.task), c.node) ||
                                  against(s.task(c.task), s.task(task), c.node));
    });
}

/// Is what the task wants near out of reach on that node?
inline bool lonely(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    const auto wanted = [&](std::size_t other) {
        return std::all_of(t.near.begin(), t.near.end(),
                           [&](const auto& term) { return is_member(s.task(other), term.group); });
    };
    bool reached = true, exist = false;
    for (const auto& term : t.near) {
        if (!has_domain(*s.spec, term.level, node)) return true;
        bool here = false;
        for (const auto& c : s.copies) {
            if (c.task == task || !wanted(c.task)) continue;
            exist = exist || has_domain(*s.spec, term.level, c.node);
            here = here || share_domain(*s.spec, term.level, c.node, node);
        }
        reached = reached && here;
    }
    return !reached && (exist || !wanted(task));
}

/// Would the node's domain hold too many more than the one that holds fewest?
inline bool crowded(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    for (const auto& term : t.spread) {
        if (!has_domain(*s.spec, term.level, node)) return true;
        const auto eligible = [&](std::size_t n) {
            for (const auto& other : t.spread)
                if (!has_domain(*s.spec, other.level, n)) return false;
            if (term.honor_node_affinity) {
                for (const auto& [key, value] : t.node_selector)
                    if (!s.node(n).labels.contains(key) || s.node(n).labels.at(key) != value) return false;
                if (!affinity_holds(t, s.node(n))) return false;
            }
            return !term.honor_taints ||
                   std::all_of(s.node(n).taints.begin(), s.node(n).taints.end(), [&](const auto& taint) {
                       return taint.effect == "PreferNoSchedule" || tolerated(t, taint);
                   });
        };
        const auto members_with = [&](std::size_t n) {
            std::int64_t count = 0;
            for (const auto& c : s.copies)
                if (c.task != task && eligible(c.node) && share_domain(*s.spec, term.level, c.node, n) &&
                    is_member(s.task(c.task), term.group))
                    ++count;
            return count;
        };
        std::vector<std::size_t> domains;  // one eligible node of each
        for (std::size_t n = 0; n < s.spec->nodes.size(); ++n)
            if (eligible(n) && std::none_of(domains.begin(), domains.end(), [&](std::size_t other) {
                    return share_domain(*s.spec, term.level, n, other);
                }))
                domains.push_back(n);
        std::int64_t fewest = domains.empty() ? 0 : INT64_MAX;
        for (const auto n : domains) fewest = std::min(fewest, members_with(n));
        if (static_cast<std::int64_t>(domains.size()) < term.min_domains) fewest = 0;
        if (members_with(node) + (is_member(t, term.group) ? 1 : 0) - fewest > term.max_skew) return true;
    }
    return false;
}

/// The kind of group that forbids a further copy of the task on the node, or "none".
inline std::string group_obstacle(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    const auto& spec = *s.spec;
    for (const auto& own : t.anti_affinity) {
        std::set<Level> levels;
        for (const auto& other : spec.tasks)
            for (const auto& term : other.anti_affinity)
                if (term.group == own.group) levels.insert(term.level);
        for (const auto level : levels) {
            std::int64_t together = 1, limit = INT64_MAX;
            const auto note = [&](const TaskSpec& member) {
                for (const auto& term : member.anti_affinity)
                    if (term.group == own.group && term.level == level)
                        limit = std::min<std::int64_t>(limit, term.limit);
            };
            note(t);
            for (const auto& c : s.copies) {
                if (c.task == task || !lists(s.task(c.task), own.group) ||
                    !share_domain(spec, level, c.node, node))
                    continue;
                ++together;
                note(s.task(c.task));
            }
            if (together > limit) return "anti_affinity";
        }
    }
    for (const auto& own : t.affinity)
        for (const auto& other : spec.tasks)
            for (const auto& term : other.affinity)
                if (term.group == own.group && !has_domain(spec, term.level, node))
                    return "affinity";
                else if (term.group == own.group)
                    for (const auto& c : s.copies)
                        if (c.task != task && has_domain(spec, term.level, c.node) &&
                            !share_domain(spec, term.level, c.node, node))
                            for (const auto& mine : s.task(c.task).affinity)
                                if (mine.group == own.group) return "affinity";
    const auto same_gang = [&](std::size_t other) {
        return other == task || (!t.job.empty() && s.task(other).job == t.job);
    };
    for (std::size_t other = 0; other < spec.tasks.size(); ++other) {
        const auto& wish = spec.tasks[other].network_affinity;
        if (!same_gang(other) || !wish || wish->mode != gpusched::NetworkMode::required) continue;
        for (const auto& c : s.copies)
            if (same_gang(c.task) && !same_domain(spec, wish->level, c.node, node)) return "network";
    }
    if (avoids(s, task, node)) return "avoid";
    if (lonely(s, task, node)) return "near";
    if (crowded(s, task, node)) return "spread";
    return "none";
}

/// What forbids the task on the node for its resources, in the order cpu, memory, resource, device, gpu, gpu_memory, hardware.
inline std::string resource_obstacle(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    if (t.cpu_milli > cpu_free_milli(s, node, is_lp(t))) return "cpu";
    if (t.memory_mib > memory_free_mib(s, node)) return "memory";
    if (!enough_resources(s, task, node)) return "resource";
    if (!enough_devices(s, task, node)) return "device";
    if (static_cast<std::int64_t>(candidates(s, task, node, false).size()) < t.gpu_count) return "gpu";
    if (static_cast<std::int64_t>(candidates(s, task, node).size()) < t.gpu_count)
        return t.gpu_share_milli < 1000 ? "gpu" : "gpu_memory";
    return gpu_sets(s, task, node).empty() ? "hardware" : "none";
}

inline std::string obstacle(const State& s, std::size_t task, std::size_t node) {
    if (!s.node(node).schedulable) return "cordoned";
    if (eligibility(s.task(task), s.node(node)) != "none") return "not_eligible";
    if (const auto found = resource_obstacle(s, task, node); found != "none") return found;
    return group_obstacle(s, task, node);
}

/// How many tasks other than daemons have a copy on the node.
inline int occupants(const State& s, std::size_t node) {
    return static_cast<int>(std::count_if(s.copies.begin(), s.copies.end(), [&](const Copy& c) {
        return c.node == node && !s.task(c.task).daemon;
    }));
}

}  // namespace reference
