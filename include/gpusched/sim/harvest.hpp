// SPDX-License-Identifier: Apache-2.0
// Simulates spot tasks on GPUs that a population of owners lends at night (Standby leases).
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/preemption/standby.hpp>

#include <array>
#include <cstdint>
#include <type_traits>

namespace gpusched::sim {

/// A simulated population of owners with nightly Standby windows, and a queue of spot tasks.
///
/// The ASI trace reports Standby only by the hour, so windows and tasks are random.
/// - An owner has 1, 2, 4 or 8 GPUs with 40, 22, 16, 22 %. It sleeps each night from about `sleep_hour` to
///   about `wake_hour`; both moments are uniform within 1.5 hours to either side.
/// - Spot tasks of the same sizes arrive minute by minute. They are served first in, first out, but a later
///   task that fits overtakes an earlier one that does not. An evicted task returns to the queue and repeats
///   the work since its last checkpoint.
struct HarvestOptions {
    std::int64_t owners = 500;             ///< number of owners, 1 to 100,000
    std::int64_t days = 7;                 ///< simulated days, 1 to 1,000
    double sleep_hour = 22;                ///< hours after midnight, 0 to 48
    double wake_hour = 32;                 ///< as sleep_hour and above it; 32 = 8:00 the next day
    double demand = 1.0;                   ///< GPU-time requested by tasks, per GPU-time of Standby, 0 to 10
    std::int64_t task_minutes = 120;       ///< mean; uniform between 1/4 and 7/4 of it; 4 to 10^9
    std::int64_t checkpoint_minutes = 30;  ///< minutes of work between checkpoints, 1 to 10^9
    std::int64_t start_delay_s = 120;      ///< seconds from the decision to work (image, start-up), 0 to 10^9
    std::uint64_t seed = 0;                ///< determines all random choices
    preemption::EvictionModel eviction{};  ///< time that borrowers take to leave
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

/// Figures of a simulated harvest.
struct HarvestResult {
    double standby_gpu_h = 0;                   ///< lent by owners
    double borrowed_gpu_h = 0;                  ///< held by spot tasks, including start-up and shutdown
    double useful_gpu_h = 0;                    ///< part of borrowed_gpu_h: work that was kept
    double lost_gpu_h = 0;                      ///< work repeated because of evictions
    std::int64_t evictions = 0;                 ///< spot tasks evicted by owners
    std::int64_t killed = 0;                    ///< evictions that needed SIGKILL
    std::int64_t completed = 0;                 ///< spot tasks that finished
    double eviction_mean_s = 0;                 ///< mean seconds until the owner's GPUs were free
    double eviction_p95_s = 0;                  ///< 95th percentile of these times (nearest rank)
    double eviction_max_s = 0;                  ///< maximum of these times
    std::array<double, 24> standby_by_hour{};   ///< lent GPU-hours by hour of the day
    std::array<double, 24> borrowed_by_hour{};  ///< borrowed GPU-hours by hour of the day
    /// Why the run ended; the figures of a cancelled run cover the simulated time.
    StopReason stop_reason = StopReason::completed;
    /// Returns the borrowed part of the lent GPU-hours, 0 if none were lent.
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
/// Complexity: O(owners x minutes); an owner without an event in a minute costs one comparison. The same
/// options give the same result everywhere.
[[nodiscard]] HarvestResult simulate_harvest(const HarvestOptions& options = {}, const Context& context = {});

}  // namespace gpusched::sim
