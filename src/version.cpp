// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/version.hpp>

// Lets `strings` tell which version a binary was linked with.
extern "C" {
GPUSCHED_EXPORT extern const char gpusched_version_string[];
const char gpusched_version_string[] = "gpusched " GPUSCHED_VERSION;
}
