// SPDX-License-Identifier: Apache-2.0
// Everything in verify/.
#pragma once

#include <gpusched/verify/plan.hpp>
