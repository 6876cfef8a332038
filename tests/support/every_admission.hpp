// SPDX-License-Identifier: Apache-2.0
// The cheapest way to admit pending tasks, by trying every way. Shares nothing with the library but the documents.
#pragma once

#include "support/catch.hpp"

#include <gpusched/admission/options.hpp>

namespace testing_support {

/// Tries every fate of every running task (it stays, moves, restarts or is lost), every place of all that arrive, and every order of the
/// moves. All ids are positions in the document. Knows shares of GPUs, cores, node selectors, Standby tasks, gangs with subgroups, budgets,
/// anti-affinity, affinity, `avoid`, `near`, `spread`, guaranteed NUMA nodes, required network levels, exempt nodes, spared tasks and limits. At most 8 GPUs
/// and 6 NUMA nodes per node; memory and devices are not looked at.
class EveryAdmission {
  public:
    struct Found {
        std::int64_t cost = 0;
        gpusched::PlanSpec plan{};
    };

    /// @param opens whether tasks may move to nodes that were empty
    EveryAdmission(const gpusched::ClusterSpec& spec, const gpusched::admission::Options& options, bool opens)
        : spec_(spec), options_(options) {
        for (const auto& node : spec.nodes) depth_ = std::max(depth_, static_cast<int>(node.network.size()));
        domain_.resize(std::size_t(depth_));
        for (int level = 0; level < depth_; ++level)
            for (const auto& node : spec.nodes) {
                std::string path;
                for (int l = 0; l <= level && std::ssize(node.network) > level; ++l)
                    path += "/" + node.network[static_cast<std::size_t>(l)];
                domain_[std::size_t(level)].push_back(path.empty() ? "node " + node.name : path);
            }
        now_.nodes.resize(spec.nodes.size());
        now_.at.assign(spec.tasks.size(), -1);
        now_.gpus.assign(spec.tasks.size(), 0);
        open_.assign(spec.nodes.size(), opens);
        like_last_.assign(spec.tasks.size(), false);
        for (int t = 0; t < tasks(); ++t) {
            if (!task(t).node) {
                auto renamed = task(t);
                if (!pods_.empty()) renamed.name = task(pods_.back()).name;
                like_last_[std::size_t(t)] = !pods_.empty() && renamed == task(pods_.back());
                pods_.push_back(t);
                continue;
            }
            unsigned held = 0;
            for (const int g : task(t).gpus) held |= 1u << g;
            for (int n = 0; n < nodes(); ++n)
                if (node(n).name == *task(t).node) put(now_, t, n, held);
            if (!task(t).daemon) open_[std::size_t(at(now_, t))] = true;
        }
        for (int n = 0; n < nodes(); ++n)
            if (!node(n).schedulable || exempt(n)) open_[std::size_t(n)] = false;
        start_ = now_;
        for (const auto& t : spec.tasks) {
            for (const auto& term : t.anti_affinity) levels_[term.group].insert(term.level);
            for (const auto& term : t.affinity) close_levels_[term.group].insert(term.level);
        }
        fate_.assign(spec.tasks.size(), Fate::stays);
        for (int t = 0; t < tasks(); ++t) {
            may_move_.push_back(task(t).node && may_move(t));
            may_evict_.push_back(task(t).node && may_evict(t));
        }
        if (options.mode == gpusched::NetworkMode::required) together_ = options.level.value_or(depth_ - 1);
    }

    /// The cheapest plan that costs less than `limit`, in thousandths of a GPU-second.
    std::optional<Found> cheapest_below(std::int64_t limit) {
        limit_ = limit;
        if (options_.max_cost_s) limit_ = std::min(limit, *options_.max_cost_s * 1000 + 1);
        best_.reset();
        decide(0, 0);
        return best_;
    }

  private:
    enum class Fate { stays, moves, returns, lost };
    /// What is used and claimed: LP tasks claim nothing, Standby tasks use nothing.
    struct Load {
        std::array<std::int64_t, 8> used{}, claimed{};
        std::int64_t cpu_used = 0, cpu_claimed = 0;
    };
    struct State {
        std::vector<Load> nodes;
        std::vector<int> at;
        std::vector<unsigned> gpus;
    };

