// SPDX-License-Identifier: Apache-2.0
// Inventory: the part of a snapshot that placements do not change, as structures of arrays with interned names.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/core/name_table.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::detail {

/// A queue in one array; amortised O(1) per call.
class FreeSlots {
  public:
    [[nodiscard]] bool empty() const noexcept { return first_ == slots_.size(); }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size() - first_; }
    void give(std::size_t slot) { slots_.push_back(static_cast<std::uint32_t>(slot)); }
    /// Takes the slot that has been free longest; there must be one.
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

/// The devices that a node has beside its whole GPUs, shared by all nodes alike in it.
struct NodeDevices {
    struct OfClass {
        std::uint32_t device_class = 0;  ///< index into Inventory::device_classes
        GpuMask devices = 0;
    };
    int first = 0;  ///< how many whole GPUs come before them
    std::vector<DeviceSpec> written;
    GpuMask all = 0;
    std::vector<OfClass> classes;
};

/// The nodes that a task singles out by name or by the label kubernetes.io/hostname. A kind of node of its own for each would
/// make as many kinds as there are nodes.
struct NodeSet {
    struct Named {
        NodeId node;
        bool allowed;
    };
    std::uint32_t requirement =
        no_node;  ///< the task's own: what any node must satisfy, as far as kinds of nodes go
    /// As written, of which `requirement` holds what does not single out nodes.
    Labels node_selector;
    std::vector<NodeTerm> node_affinity;
    std::vector<Named> named;        ///< by node
    std::uint32_t others = no_node;  ///< the requirement that all other nodes must satisfy
    static constexpr std::uint32_t no_node = 0xFFFFFFFFu;
};

/// Shared by all tasks alike in it.
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

/// As written, shared by all tasks that wrote the same.
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
    std::vector<DomainId> domain_of;  ///< by node; none = it lacks the label
    std::vector<std::string> values;  ///< by domain; of those that no node has any more an empty text
};

/// The groups that a task must be a member of to be wanted near.
struct NearRule {
    std::vector<std::string> groups;  ///< sorted, each once
    bool operator==(const NearRule&) const = default;
};

/// How evenly members are to be spread, and over which nodes; shared by all sets of groups alike in it.
struct SpreadRule {
    Level level = node_level;
    int max_skew = 0;  ///< 0 = nobody has the rule
    int min_domains = 1;
    // An eligible node has these labels, satisfies selector and affinity, and its taints are tolerated.
    std::vector<Level> label_levels;  ///< sorted, each once
    Labels node_selector;
    std::vector<NodeTerm> node_affinity;
    bool honors_taints = false;
    std::vector<Toleration> tolerations;  ///< only with `honors_taints`

