// SPDX-License-Identifier: Apache-2.0
// The memory that a program uses.
#pragma once

#include <malloc.h>
#include <sys/resource.h>

#include <cstddef>
#include <fstream>

namespace gpusched::bench {

/// The most that the process has held so far, or since `forget_peak_memory`, KiB.
inline double peak_memory_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss);
}

/// Gives memory that nobody uses back to the system, and starts `peak_memory_kib` anew. Where the kernel does not let it, the peak stays.
inline void forget_peak_memory() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
}

/// What the allocator has handed out, its own overhead included.
inline std::size_t heap_bytes() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

}  // namespace gpusched::bench
