// SPDX-License-Identifier: Apache-2.0
// Builds the tables of ExpectedFill and evaluates nodes and placements.
#include "fragmentation/model_views.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/fragmentation/expected_fill.hpp>
#include <gpusched/model/inventory.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace gpusched::fragmentation {

// Tables ---------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT ExpectedFill::ExpectedFill(const Workload& workload, const Inventory& inventory,
                                           const ExpectedFillOptions& options) {
    Problems problems;
    check_range(problems, "coverage_percent", options.coverage_percent, 1, 100);
    check_range(problems, "grain_milli", options.grain_milli, 1, 1000);
    check_range(problems, "several_gpus_weight", options.several_gpus_weight, 0, 1000);
    problems.throw_if_any();
    validate(workload);
    most_gpus_ = std::max(16, largest_gpu_count(inventory));
    while (most_gpus_ * parts_ > std::numeric_limits<std::int16_t>::max()) parts_ /= 2;
    per_milli_ = std::int64_t{parts_} * all_weight / whole_gpu_milli;
    grain_ = options.grain_milli * per_milli_;

    std::vector<const WorkloadShape*> popular;
    for (const auto& shape : workload.shapes) popular.push_back(&shape);
    std::sort(popular.begin(), popular.end(),
              [](auto* a, auto* b) { return a->weight != b->weight ? a->weight > b->weight : a < b; });
    std::int64_t covered = 0, weighed = 0;
    std::size_t kept = 0;
    const auto weight = [](const WorkloadShape& shape) {
        return shape.weight * std::max<std::int64_t>(1, shape.gpu_count);
    };
    while (100 * covered < options.coverage_percent * workload.total_weight()) {
        covered += popular[kept]->weight;
        weighed += weight(*popular[kept++]);
    }
    popular.resize(kept);

    // Shapes of at most one GPU, padding, shapes of several GPUs, padding.
    std::vector<const WorkloadShape*> shapes;
    const auto add_if = [&](auto belongs) {
        for (const auto* shape : popular)
            if (belongs(shape->gpu_count)) shapes.push_back(shape);
        while (shapes.size() % lanes != 0) shapes.push_back(nullptr);
    };
    add_if([](std::int64_t gpus) { return gpus == 1; });
    singles_ = shapes.size();
    add_if([](std::int64_t gpus) { return gpus > 1; });
    shapes_ = shapes.size();

    std::vector<std::int64_t> cpu, memory;
    for (const auto* shape : shapes) {
        gpu_milli_.push_back(
            shape != nullptr ? static_cast<std::int32_t>(shape->gpu_count * shape->gpu_share_milli) : 0);
        cpu.push_back(shape != nullptr ? shape->cpu_milli : 0);
        memory.push_back(shape != nullptr ? shape->memory_mib : 0);
    }
    cpu_ = limits(cpu);
    memory_ = limits(memory);
    for (int idle = 0; idle <= most_gpus_; ++idle)
        for (std::size_t m = singles_; m < shapes_; ++m) {
            const int gpus = gpu_milli_[m] / whole_gpu_milli;
            whole_.push_back(static_cast<std::int16_t>(gpus == 0 ? 0 : idle / gpus * gpus * parts_));
        }

    detail::ModelViews models(shapes, inventory);
    view_of_model_ = std::move(models.view_of_model);
    for (const auto& accepts : models.accepted) {
        std::vector<std::int64_t> weights;
        for (std::size_t m = 0; m < shapes_; ++m) weights.push_back(accepts[m] ? weight(*shapes[m]) : 0);
        auto& view = views_.emplace_back();
        fill_cards(view, weights);
        for (std::size_t m = 0; m < shapes_; ++m) {
            const auto thousandths = m < singles_ ? 1000 : options.several_gpus_weight;
            view.weights.push_back(static_cast<std::int16_t>(std::min<std::int64_t>(
                all_weight - 1, weights[m] * thousandths * all_weight / (1000 * weighed))));
        }
    }
}

