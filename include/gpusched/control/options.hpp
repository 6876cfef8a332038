// SPDX-License-Identifier: Apache-2.0
// Options of the tail-latency controller: host, levers, thresholds and budgets.
#pragma once

#include <gpusched/control/host_description.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::control {

/// The levers that may act, both in decisions and in clean-up.
struct ControllerFlags {
    bool guard_io = true;   ///< limit the offender's block I/O for a while
    bool guard_mps = true;  ///< lower the quota of the MPS client in the instance
    bool place = true;      ///< move to a better placement of the same profile
    bool mig = true;        ///< enlarge the instance
    bool pin = true;        ///< keep the tenant on cores with few interrupts
    bool relax = true;      ///< return resources that are not needed
    bool rollback = true;   ///< undo changes that made the tail worse
    bool admission = true;  ///< close admission when no lever is left
    bool dry_run = false;   ///< decide and log, but act on nothing
    /// Choose levers, placements and sizes by a model of the tenant's tail (`TailModel`) instead of the
    /// paper's order.
    bool predict = false;
    /// Set cores and a stricter quota together with a move or an enlargement; set them alone only if neither
    /// is left.
    bool join_guards = false;
    /// Prefer a better placement on the tenant's own GPU to a better one on another GPU.
    bool own_gpu_first = false;
    /// Try the largest profile that fits first (section 2.5.2 of the paper), instead of the next larger one.
    bool largest_first = false;
};
template <class F>
constexpr void visit_fields(std::type_identity<ControllerFlags>, F&& field) {
    field("guard_io", &ControllerFlags::guard_io);
    field("guard_mps", &ControllerFlags::guard_mps);
    field("place", &ControllerFlags::place);
    field("mig", &ControllerFlags::mig);
    field("pin", &ControllerFlags::pin);
    field("relax", &ControllerFlags::relax);
    field("rollback", &ControllerFlags::rollback);
    field("admission", &ControllerFlags::admission);
    field("dry_run", &ControllerFlags::dry_run);
    field("predict", &ControllerFlags::predict);
    field("join_guards", &ControllerFlags::join_guards);
    field("own_gpu_first", &ControllerFlags::own_gpu_first);
    field("largest_first", &ControllerFlags::largest_first);
}

/// A preset of flags: no lever (`static`), some levers as in the paper's ablation, all levers (`full`), all
/// levers chosen by a model of the tenant's tail (`ours`), all levers in the order of the paper's text
/// (`paper`), or all but one.
enum class Variant : std::uint8_t {
    static_configuration,  ///< no lever at all
    guards,                ///< limits of block I/O and quotas
    placement,             ///< moves and pins
    mig,                   ///< larger instances and pins
    full,                  ///< all levers
    ours,                  ///< all, chosen by a model of the tenant's tail
    paper,                 ///< all; pin and quota with an upgrade, own GPU first (sections 2.2.1 and 2.3)
    paper_largest,         ///< the same with the largest profile first (section 2.5.2)
    no_guards,             ///< all but limits of block I/O and quotas
    no_placement,          ///< all but moves
    no_mig                 ///< all but larger instances
};
constexpr auto enum_names(Variant) {
    return name_table<Variant>({
        {Variant::static_configuration, "static"},
        {Variant::guards, "guards"},
        {Variant::placement, "placement"},
        {Variant::mig, "mig"},
        {Variant::full, "full"},
        {Variant::ours, "ours"},
        {Variant::paper, "paper"},
        {Variant::paper_largest, "paper_largest"},
        {Variant::no_guards, "no_guards"},
        {Variant::no_placement, "no_placement"},
        {Variant::no_mig, "no_mig"},
    });
}

/// Returns the flags of a variant.
[[nodiscard]] ControllerFlags variant_flags(Variant variant) noexcept;

/// Options of the controller. Durations are in windows unless the name says otherwise.
struct ControllerOptions {
    Host host{};
    ControllerFlags flags{};
    bool release_on_disable = true;  ///< leases end when the controller is disabled

    double window_s = 2;              ///< 0.1 to 60
    std::int32_t least_samples = 30;  ///< windows with fewer requests count as missing
    std::int32_t stale_after = 10;    ///< missing windows in a row until a signal is stale
    std::int32_t persistence = 3;     ///< windows above the threshold before an action, 1 to 1000
    std::int32_t dwell = 256;         ///< between structural actions of a tenant
    std::int32_t guard_dwell = 128;   ///< between guards of a tenant
    std::int32_t cool_down = 128;
    std::int32_t validation = 15;            ///< comparable windows after a change, 1 to 1000
    std::int32_t relax_after = 60;           ///< windows below `relax_below` before resources are returned
    std::int32_t reconfigure_timeout = 120;  ///< windows until an unanswered change counts as failed
    double lease_s = 30;                     ///< duration of a limit on block I/O, window_s to 300

