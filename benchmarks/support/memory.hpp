// SPDX-License-Identifier: Apache-2.0
// The memory that a program uses.
#pragma once

#include <malloc.h>
#include <sys/resource.h>

#include <cstddef>

namespace gpusched::bench {

/// The most that the process has held so far, KiB.
inline double peak_memory_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss);
}

/// What the allocator has handed out, its own overhead included.
inline std::size_t heap_bytes() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

}  // namespace gpusched::bench
