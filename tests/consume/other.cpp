// SPDX-License-Identifier: Apache-2.0
// A second translation unit with all headers: linking shows that nothing is defined twice.
#include "other.hpp"

#include <gpusched/gpusched.hpp>

std::string other_version() { return gpusched::version; }
