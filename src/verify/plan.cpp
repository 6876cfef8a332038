// SPDX-License-Identifier: Apache-2.0
#include "verify/books.hpp"
#include "verify/constraints.hpp"
#include "verify/downtime.hpp"
#include "verify/goal.hpp"
#include "verify/selection.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::verify {

namespace detail {

// Replays one plan.
class Replay {
  public:
    Replay(const ClusterSpec& snapshot, const PlanSpec& plan, const Options& options)
        : plan_(plan), options_(options), books_(snapshot), downtime_(snapshot),
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
    const std::string& node_name(int node) { return books_.machine(node).spec->name; }

    void read_vacated_list() {
        for (const auto& name : plan_.vacated_nodes) {
            const auto node = find(books_.machine_of, name);
            if (node == nowhere)
                violation("vacated_nodes", "unknown node " + named(name));
            else if (std::exchange(books_.machine(node).listed_as_vacated, true))
                violation("vacated_nodes", "node " + named(name) + " is listed twice");
        }
    }

    void read_opened_list() {
        for (const auto& name : plan_.opened_nodes) {
            const auto node = find(books_.machine_of, name);
            if (node == nowhere)
                violation("opened_nodes", "unknown node " + named(name));
            else if (std::exchange(books_.machine(node).listed_as_opened, true))
                violation("opened_nodes", "node " + named(name) + " is listed twice");
            else if (books_.machine(node).occupied_before)
                violation("opened_nodes",
                          "node " + named(name) + " held tasks other than daemons from the start");
        }
    }

