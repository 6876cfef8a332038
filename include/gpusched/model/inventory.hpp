// SPDX-License-Identifier: Apache-2.0
// Inventory: the part of a snapshot that placements do not change, as structures of arrays with interned
// names.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/core/name_table.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::detail {

/// The free slots of a table, first in, first out, in one array. Amortised O(1) per call.
class FreeSlots {
  public:
    [[nodiscard]] bool empty() const noexcept { return first_ == slots_.size(); }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size() - first_; }
    void give(std::size_t slot) { slots_.push_back(static_cast<std::uint32_t>(slot)); }
    /// Removes the slot that has been free longest; there must be one.
    std::size_t take() {
        const std::size_t slot = slots_[first_++];
        if (2 * first_ > slots_.size()) {
            slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
        return slot;
    }

  private:
    std::vector<std::uint32_t> slots_;
    std::size_t first_ = 0;
};

}  // namespace gpusched::detail

namespace gpusched {

/// The devices of a node besides its whole GPUs, shared by all nodes with the same devices.
struct NodeDevices {
    struct OfClass {
        std::uint32_t device_class = 0;  ///< index into Inventory::device_classes
        GpuMask devices = 0;
    };
    int first = 0;  ///< number of whole GPUs before them
    std::vector<DeviceSpec> written;
    GpuMask all = 0;
    std::vector<OfClass> classes;
};

/// The nodes that a task singles out by name or by the label kubernetes.io/hostname. They are stored apart
/// from node classes, because otherwise each node would be a class.
struct NodeSet {
    struct Named {
        NodeId node;
        bool allowed;
    };
    std::uint32_t requirement = no_node;  ///< the task's own requirement, which every node must satisfy
    /// As written; `requirement` contains only the conditions that do not single out nodes.
    Labels node_selector;
    std::vector<NodeTerm> node_affinity;
    std::vector<Named> named;        ///< ascending by node
    std::uint32_t others = no_node;  ///< the requirement on all nodes that are not named
    static constexpr std::uint32_t no_node = 0xFFFFFFFFu;
};

/// The requests of few tasks beyond CPU, memory, GPUs and node classes. Shared by all tasks with the same
/// extras.
struct Extras {
    struct Amount {
        std::uint32_t resource;  ///< index into Inventory::resource_names
        std::int64_t amount;     ///< more than 0
        bool operator==(const Amount&) const = default;
    };
    std::vector<Amount> resources;
    int device_count = 0;
    std::vector<std::uint32_t>
        device_classes;                    ///< index into Inventory::device_classes, in order of preference
    std::uint32_t node_set = no_node_set;  ///< index into Inventory::node_sets
    static constexpr std::uint32_t no_node_set = 0xFFFFFFFFu;
    bool operator==(const Extras&) const = default;
};

/// The groups and group constraints of a task as written, shared by all tasks with the same terms.
struct GroupTerms {
    std::vector<std::string> groups;
    std::vector<Avoid> avoid;
    std::vector<Near> near;
    std::vector<Spread> spread;
    bool operator==(const GroupTerms&) const = default;
};

/// A label key whose values are domains.
struct LabelLevel {
    std::string key;
    std::vector<DomainId> domain_of;  ///< by node; none = the node has no such label
    std::vector<std::string> values;  ///< by domain; empty for unused domains
};

/// The groups of which a task near must be a member, all of them.
struct NearRule {
    std::vector<std::string> groups;  ///< sorted, each once
    bool operator==(const NearRule&) const = default;
};

/// A rule for spreading members over domains, and its eligible nodes. Shared by all sets of groups with the
/// same rule.
struct SpreadRule {
    Level level = node_level;
    int max_skew = 0;  ///< 0 = unused
    int min_domains = 1;
    // An eligible node has these labels, satisfies the selector and affinity, and has only tolerated taints.
    std::vector<Level> label_levels;  ///< sorted, each once
    Labels node_selector;
    std::vector<NodeTerm> node_affinity;
    bool honors_taints = false;
    std::vector<Toleration> tolerations;  ///< only with `honors_taints`

