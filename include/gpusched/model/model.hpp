// SPDX-License-Identifier: Apache-2.0
// Everything in model/.
#pragma once

#include <gpusched/model/apply.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/describe_obstacle.hpp>
#include <gpusched/model/event.hpp>
#include <gpusched/model/event_log.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/follower.hpp>
#include <gpusched/model/goal.hpp>
#include <gpusched/model/hardware.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/model/largest_gpu_count.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/spec.hpp>
#include <gpusched/model/trace.hpp>
