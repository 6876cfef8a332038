// SPDX-License-Identifier: Apache-2.0
// Everything in serving.
#pragma once

#include <gpusched/serving/autoscale.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/deployment.hpp>
#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/llm_trace.hpp>
#include <gpusched/serving/model_config.hpp>
#include <gpusched/serving/plan_json.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/predict.hpp>
#include <gpusched/serving/rental.hpp>
#include <gpusched/serving/sensitivity.hpp>
#include <gpusched/serving/serving_milp.hpp>
#include <gpusched/serving/serving_problem.hpp>
#include <gpusched/serving/serving_request.hpp>
#include <gpusched/serving/simulate_autoscaling.hpp>
#include <gpusched/serving/simulate_latency.hpp>
#include <gpusched/serving/solve_serving_plan.hpp>