    int nodes() const { return static_cast<int>(spec_.nodes.size()); }
    int tasks() const { return static_cast<int>(spec_.tasks.size()); }
    const gpusched::TaskSpec& task(int t) const { return spec_.tasks[std::size_t(t)]; }
    const gpusched::NodeSpec& node(int n) const { return spec_.nodes[std::size_t(n)]; }
    static int at(const State& state, int t) { return state.at[std::size_t(t)]; }
    bool lp(int t) const { return task(t).priority_class == gpusched::PriorityClass::lp; }
    bool exempt(int n) const {
        return std::count(options_.exempt.begin(), options_.exempt.end(),
                          gpusched::make_id<gpusched::NodeId>(n)) > 0;
    }
    const gpusched::JobSpec* job_of(int t) const {
        for (const auto& job : spec_.jobs)
            if (job.name == task(t).job) return &job;
        return nullptr;
    }

    // ---- prices ----
    std::int64_t size(int t) const {
        const auto gpus = task(t).gpu_count * task(t).gpu_share_milli;
        return gpus > 0 ? gpus : std::max<std::int64_t>(100, task(t).cpu_milli / 16);
    }
    std::int64_t move_cost(int t) const {
        return size(t) * options_.prices.move_price_s * task(t).move_cost +
               1000 * options_.prices.task_price_s;
    }
    std::int64_t evict_cost(int t, bool again) const {
        const auto since = task(t).last_checkpoint_time.value_or(task(t).start_time);
        const auto work = options_.prices.work ? std::max<std::int64_t>(0, spec_.now - since) : 0;
        return size(t) * (work + (again ? options_.prices.restart_s : options_.prices.loss_s)) +
               1000 * options_.prices.task_price_s;
    }
    /// What an arriving LP task borrows: its share beyond what nobody claims.
    std::int64_t borrowed(const State& state, int t, int n, unsigned gpus) const {
        if (!lp(t)) return 0;
        std::int64_t sum = 0;
        for (int g = 0; g < 8; ++g)
            if ((gpus >> g & 1) != 0) {
                const auto& load = state.nodes[std::size_t(n)];
                const auto firm = 1000 - std::max(load.used[std::size_t(g)], load.claimed[std::size_t(g)]);
                sum += std::max<std::int64_t>(0, task(t).gpu_share_milli - std::max<std::int64_t>(0, firm));
            }
        return sum;
    }

    // ---- who may be disturbed ----
    bool left_alone(int t) const {
        return std::count(options_.spare.begin(), options_.spare.end(),
                          gpusched::make_id<gpusched::TaskId>(t)) > 0 ||
               exempt(at(start_, t)) || task(t).locked || task(t).daemon || task(t).standby;
    }
    bool may_move(int t) const {
        if (!options_.moves || left_alone(t) || task(t).how == gpusched::Mobility::none) return false;
        const auto* job = job_of(t);
        return job == nullptr || job->max_disrupted != 0;
    }
    bool may_evict(int t) const {
        if (!options_.evictions || left_alone(t) || !task(t).preemptible.value_or(lp(t))) return false;
        return std::all_of(pods_.begin(), pods_.end(), [&](int p) {
            return task(t).priority < task(p).priority && !(std::ssize(task(p).near) > 0 && is_wanted(p, t));
        });
    }
    /// Is it a member of all groups that the task wants near?
    bool is_wanted(int by, int t) const {
        return std::all_of(task(by).near.begin(), task(by).near.end(),
                           [&](const auto& term) { return is_member(task(t), term.group); });
    }

