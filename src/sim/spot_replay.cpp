// SPDX-License-Identifier: Apache-2.0
// Replays HP and spot jobs event by event, and records their work, waits and evictions.
#include "model/name_order.hpp"
#include "sim/spot_scheduler.hpp"

#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/slowdown.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/preemption/standby.hpp>
#include <gpusched/sim/spot_replay.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::sim {
namespace detail {

/// Pods that fit on no node in one pass over the waiting jobs. The cluster only gets fuller during the pass,
/// so requests that are at least as large fail, too.
class Hopeless {
  public:
    explicit Hopeless(const Cluster& cluster) : tasks_(cluster.inventory().tasks) {
        // With groups and localities, a pod can fit although a smaller one does not.
        for (const auto& affinities : cluster.inventory().task_affinities)
            plain_.push_back(affinities == TaskAffinities{});
    }
    void clear() { pods_.clear(); }
    void add(TaskId pod) { pods_.push_back(pod); }
    [[nodiscard]] bool covers(TaskId pod) const {
        const auto p = index(pod);
        return std::any_of(pods_.begin(), pods_.end(), [&](TaskId failed) {
            const auto f = index(failed);
            // A fraction fits on every node that fits whole GPUs, but not the other way round.
            const bool as_many_gpus =
                tasks_.gpu_share_milli[f] < whole_gpu_milli
                    ? tasks_.gpu_count[p] >= 1 && tasks_.gpu_share_milli[p] >= tasks_.gpu_share_milli[f]
                    : tasks_.gpu_share_milli[p] == whole_gpu_milli &&
                          tasks_.gpu_count[p] >= tasks_.gpu_count[f];
            return as_many_gpus && tasks_.cpu_milli[p] >= tasks_.cpu_milli[f] &&
                   tasks_.memory_mib[p] >= tasks_.memory_mib[f] &&
                   tasks_.gpu_memory_mib[p] >= tasks_.gpu_memory_mib[f] &&
                   tasks_.priority_class[p] == tasks_.priority_class[f] &&
                   tasks_.requirement[p] == tasks_.requirement[f] &&
                   (tasks_.extras[f] == 0 || tasks_.extras[p] == tasks_.extras[f]) &&
                   plain_[tasks_.affinities[p]] && plain_[tasks_.affinities[f]];
        });
    }

