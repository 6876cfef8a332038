// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of serving/: every file of include/gpusched/serving/impl.
#include <gpusched/serving/impl/arrivals.ipp>
#include <gpusched/serving/impl/autoscale.ipp>
#include <gpusched/serving/impl/autoscale_baselines.ipp>
#include <gpusched/serving/impl/catalogue.ipp>
#include <gpusched/serving/impl/deployment.ipp>
#include <gpusched/serving/impl/estimate.ipp>
#include <gpusched/serving/impl/greedy_plan.ipp>
#include <gpusched/serving/impl/language_model.ipp>
#include <gpusched/serving/impl/measurements.ipp>
#include <gpusched/serving/impl/plan_serving.ipp>
#include <gpusched/serving/impl/pool_sizes.ipp>
#include <gpusched/serving/impl/price_ranges.ipp>
#include <gpusched/serving/impl/profile_csv.ipp>
#include <gpusched/serving/impl/rental.ipp>
#include <gpusched/serving/impl/replan.ipp>
#include <gpusched/serving/impl/serving_bounds.ipp>
#include <gpusched/serving/impl/serving_curve.ipp>
#include <gpusched/serving/impl/serving_plan.ipp>
#include <gpusched/serving/impl/serving_problem.ipp>
#include <gpusched/serving/impl/serving_request.ipp>
#include <gpusched/serving/impl/simulate_autoscaling.ipp>
#include <gpusched/serving/impl/simulate_latency.ipp>
#include <gpusched/serving/impl/solve_serving_plan.ipp>
#include <gpusched/serving/impl/sweep_budgets.ipp>
