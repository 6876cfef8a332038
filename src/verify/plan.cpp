// SPDX-License-Identifier: Apache-2.0
// Replays a plan step by step on the state of state.hpp.
#include "verify/constraints.hpp"
#include "verify/state.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::verify {

namespace detail {

// Tasks that are down, per disruption budget.
class Downtime {
  public:
    explicit Downtime(const ClusterSpec& snapshot) : budgets_(snapshot.budgets), down_(budgets_.size()) {
        for (std::size_t b = 0; b < budgets_.size(); ++b) {
            for (const auto& task : budgets_[b].tasks) of_task_[task].push_back(b);
            for (const auto& group : budgets_[b].groups) of_group_[group].push_back(b);
        }
    }

    /// The task goes down; reports every budget that does not allow it.
    template <class Report>
    void begin(const TaskSpec& task, const Report& report) {
        for (const auto b : budgets_of(task)) {
            const auto& budget = budgets_[b];
            const std::int64_t allowed = budget.broken ? 0 : budget.allowed_down;
            if (++down_[b] > allowed)
                report("budgets: " + std::to_string(down_[b]) + (down_[b] == 1 ? " task of " : " tasks of ") +
                       gpusched::quoted(budget.name) + " would be down, " + std::to_string(allowed) +
                       " may be");
        }
    }
    /// The task runs again.
    void end(const TaskSpec& task) {
        for (const auto b : budgets_of(task)) --down_[b];
    }

  private:
    [[nodiscard]] std::set<std::size_t> budgets_of(const TaskSpec& task) const {
        std::set<std::size_t> found;
        const auto add = [&](const auto& of, const std::string& name) {
            if (const auto at = of.find(name); at != of.end())
                found.insert(at->second.begin(), at->second.end());
        };
        add(of_task_, task.name);
        for (const auto& term : task.anti_affinity) add(of_group_, term.group);
        for (const auto& term : task.affinity) add(of_group_, term.group);
        for (const auto& group : task.groups) add(of_group_, group);
        return found;
    }

