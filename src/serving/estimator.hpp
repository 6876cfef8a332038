// SPDX-License-Identifier: Apache-2.0
// Estimator: the times of a model on any deployment. The planner, the simulation of latencies and
// estimate_throughput() share it.
#pragma once

#include "serving/step_model.hpp"

#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::serving::detail {

/// Estimates of valid deployments of one model. What depends only on a GPU type and a degree is computed when
/// it is first needed.
class Estimator {
  public:
    /// @param model, gpus, options  must outlive the estimator
    Estimator(const LanguageModel& model, std::span<const GpuType> gpus, const EstimateOptions& options);

    /// The estimate for a replica that serves requests of one shape.
    /// @param max_batch  most requests in flight; absent = that of the options
    [[nodiscard]] ThroughputEstimate estimate(const Deployment& deployment, const RequestShape& shape,
                                              std::optional<int> max_batch = {}) const;
    /// Mean seconds of a layer; see layer_seconds().
    [[nodiscard]] double layer_seconds(std::size_t gpu, int degree, double tokens, double context,
                                       double sequences) const;
    /// The errors of the estimates on a GPU type.
    [[nodiscard]] const PredictionErrors& errors(std::size_t gpu) const { return types_[gpu].errors; }

    [[nodiscard]] const LanguageModel& model() const { return model_; }
    [[nodiscard]] std::span<const GpuType> gpus() const { return gpus_; }

  private:
    /// A tensor-parallel group of one type.
    struct Group {
        StepModel step;
        const LayerProfile* profile;  ///< measured times of its layers; null = none
    };
    struct Type {
        StepGpu gpu{};
        Precision precision{};
        Coefficients coefficients{};
        PredictionErrors errors{};
        double first = 1, token = 1;  ///< factors of the estimates, by `EstimateOptions::error`
        std::vector<std::unique_ptr<Group>> groups{};  ///< by degree
    };
    [[nodiscard]] const Group& group(const Stage& stage) const;
    /// Seconds of a layer of a group.
    [[nodiscard]] double prefill_layer_s(const Group& group, double tokens) const;
    [[nodiscard]] double decode_layer_s(const Group& group, double batch, double context) const;
    /// Seconds of a message between two stages.
    [[nodiscard]] double hop_s(const Stage& from, const Stage& to, bool inside, double tokens) const;

    const LanguageModel& model_;
    std::span<const GpuType> gpus_;
    const EstimateOptions& options_;
    mutable std::vector<Type> types_{};  ///< the groups are made on demand
};

/// The estimators of the models of a request.
/// @param request, options  must outlive them
[[nodiscard]] std::vector<Estimator> estimators_of(const ServingRequest& request,
                                                   const EstimateOptions& options);

}  // namespace gpusched::serving::detail