    // ---- places ----
    void put(State& state, int t, int n, unsigned gpus, int sign = 1) const {
        auto& load = state.nodes[std::size_t(n)];
        for (std::size_t g = 0; g < 8; ++g) {
            if ((gpus >> g & 1) == 0) continue;
            if (!task(t).standby) load.used[g] += sign * task(t).gpu_share_milli;
            if (!lp(t)) load.claimed[g] += sign * task(t).gpu_share_milli;
        }
        if (!task(t).standby) load.cpu_used += sign * task(t).cpu_milli;
        if (!lp(t)) load.cpu_claimed += sign * task(t).cpu_milli;
        state.at[std::size_t(t)] = sign > 0 ? n : -1;
        state.gpus[std::size_t(t)] = sign > 0 ? gpus : 0;
    }
    void take(State& state, int t) const { put(state, t, at(state, t), state.gpus[std::size_t(t)], -1); }
    bool together(int level, int a, int b) const {
        if (a == b) return true;
        return level >= 0 && level < depth_ &&
               domain_[std::size_t(level)][std::size_t(a)] == domain_[std::size_t(level)][std::size_t(b)];
    }
    bool groups_allow(const State& state, int t, int n) const {
        for (const auto& own : task(t).anti_affinity)
            for (const int level : levels_.at(own.group)) {
                std::int64_t count = 1, limit = INT64_MAX;
                const auto note = [&](const gpusched::TaskSpec& member) {
                    for (const auto& term : member.anti_affinity)
                        if (term.group == own.group && term.level == level)
                            limit = std::min<std::int64_t>(limit, term.limit);
                };
                note(task(t));
                for (int u = 0; u < tasks(); ++u) {
                    const auto& terms = task(u).anti_affinity;
                    if (u == t || at(state, u) < 0 || !together(level, at(state, u), n) ||
                        std::none_of(terms.begin(), terms.end(),
                                     [&](const auto& x) { return x.group == own.group; }))
                        continue;
                    ++count;
                    note(task(u));
                }
                if (count > limit) return false;
            }
        const auto against = [](const gpusched::TaskSpec& a, const gpusched::TaskSpec& b, const auto& near) {
            return std::any_of(a.avoid.begin(), a.avoid.end(), [&](const auto& term) {
                return is_member(b, term.group) && near(term.level);
            });
        };
        for (int u = 0; u < tasks(); ++u) {
            if (u == t || at(state, u) < 0) continue;
            const auto near = [&](int level) { return together(level, at(state, u), n); };
            if (against(task(t), task(u), near) || against(task(u), task(t), near)) return false;
            for (const auto& own : task(t).affinity)
                for (const auto& other : task(u).affinity)
                    if (own.group == other.group && !std::ranges::all_of(close_levels_.at(own.group), near))
                        return false;
        }
        return true;
    }
    static bool is_member(const gpusched::TaskSpec& t, const std::string& group) {
        return std::count(t.groups.begin(), t.groups.end(), group) > 0;
    }
    /// Are the tasks near it that it needs, and not too many more in its domain than elsewhere?
    bool others_allow(const State& state, int t, int n) const {
        bool exist = false, near = true;
        for (const auto& term : task(t).near) {
            bool here = false;
            for (int u = 0; u < tasks(); ++u) {
                if (u == t || at(state, u) < 0 || !is_wanted(t, u)) continue;
                exist = true;
                here = here || together(term.level, at(state, u), n);
            }
            near = near && here;
        }
        if (!near && (exist || !is_wanted(t, t))) return false;
        return spread_allows(state, state, t, n);
    }
    /// @param here, elsewhere the members in its domain, and those of the domain that has the fewest
    bool spread_allows(const State& here, const State& elsewhere, int t, int n) const {
        return std::all_of(task(t).spread.begin(), task(t).spread.end(), [&](const auto& term) {
            const auto members = [&](const State& state, int m) {
                std::int64_t count = 0;
                for (int u = 0; u < tasks(); ++u)
                    count += u != t && at(state, u) >= 0 && has_labels(t, at(state, u)) &&
                             is_member(task(u), term.group) && together(term.level, at(state, u), m);
                return count;
            };
            auto fewest = INT64_MAX;
            for (int m = 0; m < nodes(); ++m)
                if (has_labels(t, m)) fewest = std::min(fewest, members(elsewhere, m));
            return members(here, n) + is_member(task(t), term.group) - fewest <= term.max_skew;
        });
    }
    /// Whatever is free: is there a choice of nodes with which no pod, and no task that is placed again, has too many
    /// members in its domain before the first of them is placed? Members elsewhere count to the last.
    bool may_spread(std::size_t next) {
        const auto is_placed = [&](int t) { return fate_[std::size_t(t)] != Fate::moves; };
        if (next == arrivals_.size()) {
            auto moved = now_;
            for (const int t : arrivals_)
                if (is_placed(t)) moved.at[std::size_t(t)] = -1;
            return std::all_of(arrivals_.begin(), arrivals_.end(), [&](int t) {
                return !is_placed(t) || task(t).spread.empty() || spread_allows(moved, now_, t, at(now_, t));
            });
        }
        const int t = arrivals_[next];
        if (task(t).groups.empty() && (task(t).spread.empty() || !is_placed(t))) return may_spread(next + 1);
        bool possible = false;
        for (int n = 0; n < nodes() && !possible; ++n) {
            if (!accepts(t, n) || !may_arrive(t, n)) continue;
            now_.at[std::size_t(t)] = n;
            possible = may_spread(next + 1);
        }
        now_.at[std::size_t(t)] = -1;
        return possible;
    }
    bool may_arrive(int t, int n) const {
        if (!task(t).node) return true;
        return fate_[std::size_t(t)] == Fate::moves ? n != at(start_, t) && open_[std::size_t(n)]
                                                    : !exempt(n);
    }
    bool has_labels(int t, int n) const {
        const auto& selector = task(t).node_selector;
        return std::all_of(selector.begin(), selector.end(), [&](const auto& label) {
            const auto has = node(n).labels.find(label.first);
            return has != node(n).labels.end() && has->second == label.second;
        });
    }
    bool accepts(int t, int n) const { return node(n).schedulable && has_labels(t, n); }
    bool has_cores(const State& state, int t, int n) const {
        const auto& load = state.nodes[std::size_t(n)];
        const auto free = node(n).cpu_milli - task(t).cpu_milli;
        return load.cpu_used <= free && (lp(t) || load.cpu_claimed <= free);
    }
    unsigned free_gpus(const State& state, int t, int n) const {
        unsigned free = 0;
        const auto& load = state.nodes[std::size_t(n)];
        for (int g = 0; g < node(n).gpu_count; ++g) {
            const auto room = 1000 - task(t).gpu_share_milli;
            if (load.used[std::size_t(g)] <= room && (lp(t) || load.claimed[std::size_t(g)] <= room) &&
                std::count(node(n).failed_gpus.begin(), node(n).failed_gpus.end(), g) == 0)
                free |= 1u << g;
        }
        return free;
    }
    bool local(int t, int n, unsigned gpus) const {
        const auto& wanted = task(t).hardware_affinity;
        if (wanted.empty() || task(t).gpu_count < 2) return true;
        if (!node(n).hardware) return false;
        return std::any_of(node(n).hardware->numa_nodes.begin(), node(n).hardware->numa_nodes.end(),
                           [&](const auto& numa) { return (gpus & ~static_cast<unsigned>(numa.gpus)) == 0; });
    }
    bool fits(const State& state, int t, int n, unsigned gpus) const {
        return accepts(t, n) && has_cores(state, t, n) && (gpus & ~free_gpus(state, t, n)) == 0 &&
               groups_allow(state, t, n) && others_allow(state, t, n);
    }
    /// Calls `use` with every set of GPUs of the node that the task could take. GPUs that nobody held at the start or holds now are tried
    /// once per NUMA node.
    template <class Use>
    void for_each_place(int t, int n, Use&& use) const {
        if (!accepts(t, n) || !has_cores(now_, t, n) || !groups_allow(now_, t, n)) return;
        const auto free = free_gpus(now_, t, n);
        if (std::popcount(free) < task(t).gpu_count) return;
        std::array<unsigned, 8> weight{};  // sums say how many GPUs of each kind a set has
        for (int g = 0; g < node(n).gpu_count; ++g) {
            const auto i = std::size_t(g);
            unsigned numa = 0;
            if (node(n).hardware)
                for (std::size_t k = 0; k < node(n).hardware->numa_nodes.size(); ++k)
                    if ((node(n).hardware->numa_nodes[k].gpus >> g & 1) != 0) numa = static_cast<unsigned>(k);
            const auto &now = now_.nodes[std::size_t(n)], &start = start_.nodes[std::size_t(n)];
            const bool unused = now.used[i] + now.claimed[i] + start.used[i] + start.claimed[i] == 0;
            weight[i] = unused ? 256u << 4 * numa : 1u << g;
        }
        std::vector<unsigned> seen;
        for (unsigned gpus = 0; gpus < 1u << node(n).gpu_count; ++gpus) {
            if (std::popcount(gpus) != task(t).gpu_count || (gpus & ~free) != 0 || !local(t, n, gpus))
                continue;
            unsigned kinds = 0;
            for (int g = 0; g < node(n).gpu_count; ++g) kinds += (gpus >> g & 1) * weight[std::size_t(g)];
            if (std::find(seen.begin(), seen.end(), kinds) != seen.end()) continue;
            seen.push_back(kinds);
            use(gpus);
        }
    }

