// SPDX-License-Identifier: Apache-2.0
// The state changes of the host simulator: transfers, compute, structural changes and the controller's view.
#include "sim/host_simulation.hpp"

#include <algorithm>
#include <array>

namespace gpusched::sim::detail {

HostSimulation::HostSimulation(const HostScenario& scenario, const control::ControllerFlags& flags,
                               std::uint64_t seed, std::int32_t host, HostTotals& totals, std::string* audit)
    : o_(scenario), device_(control::mig_device(scenario.layout.device)), out_(totals.run),
      done_ms_(totals.done_ms) {
    const auto all = host == 0 ? Rng(seed) : Rng(seed).split(1000 + static_cast<std::uint64_t>(host));
    counter_rng_ = all.split(2);
    options_.host = host_of(o_);
    const auto& h = options_.host;
    options_.flags = flags;
    options_.window_s = o_.controller.window_s;
    options_.persistence = o_.controller.persistence;
    options_.dwell = o_.controller.dwell;
    options_.io_levels_mb_s = o_.controller.io_levels_mb_s;
    options_.quota_levels = o_.controller.quota_levels;
    options_.pause_s = o_.pauses.mean_s;
    state_ = control::initial_state(options_);
    layouts_ = state_.layouts;
    if (o_.layout.neighbours) add_neighbours(device_, layouts_);
    seen_.tenants.resize(h.tenants.size());
    seen_.feedback.resize(h.tenants.size());
    seen_.roots.resize(h.roots.size());
    seen_.gpus.resize(h.gpus.size());
    seen_.numa_io_bytes_per_s.assign(2, 0);
    seen_.irq_per_s.assign(h.core_numa.size(), 100);
    trios_.resize(static_cast<std::size_t>(o_.layout.trios));
    for (std::size_t k = 0; k < trios_.size(); ++k) {
        auto& t = trios_[k];
        t.root = k;
        t.t2 = {.rng = all.split(16 * k + 3), .on_s = o_.t2.on_s, .off_s = o_.t2.off_s};
        t.t3 = {.rng = all.split(16 * k + 4), .on_s = o_.t3.on_s, .off_s = o_.t3.off_s};
        t.t2.start();
        t.t3.start();
    }
    if (llm()) {
        const auto& last = o_.llm.requests.back();
        // Gives the gap before the trace repeats the mean length.
        if (last.time_s > 0)
            trace_stretch_ =
                static_cast<double>(o_.llm.requests.size() - 1) / o_.llm.requests_per_s / last.time_s;
    }
    services_.resize(services_of(o_));
    for (std::size_t k = 0; k < services_.size(); ++k) {
        auto& s = services_[k];
        s.tenant = 3 * k;
        const bool has_client = k < trios_.size();
        s.requests_rng = all.split(has_client ? 16 * k : 5);
        s.pause_rng = all.split(has_client ? 16 * k + 1 : 6);
        s.place = h.tenants[s.tenant].start;
        if (has_client) {
            s.trio = &trios_[k];
            s.trio->quota = s.place.quota_percent / 100.0;
        }
        begin(s);
    }
    next_tick_ = o_.controller.window_s;
    audit_ = audit;
    hash_ = control::options_hash(options_);
}

double HostSimulation::t2_demand(const Trio& t) const {
    if (!t.t2.on) return 0;
    return std::min(o_.t2.bytes_per_s, t.limit_bytes_per_s * o_.t2.bytes_per_io_byte);
}

double HostSimulation::t2_rate(const Trio& t, double unit) const {
    return std::min(t2_demand(t), o_.t2.weight * unit);
}

/// Returns the rate of one request on a root: the r that solves n r + sum of min(demand, weight r) =
/// capacity.
double HostSimulation::request_rate(std::size_t at) const {
    std::size_t n = 0;
    for (const auto& s : services_) n += root(s) == at ? s.pcie.size() : 0;
    const double background = o_.layout.background_weight[at];
    struct Flow {
        double weight = 0, demand = 0;
    };
    std::array<Flow, 2> flows{{{background, background * o_.layout.root_bytes_per_s}, {}}};
    for (const auto& t : trios_)
        if (t.root == at) flows[1] = {o_.t2.weight, t2_demand(t)};
    double capacity = o_.layout.root_bytes_per_s, weights = static_cast<double>(n);
    for (const auto& f : flows) weights += f.weight;
    // A flow with a demand below its share gives the rest back. This changes the shares and may satisfy the
    // other flow.
    for (int pass = 0; pass < 2; ++pass)
        for (auto& f : flows)
            if (f.weight > 0 && f.demand <= f.weight * capacity / weights) {
                capacity -= f.demand;
                weights -= f.weight;
                f.weight = 0;
            }
    return capacity / weights;
}

/// Advances the time; rates are constant until then.
void HostSimulation::progress(double until) {
    const double dt = until - now_;
    std::array<double, 16> rate{};
    std::array<bool, 16> busy{};
    for (const auto& s : services_) busy[root(s)] |= !s.pcie.empty();
    for (std::size_t r = 0; r < options_.host.roots.size(); ++r)
        if (busy[r]) rate[r] = request_rate(r);
    for (const auto& t : trios_) {
        if (t.t2.on) out_.t2_bytes += dt * (busy[t.root] ? t2_rate(t, rate[t.root]) : t2_demand(t));
        if (t.t3.on) out_.t3_work_s += dt * t.quota;
    }
    for (auto& s : services_) {
        if (!s.pcie.empty()) s.virtual_time += dt * rate[root(s)];
        out_.slice_s += dt * device_.profiles[s.place.instance.profile].compute_slices;
    }
    now_ = until;
}

/// Returns true if block I/O on its NUMA node disturbs the tenant: a T2 there is busy, and the tenant is not
/// pinned.
bool HostSimulation::disturbed(const Service& s) const {
    const auto& roots = options_.host.roots;
    return s.place.cpus == control::CpuSet{} && std::any_of(trios_.begin(), trios_.end(), [&](const Trio& t) {
               return t.t2.on && roots[t.root].numa == roots[root(s)].numa;
           });
}

void HostSimulation::enter_host(Service& s, std::uint32_t r) {
    const double ms = requests_[r].host_ms + (disturbed(s) ? requests_[r].io_ms : 0);
    s.host.push({now_ + ms / 1000, r});
}

void HostSimulation::enter_pcie(Service& s, std::uint32_t r) {
    if (s.pcie.empty()) s.virtual_time = 0;  // otherwise sums grow until rounding loses small transfers
    s.pcie.push({s.virtual_time + requests_[r].bytes, r});
}

void HostSimulation::enter_compute(Service& s, std::uint32_t r) {
    s.queue.push_back(r);
    begin_service(s);
}

void HostSimulation::begin_service(Service& s) {
    while (!s.queue.empty() && s.compute.size() < static_cast<std::size_t>(o_.requests.servers)) {
        const auto r = s.queue.front();
        s.queue.pop_front();
        const double two =
            device_.profiles[static_cast<std::size_t>(std::max(0, device_.find("2g")))].sm_count;
        const double effective =
            sm(s.place) / (1 + (s.trio != nullptr && s.trio->t3.on ? o_.t3.beta * s.trio->quota : 0));
        const double factor =
            o_.requests.serial_fraction + (1 - o_.requests.serial_fraction) * two / effective;
        const double decoding = 1 + o_.llm.decode_slows * static_cast<double>(s.decode.size());
        s.compute.push({now_ + requests_[r].compute_ms * factor * decoding / 1000, r});
        requests_[r].decode_ms *= factor;
    }
}

/// Ends the compute stage and reports the latency to the controller; in LLM mode this is the first token.
void HostSimulation::finish(Service& s, std::uint32_t r) {
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

void HostSimulation::end_change(Service& s) {
    auto& f = seen_.feedback[s.tenant];
    f.finished = true;
    f.status = s.change_fails ? control::BackendStatus::insufficient_resources : control::BackendStatus::ok;
    if (!s.change_fails) {
        layouts_[static_cast<std::size_t>(s.place.gpu)].remove(s.place.instance);
        layouts_[static_cast<std::size_t>(s.change.after.gpu)].add(s.change.after.instance);
        s.place = s.change.after;
        // A client that moves along restarts under the quota of the change.
        if (s.trio != nullptr && s.change.before.quota_percent != s.place.quota_percent)
            s.trio->quota = s.place.quota_percent / 100.0;
    }
    s.changing = s.pausing = false;
    s.change_ends = never;
    s.unsettled_from = now_;
    s.latencies.clear();
    // The new place does not count events of the pause.
    s.window_arrived = s.window_done = s.window_missed = 0;
    for (const auto r : s.waiting) enter_host(s, r);
    s.waiting.clear();
}

void HostSimulation::act(const control::Action& a) {
    using control::ActionKind;
    auto& s = service_of(a.tenant);
    switch (a.kind) {
    case ActionKind::throttle_io:
        trios_[static_cast<std::size_t>(a.target) / 3].limit_bytes_per_s = a.value * 1e6;
        ++out_.throttles;
        return;
    case ActionKind::release_io:
        trios_[static_cast<std::size_t>(a.target) / 3].limit_bytes_per_s = never;
        return;
    case ActionKind::set_quota:
        s.place.quota_percent = a.after.quota_percent;
        if (o_.t3.quota_live && s.trio != nullptr) s.trio->quota = a.after.quota_percent / 100.0;
        ++out_.quota_changes;
        return;
    case ActionKind::pin:
        s.place.cpus = a.after.cpus;
        return;
    case ActionKind::reconfigure:
        break;
    }
    const double length = std::max(1.0, o_.pauses.mean_s + o_.pauses.sigma_s * normal(s.pause_rng));
    s.change_fails = s.pause_rng.chance(o_.faults.failure_rate);
    s.change = a;
    s.change_ends = now_ + length;
    s.changing = true;
    s.pausing = !(o_.pauses.mode == PauseMode::make_before_break && a.make_before_break);
    ++out_.structural_actions;
    out_.quota_changes += a.before.quota_percent != a.after.quota_percent;
    out_.rollbacks += a.lever == control::Lever::rollback;
}

/// Updates the controller's view of a protected tenant.
void HostSimulation::see(Service& s) {
    auto& x = seen_.tenants[s.tenant];
    x.p50_ms = s.latencies.quantile_ms(0.5);
    x.p95_ms = s.latencies.quantile_ms(0.95);
    x.p99_ms = s.latencies.quantile_ms(0.99);
    x.p999_ms = s.latencies.quantile_ms(0.999);
    if (llm()) x.ttft_p99_ms = x.p99_ms;
    if (x.p99_ms > o_.tau_ms)
        out_.excess_ms += (x.p99_ms - o_.tau_ms) * o_.controller.window_s / o_.duration_s / out_.services;
    if (s.served.above() || !s.waiting.empty()) out_.violation_s += o_.controller.window_s;
    s.served.advance();
    x.count = s.window_done;
    x.misses = s.window_missed;
    x.offered_per_s = static_cast<double>(s.window_arrived) / o_.controller.window_s;
    x.completed_per_s = static_cast<double>(s.window_done) / o_.controller.window_s;
    x.pcie_bytes_per_s = 0;  // the counters below already belong to others
    x.memory_used_mib =
        0.9 * device_.profiles[options_.host.tenants[s.tenant].start.instance.profile].memory_mib;
    s.latencies.advance();
    s.window_arrived = s.window_done = s.window_missed = 0;
}

void HostSimulation::tick() {
    for (auto& s : services_) see(s);
    const auto counter = [&](double bytes) {
        const double noise = std::exp(std::max(0.0, o_.faults.counter_noise) * normal(counter_rng_));
        return o_.faults.counter_noise < 0 ? control::unknown_signal : bytes * noise;
    };
    const auto& h = options_.host;
    std::fill(seen_.numa_io_bytes_per_s.begin(), seen_.numa_io_bytes_per_s.end(), 0);
    for (std::size_t r = 0; r < h.roots.size(); ++r) {
        const double demand = r < trios_.size() ? t2_demand(trios_[r]) : 0;
        seen_.roots[r].bytes_per_s =
            counter(std::min(o_.layout.root_bytes_per_s,
                             o_.layout.background_weight[r] * o_.layout.root_bytes_per_s + demand));
    }
    for (std::size_t k = 0; k < trios_.size(); ++k) {
        auto& t2 = seen_.tenants[3 * k + 1];
        const double demand = t2_demand(trios_[k]);
        t2.pcie_bytes_per_s = o_.faults.counter_noise < 0 ? control::unknown_signal : demand;
        t2.io_bytes_per_s = demand / o_.t2.bytes_per_io_byte;
        t2.pcie_attribution =
            o_.faults.counter_noise < 0 ? control::Attribution::unknown : control::Attribution::measured;
        t2.io_attribution = control::Attribution::measured;
        seen_.numa_io_bytes_per_s[static_cast<std::size_t>(h.roots[k].numa)] += t2.io_bytes_per_s;
        seen_.tenants[3 * k + 2].sm_active =
            trios_[k].t3.on ? 0.9 * services_[k].place.quota_percent / 100 : 0;
    }
    for (std::size_t g = 0; g < layouts_.size(); ++g) seen_.gpus[g].layout = layouts_[g];
    seen_.time_s = now_;
    control::step(state_, seen_, options_, result_);
    if (audit_ != nullptr) control::append_audit_line(*audit_, seen_, state_, result_, hash_);
    for (auto& f : seen_.feedback) f = {};
    ++seen_.window;
    for (const auto& action : result_.actions) act(action);
    next_tick_ += o_.controller.window_s;
}

}  // namespace gpusched::sim::detail
