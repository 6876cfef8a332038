// SPDX-License-Identifier: Apache-2.0
// The host simulator: one host event by event, runs over hosts and seeds, and queueing formulas.
#include "sim/host_layout.hpp"

#include <gpusched/config.hpp>
#include <gpusched/control/audit.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/simulate_host.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::sim {
namespace detail {

constexpr double never = std::numeric_limits<double>::infinity();

static double exponential(Rng& rng, double mean) { return -mean * std::log1p(-rng.uniform()); }
static double normal(Rng& rng) {
    const double radius = std::sqrt(-2 * std::log1p(-rng.uniform()));
    return radius * std::cos(6.283185307179586 * rng.uniform());
}

/// A tenant that is off at first, then on and off for Erlang-2 times.
struct Toggle {
    Rng rng{};
    double on_s = 0, off_s = 0, next = 0;
    bool on = false;

    void start() { next = period(); }
    void flip() {
        on = !on;
        next += period();
    }
    double period() {
        const double mean = (on ? on_s : off_s) / 2;
        return exponential(rng, mean) + exponential(rng, mean);
    }
};

struct Request {
    double arrived = 0, host_ms = 0, bytes = 0, compute_ms = 0, io_ms = 0, decode_ms = 0;
};

/// An event that is due at a time, or at a point of virtual time.
struct Due {
    double at = 0;
    std::uint32_t request = 0;
    bool operator>(const Due& other) const noexcept {
        return at != other.at ? at > other.at : request > other.request;
    }
};
using Heap = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

/// Counts of the requests of this window and the two before, including lost ones.
struct Served {
    std::array<std::int64_t, 3> all{}, late{};
    std::size_t at = 0;

    void count(bool is_late) {
        ++all[at];
        late[at] += is_late;
    }
    /// Returns true if their 99th percentile (by nearest rank) is late.
    [[nodiscard]] bool above() const {
        return late[0] + late[1] + late[2] > (all[0] + all[1] + all[2]) / 100;
    }
    void advance() {
        at = (at + 1) % all.size();
        all[at] = late[at] = 0;
    }
};

/// The tenants next to a protected one: T2 on its first root, T3 in its instance.
struct Trio {
    std::size_t root = 0;
    Toggle t2{}, t3{};
    double quota = 1;                  // the effective quota
    double limit_bytes_per_s = never;  // on T2's block I/O
};

/// A protected tenant: its requests in flight, its place, and its current change.
struct Service {
    std::size_t tenant = 0;  // of the host
    Trio* trio = nullptr;    // the trio of its client T3
    Rng requests_rng{}, pause_rng{};
    double next_arrival = 0, next_state = never;
    std::size_t arrival_state = 0;
    std::size_t next_request = 0;  // LLM mode: index into the trace
    double trace_shift_s = 0;      // LLM mode: from the trace's stretched times to now

    std::vector<std::uint32_t> waiting{};  // for the end of a pause
    Heap host{}, pcie{}, compute{}, decode{};
    std::deque<std::uint32_t> queue{};
    double virtual_time = 0;  // bytes per request since its transfers were last idle

    control::Configuration place{};
    bool changing = false, pausing = false, change_fails = false;
    control::Action change{};
    double change_ends = never;

    control::WindowQuantiles latencies{control::quantile_windows};
    Served served{};
    std::int64_t window_arrived = 0, window_done = 0, window_missed = 0;
    double unsettled_from = 0;  // the controller ignores latencies of earlier requests
};

/// Counts of the protected tenants so far, on all hosts: `run` without the figures that need all latencies
/// together.
struct HostTotals {
    HostRun run{};
    std::vector<double> done_ms{};
};

/// Returns the controller's options.
static control::ControllerOptions options_of(const HostScenario& scenario,
                                             const control::ControllerFlags& flags) {
    control::ControllerOptions out;
    out.host = host_of(scenario);
    out.flags = flags;
    out.window_s = scenario.controller.window_s;
    out.persistence = scenario.controller.persistence;
    out.dwell = scenario.controller.dwell;
    out.io_levels_mb_s = scenario.controller.io_levels_mb_s;
    out.quota_levels = scenario.controller.quota_levels;
    out.pause_s = scenario.pauses.mean_s;
    return out;
}

/// Simulates one host. Under the same seed, other hosts have other random numbers.
class HostSimulation {
  public:
    HostSimulation(const HostScenario& scenario, const control::ControllerFlags& flags, std::uint64_t seed,
                   std::int32_t host, HostTotals& totals, std::string* audit)
        : o_(scenario), device_(control::mig_device(scenario.layout.device)),
          options_(options_of(scenario, flags)), state_(control::initial_state(options_)),
          next_tick_(scenario.controller.window_s), out_(totals.run), done_ms_(totals.done_ms), audit_(audit),
          hash_(control::options_hash(options_)) {
        const auto all = host == 0 ? Rng(seed) : Rng(seed).split(1000 + static_cast<std::uint64_t>(host));
        counter_rng_ = all.split(2);
        const auto& h = options_.host;
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
    }
    HostSimulation(const HostSimulation&) = delete;  // services point to trios
    HostSimulation& operator=(const HostSimulation&) = delete;

