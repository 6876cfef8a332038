// SPDX-License-Identifier: Apache-2.0
// pack(): the combinations of pods that each node can take, and a depth-first search for a cover.
#include "allocation/exact_packing.hpp"

#include <gpusched/core/detail/small_vector.hpp>
#include <gpusched/core/order.hpp>

#include <boost/container/flat_map.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

namespace gpusched::allocation::detail {

/// The nodes' part of `pack`.
class PackingNodes {
  public:
    using Amounts = std::array<std::int64_t, 3>;  // thousandths of a GPU, of a core, MiB
    // Short lists, made and copied at every step: pods by shape, sets of GPUs, keys of states.
    using Counts = boost::container::small_vector<std::int32_t, 8>;
    using GpuSets = boost::container::small_vector<GpuMask, 16>;
    using Key = boost::container::small_vector<std::int64_t, 32>;
    struct Option {
        Counts counts{};
        boost::container::small_vector<std::pair<std::uint32_t, GpuMask>, 8>
            gpus{};     // only if numbers alone do not determine the GPUs
        Counts most{};  // the most of each shape in this and the following options
        Amounts most_of{};
    };
    struct Kind {
        std::vector<Option> options{};
        std::vector<NodeId> nodes{};
        Counts after{};  // upper bound of each shape on the nodes of the following kinds
        Amounts after_of{};
    };

    /// Larger amounts are equivalent: no node or task has so much.
    static constexpr auto most_amount = INT64_MAX / 4;
    static std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
        return a > most_amount - b ? most_amount : a + b;
    }
    static std::int64_t times(std::int64_t count, std::int64_t each) noexcept {
        return count > 0 && each > most_amount / count ? most_amount : count * each;
    }

    PackingNodes(Cluster& cluster, std::span<const PodShape> shapes, std::int64_t& steps, Budget* budget,
                 Obstacle ignored)
        : cluster_(cluster), inv_(cluster.inventory()), shapes_(shapes), steps_(steps), budget_(budget),
          ignored_(ignored) {
        const auto& t = inv_.tasks;
        for (const auto& shape : shapes) {
            const auto i = index(shape.pods.front());
            const auto count = static_cast<std::int64_t>(shape.pods.size());
            const Amounts each{t.gpu_count[i] * std::int64_t{t.gpu_share_milli[i]}, t.cpu_milli[i],
                               t.memory_mib[i]};
            for (std::size_t w = 0; w < each.size(); ++w) need_[w] = plus(need_[w], times(count, each[w]));
            each_.push_back(each);
            whole_ = whole_ && t.gpu_share_milli[i] == whole_gpu_milli;
            extras_ = extras_ || t.extras[i] != 0;
        }
        largest_first_ = order_by(shapes.size(), [&](std::size_t s) {
            return std::tuple(-each_[s][0], -each_[s][1], -each_[s][2]);
        });
    }

    /// Subtracts `count` steps from the limit. A step costs more if there are many shapes. False if the limit
    /// is used up.
    bool step(std::int64_t count = 1) {
        const auto cost = count * (1 + static_cast<std::int64_t>(shapes_.size()) / 16);
        steps_ = std::max<std::int64_t>(0, steps_ - cost);
        return look(cost);
    }
    /// Counts work only for checks of the caller's time limit and cancellation.
    bool look(std::int64_t cost) {
        since_look_ += cost;
        if (since_look_ >= 256) {
            since_look_ = 0;
            if (budget_ != nullptr && budget_->exhausted()) steps_ = 0;
        }
        return steps_ > 0;
    }
    [[nodiscard]] TaskId sample(std::size_t s) const { return shapes_[s].pods.front(); }
    [[nodiscard]] bool admits(TaskId task, NodeId node) const {
        return inv_.nodes.receives(node) && inv_.eligible(task, node) &&
               find_group_obstacle(cluster_, task, node, ignored_) == Obstacle::none;
    }
    /// True if CPU, memory and named resources suffice for one more pod of the shape.
    [[nodiscard]] bool has_room(std::size_t s, NodeId node) const {
        if (extras_)
            for (const auto& [resource, amount] : extras(s).resources)
                if (amount > cluster_.resource_free(node, resource)) return false;
        return each_[s][1] <= cluster_.cpu_free_milli(node, cluster_.lent_to(sample(s))) &&
               each_[s][2] <= cluster_.memory_free_mib(node);
    }

