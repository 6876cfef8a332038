// SPDX-License-Identifier: Apache-2.0
// The policies of consolidation, and sets of one policy of each kind that make an algorithm.
#pragma once

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::consolidation {

// ---- partitioners ---------------------------------------------------------------------------------------

/// Random groups of `partition_size` nodes, different in every round: the paper's divide and conquer.
struct RandomGroups {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// One pool per GPU model. Models share a pool if a movable task may run on both.
///
/// A group can only use the free capacity within it, so pools are cut only above `largest_group` nodes: the
/// time of a search grows with the square of its group. Runs of `dealt_together` nodes go to the parts in
/// turn. So the parts are similar, and neighbours in memory stay together.
struct ByGpuModel {
    static constexpr std::size_t largest_group = 5'000, dealt_together = 64;
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// Whole domains of the network's deepest level, collected in order within each pool up to `partition_size`
/// nodes, so that moves stay near.
struct BySwitch {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// Groups grown around random nodes of the network tree within each pool: first a node's access switch, then
/// its aggregation switch, then the rest.
struct ByLocality {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

// ---- node orders ----------------------------------------------------------------------------------------

/// Fewest pods first, the paper's order: such nodes are the easiest to vacate.
struct FewestPods {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        return cluster.occupants(node);
    }
};

/// Least demand to re-place first. Sixteen cores count as one GPU, since GPUs without cores are as useless as
/// none. A pod counts as one GPU, since each is a move.
struct LeastDemand {
    static constexpr std::int64_t cores_per_gpu = 16;
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto gpu_milli =
            std::int64_t{cluster.gpu_count(node)} * whole_gpu_milli - cluster.gpu_free_total_milli(node);
        const auto cpu_milli =
            cluster.inventory().nodes.cpu_milli[index(node)] - cluster.cpu_free_milli(node);
        return gpu_milli + cpu_milli / cores_per_gpu +
               std::int64_t{cluster.occupants(node)} * whole_gpu_milli;
    }
};

/// Orders nodes by demand divided by the cube root of their GPUs, lowest first; nodes without GPUs last. For
/// the objective `gpus`: a large node may have more demand than a small one, but not in proportion to its
/// GPUs, or no small node would be vacated.
struct LeastDemandForSize {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto gpus = cluster.gpu_count(node);
        if (gpus == 0) return std::numeric_limits<std::int64_t>::max() / 2;
        return LeastDemand{}(cluster, node) * 1000 / cube_roots_milli[static_cast<std::size_t>(gpus)];
    }

  private:
    // By number of GPUs, rounded down in integers, so that the order does not depend on a machine's rounding.
    static constexpr auto cube_roots_milli = [] {
        std::array<std::int64_t, max_gpus_per_node + 1> roots{};
        for (std::int64_t gpus = 1, root = 1000; gpus <= max_gpus_per_node; ++gpus) {
            while ((root + 1) * (root + 1) * (root + 1) <= gpus * 1'000'000'000) ++root;
            roots[static_cast<std::size_t>(gpus)] = root;
        }
        return roots;
    }();
};

/// Lowest share of GPUs in use first, as deschedulers by utilisation do.
struct LowestUtilisation {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto capacity = std::int64_t{cluster.gpu_count(node)} * whole_gpu_milli;
        if (capacity == 0) return 0;
        return (capacity - cluster.gpu_free_total_milli(node)) * 1'000'000 / capacity;
    }
};

// ---- node weights ---------------------------------------------------------------------------------------

/// Returns the maximum weight of a node, so that the sum over all nodes fits into 64 bits.
[[nodiscard]] inline std::int64_t most_node_weight(const Cluster& cluster) noexcept {
    return std::numeric_limits<std::int64_t>::max() /
           std::max<std::int64_t>(1, static_cast<std::int64_t>(cluster.node_count()));
}

/// The node's healthy GPUs.
struct GpuWeight {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        return gpu_count(cluster.healthy_gpus(node));
    }
};

/// One for every node.
struct UnitWeight {
    std::int64_t operator()(const Cluster&, NodeId) const noexcept { return 1; }
};

/// The node's healthy GPUs times a weight per GPU model.
struct ModelWeight {
    std::vector<std::int64_t> per_gpu;  ///< by GpuModelId; 1 beyond the end
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto model = index(cluster.inventory().nodes.gpu_model[index(node)]);
        const auto each = model < per_gpu.size() ? per_gpu[model] : std::int64_t{1};
        return std::min(each, std::numeric_limits<std::int64_t>::max() / max_gpus_per_node) *
               gpu_count(cluster.healthy_gpus(node));
    }
};

// ---- destination rankings -------------------------------------------------------------------------------

