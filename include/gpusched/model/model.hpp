// SPDX-License-Identifier: Apache-2.0
// Everything in model/.
#pragma once

#include <gpusched/model/cluster.hpp>
#include <gpusched/model/disturbance.hpp>
#include <gpusched/model/events.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/follower.hpp>
#include <gpusched/model/gpu_names.hpp>
#include <gpusched/model/hardware.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/spec.hpp>
#include <gpusched/model/waiting.hpp>