    std::vector<bool> eligible;           ///< by node
    std::vector<std::uint32_t> nodes_in;  ///< eligible nodes, by domain of `level`
    std::uint32_t domains = 0;            ///< with an eligible node
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

/// Whether a node receives tasks.
enum class Cordon : std::uint8_t {
    none,      ///< it does
    by_taint,  ///< as Kubernetes does it: tasks that tolerate the taint may still come
    closed,    ///< none may come
};

/// Indexed by NodeId.
struct NodeTable {
    NameTable names;
    std::vector<GpuModelId> gpu_model;  ///< none = no GPU model
    std::vector<std::uint8_t> gpu_count;
    std::vector<std::int64_t> cpu_milli;
    std::vector<std::int64_t> memory_mib;
    std::vector<std::int64_t> gpu_memory_mib;  ///< per GPU; -1 = not modelled
    std::vector<std::int64_t> eviction_count;
    std::vector<Cordon> cordon;
    std::vector<GpuMask> failed_gpus;
    std::vector<std::uint32_t>
        first_gpu;  ///< offset of its GPU 0 in arrays of `Inventory::gpu_slots` entries, devices included
    std::vector<std::uint32_t> node_class;  ///< index into Inventory::node_classes
    std::vector<std::uint32_t> hardware;    ///< index into Inventory::hardware; `no_hardware` = unknown
    std::vector<std::uint32_t> attributes;  ///< index into Inventory::node_attributes
    std::vector<std::uint32_t> devices;     ///< index into Inventory::node_devices; 0 = whole GPUs only
    std::vector<std::uint32_t> generation;  ///< how often the slot was given up; empty = never any
    std::vector<std::uint8_t> dead;         ///< 1 = nobody has the slot; empty = none is
    detail::FreeSlots free;                 ///< those slots, the one first that is given away first
    /// Runs in arrays over all GPUs that nobody has, by length: where they begin. Empty = never any.
    std::vector<std::vector<std::uint32_t>> free_gpus;
    static constexpr std::uint32_t no_hardware = 0xFFFFFFFFu;
    /// May tasks come that are eligible there?
    [[nodiscard]] bool receives(NodeId node) const noexcept { return cordon[index(node)] != Cordon::closed; }
    [[nodiscard]] bool is_cordoned(NodeId node) const noexcept { return cordon[index(node)] != Cordon::none; }
};

/// Labels and taints, shared by all nodes that have the same.
struct NodeAttributes {
    Labels labels;
    std::vector<Taint> taints;
    bool operator==(const NodeAttributes&) const = default;
};

/// What decides whether a task may run on a node at all, shared by all nodes alike in it.
struct NodeClass {
    GpuModelId gpu_model = none<GpuModelId>;
    Labels labels;              ///< only keys that some task selects on
    std::vector<Taint> taints;  ///< only NoSchedule and NoExecute
    bool operator==(const NodeClass&) const = default;
};

/// What a task asks of a node besides resources, shared by all tasks alike in it.
struct Requirement {
    std::vector<GpuModelId> gpu_models;  ///< sorted; empty = any
    Labels node_selector;                ///< without keys that single out nodes (NodeSet)
    std::vector<Toleration> tolerations;
    std::vector<NodeTerm> node_affinity;  ///< likewise; empty = any
    bool operator==(const Requirement&) const = default;
};

/// What the sets of a group constrain, in the order in which a task's memberships are kept.
enum class GroupKind : std::uint8_t {
    anti_affinity,  ///< at most so many members in one domain
    affinity,       ///< all members in one domain
    network,        ///< all tasks of a job in one domain; its own old copy counts during a move
    avoid,          ///< no members in the domain of a task that avoids them
    near,           ///< a member in the domain of a task that wants them near
    spread,         ///< members in even numbers
};

/// The tasks that one constraint on a group binds at one level. Members are counted per domain: `Cluster::group_count`.
struct GroupSet {
    GroupKind kind = GroupKind::anti_affinity;
    std::string
        group;  ///< its name; of kind `network` "job " or "task " and the name of that; of kind `near` the first
    Level level = node_level;
    std::uint32_t members = 0;
    // Of kind `anti_affinity` only.
    std::vector<std::uint32_t> limits;        ///< distinct limits, ascending
    std::vector<std::uint32_t> members_with;  ///< how many members name each of them
    bool uniform = true;                      ///< every member names this level, with the same limit
    std::uint32_t rule =
        0;  ///< of kind `near` index into Inventory::near_rules, of kind `spread` into spread_rules
};

/// One task's part in a set of a group.
struct Membership {
    std::uint32_t set = 0;  ///< index into Inventory::group_sets
    std::uint32_t limit =
        0;  ///< of kind `anti_affinity`: the task's own limit; `no_limit` = it names another level
    static constexpr std::uint32_t no_limit = 0xFFFFFFFFu;
    // Of kinds `avoid`, `near` and `spread`, `limit` holds these.
    static constexpr std::uint32_t member = 1;  ///< it counts as a member
    static constexpr std::uint32_t bound = 2;   ///< it asks for it
    [[nodiscard]] bool is_member() const noexcept { return (limit & member) != 0; }
    [[nodiscard]] bool is_bound() const noexcept { return (limit & bound) != 0; }
    bool operator==(const Membership&) const = default;
};

/// What of a task every placement depends on; all in one byte, which says as well which arrays need not be looked at.
enum class TaskTrait : std::uint8_t {
    lends = 1,     ///< Standby: it claims GPUs and CPU without consuming them
    borrows = 2,   ///< LP: it consumes what others lend
    fraction = 4,  ///< of one GPU
    daemon = 8,
    extras = 16,  ///< it has some in `TaskTable::extras`
    // These two together hold its Mobility: `TaskTable::how`.
    restarts = 32,
    suspends = 64,
    evictable = 128,  ///< preemptible, and neither locked nor Standby nor a daemon
};

/// Indexed by TaskId.
struct TaskTable {
    NameTable names;
    std::vector<JobId> job;  ///< none = on its own
    std::vector<std::int64_t> cpu_milli;
    std::vector<std::int64_t> memory_mib;
    std::vector<std::uint8_t> gpu_count;
    std::vector<std::uint16_t> gpu_share_milli;  ///< 1000 unless a fraction
    std::vector<std::int64_t> gpu_memory_mib;
    std::vector<std::int64_t> priority;
    std::vector<PriorityClass> priority_class;
    std::vector<std::uint8_t> locked, preemptible, standby, daemon;
    std::vector<std::uint8_t> traits;        ///< sets of TaskTrait, made of the other columns
    std::vector<std::uint32_t> requirement;  ///< index into Inventory::requirements
    std::vector<std::uint32_t> affinities;   ///< index into Inventory::task_affinities
    std::vector<std::uint32_t> profile;      ///< which memberships it has; shared by tasks that have the same
    std::vector<std::uint32_t> extras;       ///< index into Inventory::extras; 0 = nothing of the kind
    std::vector<std::uint32_t>
        budgets;  ///< index into Inventory::budget_lists; empty where no task is in a budget
    std::vector<SubgroupId> subgroup;  ///< shorter, or empty, where the last tasks are in none
    std::vector<std::int64_t> move_cost;
    std::vector<std::int64_t> start_time;
    std::vector<std::int64_t> last_checkpoint_time;  ///< `no_time` = absent
    std::vector<std::int64_t> checkpoint_interval;
    std::vector<std::int64_t> eviction_count;
    std::vector<std::uint32_t> generation;  ///< how often the slot was given up; empty = never any
    std::vector<std::uint8_t> dead;         ///< 1 = nobody has the slot; empty = none is
    detail::FreeSlots free;                 ///< those slots, the one first that is given away first
    static constexpr std::int64_t no_time = INT64_MIN;
    [[nodiscard]] bool is(TaskTrait trait, TaskId task) const noexcept {
        return (traits[index(task)] & static_cast<std::uint8_t>(trait)) != 0;
    }
    [[nodiscard]] Mobility how(TaskId task) const noexcept {
        return static_cast<Mobility>(traits[index(task)] >> mobility_shift & 3);
    }
    static constexpr int mobility_shift = 5;
};

/// Group, network and hardware wishes as written, shared by all tasks that wrote the same.
struct TaskAffinities {
    std::vector<AntiAffinity> anti_affinity;
    std::vector<Affinity> affinity;
    std::optional<NetworkAffinity> network_affinity;
    std::vector<HardwareAffinity> hardware_affinity;
    bool cpu_local = false;
    std::uint32_t group_terms = 0;  ///< index into Inventory::group_terms; 0 = none
    std::optional<std::vector<int>> cores;
    bool operator==(const TaskAffinities&) const = default;

