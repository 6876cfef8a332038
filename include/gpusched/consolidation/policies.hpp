// SPDX-License-Identifier: Apache-2.0
// The policies of consolidation, sets of them, and the presets.
#pragma once

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
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

/// Random groups of `partition_size` nodes, new ones in every round: the paper's divide and conquer.
struct RandomGroups {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// One pool per GPU model; models that some movable task links (it may run on both) share a pool. A group can only use the room
/// that it contains, so that pools are cut as late as possible: those of more than `largest_group` nodes, whose search would take
/// time that grows with the square. Their nodes are dealt out to parts `dealt_together` at a time: parts are alike, and what lies side by
/// side in memory stays together.
struct ByGpuModel {
    static constexpr std::size_t largest_group = 5'000, dealt_together = 64;
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// Whole domains of the network's deepest level, taken in order within each pool until `partition_size` nodes are
/// reached, so that moves stay near.
struct BySwitch {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};

/// Groups grown around random nodes over the network tree within each pool: a node's access switch before its
/// aggregation switch before the rest.
struct ByLocality {
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const;
};


/// Fewest pods first, the paper's order: such nodes are the easiest to vacate.
struct FewestPods {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        return cluster.occupants(node);
    }
};

/// Least demand first: what has to be placed again. Sixteen cores count as much as a GPU, since a node that gives its cores
/// to others makes their GPUs as useless as one that gives GPUs; and so does a pod, since each is a move.
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

/// Least demand over the cube root of the node's GPUs first, and nodes without GPUs last: where GPUs are what counts, a large
/// node is worth more demand, and not so much more that no small one is vacated.
struct LeastDemandForSize {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto gpus = cluster.gpu_count(node);
        if (gpus == 0) return std::numeric_limits<std::int64_t>::max() / 2;
        return LeastDemand{}(cluster, node) * 1000 / cube_roots_milli[static_cast<std::size_t>(gpus)];
    }

  private:
    // By number of GPUs, rounded down: the order must not depend on how a machine rounds.
    static constexpr auto cube_roots_milli = [] {
        std::array<std::int64_t, max_gpus_per_node + 1> roots{};
        for (std::int64_t gpus = 1, root = 1000; gpus <= max_gpus_per_node; ++gpus) {
            while ((root + 1) * (root + 1) * (root + 1) <= gpus * 1'000'000'000) ++root;
            roots[static_cast<std::size_t>(gpus)] = root;
        }
        return roots;
    }();
};

/// Highest share of GPUs in use last, as descheduling by utilisation does.
struct LowestUtilisation {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto capacity = std::int64_t{cluster.gpu_count(node)} * whole_gpu_milli;
        if (capacity == 0) return 0;
        return (capacity - cluster.gpu_free_total_milli(node)) * 1'000'000 / capacity;
    }
};


/// The most that a node may be worth: the sum over all nodes fits into 64 bits.
[[nodiscard]] inline std::int64_t most_node_weight(const Cluster& cluster) noexcept {
    return std::numeric_limits<std::int64_t>::max() /
           std::max<std::int64_t>(1, static_cast<std::int64_t>(cluster.node_count()));
}

/// Its healthy GPUs.
struct GpuWeight {
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        return gpu_count(cluster.healthy_gpus(node));
    }
};

/// One for every node.
struct UnitWeight {
    std::int64_t operator()(const Cluster&, NodeId) const noexcept { return 1; }
};

/// Its healthy GPUs, each worth what `per_gpu` says for its model (by GpuModelId; 1 beyond the end).
struct ModelWeight {
    std::vector<std::int64_t> per_gpu;
    std::int64_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto model = index(cluster.inventory().nodes.gpu_model[index(node)]);
        const auto each = model < per_gpu.size() ? per_gpu[model] : std::int64_t{1};
        return std::min(each, std::numeric_limits<std::int64_t>::max() / max_gpus_per_node) *
               gpu_count(cluster.healthy_gpus(node));
    }
};


/// In the order of the group, as the paper's pseudocode leaves it.
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

/// Tightest fit: fewest idle GPUs first, then fewest free cores. A fraction goes to the partly used GPU with the least left
/// before it breaks into an idle one.
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
        const int wanted = cluster.inventory().tasks.gpu_count[gpusched::index(task)];
        for (int idle = wanted; idle >= 0; --idle)
            if (index.visit_bucket(idle, 0, offer)) return true;
        return index.visit_whole(wanted + 1, 0, offer);
    }
};


namespace detail {

/// What a node lacks of named resources and devices for a task, while some of its own tasks leave it.
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
    std::vector<std::int64_t> short_;  // of each resource that the task asks for
};

