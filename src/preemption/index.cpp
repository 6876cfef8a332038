// SPDX-License-Identifier: Apache-2.0
// Keeps the best candidates of all nodes in tournament trees that follow the events of a cluster.
#include "preemption/node_evaluator.hpp"
#include "preemption/placement_check.hpp"
#include "preemption/replace_victims.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/follower.hpp>
#include <gpusched/model/waiting.hpp>
#include <gpusched/preemption/index.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::preemption {

namespace detail {

// All properties of a preemptor that affect the answer, given the options of the index.
static auto shape_key(const Inventory& inventory, const Request& r) {
    return std::tuple(r.requirement, Inventory::since(inventory.requirement_since, r.requirement), r.extras,
                      Inventory::since(inventory.extras_since, r.extras), r.gpus, r.share_milli,
                      r.gpu_memory_mib, r.cpu_milli, r.memory_mib, r.priority, r.borrows, r.cpu_local, r.qos,
                      r.level, r.job);
}
using ShapeKey = decltype(shape_key(std::declval<const Inventory&>(), std::declval<const Request&>()));

/// Ranks by name of the ids at the last rebuild. Later ids are unranked: their names are compared.
class NameRanks {
  public:
    static constexpr std::uint32_t unranked = 0xFFFFFFFFu;

    template <class Id, class Ids>
    void rebuild(const Cluster& cluster, const Ids& ids, std::size_t slots) {
        std::vector<std::size_t> slot_of;
        std::vector<std::string_view> names;
        for (const Id id : ids) {
            slot_of.push_back(index(id));
            names.emplace_back(cluster.name(id));
        }
        ranks_.assign(slots, unranked);
        std::uint32_t rank = 0;
        for (const auto at : natural_order(names)) ranks_[slot_of[at]] = rank++;
        generations_.resize(slots);
        for (std::size_t i = 0; i < slots; ++i) generations_[i] = cluster.handle(make_id<Id>(i)).generation;
    }
    /// Updates the slot for its current id.
    void renew(std::size_t slot, std::uint32_t generation) {
        if (slot >= ranks_.size()) {
            ranks_.resize(slot + 1, unranked);
            generations_.resize(slot + 1, generation);
        }
        if (generations_[slot] == generation) return;
        generations_[slot] = generation;
        ranks_[slot] = unranked;
    }
    [[nodiscard]] std::uint32_t operator[](std::size_t slot) const { return ranks_[slot]; }
    [[nodiscard]] const std::uint32_t* data() const { return ranks_.data(); }

  private:
    std::vector<std::uint32_t> ranks_, generations_;
};

// One shape of preemptor: the candidate of every node, and a tournament tree over them.
struct Shape {
    Request request;
    std::vector<Choice<VictimSet>> candidates;  // by node; found with count == 0 = fits without evictions
    std::map<std::uint32_t, ManyVictims> many;  // victims on nodes with more than 64 potential victims
    std::vector<std::uint32_t> winners;         // in heap order; the leaves are nodes
    std::vector<NodeId> marked;
    std::vector<std::uint8_t> is_marked;
    bool must_fill = false;  // the tree is not up to date
    std::uint64_t last_asked = 0;
};

}  // namespace detail

struct PreemptionIndex::State {
    Options options;
    std::size_t most_shapes;
    detail::NameRanks rank, task_rank;  // of nodes; of tasks
    std::map<detail::ShapeKey, std::size_t> shape_of;
    std::vector<std::unique_ptr<detail::Shape>> shapes;
    detail::Shape uncached;  // for preemptors with group constraints
    // By task: its shape at its last decision. Valid if the slot holds the same shape and the task has
    // not changed.
    std::vector<std::uint32_t> shape_of_task;
    std::vector<std::uint64_t> shape_birth_of_task;
    std::vector<std::uint64_t> birth;  // by slot: the time at which its shape was created
    std::uint64_t clock = 0;
    std::uint64_t hardware_since = 0;
    detail::NodeEvaluator evaluator;
    detail::GangTable gangs;
    Decision decision;
    bool proven_before = true;  // of decisions by `preempt`
    detail::Objective objective = detail::Objective::fewest;
    std::size_t leaves = 1;
    FollowerPosition position;

