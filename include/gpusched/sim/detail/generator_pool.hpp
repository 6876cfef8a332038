// The nodes that compete for the same generated tasks, in a compact form made for sampling.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/detail/generator_presets.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::sim::detail {

inline constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();

/// Free capacity of a set of nodes, with uniform sampling among those that could take a shape.
class NodePool {
  public:
    void add(const NodeSpec& spec) {
        Node node;
        node.cpu_milli = spec.cpu_milli;
        node.memory_mib = spec.memory_mib;
        node.idle = first_gpus(static_cast<int>(spec.gpu_count));
        std::fill_n(node.gpu_free.begin(), spec.gpu_count, std::int16_t{1000});
        nodes_.push_back(node);
    }

    /// Call once after the last `add`.
    void index() {
        order_.resize(nodes_.size());
        rank_.resize(nodes_.size());
        for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
        std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
            return idle_gpus(a) != idle_gpus(b) ? idle_gpus(a) > idle_gpus(b) : a < b;
        });
        for (std::uint32_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = i;
        at_least_.fill(0);
        for (const auto node : order_)
            for (int g = 0; g <= idle_gpus(node); ++g) ++at_least_[static_cast<std::size_t>(g)];
    }

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
    [[nodiscard]] int idle_gpus(std::uint32_t node) const { return gpu_count(nodes_[node].idle); }
    [[nodiscard]] GpuMask idle_mask(std::uint32_t node) const { return nodes_[node].idle; }

    [[nodiscard]] bool fits(const TaskShape& shape, std::uint32_t node) const {
        const auto& n = nodes_[node];
        if (shape.cpu_milli > n.cpu_milli || shape.memory_mib > n.memory_mib) return false;
        if (shape.gpu_share_milli == 1000) return shape.gpu_count <= gpu_count(n.idle);
        return std::any_of(n.gpu_free.begin(), n.gpu_free.end(),
                           [&](std::int16_t free) { return free >= shape.gpu_share_milli; });
    }

    /// A node for the shape, chosen by the layout's rule among feasible nodes not in `excluded`; `no_node` if none.
    std::uint32_t choose(const TaskShape& shape, Layout layout, std::span<const std::uint32_t> excluded,
                         Rng& rng) {
        const bool fraction = shape.gpu_share_milli < 1000;
        const auto usable = [&](std::uint32_t node) {
            return fits(shape, node) && std::find(excluded.begin(), excluded.end(), node) == excluded.end();
        };
        // The nodes with enough idle GPUs come first in order_; a fraction may also go to a used GPU.
        const auto pool =
            std::span(order_).first(at_least_[fraction ? 0 : static_cast<std::size_t>(shape.gpu_count)]);
        if (pool.empty()) return no_node;
        const int samples = layout == Layout::random ? 1 : 30;
        std::uint32_t best = no_node;
        int found = 0;
        const auto consider = [&](std::uint32_t node) {
            ++found;
            const auto idle = [&](std::uint32_t n) { return idle_gpus(n); };
            if (best == no_node || (layout == Layout::spread && idle(node) > idle(best)) ||
                (layout == Layout::packed && idle(node) < idle(best)))
                best = node;
        };
        for (int draws = 0; draws < 10 * samples && found < samples; ++draws)
            if (const auto node = rng.pick(pool); usable(node)) consider(node);
        if (best != no_node) return best;
        // Feasible nodes are rare: find them all.
        feasible_.clear();
        std::copy_if(pool.begin(), pool.end(), std::back_inserter(feasible_), usable);
        if (feasible_.empty()) return no_node;
        while (found < samples) consider(rng.pick(std::span(feasible_)));
        return best;
    }

    /// The GPUs that the shape takes by default: the lowest idle ones, or the tightest GPU for a fraction.
    [[nodiscard]] GpuMask default_gpus(const TaskShape& shape, std::uint32_t node) const {
        const auto& n = nodes_[node];
        if (shape.gpu_share_milli == 1000) return lowest_gpus(n.idle, shape.gpu_count);
        int best = -1;
        for (int g = 0; g < static_cast<int>(n.gpu_free.size()); ++g) {
            const auto free = n.gpu_free[static_cast<std::size_t>(g)];
            if (free >= shape.gpu_share_milli &&
                (best < 0 || free < n.gpu_free[static_cast<std::size_t>(best)]))
                best = g;
        }
        return gpu_bit(best);
    }

    void take(const TaskShape& shape, std::uint32_t node, GpuMask gpus) { change(shape, node, gpus, -1); }
    void give_back(const TaskShape& shape, std::uint32_t node, GpuMask gpus) {
        change(shape, node, gpus, +1);
    }

  private:
    static constexpr std::size_t most_gpus = 32;  // of any preset's nodes, the large ones included
    struct Node {
        std::int64_t cpu_milli = 0, memory_mib = 0;
        std::array<std::int16_t, most_gpus> gpu_free{};  // thousandths
        GpuMask idle = 0;
    };

    void change(const TaskShape& shape, std::uint32_t node, GpuMask gpus, int sign) {
        auto& n = nodes_[node];
        n.cpu_milli += sign * shape.cpu_milli;
        n.memory_mib += sign * shape.memory_mib;
        const int before = gpu_count(n.idle);
        for_each_gpu(gpus, [&](int g) {
            auto& free = n.gpu_free[static_cast<std::size_t>(g)];
            free = static_cast<std::int16_t>(free + sign * shape.gpu_share_milli);
            n.idle = static_cast<GpuMask>(free == 1000 ? n.idle | gpu_bit(g) : n.idle & ~gpu_bit(g));
        });
        // Keep order_ sorted: cross one boundary between idle counts at a time.
        const int after = gpu_count(n.idle);
        for (int idle = before; idle > after; --idle)
            swap_places(rank_[node], --at_least_[static_cast<std::size_t>(idle)]);
        for (int idle = before + 1; idle <= after; ++idle)
            swap_places(rank_[node], at_least_[static_cast<std::size_t>(idle)]++);
    }

    void swap_places(std::uint32_t a, std::uint32_t b) {
        std::swap(order_[a], order_[b]);
        rank_[order_[a]] = a;
        rank_[order_[b]] = b;
    }

    std::vector<Node> nodes_;
    std::vector<std::uint32_t> order_;                     // by falling number of idle GPUs
    std::vector<std::uint32_t> rank_;                      // the inverse of order_
    std::array<std::uint32_t, most_gpus + 1> at_least_{};  // how many nodes have at least that many idle GPUs
    std::vector<std::uint32_t> feasible_;
};

}  // namespace GPUSCHED_NAMESPACE::sim::detail
