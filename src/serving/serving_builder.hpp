// SPDX-License-Identifier: Apache-2.0
// What all forms of the serving problem share.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/serving_milp.hpp>

#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// What all forms share: names, seconds and the rows over money and GPUs.
struct ServingBuilder {
    const ServingProblem& problem;
    milp::ModelBuilder model;
    std::vector<double> costs = configuration_costs(problem);
    std::vector<int> most = most_replicas(problem);
    std::vector<std::vector<double>> seconds;
    std::vector<int> first_copy{0};
    std::vector<milp::Entry> entries;
    int C = static_cast<int>(problem.configurations.size());
    int W = static_cast<int>(problem.workloads.size());
    int N = static_cast<int>(problem.gpus.size());

    ServingBuilder(const ServingProblem& p, const char* name) : problem(p), model(name) {
        for (const auto& c : p.configurations) {
            seconds.emplace_back();
            for (std::size_t w = 0; w < c.throughput.size(); ++w)
                seconds.back().push_back(c.throughput[w] > 0 ? p.workloads[w].requests / c.throughput[w]
                                                             : 0.0);
        }
    }
    /// Numbers the copies of all configurations, for the forms that have a column for each.
    void number_copies(const char* form) {
        constexpr int limit = 10'000'000;
        double all = 0;
        for (const int count : most) all += count;
        if (all > limit)
            throw InvalidInput(bad_value("replicas that could be rented", number_text(all),
                                         "at most " + std::to_string(limit) + " with form " +
                                             gpusched::quoted(form) + "; 'rates' has no limit"));
        for (const int count : most) first_copy.push_back(first_copy.back() + count);
    }
    [[nodiscard]] bool wanted(int w) const {
        return problem.workloads[static_cast<std::size_t>(w)].requests > 0;
    }
    [[nodiscard]] double busy(int c, int w) const {
        return seconds[static_cast<std::size_t>(c)][static_cast<std::size_t>(w)];
    }
    [[nodiscard]] double cost(int c) const { return costs[static_cast<std::size_t>(c)]; }
    [[nodiscard]] int copies(int c) const { return most[static_cast<std::size_t>(c)]; }
    [[nodiscard]] int gpus(int c, int n) const {
        return problem.configurations[static_cast<std::size_t>(c)].gpus[static_cast<std::size_t>(n)];
    }
    /// A name within another one: commas that are its own cannot be taken for those between names.
    [[nodiscard]] static std::string part(const std::string& name) {
        std::string text;
        for (const char letter : name) {
            if (letter == ',' || letter == '\\') text += '\\';
            text += letter;
        }
        return text;
    }
    [[nodiscard]] std::string config(int c) const {
        return part(problem.configurations[static_cast<std::size_t>(c)].name);
    }
    [[nodiscard]] std::string workload(int w) const {
        const auto& workload = problem.workloads[static_cast<std::size_t>(w)];
        return workload.model.empty() ? part(workload.name)
                                      : part(workload.model) + "," + part(workload.name);
    }
    [[nodiscard]] std::string gpu(int n) const { return problem.gpus[static_cast<std::size_t>(n)].name; }
    [[nodiscard]] static std::string call(const char* what, const std::string& a) {
        return std::string(what) + "(" + a + ")";
    }
    [[nodiscard]] static std::string call(const char* what, const std::string& a, const std::string& b) {
        return std::string(what) + "(" + a + "," + b + ")";
    }

    /// sum of x over everything that serves w = 1
    void coverage(const milp::IndexMap& x, int slots) {
        for (int w = 0; w < W; ++w) {
            if (!wanted(w)) continue;
            entries.clear();
            for (int i = 0; i < slots; ++i)
                if (x(i, w) >= 0) entries.push_back({x(i, w), 1});
            model.equal("coverage", call("coverage", workload(w)), entries, 1);
        }
    }
    /// sum over c of weight * (columns of c) within what there is, less `per_T` * T where that is a column
    template <class Each>
    void resources(const char* group, Each&& each, int T = -1) {
        const auto row = [&](const std::string& name, double have, auto&& weight) {
            entries.clear();
            for (int c = 0; c < C; ++c)
                if (weight(c) != 0) each(c, static_cast<double>(weight(c)));
            if (T >= 0) entries.push_back({T, -have});
            model.at_most(group, name, entries, T >= 0 ? 0 : have);
        };
        const bool grouped = T < 0;
        const std::string prefix = grouped ? "" : "surrogate ";
        group = grouped ? "budget" : group;
        row(prefix + "budget", problem.budget, [&](int c) { return cost(c); });
        if (grouped) group = "availability";
        for (int n = 0; n < N; ++n)
            row(prefix + call("availability", gpu(n)), problem.gpus[static_cast<std::size_t>(n)].available,
                [&](int c) { return gpus(c, n); });
    }
    ServingMilp finish(ServingForm form, int T) {
        ServingMilp result{model.finish(), form, T, first_copy, seconds, {}};
        result.upper.assign(most.begin(), most.end());
        return result;
    }
};

/// x(c, w) columns of the forms without copies.
inline milp::IndexMap serving_shares(ServingBuilder& b) {
    milp::IndexMap x("x", {b.C, b.W});
    for (int c = 0; c < b.C; ++c)
        for (int w = 0; w < b.W; ++w)
            if (b.busy(c, w) > 0) x(c, w) = b.model.column(b.call("x", b.config(c), b.workload(w)), 0, 1);
    return x;
}

}  // namespace gpusched::serving::detail