    static constexpr std::uint32_t no_index = 0xFFFFFFFFu;

    // Following the cluster.
    void rebuild(const Cluster& cluster) {
        shape_of.clear();
        shapes.clear();
        birth.clear();
        uncached = {};
        const auto nodes = cluster.node_slots(), tasks = cluster.task_slots();
        rank.rebuild<NodeId>(cluster, cluster.nodes(), nodes);
        task_rank.rebuild<TaskId>(cluster, cluster.tasks(), tasks);
        shape_of_task.assign(tasks, no_index);
        shape_birth_of_task.assign(tasks, 0);
        leaves = std::bit_ceil(std::max<std::size_t>(nodes, 1));
        gangs.read(cluster);
        hardware_since = cluster.inventory().hardware_since;
    }
    void usage_changed(const Cluster&, NodeId node) { mark(node); }
    void node_changed(const Cluster& cluster, NodeId node) {
        if (hardware_since != cluster.inventory().hardware_since) {
            // Shapes hold a table of localities for all hardware descriptions.
            hardware_since = cluster.inventory().hardware_since;
            shape_of.clear();
            shapes.clear();
            birth.clear();
        }
        rank.renew(index(node), cluster.handle(node).generation);
        add_slots(cluster);
        mark(node);
    }
    void task_changed(const Cluster& cluster, TaskId task) {
        task_rank.renew(index(task), cluster.handle(task).generation);
        if (shape_of_task.size() < cluster.task_slots()) {
            shape_of_task.resize(cluster.task_slots(), no_index);
            shape_birth_of_task.resize(cluster.task_slots(), 0);
        }
        shape_of_task[index(task)] = no_index;
        // The cost of a gang's members, and whether they may leave, depends on all members.
        const auto before = gangs.job_of(task);
        gangs.update(cluster, task);
        const auto now = gangs.job_of(task);
        if (before != none<JobId> && before != now) mark_gang(cluster, before);
        if (now != none<JobId>) mark_gang(cluster, now);
    }
    void job_changed(const Cluster& cluster, JobId job) { mark_gang(cluster, job); }
    void budgets_changed(const Cluster& cluster) {
        for (const auto node : cluster.nodes()) mark(node);
    }
    void mark_gang(const Cluster& cluster, JobId job) {
        if (shapes.empty()) return;
        gangs.for_each(job, [&](TaskId member) {
            // It may have moved or left in the meantime: a later event reports that.
            if (cluster.contains(member) && cluster.is_placed(member)) mark(cluster.node_of(member));
        });
    }
    void time_changed(const Cluster& cluster) {
        if (options.now) return;
        for (auto& shape : shapes) shape->request.now = cluster.inventory().now;
        for (const auto node : cluster.nodes()) mark(node);
    }

    void mark(NodeId node) {
        for (auto& shape : shapes) {
            auto& flag = shape->is_marked[index(node)];
            if (flag != 0) continue;
            flag = 1;
            shape->marked.push_back(node);
        }
    }

    // Adds entries for new node slots.
    void add_slots(const Cluster& cluster) {
        const auto slots = cluster.node_slots();
        if (!shapes.empty() && shapes[0]->candidates.size() >= slots) return;
        leaves = std::max(leaves, std::bit_ceil(slots));
        for (auto& shape : shapes) grow(*shape, slots);
    }
    void grow(detail::Shape& shape, std::size_t slots) {
        const auto before = shape.candidates.size();
        shape.candidates.resize(slots);
        shape.is_marked.resize(slots, 0);
        if (shape.winners.size() != 2 * leaves) {
            shape.winners.assign(2 * leaves, no_index);
            shape.must_fill = true;
        }
        for (std::size_t i = shape.must_fill ? 0 : before; i < slots; ++i)
            shape.winners[leaves + i] = static_cast<std::uint32_t>(i);
    }

