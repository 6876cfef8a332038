// SPDX-License-Identifier: Apache-2.0
// Builds the tables of Fgd and computes fragmentation, its change by a placement, and its classes.
#include "fragmentation/model_views.hpp"

#include <gpusched/config.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/fragmentation/incremental.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace gpusched::fragmentation {
namespace detail {

static std::size_t rank_of(const std::vector<std::int64_t>& ascending, std::int64_t value) noexcept {
    return static_cast<std::size_t>(std::upper_bound(ascending.begin(), ascending.end(), value) -
                                    ascending.begin());
}

static void sort_unique(std::vector<std::int64_t>& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace detail

// Tables ---------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT Fgd::Fgd(const Workload& workload, const Inventory& inventory, const FgdOptions& options)
    : options_(options), workload_(std::make_shared<const Workload>(workload)), serial_(inventory.serial) {
    validate(workload);
    total_weight_ = workload.total_weight();
    const auto& shapes = workload.shapes;

    std::vector<std::int64_t> shares;
    for (const auto& shape : shapes) {
        if (shape.gpu_count == 0) cpu_only_cpu_.push_back(shape.cpu_milli);
        if (shape.gpu_share_milli < whole_gpu_milli) shares.push_back(shape.gpu_share_milli);
    }
    detail::sort_unique(shares);
    detail::sort_unique(cpu_only_cpu_);
    row_size_ = first_share_ + shares.size() + 1;
    for (std::size_t milli = 0; milli < share_column_.size(); ++milli)
        share_column_[milli] = static_cast<std::uint32_t>(
            first_share_ + detail::rank_of(shares, static_cast<std::int64_t>(milli)));

    cpu_only_weights_.assign(cpu_only_cpu_.size() + 1, 0);
    for (const auto& shape : shapes)
        if (shape.gpu_count == 0)
            cpu_only_weights_[detail::rank_of(cpu_only_cpu_, shape.cpu_milli)] += shape.weight;
    for (std::size_t r = 1; r < cpu_only_weights_.size(); ++r)
        cpu_only_weights_[r] += cpu_only_weights_[r - 1];

    std::vector<const WorkloadShape*> with_gpu;
    for (const auto& shape : shapes) with_gpu.push_back(shape.gpu_count == 0 ? nullptr : &shape);
    detail::ModelViews models(with_gpu, inventory);
    view_of_model_ = std::move(models.view_of_model);
    for (const auto& accepts : models.accepted) {
        std::vector<std::size_t> accepted;
        for (std::size_t i = 0; i < shapes.size(); ++i)
            if (accepts[i]) accepted.push_back(i);
        auto& view = views_.emplace_back();
        view.no_access = total_weight_ - cpu_only_weights_.back();
        for (const auto i : accepted) {
            view.cpu.push_back(shapes[i].cpu_milli);
            view.no_access -= shapes[i].weight;
        }
        detail::sort_unique(view.cpu);
        view.weights.assign((view.cpu.size() + 1) * row_size_, 0);
        for (const auto i : accepted) {
            const auto& shape = shapes[i];
            const auto column =
                shape.gpu_share_milli == whole_gpu_milli
                    ? static_cast<std::size_t>(shape.gpu_count)
                    : std::size_t{share_column_[static_cast<std::size_t>(shape.gpu_share_milli)]};
            view.weights[detail::rank_of(view.cpu, shape.cpu_milli) * row_size_ + column] += shape.weight;
        }
        for (std::size_t r = 0; r <= view.cpu.size(); ++r) {
            auto* const here = view.weights.data() + r * row_size_;
            for (std::size_t c = 1; c < row_size_; ++c)
                if (c != first_share_) here[c] += here[c - 1];
            if (r > 0)
                for (std::size_t c = 0; c < row_size_; ++c) here[c] += view.weights[(r - 1) * row_size_ + c];
        }
    }
}

GPUSCHED_EXPORT void Fgd::renew(const Inventory& inventory) {
    if (inventory.serial != serial_) *this = Fgd(*workload_, inventory, options_);
}

GPUSCHED_EXPORT bool Fgd::renew(const Inventory& inventory, NodeId node) {
    const auto model = inventory.nodes.gpu_model[index(node)];
    if (model != none<GpuModelId> && index(model) + 1 >= view_of_model_.size()) renew(inventory);
    return false;
}

GPUSCHED_EXPORT const std::int64_t* Fgd::row(const View& view, std::int64_t cpu_free_milli) const noexcept {
    return view.weights.data() + detail::rank_of(view.cpu, cpu_free_milli) * row_size_;
}

// Evaluation -----------------------------------------------------------------------------------------------

// Returns the weighted thousandths that shapes of the row can use. A whole-GPU shape can use all idle GPUs if
// there are enough of them. A fractional shape can use every GPU with a sufficient free share.
GPUSCHED_EXPORT std::int64_t Fgd::usable(const std::int64_t* row, std::span<const int> gpus) const noexcept {
    std::int64_t sum = 0;
    std::size_t idle = 0;
    for (const int milli : gpus) {
        sum += cell(row, milli);
        idle += milli == whole_gpu_milli ? 1 : 0;
    }
    return sum + whole_gpu_milli * static_cast<std::int64_t>(idle) * row[idle];
}

GPUSCHED_EXPORT Fgd::NodeGpus Fgd::read_gpus(const Cluster& cluster, NodeId node) const noexcept {
    NodeGpus gpus;
    gpus.count = cluster.gpu_count(node);
    for (int g = 0; g < gpus.count; ++g)
        gpus.milli[static_cast<std::size_t>(g)] = cluster.gpu_free_milli(node, g);
    return gpus;
}

GPUSCHED_EXPORT std::int64_t Fgd::state(const Cluster& cluster, NodeId node) const noexcept {
    const auto& nodes = cluster.inventory().nodes;
    if (nodes.is_cordoned(node) && !options_.include_cordoned) return 0;
    const auto gpus = read_gpus(cluster, node);
    const auto* const here = row(view(nodes.gpu_model[index(node)]), cluster.cpu_free_milli(node));
    return std::reduce(gpus.all().begin(), gpus.all().end(), std::int64_t{0}) * total_weight_ -
           usable(here, gpus.all());
}

// Gradient -------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT std::int64_t Fgd::delta(const Cluster& cluster, TaskId task, NodeId node,
                                        GpuMask gpus) const noexcept {
    const auto& inv = cluster.inventory();
    const auto& seen = view(inv.nodes.gpu_model[index(node)]);
    const int share = inv.tasks.gpu_share_milli[index(task)];
    // An LP task takes lent capacity first. Lent capacity is not idle for other tasks.
    const auto lent = cluster.lent_to(task);
    const auto cpu = cluster.cpu_free_milli(node);
    const auto* const before = row(seen, cpu);
    const auto* const after =
        row(seen, std::min(cpu, cluster.cpu_free_milli(node, lent) - inv.tasks.cpu_milli[index(task)]));
    std::int64_t change = 0;
    std::size_t idle_before = 0, idle_after = 0;
    for (int g = 0; g < cluster.gpu_count(node); ++g) {
        const int milli = cluster.gpu_free_milli(node, g);
        const int left =
            (gpus & gpu_bit(g)) == 0 ? milli : std::min(milli, cluster.gpu_free_milli(node, g, lent) - share);
        change += cell(before, milli) - cell(after, left) - (milli - left) * total_weight_;
        idle_before += milli == whole_gpu_milli ? 1 : 0;
        idle_after += left == whole_gpu_milli ? 1 : 0;
    }
    return change + whole_gpu_milli * (static_cast<std::int64_t>(idle_before) * before[idle_before] -
                                       static_cast<std::int64_t>(idle_after) * after[idle_after]);
}

GPUSCHED_EXPORT FgdChoice Fgd::best(const Cluster& cluster, TaskId task, NodeId node,
                                    GpuMask candidates) const noexcept {
    const auto& inv = cluster.inventory();
    if (!cluster.is_fraction(task)) {
        const auto gpus = lowest_gpus(candidates, inv.tasks.gpu_count[index(task)]);
        return {gpus, delta(cluster, task, node, gpus)};
    }
    // All choices leave the same free CPU. They differ in one GPU only.
    const auto& seen = view(inv.nodes.gpu_model[index(node)]);
    const auto state = read_gpus(cluster, node);
    const auto all = state.all();
    const auto lent = cluster.lent_to(task);
    const int share = inv.tasks.gpu_share_milli[index(task)];
    const auto cpu = cluster.cpu_free_milli(node);
    const auto* const row_before = row(seen, cpu);
    const auto* const row_after =
        row(seen, std::min(cpu, cluster.cpu_free_milli(node, lent) - inv.tasks.cpu_milli[index(task)]));
    const auto idle = static_cast<std::size_t>(std::count(all.begin(), all.end(), whole_gpu_milli));
    const auto before = usable(row_before, all);
    const auto untouched = row_after == row_before ? before : usable(row_after, all);
    const auto one_idle_less =
        idle == 0 ? 0
                  : whole_gpu_milli * (static_cast<std::int64_t>(idle) * row_after[idle] -
                                       (static_cast<std::int64_t>(idle) - 1) * row_after[idle - 1]);
    FgdChoice best;
    for_each_gpu(candidates, [&](int g) {
        const int milli = state.milli[static_cast<std::size_t>(g)];
        const int left = std::min(milli, cluster.gpu_free_milli(node, g, lent) - share);
        auto after = untouched - cell(row_after, milli) + cell(row_after, left);
        if (milli == whole_gpu_milli) after -= one_idle_less;
        const auto change = before - after - (milli - left) * total_weight_;
        if (best.gpus == 0 || change < best.delta) best = {gpu_bit(g), change};
    });
    return best;
}

// Classes --------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT FgdClasses<std::int64_t> Fgd::classes(const Cluster& cluster, NodeId node) const noexcept {
    const auto& nodes = cluster.inventory().nodes;
    FgdClasses<std::int64_t> out;
    if (nodes.is_cordoned(node) && !options_.include_cordoned) return out;
    const auto gpus = read_gpus(cluster, node);
    const auto all = gpus.all();
    std::int64_t idle = 0;
    std::size_t whole = 0, fullest = first_share_;  // columns of the node's idle GPUs and largest free share
    for (const int milli : all) {
        idle += milli;
        whole += milli == whole_gpu_milli ? 1 : 0;
        fullest = std::max<std::size_t>(fullest, share_column_[static_cast<std::size_t>(milli)]);
    }
    const auto& seen = view(nodes.gpu_model[index(node)]);
    const auto cpu = cluster.cpu_free_milli(node);
    const auto* const here = row(seen, cpu);
    const auto* const any_cpu = seen.weights.data() + seen.cpu.size() * row_size_;
    // Weights of the GPU shapes with satisfied GPU demand, or with satisfied CPU demand.
    const auto gpu_met = [&](const std::int64_t* r) { return r[whole] + r[fullest]; };
    const auto all_gpu = [&](const std::int64_t* r) { return r[first_share_ - 1] + r[row_size_ - 1]; };
    const auto cpu_only_met = cpu_only_weights_[detail::rank_of(cpu_only_cpu_, cpu)];

