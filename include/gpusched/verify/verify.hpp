// SPDX-License-Identifier: Apache-2.0
// Includes all of verify/.
#pragma once

#include <gpusched/verify/plan.hpp>
