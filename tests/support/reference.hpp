// SPDX-License-Identifier: Apache-2.0
// The rules of placement a second time, as naively as possible: every question is answered by looking at all copies
// of all tasks. Generators, oracles and tests of the model rest on it; it shares no code with what they test.
#pragma once

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

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

/// All sets of GPUs that the task could take now, in ascending order.
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
    return sets;
}

inline bool tolerated(const TaskSpec& task, const gpusched::Taint& taint) {
    for (const auto& t : task.tolerations) {
        if (t.effect != "" && t.effect != taint.effect) continue;
        if (t.op == "Exists" && (t.key == "" || t.key == taint.key)) return true;
        if (t.op == "Equal" && t.key == taint.key && t.value == taint.value) return true;
    }
    return false;
}

/// "gpu_model", "node_selector", "taint" or "none".
inline std::string eligibility(const TaskSpec& task, const NodeSpec& node) {
    if (!task.gpu_models.empty() &&
        std::count(task.gpu_models.begin(), task.gpu_models.end(), node.gpu_model) == 0)
        return "gpu_model";
    for (const auto& [key, value] : task.node_selector)
        if (!node.labels.contains(key) || node.labels.at(key) != value) return "node_selector";
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

/// "anti_affinity", "affinity", "network" or "none": what forbids a further copy of the task on the node.
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
                    !same_domain(spec, level, c.node, node))
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
                if (term.group == own.group)
                    for (const auto& c : s.copies)
                        if (c.task != task && !same_domain(spec, term.level, c.node, node))
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
    return "none";
}

/// What forbids the task on the node for its resources, in the order cpu, memory, gpu, gpu_memory, hardware.
inline std::string resource_obstacle(const State& s, std::size_t task, std::size_t node) {
    const auto& t = s.task(task);
    if (t.cpu_milli > cpu_free_milli(s, node, is_lp(t))) return "cpu";
    if (t.memory_mib > memory_free_mib(s, node)) return "memory";
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
