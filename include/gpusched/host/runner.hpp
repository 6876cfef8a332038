// Runner: signals in, decisions, actions out, and the log of it; and the execution of structural changes.
#pragma once

#include <gpusched/host/names.hpp>

#include <concepts>
#include <optional>
#include <string>

namespace gpusched::host {

/// Where observations come from. One call fills one window, feedback included, except for its number and times.
template <class S>
concept SignalSource = requires(S& source, Observation& seen) { source.read(seen); };

/// What carries out actions. `reconfigure` may return before it is done: its end comes with the observations. Where it has
/// `remember(state, options, time_s)`, that is called after each decision, before the actions: what must outlive the
/// controller is to be kept before anything is done.
template <class A>
concept Actuator = requires(A& actuator, const Action& action) { actuator.act(action); };

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
    /// @param memory as for `initial_state`
    /// @throws InvalidInput when the options are out of range
    Runner(ControllerOptions options, Source& source, Act& actuator, Clk& clock, Sink& sink,
           Scorer scorer = {}, const ControllerMemory& memory = {})
        : options_(std::move(options)), state_(initial_state(options_, memory)),
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
                if (t.offender >= 0) return true;
            return false;
        };
        if (leased() && !options_.release_on_disable) {
            options_.release_on_disable = true;
            // The log says that from here on leases end in any case, or it would not replay.
            sink_.write(R"({"record":"release"})"
                        "\n");
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

  private:
    /// What was true of one window only.
    void forget() {
        seen_.operator_resume = false;
        for (auto& f : seen_.feedback) f = {};
        seen_.guards.clear();
    }
    void decide() {
        step(state_, seen_, options_, result_, scorer_);
        line_.clear();
        append_audit_line(line_, seen_, state_, result_, hash_);
        sink_.write(line_);
        if constexpr (requires { actuator_.remember(state_, options_, seen_.time_s); })
            actuator_.remember(state_, options_, seen_.time_s);
        for (const auto& action : result_.actions) actuator_.act(action);
    }

    ControllerOptions options_;
    ControllerState state_;
    std::uint64_t hash_;
    Observation seen_{};
    StepResult result_{};
    std::string line_{};
    std::int64_t next_ = 0;
    Source& source_;
    Act& actuator_;
    Clk& clock_;
    Sink& sink_;
    Scorer scorer_;
};

/// A GPU's MIG interface: every call may fail. `read` gives the instances that exist, usable or not; an instance is
/// created whole (GPU instance and compute instance) or, if that fails half-way, may be left behind for `destroy`; after
/// INSUFFICIENT_RESOURCES nothing is, and what stands in the place is somebody else's.
template <class B>
concept MigBackend = requires(B& backend, int gpu, MigInstance instance, MigLayout& layout) {
    { backend.create(gpu, instance) } -> std::same_as<BackendStatus>;
    { backend.destroy(gpu, instance) } -> std::same_as<BackendStatus>;
    { backend.read(gpu, layout) } -> std::same_as<BackendStatus>;
};

/// Replaces a tenant's own instance, and nothing else: the new one first where it fits beside the old one, else the old
/// one is destroyed before. IN_USE is tried up to three more times, `wait(k)` before try k. When a step fails, what was
/// made is removed and what was removed is made again.
///
/// `switch_over(configuration)` moves the tenant and returns its status. It is called when the new instance exists (and
/// the old one still does, where both fit); when that fails, the tenant may have moved or not, and where the old one
/// stands it is called for that before the new one is destroyed.
/// @return as the controller wants it; after a failure that freezes nothing more is tried, and `restored` says whether
///     the old instance still stands
template <MigBackend B, class Switch, class Wait>
Feedback replace_instance(B& backend, const Host& host, const Configuration& before,
                          const Configuration& after, const Switch& switch_over, const Wait& wait) {
    using enum BackendStatus;
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(after.gpu)].device);
    const auto failed = [](BackendStatus status, bool restored) { return Feedback{true, status, restored}; };
    MigLayout there, here;
    if (const auto status = backend.read(after.gpu, there); status != ok) return failed(status, true);
    if (const auto status = backend.read(before.gpu, here); status != ok) return failed(status, true);
    if (!here.contains(before.instance)) return failed(not_found, false);
    const auto destroy = [&](int gpu, MigInstance instance) {
        auto status = backend.destroy(gpu, instance);
        for (int k = 0; k < 3 && status == in_use; ++k) {
            wait(k);
            status = backend.destroy(gpu, instance);
        }
        return status;
    };
    bool foreign = false;  ///< what stands in the new place is somebody else's
    const auto create = [&] {
        const auto status = backend.create(after.gpu, after.instance);
        foreign = status == insufficient_resources;
        return status;
    };
    /// Whether the old instance stands alone again: read back, because a failed call says little of what it did.
    const auto undo = [&](BackendStatus why) {
        if (freezes(why)) {
            MigLayout now;
            return failed(why, backend.read(before.gpu, now) == ok && now.contains(before.instance));
        }
        MigLayout now;
        if (!foreign && backend.read(after.gpu, now) == ok && now.contains(after.instance) &&
            !(after.gpu == before.gpu && after.instance == before.instance) &&
            destroy(after.gpu, after.instance) != ok)
            return failed(why, false);
        if (backend.read(before.gpu, now) != ok) return failed(why, false);
        if (now.contains(before.instance)) return failed(why, true);
        return failed(why, backend.create(before.gpu, before.instance) == ok);
    };
    if (can_create(device, there, after.instance)) {
        if (const auto status = create(); status != ok) return undo(status);
        if (const auto status = switch_over(after); status != ok) {
            // Nothing is destroyed under a tenant that went and says that it did not.
            if (!freezes(status) && switch_over(before) != ok) return failed(status, false);
            return undo(status);
        }
        const auto status = destroy(before.gpu, before.instance);
        return status == ok ? Feedback{true, ok, true} : failed(status, false);
    }
    auto rest = there;
    if (after.gpu != before.gpu || !rest.remove(before.instance) || !can_create(device, rest, after.instance))
        return failed(insufficient_resources, true);
    if (const auto status = destroy(before.gpu, before.instance); status != ok) return undo(status);
    if (const auto status = create(); status != ok) return undo(status);
    if (const auto status = switch_over(after); status != ok) return undo(status);
    return {true, ok, true};
}

}  // namespace gpusched::host
