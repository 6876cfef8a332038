// SPDX-License-Identifier: Apache-2.0
// Documents of format `gpusched.serving-request`: what a serving plan is asked for, as JSON or YAML.
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/serving/rates.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <string>
#include <string_view>

namespace gpusched::serving {

/// A request from a document of version 1 or 2 (docs/schema, docs/serving.md); format and version may be left out.
///
/// GPU types, models and workloads are objects by name. A type of the catalogue or of Table 1 and a known model need no fields,
/// those that a document gives replace theirs; prices are those of Table 1 unless given. Targets of all kinds are merged into
/// those of each kind.
/// @param text   UTF-8, at most `largest_document` bytes
/// @param source how messages begin
/// @param rates  of a call, which take the place of those of the document
/// @throws InvalidInput with everything that is wrong, each problem with its place
[[nodiscard]] ServingRequest request_from_json(std::string_view text, std::string_view source = "request",
                                               const RequestRates& rates = {});
/// The same of a document that is parsed already.
[[nodiscard]] ServingRequest request_from_json(const json::Document& document,
                                               const RequestRates& rates = {});

/// The same of a file: YAML where its name ends in .yaml or .yml.
/// @throws BackendError when it cannot be read, and for YAML when the library was built without libyaml
[[nodiscard]] ServingRequest read_request(const std::string& path, const RequestRates& rates = {});

/// The document, of version 2, with everything that the reader takes from the catalogue, Table 1 or defaults: `available` counts
/// GPUs, and targets of all kinds stand at each. It is read as the same request.
/// @param indent blanks per level, 0 .. 16; 0: all on one line
/// @throws InvalidInput for a request that is not valid, and text that is not UTF-8
[[nodiscard]] std::string request_to_json(const ServingRequest& request, int indent = 2);

/// @throws BackendError when the file cannot be written
void write_request(const ServingRequest& request, const std::string& path);

}  // namespace gpusched::serving