    // Decisions.
    // Returns whether node a is better than node b.
    [[nodiscard]] bool beats(const Cluster& cluster, const detail::Shape& shape, std::uint32_t a,
                             std::uint32_t b) const {
        if (b == no_index || a == no_index) return a != no_index;
        const auto& x = shape.candidates[a];
        const auto& y = shape.candidates[b];
        if (x.found() != y.found()) return x.found();
        if (!x.found()) return a < b;
        if ((x.count == 0) != (y.count == 0)) return x.count == 0;
        int order = 0;
        if (x.count == 0)
            order = shape.request.qos == Qos::none ? 0 : int{x.locality} - int{y.locality};
        else
            order = detail::compare(x, y, objective, true);
        if (order != 0) return order < 0;
        if (rank[a] != detail::NameRanks::unranked && rank[b] != detail::NameRanks::unranked)
            return rank[a] < rank[b];
        return comes_before(cluster.name(make_id<NodeId>(a)), cluster.name(make_id<NodeId>(b)));
    }

    void evaluate(const Cluster& cluster, detail::Shape& shape, NodeId node) {
        auto& candidate = shape.candidates[index(node)];
        candidate = {};
        const auto& inv = cluster.inventory();
        if (!cluster.contains(node) || !inv.nodes.receives(node) || !shape.request.may_run_on(inv, node))
            return;
        evaluator.read(cluster, shape.request, options.cost, node, &gangs);
        if (!shape.many.empty()) shape.many.erase(static_cast<std::uint32_t>(index(node)));
        if (const auto found = evaluator.locality_now(); found != detail::infeasible)
            candidate.locality = found;
        else if (evaluator.size() > 0) {
            auto answer = evaluator.best(options);
            candidate = answer;
            if (evaluator.has_many() && answer.found())
                shape.many[static_cast<std::uint32_t>(index(node))] = std::move(answer.many);
        }
    }

    // Updates the tree after the candidate of leaf `at` changed. Stops at a match with the
    // same winner as before, if that is another node.
    void replay(const Cluster& cluster, detail::Shape& shape, std::size_t at) const {
        const auto changed = shape.winners[at];
        for (at /= 2; at > 0; at /= 2) {
            const auto a = shape.winners[2 * at], b = shape.winners[2 * at + 1];
            const auto winner = beats(cluster, shape, a, b) ? a : b;
            if (winner == shape.winners[at] && winner != changed) return;
            shape.winners[at] = winner;
        }
    }

    void fill(const Cluster& cluster, detail::Shape& shape) {
        for (const auto node : cluster.nodes()) evaluate(cluster, shape, node);
        for (const auto node : shape.marked)
            if (!cluster.contains(node)) shape.candidates[index(node)] = {};
        for (std::size_t at = leaves; at-- > 1;) {
            const auto a = shape.winners[2 * at], b = shape.winners[2 * at + 1];
            shape.winners[at] = beats(cluster, shape, a, b) ? a : b;
        }
        shape.must_fill = false;
        for (const auto node : shape.marked) shape.is_marked[index(node)] = 0;
        shape.marked.clear();
    }