    const std::vector<BudgetSpec>& budgets_;
    std::vector<std::int64_t> down_;
    std::unordered_map<std::string_view, std::vector<std::size_t>> of_task_, of_group_;
};

/// Returns whether a task may run on a node, ignoring its free capacity.
[[nodiscard]] static bool may_run(const TaskSpec& task, const NodeSpec& node) {
    const auto selected = [&](const auto& wanted) {
        const auto label = node.labels.find(wanted.first);
        return label != node.labels.end() && label->second == wanted.second;
    };
    return (task.gpu_models.empty() || std::find(task.gpu_models.begin(), task.gpu_models.end(),
                                                 node.gpu_model) != task.gpu_models.end()) &&
           std::all_of(task.node_selector.begin(), task.node_selector.end(), selected) &&
           affinity_holds(task.node_affinity, node) &&
           std::none_of(node.taints.begin(), node.taints.end(),
                        [&](const Taint& taint) { return keeps_away(taint, task.tolerations); });
}

/// Returns whether the free resources of a machine suffice for a task.
[[nodiscard]] static bool has_room(const Machine& machine, const TaskSpec& task) {
    const auto& node = *machine.spec;
    const auto used = [&](const InUse& use) {
        return std::max(State::consumes(task) ? use.consumed : 0, State::claims(task) ? use.claimed : 0);
    };
    if (used(machine.cpu) + task.cpu_milli > node.cpu_milli) return false;
    if (machine.memory_mib + task.memory_mib > node.memory_mib) return false;
    for (const auto& [name, amount] : task.resources) {
        const auto has = node.resources.find(name);
        const auto in_use = machine.resources.find(name);
        const auto total = amount + (in_use == machine.resources.end() ? 0 : in_use->second);
        if (total > (has == node.resources.end() ? 0 : has->second)) return false;
    }
    std::map<std::string_view, std::int64_t> devices;
    for (const auto& device : machine.devices)
        devices[device.device_class] += device.failed || device.holders > 0 ? 0 : 1;
    if (task.device_count > 0 &&
        std::none_of(task.device_classes.begin(), task.device_classes.end(),
                     [&](const auto& accepted) { return devices[accepted] >= task.device_count; }))
        return false;
    std::vector<int> free;
    for (std::size_t c = 0; c < machine.cards.size(); ++c) {
        const auto& card = machine.cards[c];
        const bool memory = !node.gpu_memory_mib || task.gpu_memory_mib == 0 ||
                            card.memory_mib + task.gpu_memory_mib <= *node.gpu_memory_mib;
        if (!card.failed && memory && used(card.milli) + task.gpu_share_milli <= 1000)
            free.push_back(static_cast<int>(c));
    }
    const auto enough = [&](const std::vector<int>& cards) {
        return static_cast<std::int64_t>(cards.size()) >= task.gpu_count;
    };
    if (!enough(free)) return false;
    const auto are_close = [&](const std::vector<int>& cards) {
        Arrival arrival{nullptr, nowhere, cards, {}};
        check_locality(arrival, task, node);
        return arrival.found.empty();
    };
    return task.gpu_count < 2 || std::any_of(free.begin(), free.end(), [&](int first) {
               auto close = free;
               std::erase_if(close, [&](int card) { return card != first && !are_close({first, card}); });
               return enough(close) && are_close(close);
           });
}

/// Returns the machines without the tasks that may move, and without the task itself for which they are asked.
[[nodiscard]] static std::vector<Machine> emptied(State state, const TaskSpec& user) {
    for (const auto& pod : state.pods) {
        const auto& task = *pod.spec;
        const bool stays = &task != &user && (task.locked || task.standby || task.daemon || task.cpu_local ||
                                              task.how == Mobility::none);
        if (pod.node != nowhere && !stays) state.enter(pod, pod.node, pod.cards, -1);
    }
    return std::move(state.machines);
}

/// Returns for every machine whether it counts for a valid goal.
[[nodiscard]] static std::vector<bool> machines_that_count(const State& state, const Goal& goal) {
    const bool any_gpus =
        std::any_of(state.machines.begin(), state.machines.end(), [](const Machine& machine) {
            return machine.spec->schedulable && machine.spec->gpu_count > 0;
        });
    const TaskSpec* user = nullptr;
    std::vector<Machine> without;
    if (const auto found = state.pod_of.find(goal.usable_by); found != state.pod_of.end()) {
        user = state.pods[static_cast<std::size_t>(found->second)].spec;
        without = emptied(state, *user);
    }
    std::vector<bool> out;
    for (std::size_t m = 0; m < state.machines.size(); ++m) {
        const auto& machine = state.machines[m];
        const auto& node = *machine.spec;
        // A taint that another node of the model lacks keeps others away.
        const auto is_common = [&](const Taint& taint) {
            return taint.effect == "PreferNoSchedule" ||
                   std::all_of(state.machines.begin(), state.machines.end(), [&](const Machine& other) {
                       const auto& spec = *other.spec;
                       return !spec.schedulable || spec.gpu_model != node.gpu_model ||
                              std::find(spec.taints.begin(), spec.taints.end(), taint) != spec.taints.end();
                   });
        };
        const bool gpu_works = std::any_of(machine.cards.begin(), machine.cards.end(),
                                           [](const auto& card) { return !card.failed; });
        out.push_back(node.schedulable && (goal.gpu_model.empty() || node.gpu_model == goal.gpu_model) &&
                      (!goal.empty_nodes || !any_gpus || gpu_works) &&
                      (user != nullptr ? may_run(*user, node) && has_room(without[m], *user)
                                       : std::all_of(node.taints.begin(), node.taints.end(), is_common)));
    }
    return out;
}

/// Returns the reason why the goal is invalid; empty if it is valid.
[[nodiscard]] static std::string bad_goal(const State& state, const Goal& goal) {
    if (!goal.gpu_model.empty() &&
        std::none_of(state.machines.begin(), state.machines.end(),
                     [&](const auto& machine) { return machine.spec->gpu_model == goal.gpu_model; }))
        return "no node has GPU model " + gpusched::quoted(goal.gpu_model);
    if (!goal.usable_by.empty() && !state.pod_of.contains(goal.usable_by))
        return "there is no task " + gpusched::quoted(goal.usable_by);
    if (goal.empty_nodes.has_value() == goal.slots.has_value())
        return "it must ask for either empty_nodes or slots";
    if (goal.empty_nodes) {
        if (goal.count) return "count cannot be combined with empty_nodes";
        return *goal.empty_nodes < 1 ? "empty_nodes is less than 1" : "";
    }
    const auto& s = *goal.slots;
    if (s.gpu_count < 0 || s.cpu_milli < 0 || s.memory_mib < 0) return "a request of the slots is negative";
    if (s.gpu_count == 0 && s.cpu_milli == 0 && s.memory_mib == 0) return "the slots request no resource";
    return goal.count.value_or(1) < 1 ? "count is less than 1" : "";
}

/// Returns the number of empty nodes or slots for a valid goal.
[[nodiscard]] static std::int64_t available(const State& state, const Goal& goal) {
    const auto unused = [](std::int64_t capacity, const InUse& use) {
        return std::max<std::int64_t>(0, capacity - std::max(use.consumed, use.claimed));
    };
    std::int64_t sum = 0;
    const auto counts = machines_that_count(state, goal);
    for (std::size_t m = 0; m < state.machines.size(); ++m) {
        if (!counts[m]) continue;
        const auto& machine = state.machines[m];
        const auto& spec = *machine.spec;
        if (goal.empty_nodes) {
            sum += machine.occupants == 0 ? 1 : 0;
            continue;
        }
        const auto& shape = *goal.slots;
        const auto idle = std::count_if(machine.cards.begin(), machine.cards.end(), [](const Card& card) {
            return !card.failed && card.milli.consumed == 0 && card.milli.claimed == 0;
        });
        std::int64_t slots = -1;  // no limit yet
        const auto limit = [&](std::int64_t free, std::int64_t each) {
            if (each == 0) return;
            const auto fit = free / each;
            slots = slots < 0 ? fit : std::min(slots, fit);
        };
        limit(idle, shape.gpu_count);
        limit(unused(spec.cpu_milli, machine.cpu), shape.cpu_milli);
        limit(std::max<std::int64_t>(0, spec.memory_mib - machine.memory_mib), shape.memory_mib);
        sum += slots;
    }
    return sum;
}

// Replays one plan.
class Replay {
  public:
    Replay(const ClusterSpec& snapshot, const PlanSpec& plan, const Options& options)
        : plan_(plan), options_(options), state_(snapshot), downtime_(snapshot),
          limit_(options.max_violations) {
        for (const auto& job : snapshot.jobs)
            if (job.max_disrupted) max_disrupted_.emplace(job.name, *job.max_disrupted);
    }

