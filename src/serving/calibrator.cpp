// SPDX-License-Identifier: Apache-2.0
// Calibrator: compares measured with estimated throughputs, and corrects estimates of deployments without
// measurements.
#include "serving/calibrator.hpp"

#include <gpusched/config.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpusched::serving {

namespace detail {

constexpr double unlimited = std::numeric_limits<double>::infinity();

int single_type(const Deployment& deployment) {
    for (const auto& stage : deployment.stages)
        if (stage.gpu != deployment.stages.front().gpu) return -1;
    return deployment.stages.empty() ? -1 : deployment.stages.front().gpu;
}

Calibrator::Calibrator(const ServingRequest& request, const EstimateOptions& options)
    : request_(request), estimators_(estimators_of(request, options)) {
    for (const auto& served : request.models)
        mixes_.emplace_back(served.workloads.begin(), served.workloads.end());
    for (const auto& measured : request.measured)
        for (std::size_t i = 0; i < request.models.size(); ++i) {
            const auto& [model, workloads] = request.models[i];
            for (std::size_t d = 0; d < workloads.size(); ++d)
                if (model.name == measured.model && workloads[d].name == measured.workload)
                    add(i, d, measured);
        }
    find_best();
}

void Calibrator::add(std::size_t model, std::size_t workload, const MeasuredThroughput& measured) {
    const auto known = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) {
        return row.model == model && row.workload == workload && row.deployment.name == measured.deployment;
    });
    if (known != rows_.end()) {
        if (measured.requests_per_s > known->measured) {
            known->measured = measured.requests_per_s;
            known->ttft_s = measured.ttft_s;
            known->tpot_s = measured.tpot_s;
        }
        return;
    }
    const auto& served = request_.models[model];
    auto deployment = parse_deployment(measured.deployment, served.model, request_.gpus);
    const auto estimate = mixes_[model][workload].estimate(estimators_[model], deployment);
    rows_.push_back({model, workload, std::move(deployment), measured.requests_per_s, estimate,
                     measured.ttft_s, measured.tpot_s});
}

/// Finds the requests/s per GPU of the best measured deployment of each type. Its own ratio corrects the
/// estimates of its other workloads.
void Calibrator::find_best() {
    for (const auto& served : request_.models)
        best_.emplace_back(request_.gpus.size(), std::vector<double>(served.workloads.size(), unlimited));
    for (const auto& row : rows_) {
        const int type = single_type(row.deployment);
        const auto own = own_ratio(row.model, row.deployment.name);
        if (type < 0 || !own) continue;
        const auto& served = request_.models[row.model];
        int gpus = 0;
        for (const auto& stage : row.deployment.stages) gpus += stage.degree;
        for (std::size_t d = 0; d < served.workloads.size(); ++d) {
            const auto* exact = measured(row.model, row.deployment.name, d);
            const double rate = exact != nullptr
                                    ? exact->measured
                                    : *own * mixes_[row.model][d]
                                                 .estimate(estimators_[row.model], row.deployment)
                                                 .requests_per_s;
            auto& best = best_[row.model][static_cast<std::size_t>(type)][d];
            const double each = rate / gpus;
            if (each <= 0) continue;  // a larger deployment may serve this workload
            best = best == unlimited ? each : std::max(best, each);
        }
    }
}

const Calibrator::Row* Calibrator::measured(std::size_t model, const std::string& deployment,
                                            std::size_t workload) const {
    for (const auto& row : rows_)
        if (row.model == model && row.workload == workload && row.deployment.name == deployment) return &row;
    return nullptr;
}

bool Calibrator::any(std::size_t model, const std::string& deployment) const {
    return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
        return row.model == model && row.deployment.name == deployment;
    });
}

bool Calibrator::unmeasured_pipeline(std::size_t model, const Deployment& deployment,
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

std::pair<double, Source> Calibrator::rate(std::size_t model, const Deployment& deployment,
                                           std::size_t workload, double estimate) const {
    if (const auto* row = measured(model, deployment.name, workload))
        return {row->measured, Source::measured};
    if (const auto own = own_ratio(model, deployment.name)) return {estimate * *own, Source::calibrated};
    return calibrated(model, deployment, workload, estimate, {});
}

CalibrationFactor Calibrator::factor(std::size_t model, std::size_t gpu, const std::string& without) const {
    CalibrationFactor result{request_.models[model].model.name, request_.gpus[gpu].name, 1, 0, 0};
    double sum = 0, squares = 0, of_model = 0, all = 0;
    int rows_of_model = 0, rows = 0;
    for (const auto& row : rows_) {
        if (row.measured <= 0 || row.estimate.requests_per_s <= 0 || row.deployment.name == without) continue;
        const double ratio = std::log(row.measured / row.estimate.requests_per_s);
        all += ratio;
        ++rows;
        if (row.model != model) continue;
        of_model += ratio;
        ++rows_of_model;
        if (single_type(row.deployment) != static_cast<int>(gpu)) continue;
        sum += ratio;
        squares += ratio * ratio;
        ++result.rows;
    }
    const double n = result.rows;
    if (result.rows > 0)
        result.factor = std::exp(sum / n);
    else if (rows_of_model > 0)
        result.factor = std::exp(of_model / rows_of_model);
    else if (rows > 0)
        result.factor = std::exp(all / rows);
    if (result.rows > 1) result.spread = std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
    return result;
}

Calibration Calibrator::report() const {
    Calibration result;
    if (rows_.empty()) return result;
    for (std::size_t i = 0; i < request_.models.size(); ++i)
        for (std::size_t g = 0; g < request_.gpus.size(); ++g) result.factors.push_back(factor(i, g));
    for (const auto& row : rows_) {
        const auto& served = request_.models[row.model];
        const double estimated = row.estimate.requests_per_s;
        MeasurementResidual r{.model = served.model.name,
                              .deployment = row.deployment.name,
                              .workload = served.workloads[row.workload].name,
                              .measured = row.measured,
                              .estimated = estimated};
        r.calibrated =
            calibrated(row.model, row.deployment, row.workload, estimated, row.deployment.name).first;
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

std::optional<double> Calibrator::own_ratio(std::size_t model, const std::string& deployment) const {
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

std::pair<double, Source> Calibrator::calibrated(std::size_t model, const Deployment& deployment,
                                                 std::size_t workload, double estimate,
                                                 const std::string& without) const {
    if (rows_.empty()) return {estimate, Source::estimated};
    double least = unlimited, most = 0;
    bool measured_types = true;
    for (const auto& stage : deployment.stages) {
        const auto g = static_cast<std::size_t>(stage.gpu);
        const auto f = factor(model, g, without);
        least = std::min(least, f.factor);
        measured_types = measured_types && f.rows > 0;
        most += stage.degree * best_[model][g][workload];
    }
    double rate = estimate * least;
    if (without.empty()) rate = std::min(rate, 0.99 * most);
    return {rate, measured_types ? Source::calibrated : Source::estimated};
}

}  // namespace detail

GPUSCHED_EXPORT Calibration calibrate(const ServingRequest& request, const EstimateOptions& options) {
    validate(request);
    validate(options);
    return detail::Calibrator(request, options).report();
}

}  // namespace gpusched::serving
