// SPDX-License-Identifier: Apache-2.0
// One run of the host simulator.
#pragma once

#include "sim/host_layout.hpp"

#include <gpusched/control/audit.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/simulate_host.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

namespace gpusched::sim::detail {

inline constexpr double never = std::numeric_limits<double>::infinity();

inline double exponential(Rng& rng, double mean) { return -mean * std::log1p(-rng.uniform()); }
inline double normal(Rng& rng) {
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

/// Computes all figures after the last event.
[[nodiscard]] HostRun result_of(const HostScenario& scenario, HostTotals totals);

/// Simulates one host. Under the same seed, other hosts have other random numbers.
class HostSimulation {
  public:
    HostSimulation(const HostScenario& scenario, const control::ControllerFlags& flags, std::uint64_t seed,
                   std::int32_t host, HostTotals& totals, std::string* audit);
    HostSimulation(const HostSimulation&) = delete;  // services point to trios
    HostSimulation& operator=(const HostSimulation&) = delete;
    void run();
    const control::ControllerOptions& options() const { return options_; }

  private:
    void begin(Service& s);
    void next_arrival(Service& s);
    void arrive(Service& s);
    Request draw(Service& s);
    void enter_host(Service& s, std::uint32_t r);
    void enter_pcie(Service& s, std::uint32_t r);
    void enter_compute(Service& s, std::uint32_t r);
    void begin_service(Service& s);
    void finish(Service& s, std::uint32_t r);
    double first_event(const Service& s) const;
    bool handle(Service& s, double first);
    bool toggle(double first);
    double pcie_due(const Service& s) const;
    void progress(double until);
    double request_rate(std::size_t root) const;
    double t2_rate(const Trio& trio, double unit) const;
    double t2_demand(const Trio& trio) const;
    bool disturbed(const Service& s) const;
    void see(Service& s);
    void tick();
    void act(const control::Action& action);
    void end_change(Service& s);
    bool llm() const { return !o_.llm.requests.empty(); }
    Service& service_of(std::int32_t tenant) { return services_[static_cast<std::size_t>(tenant) / 3]; }
    std::size_t root(const Service& s) const {
        return static_cast<std::size_t>(options_.host.gpus[static_cast<std::size_t>(s.place.gpu)].root);
    }
    double sm(const control::Configuration& c) const { return device_.profiles[c.instance.profile].sm_count; }

    const HostScenario& o_;
    const control::MigDevice& device_;
    control::ControllerOptions options_{};
    control::ControllerState state_{};
    control::Observation seen_{};
    control::StepResult result_{};
    std::vector<control::MigLayout> layouts_{};
    std::vector<Trio> trios_{};
    std::vector<Service> services_{};

    Rng counter_rng_{0};
    double now_ = 0, next_tick_ = 0;
    double trace_stretch_ = 1;
    std::vector<Request> requests_{};

    HostRun& out_;
    std::vector<double>& done_ms_;
    std::string* audit_ = nullptr;
    std::uint64_t hash_ = 0;
};

}  // namespace gpusched::sim::detail
