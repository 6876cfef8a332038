// Makes an inventory out of data: checks every value, interns names, and shares what is written alike.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_list.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/model/detail/cores.hpp>
#include <gpusched/model/detail/group_builder.hpp>
#include <gpusched/model/detail/owner.hpp>
#include <gpusched/model/detail/structural_order.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::detail {

// Gives equal values equal indices.
template <class T>
class Interner {
  public:
    std::uint32_t operator()(T value) {
        const auto [at, added] = ids_.try_emplace(std::move(value), static_cast<std::uint32_t>(ids_.size()));
        return at->second;
    }
    std::vector<T> take() {
        std::vector<T> values(ids_.size());
        for (auto& [value, id] : ids_) values[id] = value;
        return values;
    }

  private:
    std::map<T, std::uint32_t> ids_;
};

// Largest value of any quantity or time: sums over a million tasks stay far from overflow.
inline constexpr std::int64_t largest_quantity = 1'000'000'000'000;
inline constexpr int deepest_level = 15;
// Above this many (requirement, node class) pairs eligibility is worked out on demand.
inline constexpr std::size_t largest_eligibility_table = std::size_t{1} << 28;

struct InventoryBuilder {
    const ClusterSpec& spec;
    Problems& problems;
    Inventory& out;

    // The value, or the nearest legal one after reporting it, so that later sums cannot overflow.
    std::int64_t quantity(const Owner& owner, const char* field, std::int64_t value, std::int64_t low = 0,
                          std::int64_t high = largest_quantity) const {
        if (value >= low && value <= high) return value;
        check_range(problems, field, value, low, high, owner.text());
        return std::clamp(value, low, high);
    }

    void level(const Owner& owner, const char* field, Level value) const {
        if (value < node_level || value > deepest_level)
            problems.add(bad_value(std::string(field) + " level", std::to_string(value),
                                   "\"node\" or 0 to " + std::to_string(deepest_level), owner.text()));
    }

    // Many formats and tools take a NUL for the end of a text. The name itself is not repeated for that reason.
    void no_nul(const Owner& owner, const char* field, const std::string& name) const {
        if (name.find('\0') != std::string::npos)
            problems.add(bad_value(field, "text with a NUL character", "text without", owner.text()));
    }

    // Keeps ids aligned with the input after a duplicate name.
    static void intern_anyway(NameTable& names, std::string name) {
        while (!names.intern(name).second) name += '\n';
    }

    void build() {
        out.now = spec.now;
        quantity(Owner("cluster"), "now", spec.now, -largest_quantity);
        nodes();
        network();
        jobs();
        tasks();
        GroupBuilder{spec, problems, out}.build();
        eligibility();
    }