    /// Returns the sets of GPUs and other devices that a pod of the shape could take, one of each group of
    /// equivalent sets.
    [[nodiscard]] GpuSets gpu_choices(std::size_t s, NodeId node) {
        auto sets = whole_gpu_choices(s, node);
        if (!extras_ || extras(s).device_count == 0) return sets;
        GpuSets both;
        for (const auto device_class : extras(s).device_classes) {
            const auto free =
                cluster_.free_devices(node) & gpusched::detail::devices_of_class(inv_, node, device_class);
            if (gpusched::gpu_count(free) < extras(s).device_count) continue;
            for (const auto set : sets) both.push_back(set | lowest_gpus(free, extras(s).device_count));
        }
        return both;
    }
    /// The same for GPUs only: whole GPUs, or the one GPU of a fraction.
    [[nodiscard]] GpuSets whole_gpu_choices(std::size_t s, NodeId node) {
        const int count = inv_.tasks.gpu_count[index(sample(s))];
        if (count == 0) return {GpuMask{0}};
        const auto* const places = hardware(node);
        if (is_bound(s) && places == nullptr) return {};
        boost::container::flat_map<Key, GpuMask> alike;
        for_each_gpu(candidate_gpus(cluster_, sample(s), node), [&](int g) {
            Key key;
            append(key, node, g);
            if (places != nullptr)
                for (const auto* const masks : {&places->numa, &places->socket})
                    for (const auto mask : *masks) key.push_back((mask & gpu_bit(g)) != 0);
            alike[std::move(key)] |= gpu_bit(g);
        });
        GpuSets sets{GpuMask{0}};
        for (const auto& [key, gpus] : alike) {
            const auto before = sets.size();
            if (before > most_sets) return steps_ = 0, GpuSets{};
            for (std::size_t i = 0; i < before; ++i)
                for (int n = 1; n <= gpusched::gpu_count(gpus) && gpusched::gpu_count(sets[i]) + n <= count;
                     ++n)
                    sets.push_back(static_cast<GpuMask>(sets[i] | lowest_gpus(gpus, n)));
        }
        step(static_cast<std::int64_t>(sets.size()) / 8);
        const auto unfit = [&](GpuMask set) {
            if (gpusched::gpu_count(set) != count) return true;
            if (!is_bound(s)) return false;
            const auto& masks = *shapes_[s].level == HardwareLevel::numa ? places->numa : places->socket;
            return std::none_of(masks.begin(), masks.end(), [&](GpuMask m) { return (set & ~m) == 0; });
        };
        sets.erase(std::remove_if(sets.begin(), sets.end(), unfit), sets.end());
        return sets;
    }

    /// Fills `kinds`. False if the limit was hit. Leaves the cluster unchanged, except for its log.
    bool read(std::span<const NodeId> nodes) {
        std::map<Key, std::size_t> known;
        std::int64_t pods = 0;
        for (const auto& shape : shapes_) pods += static_cast<std::int64_t>(shape.pods.size());
        if (shapes_.size() > deepest) return steps_ = 0, false;
        for (const auto node : nodes) {
            if (!look(2 * static_cast<std::int64_t>(shapes_.size()))) return false;
            auto v = view(node);
            const auto [at, fresh] = known.try_emplace(std::move(v.key), kinds_.size());
            if (fresh) {
                auto& kind = kinds_.emplace_back();
                Option option;
                option.counts.resize(shapes_.size());
                Seen seen;
                if (v.by_numbers)
                    by_numbers(v, 0, v.room, option, kind.options);
                else
                    by_gpus(v, 0, node, option, kind.options, seen);
                if (!keep_best(kind.options)) return false;
            }
            // More nodes of a kind than pods make no difference.
            auto& of_kind = kinds_[at->second].nodes;
            if (static_cast<std::int64_t>(of_kind.size()) < pods) of_kind.push_back(node);
        }
        std::erase_if(kinds_, [](const Kind& kind) { return kind.options.empty(); });
        // Small nodes come first, so that pods which they cannot take are found early.
        const auto gpus = [](const Kind& kind) {
            return std::tuple(kind.options.front().most_of, kind.nodes.front());
        };
        std::sort(kinds_.begin(), kinds_.end(),
                  [&](const Kind& a, const Kind& b) { return gpus(a) < gpus(b); });
        Counts after(shapes_.size(), 0);
        Amounts after_of{};
        for (auto k = kinds_.rbegin(); k != kinds_.rend(); ++k) {
            k->after = after;
            k->after_of = after_of;
            const auto& best = k->options.front();
            const auto many = static_cast<std::int64_t>(k->nodes.size());
            for (std::size_t s = 0; s < after.size(); ++s)
                after[s] = static_cast<std::int32_t>(
                    std::min<std::int64_t>(INT32_MAX / 2, after[s] + many * best.most[s]));
            for (std::size_t w = 0; w < after_of.size(); ++w)
                after_of[w] = std::min(need_[w], plus(after_of[w], times(many, best.most_of[w])));
        }
        return true;
    }

