// SPDX-License-Identifier: Apache-2.0
// The serving problem of a request: its deployments, the selection of the best, and the plan of a solution.
#pragma once

#include <gpusched/serving/plan_serving.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusched::serving::detail {

/// Whether a search must end.
using MustStop = std::function<bool()>;

/// enumerate_deployments() of those for which `keep` returns true; an empty `keep` keeps all.
/// @param stop  asked now and then; the search ends with what it has found if it returns true
[[nodiscard]] std::vector<Deployment>
find_deployments(const LanguageModel& model, const std::vector<GpuType>& gpus, std::span<const int> available,
                 const DeploymentOptions& options, double memory_fraction,
                 const std::function<bool(const Deployment&)>& keep, const MustStop& stop = {});

/// Whether options exclude plans that the rental planner makes.
inline bool is_restricted(const PlannerOptions& options) {
    return options.composition != Composition::optimized || options.routing != Routing::optimized ||
           options.uniform_tp;
}

/// The message of a plan if its time or the caller ended the enumeration.
inline constexpr const char* enumeration_ended = "the search ended before all deployments were found";

/// Most deployments of a request, over all models: a plan takes 1 to 2 KB for each.
inline constexpr int most_possible_deployments = 50'000;

/// The deployments of all models as a serving problem, measured ones included. Nothing is dropped yet.
/// @param stop     as for `find_deployments`
/// @param running  replicas whose deployments are considered although they are unmeasured pipelines
/// @throws InvalidInput for more than `most_possible_deployments`
ServingInstance all_deployments(const ServingRequest& request, const PlannerOptions& options,
                                const MustStop& stop = {}, const std::vector<PlannedReplicas>& running = {});

/// The configurations with the model and the stages of some replicas.
std::vector<std::size_t> configurations_of(const ServingInstance& instance, const PlannedReplicas& replicas);

/// `name`, followed by apostrophes until it is not taken, since names of models and types can be arbitrary.
std::string unique_name(std::string name, std::set<std::string>& taken);

/// The `most` best configurations of each model, ascending; 0 = all. Sets of GPU types alternate, because the
/// type with the best throughput per $ may not be available.
/// @param of  the configurations to choose from
std::vector<int> best_per_dollar(const ServingProblem& problem, const std::vector<int>& of, int most);

/// The best undominated configurations, ascending.
/// @param of       the configurations to choose from
/// @param dropped  set to the undominated configurations that were not chosen
std::vector<int> chosen(const ServingProblem& problem, const std::vector<int>& of, int most,
                        std::vector<int>& dropped);

/// The number of GPU types that a configuration uses.
std::ptrdiff_t type_count(const ServingConfiguration& configuration);

/// The configurations chosen if replicas could use fewer GPU types, ascending. They are not left out, so that
/// a larger `max_types` leaves out no more.
/// @param undominated  choose as `chosen`, otherwise as `best_per_dollar`
std::vector<int> best_of_fewer_types(const ServingProblem& problem, const std::vector<int>& of, int most,
                                     bool undominated);

/// The instance with these configurations only.
ServingInstance kept(const ServingInstance& all, const std::vector<int>& keep);

/// Adds `also` to the ascending list `keep`.
void add_configurations(std::vector<int>& keep, const std::vector<int>& also);

/// The configurations of `of` that are not in the ascending list `keep`.
std::vector<int> without(const std::vector<int>& of, const std::vector<int>& keep);

/// The best undominated configurations, and always `also`.
ServingInstance selected(const ServingInstance& all, int most, const std::vector<int>& also = {});

/// The plan of a solution.
ServingPlan described(const ServingRequest& request, const ServingInstance& instance,
                      const ServingSolution& plan);

/// A lower bound on the value of all plans of a problem, and the configurations of its linear program.
struct LowerBound {
    double value = 0;         ///< seconds; with a deadline $/h
    double makespan = 0;      ///< seconds, with and without a deadline: the bound in closed form
    std::vector<int> used{};  ///< configurations that the solution uses, ascending
};
/// The bound of the linear program, or in closed form if the solver gives none.
/// @param deadline  absent = bound the makespan
LowerBound lower_bound(const ServingProblem& problem, std::optional<double> deadline,
                       const milp::SolveOptions& options, const milp::AnySolver& solver,
                       const Context& context);

/// Plans a batch on single GPUs at one price.
/// @param before a plan for a smaller budget, or none: its deployments are considered, and no worse plan is
///     returned
ServingPlan plan_batch(const ServingRequest& request, const PlannerOptions& options,
                       const milp::AnySolver& solver, const Context& context, const ServingPlan& before = {});

}  // namespace gpusched::serving::detail
