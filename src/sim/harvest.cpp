// SPDX-License-Identifier: Apache-2.0
// Simulates owners with Standby windows and the spot tasks that borrow their GPUs.
#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/sim/harvest.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

namespace gpusched::sim {

namespace detail {

/// One run of `simulate_harvest`.
class Harvest {
  public:
    Harvest(const HarvestOptions& options, const Context& context)
        : o_(options), budget_(context), draws_(Rng(options.seed).split(1)),
          evictions_(Rng(options.seed).split(2)) {}

    HarvestResult run() {
        make_owners();
        const auto end = o_.days * day;
        std::int64_t now = 0;
        for (; now < end; now += minute) {
            if (now % hour == 0) budget_.report("harvest", now / hour, end / hour);
            if (budget_.exhausted()) break;
            arrive();
            for (auto& owner : owners_)
                if (owner.next_ms <= now) pass(owner, now);
            result_.standby_gpu_h += gpu_hours(asleep_, minute);
            result_.standby_by_hour[static_cast<std::size_t>(now / hour % 24)] += gpu_hours(asleep_, minute);
            if (!queue_.empty()) place(now);
        }
        summarize(now);
        return result_;
    }

  private:
    static constexpr std::int64_t minute = 60'000, hour = 60 * minute, day = 24 * hour;

    struct SpotTask {
        std::int64_t gpus = 0;
        std::int64_t work_ms = 0;  // remaining work
    };
    struct RunningSpot {
        SpotTask task;
        std::int64_t start_ms = 0;  // start of its hold on the GPUs
    };
    struct Owner {
        preemption::StandbyLease lease;
        std::int64_t sleeps_ms, wakes_ms;
        std::int64_t next_ms = 0;  // the owner has no event before
    };

    std::int64_t draw_gpus() {
        const auto x = draws_.below(100);
        return x < 40 ? 1 : x < 62 ? 2 : x < 78 ? 4 : 8;
    }

    static double gpu_hours(std::int64_t gpus, std::int64_t ms) {
        return static_cast<double>(gpus) * static_cast<double>(ms) / 3'600'000.0;
    }

    /// Draws the owner's next window for the night that begins on this day. Adds days until it ends after
    /// `ends_after` and begins after `begins_after`.
    void draw_window(Owner& owner, std::int64_t of_day, std::int64_t ends_after, std::int64_t begins_after) {
        const auto around = [&](double at) {
            return of_day * day + static_cast<std::int64_t>(at * 60) * minute +
                   draws_.between(-90, 90) * minute;
        };
        owner.sleeps_ms = around(o_.sleep_hour);
        owner.wakes_ms = std::max(owner.sleeps_ms + minute, around(o_.wake_hour));
        while (owner.wakes_ms <= ends_after || owner.sleeps_ms <= begins_after)
            owner.sleeps_ms += day, owner.wakes_ms += day;
    }

    void make_owners() {
        std::int64_t all_gpus = 0;
        for (std::int64_t i = 0; i < o_.owners; ++i) {
            const auto gpus = draw_gpus();
            all_gpus += gpus;
            // Owners need no ids here; borrowers have ids from 0 on.
            owners_.push_back({preemption::StandbyLease(none<TaskId>, NodeId{0},
                                                        first_gpus(static_cast<int>(gpus)), o_.eviction),
                               0, 0});
            draw_window(owners_.back(), -1, 0, INT64_MIN);
        }
        const double mean_gpus = 0.4 + 0.44 + 0.64 + 1.76;
        per_minute_ = o_.demand * static_cast<double>(all_gpus) * (o_.wake_hour - o_.sleep_hour) / 24 /
                      (mean_gpus * static_cast<double>(o_.task_minutes));
    }

    void arrive() {
        for (due_ += per_minute_; due_ >= 1; due_ -= 1) {
            const auto quarter = o_.task_minutes / 4;
            const auto gpus = draw_gpus();
            queue_.push_back({gpus, draws_.between(quarter, 7 * quarter) * minute});
        }
    }

    [[nodiscard]] std::int64_t start_delay_ms() const { return o_.start_delay_s * 1000; }
    [[nodiscard]] std::int64_t done_at(const RunningSpot& r) const {
        return r.start_ms + start_delay_ms() + r.task.work_ms;
    }
    /// Returns the work that a task has done on its GPUs by then.
    [[nodiscard]] std::int64_t worked(const RunningSpot& r, std::int64_t until) const {
        return std::clamp<std::int64_t>(until - r.start_ms - start_delay_ms(), 0, r.task.work_ms);
    }

    void count_hold(const RunningSpot& r, std::int64_t until) {
        result_.borrowed_gpu_h += gpu_hours(r.task.gpus, until - r.start_ms);
        for (auto from = r.start_ms; from < until;) {
            const auto to = std::min(until, (from / hour + 1) * hour);
            result_.borrowed_by_hour[static_cast<std::size_t>(from / hour % 24)] +=
                gpu_hours(r.task.gpus, to - from);
            from = to;
        }
    }

    /// Advances one owner and its borrowers to this minute.
    void pass(Owner& owner, std::int64_t now) {
        using enum preemption::StandbyState;
        auto& lease = owner.lease;
        const bool slept = lease.state() == standby;
        (void)lease.advance(now);
        for (const auto& b : std::vector(lease.borrowers()))
            if (!b.eviction && done_at(running_[index(b.task)]) <= now) complete(lease, b.task, now);
        if (lease.state() == standby && now >= owner.wakes_ms) wake(owner, now);
        if (lease.state() == active && now >= owner.sleeps_ms && now < owner.wakes_ms) lease.lend(now);
        const bool sleeps = lease.state() == standby;
        asleep_ += (sleeps - slept) * gpu_count(lease.gpus());
        owner.next_ms = sleeps ? owner.wakes_ms : lease.state() == active ? owner.sleeps_ms : now + minute;
        if (sleeps)
            for (const auto& b : lease.borrowers())
                owner.next_ms = std::min(owner.next_ms, done_at(running_[index(b.task)]));
    }