    std::vector<bool> eligible;           ///< by node
    std::vector<std::uint32_t> nodes_in;  ///< number of eligible nodes, by domain of `level`
    std::uint32_t domains = 0;            ///< number of domains with an eligible node
};

class Inventory;
namespace detail {
class DomainEditor;
class ExtrasEditor;
class BudgetEditor;
class GroupEditor;
class GroupSelection;
class InventoryEditor;
struct InventoryBuilder;
}  // namespace detail

/// Whether a node accepts new tasks.
enum class Cordon : std::uint8_t {
    none,      ///< it accepts tasks
    by_taint,  ///< cordoned as in Kubernetes: it accepts tasks that tolerate the taint
    closed,    ///< it accepts no tasks
};

/// The slots of a table of nodes or tasks.
struct SlotTable {
    NameTable names;                        ///< a free slot has none
    std::vector<std::uint32_t> generation;  ///< how often the slot was freed; empty = no slot ever was
    std::vector<std::uint8_t> dead;         ///< 1 = the slot is free; empty = no slot is
    detail::FreeSlots free;                 ///< the free slots

    /// Number of occupied slots.
    [[nodiscard]] std::size_t count() const noexcept { return names.size() - free.size(); }
    [[nodiscard]] bool contains(std::size_t slot) const noexcept {
        return slot < names.size() && (free.empty() || dead[slot] == 0);
    }
    template <class Id>
    [[nodiscard]] Handle<Id> handle(Id id) const noexcept {
        return {id, generation.empty() ? 0 : generation[index(id)]};
    }
    template <class Id>
    [[nodiscard]] LiveIds<Id> living() const noexcept {
        return {free.empty() ? nullptr : dead.data(), names.size(), count()};
    }
};

/// Indexed by NodeId.
struct NodeTable : SlotTable {
    std::vector<GpuModelId> gpu_model;  ///< none = no GPU model
    std::vector<std::uint8_t> gpu_count;
    std::vector<std::int64_t> cpu_milli;
    std::vector<std::int64_t> memory_mib;
    std::vector<std::int64_t> gpu_memory_mib;  ///< per GPU; -1 = not modelled
    std::vector<std::int64_t> eviction_count;
    std::vector<Cordon> cordon;
    std::vector<GpuMask> failed_gpus;
    std::vector<std::uint32_t> first_gpu;  ///< index of its GPU 0 in arrays of `Inventory::gpu_slots` entries
    std::vector<std::uint32_t> node_class;  ///< index into Inventory::node_classes
    std::vector<std::uint32_t> hardware;    ///< index into Inventory::hardware; `no_hardware` = unknown
    std::vector<std::uint32_t> attributes;  ///< index into Inventory::node_attributes
    std::vector<std::uint32_t> devices;     ///< index into Inventory::node_devices; 0 = whole GPUs only
    /// Unused parts of arrays over all GPUs, by length: their first index. Empty = there never were any.
    std::vector<std::vector<std::uint32_t>> free_gpus;
    static constexpr std::uint32_t no_hardware = 0xFFFFFFFFu;
    /// Returns whether the node accepts eligible tasks.
    [[nodiscard]] bool receives(NodeId node) const noexcept { return cordon[index(node)] != Cordon::closed; }
    [[nodiscard]] bool is_cordoned(NodeId node) const noexcept { return cordon[index(node)] != Cordon::none; }
};

/// Labels and taints, shared by all nodes with the same ones.
struct NodeAttributes {
    Labels labels;
    std::vector<Taint> taints;
    bool operator==(const NodeAttributes&) const = default;
};

/// The properties of a node that decide whether a task may run there at all, shared by all nodes with the
/// same ones.
struct NodeClass {
    GpuModelId gpu_model = none<GpuModelId>;
    Labels labels;              ///< only keys that some task selects on
    std::vector<Taint> taints;  ///< only NoSchedule and NoExecute
    bool operator==(const NodeClass&) const = default;
};

/// The requirements of a task on its node besides resources, shared by all tasks with the same ones.
struct Requirement {
    std::vector<GpuModelId> gpu_models;  ///< sorted; empty = any
    Labels node_selector;                ///< without keys that single out nodes (NodeSet)
    std::vector<Toleration> tolerations;
    std::vector<NodeTerm> node_affinity;  ///< without conditions that single out nodes; empty = any
    bool operator==(const Requirement&) const = default;
};

/// The constraint of a set of a group. The memberships of a task are in this order.
enum class GroupKind : std::uint8_t {
    anti_affinity,  ///< a limited number of members per domain
    affinity,       ///< all members in one domain
    network,        ///< all tasks of a job in one domain; the old copy counts during a move
    avoid,          ///< no members in the domain of a task that avoids them
    near,           ///< a member in the domain of a task that needs one near
    spread,         ///< similar numbers of members in all domains
};

/// The tasks that one constraint on a group binds at one level. Members are counted per domain:
/// `Cluster::group_count`.
struct GroupSet {
    GroupKind kind = GroupKind::anti_affinity;
    /// Its name; kind `network`: "job " or "task " and its name; kind `near`: the first group.
    std::string group;
    Level level = node_level;
    std::uint32_t members = 0;
    // Of kind `anti_affinity` only.
    std::vector<std::uint32_t> limits;        ///< distinct limits, ascending
    std::vector<std::uint32_t> members_with;  ///< number of members with each of these limits
    bool uniform = true;                      ///< every member names this level, with the same limit
    std::uint32_t rule =
        0;  ///< kind `near`: index into Inventory::near_rules; kind `spread`: into spread_rules
};

/// The membership of one task in a set of a group.
struct Membership {
    std::uint32_t set = 0;  ///< index into Inventory::group_sets
    std::uint32_t limit =
        0;  ///< kind `anti_affinity`: the limit of the task; `no_limit` = it names another level
    static constexpr std::uint32_t no_limit = 0xFFFFFFFFu;
    // For kinds `avoid`, `near` and `spread`, `limit` is a set of these bits.
    static constexpr std::uint32_t member = 1;  ///< the task counts as a member
    static constexpr std::uint32_t bound = 2;   ///< the task has the constraint
    [[nodiscard]] bool is_member() const noexcept { return (limit & member) != 0; }
    [[nodiscard]] bool is_bound() const noexcept { return (limit & bound) != 0; }
    bool operator==(const Membership&) const = default;
};

/// Properties of a task that matter for every placement, as bits of one byte. They also show which arrays can
/// be skipped.
enum class TaskTrait : std::uint8_t {
    lends = 1,     ///< Standby: it claims GPUs and CPU without consuming them
    borrows = 2,   ///< LP: it can consume lent resources
    fraction = 4,  ///< it requests a fraction of one GPU
    daemon = 8,
    extras = 16,  ///< it has an entry in `TaskTable::extras`
    // These two bits are its Mobility: `TaskTable::how`.
    restarts = 32,
    suspends = 64,
    evictable = 128,  ///< preemptible, and neither locked nor Standby nor a daemon
};

/// Indexed by TaskId.
struct TaskTable : SlotTable {
    std::vector<JobId> job;  ///< none = on its own
    std::vector<std::int64_t> cpu_milli;
    std::vector<std::int64_t> memory_mib;
    std::vector<std::uint8_t> gpu_count;
    std::vector<std::uint16_t> gpu_share_milli;  ///< 1000 unless a fraction
    std::vector<std::int64_t> gpu_memory_mib;
    std::vector<std::int64_t> priority;
    std::vector<PriorityClass> priority_class;
    std::vector<std::uint8_t> locked, preemptible, standby, daemon;
    std::vector<std::uint8_t> traits;        ///< sets of TaskTrait, derived from the other columns
    std::vector<std::uint32_t> requirement;  ///< index into Inventory::requirements
    std::vector<std::uint32_t> affinities;   ///< index into Inventory::task_affinities
    std::vector<std::uint32_t> profile;      ///< its memberships; shared by tasks with the same ones
    std::vector<std::uint32_t> extras;       ///< index into Inventory::extras; 0 = none
    std::vector<std::uint32_t> budgets;      ///< index into Inventory::budget_lists; empty without budgets
    std::vector<SubgroupId> subgroup;        ///< shorter, or empty, if the last tasks have none
    std::vector<std::uint32_t> owner_kind;   ///< index into Inventory::owner_kinds; shorter if unknown
    std::vector<std::int64_t> move_cost;
    std::vector<std::int64_t> start_time;
    std::vector<std::int64_t> last_checkpoint_time;  ///< `no_time` = absent
    std::vector<std::int64_t> checkpoint_interval;
    std::vector<std::int64_t> eviction_count;
    static constexpr std::int64_t no_time = INT64_MIN;
    static constexpr std::uint32_t unknown_kind = 0xFFFFFFFFu;
    [[nodiscard]] bool is(TaskTrait trait, TaskId task) const noexcept {
        return (traits[index(task)] & static_cast<std::uint8_t>(trait)) != 0;
    }
    [[nodiscard]] Mobility how(TaskId task) const noexcept {
        return static_cast<Mobility>(traits[index(task)] >> mobility_shift & 3);
    }
    static constexpr int mobility_shift = 5;
};

/// Group, network and hardware constraints as written, shared by all tasks with the same ones.
struct TaskAffinities {
    std::vector<AntiAffinity> anti_affinity;
    std::vector<Affinity> affinity;
    std::optional<NetworkAffinity> network_affinity;
    std::vector<HardwareAffinity> hardware_affinity;
    bool cpu_local = false;
    std::uint32_t group_terms = 0;  ///< index into Inventory::group_terms; 0 = none
    std::optional<std::vector<int>> cores;
    bool operator==(const TaskAffinities&) const = default;

