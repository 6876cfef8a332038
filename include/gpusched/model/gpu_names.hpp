// SPDX-License-Identifier: Apache-2.0
// GPU models by the names that people write: "h100" for "NVIDIA-H100-80GB-HBM3".
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/model/cluster.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gpusched {

/// Returns the known models that a name can mean.
///
/// Case, spaces, hyphens and underscores do not count. A model with exactly this name comes before models
/// with the same letters, and these before models of which the name is a part. A name is a part if each of
/// its words is a word of the model, or several consecutive ones written together: "A100 80GB", "rtx4090".
/// @return in the order of `known`; empty = none
[[nodiscard]] std::vector<std::string> matching_gpu_models(std::string_view name,
                                                           const std::vector<std::string>& known);

/// Returns the models of the nodes with GPUs, sorted.
[[nodiscard]] std::vector<std::string> gpu_models_of_nodes(const Inventory& inventory);
[[nodiscard]] inline std::vector<std::string> gpu_models_of_nodes(const Cluster& cluster) {
    return gpu_models_of_nodes(cluster.inventory());
}

/// Replaces the names of GPU models in a task by the names of the cluster. Keeps names that no node has: a
/// task may accept models of other clusters.
/// @throws InvalidInput for a name that several models of the cluster have in common
void resolve_gpu_models(TaskSpec& task, const Cluster& cluster);

namespace detail {
/// A message that lists the models that a name can mean.
[[nodiscard]] std::string ambiguous_gpu_model(const std::string& field, std::string_view name,
                                              const std::vector<std::string>& models,
                                              const std::string& owner);
/// A message about a name that no model of the cluster has, with these models.
[[nodiscard]] std::string unknown_gpu_model(const std::string& field, std::string_view name,
                                            const std::vector<std::string>& models, const std::string& owner);
/// The models after some text, or nothing if there are none or more than a dozen.
[[nodiscard]] std::string listed_gpu_models(std::string text, const std::vector<std::string>& models);
}  // namespace detail

}  // namespace gpusched
