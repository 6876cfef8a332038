// SPDX-License-Identifier: Apache-2.0
// Throughput estimates: roofline, measured tables of layers, and their CSV files.
#include "core/csv_reader.hpp"
#include "serving/instance.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/serving/estimate.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace gpusched::serving {

GPUSCHED_EXPORT void validate(const EstimateOptions& options) {
    Problems problems;
    check_fields(problems, options.efficiency);
    check_fields(problems, options);
    std::set<std::tuple<std::string, std::string, int>> seen;
    for (const auto& p : options.profiles) {
        const auto owner = "profile of " + gpusched::quoted(p.model) + " on " + gpusched::quoted(p.gpu);
        check_fields(problems, p, owner);
        if (!seen.emplace(p.model, p.gpu, p.degree).second) problems.add(owner + ": appears twice");
        for (const auto& [name, points] :
             {std::pair("prefill", &p.prefill), std::pair("decode", &p.decode)}) {
            if (points->empty()) problems.add(bad_value(name, "no points", "at least one", owner));
            double last = 0;
            for (const auto& point : *points) {
                if (!(point.size > last && std::isfinite(point.size)))
                    problems.add(bad_value(name, std::to_string(point.size), "ascending sizes > 0", owner));
                check_range(problems, name, point.seconds, 0.0, 1e6, owner);
                last = point.size;
            }
        }
    }
    problems.throw_if_any();
}

GPUSCHED_EXPORT double all_reduce_seconds(const GpuType& gpu, int degree, double bytes, const Efficiency& e) {
    if (degree <= 1) return 0;
    return e.collective_s + 2.0 * (degree - 1) / degree * bytes / (gpu.link_gb_s * 1e9 * e.link);
}

GPUSCHED_EXPORT double layer_seconds(const LanguageModel& m, const GpuType& gpu, int degree, double tokens,
                                     double context, double sequences, const Efficiency& e) {
    const double flops = gpu.tflops * 1e12 * e.compute * degree;
    const double bytes_s = gpu.bandwidth_gb_s * 1e9 * e.bandwidth;
    const double weights = m.layer_matrix_parameters();
    const double linear =
        std::max(2 * weights * tokens / flops, m.bytes_per_weight * weights / (bytes_s * degree));
    // Every GPU computes norms and residuals; the outputs of the matrices are divided among the GPUs.
    const double shared = (m.heads + 2.0 * m.kv_heads) * m.head_size + 3.0 * m.intermediate;
    const double activations = 2 * tokens * (8.0 * m.hidden + shared / degree) / bytes_s;
    // With fewer KV heads than GPUs, each GPU reads a copy of the cache of its head.
    const double kv = m.kv_bytes_per_layer() / std::min(degree, m.kv_heads);
    const double attention =
        std::max(4.0 * m.heads * m.head_size * tokens * context / flops, kv * sequences * context / bytes_s);
    return linear + activations + attention + e.layer_s +
           2 * all_reduce_seconds(gpu, degree, tokens * m.hidden * 2.0, e);
}

namespace detail {

static double interpolate(const std::vector<ProfilePoint>& points, double size) {
    if (size <= points.front().size) return points.front().seconds;
    if (size >= points.back().size) return points.back().seconds * size / points.back().size;
    const auto above = std::lower_bound(points.begin(), points.end(), size,
                                        [](const ProfilePoint& p, double s) { return p.size < s; });
    const auto below = above - 1;
    return below->seconds +
           (above->seconds - below->seconds) * (size - below->size) / (above->size - below->size);
}

/// The times of the stages of a deployment.
class StageTimes {
  public:
    StageTimes(const LanguageModel& model, std::span<const GpuType> gpus, const Deployment& deployment,
               const EstimateOptions& options)
        : model_(model), gpus_(gpus), deployment_(deployment), options_(options),
          machine_(stage_machines(gpus, deployment)) {
        for (std::size_t s = 0; s < stages(); ++s) {
            const auto& stage = deployment.stages[s];
            profile_.push_back(nullptr);
            for (const auto& p : options.profiles)
                if (p.model == model.name && p.gpu == type(s).name && p.degree == stage.degree)
                    profile_.back() = &p;
        }
    }