    /// The strictest guaranteed level, if there is one.
    [[nodiscard]] std::optional<HardwareLevel> guaranteed_level() const;
};

/// A role of a gang: see SubgroupSpec.
struct Subgroup {
    std::string name;  ///< empty = a free slot
    std::int64_t min_members = 0;
    std::uint32_t size = 0;  ///< number of tasks that name it
};

/// A disruption budget: see BudgetSpec.
struct DisruptionBudget {
    std::vector<TaskId> tasks;        ///< the named tasks, in the order of the data
    std::vector<std::string> groups;  ///< all members of these also count
    std::int64_t allowed_down = 0;
    bool broken = false;
    /// The number of additional tasks that may be down.
    [[nodiscard]] std::int64_t allows() const noexcept { return broken ? 0 : allowed_down; }
};

/// GPU masks of the localities of a machine.
struct HardwareMasks {
    Hardware description;
    std::vector<GpuMask> numa;
    std::vector<GpuMask> socket;
};

/// Numbers of changes that cost more than the object that changed: O(nodes + tasks) each.
struct ChangeStatistics {
    std::uint64_t first_changes = 0;      ///< the first change of an inventory, which makes look-ups
    std::uint64_t copies = 0;             ///< the tables were shared with a copy of the cluster
    std::uint64_t reclassifications = 0;  ///< a label key was selected for the first time
    std::uint64_t resources = 0;          ///< a resource was named for the first time
    std::uint64_t levels = 0;             ///< a deeper network level was named for the first time
    std::uint64_t label_levels = 0;       ///< a label key became a level
    std::uint64_t budgets = 0;            ///< a budget with groups was added, removed, or got other groups
    std::uint64_t regroupings = 0;        ///< a group with members got or lost a level or a limit
};

/// Which requirements go with which classes of nodes, computed once. Empty if the table would be too large.
class EligibilityTable {
  public:
    /// True if there are so many pairs that eligibility is computed on demand.
    [[nodiscard]] bool empty() const noexcept { return words_.empty(); }
    [[nodiscard]] bool operator()(std::uint32_t requirement, std::uint32_t node_class) const {
        return (words_[requirement * row_ + node_class / 64] >> (node_class % 64) & 1) != 0;
    }
    void build(const Inventory& inventory);
    /// Computes the entries of a requirement or class that was added or whose index was reused.
    void update_requirement(const Inventory& inventory, std::uint32_t requirement);
    void update_class(const Inventory& inventory, std::uint32_t node_class);