    detail::Shape& shape_for(const Cluster& cluster, TaskId task) {
        ++clock;
        if (index(task) < shape_of_task.size()) {
            const auto slot = shape_of_task[index(task)];
            // In the meantime another task of its job may have added a group constraint.
            if (slot < birth.size() && birth[slot] == shape_birth_of_task[index(task)] &&
                !cluster.is_placed(task) && cluster.inventory().memberships(task).empty() &&
                shapes[slot]->request.job == own_gang(cluster, task)) {
                shapes[slot]->last_asked = clock;
                return *shapes[slot];
            }
        }
        detail::Request request(cluster, task, options);
        request.name_rank = task_rank.data();
        request.job = own_gang(cluster, task);
        if (request.grouped) {  // the answer depends on other nodes: not cached
            start(cluster, uncached, std::move(request));
            return uncached;
        }
        const auto key = detail::shape_key(cluster.inventory(), request);
        auto found = shape_of.find(key);
        if (found == shape_of.end()) {
            // If a cost function throws, the index is unchanged.
            auto created = std::make_unique<detail::Shape>();
            start(cluster, *created, std::move(request));
            std::size_t slot = shapes.size();
            if (slot == most_shapes) {
                slot = 0;
                for (std::size_t i = 1; i < shapes.size(); ++i)
                    if (shapes[i]->last_asked < shapes[slot]->last_asked) slot = i;
                std::erase_if(shape_of, [&](const auto& entry) { return entry.second == slot; });
                shapes[slot] = std::move(created);
            } else {
                shapes.push_back(std::move(created));
                birth.push_back(0);
            }
            birth[slot] = clock;
            found = shape_of.emplace(key, slot).first;
        }
        auto& shape = *shapes[found->second];
        shape.last_asked = clock;
        shape_of_task[index(task)] = static_cast<std::uint32_t>(found->second);
        shape_birth_of_task[index(task)] = birth[found->second];
        return shape;
    }

    /// The task's job if other tasks of it run; only then it affects the answer.
    [[nodiscard]] JobId own_gang(const Cluster& cluster, TaskId task) const {
        const auto job = cluster.inventory().tasks.job[index(task)];
        return job != none<JobId> && gangs.running(job) > 0 ? job : none<JobId>;
    }

    void start(const Cluster& cluster, detail::Shape& shape, detail::Request request) {
        shape.request = std::move(request);
        shape.candidates.assign(cluster.node_slots(), {});
        shape.many.clear();
        shape.winners.assign(2 * leaves, no_index);
        for (std::size_t i = 0; i < cluster.node_slots(); ++i)
            shape.winners[leaves + i] = static_cast<std::uint32_t>(i);
        shape.marked.clear();
        shape.marked.reserve(cluster.node_slots());
        shape.is_marked.assign(cluster.node_slots(), 0);
        evaluator.forget();
        fill(cluster, shape);
    }
};

GPUSCHED_EXPORT PreemptionIndex::PreemptionIndex(Options options, std::size_t most_shapes) {
    validate(options);
    Problems problems;
    if (!detail::traits_of(options.policy).indexed)
        problems.add(bad_value("policy", options.policy.name(),
                               detail::policies_with(&detail::PolicyTraits::indexed)));
    check_at_least(problems, "most_shapes", most_shapes, 1);
    if (options.time_limit)
        problems.add("time_limit=" + number_text(*options.time_limit) +
                     " is not supported by PreemptionIndex, which caches its answers; use preempt()");
    if (options.filter)
        problems.add("filter is not supported by PreemptionIndex, which caches its answers; use preempt()");
    problems.throw_if_any();
    state_ = std::make_unique<State>();
    auto& s = *state_;
    s.options = std::move(options);
    s.most_shapes = most_shapes;
    s.objective = detail::traits_of(s.options.policy).objective;
    s.decision.victims.reserve(detail::most_victims);
}
GPUSCHED_EXPORT PreemptionIndex::PreemptionIndex(PreemptionIndex&&) noexcept = default;
GPUSCHED_EXPORT PreemptionIndex& PreemptionIndex::operator=(PreemptionIndex&&) noexcept = default;
GPUSCHED_EXPORT PreemptionIndex::~PreemptionIndex() = default;

