// SPDX-License-Identifier: Apache-2.0
// Calibrator: throughputs of a request, measured or estimated and calibrated by measurements.
#pragma once

#include "serving/workload_times.hpp"

#include <gpusched/serving/plan_serving.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// The GPU type of all stages of a deployment; -1 if there are several.
int single_type(const Deployment& deployment);

/// The measurements of a valid request, compared with the estimates.
class Calibrator {
  public:
    /// One measured deployment and workload.
    struct Row {
        std::size_t model, workload;
        Deployment deployment;
        double measured;
        ThroughputEstimate estimate;
        std::optional<double> ttft_s, tpot_s;  ///< at the highest load
    };

    /// @param request, options  must outlive the calibrator
    Calibrator(const ServingRequest& request, const EstimateOptions& options);

    [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
    /// The estimates of a model.
    [[nodiscard]] const Estimator& estimator(std::size_t model) const { return estimators_[model]; }
    /// The lengths of a workload's requests.
    [[nodiscard]] const RequestMix& mix(std::size_t model, std::size_t workload) const {
        return mixes_[model][workload];
    }
    /// The row of a deployment and workload; null if it was not measured.
    [[nodiscard]] const Row* measured(std::size_t model, const std::string& deployment,
                                      std::size_t workload) const;
    /// Whether a deployment was measured with some workload.
    [[nodiscard]] bool any(std::size_t model, const std::string& deployment) const;

    /// Whether a deployment is an unmeasured pipeline, and no measurement shows the losses between its
    /// stages: some type has no measured pipeline of the model, although a single group of this type was
    /// measured or can hold the model.
    /// @param alone  whether a single group of each type holds the model
    [[nodiscard]] bool unmeasured_pipeline(std::size_t model, const Deployment& deployment,
                                           const std::vector<bool>& alone) const;

    /// The requests/s to plan with, and their source.
    [[nodiscard]] std::pair<double, Source> rate(std::size_t model, const Deployment& deployment,
                                                 std::size_t workload, double estimate) const;

    /// The factors and residuals of all measurements.
    [[nodiscard]] Calibration report() const;

  private:
    void add(std::size_t model, std::size_t workload, const MeasuredThroughput& measured);
    void find_best();
    /// The factor of a model on a type, without the rows of one deployment.
    [[nodiscard]] CalibrationFactor factor(std::size_t model, std::size_t gpu,
                                           const std::string& without = {}) const;
    /// Measured over estimated throughput of one deployment, geometric mean over its workloads.
    [[nodiscard]] std::optional<double> own_ratio(std::size_t model, const std::string& deployment) const;
    /// The calibrated requests/s of a deployment without measurements. It gets less per GPU than the best
    /// measured deployment of its types, so that of two similar deployments the measured one is preferred.
    [[nodiscard]] std::pair<double, Source> calibrated(std::size_t model, const Deployment& deployment,
                                                       std::size_t workload, double estimate,
                                                       const std::string& without) const;

    const ServingRequest& request_;
    std::vector<Estimator> estimators_;           ///< [model]
    std::vector<std::vector<RequestMix>> mixes_;  ///< [model][workload]
    std::vector<Row> rows_;
    std::vector<std::vector<std::vector<double>>> best_;  ///< [model][type][workload]: requests/s per GPU
};

}  // namespace gpusched::serving::detail
