// SPDX-License-Identifier: Apache-2.0
// The serving problem as data: which GPUs may be rented, which deployments exist, what must be served.
#pragma once

#include <gpusched/core/fields.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// A GPU type that may be rented.
struct RentableGpu {
    std::string name{};
    double price = 0;   ///< $/h for one, >= 0
    int available = 0;  ///< how many there are, >= 0
    bool operator==(const RentableGpu&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RentableGpu>, F&& field) {
    field("name", &RentableGpu::name);
    field("price", &RentableGpu::price);
    field("available", &RentableGpu::available);
}

/// How many requests of one workload there are; their shape is no part of the problem.
struct WorkloadRequests {
    std::string name{};
    double requests = 0;  ///< how many, >= 0; where it is 0 nothing needs to be served
    std::string model{};  ///< the model they are for
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
    std::vector<int> gpus{};  ///< how many of each type, one entry per `ServingProblem::gpus`
    std::vector<double>
        throughput{};     ///< requests/s, one entry per `ServingProblem::workloads`; 0 = cannot serve
    std::string model{};  ///< the model it serves; it can serve no other model's workloads
    bool operator==(const ServingConfiguration&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingConfiguration>, F&& field) {
    field("name", &ServingConfiguration::name);
    field("gpus", &ServingConfiguration::gpus);
    field("throughput", &ServingConfiguration::throughput);
    field("model", &ServingConfiguration::model);
}

/// Which GPUs to rent, how many replicas of which configuration to run, and where requests go, so that all requests are
/// done as early as possible within the budget. One or several models; names are unique within their list, workloads within
/// their model.
///
/// Source: arXiv 2502.00722, section 4, problem (1) to (7), and its multi-model form (8) to (12).
struct ServingProblem {
    std::vector<RentableGpu> gpus{};
    std::vector<WorkloadRequests> workloads{};
    std::vector<ServingConfiguration> configurations{};
    double budget = 0;  ///< $/h for all rented GPUs together, >= 0
    bool operator==(const ServingProblem&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingProblem>, F&& field) {
    field("gpus", &ServingProblem::gpus);
    field("workloads", &ServingProblem::workloads);
    field("configurations", &ServingProblem::configurations);
    field("budget", &ServingProblem::budget);
}

/// @throws InvalidInput with every negative or non-finite number, every list of the wrong length, every name that appears
///     twice, every configuration without GPUs, every throughput for another model's workload, and costs and times that are too
///     large for a number
void validate(const ServingProblem& problem);

/// $/h of one replica of each configuration.
[[nodiscard]] std::vector<double> configuration_costs(const ServingProblem& problem);

/// How many replicas of each configuration availability and budget allow by themselves: min over types of
/// floor(available / needed), and floor(budget / cost + 1e-9) where the cost is not 0.
[[nodiscard]] std::vector<int> most_replicas(const ServingProblem& problem);

/// The configurations that no other makes useless, ascending: one is dropped when another of the same model needs no more
/// GPUs of any type and serves every workload at least as fast (of equal ones the first stays). The optimum is unchanged.
[[nodiscard]] std::vector<int> undominated_configurations(const ServingProblem& problem);

/// The problem with these configurations only.
[[nodiscard]] ServingProblem with_configurations(const ServingProblem& problem, const std::vector<int>& keep);

/// What to rent and run, and where requests go.
struct ServingAllocation {
    std::vector<int> replicas{};               ///< one entry per configuration
    std::vector<std::vector<double>> share{};  ///< [configuration][workload]: part of the requests, 0 .. 1
    bool operator==(const ServingAllocation&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingAllocation>, F&& field) {
    field("replicas", &ServingAllocation::replicas);
    field("share", &ServingAllocation::share);
}

/// Seconds until the last replica is done, where the replicas of a configuration share its requests evenly. Infinite where
/// something is sent to a configuration without replicas or one that cannot serve it.
[[nodiscard]] double makespan(const ServingProblem& problem, const ServingAllocation& allocation);

/// $/h of everything rented.
[[nodiscard]] double cost(const ServingProblem& problem, const ServingAllocation& allocation);

/// How many of each GPU type are rented.
[[nodiscard]] std::vector<int> rented(const ServingProblem& problem, const ServingAllocation& allocation);

/// What is wrong with an allocation: more GPUs than there are, over budget, requests not served; empty = nothing.
[[nodiscard]] std::vector<std::string>
violations(const ServingProblem& problem, const ServingAllocation& allocation, double tolerance = 1e-6);

}  // namespace gpusched::serving
