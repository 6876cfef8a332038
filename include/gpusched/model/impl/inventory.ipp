#pragma once

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace gpusched {

// The slot that holds `name`, or the empty one where it belongs.
GPUSCHED_INLINE std::size_t NameTable::slot(std::string_view name) const noexcept {
    const auto mask = slots_.size() - 1;
    auto at = std::hash<std::string_view>{}(name)&mask;
    while (slots_[at] != empty && names_[slots_[at]] != name) at = (at + 1) & mask;
    return at;
}

GPUSCHED_INLINE std::pair<std::uint32_t, bool> NameTable::intern(std::string_view name) {
    if (slots_.size() < 2 * (names_.size() + 1)) {
        slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), empty);
        for (std::size_t i = 0; i < names_.size(); ++i)
            slots_[slot(names_[i])] = static_cast<std::uint32_t>(i);
    }
    auto& id = slots_[slot(name)];
    if (id != empty) return {id, false};
    id = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back(name);
    return {id, true};
}

GPUSCHED_INLINE std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
    if (slots_.empty()) return std::nullopt;
    const auto id = slots_[slot(name)];
    return id != empty ? std::optional(id) : std::nullopt;
}

GPUSCHED_INLINE std::optional<HardwareLevel> TaskAffinities::guaranteed_level() const {
    std::optional<HardwareLevel> strictest;
    for (const auto& wish : hardware_affinity)
        if (wish.qos == HardwareQos::guaranteed && (!strictest || wish.level == HardwareLevel::numa))
            strictest = wish.level;
    return strictest;
}

GPUSCHED_INLINE Level Inventory::deepest_level() const noexcept {
    Level deepest = node_level;
    for (const auto depth : network_depth_) deepest = std::max(deepest, Level{depth} - 1);
    return deepest;
}

GPUSCHED_INLINE bool Inventory::tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
    return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
        if (!t.effect.empty() && t.effect != taint.effect) return false;
        if (t.op == "Exists") return t.key.empty() || t.key == taint.key;
        return t.key == taint.key && t.value == taint.value;
    });
}

GPUSCHED_INLINE bool Inventory::matches(const Requirement& requirement, const NodeClass& node_class) {
    const auto& models = requirement.gpu_models;
    if (!models.empty() && !std::binary_search(models.begin(), models.end(), node_class.gpu_model))
        return false;
    for (const auto& [key, value] : requirement.node_selector) {
        const auto found = node_class.labels.find(key);
        if (found == node_class.labels.end() || found->second != value) return false;
    }
    return std::all_of(node_class.taints.begin(), node_class.taints.end(),
                       [&](const Taint& taint) { return tolerates(requirement.tolerations, taint); });
}

namespace detail {

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

}  // namespace detail

struct InventoryBuilder {
    const ClusterSpec& spec;
    Problems& problems;
    Inventory& out;

    // The value, or the nearest legal one after reporting it, so that later sums cannot overflow.
    std::int64_t quantity(const std::string& owner, const char* field, std::int64_t value,
                          std::int64_t low = 0, std::int64_t high = detail::largest_quantity) const {
        if (value >= low && value <= high) return value;
        problems.add(owner + ": " + field + " is " + std::to_string(value) + "; expected " +
                     std::to_string(low) + " to " + std::to_string(high));
        return std::clamp(value, low, high);
    }

    void level(const std::string& owner, const char* field, Level value) const {
        if (value < node_level || value > detail::deepest_level)
            problems.add(owner + ": " + field + " level is " + std::to_string(value) +
                         "; expected \"node\" or 0 to " + std::to_string(detail::deepest_level));
    }

    // Keeps ids aligned with the input after a duplicate name.
    static void intern_anyway(NameTable& names, std::string name) {
        while (!names.intern(name).second) name += '\n';
    }

    void build() {
        out.now = spec.now;
        quantity("cluster", "now", spec.now, -detail::largest_quantity);
        nodes();
        network();
        jobs();
        tasks();
        groups();
        eligibility();
    }

