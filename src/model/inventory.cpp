// SPDX-License-Identifier: Apache-2.0
// Builds an inventory from data, and decides which requirements go with which classes of nodes.
#include "model/budget_editor.hpp"
#include "model/check_specs.hpp"
#include "model/domain_editor.hpp"
#include "model/extras_editor.hpp"
#include "model/group_editor.hpp"
#include "model/node_match.hpp"
#include "model/shared_values.hpp"
#include "model/table_rows.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::detail {

struct InventoryBuilder {
    const ClusterSpec& spec;
    Problems& problems;
    Inventory& out;
    const SpecChecks check{problems};
    ExtrasEditor extras{out};

    // Gives every row an id, even after a duplicate name.
    static void intern_anyway(NameTable& names, std::string name) {
        while (!names.intern(name).second) name += '\n' + std::to_string(names.size());
    }

    void build() {
        out.now = spec.now;
        check_fields(problems, spec, std::string_view("cluster"));
        nodes();
        network();
        label_levels();
        jobs();
        tasks();
        budgets();
        // After a problem the inventory is not used, but placements are still checked. They need only one
        // empty profile.
        if (problems.empty()) {
            groups();
            BudgetEditor(out).build(spec.budgets);
            out.eligible_.build(out);
        } else {
            out.profiles_.resize(1);
        }
    }

    /// Every node has an entry for every name of the field.
    void limit_names(const char* field, std::size_t names) const {
        constexpr std::size_t most_names = 512, most_entries = std::size_t{1} << 23;
        if (names <= most_names || spec.nodes.size() <= most_entries / names) return;
        problems.add(concat(field, ": ", names, " names on ", spec.nodes.size(), " nodes; expected at most ",
                            std::max(most_names, most_entries / spec.nodes.size()), " names"));
        problems.throw_if_any();
    }

