// SPDX-License-Identifier: Apache-2.0
// Deployments: layers and memory of stages, enumeration, and names.
#include "serving/instance.hpp"
#include "serving/step_model.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/deployment.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>

namespace gpusched::serving {

GPUSCHED_EXPORT std::vector<int> split_layers(int layers, std::span<const double> memory) {
    const auto stages = static_cast<int>(memory.size());
    require_range("stages", stages, 1, layers);
    for (const auto size : memory) require_range("memory", size, 1e-9, 1e18);
    const double sum = std::accumulate(memory.begin(), memory.end(), 0.0);
    std::vector<int> split;
    std::vector<std::pair<double, int>> rest;
    for (int s = 0; s < stages; ++s) {
        const double exact = layers * memory[static_cast<std::size_t>(s)] / sum;
        // 1e-9: with 24 layers over 1:2 the result is 8 and 16 however the quotients are rounded.
        const int whole = std::max(1, static_cast<int>(std::floor(exact + 1e-9)));
        split.push_back(whole);
        rest.emplace_back(whole - exact, s);
    }
    int left = layers - std::accumulate(split.begin(), split.end(), 0);
    std::sort(rest.begin(), rest.end(), [](const auto& a, const auto& b) {
        return std::abs(a.first - b.first) > 1e-9 ? a.first < b.first : a.second < b.second;
    });
    for (std::size_t i = 0; left > 0; i = (i + 1) % rest.size(), --left)
        ++split[static_cast<std::size_t>(rest[i].second)];
    // Stages raised to one layer exceed the total: the fullest stages give layers back.
    for (; left < 0; ++left) --*std::max_element(split.begin(), split.end());
    return split;
}

GPUSCHED_EXPORT std::vector<double> kv_tokens(const LanguageModel& model, std::span<const GpuType> gpus,
                                              const Deployment& deployment, double sequence,
                                              double memory_fraction) {
    std::vector<double> tokens;
    for (std::size_t s = 0; s < deployment.stages.size(); ++s) {
        const auto& stage = deployment.stages[s];
        const auto& gpu = gpus[static_cast<std::size_t>(stage.gpu)];
        double weights = stage.layers * model.layer_parameters();
        const double embedding = static_cast<double>(model.vocabulary) * model.hidden;
        if (s == 0) weights += embedding;
        if (s + 1 == deployment.stages.size()) weights += embedding + model.hidden;
        const double room =
            gpu.memory_gb * 1e9 * memory_fraction - weights * model.bytes_per_weight / stage.degree;
        const double all_layers = detail::CacheSize(model, stage.degree, model.bytes_per_kv).bytes(sequence);
        tokens.push_back(room / (all_layers * stage.layers / model.layers) * sequence);
    }
    return tokens;
}

GPUSCHED_EXPORT std::vector<int> stage_machines(std::span<const GpuType> gpus, const Deployment& deployment) {
    std::vector<int> machines;
    int used = 0;  // GPUs of the last machine
    for (std::size_t s = 0; s < deployment.stages.size(); ++s) {
        const auto& stage = deployment.stages[s];
        const auto& gpu = gpus[static_cast<std::size_t>(stage.gpu)];
        // Without a link, stages in one machine also communicate over the network.
        const bool next = s == 0 || deployment.stages[s - 1].gpu != stage.gpu ||
                          used + stage.degree > gpu.per_machine || gpu.link_gb_s <= 0;
        machines.push_back(s == 0 ? 0 : machines.back() + (next ? 1 : 0));
        used = (next ? 0 : used) + stage.degree;
    }
    return machines;
}

GPUSCHED_EXPORT bool in_one_region(std::span<const GpuType> gpus, const Deployment& deployment) {
    return std::all_of(deployment.stages.begin(), deployment.stages.end(), [&](const Stage& stage) {
        return gpus[static_cast<std::size_t>(stage.gpu)].region ==
               gpus[static_cast<std::size_t>(deployment.stages.front().gpu)].region;
    });
}

namespace detail {

/// A run of equal stages in a deployment.
struct StageRun {
    int gpu;
    int degree;
    int count;
};

/// Whether tensor-parallel groups of this degree are possible.
static bool groups_fit(const LanguageModel& model, const GpuType& gpu, int degree) {
    return degree <= gpu.per_machine && (degree == 1 || gpu.link_gb_s > 0) && model.heads % degree == 0;
}

/// Appends the stages of runs to a deployment, without layers.
static void add_stages(const std::vector<StageRun>& runs, Deployment& deployment) {
    for (const auto& run : runs)
        for (int i = 0; i < run.count; ++i) deployment.stages.push_back({run.gpu, run.degree, 0});
}

/// Splits the layers of a model over the stages of a deployment by their memory.
static void set_layers(const LanguageModel& model, const std::vector<GpuType>& gpus, Deployment& deployment) {
    std::vector<double> memory;
    for (const auto& stage : deployment.stages)
        memory.push_back(gpus[static_cast<std::size_t>(stage.gpu)].memory_gb * stage.degree);
    const auto layers = split_layers(model.layers, memory);
    for (std::size_t s = 0; s < layers.size(); ++s) deployment.stages[s].layers = layers[s];
}

/// Makes the deployment of runs. @return whether it is possible
static bool deployable(const LanguageModel& model, const std::vector<GpuType>& gpus,
                       const DeploymentOptions& options, double memory_fraction,
                       const std::vector<StageRun>& runs, Deployment& deployment) {
    deployment = {};
    bool network = true;
    for (const auto& run : runs) {
        const auto& gpu = gpus[static_cast<std::size_t>(run.gpu)];
        network = network && gpu.network_gb_s > 0;
        if (!deployment.name.empty()) deployment.name += "+";
        deployment.name += gpu.name + " " + std::to_string(run.count) + "x" + std::to_string(run.degree);
    }
    add_stages(runs, deployment);
    if (!network && stage_machines(gpus, deployment).back() > 0) return false;
    set_layers(model, gpus, deployment);
    const auto room = kv_tokens(model, gpus, deployment, options.min_tokens, memory_fraction);
    return std::all_of(room.begin(), room.end(), [&](double tokens) { return tokens >= options.min_tokens; });
}

/// Enumerates runs of stages in the order of types, then degrees, within the remaining limits.
class DeploymentSearch {
  public:
    DeploymentSearch(const LanguageModel& model, const std::vector<GpuType>& gpus,
                     std::span<const int> available, const DeploymentOptions& options, double memory_fraction,
                     const std::function<bool(const Deployment&)>& keep, const MustStop& stop)
        : model_(model), gpus_(gpus), available_(available.begin(), available.end()), options_(options),
          memory_fraction_(memory_fraction), keep_(keep), stop_(stop),
          stages_left_(std::min(options.max_stages, model.layers)), gpus_left_(options.max_gpus) {}

