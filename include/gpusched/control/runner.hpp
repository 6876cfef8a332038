// SPDX-License-Identifier: Apache-2.0
// Runner: the loop around the decision core. It reads signals, decides, logs, acts and collects the outcomes.
#pragma once

#include <gpusched/control/audit.hpp>

#include <concepts>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::control {

/// A source of observations. One call fills one window, except for its number and times. `seen` already has
/// the outcomes that the actuator reported (`ActionReport`); the source adds changes that ended since.
template <class S>
concept SignalSource = requires(S& source, Observation& seen) { source.read(seen); };

/// The outcome of an action.
struct ActionOutcome {
    ActionKind kind = ActionKind::throttle_io;
    std::int32_t tenant = -1;  ///< the protected tenant that benefits
    std::int32_t target = -1;  ///< the tenant that it changed
    BackendStatus status = BackendStatus::ok;
    bool restored = true;  ///< after a failed change of instance: the previous one is in place
};

/// The report of an actuator on a window: outcomes for the decision core, notes for people.
struct ActionReport {
    std::vector<ActionOutcome> outcomes{};
    std::vector<std::string> notes{};  ///< one line per program or file that failed
};

/// The decision of a window.
struct Decision {
    const ControllerState& state;
    const ControllerOptions& options;
    double time_s = 0;
    std::span<const Action> actions{};
};

/// Starts or completes the actions of a window, and reports the outcomes of those that have ended; the next
/// observation has this report. The end of a longer change of instance arrives with the observations. The
/// actuator is also called in windows without actions. It saves the state that must outlive the controller
/// before it acts.
template <class A>
concept Actuator = requires(A& actuator, const Decision& decision) {
    { actuator.act(decision) } -> std::same_as<ActionReport>;
};

/// Returns the seconds of a monotonic clock and of the wall clock at the end of a window.
template <class C>
concept WindowClock = requires(C& clock) {
    { clock.monotonic_s() } -> std::convertible_to<double>;
    { clock.wall_s() } -> std::convertible_to<double>;
};

/// Receives the lines of the audit log, each before its actions are carried out.
template <class L>
concept AuditSink = requires(L& sink, std::string_view line) { sink.write(line); };

/// The controller with its policies: read, decide, log, act.
template <SignalSource Source, Actuator Act, WindowClock Clk, AuditSink Sink,
          PlacementScorer Scorer = WeightedScore>
class Runner {
  public:
    /// @param carryover as for `initial_state`
    /// @throws InvalidInput if the options are out of range
    Runner(ControllerOptions options, Source& source, Act& actuator, Clk& clock, Sink& sink,
           Scorer scorer = {}, const ControllerCarryover& carryover = {})
        : options_(std::move(options)), state_(initial_state(options_, carryover)),
          hash_(options_hash(options_)), source_(source), actuator_(actuator), clock_(clock), sink_(sink),
          scorer_(std::move(scorer)) {
        const auto& h = options_.host;
        seen_.tenants.resize(h.tenants.size());
        seen_.feedback.resize(h.tenants.size());
        seen_.roots.resize(h.roots.size());
        seen_.gpus.resize(h.gpus.size());
        seen_.numa_io_bytes_per_s.resize(static_cast<std::size_t>(h.numa_nodes));
        seen_.irq_per_s.resize(h.core_numa.size());
    }

    /// Runs one window. Exceptions of source, sink and actuator pass through; if the sink throws, no action
    /// was carried out.
    const StepResult& window() {
        forget();
        tell_ends();
        source_.read(seen_);
        decide();
        return result_;
    }

    /// Ends every lease, for example at a clean exit: runs windows with the controller disabled until no
    /// lease is left. The controller stays disabled until `enable`.
    void release() {
        seen_.enabled = false;
        const auto leased = [&] {
            for (const auto& t : state_.tenants)
                if (t.lease.offender >= 0) return true;
            return false;
        };
        if (leased() && !options_.release_on_disable) {
            options_.release_on_disable = true;
            // A replay needs to know that leases end from here on, regardless of the options.
            line_.clear();
            append_release_record(line_);
            sink_.write(line_);
        }
        while (leased()) {
            forget();
            decide();
        }
    }

    /// Enables control from the next window on (row 24 of the decision table in docs/control.md).
    void enable() noexcept { seen_.enabled = true; }

    [[nodiscard]] const ControllerState& state() const noexcept { return state_; }
    /// The observation of the last window.
    [[nodiscard]] const Observation& seen() const noexcept { return seen_; }
    /// Returns the outcomes of actions since the last call.
    [[nodiscard]] ActionReport take_report() { return std::exchange(report_, {}); }

  private:
    /// Clears the fields that belong to a single window.
    void forget() {
        seen_.operator_resume = false;
        for (auto& f : seen_.feedback) f = {};
        seen_.guards.clear();
    }
    /// Passes the outcomes of earlier windows' actions to the decision core.
    void tell_ends() {
        for (const auto& end : std::exchange(ends_, {})) {
            const auto tenant = static_cast<std::size_t>(end.tenant);
            if (end.kind == ActionKind::reconfigure) {
                seen_.feedback[tenant] = {true, end.status, end.restored};
            } else if (end.kind != ActionKind::release_io) {
                seen_.guards.resize(seen_.tenants.size(), BackendStatus::ok);
                seen_.guards[tenant] = end.status;
            }
        }
    }
    /// Decides on the observation at this time, logs and acts.
    void decide() {
        seen_.window = next_++;
        seen_.time_s = clock_.monotonic_s();
        seen_.wall_time_s = clock_.wall_s();
        step(state_, seen_, options_, result_, scorer_);
        line_.clear();
        append_audit_line(line_, seen_, state_, result_, hash_);
        sink_.write(line_);
        auto done = actuator_.act(Decision{state_, options_, seen_.time_s, result_.actions});
        ends_.insert(ends_.end(), done.outcomes.begin(), done.outcomes.end());
        std::move(done.outcomes.begin(), done.outcomes.end(), std::back_inserter(report_.outcomes));
        std::move(done.notes.begin(), done.notes.end(), std::back_inserter(report_.notes));
    }

    ControllerOptions options_;
    ControllerState state_;
    std::uint64_t hash_;
    Observation seen_{};
    StepResult result_{};
    std::string line_{};
    ActionReport report_{};              ///< for `take_report`
    std::vector<ActionOutcome> ends_{};  ///< outcomes that the decision core does not know yet
    std::int64_t next_ = 0;
    Source& source_;
    Act& actuator_;
    Clk& clock_;
    Sink& sink_;
    Scorer scorer_;
};

}  // namespace gpusched::control
