// SPDX-License-Identifier: Apache-2.0
// The depth-first search of pack().
#include "allocation/exact_packing.hpp"
#include "allocation/packing_nodes.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <utility>

namespace gpusched::allocation::detail {

class Packing {
  public:
    Packing(Cluster& cluster, std::span<const PodShape> shapes, std::int64_t& steps, Budget* budget,
            Obstacle ignored)
        : cluster_(cluster), shapes_(shapes), nodes_(cluster, shapes, steps, budget, ignored) {}

    Packed alone(std::span<const NodeId> nodes, std::vector<Placement>& out) {
        const auto before = cluster_.checkpoint();
        const bool complete = nodes_.read(nodes);
        cluster_.rollback(before);
        if (!complete) return Packed::unknown;
        const auto found = cover();
        if (found == Packed::yes) list(out);
        return found;
    }

    /// Places one pod after another, trying the nodes in their order for each.
    Packed grouped(std::span<const NodeId> nodes, std::vector<Placement>& out) {
        const auto before = cluster_.checkpoint();
        const auto found = put_grouped(nodes);
        if (found == Packed::yes)
            for (const auto& shape : shapes_)
                for (const auto pod : shape.pods)
                    out.push_back({pod, cluster_.node_of(pod), cluster_.gpus_of(pod)});
        cluster_.rollback(before);
        return found;
    }

  private:
    using Amounts = PackingNodes::Amounts;
    using Counts = PackingNodes::Counts;
    [[nodiscard]] const auto& kinds() const noexcept { return nodes_.kinds(); }
    struct Choice {
        std::size_t kind = 0, option = 0;
        std::int32_t left = 0, taken = 0;  // nodes of the kind, and of these with the option
    };
    struct Hash {
        std::size_t operator()(const Counts& state) const noexcept {
            std::uint64_t h = 0xcbf29ce484222325u;
            for (const auto x : state)
                h = (h ^ static_cast<std::uint32_t>(x)) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
            return static_cast<std::size_t>(h);
        }
    };

    /// Chooses options, and how often each is taken, so that they cover all pods.
    Packed cover() {
        Counts open;  // pods that no option covers yet; negative if the options take more pods than there are
        for (const auto& shape : shapes_) open.push_back(static_cast<std::int32_t>(shape.pods.size()));
        std::unordered_set<Counts, Hash> failed;
        const auto take = [&](const Choice& c, std::int32_t times) {
            const auto& counts = kinds()[c.kind].options[c.option].counts;
            for (std::size_t s = 0; s < open.size(); ++s) open[s] -= times * counts[s];
        };
        const auto first = [&](std::size_t kind) {
            return Choice{kind, 0,
                          kind < kinds().size() ? static_cast<std::int32_t>(kinds()[kind].nodes.size()) : 0,
                          0};
        };
        auto next = first(0);
        while (true) {
            if (std::all_of(open.begin(), open.end(), [](std::int32_t n) { return n <= 0; }))
                return Packed::yes;
            if (!nodes_.step()) return Packed::unknown;
            if (next.kind < kinds().size() && may_cover(next, open) && !failed.contains(state(next, open))) {
                const auto& counts = kinds()[next.kind].options[next.option].counts;
                std::int32_t useful = 0;
                for (std::size_t s = 0; s < open.size(); ++s)
                    if (open[s] > 0 && counts[s] > 0)
                        useful = std::max(useful, (open[s] + counts[s] - 1) / counts[s]);
                next.taken = std::min(useful, next.left);
                take(next, next.taken);
                chosen_.push_back(next);
            } else {
                while (!chosen_.empty() && chosen_.back().taken == 0) {
                    failed.insert(state(chosen_.back(), open));
                    chosen_.pop_back();
                }
                if (chosen_.empty()) return Packed::no;
                take(chosen_.back(), -1);
                --chosen_.back().taken;
            }
            const auto& last = chosen_.back();
            next = last.option + 1 < kinds()[last.kind].options.size() && last.left > last.taken
                       ? Choice{last.kind, last.option + 1, last.left - last.taken, 0}
                       : first(last.kind + 1);
        }
    }
    [[nodiscard]] static Counts state(const Choice& c, const Counts& open) {
        Counts key{static_cast<std::int32_t>(c.kind), static_cast<std::int32_t>(c.option), c.left};
        for (const auto n : open) key.push_back(std::max(n, 0));
        return key;
    }
    [[nodiscard]] bool may_cover(const Choice& c, const Counts& open) const {
        const auto& kind = kinds()[c.kind];
        const auto& option = kind.options[c.option];
        Amounts open_of{};
        for (std::size_t s = 0; s < open.size(); ++s) {
            if (open[s] <= 0) continue;
            if (std::int64_t{c.left} * option.most[s] + kind.after[s] < open[s]) return false;
            for (std::size_t w = 0; w < open_of.size(); ++w)
                open_of[w] = nodes_.plus(open_of[w], nodes_.times(open[s], nodes_.each(s)[w]));
        }
        for (std::size_t w = 0; w < open_of.size(); ++w)
            if (nodes_.plus(nodes_.times(c.left, option.most_of[w]), kind.after_of[w]) < open_of[w])
                return false;
        return true;
    }