    /// The strictest guaranteed level, if any.
    [[nodiscard]] std::optional<HardwareLevel> guaranteed_level() const;
};

/// A role of a gang, as SubgroupSpec has it.
struct Subgroup {
    std::string name;  ///< empty = a slot that nobody has
    std::int64_t min_members = 0;
    std::uint32_t size = 0;  ///< tasks that name it
};

/// A budget of tasks that may be down at once, as BudgetSpec has it.
struct DisruptionBudget {
    std::vector<TaskId> tasks;        ///< those it names, in that order
    std::vector<std::string> groups;  ///< whose members it has, too
    std::int64_t allowed_down = 0;
    bool broken = false;
    /// How many more of its tasks may be down.
    [[nodiscard]] std::int64_t allows() const noexcept { return broken ? 0 : allowed_down; }
};

/// GPU masks of one machine's localities.
struct HardwareMasks {
    Hardware description;
    std::vector<GpuMask> numa;
    std::vector<GpuMask> socket;
};

/// Changes that cost more than the node, task or job that changed: O(nodes + tasks) each.
struct ChangeStatistics {
    std::uint64_t first_changes = 0;      ///< look-ups were made: the first change of an inventory
    std::uint64_t copies = 0;             ///< the tables were shared with a copy of the cluster
    std::uint64_t reclassifications = 0;  ///< a label key was selected for the first time
    std::uint64_t resources = 0;          ///< a resource was named for the first time
    std::uint64_t levels = 0;             ///< a deeper network level was named for the first time
    std::uint64_t label_levels = 0;       ///< a label key became a level
    std::uint64_t budgets = 0;            ///< a budget of groups came, went, or got other groups
    std::uint64_t regroupings = 0;        ///< a group that has members got, or lost, a level or a limit
};

/// Which requirements go with which classes of nodes, worked out once. Empty where that would be too large.
class EligibilityTable {
  public:
    /// True where there are so many pairs that eligibility is worked out on demand.
    [[nodiscard]] bool empty() const noexcept { return words_.empty(); }
    [[nodiscard]] bool operator()(std::uint32_t requirement, std::uint32_t node_class) const {
        return (words_[requirement * row_ + node_class / 64] >> (node_class % 64) & 1) != 0;
    }
    void build(const Inventory& inventory);
    /// Works out what is new: a requirement or a class that was added, or whose index was given away again.
    void update_requirement(const Inventory& inventory, std::uint32_t requirement);
    void update_class(const Inventory& inventory, std::uint32_t node_class);

