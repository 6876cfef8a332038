// SPDX-License-Identifier: Apache-2.0
// Audit log: one JSON line per window. The log is enough to derive every decision again.
#pragma once

#include <gpusched/control/step.hpp>
#include <gpusched/json/document.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::control {

/// Returns the FNV-1a hash of the options as `write_config` writes them. Any changed option changes it.
/// @throws InvalidInput if the options are out of range
[[nodiscard]] std::uint64_t options_hash(const ControllerOptions& options);

/// Appends one window as a line of JSON, with the newline. Allocates nothing once `line` has grown.
///
/// The line has the raw observation, the hash of the options, the state of each protected tenant after the
/// step, the actions (in a dry run, those that would be taken), the events with their reasons, and the
/// placements that were examined. Numbers have the shortest form that reads back to the same bits. Unknown
/// values and values that are not finite are null.
void append_audit_line(std::string& line, const Observation& seen, const ControllerState& state,
                       const StepResult& result, std::uint64_t hash);

/// Appends a record of a start. A controller that appends to an existing log writes this record first. A
/// replay restarts there, with these options and this carryover from the previous controller.
void append_start_record(std::string& line, const ControllerOptions& options,
                         const ControllerCarryover& carryover = {});

/// Appends a record that all leases end from here on, regardless of `release_on_disable`. A replay needs it.
void append_release_record(std::string& line);

/// Parses the observation in a line. Values that were not finite become NaN, which leads to the same
/// decisions.
/// @throws InvalidInput if the line is not such JSON
[[nodiscard]] Observation parse_audit_observation(std::string_view line);
/// Reads the observation from a document that is already parsed.
[[nodiscard]] Observation parse_audit_observation(const json::Document& document);

/// The result of `replay_audit`.
struct AuditReplay {
    std::int64_t windows = 0;  ///< lines that replayed identically
    std::int64_t actions = 0;  ///< actions in these lines
    /// Number of the first line that differs, from 0; -1 if no line differs.
    std::int64_t first_difference = -1;
    std::string expected{};  ///< the differing line, as recorded
    std::string found{};     ///< the same line, as replayed
};
template <class F>
constexpr void visit_fields(std::type_identity<AuditReplay>, F&& field) {
    field("windows", &AuditReplay::windows);
    field("actions", &AuditReplay::actions);
    field("first_difference", &AuditReplay::first_difference);
    field("expected", &AuditReplay::expected);
    field("found", &AuditReplay::found);
}

/// Feeds the observations of a log to `step`, from the initial state, and compares the lines byte by byte.
///
/// The replay compares the hash of the options while `options` apply. After a start with its own `config`,
/// all lines must have the same hash.
///
/// Lines with a `record` are not windows. `start` resets the replay, with the options of its `config` and the
/// carryover of its `memory`, if it has them. From `release` on, all leases end. `outcome`, `resume` and
/// `admission` affect no decision.
/// @param log whole lines. A last line without a newline and an unreadable line before a start are torn
///     writes; they are skipped.
/// @param options up to the first start that has its own
/// @throws InvalidInput if a line cannot be read; the message has its number
[[nodiscard]] AuditReplay replay_audit(std::string_view log, const ControllerOptions& options);

}  // namespace gpusched::control