    // ---- the search ----
    bool too_much(std::int64_t cost) const { return cost >= (best_ ? best_->cost : limit_); }

    void decide(int t, std::int64_t cost) {
        if (too_much(cost)) return;
        if (t == tasks()) return arrive(cost);
        decide(t + 1, cost);
        if (!task(t).node || (!may_move_[std::size_t(t)] && !may_evict_[std::size_t(t)])) return;
        auto& fate = fate_[std::size_t(t)];
        const auto n = at(now_, t);
        const auto gpus = now_.gpus[std::size_t(t)];
        take(now_, t);
        if (may_move_[std::size_t(t)]) fate = Fate::moves, decide(t + 1, cost + move_cost(t));
        if (may_evict_[std::size_t(t)]) {
            if (options_.replace) fate = Fate::returns, decide(t + 1, cost + evict_cost(t, true));
            fate = Fate::lost, decide(t + 1, cost + evict_cost(t, false));
        }
        fate = Fate::stays;
        put(now_, t, n, gpus);
    }

    bool evicted(int t) const {
        return fate_[std::size_t(t)] == Fate::returns || fate_[std::size_t(t)] == Fate::lost;
    }
    static bool in(const gpusched::BudgetSpec& budget, const gpusched::TaskSpec& t) {
        return std::count(budget.tasks.begin(), budget.tasks.end(), t.name) > 0;
    }
    std::int64_t down(const gpusched::BudgetSpec& budget) const {
        std::int64_t count = 0;
        for (int t = 0; t < tasks(); ++t) count += evicted(t) && in(budget, task(t));
        return count;
    }
    static std::int64_t allowed(const gpusched::BudgetSpec& budget) {
        return budget.broken ? 0 : budget.allowed_down;
    }

