// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a table of ascending points or an InvalidInput with few problems.
#include <gpusched/core/errors.hpp>
#include <gpusched/serving/estimate.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const auto points = gpusched::serving::parse_profile_csv(text);
        if (points.empty()) std::abort();
        double last = 0;
        for (const auto& point : points) {
            if (!(point.size > last && std::isfinite(point.size) && point.seconds >= 0 &&
                  std::isfinite(point.seconds)))
                std::abort();
            last = point.size;
        }
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty() || error.problems().size() > 11) std::abort();
    }
    return 0;
}
