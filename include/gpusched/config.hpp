// SPDX-License-Identifier: Apache-2.0
// Build configuration: symbol visibility and internal assertions.
#pragma once

/// Exports a symbol from the shared library: public functions, public classes with virtual functions, and
/// private functions that tests or templates call (docs/abi.md).
#define GPUSCHED_EXPORT __attribute__((visibility("default")))

/// `GPUSCHED_ASSERT(condition)` checks an internal invariant, never user input. It is active in debug builds
/// and if `GPUSCHED_CHECKED` is defined (preset `checked`).
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
