// SPDX-License-Identifier: Apache-2.0
// Catalogue of GPU types and language models.
#include "serving/request_findings.hpp"
#include "serving/step_model.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/catalogue.hpp>

#include <array>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace gpusched::serving {

namespace detail {

static constexpr std::array families{"volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna3"};

std::string_view known_family(std::string_view name) {
    for (const std::string_view family : families)
        if (is_same_name(name, family)) return family;
    return {};
}

}  // namespace detail

GPUSCHED_EXPORT void validate(const std::vector<GpuType>& gpus) {
    Problems problems;
    std::set<std::string> names;
    for (const auto& gpu : gpus) {
        const auto owner = "GPU type " + gpusched::quoted(gpu.name);
        if (gpu.name.empty()) problems.add(bad_value("name", "''", "a name", "GPU type"));
        if (!names.insert(gpu.name).second) problems.add(owner + ": appears twice");
        check_fields(problems, gpu, owner);
        if (gpu.family.empty() || !detail::known_family(gpu.family).empty()) continue;
        std::string known;
        for (const auto family : detail::families) known += std::string(known.empty() ? "" : ", ") + family;
        problems.add(owner + ": " + bad_value("family", gpusched::quoted(gpu.family), "one of " + known));
    }
    problems.throw_if_any();
}

GPUSCHED_EXPORT std::vector<GpuType> paper_gpus() {
    const std::string source = "arXiv 2502.00722, Table 1";
    return {{"A6000", 91, 960, 48, 60, 0.625, 8, 0.83, source, "", 0, 0, "ampere"},
            {"A40", 150, 696, 48, 60, 0.625, 8, 0.55, source, "", 0, 0, "ampere"},
            {"L40", 181, 864, 48, 60, 0.625, 8, 0.83, source, "", 0, 0, "ada"},
            {"A100", 312, 1555, 80, 300, 0.625, 8, 1.75, source, "", 0, 0, "ampere"},
            {"H100", 1979, 3350, 80, 300, 0.625, 8, 2.99, source, "", 0, 0, "hopper"},
            {"4090", 83, 1008, 24, 60, 0.625, 8, 0.53, source, "", 0, 0, "ada"}};
}

GPUSCHED_EXPORT std::vector<GpuType> paper_gpus_dense() {
    auto gpus = paper_gpus();
    const char* const parts[] = {"A6000", "A40", "L40", "A100-80GB", "H100", "RTX4090"};
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        const auto part = gpu_type(parts[i]);
        gpus[i].tflops = part.tflops;
        gpus[i].bandwidth_gb_s = part.bandwidth_gb_s;
        gpus[i].memory_gb = part.memory_gb;
        gpus[i].fp8_tflops = part.fp8_tflops;
        gpus[i].source = part.source + "; price and links: arXiv 2502.00722";
    }
    return gpus;
}

GPUSCHED_EXPORT std::vector<GpuType> gpu_catalogue() {
    // Links are per direction: half of the NVLink number in data sheets; PCIe 3 / 4 x16 are 16 / 32 GB/s.
    // From GB200 on, the numbers are those of benchmarks/serving/estimates/gpus.json. A tray of a rack is a machine.
    const auto none = std::optional<double>{};
    const std::string nvl72 = "NVIDIA data sheet (NVL72), dense peaks; aiconfigurator";
    return {
        {"V100", 125, 900, 16, 150, 1.25, 8, none,
         "developer.nvidia.com/programming-tensor-cores-cuda-9-0; Dell AI reference guide", "", 0, 0,
         "volta"},
        {"T4", 65, 320, 16, 16, 1.25, 4, none, "topcpu.net, hmc-tech.com", "", 0, 0, "turing"},
        {"L4", 121, 300, 24, 32, 1.25, 8, none, "topcpu.net; half of the sparse 242 of the data sheet", "",
         242, 0, "ada"},
        {"A40", 149.7, 696, 48, 32, 1.25, 8, none, "hmc-tech.com; arXiv 2502.00722, Table 1", "", 0, 0,
         "ampere"},
        {"A6000", 154.8, 768, 48, 32, 1.25, 8, none, "llmperf.net; servethehome.com", "", 0, 0, "ampere"},
        {"L40", 181.05, 864, 48, 32, 1.25, 8, none, "data sheet as in mullet.se", "", 362, 0, "ada"},
        {"L40S", 362.05, 864, 48, 32, 50, 8, none, "aiconfigurator l40s.yaml", "", 733, 0, "ada"},
        {"RTX4090", 165.2, 1008, 24, 32, 1.25, 8, none, "gigagpu.com; waredb.com", "", 330, 0, "ada"},
        {"A100-40GB", 312, 1555, 40, 300, 1.25, 8, none, "glennklockwood.com/garden/processors/A100", "", 0,
         0, "ampere"},
        {"A100-80GB", 312, 2039, 80, 300, 25, 8, none, "aiconfigurator a100_sxm.yaml", "", 0, 0, "ampere"},
        {"H100", 989, 3350, 80, 450, 50, 8, none, "aiconfigurator h100_sxm.yaml", "", 1979, 0, "hopper"},
        {"H200", 989, 4800, 141, 450, 50, 8, none, "itkb.uw.cz; saulelectric.com", "", 1979, 0, "hopper"},
        {"B200", 2250, 7700, 180, 900, 50, 8, none, "HGX B200 data sheet as in zdszero.github.io", "", 4500,
         9000, "blackwell"},
        {"MI300X", 1307, 5300, 192, 448, 50, 8, none, "hmc-tech.com; emergentmind.com", "", 2615, 0, "cdna3"},
        {"GB200", 2500, 8000, 198.6, 900, 900, 4, none, nvl72 + " gb200.yaml", "", 5000, 10000, "blackwell"},
        {"B300", 2250, 7750, 288.4, 900, 100, 8, none,
         "NVIDIA data sheet (HGX B300), dense peaks; aiconfigurator b300_sxm.yaml", "", 4500, 14000,
         "blackwell"},
        {"GB300", 2500, 8000, 298, 900, 900, 4, none, nvl72 + " gb300.yaml", "", 5000, 15000, "blackwell"},
        {"H20", 148, 4000, 96, 450, 50, 8, none, "NVIDIA data sheet as published by vendors", "", 296, 0,
         "hopper"},
        {"RTX-PRO-6000", 468, 1597, 96, 64, 50, 8, none,
         "NVIDIA data sheet (Server Edition); aiconfigurator rtx_pro_6000_server.yaml", "", 936, 1871,
         "blackwell"}};
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
    return detail::matrix_parameters(*this) / layers;
}

GPUSCHED_EXPORT double LanguageModel::layer_parameters() const noexcept {
    return layer_matrix_parameters() + 2.0 * hidden;
}

GPUSCHED_EXPORT double LanguageModel::parameters() const noexcept {
    return layers * layer_parameters() + 2.0 * vocabulary * hidden + hidden;
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
    std::vector<LanguageModel> models{{"Llama-3-8B", 32, 4096, 32, 8, 128, 14336, 128256},
                                      {"Llama-3-70B", 80, 8192, 64, 8, 128, 28672, 128256},
                                      {"Llama-2-70B", 80, 8192, 64, 8, 128, 28672, 32000}};
    for (const auto& known : detail::known_models()) models.push_back(known.model);
    return models;
}

GPUSCHED_EXPORT LanguageModel llama3_8b() { return known_language_models()[0]; }

GPUSCHED_EXPORT LanguageModel llama3_70b() { return known_language_models()[1]; }

GPUSCHED_EXPORT LanguageModel llama2_70b() { return known_language_models()[2]; }

}  // namespace gpusched::serving
