// Policies behind one type: where they are chosen at run time, or written in another language.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace gpusched::allocation {

/// Any ranker whose scores are whole numbers.
class AnyRanker {
  public:
    template <NodeRanker R>
        requires(!std::same_as<R, AnyRanker> && std::integral<Score<R>>)
    AnyRanker(R ranker)  // NOLINT(google-explicit-constructor): a policy of another type
        : object_(std::make_shared<const Model<R>>(std::move(ranker))) {}

    /// Unsigned scores come as signed ones of the same order.
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        return object_->score(cluster, task, node, rng);
    }

  private:
    struct Interface {
        virtual ~Interface() = default;
        [[nodiscard]] virtual std::int64_t score(const Cluster&, TaskId, NodeId, Rng&) const = 0;
    };
    template <class R>
    struct Model final : Interface {
        explicit Model(R r) : ranker(std::move(r)) {}
        [[nodiscard]] std::int64_t score(const Cluster& cluster, TaskId task, NodeId node,
                                         Rng& rng) const override {
            const auto value = detail::ask(ranker, cluster, task, node, rng);
            if constexpr (std::unsigned_integral<Score<R>> && sizeof(value) == sizeof(std::int64_t))
                return static_cast<std::int64_t>(value ^ (std::uint64_t{1} << 63));
            else
                return static_cast<std::int64_t>(value);
        }
        R ranker;
    };
    std::shared_ptr<const Interface> object_;
};

/// Any placement policy, for example a function `optional<Destination>(const Cluster&, TaskId, Rng&)`. Copies are
/// independent.
class AnyPlacement {
  public:
    template <PlacementPolicy P>
        requires(!std::same_as<P, AnyPlacement> && std::copy_constructible<P>)
    AnyPlacement(P policy)  // NOLINT(google-explicit-constructor): a policy of another type
        : object_(std::make_unique<Model<P>>(std::move(policy))) {}
    AnyPlacement(const AnyPlacement& other) : object_(other.object_->clone()) {}
    AnyPlacement(AnyPlacement&&) noexcept = default;
    AnyPlacement& operator=(AnyPlacement other) noexcept {
        object_ = std::move(other.object_);
        return *this;
    }
    ~AnyPlacement() = default;

    std::optional<Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng) {
        return object_->place(cluster, task, rng);
    }
    /// To be called for every node on which something changed since the last answer.
    void changed(NodeId node) { object_->changed(node); }

  private:
    struct Interface {
        virtual ~Interface() = default;
        [[nodiscard]] virtual std::unique_ptr<Interface> clone() const = 0;
        virtual std::optional<Destination> place(const Cluster&, TaskId, Rng&) = 0;
        virtual void changed(NodeId) = 0;
    };
    template <class P>
    struct Model final : Interface {
        explicit Model(P p) : policy(std::move(p)) {}
        [[nodiscard]] std::unique_ptr<Interface> clone() const override {
            return std::make_unique<Model>(policy);
        }
        std::optional<Destination> place(const Cluster& cluster, TaskId task, Rng& rng) override {
            return policy(cluster, task, rng);
        }
        void changed(NodeId node) override {
            if constexpr (requires { policy.changed(node); }) policy.changed(node);
        }
        P policy;
    };
    std::unique_ptr<Interface> object_;
};

}  // namespace gpusched::allocation