  protected:
    Cluster& cluster_;
    const Inventory& inv_;
    std::span<const PodShape> shapes_;
    std::int64_t& steps_;
    Budget* budget_;
    Obstacle ignored_;
    std::int64_t since_look_ = 0;
    std::vector<Amounts> each_;  // by shape: the amounts of one pod
    Amounts need_{};
    bool whole_ = true;
    bool extras_ = false;  // some shape asks for more than CPU, memory and GPUs
    std::vector<std::size_t> largest_first_;
    std::vector<Kind> kinds_;

  private:
    /// The most shapes, and the most pods that are tried one by one on a node. Both are depths of recursion.
    static constexpr std::size_t deepest = 1'000;
    /// The most distinct sets of GPUs on a node; reached only if more than 16 GPUs differ.
    static constexpr std::size_t most_sets = std::size_t{1} << 16;
    using Seen = std::set<Key>;
    [[nodiscard]] const HardwareMasks* hardware(NodeId node) const {
        const auto h = inv_.nodes.hardware[index(node)];
        return h == NodeTable::no_hardware ? nullptr : &inv_.hardware[h];
    }
    /// The relevant state of a node; its whole state if numbers do not suffice.
    struct View {
        Key key{};
        boost::container::small_vector<std::uint8_t, 16> admitted{};
        bool by_numbers = true;
        Amounts room{};
    };
    [[nodiscard]] const Extras& extras(std::size_t s) const {
        return inv_.extras[inv_.tasks.extras[index(sample(s))]];
    }
    /// Appends free amounts other than CPU, memory and GPUs, if some shape requests such resources.
    void append_extras(Key& key, NodeId node) const {
        if (!extras_) return;
        key.push_back(static_cast<std::int64_t>(cluster_.free_devices(node)));
        for (std::uint32_t r = 0; r < inv_.resource_names.size(); ++r)
            key.push_back(cluster_.resource_free(node, r));
    }
    [[nodiscard]] View view(NodeId node) const {
        View v;
        v.admitted.resize(shapes_.size());
        v.by_numbers = whole_ && !extras_;
        std::optional<GpuMask> gpus;
        std::optional<Lent> lent;
        for (std::size_t s = 0; s < shapes_.size(); ++s) {
            v.admitted[s] = admits(sample(s), node);
            v.key.push_back(v.admitted[s]);
            if (!v.admitted[s]) continue;
            if (lent && *lent != cluster_.lent_to(sample(s))) v.by_numbers = false;
            lent = cluster_.lent_to(sample(s));
            if (each_[s][0] == 0) continue;
            const auto candidates = candidate_gpus(cluster_, sample(s), node);
            if ((gpus && *gpus != candidates) || is_bound(s)) v.by_numbers = false;
            gpus = candidates;
        }
        if (!lent) return v;  // takes no shape
        v.room = {gpusched::gpu_count(gpus.value_or(0)) * std::int64_t{whole_gpu_milli},
                  cluster_.cpu_free_milli(node, *lent), cluster_.memory_free_mib(node)};
        for (std::size_t w = 0; w < v.room.size(); ++w) v.room[w] = std::min(v.room[w], need_[w]);
        v.key.insert(v.key.end(), v.room.begin(), v.room.end());
        if (v.by_numbers) return v;
        v.key.push_back(inv_.nodes.hardware[index(node)]);
        v.key.push_back(inv_.nodes.gpu_memory_mib[index(node)]);
        for (const auto l : {Lent::no, Lent::yes}) {
            v.key.push_back(cluster_.cpu_free_milli(node, l));
            v.key.push_back(static_cast<std::int64_t>(cluster_.idle_gpus(node, l)));
        }
        if (extras_) v.key.push_back(inv_.nodes.devices[index(node)]);
        append_extras(v.key, node);
        for (int g = 0; g < cluster_.gpu_count(node); ++g) append(v.key, node, g);
        return v;
    }
    void append(Key& key, NodeId node, int g) const {
        key.push_back(cluster_.gpu_free_milli(node, g, Lent::no));
        key.push_back(cluster_.gpu_free_milli(node, g, Lent::yes));
        key.push_back(cluster_.gpu_memory_free_mib(node, g));
    }
    [[nodiscard]] bool is_bound(std::size_t s) const {
        return shapes_[s].level && inv_.tasks.gpu_count[index(sample(s))] > 1;
    }