    // What moves say of why they are made: nothing that a replay shows.
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
            if (const auto node = find(books_.machine_of, m.serves); node == nowhere)
                violation(step, "for: unknown node " + named(m.serves));
            else if (!books_.machine(node).listed_as_vacated)
                violation(step, "for: node " + named(m.serves) + " is none of vacated_nodes");
        }
    }

    // Evictions --------------------------------------------------------------------------------------------
    void evict(const std::string& name) {
        const auto step = "eviction of task " + named(name);
        const auto id = find(books_.pod_of, name);
        if (id == nowhere) return violation(step, "unknown task");
        auto& pod = books_.pods[static_cast<std::size_t>(id)];
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
        violation("wave " + std::to_string(from),
                  "no moves" + (to > from ? " up to wave " + std::to_string(to) : ""));
    }

    void run_wave(std::int64_t wave, const std::vector<std::size_t>& moves) {
        ++wave_number_;
        std::vector<Arrival> arrivals;
        arrivals.reserve(moves.size());
        std::unordered_map<std::string_view, std::int64_t> disrupted;
        for (const auto i : moves) {
            const auto& m = plan_.moves[i];
            const auto step = "wave " + std::to_string(wave) + ", move #" + std::to_string(i) + " of task " +
                              named(m.task) + " from " + named(m.from) + " to " + named(m.to);
            std::vector<std::string> found;
            const auto id = find(books_.pod_of, m.task);
            const auto from = find(books_.machine_of, m.from);
            const auto to = find(books_.machine_of, m.to);
            if (wave < 0 || wave >= plan_.waves)
                found.push_back("wave: the plan has waves 0 to " + std::to_string(plan_.waves - 1));
            if (id == nowhere) found.push_back("unknown task");
            if (from == nowhere) found.push_back("from: unknown node");
            if (to == nowhere) found.push_back("to: unknown node");
            auto* pod = id == nowhere ? nullptr : &books_.pods[static_cast<std::size_t>(id)];
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
            if (possible && !gpus_exist(books_.machine(to), m.gpus, found)) possible = false;
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
                                " members of job " + named(pod->spec->job) + " move in this wave");
            auto& machine = books_.machine(to);
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
                books_.enter(*a.pod, a.pod->node, a.pod->cards, -1);
            books_.relocate(*a.pod, a.node, a.cards);
        }
    }

    void leave(Pod& pod) {
        books_.enter(pod, pod.node, pod.cards, -1);
        books_.relocate(pod, nowhere, {});
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
            const auto id = find(books_.pod_of, p.task);
            const auto node = find(books_.machine_of, p.node);
            if (id == nowhere) found.push_back("unknown task");
            if (node == nowhere) found.push_back("unknown node");
            auto* pod = id == nowhere ? nullptr : &books_.pods[static_cast<std::size_t>(id)];
            if (pod != nullptr && pod->node != nowhere)
                found.push_back("the task runs already, on " + named(node_name(pod->node)));
            if (pod != nullptr && pod->moved_in_wave == wave_number_)
                found.push_back("the task is placed twice");
            if (!found.empty() || !gpus_exist(books_.machine(node), p.gpus, found)) {
                for (const auto& what : found) violation(step, what);
                continue;
            }
            pod->moved_in_wave = wave_number_;
            arrivals.push_back({pod, node, p.gpus, step});
        }
        judge(arrivals, true);
        for (auto& a : arrivals) books_.relocate(*a.pod, a.node, a.cards);
    }

    // Constraints ------------------------------------------------------------------------------------------
    // All arrivals happen together: enters them all, then looks at what depends on the others.
    /// @param in_turn one after the other: of those that near and spread let in the first, again and again
    void judge(std::vector<Arrival>& arrivals, bool in_turn) {
        for (auto& a : arrivals) {
            check_node(books_, a);
            books_.enter(*a.pod, a.node, a.cards, +1);
            check_room(books_, a);
        }
        if (options_.rule) ask_rule(arrivals);
        if (in_turn) take_turns(arrivals);
        for (auto& a : arrivals) {
            if (!in_turn) SelectionCheck(books_, a).run();
            for (const auto& part : a.pod->parts) check_group(books_, a, books_.tallies[part.tally]);
            for (const auto& what : a.found) violation(a.step, what);
        }
    }

    void ask_rule(std::vector<Arrival>& arrivals) {
        std::vector<Copy> copies;
        for (const auto& pod : books_.pods)
            if (pod.node != nowhere) copies.push_back({pod.spec, books_.machine(pod.node).spec});
        for (const auto& a : arrivals) copies.push_back({a.pod->spec, books_.machine(a.node).spec});
        for (auto& a : arrivals)
            if (const auto what = options_.rule(*a.pod->spec, *books_.machine(a.node).spec, copies);
                !what.empty())
                a.found.push_back("rule: " + what);
    }

    // What near and spread say of each depends on who came before it.
    void take_turns(std::vector<Arrival>& arrivals) {
        std::vector<Arrival*> waiting;
        for (auto& a : arrivals) {
            books_.enter(*a.pod, a.node, a.cards, -1);
            waiting.push_back(&a);
        }
        for (bool stuck = false; !waiting.empty();) {
            const auto before = waiting.size();
            std::vector<Arrival*> later;
            for (auto* a : waiting) {
                const auto known = a->found.size();
                books_.enter(*a->pod, a->node, a->cards, +1);
                SelectionCheck(books_, *a).run();
                const bool waits =
                    std::any_of(a->found.begin() + static_cast<std::ptrdiff_t>(known), a->found.end(),
                                [](const std::string& what) { return !what.starts_with("avoid: "); });
                if (stuck || !waits) continue;
                books_.enter(*a->pod, a->node, a->cards, -1);
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
        for (const auto& m : books_.machines)
            if (m.listed_as_opened && !m.opened)
                violation("opened_nodes", "no move leads to node " + named(m.spec->name));
        for (auto& m : books_.machines) {
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
                violation("vacated_nodes", "node " + named(m.spec->name) + " still holds " +
                                               std::to_string(m.occupants) + " tasks other than daemons");
        }
    }

    void check_bound() {
        const auto& bound = plan_.bound;
        if (bound.occupied_nodes_at_least < 0 || bound.vacated_nodes_at_most < 0 ||
            bound.vacated_gpus_at_most < 0)
            violation("bound", "is negative");
        // It speaks of the same tasks in other places, so not of plans that evict or place.
        if (bound.method.empty() || !plan_.evictions.empty() || !plan_.placements.empty()) return;
        const auto compare = [&](const char* what, std::int64_t value, bool good, std::int64_t limit) {
            if (!good)
                violation("bound", std::string(what) + " is " + std::to_string(limit) +
                                       ", but the plan reaches " + std::to_string(value));
        };
        std::int64_t occupied = 0;
        auto vacated = static_cast<std::int64_t>(report_.vacated_nodes.size());
        auto gpus = report_.vacated_gpus;
        for (const auto& m : books_.machines) {
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
                                   ", but the statistics say that the plan is worth more");
        compare("vacated_gpus_at_most", gpus, gpus <= bound.vacated_gpus_at_most, bound.vacated_gpus_at_most);
    }

    void check_goal() {
        if (!plan_.goal) {
            if (plan_.goal_reached) violation("goal_reached", "there is no goal");
            return;
        }
        if (const auto bad = bad_goal(books_, *plan_.goal); !bad.empty()) return violation("goal", bad);
        if (!plan_.goal_reached) return;
        const auto wanted = plan_.goal->empty_nodes.value_or(plan_.goal->count.value_or(1));
        const auto there = available(books_, *plan_.goal);
        if (*plan_.goal_reached != (there >= wanted))
            violation("goal_reached", std::string(*plan_.goal_reached ? "is true" : "is false") +
                                          ", but there are " + std::to_string(there) + " of " +
                                          std::to_string(wanted));
    }

    const PlanSpec& plan_;
    const Options& options_;
    Books books_;
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
