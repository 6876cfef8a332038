// SPDX-License-Identifier: Apache-2.0
#include "serving/plan_document.hpp"
#include "serving/request_document.hpp"
#include "serving/served_replicas.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/serving/plan_json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace gpusched::json {

/// Plans within other documents say their format and version, too.
template <>
struct Form<serving::detail::PlanDocument> {
    static void write(Writer& writer, const serving::detail::PlanDocument& plan) {
        writer.write_document(serving::detail::plan_format, serving::detail::newest_plan_version, plan);
    }
};

/// What else a plan says of its replicas is not needed.
template <>
struct Form<serving::detail::RunningDocument> {
    static void read(Reader& reader, std::uint32_t at, serving::detail::RunningDocument& out) {
        reader.read_part(at, out);
    }
};
template <>
struct Form<serving::detail::ServedReplicasDocument> {
    static void read(Reader& reader, std::uint32_t at, serving::detail::ServedReplicasDocument& out) {
        reader.read_part(at, out);
    }
};

}  // namespace gpusched::json

namespace gpusched::serving {

namespace detail {

/// The document of plans of one request.
class PlanDocuments {
  public:
    explicit PlanDocuments(const ServingRequest& request) : request_(request) {}

    [[nodiscard]] PlanDocument of(const ServingPlan& plan, const PlanExtras& extras = {}) const {
        if (!plan.rented.empty() && plan.rented.size() != request_.gpus.size())
            throw InvalidInput(
                bad_value("plan.rented", number_text(plan.rented.size()) + " elements",
                          "one per GPU type of the request: " + number_text(request_.gpus.size())));
        PlanDocument out{.status = plan.status,
                         .makespan = plan.makespan,
                         .bound = plan.bound,
                         .optimal = plan.optimal,
                         .requests_per_s = plan.requests_per_s,
                         .cost = plan.cost,
                         .cost_per_request = plan.cost_per_request,
                         .deployments = plan.deployments,
                         .left_out = plan.left_out,
                         .solver = plan.solver,
                         .message = plan.message,
                         .rentals = plan.rentals,
                         .calibration = plan.calibration};
        for (std::size_t g = 0; g < plan.rented.size(); ++g)
            if (plan.rented[g] > 0) out.rented.entries.emplace_back(request_.gpus[g].name, plan.rented[g]);
        for (std::size_t i = 0; i < plan.replicas.size(); ++i)
            out.replicas.push_back(
                of(plan.replicas[i], plan.rate > 0, "plan.replicas[" + number_text(i) + "]"));
        if (plan.rate != 0 || !plan.binding.empty())
            out.rates = {.rate = plan.rate,
                         .cost_bound = plan.cost_bound,
                         .rate_bound = plan.rate_bound,
                         .capacity = plan.capacity,
                         .separate = plan.separate,
                         .latencies = plan.latencies,
                         .binding = plan.binding,
                         .price_ranges = extras.price_ranges};
        if (extras.change != nullptr) {
            out.change = {.starts = extras.change->starts,
                          .stops = extras.change->stops,
                          .makespan_kept = extras.change->makespan_kept,
                          .makespan_free = extras.change->makespan_free};
            if (plan.rate != 0) out.change->cost_free = extras.change->cost_free;
        }
        return out;
    }

