// SPDX-License-Identifier: Apache-2.0
// Policies of consolidation behind one type each: where they are chosen at run time.
#pragma once

#include <gpusched/consolidation/detail/policy_checks.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/core/executor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <typeinfo>
#include <utility>
#include <vector>

namespace gpusched::consolidation {

namespace detail {

/// Can be called with these arguments. Wrong return types and calls that are not const are let through: the checks below name them.
template <class P, class Any, class... Arguments>
concept CalledAs = !std::same_as<P, Any> && std::invocable<P&, Arguments...>;
template <class P>
concept VisitsNodes = requires(P& policy, const Cluster& cluster, const FreeIndex& index, TaskId task) {
    policy.visit(cluster, index, task, [](NodeId) { return true; });
};

}  // namespace detail

/// Any partitioner.
class AnyPartitioner {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_partitioner<P>();
    }
    template <detail::CalledAs<AnyPartitioner, const Cluster&, std::size_t, Rng&> P>
    AnyPartitioner(P policy) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_partitioner<P>());
        type_ = &typeid(P);
        call_ = [policy = std::move(policy)](const Cluster& cluster, std::size_t partition_size, Rng& rng) {
            return policy(cluster, partition_size, rng);
        };
    }
    Partition operator()(const Cluster& cluster, std::size_t partition_size, Rng& rng) const {
        return call_(cluster, partition_size, rng);
    }
    /// Of the policy.
    [[nodiscard]] const std::type_info& type() const noexcept { return *type_; }

  private:
    const std::type_info* type_;
    std::function<Partition(const Cluster&, std::size_t, Rng&)> call_;
};

/// Any node order.
class AnyNodeOrder {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_node_order<P>();
    }
    template <detail::CalledAs<AnyNodeOrder, const Cluster&, NodeId> P>
    AnyNodeOrder(P policy) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_node_order<P>());
        if constexpr (detail::PreparesRounds<P>)
            for_round_ = [policy](const Cluster& cluster) { return AnyNodeOrder(policy.for_round(cluster)); };
        call_ = [policy = std::move(policy)](const Cluster& cluster, NodeId node) {
            return static_cast<std::int64_t>(policy(cluster, node));
        };
    }
    std::int64_t operator()(const Cluster& cluster, NodeId node) const { return call_(cluster, node); }
    /// Itself where the order has nothing to make ready.
    [[nodiscard]] AnyNodeOrder for_round(const Cluster& cluster) const {
        return for_round_ ? for_round_(cluster) : *this;
    }

  private:
    std::function<std::int64_t(const Cluster&, NodeId)> call_;
    std::function<AnyNodeOrder(const Cluster&)> for_round_;
};

/// Any weight of nodes.
class AnyNodeWeight {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_node_weight<P>();
    }
    template <detail::CalledAs<AnyNodeWeight, const Cluster&, NodeId> P>
    AnyNodeWeight(P policy) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_node_weight<P>());
        type_ = &typeid(P);
        call_ = [policy = std::move(policy)](const Cluster& cluster, NodeId node) {
            return static_cast<std::int64_t>(policy(cluster, node));
        };
    }
    std::int64_t operator()(const Cluster& cluster, NodeId node) const { return call_(cluster, node); }
    /// Of the policy that it was made of.
    [[nodiscard]] const std::type_info& type() const noexcept { return *type_; }

  private:
    const std::type_info* type_ = nullptr;
    std::function<std::int64_t(const Cluster&, NodeId)> call_;
};

/// Any acceptance.
class AnyAcceptance {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_acceptance<P>();
    }
    template <detail::CalledAs<AnyAcceptance, const ChainSet&> P>
    AnyAcceptance(P policy) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_acceptance<P>());
        if constexpr (detail::TakesLimits<P>)
            with_limits_ = [policy](const Options& options) {
                return AnyAcceptance(policy.with_limits(options));
            };
        call_ = [policy = std::move(policy)](const ChainSet& chains) { return policy(chains); };
    }
    bool operator()(const ChainSet& chains) const { return call_(chains); }
    [[nodiscard]] bool takes_limits() const noexcept { return static_cast<bool>(with_limits_); }
    /// Itself where it takes no limits.
    [[nodiscard]] AnyAcceptance with_limits(const Options& options) const {
        return with_limits_ ? with_limits_(options) : *this;
    }

  private:
    std::function<bool(const ChainSet&)> call_;
    std::function<AnyAcceptance(const Options&)> with_limits_;
};

