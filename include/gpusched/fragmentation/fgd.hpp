// SPDX-License-Identifier: Apache-2.0
// Expected fragmentation and its gradient (FGD: fragmentation gradient descent).
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::fragmentation {

struct FgdOptions {
    bool include_cordoned = false;  ///< idle GPUs of cordoned nodes count too
};
template <class F>
constexpr void visit_fields(std::type_identity<FgdOptions>, F&& field) {
    field("include_cordoned", &FgdOptions::include_cordoned);
}

/// Idle GPUs split by what a task drawn from the workload meets on their node: FGD's seven classes.
///
/// `satisfied` is what the task could use; all other fields together are the expected fragmentation. On a node
/// that can run the task, GPUs with less left than the task needs of each belong to `lack_gpu`.
template <class Number>
struct FgdClasses {
    Number satisfied{};           ///< the task runs there, on these GPUs
    Number lack_gpu{};            ///< enough CPU, not enough GPU
    Number lack_cpu{};            ///< enough GPU, not enough CPU
    Number lack_both{};           ///< neither
    Number no_access{};           ///< the task does not accept the node's GPU model
    Number cpu_only_satisfied{};  ///< the task asks for no GPU, and its CPU is there
    Number cpu_only_lack_cpu{};   ///< the task asks for no GPU, and its CPU is not there
    bool operator==(const FgdClasses&) const = default;
};
/// In GPUs.
using FgdBreakdown = FgdClasses<double>;

/// GPUs for a task on a node, and by how much they change the node's fragmentation (`Fgd`'s unit).
struct FgdChoice {
    GpuMask gpus = 0;
    std::int64_t delta = 0;
    bool operator==(const FgdChoice&) const = default;
};

/// The expected fragmentation F of nodes against one workload, and what a placement does to it.
///
/// Weng et al., "Beware of Fragmentation" (USENIX ATC '23): F(node) = sum over task shapes m of popularity(m) times
/// the idle GPUs of the node that m cannot use. If m asks for no GPU, or cannot run there (GPU, CPU or model), that
/// is all of them; otherwise the GPUs with less left than m needs of each. Placing every task where F grows least is
/// their scheduling policy.
///
/// Idle is what a task without spot (LP) rights could take now: failed GPUs and Standby claims are not idle.
/// Memory, labels, taints and affinities do not enter.
///
/// F is kept in whole numbers, in thousandths of a GPU times the workload's total weight; `to_gpus` converts. Sums
/// are therefore exact, in any order. At construction the shapes become tables, so that F(node) costs one binary
/// search and one look-up per GPU, however many shapes there are. Models NodeMetric (concepts.hpp).
/// Built for one inventory: GPU models that come later count as none, until `renew`. Safe to read from several threads.
class Fgd {
  public:
    /// @throws InvalidInput when the workload is empty, or a shape or its weight is out of range
    Fgd(const Workload& workload, const Inventory& inventory, const FgdOptions& options = {});

    /// F of one node; 0 for a cordoned node unless those are included.
    [[nodiscard]] std::int64_t state(const Cluster& cluster, NodeId node) const noexcept;

    /// F of a node in a state given by its model, its free CPU and what is left of each of its GPUs (thousandths).
    [[nodiscard]] std::int64_t value(GpuModelId model, std::int64_t cpu_free_milli,
                                     std::span<const int> gpu_free_milli) const noexcept;

    /// F after minus F before putting `task` on `gpus` of `node`, which must fit. For whole GPUs it does not matter
    /// which idle ones they are. Not for a Standby task: nothing places or moves those. O(GPUs of the node).
    [[nodiscard]] std::int64_t delta(const Cluster& cluster, TaskId task, NodeId node,
                                     GpuMask gpus) const noexcept;

    /// The choice of least `delta` among `candidates` (see `candidate_gpus`, feasibility.hpp), which must hold as
    /// many GPUs as the task asks for; the task must fit in all other respects. Ties go to the lowest GPUs.
    /// O(GPUs of the node) for fractions too.
    [[nodiscard]] FgdChoice best(const Cluster& cluster, TaskId task, NodeId node,
                                 GpuMask candidates) const noexcept;

    /// The seven classes of one node, in the unit of `state`; they sum up to the idle GPUs times the total weight.
    [[nodiscard]] FgdClasses<std::int64_t> classes(const Cluster& cluster, NodeId node) const noexcept;

    [[nodiscard]] double to_gpus(std::int64_t value) const noexcept {
        return static_cast<double>(value) / (1000.0 * static_cast<double>(total_weight_));
    }
    [[nodiscard]] std::int64_t total_weight() const noexcept { return total_weight_; }

    // NodeMetric
    void renew(const Inventory& inventory);
    /// False: the states of the other nodes stay what they are.
    bool renew(const Inventory& inventory, NodeId node);
    using State = std::int64_t;
    using Total = std::int64_t;
    [[nodiscard]] static Total zero() noexcept { return 0; }
    static void add(Total& total, NodeId, State state, int sign) noexcept { total += sign * state; }
    [[nodiscard]] double result(Total total) const noexcept { return to_gpus(total); }

  private:
    // What the workload looks like from a GPU model. Row r holds the shapes that are content with the r smallest
    // distinct CPU demands: first the weight of whole-GPU shapes of at most 0, 1, .. the most GPUs, then the weight of
    // fractional shapes of at most the 0, 1, .. smallest distinct shares.
    struct View {
        std::vector<std::int64_t> cpu;      // distinct demands, ascending
        std::vector<std::int64_t> weights;  // [row][whole | fractional]
        std::int64_t no_access = 0;         // weight of GPU shapes that do not accept the model
    };
    struct NodeGpus {  // free thousandths per GPU
        std::array<int, max_gpus_per_node> milli;
        int count;
    };
    [[nodiscard]] NodeGpus read_gpus(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] const View& view(GpuModelId model) const noexcept {
        // A model that came later, and was not renewed for, is none.
        return views_[view_of_model_[std::min(index(model), view_of_model_.size() - 1)]];
    }
    [[nodiscard]] const std::int64_t* row(const View& view, std::int64_t cpu_free_milli) const noexcept;
    [[nodiscard]] std::int64_t usable(const std::int64_t* row, std::span<const int> gpus) const noexcept;
    [[nodiscard]] std::int64_t cell(const std::int64_t* row, int free_milli) const noexcept {
        return free_milli * row[share_column_[static_cast<std::size_t>(free_milli)]];
    }

    std::vector<View> views_;
    std::vector<std::uint32_t> view_of_model_;  // by GpuModelId; the last entry is for nodes without a model
    // By thousandths: the column of the fractional shapes of at most that share.
    std::array<std::uint32_t, whole_gpu_milli + 1> share_column_{};
    static constexpr std::size_t first_share_ = max_gpus_per_node + 1;
    std::size_t row_size_ = 0;
    std::int64_t total_weight_ = 0;
    std::vector<std::int64_t> cpu_only_cpu_;      // distinct demands of CPU-only shapes, ascending
    std::vector<std::int64_t> cpu_only_weights_;  // of the 0, 1, .. smallest
    FgdOptions options_;
    std::shared_ptr<const Workload> workload_;
    std::uint64_t serial_ = 0;  // of the inventory
};

/// Expected fragmentation of the whole cluster, in GPUs. O(nodes).
/// @throws InvalidInput as the constructor of `Fgd`
[[nodiscard]] double fgd(const Cluster& cluster, const Workload& workload, const FgdOptions& options = {});

/// The whole cluster's idle GPUs in FGD's seven classes. O(nodes).
/// @throws InvalidInput as the constructor of `Fgd`
[[nodiscard]] FgdBreakdown fgd_breakdown(const Cluster& cluster, const Workload& workload,
                                         const FgdOptions& options = {});

}  // namespace gpusched::fragmentation
