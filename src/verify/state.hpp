// SPDX-License-Identifier: Apache-2.0
// The state of the replay, kept by names and independent of `Cluster`: the node of every task, the usage of
// every node, and the domains of the members of every group.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::verify::detail {

inline constexpr int nowhere = -1;

/// The usage of one resource. A Standby task claims without consuming, an LP task consumes without a claim;
/// neither sum may exceed the capacity.
struct InUse {
    std::int64_t consumed = 0, claimed = 0;
};

struct Card {
    InUse milli;
    std::int64_t memory_mib = 0;
    bool failed = false;
};

/// A device that is not a whole GPU.
struct Device {
    std::string_view device_class;
    int holders = 0;
    bool failed = false;
};

struct Machine {
    const NodeSpec* spec = nullptr;
    InUse cpu;
    std::int64_t memory_mib = 0;
    std::vector<Card> cards;                               ///< whole GPUs
    std::vector<Device> devices{};                         ///< numbered after the GPUs
    std::map<std::string_view, std::int64_t> resources{};  ///< in use
    [[nodiscard]] int gpus() const { return static_cast<int>(cards.size() + devices.size()); }
    int occupants = 0;  ///< tasks other than daemons that run here
    bool occupied_before = false;
    bool listed_as_vacated = false, listed_as_opened = false;
    bool opened = false;  ///< a move leads here
};

/// The members of one group at one level: copies and limits per domain.
struct Tally {
    enum class Kind : std::uint8_t {
        spread,
        together,
        network
    };  // anti-affinity, affinity, a gang's required level
    Kind kind = Kind::spread;
    std::string_view name;  ///< the group, job or lone task
    Level level = node_level;
    std::int64_t copies = 0;  ///< in all domains
    struct Domain {
        std::int64_t copies = 0;
        std::map<int, std::int64_t> limits;  ///< limit -> copies with this limit
    };
    std::unordered_map<int, Domain> domains{};
};

/// A task's part in a tally; `limit` is 0 if the task names none for that level.
struct Part {
    std::size_t tally;
    int limit;
};

struct Pod {
    const TaskSpec* spec = nullptr;
    int node = nowhere;
    std::vector<int> cards;
    std::vector<Part> parts;
    int moved_in_wave = -1;
};

struct State {
    std::vector<Machine> machines;
    std::vector<Pod> pods;
    std::vector<Tally> tallies;
    std::unordered_map<std::string_view, int> machine_of, pod_of;
    /// Copies by task and node: of the members of each group, and of the tasks that avoid each group.
    using Copies = std::map<std::pair<int, int>, int>;
    std::map<std::string_view, Copies> members, avoiding;

    explicit State(const ClusterSpec& snapshot) : snapshot_(snapshot) {
        open_machines(snapshot);
        open_pods(snapshot);
        open_groups(snapshot);
        for (std::size_t p = 0; p < pods.size(); ++p)
            if (!snapshot.tasks[p].assign_gpus) settle(snapshot.tasks[p], pods[p], snapshot.tasks[p].gpus);
        for (std::size_t p = 0; p < pods.size(); ++p)
            if (snapshot.tasks[p].assign_gpus)
                settle(snapshot.tasks[p], pods[p], unknown_gpus(snapshot.tasks[p]));
        for (auto& machine : machines) machine.occupied_before = machine.occupants > 0;
    }

    /// Returns the domain of a node at a level. A node of unknown position is its own domain. A node without
    /// the level's label has no domain.
    [[nodiscard]] int domain(Level level, int node) const {
        if (level == node_level) return node;
        if (level >= first_label_level)
            return label_domains_[static_cast<std::size_t>(level - first_label_level)]
                                 [static_cast<std::size_t>(node)];
        return domains_[static_cast<std::size_t>(level)][static_cast<std::size_t>(node)];
    }
    /// Returns the name of the level for messages.
    [[nodiscard]] std::string level_text(Level level) const {
        if (level >= first_label_level)
            return "label " +
                   gpusched::quoted(
                       snapshot_.label_levels[static_cast<std::size_t>(level - first_label_level)]);
        return level == node_level ? "node" : "network level " + std::to_string(level);
    }
    [[nodiscard]] int number(const Pod& pod) const { return static_cast<int>(&pod - pods.data()); }
    [[nodiscard]] Machine& machine(int node) { return machines[static_cast<std::size_t>(node)]; }
    [[nodiscard]] const Machine& machine(int node) const { return machines[static_cast<std::size_t>(node)]; }

