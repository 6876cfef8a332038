// SPDX-License-Identifier: Apache-2.0
// Documents of format `gpusched.serving-request`: the input of the serving planner, as JSON or YAML.
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <string>
#include <string_view>

namespace gpusched::serving {

/// Reads a request from a document of version 1 or 2 (docs/schema, docs/serving.md); format and version are
/// optional.
///
/// GPU types, models and workloads are objects by name. A type of the catalogue or of Table 1 and a known
/// model need no fields; fields of the document replace theirs. Prices default to those of Table 1. Targets
/// of all kinds are merged into the targets of each kind.
/// @param text   UTF-8, at most `largest_document` bytes
/// @param source the start of every message
/// @param rates  arrival rates that replace those of the document
/// @throws InvalidInput with every problem and its place
[[nodiscard]] ServingRequest request_from_json(std::string_view text, std::string_view source = "request",
                                               const RequestRates& rates = {});
/// Reads a request from a parsed document.
[[nodiscard]] ServingRequest request_from_json(const json::Document& document,
                                               const RequestRates& rates = {});

/// Reads a request from a file: YAML if its name ends in .yaml or .yml, else JSON.
/// @throws BackendError if it cannot be read, and for YAML if the library was built without libyaml
[[nodiscard]] ServingRequest read_request(const std::string& path, const RequestRates& rates = {});

/// Writes a request as a document of version 2, which is read as the same request.
///
/// It contains every value that the reader took from the catalogue, Table 1 or defaults. `available` counts
/// GPUs, and every kind has its targets.
/// @param indent blanks per level, 0 .. 16; 0 = one line
/// @throws InvalidInput for an invalid request, and text that is not UTF-8
[[nodiscard]] std::string request_to_json(const ServingRequest& request, int indent = 2);

/// Writes the document of `request_to_json` to a file. @throws BackendError if it cannot be written
void write_request(const ServingRequest& request, const std::string& path);

}  // namespace gpusched::serving