    Report run() {
        read_vacated_list();
        read_opened_list();
        check_chains();
        for (const auto& task : plan_.evictions) evict(task);
        run_waves();
        place_all();
        compare_vacated();
        check_bound();
        check_goal();
        report_.ok = report_.violation_count == 0;
        return std::move(report_);
    }

  private:
    void violation(std::string text) {
        if (report_.violations.size() < limit_) report_.violations.push_back(std::move(text));
        ++report_.violation_count;
    }
    void violation(const std::string& step, const std::string& what) { violation(step + ": " + what); }

    static int find(const std::unordered_map<std::string_view, int>& names, const std::string& name) {
        const auto found = names.find(name);
        return found == names.end() ? nowhere : found->second;
    }
    const std::string& node_name(int node) { return state_.machine(node).spec->name; }

    void read_vacated_list() {
        for (const auto& name : plan_.vacated_nodes) {
            const auto node = find(state_.machine_of, name);
            if (node == nowhere)
                violation("vacated_nodes", "unknown node " + named(name));
            else if (std::exchange(state_.machine(node).listed_as_vacated, true))
                violation("vacated_nodes", "node " + named(name) + " is listed twice");
        }
    }

    void read_opened_list() {
        for (const auto& name : plan_.opened_nodes) {
            const auto node = find(state_.machine_of, name);
            if (node == nowhere)
                violation("opened_nodes", "unknown node " + named(name));
            else if (std::exchange(state_.machine(node).listed_as_opened, true))
                violation("opened_nodes", "node " + named(name) + " is listed twice");
            else if (state_.machine(node).occupied_before)
                violation("opened_nodes",
                          "node " + named(name) + " held tasks other than daemons from the start");
        }
    }

