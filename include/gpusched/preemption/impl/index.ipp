#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/preemption/detail/node_answer.hpp>
#include <gpusched/preemption/detail/placement_check.hpp>
#include <gpusched/preemption/index.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::preemption {
namespace detail {

// Everything about a preemptor that answers depend on, given the index's options.
using ShapeKey = std::tuple<std::uint32_t, int, int, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                            bool, bool, Qos, int>;

inline ShapeKey shape_key(const Request& r) {
    return {r.requirement,
            r.gpus,
            r.share_milli,
            r.gpu_memory_mib,
            r.cpu_milli,
            r.memory_mib,
            r.priority,
            r.borrows,
            r.cpu_local,
            r.qos,
            r.level ? static_cast<int>(*r.level) : -1};
}

// One shape: the candidate of every node, and who wins between any two halves.
struct Shape {
    Request request;
    std::vector<Choice<VictimSet>> candidates;  // by node; count == 0 and found = fits as it is
    std::map<std::uint32_t, ManyVictims> many;  // victims on nodes that may have more than 64
    std::vector<std::uint32_t> winners;         // heap order; leaves are nodes
    std::vector<NodeId> marked;
    std::vector<std::uint8_t> is_marked;
    std::uint64_t last_asked = 0;
};

}  // namespace detail

struct PreemptionIndex::State {
    Cluster cluster;
    Options options;
    std::size_t most_shapes;
    std::vector<std::uint32_t> rank, task_rank;  // of nodes and tasks by name
    std::vector<GpuMask> failed;                 // now; the snapshot's and what was reported since
    std::vector<std::uint8_t> gone;
    std::map<detail::ShapeKey, std::size_t> shape_of;
    std::vector<std::unique_ptr<detail::Shape>> shapes;
    detail::Shape everywhere;  // of a preemptor with group constraints
    // The shape of each task, where it was asked before and its slot was not given away since.
    std::vector<std::uint32_t> shape_of_task;
    std::vector<std::uint64_t> shape_birth_of_task;
    std::vector<std::uint64_t> birth;  // of the shape in each slot
    std::uint64_t clock = 0;
    detail::NodeQuestion problem;
    Decision decision;
    detail::Objective objective = detail::Objective::fewest;
    std::size_t leaves = 1;

    static constexpr std::uint32_t nobody = 0xFFFFFFFFu;

    void mark(NodeId node) {
        for (auto& shape : shapes) {
            auto& flag = shape->is_marked[index(node)];
            if (flag != 0) continue;
            flag = 1;
            shape->marked.push_back(node);
        }
    }
    void mark_all() {
        for (const auto node : cluster.nodes()) mark(node);
    }

    // Does node a beat node b?
    [[nodiscard]] bool beats(const detail::Shape& shape, std::uint32_t a, std::uint32_t b) const {
        if (b == nobody || a == nobody) return a != nobody;
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
        return order != 0 ? order < 0 : rank[a] < rank[b];
    }

    void ask(detail::Shape& shape, NodeId node) {
        auto& candidate = shape.candidates[index(node)];
        candidate = {};
        const auto& inv = cluster.inventory();
        if (gone[index(node)] != 0 || inv.nodes.schedulable[index(node)] == 0 ||
            !inv.eligible(shape.request.requirement, inv.nodes.node_class[index(node)]))
            return;
        problem.read(cluster, shape.request, options.cost, node, nullptr, healthy(node));
        if (!shape.many.empty()) shape.many.erase(static_cast<std::uint32_t>(index(node)));
        if (const auto found = problem.locality_now(); found != detail::infeasible)
            candidate.locality = found;
        else if (problem.size() > 0) {
            auto answer = problem.best(options);
            candidate = answer;
            if (problem.has_many() && answer.found())
                shape.many[static_cast<std::uint32_t>(index(node))] = std::move(answer.many);
        }
    }
    [[nodiscard]] GpuMask healthy(NodeId node) const {
        return static_cast<GpuMask>(first_gpus(cluster.gpu_count(node)) & ~failed[index(node)]);
    }

    // After the candidate of the leaf `at` changed. Above a match that another node has won as before nothing changes.
    void replay(detail::Shape& shape, std::size_t at) const {
        const auto changed = shape.winners[at];
        for (at /= 2; at > 0; at /= 2) {
            const auto a = shape.winners[2 * at], b = shape.winners[2 * at + 1];
            const auto winner = beats(shape, a, b) ? a : b;
            if (winner == shape.winners[at] && winner != changed) return;
            shape.winners[at] = winner;
        }
    }

    void fill(detail::Shape& shape) {
        for (const auto node : cluster.nodes()) ask(shape, node);
        for (std::size_t at = leaves; at-- > 1;) {
            const auto a = shape.winners[2 * at], b = shape.winners[2 * at + 1];
            shape.winners[at] = beats(shape, a, b) ? a : b;
        }
        for (const auto node : shape.marked) shape.is_marked[index(node)] = 0;
        shape.marked.clear();
    }

