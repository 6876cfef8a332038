// SPDX-License-Identifier: Apache-2.0
// Language models by name, and from a Hugging Face config.json.
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/serving/catalogue.hpp>

#include <string>

namespace gpusched::serving {

/// Returns a model by its name (`DeepSeek-R1`) or Hugging Face id (`deepseek-ai/DeepSeek-R1`), or reads its
/// config.json if `model` is the path of a file or of the folder with that file.
/// @throws InvalidInput for an unknown name, and as `read_model_config`
[[nodiscard]] LanguageModel find_language_model(const std::string& model);

/// Reads a Hugging Face config.json: grouped and latent attention, experts, sliding windows, linear and
/// sparse attention; with `text_config` the language model of a multimodal model.
/// @throws InvalidInput with every missing or wrong field, and for structures that cannot be described
[[nodiscard]] LanguageModel read_model_config(const json::Document& config);

}  // namespace gpusched::serving
