// SPDX-License-Identifier: Apache-2.0
// Everything in preemption/.
#pragma once

#include <gpusched/preemption/index.hpp>
#include <gpusched/preemption/options.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/preemption/preempt_gang.hpp>
#include <gpusched/preemption/standby.hpp>
#include <gpusched/preemption/victim_policy.hpp>