    std::vector<Deployment> run() {
        extend(0, 0, options_.max_types);
        return std::move(found_);
    }

  private:
    bool connected(int g) const {
        const auto there = [&](int type) {
            return type == g || std::any_of(runs_.begin(), runs_.end(),
                                            [&](const StageRun& run) { return run.gpu == type; });
        };
        const auto region = [&](int type) { return gpus_[static_cast<std::size_t>(type)].region; };
        if (!options_.across_regions && !runs_.empty() && region(runs_.front().gpu) != region(g))
            return false;
        return std::none_of(
            options_.disconnected.begin(), options_.disconnected.end(), [&](const auto& pair) {
                return (pair.first == g && there(pair.second)) || (pair.second == g && there(pair.first));
            });
    }
    /// @param first, degree  the first type of the next run, and the first degree of that type
    void extend(int first, std::size_t degree, int types_left) {
        for (int g = first; g < static_cast<int>(gpus_.size()); ++g, degree = 0) {
            const bool again = !runs_.empty() && runs_.back().gpu == g;
            if ((!again && types_left == 0) || !connected(g)) continue;
            for (auto d = degree; d < options_.degrees.size(); ++d)
                if (groups_fit(model_, gpus_[static_cast<std::size_t>(g)], options_.degrees[d]))
                    with_run(g, d, types_left - (again ? 0 : 1));
        }
    }
    void with_run(int g, std::size_t d, int types_left) {
        const int degree = options_.degrees[d];
        auto& there = available_[static_cast<std::size_t>(g)];
        const int most = std::min({stages_left_, there / degree, gpus_left_ / degree});
        for (int count = 1; count <= most; ++count) {
            // Small searches ask for no time, so that they find the same in any.
            if (stop_ && ++visited_ % 1024 == 0) stopped_ = stopped_ || stop_();
            if (stopped_) return;
            runs_.push_back({g, degree, count});
            stages_left_ -= count;
            there -= degree * count;
            gpus_left_ -= degree * count;
            Deployment deployment;
            if (deployable(model_, gpus_, options_, memory_fraction_, runs_, deployment) &&
                (!keep_ || keep_(deployment)))
                found_.push_back(std::move(deployment));
            if (options_.mixed_degrees)
                extend(g, d + 1, types_left);
            else
                extend(g + 1, 0, types_left);
            stages_left_ += count;
            there += degree * count;
            gpus_left_ += degree * count;
            runs_.pop_back();
        }
    }