    void nodes() {
        auto& t = out.nodes;
        // All columns exist before the first row is written.
        for (const auto& node : spec.nodes) (void)extras.add_columns(node.resources);
        for (const auto& task : spec.tasks) (void)extras.add_columns(task.resources);
        limit_names("resources", out.resource_names.size());
        LabelKeys selected;
        for (const auto& task : spec.tasks) add_class_keys(task, selected);
        SharedValues attributes(out.node_attributes);
        SharedValues classes(out.node_classes);
        std::map<std::string, std::uint32_t> presets;
        resize_rows(t, spec.nodes.size());
        for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
            const auto& node = spec.nodes[i];
            check.node(node, i);
            if (!t.names.intern(node.name).second) {
                problems.add(Owner("node", node.name) + ": duplicate node name");
                intern_anyway(t.names, node.name);
            }
            const auto devices = extras.write_node(node, i);
            write_row(t, i, node, devices);
            t.first_gpu[i] = out.gpu_slots;
            out.gpu_slots += static_cast<std::uint32_t>(devices);
            if (!node.gpu_model.empty())
                t.gpu_model[i] = make_id<GpuModelId>(out.gpu_models.intern(node.gpu_model).first);
            t.hardware[i] = hardware(node, presets);
            t.attributes[i] = attributes.acquire(attributes_of(node)).first;
            t.node_class[i] =
                classes.acquire(class_of(out.node_attributes[t.attributes[i]], t.gpu_model[i], selected))
                    .first;
        }
    }

    std::uint32_t hardware(const NodeSpec& node, std::map<std::string, std::uint32_t>& presets) {
        if (!node.hardware || problems.count() > 0) return NodeTable::no_hardware;
        const auto& preset = node.hardware->preset;
        if (const auto found = presets.find(preset); !preset.empty() && found != presets.end())
            return found->second;
        out.hardware.push_back(masks_of(*node.hardware));
        const auto id = static_cast<std::uint32_t>(out.hardware.size() - 1);
        if (!preset.empty()) presets.emplace(preset, id);
        return id;
    }

    void network() {
        std::size_t levels = 0;
        for (const auto& node : spec.nodes) {
            check.network(node);
            levels = std::max(levels, node.network.size());
        }
        for (const auto& task : spec.tasks) check.levels(task, spec.label_levels.size());
        if (levels > deepest_level + 1) return;
        if (problems.count() == 0)
            for (const auto& task : spec.tasks)
                levels = std::max(levels, static_cast<std::size_t>(deepest_level_named(task) + 1));
        // Domains come first, then nodes of unknown position, each as its own domain.
        std::vector<NameTable> tables(levels);
        std::vector<std::vector<std::uint32_t>> parent(levels);
        std::map<std::string, std::size_t, std::less<>> level_of;
        for (const auto& node : spec.nodes) {
            const Owner owner("node", node.name);
            std::uint32_t above = 0;
            for (std::size_t l = 0; l < node.network.size(); ++l) {
                const auto& name = node.network[l];
                const auto [id, added] = tables[l].intern(name);
                if (added) {
                    parent[l].push_back(above);
                    const auto [at, first] = level_of.emplace(name, l);
                    if (!first)
                        problems.add(concat(owner, ": inconsistent topology: domain ", gpusched::quoted(name),
                                            " appears at levels ", at->second, " and ", l));
                } else if (l > 0 && parent[l][id] != above) {
                    problems.add(owner + ": inconsistent topology: domain " + gpusched::quoted(name) +
                                 " lies under " + gpusched::quoted(tables[l - 1][parent[l][id]]) +
                                 " and under " + gpusched::quoted(tables[l - 1][above]));
                }
                above = id;
            }
        }
        out.domain_of_.resize(levels);
        out.domain_names_.resize(levels);
        for (std::size_t l = 0; l < levels; ++l) {
            auto& names = out.domain_names_[l];
            for (std::size_t i = 0; i < tables[l].size(); ++i) names.push_back(tables[l][i]);
            for (const auto& node : spec.nodes) {
                if (l < node.network.size()) {
                    out.domain_of_[l].push_back(make_id<DomainId>(*tables[l].find(node.network[l])));
                } else {
                    out.domain_of_[l].push_back(make_id<DomainId>(names.size()));
                    names.push_back(node.name);
                }
            }
        }
        for (const auto& node : spec.nodes) {
            out.network_depth_.push_back(static_cast<std::int8_t>(node.network.size()));
            out.network_levels_ = std::max(out.network_levels_, static_cast<int>(node.network.size()));
        }
    }

    void label_levels() {
        limit_names("label_levels", spec.label_levels.size());
        check.label_levels(spec.label_levels);
        for (const auto& key : spec.label_levels) out.label_levels.push_back({key, {}, {}});
        LabelDomains domains(out);
        for (std::size_t i = 0; i < spec.nodes.size(); ++i)
            domains.attach(make_id<NodeId>(i), spec.nodes[i].labels);
    }

    void jobs() {
        for (const auto& job : spec.jobs) {
            check.job(job, out.job_names.size());
            if (out.job_names.find(job.name))
                problems.add(Owner("job", job.name) + ": duplicate job name");
            else
                write_row(out, append_job(out, job.name, true), job);
        }
        for (const auto& task : spec.tasks) {
            if (task.job.empty()) continue;
            const auto found = out.job_names.find(task.job);
            ++out.job_size[found ? *found : index(append_job(out, task.job, false))];
        }
    }

    void tasks() {
        auto& t = out.tasks;
        SharedValues requirements(out.requirements);
        SharedValues affinities(out.task_affinities);
        SharedValues group_terms(out.group_terms);
        (void)group_terms.acquire({});
        resize_rows(t, spec.tasks.size());
        for (std::size_t i = 0; i < spec.tasks.size(); ++i) {
            const auto& task = spec.tasks[i];
            check.task(task, i);
            if (!t.names.intern(task.name).second) {
                problems.add(Owner("task", task.name) + ": duplicate task name");
                intern_anyway(t.names, task.name);
            }
            write_row(t, i, task);
            write_owner_kind(out, i, task);
            write_state(out, make_id<TaskId>(i), task);
            if (!task.job.empty()) t.job[i] = make_id<JobId>(*out.job_names.find(task.job));
            check_subgroup(out, task, problems);
            SubgroupEditor(out).enter(make_id<TaskId>(i), task.subgroup);
            extras.write_task(task, i, requirement_of(task, out.gpu_models), [&](Requirement&& requirement) {
                return requirements.acquire(requirement).first;
            });
            t.affinities[i] =
                affinities.acquire(affinities_of(task, group_terms.acquire(group_terms_of(task)).first))
                    .first;
        }
    }

    void groups() {
        // Few bytes can name many groups of many tasks, and every constraint counts the members of its group.
        constexpr std::size_t of_any_cluster = std::size_t{1} << 19, of_each_task = 64;
        if (GroupEditor::build(out, of_any_cluster + of_each_task * spec.tasks.size())) return;
        problems.add(concat("groups: expected at most ", of_any_cluster, " plus ", of_each_task,
                            " per task pairs of a task and a constraint on its groups, found more"));
        problems.throw_if_any();
    }

    void budgets() {
        std::set<std::string_view> names;
        for (std::size_t i = 0; i < spec.budgets.size(); ++i) {
            check.budget(spec.budgets[i], i, out.tasks.names);
            if (!names.insert(spec.budgets[i].name).second)
                problems.add(Owner("budget", spec.budgets[i].name) + ": duplicate budget name");
        }
    }
};

}  // namespace gpusched::detail