    out.satisfied = usable(here, all);
    out.lack_gpu = idle * all_gpu(here) - out.satisfied;
    out.lack_cpu = idle * (gpu_met(any_cpu) - gpu_met(here));
    out.lack_both = idle * (all_gpu(any_cpu) - all_gpu(here)) - out.lack_cpu;
    out.no_access = idle * seen.no_access;
    out.cpu_only_satisfied = idle * cpu_only_met;
    out.cpu_only_lack_cpu = idle * (cpu_only_weights_.back() - cpu_only_met);
    return out;
}

GPUSCHED_EXPORT double fgd(const Cluster& cluster, const Workload& workload, const FgdOptions& options) {
    return evaluate(Fgd(workload, cluster.inventory(), options), cluster);
}

GPUSCHED_EXPORT FgdBreakdown fgd_breakdown(const Cluster& cluster, const Workload& workload,
                                           const FgdOptions& options) {
    const Fgd metric(workload, cluster.inventory(), options);
    FgdClasses<std::int64_t> sum;
    for (const auto node : cluster.nodes()) {
        const auto part = metric.classes(cluster, node);
        sum.satisfied += part.satisfied;
        sum.lack_gpu += part.lack_gpu;
        sum.lack_cpu += part.lack_cpu;
        sum.lack_both += part.lack_both;
        sum.no_access += part.no_access;
        sum.cpu_only_satisfied += part.cpu_only_satisfied;
        sum.cpu_only_lack_cpu += part.cpu_only_lack_cpu;
    }
    return {metric.to_gpus(sum.satisfied),        metric.to_gpus(sum.lack_gpu),
            metric.to_gpus(sum.lack_cpu),         metric.to_gpus(sum.lack_both),
            metric.to_gpus(sum.no_access),        metric.to_gpus(sum.cpu_only_satisfied),
            metric.to_gpus(sum.cpu_only_lack_cpu)};
}

}  // namespace gpusched::fragmentation
