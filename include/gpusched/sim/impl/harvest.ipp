#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/sim/harvest.hpp>

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::sim {

namespace detail {

struct SpotTask {
    std::int64_t gpus = 0;
    std::int64_t work_ms = 0;  // still to do
};
struct RunningSpot {
    SpotTask task;
    std::size_t owner = 0;
    std::int64_t start_ms = 0;  // of its hold on the GPUs
};

inline std::int64_t draw_gpus(Rng& rng) {
    const auto x = rng.below(100);
    return x < 40 ? 1 : x < 62 ? 2 : x < 78 ? 4 : 8;
}

}  // namespace detail

GPUSCHED_INLINE HarvestResult simulate_harvest(const HarvestOptions& o) {
    Problems problems;
    check_fields(problems, o);
    if (!(o.sleep_hour < o.wake_hour))
        problems.add(bad_value("wake_hour", number_text(o.wake_hour), "more than sleep_hour"));
    problems.throw_if_any();

    constexpr std::int64_t minute = 60'000, hour = 60 * minute, day = 24 * hour;
    const Rng seed(o.seed);
    Rng rng = seed.split(1), evictions = seed.split(2);
    struct Owner {
        preemption::StandbyLease lease;
        std::int64_t sleeps_ms, wakes_ms;
    };
    std::vector<Owner> owners;
    std::int64_t all_gpus = 0;
    const auto window = [&](std::int64_t of_day) {
        const auto around = [&](double at) {
            return of_day * day + static_cast<std::int64_t>(at * 60) * minute + rng.between(-90, 90) * minute;
        };
        const auto sleeps = around(o.sleep_hour);
        return std::pair(sleeps, std::max(sleeps + minute, around(o.wake_hour)));
    };
    for (std::int64_t i = 0; i < o.owners; ++i) {
        const auto gpus = detail::draw_gpus(rng);
        all_gpus += gpus;
        const auto [sleeps, wakes] = window(-1);
        // Owners need no ids here; borrowers have those from 0 on.
        owners.push_back({preemption::StandbyLease(none<TaskId>, NodeId{0},
                                                   first_gpus(static_cast<int>(gpus)), o.eviction),
                          sleeps, wakes});
    }
    // Tasks per minute, so that they ask for `demand` times what is lent on average.
    const double mean_gpus = 0.4 + 0.44 + 0.64 + 1.76;
    const double per_minute = o.demand * static_cast<double>(all_gpus) * (o.wake_hour - o.sleep_hour) / 24 /
                              (mean_gpus * static_cast<double>(o.task_minutes));

    HarvestResult result;
    std::deque<detail::SpotTask> queue;
    std::vector<detail::RunningSpot> running;  // by borrower id
    std::vector<std::uint32_t> unused;         // ids
    std::vector<std::int64_t> times;
    double due = 0;
    const auto gpu_hours = [](std::int64_t gpus, std::int64_t ms) {
        return static_cast<double>(gpus) * static_cast<double>(ms) / 3'600'000.0;
    };
    // Work that a task has done on its GPUs by then, and how much of it a checkpoint holds.
    const auto worked = [&](const detail::RunningSpot& r, std::int64_t until) {
        return std::clamp<std::int64_t>(until - r.start_ms - o.start_delay_s * 1000, 0, r.task.work_ms);
    };
    const auto hold = [&](const detail::RunningSpot& r, std::int64_t until) {
        result.borrowed_gpu_h += gpu_hours(r.task.gpus, until - r.start_ms);
        for (auto from = r.start_ms; from < until;) {
            const auto to = std::min(until, (from / hour + 1) * hour);
            result.borrowed_by_hour[static_cast<std::size_t>(from / hour % 24)] +=
                gpu_hours(r.task.gpus, to - from);
            from = to;
        }
    };
    const auto end = o.days * day;
    for (std::int64_t now = 0; now < end; now += minute) {
        for (due += per_minute; due >= 1; due -= 1) {
            const auto quarter = o.task_minutes / 4;
            queue.push_back({detail::draw_gpus(rng), rng.between(quarter, 7 * quarter) * minute});
        }
        std::int64_t asleep = 0;
        for (std::size_t i = 0; i < owners.size(); ++i) {
            auto& owner = owners[i];
            auto& lease = owner.lease;
            (void)lease.advance(now);
            for (const auto& b : std::vector(lease.borrowers())) {
                const auto& r = running[index(b.task)];
                const auto done = r.start_ms + o.start_delay_s * 1000 + r.task.work_ms;
                if (b.eviction || done > now) continue;
                hold(r, done);
                result.useful_gpu_h += gpu_hours(r.task.gpus, r.task.work_ms);
                ++result.completed;
                unused.push_back(static_cast<std::uint32_t>(index(b.task)));
                lease.give_back(b.task, now);
            }
            if (lease.state() == preemption::StandbyState::standby && now >= owner.wakes_ms) {
                (void)lease.resume(now, evictions);
                for (const auto& b : lease.borrowers()) {
                    auto r = running[index(b.task)];
                    const auto exit = b.eviction->exit_ms;
                    hold(r, exit);
                    const auto done = worked(r, now);
                    const auto kept =
                        done / (o.checkpoint_minutes * minute) * (o.checkpoint_minutes * minute);
                    result.useful_gpu_h += gpu_hours(r.task.gpus, kept);
                    result.lost_gpu_h += gpu_hours(r.task.gpus, done - kept);
                    ++result.evictions;
                    result.killed += b.eviction->killed ? 1 : 0;
                    times.push_back(b.eviction->reclaim_ms - now);
                    queue.push_front({r.task.gpus, r.task.work_ms - kept});
                    unused.push_back(static_cast<std::uint32_t>(index(b.task)));
                }
                std::tie(owner.sleeps_ms, owner.wakes_ms) = window(now / day);
                while (owner.sleeps_ms <= now) owner.sleeps_ms += day, owner.wakes_ms += day;
            }
            if (lease.state() == preemption::StandbyState::active && now >= owner.sleeps_ms &&
                now < owner.wakes_ms)
                lease.lend(now);
            if (lease.state() == preemption::StandbyState::standby) asleep += gpu_count(lease.gpus());
        }
        result.standby_gpu_h += gpu_hours(asleep, minute);
        result.standby_by_hour[static_cast<std::size_t>(now / hour % 24)] += gpu_hours(asleep, minute);
        // Waiting tasks, first come first served; smaller ones overtake where larger ones do not fit.
        std::size_t largest = 0;
        std::array<std::vector<std::size_t>, max_gpus_per_node + 1> free;  // owners by lent GPUs
        for (std::size_t i = 0; i < owners.size(); ++i)
            if (const auto lent = static_cast<std::size_t>(gpu_count(owners[i].lease.lent())); lent > 0) {
                free[lent].push_back(i);
                largest = std::max(largest, lent);
            }
        for (auto waiting = queue.begin(); waiting != queue.end() && largest > 0;) {
            auto size = static_cast<std::size_t>(waiting->gpus);
            while (size <= largest && free[size].empty()) ++size;
            if (size > largest) {
                ++waiting;
                continue;
            }
            const auto at = free[size].back();
            free[size].pop_back();
            auto& lease = owners[at].lease;
            std::uint32_t id = static_cast<std::uint32_t>(running.size());
            if (unused.empty()) {
                running.emplace_back();
            } else {
                id = unused.back();
                unused.pop_back();
            }
            running[id] = {*waiting, at, now};
            const bool taken = lease.borrow(TaskId{id}, PriorityClass::lp,
                                            lowest_gpus(lease.lent(), static_cast<int>(waiting->gpus)), now);
            GPUSCHED_ASSERT(taken);
            (void)taken;
            if (const auto left = size - static_cast<std::size_t>(waiting->gpus); left > 0)
                free[left].push_back(at);
            while (largest > 0 && free[largest].empty()) --largest;
            waiting = queue.erase(waiting);
        }
    }
    for (const auto& owner : owners)
        for (const auto& b : owner.lease.borrowers())
            if (!b.eviction) {
                hold(running[index(b.task)], end);
                result.useful_gpu_h +=
                    gpu_hours(running[index(b.task)].task.gpus, worked(running[index(b.task)], end));
            }
    if (!times.empty()) {
        std::sort(times.begin(), times.end());
        double sum = 0;
        for (const auto t : times) sum += static_cast<double>(t);
        result.eviction_mean_s = sum / static_cast<double>(times.size()) / 1000;
        result.eviction_p95_s = static_cast<double>(times[(times.size() * 95 + 99) / 100 - 1]) / 1000;
        result.eviction_max_s = static_cast<double>(times.back()) / 1000;
    }
    return result;
}

}  // namespace GPUSCHED_NAMESPACE::sim