/// In the order of the group, as in the paper's pseudocode.
struct GroupOrder {
    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        for (const auto node : index.receivers_for(cluster, task))
            if (index.is_open(node) && offer(node)) return true;
        return false;
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return visit(cluster, index, task, offer);
    }
};

/// Tightest fit: fewest idle GPUs first, then fewest free cores. A fraction prefers the partly used GPU with
/// the least left to an idle GPU.
struct TightestFit {
    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        const auto& t = cluster.inventory().tasks;
        const auto i = gpusched::index(task);
        if (cluster.is_fraction(task) && t.gpu_count[i] > 0 &&
            index.visit_partial(t.gpu_share_milli[i], offer))
            return true;
        return index.visit_whole(t.gpu_count[i], t.cpu_milli[i], offer);
    }
    /// Nodes that lack the fewest GPUs first.
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        const int requested = cluster.inventory().tasks.gpu_count[gpusched::index(task)];
        for (int idle = requested; idle >= 0; --idle)
            if (index.visit_bucket(idle, 0, offer)) return true;
        return index.visit_whole(requested + 1, 0, offer);
    }
};

// ---- ejection rules -------------------------------------------------------------------------------------

namespace detail {

/// The named resources and devices that a task lacks on a node, while tasks of the node leave.
class ExtrasAfter {
  public:
    ExtrasAfter(const Cluster& cluster, const Extras& extras, NodeId node);
    void leave(TaskId victim) noexcept;
    [[nodiscard]] bool fits() const noexcept;

  private:
    const Cluster* cluster_;
    const Extras* extras_;
    NodeId node_;
    GpuMask devices_;
    std::vector<std::int64_t> short_;  // by resource that the task requests
};

/// The free capacity of a node for a task, while tasks of the node leave. Ignores GPU memory and localities.
class CapacityAfter {
  public:
    CapacityAfter(const Cluster& cluster, TaskId task, NodeId node);
    void leave(TaskId victim) noexcept;
    [[nodiscard]] bool fits() const noexcept {
        return gpu_count(gpus_) >= requested_ && cpu_short_ <= 0 && memory_short_ <= 0 &&
               (!extras_ || extras_->fits());
    }

  private:
    const Cluster& cluster_;
    NodeId node_;
    GpuMask gpus_;  // each could serve the task
    int requested_, share_;
    Lent lent_;
    std::int64_t cpu_short_, memory_short_;
    std::optional<ExtrasAfter> extras_{};                  // of tasks that request any
    std::array<std::int16_t, max_gpus_per_node> freed_{};  // by victims that are fractions
};

/// Returns whether `victim` is easier to place than `task`: fewer GPUs, or as many GPUs with fewer cores.
[[nodiscard]] bool easier(const Cluster& cluster, TaskId victim, TaskId task) noexcept;

}  // namespace detail

/// The paper's rule, as far as it is specified: all movable tasks of the node, in its order, if the task fits
/// without them. The search moves them one by one until the task fits; a victim that finds no place stays.
struct FirstVictims {
    static constexpr bool may_skip_victims = true;
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const;
};

/// The fewest and smallest tasks that suffice, all of them easier to place than the task: fewer GPUs, or as
/// many GPUs with fewer cores. Tasks that have already moved come first.
struct EasierVictims {
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const;
};

/// As EasierVictims, on the destination with the fewest moves.
struct CheapestVictims : EasierVictims {
    static constexpr bool cheapest_first = true;
};

// ---- acceptance -----------------------------------------------------------------------------------------

/// Accepts every node that can be vacated.
struct AcceptAll {
    bool operator()(const ChainSet&) const noexcept { return true; }
};

/// Accepts a node that takes at most `others` moves in addition to those of its own tasks, and is worth at
/// least `price` thousandths for each unit of its moves' cost, plus the cost of opening nodes. No limits by
/// default.
struct PriceLimit {
    std::int64_t others = std::numeric_limits<std::int64_t>::max();
    std::int64_t price = 0;

    bool operator()(const ChainSet& chains) const noexcept {
        return chains.moves - chains.tasks <= others &&
               is_worth(chains.gain, chains.cost, price, chains.opening);
    }
    /// Takes `price`, and `max_others` if present, from the options.
    [[nodiscard]] PriceLimit with_limits(const Options& options) const noexcept {
        return {.others = options.search.max_others.value_or(others), .price = options.price};
    }
};

// ---- sets of policies -----------------------------------------------------------------------------------

