// SPDX-License-Identifier: Apache-2.0
// Shape: a request for which a report measures unusable idle GPUs.
#pragma once

#include <array>
#include <cstdint>

namespace gpusched::fragmentation {

/// A request of whole GPUs on one node, and CPU in thousandths of a core.
struct Shape {
    int gpus = 1;                ///< 1 to 64
    std::int64_t cpu_milli = 0;  ///< >= 0
    bool operator==(const Shape&) const = default;
};

/// The request shapes of the ASI paper's Fig. 13: 1G8C, 1G12C, 4G32C, 4G48C, 4G64C, 8G64C, 8G96C, 8G128C.
inline constexpr std::array<Shape, 8> asi_shapes{
    {{1, 8000}, {1, 12000}, {4, 32000}, {4, 48000}, {4, 64000}, {8, 64000}, {8, 96000}, {8, 128000}}};

}  // namespace gpusched::fragmentation
