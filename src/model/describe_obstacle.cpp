// SPDX-License-Identifier: Apache-2.0
// describe_obstacle: one text per kind of obstacle.
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/gpu_names.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched {

namespace detail {

/// @param text writes an amount, with its unit if it has one
template <class Text>
static std::string shortage(Text&& text, const std::string& of, std::int64_t needs, std::int64_t free) {
    return concat("needs ", text(needs), of, ", has ", text(free), " free (", text(needs - free), " short)");
}
/// Two amounts of memory that would read the same are written in MiB.
static std::string memory_shortage(const std::string& of, std::int64_t needs, std::int64_t free) {
    const bool exact = mib_text(needs) == mib_text(free);
    return shortage([&](std::int64_t mib) { return exact ? concat(mib, " MiB") : mib_text(mib); }, of, needs,
                    free);
}
/// Whether the model counts the named resource in MiB.
static bool is_in_mib(std::string_view resource) {
    return resource == "ephemeral-storage" || resource.starts_with("hugepages-");
}

static std::string describe_match(const NodeMatch& match) {
    const bool has = match.op == MatchOperator::exists;
    for (const std::string_view kind : {"feature", "partition"})  // of Slurm
        if (const auto prefix = concat("slurm/", kind, ".");
            match.key.starts_with(prefix) && match.values.empty())
            return concat(has ? "" : "no ", kind, " ", gpusched::quoted(match.key.substr(prefix.size())));
    std::string text = match.key + " " + enum_name(match.op);
    for (std::size_t i = 0; i < match.values.size(); ++i)
        text += (i == 0 ? " " : ", ") + gpusched::quoted(match.values[i]);
    return text;
}

// Describes the obstacle of one task on one node.
struct ObstacleText {
    const Cluster& cluster;
    TaskId task;
    NodeId node;
    const Inventory& inv = cluster.inventory();

    [[nodiscard]] std::string model() const {
        const auto& requirement = inv.requirements[inv.tasks.requirement[index(task)]];
        const auto nodes = cluster.nodes();
        if (std::none_of(nodes.begin(), nodes.end(), [&](NodeId other) {
                return accepts_model(requirement, inv.node_classes[inv.nodes.node_class[index(other)]]);
            })) {
            std::vector<std::string> names;
            for (const auto one : requirement.gpu_models) names.push_back(inv.gpu_models[index(one)]);
            return "no node has the GPU model " + either_of(names) +
                   listed_gpu_models("; the models are ", gpu_models_of_nodes(cluster));
        }
        const auto model = inv.nodes.gpu_model[index(node)];
        std::string text = model == none<GpuModelId>
                               ? std::string("the node has no GPU model")
                               : "the node's GPU model is " + gpusched::quoted(inv.gpu_models[index(model)]);
        const char* separator = "; the task accepts ";
        for (const auto one : requirement.gpu_models) {
            text += separator + gpusched::quoted(inv.gpu_models[index(one)]);
            separator = ", ";
        }
        return text;
    }

    [[nodiscard]] std::string label() const {
        for (const auto& [key, value] : inv.node_selector(task)) {
            std::set<std::string> values;
            for (const auto other : cluster.nodes()) {
                const auto& of_other = inv.node_attributes[inv.nodes.attributes[index(other)]].labels;
                if (const auto has = of_other.find(key); has != of_other.end()) values.insert(has->second);
            }
            if (values.contains(value)) continue;
            constexpr std::size_t most_shown = 8;
            std::string text = "no node has the label " + gpusched::quoted(key + "=" + value);
            if (values.size() > most_shown)
                return text + did_you_mean(value, std::vector(values.begin(), values.end()));
            const char* separator = "; its values are ";
            for (const auto& one : values) text += std::exchange(separator, ", ") + gpusched::quoted(one);
            return text;
        }
        const auto& labels = inv.node_attributes[inv.nodes.attributes[index(node)]].labels;
        for (const auto& [key, value] : inv.node_selector(task)) {
            const auto has = labels.find(key);
            if (has != labels.end() && has->second == value) continue;
            return "the node's label " + gpusched::quoted(key) + " is " +
                   (has == labels.end() ? "missing" : gpusched::quoted(has->second)) + "; the task selects " +
                   gpusched::quoted(value);
        }
        return {};
    }

    [[nodiscard]] std::string taint() const {
        const auto& tolerations = inv.requirements[inv.tasks.requirement[index(task)]].tolerations;
        for (const auto& taint : inv.node_classes[inv.nodes.node_class[index(node)]].taints)
            if (!Inventory::tolerates(tolerations, taint))
                return "the task does not tolerate the node's taint " +
                       gpusched::quoted(taint.key + "=" + taint.value + ":" + taint.effect);
        return {};
    }

    [[nodiscard]] std::string node_affinity() const {
        const auto& labels = inv.node_attributes[inv.nodes.attributes[index(node)]].labels;
        const auto& affinity = inv.node_affinity(task);
        std::vector<std::vector<std::string>> terms;  // what the node lacks for each
        for (const auto& term : affinity) {
            auto& lacks = terms.emplace_back();
            for (const auto& match : term.match_expressions)
                if (!holds(match, labels)) lacks.push_back(describe_match(match));
            for (const auto& match : term.match_fields)
                if (!holds(match, &cluster.name(node))) lacks.push_back(describe_match(match));
            if (lacks.empty()) lacks.emplace_back("a term without conditions");
        }
        std::string text;
        for (std::size_t i = 0; i < terms.size(); ++i) {
            // A term that lacks all that another one lacks says nothing new.
            const auto is_shorter = [&](const std::vector<std::string>& other) {
                const bool is_part = std::all_of(other.begin(), other.end(), [&](const std::string& lack) {
                    return std::find(terms[i].begin(), terms[i].end(), lack) != terms[i].end();
                });
                if (other.size() != terms[i].size()) return is_part && other.size() < terms[i].size();
                return is_part && &other < &terms[i];
            };
            if (std::any_of(terms.begin(), terms.end(), is_shorter)) continue;
            text += text.empty() ? "the node does not satisfy " : " nor ";
            for (std::size_t l = 0; l < terms[i].size(); ++l) text += (l > 0 ? " and " : "") + terms[i][l];
        }
        return text;
    }

    [[nodiscard]] std::string resource() const {
        for (const auto& [resource, amount] : inv.extras[inv.tasks.extras[index(task)]].resources)
            if (const auto free = cluster.resource_free(node, resource); amount > free)
                return is_volume(inv.resource_names[resource])
                           ? "the node does not reach " + std::string(inv.resource_names[resource])
                           : describe_resource(inv.resource_names[resource], amount, free);
        return {};
    }

    [[nodiscard]] std::string devices() const {
        const auto& extras = inv.extras[inv.tasks.extras[index(task)]];
        const bool one = extras.device_classes.size() == 1;
        auto text = concat("needs ", extras.device_count, one ? "" : " devices of one class");
        const char* separator = one ? " of " : ", has of ";
        for (const auto device_class : extras.device_classes) {
            const auto all = devices_of_class(inv, node, device_class);
            text +=
                concat(separator, gpusched::quoted(inv.device_classes[device_class]), one ? ", has " : " ",
                       gpu_count(all & cluster.free_devices(node)), " free of ", gpu_count(all));
            separator = ", of ";
        }
        return text;
    }

    [[nodiscard]] std::string gpus(Obstacle obstacle) const {
        const auto& t = inv.tasks;
        const auto i = index(task);
        const auto lent = cluster.lent_to(task);
        const auto memory = "needs " + mib_text(t.gpu_memory_mib[i]) + " of GPU memory";
        if (!cluster.is_fraction(task)) {
            const auto idle = cluster.idle_gpus(node, lent);
            if (obstacle == Obstacle::gpu)
                return concat("needs ", t.gpu_count[i],
                              t.gpu_count[i] == 1 ? " idle GPU, has " : " idle GPUs, has ", gpu_count(idle),
                              " of ", cluster.gpu_count(node));
            return concat(
                memory, t.gpu_count[i] == 1 ? " on one GPU" : concat(" on each of ", t.gpu_count[i], " GPUs"),
                ", but ", gpu_count(candidate_gpus(cluster, task, node)), " of ", gpu_count(idle),
                " idle GPUs have that much");
        }
        int most = 0;
        for (int g = 0; g < cluster.gpu_count(node); ++g)
            most = std::max(most, cluster.gpu_free_milli(node, g, lent));
        if (most < t.gpu_share_milli[i])
            return concat("needs ", milli_text(t.gpu_share_milli[i]), " of one GPU, but at most ",
                          milli_text(most), " of one is free");
        return concat(memory, " on a GPU with ", milli_text(t.gpu_share_milli[i]),
                      " of it free, but none has that much left");
    }

    [[nodiscard]] std::string hardware() const {
        const auto level = inv.task_affinities[inv.tasks.affinities[index(task)]].guaranteed_level();
        const std::string one = level == HardwareLevel::numa ? "one NUMA node" : "one socket";
        const auto local = guaranteed_localities(cluster, task, node);
        const auto text = concat("needs ", inv.tasks.gpu_count[index(task)], " GPUs of ", one);
        if (local.unknown) return text + ", but the node's hardware is not known";
        const auto candidates = candidate_gpus(cluster, task, node);
        int most = 0;
        for (const auto mask : local.masks)
            most = std::max(most, gpu_count(static_cast<GpuMask>(mask & candidates)));
        return concat(text, ", but at most ", most, " are free there");
    }

    [[nodiscard]] std::string place(Level level) const {
        if (level == node_level) return "node " + gpusched::quoted(inv.nodes.names[index(node)]);
        if (level < first_label_level)
            return "domain " + gpusched::quoted(inv.domain_name(level, inv.domain(level, node)));
        const auto& label = inv.label_levels[static_cast<std::size_t>(level - first_label_level)];
        return "domain " + gpusched::quoted(label.values[index(label.domain_of[index(node)])]) +
               " of label " + gpusched::quoted(label.key);
    }

    [[nodiscard]] std::string no_domain(Level level) const {
        return "the node has no label " +
               gpusched::quoted(inv.label_levels[static_cast<std::size_t>(level - first_label_level)].key);
    }

    /// Members of a group, such as `pods with label 'app=chat' in namespace serving`.
    [[nodiscard]] std::string members(std::string_view group, std::uint32_t count) const {
        const auto* const s = count == 1 ? "" : "s";
        const auto slash = group.find('/');
        if (!is_kubernetes(inv) || slash == group.npos)
            return concat(is_kubernetes(inv) ? "pod" : "task", s, " of group ", gpusched::quoted(group));
        std::string spaces(group.substr(0, slash));
        const bool several = spaces.find('+') != spaces.npos;
        for (auto at = spaces.find('+'); at != spaces.npos; at = spaces.find('+', at))
            spaces.replace(at, 1, ", ");
        const auto selector = group.substr(slash + 1);
        return concat("pod", s, selector == "(everything)" ? "" : " with label " + gpusched::quoted(selector),
                      spaces == "*" ? std::string(" in any namespace")
                                    : concat(several ? " in namespaces " : " in namespace ", spaces));
    }

    /// A placed task on the other side of a conflict: a member of its set, or one that is bound by it.
    [[nodiscard]] TaskId opponent(const GroupConflict& conflict) const {
        const auto level = inv.group_sets[conflict.set].level;
        for (const auto other : cluster.tasks()) {
            if (other == task || !cluster.is_placed(other) ||
                inv.domain_at(level, cluster.node_of(other)) != inv.domain_at(level, node))
                continue;
            for (const auto& m : inv.selection_memberships(other))
                if (m.set == conflict.set && (conflict.limit == 0 ? m.is_member() : m.is_bound()))
                    return other;
        }
        return none<TaskId>;
    }

    [[nodiscard]] std::string avoided(const GroupConflict& conflict, const std::string& domain) const {
        const auto& set = inv.group_sets[conflict.set];
        const auto other = opponent(conflict);
        const auto name =
            other == none<TaskId> ? std::string("another task") : gpusched::quoted(cluster.name(other));
        if (set.group.starts_with("host port "))
            return concat(set.group, " is taken on ", domain, " by ", name);
        if (set.group.starts_with("claim "))
            return concat("volume ", set.group, " is in use by ", name,
                          other == none<TaskId>
                              ? std::string()
                              : " on node " + gpusched::quoted(cluster.name(cluster.node_of(other))),
                          ", and only one pod may use it");
        const bool one = conflict.members == 1;
        const auto example = (one ? ": " : ", such as ") + name;
        if (set.group == slurm_all)
            return conflict.limit == 0 ? concat("the job needs nodes of its own; ", domain, " holds ",
                                                conflict.members, one ? " task" : " tasks", example)
                                       : concat(domain, " belongs to an exclusive job alone", example);
        if (!is_kubernetes(inv))
            return concat(domain, " holds ", conflict.members, " ",
                          conflict.limit == 0
                              ? members(set.group, conflict.members) + ", which the task avoids"
                          : one ? "task that avoids group " + gpusched::quoted(set.group) +
                                      ", of which the task is a member"
                                : "tasks that avoid group " + gpusched::quoted(set.group) +
                                      ", of which the task is a member",
                          example);
        if (conflict.limit == 0)
            return concat("the pod's anti-affinity excludes ", members(set.group, 2), "; ", domain, " holds ",
                          conflict.members, example);
        return concat("the anti-affinity of ", one ? name : concat(conflict.members, " pods", example),
                      set.level == node_level ? " on " : " in ", domain, " excludes ", members(set.group, 2));
    }

    [[nodiscard]] std::string neighbours(const GroupSet& set) const {
        std::string text;
        for (const auto& name : inv.near_rules[set.rule].groups)
            text += (text.empty() ? "" : " that is also a ") + members(name, 1);
        return text;
    }

    /// Says that there is no task that this one must be near; empty if there is.
    /// @param running only tasks that run count; the text names one that is pending
    [[nodiscard]] std::string no_neighbours(bool running = false) const {
        for (const auto& own : inv.selection_memberships(task)) {
            const auto& set = inv.group_sets[own.set];
            if (set.kind != GroupKind::near || !own.is_bound()) continue;
            auto pending = none<TaskId>;
            const auto tasks = cluster.tasks();
            if (std::any_of(tasks.begin(), tasks.end(), [&](TaskId other) {
                    const auto of = inv.selection_memberships(other);
                    if (other == task || std::none_of(of.begin(), of.end(), [&](const Membership& m) {
                            return m.set == own.set && m.is_member();
                        }))
                        return false;
                    if (pending == none<TaskId>) pending = other;
                    return !running || cluster.is_placed(other);
                }))
                continue;
            return concat("it must run next to a ", neighbours(set),
                          pending == none<TaskId>
                              ? std::string(", and none exists")
                              : concat(", and none runs yet; ", gpusched::quoted(cluster.name(pending)),
                                       " is pending"));
        }
        return {};
    }

    [[nodiscard]] std::string selection(const GroupConflict& conflict) const {
        const auto& set = inv.group_sets[conflict.set];
        if (inv.domain_at(set.level, node) == none<DomainId>) return no_domain(set.level);
        const auto domain = place(set.level);
        if (conflict.obstacle == Obstacle::avoid) return avoided(conflict, domain);
        if (conflict.obstacle == Obstacle::near) {
            if (const auto text = no_neighbours(); !text.empty()) return text;
            return concat(domain, " holds no ", neighbours(set),
                          is_kubernetes(inv) ? ", which the pod's affinity requires" : "");
        }
        const auto& rule = inv.spread_rules[set.rule];
        const auto fewest = conflict.limit - static_cast<std::uint32_t>(rule.max_skew);
        const bool too_few = rule.domains < static_cast<std::uint32_t>(rule.min_domains);
        return concat(domain, " would hold ", conflict.members, " ", members(set.group, conflict.members),
                      "; at most ", conflict.limit, " may be there: maxSkew ", rule.max_skew, " above ",
                      (too_few
                           ? concat("0, since of minDomains ", rule.min_domains, " there are ", rule.domains)
                           : concat(fewest, ", the fewest of ", rule.domains, " eligible domains")));
    }

    [[nodiscard]] std::string groups(const GroupConflict& conflict) const {
        if (conflict.obstacle >= Obstacle::avoid) return selection(conflict);
        if (conflict.obstacle == Obstacle::anti_affinity) {
            const auto& set = inv.group_sets[conflict.set];
            if (is_slurm(inv) && set.level == node_level && conflict.limit == 1)
                return place(set.level) + " has a task of the job, whose tasks need distinct nodes";
            return concat("anti-affinity: ", place(set.level), " would hold ", conflict.members,
                          " members of group ", gpusched::quoted(set.group), "; at most ", conflict.limit,
                          " may be together");
        }
        const auto& set = inv.group_sets[conflict.set];
        if (inv.domain_at(set.level, node) == none<DomainId>) return "affinity: " + no_domain(set.level);
        return (set.kind == GroupKind::network ? "network affinity: " + set.group
                                               : "affinity: group " + gpusched::quoted(set.group)) +
               " has members outside " + place(set.level) + "; all must be in one";
    }
};

}  // namespace detail

GPUSCHED_EXPORT std::string detail::describe_resource(std::string_view resource, std::int64_t needs,
                                                      std::int64_t free) {
    const auto of = concat(" of ", gpusched::quoted(resource));
    if (is_in_mib(resource)) return memory_shortage(of, needs, free);
    return shortage([](std::int64_t amount) { return std::to_string(amount); }, of, needs, free);
}

GPUSCHED_EXPORT std::string detail::amount_text(std::string_view resource, std::int64_t amount) {
    return is_in_mib(resource) ? mib_text(amount) : std::to_string(amount);
}

GPUSCHED_EXPORT bool detail::is_slurm(const Inventory& inv) {
    constexpr std::string_view prefix = "slurm/";
    const auto first = inv.node_attributes.begin();  // of large clusters a few nodes tell as much as all
    return inv.owner_kinds.find(slurm_job) ||
           std::any_of(first, first + std::min<std::ptrdiff_t>(16, std::ssize(inv.node_attributes)),
                       [&](const auto& attributes) {
                           const auto found = attributes.labels.lower_bound(std::string(prefix));
                           return found != attributes.labels.end() && found->first.starts_with(prefix);
                       });
}

GPUSCHED_EXPORT std::string detail::closed_reason(const Inventory& inv, NodeId node, std::string_view before,
                                                  std::string_view after) {
    const auto& labels = inv.node_attributes[inv.nodes.attributes[index(node)]].labels;
    const auto found = labels.find(slurm_reason);
    return found == labels.end() ? std::string() : concat(before, found->second, after);
}

GPUSCHED_EXPORT Words words_of(const Inventory& inv) {
    if (detail::is_slurm(inv)) return {"task", "job", "Requeue=0 forbids moves", "drained", "resume"};
    return {"pod", "owner",
            "an annotation such as safe-to-evict, its scheduler or its kind of owner forbids moves",
            "cordoned", "uncordon"};
}

/// The label that names the domains of a network level, as values or behind the domain above and a slash; empty
/// if there is none.
static std::string label_of(const Inventory& inv, Level level) {
    std::set<std::string> keys;
    bool first = true;
    for (const auto node : inv.living_nodes()) {
        if (!inv.position_known(level, node)) continue;
        const auto& labels = inv.node_attributes[inv.nodes.attributes[index(node)]].labels;
        const auto& name = inv.domain_name(level, inv.domain(level, node));
        const auto names = [&](const std::string& value) {
            return name == value || (!value.empty() && name.ends_with("/" + value));
        };
        if (std::exchange(first, false))
            for (const auto& [key, value] : labels)
                if (key != "kubernetes.io/hostname") keys.insert(key);
        std::erase_if(keys, [&](const std::string& key) {
            const auto label = labels.find(key);
            return label == labels.end() || !names(label->second);
        });
        if (keys.empty()) return {};
    }
    return keys.empty() ? std::string() : *keys.begin();
}

GPUSCHED_EXPORT std::string describe_level(const Inventory& inv, Level level) {
    if (level == node_level) return "node";
    const auto label = level < first_label_level
                           ? label_of(inv, level)
                           : inv.label_levels[static_cast<std::size_t>(level - first_label_level)].key;
    if (!label.empty()) return "domain of label " + gpusched::quoted(label);
    const auto like = inv.domain_count(level) == 0
                          ? std::string()
                          : ", like " + gpusched::quoted(inv.domain_name(level, DomainId{}));
    return concat("domain of network level ", level, like);
}

GPUSCHED_EXPORT std::string detail::missing_neighbours(const Cluster& cluster, TaskId task, bool running) {
    return ObstacleText{cluster, task, {}}.no_neighbours(running);
}

std::string detail::describe_lonely(const Cluster& cluster, TaskId task, bool running) {
    auto text = missing_neighbours(cluster, task, running);
    return text.empty() ? "no node has room next to a required neighbour" : text;
}

GPUSCHED_EXPORT std::string detail::describe_conflict(const Cluster& cluster, TaskId task, NodeId node,
                                                      const GroupConflict& conflict) {
    return ObstacleText{cluster, task, node}.groups(conflict);
}

GPUSCHED_EXPORT std::string describe_obstacle(const Cluster& cluster, TaskId task, NodeId node) {
    auto obstacle = detail::find_permanent_obstacle(cluster, task, node);
    if (obstacle == Obstacle::none) obstacle = find_obstacle(cluster, task, node);
    if (obstacle == Obstacle::not_eligible) obstacle = find_eligibility_obstacle(cluster, task, node);
    return describe_obstacle(cluster, task, node, obstacle);
}

GPUSCHED_EXPORT std::string describe_obstacle(const Cluster& cluster, TaskId task, NodeId node,
                                              Obstacle obstacle) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const detail::ObstacleText text{cluster, task, node};
    switch (obstacle) {
    case Obstacle::none:
    case Obstacle::not_eligible:
    case Obstacle::gang:
    case Obstacle::disruption_budget:
    case Obstacle::waiting:
        break;
    case Obstacle::cordoned:
        return concat("the node is ", words_of(inv).closed, detail::closed_reason(inv, node, ": "));
    case Obstacle::not_ready:
        return detail::is_not_ready(inv.node_classes[inv.nodes.node_class[index(node)]].taints)
                   ? "the node is not ready" + detail::closed_reason(inv, node, ": ")
                   : text.taint();
    case Obstacle::gpu_model:
        return text.model();
    case Obstacle::node_selector:
        return text.label();
    case Obstacle::node_affinity:
        return text.node_affinity();
    case Obstacle::taint:
        return text.taint();
    case Obstacle::cpu:
        return detail::shortage(milli_text, t.cpu_milli[index(task)] == 1000 ? " core" : " cores",
                                t.cpu_milli[index(task)],
                                cluster.cpu_free_milli(node, cluster.lent_to(task)));
    case Obstacle::memory:
        return detail::memory_shortage(" of memory", t.memory_mib[index(task)],
                                       cluster.memory_free_mib(node));
    case Obstacle::resource:
        return text.resource();
    case Obstacle::device:
        return text.devices();
    case Obstacle::gpu:
    case Obstacle::gpu_memory:
        return text.gpus(obstacle);
    case Obstacle::hardware:
        return text.hardware();
    case Obstacle::anti_affinity:
    case Obstacle::affinity:
    case Obstacle::network:
    case Obstacle::avoid:
    case Obstacle::near:
    case Obstacle::spread:
        for (const auto& conflict : detail::list_group_conflicts(cluster, task, node))
            if (conflict.obstacle == obstacle) return text.groups(conflict);
        break;
    }
    return {};
}

