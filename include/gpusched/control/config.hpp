// SPDX-License-Identifier: Apache-2.0
// Configuration and recorded signals of the controller as JSON, and its decisions as text.
#pragma once

#include <gpusched/control/state.hpp>
#include <gpusched/json/document.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gpusched::control {

/// Parses a list of cores as the kernel writes it, for example `0-3,8`. Empty text is the empty set.
/// @throws InvalidInput for other text, and for cores from `most_cores` on
[[nodiscard]] CpuSet parse_cpus(std::string_view list);

/// The inverse of `parse_cpus`: ranges in rising order.
[[nodiscard]] std::string cpus_text(const CpuSet& cpus);

/// Reads options from a document of format `gpusched.control`, version 1 (docs/schema, docs/control.md).
///
/// The objects `host`, `flags` and `options` have the fields of the structs. An instance is named by its
/// profile key and its first memory slice, cores by a list (`0-3,8`), and `client_of` is the name of a
/// tenant. Missing fields keep their defaults.
/// @throws InvalidInput with all problems of form and their places (`/host/gpus/0/root`), including unknown
///     fields; if the form is right, with all problems that `validate` finds
[[nodiscard]] ControllerOptions parse_config(std::string_view text);
/// Reads options from a document that is already parsed.
[[nodiscard]] ControllerOptions parse_config(const json::Document& document);

/// Writes the document that `parse_config` reads back to the same options. It has all fields, including
/// defaults.
[[nodiscard]] std::string write_config(const ControllerOptions& options);

/// Reads an observation from a line of recorded signals: a JSON object with the fields of `Observation`.
///
/// Tenants are an object by name or an array. The `instances` of `gpus` are pairs of profile key and slice.
/// Missing values are unknown. A line of the audit log is accepted, too: its raw observation is used.
/// @param window number of the window if the line has none; the default time is this number times the window
///     length
/// @param layouts used for GPUs without `instances` in the line; one per GPU of the host
/// @throws InvalidInput with all problems and their places
[[nodiscard]] Observation parse_signals(std::string_view line, const ControllerOptions& options,
                                        std::int64_t window, std::span<const MigLayout> layouts);
/// Reads an observation from a document that is already parsed.
[[nodiscard]] Observation parse_signals(const json::Document& document, const ControllerOptions& options,
                                        std::int64_t window, std::span<const MigLayout> layouts);

/// Describes an instance: `GPU 0 2g at 0`.
[[nodiscard]] std::string describe(const Host& host, const Configuration& configuration);

/// Describes an action in one line: `T1: move from GPU 0 2g at 0 to GPU 1 2g at 0`.
[[nodiscard]] std::string describe(const ControllerOptions& options, const Action& action);

/// Describes an event in one line: `T1: suspect -> reconfig (row 11, cause pcie): move`.
[[nodiscard]] std::string describe(const ControllerOptions& options, const AuditEvent& event);

}  // namespace gpusched::control