GPUSCHED_EXPORT bool PreemptionIndex::proven() const noexcept {
    return state_->evaluator.proven() && state_->proven_before;
}
GPUSCHED_EXPORT std::size_t PreemptionIndex::shapes() const noexcept { return state_->shapes.size(); }

GPUSCHED_EXPORT void PreemptionIndex::catch_up(const Cluster& cluster) {
    if (cluster.events() != nullptr) state_->position.catch_up(*state_, cluster);
}

GPUSCHED_EXPORT const Decision* PreemptionIndex::decide(const Cluster& cluster, TaskId preemptor) {
    auto& s = *state_;
    if (cluster.events() == nullptr) {
        auto result = preempt(cluster, preemptor, s.options);
        s.proven_before = s.proven_before && result.proven;
        if (!result.decision) return nullptr;
        s.decision = std::move(*result.decision);
        return &s.decision;
    }
    if (!cluster.contains(preemptor))
        throw InvalidInput(bad_value("task", "#" + std::to_string(index(preemptor)),
                                     "below " + std::to_string(cluster.task_slots())));
    s.position.catch_up(s, cluster);
    auto& shape = s.shape_for(cluster, preemptor);
    if (find_waiting(cluster, {&preemptor, 1})) return nullptr;
    shape.request.name_rank = s.task_rank.data();  // new tasks may have moved the array
    if (shape.must_fill || shape.marked.size() > s.leaves / 8) {
        s.fill(cluster, shape);
    } else {
        for (const auto node : shape.marked) {
            s.evaluate(cluster, shape, node);
            shape.is_marked[index(node)] = 0;
            s.replay(cluster, shape, s.leaves + index(node));
        }
        shape.marked.clear();
    }
    const auto winner = shape.winners[1];
    if (winner == State::no_index || !shape.candidates[winner].found()) return nullptr;
    const auto node = make_id<NodeId>(winner);
    const struct Restore {
        TaskId& at;
        TaskId before;
        ~Restore() { at = before; }
    } restore{shape.request.task, shape.request.task};
    shape.request.task = preemptor;
    s.evaluator.read(cluster, shape.request, s.options.cost, node, &s.gangs);
    detail::Answer answer{shape.candidates[winner], {}};
    if (s.evaluator.has_many())
        if (const auto many = shape.many.find(winner); many != shape.many.end()) answer.many = many->second;
    s.evaluator.decide(answer, false, s.decision);
    detail::require_placement(cluster, shape.request, s.decision, &s.gangs);
    if (s.options.replace_victims) detail::replace_victims(cluster, preemptor, s.decision);
    return &s.decision;
}

GPUSCHED_EXPORT OnlinePreemption::OnlinePreemption(const Cluster& snapshot, Options options,
                                                   std::size_t most_shapes)
    : cluster_(snapshot), index_([&] {
          if (const auto now = std::exchange(options.now, std::nullopt)) cluster_.set_now(*now);
          return PreemptionIndex(std::move(options), most_shapes);
      }()) {
    cluster_.commit();
    cluster_.keep_events();
}

GPUSCHED_EXPORT void OnlinePreemption::require_idle() const {
    if (deciding_)
        throw InvalidInput("OnlinePreemption: a decision is being made; wait until decide() returns, and do "
                           "not call this from its cost function");
}

GPUSCHED_EXPORT void OnlinePreemption::require_fit(TaskId task, NodeId node, GpuMask gpus) const {
    const auto& inventory = cluster_.inventory();
    const auto requested = int{inventory.tasks.gpu_count[gpusched::index(task)]};
    const auto devices = gpus & cluster_.devices(node);
    const auto& extras = inventory.extras[inventory.tasks.extras[gpusched::index(task)]];
    if (!gpusched::detail::are_of_one_class(inventory, extras, node, devices))
        throw InvalidInput("gpus: devices that task " + gpusched::quoted(cluster_.name(task)) +
                           " does not request; expected " + std::to_string(extras.device_count) +
                           " of one class that it accepts, on node " + gpusched::quoted(cluster_.name(node)));
    gpus &= ~devices;
    if (gpu_count(gpus) != requested || (gpus & ~first_gpus(cluster_.gpu_count(node))) != 0)
        throw InvalidInput("gpus: " + std::to_string(gpu_count(gpus)) + " for task " +
                           gpusched::quoted(cluster_.name(task)) + "; expected " + std::to_string(requested) +
                           " of node " + gpusched::quoted(cluster_.name(node)));
    if (has_failed(node))
        throw InvalidInput("node " + gpusched::quoted(cluster_.name(node)) +
                           ": has failed; expected a node that runs");
}

