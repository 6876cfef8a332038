#pragma once

#include <gpusched/sim/detail/host_simulation.hpp>

namespace gpusched::sim::detail {

GPUSCHED_INLINE HostSimulation::HostSimulation(const HostScenario& scenario,
                                               const control::ControllerFlags& flags, std::uint64_t seed,
                                               std::string* audit)
    : o_(scenario), device_(control::mig_device(scenario.device)), requests_rng_(Rng(seed).split(0)),
      pause_rng_(Rng(seed).split(1)), counter_rng_(Rng(seed).split(2)) {
    auto& h = options_.host;
    h.roots = {{.capacity_bytes_per_s = o_.root_bytes_per_s, .bridge = 0, .numa = 0},
               {.capacity_bytes_per_s = o_.root_bytes_per_s, .bridge = 1, .numa = 1}};
    h.gpus = {{.device = o_.device, .root = 0, .numa = 0}, {.device = o_.device, .root = 1, .numa = 1}};
    h.numa_nodes = 2;
    h.core_numa = {0, 0, 0, 0, 1, 1, 1, 1};
    const control::MigInstance start{static_cast<std::uint8_t>(device_.find(o_.start_profile)),
                                     static_cast<std::uint8_t>(o_.start_slice)};
    h.tenants = {{.name = "T1", .is_protected = true, .tau_ms = o_.tau_ms, .start = {.instance = start}},
                 {.name = "T2", .gpu = 0, .numa = 0},
                 {.name = "T3", .gpu = 0, .client_of = 0}};
    options_.flags = flags;
    options_.window_s = o_.window_s;
    options_.dwell = o_.dwell;
    options_.io_levels_mb_s = o_.io_levels_mb_s;
    options_.quota_levels = o_.quota_levels;
    options_.pause_s = o_.pause_s;
    state_ = control::initial_state(options_);
    place_ = h.tenants[0].start;
    layouts_ = state_.layouts;
    if (o_.neighbours) {
        const auto put = [&](std::size_t gpu, const char* key, int slice) {
            const control::MigInstance at{static_cast<std::uint8_t>(device_.find(key)),
                                          static_cast<std::uint8_t>(slice)};
            if (device_.find(key) >= 0 && control::can_create(device_, layouts_[gpu], at))
                layouts_[gpu].add(at);
        };
        put(0, "2g", 4);
        put(0, "1g", 6);
        put(1, "3g", 4);
    }
    seen_.tenants.resize(3);
    seen_.feedback.resize(3);
    seen_.roots.resize(2);
    seen_.gpus.resize(2);
    seen_.numa_io_bytes_per_s.assign(2, 0);
    seen_.irq_per_s.assign(h.core_numa.size(), 100);
    t2_ = {.rng = Rng(seed).split(3), .on_s = o_.t2_on_s, .off_s = o_.t2_off_s};
    t3_ = {.rng = Rng(seed).split(4), .on_s = o_.t3_on_s, .off_s = o_.t3_off_s};
    t2_.start();
    t3_.start();
    next_state_ = exponential(requests_rng_, o_.state_s[0]);
    next_arrival_ = exponential(requests_rng_, 1 / o_.rates_per_s[0]);
    next_tick_ = o_.window_s;
    audit_ = audit;
    hash_ = control::options_hash(options_);
}

GPUSCHED_INLINE double HostSimulation::t2_demand() const {
    if (!t2_.on) return 0;
    return std::min(o_.t2_bytes_per_s, limit_bytes_per_s_ * o_.t2_bytes_per_io_byte);
}

GPUSCHED_INLINE double HostSimulation::t2_rate(double unit) const {
    return std::min(t2_demand(), o_.t2_weight * unit);
}

/// What one request of T1 gets: the unit r of n r + sum of min(demand, weight r) = capacity.
GPUSCHED_INLINE double HostSimulation::request_rate() const {
    const auto n = static_cast<double>(pcie_.size());
    const double background = o_.background_weight[root()];
    struct Flow {
        double weight = 0, demand = 0;
    };
    std::array<Flow, 2> flows{{{background, background * o_.root_bytes_per_s},
                               {root() == 0 ? o_.t2_weight : 0, root() == 0 ? t2_demand() : 0}}};
    double capacity = o_.root_bytes_per_s, weights = n;
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
GPUSCHED_INLINE void HostSimulation::progress(double until) {
    const double dt = until - now_;
    const bool idle = pcie_.empty() || root() != 0;
    if (t2_.on) out_.t2_bytes += dt * (idle ? t2_demand() : t2_rate(request_rate()));
    if (t3_.on) out_.t3_work_s += dt * quota_;
    if (!pcie_.empty()) virtual_ += dt * request_rate();
    now_ = until;
}

GPUSCHED_INLINE void HostSimulation::arrive() {
    auto& rng = requests_rng_;
    Request r;
    r.arrived = now_;
    double at = rng.uniform();
    std::size_t k = 0;
    while (k + 1 < o_.classes.size() && at >= o_.classes[k].share) at -= o_.classes[k++].share;
    r.bytes = o_.classes[k].bytes;
    r.host_ms = o_.host_base_ms + exponential(rng, o_.host_jitter_ms);
    r.io_ms = exponential(rng, o_.io_jitter_ms);
    r.compute_ms = o_.classes[k].compute_ms * std::exp(o_.noise_sigma * normal(rng));
    ++out_.arrived;
    ++window_arrived_;
    const auto index = static_cast<std::uint32_t>(requests_.size());
    requests_.push_back(r);
    if (pausing_ && o_.pause_mode != PauseMode::queue)
        ++out_.shed;
    else if (pausing_)
        waiting_.push_back(index);
    else
        enter_host(index);
    next_arrival_ = now_ + exponential(rng, 1 / o_.rates_per_s[arrival_state_]);
}

GPUSCHED_INLINE void HostSimulation::enter_host(std::uint32_t r) {
    const bool disturbed = t2_.on && root() == 0 && place_.cpus == control::CpuSet{};
    const double ms = requests_[r].host_ms + (disturbed ? requests_[r].io_ms : 0);
    host_.push({now_ + ms / 1000, r});
}

GPUSCHED_INLINE void HostSimulation::enter_pcie(std::uint32_t r) {
    if (pcie_.empty()) virtual_ = 0;  // or sums grow until small transfers are lost in rounding
    pcie_.push({virtual_ + requests_[r].bytes, r});
}

GPUSCHED_INLINE void HostSimulation::enter_compute(std::uint32_t r) {
    queue_.push_back(r);
    begin_service();
}

GPUSCHED_INLINE void HostSimulation::begin_service() {
    while (!queue_.empty() && compute_.size() < static_cast<std::size_t>(o_.servers)) {
        const auto r = queue_.front();
        queue_.pop_front();
        const double two =
            device_.profiles[static_cast<std::size_t>(std::max(0, device_.find("2g")))].sm_count;
        const double effective = sm(place_) / (1 + (t3_.on ? o_.beta * quota_ : 0));
        const double ms =
            requests_[r].compute_ms * (o_.serial_fraction + (1 - o_.serial_fraction) * two / effective);
        compute_.push({now_ + ms / 1000, r});
    }
}

GPUSCHED_INLINE void HostSimulation::finish(std::uint32_t r) {
    const double ms = (now_ - requests_[r].arrived) * 1000;
    done_ms_.push_back(ms);
    out_.missed += ms > o_.tau_ms;
    if (requests_[r].arrived < unsettled_from_) return;
    ++window_done_;
    window_missed_ += ms > o_.tau_ms;
    latencies_.record(ms);
}

GPUSCHED_INLINE void HostSimulation::end_change() {
    auto& f = seen_.feedback[0];
    f.finished = true;
    f.status = change_fails_ ? control::BackendStatus::insufficient_resources : control::BackendStatus::ok;
    if (!change_fails_) {
        layouts_[static_cast<std::size_t>(place_.gpu)].remove(place_.instance);
        layouts_[static_cast<std::size_t>(change_.after.gpu)].add(change_.after.instance);
        place_ = change_.after;
    }
    changing_ = pausing_ = false;
    change_ends_ = never;
    unsettled_from_ = now_;
    latencies_.clear();
    window_arrived_ = window_done_ = window_missed_ = 0;  // what the pause did is not the new place's doing
    for (const auto r : waiting_) enter_host(r);
    waiting_.clear();
}

GPUSCHED_INLINE void HostSimulation::act(const control::Action& a) {
    using control::ActionKind;
    switch (a.kind) {
    case ActionKind::throttle_io:
        limit_bytes_per_s_ = a.value * 1e6;
        ++out_.throttles;
        return;
    case ActionKind::release_io:
        limit_bytes_per_s_ = never;
        return;
    case ActionKind::set_quota:
        place_.quota_percent = a.after.quota_percent;
        if (o_.quota_live) quota_ = a.after.quota_percent / 100.0;
        ++out_.quota_changes;
        return;
    case ActionKind::pin:
        place_.cpus = a.after.cpus;
        return;
    case ActionKind::reconfigure:
        break;
    }
    const double length = std::max(1.0, o_.pause_s + o_.pause_sigma_s * normal(pause_rng_));
    change_fails_ = pause_rng_.chance(o_.failure_rate);
    change_ = a;
    change_ends_ = now_ + length;
    changing_ = true;
    pausing_ = !(o_.pause_mode == PauseMode::make_before_break && a.make_before_break);
    ++out_.structural_actions;
    out_.rollbacks += a.lever == control::Lever::rollback;
}

GPUSCHED_INLINE void HostSimulation::tick() {
    auto& t1 = seen_.tenants[0];
    t1.p50_ms = latencies_.quantile_ms(0.5);
    t1.p95_ms = latencies_.quantile_ms(0.95);
    t1.p99_ms = latencies_.quantile_ms(0.99);
    t1.p999_ms = latencies_.quantile_ms(0.999);
    t1.count = window_done_;
    t1.misses = window_missed_;
    t1.offered_per_s = static_cast<double>(window_arrived_) / o_.window_s;
    t1.completed_per_s = static_cast<double>(window_done_) / o_.window_s;
    t1.pcie_bytes_per_s = 0;
    t1.memory_used_mib = 0.9 * device_.profiles[options_.host.tenants[0].start.instance.profile].memory_mib;
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
    seen_.tenants[2].sm_active = t3_.on ? 0.9 * place_.quota_percent / 100 : 0;
    for (std::size_t g = 0; g < 2; ++g) seen_.gpus[g].layout = layouts_[g];
    seen_.time_s = now_;
    control::step(state_, seen_, options_, result_);
    if (audit_ != nullptr) control::append_audit_line(*audit_, seen_, state_, result_, hash_);
    seen_.feedback[0] = {};
    ++seen_.window;
    for (const auto& action : result_.actions) act(action);
    latencies_.advance();
    window_arrived_ = window_done_ = window_missed_ = 0;
    next_tick_ += o_.window_s;
}

GPUSCHED_INLINE HostRun HostSimulation::run() {
    for (;;) {
        const double host = host_.empty() ? never : host_.top().at;
        const double compute = compute_.empty() ? never : compute_.top().at;
        double pcie = never;
        if (!pcie_.empty()) pcie = now_ + std::max(0.0, pcie_.top().at - virtual_) / request_rate();
        const double first = std::min(
            {next_arrival_, next_state_, next_tick_, t2_.next, t3_.next, change_ends_, host, compute, pcie});
        if (first > o_.duration_s) break;
        progress(first);
        if (first == pcie) {
            const auto r = pcie_.top().request;
            pcie_.pop();
            enter_compute(r);
        } else if (first == compute) {
            const auto r = compute_.top().request;
            compute_.pop();
            finish(r);
            begin_service();
        } else if (first == host) {
            const auto r = host_.top().request;
            host_.pop();
            enter_pcie(r);
        } else if (first == next_arrival_) {
            arrive();
        } else if (first == next_state_) {
            arrival_state_ = 1 - arrival_state_;
            next_state_ = now_ + exponential(requests_rng_, o_.state_s[arrival_state_]);
            next_arrival_ = now_ + exponential(requests_rng_, 1 / o_.rates_per_s[arrival_state_]);
        } else if (first == t2_.next) {
            t2_.flip();
        } else if (first == t3_.next) {
            t3_.flip();
            if (t3_.on) quota_ = place_.quota_percent / 100.0;
        } else if (first == change_ends_) {
            end_change();
        } else {
            tick();
        }
    }
    progress(o_.duration_s);
    out_.completed = static_cast<std::int64_t>(done_ms_.size());
    const auto part = [](double a, std::int64_t b) { return b > 0 ? a / static_cast<double>(b) : 0; };
    out_.miss_rate = part(static_cast<double>(out_.missed + out_.shed), out_.completed + out_.shed);
    out_.miss_rate_completed = part(static_cast<double>(out_.missed), out_.completed);
    std::sort(done_ms_.begin(), done_ms_.end());
    const auto quantile = [&](double q) {
        if (done_ms_.empty()) return control::unknown_signal;
        const auto n = static_cast<double>(done_ms_.size());
        return done_ms_[static_cast<std::size_t>(std::clamp(std::ceil(q * n), 1.0, n)) - 1];
    };
    out_.p50_ms = quantile(0.5);
    out_.p95_ms = quantile(0.95);
    out_.p99_ms = quantile(0.99);
    out_.p999_ms = quantile(0.999);
    out_.structural_actions_per_hour = out_.structural_actions * 3600 / o_.duration_s;
    return out_;
}

}  // namespace gpusched::sim::detail
