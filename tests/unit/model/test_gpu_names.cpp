// SPDX-License-Identifier: Apache-2.0
// GPU models by the names that people write.
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace gpu_name_tests {

using Names = std::vector<std::string>;
const std::string sxm = "NVIDIA-A100-SXM4-80GB", pcie = "NVIDIA-A100-PCIE-40GB",
                  h100 = "NVIDIA-H100-80GB-HBM3", rtx = "NVIDIA GeForce RTX 4090", h20 = "H20", h200 = "H200";

TEST_CASE("A name means the models with its words", "[gpu_names]") {
    const Names known{sxm, pcie, h100, rtx, h20, h200};
    struct Case {
        std::string name;
        Names found;
    };
    for (const auto& [name, found] : {
             Case{"H100", {h100}},
             Case{"h100", {h100}},
             Case{"nvidia h100 80gb hbm3", {h100}},
             Case{"NVIDIAH10080GBHBM3", {h100}},
             Case{"A100", {sxm, pcie}},
             Case{"A100 80GB", {sxm}},
             Case{"a100_pcie", {pcie}},
             Case{"rtx4090", {rtx}},
             Case{"RTX-4090", {rtx}},
             Case{"geforce 4090", {rtx}},
             Case{"h-20", {h20}},  // not H200: words are complete
             Case{"H20", {h20}},
             Case{"100", {}},
             Case{"80GB", {sxm, h100}},
             Case{"", {}},
             Case{" - ", {}},
             Case{"MI300X", {}},
         }) {
        INFO(name);
        CHECK(matching_gpu_models(name, known) == found);
    }
    // An exact name is never ambiguous, nor one with the same letters.
    CHECK(matching_gpu_models("A100", {"A100-SXM", "A100"}) == Names{"A100"});
    CHECK(matching_gpu_models("a100", {"A100-SXM", "A100"}) == Names{"A100"});
    CHECK(matching_gpu_models("--", {"--", "A100"}) == Names{"--"});
    CHECK(matching_gpu_models("a-100", {"A100", "a100"}) == Names{"A100", "a100"});
}

TEST_CASE("The models of a task get the cluster's names", "[gpu_names]") {
    ClusterSpec spec;
    for (const auto& model : {h100, sxm, pcie})
        spec.nodes.push_back({.name = "n-" + model, .gpu_model = model, .gpu_count = 8});
    spec.nodes.push_back({.name = "cpu", .gpu_model = rtx});  // no GPUs
    const auto cluster = Cluster::build(spec);
    CHECK(gpu_models_of_nodes(cluster) == Names{pcie, sxm, h100});

    TaskSpec task{.name = "t", .gpu_models = {"h100", "B200", "A100 SXM4"}};
    resolve_gpu_models(task, cluster);
    CHECK(task.gpu_models == Names{h100, "B200", sxm});

    task.gpu_models = {"a100"};
    try {
        resolve_gpu_models(task, cluster);
        FAIL("two models are A100");
    } catch (const InvalidInput& error) {
        CHECK(error.problems() ==
              Names{"task 't': gpu_models: 'a100'; expected the name of one GPU model: '" + pcie + "' or '" +
                    sxm + "'"});
    }
}

}  // namespace gpu_name_tests
