// SPDX-License-Identifier: Apache-2.0
// ServingProblem: validation, dominance, and the values of an allocation.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/serving_problem.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace gpusched::serving {

GPUSCHED_EXPORT void validate(const ServingProblem& problem) {
    Problems problems;
    const double most = std::numeric_limits<double>::max();
    std::set<std::string> names;
    for (const auto& gpu : problem.gpus) {
        const auto owner = "GPU type " + gpusched::quoted(gpu.name);
        if (!names.insert(gpu.name).second) problems.add(owner + ": appears twice");
        check_range(problems, "price", gpu.price, 0.0, most, owner);
        check_at_least(problems, "available", gpu.available, 0, owner);
    }
    std::set<std::pair<std::string, std::string>> workloads;
    for (const auto& workload : problem.workloads) {
        const auto owner = "workload " + gpusched::quoted(workload.name);
        if (!workloads.emplace(workload.model, workload.name).second) problems.add(owner + ": appears twice");
        check_range(problems, "requests", workload.requests, 0.0, most, owner);
    }
    names.clear();
    for (const auto& c : problem.configurations) {
        const auto owner = "configuration " + gpusched::quoted(c.name);
        if (!names.insert(c.name).second) problems.add(owner + ": appears twice");
        if (check_size(problems, "gpus", c.gpus.size(), problem.gpus.size(), {}, owner)) {
            for (const auto count : c.gpus) check_at_least(problems, "gpus", count, 0, owner);
            if (std::all_of(c.gpus.begin(), c.gpus.end(), [](int count) { return count == 0; }))
                problems.add(bad_value("gpus", "none", "at least one GPU", owner));
        }
        if (!check_size(problems, "throughput", c.throughput.size(), problem.workloads.size(), {}, owner))
            continue;
        for (std::size_t w = 0; w < c.throughput.size(); ++w) {
            const auto& workload = problem.workloads[w];
            const auto field = "throughput of " + gpusched::quoted(workload.name);
            if (check_range(problems, field, c.throughput[w], 0.0, most, owner) && c.throughput[w] > 0 &&
                workload.model != c.model)
                problems.add(bad_value(
                    field, number_text(c.throughput[w]),
                    "0, since the workload is for model " + gpusched::quoted(workload.model), owner));
        }
    }
    check_range(problems, "budget", problem.budget, 0.0, most);
    problems.throw_if_any();
    // Costs and times must be finite, too.
    const auto costs = configuration_costs(problem);
    double slowest = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const auto& c = problem.configurations[i];
        const auto owner = "configuration " + gpusched::quoted(c.name);
        check_range(problems, "cost", costs[i], 0.0, most, owner);
        for (std::size_t w = 0; w < c.throughput.size(); ++w)
            if (c.throughput[w] > 0) {
                const double seconds = problem.workloads[w].requests / c.throughput[w];
                check_range(problems, "seconds for " + gpusched::quoted(problem.workloads[w].name), seconds,
                            0.0, most, owner);
                slowest = std::max(slowest, seconds);
            }
    }
    problems.throw_if_any();
    check_range(problems, "seconds for all workloads",
                slowest * static_cast<double>(problem.workloads.size()), 0.0, most);
    problems.throw_if_any();
}

GPUSCHED_EXPORT std::vector<double> configuration_costs(const ServingProblem& problem) {
    std::vector<double> costs;
    for (const auto& c : problem.configurations) {
        double sum = 0;
        for (std::size_t n = 0; n < c.gpus.size(); ++n) sum += c.gpus[n] * problem.gpus[n].price;
        costs.push_back(sum);
    }
    return costs;
}

GPUSCHED_EXPORT std::vector<int> most_replicas(const ServingProblem& problem) {
    const auto costs = configuration_costs(problem);
    std::vector<int> most;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const auto& c = problem.configurations[i];
        int count = std::numeric_limits<int>::max();
        for (std::size_t n = 0; n < c.gpus.size(); ++n)
            if (c.gpus[n] > 0) count = std::min(count, problem.gpus[n].available / c.gpus[n]);
        if (costs[i] > 0)
            count = static_cast<int>(std::min<double>(count, std::floor(problem.budget / costs[i] + 1e-9)));
        most.push_back(count);
    }
    return most;
}

namespace detail {

/// The numbers of kept configurations with one model and one set of GPU types, in adjacent rows.
struct KeptConfigurations {
    std::vector<std::size_t> types{};  ///< the set; they use no other types
    std::vector<int> gpus{};           ///< of these types
    std::vector<double> throughput{};

    void add(const ServingConfiguration& c) {
        if (types.empty())
            for (std::size_t n = 0; n < c.gpus.size(); ++n)
                if (c.gpus[n] > 0) types.push_back(n);
        for (const auto n : types) gpus.push_back(c.gpus[n]);
        throughput.insert(throughput.end(), c.throughput.begin(), c.throughput.end());
    }
    /// Whether one of them dominates `c`.
    [[nodiscard]] bool cover(const ServingConfiguration& c) const {
        const auto kinds = c.throughput.size();
        for (std::size_t row = 0; row * types.size() < gpus.size(); ++row)
            if (std::equal(types.begin(), types.end(), gpus.data() + row * types.size(),
                           [&](std::size_t n, int needs) { return c.gpus[n] >= needs; }) &&
                std::equal(c.throughput.begin(), c.throughput.end(), throughput.data() + row * kinds,
                           std::less_equal<>{}))
                return true;
        return false;
    }
};

}  // namespace detail

