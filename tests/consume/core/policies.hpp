// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpusched/consolidation/result.hpp>
#include <gpusched/model/cluster.hpp>

/// Consolidation with policies of this project alone.
gpusched::consolidation::Result vacate(const gpusched::Cluster& cluster);
