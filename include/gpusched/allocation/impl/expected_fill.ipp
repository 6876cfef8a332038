#pragma once

#include <gpusched/allocation/expected_fill.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace gpusched::allocation {

// Tables ---------------------------------------------------------------------------------------------------

GPUSCHED_INLINE ExpectedFill::ExpectedFill(const fragmentation::Workload& workload, const Inventory& inventory,
                                           const ExpectedFillOptions& options) {
    Problems problems;
    if (options.grain_milli < 1 || options.grain_milli > 1000)
        problems.add("grain_milli is " + std::to_string(options.grain_milli) + "; expected 1 to 1000");
    if (options.several_gpus_weight < 0 || options.several_gpus_weight > 10'000)
        problems.add("several_gpus_weight is " + std::to_string(options.several_gpus_weight) +
                     "; expected 0 to 10000");
    problems.throw_if_any();
    fragmentation::validate(workload);
    total_weight_ = 1000 * workload.total_weight();
    grain_ = options.grain_milli * unit * total_weight_;

    std::vector<const fragmentation::WorkloadShape*> shapes;
    for (const auto& shape : workload.shapes)
        if (shape.gpu_count > 0) shapes.push_back(&shape);
    std::stable_partition(shapes.begin(), shapes.end(), [](const auto* shape) { return shape->gpu_count == 1; });
    shapes_ = shapes.size();
    std::vector<int> shares;
    for (const auto* shape : shapes) {
        gpus_.push_back(static_cast<int>(shape->gpu_count));
        if (shape->gpu_count > 1) continue;
        ++singles_;
        shares.push_back(static_cast<int>(shape->gpu_share_milli));
    }

    // Copies of a shape beyond all GPUs of a node change nothing.
    constexpr auto most = std::int32_t{max_gpus_per_node} * whole_gpu_milli * static_cast<std::int32_t>(unit);
    const auto limits = [&](auto amount_of) {
        Limits out;
        out.amounts.push_back(0);
        for (const auto* shape : shapes) {
            const auto copies = (most / unit) / (shape->gpu_count * shape->gpu_share_milli);
            if (const std::int64_t each = amount_of(*shape); each > 0)
                for (std::int64_t k = 1; k <= copies; ++k) out.amounts.push_back(k * each);
        }
        std::sort(out.amounts.begin(), out.amounts.end());
        out.amounts.erase(std::unique(out.amounts.begin(), out.amounts.end()), out.amounts.end());
        for (const auto amount : out.amounts)
            for (const auto* shape : shapes) {
                const std::int64_t each = amount_of(*shape);
                const auto copies = each > 0 ? std::min<std::int64_t>(amount / each, most) : most;
                out.rows.push_back(static_cast<std::int32_t>(
                    std::min<std::int64_t>(most, copies * shape->gpu_count * shape->gpu_share_milli * unit)));
            }
        return out;
    };
    cpu_ = limits([](const auto& shape) { return shape.cpu_milli; });
    memory_ = limits([](const auto& shape) { return shape.memory_mib; });

    // Models that the same shapes accept share a view.
    std::map<std::vector<std::int64_t>, std::uint32_t> known;
    for (std::size_t m = 0; m <= inventory.gpu_models.size(); ++m) {
        std::vector<std::int64_t> weights;
        for (const auto* shape : shapes) {
            const auto& models = shape->gpu_models;
            const bool accepted =
                models.empty() || (m < inventory.gpu_models.size() &&
                                   std::find(models.begin(), models.end(), inventory.gpu_models[m]) != models.end());
            const auto factor = shape->gpu_count == 1 ? 1000 : options.several_gpus_weight;
            weights.push_back(accepted ? shape->weight * factor : 0);
        }
        const auto [at, added] = known.try_emplace(weights, static_cast<std::uint32_t>(views_.size()));
        view_of_model_.push_back(at->second);
        if (!added) continue;
        views_.push_back({{}, std::move(weights)});
        fill_cards(views_.back(), shares);
    }
}

// The mean of filling what is left of a GPU with random shapes, one after the other until none fits, and with copies of
// one shape.
GPUSCHED_INLINE void ExpectedFill::fill_cards(View& view, std::span<const int> shares) const {
    std::map<int, std::int64_t> weight_of;
    std::int64_t all = 0;
    for (std::size_t m = 0; m < shares.size(); ++m)
        if (view.weights[m] > 0) weight_of[shares[m]] += view.weights[m] / 1000, all += view.weights[m] / 1000;
    if (all == 0) return;
    std::array<std::int64_t, whole_gpu_milli + 1> random{};
    for (int left = 1; left <= whole_gpu_milli; ++left) {
        std::int64_t fitting = 0, sum = 0, copies = 0;
        for (const auto& [share, weight] : weight_of) {
            if (share > left) break;
            fitting += weight;
            sum += weight * (share * unit + random[static_cast<std::size_t>(left - share)]);
            copies += weight * (left / share * share) * unit;
        }
        if (fitting == 0) continue;
        random[static_cast<std::size_t>(left)] = sum / fitting;
        view.card[static_cast<std::size_t>(left)] = static_cast<std::int32_t>((sum / fitting + copies / all) / 2);
    }
}

GPUSCHED_INLINE const std::int32_t* ExpectedFill::Limits::at(std::int64_t amount, std::size_t shapes) const noexcept {
    const auto above = std::upper_bound(amounts.begin(), amounts.end(), std::max<std::int64_t>(amount, 0));
    return rows.data() + static_cast<std::size_t>(above - amounts.begin() - 1) * shapes;
}

// Evaluation -----------------------------------------------------------------------------------------------

GPUSCHED_INLINE const ExpectedFill::View& ExpectedFill::view(const Cluster& cluster, NodeId node) const noexcept {
    const auto model = cluster.inventory().nodes.gpu_model[index(node)];
    return views_[view_of_model_[model == none<GpuModelId> ? view_of_model_.size() - 1 : index(model)]];
}

GPUSCHED_INLINE ExpectedFill::Left ExpectedFill::left_on(const Cluster& cluster, NodeId node,
                                                         const View& view) const noexcept {
    Left left{cluster.cpu_free(node), cluster.memory_free(node), 0, gpu_count(cluster.idle_gpus(node))};
    for (int g = 0; g < cluster.gpu_count(node); ++g)
        left.room += view.card[static_cast<std::size_t>(cluster.gpu_free_milli(node, g))];
    return left;
}

GPUSCHED_INLINE std::int64_t ExpectedFill::value(const View& view, const Left& left) const noexcept {
    const auto* const cpu = cpu_.at(left.cpu_milli, shapes_);
    const auto* const memory = memory_.at(left.memory_mib, shapes_);
    const auto* const weights = view.weights.data();
    const auto room = static_cast<std::int32_t>(left.room);
    std::int64_t sum = 0;
    for (std::size_t m = 0; m < singles_; ++m) sum += weights[m] * std::min(room, std::min(cpu[m], memory[m]));
    for (std::size_t m = singles_; m < shapes_; ++m) {
        const auto whole = left.idle / gpus_[m] * gpus_[m] * whole_gpu_milli * static_cast<std::int32_t>(unit);
        sum += weights[m] * std::min(whole, std::min(cpu[m], memory[m]));
    }
    return sum;
}

GPUSCHED_INLINE double ExpectedFill::fill(const Cluster& cluster, NodeId node) const {
    const auto& seen = view(cluster, node);
    return static_cast<double>(value(seen, left_on(cluster, node, seen))) /
           (static_cast<double>(whole_gpu_milli * unit) * static_cast<double>(total_weight_));
}

GPUSCHED_INLINE ExpectedFill::Choice ExpectedFill::best(const Cluster& cluster, TaskId task, NodeId node,
                                                        GpuMask candidates) const {
    const auto& tasks = cluster.inventory().tasks;
    const auto& seen = view(cluster, node);
    const auto before = left_on(cluster, node, seen);
    // An LP task takes lent capacity first, which is not idle to others.
    const bool borrow = cluster.may_borrow(task);
    const int share = tasks.gpu_share_milli[index(task)];
    auto after = before;
    after.cpu_milli = std::min(before.cpu_milli, cluster.cpu_free(node, borrow) - tasks.cpu_milli[index(task)]);
    after.memory_mib -= tasks.memory_mib[index(task)];
    const auto take = [&](Left& left, int g) {
        const int had = cluster.gpu_free_milli(node, g);
        const int has = std::min(had, cluster.gpu_free_milli(node, g, borrow) - share);
        left.room += seen.card[static_cast<std::size_t>(has)] - seen.card[static_cast<std::size_t>(had)];
        left.idle -= had == whole_gpu_milli && has < had ? 1 : 0;
    };

    Choice best;
    std::int64_t most = 0;
    if (tasks.gpu_count[index(task)] > 0 && cluster.is_fraction(task)) {
        // The measure grows with the room, so only the best GPU in use and the best idle one can win.
        std::array<Left, 2> left{after, after};
        std::array<GpuMask, 2> gpus{};
        for_each_gpu(candidates, [&](int g) {
            auto now = after;
            take(now, g);
            const std::size_t kind = now.idle == after.idle ? 0 : 1;
            if (gpus[kind] == 0 || now.room > left[kind].room) left[kind] = now, gpus[kind] = gpu_bit(g);
        });
        for (std::size_t kind = 0; kind < 2; ++kind) {
            if (gpus[kind] == 0) continue;
            const auto now = value(seen, left[kind]);
            if (best.gpus == 0 || now > most) best.gpus = gpus[kind], most = now;
        }
    } else {
        best.gpus = lowest_gpus(candidates, tasks.gpu_count[index(task)]);
        for_each_gpu(best.gpus, [&](int g) { take(after, g); });
        most = value(seen, after);
    }
    const auto gain = most - value(seen, before) + cluster.gpu_milli(task) * unit * total_weight_ + grain_ / 2;
    best.score = gain >= 0 ? gain / grain_ : -((grain_ - 1 - gain) / grain_);
    return best;
}

// Policies -------------------------------------------------------------------------------------------------

GPUSCHED_INLINE std::int64_t LeastFillLoss::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    return measure->best(cluster, task, node, candidate_gpus(cluster, task, node)).score;
}

GPUSCHED_INLINE GpuMask LeastFillLossGpus::operator()(const Cluster& cluster, TaskId task, NodeId node) const {
    if (!cluster.is_fraction(task)) return TightestGpu{}(cluster, task, node);
    return measure->best(cluster, task, node, candidate_gpus(cluster, task, node)).gpus;
}

}  // namespace gpusched::allocation