GPUSCHED_EXPORT void OnlinePreemption::place(TaskId task, NodeId node, GpuMask gpus) {
    require_idle();
    require_fit(task, node, gpus);
    cluster_.assign(task, node, gpus);
    cluster_.commit();
}

GPUSCHED_EXPORT void OnlinePreemption::remove(TaskId task) {
    require_idle();
    if (cluster_.is_placed(task)) cluster_.remove(task);
    cluster_.commit();
}

GPUSCHED_EXPORT void OnlinePreemption::fail_gpu(NodeId node, int gpu, bool failed) {
    require_idle();
    if (gpu < 0 || gpu >= cluster_.gpu_count(node))
        throw InvalidInput(bad_value("gpu", std::to_string(gpu),
                                     "a GPU of node " + gpusched::quoted(cluster_.name(node)) +
                                         ", which has " + std::to_string(cluster_.gpu_count(node))));
    auto spec = cluster_.node_spec(node);
    std::erase(spec.failed_gpus, gpu);
    if (failed) spec.failed_gpus.push_back(gpu);
    std::sort(spec.failed_gpus.begin(), spec.failed_gpus.end());
    cluster_.update_node(cluster_.handle(node), spec);
}

GPUSCHED_EXPORT void OnlinePreemption::fail_node(NodeId node, bool failed) {
    require_idle();
    if (failed)
        while (!cluster_.tasks_on(node).empty()) cluster_.remove(*cluster_.tasks_on(node).begin());
    cluster_.commit();
    if (failed == has_failed(node)) return;
    auto spec = cluster_.node_spec(node);
    if (failed) {
        // Cordoned without taints: a taint would admit tasks that tolerate it.
        failed_[node] = {spec.schedulable, std::exchange(spec.taints, {})};
        spec.schedulable = false;
    } else {
        spec.schedulable = failed_[node].schedulable;
        spec.taints = failed_[node].taints;
    }
    cluster_.update_node(cluster_.handle(node), spec);
    if (!failed) failed_.erase(node);
}

GPUSCHED_EXPORT void OnlinePreemption::set_now(std::int64_t now) {
    require_idle();
    cluster_.set_now(now);
}

GPUSCHED_EXPORT void OnlinePreemption::apply(const Decision& decision, TaskId preemptor) {
    require_idle();
    require_fit(preemptor, decision.node, decision.gpus);
    for (const auto& again : decision.replaced) require_fit(again.task, again.node, again.gpus);
    for (const auto victim : decision.victims)
        if (cluster_.is_placed(victim)) cluster_.remove(victim);
    cluster_.assign(preemptor, decision.node, decision.gpus);
    for (const auto& again : decision.replaced) cluster_.assign(again.task, again.node, again.gpus);
    cluster_.commit();
}

GPUSCHED_EXPORT const Decision* OnlinePreemption::decide(TaskId preemptor) {
    require_idle();
    const struct Deciding {
        bool& flag;
        explicit Deciding(bool& f) : flag(f) { flag = true; }
        Deciding(const Deciding&) = delete;
        Deciding& operator=(const Deciding&) = delete;
        ~Deciding() { flag = false; }
    } now(deciding_);
    return index_.decide(cluster_, preemptor);
}

}  // namespace gpusched::preemption
