// SPDX-License-Identifier: Apache-2.0
// Runner: the loop around the decision core. Signals in, a decision, its line of the log, its actions, and how they ended.
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

/// Where observations come from. One call fills one window, except for its number and times: what is known, how actions
/// of the last windows ended (as `ActionReport` says), is in it already, and changes that ended since are added.
template <class S>
concept SignalSource = requires(S& source, Observation& seen) { source.read(seen); };

/// How an action ended.
struct ActionOutcome {
    ActionKind kind = ActionKind::throttle_io;
    std::int32_t tenant = -1;  ///< for whose sake
    std::int32_t target = -1;  ///< whom it hit
    BackendStatus status = BackendStatus::ok;
    bool restored = true;  ///< of a change of instance that failed: what was before stands again
};

/// All that whoever carries out actions has to say of a window: to the decision core, and to people.
struct ActionReport {
    std::vector<ActionOutcome> outcomes{};
    std::vector<std::string> notes{};  ///< lines on programs and files that failed
};

/// What a window has decided.
struct Decision {
    const ControllerState& state;
    const ControllerOptions& options;
    double time_s = 0;
    std::span<const Action> actions{};
};

/// Carries out the actions of a window, if only to begin them, and says how those ended that have: the report goes into
/// the next observation. The end of a change of instance that takes longer comes with the observations. It is called in
/// windows without actions too: what must outlive the controller is kept before anything is done.
template <class A>
concept Actuator = requires(A& actuator, const Decision& decision) {
    { actuator.act(decision) } -> std::same_as<ActionReport>;
};

/// Seconds of a monotonic clock and of the wall, at the end of a window.
template <class C>
concept WindowClock = requires(C& clock) {
    { clock.monotonic_s() } -> std::convertible_to<double>;
    { clock.wall_s() } -> std::convertible_to<double>;
};

/// Takes lines of the audit log; a line is given before its actions are carried out.
template <class L>
concept AuditSink = requires(L& sink, std::string_view line) { sink.write(line); };

/// The controller with its policies: read, decide, write down, act.
template <SignalSource Source, Actuator Act, WindowClock Clk, AuditSink Sink,
          PlacementScorer Scorer = WeightedScore>
class Runner {
  public:
    /// @param carryover as for `initial_state`
    /// @throws InvalidInput when the options are out of range
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

    /// One window. What source, sink or actuator throw passes through; after the sink's, nothing was carried out.
    const StepResult& window() {
        forget();
        tell_ends();
        source_.read(seen_);
        seen_.window = next_++;
        seen_.time_s = clock_.monotonic_s();
        seen_.wall_time_s = clock_.wall_s();
        decide();
        return result_;
    }

    /// Ends every lease, as at a clean end of the program: windows with the controller disabled until none is left. It stays
    /// disabled until `enable`.
    void release() {
        seen_.enabled = false;
        const auto leased = [&] {
            for (const auto& t : state_.tenants)
                if (t.lease.offender >= 0) return true;
            return false;
        };
        if (leased() && !options_.release_on_disable) {
            options_.release_on_disable = true;
            // The log says that from here on leases end in any case, or it would not replay.
            line_.clear();
            append_release_record(line_);
            sink_.write(line_);
        }
        while (leased()) {
            forget();
            seen_.window = next_++;
            seen_.time_s = clock_.monotonic_s();
            seen_.wall_time_s = clock_.wall_s();
            decide();
        }
    }

    /// The next window is under control again (row 24).
    void enable() noexcept { seen_.enabled = true; }

    [[nodiscard]] const ControllerState& state() const noexcept { return state_; }
    /// The last window.
    [[nodiscard]] const Observation& seen() const noexcept { return seen_; }
    /// How actions ended since the last call.
    [[nodiscard]] ActionReport take_report() { return std::exchange(report_, {}); }

  private:
    /// What was true of one window only.
    void forget() {
        seen_.operator_resume = false;
        for (auto& f : seen_.feedback) f = {};
        seen_.guards.clear();
    }
    /// How actions of the windows before ended, for the decision core.
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
    void decide() {
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
    std::vector<ActionOutcome> ends_{};  ///< that the decision core does not know yet
    std::int64_t next_ = 0;
    Source& source_;
    Act& actuator_;
    Clk& clock_;
    Sink& sink_;
    Scorer scorer_;
};

}  // namespace gpusched::control
