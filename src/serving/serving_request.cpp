// SPDX-License-Identifier: Apache-2.0
// Serving requests: validation, other rates for a request, and documents, which are read with every problem
// and its place.
#include "serving/request_findings.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/serving/llm_trace.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::serving {

namespace detail {

/// Calls `each(finding)` for every problem of the rental terms of a GPU type.
template <class F>
void find_in_terms(const RentalTerms& terms, const F& each) {
    if (terms.spot_available > 0 && !terms.spot_price) each(Finding{"spot_price"});
    if (terms.spot_price && terms.spot_available == 0)
        each(Finding{"spot_available", "0; expected at least 1, with a spot_price"});
}

/// Calls `each(finding)` for every problem of a workload among others.
/// @param rates whether some workload has a rate
template <class F>
void find_in_workload(const ServingWorkload& workload, bool rates, const F& each) {
    if (workload.requests > 0 && rates)
        each(Finding{"requests",
                     number_text(workload.requests) +
                         "; expected a rate, as other workloads have: a batch and arrivals are not "
                         "planned together"});
    else if (workload.targets.any() && !rates)
        each(Finding{"targets", "need a rate; a batch that is there at once has none"});
}

/// The problem of the arrivals of a workload, if there is one.
inline std::optional<std::string> problem_of_arrivals(const std::vector<double>& arrivals,
                                                      const std::vector<WeightedShape>& lengths) {
    if (arrivals.empty()) return std::nullopt;
    if (arrivals.size() != lengths.size())
        return number_text(arrivals.size()) + "; expected " + number_text(lengths.size()) +
               ", one for each of lengths";
    if (std::any_of(lengths.begin(), lengths.end(), [](const auto& each) { return each.weight != 1; }))
        return "each of lengths arrives once; expected no weights";
    if (!std::is_sorted(arrivals.begin(), arrivals.end()) || !(arrivals.front() >= 0) ||
        !(arrivals.back() - arrivals.front() >= 1e-6) || !(arrivals.back() <= 1e15))
        return "expected ascending times from 0 to 1e15, not all equal";
    return std::nullopt;
}

/// Calls `each(row, finding)` for every wrong name in the measurements.
/// @param deployments whether names of deployments are checked, too, which needs valid GPU types and models
template <class F>
void find_in_measured(const ServingRequest& request, bool deployments, const F& each) {
    std::vector<std::string> models;
    for (const auto& served : request.models) models.push_back(served.model.name);
    std::set<std::tuple<std::string, std::string, std::string, double>> seen;
    for (std::size_t row = 0; row < request.measured.size(); ++row) {
        const auto& m = request.measured[row];
        const bool at_load = m.ttft_s || m.tpot_s;
        if (!seen.emplace(m.model, m.deployment, m.workload, at_load ? m.requests_per_s : -1).second)
            each(row,
                 Finding{{},
                         "appears twice for " + gpusched::quoted(m.workload) + " of " +
                             gpusched::quoted(m.model) +
                             (at_load ? " at " + number_text(m.requests_per_s) + " requests_per_s" : "")});
        const auto* served = find_model(request, m.model);
        if (served == nullptr) {
            each(row,
                 Finding{{},
                         "there is no model " + gpusched::quoted(m.model) + did_you_mean(m.model, models)});
            continue;
        }
        std::vector<std::string> kinds;
        for (const auto& workload : served->workloads) kinds.push_back(workload.name);
        if (std::find(kinds.begin(), kinds.end(), m.workload) == kinds.end())
            each(row, Finding{{},
                              "there is no workload " + gpusched::quoted(m.workload) + " of a model " +
                                  gpusched::quoted(m.model) + did_you_mean(m.workload, kinds)});
        if (!deployments) continue;
        try {
            static_cast<void>(parse_deployment(m.deployment, served->model, request.gpus));
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) each(row, in_deployment(problem));
        }
    }
}

}  // namespace detail

GPUSCHED_EXPORT bool ServingRequest::has_rates() const noexcept {
    for (const auto& served : models)
        for (const auto& workload : served.workloads)
            if (workload.rate > 0) return true;
    return false;
}