    [[nodiscard]] std::size_t stages() const { return deployment_.stages.size(); }
    [[nodiscard]] double prefill(std::size_t s, double tokens) const {
        return run(s, tokens, tokens / 2, 1, profile_[s] ? &profile_[s]->prefill : nullptr, 1);
    }
    [[nodiscard]] double decode(std::size_t s, double batch, double context) const {
        return run(s, batch, context, batch, profile_[s] ? &profile_[s]->decode : nullptr, batch);
    }
    /// Seconds of a message to the next stage; 0 from the last one.
    [[nodiscard]] double hop(std::size_t s, double tokens) const {
        if (s + 1 == stages()) return 0;
        const auto& e = options_.efficiency;
        const bool inside = machine_[s] == machine_[s + 1];
        const double rate = inside ? type(s).link_gb_s * e.link
                                   : std::min(type(s).network_gb_s, type(s + 1).network_gb_s) * e.network;
        return e.message_s + tokens * model_.hidden * 2.0 / (rate * 1e9);
    }

  private:
    [[nodiscard]] const GpuType& type(std::size_t s) const {
        return gpus_[static_cast<std::size_t>(deployment_.stages[s].gpu)];
    }
    [[nodiscard]] double run(std::size_t s, double tokens, double context, double sequences,
                             const std::vector<ProfilePoint>* table, double logits) const {
        const auto& stage = deployment_.stages[s];
        const auto& e = options_.efficiency;
        const double layer =
            table ? interpolate(*table, tokens)
                  : layer_seconds(model_, type(s), stage.degree, tokens, context, sequences, e);
        double seconds = stage.layers * layer;
        if (s + 1 == stages()) {  // the output embedding
            const double weights = static_cast<double>(model_.vocabulary) * model_.hidden;
            seconds +=
                std::max(2 * weights * logits / (type(s).tflops * 1e12 * e.compute),
                         model_.bytes_per_weight * weights / (type(s).bandwidth_gb_s * 1e9 * e.bandwidth)) /
                stage.degree;
        }
        return seconds;
    }

    const LanguageModel& model_;
    std::span<const GpuType> gpus_;
    const Deployment& deployment_;
    const EstimateOptions& options_;
    std::vector<int> machine_;
    std::vector<const LayerProfile*> profile_;
};

/// estimate_throughput() of valid arguments.
ThroughputEstimate estimate(const LanguageModel& model, std::span<const GpuType> gpus,
                            const Deployment& deployment, const RequestShape& shape,
                            const EstimateOptions& options) {
    ThroughputEstimate result;
    const auto room = kv_tokens(model, gpus, deployment, options.memory_fraction);
    const double least = *std::min_element(room.begin(), room.end());
    if (least < static_cast<double>(shape.input) + shape.output) return result;
    const double context = shape.input + shape.output / 2.0;
    const double batch = std::min<double>(options.max_batch, std::floor(least / context));
    const StageTimes times(model, gpus, deployment, options);
    const double parts = std::min(static_cast<double>(times.stages()), batch);
    const double part = batch / parts;
    double slowest = 0, through = 0;
    for (std::size_t s = 0; s < times.stages(); ++s) {
        const double prompt = times.prefill(s, shape.input);
        const double message = times.hop(s, shape.input);
        result.prefill_s = std::max({result.prefill_s, prompt, message});
        result.first_token_s += prompt + message;
        const double step = times.decode(s, part, context);
        slowest = std::max(slowest, step);
        through += step + times.hop(s, part);
    }
    if (!std::isfinite(result.first_token_s)) return {};  // stages on machines without a network
    result.batch = batch;
    result.step_s = std::max(parts * slowest, through);
    result.requests_per_s = 1 / (result.prefill_s + (shape.output - 1) * result.step_s / batch);
    return result;
}

static void check_deployment(const LanguageModel& model, std::span<const GpuType> gpus,
                             const Deployment& deployment) {
    Problems problems;
    const auto owner = "deployment " + gpusched::quoted(deployment.name);
    if (deployment.stages.empty()) problems.add(bad_value("stages", "none", "at least one", owner));
    if (gpus.empty()) problems.add(bad_value("gpus", "none", "the GPU types of the deployment"));
    problems.throw_if_any();
    int layers = 0;
    for (const auto& stage : deployment.stages) {
        check_range(problems, "gpu", stage.gpu, 0, static_cast<int>(gpus.size()) - 1, owner);
        check_at_least(problems, "degree", stage.degree, 1, owner);
        check_range(problems, "layers", stage.layers, 1, model.layers, owner);
        layers += std::clamp(stage.layers, 0, model.layers);
    }
    if (layers != model.layers)
        problems.add(bad_value("layers", std::to_string(layers),
                               std::to_string(model.layers) + ", those of the model, in all stages", owner));
    problems.throw_if_any();
    for (std::size_t s = 0; s < deployment.stages.size(); ++s) {
        const auto& gpu = gpus[static_cast<std::size_t>(deployment.stages[s].gpu)];
        if (deployment.stages[s].degree > gpu.per_machine ||
            (deployment.stages[s].degree > 1 && gpu.link_gb_s <= 0))
            problems.add(bad_value("degree", std::to_string(deployment.stages[s].degree),
                                   "GPUs of one machine with a link", owner));
    }
    problems.throw_if_any();
}

}  // namespace detail

