// SPDX-License-Identifier: Apache-2.0
// Estimator: the times of a model on any deployment, from the model of an engine step.
#include "serving/estimator.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/enum_names.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace gpusched::serving::detail {

/// The part of the link within a machine that messages between stages reach.
constexpr double link_part = 0.7;

static StepGpu step_gpu(const GpuType& g) {
    const auto peak = [&](double tflops) { return 1e12 * (tflops > 0 ? tflops : g.tflops); };
    return {.family = known_family(g.family),
            .bandwidth = 1e9 * g.bandwidth_gb_s,
            .bf16 = peak(0),
            .fp8 = peak(g.fp8_tflops),
            .fp4 = peak(g.fp4_tflops),
            .memory = 1e9 * g.memory_gb,
            .link = 1e9 * g.link_gb_s,
            .network = 1e9 * g.network_gb_s,
            .linked = double(g.per_machine)};
}

/// The format of the weights. All formats of 4 bits count as FP4.
static Precision precision_of(const LanguageModel& m) {
    return m.bytes_per_weight >= 1.5    ? Precision::bf16
           : m.bytes_per_weight >= 0.75 ? Precision::fp8
                                        : Precision::fp4;
}

static Replica tensor_group(const LanguageModel& m, const StepGpu& g, Precision precision, int degree) {
    const auto attention = attention_precision(m, precision);
    const double bytes = m.bytes_per_weight, peak = peak_of(g, precision);
    return {.tensor = double(degree),
            .data = 1,
            .expert = 1,
            .expert_tensor = double(degree),
            .attention_bytes = attention == precision ? bytes : bytes_of(attention),
            .attention_peak = peak_of(g, attention),
            .mlp_bytes = bytes,
            .mlp_peak = peak,
            .expert_bytes = bytes,
            .expert_peak = peak,
            .cache_bytes = m.bytes_per_kv};
}

Estimator::Estimator(const LanguageModel& model, std::span<const GpuType> gpus,
                     const EstimateOptions& options)
    : model_(model), gpus_(gpus), options_(options) {
    const auto engine = std::string(enum_name(options.engine)), kind = std::string(kind_of(model));
    for (const auto& gpu : gpus) {
        auto& type = types_.emplace_back();
        type.gpu = step_gpu(gpu);
        type.precision = precision_of(model);
        const auto precision = std::string(enum_name(type.precision));
        type.coefficients =
            coefficients_of({kind, engine, engine, type.gpu.family, attention_of(model), precision});
        type.errors = errors_of(kind + " " + std::string(type.gpu.family) + " " + engine + " " + precision);
        if (options.error == EstimateError::p10)
            type.first = type.errors.ttft.low, type.token = type.errors.tpot.low;
        if (options.error == EstimateError::p90)
            type.first = type.errors.ttft.high, type.token = type.errors.tpot.high;
    }
}

const Estimator::Group& Estimator::group(const Stage& stage) const {
    auto& type = types_[static_cast<std::size_t>(stage.gpu)];
    const auto degree = static_cast<std::size_t>(stage.degree);
    if (type.groups.size() <= degree) type.groups.resize(degree + 1);
    auto& found = type.groups[degree];
    if (!found) {
        const LayerProfile* profile = nullptr;
        for (const auto& p : options_.profiles)
            if (p.model == model_.name && p.gpu == gpus_[static_cast<std::size_t>(stage.gpu)].name &&
                p.degree == stage.degree)
                profile = &p;
        const auto replica = tensor_group(model_, type.gpu, type.precision, stage.degree);
        found = std::make_unique<Group>(Group{{model_, type.gpu, type.coefficients, replica}, profile});
    }
    return *found;
}

/// Measured seconds: between two points interpolated, beyond the last one in proportion to the size.
static double interpolate(const std::vector<ProfilePoint>& points, double size) {
    if (size <= points.front().size) return points.front().seconds;
    if (size >= points.back().size) return points.back().seconds * size / points.back().size;
    const auto above = std::lower_bound(points.begin(), points.end(), size,
                                        [](const ProfilePoint& p, double s) { return p.size < s; });
    const auto below = above - 1;
    return below->seconds +
           (above->seconds - below->seconds) * (size - below->size) / (above->size - below->size);
}

double Estimator::prefill_layer_s(const Group& group, double tokens) const {
    if (group.profile) return interpolate(group.profile->prefill, tokens);
    return group.step.layers_seconds({.prompt = tokens, .ranks = 1, .context = tokens / 2, .sequences = 1}) /
           model_.layers;
}

