// Build configuration shared by every header: how bodies are compiled, and internal assertions.
#pragma once

/// `GPUSCHED_INLINE` marks the definitions in `impl/*.ipp`. They are compiled once into the library
/// (target `gpusched::gpusched`) or become inline functions (target `gpusched::header_only`).
#ifdef GPUSCHED_HEADER_ONLY
#define GPUSCHED_INLINE inline
#else
#define GPUSCHED_INLINE
#endif

/// `GPUSCHED_ASSERT(condition)` guards internal invariants, never user input. It is on in debug builds and
/// wherever `GPUSCHED_CHECKED` is defined (preset `checked`).
#if defined(GPUSCHED_CHECKED) || !defined(NDEBUG)
#include <cstdio>
#include <cstdlib>
#define GPUSCHED_ASSERT(condition)                                                                           \
    ((condition) ? static_cast<void>(0)                                                                      \
                 : (std::fprintf(stderr, "gpusched: %s:%d: invariant violated: %s\n", __FILE__, __LINE__,    \
                                 #condition),                                                                \
                    std::abort()))
#else
#define GPUSCHED_ASSERT(condition) static_cast<void>(0)
#endif
