// SPDX-License-Identifier: Apache-2.0
// Counts allocations. It replaces operator new, so a program includes it in one source file only.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace gpusched::bench {
inline std::size_t allocations = 0;  ///< so far
}

// Not inlined, because the compiler would warn about mismatched new and delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++gpusched::bench::allocations;
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
