// SPDX-License-Identifier: Apache-2.0
// Serving plans as documents: writing plans, curves and sweeps, and reading replicas.
#include "serving/calibrator.hpp"
#include "serving/request_findings.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/serving/plan_json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

inline constexpr std::string_view plan_format = "gpusched.serving-plan";
inline constexpr int newest_plan_version = 2;

struct StageDocument {
    std::string gpu{};
    int degree = 1;
    int layers = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<StageDocument>, F&& field) {
    field("gpu", &StageDocument::gpu, Required{});
    field("degree", &StageDocument::degree, Required{});
    field("layers", &StageDocument::layers, Required{});
}

/// What is read of replicas.
struct RunningDocument {
    std::string model{};
    int count = 0;
    std::vector<StageDocument> stages{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RunningDocument>, F&& field) {
    field("model", &RunningDocument::model, Required{});
    field("count", &RunningDocument::count, Required{}, at_least(0));
    field("stages", &RunningDocument::stages, Required{});
}

/// The fields of a plan that are read in one piece.
struct ReadPlanDocument {};
template <class F>
constexpr void visit_fields(std::type_identity<ReadPlanDocument>, F&&) {}

/// Replicas of one deployment; values of kinds of requests are objects by name.
struct ReplicasDocument {
    std::string model{};
    std::string deployment{};
    int count = 0;
    double cost = 0;
    json::ByName<std::int64_t> gpus{};
    std::vector<StageDocument> stages{};
    json::ByName<double> share{};
    json::ByName<double> requests_per_s{};
    std::string means{};
    json::ByName<Source> source{};
    // Only in plans for rates.
    std::optional<json::ByName<double>> within_targets{};
    std::optional<json::ByName<Source>> latency_source{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ReplicasDocument>, F&& field) {
    field("model", &ReplicasDocument::model);
    field("deployment", &ReplicasDocument::deployment);
    field("count", &ReplicasDocument::count);
    field("cost", &ReplicasDocument::cost);
    field("gpus", &ReplicasDocument::gpus);
    field("stages", &ReplicasDocument::stages);
    field("share", &ReplicasDocument::share);
    field("requests_per_s", &ReplicasDocument::requests_per_s);
    field("means", &ReplicasDocument::means);
    field("source", &ReplicasDocument::source);
    field("within_targets", &ReplicasDocument::within_targets);
    field("latency_source", &ReplicasDocument::latency_source);
}

/// The additional fields of plans for rates.
struct RatesDocument : ServingPlan {
    std::optional<std::vector<PriceRange>> price_ranges{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RatesDocument>, F&& field) {
    field("rate", &RatesDocument::rate);
    field("cost_bound", &RatesDocument::cost_bound);
    field("rate_bound", &RatesDocument::rate_bound, NullIfUnknown{});
    field("capacity", &RatesDocument::capacity);
    field("separate", &RatesDocument::separate);
    field("latencies", &RatesDocument::latencies);
    field("binding", &RatesDocument::binding);
    field("price_ranges", &RatesDocument::price_ranges);
}

/// The changes by a replanning.
struct ChangeDocument : ReplanResult {
    std::optional<double> cost_of_rates{};  ///< `cost_free` in plans for rates
};
template <class F>
constexpr void visit_fields(std::type_identity<ChangeDocument>, F&& field) {
    field("starts", &ChangeDocument::starts);
    field("stops", &ChangeDocument::stops);
    field("makespan_kept", &ChangeDocument::makespan_kept, NullIfUnknown{});
    field("makespan_free", &ChangeDocument::makespan_free, NullIfUnknown{});
    field("cost_free", &ChangeDocument::cost_of_rates);
}

/// A plan with the names of its request. `rates` has the fields of plans for rates.
struct PlanDocument : ServingPlan {
    json::ByName<int> rented_gpus{};
    std::vector<ReplicasDocument> all_replicas{};
    std::optional<RatesDocument> rates{};
    std::optional<ChangeDocument> change{};
};
template <class F>
constexpr void visit_fields(std::type_identity<PlanDocument>, F&& field) {
    field("status", &PlanDocument::status);
    field("makespan", &PlanDocument::makespan, NullIfUnknown{});
    field("bound", &PlanDocument::bound, NullIfUnknown{});
    field("optimal", &PlanDocument::optimal);
    field("requests_per_s", &PlanDocument::requests_per_s);
    field("cost", &PlanDocument::cost);
    field("cost_per_request", &PlanDocument::cost_per_request);
    field("rented", &PlanDocument::rented_gpus);
    field("replicas", &PlanDocument::all_replicas);
    field("deployments", &PlanDocument::deployments);
    field("left_out", &PlanDocument::left_out);
    field("solver", &PlanDocument::solver);
    field("message", &PlanDocument::message);
    field("rentals", &PlanDocument::rentals);
    field("calibration", &PlanDocument::calibration);
    field("errors", &PlanDocument::errors, UnlessDefault{});
    field("cost_high", &PlanDocument::cost_high);
    field("rates", &PlanDocument::rates, Inlined{});
    field("change", &PlanDocument::change, Inlined{});
}

/// A point of a curve.
struct PointDocument {
    double rate = 0;
    LatencyTargets targets{};
    PlanDocument plan{};
};
template <class F>
constexpr void visit_fields(std::type_identity<PointDocument>, F&& field) {
    field("rate", &PointDocument::rate);
    field("targets", &PointDocument::targets);
    field("plan", &PointDocument::plan);
}

struct CurveDocument {
    std::vector<PointDocument> points{};
};
template <class F>
constexpr void visit_fields(std::type_identity<CurveDocument>, F&& field) {
    field("points", &CurveDocument::points);
}

/// The plan for one budget.
struct BudgetDocument {
    double budget = 0;
    PlanDocument plan{};
};
template <class F>
constexpr void visit_fields(std::type_identity<BudgetDocument>, F&& field) {
    field("budget", &BudgetDocument::budget);
    field("plan", &BudgetDocument::plan);
}

struct SweepDocument {
    std::vector<BudgetDocument> plans{};
};
template <class F>
constexpr void visit_fields(std::type_identity<SweepDocument>, F&& field) {
    field("plans", &SweepDocument::plans);
}

/// What is read of replicas.
struct ServedReplicasDocument {
    std::string model{};
    std::optional<std::string> deployment{};
    int count = 0;
    std::optional<std::vector<StageDocument>> stages{};
    json::ByName<double> share{};
    json::ByName<double> requests_per_s{};
    json::ByName<Source> source{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ServedReplicasDocument>, F&& field) {
    field("model", &ServedReplicasDocument::model, Required{});
    field("deployment", &ServedReplicasDocument::deployment);
    field("count", &ServedReplicasDocument::count, Required{}, at_least(0));
    field("stages", &ServedReplicasDocument::stages);
    field("share", &ServedReplicasDocument::share, Required{});
    field("requests_per_s", &ServedReplicasDocument::requests_per_s);
    field("source", &ServedReplicasDocument::source);
}

/// Converts elements of a document to replicas of a valid request.
class ServedReplicas {
  public:
    ServedReplicas(json::Reader& reader, const ServingRequest& request, const EstimateOptions& options)
        : reader_(reader), request_(request), options_(options), calibrator_(request, options) {
        for (const auto& served : request.models) models_.push_back(served.model.name);
        for (const auto& gpu : request.gpus) gpus_.push_back(gpu.name);
    }

