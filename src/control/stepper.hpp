// SPDX-License-Identifier: Apache-2.0
// One step of the controller, as an object that lives only for the step.
#pragma once

#include <gpusched/control/step.hpp>

#include <algorithm>
#include <optional>
#include <span>

namespace gpusched::control::detail {

/// Number of windows in a row with fresh signals after which HOLD ends.
inline constexpr int windows_to_trust = 10;

/// A lease ends in the window nearest to its end: up to this part of a window early. The value is below one,
/// so that slightly late windows do not end the lease one window too soon.
inline constexpr double lease_early_windows = 0.99;

/// A validation without enough comparable windows is abandoned after this many times its length.
inline constexpr int most_validations = 4;

/// Number of dwells for which a change that made the tail worse is blocked.
inline constexpr int blocked_dwells = 4;

/// Maximum of the SUSPECT counter, in multiples of the persistence.
inline constexpr int most_persistences = 4;

/// Returns true if both are in the same instance; quota and cores may differ.
inline bool same_instance(const Configuration& a, const Configuration& b) {
    return a.gpu == b.gpu && a.instance == b.instance;
}

/// A lever that can be used, and whether its gate is open.
struct Choice {
    Lever lever = Lever::none;
    Row row = Row::remark;
    bool open = false;
    std::int32_t target = -1;
    std::int32_t value = 0;
    Configuration after{};
    bool make_before_break = false;
    double loss = 0;
    double worth = 0;  ///< expected decrease in the part of requests that miss
};

class Stepper {
  public:
    Stepper(ControllerState& state, const Observation& seen, const ControllerOptions& options, ScoreRef score,
            StepResult& result)
        : s_(state), seen_(seen), o_(options), score_(score), out_(result) {}

    void run();

  private:
    // Time and signals
    bool tick();
    void read(std::size_t i, bool in_time);
    void note_outage(std::size_t i);
    double tail_ms(std::size_t i) const;
    double pcie_pressure(std::size_t i, std::size_t gpu) const;
    void read_pressure(std::size_t i, Pressure& pressure, const Configuration& where);
    void end_episode(TenantState& t);
    bool layout_as_known(const TenantState& t) const;

    // State machine
    void expire_lease(std::size_t i);
    void advance(std::size_t i);
    void take_feedback(std::size_t i);
    void take_guard(std::size_t i);
    void hold_if_needed(std::size_t i);
    void validate_window(std::size_t i);
    void verdict(std::size_t i);
    void consider_relax(std::size_t i);
    void resume(std::size_t i);
    void disable(std::size_t i);
    void to(std::size_t i, Phase phase, Row row, const char* reason, double loss = 0);
    void remark(std::size_t i, const char* reason, Row row = Row::remark);

    // Learning
    void look_ahead();
    /// The memory is half an hour, the time for half of the hour's budget; a shorter memory moves back too
    /// soon.
    double outlook_fall() const { return std::min(0.1, 2 * o_.window_s / o_.hour_s); }
    void learn(std::size_t i);
    /// Returns the activity of the busiest client in the instance as it would be without a quota, which may
    /// exceed 1; NaN if unknown.
    double client_activity(std::size_t i, bool with_dram) const;
    Exposure exposure(std::size_t i, const Configuration& c, double pcie, double io, double client) const;
    Exposure exposure_now(std::size_t i) const;
    Exposure exposure_ahead(std::size_t i, const Configuration& c) const;
    double misses_ahead(std::size_t i, const Configuration& c) const;
    Choice best_place(std::size_t i);
    Choice best_quota(std::size_t i, Cause cause);
    bool opens_soon(std::size_t i, const Choice& choice) const;

    // Levers
    void diagnose(std::size_t i);
    void suspect(std::size_t i, bool counted);
    void diagnose_by_model(std::size_t i);
    /// Uses the first lever with an open gate. Without one, gives up for now.
    void use_first(std::size_t i, std::span<const Choice> choices);
    Cause cause_of(const TenantState& t) const;
    Choice throttle(std::size_t i, Cause cause, bool structural_left);
    Choice quota(std::size_t i, Cause cause);
    Choice pin(std::size_t i, Cause cause);
    Choice move(std::size_t i);
    Choice enlarge(std::size_t i);
    bool any_gate_open(std::size_t i) const;
    bool guard_gate(const TenantState& t) const;
    bool any_frozen() const;
    bool structural_gate(std::size_t i, const Configuration& after, bool disjoint, double& loss) const;
    bool touchable(std::size_t i) const;
    bool room() const { return out_.wished.size() < 2 && !acted_; }
    void act(std::size_t i, const Choice& choice);
    void reconfigure(std::size_t i, const Choice& choice);
    bool blocked(const TenantState& t, const Configuration& to) const;
    /// Returns why this placement with this score is ruled out, independent of the others.
    std::optional<CandidateVerdict> ruled_out(const TenantState& t, const Configuration& to,
                                              double score) const;
    void push(const Action& action);
    MigLayout rest_of(std::size_t i, std::size_t gpu) const;
    Configuration placed(std::size_t i, std::size_t gpu, MigInstance instance, bool pinned) const;
    /// The same with the additions of an upgrade: cores, and a stricter quota if guards are joined.
    Configuration upgraded(std::size_t i, std::size_t gpu, MigInstance instance) const;
    /// Returns the last present MPS client in the tenant's instance; -1 if there is none.
    std::int32_t client_in_instance(std::size_t i) const;
    /// Returns the next level below the client's quota; 0 if there is none.
    std::int32_t stricter_quota(std::size_t i) const;
    /// Returns whether the loss budget of all tenants covers a quota for one.
    bool affordable_quota(std::int32_t percent) const {
        return (100 - percent) / 100.0 / static_cast<double>(s_.tenants.size()) <= o_.system_loss_budget;
    }

    static bool entered(const TenantState& t, std::int32_t gpu, MigInstance instance) {
        return t.episode.entered[static_cast<std::size_t>(gpu)] >> (8u * instance.profile + instance.start) &
               1;
    }
    static void enter(TenantState& t, const Configuration& c) {
        t.episode.entered[static_cast<std::size_t>(c.gpu)] |= std::uint64_t{1}
                                                              << (8u * c.instance.profile + c.instance.start);
    }
    /// Returns whether an instance has, or may have, less memory than the tenant's own. Slices are comparable
    /// on the same part only, and an unknown size may be less.
    bool has_less_memory(std::int32_t gpu, const MigProfile& profile, const Configuration& own) const {
        const auto& had = device(own.gpu).profiles[own.instance.profile];
        if (device(gpu).name == device(own.gpu).name) return profile.memory_slices < had.memory_slices;
        return !(had.memory_mib > 0 && profile.memory_mib >= had.memory_mib);
    }
    const HostTenant& tenant(std::size_t i) const { return o_.host.tenants[i]; }
    const MigDevice& device(std::int32_t gpu) const {
        return mig_device(o_.host.gpus[static_cast<std::size_t>(gpu)].device);
    }

    ControllerState& s_;
    const Observation& seen_;
    const ControllerOptions& o_;
    ScoreRef score_;
    StepResult& out_;
    bool acted_ = false;
    bool in_time_ = true;
    double passed_s_ = 0;  // seconds since the last window
    double median_ = 0;    // interrupts of the median core
};

}  // namespace gpusched::control::detail