double Estimator::decode_layer_s(const Group& group, double batch, double context) const {
    if (group.profile) return interpolate(group.profile->decode, batch);
    return group.step.layers_seconds({.sequences = batch, .cached = context}) / model_.layers;
}

double Estimator::hop_s(const Stage& from, const Stage& to, bool inside, double tokens) const {
    const auto& a = gpus_[static_cast<std::size_t>(from.gpu)];
    const auto& b = gpus_[static_cast<std::size_t>(to.gpu)];
    const double rate =
        inside ? a.link_gb_s * link_part : std::min(a.network_gb_s, b.network_gb_s) * options_.network;
    return options_.message_s + tokens * model_.hidden * 2.0 / (rate * 1e9);
}

ThroughputEstimate Estimator::estimate(const Deployment& deployment, const RequestShape& shape,
                                       std::optional<int> max_batch) const {
    ThroughputEstimate result;
    const auto& stages = deployment.stages;
    const auto room = [&](double sequence) {
        const auto tokens = kv_tokens(model_, gpus_, deployment, sequence, options_.memory_fraction);
        return *std::min_element(tokens.begin(), tokens.end());
    };
    const double longest = static_cast<double>(shape.input) + shape.output;
    if (room(longest) < longest) return result;
    const double context = shape.input + shape.output / 2.0;
    const double batch =
        std::min<double>(max_batch.value_or(options_.max_batch), std::floor(room(context) / context));
    const double parts = std::min(static_cast<double>(stages.size()), batch);
    const double part = batch / parts;
    std::vector<int> machine;
    if (stages.size() > 1) machine = stage_machines(gpus_, deployment);

    double slowest = 0, through = 0, first = 0, factor = 0, alone = 0;
    double prompt_layer = 0, step_layer = 0, alone_layer = 0;
    const Group* last = nullptr;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const auto& stage = stages[s];
        const auto& type = types_[static_cast<std::size_t>(stage.gpu)];
        const auto& here = group(stage);
        if (&here != last) {  // equal stages follow each other
            last = &here;
            prompt_layer = prefill_layer_s(here, shape.input);
            step_layer = decode_layer_s(here, part, context);
            alone_layer = batch > 1 ? decode_layer_s(here, 1, context) : step_layer;
        }
        const auto& c = type.coefficients;
        const bool measured = here.profile != nullptr, end = s + 1 == stages.size();
        const double token = measured ? 1 : type.token;
        const double fixed = measured ? 0 : c.step_s;
        const double hop = end ? 0 : hop_s(stage, stages[s + 1], machine[s] == machine[s + 1], shape.input);
        const double step_hop = end ? 0 : hop_s(stage, stages[s + 1], machine[s] == machine[s + 1], part);
        const double prompt = stage.layers * prompt_layer + (end ? here.step.head_seconds(1) : 0) + fixed;
        const double step =
            token * (stage.layers * step_layer + (end ? here.step.head_seconds(part) : 0) + fixed);
        result.prefill_s =
            std::max({result.prefill_s, token * (measured ? 1 : c.interference) * prompt, hop});
        first += prompt + hop;
        alone += stage.layers * alone_layer + (end ? here.step.head_seconds(1) : 0) + fixed;
        factor = std::max(factor, measured ? 1 : type.first);
        slowest = std::max(slowest, step);
        through += step + step_hop;
    }
    if (!std::isfinite(first)) return {};  // stages on machines without a network
    // Measured layers are those of a kernel: nothing is known of the time between engine and client.
    if (const auto& c = last->step.coefficients(); last->profile == nullptr)
        first += c.request_s + c.stream * alone;
    result.first_token_s = factor * first;
    result.batch = batch;
    result.step_s = std::max(parts * slowest, through);
    result.requests_per_s = 1 / (result.prefill_s + (shape.output - 1) * result.step_s / batch);
    return result;
}

double Estimator::layer_seconds(std::size_t gpu, int degree, double tokens, double context,
                                double sequences) const {
    const auto& found = group({static_cast<int>(gpu), degree, model_.layers});
    if (tokens <= sequences) return decode_layer_s(found, tokens, context);
    if (found.profile) return interpolate(found.profile->prefill, tokens);
    return found.step.layers_seconds(
               {.prompt = tokens, .ranks = 1, .context = context, .sequences = sequences}) /
           model_.layers;
}

std::vector<Estimator> estimators_of(const ServingRequest& request, const EstimateOptions& options) {
    std::vector<Estimator> all;
    all.reserve(request.models.size());
    for (const auto& served : request.models) all.emplace_back(served.model, request.gpus, options);
    return all;
}

}  // namespace gpusched::serving::detail
