// SPDX-License-Identifier: Apache-2.0
// ExpectedFill: the GPUs of a node that future tasks are expected to fill, and the loss that a placement
// causes.
#pragma once

#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace gpusched::fragmentation {

/// Options of ExpectedFill.
struct ExpectedFillOptions {
    /// Only the most popular shapes count, until they cover this percentage of the workload, 1 to 100. Values
    /// below 100 drop rare shapes of eight GPUs, although these request a large part of the capacity. Without
    /// them nothing keeps a node free for such tasks.
    int coverage_percent = 100;
    /// Differences below this number of thousandths of a GPU are ignored, so that nearly equal nodes fill up
    /// one by one; 1 to 1000.
    int grain_milli = 50;
    /// Weight of shapes with several GPUs relative to other shapes, in thousandths, 0 to 1000. It applies in
    /// addition to the factor for their number of GPUs. The default is below 1000 because a node without its
    /// last block of idle GPUs can still run all other shapes.
    int several_gpus_weight = 300;
};

/// Computes the number of GPUs of a node that future tasks are expected to fill, and the loss that a
/// placement causes.
///
/// FGD (Weng et al., ATC '23) considers the GPUs that the *next* task could use. It counts four idle GPUs as
/// usable even if the node has cores for only two. This measure fills the node instead: with copies of one
/// shape until CPU, memory or GPUs run out. The result is the average over the shapes of the workload,
/// weighted by popularity. The popularity of a shape with several GPUs is multiplied by their number:
///
///     fill(node) = sum over shapes m of p(m) x
///                  min(room(m), d(m) x floor(cpu / c(m)), d(m) x floor(memory / b(m)))
///
/// with d GPUs, c cores and b memory per task of the shape. For a shape with several GPUs, `room` is the
/// number of idle GPUs that its copies use. For all other shapes, `room` is the sum over the node's GPUs of
/// the part of the free share that is likely to be filled. That part is the mean of two fills: with random
/// shapes until none fits, and with copies of one shape.
///
/// The workload should include rare shapes: use `typical_workload` with `coverage_percent` 100.
///
/// Capacity is idle if a task without spot (LP) rights could take it. A workload without memory demands
/// ignores memory. All arithmetic is on integers, with popularities rounded to 1/32768, so results are
/// identical on all platforms. An object is built for one inventory. It is safe to read from several threads.
class ExpectedFill {
  public:
    /// @throws InvalidInput if the workload is empty, or the workload or an option is out of range
    ExpectedFill(const Workload& workload, const Inventory& inventory,
                 const ExpectedFillOptions& options = {});

    /// Returns the node's expected fill in GPUs. O(shapes).
    [[nodiscard]] double fill(const Cluster& cluster, NodeId node) const;

    /// The part of a node's measure that does not depend on the task.
    struct NodeState {
        std::int32_t cards = 0;  ///< sum over the node's GPUs of the value of their free share
        std::int32_t fill = 0;
        int idle = 0;
    };
    [[nodiscard]] NodeState state(const Cluster& cluster, NodeId node) const noexcept;

    /// The best GPUs for a task on a node, and their score.
    struct Choice {
        GpuMask gpus = 0;
        std::int64_t score = 0;  ///< minus the loss in grains, without the share that the task itself takes
        bool operator==(const Choice&) const = default;
    };
    /// Returns the GPUs on `node` that lose the least if `task` takes them. `candidates` (see
    /// `candidate_gpus`, feasibility.hpp) must hold at least as many GPUs as the task requests. Ties go to a
    /// GPU in use, then to the lowest index. O(shapes + GPUs of the node).
    [[nodiscard]] Choice best(const Cluster& cluster, TaskId task, NodeId node, GpuMask candidates) const {
        return best(cluster, task, node, candidates, state(cluster, node));
    }
    /// As above, with the node's `state`, which must be current.
    [[nodiscard]] Choice best(const Cluster& cluster, TaskId task, NodeId node, GpuMask candidates,
                              const NodeState& state) const;

  private:
    // All values are in parts of a GPU. A GPU has 2000 parts unless nodes have more than 16 GPUs, so that a
    // whole node fits 16 bits. Popularities are in parts of `all_weight`. Shapes of at most one GPU come
    // first. Both kinds are padded to full lanes with weight 0.
    static constexpr std::int32_t all_weight = 1 << 15;
    static constexpr std::size_t lanes = 8;

    // The limit that one resource sets for every shape: one row per amount at which a limit changes.
    struct Limits {
        std::vector<std::int64_t> amounts;  // ascending, the first is 0
        std::vector<std::int16_t> rows;     // [amount][shape]
        std::vector<std::uint32_t> first;   // [amount >> shift]: the first row to search
        int shift = 0;
        [[nodiscard]] const std::int16_t* at(std::int64_t amount, std::size_t shapes) const noexcept;
    };
    // The workload as seen by one GPU model.
    struct View {
        std::array<std::int16_t, whole_gpu_milli + 1> card{};  // value of a GPU by its free thousandths
        std::vector<std::int16_t> weights;                     // by shape; 0 = not accepted
    };
    [[nodiscard]] std::int32_t value(const View& view, const std::int16_t* cpu, const std::int16_t* memory,
                                     std::int32_t cards, int idle) const noexcept;
    [[nodiscard]] const View& view(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] Limits limits(const std::vector<std::int64_t>& demands) const;
    void fill_cards(View& view, const std::vector<std::int64_t>& weights) const;

    std::size_t shapes_ = 0, singles_ = 0;  // padded
    std::vector<std::int32_t> gpu_milli_;   // by shape; 0 = padding
    std::vector<std::int16_t> whole_;  // [idle GPUs][shape of several GPUs]: idle GPUs that its copies use
    Limits cpu_, memory_;
    std::vector<View> views_;
    std::vector<std::uint32_t> view_of_model_;  // by GpuModelId; the last entry is for nodes without a model
    std::int32_t most_gpus_ = 0;                // largest number of GPUs of a node, at least 16
    std::int32_t parts_ = 2000;                 // parts per GPU
    std::int64_t per_milli_ = 0;                // value of a thousandth of a GPU
    std::int32_t grain_ = 1;
};

}  // namespace gpusched::fragmentation
