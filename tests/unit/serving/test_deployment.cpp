// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

/// Deployments by another way: every vector of (type, degree) stages, ascending, filtered by the rules one by one.
std::set<std::vector<std::pair<int, int>>> brute_force(const LanguageModel& m,
                                                       const std::vector<GpuType>& gpus,
                                                       const std::vector<int>& available,
                                                       const DeploymentOptions& o, double memory_fraction) {
    std::vector<std::pair<int, int>> kinds;
    for (int g = 0; g < static_cast<int>(gpus.size()); ++g)
        for (const auto d : o.degrees) kinds.emplace_back(g, d);
    std::set<std::vector<std::pair<int, int>>> found;
    const auto possible = [&](const std::vector<std::pair<int, int>>& stages) {
        std::map<int, std::set<int>> degrees;
        std::map<int, int> used;
        int all = 0;
        for (const auto& [g, d] : stages) {
            degrees[g].insert(d);
            used[g] += d;
            all += d;
            const auto& gpu = gpus[static_cast<std::size_t>(g)];
            if (d > gpu.per_machine || (d > 1 && gpu.link_gb_s == 0) || m.heads % d != 0) return false;
        }
        if (all > o.max_gpus || static_cast<int>(degrees.size()) > o.max_types) return false;
        bool needs_network = degrees.size() > 1;
        bool has_network = true;
        for (const auto& [g, count] : used) {
            const auto& gpu = gpus[static_cast<std::size_t>(g)];
            if (count > available[static_cast<std::size_t>(g)]) return false;
            if (!o.mixed_degrees && degrees[g].size() > 1) return false;
            int machines = 0, room = 0;
            for (const auto& [type, d] : stages) {
                if (type != g) continue;
                if (d > room) ++machines, room = gpu.link_gb_s == 0 ? 1 : gpu.per_machine;
                room -= d;
            }
            if (machines > 1) needs_network = true;
            has_network = has_network && gpu.network_gb_s > 0;
            for (const auto& [other, unused] : used)
                if (!o.across_regions && gpus[static_cast<std::size_t>(other)].region != gpu.region)
                    return false;
            for (const auto& [other, unused] : used)
                for (const auto& [a, b] : o.disconnected)
                    if ((a == g && b == other) || (b == g && a == other)) return false;
        }
        if (needs_network && !has_network) return false;
        // Memory: the weights of whole layers in the shares of split_layers, which has its own test.
        std::vector<double> sizes;
        for (const auto& [g, d] : stages) sizes.push_back(d * gpus[static_cast<std::size_t>(g)].memory_gb);
        const auto layers = split_layers(m.layers, sizes);
        for (std::size_t s = 0; s < stages.size(); ++s) {
            const double d = stages[s].second;
            double bytes = layers[s] * m.layer_parameters() * m.bytes_per_weight;
            if (s == 0) bytes += double(m.vocabulary) * m.hidden * m.bytes_per_weight;
            if (s + 1 == stages.size()) bytes += (double(m.vocabulary) + 1) * m.hidden * m.bytes_per_weight;
            bytes += 2.0 * std::max<double>(m.kv_heads, d) * m.head_size * m.bytes_per_kv * layers[s] *
                     o.min_tokens;
            if (bytes > sizes[s] * 1e9 * memory_fraction) return false;
        }
        return true;
    };
    std::vector<std::pair<int, int>> stages;
    const auto extend = [&](const auto& self, std::size_t from) -> void {
        for (std::size_t k = from; k < kinds.size(); ++k) {
            stages.push_back(kinds[k]);
            if (possible(stages)) found.insert(stages);
            if (static_cast<int>(stages.size()) < o.max_stages) self(self, k);
            stages.pop_back();
        }
    };
    extend(extend, 0);
    return found;
}

}  // namespace

TEST_CASE("the catalogue and the models", "[serving]") {
    CHECK(paper_gpus().size() == 6);
    CHECK(paper_gpus()[4].tflops == 1979);
    CHECK(paper_gpus_dense()[4].tflops == 989);
    CHECK(paper_gpus_dense()[4].price == 2.99);
    CHECK_NOTHROW(validate(paper_gpus()));
    CHECK_NOTHROW(validate(paper_gpus_dense()));
    CHECK_NOTHROW(validate(gpu_catalogue()));
    for (const auto& gpu : gpu_catalogue()) CHECK_FALSE(gpu.source.empty());
    CHECK(gpu_type("H200").memory_gb == 141);
    CHECK_THROWS_AS(gpu_type("H2000"), InvalidInput);
    CHECK(llama3_8b().parameters() == 8030261248.0);
    CHECK(llama3_70b().parameters() == 70553706496.0);
    CHECK(llama2_70b().parameters() == 68976648192.0);
    auto broken = paper_gpus();
    broken[0].tflops = 0;
    broken[1].per_machine = 0;
    broken[2].name = "A40";
    CHECK(testing_support::problems_in<InvalidInput>([&] { validate(broken); }).size() == 3);
    auto model = llama3_8b();
    model.kv_heads = 33;
    CHECK_THROWS_AS(validate(model), InvalidInput);
}

