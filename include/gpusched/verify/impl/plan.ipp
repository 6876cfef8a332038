#pragma once

#include <gpusched/verify/detail/books.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::verify {

namespace detail {

inline std::string named(std::string_view name) { return gpusched::quoted(name); }

inline std::string level_text(Level level) {
    return level == node_level ? "node" : "network level " + std::to_string(level);
}

inline bool keeps_away(const Taint& taint, const std::vector<Toleration>& tolerations) {
    if (taint.effect == "PreferNoSchedule") return false;
    for (const auto& t : tolerations) {
        const bool same_effect = t.effect.empty() || t.effect == taint.effect;
        const bool same_key = t.key == taint.key || (t.key.empty() && t.op == "Exists");
        const bool same_value = t.op == "Exists" || t.value == taint.value;
        if (same_effect && same_key && same_value) return false;
    }
    return true;
}

// Replays one plan.
class Replay {
  public:
    Replay(const ClusterSpec& snapshot, const PlanSpec& plan, const Options& options)
        : plan_(plan), books_(snapshot), limit_(options.max_violations) {
        for (const auto& job : snapshot.jobs)
            if (job.max_disrupted) max_disrupted_.emplace(job.name, *job.max_disrupted);
    }

    Report run() {
        read_vacated_list();
        for (const auto& task : plan_.evictions) evict(task);
        run_waves();
        place_all();
        compare_vacated();
        check_bound();
        report_.ok = report_.violation_count == 0;
        return std::move(report_);
    }

  private:
    // A step that puts a task somewhere; its violations are gathered first and reported in plan order.
    struct Arrival {
        Pod* pod;
        int node;
        const std::vector<int>& cards;
        std::string step;
        std::vector<std::string> found{};
    };

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
        check_fixed(task, [&](const std::string& what) { violation(step, what); });
        books_.enter(pod, pod.node, pod.cards, -1);
        books_.relocate(pod, nowhere, {});
    }

    template <class Report>
    static void check_fixed(const TaskSpec& task, const Report& report) {
        if (task.locked) report("locked: the task must stay");
        if (task.standby) report("standby: the task must stay");
        if (task.daemon) report("daemon: the task must stay");
    }

