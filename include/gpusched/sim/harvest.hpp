// SPDX-License-Identifier: Apache-2.0
// What spot tasks harvest from owners that sleep at night: a simulated population of Standby leases.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/preemption/standby.hpp>

#include <array>
#include <cstdint>
#include <type_traits>

namespace gpusched::sim {

/// A simulated population of owners with nightly Standby windows and a queue of spot tasks.
///
/// The ASI trace says Standby hour by hour alone, so windows and tasks are drawn: every owner (1, 2, 4 or 8 GPUs with 40, 22, 16, 22 %)
/// sleeps each night from about `sleep_hour` to about `wake_hour`, each moment uniform within an hour and a half to either
/// side; spot tasks of the same sizes arrive minute by minute, first in, first out with later ones overtaking where they
/// fit, and an evicted one comes back with the work since its last checkpoint to do again.
struct HarvestOptions {
    std::int64_t owners = 500;  ///< 1 .. 100,000
    std::int64_t days = 7;      ///< 1 .. 1,000
    double sleep_hour = 22;     ///< hours after midnight, 0 .. 48
    double wake_hour = 32;      ///< hours after midnight, above sleep_hour, at most 48; 32 = 8 the next day
    double demand = 1.0;        ///< GPU-time that tasks ask for, per GPU-time of Standby, 0 .. 10
    std::int64_t task_minutes = 120;  ///< mean; uniform from a quarter to seven quarters of it; 4 .. 10^9
    std::int64_t checkpoint_minutes = 30;  ///< 1 .. 10^9
    std::int64_t start_delay_s = 120;      ///< from the decision to work: image, start-up; 0 .. 10^9
    std::uint64_t seed = 0;                ///< where random choices start
    preemption::EvictionModel eviction{};  ///< how long borrowers take to leave
};
template <class F>
constexpr void visit_fields(std::type_identity<HarvestOptions>, F&& field) {
    field("owners", &HarvestOptions::owners, within(1, 100'000));
    field("days", &HarvestOptions::days, within(1, 1000));
    field("sleep_hour", &HarvestOptions::sleep_hour, within(0, 48));
    field("wake_hour", &HarvestOptions::wake_hour, within(0, 48));
    field("demand", &HarvestOptions::demand, within(0, 10));
    field("task_minutes", &HarvestOptions::task_minutes, within(4, 1'000'000'000));
    field("checkpoint_minutes", &HarvestOptions::checkpoint_minutes, within(1, 1'000'000'000));
    field("start_delay_s", &HarvestOptions::start_delay_s, within(0, 1'000'000'000));
    field("seed", &HarvestOptions::seed);
    field("eviction", &HarvestOptions::eviction);
}

struct HarvestResult {
    double standby_gpu_h = 0;                   ///< lent
    double borrowed_gpu_h = 0;                  ///< held by spot tasks, start-up and shutdown included
    double useful_gpu_h = 0;                    ///< of these, work that was kept
    double lost_gpu_h = 0;                      ///< work done again because of evictions
    std::int64_t evictions = 0;                 ///< spot tasks that owners sent away
    std::int64_t killed = 0;                    ///< of these, how many took SIGKILL
    std::int64_t completed = 0;                 ///< spot tasks that ended by themselves
    double eviction_mean_s = 0;                 ///< mean seconds until the owner's GPUs were free
    double eviction_p95_s = 0;                  ///< their 95th percentile, a value that occurs (nearest rank)
    double eviction_max_s = 0;                  ///< their maximum
    std::array<double, 24> standby_by_hour{};   ///< lent GPU-hours by hour of the day
    std::array<double, 24> borrowed_by_hour{};  ///< borrowed GPU-hours by hour of the day
    StopReason stop_reason =
        StopReason::completed;  ///< of a cancelled run the figures are those of the time simulated
    [[nodiscard]] double harvested() const noexcept {
        return standby_gpu_h > 0 ? borrowed_gpu_h / standby_gpu_h : 0;
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<HarvestResult>, F&& field) {
    field("standby_gpu_h", &HarvestResult::standby_gpu_h);
    field("borrowed_gpu_h", &HarvestResult::borrowed_gpu_h);
    field("useful_gpu_h", &HarvestResult::useful_gpu_h);
    field("lost_gpu_h", &HarvestResult::lost_gpu_h);
    field("evictions", &HarvestResult::evictions);
    field("killed", &HarvestResult::killed);
    field("completed", &HarvestResult::completed);
    field("eviction_mean_s", &HarvestResult::eviction_mean_s);
    field("eviction_p95_s", &HarvestResult::eviction_p95_s);
    field("eviction_max_s", &HarvestResult::eviction_max_s);
    field("standby_by_hour", &HarvestResult::standby_by_hour);
    field("borrowed_by_hour", &HarvestResult::borrowed_by_hour);
}

/// @throws InvalidInput with every option out of range
void validate(const HarvestOptions& options);

/// Runs the simulation in steps of a minute (evictions in milliseconds).
/// @throws InvalidInput as `validate` does
/// O(owners x minutes), of which owners to whom nothing happens in a minute cost one comparison; the same options give the
/// same result everywhere.
[[nodiscard]] HarvestResult simulate_harvest(const HarvestOptions& options = {}, const Context& context = {});

}  // namespace gpusched::sim