  private:
    void resize(std::size_t requirements);
    void write(const Inventory& inventory, std::size_t requirement, std::size_t node_class);
    static constexpr std::size_t most_words = std::size_t{1} << 22;
    std::vector<std::uint64_t> words_;  // one bit per pair, [requirement][node class]
    std::size_t row_ = 0;               // number of words per requirement
};

/// The ids of nodes, tasks, jobs and budgets in the order of the data. Empty = in the order of ids.
struct ListedOrder {
    std::vector<std::uint32_t> nodes, tasks, jobs, budgets;
};

/// The part of a snapshot that placements do not change. Built and validated once, and shared by all copies
/// of a cluster. Only changes of membership change it.
class Inventory {
  public:
    std::int64_t now = 0;
    NodeTable nodes;
    TaskTable tasks;
    NameTable gpu_models;
    NameTable owner_kinds;
    std::uint32_t gpu_slots = 0;  ///< length of arrays over the GPUs of all nodes

    NameTable budget_names;                 ///< empty for free slots
    std::vector<DisruptionBudget> budgets;  ///< by `budget_names`
    std::vector<std::vector<std::uint32_t>>
        budget_lists;  ///< shared by tasks with the same budgets; 0 = none
    detail::FreeSlots budget_free;

    NameTable job_names;
    std::vector<std::int64_t> job_min_members;
    std::vector<std::int64_t> job_max_disrupted;  ///< INT64_MAX = any number
    std::vector<std::uint32_t> job_size;
    std::vector<std::uint8_t> job_listed;  ///< 0 = only tasks name it: it disappears with the last of them
    std::vector<std::uint32_t> job_generation;  ///< how often the slot was freed; empty = no slot ever was
    detail::FreeSlots job_free;

