// SPDX-License-Identifier: Apache-2.0
// Type-erased policies, for policies that are chosen at run time or written in another language.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/detail/policy_checks.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::allocation {
namespace detail {

/// True if P can be called with these arguments. Accepts wrong return types and non-const calls: the checks
/// below report them.
template <class P, class... Arguments>
concept CalledWith = std::invocable<P&, Arguments...>;
template <class P>
concept CalledAboutNode =
    CalledWith<P, const Cluster&, TaskId, NodeId> || CalledWith<P, const Cluster&, TaskId, NodeId, Rng&>;

}  // namespace detail

/// Holds any ranker with integer scores. It is node-local if that ranker is. It does not use the ranker's
/// `prepare`.
class AnyRanker {
  public:
    template <class R>
    static constexpr bool check() {
        static_assert(detail::check_locality<R>());  // on its own, so that compilers show its cause early
        static_assert(detail::check_ranker<R>());
        if constexpr (NodeRanker<R>)
            static_assert(
                std::integral<Score<R>>,
                "the score of a ranker behind AnyRanker is a whole number, not a tuple; a RankerList breaks "
                "the ties of one ranker by the next");
        return true;
    }
    template <detail::CalledAboutNode R>
        requires(!std::same_as<R, AnyRanker>)
    AnyRanker(R ranker) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(check<R>());
        object_ = std::make_shared<const Model<R>>(std::move(ranker));
    }

    /// Maps unsigned scores to signed ones of the same order.
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        return object_->score(cluster, task, node, rng);
    }
    [[nodiscard]] bool is_node_local() const { return object_->is_node_local(); }
    [[nodiscard]] AnyRanker for_task(const Cluster& cluster, TaskId task) const {
        auto other = object_->for_task(cluster, task);
        return other != nullptr ? AnyRanker(std::move(other)) : *this;
    }

  private:
    struct Interface {
        virtual ~Interface() = default;
        [[nodiscard]] virtual std::int64_t score(const Cluster&, TaskId, NodeId, Rng&) const = 0;
        [[nodiscard]] virtual bool is_node_local() const = 0;
        [[nodiscard]] virtual std::shared_ptr<const Interface> for_task(const Cluster&, TaskId) const = 0;
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
        [[nodiscard]] bool is_node_local() const override { return detail::node_local(ranker); }
        [[nodiscard]] std::shared_ptr<const Interface> for_task(const Cluster& cluster,
                                                                TaskId task) const override {
            if constexpr (detail::TaskRanker<R>)
                return std::make_shared<const Model<detail::ForTask<R>>>(ranker.for_task(cluster, task));
            else
                return nullptr;
        }
        R ranker;
    };
    explicit AnyRanker(std::shared_ptr<const Interface> object) : object_(std::move(object)) {}
    std::shared_ptr<const Interface> object_;
};

/// Holds any GPU picker.
class AnyGpuPicker {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_gpu_picker<P>();
    }
    template <detail::CalledAboutNode P>
        requires(!std::same_as<P, AnyGpuPicker>)
    AnyGpuPicker(P picker) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_gpu_picker<P>());
        pick_ = [shared = std::make_shared<const P>(std::move(picker))](const Cluster& cluster, TaskId task,
                                                                        NodeId node, Rng& rng) {
            return detail::pick(*shared, cluster, task, node, rng);
        };
    }

    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        return pick_(cluster, task, node, rng);
    }

  private:
    std::function<GpuMask(const Cluster&, TaskId, NodeId, Rng&)> pick_;
};

/// Holds any node filter. It is node-local if that filter is.
class AnyFilter {
  public:
    template <class F>
    static constexpr bool check() {
        return detail::check_filter<F>();
    }
    template <detail::CalledWith<const Cluster&, TaskId, NodeId> F>
        requires(!std::same_as<F, AnyFilter>)
    AnyFilter(F filter) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_filter<F>());
        object_ = std::make_shared<const Model<F>>(std::move(filter));
    }

    bool operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        return object_->passes(cluster, task, node);
    }
    [[nodiscard]] bool is_node_local() const { return object_->is_node_local(); }

  private:
    struct Interface {
        virtual ~Interface() = default;
        [[nodiscard]] virtual bool passes(const Cluster&, TaskId, NodeId) const = 0;
        [[nodiscard]] virtual bool is_node_local() const = 0;
    };
    template <class F>
    struct Model final : Interface {
        explicit Model(F f) : filter(std::move(f)) {}
        [[nodiscard]] bool passes(const Cluster& cluster, TaskId task, NodeId node) const override {
            return filter(cluster, task, node);
        }
        [[nodiscard]] bool is_node_local() const override { return detail::node_local(filter); }
        F filter;
    };
    std::shared_ptr<const Interface> object_;
};

/// Rankers chosen at run time. Each breaks the ties that those before it leave; see Lexicographic.
struct RankerList {
    std::vector<AnyRanker> rankers{};

    std::vector<std::int64_t> operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        std::vector<std::int64_t> scores;
        scores.reserve(rankers.size());
        for (const auto& ranker : rankers) scores.push_back(ranker(cluster, task, node, rng));
        return scores;
    }
    [[nodiscard]] bool is_node_local() const {
        return std::all_of(rankers.begin(), rankers.end(), [](const auto& r) { return r.is_node_local(); });
    }
    [[nodiscard]] RankerList for_task(const Cluster& cluster, TaskId task) const {
        RankerList list;
        for (const auto& ranker : rankers) list.rankers.push_back(ranker.for_task(cluster, task));
        return list;
    }
};

/// Filters chosen at run time. A node must pass all of them.
struct FilterList {
    std::vector<AnyFilter> filters{};

    bool operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        return std::all_of(filters.begin(), filters.end(),
                           [&](const auto& filter) { return filter(cluster, task, node); });
    }
    [[nodiscard]] bool is_node_local() const {
        return std::all_of(filters.begin(), filters.end(), [](const auto& f) { return f.is_node_local(); });
    }
};

/// Holds any placement policy, for example a function `optional<Destination>(const Cluster&, TaskId, Rng&)`.
/// Copies are independent.
class AnyPlacement {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_placement<P>();
    }
    template <detail::CalledWith<const Cluster&, TaskId, Rng&> P>
        requires(!std::same_as<P, AnyPlacement> && std::copy_constructible<P>)
    AnyPlacement(P policy) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(detail::check_placement<P>());
        place_ = std::move(policy);
    }

    std::optional<Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng) {
        return place_(cluster, task, rng);
    }

  private:
    std::function<std::optional<Destination>(const Cluster&, TaskId, Rng&)> place_;
};

}  // namespace gpusched::allocation
