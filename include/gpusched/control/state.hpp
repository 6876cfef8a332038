// SPDX-License-Identifier: Apache-2.0
// State of the controller: plain data that allocates only while it grows.
#pragma once

#include <gpusched/control/carryover.hpp>
#include <gpusched/control/estimators.hpp>
#include <gpusched/control/observation.hpp>
#include <gpusched/control/options.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace gpusched::control {

/// States of a protected tenant. DIAGNOSE of the transition table takes no window.
enum class Phase : std::uint8_t {
    observe,
    suspect,
    guarded,
    reconfig,
    validate,
    cooldown,
    exhausted,
    hold,
    disabled
};

/// The cause of a high tail; the first one that applies.
enum class Cause : std::uint8_t { pcie, io, compute, irq, unknown };

/// The levers of the controller.
enum class Lever : std::uint8_t { none, throttle, quota, pin, move, enlarge, rollback, relax };

enum class ActionKind : std::uint8_t {
    throttle_io,  ///< limit the target's block I/O to `value` MB/s until the lease ends
    release_io,   ///< end the lease and restore the earlier limit
    set_quota,    ///< quota of the target's MPS client
    pin,          ///< cores of the tenant
    reconfigure   ///< the whole change from `before` to `after`
};

/// An action. A step has at most two.
struct Action {
    ActionKind kind = ActionKind::throttle_io;
    Lever lever = Lever::none;
    std::int32_t tenant = -1;  ///< the protected tenant that benefits
    std::int32_t target = -1;  ///< the tenant that it changes; `tenant` for `pin` and `reconfigure`
    std::int32_t value = 0;    ///< MB/s or percent
    Configuration before{}, after{};
    bool make_before_break = false;  ///< the new instance can exist next to the old one
};
template <class F>
constexpr void visit_fields(std::type_identity<Action>, F&& field) {
    field("kind", &Action::kind);
    field("lever", &Action::lever);
    field("tenant", &Action::tenant);
    field("target", &Action::target);
    field("value", &Action::value);
    field("before", &Action::before);
    field("after", &Action::after);
    field("make_before_break", &Action::make_before_break);
}

/// Flags of pressure. Between its two thresholds a flag keeps its value.
struct Pressure {
    SchmittTrigger pcie{}, io{}, irq{}, compute{};
    [[nodiscard]] std::uint8_t bits() const noexcept {
        return static_cast<std::uint8_t>(pcie.on | io.on << 1 | compute.on << 2 | irq.on << 3);
    }
    void set(std::uint8_t bits) noexcept {
        pcie.on = (bits & 1) != 0;
        io.on = (bits >> 1 & 1) != 0;
        compute.on = (bits >> 2 & 1) != 0;
        irq.on = (bits >> 3 & 1) != 0;
    }
};

/// A change that is blocked until window `until`.
struct Blocked {
    Configuration from{}, to{};
    std::int64_t until = -1;
};

/// Estimates from a tenant's signals.
struct TenantEstimates {
    Ema ema{};              ///< of the p99
    SchmittTrigger tail{};  ///< whether the average is above the target
    Freshness fresh{};
    Ema rate{};            ///< of requests completed per second
    Outlook tail_ahead{};  ///< expected tail in the current instance
    Outlook client{};      ///< activity of the client in the instance without its quota
    TailModel model{};     ///< of the tail, for `predict` and for admission
    std::int32_t good_windows = 0, calm_windows = 0;
};

/// Flags of pressure on a tenant.
struct TenantFlags {
    Pressure now{};        ///< at the tenant's place
    Pressure reference{};  ///< at its place before the change under validation
    std::uint8_t last = 0;
    std::uint8_t recent = 0;        ///< flags that were on since the last steady time or start of SUSPECT
    std::uint8_t exhausted = 0;     ///< at the start of EXHAUSTED
    std::int32_t same_windows = 0;  ///< since the flags last changed
};

/// Configurations of a tenant.
struct TenantPlaces {
    Configuration current{};
    Configuration good{};     ///< the last validated one
    Configuration before{};   ///< before the current change or validation
    Configuration pending{};  ///< after the current change
    Configuration floor{};    ///< initial one, kept across restarts; relaxing stops there
};

/// A change in progress, and the pause that it costs.
struct TenantChange {
    Lever lever = Lever::none;  ///< the lever in progress or under validation
    bool in_flight = false;     ///< requested and not yet answered
    bool abandoned = false;     ///< the operator resumed before the answer; the answer still gives the place
    bool disjoint = false;      ///< both instances can exist at once
    double held_s = 0;          ///< time in which requests may have waited
    double outage_s = 0;        ///< time in which they did wait, as far as visible
    std::int32_t settle = 0;    ///< remaining windows with requests that the pause delayed
    bool settling = false;      ///< this is such a window
};