    /// Does a pod, or a task that is placed again, need members near it of which none will run?
    bool lacks_neighbours() const {
        for (int t = 0; t < tasks(); ++t) {
            const bool placed = !task(t).node || fate_[std::size_t(t)] == Fate::returns;
            if (!placed || task(t).near.empty()) continue;
            bool some = false;
            for (int u = 0; u < tasks() && !some; ++u)
                some = fate_[std::size_t(u)] != Fate::lost && is_wanted(t, u);  // perhaps itself
            if (!some) return true;
        }
        return false;
    }

    bool gangs_hold() const {
        for (const auto& job : spec_.jobs) {
            int running = 0, gone = 0, returns = 0;
            for (int t = 0; t < tasks(); ++t) {
                if (task(t).job != job.name || at(start_, t) < 0) continue;
                ++running;
                gone += evicted(t);
                returns += fate_[std::size_t(t)] == Fate::returns;
            }
            if (gone == 0) continue;
            bool holds = job.min_members > 0 && running - gone >= job.min_members;
            for (const auto& subgroup : job.subgroups) {
                int stay = 0, leave = 0;
                for (int t = 0; t < tasks(); ++t)
                    if (task(t).job == job.name && task(t).subgroup == subgroup.name && at(start_, t) >= 0)
                        ++(evicted(t) ? leave : stay);
                if (leave > 0 && stay < subgroup.min_members) holds = false;
            }
            if (holds) continue;
            if (gone < running || (returns != 0 && returns != gone)) return false;
            if (std::any_of(pods_.begin(), pods_.end(), [&](int p) { return task(p).job == job.name; }))
                return false;
        }
        return true;
    }

