// Forward declarations of the vocabulary types, for headers that only pass them on.
#pragma once

#include <cstdint>

namespace gpusched {

enum class NodeId : std::uint32_t;
enum class TaskId : std::uint32_t;
enum class JobId : std::uint32_t;
enum class GpuModelId : std::uint32_t;
enum class DomainId : std::uint32_t;
enum class Obstacle : std::uint8_t;
enum class PriorityClass : std::uint8_t;
enum class StopReason;

class Cluster;
class Inventory;
class Rng;
class Budget;
class Clock;
class ExecutorRef;
class InvalidInput;
class BackendError;

struct Context;
struct NodeSpec;
struct TaskSpec;
struct JobSpec;
struct ClusterSpec;
struct Trace;
struct Move;
struct Placement;
struct Bound;
struct Plan;
struct PlanSpec;

}  // namespace gpusched
