// SPDX-License-Identifier: Apache-2.0
// Catalogue of GPU types and language models.
#include "serving/request_findings.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/catalogue.hpp>

#include <limits>
#include <set>
#include <string>
#include <vector>

namespace gpusched::serving {

GPUSCHED_EXPORT void validate(const std::vector<GpuType>& gpus) {
    Problems problems;
    std::set<std::string> names;
    for (const auto& gpu : gpus) {
        const auto owner = "GPU type " + gpusched::quoted(gpu.name);
        if (gpu.name.empty()) problems.add(bad_value("name", "''", "a name", "GPU type"));
        if (!names.insert(gpu.name).second) problems.add(owner + ": appears twice");
        check_fields(problems, gpu, owner);
    }
    problems.throw_if_any();
}

GPUSCHED_EXPORT std::vector<GpuType> paper_gpus() {
    const std::string source = "arXiv 2502.00722, Table 1";
    return {{"A6000", 91, 960, 48, 60, 0.625, 8, 0.83, source},
            {"A40", 150, 696, 48, 60, 0.625, 8, 0.55, source},
            {"L40", 181, 864, 48, 60, 0.625, 8, 0.83, source},
            {"A100", 312, 1555, 80, 300, 0.625, 8, 1.75, source},
            {"H100", 1979, 3350, 80, 300, 0.625, 8, 2.99, source},
            {"4090", 83, 1008, 24, 60, 0.625, 8, 0.53, source}};
}

GPUSCHED_EXPORT std::vector<GpuType> paper_gpus_dense() {
    auto gpus = paper_gpus();
    const char* const parts[] = {"A6000", "A40", "L40", "A100-80GB", "H100", "RTX4090"};
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        const auto part = gpu_type(parts[i]);
        gpus[i].tflops = part.tflops;
        gpus[i].bandwidth_gb_s = part.bandwidth_gb_s;
        gpus[i].memory_gb = part.memory_gb;
        gpus[i].source = part.source + "; price and links: arXiv 2502.00722";
    }
    return gpus;
}

GPUSCHED_EXPORT std::vector<GpuType> gpu_catalogue() {
    // Links are per direction: half of the NVLink number in data sheets; PCIe 3 / 4 x16 are 16 / 32 GB/s.
    const auto none = std::optional<double>{};
    return {{"V100", 125, 900, 16, 150, 1.25, 8, none,
             "developer.nvidia.com/programming-tensor-cores-cuda-9-0; Dell AI reference guide"},
            {"T4", 65, 320, 16, 16, 1.25, 4, none, "topcpu.net, hmc-tech.com"},
            {"L4", 121, 300, 24, 32, 1.25, 8, none, "topcpu.net; half of the sparse 242 of the data sheet"},
            {"A40", 149.7, 696, 48, 32, 1.25, 8, none, "hmc-tech.com; arXiv 2502.00722, Table 1"},
            {"A6000", 154.8, 768, 48, 32, 1.25, 8, none, "llmperf.net; servethehome.com"},
            {"L40", 181.05, 864, 48, 32, 1.25, 8, none, "data sheet as in mullet.se"},
            {"L40S", 362.05, 864, 48, 32, 50, 8, none, "aiconfigurator l40s.yaml"},
            {"RTX4090", 165.2, 1008, 24, 32, 1.25, 8, none, "gigagpu.com; waredb.com"},
            {"A100-40GB", 312, 1555, 40, 300, 1.25, 8, none, "glennklockwood.com/garden/processors/A100"},
            {"A100-80GB", 312, 2039, 80, 300, 25, 8, none, "aiconfigurator a100_sxm.yaml"},
            {"H100", 989, 3350, 80, 450, 50, 8, none, "aiconfigurator h100_sxm.yaml"},
            {"H200", 989, 4800, 141, 450, 50, 8, none, "itkb.uw.cz; saulelectric.com"},
            {"B200", 2250, 7700, 180, 900, 50, 8, none, "HGX B200 data sheet as in zdszero.github.io"},
            {"MI300X", 1307, 5300, 192, 448, 50, 8, none, "hmc-tech.com; emergentmind.com"}};
}

GPUSCHED_EXPORT GpuType gpu_type(std::string_view name) {
    std::vector<std::string> known;
    for (const auto& gpu : gpu_catalogue()) {
        if (gpu.name == name) return gpu;
        known.push_back(gpu.name);
    }
    throw InvalidInput(bad_name("GPU type", name, known));
}

GPUSCHED_EXPORT std::optional<GpuType> find_gpu_type(std::string_view name) {
    for (const auto& all : {gpu_catalogue(), paper_gpus_dense()})
        for (const auto& gpu : all)
            if (gpu.name == name) return gpu;
    return std::nullopt;
}

GPUSCHED_EXPORT double LanguageModel::layer_matrix_parameters() const noexcept {
    return 2.0 * hidden * (heads + kv_heads) * head_size + 3.0 * hidden * intermediate;
}

GPUSCHED_EXPORT double LanguageModel::layer_parameters() const noexcept {
    return layer_matrix_parameters() + 2.0 * hidden;
}

GPUSCHED_EXPORT double LanguageModel::parameters() const noexcept {
    return layers * layer_parameters() + 2.0 * vocabulary * hidden + hidden;
}

GPUSCHED_EXPORT double LanguageModel::kv_bytes_per_layer() const noexcept {
    return 2.0 * kv_heads * head_size * bytes_per_kv;
}

GPUSCHED_EXPORT void validate(const LanguageModel& model) {
    Problems problems;
    const auto owner = "model " + gpusched::quoted(model.name);
    check_fields(problems, model, owner);
    detail::find_in_model(
        model, [&](const auto& finding) { problems.add(owner + ": " + detail::in_words(finding)); });
    problems.throw_if_any();
}

GPUSCHED_EXPORT std::vector<LanguageModel> known_language_models() {
    return {{"Llama-3-8B", 32, 4096, 32, 8, 128, 14336, 128256},
            {"Llama-3-70B", 80, 8192, 64, 8, 128, 28672, 128256},
            {"Llama-2-70B", 80, 8192, 64, 8, 128, 28672, 32000}};
}

GPUSCHED_EXPORT LanguageModel llama3_8b() { return known_language_models()[0]; }

GPUSCHED_EXPORT LanguageModel llama3_70b() { return known_language_models()[1]; }

GPUSCHED_EXPORT LanguageModel llama2_70b() { return known_language_models()[2]; }

}  // namespace gpusched::serving