    static bool consumes(const TaskSpec& task) { return !task.standby; }
    static bool claims(const TaskSpec& task) { return task.priority_class != PriorityClass::lp; }

    /// Adds (sign 1) or removes (sign -1) one copy of a task.
    void enter(const Pod& pod, int node, const std::vector<int>& cards, int sign) {
        auto& m = machine(node);
        const auto& task = *pod.spec;
        const auto add = [&](InUse& use, std::int64_t amount) {
            if (consumes(task)) use.consumed += sign * amount;
            if (claims(task)) use.claimed += sign * amount;
        };
        add(m.cpu, task.cpu_milli);
        m.memory_mib += sign * task.memory_mib;
        for (const auto& [name, amount] : task.resources) m.resources[name] += sign * amount;
        for (const int c : cards) {
            if (const auto at = static_cast<std::size_t>(c); at >= m.cards.size()) {
                m.devices[at - m.cards.size()].holders += sign;
                continue;
            }
            auto& card = m.cards[static_cast<std::size_t>(c)];
            add(card.milli, task.gpu_share_milli);
            card.memory_mib += sign * task.gpu_memory_mib;
        }
        for (const auto& part : pod.parts) {
            auto& tally = tallies[part.tally];
            if (domain(tally.level, node) == nowhere) continue;  // a node without the level's label
            auto& at = tally.domains[domain(tally.level, node)];
            tally.copies += sign;
            at.copies += sign;
            if (part.limit == 0) continue;
            const auto limit = at.limits.try_emplace(part.limit, 0).first;
            if ((limit->second += sign) == 0) at.limits.erase(limit);
        }
        const auto count = [&](Copies& copies) {
            const auto copy = copies.try_emplace({number(pod), node}, 0).first;
            if ((copy->second += sign) == 0) copies.erase(copy);
        };
        for (const auto& group : std::set<std::string_view>(task.groups.begin(), task.groups.end()))
            count(members[group]);
        std::set<std::string_view> avoided;
        for (const auto& term : task.avoid) avoided.insert(term.group);
        for (const auto& group : avoided) count(avoiding[group]);
    }

    /// Sets the node of the task (or nowhere) without changing the usage.
    void relocate(Pod& pod, int node, std::vector<int> cards) {
        if (!pod.spec->daemon) {
            if (pod.node != nowhere) --machine(pod.node).occupants;
            if (node != nowhere) ++machine(node).occupants;
        }
        pod.node = node;
        pod.cards = std::move(cards);
    }

  private:
    [[noreturn]] static void refuse(const char* what, const std::string& name, const std::string& why) {
        throw InvalidInput(std::string("snapshot: ") + what + " " + gpusched::quoted(name) + " " + why);
    }