    [[nodiscard]] PlannedReplicas convert(std::uint32_t at, const ServedReplicasDocument& given) {
        PlannedReplicas out{.model = given.model, .count = given.count};
        const auto model = known_name(reader_.place_of(at, "model"), given.model, models_);
        if (!model) return out;
        const auto& served = request_.models[*model];
        std::vector<std::string> kinds;
        for (const auto& workload : served.workloads) kinds.push_back(workload.name);
        const auto before = reader_.problem_count();
        out.share.assign(kinds.size(), 0);
        take(reader_.place_of(at, "share"), given.share, kinds, out.share);
        try {
            take_deployment(at, given, served.model, out);
            if (reader_.problem_count() == before)
                for (std::size_t d = 0; d < kinds.size(); ++d) {
                    const auto [rate, source] = throughput(*model, out.deployment, d);
                    out.requests_per_s.push_back(rate);
                    out.source.push_back(source);
                }
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) report(reader_, at, in_deployment(problem));
        }
        out.requests_per_s.resize(kinds.size());
        out.source.resize(kinds.size());
        take(reader_.place_of(at, "requests_per_s"), given.requests_per_s, kinds, out.requests_per_s);
        take(reader_.place_of(at, "source"), given.source, kinds, out.source);
        return out;
    }

  private:
    /// The index of a name in `known`; reports an unknown name.
    std::optional<std::size_t> known_name(std::uint32_t at, std::string_view name,
                                          const std::vector<std::string>& known) {
        const auto found = std::find(known.begin(), known.end(), name);
        if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
        report_unknown(reader_, at, name, known);
        return std::nullopt;
    }
    /// Sets values by kind of requests. Other kinds keep theirs.
    template <class T>
    void take(std::uint32_t at, const json::ByName<T>& given, const std::vector<std::string>& kinds,
              std::vector<T>& out) {
        for (const auto& [name, value] : given.entries)
            if (const auto kind = known_name(reader_.place_of(at, name), name, kinds)) out[*kind] = value;
    }
    void take_deployment(std::uint32_t at, const ServedReplicasDocument& given, const LanguageModel& model,
                         PlannedReplicas& out) {
        if (given.stages) {
            out.deployment.name = given.deployment.value_or("");
            std::vector<std::uint32_t> places;
            if (const auto list = reader_.document().find(at, "stages"))
                reader_.each_element(*list, [&](std::uint32_t stage) { places.push_back(stage); });
            for (std::size_t i = 0; i < given.stages->size(); ++i) {
                const auto& stage = (*given.stages)[i];
                if (const auto gpu = known_name(reader_.place_of(places[i], "gpu"), stage.gpu, gpus_))
                    out.deployment.stages.push_back({static_cast<int>(*gpu), stage.degree, stage.layers});
            }
        } else if (given.deployment) {
            out.deployment = parse_deployment(*given.deployment, model, request_.gpus);
        } else {
            reader_.report(at, "field 'deployment' or 'stages' is missing");
        }
    }
    [[nodiscard]] std::pair<double, Source> throughput(std::size_t model, const Deployment& deployment,
                                                       std::size_t workload) const {
        const auto& served = request_.models[model];
        const auto& mix = calibrator_.mix(model, workload);
        // Checks the deployment.
        static_cast<void>(
            estimate_throughput(served.model, request_.gpus, deployment, mix.longest(), options_));
        const auto estimate = mix.estimate(calibrator_.estimator(model), deployment);
        return calibrator_.rate(model, deployment, workload, estimate.requests_per_s);
    }

