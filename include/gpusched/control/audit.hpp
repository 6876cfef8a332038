// SPDX-License-Identifier: Apache-2.0
// Audit log: one JSON line per window, from which every decision can be derived again.
#pragma once

#include <gpusched/control/step.hpp>
#include <gpusched/control/tenant_admission.hpp>
#include <gpusched/json/document.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::control {

/// A number that changes with any option, hence with the meaning of a log: FNV-1a over the options as `write_config`
/// writes them.
/// @throws InvalidInput when the options are out of range
[[nodiscard]] std::uint64_t options_hash(const ControllerOptions& options);

/// Appends one window as a line of JSON, with the newline: the raw observation (numbers in the shortest form that
/// reads back to the same bits, null for what is not known or not finite), the options' hash, the state of each
/// protected tenant after the step, actions (wished ones in a dry run), events with their reasons, and the placements
/// looked at. Allocates nothing once `line` has grown.
void append_audit_line(std::string& line, const Observation& seen, const ControllerState& state,
                       const StepResult& result, std::uint64_t hash);

/// Appends a record of a start: whoever appends to a log that others have written begins with it. Replaying begins
/// anew there, with these options and this carryover of the controller before.
void append_start_record(std::string& line, const ControllerOptions& options,
                         const ControllerCarryover& carryover = {});

/// Appends a record that from here on leases end in any case; replaying needs it.
void append_release_record(std::string& line);

/// Appends a record of how an action ended, which decides nothing.
/// @param target name of the tenant that the action hit
void append_outcome_record(std::string& line, ActionKind kind, std::string_view target, BackendStatus status);

/// The answer to an operator's request to resume.
enum class ResumeVerdict : std::uint8_t { accepted, refused, not_needed };
constexpr auto enum_names(ResumeVerdict) {
    return name_table<ResumeVerdict>({
        {ResumeVerdict::accepted, "accepted"},
        {ResumeVerdict::refused, "refused"},
        {ResumeVerdict::not_needed, "not needed"},
    });
}

/// Appends a record of an operator's request to resume, which decides nothing: the observation says what came of it.
void append_resume_record(std::string& line, ResumeVerdict verdict, const std::vector<std::string>& reasons);

/// Appends a record of what became of a newcomer, which decides nothing: its instance is seen in the next window.
void append_admission_record(std::string& line, const AdmissionAnswer& answer, const Host& host);

/// The observation of a line. Values that were not finite come back as NaN, which decides alike.
/// @throws InvalidInput when the line is no such JSON
[[nodiscard]] Observation parse_audit_observation(std::string_view line);
/// The same of a document that is parsed already.
[[nodiscard]] Observation parse_audit_observation(const json::Document& document);

/// What `replay_audit` found.
struct AuditReplay {
    std::int64_t windows = 0;  ///< lines that came out the same
    std::int64_t actions = 0;  ///< in these
    /// Number of the line (from 0) that came out otherwise; -1: none did.
    std::int64_t first_difference = -1;
    std::string expected{};  ///< that line, as recorded
    std::string found{};     ///< what replaying it gave
};
template <class F>
constexpr void visit_fields(std::type_identity<AuditReplay>, F&& field) {
    field("windows", &AuditReplay::windows);
    field("actions", &AuditReplay::actions);
    field("first_difference", &AuditReplay::first_difference);
    field("expected", &AuditReplay::expected);
    field("found", &AuditReplay::found);
}

/// Feeds the observations of a log to `step`, from the initial state, and compares line by line, byte by byte.
///
/// The hash of options is compared where `options` apply. Where a start has its own `config`, all lines after it must have
/// the same hash.
///
/// Lines with a `record` are no windows: `start` begins anew, with the options of its `config` and its `memory` (the carryover) where it has them; from
/// `release` on leases end in any case; `outcome`, `resume` and `admission` decide nothing.
/// @param log whole lines; a last line without a newline, and one before a start that cannot be read, is a torn write and
///     is left out
/// @param options up to the first start that has its own
/// @throws InvalidInput when a line cannot be read, naming its number
[[nodiscard]] AuditReplay replay_audit(std::string_view log, const ControllerOptions& options);

}  // namespace gpusched::control