    // Waves ------------------------------------------------------------------------------------------------
    void run_waves() {
        std::vector<std::size_t> order(plan_.moves.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return std::pair(plan_.moves[a].wave, a) < std::pair(plan_.moves[b].wave, b);
        });
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
            if (possible && !gpus_exist(to, m.gpus, found)) possible = false;
            if (!possible) {
                for (const auto& what : found) violation(step, what);
                continue;
            }
            pod->moved_in_wave = wave_number_;
            check_fixed(*pod->spec, [&](const std::string& what) { found.push_back(what); });
            if (const auto job = max_disrupted_.find(pod->spec->job);
                job != max_disrupted_.end() && ++disrupted[job->first] > job->second)
                found.push_back("max_disrupted: more than " + std::to_string(job->second) +
                                " members of job " + named(pod->spec->job) + " move in this wave");
            // No one has left or arrived yet: occupants are those of the wave's start.
            const auto& machine = books_.machine(to);
            if (machine.occupants == 0) found.push_back("to: the node is empty");
            if (machine.listed_as_vacated) found.push_back("to: the node is one of vacated_nodes");
            arrivals.push_back({pod, to, m.gpus, step, std::move(found)});
        }
        judge(arrivals);
        for (auto& a : arrivals) {
            books_.enter(*a.pod, a.pod->node, a.pod->cards, -1);
            books_.relocate(*a.pod, a.node, a.cards);
        }
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
            if (!found.empty() || !gpus_exist(node, p.gpus, found)) {
                for (const auto& what : found) violation(step, what);
                continue;
            }
            pod->moved_in_wave = wave_number_;
            arrivals.push_back({pod, node, p.gpus, step});
        }
        judge(arrivals);
        for (auto& a : arrivals) books_.relocate(*a.pod, a.node, a.cards);
    }

    // Constraints ------------------------------------------------------------------------------------------
    bool gpus_exist(int node, const std::vector<int>& gpus, std::vector<std::string>& found) {
        const auto count = books_.machine(node).spec->gpu_count;
        std::set<int> seen;
        bool exist = true;
        for (const int g : gpus) {
            if (g < 0 || g >= count) {
                found.push_back("gpus: names GPU " + std::to_string(g) + ", but " + named(node_name(node)) +
                                " has " + std::to_string(count));
                exist = false;
            } else if (!seen.insert(g).second) {
                found.push_back("gpus: names GPU " + std::to_string(g) + " twice");
                exist = false;
            }
        }
        return exist;
    }

    // All arrivals happen together: enters them all, then looks at what depends on the others.
    void judge(std::vector<Arrival>& arrivals) {
        for (auto& a : arrivals) {
            check_node(a);
            books_.enter(*a.pod, a.node, a.cards, +1);
            check_room(a);
        }
        for (auto& a : arrivals) {
            for (const auto& part : a.pod->parts) check_group(a, books_.tallies[part.tally]);
            for (const auto& what : a.found) violation(a.step, what);
        }
    }

    void check_node(Arrival& a) {
        const auto& task = *a.pod->spec;
        const auto& node = *books_.machine(a.node).spec;
        if (!node.schedulable) a.found.push_back("cordoned: the node receives nothing");
        if (!task.gpu_models.empty() && std::find(task.gpu_models.begin(), task.gpu_models.end(),
                                                  node.gpu_model) == task.gpu_models.end())
            a.found.push_back("gpu_model: " + named(node.gpu_model) +
                              " is not among those that the task accepts");
        for (const auto& [key, value] : task.node_selector) {
            const auto label = node.labels.find(key);
            if (label == node.labels.end() || label->second != value)
                a.found.push_back("node_selector: the node lacks label " + key + "=" + value);
        }
        for (const auto& taint : node.taints)
            if (keeps_away(taint, task.tolerations))
                a.found.push_back("taint: " + taint.key + "=" + taint.value + ":" + taint.effect +
                                  " is not tolerated");
        if (static_cast<std::int64_t>(a.cards.size()) != task.gpu_count)
            a.found.push_back("gpus: names " + std::to_string(a.cards.size()) + ", but the task asks for " +
                              std::to_string(task.gpu_count));
        check_locality(a, task, node);
    }

    static void check_locality(Arrival& a, const TaskSpec& task, const NodeSpec& node) {
        if (a.cards.size() < 2) return;  // one GPU is always close to itself
        for (const auto& wish : task.hardware_affinity) {
            if (wish.qos != HardwareQos::guaranteed) continue;
            const bool numa_level = wish.level == HardwareLevel::numa;
            const std::string what =
                "hardware_affinity: guaranteed " + std::string(numa_level ? "NUMA node" : "socket");
            if (!node.hardware) {
                a.found.push_back(what + ", but the node's hardware is not known");
                continue;
            }
            const auto preset = hardware_preset(node.hardware->preset);
            const auto& numa = preset ? preset->numa_nodes : node.hardware->numa_nodes;
            std::set<int> places;
            for (const int card : a.cards)
                for (std::size_t i = 0; i < numa.size(); ++i)
                    if ((numa[i].gpus >> card & 1) != 0)
                        places.insert(numa_level ? static_cast<int>(i) : numa[i].socket);
            if (places.size() != 1)
                a.found.push_back(what + ", but its GPUs span " + std::to_string(places.size()));
        }
    }

    // Resources after the arrival was entered; what is over capacity is this arrival's doing or that of one before it.
    void check_room(Arrival& a) {
        const auto& task = *a.pod->spec;
        const auto& m = books_.machine(a.node);
        const auto over = [&](const std::string& what, std::int64_t asked, std::int64_t used,
                              std::int64_t capacity) {
            if (asked > 0 && used > capacity)
                a.found.push_back(what + ": needs " + std::to_string(asked) + ", but " +
                                  std::to_string(capacity - (used - asked)) + " of " +
                                  std::to_string(capacity) + " is free");
        };
        const auto most = [&](const InUse& use) {
            return std::max(Books::consumes(task) ? use.consumed : 0, Books::claims(task) ? use.claimed : 0);
        };
        over("cpu_milli", task.cpu_milli, most(m.cpu), m.spec->cpu_milli);
        over("memory_mib", task.memory_mib, m.memory_mib, m.spec->memory_mib);
        for (const int c : a.cards) {
            const auto& card = m.cards[static_cast<std::size_t>(c)];
            const auto gpu = "GPU " + std::to_string(c);
            if (card.failed)
                a.found.push_back("gpus: " + gpu + " has failed");
            else
                over("gpus: " + gpu, task.gpu_share_milli, most(card.milli), 1000);
            if (m.spec->gpu_memory_mib)
                over("gpu_memory_mib: " + gpu, task.gpu_memory_mib, card.memory_mib, *m.spec->gpu_memory_mib);
        }
    }

    void check_group(Arrival& a, const Tally& tally) {
        const auto home = books_.domain(tally.level, a.node);
        const auto& here = tally.domains.at(home);
        const int old = a.pod->node == nowhere ? nowhere : books_.domain(tally.level, a.pod->node);
        const auto where = " at " + level_text(tally.level);
        if (tally.kind == Tally::Kind::spread) {
            const auto copies = here.copies - (old == home ? 1 : 0);  // its own old copy does not count
            if (!here.limits.empty() && copies > here.limits.begin()->first)
                a.found.push_back("anti_affinity: group " + named(tally.name) + where + " would have " +
                                  std::to_string(copies) + " members together, the limit is " +
                                  std::to_string(here.limits.begin()->first));
            return;
        }
        const bool network = tally.kind == Tally::Kind::network;
        const bool old_excused = !network && old != nowhere && old != home;
        if (tally.copies - here.copies - (old_excused ? 1 : 0) > 0)
            a.found.push_back(std::string(network ? "network_affinity: gang " : "affinity: group ") +
                              named(tally.name) + where + " would be spread over several domains");
    }

    // The result -------------------------------------------------------------------------------------------
    void compare_vacated() {
        for (auto& m : books_.machines) {
            const bool vacated = m.occupied_before && m.occupants == 0;
            if (vacated) {
                report_.vacated_nodes.push_back(m.spec->name);
                report_.vacated_gpus += std::count_if(m.cards.begin(), m.cards.end(),
                                                      [](const Card& card) { return !card.failed; });
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
        for (const auto& m : books_.machines) occupied += m.occupants > 0 ? 1 : 0;
        const auto vacated = static_cast<std::int64_t>(report_.vacated_nodes.size());
        compare("occupied_nodes_at_least", occupied, occupied >= bound.occupied_nodes_at_least,
                bound.occupied_nodes_at_least);
        compare("vacated_nodes_at_most", vacated, vacated <= bound.vacated_nodes_at_most,
                bound.vacated_nodes_at_most);
        compare("vacated_gpus_at_most", report_.vacated_gpus,
                report_.vacated_gpus <= bound.vacated_gpus_at_most, bound.vacated_gpus_at_most);
    }

    const PlanSpec& plan_;
    Books books_;
    std::size_t limit_;
    std::unordered_map<std::string_view, std::int64_t> max_disrupted_;
    int wave_number_ = 0;  // of this replay; placements count as one more
    Report report_;
};

}  // namespace detail

GPUSCHED_INLINE Report plan(const ClusterSpec& snapshot, const PlanSpec& plan, const Options& options) {
    if (options.max_violations < 1) throw InvalidInput("max_violations: 0; expected at least 1");
    return detail::Replay(snapshot, plan, options).run();
}

}  // namespace gpusched::verify