    void by_numbers(const View& v, std::size_t at, const Amounts& room, Option& option,
                    std::vector<Option>& out) {
        if (at == shapes_.size()) {
            if (step()) out.push_back(option);
            return;
        }
        const auto s = largest_first_[at];
        auto most = v.admitted[s] && room[1] >= 0 && room[2] >= 0
                        ? static_cast<std::int64_t>(shapes_[s].pods.size())
                        : 0;
        for (std::size_t w = 0; w < room.size(); ++w)
            if (each_[s][w] > 0) most = std::min(most, std::max<std::int64_t>(room[w], 0) / each_[s][w]);
        for (auto n = most; n >= 0 && steps_ > 0; --n) {
            auto rest = room;
            for (std::size_t w = 0; w < room.size(); ++w) rest[w] -= n * each_[s][w];
            option.counts[s] = static_cast<std::int32_t>(n);
            by_numbers(v, at + 1, rest, option, out);
            if (at + 1 == shapes_.size()) break;
        }
        option.counts[s] = 0;
    }

    /// Tries pod by pod in the cluster, with every distinct choice of GPUs.
    void by_gpus(const View& v, std::size_t at, NodeId node, Option& option, std::vector<Option>& out,
                 Seen& seen) {
        Key state(option.counts.begin(), option.counts.end());
        state.push_back(static_cast<std::int64_t>(at));
        for (int g = 0; g < cluster_.gpu_count(node); ++g) append(state, node, g);
        append_extras(state, node);
        if (!step() || !seen.insert(std::move(state)).second) return;
        if (option.gpus.size() > deepest) {
            steps_ = 0;
            return;
        }
        if (at == shapes_.size()) {
            out.push_back(option);
            return;
        }
        const auto s = largest_first_[at];
        const auto& pods = shapes_[s].pods;
        const auto next = static_cast<std::size_t>(option.counts[s]);
        if (v.admitted[s] && next < pods.size() && has_room(s, node))
            for (const auto gpus : gpu_choices(s, node)) {
                cluster_.assign(pods[next], node, gpus);
                ++option.counts[s];
                option.gpus.emplace_back(static_cast<std::uint32_t>(s), gpus);
                by_gpus(v, at, node, option, out, seen);
                option.gpus.pop_back();
                --option.counts[s];
                cluster_.remove(pods[next]);
            }
        by_gpus(v, at + 1, node, option, out, seen);
    }

    /// Keeps only maximal options, the largest first. False if the limit was hit.
    bool keep_best(std::vector<Option>& options) {
        const auto amounts = [&](const Option& o) {
            Amounts sum{};
            for (std::size_t s = 0; s < shapes_.size(); ++s)
                for (std::size_t w = 0; w < sum.size(); ++w) sum[w] += o.counts[s] * each_[s][w];
            return sum;
        };
        const auto pods = [](const Option& o) {
            return std::accumulate(o.counts.begin(), o.counts.end(), 0);
        };
        // Sorting costs steps, too.
        const auto count = static_cast<std::int64_t>(options.size());
        if (!step(count * std::bit_width(options.size()) / 4)) return false;
        for (auto& o : options) o.most_of = amounts(o);
        std::sort(options.begin(), options.end(), [&](const Option& a, const Option& b) {
            return std::tuple(pods(a), a.counts) > std::tuple(pods(b), b.counts);
        });
        std::vector<Option> best;
        for (auto& o : options) {
            if (pods(o) == 0) break;
            bool held = false;
            for (const auto& b : best) {
                if (!step()) return false;
                held = std::equal(o.counts.begin(), o.counts.end(), b.counts.begin(),
                                  [](std::int32_t x, std::int32_t y) { return x <= y; });
                if (held) break;
            }
            if (!held) best.push_back(std::move(o));
        }
        if (steps_ <= 0) return false;
        std::sort(best.begin(), best.end(), [](const Option& a, const Option& b) {
            return std::tuple(a.most_of, a.counts) > std::tuple(b.most_of, b.counts);
        });
        for (std::size_t i = best.size(); i-- > 0;) {
            best[i].most = best[i].counts;
            if (i + 1 == best.size()) continue;
            const auto& next = best[i + 1];
            for (std::size_t s = 0; s < next.most.size(); ++s)
                best[i].most[s] = std::max(best[i].most[s], next.most[s]);
            for (std::size_t w = 0; w < next.most_of.size(); ++w)
                best[i].most_of[w] = std::max(best[i].most_of[w], next.most_of[w]);
        }
        options = std::move(best);
        return true;
    }
};

