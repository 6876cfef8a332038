// SPDX-License-Identifier: Apache-2.0
// State of the controller: plain data that grows once and then stays.
#pragma once

#include <gpusched/control/carryover.hpp>
#include <gpusched/control/estimators.hpp>
#include <gpusched/control/observation.hpp>
#include <gpusched/control/options.hpp>
#include <gpusched/control/tail_model.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace gpusched::control {

/// States of a protected tenant; DIAGNOSE of the transition table lasts no window.
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
constexpr auto enum_names(Phase) {
    return name_table<Phase>({
        {Phase::observe, "observe"},
        {Phase::suspect, "suspect"},
        {Phase::guarded, "guarded"},
        {Phase::reconfig, "reconfig"},
        {Phase::validate, "validate"},
        {Phase::cooldown, "cooldown"},
        {Phase::exhausted, "exhausted"},
        {Phase::hold, "hold"},
        {Phase::disabled, "disabled"},
    });
}

/// What a trouble is put down to; the first that applies.
enum class Cause : std::uint8_t { pcie, io, compute, irq, unknown };
constexpr auto enum_names(Cause) {
    return name_table<Cause>({
        {Cause::pcie, "pcie"},
        {Cause::io, "io"},
        {Cause::compute, "compute"},
        {Cause::irq, "irq"},
        {Cause::unknown, "unknown"},
    });
}

/// What the controller can do.
enum class Lever : std::uint8_t { none, throttle, quota, pin, move, enlarge, rollback, relax };
constexpr auto enum_names(Lever) {
    return name_table<Lever>({
        {Lever::none, "none"},
        {Lever::throttle, "throttle"},
        {Lever::quota, "quota"},
        {Lever::pin, "pin"},
        {Lever::move, "move"},
        {Lever::enlarge, "enlarge"},
        {Lever::rollback, "rollback"},
        {Lever::relax, "relax"},
    });
}

enum class ActionKind : std::uint8_t {
    throttle_io,  ///< limit the target's block I/O to `value` MB/s until the lease ends
    release_io,   ///< end the lease: the limit is what it was before
    set_quota,    ///< quota of the target's MPS client
    pin,          ///< cores of the tenant
    reconfigure   ///< from `before` to `after`, all of it
};
constexpr auto enum_names(ActionKind) {
    return name_table<ActionKind>({
        {ActionKind::throttle_io, "throttle_io"},
        {ActionKind::release_io, "release_io"},
        {ActionKind::set_quota, "set_quota"},
        {ActionKind::pin, "pin"},
        {ActionKind::reconfigure, "reconfigure"},
    });
}