    void run() {
        for (;;) {
            double first = next_tick_;
            for (const auto& t : trios_) first = std::min({first, t.t2.next, t.t3.next});
            Service* first_service = nullptr;
            for (auto& s : services_)
                if (const double at = first_event(s); at <= first) {
                    first = at;
                    first_service = &s;
                }
            if (first > o_.duration_s) break;
            // Must be computed before time advances: afterwards rounding changes the due time.
            const bool transferred = first_service != nullptr && pcie_due(*first_service) == first;
            progress(first);
            if (transferred) {
                const auto r = first_service->pcie.top().request;
                first_service->pcie.pop();
                enter_compute(*first_service, r);
            } else if (first_service != nullptr && handle(*first_service, first)) {
                continue;
            } else if (!toggle(first)) {
                tick();
            }
        }
        progress(o_.duration_s);
    }

  private:
    void begin(Service& s) {
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

    void next_arrival(Service& s) {
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
    Request draw(Service& s) {
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

    void arrive(Service& s) {
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

    double pcie_due(const Service& s) const {
        if (s.pcie.empty()) return never;
        return now_ + std::max(0.0, s.pcie.top().at - s.virtual_time) / request_rate(root(s));
    }

    double first_event(const Service& s) const {
        const auto top = [](const Heap& heap) { return heap.empty() ? never : heap.top().at; };
        return std::min({pcie_due(s), top(s.compute), top(s.host), top(s.decode), s.next_arrival,
                         s.next_state, s.change_ends});
    }

    /// Handles at most one event that is due at this time, transfers excluded. Returns false if this tenant
    /// has none.
    bool handle(Service& s, double first) {
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

    /// Switches at most one tenant that is due at this time. Returns false if there is none.
    bool toggle(double first) {
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

    double t2_demand(const Trio& t) const {
        if (!t.t2.on) return 0;
        return std::min(o_.t2.bytes_per_s, t.limit_bytes_per_s * o_.t2.bytes_per_io_byte);
    }

    /// Returns the rate of one request on a root: the r that solves n r + sum of min(demand, weight r) =
    /// capacity.
    double request_rate(std::size_t at) const {
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
        // A flow with a demand below its share gives the rest back. This changes the shares and may satisfy
        // the other flow.
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
    void progress(double until) {
        const double dt = until - now_;
        std::array<double, 16> rate{};
        std::array<bool, 16> busy{};
        for (const auto& s : services_) busy[root(s)] |= !s.pcie.empty();
        for (std::size_t r = 0; r < options_.host.roots.size(); ++r)
            if (busy[r]) rate[r] = request_rate(r);
        for (const auto& t : trios_) {
            const double share = busy[t.root] ? o_.t2.weight * rate[t.root] : never;
            if (t.t2.on) out_.t2_bytes += dt * std::min(t2_demand(t), share);
            if (t.t3.on) out_.t3_work_s += dt * t.quota;
        }
        for (auto& s : services_) {
            if (!s.pcie.empty()) s.virtual_time += dt * rate[root(s)];
            out_.slice_s += dt * device_.profiles[s.place.instance.profile].compute_slices;
        }
        now_ = until;
    }

    /// Returns true if block I/O on its NUMA node disturbs the tenant: a T2 there is busy, and the tenant is
    /// not pinned.
    bool disturbed(const Service& s) const {
        const auto& roots = options_.host.roots;
        return s.place.cpus == control::CpuSet{} &&
               std::any_of(trios_.begin(), trios_.end(), [&](const Trio& t) {
                   return t.t2.on && roots[t.root].numa == roots[root(s)].numa;
               });
    }

    void enter_host(Service& s, std::uint32_t r) {
        const double ms = requests_[r].host_ms + (disturbed(s) ? requests_[r].io_ms : 0);
        s.host.push({now_ + ms / 1000, r});
    }

    void enter_pcie(Service& s, std::uint32_t r) {
        if (s.pcie.empty()) s.virtual_time = 0;  // otherwise sums grow until rounding loses small transfers
        s.pcie.push({s.virtual_time + requests_[r].bytes, r});
    }

    void enter_compute(Service& s, std::uint32_t r) {
        s.queue.push_back(r);
        begin_service(s);
    }

    void begin_service(Service& s) {
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
    void finish(Service& s, std::uint32_t r) {
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

    void end_change(Service& s) {
        auto& f = seen_.feedback[s.tenant];
        f.finished = true;
        f.status =
            s.change_fails ? control::BackendStatus::insufficient_resources : control::BackendStatus::ok;
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

    void act(const control::Action& a) {
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
    void see(Service& s) {
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

    void tick() {
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

    bool llm() const { return !o_.llm.requests.empty(); }
    Service& service_of(std::int32_t tenant) { return services_[static_cast<std::size_t>(tenant) / 3]; }
    std::size_t root(const Service& s) const {
        return static_cast<std::size_t>(options_.host.gpus[static_cast<std::size_t>(s.place.gpu)].root);
    }
    double sm(const control::Configuration& c) const { return device_.profiles[c.instance.profile].sm_count; }

    const HostScenario& o_;
    const control::MigDevice& device_;
    control::ControllerOptions options_;
    control::ControllerState state_;
    control::Observation seen_{};
    control::StepResult result_{};
    std::vector<control::MigLayout> layouts_{};
    std::vector<Trio> trios_{};
    std::vector<Service> services_{};

    Rng counter_rng_{0};
    double now_ = 0, next_tick_;
    double trace_stretch_ = 1;
    std::vector<Request> requests_{};

    HostRun& out_;
    std::vector<double>& done_ms_;
    std::string* audit_;
    std::uint64_t hash_;
};

/// Computes all figures after the last event.
static HostRun result_of(const HostScenario& scenario, HostTotals totals) {
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

}  // namespace detail

GPUSCHED_EXPORT HostRun run_host(const HostScenario& scenario, const control::ControllerFlags& flags,
                                 std::uint64_t seed, std::string* audit) {
    validate(scenario);
    detail::HostTotals totals;
    totals.run.services = scenario.layout.hosts * static_cast<std::int32_t>(detail::services_of(scenario));
    for (std::int32_t h = 0; h < scenario.layout.hosts; ++h)
        detail::HostSimulation(scenario, flags, seed, h, totals, h == 0 ? audit : nullptr).run();
    return detail::result_of(scenario, std::move(totals));
}

GPUSCHED_EXPORT control::ControllerOptions host_options(const HostScenario& scenario,
                                                        const control::ControllerFlags& flags) {
    validate(scenario);
    auto options = detail::options_of(scenario, flags);
    control::validate(options);
    return options;
}

GPUSCHED_EXPORT HostResult simulate_host(const HostScenario& scenario, control::Variant variant,
                                         std::span<const std::uint64_t> seeds) {
    constexpr auto unmanaged = control::Variant::static_configuration;
    const auto flags = control::variant_flags(variant);
    HostResult out;
    for (const auto seed : seeds) {
        const auto base = run_host(scenario, control::variant_flags(unmanaged), seed);
        const auto run = variant == unmanaged ? base : run_host(scenario, flags, seed);
        const auto ratio = [](double a, double b) { return b > 0 ? a / b : 1.0; };
        const double t1 = ratio(static_cast<double>(run.completed), static_cast<double>(base.completed));
        out.throughput.push_back(t1);
        out.system_throughput.push_back(
            (t1 + ratio(run.t2_bytes, base.t2_bytes) + ratio(run.t3_work_s, base.t3_work_s)) / 3);
        out.runs.push_back(run);
    }
    return out;
}

GPUSCHED_EXPORT double kingman_wait(double rho, double ca2, double cs2, double mean_service) {
    Problems problems;
    check_range(problems, "rho", rho, 0, 1);
    check_range(problems, "ca2", ca2, 0, 1e6);
    check_range(problems, "cs2", cs2, 0, 1e6);
    check_range(problems, "mean_service", mean_service, 0, double(largest_quantity));
    problems.throw_if_any();
    if (rho == 1) return std::numeric_limits<double>::infinity();
    return rho / (1 - rho) * (ca2 + cs2) / 2 * mean_service;
}

GPUSCHED_EXPORT bool is_stable(std::span<const double> demand, std::span<const double> throttle,
                               double capacity, double arrival_rate, double service_rate) {
    Problems problems;
    if (demand.size() != throttle.size())
        problems.add(bad_value("throttle", number_text(throttle.size()), "as many as demands"));
    for (const double d : demand) check_at_least(problems, "demand", d, 0);
    for (const double t : throttle) check_at_least(problems, "throttle", t, 0);
    for (const double x : {capacity, arrival_rate, service_rate})
        check_at_least(problems, "capacity, arrival_rate, service_rate", x, 0);
    problems.throw_if_any();
    double sum = 0;
    for (std::size_t i = 0; i < demand.size(); ++i) sum += std::min(demand[i], throttle[i]);
    return sum < capacity && arrival_rate < service_rate;
}

}  // namespace gpusched::sim