    detail::Shape& shape_for(TaskId task) {
        ++clock;
        if (index(task) < shape_of_task.size()) {
            const auto slot = shape_of_task[index(task)];
            if (slot != nobody && birth[slot] == shape_birth_of_task[index(task)] &&
                !cluster.is_placed(task)) {
                shapes[slot]->last_asked = clock;
                return *shapes[slot];
            }
        }
        detail::Request request(cluster, task, options);
        request.name_rank = task_rank.data();
        if (request.grouped) {  // answers depend on other nodes: never found again
            start(everywhere, std::move(request));
            return everywhere;
        }
        const auto key = detail::shape_key(request);
        auto found = shape_of.find(key);
        if (found == shape_of.end()) {
            // Where a cost function throws, nothing has changed.
            auto fresh = std::make_unique<detail::Shape>();
            start(*fresh, std::move(request));
            std::size_t slot = shapes.size();
            if (slot == most_shapes) {
                slot = 0;
                for (std::size_t i = 1; i < shapes.size(); ++i)
                    if (shapes[i]->last_asked < shapes[slot]->last_asked) slot = i;
                std::erase_if(shape_of, [&](const auto& entry) { return entry.second == slot; });
                shapes[slot] = std::move(fresh);
            } else {
                shapes.push_back(std::move(fresh));
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

    void start(detail::Shape& shape, detail::Request request) {
        shape.request = std::move(request);
        shape.candidates.assign(cluster.node_slots(), {});
        shape.many.clear();
        shape.winners.assign(2 * leaves, nobody);
        for (std::size_t i = 0; i < cluster.node_slots(); ++i)
            shape.winners[leaves + i] = static_cast<std::uint32_t>(i);
        shape.marked.clear();
        shape.marked.reserve(cluster.node_slots());
        shape.is_marked.assign(cluster.node_slots(), 0);
        problem.forget();
        fill(shape);
    }

    void check(NodeId node) const {
        if (!cluster.contains(node))
            throw InvalidInput(bad_value("node", "#" + std::to_string(index(node)),
                                         "below " + std::to_string(cluster.node_slots())));
    }
    void check(TaskId task) const {
        if (!cluster.contains(task))
            throw InvalidInput(bad_value("task", "#" + std::to_string(index(task)),
                                         "below " + std::to_string(cluster.task_slots())));
    }
    void check(TaskId task, NodeId node, GpuMask gpus) const {
        check(task);
        check(node);
        const auto wanted = int{cluster.inventory().tasks.gpu_count[index(task)]};
        if (gpu_count(gpus) != wanted || (gpus & ~first_gpus(cluster.gpu_count(node))) != 0)
            throw InvalidInput("gpus: " + std::to_string(gpu_count(gpus)) + " for task " +
                               gpusched::quoted(cluster.name(task)) + "; expected " + std::to_string(wanted) +
                               " of node " + gpusched::quoted(cluster.name(node)));
        if (gone[index(node)] != 0)
            throw InvalidInput("node " + gpusched::quoted(cluster.name(node)) +
                               ": has failed; expected one that runs");
    }
};

GPUSCHED_INLINE PreemptionIndex::PreemptionIndex(Cluster cluster, Options options, std::size_t most_shapes) {
    validate(options);
    Problems problems;
    if (options.policy != Policy::imp && options.policy != Policy::exhaustive)
        problems.add(bad_value("policy", enum_name(options.policy), "imp or exhaustive"));
    check_at_least(problems, "most_shapes", most_shapes, 1);
    if (options.time_limit)
        problems.add(
            bad_value("time_limit", number_text(*options.time_limit), "none: the index keeps its answers"));
    problems.throw_if_any();
    state_ = std::make_unique<State>();
    auto& s = *state_;
    s.cluster = std::move(cluster);
    s.cluster.commit();
    s.options = std::move(options);
    s.most_shapes = most_shapes;
    s.objective = detail::objective_of(s.options.policy);
    const auto nodes = s.cluster.node_slots();
    const auto ranks = [](std::size_t count, auto&& name) {
        std::vector<std::uint32_t> order(count), rank(count);
        std::iota(order.begin(), order.end(), 0u);
        std::sort(order.begin(), order.end(),
                  [&](std::uint32_t x, std::uint32_t y) { return name(x) < name(y); });
        for (std::size_t i = 0; i < count; ++i) rank[order[i]] = static_cast<std::uint32_t>(i);
        return rank;
    };
    s.rank =
        ranks(nodes, [&](std::size_t i) -> const std::string& { return s.cluster.name(make_id<NodeId>(i)); });
    s.task_rank = ranks(s.cluster.task_slots(), [&](std::size_t i) -> const std::string& {
        return s.cluster.name(make_id<TaskId>(i));
    });
    s.failed = s.cluster.inventory().nodes.failed_gpus;
    s.gone.assign(nodes, 0);
    s.shape_of_task.assign(s.cluster.task_slots(), State::nobody);
    s.shape_birth_of_task.assign(s.cluster.task_slots(), 0);
    s.leaves = std::bit_ceil(std::max<std::size_t>(nodes, 1));
    s.decision.victims.reserve(detail::most_victims);
}
GPUSCHED_INLINE PreemptionIndex::PreemptionIndex(PreemptionIndex&&) noexcept = default;
GPUSCHED_INLINE PreemptionIndex& PreemptionIndex::operator=(PreemptionIndex&&) noexcept = default;
GPUSCHED_INLINE PreemptionIndex::~PreemptionIndex() = default;

GPUSCHED_INLINE void PreemptionIndex::place(TaskId task, NodeId node, GpuMask gpus) {
    auto& s = *state_;
    s.check(task, node, gpus);
    if (const auto old = s.cluster.node_of(task); old != none<NodeId>) s.mark(old);
    s.cluster.assign(task, node, gpus);
    s.cluster.commit();
    s.mark(node);
}

GPUSCHED_INLINE void PreemptionIndex::remove(TaskId task) {
    auto& s = *state_;
    s.check(task);
    const auto node = s.cluster.node_of(task);
    if (node == none<NodeId>) return;
    s.cluster.remove(task);
    s.cluster.commit();
    s.mark(node);
}

GPUSCHED_INLINE void PreemptionIndex::fail_gpu(NodeId node, int gpu, bool failed) {
    auto& s = *state_;
    s.check(node);
    if (gpu < 0 || gpu >= s.cluster.gpu_count(node))
        throw InvalidInput(bad_value("gpu", std::to_string(gpu),
                                     "a GPU of node " + gpusched::quoted(s.cluster.name(node)) +
                                         ", which has " + std::to_string(s.cluster.gpu_count(node))));
    auto& mask = s.failed[index(node)];
    mask = static_cast<GpuMask>(failed ? mask | gpu_bit(gpu) : mask & ~gpu_bit(gpu));
    s.mark(node);
}

GPUSCHED_INLINE void PreemptionIndex::fail_node(NodeId node, bool failed) {
    auto& s = *state_;
    s.check(node);
    if (failed)
        while (!s.cluster.tasks_on(node).empty()) s.cluster.remove(*s.cluster.tasks_on(node).begin());
    s.cluster.commit();
    s.gone[index(node)] = failed ? 1 : 0;
    s.mark(node);
}

GPUSCHED_INLINE void PreemptionIndex::apply(const Decision& decision, TaskId preemptor) {
    const Decision copy = decision;  // it may be the index's own
    state_->check(preemptor, copy.node, copy.gpus);
    for (const auto victim : copy.victims) state_->check(victim);
    for (const auto victim : copy.victims) remove(victim);
    place(preemptor, copy.node, copy.gpus);
}

GPUSCHED_INLINE void PreemptionIndex::set_now(std::int64_t now) {
    auto& s = *state_;
    require_range("now", now, -detail::latest, detail::latest);
    s.options.now = now;
    for (auto& shape : s.shapes) shape->request.now = now;
    s.mark_all();
}

GPUSCHED_INLINE const Cluster& PreemptionIndex::cluster() const noexcept { return state_->cluster; }
GPUSCHED_INLINE GpuMask PreemptionIndex::failed_gpus(NodeId node) const {
    state_->check(node);
    return state_->failed[index(node)];
}
GPUSCHED_INLINE bool PreemptionIndex::has_failed(NodeId node) const {
    state_->check(node);
    return state_->gone[index(node)] != 0;
}
GPUSCHED_INLINE bool PreemptionIndex::proven() const noexcept { return state_->problem.proven(); }
GPUSCHED_INLINE std::size_t PreemptionIndex::shapes() const noexcept { return state_->shapes.size(); }

GPUSCHED_INLINE const Decision* PreemptionIndex::decide(TaskId preemptor) {
    auto& s = *state_;
    s.check(preemptor);
    auto& shape = s.shape_for(preemptor);
    if (shape.marked.size() > s.leaves / 8) {
        s.fill(shape);
    } else {
        for (const auto node : shape.marked) {
            s.ask(shape, node);
            shape.is_marked[index(node)] = 0;
            s.replay(shape, s.leaves + index(node));
        }
        shape.marked.clear();
    }
    const auto winner = shape.winners[1];
    if (winner == State::nobody || !shape.candidates[winner].found()) return nullptr;
    const auto node = make_id<NodeId>(winner);
    const struct Restore {
        TaskId& at;
        TaskId before;
        ~Restore() { at = before; }
    } restore{shape.request.task, shape.request.task};
    shape.request.task = preemptor;
    const auto healthy = s.healthy(node);
    s.problem.read(s.cluster, shape.request, s.options.cost, node, nullptr, healthy);
    detail::Answer answer{shape.candidates[winner], {}};
    if (s.problem.has_many())
        if (const auto many = shape.many.find(winner); many != shape.many.end()) answer.many = many->second;
    s.problem.decide(answer, false, s.decision);
    detail::require_placement(s.cluster, shape.request, s.decision, healthy);
    return &s.decision;
}

}  // namespace GPUSCHED_NAMESPACE::preemption
