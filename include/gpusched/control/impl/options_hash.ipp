#pragma once

#include <gpusched/control/audit.hpp>

#include <bit>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::control {

namespace hash_detail {

struct Fnv {
    std::uint64_t value = 0xCBF29CE484222325ull;

    void bits(std::uint64_t x) noexcept {
        for (int k = 0; k < 8; ++k, x >>= 8) value = (value ^ (x & 0xFF)) * 0x100000001B3ull;
    }
    void operator()(double x) noexcept { bits(std::bit_cast<std::uint64_t>(x)); }
    template <class T>
        requires std::is_integral_v<T>
    void operator()(T x) noexcept {
        bits(static_cast<std::uint64_t>(x));
    }
    void operator()(std::string_view text) noexcept {
        bits(text.size());
        for (const char c : text) bits(static_cast<unsigned char>(c));
    }
    template <class... T>
    void all(const T&... values) noexcept {
        ((*this)(values), ...);
    }
};

}  // namespace hash_detail

GPUSCHED_INLINE std::uint64_t options_hash(const ControllerOptions& o) {
    hash_detail::Fnv h;
    const auto& f = o.flags;
    h.all(o.host.roots.size(), o.host.gpus.size(), o.host.tenants.size(), o.host.core_numa.size(),
          o.host.numa_nodes);
    for (const auto& r : o.host.roots) h.all(r.capacity_bytes_per_s, r.bridge, r.numa);
    for (const auto& g : o.host.gpus) h.all(std::string_view(g.device), g.root, g.numa);
    for (const auto c : o.host.core_numa) h(c);
    for (const auto& t : o.host.tenants) {
        h.all(std::string_view(t.name), t.is_protected, t.tau_ms, t.start.gpu, t.start.instance.profile,
              t.start.instance.start, t.start.quota_percent, t.gpu, t.numa, t.client_of, t.follows);
        for (const auto word : t.start.cpus.words) h(word);
    }
    h.all(f.guard_io, f.guard_mps, f.place, f.mig, f.pin, f.relax, f.rollback, f.admission, f.dry_run,
          f.predict, o.release_on_disable, o.window_s, o.least_samples, o.stale_after, o.persistence, o.dwell,
          o.guard_dwell, o.cool_down, o.validation, o.relax_after, o.reconfigure_timeout, o.lease_s,
          o.ema_weight, o.low_factor, o.worse_factor, o.relax_below, o.relax_limit, o.pcie_high, o.pcie_low,
          o.io_high, o.io_low, o.irq_high, o.irq_low, o.sm_high, o.sm_low, o.better_by, o.relax_score,
          o.pause_s, o.loss_budget, o.system_loss_budget, o.structural_per_hour, o.hour_s,
          o.io_levels_mb_s.size(), o.quota_levels.size());
    for (const auto level : o.io_levels_mb_s) h(level);
    for (const auto level : o.quota_levels) h(level);
    return h.value;
}

}  // namespace GPUSCHED_NAMESPACE::control