/// One of at most two actions of a step.
struct Action {
    ActionKind kind = ActionKind::throttle_io;
    Lever lever = Lever::none;
    std::int32_t tenant = -1;  ///< for whose sake
    std::int32_t target = -1;  ///< whom it hits; the tenant itself for `pin` and `reconfigure`
    std::int32_t value = 0;    ///< MB/s or percent
    Configuration before{}, after{};
    bool make_before_break = false;  ///< the new instance can exist beside the old one
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

/// Flags of pressure; between their thresholds they stay as they were.
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

/// A forbidden change.
struct Blocked {
    Configuration from{}, to{};
    std::int64_t until = -1;
};

/// What is made of a tenant's signals.
struct TenantEstimates {
    Ema ema{};              ///< of the p99
    SchmittTrigger tail{};  ///< whether that is above the target
    Freshness fresh{};
    Ema rate{};            ///< of requests completed per second
    Outlook tail_ahead{};  ///< the tail in the instance it has
    Outlook client{};      ///< activity of the client in the instance, without its quota
    TailModel model{};     ///< of the tail, for `predict` and for admission
    std::int32_t good_windows = 0, calm_windows = 0;
};

/// Flags of pressure on a tenant.
struct TenantFlags {
    Pressure now{};        ///< where the tenant is
    Pressure reference{};  ///< where it was before the change under validation
    std::uint8_t last = 0;
    std::uint8_t recent = 0;     ///< all that were on since they last stayed the same, or since SUSPECT began
    std::uint8_t exhausted = 0;  ///< when EXHAUSTED began
    std::int32_t same_windows = 0;  ///< since the flags last changed
};

/// Configurations of a tenant.
struct TenantPlaces {
    Configuration current{};
    Configuration good{};     ///< the last one that was validated
    Configuration before{};   ///< the change under way or under validation
    Configuration pending{};  ///< the end of the change under way
    Configuration
        floor{};  ///< as found when control began, before a restart too: the least that is left to it
};

/// A change that is being made, and the pause that it costs.
struct TenantChange {
    Lever lever = Lever::none;  ///< whose effect is being made or validated
    bool in_flight = false;     ///< asked for and not answered
    bool abandoned = false;  ///< the operator resumed before the answer, which still says where the tenant is
    bool disjoint = false;   ///< both instances can exist at once
    double held_s = 0;       ///< time that requests may have waited for it
    double outage_s = 0;     ///< and time that they did, as far as can be seen
    std::int32_t settle = 0;  ///< windows to come in which what a pause held up is still on its way
    bool settling = false;    ///< this window is one of them
};

/// The validation of a change.
struct TenantTrial {
    double before_ms = 0;  ///< average of the p99 when the change was decided
    std::uint8_t before_flags = 0;
    double before_rate = 0;  ///< average completed per second then
    Ema tail{};
    double offered = 0, completed = 0;  ///< sums over comparable windows
    std::int32_t waited = 0;            ///< windows, comparable or not
    bool resumes = false;               ///< HOLD interrupted it
};

/// What was done for a tenant: dwell, the hour's budget, and changes that are not to be repeated.
struct TenantPast {
    std::int64_t last_structural = 0, last_guard = 0, last_throttle = 0;
    bool ever_structural = false, ever_guard = false;
    std::array<double, 8> structural_s{};  ///< times of the latest structural actions
    std::array<double, 8> pause_s{};       ///< and their pauses
    std::int32_t structural_count = 0;
    double disjoint_pause_s = 0;  ///< what the last change with both instances at once cost all the same
    std::array<Blocked, 8> blocked{};
    std::int32_t next_blocked = 0;
};

/// From the first window above the target until the tail is calm again.
struct TenantEpisode {
    bool on = false;
    bool throttled = false;
    std::int32_t throttles = 0;               ///< levels that were tried
    std::array<std::uint64_t, 16> entered{};  ///< bit 8 * profile + start of each GPU
};

/// A limit of somebody's block I/O for the tenant's sake.
struct TenantLease {
    std::int32_t offender = -1;  ///< whose; -1 without a lease
    double until_s = 0;          ///< on `ControllerState::clock_s`
};

/// What the log says only once.
struct TenantRemarks {
    bool suppressed = false;  ///< a closed gate has been written down
    bool unsteady = false;    ///< that flags change too often has been written down
};

/// Everything that is remembered of a protected tenant.
struct TenantState {
    Phase phase = Phase::observe;
    /// Windows: c of SUSPECT, n of VALIDATE and COOLDOWN, those in EXHAUSTED and RECONFIG.
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

/// Everything `step` remembers. Start with `initial_state`.
struct ControllerState {
    std::vector<TenantState> tenants{};  ///< as those of the host; entries of unprotected ones are unused
    std::vector<MigLayout> layouts{};    ///< as last read
    std::vector<Outlook> roots{};        ///< per root: traffic of tenants that are not protected / capacity
    std::vector<Outlook> numa_io{};      ///< per NUMA node: block I/O / 2 GB/s
    std::int64_t now = 0;                ///< windows since the start
    std::int64_t last_window = -1;
    double last_time_s = 0;
    double clock_s = 0;       ///< seconds since the start; none counts twice if time is set back and forth
    double peak_s = 0;        ///< the latest time seen
    double since_peak_s = 0;  ///< counted in `clock_s` since then
    bool started = false;
    bool admission_open = true;  ///< new tenants may come: no protected tenant is out of levers
    std::int64_t deeds = 0;      ///< grows whenever `carryover_of` gives more than the same, aged
};

/// Rows of the transition table in docs/control.md, by their numbers, which stand in the audit log. The numbers that are
/// not here have no line of the log: they count, or lead on within the window.
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

/// Why something happened, for the audit log.
struct AuditEvent {
    std::int32_t tenant = -1;
    Row row = Row::remark;
    Phase from = Phase::observe, to = Phase::observe;
    Cause cause = Cause::unknown;
    const char* reason = "";  ///< a literal
    double loss = 0;          ///< predicted, of the tenant's throughput over the hour
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

/// What became of a placement that was looked at.
enum class CandidateVerdict : std::uint8_t {
    no_score,        ///< not finite
    entered_before,  ///< in this episode
    blocked,         ///< a change that was undone lately
    less_memory,
    worse,
    better,  ///< than all before it
    larger   ///< the next larger instance: it is taken
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

/// A placement that was looked at.
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

/// What a step decided; reused, so that steps allocate nothing.
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

/// The state before the first window: configurations as found; dwell, cool-down, the hour's budget and the changes not to
/// be repeated as remembered.
/// @param carryover of a controller before this one, as long as the host's tenants, or empty
/// @throws InvalidInput when the options are out of range, or `carryover` has another length
[[nodiscard]] ControllerState initial_state(const ControllerOptions& options,
                                            const ControllerCarryover& carryover = {});

/// What must outlive the controller, as of the last window.
[[nodiscard]] ControllerCarryover carryover_of(const ControllerState& state,
                                               const ControllerOptions& options);

}  // namespace gpusched::control