    // Checks `chain` and `serves`, which a replay does not need.
    void check_chains() {
        std::unordered_map<std::int64_t, const std::string*> serves;  // by chain
        for (std::size_t i = 0; i < plan_.moves.size(); ++i) {
            const auto& m = plan_.moves[i];
            const auto step = "move #" + std::to_string(i) + " of task " + named(m.task);
            if (m.chain && *m.chain < 0)
                violation(step, "chain: is " + std::to_string(*m.chain));
            else if (m.chain)
                if (const auto* first = serves.try_emplace(*m.chain, &m.serves).first->second;
                    *first != m.serves)
                    violation(step, "for: " + (m.serves.empty() ? "no node" : named(m.serves)) +
                                        ", but an earlier move of chain " + std::to_string(*m.chain) +
                                        " serves " + (first->empty() ? "none" : named(*first)));
            if (m.serves.empty()) continue;
            if (const auto node = find(state_.machine_of, m.serves); node == nowhere)
                violation(step, "for: unknown node " + named(m.serves));
            else if (!state_.machine(node).listed_as_vacated)
                violation(step, "for: node " + named(m.serves) + " is none of vacated_nodes");
        }
    }

    // Evictions --------------------------------------------------------------------------------------------
    void evict(const std::string& name) {
        const auto step = "eviction of task " + named(name);
        const auto id = find(state_.pod_of, name);
        if (id == nowhere) return violation(step, "unknown task");
        auto& pod = state_.pods[static_cast<std::size_t>(id)];
        const auto& task = *pod.spec;
        if (pod.node == nowhere)
            return violation(step, "it does not run" + std::string(task.node ? " any more" : ""));
        if (!task.preemptible.value_or(task.priority_class == PriorityClass::lp))
            violation(step, "preemptible: it is not");
        const auto report = [&](const std::string& what) { violation(step, what); };
        check_fixed(task, report);
        downtime_.begin(task, report);
        leave(pod);
    }

    // Waves ------------------------------------------------------------------------------------------------
    void run_waves() {
        const auto order = order_by(plan_.moves.size(), [&](std::size_t i) { return plan_.moves[i].wave; });
        if (plan_.waves < 0) violation("waves", "the plan has " + std::to_string(plan_.waves) + " waves");
        std::int64_t expected = 0;
        for (std::size_t first = 0, last; first < order.size(); first = last) {
            const auto wave = plan_.moves[order[first]].wave;
            last = first;
            while (last < order.size() && plan_.moves[order[last]].wave == wave) ++last;
            if (wave >= 0 && wave < plan_.waves) {
                if (wave > expected) report_gap(expected, wave - 1);
                expected = wave + 1;
            }
            run_wave(wave, {order.begin() + static_cast<std::ptrdiff_t>(first),
                            order.begin() + static_cast<std::ptrdiff_t>(last)});
        }
        if (expected < plan_.waves) report_gap(expected, plan_.waves - 1);
    }

    void report_gap(std::int64_t from, std::int64_t to) {
        violation("wave " + std::to_string(from + 1),
                  "no moves" + (to > from ? " up to wave " + std::to_string(to + 1) : ""));
    }