GPUSCHED_EXPORT std::string_view in_words(Obstacle obstacle) noexcept {
    switch (obstacle) {
    case Obstacle::cordoned:
        return "cordon";
    case Obstacle::not_ready:
        return "not ready";
    case Obstacle::not_eligible:
        return "GPU model, labels or taints";
    case Obstacle::gpu_model:
        return "GPU model";
    case Obstacle::node_selector:
        return "node selector";
    case Obstacle::node_affinity:
        return "node affinity";
    case Obstacle::cpu:
        return "too few free cores";
    case Obstacle::memory:
        return "too little free memory";
    case Obstacle::resource:
        return "too little of a resource";
    case Obstacle::device:
        return "too few free devices";
    case Obstacle::gpu:
        return "too few idle GPUs";
    case Obstacle::gpu_memory:
        return "too little GPU memory";
    case Obstacle::hardware:
        return "no GPUs close enough together";
    case Obstacle::anti_affinity:
        return "anti-affinity";
    case Obstacle::avoid:
        return "pod anti-affinity";
    case Obstacle::near:
        return "pod affinity";
    case Obstacle::spread:
        return "topology spread";
    case Obstacle::disruption_budget:
        return "disruption budget";
    case Obstacle::waiting:
        return "not waiting for room";
    default:
        return enum_name(obstacle);
    }
}

GPUSCHED_EXPORT std::string_view detail::obstacle_text(const Inventory& inv, Obstacle obstacle) {
    if (obstacle == Obstacle::cordoned) return words_of(inv).closed;
    switch (is_slurm(inv) ? obstacle : Obstacle::none) {
    case Obstacle::avoid:
        return "exclusive nodes";
    case Obstacle::anti_affinity:
        return "distinct nodes";
    case Obstacle::node_affinity:
        return "partition, features or excluded nodes";
    case Obstacle::node_selector:
    case Obstacle::taint:
        return "reservation";
    default:
        return gpusched::in_words(obstacle);
    }
}

}  // namespace gpusched