    void nodes() {
        auto& t = out.nodes;
        std::set<std::string> selected_keys;
        for (const auto& task : spec.tasks)
            for (const auto& [key, value] : task.node_selector) selected_keys.insert(key);
        detail::Interner<NodeAttributes> attributes;
        detail::Interner<NodeClass> classes;
        std::map<std::string, std::uint32_t> presets;
        std::uint32_t gpus = 0;
        for (const auto& node : spec.nodes) {
            const auto owner = "node " + gpusched::quoted(node.name);
            if (node.name.empty())
                problems.add("node #" + std::to_string(t.names.size()) + ": name is empty");
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
            GpuMask failed = 0;
            for (const int gpu : node.failed_gpus) {
                if (gpu < 0 || gpu >= count)
                    problems.add(owner + ": failed_gpus names GPU " + std::to_string(gpu) + "; it has " +
                                 std::to_string(count));
                else
                    failed |= gpu_bit(gpu);
            }
            for (const auto& taint : node.taints) {
                if (taint.key.empty()) problems.add(owner + ": a taint has no key");
                if (taint.effect != "NoSchedule" && taint.effect != "NoExecute" &&
                    taint.effect != "PreferNoSchedule")
                    problems.add(owner + ": taint " + gpusched::quoted(taint.key) + " has effect " +
                                 gpusched::quoted(taint.effect) +
                                 "; expected NoSchedule, PreferNoSchedule or NoExecute");
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

    std::uint32_t hardware(const NodeSpec& node, const std::string& owner, int count,
                           std::map<std::string, std::uint32_t>& presets) {
        if (!node.hardware) return NodeTable::no_hardware;
        Hardware description = *node.hardware;
        if (!description.preset.empty()) {
            const auto preset = hardware_preset(description.preset);
            if (!preset) {
                problems.add(owner + ": unknown hardware preset " + gpusched::quoted(description.preset) +
                             "; expected rtx4090x8, a100x8 or h100x8");
                return NodeTable::no_hardware;
            }
            description = *preset;
        }
        GpuMask seen = 0;
        std::int64_t cores = 0;
        for (std::size_t i = 0; i < description.numa_nodes.size(); ++i) {
            const auto& numa = description.numa_nodes[i];
            const auto name = owner + ": hardware NUMA node " + std::to_string(i);
            if (numa.socket < 0 || numa.socket >= 64)
                problems.add(name + " is on socket " + std::to_string(numa.socket) + "; expected 0 to 63");
            cores += quantity(name, "cores", numa.cores, 0, 1'000'000);
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
            if (node.network.size() > detail::deepest_level + 1) {
                problems.add("node " + gpusched::quoted(node.name) + ": network has " +
                             std::to_string(node.network.size()) + " levels; expected at most " +
                             std::to_string(detail::deepest_level + 1));
                return;
            }
            levels = std::max(levels, node.network.size());
        }
        for (const auto& task : spec.tasks) {
            const auto owner = "task " + gpusched::quoted(task.name);
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
            const auto owner = "node " + gpusched::quoted(node.name);
            std::uint32_t above = 0;
            for (std::size_t l = 0; l < node.network.size(); ++l) {
                const auto& name = node.network[l];
                if (name.empty())
                    problems.add(owner + ": network has an empty domain name at level " + std::to_string(l));
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
        for (const auto& node : spec.nodes)
            out.network_depth_.push_back(static_cast<std::int8_t>(node.network.size()));
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
            const auto owner = "job " + gpusched::quoted(job.name);
            if (job.name.empty())
                problems.add("job #" + std::to_string(out.job_names.size()) + ": name is empty");
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
        detail::Interner<Requirement> requirements;
        detail::Interner<TaskAffinities> affinities;
        for (const auto& task : spec.tasks) {
            const auto owner = "task " + gpusched::quoted(task.name);
            if (task.name.empty())
                problems.add("task #" + std::to_string(t.names.size()) + ": name is empty");
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
            t.priority.push_back(quantity(owner, "priority", task.priority, -detail::largest_quantity));
            t.move_cost.push_back(quantity(owner, "move_cost", task.move_cost));
            t.start_time.push_back(quantity(owner, "start_time", task.start_time, -detail::largest_quantity));
            t.last_checkpoint_time.push_back(
                task.last_checkpoint_time ? quantity(owner, "last_checkpoint_time",
                                                     *task.last_checkpoint_time, -detail::largest_quantity)
                                          : TaskTable::no_time);
            t.checkpoint_interval.push_back(quantity(owner, "checkpoint_interval", task.checkpoint_interval));
            t.eviction_count.push_back(quantity(owner, "eviction_count", task.eviction_count));
            if (task.gpu_share_milli < whole_gpu_milli && task.gpu_count != 1)
                problems.add(owner + ": gpu_share_milli is " + std::to_string(task.gpu_share_milli) +
                             ", a fraction; it goes with gpu_count 1, not " + std::to_string(task.gpu_count));
            if (task.standby && task.priority_class != PriorityClass::hp)
                problems.add(owner + ": standby is for HP tasks");
            if (task.cores)
                for (const int core : *task.cores)
                    if (core < 0) problems.add(owner + ": cores names core " + std::to_string(core));
            for (const auto& toleration : task.tolerations)
                if (toleration.op != "Equal" && toleration.op != "Exists")
                    problems.add(owner + ": toleration operator is " + gpusched::quoted(toleration.op) +
                                 "; expected Equal or Exists");
            for (const auto& term : task.anti_affinity) {
                if (term.group.empty()) problems.add(owner + ": anti_affinity has no group");
                quantity(owner, "anti_affinity limit", term.limit, 1, 1'000'000'000);
            }
            for (const auto& term : task.affinity)
                if (term.group.empty()) problems.add(owner + ": affinity has no group");

            t.job.push_back(task.job.empty() ? none<JobId> : make_id<JobId>(*out.job_names.find(task.job)));
            t.priority_class.push_back(task.priority_class);
            t.locked.push_back(task.locked);
            t.preemptible.push_back(task.preemptible.value_or(task.priority_class == PriorityClass::lp));
            t.standby.push_back(task.standby);
            t.daemon.push_back(task.daemon);
            Requirement requirement{{}, task.node_selector, task.tolerations};
            for (const auto& model : task.gpu_models) {
                if (model.empty()) problems.add(owner + ": gpu_models holds an empty name");
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

    // With problems the inventory is never used, but placements are still looked at: members of nothing will do.
    void groups() {
        if (problems.count() > 0) {
            out.anti_affinity_offset_.resize(spec.tasks.size() + 1);
            out.affinity_offset_.resize(spec.tasks.size() + 1);
            return;
        }
        std::map<std::pair<std::string, Level>, std::uint32_t> anti_affinity_ids;
        std::map<std::tuple<bool, std::string, Level>, std::uint32_t> affinity_ids;
        std::map<std::string, std::vector<std::uint32_t>, std::less<>> anti_affinity_of_group,
            affinity_of_group;
        std::map<std::string, std::vector<std::uint32_t>, std::less<>> affinity_of_job, affinity_of_lone_task;
        const auto together = [&](bool is_network, const std::string& name, Level level, auto& index_by,
                                  auto key) {
            const auto [at, added] = affinity_ids.try_emplace(
                {is_network, name, level}, static_cast<std::uint32_t>(out.affinity_sets.size()));
            if (!added) return;
            out.affinity_sets.push_back({name, level, 0, is_network});
            index_by[key].push_back(at->second);
        };
        // First which sets exist, then who belongs to them: every member of a group belongs at every level that
        // any member names.
        for (const auto& task : spec.tasks) {
            for (const auto& term : task.anti_affinity) {
                const auto [at, added] = anti_affinity_ids.try_emplace(
                    {term.group, term.level}, static_cast<std::uint32_t>(out.anti_affinity_sets.size()));
                if (added) {
                    out.anti_affinity_sets.push_back({term.group, term.level, 0, {}, true});
                    anti_affinity_of_group[term.group].push_back(at->second);
                }
                out.anti_affinity_sets[at->second].limits.push_back(static_cast<std::uint32_t>(term.limit));
            }
            for (const auto& term : task.affinity)
                together(false, term.group, term.level, affinity_of_group, term.group);
            if (task.network_affinity && task.network_affinity->mode == NetworkMode::required) {
                const auto level = task.network_affinity->level;
                if (task.job.empty())
                    together(true, "task " + task.name, level, affinity_of_lone_task, task.name);
                else
                    together(true, "job " + task.job, level, affinity_of_job, task.job);
            }
        }
        for (auto& set : out.anti_affinity_sets) {
            std::sort(set.limits.begin(), set.limits.end());
            set.limits.erase(std::unique(set.limits.begin(), set.limits.end()), set.limits.end());
            set.uniform = set.limits.size() == 1;
        }
        for (const auto& task : spec.tasks) {
            out.anti_affinity_offset_.push_back(
                static_cast<std::uint32_t>(out.anti_affinity_members_.size()));
            out.affinity_offset_.push_back(static_cast<std::uint32_t>(out.affinity_members_.size()));
            const auto join_together = [&](std::uint32_t set) {
                const auto first = out.affinity_members_.begin() + out.affinity_offset_.back();
                if (std::any_of(first, out.affinity_members_.end(),
                                [&](const Membership& m) { return m.set == set; }))
                    return;
                out.affinity_members_.push_back({set, 0});
                ++out.affinity_sets[set].members;
            };
            std::set<std::string> joined;
            for (const auto& term : task.anti_affinity) {
                if (!joined.insert(term.group).second) continue;
                for (const auto set : anti_affinity_of_group[term.group]) {
                    auto limit = Membership::no_limit;
                    for (const auto& own : task.anti_affinity)
                        if (own.group == term.group && own.level == out.anti_affinity_sets[set].level)
                            limit = std::min(limit, static_cast<std::uint32_t>(own.limit));
                    if (limit == Membership::no_limit) out.anti_affinity_sets[set].uniform = false;
                    out.anti_affinity_members_.push_back({set, limit});
                    ++out.anti_affinity_sets[set].members;
                }
            }
            for (const auto& term : task.affinity)
                for (const auto set : affinity_of_group[term.group]) join_together(set);
            const auto& gangs = task.job.empty() ? affinity_of_lone_task : affinity_of_job;
            if (const auto found = gangs.find(task.job.empty() ? task.name : task.job); found != gangs.end())
                for (const auto set : found->second) join_together(set);
        }
        out.anti_affinity_offset_.push_back(static_cast<std::uint32_t>(out.anti_affinity_members_.size()));
        out.affinity_offset_.push_back(static_cast<std::uint32_t>(out.affinity_members_.size()));
    }

    void eligibility() {
        const auto classes = out.node_classes.size();
        if (problems.count() > 0 || classes * out.requirements.size() > detail::largest_eligibility_table)
            return;
        out.eligible_.resize(classes * out.requirements.size());
        for (std::size_t r = 0; r < out.requirements.size(); ++r)
            for (std::size_t c = 0; c < classes; ++c)
                out.eligible_[r * classes + c] = Inventory::matches(out.requirements[r], out.node_classes[c]);
    }
};

GPUSCHED_INLINE std::shared_ptr<const Inventory> Inventory::build(const ClusterSpec& spec,
                                                                  Problems& problems) {
    auto inventory = std::make_shared<Inventory>();
    InventoryBuilder{spec, problems, *inventory}.build();
    return inventory;
}

}  // namespace gpusched
