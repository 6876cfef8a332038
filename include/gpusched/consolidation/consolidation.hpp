// SPDX-License-Identifier: Apache-2.0
// Everything in consolidation/.
#pragma once

#include <gpusched/consolidation/blockers.hpp>
#include <gpusched/consolidation/bounds.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/drain_order.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/free_index.hpp>
#include <gpusched/consolidation/frontier.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/placement_rule.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/replan.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/search.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/consolidation/what_if.hpp>