TEST_CASE("layers are split by memory", "[serving]") {
    const auto split = [](int layers, std::vector<double> memory) { return split_layers(layers, memory); };
    CHECK(split(24, {1, 2}) == std::vector{8, 16});  // the paper's example
    CHECK(split(80, {80, 80, 80}) == std::vector{27, 27, 26});
    CHECK(split(80, {80, 48}) == std::vector{50, 30});
    CHECK(split(4, {1, 1, 1, 100}) == std::vector{1, 1, 1, 1});
    CHECK(split(5, {1, 100, 1}) == std::vector{1, 3, 1});
    CHECK_THROWS_AS(split(2, {1, 1, 1}), InvalidInput);
    CHECK_THROWS_AS(split(2, {1, -1}), InvalidInput);
}

TEST_CASE("the tokens of cache of windows, latent attention and linear attention", "[serving]") {
    const std::vector<GpuType> gpus{gpu_type("H100")};
    const auto model = [](auto change) {
        LanguageModel m{"m", 8, 1024, 8, 4, 128, 1024, 1000};
        change(m);
        return m;
    };
    const auto latent = [&](int kv_heads) {
        return model([&](LanguageModel& m) {
            m.kv_heads = kv_heads;
            m.kv_lora_rank = 512, m.rope_size = 64, m.nope_size = m.value_size = 128;
        });
    };
    struct Case {
        LanguageModel model;
        int degree;
        double sequence, bytes;  // of a sequence, on all GPUs
    };
    const double token = 8 * 2 * 4 * 128 * 2;  // on all layers
    for (const auto& [m, degree, sequence, bytes] : {
             Case{model([](auto&) {}), 1, 1000, 1000 * token},
             {model([](auto&) {}), 8, 1000, 2 * 1000 * token},  // two GPUs hold the cache of a head
             {model([](auto& m) { m.window = 100, m.window_layers = 6; }), 1, 50, 50 * token},
             {model([](auto& m) { m.window = 100, m.window_layers = 6; }), 1, 1000,
              (1000 * 2 + 100 * 6) / 8.0 * token},
             {model([](auto& m) { m.window = 4096, m.window_layers = 8; }), 1, 1000, 1000 * token},
             {model([](auto& m) {
                  m.linear_layers = 6, m.linear_key_heads = m.linear_value_heads = 16, m.linear_size = 128;
              }),
              1, 1000, 1000 * token / 4 + 6.0 * 16 * 128 * 128 * 4},
             {latent(1), 8, 1000, 8.0 * 1000 * 8 * 576 * 2},
             {latent(8), 8, 1000, 8.0 * 1000 * 8 * 576 * 2},
             {model([](auto& m) { m.rope_size = 64; }), 1, 1000, 1000 * token},
         }) {
        CAPTURE(m.window, m.kv_lora_rank, m.kv_heads, degree, sequence);
        const double free = degree * 0.9 * gpus[0].memory_gb * 1e9 - m.parameters() * m.bytes_per_weight;
        const auto found = kv_tokens(m, gpus, {"d", {{0, degree, 8}}}, sequence);
        REQUIRE(found.size() == 1);
        CHECK(found[0] == Catch::Approx(free / bytes * sequence));
    }
}

TEST_CASE("deployments by hand", "[serving]") {
    const std::vector<GpuType> gpus{gpu_type("H100")};
    const std::vector<int> available{8};
    std::vector<std::string> names;
    for (const auto& d : enumerate_deployments(llama3_70b(), gpus, available)) names.push_back(d.name);
    // 141.1 GB of weights in 2 x 72 GB leave 2.89 GB; a token takes 80 x 4096 B, so that 8,827 tokens fit.
    CHECK(names == std::vector<std::string>{"H100 2x1", "H100 3x1", "H100 4x1", "H100 5x1", "H100 6x1",
                                            "H100 7x1", "H100 8x1", "H100 1x2", "H100 2x2", "H100 3x2",
                                            "H100 4x2", "H100 1x4", "H100 2x4", "H100 1x8"});
    CHECK(enumerate_deployments(llama3_70b(), gpus, std::vector{2}, {.min_tokens = 8800}).size() == 2);
    CHECK(enumerate_deployments(llama3_70b(), gpus, std::vector{2}, {.min_tokens = 8900}).empty());
    CHECK_THROWS_AS(enumerate_deployments(llama3_70b(), gpus, std::vector{2, 3}), InvalidInput);
    CHECK_THROWS_AS(enumerate_deployments(llama3_70b(), gpus, available, {.degrees = {2, 2}}), InvalidInput);
    // Half of the memory of two GPUs is 80 GB and does not hold the weights.
    CHECK(enumerate_deployments(llama3_70b(), gpus, std::vector{2}, {.min_tokens = 1}, 0.5).empty());
    REQUIRE_THROWS_MESSAGE(enumerate_deployments(llama3_70b(), gpus, available, {}, 2), InvalidInput,
                           "memory_fraction 2 0.05 1");
    CHECK_THROWS_AS(enumerate_deployments(llama3_70b(), gpus, available, {.disconnected = {{0, 1}}}),
                    InvalidInput);
}