    const LanguageModel& model_;
    const std::vector<GpuType>& gpus_;
    std::vector<int> available_;
    const DeploymentOptions& options_;
    double memory_fraction_;
    const std::function<bool(const Deployment&)>& keep_;
    const MustStop& stop_;
    std::int64_t visited_ = 0;
    bool stopped_ = false;
    int stages_left_, gpus_left_;
    std::vector<StageRun> runs_;
    std::vector<Deployment> found_;
};

std::vector<Deployment> find_deployments(const LanguageModel& model, const std::vector<GpuType>& gpus,
                                         std::span<const int> available, const DeploymentOptions& options,
                                         double memory_fraction,
                                         const std::function<bool(const Deployment&)>& keep,
                                         const MustStop& stop) {
    validate(model);
    validate(gpus);
    Problems problems;
    const auto types = static_cast<int>(gpus.size());
    check_size(problems, "available", available.size(), gpus.size());
    for (const auto count : available) check_at_least(problems, "available", count, 0);
    for (std::size_t i = 0; i < options.degrees.size(); ++i)
        check_at_least(problems, "degrees", options.degrees[i], i == 0 ? 1 : options.degrees[i - 1] + 1);
    check_fields(problems, options);
    check_range(problems, "memory_fraction", memory_fraction, memory_fractions.low, memory_fractions.high);
    for (const auto& [a, b] : options.disconnected) {
        check_range(problems, "disconnected", a, 0, types - 1);
        check_range(problems, "disconnected", b, 0, types - 1);
    }
    problems.throw_if_any();
    return DeploymentSearch(model, gpus, available, options, memory_fraction, keep, stop).run();
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<Deployment> enumerate_deployments(const LanguageModel& model,
                                                              const std::vector<GpuType>& gpus,
                                                              std::span<const int> available,
                                                              const DeploymentOptions& options,
                                                              double memory_fraction) {
    return detail::find_deployments(model, gpus, available, options, memory_fraction, {});
}

namespace detail {

/// Reads `TYPE SxD[+TYPE SxD ...]`. Names of types are arbitrary.
static bool read_runs(std::string_view text, const std::vector<GpuType>& gpus, std::vector<StageRun>& runs) {
    const auto number = [](std::string_view& from) {
        int value = 0;
        std::size_t digits = 0;
        while (digits < from.size() && digits < 4 && from[digits] >= '0' && from[digits] <= '9')
            value = value * 10 + (from[digits++] - '0');
        from.remove_prefix(digits);
        return value;
    };
    for (std::size_t g = 0; g < gpus.size(); ++g) {
        auto rest = text;
        if (!rest.starts_with(gpus[g].name + " ")) continue;
        rest.remove_prefix(gpus[g].name.size() + 1);
        StageRun run{static_cast<int>(g), 0, number(rest)};
        if (run.count < 1 || !rest.starts_with('x')) continue;
        rest.remove_prefix(1);
        run.degree = number(rest);
        if (run.degree < 1) continue;
        runs.push_back(run);
        if (rest.empty()) return true;
        if (rest.front() == '+' && read_runs(rest.substr(1), gpus, runs)) return true;
        runs.pop_back();
    }
    return false;
}

}  // namespace detail

GPUSCHED_EXPORT Deployment parse_deployment(const std::string& name, const LanguageModel& model,
                                            const std::vector<GpuType>& gpus) {
    std::vector<detail::StageRun> runs;
    if (!detail::read_runs(name, gpus, runs)) {
        std::vector<std::string> known;
        for (const auto& possible :
             enumerate_deployments(model, gpus, std::vector<int>(gpus.size(), 64), {.max_types = 1}))
            known.push_back(possible.name);
        std::string types;
        for (const auto& gpu : gpus) types += (types.empty() ? "" : ", ") + gpu.name;
        throw InvalidInput(
            bad_value("deployment", gpusched::quoted(name),
                      "'TYPE SxD', S stages of tensor-parallel degree D, of the types " + types) +
            did_you_mean(name, known));
    }
    Problems problems;
    Deployment deployment{name, {}};
    detail::add_stages(runs, deployment);
    for (const auto& run : runs) {
        const auto& gpu = gpus[static_cast<std::size_t>(run.gpu)];
        if (run.degree > gpu.per_machine || (run.degree > 1 && gpu.link_gb_s <= 0))
            problems.add(bad_value("deployment", gpusched::quoted(name),
                                   "groups that fit into a machine with a link; one has " +
                                       std::to_string(gpu.per_machine) + " " + gpu.name));
        if (model.heads % run.degree != 0)
            problems.add(bad_value("deployment", gpusched::quoted(name),
                                   "degrees that divide the " + std::to_string(model.heads) +
                                       " query heads of " + gpusched::quoted(model.name)));
    }
    if (static_cast<int>(deployment.stages.size()) > model.layers)
        problems.add(bad_value("deployment", gpusched::quoted(name),
                               "at most " + std::to_string(model.layers) + " stages, as many as " +
                                   gpusched::quoted(model.name) + " has layers"));
    problems.throw_if_any();
    detail::set_layers(model, gpus, deployment);
    return deployment;
}

GPUSCHED_EXPORT std::string in_words(const Deployment& deployment, std::span<const GpuType> gpus) {
    std::string layers, groups;
    int all = 0;
    for (std::size_t s = 0; s < deployment.stages.size(); ++s) {
        const auto& stage = deployment.stages[s];
        layers += (s == 0 ? "" : " + ") + std::to_string(stage.layers);
        all += stage.degree;
        if (s > 0 && stage.gpu == deployment.stages[s - 1].gpu &&
            stage.degree == deployment.stages[s - 1].degree)
            continue;
        const auto& name = gpus[static_cast<std::size_t>(stage.gpu)].name;
        groups +=
            (groups.empty() ? "" : ", then ") +
            (stage.degree == 1 ? "one " + name
                               : "a tensor-parallel group of " + std::to_string(stage.degree) + " " + name);
    }
    const auto stages = deployment.stages.size();
    const std::string begin =
        stages == 1 ? "one stage (" + layers + " layers): "
                    : "a pipeline of " + std::to_string(stages) + " stages (" + layers + " layers), each ";
    return begin + groups + "; " + std::to_string(all) + (all == 1 ? " GPU" : " GPUs");
}

}  // namespace gpusched::serving
