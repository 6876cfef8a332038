// SPDX-License-Identifier: Apache-2.0
// ServingProblem: GPUs to rent, configurations of replicas, and workloads to serve, as data.
#pragma once

#include <gpusched/core/fields.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// A GPU type to rent.
struct RentableGpu {
    std::string name{};
    double price = 0;   ///< $/h of one GPU, >= 0
    int available = 0;  ///< available GPUs, >= 0
    bool operator==(const RentableGpu&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RentableGpu>, F&& field) {
    field("name", &RentableGpu::name);
    field("price", &RentableGpu::price);
    field("available", &RentableGpu::available);
}

/// The number of requests of one workload.
struct WorkloadRequests {
    std::string name{};
    double requests = 0;  ///< number of requests, >= 0
    std::string model{};  ///< the language model of the requests
    bool operator==(const WorkloadRequests&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<WorkloadRequests>, F&& field) {
    field("name", &WorkloadRequests::name);
    field("requests", &WorkloadRequests::requests);
    field("model", &WorkloadRequests::model);
}

/// One way to deploy one replica of one model.
struct ServingConfiguration {
    std::string name{};
    std::vector<int> gpus{};  ///< GPUs of each type, one entry per `ServingProblem::gpus`
    /// Requests/s, one entry per `ServingProblem::workloads`; 0 = cannot serve.
    std::vector<double> throughput{};
    std::string model{};  ///< the model; workloads of other models have throughput 0
    bool operator==(const ServingConfiguration&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingConfiguration>, F&& field) {
    field("name", &ServingConfiguration::name);
    field("gpus", &ServingConfiguration::gpus);
    field("throughput", &ServingConfiguration::throughput);
    field("model", &ServingConfiguration::model);
}

/// The serving problem: rent GPUs, run replicas and assign requests, to finish all requests as early as
/// possible within the budget.
///
/// There can be several models. Names are unique in their list, names of workloads in their model. Source:
/// arXiv 2502.00722, section 4, problem (1) to (7), and its multi-model form (8) to (12).
struct ServingProblem {
    std::vector<RentableGpu> gpus{};
    std::vector<WorkloadRequests> workloads{};
    std::vector<ServingConfiguration> configurations{};
    double budget = 0;  ///< $/h of all rented GPUs together, >= 0
    bool operator==(const ServingProblem&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingProblem>, F&& field) {
    field("gpus", &ServingProblem::gpus);
    field("workloads", &ServingProblem::workloads);
    field("configurations", &ServingProblem::configurations);
    field("budget", &ServingProblem::budget);
}

/// @throws InvalidInput with every negative or non-finite number, list of the wrong length, name that appears
///     twice, configuration without GPUs and throughput for a workload of another model, and for costs and
///     times that overflow
void validate(const ServingProblem& problem);

/// Returns the $/h of one replica of each configuration.
[[nodiscard]] std::vector<double> configuration_costs(const ServingProblem& problem);

/// Returns how many replicas of each configuration fit if no other configuration is used.
///
/// This is the minimum over types of floor(available / needed), and of floor(budget / cost + 1e-9) if the
/// cost is not 0.
[[nodiscard]] std::vector<int> most_replicas(const ServingProblem& problem);

/// Returns the indices of the configurations that no other dominates, ascending. Dropping the others keeps
/// the optimum.
///
/// A configuration dominates another of the same model if it needs no more GPUs of any type and serves every
/// workload at least as fast. Of equal configurations the first is kept.
[[nodiscard]] std::vector<int> undominated_configurations(const ServingProblem& problem);
/// The same among the configurations `of`, ascending.
[[nodiscard]] std::vector<int> undominated_configurations(const ServingProblem& problem,
                                                          const std::vector<int>& of);

/// Returns the problem with these configurations only.
[[nodiscard]] ServingProblem with_configurations(const ServingProblem& problem, const std::vector<int>& keep);

/// The replicas to run, and the share of requests that they serve.
struct ServingAllocation {
    std::vector<int> replicas{};               ///< replicas of each configuration
    std::vector<std::vector<double>> share{};  ///< [configuration][workload]: share of the requests, 0 .. 1
    bool operator==(const ServingAllocation&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingAllocation>, F&& field) {
    field("replicas", &ServingAllocation::replicas);
    field("share", &ServingAllocation::share);
}

/// Returns the seconds until the last replica is done. Replicas of a configuration share its requests evenly.
///
/// Infinite if requests go to a configuration without replicas, or to one that cannot serve them.
[[nodiscard]] double makespan(const ServingProblem& problem, const ServingAllocation& allocation);

/// Returns the $/h of all replicas.
[[nodiscard]] double cost(const ServingProblem& problem, const ServingAllocation& allocation);

/// Returns the rented GPUs of each type.
[[nodiscard]] std::vector<int> rented(const ServingProblem& problem, const ServingAllocation& allocation);

/// Returns the violations of an allocation: too many GPUs, too much cost, requests not served; empty = none.
[[nodiscard]] std::vector<std::string>
violations(const ServingProblem& problem, const ServingAllocation& allocation, double tolerance = 1e-6);

}  // namespace gpusched::serving
