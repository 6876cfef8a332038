// Build configuration shared by every header: the namespace, how bodies are compiled, and internal assertions.
#pragma once

#include <gpusched/version.hpp>  // GPUSCHED_NAMESPACE

/// `GPUSCHED_EXPORT` marks the public classes with virtual functions, which include all exceptions: their type information
/// must be one object for the program and all its shared libraries.
#define GPUSCHED_EXPORT __attribute__((visibility("default")))

/// `GPUSCHED_INLINE` marks the definitions in `impl/*.ipp`. They are compiled once into the library of their component,
/// which exports them, or become inline functions (target `gpusched::header_only`). `GPUSCHED_INTERNAL` marks those that
/// only their own component calls: a shared library does not export them. docs/abi.md contains the rules.
#ifdef GPUSCHED_HEADER_ONLY
#define GPUSCHED_INLINE inline
#define GPUSCHED_INTERNAL inline
#else
#define GPUSCHED_INLINE GPUSCHED_EXPORT
#define GPUSCHED_INTERNAL
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
