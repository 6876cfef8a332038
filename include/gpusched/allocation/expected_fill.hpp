// Expected fill: place tasks where they cost the least of what the tasks to come could still use.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gpusched::allocation {

struct ExpectedFillOptions {
    /// Differences below so many thousandths of a GPU do not count, so that near-equal nodes fill up one by one;
    /// 1 .. 1000.
    int grain_milli = 50;
    /// How much shapes of several GPUs count against the others, in thousandths; 0 .. 10,000. They are rare, but need
    /// what is rarest.
    int several_gpus_weight = 300;
};

/// How many GPUs of a node the tasks to come are expected to fill, and what a placement costs of them.
///
/// FGD (Weng et al., ATC '23) asks what the *next* task could use, and counts four idle GPUs beside cores for two as
/// usable. Here the node is filled up: with tasks of one shape after the other until CPU, memory or GPUs run out, and
/// averaged over the shapes of the workload by popularity:
///
///     fill(node) = sum over shapes m of p(m) x min(room(m), d(m) x floor(cpu / c(m)), d(m) x floor(memory / b(m)))
///
/// with GPUs d, cores c and memory b of the shape. `room` of shapes of several GPUs is what their copies take of the
/// idle GPUs. For all others it is the sum over the GPUs of what is likely to be filled of what is left of one: the
/// mean of two fills, one with random shapes that still fit until none does, the other with copies of one shape.
///
/// Idle is what a task without spot (LP) rights could take. A workload without memory demands ignores memory.
/// Whole numbers throughout: exact, the same bits everywhere. Built for one inventory; safe to read from several threads.
class ExpectedFill {
  public:
    /// @throws InvalidInput when the workload is empty or out of range, or an option is
    ExpectedFill(const fragmentation::Workload& workload, const Inventory& inventory,
                 const ExpectedFillOptions& options = {});

    /// The node's expected fill in GPUs. O(shapes).
    [[nodiscard]] double fill(const Cluster& cluster, NodeId node) const;

    struct Choice {
        GpuMask gpus = 0;
        std::int64_t score = 0;  ///< minus what is lost beyond what the task itself takes, in grains
        bool operator==(const Choice&) const = default;
    };
    /// The GPUs for `task` on `node` that cost least, among `candidates` (see `candidate_gpus`, feasibility.hpp), which
    /// must hold as many as it asks for. Ties go to a GPU in use, then to the lowest. O(shapes + GPUs of the node).
    [[nodiscard]] Choice best(const Cluster& cluster, TaskId task, NodeId node, GpuMask candidates) const;

  private:
    // What a node has left, as far as this measure sees it. `room` is the sum of card values.
    struct Left {
        std::int64_t cpu_milli = 0, memory_mib = 0, room = 0;
        int idle = 0;
    };
    // By how much one resource limits every shape: one row per amount at which that changes.
    struct Limits {
        std::vector<std::int64_t> amounts;  // ascending, the first is 0
        std::vector<std::int32_t> rows;     // [amount][shape], in units
        [[nodiscard]] const std::int32_t* at(std::int64_t amount, std::size_t shapes) const noexcept;
    };
    // What the workload looks like from a GPU model.
    struct View {
        std::array<std::int32_t, whole_gpu_milli + 1> card{};  // value of a GPU by what is left of it, in units
        std::vector<std::int64_t> weights;                     // by shape; 0 = not accepted
    };
    [[nodiscard]] std::int64_t value(const View& view, const Left& left) const noexcept;
    [[nodiscard]] const View& view(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] Left left_on(const Cluster& cluster, NodeId node, const View& view) const noexcept;
    void fill_cards(View& view, std::span<const int> shares) const;

    static constexpr std::int64_t unit = 64;  // of values, per thousandth of a GPU
    std::size_t shapes_ = 0, singles_ = 0;    // shapes of at most one GPU come first
    std::vector<int> gpus_;                   // by shape
    Limits cpu_, memory_;
    std::vector<View> views_;
    std::vector<std::uint32_t> view_of_model_;  // by GpuModelId; the last entry is for nodes without a model
    std::int64_t total_weight_ = 0;
    std::int64_t grain_ = 1;
};

/// Ranks nodes by `ExpectedFill::best`.
struct LeastFillLoss {
    static constexpr bool node_local = true;
    std::shared_ptr<const ExpectedFill> measure;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// For a fraction the GPU of `ExpectedFill::best`, whole GPUs as TightestGpu.
struct LeastFillLossGpus {
    std::shared_ptr<const ExpectedFill> measure;
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

}  // namespace gpusched::allocation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/allocation/impl/expected_fill.ipp>
#endif