    std::vector<Subgroup> subgroups;  ///< by SubgroupId
    /// By JobId, in the order of the job's data; shorter, or empty, if the last jobs have none.
    std::vector<std::vector<SubgroupId>> job_subgroups;
    detail::FreeSlots subgroup_free;

    std::map<TaskId, WaitingReason> waiting;  ///< of tasks that do not wait for room while they are pending
    std::map<JobId, WaitingReason> job_waiting;  ///< the same of jobs
    std::set<TaskId> terminating;                ///< tasks that are about to leave
    std::map<TaskId, std::string> notes;         ///< clauses for answers about pending tasks

    ListedOrder listed;  ///< objects that were added later follow, by id

    ChangeStatistics changes;
    /// A number that every change replaces and that is unique in the process. Data derived from this
    /// inventory is valid while the number is the same.
    std::uint64_t serial = 0;
    /// Unused indices of `requirements` and `extras` are reused. By index: the serial of the last such
    /// change. Indices beyond the end have kept their meaning since the inventory was built. See `since`.
    std::vector<std::uint64_t> requirement_since, extras_since;
    /// The same for all indices of `hardware` together; 0 = none was reused.
    std::uint64_t hardware_since = 0;

    std::vector<NodeAttributes> node_attributes;
    std::vector<NodeClass> node_classes;
    std::vector<Requirement> requirements;
    std::vector<TaskAffinities> task_affinities;
    std::vector<HardwareMasks> hardware;
    NameTable resource_names;
    std::vector<std::int64_t> node_resources;  ///< [node][resource], by `resource_names`
    NameTable device_classes;
    std::vector<NodeDevices> node_devices;
    std::vector<Extras> extras;
    std::vector<NodeSet> node_sets;
    std::vector<GroupSet> group_sets;
    std::vector<GroupTerms> group_terms;
    std::vector<NearRule> near_rules;
    std::vector<SpreadRule> spread_rules;
    std::vector<LabelLevel> label_levels;

    /// All nodes (tasks), without free slots.
    [[nodiscard]] LiveIds<NodeId> living_nodes() const noexcept { return nodes.living<NodeId>(); }
    [[nodiscard]] LiveIds<TaskId> living_tasks() const noexcept { return tasks.living<TaskId>(); }

