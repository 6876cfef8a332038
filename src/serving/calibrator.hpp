// SPDX-License-Identifier: Apache-2.0
// Throughputs of a request: measured where they were, estimates calibrated by what was measured otherwise.
#pragma once

#include <gpusched/serving/plan_serving.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// The type that all stages of a deployment have, or -1.
inline int single_type(const Deployment& deployment) {
    for (const auto& stage : deployment.stages)
        if (stage.gpu != deployment.stages.front().gpu) return -1;
    return deployment.stages.empty() ? -1 : deployment.stages.front().gpu;
}
inline int gpus_of(const Deployment& deployment) {
    int all = 0;
    for (const auto& stage : deployment.stages) all += stage.degree;
    return all;
}

/// The measurements of a valid request beside the estimates.
class Calibrator {
  public:
    /// One deployment and workload that was measured.
    struct Row {
        std::size_t model, workload;
        Deployment deployment;
        double measured;
        ThroughputEstimate estimate;
        std::optional<double> ttft_s, tpot_s;  ///< at the highest load
    };

    Calibrator(const ServingRequest& request, const EstimateOptions& options)
        : request_(request), options_(options) {
        std::map<std::pair<std::size_t, std::string>, std::map<std::size_t, std::size_t>> at;
        for (const auto& m : request.measured)
            for (std::size_t i = 0; i < request.models.size(); ++i) {
                const auto& served = request.models[i];
                if (served.model.name != m.model) continue;
                for (std::size_t d = 0; d < served.workloads.size(); ++d) {
                    if (served.workloads[d].name != m.workload) continue;
                    auto& known = at[{i, m.deployment}];
                    const auto found = known.find(d);
                    if (found != known.end()) {
                        auto& row = rows_[found->second];
                        if (m.requests_per_s > row.measured) {
                            row.measured = m.requests_per_s;
                            row.ttft_s = m.ttft_s;
                            row.tpot_s = m.tpot_s;
                        }
                        continue;
                    }
                    known[d] = rows_.size();
                    auto deployment = parse_deployment(m.deployment, served.model, request.gpus);
                    const auto estimate = estimate_throughput(served.model, request.gpus, deployment,
                                                              served.workloads[d].shape, options);
                    rows_.push_back(
                        {i, d, std::move(deployment), m.requests_per_s, estimate, m.ttft_s, m.tpot_s});
                }
            }
        const auto unlimited = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < request.models.size(); ++i)
            best_.emplace_back(request.gpus.size(),
                               std::vector<double>(request.models[i].workloads.size(), unlimited));
        // What the best measured deployment of a type serves per GPU, its own ratio applied where a kind was not measured.
        for (const auto& row : rows_) {
            const int type = single_type(row.deployment);
            const auto own = own_ratio(row.model, row.deployment.name);
            if (type < 0 || !own) continue;
            const auto& served = request.models[row.model];
            for (std::size_t d = 0; d < served.workloads.size(); ++d) {
                const auto* exact = measured(row.model, row.deployment.name, d);
                const double rate =
                    exact != nullptr ? exact->measured
                                     : *own * estimate_throughput(served.model, request.gpus, row.deployment,
                                                                  served.workloads[d].shape, options)
                                                  .requests_per_s;
                auto& best = best_[row.model][static_cast<std::size_t>(type)][d];
                const double each = rate / gpus_of(row.deployment);
                if (each <= 0) continue;  // what this deployment cannot serve, a larger one may
                best = best == unlimited ? each : std::max(best, each);
            }
        }
    }

    [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
    [[nodiscard]] const Row* measured(std::size_t model, const std::string& deployment,
                                      std::size_t workload) const {
        for (const auto& row : rows_)
            if (row.model == model && row.workload == workload && row.deployment.name == deployment)
                return &row;
        return nullptr;
    }
    [[nodiscard]] bool any(std::size_t model, const std::string& deployment) const {
        return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
            return row.model == model && row.deployment.name == deployment;
        });
    }

    /// Whether a deployment is a pipeline that nobody measured, and no measurement says what its stages lose to each other: on a
    /// type where no pipeline of the model was measured, although a single group was, or holds the model.
    /// @param alone  whether a single group of each type holds the model
    [[nodiscard]] bool unmeasured_pipeline(std::size_t model, const Deployment& deployment,
                                           const std::vector<bool>& alone) const {
        if (deployment.stages.size() < 2 || any(model, deployment.name)) return false;
        return std::any_of(deployment.stages.begin(), deployment.stages.end(), [&](const auto& stage) {
            bool single = alone[static_cast<std::size_t>(stage.gpu)], pipeline = false;
            for (const auto& row : rows_) {
                if (row.model != model) continue;
                for (const auto& other : row.deployment.stages)
                    if (other.gpu == stage.gpu) (row.deployment.stages.size() > 1 ? pipeline : single) = true;
            }
            return single && !pipeline;
        });
    }

    /// Requests/s to plan with, and where the number comes from.
    [[nodiscard]] std::pair<double, Source> rate(std::size_t model, const Deployment& deployment,
                                                 std::size_t workload, double estimate) const {
        if (const auto* row = measured(model, deployment.name, workload))
            return {row->measured, Source::measured};
        if (const auto own = own_ratio(model, deployment.name)) return {estimate * *own, Source::calibrated};
        return believed(model, deployment, workload, estimate, {});
    }

    /// The factor of a model on a type, without the rows of one deployment.
    [[nodiscard]] CalibrationFactor factor(std::size_t model, std::size_t gpu,
                                           const std::string& without = {}) const {
        CalibrationFactor result{request_.models[model].model.name, request_.gpus[gpu].name, 1, 0, 0};
        double sum = 0, squares = 0, all = 0, every = 0;
        int of_model = 0, any = 0;
        for (const auto& row : rows_) {
            if (row.measured <= 0 || row.estimate.requests_per_s <= 0 || row.deployment.name == without)
                continue;
            const double ratio = std::log(row.measured / row.estimate.requests_per_s);
            every += ratio;
            ++any;
            if (row.model != model) continue;
            all += ratio;
            ++of_model;
            if (single_type(row.deployment) != static_cast<int>(gpu)) continue;
            sum += ratio;
            squares += ratio * ratio;
            ++result.rows;
        }
        const double n = result.rows;
        if (result.rows > 0)
            result.factor = std::exp(sum / n);
        else if (of_model > 0)
            result.factor = std::exp(all / of_model);
        else if (any > 0)
            result.factor = std::exp(every / any);
        if (result.rows > 1) result.spread = std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
        return result;
    }

    [[nodiscard]] Calibration report() const {
        Calibration result;
        if (rows_.empty()) return result;
        for (std::size_t i = 0; i < request_.models.size(); ++i)
            for (std::size_t g = 0; g < request_.gpus.size(); ++g) result.factors.push_back(factor(i, g));
        for (const auto& row : rows_) {
            const auto& served = request_.models[row.model];
            MeasurementResidual r{
                served.model.name, row.deployment.name,         served.workloads[row.workload].name,
                row.measured,      row.estimate.requests_per_s, 0};
            r.calibrated = believed(row.model, row.deployment, row.workload, row.estimate.requests_per_s,
                                    row.deployment.name)
                               .first;
            if (row.ttft_s) {
                r.ttft_s = *row.ttft_s;
                r.ttft_idle_s = row.estimate.first_token_s;
            }
            if (row.tpot_s) {
                r.tpot_s = *row.tpot_s;
                r.tpot_idle_s = row.estimate.step_s;
            }
            result.residuals.push_back(std::move(r));
        }
        return result;
    }

  private:
    /// Measured over estimated, geometric mean over what was measured of one deployment.
    [[nodiscard]] std::optional<double> own_ratio(std::size_t model, const std::string& deployment) const {
        double sum = 0;
        int n = 0;
        for (const auto& row : rows_)
            if (row.model == model && row.deployment.name == deployment && row.measured > 0 &&
                row.estimate.requests_per_s > 0) {
                sum += std::log(row.measured / row.estimate.requests_per_s);
                ++n;
            }
        return n > 0 ? std::optional(std::exp(sum / n)) : std::nullopt;
    }

    /// What is believed of a deployment that was not measured. It is never credited with more per GPU than the best that was
    /// measured on its type: of two that look alike, the measured one is preferred.
    [[nodiscard]] std::pair<double, Source> believed(std::size_t model, const Deployment& deployment,
                                                     std::size_t workload, double estimate,
                                                     const std::string& without) const {
        if (rows_.empty()) return {estimate, Source::estimated};
        double least = std::numeric_limits<double>::infinity(), most = 0;
        bool calibrated = true;
        for (const auto& stage : deployment.stages) {
            const auto g = static_cast<std::size_t>(stage.gpu);
            const auto f = factor(model, g, without);
            least = std::min(least, f.factor);
            calibrated = calibrated && f.rows > 0;
            most += stage.degree * best_[model][g][workload];
        }
        double rate = estimate * least;
        if (without.empty()) rate = std::min(rate, 0.99 * most);
        return {rate, calibrated ? Source::calibrated : Source::estimated};
    }

    const ServingRequest& request_;
    const EstimateOptions& options_;
    std::vector<Row> rows_;
    std::vector<std::vector<std::vector<double>>> best_;  ///< [model][type][workload]: requests/s per GPU
};

}  // namespace gpusched::serving::detail