  private:
    void resize(std::size_t requirements);
    void write(const Inventory& inventory, std::size_t requirement, std::size_t node_class);
    static constexpr std::size_t most_words = std::size_t{1} << 22;
    std::vector<std::uint64_t> words_;  // one bit per pair, [requirement][node class]
    std::size_t row_ = 0;               // words of a requirement
};

/// In which order the data that a snapshot was built of listed things: their ids. Empty = in the order of ids.
struct ListedOrder {
    std::vector<std::uint32_t> nodes, tasks, jobs, budgets;
};

/// The part of a snapshot that placements leave alone. Built and validated once, shared by all copies of a cluster; changes
/// of membership change it.
class Inventory {
  public:
    std::int64_t now = 0;
    NodeTable nodes;
    TaskTable tasks;
    NameTable gpu_models;
    std::uint32_t gpu_slots = 0;  ///< length of arrays over the GPUs of all nodes

    NameTable budget_names;                 ///< a slot that nobody has has none
    std::vector<DisruptionBudget> budgets;  ///< by `budget_names`
    std::vector<std::vector<std::uint32_t>>
        budget_lists;               ///< of budgets, shared by tasks that are in the same ones; 0 = none
    detail::FreeSlots budget_free;  ///< slots that nobody has

    NameTable job_names;
    std::vector<std::int64_t> job_min_members;
    std::vector<std::int64_t> job_max_disrupted;  ///< INT64_MAX = any number
    std::vector<std::uint32_t> job_size;
    std::vector<std::uint8_t> job_listed;       ///< 0 = only tasks name it: it goes with the last of them
    std::vector<std::uint32_t> job_generation;  ///< how often the slot was given up; empty = never any

    detail::FreeSlots job_free;  ///< slots that nobody has

    std::vector<Subgroup> subgroups;  ///< by SubgroupId
    /// By JobId, in the order in which the job lists them; shorter, or empty, where the last jobs have none.
    std::vector<std::vector<SubgroupId>> job_subgroups;
    detail::FreeSlots subgroup_free;  ///< slots that nobody has

    ListedOrder listed;  ///< who came later follows, by id

    ChangeStatistics changes;
    /// A number that every change replaces and that no two inventories of the process share: whatever was derived from this
    /// inventory is up to date while the number is the same.
    std::uint64_t serial = 0;
    /// An index of a requirement (of `extras`) that nobody uses any more is given to another. Here stands the serial at which that
    /// last happened, by index; indices beyond the end have kept their meaning since the inventory was built. See `since`.
    std::vector<std::uint64_t> requirement_since, extras_since;
    /// The same of all indices of `hardware` together; 0 = none is newer.
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

    /// The nodes (tasks) that there are: slots that nobody has are left out.
    [[nodiscard]] LiveIds<NodeId> living_nodes() const noexcept { return living<NodeId>(nodes); }
    [[nodiscard]] LiveIds<TaskId> living_tasks() const noexcept { return living<TaskId>(tasks); }

