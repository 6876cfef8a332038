// SPDX-License-Identifier: Apache-2.0
// Includes all node rankers.
#pragma once

#include <gpusched/allocation/rankers/allocated.hpp>
#include <gpusched/allocation/rankers/compose.hpp>
#include <gpusched/allocation/rankers/eviction_history.hpp>
#include <gpusched/allocation/rankers/gpu_clustering.hpp>
#include <gpusched/allocation/rankers/gpu_packing.hpp>
#include <gpusched/allocation/rankers/homogeneous.hpp>
#include <gpusched/allocation/rankers/interference.hpp>
#include <gpusched/allocation/rankers/least_fill_loss.hpp>
#include <gpusched/allocation/rankers/least_fragmentation.hpp>
#include <gpusched/allocation/rankers/packing.hpp>
#include <gpusched/allocation/rankers/unranked.hpp>
#include <gpusched/allocation/rankers/vector_fit.hpp>
#include <gpusched/allocation/rankers/wishes.hpp>
