// SPDX-License-Identifier: Apache-2.0
// PlacementRule: a caller's own constraint on the nodes of tasks, declared once for search, waves and
// explanations.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::consolidation {

/// A caller's own constraint: `allows(cluster, task, node)` returns whether the task may come to the node,
/// given the current placements. It is called for every arrival, in the order of the moves, in addition to
/// all constraints of the cluster. Tasks that already run on a node may stay there.
///
/// Optional hooks, both or none: `enter(cluster, task, node)` and `leave(cluster, task, node)` are called for
/// each copy of a task that comes to a node or leaves it, so that the rule can keep counts. Within a wave a
/// moving task has two copies: `enter` is called when it takes its new place, `leave` when it gives up the
/// old one, and `cluster.node_of` is the old one until then. Hooks may read names, labels and domains from
/// the cluster, but not placements. Every thread gets a copy of the rule in the state that the caller
/// provides: the state before the plan.
///
/// A rule must be a pure function of its state, the cluster and its arguments. Optional members: `name()`,
/// the name in explanations; `static constexpr bool is_static`, true if an answer never depends on
/// placements.
template <class R>
concept PlacementRule =
    std::copy_constructible<R> && requires(const R& rule, const Cluster& cluster, TaskId task, NodeId node) {
        { rule.allows(cluster, task, node) } -> std::same_as<bool>;
    };

namespace detail {
template <class R>
concept KeepsCount = requires(R& rule, const Cluster& cluster, TaskId task, NodeId node) {
    rule.enter(cluster, task, node);
    rule.leave(cluster, task, node);
};
template <class R>
concept HasEnterOrLeave = requires(R& rule, const Cluster& cluster, TaskId task, NodeId node) {
    rule.enter(cluster, task, node);
} || requires(R& rule, const Cluster& cluster, TaskId task, NodeId node) { rule.leave(cluster, task, node); };
}  // namespace detail

/// Any placement rule, or none, which allows everything. A copy has its own state.
class AnyPlacementRule {
  public:
    AnyPlacementRule() = default;
    template <class R>
        requires(!std::same_as<R, AnyPlacementRule>)
    AnyPlacementRule(R rule) {  // NOLINT(google-explicit-constructor): a policy of another type
        static_assert(PlacementRule<R>, "Options::rule has the const member `bool allows(const Cluster&, "
                                        "TaskId, NodeId)` and can be copied");
        static_assert(!detail::HasEnterOrLeave<R> || detail::KeepsCount<R>,
                      "a placement rule has both hooks, `enter` and `leave`, or neither");
        rule_ = std::make_shared<Model<R>>(std::move(rule));
    }
    AnyPlacementRule(const AnyPlacementRule& other) : rule_(other.rule_ ? other.rule_->copy() : nullptr) {}
    AnyPlacementRule& operator=(const AnyPlacementRule& other) {
        if (this != &other) rule_ = other.rule_ ? other.rule_->copy() : nullptr;
        return *this;
    }
    AnyPlacementRule(AnyPlacementRule&&) noexcept = default;
    AnyPlacementRule& operator=(AnyPlacementRule&&) noexcept = default;
    ~AnyPlacementRule() = default;

    [[nodiscard]] explicit operator bool() const noexcept { return rule_ != nullptr; }
    [[nodiscard]] bool allows(const Cluster& cluster, TaskId task, NodeId node) const {
        return !rule_ || rule_->allows(cluster, task, node);
    }
    void enter(const Cluster& cluster, TaskId task, NodeId node) {
        if (rule_) rule_->enter(cluster, task, node);
    }
    void leave(const Cluster& cluster, TaskId task, NodeId node) {
        if (rule_) rule_->leave(cluster, task, node);
    }
    /// Records a completed move, or an undone one with `from` and `to` exchanged.
    void move(const Cluster& cluster, TaskId task, NodeId from, NodeId to) {
        if (!rule_) return;
        rule_->enter(cluster, task, to);
        rule_->leave(cluster, task, from);
    }
    [[nodiscard]] std::string name() const { return rule_ ? rule_->name() : std::string(); }
    [[nodiscard]] bool is_static() const { return !rule_ || rule_->is_static(); }

  private:
    struct Interface : std::enable_shared_from_this<Interface> {
        Interface() = default;
        Interface(const Interface&) = default;
        Interface& operator=(const Interface&) = default;
        virtual ~Interface() = default;
        virtual bool allows(const Cluster&, TaskId, NodeId) const = 0;
        virtual void enter(const Cluster&, TaskId, NodeId) = 0;
        virtual void leave(const Cluster&, TaskId, NodeId) = 0;
        virtual std::shared_ptr<Interface> copy() = 0;
        virtual std::string name() const = 0;
        virtual bool is_static() const = 0;
    };
    template <class R>
    struct Model final : Interface {
        explicit Model(R r) : rule(std::move(r)) {}
        bool allows(const Cluster& cluster, TaskId task, NodeId node) const override {
            return rule.allows(cluster, task, node);
        }
        void enter(const Cluster& cluster, TaskId task, NodeId node) override {
            if constexpr (detail::KeepsCount<R>) rule.enter(cluster, task, node);
        }
        void leave(const Cluster& cluster, TaskId task, NodeId node) override {
            if constexpr (detail::KeepsCount<R>) rule.leave(cluster, task, node);
        }
        std::shared_ptr<Interface> copy() override {
            if constexpr (detail::KeepsCount<R>)
                return std::make_shared<Model>(rule);
            else
                return this->shared_from_this();  // it has no state that changes
        }
        std::string name() const override {
            if constexpr (requires { std::string(rule.name()); })
                return std::string(rule.name());
            else
                return "rule";
        }
        bool is_static() const override {
            if constexpr (requires { R::is_static; })
                return R::is_static;
            else
                return false;
        }
        R rule;
    };
    std::shared_ptr<Interface> rule_;
};

/// A table of which classes of tasks may come to which classes of nodes.
struct AllowedClasses {
    static constexpr bool is_static = true;
    std::string text = "allowed classes";     ///< name in explanations
    std::vector<std::uint32_t> task_class{};  ///< by TaskId
    std::vector<std::uint32_t> node_class{};  ///< by NodeId
    std::size_t node_classes = 0;             ///< number of classes of nodes
    std::vector<std::uint8_t> allowed{};      ///< by class of the task, then of the node

    [[nodiscard]] const std::string& name() const noexcept { return text; }
    [[nodiscard]] bool allows(const Cluster&, TaskId task, NodeId node) const noexcept {
        return allowed[task_class[index(task)] * node_classes + node_class[index(node)]] != 0;
    }
};

}  // namespace gpusched::consolidation
