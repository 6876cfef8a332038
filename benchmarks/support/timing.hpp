// SPDX-License-Identifier: Apache-2.0
// Time by the clock and by the processor.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <utility>
#include <vector>

namespace gpusched::bench {

/// Seconds of a clock that only goes forward.
inline double clock_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds that all threads of the process have worked so far, which a busy machine disturbs least.
inline double processor_s() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds by the clock that `work` takes.
template <class Work>
double seconds(Work&& work) {
    const double start = clock_s();
    work();
    return clock_s() - start;
}

/// The value that a share `q` of all is below; 0 of none.
inline double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    const auto at =
        std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    return values[at];
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace gpusched::bench