/// The search of `pack`.
class Packing : PackingNodes {
  public:
    using PackingNodes::PackingNodes;

    Packed alone(std::span<const NodeId> nodes, std::vector<Placement>& out) {
        const auto before = cluster_.checkpoint();
        const bool complete = read(nodes);
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
            const auto& counts = kinds_[c.kind].options[c.option].counts;
            for (std::size_t s = 0; s < open.size(); ++s) open[s] -= times * counts[s];
        };
        const auto first = [&](std::size_t kind) {
            return Choice{kind, 0,
                          kind < kinds_.size() ? static_cast<std::int32_t>(kinds_[kind].nodes.size()) : 0, 0};
        };
        auto next = first(0);
        while (true) {
            if (std::all_of(open.begin(), open.end(), [](std::int32_t n) { return n <= 0; }))
                return Packed::yes;
            if (!step()) return Packed::unknown;
            if (next.kind < kinds_.size() && may_cover(next, open) && !failed.contains(state(next, open))) {
                const auto& counts = kinds_[next.kind].options[next.option].counts;
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
            next = last.option + 1 < kinds_[last.kind].options.size() && last.left > last.taken
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
        const auto& kind = kinds_[c.kind];
        const auto& option = kind.options[c.option];
        Amounts open_of{};
        for (std::size_t s = 0; s < open.size(); ++s) {
            if (open[s] <= 0) continue;
            if (std::int64_t{c.left} * option.most[s] + kind.after[s] < open[s]) return false;
            for (std::size_t w = 0; w < open_of.size(); ++w)
                open_of[w] = plus(open_of[w], times(open[s], each_[s][w]));
        }
        for (std::size_t w = 0; w < open_of.size(); ++w)
            if (plus(times(c.left, option.most_of[w]), kind.after_of[w]) < open_of[w]) return false;
        return true;
    }

    /// Lists the placements of the chosen options.
    void list(std::vector<Placement>& out) const {
        std::vector<std::size_t> next(shapes_.size(), 0), used(kinds_.size(), 0);
        for (const auto& c : chosen_) {
            const auto& kind = kinds_[c.kind];
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
                for (const auto s : largest_first_)
                    for (std::int32_t n = 0; n < option.counts[s]; ++n) {
                        const auto free = candidate_gpus(cluster_, sample(s), node);
                        const auto gpus = lowest_gpus(static_cast<GpuMask>(free & ~taken),
                                                      cluster_.inventory().tasks.gpu_count[index(sample(s))]);
                        taken |= gpus;
                        put(s, gpus);
                    }
            }
        }
    }

    Packed put_grouped(std::span<const NodeId> nodes) {
        std::vector<std::pair<std::size_t, TaskId>> pods;  // with their shapes, in the order of placement
        for (const auto s : largest_first_)
            for (const auto pod : shapes_[s].pods) pods.emplace_back(s, pod);
        struct Put {
            std::size_t node = 0;
            GpuSets choices{};  // not tried yet on that node, the next one last
        };
        std::vector<Put> put;  // the placed pods, and the one that is being placed
        put.emplace_back();
        while (true) {
            const auto at = put.size() - 1;
            const auto [s, pod] = pods[at];
            auto& here = put.back();
            if (cluster_.is_placed(pod)) cluster_.remove(pod);
            while (here.choices.empty() && here.node < nodes.size()) {
                if (!step()) return Packed::unknown;
                const auto node = nodes[here.node];
                if (admits(pod, node) && has_room(s, node)) {
                    here.choices = gpu_choices(s, node);
                    std::reverse(here.choices.begin(), here.choices.end());
                }
                if (here.choices.empty()) ++here.node;
            }
            if (here.choices.empty()) {
                put.pop_back();
                // Of pods of one shape, all orders are the same.
                if (put.empty())
                    return shapes_.size() > 1 && depends_on_order() ? Packed::unknown : Packed::no;
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