    void run_wave(std::int64_t wave, const std::vector<std::size_t>& moves) {
        ++wave_number_;
        std::vector<Arrival> arrivals;
        arrivals.reserve(moves.size());
        std::unordered_map<std::string_view, std::int64_t> disrupted;
        for (const auto i : moves) {
            const auto& m = plan_.moves[i];
            const auto step = "wave " + std::to_string(wave + 1) + ", move #" + std::to_string(i) +
                              " of task " + named(m.task) + " from " + named(m.from) + " to " + named(m.to);
            std::vector<std::string> found;
            const auto id = find(state_.pod_of, m.task);
            const auto from = find(state_.machine_of, m.from);
            const auto to = find(state_.machine_of, m.to);
            if (wave < 0 || wave >= plan_.waves)
                found.push_back("wave: the plan has waves 1 to " + std::to_string(plan_.waves));
            if (id == nowhere) found.push_back("unknown task");
            if (from == nowhere) found.push_back("from: unknown node");
            if (to == nowhere) found.push_back("to: unknown node");
            auto* pod = id == nowhere ? nullptr : &state_.pods[static_cast<std::size_t>(id)];
            bool possible = pod != nullptr && to != nowhere;
            if (pod != nullptr && pod->node == nowhere) {
                found.push_back("from: the task does not run");
                possible = false;
            } else if (pod != nullptr && from != nowhere && from != pod->node) {
                found.push_back("from: the task is on " + named(node_name(pod->node)));
            }
            if (pod != nullptr && pod->moved_in_wave == wave_number_) {
                found.push_back("the task moves a second time in this wave");
                possible = false;
            }
            if (possible && to == pod->node) {
                found.push_back("to: the task is there already");
                possible = false;
            }
            if (possible && !gpus_exist(state_.machine(to), m.gpus, found)) possible = false;
            if (!possible) {
                for (const auto& what : found) violation(step, what);
                continue;
            }
            pod->moved_in_wave = wave_number_;
            const auto report = [&](const std::string& what) { found.push_back(what); };
            check_fixed(*pod->spec, report);
            check_how(*pod->spec, m.how, report);
            const bool restarts = m.how == MoveMode::restart;
            if (restarts) downtime_.begin(*pod->spec, report);
            if (const auto job = max_disrupted_.find(pod->spec->job);
                job != max_disrupted_.end() && ++disrupted[job->first] > job->second)
                found.push_back("max_disrupted: more than " + std::to_string(job->second) +
                                (job->second == 1 ? " member of job " : " members of job ") +
                                named(pod->spec->job) + " move in this wave");
            auto& machine = state_.machine(to);
            machine.opened = true;
            if (!machine.occupied_before && !machine.listed_as_opened)
                found.push_back("to: the node was empty before the plan");
            if (machine.listed_as_vacated) found.push_back("to: the node is one of vacated_nodes");
            arrivals.push_back({pod, to, m.gpus, step, std::move(found), restarts});
        }
        for (const auto& a : arrivals)
            if (a.restarts) leave(*a.pod);
        judge(arrivals, false);
        for (auto& a : arrivals) {
            if (a.restarts)
                downtime_.end(*a.pod->spec);
            else
                state_.enter(*a.pod, a.pod->node, a.pod->cards, -1);
            state_.relocate(*a.pod, a.node, a.cards);
        }
    }

    void leave(Pod& pod) {
        state_.enter(pod, pod.node, pod.cards, -1);
        state_.relocate(pod, nowhere, {});
    }