    double ema_weight = 0.3;     ///< above 0 and at most 1
    double low_factor = 0.93;    ///< of tau: lower tails are good, 0.01 to 1
    double worse_factor = 1.10;  ///< of the average before a change: higher tails are worse, 1 to 100
    double relax_below = 0.8;    ///< of tau
    double relax_limit = 0.9;    ///< of tau: limit of the predicted and the measured tail after relaxing

    double pcie_high = 0.45, pcie_low = 0.30;  ///< of a root's capacity, others' traffic
    /// Replays per second of a root that equal a pressure of `pcie_high` of its capacity; 0: replays are
    /// ignored.
    double replays_high_per_s = 0;
    double io_high = 1e9, io_low = 0.5e9;  ///< bytes/s of a NUMA node
    double irq_high = 4, irq_low = 2;      ///< times the median core
    double sm_high = 0.6, sm_low = 0.4;    ///< SM or DRAM activity of clients in the instance

    std::vector<std::int32_t> io_levels_mb_s{500, 250, 100};  ///< decreasing, each 100 to 500
    std::vector<std::int32_t> quota_levels{75, 50};           ///< decreasing, each 50 to 100

    double better_by = 0.10;    ///< required decrease of a placement's score
    double relax_score = 0.30;  ///< scores of placements to relax to must be below

    double pause_s = 18;                   ///< expected length of a pause
    double loss_budget = 0.05;             ///< of the tenant's throughput over an hour
    double system_loss_budget = 1;         ///< of all tenants' throughput, by quotas and limits; 1: unlimited
    std::int32_t structural_per_hour = 4;  ///< maximum number of structural actions, including rollbacks
    double hour_s = 3600;
};
template <class F>
constexpr void visit_fields(std::type_identity<ControllerOptions>, F&& field) {
    field("host", &ControllerOptions::host);
    field("flags", &ControllerOptions::flags);
    field("release_on_disable", &ControllerOptions::release_on_disable);
    field("window_s", &ControllerOptions::window_s, within(0.1, 60.0));
    field("least_samples", &ControllerOptions::least_samples, within(1, 1'000'000));
    field("stale_after", &ControllerOptions::stale_after, within(1, 1'000'000));
    field("persistence", &ControllerOptions::persistence, within(1, 1000));
    field("dwell", &ControllerOptions::dwell, within(1, 10'000'000));
    field("guard_dwell", &ControllerOptions::guard_dwell, within(1, 10'000'000));
    field("cool_down", &ControllerOptions::cool_down, within(1, 10'000'000));
    field("validation", &ControllerOptions::validation, within(1, 1000));
    field("relax_after", &ControllerOptions::relax_after, within(1, 10'000'000));
    field("reconfigure_timeout", &ControllerOptions::reconfigure_timeout, within(1, 1'000'000));
    field("lease_s", &ControllerOptions::lease_s, more_than(0, 300));
    field("ema_weight", &ControllerOptions::ema_weight, more_than(0, 1));
    field("low_factor", &ControllerOptions::low_factor, within(0.01, 1.0));
    field("worse_factor", &ControllerOptions::worse_factor, within(1, 100));
    field("relax_below", &ControllerOptions::relax_below, within(0.01, 1.0));
    field("relax_limit", &ControllerOptions::relax_limit, within(0.01, 1.0));
    field("pcie_high", &ControllerOptions::pcie_high);
    field("pcie_low", &ControllerOptions::pcie_low);
    field("replays_high_per_s", &ControllerOptions::replays_high_per_s, within(0.0, 1e9));
    field("io_high", &ControllerOptions::io_high);
    field("io_low", &ControllerOptions::io_low);
    field("irq_high", &ControllerOptions::irq_high);
    field("irq_low", &ControllerOptions::irq_low);
    field("sm_high", &ControllerOptions::sm_high);
    field("sm_low", &ControllerOptions::sm_low);
    field("io_levels_mb_s", &ControllerOptions::io_levels_mb_s, within(100, 500));
    field("quota_levels", &ControllerOptions::quota_levels, within(50, 100));
    field("better_by", &ControllerOptions::better_by, within(0, 10));
    field("relax_score", &ControllerOptions::relax_score, within(0, 10));
    field("pause_s", &ControllerOptions::pause_s, within(0, 3600));
    field("loss_budget", &ControllerOptions::loss_budget, within(0, 1));
    field("system_loss_budget", &ControllerOptions::system_loss_budget, within(0, 1));
    field("structural_per_hour", &ControllerOptions::structural_per_hour, within(0, 8));
    field("hour_s", &ControllerOptions::hour_s, more_than(0.0, 1e7));
}

/// Checks the options.
/// @throws InvalidInput with every field that is out of range
void validate(const ControllerOptions& options);

}  // namespace gpusched::control