/// The validation of a change.
struct TenantTrial {
    double before_ms = 0;  ///< average p99 at the time of the decision
    std::uint8_t before_flags = 0;
    double before_rate = 0;  ///< average requests completed per second at that time
    Ema tail{};
    double offered = 0, completed = 0;  ///< sums over comparable windows
    std::int32_t waited = 0;            ///< windows, comparable or not
    bool resumes = false;               ///< HOLD interrupted it

    /// Drops the windows so far.
    void restart() noexcept {
        tail.clear();
        offered = completed = 0;
        waited = 0;
    }
};

/// Past actions for a tenant: dwell, the hour's budget, and blocked changes.
struct TenantPast {
    std::int64_t last_structural = 0, last_guard = 0, last_throttle = 0;
    bool ever_structural = false, ever_guard = false;
    std::array<double, 8> structural_s{};  ///< times of the latest structural actions
    std::array<double, 8> pause_s{};       ///< pauses of these actions
    std::int32_t structural_count = 0;
    double disjoint_pause_s = 0;  ///< pause of the last change with both instances at once
    std::array<Blocked, 8> blocked{};
    std::int32_t next_blocked = 0;
};

/// An episode: from the first window above the target until the tail is calm again.
struct TenantEpisode {
    bool on = false;
    bool throttled = false;
    std::int32_t throttles = 0;               ///< levels that were tried
    std::array<std::uint64_t, 16> entered{};  ///< bit 8 * profile + start of each GPU
};

/// A limit on another tenant's block I/O in favor of this tenant.
struct TenantLease {
    std::int32_t offender = -1;  ///< the limited tenant; -1 without a lease
    double until_s = 0;          ///< on `ControllerState::clock_s`
};

/// Remarks that the log has only once.
struct TenantRemarks {
    bool suppressed = false;  ///< a closed gate was logged
    bool unsteady = false;    ///< flags that change too often were logged
};

/// The state of a protected tenant.
struct TenantState {
    Phase phase = Phase::observe;
    /// Number of windows: c of SUSPECT, n of VALIDATE and COOLDOWN, or time in EXHAUSTED and RECONFIG.
    std::int32_t counter = 0;
    bool admission_closed = false;  ///< no lever is left for this tenant
    bool frozen = false;            ///< waits for the operator
    TenantEstimates seen{};
    TenantFlags flags{};
    TenantPlaces place{};
    TenantChange change{};
    TenantTrial trial{};
    TenantPast past{};
    TenantEpisode episode{};
    TenantLease lease{};
    TenantRemarks told{};
};

/// The state between two calls of `step`. Start with `initial_state`.
struct ControllerState {
    std::vector<TenantState> tenants{};  ///< one per tenant of the host; unused if unprotected
    std::vector<MigLayout> layouts{};    ///< as last read
    std::vector<Outlook> roots{};        ///< per root: traffic of unprotected tenants / capacity
    std::vector<Outlook> numa_io{};      ///< per NUMA node: block I/O / 2 GB/s
    std::int64_t now = 0;                ///< windows since the start
    std::int64_t last_window = -1;
    double last_time_s = 0;
    double clock_s = 0;       ///< seconds since the start; none counts twice if time is set back
    double peak_s = 0;        ///< the latest time seen
    double since_peak_s = 0;  ///< seconds of `clock_s` since then
    bool started = false;
    bool admission_open = true;  ///< accepts new tenants: every protected tenant has a lever left
    std::int64_t deeds = 0;      ///< grows when `carryover_of` changes by more than aging
};

