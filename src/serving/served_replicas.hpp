// SPDX-License-Identifier: Apache-2.0
// Replicas as somebody describes them whose latencies are simulated: what a document says, and what the request says of the rest.
#pragma once

#include "serving/calibrator.hpp"
#include "serving/plan_document.hpp"
#include "serving/report.hpp"

#include <gpusched/core/checks.hpp>

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

/// From a document, element by element, to replicas of a valid request.
class ServedReplicas {
  public:
    ServedReplicas(json::Reader& reader, const ServingRequest& request, const EstimateOptions& options)
        : reader_(reader), request_(request), options_(options), calibrator_(request, options) {
        for (const auto& served : request.models) models_.push_back(served.model.name);
        for (const auto& gpu : request.gpus) gpus_.push_back(gpu.name);
    }

    [[nodiscard]] PlannedReplicas settle(std::uint32_t at, const ServedReplicasDocument& given) {
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
                    const auto [rate, source] = believed(*model, out.deployment, d);
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
    /// The place of a name among those that there are; one that is not there is reported.
    std::optional<std::size_t> known_name(std::uint32_t at, std::string_view name,
                                          const std::vector<std::string>& known) {
        const auto found = std::find(known.begin(), known.end(), name);
        if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
        std::string list;
        for (const auto& each : known) list += (list.empty() ? "" : ", ") + each;
        reader_.report(at, (known.empty() ? "expected none" : "expected one of " + list) + ", found " +
                               gpusched::quoted(printable(name)) + did_you_mean(name, known));
        return std::nullopt;
    }
    /// Values by kind of requests; a kind that is not named keeps its own.
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
    [[nodiscard]] std::pair<double, Source> believed(std::size_t model, const Deployment& deployment,
                                                     std::size_t workload) const {
        const auto& served = request_.models[model];
        const auto estimate = estimate_throughput(served.model, request_.gpus, deployment,
                                                  served.workloads[workload].shape, options_);
        return calibrator_.rate(model, deployment, workload, estimate.requests_per_s);
    }

    json::Reader& reader_;
    const ServingRequest& request_;
    const EstimateOptions& options_;
    Calibrator calibrator_;
    std::vector<std::string> models_, gpus_;
};

}  // namespace gpusched::serving::detail