GPUSCHED_EXPORT std::vector<int> undominated_configurations(const ServingProblem& problem) {
    std::vector<int> all(problem.configurations.size());
    std::iota(all.begin(), all.end(), 0);
    return undominated_configurations(problem, all);
}

GPUSCHED_EXPORT std::vector<int> undominated_configurations(const ServingProblem& problem,
                                                            const std::vector<int>& of) {
    const auto& all = problem.configurations;
    // A configuration comes after all that dominate it, which need no more GPUs and have a throughput that is
    // not lexicographically smaller. So it is compared only with those kept before, and of these with the
    // ones without another GPU type.
    auto order = of;
    std::vector<int> kept;
    std::vector<std::int64_t> size;
    for (const auto& c : all) size.push_back(std::accumulate(c.gpus.begin(), c.gpus.end(), std::int64_t{0}));
    std::sort(order.begin(), order.end(), [&](int i, int j) {
        const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
        if (size[a] != size[b]) return size[a] < size[b];
        if (all[a].throughput != all[b].throughput) return all[a].throughput > all[b].throughput;
        return i < j;
    });
    std::map<std::string, std::map<std::vector<bool>, detail::KeptConfigurations>> of_model;
    for (const auto i : order) {
        const auto& c = all[static_cast<std::size_t>(i)];
        auto& groups = of_model[c.model];
        std::vector<bool> types;
        for (const auto count : c.gpus) types.push_back(count > 0);
        if (std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
                return std::equal(types.begin(), types.end(), group.first.begin(), std::greater_equal<>{}) &&
                       group.second.cover(c);
            }))
            continue;
        groups[types].add(c);
        kept.push_back(i);
    }
    std::sort(kept.begin(), kept.end());
    return kept;
}

GPUSCHED_EXPORT ServingProblem with_configurations(const ServingProblem& problem,
                                                   const std::vector<int>& keep) {
    ServingProblem result{problem.gpus, problem.workloads, {}, problem.budget};
    for (const auto i : keep)
        result.configurations.push_back(problem.configurations.at(static_cast<std::size_t>(i)));
    return result;
}

GPUSCHED_EXPORT double makespan(const ServingProblem& problem, const ServingAllocation& allocation) {
    double latest = 0;
    for (std::size_t c = 0; c < allocation.share.size(); ++c) {
        double busy = 0;
        for (std::size_t w = 0; w < allocation.share[c].size(); ++w) {
            const double work = allocation.share[c][w] * problem.workloads[w].requests;
            if (work <= 0) continue;
            const double rate = problem.configurations[c].throughput[w] * allocation.replicas[c];
            busy += rate > 0 ? work / rate : std::numeric_limits<double>::infinity();
        }
        latest = std::max(latest, busy);
    }
    return latest;
}

GPUSCHED_EXPORT double cost(const ServingProblem& problem, const ServingAllocation& allocation) {
    const auto costs = configuration_costs(problem);
    double sum = 0;
    for (std::size_t c = 0; c < costs.size(); ++c) sum += costs[c] * allocation.replicas[c];
    return sum;
}

GPUSCHED_EXPORT std::vector<int> rented(const ServingProblem& problem, const ServingAllocation& allocation) {
    std::vector<int> used(problem.gpus.size(), 0);
    for (std::size_t c = 0; c < problem.configurations.size(); ++c)
        for (std::size_t n = 0; n < used.size(); ++n)
            used[n] += problem.configurations[c].gpus[n] * allocation.replicas[c];
    return used;
}

GPUSCHED_EXPORT std::vector<std::string> violations(const ServingProblem& problem,
                                                    const ServingAllocation& allocation, double tolerance) {
    std::vector<std::string> found;
    const auto used = rented(problem, allocation);
    for (std::size_t n = 0; n < used.size(); ++n)
        if (used[n] > problem.gpus[n].available)
            found.push_back(bad_value("rented " + gpusched::quoted(problem.gpus[n].name),
                                      std::to_string(used[n]),
                                      "at most " + std::to_string(problem.gpus[n].available)));
    const double spent = cost(problem, allocation);
    if (spent > problem.budget + tolerance)
        found.push_back(bad_value("cost", number_text(spent), "at most " + number_text(problem.budget)));
    for (std::size_t w = 0; w < problem.workloads.size(); ++w) {
        if (problem.workloads[w].requests <= 0) continue;
        double served = 0;
        for (std::size_t c = 0; c < allocation.share.size(); ++c) {
            const double share = allocation.share[c][w];
            served += share;
            if (share < -tolerance)
                found.push_back(
                    bad_value("share", number_text(share), "at least 0",
                              "configuration " + gpusched::quoted(problem.configurations[c].name)));
        }
        if (std::abs(served - 1) > tolerance)
            found.push_back(bad_value("served share of " + gpusched::quoted(problem.workloads[w].name),
                                      number_text(served), "1"));
    }
    if (!std::isfinite(makespan(problem, allocation)))
        found.emplace_back("share: requests go to a configuration that cannot serve them");
    return found;
}

}  // namespace gpusched::serving
