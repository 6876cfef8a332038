// Options of the controller.
#pragma once

#include <gpusched/control/host.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace GPUSCHED_NAMESPACE::control {

/// Which levers may act, in decisions and in clean-up alike.
struct ControllerFlags {
    bool guard_io = true;   ///< limit block I/O of the offender for a while
    bool guard_mps = true;  ///< lower the quota of the MPS client in the instance
    bool place = true;      ///< move to a better placement of the same profile
    bool mig = true;        ///< enlarge the instance
    bool pin = true;        ///< keep the tenant on cores with few interrupts
    bool relax = true;      ///< give back what is not needed
    bool rollback = true;   ///< undo what made matters worse
    bool admission = true;  ///< close admission when no lever is left
    bool dry_run = false;   ///< decide and write down, act on nothing
    /// Choose levers, placements and sizes by a model of the tenant's tail (`TailModel`), not in the paper's order.
    bool predict = false;
};

/// The flags of the paper's ablation, `static`, `guards`, `placement`, `mig` or `full`; or `ours`, which is `full` with
/// `predict`.
/// @throws InvalidInput for another name
[[nodiscard]] ControllerFlags variant_flags(std::string_view variant);

/// Numbers of the policy; durations in windows unless named otherwise.
struct ControllerOptions {
    Host host{};
    ControllerFlags flags{};
    bool release_on_disable = true;  ///< leases end when the controller is disabled

    double window_s = 2;              ///< 0.1 to 60
    std::int32_t least_samples = 30;  ///< windows with fewer requests are missing
    std::int32_t stale_after = 10;    ///< missing windows in a row
    std::int32_t persistence = 3;     ///< windows above the threshold before anything is done, 1 to 1000
    std::int32_t dwell = 256;         ///< between structural actions of a tenant
    std::int32_t guard_dwell = 128;   ///< between its guards
    std::int32_t cool_down = 128;
    std::int32_t validation = 15;            ///< comparable windows after a change, 1 to 1000
    std::int32_t relax_after = 60;           ///< windows below `relax_below` before something is given back
    std::int32_t reconfigure_timeout = 120;  ///< windows until a change without an answer counts as failed
    double lease_s = 30;                     ///< how long block I/O is limited, window_s to 300

    double ema_weight = 0.3;     ///< above 0 and at most 1
    double low_factor = 0.93;    ///< of tau: below is good, above 0 and below 1
    double worse_factor = 1.10;  ///< of the average before a change: above is worse, at least 1
    double relax_below = 0.8;    ///< of tau
    double relax_limit = 0.9;    ///< of tau: what may be predicted and found after giving back

    double pcie_high = 0.45, pcie_low = 0.30;  ///< of a root's capacity, others' traffic
    double io_high = 1e9, io_low = 0.5e9;      ///< bytes/s of a NUMA node
    double irq_high = 4, irq_low = 2;          ///< times the median core
    double sm_high = 0.6, sm_low = 0.4;        ///< SM or DRAM activity of clients in the instance

    std::vector<std::int32_t> io_levels_mb_s{500, 250, 100};  ///< falling, each 100 to 500
    std::vector<std::int32_t> quota_levels{75, 50};           ///< falling, each 50 to 100

    double better_by = 0.10;    ///< by how much a placement's score must be lower
    double relax_score = 0.30;  ///< scores of placements that are given back to lie below

    double pause_s = 18;                   ///< expected length of a pause
    double loss_budget = 0.05;             ///< of the tenant's throughput over an hour
    double system_loss_budget = 1;         ///< of all tenants': quotas and limits count; 1 switches it off
    std::int32_t structural_per_hour = 4;  ///< at most, rollbacks included
    double hour_s = 3600;
};

/// @throws InvalidInput with every field out of range
void validate(const ControllerOptions& options);

}  // namespace GPUSCHED_NAMESPACE::control

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/control/impl/options.ipp>
#endif