    void open_machines(const ClusterSpec& snapshot) {
        std::map<std::pair<std::size_t, std::string_view>, int> ids;
        std::size_t levels = 0;
        for (const auto& task : snapshot.tasks) {
            const auto name = [&](Level l) {
                if (l < node_level || l >= 16) refuse("task", task.name, "names level " + std::to_string(l));
                levels = std::max(levels, static_cast<std::size_t>(l + 1));
            };
            if (task.network_affinity) name(task.network_affinity->level);
            const auto name_any = [&](Level l) {
                const auto labels = static_cast<Level>(snapshot.label_levels.size());
                if (l < first_label_level || l >= first_label_level + labels) name(l);
            };
            for (const auto& term : task.anti_affinity) name_any(term.level);
            for (const auto& term : task.affinity) name_any(term.level);
            for (const auto& term : task.avoid) name_any(term.level);
            for (const auto& term : task.near) name_any(term.level);
            for (const auto& term : task.spread) name_any(term.level);
        }
        for (const auto& key : snapshot.label_levels) {
            std::map<std::string_view, int> values;
            auto& domains = label_domains_.emplace_back();
            for (const auto& node : snapshot.nodes) {
                const auto label = node.labels.find(key);
                domains.push_back(
                    label == node.labels.end()
                        ? nowhere
                        : values.try_emplace(label->second, static_cast<int>(values.size())).first->second);
            }
        }
        domains_.resize(levels);
        int next =
            static_cast<int>(snapshot.nodes.size());  // smaller numbers: nodes that are their own domain
        for (const auto& node : snapshot.nodes) {
            const auto id = static_cast<int>(machines.size());
            if (!machine_of.emplace(node.name, id).second) refuse("node", node.name, "is a duplicate");
            std::int64_t gpus = node.gpu_count;
            for (const auto& group : node.devices)
                gpus = group.count < 1 || group.count > 64 ? -1'000 : gpus + group.count;
            const auto has = [&](int card) { return card >= 0 && card < gpus; };
            if (node.gpu_count < 0 || gpus < 0 || gpus > 64 ||
                !std::all_of(node.failed_gpus.begin(), node.failed_gpus.end(), has))
                refuse("node", node.name, "has impossible GPUs");
            auto& m = machines.emplace_back();
            m.spec = &node;
            m.cards.resize(static_cast<std::size_t>(node.gpu_count));
            for (const auto& group : node.devices)
                for (std::int64_t d = 0; d < group.count; ++d) m.devices.push_back({group.device_class});
            for (const int c : node.failed_gpus)
                (c < node.gpu_count ? m.cards[static_cast<std::size_t>(c)].failed
                                    : m.devices[static_cast<std::size_t>(c - node.gpu_count)].failed) = true;
            for (std::size_t l = 0; l < levels; ++l) {
                const bool known = l < node.network.size();
                const auto found =
                    known ? ids.try_emplace({l, node.network[l]}, next) : std::pair{ids.end(), false};
                if (found.second) ++next;
                domains_[l].push_back(known ? found.first->second : id);
            }
        }
    }

    void open_pods(const ClusterSpec& snapshot) {
        for (const auto& task : snapshot.tasks) {
            if (!pod_of.emplace(task.name, static_cast<int>(pods.size())).second)
                refuse("task", task.name, "is a duplicate");
            pods.emplace_back().spec = &task;
        }
    }

    void open_groups(const ClusterSpec& snapshot) {
        enum class Kind : std::uint8_t { spread, affinity, gang, gang_of_one };
        std::map<std::tuple<Kind, std::string_view, Level>, std::size_t> ids;
        std::map<std::pair<Kind, std::string_view>, std::vector<std::size_t>> levels_of;
        const auto gang_kind = [](const TaskSpec& task) {
            return task.job.empty() ? Kind::gang_of_one : Kind::gang;
        };
        const auto gang_name = [](const TaskSpec& task) -> const std::string& {
            return task.job.empty() ? task.name : task.job;
        };
        const auto open = [&](Kind kind, std::string_view name, Level level) {
            if (!ids.try_emplace({kind, name, level}, tallies.size()).second) return;
            levels_of[{kind, name}].push_back(tallies.size());
            auto& tally = tallies.emplace_back();
            tally.kind = kind == Kind::spread     ? Tally::Kind::spread
                         : kind == Kind::affinity ? Tally::Kind::together
                                                  : Tally::Kind::network;
            tally.name = name;
            tally.level = level;
        };
        for (const auto& task : snapshot.tasks) {
            for (const auto& term : task.anti_affinity) open(Kind::spread, term.group, term.level);
            for (const auto& term : task.affinity) open(Kind::affinity, term.group, term.level);
            if (task.network_affinity && task.network_affinity->mode == NetworkMode::required)
                open(gang_kind(task), gang_name(task), task.network_affinity->level);
        }
        for (auto& pod : pods) {
            std::map<std::size_t, int> parts;  // by tally, so that a group listed twice counts once
            const auto join = [&](Kind kind, std::string_view name) {
                const auto found = levels_of.find({kind, name});
                if (found == levels_of.end()) return;
                for (const auto tally : found->second) parts.try_emplace(tally, 0);
            };
            for (const auto& term : pod.spec->anti_affinity) join(Kind::spread, term.group);
            for (const auto& term : pod.spec->affinity) join(Kind::affinity, term.group);
            join(gang_kind(*pod.spec), gang_name(*pod.spec));
            for (const auto& term : pod.spec->anti_affinity) {
                auto& limit = parts[ids.at({Kind::spread, term.group, term.level})];
                limit = limit == 0 ? term.limit : std::min(limit, term.limit);
            }
            for (const auto& [tally, limit] : parts) pod.parts.push_back({tally, limit});
        }
    }

