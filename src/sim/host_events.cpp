// SPDX-License-Identifier: Apache-2.0
// The events of the host simulator: arrivals, stages of requests, toggles and the main loop.
#include "sim/host_simulation.hpp"

#include <algorithm>

namespace gpusched::sim::detail {

void HostSimulation::begin(Service& s) {
    auto& rng = s.requests_rng;
    if (llm()) {
        s.next_request = static_cast<std::size_t>(rng.below(o_.llm.requests.size()));
        s.trace_shift_s = -trace_stretch_ * o_.llm.requests[s.next_request].time_s;
        s.next_arrival = 0;
        return;
    }
    s.next_state = exponential(rng, o_.requests.state_s[0]);
    s.next_arrival = exponential(rng, 1 / o_.requests.mmpp_rates[0]);
}

void HostSimulation::next_arrival(Service& s) {
    if (!llm()) {
        s.next_arrival = now_ + exponential(s.requests_rng, 1 / o_.requests.mmpp_rates[s.arrival_state]);
        return;
    }
    if (++s.next_request == o_.llm.requests.size()) {
        s.next_request = 0;
        s.trace_shift_s += static_cast<double>(o_.llm.requests.size()) / o_.llm.requests_per_s;
    }
    s.next_arrival =
        std::max(now_, s.trace_shift_s + trace_stretch_ * o_.llm.requests[s.next_request].time_s);
}

/// Draws a request. The number of random numbers does not depend on the controller's actions.
Request HostSimulation::draw(Service& s) {
    auto& rng = s.requests_rng;
    Request r;
    r.arrived = now_;
    double at = rng.uniform();
    std::size_t k = 0;
    while (k + 1 < o_.requests.classes.size() && at >= o_.requests.classes[k].share)
        at -= o_.requests.classes[k++].share;
    double compute_ms = o_.requests.classes[k].compute_ms;
    r.bytes = o_.requests.classes[k].bytes;
    if (llm()) {
        const auto& tokens = o_.llm.requests[s.next_request];
        r.bytes = o_.llm.prompt_bytes_per_token * tokens.prompt_tokens;
        compute_ms = o_.llm.prefill_ms + o_.llm.prefill_ms_per_token * tokens.prompt_tokens;
        r.decode_ms = o_.llm.decode_ms_per_token * tokens.output_tokens;
    }
    r.host_ms = o_.requests.host_base_ms + exponential(rng, o_.requests.host_jitter_ms);
    r.io_ms = exponential(rng, o_.requests.io_jitter_ms);
    r.compute_ms = compute_ms * std::exp(o_.requests.noise_sigma * normal(rng));
    return r;
}

void HostSimulation::arrive(Service& s) {
    ++out_.arrived;
    ++s.window_arrived;
    const auto index = static_cast<std::uint32_t>(requests_.size());
    requests_.push_back(draw(s));
    if (s.pausing && o_.pauses.mode != PauseMode::queue) {
        ++out_.shed;
        s.served.count(true);
    } else if (s.pausing) {
        s.waiting.push_back(index);
    } else {
        enter_host(s, index);
    }
    next_arrival(s);
}

double HostSimulation::pcie_due(const Service& s) const {
    if (s.pcie.empty()) return never;
    return now_ + std::max(0.0, s.pcie.top().at - s.virtual_time) / request_rate(root(s));
}

double HostSimulation::first_event(const Service& s) const {
    const auto top = [](const Heap& heap) { return heap.empty() ? never : heap.top().at; };
    return std::min({pcie_due(s), top(s.compute), top(s.host), top(s.decode), s.next_arrival, s.next_state,
                     s.change_ends});
}

/// Handles at most one event that is due at this time, transfers excluded. Returns false if this tenant has
/// none.
bool HostSimulation::handle(Service& s, double first) {
    const auto due = [first](const Heap& heap) { return !heap.empty() && heap.top().at == first; };
    const auto pop = [](Heap& heap) {
        const auto r = heap.top().request;
        heap.pop();
        return r;
    };
    if (due(s.compute)) {
        finish(s, pop(s.compute));
        begin_service(s);
    } else if (due(s.host)) {
        enter_pcie(s, pop(s.host));
    } else if (due(s.decode)) {
        pop(s.decode);
        ++out_.decoded;
    } else if (s.next_arrival == first) {
        arrive(s);
    } else if (s.next_state == first) {
        s.arrival_state = 1 - s.arrival_state;
        s.next_state = now_ + exponential(s.requests_rng, o_.requests.state_s[s.arrival_state]);
        s.next_arrival = now_ + exponential(s.requests_rng, 1 / o_.requests.mmpp_rates[s.arrival_state]);
    } else if (s.change_ends == first) {
        end_change(s);
    } else {
        return false;
    }
    return true;
}

void HostSimulation::run() {
    for (;;) {
        double first = next_tick_;
        for (const auto& t : trios_) first = std::min({first, t.t2.next, t.t3.next});
        Service* whose = nullptr;
        for (auto& s : services_)
            if (const double at = first_event(s); at <= first) {
                first = at;
                whose = &s;
            }
        if (first > o_.duration_s) break;
        // Must be computed before time advances: afterwards rounding changes the due time.
        const bool transferred = whose != nullptr && pcie_due(*whose) == first;
        progress(first);
        if (transferred) {
            const auto r = whose->pcie.top().request;
            whose->pcie.pop();
            enter_compute(*whose, r);
        } else if (whose != nullptr && handle(*whose, first)) {
            continue;
        } else if (!toggle(first)) {
            tick();
        }
    }
    progress(o_.duration_s);
}

/// Switches at most one tenant that is due at this time. Returns false if there is none.
bool HostSimulation::toggle(double first) {
    for (auto& t : trios_)
        if (first == t.t2.next) return t.t2.flip(), true;
    for (auto& s : services_) {
        if (s.trio == nullptr || first != s.trio->t3.next) continue;
        s.trio->t3.flip();
        if (s.trio->t3.on) s.trio->quota = s.place.quota_percent / 100.0;
        return true;
    }
    return false;
}

HostRun result_of(const HostScenario& scenario, HostTotals totals) {
    auto& out = totals.run;
    auto& ms = totals.done_ms;
    const auto done = static_cast<std::int64_t>(ms.size());
    out.completed = done;
    const auto part = [](double a, std::int64_t b) { return b > 0 ? a / static_cast<double>(b) : 0; };
    out.miss_rate = part(static_cast<double>(out.missed + out.shed), done + out.shed);
    out.miss_rate_completed = part(static_cast<double>(out.missed), done);
    std::sort(ms.begin(), ms.end());
    const auto quantile = [&](double q) {
        if (ms.empty()) return control::unknown_signal;
        const auto n = static_cast<double>(ms.size());
        return ms[static_cast<std::size_t>(std::clamp(std::ceil(q * n), 1.0, n)) - 1];
    };
    out.p50_ms = quantile(0.5);
    out.p95_ms = quantile(0.95);
    out.p99_ms = quantile(0.99);
    out.p999_ms = quantile(0.999);
    out.structural_actions_per_hour = out.structural_actions * 3600 / scenario.duration_s;
    return out;
}

}  // namespace gpusched::sim::detail
