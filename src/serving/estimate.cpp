// SPDX-License-Identifier: Apache-2.0
// Throughput estimates: options and arguments, and CSV files with measured times of layers.
#include "core/csv_reader.hpp"
#include "serving/estimator.hpp"

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

namespace detail {

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
    return detail::Estimator(model, gpus, options).estimate(deployment, shape);
}

GPUSCHED_EXPORT double layer_seconds(const LanguageModel& model, const GpuType& gpu, int degree,
                                     double tokens, double context, double sequences,
                                     const EstimateOptions& options) {
    validate(model);
    const std::vector<GpuType> gpus{gpu};
    validate(gpus);
    validate(options);
    Problems problems;
    check_range(problems, "degree", degree, 1, gpu.link_gb_s > 0 ? gpu.per_machine : 1);
    check_range(problems, "tokens", tokens, 0.0, 1e18);
    check_range(problems, "context", context, 0.0, 1e18);
    check_range(problems, "sequences", sequences, 0.0, 1e18);
    problems.throw_if_any();
    return detail::Estimator(model, gpus, options).layer_seconds(0, degree, tokens, context, sequences);
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