GPUSCHED_EXPORT void validate(const ServingRequest& request) {
    Problems problems;
    collect(problems, [&] { validate(request.gpus); });
    const double most = std::numeric_limits<double>::max();
    for (const auto& gpu : request.gpus)
        if (!gpu.price) problems.add("GPU type " + gpusched::quoted(gpu.name) + ": price is missing");
    check_size(problems, "available", request.available.size(), request.gpus.size(), ", one per GPU type");
    for (const auto count : request.available) check_at_least(problems, "available", count, 0);
    const bool free = request.has_rates() && request.budget == std::numeric_limits<double>::infinity();
    if (!free) check_range(problems, "budget", request.budget, 0.0, most);
    if (!request.terms.empty())
        check_size(problems, "terms", request.terms.size(), request.gpus.size(),
                   ", one per GPU type, or none");
    for (std::size_t g = 0; g < std::min(request.terms.size(), request.gpus.size()); ++g) {
        const auto owner = "GPU type " + gpusched::quoted(request.gpus[g].name);
        const auto& terms = request.terms[g];
        check_fields(problems, terms, owner);
        detail::find_in_terms(
            terms, [&](const auto& finding) { problems.add(owner + ": " + detail::in_words(finding)); });
    }
    std::set<std::string> models;
    std::set<std::pair<std::string, std::string>> names;
    for (const auto& served : request.models) {
        const auto& name = served.model.name;
        const auto owner = "model " + gpusched::quoted(name);
        if (name.empty()) problems.add(bad_value("name", "''", "a name", "model"));
        if (!models.insert(name).second) problems.add(owner + ": appears twice");
        collect(problems, [&] { validate(served.model); });
        for (const auto& workload : served.workloads) {
            const auto of = owner + ": workload " + gpusched::quoted(workload.name);
            if (workload.name.empty()) problems.add(bad_value("workload", "''", "a name", owner));
            if (!names.emplace(name, workload.name).second) problems.add(of + ": appears twice");
            if (workload.lengths.empty())
                check_fields(problems, workload.shape, of);
            else if (workload.shape != RequestShape{})
                problems.add(of + ": input and output: not with lengths");
            for (const auto& lengths : workload.lengths) {
                check_fields(problems, lengths.shape, of + ": lengths");
                check_fields(problems, lengths, of + ": lengths");
            }
            check_range(problems, "left_out", workload.left_out, 0, std::numeric_limits<int>::max(), of);
            check_range(problems, "prefix_hits", workload.prefix_hits, 0.0, 0.99, of);
            if (const auto problem = detail::problem_of_arrivals(workload.arrivals, workload.lengths))
                problems.add(of + ": arrivals: " + *problem);
            check_range(problems, "requests", workload.requests, 0.0, most, of);
            check_range(problems, "rate", workload.rate, 0.0, most, of);
            check_fields(problems, workload.targets, of);
            detail::find_in_workload(workload, request.has_rates(), [&](const auto& finding) {
                problems.add(of + ": " + detail::in_words(finding));
            });
        }
    }
    const auto of_row = [&](std::size_t row) {
        return "measured throughput of " + gpusched::quoted(request.measured[row].deployment);
    };
    const bool deployments = problems.empty() && !request.gpus.empty();
    for (std::size_t row = 0; row < request.measured.size(); ++row)
        check_fields(problems, request.measured[row], of_row(row));
    detail::find_in_measured(request, deployments, [&](std::size_t row, const auto& finding) {
        problems.add(of_row(row) + ": " + detail::in_words(finding));
    });
    problems.throw_if_any();
}

GPUSCHED_EXPORT void validate(const RequestRates& rates) {
    Problems problems;
    if (rates.all)
        check_range(problems, "rate", *rates.all, detail::smallest_positive, detail::largest_finite);
    double sum = 0;
    for (const auto& [name, rate] : rates.by_kind) {
        check_range(problems, "rate[" + gpusched::quoted(name) + "]", rate, 0.0, detail::largest_finite);
        sum += rate;
    }
    if (problems.empty() && !rates.by_kind.empty() && !(sum > 0))
        problems.add("rate: expected a rate above 0 for some kind of requests");
    problems.throw_if_any();
}