    json::Reader& reader_;
    const ServingRequest& request_;
    const EstimateOptions& options_;
    Calibrator calibrator_;
    std::vector<std::string> models_, gpus_;
};

}  // namespace gpusched::serving::detail

namespace gpusched::json {

/// Plans within other documents have their own format and version.
template <>
struct Form<serving::detail::PlanDocument> {
    static void write(Writer& writer, const serving::detail::PlanDocument& plan) {
        writer.write_document(serving::detail::plan_format, serving::detail::newest_plan_version, plan);
    }
};

}  // namespace gpusched::json

namespace gpusched::serving {

namespace detail {

/// @param rates whether the plan is for rates
/// @param owner the start of every message
static ReplicasDocument document_of(const PlannedReplicas& replicas, const ServingRequest& request,
                                    bool rates, const std::string& owner) {
    for (const auto& stage : replicas.deployment.stages)
        if (stage.gpu < 0 || static_cast<std::size_t>(stage.gpu) >= request.gpus.size())
            throw InvalidInput(bad_value("stage.gpu", number_text(stage.gpu),
                                         "the index of a GPU type of the request", owner));
    ReplicasDocument out{.model = replicas.model,
                         .deployment = replicas.deployment.name,
                         .count = replicas.count,
                         .cost = replicas.cost,
                         .means = in_words(replicas.deployment, request.gpus)};
    for (const auto& stage : replicas.deployment.stages) {
        const auto& name = request.gpus[static_cast<std::size_t>(stage.gpu)].name;
        out.stages.push_back({name, stage.degree, stage.layers});
        auto& gpus = out.gpus.entries;
        const auto known =
            std::find_if(gpus.begin(), gpus.end(), [&](const auto& e) { return e.first == name; });
        if (known == gpus.end())
            gpus.emplace_back(name, stage.degree);
        else
            known->second += stage.degree;
    }
    if (rates) {
        out.within_targets.emplace();
        out.latency_source.emplace();
    }
    const auto* served = find_model(request, replicas.model);
    if (served == nullptr) return out;
    const auto kinds = served->workloads.size();
    const auto fits = [&](const auto& list) { return list.size() == kinds; };
    if (!fits(replicas.share) || !fits(replicas.requests_per_s) ||
        (rates && (!fits(replicas.within_targets) || !fits(replicas.latency_source))))
        throw InvalidInput(owner + ": expected a number for each of the " + number_text(kinds) +
                           " workloads of " + gpusched::quoted(replicas.model));
    for (std::size_t d = 0; d < kinds; ++d) {
        const auto& name = served->workloads[d].name;
        if (replicas.share[d] > 0) out.share.entries.emplace_back(name, replicas.share[d]);
        out.requests_per_s.entries.emplace_back(name, replicas.requests_per_s[d]);
        if (d < replicas.source.size()) out.source.entries.emplace_back(name, replicas.source[d]);
        if (!rates) continue;
        out.within_targets->entries.emplace_back(name, replicas.within_targets[d]);
        out.latency_source->entries.emplace_back(name, replicas.latency_source[d]);
    }
    return out;
}

static PlanDocument document_of(const ServingPlan& plan, const ServingRequest& request,
                                const PlanExtras& extras = {}) {
    if (!plan.rented.empty() && plan.rented.size() != request.gpus.size())
        throw InvalidInput(bad_value("plan.rented", number_text(plan.rented.size()) + " elements",
                                     "one per GPU type of the request: " + number_text(request.gpus.size())));
    PlanDocument out{plan};
    for (std::size_t g = 0; g < plan.rented.size(); ++g)
        if (plan.rented[g] > 0) out.rented_gpus.entries.emplace_back(request.gpus[g].name, plan.rented[g]);
    for (std::size_t i = 0; i < plan.replicas.size(); ++i)
        out.all_replicas.push_back(
            document_of(plan.replicas[i], request, plan.rate > 0, "plan.replicas[" + number_text(i) + "]"));
    if (plan.rate != 0 || !plan.binding.empty()) out.rates = {plan, extras.price_ranges};
    if (extras.change != nullptr) {
        out.change = {*extras.change};
        if (plan.rate != 0) out.change->cost_of_rates = extras.change->cost_free;
    }
    return out;
}

/// Reads the replicas of a plan, or a list of replicas, and their positions. Their other fields are ignored.
/// @throws InvalidInput with every problem; `problems` contains those of the parser
template <class Replicas>
std::vector<std::pair<std::uint32_t, Replicas>> read_parts(const json::Document& document,
                                                           Problems& problems) {
    json::Reader reader(document, problems);
    std::optional<std::uint32_t> list;
    if (document[0].kind == json::Kind::array) {
        list = 0;
    } else if (document[0].kind != json::Kind::object) {
        reader.expected(0, "a serving plan or a list of replicas");
    } else {
        constexpr json::Format format{
            .name = plan_format, .newest = newest_plan_version, .implied = true, .partly = true};
        ReadPlanDocument rest;
        if (json::read_fields(document, format, problems, rest) > 0) {
            list = document.find(0, "replicas");
            if (!list) reader.report_missing(0, "replicas");
        }
    }
    std::vector<std::pair<std::uint32_t, Replicas>> out;
    std::int64_t all = 0;
    if (list)
        reader.each_element(*list, [&](std::uint32_t at) {
            auto& replicas = out.emplace_back(at, Replicas{}).second;
            reader.read_part(at, replicas);
            all += replicas.count;
        });
    if (constexpr std::int64_t most = 1'000'000'000; all > most)
        reader.report(
            *list, bad_value("count of all together", number_text(all), range_text<std::int64_t>(0, most)));
    problems.throw_if_any();
    return out;
}

static std::vector<PlannedReplicas> replicas_of(const json::Document& document, Problems& problems,
                                                const ServingRequest& request) {
    std::vector<PlannedReplicas> out;
    for (const auto& [at, from] : read_parts<RunningDocument>(document, problems)) {
        auto& replicas = out.emplace_back(PlannedReplicas{.model = from.model, .count = from.count});
        for (const auto& stage : from.stages) {
            const auto type = std::find_if(request.gpus.begin(), request.gpus.end(),
                                           [&](const GpuType& each) { return each.name == stage.gpu; });
            if (type == request.gpus.end()) {
                replicas.deployment.stages.clear();
                break;
            }
            replicas.deployment.stages.push_back(
                {static_cast<int>(type - request.gpus.begin()), stage.degree, stage.layers});
        }
    }
    return out;
}

static std::vector<PlannedReplicas> served_replicas_of(const json::Document& document, Problems& problems,
                                                       const ServingRequest& request,
                                                       const EstimateOptions& options) {
    validate(request);
    validate(options);
    const auto given = read_parts<ServedReplicasDocument>(document, problems);
    json::Reader reader(document, problems);
    ServedReplicas served(reader, request, options);
    std::vector<PlannedReplicas> out;
    for (const auto& [at, replicas] : given) out.push_back(served.convert(at, replicas));
    problems.throw_if_any();
    return out;
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_json(const ServingPlan& plan, const ServingRequest& request,
                                         const PlanExtras& extras, int indent) {
    return json::write_document(detail::plan_format, detail::document_of(plan, request, extras),
                                detail::document_style(indent), detail::newest_plan_version);
}

GPUSCHED_EXPORT std::string curve_to_json(const std::vector<CurvePoint>& points,
                                          const ServingRequest& request, int indent) {
    detail::CurveDocument out;
    for (const auto& point : points)
        out.points.push_back({point.rate, point.targets, detail::document_of(point.plan, request)});
    return json::write_document("gpusched.serving-curve", out, detail::document_style(indent), 1);
}

GPUSCHED_EXPORT std::string sweep_to_json(const std::vector<BudgetPlan>& plans, const ServingRequest& request,
                                          int indent) {
    detail::SweepDocument out;
    for (const auto& [budget, plan] : plans)
        out.plans.push_back({budget, detail::document_of(plan, request)});
    return json::write_document("gpusched.serving-sweep", out, detail::document_style(indent), 2);
}

GPUSCHED_EXPORT std::vector<PlannedReplicas>
replicas_from_json(std::string_view text, const ServingRequest& request, std::string_view source) {
    Problems problems;
    const auto document = json::Document::parse(text, source, problems);
    return detail::replicas_of(document, problems, request);
}

GPUSCHED_EXPORT std::vector<PlannedReplicas> replicas_from_json(const json::Document& document,
                                                                const ServingRequest& request) {
    Problems problems;
    return detail::replicas_of(document, problems, request);
}

GPUSCHED_EXPORT std::vector<PlannedReplicas> read_replicas(const std::string& path,
                                                           const ServingRequest& request) {
    Problems problems;
    const auto document = json::Document::read(path, problems);
    return detail::replicas_of(document, problems, request);
}

GPUSCHED_EXPORT std::vector<PlannedReplicas> served_replicas_from_json(std::string_view text,
                                                                       const ServingRequest& request,
                                                                       const EstimateOptions& options,
                                                                       std::string_view source) {
    Problems problems;
    const auto document = json::Document::parse(text, source, problems);
    return detail::served_replicas_of(document, problems, request, options);
}

GPUSCHED_EXPORT std::vector<PlannedReplicas> served_replicas_from_json(const json::Document& document,
                                                                       const ServingRequest& request,
                                                                       const EstimateOptions& options) {
    Problems problems;
    return detail::served_replicas_of(document, problems, request, options);
}

}  // namespace gpusched::serving
