// SPDX-License-Identifier: Apache-2.0
// Deployments of one replica: pipeline stages of tensor-parallel groups, their layers, and which of them are possible.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/language_model.hpp>

#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::serving {

/// A pipeline stage: a group of equal GPUs of one machine, which share its layers by tensor parallelism.
struct Stage {
    int gpu = 0;     ///< index into the GPU types
    int degree = 1;  ///< GPUs of the group
    int layers = 0;  ///< layers it holds
    bool operator==(const Stage&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Stage>, F&& field) {
    field("gpu", &Stage::gpu);
    field("degree", &Stage::degree);
    field("layers", &Stage::layers);
}

/// How one replica is deployed: the stages in the order of the pipeline.
struct Deployment {
    std::string name{};           ///< such as `H100 2x4`: two stages of degree 4; types are joined by `+`
    std::vector<Stage> stages{};  ///< in the order of the pipeline
    bool operator==(const Deployment&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Deployment>, F&& field) {
    field("name", &Deployment::name);
    field("stages", &Deployment::stages);
}

/// Which deployments are looked for.
struct DeploymentOptions {
    std::vector<int> degrees{1, 2, 4, 8};  ///< tensor-parallel degrees, each >= 1, ascending
    int max_stages = 8;                    ///< stages of a pipeline, 1 .. 64
    int max_gpus = 16;                     ///< GPUs of one replica, >= 1
    int max_types = 2;                     ///< GPU types of one replica, >= 1
    /// A degree for each stage, as in the paper; else one for each GPU type of a replica, which are far fewer deployments.
    bool mixed_degrees = false;
    int min_tokens = 4096;  ///< every stage has KV cache for this many tokens, >= 1
    /// Pairs of GPU types, by index, that no network connects; no replica has both.
    std::vector<std::pair<int, int>> disconnected{};
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
}

/// The part of a GPU's memory that holds weights and KV cache, unless told otherwise, and its range.
inline constexpr double usual_memory_fraction = 0.9;
inline constexpr auto memory_fractions = within(0.05, 1.0);

/// Splits layers over stages in proportion to their memory, at least one each: floors, and what is left to the largest
/// remainders (of equal ones the earlier stage).
///
/// Source: arXiv 2502.00722, App. D; 24 layers over memory 1:2 are 8 and 16.
/// @param memory one number > 0 per stage; at most `layers` of them
/// @throws InvalidInput for lists out of these ranges
[[nodiscard]] std::vector<int> split_layers(int layers, std::span<const double> memory);

/// Tokens of KV cache that fit beside the weights into each stage; negative where the weights alone do not fit. The first
/// stage holds the input embedding, the last one the output embedding.
[[nodiscard]] std::vector<double> kv_tokens(const LanguageModel& model, std::span<const GpuType> gpus,
                                            const Deployment& deployment,
                                            double memory_fraction = usual_memory_fraction);

/// All deployments of one replica, one TP degree per GPU type in each unless `mixed_degrees`, stages of a type next to each other and
/// in the order of the types, those of a type in the order of their degrees; in the order of types, then of degrees, then of stages.
///
/// A deployment is possible when its TP groups fit into machines with a link, degrees divide the query heads, its GPUs are available, its types
/// are connected (a replica of several machines needs a network on each), and every stage has memory for its layers and
/// `min_tokens` tokens. Stages fill machines densely, in the order of the pipeline.
///
/// @param available GPUs of each type, >= 0
/// @param memory_fraction of a GPU's memory for weights and KV cache, 0.05 .. 1: that of `EstimateOptions`
/// @throws InvalidInput for malformed models, types or options, and lists of different lengths
/// Complexity: O((T D S)^m) for T types, m = `max_types`, D degrees and S stages; with `mixed_degrees` O(T^m C(S + m D, S)).
[[nodiscard]] std::vector<Deployment> enumerate_deployments(const LanguageModel& model,
                                                            const std::vector<GpuType>& gpus,
                                                            std::span<const int> available,
                                                            const DeploymentOptions& options = {},
                                                            double memory_fraction = usual_memory_fraction);

/// The machine of each stage, from 0: stages fill machines densely, in the order of the pipeline, each machine with one GPU type.
[[nodiscard]] std::vector<int> stage_machines(std::span<const GpuType> gpus, const Deployment& deployment);

/// The deployment of a name such as `H100 2x4`, `A100 1x4+L40 2x2` or `H100 1x2+H100 1x4`: stages x tensor-parallel degree of each
/// GPU type, or of each run of equal stages.
///
/// Layers are split by memory, as `enumerate_deployments` does; whether there is room for them is not asked.
/// @throws InvalidInput with the nearest names of possible deployments for a name that is none of these types, and for one whose
///     groups do not fit into a machine or whose stages are more than the model's layers
[[nodiscard]] Deployment parse_deployment(const std::string& name, const LanguageModel& model,
                                          const std::vector<GpuType>& gpus);

/// What a name means: `H100 2x4`: a pipeline of 2 stages (40 + 40 layers); each a tensor-parallel group of 4 H100; 8 GPUs.
[[nodiscard]] std::string in_words(const Deployment& deployment, std::span<const GpuType> gpus);

}  // namespace gpusched::serving
