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

/// The cores of a list as the kernel writes it, such as `0-3,8`; empty text is the empty set.
/// @throws InvalidInput for other text, and for cores from `most_cores` on
[[nodiscard]] CpuSet parse_cpus(std::string_view list);

/// The inverse: ranges in rising order.
[[nodiscard]] std::string cpus_text(const CpuSet& cpus);

/// Options from a document of format `gpusched.control`, version 1 (docs/schema, docs/control.md).
///
/// Objects `host`, `flags` and `options` have the fields of the structs. Instances are named by the profile's key and
/// their first memory slice, cores by a list (`0-3,8`), and `client_of` names a tenant. What is left out keeps its default.
/// @throws InvalidInput with all problems of form, each with its place (`/host/gpus/0/root`), unknown fields included; or,
///     once the form is right, with all that `validate` finds
[[nodiscard]] ControllerOptions parse_config(std::string_view text);
/// The same of a document that is parsed already.
[[nodiscard]] ControllerOptions parse_config(const json::Document& document);

/// The document that `parse_config` reads back to the same options: everything, defaults too.
[[nodiscard]] std::string write_config(const ControllerOptions& options);

/// An observation from a line of recorded signals: a JSON object with the fields of `Observation`, tenants as an object
/// by name or as an array, `gpus` with `instances` as pairs of profile key and slice. What is left out is unknown. A line
/// of the audit log does as well: its raw observation is taken.
/// @param window taken as its number and, times the length of a window, as its time, where the line has none
/// @param layouts taken for GPUs whose instances the line does not give; as long as the host's GPUs
/// @throws InvalidInput with all problems, each with its place
[[nodiscard]] Observation parse_signals(std::string_view line, const ControllerOptions& options,
                                        std::int64_t window, std::span<const MigLayout> layouts);
/// The same of a document that is parsed already.
[[nodiscard]] Observation parse_signals(const json::Document& document, const ControllerOptions& options,
                                        std::int64_t window, std::span<const MigLayout> layouts);

/// An instance in words: `GPU 0 2g at 0`.
[[nodiscard]] std::string describe(const Host& host, const Configuration& configuration);

/// What an action does, in one line: `T1: move from GPU 0 2g at 0 to GPU 1 2g at 0`.
[[nodiscard]] std::string describe(const ControllerOptions& options, const Action& action);

/// Why, in one line: `T1: suspect -> reconfig (row 11, cause pcie): move`.
[[nodiscard]] std::string describe(const ControllerOptions& options, const AuditEvent& event);

}  // namespace gpusched::control