  private:
    const TaskTable& tasks_;
    std::vector<bool> plain_;  // by index into task_affinities
    std::vector<TaskId> pods_;
};

static void validate_spot(const SpotTrace& trace, const SpotReplayOptions& o,
                          const allocation::Registries& known) {
    Problems problems;
    if (o.rankers.empty() || o.rankers.size() > most_rankers)
        problems.add(bad_value("rankers", std::to_string(o.rankers.size()) + " names",
                               "1 to " + std::to_string(most_rankers)));
    for (const auto& name : o.rankers)
        if (known.rankers.expects_workload(name))
            problems.add(bad_value("rankers", gpusched::quoted(name), "rankers that need no workload"));
    if (known.gpu_pickers.expects_workload(o.gpu_picker))
        problems.add(
            bad_value("gpu_picker", gpusched::quoted(o.gpu_picker), "a picker that needs no workload"));
    allocation::check_slowdown(problems, "cpu_slowdown_milli", o.cpu_slowdown_milli);
    allocation::check_slowdown(problems, "offline_slowdown_milli", o.offline_slowdown_milli);
    const auto before = problems.count();
    check_fields(problems, o);
    if (problems.count() == before && o.measure_until_s)
        check_range(problems, "measure_until_s", *o.measure_until_s, o.measure_from_s, longest_replay_s);
    std::int64_t last = 0;
    for (const auto& job : trace.jobs) {
        const auto owner = "job " + gpusched::quoted(job.pod.name);
        check_range(problems, "pods", job.pods, 1, 10'000, owner);
        check_range(problems, "work_s", job.work_s, 1, longest_replay_s, owner);
        check_range(problems, "checkpoint_interval", job.pod.checkpoint_interval, 0, longest_replay_s, owner);
        if (check_range(problems, "arrival_s", job.arrival_s, 0, longest_replay_s, owner) &&
            job.arrival_s < last)
            problems.add(bad_value("arrival_s", number_text(job.arrival_s),
                                   "at least that of the job before, " + number_text(last), owner));
        last = std::max(last, job.arrival_s);
        if (job.pod.priority_class == PriorityClass::other)
            problems.add(bad_value("priority_class", "other", "HP or LP", owner));
        if (job.pod.node) problems.add(bad_value("node", gpusched::quoted(*job.pod.node), "none", owner));
    }
    problems.throw_if_any();
    preemption::validate(o.eviction);
}

constexpr std::int64_t no_event = std::numeric_limits<std::int64_t>::max();

/// One replay.
class SpotReplay {
  public:
    SpotReplay(const SpotTrace& trace, const SpotReplayOptions& options, const Context& context,
               const allocation::Registries& known)
        : trace_(trace), options_(options), budget_(context),
          clock_(context.clock != nullptr ? *context.clock : SteadyClock::instance()),
          eviction_rng_(Rng(options.seed).split(2)), beside_cpu_only_{options.cpu_slowdown_milli},
          beside_offline_{options.offline_slowdown_milli},
          interferes_(!beside_cpu_only_.milli.empty() || !beside_offline_.milli.empty()) {
        validate_spot(trace, options, known);
        cluster_ =
            Cluster::build({.nodes = gpusched::detail::in_name_order(trace.nodes)}, IdOrder::as_listed);
        add_pods();
        hopeless_.emplace(cluster_);
        scheduler_.emplace(options, cluster_, gangs_, known);
        runs_.resize(trace.jobs.size());
        result_.jobs.resize(trace.jobs.size());
        from_ = options.measure_from_s;
        until_ = options.measure_until_s.value_or(trace.jobs.empty() ? 0 : trace.jobs.back().arrival_s + 1);
        for (std::size_t j = 0; j < trace.jobs.size(); ++j)
            unfinished_ += takes_part(j) && measured(j) ? 1 : 0;
        for (const auto node : cluster_.nodes())
            all_gpus_ += gpusched::gpu_count(cluster_.healthy_gpus(node));
        cost_ = [this](const Cluster&, TaskId task, std::int64_t now) { return lost_by(task, now); };
    }

    SpotReplayResult run() {
        const auto consolidation = options_.consolidate_every_h * 3600;
        auto next_consolidation = consolidation > 0 ? consolidation : no_event;
        std::int64_t now = 0;
        bool overdue = false;
        for (std::int64_t event = 0;; ++event) {
            while (!finishes_.empty() && finishes_.top().run != runs_[finishes_.top().job].number)
                finishes_.pop();  // already evicted
            while (arrived_ < trace_.jobs.size() && !takes_part(arrived_)) ++arrived_;
            const auto next_arrival =
                arrived_ < trace_.jobs.size() ? trace_.jobs[arrived_].arrival_s : no_event;
            const auto next_finish = finishes_.empty() ? no_event : finishes_.top().time;
            auto next = std::min(next_arrival, next_finish);
            if (unfinished_ == 0 && now >= until_) break;
            const bool over = next == no_event;  // no job runs or arrives any more
            const bool consolidates = !over && next_consolidation <= next;
            if (consolidates) next = next_consolidation;
            if (over || next > longest_replay_s) {
                // The measured period continues in this state.
                overdue = !over && unfinished_ > 0;
                const auto end = over ? std::max(now, until_) : longest_replay_s;
                pass(now, end);
                now = end;
                break;
            }
            if (event % 16 == 0) {
                budget_.report("replay", std::min(now, until_), until_);
                if (budget_.exhausted()) break;
            }
            pass(now, next);
            now = next;
            new_hp_.clear();
            new_lp_.clear();
            while (!finishes_.empty() && finishes_.top().time == now) {
                const auto f = finishes_.top();
                finishes_.pop();
                if (f.run == runs_[f.job].number) finish(f.job, now);
            }
            for (; arrived_ < trace_.jobs.size() && trace_.jobs[arrived_].arrival_s == now; ++arrived_)
                if (takes_part(arrived_)) {
                    (is_hp(arrived_) ? hp_waiting_ : lp_waiting_).insert(arrived_);
                    (is_hp(arrived_) ? new_hp_ : new_lp_).push_back(arrived_);
                }
            if (consolidates) {
                consolidate(now);
                next_consolidation += consolidation;
            }
            schedule(now);
            change_pace(now);
            cluster_.commit();
        }
        result_.stop_reason = overdue ? StopReason::time_limit : budget_.reason();
        summarise(now);
        return std::move(result_);
    }

  private:
    struct Run {
        std::int64_t start = 0, works_from = 0;
        std::int64_t pace_since = 0, done_us = 0;  // work up to pace_since; from then on at the current pace
        std::int64_t slowdown_milli = 0;
        std::uint32_t number = 0;  // a finish with another number is void
        bool running = false;
    };
    struct Finish {
        std::int64_t time;
        std::size_t job;
        std::uint32_t run;
        auto operator<=>(const Finish&) const = default;
    };

    [[nodiscard]] bool is_hp(std::size_t job) const {
        return trace_.jobs[job].pod.priority_class == PriorityClass::hp;
    }
    [[nodiscard]] bool takes_part(std::size_t job) const { return options_.spot_jobs || is_hp(job); }
    [[nodiscard]] bool measured(std::size_t job) const {
        const auto arrival = trace_.jobs[job].arrival_s;
        return arrival >= from_ && arrival < until_;
    }
    [[nodiscard]] std::int64_t gpu_milli(std::size_t job) const {
        const auto& j = trace_.jobs[job];
        return j.pods * j.pod.gpu_count * j.pod.gpu_share_milli;
    }

    // One at a time: the pods of a job share what is equal only in the cluster.
    void add_pods() {
        for (std::size_t j = 0; j < trace_.jobs.size(); ++j) {
            const auto& job = trace_.jobs[j];
            gangs_.first.push_back(gangs_.job_of.size());
            auto pod = job.pod;
            pod.job = job.pods > 1 ? job.pod.name : "";
            for (std::int64_t k = 0; k < job.pods; ++k) {
                if (job.pods > 1) pod.name = job.pod.name + "/" + std::to_string(k);
                cluster_.add_task(pod);
                gangs_.job_of.push_back(j);
            }
        }
        gangs_.first.push_back(gangs_.job_of.size());
        cluster_.commit();
    }

    // Returns the work of this run in millionths of a second.
    [[nodiscard]] static std::int64_t done_us(const Run& run, std::int64_t now) {
        const auto seconds = std::max<std::int64_t>(0, now - run.pace_since);
        return run.done_us + seconds * 1'000'000'000 / (1000 + run.slowdown_milli);
    }
    // Returns the seconds of work of this run, and the part that a checkpoint holds.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> worked(std::size_t job, std::int64_t now) const {
        const auto done = done_us(runs_[job], now) / 1'000'000;
        const auto interval = trace_.jobs[job].pod.checkpoint_interval;
        return {done, interval > 0 ? done / interval * interval : 0};
    }

    // ASI's C_t of one pod: the work since the last checkpoint of this run, or since its start.
    [[nodiscard]] std::int64_t lost_by(TaskId task, std::int64_t now) const {
        const auto job = gangs_.job(task);
        const auto [done, safe] = worked(job, now);
        return cluster_.gpu_milli(task) * (safe > 0 ? done - safe : now - runs_[job].start);
    }

    // Advances the time with the running jobs.
    void pass(std::int64_t now, std::int64_t next) {
        for (; next_sample_ <= next; next_sample_ += 3600) {
            auto& t = result_.timeline;
            t.time_s.push_back(next_sample_);
            t.hp_gpu_milli.push_back(hp_held_);
            t.lp_gpu_milli.push_back(lp_held_);
            t.hp_waiting.push_back(static_cast<std::int64_t>(hp_waiting_.size()));
            t.lp_waiting.push_back(static_cast<std::int64_t>(lp_waiting_.size()));
        }
        const auto seconds =
            static_cast<double>(std::max<std::int64_t>(0, std::min(next, until_) - std::max(now, from_)));
        hp_sum_ += seconds * static_cast<double>(hp_held_);
        lp_sum_ += seconds * static_cast<double>(lp_held_);
        measured_s_ += seconds;
    }

    void hold(std::size_t job, int sign) {
        (is_hp(job) ? hp_held_ : lp_held_) += sign * gpu_milli(job);
        runs_[job].running = sign > 0;
    }

    // Ends the run: books the time up to now, of which `done` was work. The caller decides how this work
    // counts.
    void close_books(std::size_t job, std::int64_t now, std::int64_t done) {
        auto& record = result_.jobs[job];
        const auto& run = runs_[job];
        record.held_s += now - run.start;
        record.startup_s += std::min(now, run.works_from) - run.start;
        record.slowed_s += std::max<std::int64_t>(0, now - run.works_from) - done;
    }

    void finish(std::size_t job, std::int64_t now) {
        auto& record = result_.jobs[job];
        close_books(job, now, trace_.jobs[job].work_s - record.kept_s);
        record.kept_s = trace_.jobs[job].work_s;
        record.finish_s = now;
        gangs_.for_each_pod(job, [&](TaskId pod) {
            changed(cluster_.node_of(pod));
            cluster_.remove(pod);
        });
        hold(job, -1);
        ++runs_[job].number;
        if (measured(job)) --unfinished_;
        freed_ = true;
    }

    void evict(std::size_t job, std::int64_t now) {
        auto& record = result_.jobs[job];
        const auto [done, safe] = worked(job, now);
        close_books(job, now, done);
        record.kept_s += safe;
        record.lost_s += done - safe;
        ++record.evictions;
        hold(job, -1);
        ++runs_[job].number;
        lp_waiting_.insert(job);
        freed_ = true;  // its other places, and GPUs that the preemptor does not need
    }

    void start(std::size_t job, std::int64_t now, const Plan& plan) {
        if (options_.observer) options_.observer(now, cluster_, plan);
        std::int64_t gone = now;
        for (const auto victim : plan.evictions) {
            const auto of = gangs_.job(victim);
            if (runs_[of].running) evict(of, now);
            scheduler_->evicted(cluster_.node_of(victim));
            changed(cluster_.node_of(victim));
            cluster_.remove(victim);
            const auto exit_ms = options_.eviction.draw(0, eviction_rng_).reclaim_ms;
            gone = std::max(gone, now + (exit_ms + 999) / 1000);
        }
        for (const auto& p : plan.placements) {
            cluster_.assign(p.task, p.node, p.gpus);
            changed(p.node);
        }
        if (!plan.evictions.empty() && measured(job)) ++result_.preemptions;
        auto& run = runs_[job];
        auto& record = result_.jobs[job];
        run.start = now;
        run.works_from = run.pace_since = is_hp(job) ? gone : now + options_.start_delay_s;
        run.done_us = run.slowdown_milli = 0;
        if (record.first_start_s < 0) {
            record.first_start_s = now;
            record.wait_s = gone - trace_.jobs[job].arrival_s;
        }
        finishes_.push({run.works_from + trace_.jobs[job].work_s - record.kept_s, job, ++run.number});
        hold(job, +1);
    }

    // Records that neighbours on this node came, left or moved.
    void changed(NodeId node) {
        if (interferes_) changed_.push_back(node);
    }

    // Returns the slowdown of the slowest pod.
    [[nodiscard]] std::int64_t slowdown(std::size_t job) const {
        std::int64_t most = 0;
        gangs_.for_each_pod(job, [&](TaskId pod) {
            if (!allocation::interferes(cluster_, pod)) return;
            const auto node = cluster_.node_of(pod);
            auto of_pod = beside_cpu_only_(allocation::cpu_only_milli(cluster_, node),
                                           cluster_.inventory().nodes.cpu_milli[index(node)]);
            if (cluster_.is_fraction(pod) && is_hp(job)) {
                const auto gpu = std::countr_zero(cluster_.gpus_of(pod));
                of_pod +=
                    beside_offline_(allocation::sharing(cluster_, node, gpu).offline_milli, whole_gpu_milli);
            }
            most = std::max(most, of_pod);
        });
        return most;
    }

    // Changes the pace of jobs with changed neighbours.
    void change_pace(std::int64_t now) {
        if (changed_.empty()) return;
        std::set<std::size_t> jobs;
        for (const auto node : std::set<NodeId>(changed_.begin(), changed_.end()))
            for (const auto task : cluster_.tasks_on(node))
                if (!allocation::is_cpu_only(cluster_, task)) jobs.insert(gangs_.job(task));
        changed_.clear();
        for (const auto job : jobs) {
            auto& run = runs_[job];
            const auto slowdown_milli = slowdown(job);
            if (slowdown_milli == run.slowdown_milli) continue;
            run.done_us = done_us(run, now);
            run.pace_since = std::max(run.pace_since, now);
            run.slowdown_milli = slowdown_milli;
            const auto left_us =
                (trace_.jobs[job].work_s - result_.jobs[job].kept_s) * 1'000'000 - run.done_us;
            const auto seconds = (left_us * (1000 + slowdown_milli) + 999'999'999) / 1'000'000'000;
            finishes_.push({run.pace_since + seconds, job, ++run.number});
        }
    }

    /// @return true if the job runs now
    bool attempt(std::size_t job, std::int64_t now) {
        const auto pod = make_id<TaskId>(gangs_.first[job]);
        if (hopeless_->covers(pod)) return false;
        const auto begun = clock_.now_ns();
        const auto answer = scheduler_->decide(cluster_, job, now, cost_);
        // A filter may reject a small pod and accept a large one.
        if (answer.hopeless && options_.filters.empty()) hopeless_->add(pod);
        if (!answer.plan) return false;
        if (measured(job)) decisions_us_.push_back(static_cast<double>(clock_.now_ns() - begun) / 1000);
        start(job, now, *answer.plan);
        return true;
    }

    void serve(std::set<std::size_t>& waiting, const std::vector<std::size_t>& arrivals, std::int64_t now) {
        hopeless_->clear();
        const auto asked = freed_ ? std::vector<std::size_t>(waiting.begin(), waiting.end()) : arrivals;
        for (const auto job : asked)
            if (attempt(job, now)) waiting.erase(job);
    }

    void schedule(std::int64_t now) {
        serve(hp_waiting_, new_hp_, now);
        serve(lp_waiting_, new_lp_, now);
        freed_ = false;
    }

    void consolidate(std::int64_t now) {
        auto spec = cluster_.to_spec();
        for (auto& task : spec.tasks)
            if (task.node && task.priority_class == PriorityClass::lp) task.locked = true;
        const auto plan =
            consolidation::consolidate(Cluster::build(spec, IdOrder::as_listed),
                                       {.preset = options_.consolidation_preset,
                                        .seed = options_.seed,
                                        .threads = 1,
                                        .search = {.bound_method = consolidation::BoundMethod::none}})
                .plan;
        if (plan.moves.empty()) return;
        if (options_.observer) options_.observer(now, cluster_, plan);
        for (const auto& move : plan.moves) {
            changed(cluster_.node_of(move.task));
            changed(move.to);
            cluster_.assign(move.task, move.to, move.gpus);
        }
        freed_ = true;
        if (now < from_ || now >= until_) return;
        ++result_.consolidations;
        result_.moves += static_cast<std::int64_t>(plan.moves.size());
    }

    void summarise(std::int64_t now) {
        auto& r = result_;
        r.end_s = now;
        std::vector<double> completion, hp_wait, lp_wait, hp_slowdown, lp_slowdown;
        double kept = 0, lost = 0, startup = 0;
        for (std::size_t j = 0; j < r.jobs.size(); ++j) {
            auto& record = r.jobs[j];
            const auto& job = trace_.jobs[j];
            if (runs_[j].running) {
                const auto [done, safe] = worked(j, now);
                close_books(j, now, done);
                record.kept_s += safe;
                record.open_s = done - safe;
            }
            if (!takes_part(j) || !measured(j)) continue;
            (is_hp(j) ? r.hp_unfinished : r.lp_unfinished) += record.finish_s < 0 ? 1 : 0;
            if (record.first_start_s >= 0)
                (is_hp(j) ? hp_wait : lp_wait).push_back(static_cast<double>(record.wait_s));
            if (record.finish_s >= 0 && gpu_milli(j) > 0)
                (is_hp(j) ? hp_slowdown : lp_slowdown)
                    .push_back(static_cast<double>(record.slowed_s) /
                               static_cast<double>(record.kept_s + record.lost_s));
            if (is_hp(j)) continue;
            const auto gpus = static_cast<double>(gpu_milli(j)) / 3'600'000;
            kept += gpus * static_cast<double>(record.kept_s);
            lost += gpus * static_cast<double>(record.lost_s);
            startup += gpus * static_cast<double>(record.startup_s);
            r.lp_evictions += record.evictions;
            if (record.finish_s >= 0)
                completion.push_back(static_cast<double>(record.finish_s - job.arrival_s));
        }
        r.lp_kept_gpu_h = kept;
        r.lp_lost_gpu_h = lost;
        r.lp_startup_gpu_h = startup;
        r.lp_completion_s = spread_of(std::move(completion));
        r.hp_wait_s = spread_of(std::move(hp_wait));
        r.lp_wait_s = spread_of(std::move(lp_wait));
        r.hp_slowdown = spread_of(std::move(hp_slowdown));
        r.lp_slowdown = spread_of(std::move(lp_slowdown));
        r.decision_us = spread_of(std::move(decisions_us_));
        if (measured_s_ > 0 && all_gpus_ > 0) {
            const auto all = 1000 * measured_s_ * static_cast<double>(all_gpus_);
            r.hp_allocation = hp_sum_ / all;
            r.lp_allocation = lp_sum_ / all;
        }
    }

    const SpotTrace& trace_;
    const SpotReplayOptions& options_;
    Budget budget_;
    const Clock& clock_;
    Rng eviction_rng_;
    Gangs gangs_;
    Cluster cluster_;
    std::optional<Hopeless> hopeless_;
    std::optional<SpotScheduler> scheduler_;
    preemption::CostFunction cost_;
    std::vector<Run> runs_;  // by job
    std::priority_queue<Finish, std::vector<Finish>, std::greater<>> finishes_;
    std::set<std::size_t> hp_waiting_, lp_waiting_;  // by arrival
    std::vector<std::size_t> new_hp_, new_lp_;       // of this moment
    std::size_t arrived_ = 0;
    std::int64_t from_ = 0, until_ = 0, unfinished_ = 0, all_gpus_ = 0;
    std::int64_t hp_held_ = 0, lp_held_ = 0;  // thousandths of GPUs
    std::int64_t next_sample_ = 0;
    double hp_sum_ = 0, lp_sum_ = 0, measured_s_ = 0;
    bool freed_ = false;
    allocation::SlowdownCurve beside_cpu_only_, beside_offline_;
    bool interferes_;                // pods slow each other down
    std::vector<NodeId> changed_{};  // nodes with changed neighbours since the last `change_pace`
    std::vector<double> decisions_us_;
    SpotReplayResult result_;
};

}  // namespace detail

GPUSCHED_EXPORT SpotReplayResult replay_spot(const SpotTrace& trace, const SpotReplayOptions& options,
                                             const Context& context, const allocation::Registries& known) {
    return detail::SpotReplay(trace, options, context, known).run();
}

GPUSCHED_EXPORT Spread spread_of(std::vector<double> values) {
    Spread s;
    if (values.empty()) return s;
    std::sort(values.begin(), values.end());
    for (const auto v : values) s.mean += v;
    s.count = static_cast<std::int64_t>(values.size());
    s.mean /= static_cast<double>(values.size());
    const auto at = [&](std::size_t percent) { return values[(values.size() * percent + 99) / 100 - 1]; };
    s.p50 = at(50);
    s.p90 = at(90);
    s.p99 = at(99);
    s.max = values.back();
    return s;
}

}  // namespace gpusched::sim