    void nodes() {
        auto& t = out.nodes;
        std::set<std::string> selected_keys;
        for (const auto& task : spec.tasks)
            for (const auto& [key, value] : task.node_selector) selected_keys.insert(key);
        Interner<NodeAttributes> attributes;
        Interner<NodeClass> classes;
        std::map<std::string, std::uint32_t> presets;
        std::uint32_t gpus = 0;
        for (const auto& node : spec.nodes) {
            const Owner owner("node", node.name);
            if (node.name.empty())
                problems.add("node #" + std::to_string(t.names.size()) + ": name is empty");
            no_nul(Owner("node", t.names.size()), "name", node.name);
            no_nul(owner, "gpu_model", node.gpu_model);
            if (!t.names.intern(node.name).second) {
                problems.add(owner + ": duplicate node name");
                intern_anyway(t.names, node.name);
            }
            const int count =
                static_cast<int>(quantity(owner, "gpu_count", node.gpu_count, 0, max_gpus_per_node));
            t.cpu_milli.push_back(quantity(owner, "cpu_milli", node.cpu_milli));
            t.memory_mib.push_back(quantity(owner, "memory_mib", node.memory_mib));
            t.gpu_memory_mib.push_back(
                node.gpu_memory_mib ? quantity(owner, "gpu_memory_mib", *node.gpu_memory_mib) : -1);
            const auto failed = gpu_mask(
                node.failed_gpus, count,
                [&](int gpu) {
                    problems.add(owner + ": failed_gpus names GPU " + std::to_string(gpu) + "; it has " +
                                 std::to_string(count));
                },
                [](int) {});  // once more changes nothing
            for (const auto& taint : node.taints) {
                if (taint.key.empty()) problems.add(owner + ": a taint has no key");
                if (taint.effect != "NoSchedule" && taint.effect != "NoExecute" &&
                    taint.effect != "PreferNoSchedule")
                    problems.add(bad_value("effect of taint " + gpusched::quoted(taint.key),
                                           gpusched::quoted(taint.effect),
                                           "NoSchedule, PreferNoSchedule or NoExecute", owner.text()));
            }
            t.gpu_model.push_back(node.gpu_model.empty()
                                      ? none<GpuModelId>
                                      : make_id<GpuModelId>(out.gpu_models.intern(node.gpu_model).first));
            t.gpu_count.push_back(static_cast<std::uint8_t>(count));
            t.schedulable.push_back(node.schedulable);
            t.failed_gpus.push_back(failed);
            t.first_gpu.push_back(gpus);
            gpus += static_cast<std::uint32_t>(count);
            t.hardware.push_back(hardware(node, owner, count, presets));
            NodeClass node_class{t.gpu_model.back(), {}, {}};
            for (const auto& [key, value] : node.labels)
                if (selected_keys.contains(key)) node_class.labels.emplace(key, value);
            for (const auto& taint : node.taints)
                if (taint.effect != "PreferNoSchedule") node_class.taints.push_back(taint);
            t.node_class.push_back(classes(std::move(node_class)));
            t.attributes.push_back(attributes({node.labels, node.taints}));
        }
        t.first_gpu.push_back(gpus);
        out.node_attributes = attributes.take();
        out.node_classes = classes.take();
    }

    std::uint32_t hardware(const NodeSpec& node, const Owner& owner, int count,
                           std::map<std::string, std::uint32_t>& presets) {
        if (!node.hardware) return NodeTable::no_hardware;
        Hardware description = *node.hardware;
        if (!description.preset.empty()) {
            const auto preset = hardware_preset(description.preset);
            if (!preset) {
                problems.add(owner.text() + ": " +
                             bad_name("hardware preset", description.preset, hardware_preset_names()));
                return NodeTable::no_hardware;
            }
            description = *preset;
        }
        GpuMask seen = 0;
        std::int64_t cores = 0;
        for (std::size_t i = 0; i < description.numa_nodes.size(); ++i) {
            const auto& numa = description.numa_nodes[i];
            const auto name = owner + ": hardware NUMA node " + std::to_string(i);
            check_range(problems, "socket", numa.socket, 0, 63, name);
            cores += quantity(Owner(name), "cores", numa.cores, 0, 1'000'000);
            if ((seen & numa.gpus) != 0) problems.add(name + " shares a GPU with another NUMA node");
            seen |= numa.gpus;
        }
        if (seen != first_gpus(count))
            problems.add(owner + ": gpu_count is " + std::to_string(count) + " but its hardware" +
                         (description.preset.empty() ? "" : " " + gpusched::quoted(description.preset)) +
                         " has " + std::to_string(gpusched::gpu_count(seen)) +
                         (gpusched::gpu_count(seen) == count ? " with other indices" : ""));
        if (node.cpu_milli > 1000 * cores)
            problems.add(owner + ": cpu_milli is " + std::to_string(node.cpu_milli) + ", above the " +
                         std::to_string(cores) + " cores of its hardware");
        if (problems.count() > 0) return NodeTable::no_hardware;
        if (!description.preset.empty()) {
            const auto found = presets.find(description.preset);
            if (found != presets.end()) return found->second;
        }
        HardwareMasks masks{description, {}, description.socket_gpus()};
        for (const auto& numa : description.numa_nodes) masks.numa.push_back(numa.gpus);
        out.hardware.push_back(std::move(masks));
        const auto id = static_cast<std::uint32_t>(out.hardware.size() - 1);
        if (!description.preset.empty()) presets.emplace(description.preset, id);
        return id;
    }

