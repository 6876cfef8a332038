// SPDX-License-Identifier: Apache-2.0
// Checks the options of the controller, and defines the flags of each variant.
#include <gpusched/config.hpp>
#include <gpusched/control/options.hpp>
#include <gpusched/core/checks.hpp>

#include <cmath>
#include <string>
#include <string_view>

namespace gpusched::control {

GPUSCHED_EXPORT ControllerFlags variant_flags(Variant variant) noexcept {
    struct Levers {
        Variant variant;
        bool guards, placement, mig;
        bool paper = false, largest_first = false;
    };
    static constexpr std::array<Levers, 11> table{{
        {Variant::static_configuration, false, false, false},
        {Variant::guards, true, false, false},
        {Variant::placement, false, true, false},
        {Variant::mig, false, false, true},
        {Variant::full, true, true, true},
        {Variant::ours, true, true, true},
        {Variant::paper, true, true, true, true},
        {Variant::paper_largest, true, true, true, true, true},
        {Variant::no_guards, false, true, true},
        {Variant::no_placement, true, false, true},
        {Variant::no_mig, true, true, false},
    }};
    ControllerFlags flags;
    for (const auto& row : table) {
        if (row.variant != variant) continue;
        flags.guard_io = flags.guard_mps = row.guards;
        flags.place = row.placement;
        flags.mig = row.mig;
        flags.pin = row.placement || row.mig;
        flags.join_guards = flags.own_gpu_first = row.paper;
        flags.largest_first = row.largest_first;
    }
    flags.predict = variant == Variant::ours;
    if (variant == Variant::static_configuration) flags.relax = flags.rollback = flags.admission = false;
    return flags;
}

namespace option_checks {

static void thresholds(Problems& problems, std::string_view field, double low, double high) {
    if (!(low > 0 && low <= high && std::isfinite(high)))
        problems.add(bad_value(field, number_text(low) + ", " + number_text(high), "0 < low <= high"));
}

static void falling(Problems& problems, std::string_view field, const std::vector<std::int32_t>& values) {
    for (std::size_t i = 1; i < values.size(); ++i)
        if (values[i] >= values[i - 1])
            problems.add(bad_value(field, number_text(values[i]), "falling values"));
}

static void host(Problems& problems, const Host& h) {
    const auto below = [&](std::string_view field, std::int32_t value, std::int32_t low, std::size_t count,
                           std::string_view owner) {
        check_range(problems, field, value, low, static_cast<std::int32_t>(count) - 1, owner);
    };
    check_range(problems, "gpus", h.gpus.size(), 1u, 16u);
    check_range(problems, "core_numa", h.core_numa.size(), std::size_t{0}, most_cores);
    check_range(problems, "tenants", h.tenants.size(), 1u, 64u);
    check_fields(problems, h);
    for (const auto node : h.core_numa) check_range(problems, "core_numa", node, 0, h.numa_nodes - 1);
    for (const auto& root : h.roots) {
        check_fields(problems, root, "root");
        check_range(problems, "numa", root.numa, 0, h.numa_nodes - 1, "root");
    }
    for (const auto& gpu : h.gpus) {
        below("root", gpu.root, 0, h.roots.size(), "gpu");
        check_range(problems, "numa", gpu.numa, 0, h.numa_nodes - 1, "gpu");
        static_cast<void>(mig_device(gpu.device));
    }
    std::vector<MigLayout> starts(h.gpus.size());
    for (std::size_t i = 0; i < h.tenants.size(); ++i) {
        const auto& t = h.tenants[i];
        const std::string owner = "tenant " + gpusched::quoted(t.name);
        below("gpu", t.gpu, -1, h.gpus.size(), owner);
        check_range(problems, "numa", t.numa, -1, h.numa_nodes - 1, owner);
        below("client_of", t.client_of, -1, h.tenants.size(), owner);
        if (t.client_of >= 0 && static_cast<std::size_t>(t.client_of) < h.tenants.size() &&
            (t.is_protected || !h.tenants[static_cast<std::size_t>(t.client_of)].is_protected))
            problems.add(bad_value("client_of", number_text(t.client_of),
                                   "a protected tenant, for others only", owner));
        if (!t.is_protected) continue;
        if (!(t.tau_ms > 0 && t.tau_ms <= 1e7))
            problems.add(bad_value("tau_ms", number_text(t.tau_ms), "more than 0, at most 1e+07", owner));
        check_range(problems, "tau_p999_ms", t.tau_p999_ms, 0, 1e7, owner);
        below("start.gpu", t.start.gpu, 0, h.gpus.size(), owner);
        check_fields(problems, t.start, owner + ": start");
        if (!problems.empty()) continue;
        const auto gpu = static_cast<std::size_t>(t.start.gpu);
        const auto& device = mig_device(h.gpus[gpu].device);
        const bool possible = can_create(device, {}, t.start.instance);
        if (possible && can_create(device, starts[gpu], t.start.instance))
            starts[gpu].add(t.start.instance);
        else
            problems.add(bad_value("start.instance",
                                   number_text(t.start.instance.profile) + " at " +
                                       number_text(t.start.instance.start),
                                   possible ? "a placement that the other protected tenants' leave free"
                                            : "a placement of the GPU",
                                   owner));
    }
}

}  // namespace option_checks

GPUSCHED_EXPORT void validate(const ControllerOptions& o) {
    using namespace option_checks;
    Problems problems;
    host(problems, o.host);
    check_fields(problems, o);
    if (o.lease_s < o.window_s)
        problems.add(bad_value("lease_s", number_text(o.lease_s),
                               "at least window_s, " + number_text(o.window_s) +
                                   ": a lease cannot end within a window"));
    thresholds(problems, "pcie_low, pcie_high", o.pcie_low, o.pcie_high);
    thresholds(problems, "io_low, io_high", o.io_low, o.io_high);
    thresholds(problems, "irq_low, irq_high", o.irq_low, o.irq_high);
    thresholds(problems, "sm_low, sm_high", o.sm_low, o.sm_high);
    falling(problems, "io_levels_mb_s", o.io_levels_mb_s);
    falling(problems, "quota_levels", o.quota_levels);
    problems.throw_if_any();
}

}  // namespace gpusched::control