/// What a node offers to a task once some of its own tasks have left. GPU memory and localities are not looked at.
class RoomAfter {
  public:
    RoomAfter(const Cluster& cluster, TaskId task, NodeId node);
    void leave(TaskId victim) noexcept;
    [[nodiscard]] bool fits() const noexcept {
        return gpu_count(gpus_) >= wanted_ && cpu_short_ <= 0 && memory_short_ <= 0 &&
               (!extras_ || extras_->fits());
    }

  private:
    const Cluster& cluster_;
    NodeId node_;
    GpuMask gpus_;  // that could each serve the task
    int wanted_, share_;
    Lent lent_;
    std::int64_t cpu_short_, memory_short_;
    std::optional<ExtrasAfter> extras_{};                  // of tasks that ask for such
    std::array<std::int16_t, max_gpus_per_node> freed_{};  // by victims that are fractions
};

/// True if `victim` is easier to place than `task`: fewer GPUs, or as many with fewer cores.
[[nodiscard]] bool easier(const Cluster& cluster, TaskId victim, TaskId task) noexcept;

}  // namespace detail

/// All tasks in the order in which the node lists them, provided that they make room together: the paper's rule, as
/// far as it is given. One that finds no place stays, and the next is tried, until the task fits.
struct FirstVictims {
    static constexpr bool may_skip_victims = true;
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const;
};

/// The fewest and smallest tasks that make room, all of them easier to place than the task itself: fewer GPUs, or as
/// many with fewer cores. Tasks that have moved already come before those that have not.
struct EasierVictims {
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const;
};

/// The same, at the destination where it costs the fewest moves.
struct CheapestVictims : EasierVictims {
    static constexpr bool cheapest_first = true;
};


/// Every node that can be vacated is.
struct AcceptAll {
    bool operator()(const ChainSet&) const noexcept { return true; }
};

/// A node is vacated if it takes at most `others` moves beyond those of its own tasks, and is worth at least `price`
/// thousandths for each unit of what its moves cost, and what opening nodes for them costs. No limits by default.
struct PriceLimit {
    std::int64_t others = std::numeric_limits<std::int64_t>::max();
    std::int64_t price = 0;

    bool operator()(const ChainSet& chains) const noexcept {
        return chains.moves - chains.tasks <= others &&
               is_worth(chains.gain, chains.cost, price, chains.opening);
    }
    /// `max_others`, where it is set, and `price` replace the fields.
    [[nodiscard]] PriceLimit with_limits(const Options& options) const noexcept {
        return {.others = options.max_others.value_or(others), .price = options.price};
    }
};


/// What the frame around the policies does, and how far it goes.
struct Switches {
    /// `Options::depth` counts up to here, 1 .. 16.
    int deepest = most_depth;
    /// `Options::rounds` counts up to here, >= 1.
    int most_rounds = std::numeric_limits<int>::max();
    /// Where there are several rounds, the first nests at most twice: a search that runs out of time has the cheap gains.
    bool shallow_round_first = false;
    /// Try all chains of one nesting depth before deeper ones.
    bool shortest_chains_first = true;
    /// A request that asks for no less than one that failed in the same round fails without a search. A heuristic:
    /// moves made since then may have made room.
    bool remember_failures = true;
    /// Each round that vacates a node of the group first gathers fractions on fewer GPUs: up to 3 % more GPUs vacated, for
    /// up to a tenth more moves per node.
    bool gather_fractions = false;
    /// Each round that vacates a node of the group last fills nodes that are nearly full with tasks of others that are
    /// not, where one more move does it. Not where `Options::clear` names the nodes: all moves serve them there.
    bool fill_gaps = false;
    /// Search several times and go on from the best plan: as the policies say; with the nodes first whose own moves cost the least
    /// for what they are worth; in one round of moves that are nested at most twice, as `fast`; and with the policies of the paper, where
    /// partitioner, destinations and ejection rule are those of `best`: a caller's own may be meant as limits.
    bool several_starts = false;
    /// Steps for each node that may be vacated (one in five of those beyond a thousand), >= 0, of exchanging vacated nodes for
    /// others once the rounds are over; 0 = none. Not where there is a migration budget.
    std::int64_t exchange_steps = 0;
    /// Where a group is tiny and the depth is at least 3, look for the best plan by trying everything.
    bool exact_when_tiny = false;
    bool operator==(const Switches&) const = default;
};

/// One policy of each kind: any types that satisfy the concepts Partitioner, NodeOrder, DestinationRanking, EjectionRule,
/// Acceptance, NodeWeight and PurePicker (concepts.hpp).
template <class P, class O, class D, class E, class A, class W, class G = allocation::TightestGpu>
struct Policies {
    static_assert(detail::check_partitioner<P>());
    static_assert(detail::check_node_order<O>());
    static_assert(detail::check_destinations<D>());
    static_assert(detail::check_ejection<E>());
    static_assert(detail::check_acceptance<A>());
    static_assert(detail::check_node_weight<W>());
    static_assert(detail::check_picker<G>());