    /// Levels of the network tree: the longest path of any node.
    [[nodiscard]] int network_levels() const noexcept { return network_levels_; }
    /// The deepest level at which some node's position is known; `node_level` where none is.
    [[nodiscard]] Level deepest_level() const noexcept { return network_levels_ - 1; }
    /// The levels that `domain` can be asked for: those of the network, or more where a constraint names a deeper one.
    [[nodiscard]] int named_levels() const noexcept { return static_cast<int>(domain_names_.size()); }
    /// The node's domain at a level, dense per level. A node of unknown position is a domain of its own.
    [[nodiscard]] DomainId domain(Level level, NodeId node) const noexcept {
        return level == node_level ? make_id<DomainId>(index(node))
                                   : domain_of_[static_cast<std::size_t>(level)][index(node)];
    }
    /// The same for levels that are labels, too: `none<DomainId>` on a node without the label.
    [[nodiscard]] DomainId domain_at(Level level, NodeId node) const noexcept {
        if (level == node_level) return make_id<DomainId>(index(node));
        return level < first_label_level
                   ? domain_of_[static_cast<std::size_t>(level)][index(node)]
                   : label_levels[static_cast<std::size_t>(level - first_label_level)].domain_of[index(node)];
    }
    /// How many domains a level has, nodes of unknown position included.
    [[nodiscard]] std::size_t domain_count(Level level) const noexcept {
        return level == node_level ? nodes.names.size()
                                   : domain_names_[static_cast<std::size_t>(level)].size();
    }
    /// The domain's name; a node of unknown position gives its own.
    [[nodiscard]] const std::string& domain_name(Level level, DomainId domain) const noexcept {
        return level == node_level ? nodes.names[index(domain)]
                                   : domain_names_[static_cast<std::size_t>(level)][index(domain)];
    }
    /// True where the node's position at that level is known.
    [[nodiscard]] bool position_known(Level level, NodeId node) const noexcept {
        return level == node_level || network_depth_[index(node)] > level;
    }
    /// How many levels of the node's position are known.
    [[nodiscard]] int network_depth(NodeId node) const noexcept { return network_depth_[index(node)]; }

    /// May tasks of that requirement run on nodes of that class (model, labels, taints)? Necessary for a task that singles
    /// out nodes, sufficient for all others.
    [[nodiscard]] bool eligible(std::uint32_t requirement, std::uint32_t node_class) const {
        if (eligible_.empty()) return matches(requirements[requirement], node_classes[node_class]);
        return eligible_(requirement, node_class);
    }

    /// May the task run on that node (model, labels, taints, and the nodes that it singles out)?
    [[nodiscard]] bool eligible(TaskId task, NodeId node) const {
        const auto i = index(task);
        return eligible(tasks.requirement[i], nodes.node_class[index(node)]) &&
               (!tasks.is(TaskTrait::extras, task) || in_node_set(tasks.extras[i], node));
    }
    /// Is the node among those that `extras[which]` singles out? True where it singles out none.
    [[nodiscard]] bool in_node_set(std::uint32_t which, NodeId node) const;

    /// The budgets that the task is in, ascending: indices into `budgets`.
    [[nodiscard]] std::span<const std::uint32_t> budgets_of(TaskId task) const noexcept {
        if (tasks.budgets.empty()) return {};
        return budget_lists[tasks.budgets[index(task)]];
    }

    /// The subgroups of the job, in the order in which it lists them.
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
    /// The subgroup of its job that the task is in.
    [[nodiscard]] SubgroupId subgroup_of(TaskId task) const noexcept {
        return index(task) < tasks.subgroup.size() ? tasks.subgroup[index(task)] : none<SubgroupId>;
    }

