// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The version of the library, in one place: CMake and the Python package read it from here. The library follows semantic
/// versioning; CHANGELOG.md lists what each version changed. The version of the binary interface is major.minor
/// (docs/abi.md).

#define GPUSCHED_VERSION_MAJOR 0
#define GPUSCHED_VERSION_MINOR 1
#define GPUSCHED_VERSION_PATCH 0
#define GPUSCHED_VERSION "0.1.0"

namespace gpusched {

/// The version of these headers as "major.minor.patch".
inline constexpr const char* version = GPUSCHED_VERSION;

}  // namespace gpusched