    void complete(preemption::StandbyLease& lease, TaskId task, std::int64_t now) {
        const auto& r = running_[index(task)];
        count_hold(r, done_at(r));
        result_.useful_gpu_h += gpu_hours(r.task.gpus, r.task.work_ms);
        ++result_.completed;
        unused_.push_back(static_cast<std::uint32_t>(index(task)));
        lease.give_back(task, now);
    }

    /// Gives the owner its GPUs back: borrowers go to the head of the queue with the work that their last
    /// checkpoint holds.
    void wake(Owner& owner, std::int64_t now) {
        (void)owner.lease.resume(now, evictions_);
        const auto checkpoint = o_.checkpoint_minutes * minute;
        for (const auto& b : owner.lease.borrowers()) {
            const auto r = running_[index(b.task)];
            count_hold(r, b.eviction->exit_ms);
            const auto done = worked(r, now);
            const auto kept = done / checkpoint * checkpoint;
            result_.useful_gpu_h += gpu_hours(r.task.gpus, kept);
            result_.lost_gpu_h += gpu_hours(r.task.gpus, done - kept);
            ++result_.evictions;
            result_.killed += b.eviction->killed ? 1 : 0;
            times_ms_.push_back(b.eviction->reclaim_ms - now);
            queue_.push_front({r.task.gpus, r.task.work_ms - kept});
            unused_.push_back(static_cast<std::uint32_t>(index(b.task)));
        }
        draw_window(owner, now / day, now, now);
    }

    /// Places waiting tasks, first come first served; smaller ones overtake larger ones that do not fit.
    void place(std::int64_t now) {
        std::size_t largest = 0;
        std::array<std::vector<std::size_t>, max_gpus_per_node + 1> free;  // owners by lent GPUs
        for (std::size_t i = 0; i < owners_.size(); ++i)
            if (const auto lent = static_cast<std::size_t>(gpu_count(owners_[i].lease.lent())); lent > 0) {
                free[lent].push_back(i);
                largest = std::max(largest, lent);
            }
        for (auto waiting = queue_.begin(); waiting != queue_.end() && largest > 0;) {
            auto size = static_cast<std::size_t>(waiting->gpus);
            while (size <= largest && free[size].empty()) ++size;
            if (size > largest) {
                ++waiting;
                continue;
            }
            const auto at = free[size].back();
            free[size].pop_back();
            borrow(owners_[at], *waiting, now);
            if (const auto left = size - static_cast<std::size_t>(waiting->gpus); left > 0)
                free[left].push_back(at);
            while (largest > 0 && free[largest].empty()) --largest;
            waiting = queue_.erase(waiting);
        }
    }

    void borrow(Owner& owner, const SpotTask& task, std::int64_t now) {
        auto id = static_cast<std::uint32_t>(running_.size());
        if (unused_.empty()) {
            running_.emplace_back();
        } else {
            id = unused_.back();
            unused_.pop_back();
        }
        running_[id] = {task, now};
        auto& lease = owner.lease;
        const bool taken = lease.borrow(TaskId{id}, PriorityClass::lp,
                                        lowest_gpus(lease.lent(), static_cast<int>(task.gpus)), now);
        GPUSCHED_ASSERT(taken);
        (void)taken;
        owner.next_ms = std::min(owner.next_ms, done_at(running_[id]));
    }

    /// Counts the tasks that still run at the end, and the times of evictions.
    void summarize(std::int64_t end) {
        result_.stop_reason = budget_.reason();
        for (const auto& owner : owners_)
            for (const auto& b : owner.lease.borrowers()) {
                if (b.eviction) continue;
                const auto& r = running_[index(b.task)];
                count_hold(r, end);
                result_.useful_gpu_h += gpu_hours(r.task.gpus, worked(r, end));
            }
        if (times_ms_.empty()) return;
        std::sort(times_ms_.begin(), times_ms_.end());
        double sum = 0;
        for (const auto t : times_ms_) sum += static_cast<double>(t);
        result_.eviction_mean_s = sum / static_cast<double>(times_ms_.size()) / 1000;
        result_.eviction_p95_s =
            static_cast<double>(times_ms_[(times_ms_.size() * 95 + 99) / 100 - 1]) / 1000;
        result_.eviction_max_s = static_cast<double>(times_ms_.back()) / 1000;
    }

    const HarvestOptions& o_;
    Budget budget_;
    Rng draws_, evictions_;
    HarvestResult result_{};
    std::vector<Owner> owners_{};
    std::int64_t asleep_ = 0;  // GPUs lent now
    double per_minute_ = 0;    // mean arrivals; tasks request `demand` times the mean of the lent GPUs
    double due_ = 0;
    std::deque<SpotTask> queue_{};
    std::vector<RunningSpot> running_{};    // by borrower id
    std::vector<std::uint32_t> unused_{};   // free ids
    std::vector<std::int64_t> times_ms_{};  // until the GPUs of an eviction were free
};

}  // namespace detail

GPUSCHED_EXPORT void validate(const HarvestOptions& options) {
    Problems problems;
    check_fields(problems, options);
    if (!(options.sleep_hour < options.wake_hour))
        problems.add(bad_value("wake_hour", number_text(options.wake_hour), "more than sleep_hour"));
    problems.throw_if_any();
}

GPUSCHED_EXPORT HarvestResult simulate_harvest(const HarvestOptions& options, const Context& context) {
    validate(options);
    return detail::Harvest(options, context).run();
}

}  // namespace gpusched::sim