    /// Returns GPUs for a running task if the snapshot does not name them. These are the lowest healthy GPUs
    /// with enough left, then failed GPUs that no task holds. Devices are chosen likewise, from the first
    /// class that has enough.
    std::vector<int> unknown_gpus(const TaskSpec& task) {
        const auto found = task.node ? machine_of.find(*task.node) : machine_of.end();
        if (found == machine_of.end()) return {};
        const auto& m = machine(found->second);
        std::vector<int> taken;
        const auto choose = [&](std::int64_t count, std::vector<int> sound, const std::vector<int>& broken) {
            sound.insert(sound.end(), broken.begin(), broken.end());
            if (static_cast<std::int64_t>(sound.size()) < count) return false;
            taken.insert(taken.end(), sound.begin(), sound.begin() + count);
            return true;
        };
        std::vector<int> sound, broken;
        for (int c = 0; c < static_cast<int>(m.cards.size()); ++c) {
            const auto& card = m.cards[static_cast<std::size_t>(c)];
            const auto used = std::max(card.milli.consumed, claims(task) ? card.milli.claimed : 0);
            const bool roomy = !m.spec->gpu_memory_mib || task.gpu_memory_mib == 0 ||
                               card.memory_mib + task.gpu_memory_mib <= *m.spec->gpu_memory_mib;
            if (card.failed && card.milli.consumed == 0 && card.milli.claimed == 0)
                broken.push_back(c);
            else if (!card.failed && used + task.gpu_share_milli <= 1000 && roomy)
                sound.push_back(c);
        }
        if (task.gpu_count > 0 && !choose(task.gpu_count, sound, broken)) return {};
        bool enough = task.device_count == 0;
        for (const auto& accepted : task.device_classes) {
            sound.clear();
            broken.clear();
            for (std::size_t d = 0; d < m.devices.size(); ++d)
                if (m.devices[d].device_class == accepted && m.devices[d].holders == 0)
                    (m.devices[d].failed ? broken : sound).push_back(static_cast<int>(m.cards.size() + d));
            enough = enough || choose(task.device_count, sound, broken);
            if (enough) break;
        }
        return enough ? taken : std::vector<int>{};
    }

    void settle(const TaskSpec& task, Pod& pod, const std::vector<int>& gpus) {
        if (!task.node) return;
        const auto found = machine_of.find(*task.node);
        if (found == machine_of.end())
            refuse("task", task.name, "runs on unknown node " + gpusched::quoted(*task.node));
        for (const int c : gpus)
            if (c < 0 || c >= machine(found->second).gpus())
                refuse("task", task.name,
                       "holds GPU " + std::to_string(c) + ", which node " + gpusched::quoted(*task.node) +
                           " lacks");
        enter(pod, found->second, gpus, +1);
        relocate(pod, found->second, gpus);
    }

    const ClusterSpec& snapshot_;
    std::vector<std::vector<int>> domains_;        // [level][node]
    std::vector<std::vector<int>> label_domains_;  // [label level][node], `nowhere` without the label
};

}  // namespace gpusched::verify::detail