    /// Lists the placements of the chosen options.
    void list(std::vector<Placement>& out) const {
        std::vector<std::size_t> next(shapes_.size(), 0), used(kinds().size(), 0);
        for (const auto& c : chosen_) {
            const auto& kind = kinds()[c.kind];
            const auto& option = kind.options[c.option];
            for (std::int32_t i = 0; i < c.taken; ++i) {
                const auto node = kind.nodes[used[c.kind]++];
                const auto put = [&](std::size_t s, GpuMask gpus) {
                    if (next[s] < shapes_[s].pods.size())
                        out.push_back({shapes_[s].pods[next[s]++], node, gpus});
                };
                for (const auto& [s, gpus] : option.gpus) put(s, gpus);
                if (!option.gpus.empty()) continue;
                GpuMask taken = 0;
                for (const auto s : nodes_.largest_first())
                    for (std::int32_t n = 0; n < option.counts[s]; ++n) {
                        const auto free = candidate_gpus(cluster_, nodes_.sample(s), node);
                        const auto gpus =
                            lowest_gpus(static_cast<GpuMask>(free & ~taken),
                                        cluster_.inventory().tasks.gpu_count[index(nodes_.sample(s))]);
                        taken |= gpus;
                        put(s, gpus);
                    }
            }
        }
    }

    Packed put_grouped(std::span<const NodeId> nodes) {
        std::vector<std::pair<std::size_t, TaskId>> pods;  // with their shapes, in the order of placement
        for (const auto s : nodes_.largest_first())
            for (const auto pod : shapes_[s].pods) pods.emplace_back(s, pod);
        struct Put {
            std::size_t node = 0;
            PackingNodes::GpuSets choices{};  // not tried yet on that node, the next one last
        };
        std::vector<Put> put;  // the placed pods, and the one that is being placed
        put.emplace_back();
        while (true) {
            const auto at = put.size() - 1;
            const auto [s, pod] = pods[at];
            auto& here = put.back();
            if (cluster_.is_placed(pod)) cluster_.remove(pod);
            while (here.choices.empty() && here.node < nodes.size()) {
                if (!nodes_.step()) return Packed::unknown;
                const auto node = nodes[here.node];
                if (nodes_.admits(pod, node) && nodes_.has_room(s, node)) {
                    here.choices = nodes_.gpu_choices(s, node);
                    std::reverse(here.choices.begin(), here.choices.end());
                }
                if (here.choices.empty()) ++here.node;
            }
            if (here.choices.empty()) {
                put.pop_back();
                if (put.empty()) return depends_on_order() ? Packed::unknown : Packed::no;
                if (put.back().choices.empty()) ++put.back().node;
                continue;
            }
            cluster_.assign(pod, nodes[here.node], here.choices.back());
            here.choices.pop_back();
            if (put.size() == pods.size()) return Packed::yes;
            const bool alike = pods[at + 1].first == s;
            const auto from = alike && !depends_on_order() ? here.node : 0;
            put.push_back({from, {}});
        }
    }

    // Pods that want to be near others, or spread, may fit in one order and not in another. Not all orders
    // are tried.
    [[nodiscard]] bool depends_on_order() const {
        return std::any_of(shapes_.begin(), shapes_.end(), [&](const PodShape& shape) {
            return !cluster_.inventory().selection_memberships(shape.pods.front()).empty();
        });
    }

    Cluster& cluster_;
    std::span<const PodShape> shapes_;
    PackingNodes nodes_;
    std::vector<Choice> chosen_;
};

Packed pack(Cluster& cluster, std::span<const PodShape> shapes, std::span<const NodeId> nodes, bool grouped,
            std::int64_t& steps, std::vector<Placement>& out, Budget* budget, Obstacle ignored) {
    out.clear();
    if (steps <= 0) return Packed::unknown;
    Packing packing(cluster, shapes, steps, budget, ignored);
    return grouped ? packing.grouped(nodes, out) : packing.alone(nodes, out);
}

}  // namespace gpusched::allocation::detail
