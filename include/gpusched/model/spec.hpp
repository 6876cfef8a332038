// SPDX-License-Identifier: Apache-2.0
// The cluster as data: nodes, tasks, jobs and budgets with names, as files and callers describe them.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/hardware.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched {

using Labels = std::map<std::string, std::string>;

/// Amounts of named resources, such as `pods`, `ephemeral-storage` or `rdma/hca`, each in the unit of its
/// name.
using Resources = std::map<std::string, std::int64_t>;

/// A topology level in a constraint: `node_level`, or a 0-based index into `NodeSpec::network`. At a level
/// below its known position a node is its own domain. So a level that no node has is legal, but causes a
/// warning.
///
/// From `first_label_level` on, levels are label keys: `first_label_level + k` is
/// `ClusterSpec::label_levels[k]`. Nodes with the same value are one domain; a node without the label is in
/// none. Not for `network_affinity`.
using Level = int;
inline constexpr Level node_level = -1;
inline constexpr Level first_label_level = 16;

/// The mark of a field with a level (core/fields.hpp): `node_level` or an index into the network.
struct IsLevel {};
/// The mark of a field with such a level or a label key.
struct IsGroupLevel {};

/// HP = high priority, LP = low priority (spot).
enum class PriorityClass : std::uint8_t { other, hp, lp };
constexpr auto enum_names(PriorityClass) {
    return name_table<PriorityClass>({
        {PriorityClass::hp, "HP"},
        {PriorityClass::lp, "LP"},
        {PriorityClass::other, "other"},
    });
}