    void network() {
        std::size_t levels = 0;
        const auto named = [&](Level l) {
            levels = std::max(levels, static_cast<std::size_t>(std::max(l + 1, 0)));
        };
        for (const auto& node : spec.nodes) {
            if (node.network.size() > deepest_level + 1) {
                problems.add(bad_value("levels of network", std::to_string(node.network.size()),
                                       "at most " + std::to_string(deepest_level + 1),
                                       "node " + gpusched::quoted(node.name)));
                return;
            }
            levels = std::max(levels, node.network.size());
        }
        for (const auto& task : spec.tasks) {
            const Owner owner("task", task.name);
            for (const auto& term : task.anti_affinity) level(owner, "anti_affinity", term.level);
            for (const auto& term : task.affinity) level(owner, "affinity", term.level);
            if (task.network_affinity) level(owner, "network_affinity", task.network_affinity->level);
            if (problems.count() > 0) continue;
            for (const auto& term : task.anti_affinity) named(term.level);
            for (const auto& term : task.affinity) named(term.level);
            if (task.network_affinity) named(task.network_affinity->level);
        }
        // Domains first, then nodes of unknown position, each a domain of its own.
        std::vector<NameTable> tables(levels);
        std::vector<std::vector<std::uint32_t>> parent(levels);
        std::map<std::string, std::size_t, std::less<>> level_of;
        for (const auto& node : spec.nodes) {
            const Owner owner("node", node.name);
            std::uint32_t above = 0;
            for (std::size_t l = 0; l < node.network.size(); ++l) {
                const auto& name = node.network[l];
                if (name.empty())
                    problems.add(owner + ": network has an empty domain name at level " + std::to_string(l));
                no_nul(owner, "network", name);
                const auto [id, added] = tables[l].intern(name);
                if (added) {
                    parent[l].push_back(above);
                    const auto [at, first] = level_of.emplace(name, l);
                    if (!first)
                        problems.add(owner + ": inconsistent topology: domain " + gpusched::quoted(name) +
                                     " appears at levels " + std::to_string(at->second) + " and " +
                                     std::to_string(l));
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

    void add_job(const std::string& name, std::int64_t min_members,
                 std::optional<std::int64_t> max_disrupted) {
        if (!out.job_names.intern(name).second) {
            problems.add("job " + gpusched::quoted(name) + ": duplicate job name");
            return;
        }
        out.job_min_members.push_back(min_members);
        out.job_max_disrupted.push_back(max_disrupted.value_or(INT64_MAX));
        out.job_size.push_back(0);
    }

    void jobs() {
        for (const auto& job : spec.jobs) {
            const Owner owner("job", job.name);
            if (job.name.empty())
                problems.add("job #" + std::to_string(out.job_names.size()) + ": name is empty");
            no_nul(Owner("job", out.job_names.size()), "name", job.name);
            quantity(owner, "min_members", job.min_members);
            if (job.max_disrupted) quantity(owner, "max_disrupted", *job.max_disrupted);
            add_job(job.name, job.min_members, job.max_disrupted);
        }
        for (const auto& task : spec.tasks)
            if (!task.job.empty() && !out.job_names.find(task.job)) add_job(task.job, 0, std::nullopt);
        std::vector<std::int64_t> size(out.job_names.size());
        for (const auto& task : spec.tasks)
            if (!task.job.empty()) ++size[*out.job_names.find(task.job)];
        for (std::size_t j = 0; j < size.size(); ++j) out.job_size[j] = static_cast<std::uint32_t>(size[j]);
    }

    void tasks() {
        auto& t = out.tasks;
        Interner<Requirement> requirements;
        Interner<TaskAffinities> affinities;
        for (const auto& task : spec.tasks) {
            const Owner owner("task", task.name);
            if (task.name.empty())
                problems.add("task #" + std::to_string(t.names.size()) + ": name is empty");
            no_nul(Owner("task", t.names.size()), "name", task.name);
            no_nul(owner, "job", task.job);
            if (!t.names.intern(task.name).second) {
                problems.add(owner + ": duplicate task name");
                intern_anyway(t.names, task.name);
            }
            t.cpu_milli.push_back(quantity(owner, "cpu_milli", task.cpu_milli));
            t.memory_mib.push_back(quantity(owner, "memory_mib", task.memory_mib));
            t.gpu_count.push_back(static_cast<std::uint8_t>(
                quantity(owner, "gpu_count", task.gpu_count, 0, max_gpus_per_node)));
            t.gpu_share_milli.push_back(static_cast<std::uint16_t>(
                quantity(owner, "gpu_share_milli", task.gpu_share_milli, 1, whole_gpu_milli)));
            t.gpu_memory_mib.push_back(quantity(owner, "gpu_memory_mib", task.gpu_memory_mib));
            t.priority.push_back(quantity(owner, "priority", task.priority, -largest_quantity));
            t.move_cost.push_back(quantity(owner, "move_cost", task.move_cost));
            t.start_time.push_back(quantity(owner, "start_time", task.start_time, -largest_quantity));
            t.last_checkpoint_time.push_back(
                task.last_checkpoint_time
                    ? quantity(owner, "last_checkpoint_time", *task.last_checkpoint_time, -largest_quantity)
                    : TaskTable::no_time);
            t.checkpoint_interval.push_back(quantity(owner, "checkpoint_interval", task.checkpoint_interval));
            t.eviction_count.push_back(quantity(owner, "eviction_count", task.eviction_count));
            if (task.gpu_share_milli < whole_gpu_milli && task.gpu_count != 1)
                problems.add(owner + ": gpu_share_milli is " + std::to_string(task.gpu_share_milli) +
                             ", a fraction; it goes with gpu_count 1, not " + std::to_string(task.gpu_count));
            if (task.standby && task.priority_class != PriorityClass::hp)
                problems.add(owner + ": standby is for HP tasks");
            if (task.cores) check_core_list(owner, *task.cores, problems);
            for (const auto& toleration : task.tolerations) {
                if (toleration.op != "Equal" && toleration.op != "Exists")
                    problems.add(bad_value("toleration operator", gpusched::quoted(toleration.op),
                                           "Equal or Exists", owner.text()));
                if (toleration.op == "Equal" && toleration.key.empty())
                    problems.add(bad_value("toleration operator", "'Equal'", "Exists where the key is empty",
                                           owner.text()));
                if (toleration.op == "Exists" && !toleration.value.empty())
                    problems.add(bad_value("toleration value", gpusched::quoted(toleration.value),
                                           "none with operator Exists", owner.text()));
            }
            for (const auto& term : task.anti_affinity) {
                if (term.group.empty()) problems.add(owner + ": anti_affinity has no group");
                no_nul(owner, "anti_affinity group", term.group);
                quantity(owner, "anti_affinity limit", term.limit, 1, 1'000'000'000);
            }
            for (const auto& term : task.affinity) {
                if (term.group.empty()) problems.add(owner + ": affinity has no group");
                no_nul(owner, "affinity group", term.group);
            }

            t.job.push_back(task.job.empty() ? none<JobId> : make_id<JobId>(*out.job_names.find(task.job)));
            t.priority_class.push_back(task.priority_class);
            t.locked.push_back(task.locked);
            t.preemptible.push_back(task.preemptible.value_or(task.priority_class == PriorityClass::lp));
            t.standby.push_back(task.standby);
            t.daemon.push_back(task.daemon);
            Requirement requirement{{}, task.node_selector, task.tolerations};
            for (const auto& model : task.gpu_models) {
                if (model.empty()) problems.add(owner + ": gpu_models holds an empty name");
                no_nul(owner, "gpu_models", model);
                requirement.gpu_models.push_back(make_id<GpuModelId>(out.gpu_models.intern(model).first));
            }
            std::sort(requirement.gpu_models.begin(), requirement.gpu_models.end());
            t.requirement.push_back(requirements(std::move(requirement)));
            t.affinities.push_back(affinities({task.anti_affinity, task.affinity, task.network_affinity,
                                               task.hardware_affinity, task.cpu_local, task.cores}));
        }
        out.requirements = requirements.take();
        out.task_affinities = affinities.take();
    }

    void eligibility() {
        const auto classes = out.node_classes.size();
        if (problems.count() > 0 || classes * out.requirements.size() > largest_eligibility_table) return;
        out.eligible_.resize(classes * out.requirements.size());
        for (std::size_t r = 0; r < out.requirements.size(); ++r)
            for (std::size_t c = 0; c < classes; ++c)
                out.eligible_[r * classes + c] = Inventory::matches(out.requirements[r], out.node_classes[c]);
    }
};

}  // namespace gpusched::detail