TEST_CASE("deployments equal a brute force on random types", "[serving]") {
    Rng rng(7);
    const auto pick = [&](int low, int high) {
        return low + static_cast<int>(rng.below(static_cast<unsigned>(high - low + 1)));
    };
    std::size_t total = 0, mixed = 0;
    for (int i = 0; i < 300; ++i) {
        std::vector<GpuType> gpus;
        std::vector<int> available;
        const int types = pick(1, 3);
        for (int g = 0; g < types; ++g) {
            gpus.push_back({.name = std::string(1, static_cast<char>('a' + g)),
                            .tflops = 100,
                            .bandwidth_gb_s = 1000,
                            .memory_gb = double(pick(4, 40)),
                            .link_gb_s = pick(0, 4) == 0 ? 0.0 : 50.0,
                            .network_gb_s = pick(0, 4) == 0 ? 0.0 : 1.0,
                            .per_machine = pick(1, 5)});
            available.push_back(pick(0, 8));
        }
        auto model = llama3_8b();
        model.layers = pick(8, 40);
        model.kv_heads = pick(0, 1) == 0 ? 8 : 2;
        DeploymentOptions options{.degrees = {1, 2, 3, 4},
                                  .max_stages = pick(1, 5),
                                  .max_gpus = pick(1, 10),
                                  .max_types = pick(1, 3),
                                  .mixed_degrees = i % 2 == 1,
                                  .min_tokens = pick(1, 20000)};
        if (types > 1 && pick(0, 2) == 0) options.disconnected = {{1, 0}};
        for (auto& gpu : gpus) gpu.region = pick(0, 2) == 0 ? "west" : "east";
        options.across_regions = pick(0, 2) == 0;
        const double fraction = i % 3 == 0 ? 0.6 : usual_memory_fraction;
        const auto expected = brute_force(model, gpus, available, options, fraction);
        std::set<std::vector<std::pair<int, int>>> found;
        const auto deployments = enumerate_deployments(model, gpus, available, options, fraction);
        for (const auto& d : deployments) {
            std::vector<std::pair<int, int>> stages;
            int layers = 0;
            for (const auto& s : d.stages) {
                stages.emplace_back(s.gpu, s.degree);
                layers += s.layers;
            }
            CHECK(layers == model.layers);
            CHECK(parse_deployment(d.name, model, gpus) == d);
            mixed += std::adjacent_find(stages.begin(), stages.end(), [](const auto& a, const auto& b) {
                         return a.first == b.first && a.second != b.second;
                     }) != stages.end();
            found.insert(stages);
        }
        CAPTURE(i);
        CHECK(found.size() == deployments.size());
        CHECK(found == expected);
        total += found.size();
    }
    CHECK(total > 1000);
    CHECK(mixed > 100);
}

TEST_CASE("a degree for each stage: six GPUs as four and two, within one machine or over the network") {
    const auto model = llama3_70b();
    const auto gpus = paper_gpus_dense();
    const int a100 = 3;
    REQUIRE(gpus[a100].name == "A100");
    std::vector<int> six(gpus.size(), 0);
    six[a100] = 6;
    const auto names = [&](bool mixed) {
        std::vector<std::string> all;
        for (const auto& d : enumerate_deployments(model, gpus, six, {.mixed_degrees = mixed}))
            all.push_back(d.name);
        std::sort(all.begin(), all.end());
        return all;
    };
    const auto one = names(false), any = names(true);
    CHECK(std::includes(any.begin(), any.end(), one.begin(), one.end()));
    CHECK(std::count(one.begin(), one.end(), "A100 1x2+A100 1x4") == 0);
    CHECK(std::count(any.begin(), any.end(), "A100 1x2+A100 1x4") == 1);
    const auto mixed = parse_deployment("A100 1x2+A100 1x4", model, gpus);
    CHECK(mixed.stages[0].layers == 27);
    CHECK(mixed.stages[1].layers == 53);
    CHECK(stage_machines(gpus, mixed) == std::vector<int>{0, 0});
    CHECK(in_words(mixed, gpus) ==
          "a pipeline of 2 stages (27 + 53 layers), each a tensor-parallel group of 2 A100, then a "
          "tensor-parallel group of 4 A100; 6 GPUs");
    // Eight GPUs a machine: 2 + 4 + 4 do not fit into one.
    CHECK(stage_machines(gpus, parse_deployment("A100 1x2+A100 2x4", model, gpus)) ==
          std::vector<int>{0, 0, 1});
}