/// As in Kubernetes; `NoSchedule` and `NoExecute` keep new tasks away unless tolerated.
struct Taint {
    std::string key{}, value{}, effect{};
    bool operator==(const Taint&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Taint>, F&& field) {
    field("key", &Taint::key, Required{});
    field("value", &Taint::value);
    field("effect", &Taint::effect, Required{});
}

/// As in Kubernetes: `op` is "Equal" (default) or "Exists". "Exists" has no value, and with an empty key it
/// tolerates every taint. An empty effect matches all effects.
struct Toleration {
    std::string key{}, op = "Equal", value{}, effect{};
    bool operator==(const Toleration&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Toleration>, F&& field) {
    field("key", &Toleration::key);
    field("operator", &Toleration::op);
    field("value", &Toleration::value);
    field("effect", &Toleration::effect);
}

/// At most `limit` members of `group` in one domain of `level`. The members are the tasks that list the
/// group. The smallest limit of the members in a domain holds for all of them. There is no limit on a node
/// without the label of the level.
struct AntiAffinity {
    std::string group{};
    Level level = node_level;
    int limit = 1;
    bool operator==(const AntiAffinity&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<AntiAffinity>, F&& field) {
    field("group", &AntiAffinity::group, Required{});
    field("level", &AntiAffinity::level, IsGroupLevel{});
    field("limit", &AntiAffinity::limit, within(1, 1'000'000'000));
}

/// All members of `group` (the tasks that list it) in one domain of `level`. No member is placed on a node
/// without the label of the level; members that already run on such a node do not count.
struct Affinity {
    std::string group{};
    Level level = node_level;
    bool operator==(const Affinity&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Affinity>, F&& field) {
    field("group", &Affinity::group, Required{});
    field("level", &Affinity::level, IsGroupLevel{});
}

/// No member of `group` in the task's domain of `level`, and no task that avoids the group in the domain of a
/// member (pod anti-affinity in Kubernetes). The members are the tasks that list the group in
/// `TaskSpec::groups`. The constraint does not apply to a node without the label of the level.
struct Avoid {
    std::string group{};
    Level level = node_level;
    bool operator==(const Avoid&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Avoid>, F&& field) {
    field("group", &Avoid::group, Required{});
    field("level", &Avoid::level, IsGroupLevel{});
}

/// The task's domain of `level` holds a task that is a member of all groups in the task's list `near` (pod
/// affinity in Kubernetes). If no such task runs in any domain, and the task itself is a member of all these
/// groups, every node with the labels is allowed.
struct Near {
    std::string group{};
    Level level = node_level;
    bool operator==(const Near&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Near>, F&& field) {
    field("group", &Near::group, Required{});
    field("level", &Near::level, IsGroupLevel{});
}

/// The task's domain of `level` holds at most `max_skew` more members of `group` than the domain with the
/// fewest members (topology spread with DoNotSchedule in Kubernetes). The task itself counts if it is a
/// member. Only eligible nodes count: nodes with the labels of all levels over which the task spreads, and
/// that satisfy the two policies. If there are fewer eligible domains than `min_domains`, the fewest members
/// are 0.
struct Spread {
    std::string group{};
    Level level = node_level;
    std::int64_t max_skew = 1;        ///< 1 to 10^9
    std::int64_t min_domains = 1;     ///< 1 to 10^9
    bool honor_node_affinity = true;  ///< only nodes that satisfy the task's selector and node affinity
    bool honor_taints =
        false;  ///< only nodes without NoSchedule and NoExecute taints that it does not tolerate
    bool operator==(const Spread&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Spread>, F&& field) {
    field("group", &Spread::group, Required{});
    field("level", &Spread::level, IsGroupLevel{});
    field("max_skew", &Spread::max_skew, within(1, 1'000'000'000));
    field("min_domains", &Spread::min_domains, within(1, 1'000'000'000));
    field("honor_node_affinity", &Spread::honor_node_affinity);
    field("honor_taints", &Spread::honor_taints);
}

enum class NetworkMode : std::uint8_t { required, preferred };

/// All members of the task's job in one domain of `level`, required or preferred.
struct NetworkAffinity {
    Level level = 0;
    NetworkMode mode = NetworkMode::required;
    bool operator==(const NetworkAffinity&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<NetworkAffinity>, F&& field) {
    field("level", &NetworkAffinity::level, Required{}, IsLevel{});
    field("mode", &NetworkAffinity::mode);
}

enum class HardwareLevel : std::uint8_t { numa, socket };

enum class HardwareQos : std::uint8_t { guaranteed, best_effort };

/// The task's GPUs within one NUMA node or one socket, guaranteed or best effort.
struct HardwareAffinity {
    HardwareLevel level = HardwareLevel::numa;
    HardwareQos qos = HardwareQos::best_effort;
    bool operator==(const HardwareAffinity&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<HardwareAffinity>, F&& field) {
    field("level", &HardwareAffinity::level, Required{});
    field("qos", &HardwareAffinity::qos);
}

/// Devices of one class besides the whole GPUs of a node: MIG instances of a card, replicas of a shared card,
/// other accelerators. They are numbered after the whole GPUs, in the order of the node's data. A node has at
/// most 64 GPUs and devices.
struct DeviceSpec {
    std::string device_class{};
    std::int64_t count = 1;  ///< 1 to 64
    /// The card of each device, -1 = unknown; empty = all unknown. Not the index of a whole GPU: a card is
    /// whole or split.
    std::vector<int> parents{};
    std::int64_t memory_mib = 0;  ///< of each; 0 = not modelled
    bool operator==(const DeviceSpec&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<DeviceSpec>, F&& field) {
    field("device_class", &DeviceSpec::device_class, Required{});
    field("count", &DeviceSpec::count, within(1, max_gpus_per_node));
    field("parents", &DeviceSpec::parents, UnlessDefault{}, at_least(-1));
    field("memory_mib", &DeviceSpec::memory_mib, UnlessDefault{}, any_amount);
}

enum class MatchOperator : std::uint8_t { in, not_in, exists, does_not_exist, gt, lt };
constexpr auto enum_names(MatchOperator) {
    return name_table<MatchOperator>({
        {MatchOperator::in, "In"},
        {MatchOperator::not_in, "NotIn"},
        {MatchOperator::exists, "Exists"},
        {MatchOperator::does_not_exist, "DoesNotExist"},
        {MatchOperator::gt, "Gt"},
        {MatchOperator::lt, "Lt"},
    });
}

/// One condition on a node's labels, as in Kubernetes. `NotIn` and `DoesNotExist` hold if the label is
/// missing. `Gt` and `Lt` compare the label, an integer, with the single value.
struct NodeMatch {
    std::string key{};
    MatchOperator op = MatchOperator::in;
    std::vector<std::string> values{};
    bool operator==(const NodeMatch&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<NodeMatch>, F&& field) {
    field("key", &NodeMatch::key, Required{});
    field("operator", &NodeMatch::op, Required{});
    field("values", &NodeMatch::values, UnlessDefault{});
}

/// Conditions that must all hold. A term without conditions never holds, as in Kubernetes.
struct NodeTerm {
    std::vector<NodeMatch> match_expressions{};  ///< on labels
    std::vector<NodeMatch> match_fields{};       ///< on `metadata.name`, the node's name; `In` or `NotIn`
    bool operator==(const NodeTerm&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<NodeTerm>, F&& field) {
    field("match_expressions", &NodeTerm::match_expressions, UnlessDefault{});
    field("match_fields", &NodeTerm::match_fields, UnlessDefault{});
}

/// How a task can move. Independent of eviction (`TaskSpec::preemptible`).
enum class Mobility : std::uint8_t {
    copy,     ///< make before break: the new copy runs before the old one stops
    restart,  ///< break before make: it is down between the old and the new node
    suspend,  ///< it is suspended on the old node and resumed on the new one; down in between
    none,     ///< it never moves
};

/// What a pending task waits for if it does not wait for room on a node.
enum class WaitingFor : std::uint8_t {
    gate,             ///< a scheduling gate
    volume_claim,     ///< a claim that is missing, or has no volume yet
    quota,            ///< the quota of its queue
    limit,            ///< a limit of its account, QOS or partition, or licenses
    dependency,       ///< another job
    begin_time,       ///< its own begin time
    held,             ///< a release by a person
    reservation,      ///< the start of its reservation
    gang_incomplete,  ///< further members of its gang
    other_scheduler,  ///< a scheduler that does not place tasks by this snapshot
    other,
};

/// The reason why a pending task or job does not wait for room.
struct WaitingReason {
    WaitingFor waits_for = WaitingFor::other;
    std::string detail{};  ///< in words, such as the names of the gates
    bool operator==(const WaitingReason&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<WaitingReason>, F&& field) {
    field("waits_for", &WaitingReason::waits_for, Required{});
    field("detail", &WaitingReason::detail);
}

/// A machine. Only `name` and the capacities are required.
struct NodeSpec {
    std::string name{};
    std::string gpu_model{};     ///< empty = none
    std::int64_t gpu_count = 0;  ///< 0 to 64
    std::int64_t cpu_milli = 0;  ///< thousandths of a core
    std::int64_t memory_mib = 0;
    std::optional<std::int64_t> gpu_memory_mib{};  ///< per GPU; absent = not modelled on this node
    bool schedulable = true;                       ///< false = cordoned, see docs/io.md
    std::vector<std::string> network{};            ///< domains from the root down; empty = position unknown
    Labels labels{};
    std::vector<Taint> taints{};
    std::optional<Hardware> hardware{};
    std::vector<int> failed_gpus{};     ///< whole GPUs and other devices
    Resources resources{};              ///< a resource that is not listed is 0
    std::vector<DeviceSpec> devices{};  ///< devices besides its whole GPUs
    std::int64_t eviction_count = 0;    ///< number of tasks evicted from the node so far
    bool operator==(const NodeSpec&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<NodeSpec>, F&& field) {
    field("name", &NodeSpec::name, Required{});
    field("gpu_model", &NodeSpec::gpu_model, NullIsEmpty{});
    field("gpu_count", &NodeSpec::gpu_count, Required{}, within(0, max_gpus_per_node), NewerAbove{16, 2});
    field("cpu_milli", &NodeSpec::cpu_milli, Required{}, any_amount);
    field("memory_mib", &NodeSpec::memory_mib, Required{}, any_amount);
    field("network", &NodeSpec::network);
    field("labels", &NodeSpec::labels);
    field("taints", &NodeSpec::taints);
    field("schedulable", &NodeSpec::schedulable);
    field("hardware", &NodeSpec::hardware);
    field("gpu_memory_mib", &NodeSpec::gpu_memory_mib, any_amount);
    field("failed_gpus", &NodeSpec::failed_gpus);
    field("resources", &NodeSpec::resources, UnlessDefault{}, Since{2});
    field("devices", &NodeSpec::devices, UnlessDefault{}, Since{2});
    field("eviction_count", &NodeSpec::eviction_count, UnlessDefault{}, Since{2}, any_amount);
}

/// A pod. Only `name` and the requests are required.
struct TaskSpec {
    std::string name{};
    std::string job{};           ///< empty = on its own
    std::int64_t cpu_milli = 0;  ///< thousandths of a core
    std::int64_t memory_mib = 0;
    std::int64_t gpu_count = 0;             ///< whole GPUs, or 1 with a share below 1000
    std::int64_t gpu_share_milli = 1000;    ///< thousandths of one GPU, 1 to 1000
    std::int64_t gpu_memory_mib = 0;        ///< per GPU that it uses
    std::vector<std::string> gpu_models{};  ///< acceptable models; empty = any; also for tasks without GPUs
    std::int64_t priority = 0;
    PriorityClass priority_class = PriorityClass::other;
    bool locked = false;                ///< never moved, never preempted
    std::optional<bool> preemptible{};  ///< absent = true for LP, else false
    Mobility how = Mobility::copy;      ///< how it can move
    bool standby = false;    ///< an HP task that lent its GPUs and CPU, but keeps its claim on them
    bool daemon = false;     ///< uses resources, never moves, does not make a node occupied
    Labels node_selector{};  ///< labels the node must have
    std::vector<Toleration> tolerations{};
    std::vector<AntiAffinity> anti_affinity{};
    std::vector<Affinity> affinity{};
    std::optional<NetworkAffinity> network_affinity{};
    std::vector<HardwareAffinity> hardware_affinity{};
    bool cpu_local = false;  ///< its cores must come from the NUMA nodes of its GPUs
    /// Absent = spread evenly over the NUMA nodes of its GPUs. No core may be repeated. The cores of a placed
    /// `cpu_local` task exist on its node. If its cpu_milli covers all its cores, no other such task may use
    /// them.
    std::optional<std::vector<int>> cores{};
    std::int64_t move_cost = 1;   ///< weight of one move in a migration budget, >= 0
    std::int64_t start_time = 0;  ///< seconds; of a pending task, the time since when it waits
    /// Absent = start_time. Earlier than start_time for a task that was restarted after an eviction.
    std::optional<std::int64_t> last_checkpoint_time{};
    std::int64_t checkpoint_interval = 0;  ///< seconds; 0 = never
    std::int64_t eviction_count = 0;
    std::optional<std::string> node{};  ///< its node; absent = pending
    std::vector<int> gpus{};            ///< the GPUs and other devices that it holds
    /// True if `gpus` is unknown. After the tasks with known GPUs, each of these tasks, by name, gets the
    /// lowest healthy GPUs with enough free capacity, then unused failed ones. It also gets the lowest free
    /// devices of the first accepted class that has enough.
    bool assign_gpus = false;
    Resources resources{};
    std::int64_t device_count = 0;              ///< devices of one class, in addition to `gpu_count`
    std::vector<std::string> device_classes{};  ///< acceptable classes, in order of preference
    std::vector<NodeTerm> node_affinity{};      ///< one of these terms must hold; empty = any node
    std::vector<std::string> groups{};  ///< groups of which it is a member, for avoid, near and spread
    std::vector<Avoid> avoid{};
    std::vector<Near> near{};
    std::vector<Spread> spread{};
    std::string subgroup{};  ///< of its job; empty = none
    /// Kind of its controller, such as "Deployment"; empty = it has none; absent = unknown.
    std::optional<std::string> owner_kind{};
    /// Absent = while pending, it waits for room. Ignored for a running task.
    std::optional<WaitingReason> waiting{};
    bool terminating = false;  ///< it runs, but is about to leave. Ignored for a pending task
    /// A clause for answers about a pending task, such as the start that Slurm plans. Ignored while it runs.
    std::string note{};
    bool operator==(const TaskSpec&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<TaskSpec>, F&& field) {
    field("name", &TaskSpec::name, Required{});
    field("job", &TaskSpec::job, NullIsEmpty{});
    field("cpu_milli", &TaskSpec::cpu_milli, Required{}, any_amount);
    field("memory_mib", &TaskSpec::memory_mib, Required{}, any_amount);
    field("gpu_count", &TaskSpec::gpu_count, Required{}, within(0, max_gpus_per_node), NewerAbove{16, 2});
    field("gpu_share_milli", &TaskSpec::gpu_share_milli, within(1, whole_gpu_milli));
    field("gpu_models", &TaskSpec::gpu_models);
    field("priority", &TaskSpec::priority, any_signed_amount);
    field("priority_class", &TaskSpec::priority_class);
    field("locked", &TaskSpec::locked);
    field("preemptible", &TaskSpec::preemptible);
    field("how", &TaskSpec::how, UnlessDefault{}, Since{2});
    field("node", &TaskSpec::node, NullIfAbsent{});
    field("gpus", &TaskSpec::gpus, LeftOutIf<TaskSpec>{&TaskSpec::assign_gpus, 2});
    field("node_selector", &TaskSpec::node_selector);
    field("tolerations", &TaskSpec::tolerations);
    field("anti_affinity", &TaskSpec::anti_affinity);
    field("affinity", &TaskSpec::affinity);
    field("network_affinity", &TaskSpec::network_affinity);
    field("hardware_affinity", &TaskSpec::hardware_affinity, OneOrList{});
    field("cpu_local", &TaskSpec::cpu_local);
    field("cores", &TaskSpec::cores, NullIfAbsent{});
    field("gpu_memory_mib", &TaskSpec::gpu_memory_mib, any_amount);
    field("move_cost", &TaskSpec::move_cost, any_amount);
    field("daemon", &TaskSpec::daemon);
    field("start_time", &TaskSpec::start_time, any_signed_amount);
    field("last_checkpoint_time", &TaskSpec::last_checkpoint_time, any_signed_amount);
    field("checkpoint_interval", &TaskSpec::checkpoint_interval, any_amount);
    field("eviction_count", &TaskSpec::eviction_count, any_amount);
    field("standby", &TaskSpec::standby);
    field("resources", &TaskSpec::resources, UnlessDefault{}, Since{2});
    field("device_count", &TaskSpec::device_count, UnlessDefault{}, Since{2}, within(0, max_gpus_per_node));
    field("device_classes", &TaskSpec::device_classes, UnlessDefault{}, Since{2});
    field("node_affinity", &TaskSpec::node_affinity, UnlessDefault{}, Since{2});
    field("groups", &TaskSpec::groups, UnlessDefault{}, Since{2});
    field("avoid", &TaskSpec::avoid, UnlessDefault{}, Since{2});
    field("near", &TaskSpec::near, UnlessDefault{}, Since{2});
    field("spread", &TaskSpec::spread, UnlessDefault{}, Since{2});
    field("subgroup", &TaskSpec::subgroup, UnlessDefault{}, Since{2});
    // Not part of the format yet: other readers skip keys that begin with x-.
    field("x-owner-kind", &TaskSpec::owner_kind);
    field("x-waiting", &TaskSpec::waiting);
    field("x-terminating", &TaskSpec::terminating, UnlessDefault{});
    field("x-answer-note", &TaskSpec::note, UnlessDefault{});
}

/// A role of a gang: the tasks of a job that name it, and the number of them that must run.
struct SubgroupSpec {
    std::string name{};
    std::int64_t min_members = 0;
    bool operator==(const SubgroupSpec&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SubgroupSpec>, F&& field) {
    field("name", &SubgroupSpec::name, Required{});
    field("min_members", &SubgroupSpec::min_members, any_amount);
}

/// A workload: its tasks are a gang.
struct JobSpec {
    std::string name{};
    /// Number of tasks that must run; 0 = not specified. At least the sum of min_members of its subgroups.
    std::int64_t min_members = 0;
    /// Largest number of members that may move in one wave; absent = any number.
    std::optional<std::int64_t> max_disrupted{};
    std::vector<SubgroupSpec> subgroups{};
    /// Absent = its pending tasks wait for room, unless they say otherwise.
    std::optional<WaitingReason> waiting{};
    bool operator==(const JobSpec&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<JobSpec>, F&& field) {
    field("name", &JobSpec::name, Required{});
    field("min_members", &JobSpec::min_members, any_amount);
    field("max_disrupted", &JobSpec::max_disrupted, any_amount);
    field("subgroups", &JobSpec::subgroups, UnlessDefault{}, Since{2});
    field("x-waiting", &JobSpec::waiting);
}

/// A disruption budget: the number of tasks of a set that may be down at once. A task is down from its
/// eviction, or from the start of a move by restart, until it runs again. Moves by copy do not use the
/// budget.
struct BudgetSpec {
    std::string name{};
    std::vector<std::string> tasks{};   ///< names of tasks
    std::vector<std::string> groups{};  ///< all tasks that list one of these groups also count
    std::int64_t allowed_down = 0;      ///< number of additional tasks that may be down
    bool broken = false;  ///< too many are down already: none is allowed, regardless of `allowed_down`
    bool operator==(const BudgetSpec&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<BudgetSpec>, F&& field) {
    field("name", &BudgetSpec::name, Required{});
    field("tasks", &BudgetSpec::tasks, UnlessDefault{});
    field("groups", &BudgetSpec::groups, UnlessDefault{});
    field("allowed_down", &BudgetSpec::allowed_down, Required{}, any_amount);
    field("broken", &BudgetSpec::broken, UnlessDefault{});
}

/// A whole snapshot as data, in any order.
struct ClusterSpec {
    std::int64_t now = 0;  ///< seconds
    std::vector<NodeSpec> nodes{};
    std::vector<TaskSpec> tasks{};
    std::vector<JobSpec> jobs{};  ///< other jobs that tasks name are created with defaults
    std::vector<BudgetSpec> budgets{};
    std::vector<std::string> label_levels{};  ///< label keys that are levels, from `first_label_level` on
    bool operator==(const ClusterSpec&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ClusterSpec>, F&& field) {
    field("now", &ClusterSpec::now, any_signed_amount);
    field("label_levels", &ClusterSpec::label_levels, UnlessDefault{}, Since{2});
    field("nodes", &ClusterSpec::nodes, Required{});
    field("tasks", &ClusterSpec::tasks);
    field("jobs", &ClusterSpec::jobs);
    field("budgets", &ClusterSpec::budgets, UnlessDefault{}, Since{2});
}

/// One task of a trace. Its `TaskSpec` is pending.
struct TraceTask {
    TaskSpec task{};
    std::int64_t creation_time = 0;               ///< seconds
    std::optional<std::int64_t> deletion_time{};  ///< seconds; absent = runs until after the trace ends
    std::optional<std::int64_t>
        scheduled_time{};  ///< seconds, of the recorded placement; absent = never placed
    bool operator==(const TraceTask&) const = default;
};

/// Tasks over time on initially empty nodes, recorded or generated, in the order of the source. The input of
/// replays.
struct Trace {
    std::vector<NodeSpec> nodes{};
    std::vector<TraceTask> tasks{};
    bool operator==(const Trace&) const = default;
};

}  // namespace gpusched