    P partitioner{};
    O node_order{};
    D destination_ranking{};
    E ejection_rule{};
    A acceptance{};
    W node_weight{};
    G gpu_picker{};
    Switches switches{};

    /// The same policies as other types that hold them: `AnyPolicies policies = presets::best();` (any.hpp).
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

/// Policies with the one at a position, counted from the partitioner, replaced; the others, and the switches, stay.
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

// A set of policies with one of them replaced, also by one of another type:
// `with_node_order(presets::best(), MyOrder{})`. The others, and the switches, stay.

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

/// @throws InvalidInput as `validate(options, cluster)`, and with every option that has no effect beside these policies:
///     `preset` and `objective`, whose place they take, and `max_others` and `price` unless the acceptance has
///     the hook `with_limits`, as PriceLimit has
template <class... Kinds>
void validate(const Options& options, const Cluster& cluster, const Policies<Kinds...>& policies) {
    detail::validate_beside_policies(options, cluster, detail::takes_limits(policies.acceptance));
}

/// Consolidates with the caller's own policies. `max_others` and `price` set the limits of an acceptance
/// that takes limits, as PriceLimit does; other options never change policies, and those that then have no effect are
/// refused (see `validate`).
///
/// The frame around the policies is the paper's: in every round, cut into groups, solve them independently (on as many
/// threads as the context or `options.threads` offer), join the results in the order of the groups. Moves of
/// different groups can only clash through group constraints of a network level that both reach into; the later
/// group's chains are then given up for this round.
///
/// @return, throws, determinism: as `consolidate(cluster, options, context)`; a policy must be a pure function
template <class... Kinds>
[[nodiscard]] Result consolidate(const Cluster& cluster, const Policies<Kinds...>& policies,
                                 const Options& options = {}, const Context& context = {});

}  // namespace gpusched::consolidation

namespace gpusched::consolidation::presets {

/// The paper's: random groups, fewest pods first, destinations in group order, any victims, chains of any depth at once.
/// What the paper does not have is the memory of failed requests: without it the search takes minutes on nodes of many
/// tasks; `remember_failures = false` gives it back.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto ipc(W weight = {}) {
    return detail::papers_choices(PriceLimit{}, std::move(weight), allocation::TightestGpu{});
}

/// Ours: pools per GPU model, least demand first (for the node's size, unless nodes count alike), tightest fit, the fewest
/// victims that are easier to place, moves nested at most twice, one round.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto fast(W weight = {}) {
    using Order = std::conditional_t<std::same_as<W, UnitWeight>, LeastDemand, LeastDemandForSize>;
    return Policies<ByGpuModel, Order, TightestFit, CheapestVictims, PriceLimit, W>{
        .node_weight = weight, .switches = {.deepest = 2, .most_rounds = 1}};
}

/// Ours: the same with deeper rounds after the first, and exact where the group is tiny; then exchanges of vacated nodes for others
/// as long as its steps last, from the best of several starts, among them the searches of `fast` and `ipc`. So no plan of theirs
/// has a higher value, nor the same value for less.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto best(W weight = {}) {
    auto policies = fast(weight);
    policies.switches = {
        .shallow_round_first = true, .several_starts = true, .exchange_steps = 2000, .exact_when_tiny = true};
    return policies;
}

/// Calls `use` with the policies of the preset for the objective, whose types differ.
template <class Use>
decltype(auto) visit(Preset preset, Objective objective, Use&& use) {
    const auto with_weight = [&](auto weight) -> decltype(auto) {
        switch (preset) {
        case Preset::ipc:
            return use(ipc(weight));
        case Preset::fast:
            return use(fast(weight));
        case Preset::best:
            break;
        }
        return use(best(weight));
    };
    return objective == Objective::gpus ? with_weight(GpuWeight{}) : with_weight(UnitWeight{});
}

}  // namespace gpusched::consolidation::presets

namespace gpusched::consolidation::detail {
// Compiled in the library; `fast` has the types of `best`.
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&, const decltype(presets::best())&,
                                                   const Options&, const Context&);
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&,
                                                   const decltype(presets::best(UnitWeight{}))&,
                                                   const Options&, const Context&);
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&, const decltype(presets::ipc())&,
                                                   const Options&, const Context&);
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&,
                                                   const decltype(presets::ipc(UnitWeight{}))&,
                                                   const Options&, const Context&);
}  // namespace gpusched::consolidation::detail

#include <gpusched/consolidation/search.hpp>
