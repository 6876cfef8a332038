// SPDX-License-Identifier: Apache-2.0
// Everything in consolidation/.
#pragma once

// First: the fewer files lie between, the earlier a wrong policy is named in the compiler's message.
#include <gpusched/consolidation/detail/policy_checks.hpp>

#include <gpusched/consolidation/acceptance.hpp>
#include <gpusched/consolidation/any.hpp>
#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/destination_rankings.hpp>
#include <gpusched/consolidation/ejection_rules.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/explain_move.hpp>
#include <gpusched/consolidation/free_index.hpp>
#include <gpusched/consolidation/frontier.hpp>
#include <gpusched/consolidation/goal_nodes.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/node_orders.hpp>
#include <gpusched/consolidation/node_weights.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/partitioners.hpp>
#include <gpusched/consolidation/plan_statistics.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/presets.hpp>
#include <gpusched/consolidation/replan.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/value.hpp>
#include <gpusched/consolidation/value_report.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/consolidation/wave_plan.hpp>