namespace gpusched {

GPUSCHED_EXPORT std::optional<HardwareLevel> TaskAffinities::guaranteed_level() const {
    std::optional<HardwareLevel> strictest;
    for (const auto& term : hardware_affinity)
        if (term.qos == HardwareQos::guaranteed && (!strictest || term.level == HardwareLevel::numa))
            strictest = term.level;
    return strictest;
}

GPUSCHED_EXPORT bool Inventory::tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
    return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
        if (!t.effect.empty() && t.effect != taint.effect) return false;
        if (t.op == "Exists") return t.key.empty() || t.key == taint.key;
        return t.key == taint.key && t.value == taint.value;
    });
}

GPUSCHED_EXPORT bool Inventory::matches(const Requirement& requirement, const NodeClass& node_class) {
    return detail::accepts_model(requirement, node_class) &&
           detail::holds(requirement.node_selector, node_class.labels) &&
           detail::holds(requirement.node_affinity, node_class.labels, {}) &&
           detail::tolerates_taints(requirement, node_class);
}

GPUSCHED_EXPORT bool Inventory::in_node_set(std::uint32_t which, NodeId node) const {
    if (extras[which].node_set == Extras::no_node_set) return true;
    const auto& set = node_sets[extras[which].node_set];
    const auto at = std::lower_bound(set.named.begin(), set.named.end(), node,
                                     [](const NodeSet::Named& named, NodeId id) { return named.node < id; });
    if (at != set.named.end() && at->node == node) return at->allowed;
    return set.others != NodeSet::no_node && eligible(set.others, nodes.node_class[index(node)]);
}

GPUSCHED_EXPORT void EligibilityTable::resize(std::size_t requirements) {
    words_.resize(requirements * row_ <= most_words ? std::max(words_.size(), requirements * row_) : 0);
}

GPUSCHED_EXPORT void EligibilityTable::write(const Inventory& inventory, std::size_t requirement,
                                             std::size_t node_class) {
    auto& word = words_[requirement * row_ + node_class / 64];
    const auto bit = std::uint64_t{1} << (node_class % 64);
    const bool eligible =
        Inventory::matches(inventory.requirements[requirement], inventory.node_classes[node_class]);
    word = eligible ? word | bit : word & ~bit;
}

GPUSCHED_EXPORT void EligibilityTable::build(const Inventory& inventory) {
    row_ = (inventory.node_classes.size() + 63) / 64;
    words_.clear();
    resize(inventory.requirements.size());
    if (empty()) return;
    for (std::uint32_t r = 0; r < inventory.requirements.size(); ++r) update_requirement(inventory, r);
}

GPUSCHED_EXPORT void EligibilityTable::update_requirement(const Inventory& inventory,
                                                          std::uint32_t requirement) {
    resize(inventory.requirements.size());
    if (empty()) return;
    for (std::size_t c = 0; c < inventory.node_classes.size(); ++c) write(inventory, requirement, c);
}

GPUSCHED_EXPORT void EligibilityTable::update_class(const Inventory& inventory, std::uint32_t node_class) {
    const auto requirements = inventory.requirements.size();
    if (const auto old = row_; node_class / 64 >= old) {
        row_ = std::max<std::size_t>(1, 2 * old);
        const auto narrow = std::exchange(words_, {});
        resize(requirements);
        for (std::size_t r = 0; !empty() && old > 0 && r < narrow.size() / old; ++r)
            std::copy_n(narrow.begin() + static_cast<std::ptrdiff_t>(r * old), old,
                        words_.begin() + static_cast<std::ptrdiff_t>(r * row_));
    }
    resize(requirements);
    for (std::size_t r = 0; !empty() && r < requirements; ++r) write(inventory, r, node_class);
}

GPUSCHED_EXPORT std::uint64_t Inventory::next_serial() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

GPUSCHED_EXPORT std::shared_ptr<Inventory> Inventory::build(const ClusterSpec& spec, Problems& problems) {
    auto inventory = std::make_shared<Inventory>();
    detail::InventoryBuilder{spec, problems, *inventory}.build();
    inventory->serial = next_serial();
    return inventory;
}

}  // namespace gpusched