    /// Levels of the network tree: the longest path of any node.
    [[nodiscard]] int network_levels() const noexcept { return network_levels_; }
    /// The deepest level at which the position of a node is known; `node_level` if there is none.
    [[nodiscard]] Level deepest_level() const noexcept { return network_levels_ - 1; }
    /// The number of levels that `domain` accepts: those of the network, or more if a constraint names a
    /// deeper one.
    [[nodiscard]] int named_levels() const noexcept { return static_cast<int>(domain_names_.size()); }
    /// The node's domain at a level, dense per level. A node of unknown position is its own domain.
    [[nodiscard]] DomainId domain(Level level, NodeId node) const noexcept {
        return level == node_level ? make_id<DomainId>(index(node))
                                   : domain_of_[static_cast<std::size_t>(level)][index(node)];
    }
    /// The same for levels of the network and of labels; `none<DomainId>` for a node without the label.
    [[nodiscard]] DomainId domain_at(Level level, NodeId node) const noexcept {
        if (level == node_level) return make_id<DomainId>(index(node));
        return level < first_label_level
                   ? domain_of_[static_cast<std::size_t>(level)][index(node)]
                   : label_levels[static_cast<std::size_t>(level - first_label_level)].domain_of[index(node)];
    }
    /// Number of domains of a level, including nodes of unknown position.
    [[nodiscard]] std::size_t domain_count(Level level) const noexcept {
        return level == node_level ? nodes.names.size()
                                   : domain_names_[static_cast<std::size_t>(level)].size();
    }
    /// The domain's name; for a node of unknown position, the name of the node.
    [[nodiscard]] const std::string& domain_name(Level level, DomainId domain) const noexcept {
        return level == node_level ? nodes.names[index(domain)]
                                   : domain_names_[static_cast<std::size_t>(level)][index(domain)];
    }
    /// True if the node's position at that level is known.
    [[nodiscard]] bool position_known(Level level, NodeId node) const noexcept {
        return level == node_level || network_depth_[index(node)] > level;
    }
    /// Number of known levels of the node's position.
    [[nodiscard]] int network_depth(NodeId node) const noexcept { return network_depth_[index(node)]; }

    /// May tasks with that requirement run on nodes of that class (model, labels, taints)? For tasks that
    /// single out nodes this is only a necessary condition.
    [[nodiscard]] bool eligible(std::uint32_t requirement, std::uint32_t node_class) const {
        if (eligible_.empty()) return matches(requirements[requirement], node_classes[node_class]);
        return eligible_(requirement, node_class);
    }

    /// Returns whether the task may run on that node (model, labels, taints, node names).
    [[nodiscard]] bool eligible(TaskId task, NodeId node) const {
        const auto i = index(task);
        return eligible(tasks.requirement[i], nodes.node_class[index(node)]) &&
               (!tasks.is(TaskTrait::extras, task) || in_node_set(tasks.extras[i], node));
    }
    /// Does `extras[which]` allow the node? True if it singles out no nodes.
    [[nodiscard]] bool in_node_set(std::uint32_t which, NodeId node) const;

    /// The budgets of the task, ascending: indices into `budgets`.
    [[nodiscard]] std::span<const std::uint32_t> budgets_of(TaskId task) const noexcept {
        if (tasks.budgets.empty()) return {};
        return budget_lists[tasks.budgets[index(task)]];
    }

    /// The subgroups of the job, in the order of its data.
    [[nodiscard]] std::span<const SubgroupId> subgroups_of(JobId job) const noexcept {
        if (index(job) >= job_subgroups.size()) return {};
        return job_subgroups[index(job)];
    }
    /// The job's subgroup of that name.
    [[nodiscard]] SubgroupId find_subgroup(JobId job, std::string_view name) const noexcept {
        for (const auto id : subgroups_of(job))
            if (subgroups[index(id)].name == name) return id;
        return none<SubgroupId>;
    }
    /// The subgroup of the task.
    [[nodiscard]] SubgroupId subgroup_of(TaskId task) const noexcept {
        return index(task) < tasks.subgroup.size() ? tasks.subgroup[index(task)] : none<SubgroupId>;
    }

