// SPDX-License-Identifier: Apache-2.0
// The serving problem of a request: enumerates deployments, selects the best, and describes solutions as
// plans.
#include "serving/instance.hpp"
#include "serving/calibrator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace gpusched::serving::detail {

std::string unique_name(std::string name, std::set<std::string>& taken) {
    while (!taken.insert(name).second) name += "'";
    return name;
}

/// $/h of the cheapest GPU of a type.
static double lowest_price(const ServingRequest& request, std::size_t g) {
    const double price = *request.gpus[g].price;
    if (request.terms.empty() || !request.terms[g].spot_price) return price;
    return std::min(price, *request.terms[g].spot_price);
}
/// GPUs of a type, spot GPUs included.
static int all_available(const ServingRequest& request, std::size_t g) {
    const auto spot = request.terms.empty() ? 0 : request.terms[g].spot_available;
    return static_cast<int>(std::min<std::int64_t>(std::int64_t{request.available[g]} + spot, 1'000'000'000));
}

/// Whether one tensor-parallel group of a machine of each type holds a model and its longest request. False
/// for a batch, since the paper's experiments with batches include pipelines.
static std::vector<bool> holds_alone(const ServedModel& served, const std::vector<GpuType>& gpus,
                                     DeploymentOptions options, double memory_fraction) {
    std::vector<bool> alone(gpus.size(), false);
    bool rates = false;
    for (const auto& workload : served.workloads) {
        if (workload.rate <= 0) continue;
        rates = true;
        const auto shape = RequestMix(workload).longest();
        const auto longest = std::int64_t{shape.input} + shape.output;
        options.min_tokens = static_cast<int>(
            std::clamp<std::int64_t>(longest, options.min_tokens, std::numeric_limits<int>::max()));
    }
    options.max_stages = 1;
    options.disconnected.clear();
    for (std::size_t g = 0; rates && g < gpus.size(); ++g)
        alone[g] = !enumerate_deployments(served.model, {gpus[g]}, std::array{gpus[g].per_machine}, options,
                                          memory_fraction)
                        .empty();
    return alone;
}

/// GPUs of each type that a deployment uses.
static std::vector<int> gpus_by_type(const Deployment& deployment, std::size_t types) {
    std::vector<int> count(types, 0);
    for (const auto& stage : deployment.stages) count[static_cast<std::size_t>(stage.gpu)] += stage.degree;
    return count;
}

/// Adds the measured deployments of a model, which are possible whatever the options say, except in several
/// regions.
static void add_measured(std::vector<Deployment>& found, const Calibrator& calibrator, std::size_t model,
                         const std::vector<int>& available, const std::vector<GpuType>& gpus,
                         bool across_regions) {
    for (const auto& row : calibrator.rows()) {
        if (row.model != model) continue;
        const auto same = [&](const Deployment& d) { return d.name == row.deployment.name; };
        const auto needed = gpus_by_type(row.deployment, available.size());
        if (std::none_of(found.begin(), found.end(), same) &&
            std::equal(needed.begin(), needed.end(), available.begin(), std::less_equal<>{}) &&
            (across_regions || in_one_region(gpus, row.deployment)))
            found.push_back(row.deployment);
    }
}

GPUSCHED_EXPORT ServingInstance all_deployments(const ServingRequest& request, const PlannerOptions& options,
                                                const MustStop& stop,
                                                const std::vector<PlannedReplicas>& running) {
    ServingInstance instance;
    auto& problem = instance.problem;
    problem.budget = std::min(request.budget, largest_finite);
    std::vector<int> available;
    for (std::size_t g = 0; g < request.gpus.size(); ++g) {
        const double price = lowest_price(request, g);
        const int there = all_available(request, g);
        const double paid = price > 0 ? std::floor(problem.budget / price + 1e-9) : there;
        problem.gpus.push_back({request.gpus[g].name, *request.gpus[g].price, there});
        available.push_back(static_cast<int>(std::min<double>(there, paid)));
    }
    const bool rates = request.has_rates();
    for (const auto& served : request.models)
        for (const auto& workload : served.workloads)
            problem.workloads.push_back(
                {workload.name, rates ? workload.rate : workload.requests, served.model.name});
    const double memory_fraction = options.estimate.memory_fraction;
    const Calibrator calibrator(request, options.estimate);
    std::size_t first = 0;
    int possible = 0;
    std::set<std::string> names;
    for (std::size_t i = 0; i < request.models.size(); ++i) {
        const auto& served = request.models[i];
        const auto alone = holds_alone(served, request.gpus, options.deployments, memory_fraction);
        // Of many GPU types, most deployments are pipelines of two types, which this drops as they are found.
        const auto is_considered = [&](const Deployment& deployment) {
            if (options.measured_only && !calibrator.any(i, deployment.name)) return false;
            const bool runs = std::any_of(running.begin(), running.end(), [&](const PlannedReplicas& r) {
                return r.model == served.model.name && r.deployment.stages == deployment.stages;
            });
            if (!runs && !options.unmeasured_pipelines &&
                calibrator.unmeasured_pipeline(i, deployment, alone))
                return false;
            if (++possible <= most_possible_deployments) return true;
            throw InvalidInput(
                "deployments: more than " + number_text(most_possible_deployments) +
                " of the models are possible on " + number_text(request.gpus.size()) +
                " GPU types; expected at most so many: lower max_types, max_stages or max_gpus, "
                "list fewer degrees, or give fewer GPU types");
        };
        auto found = find_deployments(served.model, request.gpus, available, options.deployments,
                                      memory_fraction, is_considered, stop);
        add_measured(found, calibrator, i, available, request.gpus, options.deployments.across_regions);
        for (auto& deployment : found) {
            if (stop && instance.deployments.size() % 256 == 255 && stop()) return instance;
            ServingConfiguration c{unique_name(served.model.name + ": " + deployment.name, names),
                                   gpus_by_type(deployment, request.gpus.size()),
                                   std::vector<double>(problem.workloads.size(), 0.0), served.model.name};
            std::vector<Source> sources(problem.workloads.size(), Source::estimated);
            for (std::size_t d = 0; d < served.workloads.size(); ++d) {
                if (options.measured_only && calibrator.measured(i, deployment.name, d) == nullptr) continue;
                std::tie(c.throughput[first + d], sources[first + d]) = calibrator.rate(
                    i, deployment, d,
                    calibrator.mix(i, d).estimate(calibrator.estimator(i), deployment).requests_per_s);
            }
            problem.configurations.push_back(std::move(c));
            instance.deployments.push_back(std::move(deployment));
            instance.sources.push_back(std::move(sources));
        }
        first += served.workloads.size();
    }
    return instance;
}

std::vector<std::size_t> configurations_of(const ServingInstance& instance, const PlannedReplicas& replicas) {
    std::vector<std::size_t> found;
    for (std::size_t c = 0; c < instance.deployments.size(); ++c)
        if (instance.problem.configurations[c].model == replicas.model &&
            instance.deployments[c].stages == replicas.deployment.stages)
            found.push_back(c);
    return found;
}

std::vector<int> best_per_dollar(const ServingProblem& problem, const std::vector<int>& of, int most) {
    const auto costs = configuration_costs(problem);
    const auto value = [&](int c, std::size_t w) {
        const auto at = static_cast<std::size_t>(c);
        return problem.configurations[at].throughput[w] / std::max(costs[at], 1e-12);
    };
    std::vector<double> best(problem.workloads.size(), 0.0);
    for (const auto c : of)
        for (std::size_t w = 0; w < best.size(); ++w) best[w] = std::max(best[w], value(c, w));
    struct Ranked {
        int rank;
        double minus_score;
        int configuration;
        auto operator<=>(const Ranked&) const = default;
    };
    std::map<std::pair<std::string, std::vector<bool>>, std::vector<Ranked>> groups;
    for (const auto c : of) {
        const auto& configuration = problem.configurations[static_cast<std::size_t>(c)];
        double score = 0;
        for (std::size_t w = 0; w < best.size(); ++w)
            if (best[w] > 0) score = std::max(score, value(c, w) / best[w]);
        std::vector<bool> types;
        for (const auto count : configuration.gpus) types.push_back(count > 0);
        groups[{configuration.model, types}].push_back({0, -score, c});
    }
    std::map<std::string, std::vector<Ranked>> models;
    for (auto& [key, group] : groups) {
        std::sort(group.begin(), group.end());
        for (std::size_t i = 0; i < group.size(); ++i) {
            // Replicas of one type come first, since deployments of several types are many.
            const auto types = std::count(key.second.begin(), key.second.end(), true);
            group[i].rank = static_cast<int>(i) * static_cast<int>(types * types);
            models[key.first].push_back(group[i]);
        }
    }
    std::vector<int> keep;
    for (auto& [model, all] : models) {
        std::sort(all.begin(), all.end());
        for (std::size_t i = 0; i < all.size() && (most == 0 || i < static_cast<std::size_t>(most)); ++i)
            keep.push_back(all[i].configuration);
    }
    std::sort(keep.begin(), keep.end());
    return keep;
}

std::ptrdiff_t type_count(const ServingConfiguration& configuration) {
    return std::count_if(configuration.gpus.begin(), configuration.gpus.end(), [](int n) { return n > 0; });
}

std::vector<int> best_of_fewer_types(const ServingProblem& problem, const std::vector<int>& of, int most,
                                     bool undominated) {
    const auto types = [&](int c) { return type_count(problem.configurations[static_cast<std::size_t>(c)]); };
    std::ptrdiff_t most_types = 0;
    for (const auto c : of) most_types = std::max(most_types, types(c));
    std::vector<int> keep;
    for (std::ptrdiff_t t = 1; t < most_types; ++t) {
        std::vector<int> fewer;
        std::copy_if(of.begin(), of.end(), std::back_inserter(fewer), [&](int c) { return types(c) <= t; });
        std::vector<int> unused;
        add_configurations(keep, undominated ? chosen(problem, fewer, most, unused)
                                             : best_per_dollar(problem, fewer, most));
    }
    return keep;
}

ServingInstance kept(const ServingInstance& all, const std::vector<int>& keep) {
    ServingInstance result{with_configurations(all.problem, keep), {}, all.left_out, {}};
    for (const auto c : keep) {
        result.deployments.push_back(all.deployments[static_cast<std::size_t>(c)]);
        result.sources.push_back(all.sources[static_cast<std::size_t>(c)]);
    }
    return result;
}

std::vector<int> chosen(const ServingProblem& problem, const std::vector<int>& of, int most,
                        std::vector<int>& dropped) {
    const auto undominated = undominated_configurations(problem, of);
    auto keep = best_per_dollar(problem, undominated, most);
    dropped = without(undominated, keep);
    return keep;
}

void add_configurations(std::vector<int>& keep, const std::vector<int>& also) {
    keep.insert(keep.end(), also.begin(), also.end());
    std::sort(keep.begin(), keep.end());
    keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
}

std::vector<int> without(const std::vector<int>& of, const std::vector<int>& keep) {
    std::vector<int> rest;
    std::copy_if(of.begin(), of.end(), std::back_inserter(rest),
                 [&](int c) { return !std::binary_search(keep.begin(), keep.end(), c); });
    return rest;
}

GPUSCHED_EXPORT ServingInstance selected(const ServingInstance& all, int most, const std::vector<int>& also) {
    std::vector<int> every(all.deployments.size());
    std::iota(every.begin(), every.end(), 0);
    std::vector<int> dropped;
    auto keep = chosen(all.problem, every, most, dropped);
    add_configurations(keep, also);
    auto result = kept(all, keep);
    result.left_out = static_cast<int>(without(dropped, keep).size());
    return result;
}

ServingPlan described(const ServingRequest& request, const ServingInstance& instance,
                      const ServingSolution& plan) {
    ServingPlan result;
    result.status = plan.status;
    result.rented.assign(request.gpus.size(), 0);
    result.bound = plan.bound;
    result.optimal = plan.optimal;
    result.left_out = instance.left_out;
    result.solver = plan.solver;
    result.message = plan.message;
    if (!plan.has_plan()) return result;
    const auto& problem = instance.problem;
    const auto costs = configuration_costs(problem);
    for (std::size_t c = 0; c < problem.configurations.size(); ++c) {
        const int count = plan.allocation.replicas[c];
        if (count == 0) continue;
        PlannedReplicas replicas{problem.configurations[c].model, instance.deployments[c], count,
                                 count * costs[c]};
        for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
            if (problem.workloads[w].model != replicas.model) continue;
            replicas.share.push_back(plan.allocation.share[c][w]);
            replicas.requests_per_s.push_back(problem.configurations[c].throughput[w]);
            replicas.source.push_back(instance.sources[c][w]);
        }
        for (std::size_t g = 0; g < request.gpus.size(); ++g)
            result.rented[g] += count * problem.configurations[c].gpus[g];
        result.cost += replicas.cost;
        result.replicas.push_back(std::move(replicas));
    }
    for (std::size_t g = 0; g < request.gpus.size(); ++g)
        if (result.rented[g] > 0)
            result.rentals.push_back({request.gpus[g].name, result.rented[g], 0, result.rented[g], 1,
                                      result.rented[g] * *request.gpus[g].price});
    result.makespan = serving::makespan(problem, plan.allocation);
    double requests = 0;
    for (const auto& workload : problem.workloads) requests += workload.requests;
    result.requests_per_s = result.makespan > 0 ? requests / result.makespan : 0;
    result.cost_per_request = requests > 0 ? result.cost * result.makespan / 3600 / requests : 0;
    return result;
}

}  // namespace gpusched::serving::detail
