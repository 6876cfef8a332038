// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The versions of the library and of its binary interface, in one place: CMake and the Python package read them from
/// here. The library follows semantic versioning; see CHANGELOG.md for what each version changed.

#define GPUSCHED_VERSION_MAJOR 0
#define GPUSCHED_VERSION_MINOR 1
#define GPUSCHED_VERSION_PATCH 0
#define GPUSCHED_VERSION "0.1.0"

/// `GPUSCHED_NAMESPACE` is the namespace `gpusched` where the library's headers open it: its names stand in an inline
/// namespace for the version of the binary interface, which is a part of every symbol. Other code says `gpusched`.
#define GPUSCHED_NAMESPACE gpusched::inline v0_1

namespace GPUSCHED_NAMESPACE {

/// The version of these headers as "major.minor.patch".
inline constexpr const char* version = GPUSCHED_VERSION;

}  // namespace GPUSCHED_NAMESPACE