/// Any GPU picker that takes no random numbers.
class AnyPurePicker {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_picker<P>();
    }
    template <detail::CalledAs<AnyPurePicker, const Cluster&, TaskId, NodeId> P>
    AnyPurePicker(P policy) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_picker<P>());
        call_ = [policy = std::move(policy)](const Cluster& cluster, TaskId task, NodeId node) {
            return static_cast<GpuMask>(policy(cluster, task, node));
        };
    }
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        return call_(cluster, task, node);
    }

  private:
    std::function<GpuMask(const Cluster&, TaskId, NodeId)> call_;
};

/// Any ranking of destinations.
class AnyDestinationRanking {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_destinations<P>();
    }
    template <detail::VisitsNodes P>
        requires(!std::same_as<P, AnyDestinationRanking>)
    AnyDestinationRanking(P policy) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_destinations<P>());
        type_ = &typeid(P);
        object_ = std::make_shared<const Model<P>>(std::move(policy));
    }

    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return object_->visit(cluster, index, task, offer);
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return object_->visit_full(cluster, index, task, offer);
    }
    /// Of the policy.
    [[nodiscard]] const std::type_info& type() const noexcept { return *type_; }

  private:
    const std::type_info* type_;
    using AnyOffer = FunctionRef<bool(NodeId)>;
    struct Interface {
        virtual ~Interface() = default;
        virtual bool visit(const Cluster&, const FreeIndex&, TaskId, AnyOffer) const = 0;
        virtual bool visit_full(const Cluster&, const FreeIndex&, TaskId, AnyOffer) const = 0;
    };
    template <class D>
    struct Model final : Interface {
        explicit Model(D d) : ranking(std::move(d)) {}
        bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task,
                   AnyOffer offer) const override {
            return ranking.visit(cluster, index, task, offer);
        }
        bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task,
                        AnyOffer offer) const override {
            return ranking.visit_full(cluster, index, task, offer);
        }
        D ranking;
    };
    std::shared_ptr<const Interface> object_;
};

/// Any ejection rule, with what it says about skipping victims and about the cheapest.
class AnyEjectionRule {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_ejection<P>();
    }
    template <detail::CalledAs<AnyEjectionRule, const Cluster&, TaskId, NodeId, std::span<const Victim>,
                               std::vector<Victim>&>
                  P>
    AnyEjectionRule(P policy) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_ejection<P>());
        type_ = &typeid(P);
        skips_victims_ = detail::skips_victims(policy);
        takes_cheapest_first_ = detail::takes_cheapest_first(policy);
        call_ = [policy = std::move(policy)](const Cluster& cluster, TaskId task, NodeId node,
                                             std::span<const Victim> movable, std::vector<Victim>& victims) {
            return policy(cluster, task, node, movable, victims);
        };
    }
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const {
        return call_(cluster, task, node, movable, victims);
    }
    [[nodiscard]] bool skips_victims() const noexcept { return skips_victims_; }
    [[nodiscard]] bool takes_cheapest_first() const noexcept { return takes_cheapest_first_; }
    /// Of the policy.
    [[nodiscard]] const std::type_info& type() const noexcept { return *type_; }

  private:
    const std::type_info* type_;
    bool skips_victims_ = false;
    bool takes_cheapest_first_ = false;
    std::function<bool(const Cluster&, TaskId, NodeId, std::span<const Victim>, std::vector<Victim>&)> call_;
};

/// One policy of each kind, all chosen at run time. The calls cost a few percent of a search.
using AnyPolicies = Policies<AnyPartitioner, AnyNodeOrder, AnyDestinationRanking, AnyEjectionRule,
                             AnyAcceptance, AnyNodeWeight, AnyPurePicker>;

namespace detail {
// Compiled in the library.
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&, const AnyPolicies&, const Options&,
                                                   const Context&);
}  // namespace detail

}  // namespace gpusched::consolidation
