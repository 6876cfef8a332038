// SPDX-License-Identifier: Apache-2.0
// Measured times per layer from CSV tables.
#pragma once

#include <gpusched/serving/estimate.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gpusched::serving {

/// The points of a table with two columns, size and time, such as the Helix profiles have them.
///
/// A line is `size,time`; spaces around numbers, empty lines and lines that begin with # are left out, as are one line of
/// column names before the first point, a byte order mark, and points of size 0.
///
/// @param unit_s  seconds that a time of 1 stands for, > 0 (milliseconds by default)
/// @param source  what messages call the text
/// @return points by ascending size, at least one
/// @throws InvalidInput with every line that is no pair of numbers, is out of range (size and time >= 0 and finite) or out of
///     order, the first ten of them, as `source:line: column: ...`; for a table without points
/// Complexity: O(bytes).
[[nodiscard]] std::vector<ProfilePoint> parse_profile_csv(std::string_view text, double unit_s = 1e-3,
                                                          std::string_view source = "<profile>");

/// A profile from two files, one of prompts (tokens, time of one layer) and one of decode batches (requests, time of one
/// layer).
///
/// @throws BackendError when a file cannot be read; InvalidInput as above, the path as source
[[nodiscard]] LayerProfile read_layer_profile(const std::string& prefill_path, const std::string& decode_path,
                                              const std::string& model, const std::string& gpu,
                                              int degree = 1, double unit_s = 1e-3);

}  // namespace gpusched::serving
