#pragma once

#include <gpusched/sim/detail/host_simulation.hpp>

#include <algorithm>
#include <array>

namespace GPUSCHED_NAMESPACE::sim::detail {

/// Instances of others, where there is room.
GPUSCHED_INTERNAL void add_neighbours(const control::MigDevice& device,
                                      std::vector<control::MigLayout>& layouts) {
    const auto put = [&](std::size_t gpu, const char* key, int slice) {
        const control::MigInstance at{static_cast<std::uint8_t>(device.find(key)),
                                      static_cast<std::uint8_t>(slice)};
        if (device.find(key) >= 0 && control::can_create(device, layouts[gpu], at)) layouts[gpu].add(at);
    };
    put(0, "2g", 4);
    put(0, "1g", 6);
    put(1, "3g", 4);
}

GPUSCHED_INTERNAL HostSimulation::HostSimulation(const HostScenario& scenario,
                                                 const control::ControllerFlags& flags, std::uint64_t seed,
                                                 std::string* audit)
    : o_(scenario), device_(control::mig_device(scenario.device)), counter_rng_(Rng(seed).split(2)) {
    auto& h = options_.host;
    h.roots = {{.capacity_bytes_per_s = o_.root_bytes_per_s, .bridge = 0, .numa = 0},
               {.capacity_bytes_per_s = o_.root_bytes_per_s, .bridge = 1, .numa = 1}};
    h.gpus = {{.device = o_.device, .root = 0, .numa = 0}, {.device = o_.device, .root = 1, .numa = 1}};
    h.numa_nodes = 2;
    h.core_numa = {0, 0, 0, 0, 1, 1, 1, 1};
    const control::MigInstance start{static_cast<std::uint8_t>(device_.find(o_.start_profile)),
                                     static_cast<std::uint8_t>(o_.start_slice)};
    const double threshold_ms = o_.threshold_ms.value_or(o_.tau_ms);
    h.tenants = {{.name = "T1", .is_protected = true, .tau_ms = threshold_ms, .start = {.instance = start}},
                 {.name = "T2", .gpu = 0, .numa = 0},
                 {.name = "T3", .gpu = 0, .client_of = 0}};
    if (o_.second_service)
        h.tenants.push_back({.name = "T4",
                             .is_protected = true,
                             .tau_ms = threshold_ms,
                             .start = {.gpu = 1, .instance = start}});
    for (std::size_t k = 0; k < o_.starts.size(); ++k) h.tenants[k == 0 ? 0 : 3].start = o_.starts[k];
    options_.flags = flags;
    options_.window_s = o_.window_s;
    options_.persistence = o_.persistence;
    options_.dwell = o_.dwell;
    options_.io_levels_mb_s = o_.io_levels_mb_s;
    options_.quota_levels = o_.quota_levels;
    options_.pause_s = o_.pause_s;
    state_ = control::initial_state(options_);
    layouts_ = state_.layouts;
    if (o_.neighbours) add_neighbours(device_, layouts_);
    seen_.tenants.resize(h.tenants.size());
    seen_.feedback.resize(h.tenants.size());
    seen_.roots.resize(2);
    seen_.gpus.resize(2);
    seen_.numa_io_bytes_per_s.assign(2, 0);
    seen_.irq_per_s.assign(h.core_numa.size(), 100);
    t2_ = {.rng = Rng(seed).split(3), .on_s = o_.t2_on_s, .off_s = o_.t2_off_s};
    t3_ = {.rng = Rng(seed).split(4), .on_s = o_.t3_on_s, .off_s = o_.t3_off_s};
    t2_.start();
    t3_.start();
    if (llm()) {
        const auto& last = o_.llm_requests.back();
        // So that the gap before the trace begins anew is a mean one.
        if (last.time_s > 0)
            trace_stretch_ =
                static_cast<double>(o_.llm_requests.size() - 1) / o_.llm_requests_per_s / last.time_s;
    }
    services_.resize(o_.second_service ? 2 : 1);
    for (std::size_t k = 0; k < services_.size(); ++k) {
        auto& s = services_[k];
        s.tenant = k == 0 ? 0 : h.tenants.size() - 1;
        s.has_client = k == 0;
        s.requests_rng = Rng(seed).split(k == 0 ? 0 : 5);
        s.pause_rng = Rng(seed).split(k == 0 ? 1 : 6);
        s.place = h.tenants[s.tenant].start;
        if (s.has_client) quota_ = s.place.quota_percent / 100.0;
        begin(s);
    }
    next_tick_ = o_.window_s;
    audit_ = audit;
    hash_ = control::options_hash(options_);
}

GPUSCHED_INTERNAL double HostSimulation::t2_demand() const {
    if (!t2_.on) return 0;
    return std::min(o_.t2_bytes_per_s, limit_bytes_per_s_ * o_.t2_bytes_per_io_byte);
}

GPUSCHED_INTERNAL double HostSimulation::t2_rate(double unit) const {
    return std::min(t2_demand(), o_.t2_weight * unit);
}

/// What one request on a root gets: the unit r of n r + sum of min(demand, weight r) = capacity.
GPUSCHED_INTERNAL double HostSimulation::request_rate(std::size_t at) const {
    std::size_t n = 0;
    for (const auto& s : services_) n += root(s) == at ? s.pcie.size() : 0;
    const double background = o_.background_weight[at];
    struct Flow {
        double weight = 0, demand = 0;
    };
    std::array<Flow, 2> flows{{{background, background * o_.root_bytes_per_s},
                               {at == 0 ? o_.t2_weight : 0, at == 0 ? t2_demand() : 0}}};
    double capacity = o_.root_bytes_per_s, weights = static_cast<double>(n);
    for (const auto& f : flows) weights += f.weight;
    // A flow that asks for less than its share gives the rest back; what changes one share may satisfy the other.
    for (int pass = 0; pass < 2; ++pass)
        for (auto& f : flows)
            if (f.weight > 0 && f.demand <= f.weight * capacity / weights) {
                capacity -= f.demand;
                weights -= f.weight;
                f.weight = 0;
            }
    return capacity / weights;
}

/// Moves time on; rates are constant until then.
GPUSCHED_INTERNAL void HostSimulation::progress(double until) {
    const double dt = until - now_;
    std::array<double, 2> rate{};
    std::array<bool, 2> busy{};
    for (const auto& s : services_) busy[root(s)] |= !s.pcie.empty();
    for (std::size_t r = 0; r < 2; ++r)
        if (busy[r]) rate[r] = request_rate(r);
    if (t2_.on) out_.t2_bytes += dt * (busy[0] ? t2_rate(rate[0]) : t2_demand());
    if (t3_.on) out_.t3_work_s += dt * quota_;
    for (auto& s : services_) {
        if (!s.pcie.empty()) s.virtual_time += dt * rate[root(s)];
        out_.slice_s += dt * device_.profiles[s.place.instance.profile].compute_slices;
    }
    now_ = until;
}

GPUSCHED_INTERNAL void HostSimulation::enter_host(Service& s, std::uint32_t r) {
    const bool disturbed = t2_.on && root(s) == 0 && s.place.cpus == control::CpuSet{};
    const double ms = requests_[r].host_ms + (disturbed ? requests_[r].io_ms : 0);
    s.host.push({now_ + ms / 1000, r});
}

GPUSCHED_INTERNAL void HostSimulation::enter_pcie(Service& s, std::uint32_t r) {
    if (s.pcie.empty()) s.virtual_time = 0;  // or sums grow until small transfers are lost in rounding
    s.pcie.push({s.virtual_time + requests_[r].bytes, r});
}

GPUSCHED_INTERNAL void HostSimulation::enter_compute(Service& s, std::uint32_t r) {
    s.queue.push_back(r);
    begin_service(s);
}

GPUSCHED_INTERNAL void HostSimulation::begin_service(Service& s) {
    while (!s.queue.empty() && s.compute.size() < static_cast<std::size_t>(o_.servers)) {
        const auto r = s.queue.front();
        s.queue.pop_front();
        const double two =
            device_.profiles[static_cast<std::size_t>(std::max(0, device_.find("2g")))].sm_count;
        const double effective = sm(s.place) / (1 + (t3_.on && s.has_client ? o_.beta * quota_ : 0));
        const double factor = o_.serial_fraction + (1 - o_.serial_fraction) * two / effective;
        const double decoding = 1 + o_.decode_slows * static_cast<double>(s.decode.size());
        s.compute.push({now_ + requests_[r].compute_ms * factor * decoding / 1000, r});
        requests_[r].decode_ms *= factor;
    }
}

/// The end of compute, of which the controller hears: in LLM mode the first token.
GPUSCHED_INTERNAL void HostSimulation::finish(Service& s, std::uint32_t r) {
    const double ms = (now_ - requests_[r].arrived) * 1000;
    done_ms_.push_back(ms);
    out_.missed += ms > o_.tau_ms;
    s.served.count(ms > o_.tau_ms);
    if (llm()) s.decode.push({now_ + requests_[r].decode_ms / 1000, r});
    if (requests_[r].arrived < s.unsettled_from) return;
    ++s.window_done;
    s.window_missed += ms > o_.tau_ms;
    s.latencies.record(ms);
}

GPUSCHED_INTERNAL void HostSimulation::end_change(Service& s) {
    auto& f = seen_.feedback[s.tenant];
    f.finished = true;
    f.status = s.change_fails ? control::BackendStatus::insufficient_resources : control::BackendStatus::ok;
    if (!s.change_fails) {
        layouts_[static_cast<std::size_t>(s.place.gpu)].remove(s.place.instance);
        layouts_[static_cast<std::size_t>(s.change.after.gpu)].add(s.change.after.instance);
        s.place = s.change.after;
    }
    s.changing = s.pausing = false;
    s.change_ends = never;
    s.unsettled_from = now_;
    s.latencies.clear();
    s.window_arrived = s.window_done = s.window_missed =
        0;  // what the pause did is not the new place's doing
    for (const auto r : s.waiting) enter_host(s, r);
    s.waiting.clear();
}

GPUSCHED_INTERNAL void HostSimulation::act(const control::Action& a) {
    using control::ActionKind;
    auto& s = service_of(a.tenant);
    switch (a.kind) {
    case ActionKind::throttle_io:
        limit_bytes_per_s_ = a.value * 1e6;
        ++out_.throttles;
        return;
    case ActionKind::release_io:
        limit_bytes_per_s_ = never;
        return;
    case ActionKind::set_quota:
        s.place.quota_percent = a.after.quota_percent;
        if (o_.quota_live && s.has_client) quota_ = a.after.quota_percent / 100.0;
        ++out_.quota_changes;
        return;
    case ActionKind::pin:
        s.place.cpus = a.after.cpus;
        return;
    case ActionKind::reconfigure:
        break;
    }
    const double length = std::max(1.0, o_.pause_s + o_.pause_sigma_s * normal(s.pause_rng));
    s.change_fails = s.pause_rng.chance(o_.failure_rate);
    s.change = a;
    s.change_ends = now_ + length;
    s.changing = true;
    s.pausing = !(o_.pause_mode == PauseMode::make_before_break && a.make_before_break);
    ++out_.structural_actions;
    out_.rollbacks += a.lever == control::Lever::rollback;
}

/// What the controller is told about a protected tenant.
GPUSCHED_INTERNAL void HostSimulation::see(Service& s) {
    auto& x = seen_.tenants[s.tenant];
    x.p50_ms = s.latencies.quantile_ms(0.5);
    x.p95_ms = s.latencies.quantile_ms(0.95);
    x.p99_ms = s.latencies.quantile_ms(0.99);
    x.p999_ms = s.latencies.quantile_ms(0.999);
    if (llm()) x.ttft_p99_ms = x.p99_ms;
    if (x.p99_ms > o_.tau_ms)
        out_.excess_ms +=
            (x.p99_ms - o_.tau_ms) * o_.window_s / o_.duration_s / static_cast<double>(services_.size());
    if (s.served.above() || !s.waiting.empty()) out_.violation_s += o_.window_s;
    s.served.advance();
    x.count = s.window_done;
    x.misses = s.window_missed;
    x.offered_per_s = static_cast<double>(s.window_arrived) / o_.window_s;
    x.completed_per_s = static_cast<double>(s.window_done) / o_.window_s;
    x.pcie_bytes_per_s = 0;  // the counters below are others' already
    x.memory_used_mib =
        0.9 * device_.profiles[options_.host.tenants[s.tenant].start.instance.profile].memory_mib;
    s.latencies.advance();
    s.window_arrived = s.window_done = s.window_missed = 0;
}

GPUSCHED_INTERNAL void HostSimulation::tick() {
    for (auto& s : services_) see(s);
    const auto counter = [&](double bytes) {
        const double noise = std::exp(std::max(0.0, o_.counter_noise) * normal(counter_rng_));
        return o_.counter_noise < 0 ? control::unknown_signal : bytes * noise;
    };
    for (std::size_t r = 0; r < 2; ++r)
        seen_.roots[r].bytes_per_s = counter(std::min(
            o_.root_bytes_per_s, o_.background_weight[r] * o_.root_bytes_per_s + (r == 0 ? t2_demand() : 0)));
    auto& t2 = seen_.tenants[1];
    t2.pcie_bytes_per_s = o_.counter_noise < 0 ? control::unknown_signal : t2_demand();
    t2.io_bytes_per_s = t2_demand() / o_.t2_bytes_per_io_byte;
    t2.pcie_attribution =
        o_.counter_noise < 0 ? control::Attribution::unknown : control::Attribution::measured;
    t2.io_attribution = control::Attribution::measured;
    seen_.numa_io_bytes_per_s[0] = t2.io_bytes_per_s;
    seen_.tenants[2].sm_active = t3_.on ? 0.9 * services_[0].place.quota_percent / 100 : 0;
    for (std::size_t g = 0; g < 2; ++g) seen_.gpus[g].layout = layouts_[g];
    seen_.time_s = now_;
    control::step(state_, seen_, options_, result_);
    if (audit_ != nullptr) control::append_audit_line(*audit_, seen_, state_, result_, hash_);
    for (auto& f : seen_.feedback) f = {};
    ++seen_.window;
    for (const auto& action : result_.actions) act(action);
    next_tick_ += o_.window_s;
}

}  // namespace GPUSCHED_NAMESPACE::sim::detail