/// Settings of the search that calls the policies.
struct Switches {
    /// Maximum of `SearchOptions::depth`, 1 .. 16.
    int deepest = most_depth;
    /// Maximum of `SearchOptions::rounds`, >= 1.
    int most_rounds = std::numeric_limits<int>::max();
    /// The first of several rounds nests moves at most twice, so that a search that runs out of time has the
    /// cheap gains.
    bool shallow_round_first = false;
    /// Try all chains of one nesting depth before deeper ones.
    bool shortest_chains_first = true;
    /// A request fails at once if an earlier request of the same round, for at most as much, failed. A
    /// heuristic: moves made since then may have freed a place.
    bool remember_failures = true;
    /// Search four times, and continue from the best plan: with these policies; with these policies, trying
    /// nodes by the cost of their own moves per weight; with one shallow round, as `fast`; and with the
    /// paper's policies. The last search is skipped unless partitioner, destination ranking and ejection rule
    /// are those of `best`, because a caller's own may be meant as limits.
    bool several_starts = false;
    /// Steps, >= 0, of exchanging vacated nodes for others after the rounds, for each node that may be
    /// vacated (beyond a thousand nodes, for each fifth node); 0 = none. Ignored with a migration budget.
    std::int64_t exchange_steps = 0;
    /// Search tiny groups exhaustively if the depth is at least 3.
    bool exact_when_tiny = false;
    bool operator==(const Switches&) const = default;
};

/// One policy of each kind: any types that satisfy the concepts Partitioner, NodeOrder, DestinationRanking,
/// EjectionRule, Acceptance, NodeWeight and PurePicker (concepts.hpp).
template <class P, class O, class D, class E, class A, class W, class G = allocation::TightestGpu>
struct Policies {
    static_assert(detail::PartitionerKind::check<P>());
    static_assert(detail::NodeOrderKind::check<O>());
    static_assert(detail::DestinationRankingKind::check<D>());
    static_assert(detail::EjectionRuleKind::check<E>());
    static_assert(detail::AcceptanceKind::check<A>());
    static_assert(detail::NodeWeightKind::check<W>());
    static_assert(detail::PurePickerKind::check<G>());

    P partitioner{};
    O node_order{};
    D destination_ranking{};
    E ejection_rule{};
    A acceptance{};
    W node_weight{};
    G gpu_picker{};
    Switches switches{};

    /// Converts to other types that hold the same policies, such as AnyPolicies (named.hpp).
    template <class P2, class O2, class D2, class E2, class A2, class W2, class G2>
        requires(!std::same_as<Policies, Policies<P2, O2, D2, E2, A2, W2, G2>> &&
                 std::convertible_to<P, P2> && std::convertible_to<O, O2> && std::convertible_to<D, D2> &&
                 std::convertible_to<E, E2> && std::convertible_to<A, A2> && std::convertible_to<W, W2> &&
                 std::convertible_to<G, G2>)
    operator Policies<P2, O2, D2, E2, A2, W2, G2>() const {  // NOLINT(google-explicit-constructor)
        return {partitioner, node_order,  destination_ranking, ejection_rule,
                acceptance,  node_weight, gpu_picker,          switches};
    }
};

namespace detail {

/// Replaces the policy at `position`, counted from the partitioner.
template <std::size_t position, class New, class... Kinds>
[[nodiscard]] auto with_kind(const Policies<Kinds...>& p, New policy) {
    const auto kinds = std::tie(p.partitioner, p.node_order, p.destination_ranking, p.ejection_rule,
                                p.acceptance, p.node_weight, p.gpu_picker);
    const auto pick = [&]<std::size_t at>() -> decltype(auto) {
        if constexpr (at == position)
            return std::as_const(policy);
        else
            return std::get<at>(kinds);
    };
    return [&]<std::size_t... at>(std::index_sequence<at...>) {
        return Policies<std::remove_cvref_t<decltype(pick.template operator()<at>())>...>{
            pick.template operator()<at>()..., p.switches};
    }(std::make_index_sequence<sizeof...(Kinds)>{});
}

}  // namespace detail

// Replace one policy of a set, possibly by another type: `with_node_order(presets::best(), MyOrder{})`. The
// other policies and the switches stay.

template <class New, class... Kinds>
[[nodiscard]] auto with_partitioner(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<0>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_node_order(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<1>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_destination_ranking(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<2>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_ejection_rule(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<3>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_acceptance(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<4>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_node_weight(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<5>(policies, std::move(policy));
}
template <class New, class... Kinds>
[[nodiscard]] auto with_gpu_picker(const Policies<Kinds...>& policies, New policy) {
    return detail::with_kind<6>(policies, std::move(policy));
}

/// Checks options together with policies of the caller's own.
/// @throws InvalidInput as `validate(options, cluster)`, and for options without effect: `preset`,
///     `objective` and `goal`, and `max_others` and `price` unless the acceptance has the hook `with_limits`,
///     as PriceLimit has
template <class... Kinds>
void validate(const Options& options, const Cluster& cluster, const Policies<Kinds...>& policies) {
    detail::validate_with_policies(options, cluster, detail::takes_limits(policies.acceptance));
}

}  // namespace gpusched::consolidation