GPUSCHED_EXPORT ExpectedFill::Limits ExpectedFill::limits(const std::vector<std::int64_t>& demands) const {
    // Copies of a shape beyond the GPUs of the largest node have no effect.
    const std::int64_t most = std::int64_t{most_gpus_} * whole_gpu_milli;
    Limits out;
    out.amounts.push_back(0);
    for (std::size_t m = 0; m < shapes_; ++m)
        for (std::int64_t k = 1; demands[m] > 0 && (k - 1) * gpu_milli_[m] < most; ++k)
            out.amounts.push_back(k * demands[m]);
    std::sort(out.amounts.begin(), out.amounts.end());
    out.amounts.erase(std::unique(out.amounts.begin(), out.amounts.end()), out.amounts.end());
    for (const auto amount : out.amounts)
        for (std::size_t m = 0; m < shapes_; ++m) {
            const auto enough = demands[m] == 0 || amount / demands[m] > most / std::max(gpu_milli_[m], 1);
            out.rows.push_back(static_cast<std::int16_t>(
                (enough ? most : amount / demands[m] * gpu_milli_[m]) * parts_ / whole_gpu_milli));
        }
    while ((out.amounts.back() >> out.shift) >= 4096) ++out.shift;
    for (std::int64_t bucket = 0, row = 0; bucket <= out.amounts.back() >> out.shift; ++bucket) {
        const auto next = [&] { return static_cast<std::size_t>(row + 1); };
        while (next() < out.amounts.size() && out.amounts[next()] <= bucket << out.shift) ++row;
        out.first.push_back(static_cast<std::uint32_t>(row));
    }
    return out;
}

GPUSCHED_EXPORT const std::int16_t* ExpectedFill::Limits::at(std::int64_t amount,
                                                             std::size_t shapes) const noexcept {
    if (amount >= amounts.back()) return rows.data() + (amounts.size() - 1) * shapes;
    std::size_t row = amount <= 0 ? 0 : first[static_cast<std::size_t>(amount >> shift)];
    while (amounts[row + 1] <= amount) ++row;
    return rows.data() + row * shapes;
}

// Sets the value of every free share of a GPU: the mean of two fills, with random shapes until none fits, and
// with copies of one shape.
GPUSCHED_EXPORT void ExpectedFill::fill_cards(View& view, const std::vector<std::int64_t>& weights) const {
    constexpr std::int64_t fine = 1024;  // parts per thousandth; keeps the accumulated rounding error small
    std::map<std::int64_t, std::int64_t> weight_of;
    std::int64_t all = 0;
    for (std::size_t m = 0; m < singles_; ++m)
        if (weights[m] > 0) weight_of[gpu_milli_[m]] += weights[m], all += weights[m];
    std::array<std::int64_t, whole_gpu_milli + 1> random{};
    for (std::int64_t left = 1; left <= whole_gpu_milli; ++left) {
        const auto at = static_cast<std::size_t>(left);
        std::int64_t fitting = 0, sum = 0, copies = 0;
        for (const auto& [share, weight] : weight_of) {
            if (share > left) break;
            fitting += weight;
            sum += weight * (share * fine + random[static_cast<std::size_t>(left - share)]);
            copies += weight * (left / share * share);
        }
        if (fitting == 0) continue;
        random[at] = sum / fitting;
        view.card[at] = static_cast<std::int16_t>((random[at] + copies * fine / all) * parts_ /
                                                  (2 * fine * whole_gpu_milli));
    }
}

// Evaluation -----------------------------------------------------------------------------------------------

GPUSCHED_EXPORT const ExpectedFill::View& ExpectedFill::view(const Cluster& cluster,
                                                             NodeId node) const noexcept {
    const auto model = cluster.inventory().nodes.gpu_model[index(node)];
    return views_[view_of_model_[std::min(index(model), view_of_model_.size() - 1)]];
}

GPUSCHED_EXPORT ExpectedFill::NodeState ExpectedFill::state(const Cluster& cluster,
                                                            NodeId node) const noexcept {
    const auto& seen = view(cluster, node);
    // A node with more GPUs than `most_gpus_` counts as a node with `most_gpus_` GPUs.
    NodeState state{0, 0, std::min(gpu_count(cluster.idle_gpus(node)), most_gpus_)};
    for (int g = 0; g < cluster.gpu_count(node); ++g)
        state.cards += seen.card[static_cast<std::size_t>(cluster.gpu_free_milli(node, g))];
    state.fill = value(seen, cpu_.at(cluster.cpu_free_milli(node), shapes_),
                       memory_.at(cluster.memory_free_mib(node), shapes_), state.cards, state.idle);
    return state;
}