    // Placements -------------------------------------------------------------------------------------------
    void place_all() {
        ++wave_number_;
        std::vector<Arrival> arrivals;
        arrivals.reserve(plan_.placements.size());
        for (const auto& p : plan_.placements) {
            const auto step = "placement #" + std::to_string(&p - plan_.placements.data()) + " of task " +
                              named(p.task) + " on " + named(p.node);
            std::vector<std::string> found;
            const auto id = find(state_.pod_of, p.task);
            const auto node = find(state_.machine_of, p.node);
            if (id == nowhere) found.push_back("unknown task");
            if (node == nowhere) found.push_back("unknown node");
            auto* pod = id == nowhere ? nullptr : &state_.pods[static_cast<std::size_t>(id)];
            if (pod != nullptr && pod->node != nowhere)
                found.push_back("the task runs already, on " + named(node_name(pod->node)));
            if (pod != nullptr && pod->moved_in_wave == wave_number_)
                found.push_back("the task is placed twice");
            if (!found.empty() || !gpus_exist(state_.machine(node), p.gpus, found)) {
                for (const auto& what : found) violation(step, what);
                continue;
            }
            pod->moved_in_wave = wave_number_;
            arrivals.push_back({pod, node, p.gpus, step});
        }
        judge(arrivals, true);
        for (auto& a : arrivals) state_.relocate(*a.pod, a.node, a.cards);
    }

    // Constraints ------------------------------------------------------------------------------------------
    // Adds all arrivals, then checks the constraints that depend on the others. With `in_turn` the arrivals
    // come one after the other: repeatedly the first that near and spread accept.
    void judge(std::vector<Arrival>& arrivals, bool in_turn) {
        for (auto& a : arrivals) {
            check_node(state_, a);
            state_.enter(*a.pod, a.node, a.cards, +1);
            check_room(state_, a);
        }
        if (options_.rule) ask_rule(arrivals);
        if (in_turn) take_turns(arrivals);
        for (auto& a : arrivals) {
            if (!in_turn) SelectionCheck(state_, a).run();
            for (const auto& part : a.pod->parts) check_group(state_, a, state_.tallies[part.tally]);
            for (const auto& what : a.found) violation(a.step, what);
        }
    }

    void ask_rule(std::vector<Arrival>& arrivals) {
        std::vector<Copy> copies;
        for (const auto& pod : state_.pods)
            if (pod.node != nowhere) copies.push_back({pod.spec, state_.machine(pod.node).spec});
        for (const auto& a : arrivals) copies.push_back({a.pod->spec, state_.machine(a.node).spec});
        for (auto& a : arrivals)
            if (const auto what = options_.rule(*a.pod->spec, *state_.machine(a.node).spec, copies);
                !what.empty())
                a.found.push_back("rule: " + what);
    }

    // The results of near and spread depend on earlier arrivals.
    void take_turns(std::vector<Arrival>& arrivals) {
        std::vector<Arrival*> waiting;
        for (auto& a : arrivals) {
            state_.enter(*a.pod, a.node, a.cards, -1);
            waiting.push_back(&a);
        }
        for (bool stuck = false; !waiting.empty();) {
            const auto before = waiting.size();
            std::vector<Arrival*> later;
            for (auto* a : waiting) {
                const auto known = a->found.size();
                state_.enter(*a->pod, a->node, a->cards, +1);
                SelectionCheck(state_, *a).run();
                const bool waits = std::any_of(
                    a->found.begin() + static_cast<std::ptrdiff_t>(known), a->found.end(),
                    [](const std::string& what) { return !what.starts_with("pod anti-affinity: "); });
                if (stuck || !waits) continue;
                state_.enter(*a->pod, a->node, a->cards, -1);
                a->found.resize(known);
                later.push_back(a);
            }
            stuck = later.size() == before;
            waiting = std::move(later);
        }
    }

    static std::int64_t healthy(const Machine& machine) {
        return std::count_if(machine.cards.begin(), machine.cards.end(),
                             [](const Card& card) { return !card.failed; });
    }

