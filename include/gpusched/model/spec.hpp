// The cluster as data: nodes, tasks and jobs with names, as files and callers describe them.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/model/hardware.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace GPUSCHED_NAMESPACE {

using Labels = std::map<std::string, std::string>;

/// A topology level in a constraint: `node_level`, or the 0-based index into `NodeSpec::network`. At a level that a
/// node's network does not reach, the node is a domain of its own, so a level that no node has is legal (a snapshot may
/// know no positions) and among the warnings.
using Level = int;
inline constexpr Level node_level = -1;

/// The rule of a field that holds a level, in a table of fields (core/fields.hpp).
struct IsLevel {};

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

/// As in Kubernetes: `op` is "Equal" (default) or "Exists"; an empty key with "Exists" tolerates everything; an
/// empty effect matches all effects. "Exists" goes without a value.
struct Toleration {
    std::string key{}, op = "Equal", value{}, effect{};
    bool operator==(const Toleration&) const = default;
};

/// At most `limit` members of `group` in one domain of `level`. The members are the tasks that list the group;
/// the smallest limit among those present in a domain holds for all of them.
struct AntiAffinity {
    std::string group{};
    Level level = node_level;
    int limit = 1;
    bool operator==(const AntiAffinity&) const = default;
};

/// All members of `group` (the tasks that list it) in one domain of `level`.
struct Affinity {
    std::string group{};
    Level level = node_level;
    bool operator==(const Affinity&) const = default;
};

enum class NetworkMode : std::uint8_t { required, preferred };
constexpr auto enum_names(NetworkMode) {
    return name_table<NetworkMode>({
        {NetworkMode::required, "required"},
        {NetworkMode::preferred, "preferred"},
    });
}

/// All members of the task's job in one domain of `level`: a must, or a wish.
struct NetworkAffinity {
    Level level = 0;
    NetworkMode mode = NetworkMode::required;
    bool operator==(const NetworkAffinity&) const = default;
};

enum class HardwareLevel : std::uint8_t { numa, socket };
constexpr auto enum_names(HardwareLevel) {
    return name_table<HardwareLevel>({
        {HardwareLevel::numa, "numa"},
        {HardwareLevel::socket, "socket"},
    });
}

enum class HardwareQos : std::uint8_t { guaranteed, best_effort };
constexpr auto enum_names(HardwareQos) {
    return name_table<HardwareQos>({
        {HardwareQos::guaranteed, "guaranteed"},
        {HardwareQos::best_effort, "best_effort"},
    });
}

/// The task's GPUs within one NUMA node or one socket: a must, or a wish.
struct HardwareAffinity {
    HardwareLevel level = HardwareLevel::numa;
    HardwareQos qos = HardwareQos::best_effort;
    bool operator==(const HardwareAffinity&) const = default;
};

/// A machine. Only `name` and the capacities are required.
struct NodeSpec {
    std::string name{};
    std::string gpu_model{};     ///< empty = none
    std::int64_t gpu_count = 0;  ///< 0 .. 16
    std::int64_t cpu_milli = 0;  ///< thousandths of a core
    std::int64_t memory_mib = 0;
    std::optional<std::int64_t> gpu_memory_mib{};  ///< per GPU; absent = not modelled on this node
    bool schedulable = true;                       ///< false = cordoned: keeps its tasks, receives none
    std::vector<std::string> network{};            ///< domains from the root down; empty = position unknown
    Labels labels{};
    std::vector<Taint> taints{};
    std::optional<Hardware> hardware{};
    std::vector<int> failed_gpus{};
    bool operator==(const NodeSpec&) const = default;
};

/// A pod. Only `name` and the requests are required.
struct TaskSpec {
    std::string name{};
    std::string job{};           ///< empty = on its own
    std::int64_t cpu_milli = 0;  ///< thousandths of a core
    std::int64_t memory_mib = 0;
    std::int64_t gpu_count = 0;             ///< whole GPUs, or 1 with a share below 1000
    std::int64_t gpu_share_milli = 1000;    ///< thousandths of one GPU, 1 .. 1000
    std::int64_t gpu_memory_mib = 0;        ///< per GPU it uses
    std::vector<std::string> gpu_models{};  ///< acceptable models; empty = any; binds tasks without GPUs too
    std::int64_t priority = 0;
    PriorityClass priority_class = PriorityClass::other;
    bool locked = false;                ///< never moved, never preempted
    std::optional<bool> preemptible{};  ///< absent = true for LP, else false
    bool standby = false;    ///< an HP task that lent its GPUs and CPU, but keeps its claim on them
    bool daemon = false;     ///< uses resources, never moves, does not make a node occupied
    Labels node_selector{};  ///< labels the node must have
    std::vector<Toleration> tolerations{};
    std::vector<AntiAffinity> anti_affinity{};
    std::vector<Affinity> affinity{};
    std::optional<NetworkAffinity> network_affinity{};
    std::vector<HardwareAffinity> hardware_affinity{};
    bool cpu_local = false;  ///< its cores must come from the NUMA nodes of its GPUs
    /// Absent = spread evenly over the NUMA nodes of its GPUs. Each once; of a placed `cpu_local` task they exist on
    /// its node, and a core that it uses wholly (cpu_milli covers all its cores) is so used by no other.
    std::optional<std::vector<int>> cores{};
    std::int64_t move_cost = 1;   ///< weight of one move in a migration budget, >= 0
    std::int64_t start_time = 0;  ///< seconds
    /// Absent = start_time. Before start_time for a task that started again after an eviction.
    std::optional<std::int64_t> last_checkpoint_time{};
    std::int64_t checkpoint_interval = 0;  ///< seconds; 0 = never
    std::int64_t eviction_count = 0;
    std::optional<std::string> node{};  ///< where it runs; absent = pending
    std::vector<int> gpus{};            ///< which GPUs it holds there
    bool operator==(const TaskSpec&) const = default;
};

/// A workload: its tasks are a gang.
struct JobSpec {
    std::string name{};
    std::int64_t min_members = 0;  ///< gang size that must run
    std::optional<std::int64_t>
        max_disrupted{};  ///< most members that may move in one wave; absent = any number
    bool operator==(const JobSpec&) const = default;
};

/// A whole snapshot as data, in input order.
struct ClusterSpec {
    std::int64_t now = 0;  ///< seconds
    std::vector<NodeSpec> nodes{};
    std::vector<TaskSpec> tasks{};
    std::vector<JobSpec> jobs{};  ///< jobs that tasks name but this list does not are created with defaults
    bool operator==(const ClusterSpec&) const = default;
};

}  // namespace GPUSCHED_NAMESPACE
