// SPDX-License-Identifier: Apache-2.0
// Everything in milp.
#pragma once

#include <gpusched/milp/consolidation.hpp>
#include <gpusched/milp/joint_allocation.hpp>
#include <gpusched/milp/matrix.hpp>
#include <gpusched/milp/model.hpp>
#include <gpusched/milp/priority_packing.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/milp/spot_schedule.hpp>
