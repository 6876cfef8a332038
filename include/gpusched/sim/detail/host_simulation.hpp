// One run of the host simulator.
#pragma once

#include <gpusched/control/audit.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/host.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
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

/// Something that is off at first, then on and off for Erlang-2 times.
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
    double arrived = 0, host_ms = 0, bytes = 0, compute_ms = 0, io_ms = 0;
};

/// Something that becomes due: at a time, or at a point of virtual time.
struct Due {
    double at = 0;
    std::uint32_t request = 0;
    bool operator>(const Due& other) const noexcept {
        return at != other.at ? at > other.at : request > other.request;
    }
};
using Heap = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

class HostSimulation {
  public:
    HostSimulation(const HostScenario& scenario, const control::ControllerFlags& flags, std::uint64_t seed,
                   std::string* audit);
    HostRun run();
    const control::ControllerOptions& options() const { return options_; }

  private:
    void arrive();
    void enter_host(std::uint32_t r);
    void enter_pcie(std::uint32_t r);
    void enter_compute(std::uint32_t r);
    void begin_service();
    void finish(std::uint32_t r);
    void progress(double until);
    double request_rate() const;
    double t2_rate(double unit) const;
    double t2_demand() const;
    void tick();
    void act(const control::Action& action);
    void end_change();
    std::size_t root() const {
        return static_cast<std::size_t>(options_.host.gpus[static_cast<std::size_t>(place_.gpu)].root);
    }
    double sm(const control::Configuration& c) const { return device_.profiles[c.instance.profile].sm_count; }

    const HostScenario& o_;
    const control::MigDevice& device_;
    control::ControllerOptions options_{};
    control::ControllerState state_{};
    control::Observation seen_{};
    control::StepResult result_{};
    control::WindowQuantiles latencies_{3};
    std::vector<control::MigLayout> layouts_{};

    Rng requests_rng_, pause_rng_, counter_rng_;
    Toggle t2_{}, t3_{};
    double now_ = 0, next_arrival_ = 0, next_state_ = 0, next_tick_ = 0;
    std::size_t arrival_state_ = 0;

    std::vector<Request> requests_{};
    std::vector<std::uint32_t> waiting_{};  // for the end of a pause
    Heap host_{}, pcie_{}, compute_{};
    std::deque<std::uint32_t> queue_{};
    double virtual_ = 0;  // bytes per request since the root was last idle

    control::Configuration place_{};
    double quota_ = 1;  // as it holds
    double limit_bytes_per_s_ = never;
    bool changing_ = false, pausing_ = false;
    control::Action change_{};
    double change_ends_ = never;
    bool change_fails_ = false;

    std::vector<double> done_ms_{};
    std::int64_t window_arrived_ = 0, window_done_ = 0, window_missed_ = 0;
    double unsettled_from_ = 0;  // latencies of requests before this are not for the controller
    HostRun out_{};
    std::string* audit_ = nullptr;
    std::uint64_t hash_ = 0;
};

}  // namespace gpusched::sim::detail
