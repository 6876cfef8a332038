// SPDX-License-Identifier: Apache-2.0
// Includes all of fragmentation/.
#pragma once

#include <gpusched/fragmentation/accounting.hpp>
#include <gpusched/fragmentation/allocation_ratio.hpp>
#include <gpusched/fragmentation/concepts.hpp>
#include <gpusched/fragmentation/entropy.hpp>
#include <gpusched/fragmentation/expected_fill.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/fragmentation/fragment_rate.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/job_entropies.hpp>
#include <gpusched/fragmentation/largest_job.hpp>
#include <gpusched/fragmentation/occupancy.hpp>
#include <gpusched/fragmentation/own_shapes.hpp>
#include <gpusched/fragmentation/report.hpp>
#include <gpusched/fragmentation/server_ratios.hpp>
#include <gpusched/fragmentation/shape.hpp>
#include <gpusched/fragmentation/switch_slots.hpp>
#include <gpusched/fragmentation/unusable_nodes.hpp>
#include <gpusched/fragmentation/workload.hpp>