    /// The sets of groups that the task belongs to, by ascending kind.
    [[nodiscard]] std::span<const Membership> memberships(TaskId task) const noexcept {
        const auto& p = profiles_[tasks.profile[index(task)]];
        return {memberships_.data() + p.first, memberships_.data() + p.end};
    }
    /// Those of kind `anti_affinity`.
    [[nodiscard]] std::span<const Membership> anti_affinity_memberships(TaskId task) const noexcept {
        const auto& p = profiles_[tasks.profile[index(task)]];
        return {memberships_.data() + p.first, memberships_.data() + p.affinity};
    }
    /// Those of kinds `affinity` and `network`.
    [[nodiscard]] std::span<const Membership> affinity_memberships(TaskId task) const noexcept {
        const auto& p = profiles_[tasks.profile[index(task)]];
        return {memberships_.data() + p.affinity, memberships_.data() + p.selection};
    }
    /// Those of kinds `anti_affinity`, `affinity` and `network`.
    [[nodiscard]] std::span<const Membership> limit_memberships(TaskId task) const noexcept {
        const auto& p = profiles_[tasks.profile[index(task)]];
        return {memberships_.data() + p.first, memberships_.data() + p.selection};
    }
    /// Those of kinds `avoid`, `near` and `spread`.
    [[nodiscard]] std::span<const Membership> selection_memberships(TaskId task) const noexcept {
        const auto& p = profiles_[tasks.profile[index(task)]];
        return {memberships_.data() + p.selection, memberships_.data() + p.end};
    }
    /// The labels that the task's node must have, as written: those that single out nodes, such as a host name, are not in
    /// `requirements`.
    [[nodiscard]] const Labels& node_selector(TaskId task) const noexcept {
        const auto* const set = node_set_of(task);
        return set != nullptr ? set->node_selector
                              : requirements[tasks.requirement[index(task)]].node_selector;
    }
    /// The terms of which the task's node must satisfy one, as written; empty = any node will do.
    [[nodiscard]] const std::vector<NodeTerm>& node_affinity(TaskId task) const noexcept {
        const auto* const set = node_set_of(task);
        return set != nullptr ? set->node_affinity
                              : requirements[tasks.requirement[index(task)]].node_affinity;
    }
    /// What the task wrote of groups: those that it lists, avoids, wants near and spreads.
    [[nodiscard]] const GroupTerms& terms(TaskId task) const noexcept {
        return group_terms[task_affinities[tasks.affinities[index(task)]].group_terms];
    }

    /// What `requirement_since` or `extras_since` says of an index.
    [[nodiscard]] static std::uint64_t since(const std::vector<std::uint64_t>& table,
                                             std::uint32_t at) noexcept {
        return at < table.size() ? table[at] : 0;
    }
    /// A number that no inventory of the process has had.
    [[nodiscard]] static std::uint64_t next_serial() noexcept;

    /// Validates and builds. Adds every problem to `problems`; where there is any, the result has all nodes and
    /// tasks with legal quantities, but no groups.
    /// Placements are not looked at: see `Cluster::build`.
    static std::shared_ptr<Inventory> build(const ClusterSpec& spec, Problems& problems);

    [[nodiscard]] static bool matches(const Requirement& requirement, const NodeClass& node_class);
    [[nodiscard]] static bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

  private:
    /// The selection of single nodes of a task, where it has one.
    [[nodiscard]] const NodeSet* node_set_of(TaskId task) const noexcept {
        const auto set = extras[tasks.extras[index(task)]].node_set;
        return set != Extras::no_node_set ? &node_sets[set] : nullptr;
    }

    friend struct detail::InventoryBuilder;
    friend class detail::GroupEditor;
    friend class detail::GroupSelection;
    friend class detail::DomainEditor;
    friend class detail::InventoryEditor;
    template <class Id, class Table>
    [[nodiscard]] static LiveIds<Id> living(const Table& table) noexcept {
        return {table.free.empty() ? nullptr : table.dead.data(), table.names.size(),
                table.names.size() - table.free.size()};
    }
    // Where a profile's memberships begin, where those from kind `affinity` on do, those from `avoid` on, and where they end.
    struct Profile {
        std::uint32_t first = 0, affinity = 0, selection = 0, end = 0;
    };
    std::vector<std::vector<DomainId>> domain_of_;        // [level][node]
    std::vector<std::vector<std::string>> domain_names_;  // [level][domain]
    std::vector<std::int8_t> network_depth_;              // [node]
    int network_levels_ = 0;                              // the largest of them
    EligibilityTable eligible_;
    std::vector<Membership> memberships_;  // of all profiles
    std::vector<Profile> profiles_;
};

/// The most GPUs that any node has; 0 without nodes. O(nodes).
[[nodiscard]] inline int largest_gpu_count(const Inventory& inventory) noexcept {
    const auto& counts = inventory.nodes.gpu_count;
    return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

}  // namespace gpusched