GPUSCHED_EXPORT ServingRequest with_rate(ServingRequest request, double rate) {
    require_range("rate", rate, std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
    const bool rates = request.has_rates();
    double all = 0;
    std::size_t kinds = 0;
    for (const auto& served : request.models)
        for (const auto& workload : served.workloads) {
            all += rates ? workload.rate : workload.requests;
            ++kinds;
        }
    if (kinds != 1 && !(all > 0))
        throw InvalidInput("request: no requests; expected workloads with requests or a rate");
    for (auto& served : request.models)
        for (auto& workload : served.workloads) {
            workload.rate = kinds == 1 ? rate : (rates ? workload.rate : workload.requests) / all * rate;
            workload.requests = 0;
        }
    return request;
}

GPUSCHED_EXPORT ServingRequest with_rates(ServingRequest request, const RequestRates& rates) {
    validate(rates);
    if (rates.all) return with_rate(std::move(request), *rates.all);
    if (!rates.any()) return request;
    struct Kind {
        std::string full;  ///< MODEL/KIND
        ServingWorkload* workload;
        const std::string* named;  ///< the name in `rates`; null = none yet
    };
    std::vector<Kind> kinds;
    std::vector<std::string> known;
    for (auto& served : request.models)
        for (auto& workload : served.workloads) {
            kinds.push_back({served.model.name + "/" + workload.name, &workload, nullptr});
            workload.rate = workload.requests = 0;
        }
    for (const auto& kind : kinds) {
        const auto same = std::count_if(kinds.begin(), kinds.end(), [&](const Kind& other) {
            return other.workload->name == kind.workload->name;
        });
        known.push_back(same > 1 ? kind.full : kind.workload->name);
    }
    Problems problems;
    for (const auto& [name, rate] : rates.by_kind) {
        std::vector<Kind*> meant;
        for (auto& kind : kinds)
            if (kind.full == name) meant.push_back(&kind);
        for (auto& kind : kinds)
            if (kind.workload->name == name && (meant.empty() || meant.front()->full != name))
                meant.push_back(&kind);
        if (meant.empty()) {
            problems.add(bad_name("rate", name, known));
        } else if (meant.size() > 1) {
            std::vector<std::string> each;
            for (const auto* kind : meant) each.push_back(kind->full);
            problems.add(bad_value("rate", gpusched::quoted(name), either_of(each)));
        } else if (meant.front()->named != nullptr) {
            problems.add("rate: " + gpusched::quoted(*meant.front()->named) + " and " +
                         gpusched::quoted(name) + " are the same kind of requests");
        } else {
            meant.front()->named = &name;
            meant.front()->workload->rate = rate;
        }
    }
    problems.throw_if_any();
    return request;
}

namespace detail {

inline constexpr std::string_view request_format = "gpusched.serving-request";
inline constexpr int newest_request_version = 2;

/// A GPU type to rent; its name is the key.
struct RentableDocument : GpuType {
    std::optional<std::string> type{};
    std::optional<int> available{}, machines{};
    std::optional<RentalTerms> terms{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RentableDocument>, F&& field) {
    field("type", &RentableDocument::type);
    json::visit_other_fields<GpuType>({"name"}, field);
    field("available", &RentableDocument::available, at_least(0));
    field("machines", &RentableDocument::machines, Since{2}, at_least(0));
    field("terms", &RentableDocument::terms, Inlined{});
}

/// Requests of one kind; its name is the key.
struct WorkloadDocument {
    std::optional<int> input{}, output{};
    std::optional<double> requests{}, rate{};
    LatencyTargets targets{};
    std::optional<std::string> trace{};
    std::vector<WeightedShape> lengths{};
    int left_out = 0;
    double prefix_hits = 0;
    bool own_arrivals = false;
    std::vector<double> arrivals{};
};
template <class F>
constexpr void visit_fields(std::type_identity<WorkloadDocument>, F&& field) {
    field("input", &WorkloadDocument::input, at_least(1));
    field("output", &WorkloadDocument::output, at_least(1));
    field("requests", &WorkloadDocument::requests, within(0.0, largest_finite));
    field("rate", &WorkloadDocument::rate, Since{2}, within(0.0, largest_finite));
    field("targets", &WorkloadDocument::targets, Since{2}, UnlessDefault{});
    field("trace", &WorkloadDocument::trace, Since{2});
    field("lengths", &WorkloadDocument::lengths, Since{2}, UnlessDefault{});
    field("left_out", &WorkloadDocument::left_out, Since{2}, UnlessDefault{}, at_least(0));
    field("prefix_hits", &WorkloadDocument::prefix_hits, Since{2}, UnlessDefault{}, within(0.0, 0.99));
    field("own_arrivals", &WorkloadDocument::own_arrivals, Since{2}, UnlessDefault{});
    field("arrivals", &WorkloadDocument::arrivals, Since{2}, UnlessDefault{});
}

/// A language model and its workloads; its name is the key.
struct ServedDocument : LanguageModel {
    std::optional<std::string> type{};
    json::ByName<WorkloadDocument> workloads{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ServedDocument>, F&& field) {
    field("type", &ServedDocument::type);
    json::visit_other_fields<LanguageModel>({"name"}, field);
    field("workloads", &ServedDocument::workloads, Required{});
}

struct RequestDocument {
    std::optional<double> budget{};
    LatencyTargets targets{};  ///< targets of all kinds
    json::ByName<RentableDocument> gpus{};
    json::ByName<ServedDocument> models{};
    std::vector<MeasuredThroughput> measured{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RequestDocument>, F&& field) {
    field("budget", &RequestDocument::budget, within(0.0, largest_finite));
    field("targets", &RequestDocument::targets, Since{2}, UnlessDefault{});
    field("gpus", &RequestDocument::gpus, Required{});
    field("models", &RequestDocument::models, Required{});
    field("measured", &RequestDocument::measured, UnlessDefault{});
}

/// The name that identifies an entry: its `type`, else its key; none if the type is not a string.
static std::optional<std::string_view> looked_up(const json::Document& document, std::uint32_t entry) {
    const auto type = document.find(entry, "type");
    if (!type) return document.key(document[entry]);
    if (document[*type].kind != json::Kind::string) return std::nullopt;
    return document.string(document[*type]);
}

/// The price of a GPU type in Table 1, also for its name in the catalogue.
static std::optional<double> paper_price(std::string_view name) {
    for (const auto& listed : paper_gpus())
        if (listed.name == name || "RTX" + listed.name == name || listed.name + "-80GB" == name)
            return listed.price;
    return std::nullopt;
}

}  // namespace detail

}  // namespace gpusched::serving

namespace gpusched::json {

/// Reads the fields of the document over those of a known type.
template <>
struct Form<serving::detail::RentableDocument> {
    static void read(Reader& reader, std::uint32_t at, serving::detail::RentableDocument& out) {
        const auto before = reader.problem_count();
        const auto& document = reader.document();
        const auto name = serving::detail::looked_up(document, at);
        const auto known = name ? serving::find_gpu_type(*name) : std::nullopt;
        if (known) static_cast<serving::GpuType&>(out) = *known;
        reader.read_object(at, out);
        if (document[at].kind != Kind::object) return;
        if (!known && document.find(at, "tflops")) {
            reader.require_given<serving::GpuType>(at, out);
        } else if (!known && name) {
            std::vector<std::string> names;
            for (const auto& gpu : serving::gpu_catalogue()) names.push_back(gpu.name);
            serving::detail::report_unknown(reader, reader.place_of(at, "type"), *name, names,
                                            "a type described in full (tflops, bandwidth_gb_s, ...) or ");
        }
        if (!out.price && name) out.price = serving::detail::paper_price(*name);
        read_count(reader, at, out);
        if (!out.price && (known || document.find(at, "tflops"))) reader.report_missing(at, "price");
        if (reader.problem_count() == before && out.terms)
            serving::detail::find_in_terms(
                *out.terms, [&](const auto& finding) { serving::detail::report(reader, at, finding); });
    }

  private:
    static void read_count(Reader& reader, std::uint32_t at, serving::detail::RentableDocument& out) {
        const auto& document = reader.document();
        const auto machines = document.find(at, "machines");
        if (!machines && !document.find(at, "available"))
            return reader.report(at, reader.version() == 1 ? "field 'available' is missing"
                                                           : "field 'available' or 'machines' is missing");
        if (machines && document.find(at, "available"))
            return reader.report(*machines, "not with available, which counts GPUs");
        if (!out.machines) return;
        const int each = std::max(1, out.per_machine), most = 1'000'000'000 / each;
        if (*out.machines > most)
            reader.expected(*machines,
                            "at most " + number_text(most) + " machines of " + number_text(each) + " GPUs");
        else
            out.available = *out.machines * each;
    }
};

/// Lengths as an array of input, output and, unless it is 1, weight.
template <>
struct Form<serving::WeightedShape> {
    static void read(Reader& reader, std::uint32_t at, serving::WeightedShape& out) {
        const auto& document = reader.document();
        if (document[at].kind != Kind::array || document[at].size < 2 || document[at].size > 3)
            return reader.expected(at, "an array of input, output and weight, which is 1 if absent");
        int index = 0;
        reader.each_element(at, [&](std::uint32_t element) {
            if (index == 2)
                reader.read_field(element, out.weight, more_than(0.0, 1e15));
            else
                reader.read_field(element, index == 0 ? out.shape.input : out.shape.output, at_least(1));
            ++index;
        });
    }
    static void write(Writer& writer, const serving::WeightedShape& lengths) {
        writer.begin('[');
        writer.write_next(lengths.shape.input);
        writer.write_next(lengths.shape.output);
        if (lengths.weight != 1) writer.write_next(lengths.weight);
        writer.end(']');
    }
};

/// The lengths of the requests are in one of three forms.
template <>
struct Form<serving::detail::WorkloadDocument> {
    static void read(Reader& reader, std::uint32_t at, serving::detail::WorkloadDocument& out) {
        reader.read_object(at, out);
        const auto& document = reader.document();
        if (document[at].kind != Kind::object) return;
        const auto find = [&](std::string_view name) {  // null means absent
            const auto found = document.find(at, name);
            return found && document[*found].kind != Kind::null ? found : std::nullopt;
        };
        const auto trace = find("trace"), lengths = find("lengths");
        for (const auto* name : {"input", "output"}) {
            const auto given = find(name);
            if (given && (trace || lengths))
                reader.report(*given, std::string("not with ") + (trace ? "trace" : "lengths"));
            else if (!given && !trace && !lengths)
                reader.report_missing(at, name);
        }
        if (trace && lengths) reader.report(*lengths, "not with trace");
        const auto own = find("own_arrivals"), arrivals = find("arrivals");
        if (own && !trace) reader.report(*own, "needs a trace");
        if (arrivals && !lengths) reader.report(*arrivals, "needs lengths; a trace has own_arrivals");
        const auto problem = serving::detail::problem_of_arrivals(out.arrivals, out.lengths);
        if (arrivals && lengths && problem) reader.report(*arrivals, *problem);
        if (lengths && document[*lengths].kind == Kind::array && document[*lengths].size == 0)
            reader.report(*lengths, "empty; expected at least one [input, output, weight]");
    }
};

/// Reads the fields of the document over those of a known model.
template <>
struct Form<serving::detail::ServedDocument> {
    static void read(Reader& reader, std::uint32_t at, serving::detail::ServedDocument& out) {
        const auto& document = reader.document();
        const auto name = serving::detail::looked_up(document, at);
        std::vector<std::string> names;
        bool known = false;
        for (const auto& model : serving::known_language_models()) {
            names.push_back(model.name);
            if (model.name != name) continue;
            known = true;
            static_cast<serving::LanguageModel&>(out) = model;
        }
        reader.read_object(at, out);
        if (document[at].kind != Kind::object) return;
        const bool described = !known && document.find(at, "layers");
        if (described)
            reader.require_given<serving::LanguageModel>(at, out);
        else if (!known && name)
            serving::detail::report_unknown(reader, reader.place_of(at, "type"), *name, names,
                                            "a model described in full (layers, hidden, heads, ...) or ");
        if (!known && !described) return;
        if (!document.find(at, "bytes_per_kv") && document.find(at, "bytes_per_weight"))
            out.bytes_per_kv = serving::detail::usual_bytes_per_kv(out);
        serving::detail::find_in_model(out, [&](const auto& finding) {
            if (!known && !document.find(at, finding.field))
                reader.report_missing(at, finding.field);
            else if (out.heads >= 1 || finding.field != "kv_heads")
                serving::detail::report(reader, at, finding);
        });
    }
};

}  // namespace gpusched::json

namespace gpusched::serving {

namespace detail {

/// Converts a document to a request, entry by entry.
class RequestConverter {
  public:
    RequestConverter(json::Reader& reader, RequestDocument&& given, const RequestRates& rates,
                     const std::optional<std::string>& folder)
        : reader_(reader), document_(reader.document()), given_(std::move(given)), rates_(rates),
          folder_(folder) {}

    /// Reports problems of single places and missing fields.
    /// @return the request without the rates of the call
    ServingRequest convert() {
        take_gpus();
        take_models();
        const bool batch = !rates_.any() && !any_rate_;
        request_.budget = given_.budget.value_or(std::numeric_limits<double>::infinity());
        if (!document_.find(0, "budget") && (reader_.version() == 1 ? kinds_ > 0 : batch && any_number_))
            reader_.report_missing(0, "budget");
        if (given_.targets.any() && batch && any_number_)
            reader_.report(reader_.place_of(0, "targets"),
                           "need rates; a batch that is there at once has no latencies to keep");
        take_measured();
        if (reader_.problem_count() == 0) require_something(batch);
        return std::move(request_);
    }

    /// Reports problems between workloads, after the rates of the call are set.
    void check_loads(const ServingRequest& request) {
        auto place = places_.begin();
        for (const auto& served : request.models)
            for (const auto& workload : served.workloads) {
                find_in_workload(workload, request.has_rates(),
                                 [&](const Finding& finding) { report(reader_, *place, finding); });
                ++place;
            }
    }

  private:
    void take_gpus() {
        for (auto& [name, from] : given_.gpus.entries) {
            auto& gpu = request_.gpus.emplace_back(std::move(from));
            gpu.name = name;
            request_.available.push_back(from.available.value_or(0));
            request_.terms.push_back(from.terms.value_or(RentalTerms{}));
        }
    }
    void take_models() {
        for (const auto& [name, from] : given_.models.entries) kinds_ += from.workloads.entries.size();
        auto entry = reader_.place_of(0, "models") + 1;
        for (auto& [name, from] : given_.models.entries) {
            auto& served = request_.models.emplace_back();
            auto kind = reader_.place_of(entry, "workloads") + 1;
            for (auto& [workload, shape] : from.workloads.entries) {
                served.workloads.push_back({workload,
                                            {shape.input.value_or(0), shape.output.value_or(0)},
                                            shape.requests.value_or(0),
                                            shape.rate.value_or(0),
                                            merged(given_.targets, shape.targets),
                                            std::move(shape.lengths),
                                            shape.left_out,
                                            shape.prefix_hits,
                                            std::move(shape.arrivals)});
                if (shape.trace) take_trace(kind, *shape.trace, shape.own_arrivals, served.workloads.back());
                note_load(kind);
                places_.push_back(kind);
                kind = document_[kind].end;
            }
            served.model = std::move(from);
            served.model.name = name;
            entry = document_[entry].end;
        }
    }
    /// Reads the trace of a workload: its lengths and, if the document has neither rate nor number, its rate.
    void take_trace(std::uint32_t workload, const std::string& path, bool own_arrivals,
                    ServingWorkload& out) {
        const auto place = *document_.find(workload, "trace");
        if (document_[place].kind != json::Kind::string) return;  // reported
        if (path.empty()) return reader_.report(place, "empty; expected the path of a file");
        if (!folder_)
            return reader_.report(place, "a document that is not in a file has no traces; expected lengths");
        const auto file = (std::filesystem::path(*folder_) / path).string();
        std::vector<LlmRequest> requests;
        try {
            std::size_t failed = 0;
            requests = read_llm_trace(read_file(file), file, &failed);
            out.left_out = static_cast<int>(failed + std::erase_if(requests, [](const LlmRequest& request) {
                                                return request.prompt_tokens < 1 || request.output_tokens < 1;
                                            }));
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) reader_.report(place, problem);
            return;
        } catch (const BackendError& error) {
            return reader_.report(place, error.what());
        }
        if (requests.empty())
            return reader_.report(place, file + ": no requests with a prompt and an answer");
        const double seconds = requests.back().time_s - requests.front().time_s;
        if (own_arrivals && seconds >= 1e-6) {
            for (const auto& request : requests) {
                out.lengths.push_back({{request.prompt_tokens, request.output_tokens}, 1});
                out.arrivals.push_back(request.time_s);
            }
        } else {
            std::map<std::pair<int, int>, int> counts;
            for (const auto& request : requests) ++counts[{request.prompt_tokens, request.output_tokens}];
            for (const auto& [lengths, count] : counts)
                out.lengths.push_back({{lengths.first, lengths.second}, 1.0 * count});
        }
        if (own_arrivals && !(seconds >= 1e-6))
            reader_.report(*document_.find(workload, "own_arrivals"),
                           "the requests of the trace arrive at once");
        if (document_.find(workload, "rate") || document_.find(workload, "requests")) return;
        if (seconds > 0)
            out.rate = static_cast<double>(requests.size() - 1) / seconds;
        else if (!rates_.any())
            reader_.report(workload, "field 'rate' is missing, and the requests of the trace arrive at once");
    }
    /// Notes whether a workload has a number or a rate, valid or not, and reports missing ones.
    void note_load(std::uint32_t workload) {
        const auto rate = document_.find(workload, "rate"), number = document_.find(workload, "requests");
        if (document_[workload].kind != json::Kind::object) return;
        any_number_ = any_number_ || number;
        if (rate) {
            const auto& value = document_[*rate];
            any_rate_ = any_rate_ || !((value.kind == json::Kind::integer && value.integer == 0) ||
                                       (value.kind == json::Kind::real && value.real == 0));
        } else if (!number && document_.find(workload, "trace")) {
            any_rate_ = true;  // that of the trace
            return;
        }
        if (reader_.version() == 1) {
            if (!number) reader_.report_missing(workload, "requests");
        } else if (!rate && !number && (!rates_.any() || (rates_.all && kinds_ > 1))) {
            // Not if the call sets the rates by name, or the rate of the only kind.
            reader_.report(workload, "field 'rate' or 'requests' is missing");
        }
    }
    void take_measured() {
        request_.measured = std::move(given_.measured);
        const auto list = document_.find(0, "measured");
        if (!list || document_[*list].kind != json::Kind::array) return;
        std::vector<std::uint32_t> rows;
        reader_.each_element(*list, [&](std::uint32_t row) { rows.push_back(row); });
        const auto is_text = [&](std::uint32_t row, std::string_view field) {
            const auto at = document_.find(row, field);
            return at && document_[*at].kind == json::Kind::string;
        };
        // Deployments are checked only if GPU types and models are valid.
        const bool deployments = !request_.gpus.empty() && is_valid("gpus", decltype(given_.gpus){}) &&
                                 is_valid("models", decltype(given_.models){});
        find_in_measured(request_, deployments, [&](std::size_t i, const Finding& finding) {
            const auto row = rows[i];
            if (is_text(row, "model") && is_text(row, "deployment") && is_text(row, "workload"))
                report(reader_, row, finding);
        });
    }
    /// Whether a part of the document has no problem.
    template <class Part>
    bool is_valid(std::string_view key, Part part) {
        const auto at = document_.find(0, key);
        Problems own(1);
        if (at) json::Reader(document_, own, reader_.version()).read(*at, part);
        return at && own.empty();
    }
    void require_something(bool batch) {
        if (kinds_ == 0 && !document_.find(0, "budget"))
            reader_.report(reader_.place_of(0, "models"),
                           "no workloads; expected some with rates, or with requests and a budget");
        else if (kinds_ > 0 && batch && !any_number_)
            reader_.report(reader_.place_of(0, "models"),
                           "every rate is 0; expected one above 0 for some workload");
        else if (request_.gpus.empty() && !request_.measured.empty())
            reader_.report(reader_.place_of(0, "gpus"), "none; expected the GPU types of the measurements");
    }

    json::Reader& reader_;
    const json::Document& document_;
    RequestDocument given_;
    const RequestRates& rates_;
    const std::optional<std::string>& folder_;
    ServingRequest request_{};
    std::vector<std::uint32_t> places_{};  ///< of the workloads
    std::size_t kinds_ = 0;
    bool any_rate_ = false;    ///< some workload has a rate other than 0, valid or not
    bool any_number_ = false;  ///< some workload has a number of requests
};

/// @throws InvalidInput with every problem; `problems` contains those of the parser
static ServingRequest request_of(const json::Document& document, Problems& problems,
                                 const RequestRates& rates, const std::optional<std::string>& folder) {
    RequestDocument given;
    const int version = json::read_fields(
        document, {.name = request_format, .newest = newest_request_version, .implied = true}, problems,
        given);
    if (version == 0) problems.throw_if_any();
    json::Reader reader(document, problems, version);
    RequestConverter converter(reader, std::move(given), rates, folder);
    auto request = converter.convert();
    problems.throw_if_any();
    request = with_rates(std::move(request), rates);
    converter.check_loads(request);
    problems.throw_if_any();
    try {
        validate(request);
    } catch (const InvalidInput& error) {  // such as empty names
        for (const auto& problem : error.problems()) reader.report(0, problem);
    }
    problems.throw_if_any();
    return request;
}

static RequestDocument document_of(const ServingRequest& request) {
    RequestDocument out;
    if (std::isfinite(request.budget)) out.budget = request.budget;
    for (std::size_t g = 0; g < request.gpus.size(); ++g) {
        auto& [name, gpu] = out.gpus.entries.emplace_back(request.gpus[g].name, RentableDocument{});
        static_cast<GpuType&>(gpu) = request.gpus[g];
        gpu.available = request.available[g];
        if (!request.terms.empty() && request.terms[g] != RentalTerms{}) gpu.terms = request.terms[g];
    }
    const bool rates = request.has_rates();
    for (const auto& served : request.models) {
        auto& [name, model] = out.models.entries.emplace_back(served.model.name, ServedDocument{});
        static_cast<LanguageModel&>(model) = served.model;
        for (const auto& workload : served.workloads) {
            auto& [kind, load] = model.workloads.entries.emplace_back(workload.name, WorkloadDocument{});
            if (workload.lengths.empty())
                load.input = workload.shape.input, load.output = workload.shape.output;
            load.lengths = workload.lengths;
            load.left_out = workload.left_out;
            load.prefix_hits = workload.prefix_hits;
            load.arrivals = workload.arrivals;
            (rates ? load.rate : load.requests) = rates ? workload.rate : workload.requests;
            load.targets = workload.targets;
        }
    }
    out.measured = request.measured;
    return out;
}

}  // namespace detail

GPUSCHED_EXPORT ServingRequest request_from_json(std::string_view text, std::string_view source,
                                                 const RequestRates& rates) {
    Problems problems;
    const auto document = json::Document::parse(text, source, problems);
    return detail::request_of(document, problems, rates, {});
}

GPUSCHED_EXPORT ServingRequest request_from_json(const json::Document& document, const RequestRates& rates,
                                                 const std::optional<std::string>& folder) {
    Problems problems;
    return detail::request_of(document, problems, rates, folder);
}

GPUSCHED_EXPORT ServingRequest read_request(const std::string& path, const RequestRates& rates) {
    Problems problems;
    const auto document = json::Document::read(path, problems);
    return detail::request_of(document, problems, rates, std::filesystem::path(path).parent_path().string());
}

GPUSCHED_EXPORT std::string request_to_json(const ServingRequest& request, int indent) {
    validate(request);
    return json::write_document(detail::request_format, detail::document_of(request),
                                detail::document_style(indent), detail::newest_request_version);
}

GPUSCHED_EXPORT void write_request(const ServingRequest& request, const std::string& path) {
    write_file(path, request_to_json(request));
}

}  // namespace gpusched::serving