  private:
    /// @param rates whether it is a plan for rates
    /// @param owner how messages begin
    [[nodiscard]] ReplicasDocument of(const PlannedReplicas& replicas, bool rates,
                                      const std::string& owner) const {
        require_types(replicas, owner);
        ReplicasDocument out{.model = replicas.model,
                             .deployment = replicas.deployment.name,
                             .count = replicas.count,
                             .cost = replicas.cost,
                             .means = in_words(replicas.deployment, request_.gpus)};
        for (const auto& stage : replicas.deployment.stages) {
            const auto& name = request_.gpus[static_cast<std::size_t>(stage.gpu)].name;
            out.stages.push_back({name, stage.degree, stage.layers});
            auto& gpus = out.gpus.entries;
            const auto known =
                std::find_if(gpus.begin(), gpus.end(), [&](const auto& e) { return e.first == name; });
            if (known == gpus.end())
                gpus.emplace_back(name, stage.degree);
            else
                known->second += stage.degree;
        }
        if (rates) out.within.emplace();
        const auto served =
            std::find_if(request_.models.begin(), request_.models.end(),
                         [&](const ServedModel& each) { return each.model.name == replicas.model; });
        if (served == request_.models.end()) return out;
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
            out.within->within_targets.entries.emplace_back(name, replicas.within_targets[d]);
            out.within->latency_source.entries.emplace_back(name, replicas.latency_source[d]);
        }
        return out;
    }
    void require_types(const PlannedReplicas& replicas, const std::string& owner) const {
        for (const auto& stage : replicas.deployment.stages)
            if (stage.gpu < 0 || static_cast<std::size_t>(stage.gpu) >= request_.gpus.size())
                throw InvalidInput(bad_value("stage.gpu", number_text(stage.gpu),
                                             "the index of a GPU type of the request", owner));
    }

    const ServingRequest& request_;
};

/// Replicas that a document gives, on the GPU types of a request.
static std::vector<PlannedReplicas> settle_replicas(const std::vector<RunningDocument>& given,
                                                    const ServingRequest& request) {
    std::vector<PlannedReplicas> out;
    for (const auto& from : given) {
        auto& replicas = out.emplace_back();
        replicas.model = from.model;
        replicas.count = from.count;
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

/// The replicas of a document of a plan, or a list of replicas.
/// @throws InvalidInput with everything that is wrong; `problems` has what the parser found
template <class Replicas>
std::vector<Replicas> read_parts(const json::Document& document, Problems& problems) {
    PartOfPlanDocument<Replicas> given;
    json::Reader reader(document, problems);
    const bool list = document[0].kind == json::Kind::array;
    if (list)
        reader.read(0, given.replicas);
    else if (document[0].kind != json::Kind::object)
        reader.expected(0, "a serving plan or a list of replicas");
    else
        json::read_fields(
            document, {.name = plan_format, .newest = newest_plan_version, .implied = true, .partly = true},
            problems, given);
    std::int64_t all = 0;
    for (const auto& replicas : given.replicas) all += replicas.count;
    if (constexpr std::int64_t most = 1'000'000'000; all > most)
        reader.report(
            list ? 0 : reader.place_of(0, "replicas"),
            bad_value("count of all together", number_text(all), range_text<std::int64_t>(0, most)));
    problems.throw_if_any();
    return std::move(given.replicas);
}

static std::vector<PlannedReplicas> replicas_of(const json::Document& document, Problems& problems,
                                                const ServingRequest& request) {
    return settle_replicas(read_parts<RunningDocument>(document, problems), request);
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
    const bool list = document[0].kind == json::Kind::array;
    reader.each_element(list ? 0 : reader.place_of(0, "replicas"),
                        [&](std::uint32_t at) { out.push_back(served.settle(at, given[out.size()])); });
    problems.throw_if_any();
    return out;
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_json(const ServingPlan& plan, const ServingRequest& request,
                                         const PlanExtras& extras, int indent) {
    return json::write_document(detail::plan_format, detail::PlanDocuments(request).of(plan, extras),
                                detail::document_style(indent), detail::newest_plan_version);
}

GPUSCHED_EXPORT std::string curve_to_json(const std::vector<CurvePoint>& points,
                                          const ServingRequest& request, int indent) {
    const detail::PlanDocuments documents(request);
    detail::CurveDocument out;
    for (const auto& point : points)
        out.points.push_back({point.rate, point.targets, documents.of(point.plan)});
    return json::write_document("gpusched.serving-curve", out, detail::document_style(indent), 1);
}

GPUSCHED_EXPORT std::string sweep_to_json(const std::vector<BudgetPlan>& plans, const ServingRequest& request,
                                          int indent) {
    const detail::PlanDocuments documents(request);
    detail::SweepDocument out;
    for (const auto& [budget, plan] : plans) out.plans.push_back({budget, documents.of(plan)});
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
