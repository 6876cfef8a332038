// SPDX-License-Identifier: Apache-2.0
// Shapes of language models: those of measured models, and those that a Hugging Face config.json describes.
#pragma once

#include <gpusched/json/document.hpp>

#include <cstdint>
#include <string>

namespace gpusched::serving {

/// Number format of a checkpoint. Numbers of 4 bits take 4.5 bits with their scales.
enum class Precision : std::uint8_t { bf16, fp8, fp4, int4 };

/// The shape of a decoder-only transformer with gated MLPs; numbers are whole, and 0 if the model lacks the
/// part.
struct ModelShape {
    std::string name{};
    double layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0, vocabulary = 0;
    double intermediate = 0;                              ///< width of the MLP of a layer without experts
    double gated = 0;                                     ///< 1 if queries have an output gate
    double experts = 0, top_k = 0;                        ///< experts of a layer, and of a token
    double moe_intermediate = 0;                          ///< width of an expert
    double shared_experts = 0;                            ///< experts that every token meets
    double first_dense = 0;                               ///< layers without experts in a model with experts
    double q_lora_rank = 0, kv_lora_rank = 0;             ///< latent attention if kv_lora_rank > 0
    double rope_size = 0, nope_size = 0, value_size = 0;  ///< numbers per head of latent attention
    double window = 0, window_layers = 0;                 ///< tokens of a sliding window, and layers with one
    double linear_layers = 0;                             ///< layers of linear attention (gated delta rule)
    double linear_key_heads = 0, linear_value_heads = 0, linear_size = 0;
    double index_heads = 0, index_size = 0, index_top_k = 0;  ///< sparse attention: the index, tokens read
    /// Format of the attention matrices in checkpoints of 4 bits.
    Precision attention_of_fp4 = Precision::fp4, attention_of_int4 = Precision::int4;
    std::string source{};  ///< the source of the numbers
    bool operator==(const ModelShape&) const = default;
};

/// Returns a model by its name (`DeepSeek-R1`) or Hugging Face id (`deepseek-ai/DeepSeek-R1`), or reads its
/// config.json if `model` is the path of a file or of the folder with that file.
/// @throws InvalidInput for an unknown name, and as `read_model_config`
[[nodiscard]] ModelShape find_model_shape(const std::string& model);

/// Reads a Hugging Face config.json: grouped and latent attention, experts, sliding windows, linear and
/// sparse attention; with `text_config` the language model of a multimodal model.
/// @throws InvalidInput with every missing or wrong field, and for structures that cannot be described
[[nodiscard]] ModelShape read_model_config(const json::Document& config);

}  // namespace gpusched::serving
