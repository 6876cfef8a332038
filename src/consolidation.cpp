// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of consolidation/: every file of include/gpusched/consolidation/impl.
#include <gpusched/consolidation/impl/bin_packing.ipp>
#include <gpusched/consolidation/impl/bound.ipp>
#include <gpusched/consolidation/impl/consolidate.ipp>
#include <gpusched/consolidation/impl/ejection_rules.ipp>
#include <gpusched/consolidation/impl/exact_search.ipp>
#include <gpusched/consolidation/impl/explain.ipp>
#include <gpusched/consolidation/impl/explain_move.ipp>
#include <gpusched/consolidation/impl/failed_requests.ipp>
#include <gpusched/consolidation/impl/frontier.ipp>
#include <gpusched/consolidation/impl/goal_nodes.ipp>
#include <gpusched/consolidation/impl/goal_search.ipp>
#include <gpusched/consolidation/impl/joiner.ipp>
#include <gpusched/consolidation/impl/named.ipp>
#include <gpusched/consolidation/impl/options.ipp>
#include <gpusched/consolidation/impl/partitioners.ipp>
#include <gpusched/consolidation/impl/pattern_lp.ipp>
#include <gpusched/consolidation/impl/plan_statistics.ipp>
#include <gpusched/consolidation/impl/replan.ipp>
#include <gpusched/consolidation/impl/result.ipp>
#include <gpusched/consolidation/impl/scope.ipp>
#include <gpusched/consolidation/impl/slot_bound.ipp>
#include <gpusched/consolidation/impl/value_bound.ipp>
#include <gpusched/consolidation/impl/value_report.ipp>
#include <gpusched/consolidation/impl/wave_order.ipp>
#include <gpusched/consolidation/impl/wave_plan.ipp>