    // The result -------------------------------------------------------------------------------------------
    void compare_vacated() {
        for (const auto& m : state_.machines)
            if (m.listed_as_opened && !m.opened)
                violation("opened_nodes", "no move leads to node " + named(m.spec->name));
        for (auto& m : state_.machines) {
            const bool vacated = m.occupied_before && m.occupants == 0;
            if (vacated) {
                report_.vacated_nodes.push_back(m.spec->name);
                report_.vacated_gpus += healthy(m);
            }
            if (vacated == m.listed_as_vacated) continue;
            if (vacated)
                violation("vacated_nodes", "node " + named(m.spec->name) + " is vacated, but not listed");
            else if (!m.occupied_before)
                violation("vacated_nodes", "node " + named(m.spec->name) + " was empty from the start");
            else
                violation("vacated_nodes",
                          "node " + named(m.spec->name) + " still holds " + std::to_string(m.occupants) +
                              (m.occupants == 1 ? " task" : " tasks") + " other than daemons");
        }
    }

    void check_bound() {
        const auto& bound = plan_.bound;
        if (bound.occupied_nodes_at_least < 0 || bound.vacated_nodes_at_most < 0 ||
            bound.vacated_gpus_at_most < 0)
            violation("bound", "is negative");
        // A bound is for the same set of running tasks, so it does not apply to plans that evict or place.
        if (bound.method.empty() || !plan_.evictions.empty() || !plan_.placements.empty()) return;
        const auto compare = [&](const char* what, std::int64_t value, bool good, std::int64_t limit) {
            if (!good)
                violation("bound", std::string(what) + " is " + std::to_string(limit) +
                                       ", but the plan reaches " + std::to_string(value));
        };
        std::int64_t occupied = 0;
        auto vacated = static_cast<std::int64_t>(report_.vacated_nodes.size());
        auto gpus = report_.vacated_gpus;
        for (const auto& m : state_.machines) {
            occupied += m.occupants > 0 ? 1 : 0;
            if (m.occupied_before || m.occupants == 0) continue;
            --vacated;  // it was opened
            gpus -= healthy(m);
        }
        compare("occupied_nodes_at_least", occupied, occupied >= bound.occupied_nodes_at_least,
                bound.occupied_nodes_at_least);
        compare("vacated_nodes_at_most", vacated, vacated <= bound.vacated_nodes_at_most,
                bound.vacated_nodes_at_most);
        if (const auto value = plan_.stats.find("value_milli");
            bound.value_at_most && value != plan_.stats.end() &&
            value->second > static_cast<double>(*bound.value_at_most))
            violation("bound", "value_at_most is " + std::to_string(*bound.value_at_most) +
                                   ", but the statistics claim a higher value");
        compare("vacated_gpus_at_most", gpus, gpus <= bound.vacated_gpus_at_most, bound.vacated_gpus_at_most);
    }

    void check_goal() {
        if (!plan_.goal) {
            if (plan_.goal_reached) violation("goal_reached", "there is no goal");
            return;
        }
        if (const auto bad = bad_goal(state_, *plan_.goal); !bad.empty()) return violation("goal", bad);
        if (!plan_.goal_reached) return;
        const auto wanted = plan_.goal->empty_nodes.value_or(plan_.goal->count.value_or(1));
        const auto there = available(state_, *plan_.goal);
        if (*plan_.goal_reached != (there >= wanted))
            violation("goal_reached", std::string(*plan_.goal_reached ? "is true" : "is false") +
                                          ", but there are " + std::to_string(there) + " of " +
                                          std::to_string(wanted));
    }

    const PlanSpec& plan_;
    const Options& options_;
    State state_;
    Downtime downtime_;
    std::size_t limit_;
    std::unordered_map<std::string_view, std::int64_t> max_disrupted_;
    int wave_number_ = 0;  // of this replay; placements count as one more
    Report report_;
};

}  // namespace detail

GPUSCHED_EXPORT Report plan(const ClusterSpec& snapshot, const PlanSpec& plan, const Options& options) {
    require_fields(options);
    return detail::Replay(snapshot, plan, options).run();
}

}  // namespace gpusched::verify