    void arrive(std::int64_t cost) {
        std::int64_t moves = 0, evictions = 0;
        arrivals_.clear();
        for (int t = 0; t < tasks(); ++t) {
            evictions += evicted(t);
            if (fate_[std::size_t(t)] == Fate::moves) ++moves, arrivals_.push_back(t);
        }
        if (moves > options_.max_moves.value_or(moves) ||
            evictions > options_.max_evictions.value_or(evictions))
            return;
        for (const auto& budget : spec_.budgets)
            if (const auto over = down(budget) - allowed(budget); over > 0) {
                if (!options_.prices.budget_price_s) return;
                cost += over * *options_.prices.budget_price_s * 1000;
            }
        if (too_much(cost) || !gangs_hold() || lacks_neighbours()) return;
        arrivals_.insert(arrivals_.end(), pods_.begin(), pods_.end());
        for (int t = 0; t < tasks(); ++t)
            if (fate_[std::size_t(t)] == Fate::returns) arrivals_.push_back(t);
        std::int64_t room = 0;
        for (int n = 0; n < nodes(); ++n)
            for (int g = 0; node(n).schedulable && g < node(n).gpu_count; ++g)
                room += 1000 - now_.nodes[std::size_t(n)].used[std::size_t(g)];
        for (const int t : arrivals_) room -= task(t).gpu_count * task(t).gpu_share_milli;
        if (room >= 0 && may_spread(0)) place(0, cost);
    }

    void place(std::size_t next, std::int64_t cost) {
        if (too_much(cost)) return;
        if (next == arrivals_.size()) return finish(cost);
        const int t = arrivals_[next];
        // Of pods that are alike, the first is on the first node.
        for (int n = like_last_[std::size_t(t)] ? at(now_, arrivals_[next - 1]) : 0; n < nodes(); ++n) {
            if (!may_arrive(t, n)) continue;
            if (!task(t).node && together_ && next > 0 && !task(arrivals_[next - 1]).node &&
                !together(*together_, n, at(now_, arrivals_[next - 1])))
                continue;
            for_each_place(t, n, [&](unsigned gpus) {
                const auto recall = borrowed(now_, t, n, gpus) * options_.prices.recall_price_s;
                if (recall > 0 && !options_.standby) return;
                put(now_, t, n, gpus);
                place(next + 1, cost + recall);
                take(now_, t);
            });
        }
    }

