// SPDX-License-Identifier: Apache-2.0
// Deployments of one replica: pipeline stages of tensor-parallel groups, and the enumeration of possible
// deployments.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/catalogue.hpp>

#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::serving {

/// A pipeline stage: a group of equal GPUs of one machine that share its layers by tensor parallelism.
struct Stage {
    int gpu = 0;     ///< index of the GPU type
    int degree = 1;  ///< tensor-parallel degree: GPUs of the group
    int layers = 0;  ///< layers of the stage
    bool operator==(const Stage&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Stage>, F&& field) {
    field("gpu", &Stage::gpu);
    field("degree", &Stage::degree);
    field("layers", &Stage::layers);
}

/// How one replica is deployed.
struct Deployment {
    std::string name{};           ///< such as `H100 2x4`: two stages of degree 4; `+` joins types
    std::vector<Stage> stages{};  ///< in the order of the pipeline
    bool operator==(const Deployment&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Deployment>, F&& field) {
    field("name", &Deployment::name);
    field("stages", &Deployment::stages);
}

/// The deployments to enumerate.
struct DeploymentOptions {
    std::vector<int> degrees{1, 2, 4, 8};  ///< tensor-parallel degrees, each >= 1, ascending
    int max_stages = 8;                    ///< stages of a pipeline, 1 .. 64
    int max_gpus = 16;                     ///< GPUs of one replica, >= 1
    int max_types = 2;                     ///< GPU types of one replica, >= 1
    /// Allow a different degree in each stage, as in the paper. Off: one degree per GPU type, far fewer
    /// deployments.
    bool mixed_degrees = false;
    int min_tokens = 4096;  ///< every stage has KV cache for a sequence of so many tokens, >= 1
    /// Pairs of GPU types, by index, without a network between them; no replica uses both.
    std::vector<std::pair<int, int>> disconnected{};
    bool across_regions = false;  ///< allow replicas with GPU types of several regions
};
template <class F>
constexpr void visit_fields(std::type_identity<DeploymentOptions>, F&& field) {
    field("degrees", &DeploymentOptions::degrees);
    field("max_stages", &DeploymentOptions::max_stages, within(1, 64));
    field("max_gpus", &DeploymentOptions::max_gpus, at_least(1));
    field("max_types", &DeploymentOptions::max_types, at_least(1));
    field("mixed_degrees", &DeploymentOptions::mixed_degrees);
    field("min_tokens", &DeploymentOptions::min_tokens, at_least(1));
    field("disconnected", &DeploymentOptions::disconnected);
    field("across_regions", &DeploymentOptions::across_regions);
}

/// The default fraction of a GPU's memory for weights and KV cache, and its range.
inline constexpr double usual_memory_fraction = 0.9;
inline constexpr auto memory_fractions = within(0.05, 1.0);

/// Splits layers over stages in proportion to their memory, at least one each.
///
/// Each stage gets the floor of its quota. The layers left go to the largest remainders; ties go to the
/// earlier stage. Source: arXiv 2502.00722, App. D; 24 layers over memory 1:2 are 8 and 16.
/// @param memory one number > 0 per stage, at most `layers` numbers
/// @throws InvalidInput for memory out of these ranges
[[nodiscard]] std::vector<int> split_layers(int layers, std::span<const double> memory);

/// Returns the tokens of KV cache that fit into each stage next to the weights, in sequences of `sequence`
/// tokens; negative if the weights do not fit.
///
/// The first stage holds the input embedding, the last stage the output embedding.
[[nodiscard]] std::vector<double> kv_tokens(const LanguageModel& model, std::span<const GpuType> gpus,
                                            const Deployment& deployment, double sequence,
                                            double memory_fraction = usual_memory_fraction);

/// Enumerates all possible deployments of one replica, ordered by types, then degrees, then stages.
///
/// Stages of one type are next to each other, types in the given order, and degrees of a type ascend. A
/// deployment is possible if
/// - its tensor-parallel groups fit into machines with a link, and degrees divide the query heads;
/// - its GPUs are available, its types connected and of one region (unless `across_regions`); a replica on
///   several machines needs a network on each;
/// - every stage has memory for its layers and a sequence of `min_tokens` tokens.
///
/// Stages fill machines densely, in the order of the pipeline.
///
/// @param available GPUs of each type, >= 0
/// @param memory_fraction fraction of a GPU's memory for weights and KV cache, 0.05 .. 1, as in
///     `EstimateOptions`
/// @throws InvalidInput for malformed models, types or options, and lists of different lengths Complexity:
///     O((T D S)^m) for T types, m = `max_types`, D degrees and S stages; with `mixed_degrees` O(T^m C(S + m
///     D, S)).
[[nodiscard]] std::vector<Deployment> enumerate_deployments(const LanguageModel& model,
                                                            const std::vector<GpuType>& gpus,
                                                            std::span<const int> available,
                                                            const DeploymentOptions& options = {},
                                                            double memory_fraction = usual_memory_fraction);

/// Returns the machine of each stage, from 0. Stages fill machines densely, in order; a machine has one GPU
/// type.
[[nodiscard]] std::vector<int> stage_machines(std::span<const GpuType> gpus, const Deployment& deployment);

/// Returns whether all GPU types of a deployment are of one region.
[[nodiscard]] bool in_one_region(std::span<const GpuType> gpus, const Deployment& deployment);

/// Parses a deployment such as `H100 2x4`, `A100 1x4+L40 2x2` or `H100 1x2+H100 1x4`.
///
/// Each part is stages x tensor-parallel degree of equal stages. Layers are split by memory, as in
/// `enumerate_deployments`; whether they fit is not checked.
/// @throws InvalidInput for an unreadable name (with the nearest possible names), groups that do not fit into
///     a machine, and more stages than the model has layers
[[nodiscard]] Deployment parse_deployment(const std::string& name, const LanguageModel& model,
                                          const std::vector<GpuType>& gpus);

/// Explains a deployment, such as `a pipeline of 2 stages (40 + 40 layers), each a tensor-parallel group of 4
/// H100; 8 GPUs`.
[[nodiscard]] std::string in_words(const Deployment& deployment, std::span<const GpuType> gpus);

}  // namespace gpusched::serving
