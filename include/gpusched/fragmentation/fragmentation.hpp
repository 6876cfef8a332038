// SPDX-License-Identifier: Apache-2.0
// Includes all of fragmentation/.
#pragma once

#include <gpusched/fragmentation/allocation_ratio.hpp>
#include <gpusched/fragmentation/entropy.hpp>
#include <gpusched/fragmentation/expected_fill.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/occupancy.hpp>
#include <gpusched/fragmentation/report.hpp>
#include <gpusched/fragmentation/switch_slots.hpp>
#include <gpusched/fragmentation/workload.hpp>
