// Policies of consolidation behind one type each: where they are chosen at run time.
#pragma once

#include <gpusched/consolidation/policies.hpp>
#include <gpusched/core/function_ref.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

using AnyPartitioner = std::function<Partition(const Cluster&, std::size_t, Rng&)>;
using AnyNodeOrder = std::function<std::int64_t(const Cluster&, NodeId)>;
using AnyAcceptance = std::function<bool(const ChainSet&)>;
using AnyNodeWeight = std::function<std::int64_t(const Cluster&, NodeId)>;
using AnyPurePicker = std::function<GpuMask(const Cluster&, TaskId, NodeId)>;

/// Any ranking of destinations.
class AnyDestinationRanking {
  public:
    template <DestinationRanking D>
        requires(!std::same_as<D, AnyDestinationRanking>)
    AnyDestinationRanking(D ranking)  // NOLINT(google-explicit-constructor): a policy of another type
        : object_(std::make_shared<const Model<D>>(std::move(ranking))) {}

    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return object_->visit(cluster, index, task, offer);
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return object_->visit_full(cluster, index, task, offer);
    }

  private:
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
    template <EjectionRule E>
        requires(!std::same_as<E, AnyEjectionRule>)
    AnyEjectionRule(E rule)  // NOLINT(google-explicit-constructor): a policy of another type
        : skips_victims_(detail::skips_victims(rule)),
          takes_cheapest_first_(detail::takes_cheapest_first(rule)), rule_(std::move(rule)) {}

    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const {
        return rule_(cluster, task, node, movable, victims);
    }
    [[nodiscard]] bool skips_victims() const noexcept { return skips_victims_; }
    [[nodiscard]] bool takes_cheapest_first() const noexcept { return takes_cheapest_first_; }

  private:
    bool skips_victims_;
    bool takes_cheapest_first_;
    std::function<bool(const Cluster&, TaskId, NodeId, std::span<const Victim>, std::vector<Victim>&)> rule_;
};

/// One policy of each kind, all chosen at run time. The calls cost a few percent of a search.
using AnyPolicies = Policies<AnyPartitioner, AnyNodeOrder, AnyDestinationRanking, AnyEjectionRule,
                             AnyAcceptance, AnyNodeWeight, AnyPurePicker>;

}  // namespace GPUSCHED_NAMESPACE::consolidation
