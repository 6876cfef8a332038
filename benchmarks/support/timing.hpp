// SPDX-License-Identifier: Apache-2.0
// Elapsed time and processor time.
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

/// Processor time of all threads of the process in seconds; other work on the machine disturbs it least.
inline double processor_s() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Elapsed seconds of `work`.
template <class Work>
double seconds(Work&& work) {
    const double start = clock_s();
    work();
    return clock_s() - start;
}

/// The value with a share `q` of the values below it; 0 without values.
inline double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    const auto at =
        std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    return values[at];
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace gpusched::bench