// The weights add up to less than 2^15 and the limits fit 15 bits, so the sums fit 32 bits.
GPUSCHED_EXPORT std::int32_t ExpectedFill::value(const View& view, const std::int16_t* cpu,
                                                 const std::int16_t* memory, std::int32_t cards,
                                                 int idle) const noexcept {
    const auto several = shapes_ - singles_;
    const auto row = [](const std::int16_t* first, std::size_t size) {
        return Eigen::Map<const Eigen::Array<std::int16_t, Eigen::Dynamic, 1>>(
            first, static_cast<Eigen::Index>(size));
    };
    const auto weighted = [&](std::size_t from, std::size_t size, const auto& room) {
        const auto filled = row(cpu + from, size).min(row(memory + from, size)).min(room);
        return (row(view.weights.data() + from, size).cast<std::int32_t>() *
                filled.template cast<std::int32_t>())
            .sum();
    };
    return weighted(0, singles_, static_cast<std::int16_t>(cards)) +
           weighted(singles_, several,
                    row(whole_.data() + static_cast<std::size_t>(idle) * several, several));
}

GPUSCHED_EXPORT double ExpectedFill::fill(const Cluster& cluster, NodeId node) const {
    return state(cluster, node).fill / (static_cast<double>(parts_) * all_weight);
}

GPUSCHED_EXPORT ExpectedFill::Choice ExpectedFill::best(const Cluster& cluster, TaskId task, NodeId node,
                                                        GpuMask candidates, const NodeState& state) const {
    const auto& tasks = cluster.inventory().tasks;
    const auto& seen = view(cluster, node);
    // An LP task takes lent capacity first. Lent capacity is not idle for other tasks, so the loss is
    // smaller.
    const auto lent = cluster.lent_to(task);
    const int share = tasks.gpu_share_milli[index(task)];
    const auto* const cpu =
        cpu_.at(std::min(cluster.cpu_free_milli(node),
                         cluster.cpu_free_milli(node, lent) - tasks.cpu_milli[index(task)]),
                shapes_);
    const auto* const memory =
        memory_.at(cluster.memory_free_mib(node) - tasks.memory_mib[index(task)], shapes_);
    struct Room {
        std::int32_t cards;
        int idle;
    };
    const auto take = [&](Room& room, int g) {
        const int had = cluster.gpu_free_milli(node, g);
        const int has = std::min(had, cluster.gpu_free_milli(node, g, lent) - share);
        room.cards += seen.card[static_cast<std::size_t>(has)] - seen.card[static_cast<std::size_t>(had)];
        room.idle -= had == whole_gpu_milli && has < had ? 1 : 0;
    };

    const Room before{state.cards, state.idle};
    Choice best;
    std::int32_t most = 0;
    if (tasks.gpu_count[index(task)] > 0 && cluster.is_fraction(task)) {
        // The measure grows with `cards` and with `idle`. Only the best GPU in use and the best idle GPU can
        // win. The idle GPU can win only if it leaves larger `cards`.
        std::array<Room, 2> after{};
        std::array<GpuMask, 2> gpus{};
        for_each_gpu(candidates, [&](int g) {
            auto now = before;
            take(now, g);
            const std::size_t kind = now.idle == before.idle ? 0 : 1;
            if (gpus[kind] == 0 || now.cards > after[kind].cards) after[kind] = now, gpus[kind] = gpu_bit(g);
        });
        for (std::size_t kind = 0; kind < 2; ++kind) {
            if (gpus[kind] == 0 || (kind == 1 && gpus[0] != 0 && after[1].cards <= after[0].cards)) continue;
            const auto now = value(seen, cpu, memory, after[kind].cards, after[kind].idle);
            if (best.gpus == 0 || now > most) best.gpus = gpus[kind], most = now;
        }
    } else {
        best.gpus = lowest_gpus(candidates, tasks.gpu_count[index(task)]);
        auto after = before;
        for_each_gpu(best.gpus, [&](int g) { take(after, g); });
        most = value(seen, cpu, memory, after.cards, after.idle);
    }
    const auto lost = std::int64_t{state.fill} - most - cluster.gpu_milli(task) * per_milli_;
    const auto grains = lost + grain_ / 2;
    best.score = grains >= 0 ? -(grains / grain_) : (grain_ - 1 - grains) / grain_;
    return best;
}

}  // namespace gpusched::fragmentation