    /// The memberships of the task in sets of groups, by ascending kind.
    [[nodiscard]] std::span<const Membership> memberships(TaskId task) const noexcept {
        return memberships(task, &Profile::first, &Profile::end);
    }
    /// Those of kind `anti_affinity`.
    [[nodiscard]] std::span<const Membership> anti_affinity_memberships(TaskId task) const noexcept {
        return memberships(task, &Profile::first, &Profile::affinity);
    }
    /// Those of kinds `affinity` and `network`.
    [[nodiscard]] std::span<const Membership> affinity_memberships(TaskId task) const noexcept {
        return memberships(task, &Profile::affinity, &Profile::selection);
    }
    /// Those of kinds `anti_affinity`, `affinity` and `network`.
    [[nodiscard]] std::span<const Membership> limit_memberships(TaskId task) const noexcept {
        return memberships(task, &Profile::first, &Profile::selection);
    }
    /// Those of kinds `avoid`, `near` and `spread`.
    [[nodiscard]] std::span<const Membership> selection_memberships(TaskId task) const noexcept {
        return memberships(task, &Profile::selection, &Profile::end);
    }
    /// The labels that the task's node must have, as written. Those that single out nodes are not in
    /// `requirements`.
    [[nodiscard]] const Labels& node_selector(TaskId task) const noexcept {
        const auto* const set = node_set_of(task);
        return set != nullptr ? set->node_selector
                              : requirements[tasks.requirement[index(task)]].node_selector;
    }
    /// The node affinity of the task as written: its node must satisfy one of these terms; empty = any node.
    [[nodiscard]] const std::vector<NodeTerm>& node_affinity(TaskId task) const noexcept {
        const auto* const set = node_set_of(task);
        return set != nullptr ? set->node_affinity
                              : requirements[tasks.requirement[index(task)]].node_affinity;
    }
    /// The groups and group constraints of the task, as written.
    [[nodiscard]] const GroupTerms& terms(TaskId task) const noexcept {
        return group_terms[task_affinities[tasks.affinities[index(task)]].group_terms];
    }

    /// The entry of `requirement_since` or `extras_since` for an index.
    [[nodiscard]] static std::uint64_t since(const std::vector<std::uint64_t>& table,
                                             std::uint32_t at) noexcept {
        return at < table.size() ? table[at] : 0;
    }
    /// A new number, unique in the process.
    [[nodiscard]] static std::uint64_t next_serial() noexcept;

    /// Validates and builds. Adds every problem to `problems`. After a problem the result has all nodes and
    /// tasks with legal quantities, but no groups. Does not check placements: see `Cluster::build`.
    static std::shared_ptr<Inventory> build(const ClusterSpec& spec, Problems& problems);

    [[nodiscard]] static bool matches(const Requirement& requirement, const NodeClass& node_class);
    [[nodiscard]] static bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

  private:
    /// The set of nodes that the task singles out; null = none.
    [[nodiscard]] const NodeSet* node_set_of(TaskId task) const noexcept {
        const auto set = extras[tasks.extras[index(task)]].node_set;
        return set != Extras::no_node_set ? &node_sets[set] : nullptr;
    }

    friend struct detail::InventoryBuilder;
    friend class detail::GroupEditor;
    friend class detail::GroupSelection;
    friend class detail::DomainEditor;
    friend class detail::InventoryEditor;
    // The memberships of a profile: first index, first of kind `affinity`, first of kind `avoid`, and end.
    struct Profile {
        std::uint32_t first = 0, affinity = 0, selection = 0, end = 0;
    };
    [[nodiscard]] std::span<const Membership> memberships(TaskId task, std::uint32_t Profile::*first,
                                                          std::uint32_t Profile::*end) const noexcept {
        const auto& p = profiles_[tasks.profile[index(task)]];
        return {memberships_.data() + p.*first, memberships_.data() + p.*end};
    }
    std::vector<std::vector<DomainId>> domain_of_;        // [level][node]
    std::vector<std::vector<std::string>> domain_names_;  // [level][domain]
    std::vector<std::int8_t> network_depth_;              // [node]
    int network_levels_ = 0;                              // the largest of them
    EligibilityTable eligible_;
    std::vector<Membership> memberships_;  // of all profiles
    std::vector<Profile> profiles_;
};

/// The largest number of GPUs of a node; 0 without nodes. O(nodes).
[[nodiscard]] inline int largest_gpu_count(const Inventory& inventory) noexcept {
    const auto& counts = inventory.nodes.gpu_count;
    return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

}  // namespace gpusched