    /// May these tasks move in one wave? A task that is copied moves alone.
    bool may_share_a_wave(const std::vector<int>& wave) const {
        if (wave.size() > 1 && std::any_of(wave.begin(), wave.end(),
                                           [&](int t) { return task(t).how == gpusched::Mobility::copy; }))
            return false;
        for (const auto& job : spec_.jobs)
            if (job.max_disrupted && std::count_if(wave.begin(), wave.end(), [&](int t) {
                                         return task(t).job == job.name;
                                     }) > *job.max_disrupted)
                return false;
        return std::all_of(spec_.budgets.begin(), spec_.budgets.end(), [&](const auto& budget) {
            const auto restarts = std::count_if(wave.begin(), wave.end(), [&](int t) {
                return task(t).how != gpusched::Mobility::copy && in(budget, task(t));
            });
            return restarts == 0 || down(budget) + restarts <= allowed(budget);
        });
    }
    /// Moves one task that is copied, or some that restart at once, again and again. False: `state` is as it was.
    bool order(State& state, const std::vector<int>& movers, unsigned done, gpusched::PlanSpec& plan) {
        const auto all = (1u << movers.size()) - 1;
        if (done == all) return true;
        if (!seen_.insert(done).second) return false;
        std::vector<int> wave;
        for (unsigned chosen = 1; chosen <= all; ++chosen) {
            if ((chosen & done) != 0) continue;
            wave.clear();
            for (std::size_t m = 0; m < movers.size(); ++m)
                if ((chosen >> m & 1) != 0) wave.push_back(movers[m]);
            if (!may_share_a_wave(wave)) continue;
            for (const int t : wave) take(state, t);
            bool possible = true;
            for (const int t : wave) {
                possible = possible && fits(state, t, at(now_, t), now_.gpus[std::size_t(t)]);
                put(state, t, at(now_, t), now_.gpus[std::size_t(t)]);
            }
            if (possible) {
                const auto before = plan.moves.size();
                for (const int t : wave)
                    plan.moves.push_back({.task = task(t).name,
                                          .from = node(at(start_, t)).name,
                                          .to = node(at(now_, t)).name,
                                          .gpus = listed(now_.gpus[std::size_t(t)]),
                                          .wave = plan.waves,
                                          .how = gpusched::move_mode(task(t).how)});
                ++plan.waves;
                if (order(state, movers, done | chosen, plan)) return true;
                --plan.waves;
                plan.moves.resize(before);
            }
            for (const int t : wave) take(state, t);
            for (const int t : wave) put(state, t, at(start_, t), start_.gpus[std::size_t(t)]);
        }
        return false;
    }
    /// Places all that arrive without a move, each when the others allow it.
    bool order_placements(State& state, gpusched::PlanSpec& plan) {
        bool all = true;
        unsigned done = 0;
        for (const int t : arrivals_) done |= unsigned(at(state, t) >= 0) << t;
        if (!seen_.insert(done).second) return false;
        for (const int t : arrivals_) {
            if ((done >> t & 1) != 0) continue;
            all = false;
            if (!others_allow(state, t, at(now_, t))) continue;
            const auto gpus = now_.gpus[std::size_t(t)];
            put(state, t, at(now_, t), gpus);
            plan.placements.push_back({task(t).name, node(at(now_, t)).name, listed(gpus)});
            if (order_placements(state, plan)) return true;
            plan.placements.pop_back();
            take(state, t);
        }
        return all;
    }
    static std::vector<int> listed(unsigned gpus) {
        std::vector<int> list;
        for (int g = 0; g < 8; ++g)
            if ((gpus >> g & 1) != 0) list.push_back(g);
        return list;
    }

    void finish(std::int64_t cost) {
        gpusched::PlanSpec plan;
        auto state = start_, moved = now_;
        std::vector<int> movers;
        for (int t = 0; t < tasks(); ++t) {
            const bool moves = fate_[std::size_t(t)] == Fate::moves;
            if (moves) movers.push_back(t);
            if (evicted(t)) {
                plan.evictions.push_back(task(t).name);
                take(state, t);
            }
            if (!moves && fate_[std::size_t(t)] != Fate::stays && at(moved, t) >= 0) take(moved, t);
        }
        for (const int p : pods_) take(moved, p);
        seen_.clear();
        if (!order_placements(moved, plan)) return;
        seen_.clear();
        if (!order(state, movers, 0, plan)) return;
        for (int n = 0; n < nodes(); ++n) {
            const auto holds = [&](const State& s) {
                for (int t = 0; t < tasks(); ++t)
                    if (at(s, t) == n && !task(t).daemon) return true;
                return false;
            };
            if (holds(start_) && !holds(now_)) plan.vacated_nodes.push_back(node(n).name);
            const bool moved_to =
                std::any_of(movers.begin(), movers.end(), [&](int t) { return at(now_, t) == n; });
            if (!holds(start_) && moved_to) plan.opened_nodes.push_back(node(n).name);
        }
        best_ = Found{cost, std::move(plan)};
    }

    const gpusched::ClusterSpec& spec_;
    const gpusched::admission::Options& options_;
    int depth_ = 0;
    std::vector<std::vector<std::string>> domain_;  // by level, then by node
    std::map<std::string, std::set<int>> levels_,
        close_levels_;  // of anti-affinity and of affinity, by group
    State now_, start_;
    std::vector<int> pods_, arrivals_;
    std::vector<bool> open_, may_move_, may_evict_;
    std::vector<bool> like_last_;  // pods like the pod before them
    std::vector<Fate> fate_;
    std::optional<int> together_;
    std::set<unsigned> seen_;  // sets of tasks that have moved, or are placed
    std::int64_t limit_ = 0;
    std::optional<Found> best_;
};

}  // namespace testing_support