GPUSCHED_EXPORT ThroughputEstimate estimate_throughput(const LanguageModel& model,
                                                       std::span<const GpuType> gpus,
                                                       const Deployment& deployment,
                                                       const RequestShape& shape,
                                                       const EstimateOptions& options) {
    validate(model);
    validate(std::vector<GpuType>(gpus.begin(), gpus.end()));
    validate(options);
    Problems problems;
    check_fields(problems, shape);
    problems.throw_if_any();
    detail::check_deployment(model, gpus, deployment);
    return detail::estimate(model, gpus, deployment, shape, options);
}

GPUSCHED_EXPORT std::vector<ProfilePoint> parse_profile_csv(std::string_view text, double unit_s,
                                                            std::string_view source) {
    require_range("unit_s", unit_s, std::numeric_limits<double>::min(), 1e6);
    enum { size, time };
    Problems problems(10);
    csv::Reader<2, csv::BlankLinesAndComments> table(text, std::string(source), {"size", "time"}, 2, problems,
                                                     csv::Header::none);
    const auto is_number = [&](std::size_t column) {
        double number = 0;
        return read_number(table.cell(column), number);
    };
    std::vector<ProfilePoint> points;
    for (bool first = true; table.next(); first = false) {
        if (first && !is_number(size) && !is_number(time)) continue;  // a header
        const auto tokens = table.quantity(size), units = table.quantity(time);
        if (!tokens || !units || *tokens == 0) continue;
        if (!std::isfinite(*units * unit_s))
            table.expected(time, "a time that is finite in seconds");
        else if (!points.empty() && points.back().size >= *tokens)
            table.expected(size, "more than " + number_text(points.back().size) + ", the size before");
        else
            points.push_back({*tokens, *units * unit_s});
    }
    if (problems.empty() && points.empty())
        problems.add(std::string(source) + ": no points; expected lines size,time with a size above 0");
    problems.throw_if_any();
    return points;
}

GPUSCHED_EXPORT LayerProfile read_layer_profile(const std::string& prefill_path,
                                                const std::string& decode_path, const std::string& model,
                                                const std::string& gpu, int degree, double unit_s) {
    LayerProfile profile{model, gpu, degree, parse_profile_csv(read_file(prefill_path), unit_s, prefill_path),
                         parse_profile_csv(read_file(decode_path), unit_s, decode_path)};
    EstimateOptions options;
    options.profiles = {profile};
    validate(options);
    return profile;
}

}  // namespace gpusched::serving
