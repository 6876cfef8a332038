// SPDX-License-Identifier: Apache-2.0
// The memory that a program uses.
#pragma once

#include <malloc.h>
#include <sys/resource.h>

#include <cstddef>
#include <fstream>

namespace gpusched::bench {

/// The peak memory of the process in KiB, since its start or since `forget_peak_memory`.
inline double peak_memory_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss);
}

/// Returns unused memory to the system and resets `peak_memory_kib`. The peak stays if the kernel refuses.
inline void forget_peak_memory() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
}

/// The bytes that the allocator has handed out, its overhead included.
inline std::size_t heap_bytes() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

}  // namespace gpusched::bench
