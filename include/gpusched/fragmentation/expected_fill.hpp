// SPDX-License-Identifier: Apache-2.0
// Expected fill: how many GPUs of a node the tasks to come are expected to fill, and what a placement costs of them.
#pragma once

#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace gpusched::fragmentation {

struct ExpectedFillOptions {
    /// Only the most popular shapes count, so many that they cover that many per cent of the workload; 1 .. 100. Rare shapes of
    /// eight GPUs ask for much of the capacity: without them nothing keeps a node free for these.
    int coverage_percent = 100;
    /// Differences below so many thousandths of a GPU do not count, so that near-equal nodes fill up one by one;
    /// 1 .. 1000.
    int grain_milli = 50;
    /// How much shapes of several GPUs count against the others, in thousandths, 0 .. 1000, on top of counting once for each GPU. Less
    /// than all, because a node that has lost its last block of idle GPUs is still of use to all others.
    int several_gpus_weight = 300;
};

/// How many GPUs of a node the tasks to come are expected to fill, and what a placement costs of them.
///
/// FGD (Weng et al., ATC '23) asks what the *next* task could use, and counts four idle GPUs beside cores for two as
/// usable. Here the node is filled up: with tasks of one shape after the other until CPU, memory or GPUs run out, and
/// averaged over the shapes of the workload by popularity, in which a shape of several GPUs counts once for each of them:
///
///     fill(node) = sum over shapes m of p(m) x min(room(m), d(m) x floor(cpu / c(m)), d(m) x floor(memory / b(m)))
///
/// with GPUs d, cores c and memory b of the shape. `room` of shapes of several GPUs is what their copies take of the
/// idle GPUs. For all others it is the sum over the GPUs of what is likely to be filled of what is left of one: the
/// mean of two fills, one with random shapes that still fit until none does, the other with copies of one shape.
///
/// The workload should hold rare shapes as well: `typical_workload` with `coverage_percent` 100.
///
/// Idle is what a task without spot (LP) rights could take. A workload without memory demands ignores memory.
/// Whole numbers throughout, popularities rounded to 1/32768: the same bits everywhere. Built for one inventory; safe to
/// read from several threads.
class ExpectedFill {
  public:
    /// @throws InvalidInput when the workload is empty or out of range, or an option is
    ExpectedFill(const Workload& workload, const Inventory& inventory,
                 const ExpectedFillOptions& options = {});

    /// The node's expected fill in GPUs. O(shapes).
    [[nodiscard]] double fill(const Cluster& cluster, NodeId node) const;

    /// What the measure needs of a node, whatever the task.
    struct NodeState {
        std::int32_t cards = 0;  ///< sum of the values of what is left of its GPUs
        std::int32_t fill = 0;
        int idle = 0;
    };
    [[nodiscard]] NodeState state(const Cluster& cluster, NodeId node) const noexcept;

    struct Choice {
        GpuMask gpus = 0;
        std::int64_t score = 0;  ///< minus what is lost beyond what the task itself takes, in grains
        bool operator==(const Choice&) const = default;
    };
    /// The GPUs for `task` on `node` that cost least, among `candidates` (see `candidate_gpus`, feasibility.hpp), which
    /// must hold as many as it asks for. Ties go to a GPU in use, then to the lowest. O(shapes + GPUs of the node).
    [[nodiscard]] Choice best(const Cluster& cluster, TaskId task, NodeId node, GpuMask candidates) const {
        return best(cluster, task, node, candidates, state(cluster, node));
    }
    /// The same with the node's `state`, which must be current.
    [[nodiscard]] Choice best(const Cluster& cluster, TaskId task, NodeId node, GpuMask candidates,
                              const NodeState& state) const;

  private:
    // All values are in parts of a GPU, 2000 unless nodes have more than 16 GPUs, so that the whole node fits 16 bits;
    // popularities are in parts of `all_weight`. Shapes of at most one GPU come first; both kinds are padded to full lanes with weight 0.
    static constexpr std::int32_t all_weight = 1 << 15;
    static constexpr std::size_t lanes = 8;

    // By how much one resource limits every shape: one row per amount at which that changes.
    struct Limits {
        std::vector<std::int64_t> amounts;  // ascending, the first is 0
        std::vector<std::int16_t> rows;     // [amount][shape]
        std::vector<std::uint32_t> first;   // [amount >> shift]: the row to start looking from
        int shift = 0;
        [[nodiscard]] const std::int16_t* at(std::int64_t amount, std::size_t shapes) const noexcept;
    };
    // What the workload looks like from a GPU model.
    struct View {
        std::array<std::int16_t, whole_gpu_milli + 1> card{};  // value of a GPU by what is left of it
        std::vector<std::int16_t> weights;                     // by shape; 0 = not accepted
    };
    [[nodiscard]] std::int32_t value(const View& view, const std::int16_t* cpu, const std::int16_t* memory,
                                     std::int32_t cards, int idle) const noexcept;
    [[nodiscard]] const View& view(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] Limits limits(const std::vector<std::int64_t>& demands) const;
    void fill_cards(View& view, const std::vector<std::int64_t>& weights) const;

    std::size_t shapes_ = 0, singles_ = 0;  // padded
    std::vector<std::int32_t> gpu_milli_;   // by shape; 0 = padding
    std::vector<std::int16_t> whole_;  // [idle GPUs][shape of several GPUs]: what its copies take of them
    Limits cpu_, memory_;
    std::vector<View> views_;
    std::vector<std::uint32_t> view_of_model_;  // by GpuModelId; the last entry is for nodes without a model
    std::int32_t most_gpus_ = 0;                // of any node, at least 16
    std::int32_t parts_ = 2000;                 // of a GPU
    std::int64_t per_milli_ = 0;                // value of a thousandth of a GPU
    std::int32_t grain_ = 1;
};

}  // namespace gpusched::fragmentation