/// Rows of the transition table in docs/control.md, with the numbers that the audit log has. Missing numbers
/// have no line in the log: those rows only count, or continue within the window.
enum class Row : std::int32_t {
    remark = 0,  ///< none
    switched_off = 1,
    tail_high = 2,
    tail_low = 4,
    suppressed = 6,
    throttle = 7,
    quota_or_pin = 8,
    lease_over = 9,
    move = 11,
    enlarge = 12,
    no_lever = 13,
    changed = 14,
    failed = 15,
    kept = 16,
    worse = 17,
    cooled_down = 18,
    relax = 19,
    hold = 20,
    exhaustion_over = 21,
    resumed = 23,
    switched_on = 24
};
constexpr auto enum_names(Row) {
    return name_table<Row>({
        {Row::remark, "remark"},
        {Row::switched_off, "switched_off"},
        {Row::tail_high, "tail_high"},
        {Row::tail_low, "tail_low"},
        {Row::suppressed, "suppressed"},
        {Row::throttle, "throttle"},
        {Row::quota_or_pin, "quota_or_pin"},
        {Row::lease_over, "lease_over"},
        {Row::move, "move"},
        {Row::enlarge, "enlarge"},
        {Row::no_lever, "no_lever"},
        {Row::changed, "changed"},
        {Row::failed, "failed"},
        {Row::kept, "kept"},
        {Row::worse, "worse"},
        {Row::cooled_down, "cooled_down"},
        {Row::relax, "relax"},
        {Row::hold, "hold"},
        {Row::exhaustion_over, "exhaustion_over"},
        {Row::resumed, "resumed"},
        {Row::switched_on, "switched_on"},
    });
}

/// The reason for an event, for the audit log.
struct AuditEvent {
    std::int32_t tenant = -1;
    Row row = Row::remark;
    Phase from = Phase::observe, to = Phase::observe;
    Cause cause = Cause::unknown;
    const char* reason = "";  ///< a string literal
    double loss = 0;          ///< predicted part of the tenant's throughput lost over the hour
};
template <class F>
constexpr void visit_fields(std::type_identity<AuditEvent>, F&& field) {
    field("tenant", &AuditEvent::tenant);
    field("row", &AuditEvent::row);
    field("from", &AuditEvent::from);
    field("to", &AuditEvent::to);
    field("cause", &AuditEvent::cause);
    field("reason", &AuditEvent::reason);
    field("loss", &AuditEvent::loss);
}

/// The verdict on an examined placement.
enum class CandidateVerdict : std::uint8_t {
    no_score,        ///< not finite
    entered_before,  ///< in this episode
    blocked,         ///< a change that was recently undone
    less_memory,
    worse,
    better,  ///< better than all earlier ones
    larger   ///< the next larger instance; it is chosen
};
constexpr auto enum_names(CandidateVerdict) {
    return name_table<CandidateVerdict>({
        {CandidateVerdict::no_score, "no score"},
        {CandidateVerdict::entered_before, "entered before"},
        {CandidateVerdict::blocked, "blocked"},
        {CandidateVerdict::less_memory, "less memory"},
        {CandidateVerdict::worse, "worse"},
        {CandidateVerdict::better, "better"},
        {CandidateVerdict::larger, "larger"},
    });
}

/// An examined placement.
struct AuditCandidate {
    std::int32_t tenant = -1;
    std::int32_t gpu = 0;
    MigInstance instance{};
    double score = 0;
    CandidateVerdict verdict = CandidateVerdict::worse;
};
template <class F>
constexpr void visit_fields(std::type_identity<AuditCandidate>, F&& field) {
    field("tenant", &AuditCandidate::tenant);
    field("gpu", &AuditCandidate::gpu);
    field("instance", &AuditCandidate::instance);
    field("score", &AuditCandidate::score);
    field("verdict", &AuditCandidate::verdict);
}

/// The decisions of a step. It is reused, so that steps allocate nothing.
struct StepResult {
    std::vector<Action> actions{};  ///< at most two; none in a dry run
    std::vector<Action> wished{};   ///< the same, also in a dry run
    std::vector<AuditEvent> events{};
    std::vector<AuditCandidate> candidates{};
    void clear() noexcept {
        actions.clear();
        wished.clear();
        events.clear();
        candidates.clear();
    }
};

/// Returns the state before the first window. Configurations are the initial ones. Dwell, cool-down, the
/// hour's budget and the blocked changes come from the carryover.
/// @param carryover from the previous controller, one entry per tenant of the host, or empty
/// @throws InvalidInput if the options are out of range, or `carryover` has another length
[[nodiscard]] ControllerState initial_state(const ControllerOptions& options,
                                            const ControllerCarryover& carryover = {});

/// Returns true if the change of a tenant other than `except` from or to this GPU is not yet answered.
[[nodiscard]] bool in_flight_on(const ControllerState& state, std::int32_t gpu,
                                std::size_t except = std::numeric_limits<std::size_t>::max()) noexcept;

/// Returns the data that must outlive the controller, as of the last window.
[[nodiscard]] ControllerCarryover carryover_of(const ControllerState& state,
                                               const ControllerOptions& options);

}  // namespace gpusched::control
