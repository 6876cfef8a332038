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

/// Options of Fgd.
struct FgdOptions {
    bool include_cordoned = false;  ///< count idle GPUs of cordoned nodes, too
};
template <class F>
constexpr void visit_fields(std::type_identity<FgdOptions>, F&& field) {
    field("include_cordoned", &FgdOptions::include_cordoned);
}

/// Idle GPUs in FGD's seven classes, by whether a task drawn from the workload can use them.
///
/// `satisfied` is the part that the task could use. The sum of all other fields is the expected
/// fragmentation. On a node that can run the task, GPUs with a free share below the task's demand per GPU
/// count as `lack_gpu`.
template <class Number>
struct FgdClasses {
    Number satisfied{};           ///< the task can run on these GPUs
    Number lack_gpu{};            ///< enough CPU, not enough GPU
    Number lack_cpu{};            ///< enough GPU, not enough CPU
    Number lack_both{};           ///< neither enough GPU nor enough CPU
    Number no_access{};           ///< the task does not accept the node's GPU model
    Number cpu_only_satisfied{};  ///< the task requests no GPU, and the node has enough CPU
    Number cpu_only_lack_cpu{};   ///< the task requests no GPU, and the node lacks CPU
    bool operator==(const FgdClasses&) const = default;
};
/// The seven classes in GPUs.
using FgdBreakdown = FgdClasses<double>;

/// GPUs for a task on a node, and the change of the node's fragmentation, in the unit of `Fgd`.
struct FgdChoice {
    GpuMask gpus = 0;
    std::int64_t delta = 0;
    bool operator==(const FgdChoice&) const = default;
};

/// Computes the expected fragmentation F of nodes for one workload, and the change that a placement causes.
///
/// Weng et al., "Beware of Fragmentation" (USENIX ATC '23): F(node) is a sum over task shapes m: popularity(m)
/// times the idle GPUs of the node that m cannot use. These are all idle GPUs if m requests no GPU or cannot run
/// on the node (GPU, CPU or model), otherwise those with a free share below m's demand per GPU.
///
/// Capacity is idle if a task without spot (LP) rights could take it now: failed GPUs and Standby claims are
/// not idle. Memory, labels, taints and affinities are ignored.
///
/// F is an integer in thousandths of a GPU times the workload's total weight; `to_gpus` converts it. F(node)
/// costs one binary search and one look-up per GPU. Models NodeMetric. GPU models added later count as no model
/// until `renew`. Safe to read from several threads.
class Fgd {
  public:
    /// @throws InvalidInput if the workload is empty, or a shape or its weight is out of range
    Fgd(const Workload& workload, const Inventory& inventory, const FgdOptions& options = {});

    /// Returns F of a node; 0 for a cordoned node unless `include_cordoned` is set.
    [[nodiscard]] std::int64_t state(const Cluster& cluster, NodeId node) const noexcept;

    /// Returns F after minus F before placing `task` on `gpus` of `node`. The task must fit. The choice among
    /// idle GPUs does not matter for tasks with whole GPUs. `task` must not be Standby, because Standby tasks
    /// are never placed or moved. O(GPUs of the node).
    [[nodiscard]] std::int64_t delta(const Cluster& cluster, TaskId task, NodeId node,
                                     GpuMask gpus) const noexcept;

    /// Returns the choice with the least `delta` among `candidates` (see `candidate_gpus`, feasibility.hpp).
    /// `candidates` must hold at least as many GPUs as the task requests, and the task must fit in all other
    /// respects. Ties go to the lowest GPUs. O(GPUs of the node), also for fractions.
    [[nodiscard]] FgdChoice best(const Cluster& cluster, TaskId task, NodeId node,
                                 GpuMask candidates) const noexcept;

    /// Returns the seven classes of one node, in the unit of `state`. Their sum is the idle GPUs times the
    /// total weight.
    [[nodiscard]] FgdClasses<std::int64_t> classes(const Cluster& cluster, NodeId node) const noexcept;

    [[nodiscard]] double to_gpus(std::int64_t value) const noexcept {
        return static_cast<double>(value) / (1000.0 * static_cast<double>(total_weight_));
    }

    // NodeMetric
    void renew(const Inventory& inventory);
    /// Always returns false: the states of other nodes do not change.
    bool renew(const Inventory& inventory, NodeId node);
    using State = std::int64_t;
    using Total = std::int64_t;
    [[nodiscard]] static Total zero() noexcept { return 0; }
    static void add(Total& total, NodeId, State state, int sign) noexcept { total += sign * state; }
    [[nodiscard]] double result(Total total) const noexcept { return to_gpus(total); }

  private:
    // The workload as seen by one GPU model. Row r holds the shapes with one of the r smallest distinct CPU
    // demands. Its first part is the weight of whole-GPU shapes of at most 0, 1, .. the most GPUs. Its second
    // part is the weight of fractional shapes of at most the 0, 1, .. smallest distinct shares.
    struct View {
        std::vector<std::int64_t> cpu;      // distinct demands, ascending
        std::vector<std::int64_t> weights;  // [row][whole | fractional]
        std::int64_t no_access = 0;         // weight of GPU shapes that do not accept the model
    };
    struct NodeGpus {  // free thousandths per GPU
        std::array<int, max_gpus_per_node> milli;
        int count;
        [[nodiscard]] std::span<const int> all() const noexcept {
            return {milli.data(), static_cast<std::size_t>(count)};
        }
    };
    [[nodiscard]] NodeGpus read_gpus(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] const View& view(GpuModelId model) const noexcept {
        // A model added after the last renewal counts as no model.
        return views_[view_of_model_[std::min(index(model), view_of_model_.size() - 1)]];
    }
    [[nodiscard]] const std::int64_t* row(const View& view, std::int64_t cpu_free_milli) const noexcept;
    [[nodiscard]] std::int64_t usable(const std::int64_t* row, std::span<const int> gpus) const noexcept;
    [[nodiscard]] std::int64_t cell(const std::int64_t* row, int free_milli) const noexcept {
        return free_milli * row[share_column_[static_cast<std::size_t>(free_milli)]];
    }

    std::vector<View> views_;
    std::vector<std::uint32_t> view_of_model_;  // by GpuModelId; the last entry is for nodes without a model
    // By free thousandths: the column of the fractional shapes of at most that share.
    std::array<std::uint32_t, whole_gpu_milli + 1> share_column_{};
    static constexpr std::size_t first_share_ = max_gpus_per_node + 1;
    std::size_t row_size_ = 0;
    std::int64_t total_weight_ = 0;
    std::vector<std::int64_t> cpu_only_cpu_;      // distinct demands of CPU-only shapes, ascending
    std::vector<std::int64_t> cpu_only_weights_;  // weight of the 0, 1, .. smallest demands
    FgdOptions options_;
    std::shared_ptr<const Workload> workload_;
    std::uint64_t serial_ = 0;  // of the inventory
};

/// Returns the expected fragmentation of the whole cluster in GPUs. O(nodes).
/// @throws InvalidInput like the constructor of `Fgd`
[[nodiscard]] double fgd(const Cluster& cluster, const Workload& workload, const FgdOptions& options = {});

/// Returns the cluster's idle GPUs in FGD's seven classes. O(nodes).
/// @throws InvalidInput like the constructor of `Fgd`
[[nodiscard]] FgdBreakdown fgd_breakdown(const Cluster& cluster, const Workload& workload,
                                         const FgdOptions& options = {});

}  // namespace gpusched::fragmentation
