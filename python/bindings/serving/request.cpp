// Requests of the serving planner as dicts.
#include "serving/serving.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/serving/serving_curve.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace gpusched::python {

namespace s = serving;

namespace {

/// What version 1 did not have.
void refuse_newer(Fields& f, int version, const std::string& owner, py::handle value,
                  std::initializer_list<const char*> names) {
    if (version > 1 || !py::isinstance<py::dict>(value)) return;
    for (const char* name : names)
        if (value.contains(name))
            f.collect([&] { throw InvalidInput(owner + "." + name + ": needs version 2 of the format"); });
}

/// The entries of "gpus", "models" or "workloads".
py::dict entries_by_name(const std::string& field, py::handle value, const std::string& what) {
    if (!py::isinstance<py::dict>(value)) bad_option(field, value, "a dict with an entry for each " + what);
    return py::reinterpret_borrow<py::dict>(value);
}

/// "gpus": one entry.
void read_rentable(const std::string& name, py::handle value, int version, s::ServingRequest& result) {
    const auto owner = "request.gpus[" + gpusched::quoted(name) + "]";
    Fields f(owner, value);
    refuse_newer(f, version, owner, value, {"machines", "minimum", "spot_price", "spot_available"});
    auto type = name;
    f.read("type", type);
    int available = 0, machines = -1;
    f.read("machines", machines, at_least(0));
    if (!value.contains("machines"))
        f.require("available", available, at_least(0));
    else if (value.contains("available"))
        f.collect([&] { throw InvalidInput(owner + ".machines: not with available, which counts GPUs"); });
    f.take("available");
    s::RentalTerms terms;
    f.read_all(terms);
    // A type that nobody knows may be described in full.
    s::GpuType gpu;
    bool known = !f.bad("type");
    if (known) {
        try {
            gpu = find_gpu(type);
        } catch (const InvalidInput& error) {
            known = static_cast<bool>(f.take("tflops"));
            if (!known) {
                auto told = error.problems().front();
                told.insert(told.find("one of "),
                            "a type described in full (tflops, bandwidth_gb_s, ...) or ");
                f.collect([&] { throw InvalidInput(told.replace(0, told.find(':'), owner + ".type")); });
            }
        }
    }
    gpu.name = name;
    f.read_all(gpu, {"name"});
    if (!gpu.price) {
        for (const auto& listed : s::paper_gpus())
            if (listed.name == type || "RTX" + listed.name == type || listed.name + "-80GB" == type)
                gpu.price = listed.price;
    }
    if (value.contains("machines") && !f.bad("machines")) {
        if (machines < 0 || machines > 1'000'000'000 / std::max(1, gpu.per_machine))
            f.collect([&] {
                throw InvalidInput(
                    bad_value(owner + ".machines", std::to_string(machines),
                              "a number >= 0 of machines of " + std::to_string(gpu.per_machine) + " GPUs"));
            });
        else
            available = machines * gpu.per_machine;
    }
    if (known)
        f.judge("GPU type " + gpusched::quoted(name), [&] {
            s::validate(s::ServingRequest{{gpu}, {available}, 0, {}, {}, {terms}});
        });
    result.gpus.push_back(std::move(gpu));
    result.available.push_back(available);
    result.terms.push_back(terms);
    f.finish();
}

/// Adds what is wrong with targets, with their place.
void judge_targets(Fields& f, const std::string& owner, const s::LatencyTargets& targets) {
    Problems found;
    check_fields(found, targets);
    try {
        found.throw_if_any();
    } catch (const InvalidInput& error) {
        for (const auto& problem : error.problems())
            f.collect([&] { throw InvalidInput(owner + ".targets." + problem); });
    }
}

/// What the workloads of a request say of numbers and rates, known before any of them is judged.
struct Loads {
    bool rates = false;                ///< some workload has a rate other than 0, right or wrong
    bool numbers = false;              ///< some workload has a number of requests
    std::vector<std::string> neither;  ///< places of workloads that have neither
};

/// "workloads" of a model: one entry.
void read_workload(const std::string& owner, const std::string& name, py::handle value, int version,
                   s::ServedModel& served, Loads& loads) {
    const auto place = owner + "[" + gpusched::quoted(name) + "]";
    Fields f(place, value);
    refuse_newer(f, version, place, value, {"rate", "targets"});
    s::ServingWorkload workload{name, {}, 0};
    f.require("input", workload.shape.input, at_least(1));
    f.require("output", workload.shape.output, at_least(1));
    if (version > 1) f.read("rate", workload.rate);
    if (version > 1 && !value.contains("rate") && !value.contains("requests"))
        loads.neither.push_back(place);
    else if (version > 1)
        f.read("requests", workload.requests);
    else
        f.require("requests", workload.requests);
    f.take("requests");
    loads.rates = loads.rates || f.bad("rate") || !(workload.rate == 0);
    loads.numbers = loads.numbers || value.contains("requests");
    const auto any = s::llama3_8b();
    f.judge("model " + gpusched::quoted(any.name) + ": workload " + gpusched::quoted(name), [&] {
        s::validate(s::ServingRequest{{}, {}, 0, {{any, {workload}}}});
    });
    f.read("targets", workload.targets);
    if (!f.bad("targets")) judge_targets(f, place, workload.targets);
    served.workloads.push_back(std::move(workload));
    f.finish();
}

/// "models": one entry.
void read_served(const std::string& name, py::handle value, int version, s::ServingRequest& result,
                 Loads& loads) {
    const auto owner = "request.models[" + gpusched::quoted(name) + "]";
    Fields f(owner, value);
    auto type = name;
    f.read("type", type);
    s::ServedModel served{{.name = name}, {}};
    bool known = !f.bad("type");
    if (known) {
        known = false;
        f.collect([&] {
            served.model = find_model(owner + ".type", type, value);
            served.model.name = name;
            known = true;
        });
    }
    f.read_all(served.model, {"name"});
    if (known)
        f.judge("model " + gpusched::quoted(name), [&] {
            s::validate(s::ServingRequest{{}, {}, 0, {{served.model, {}}}});
        });
    if (const auto workloads = f.take("workloads"))
        f.collect([&] {
            const auto field = owner + ".workloads";
            for (const auto& [key, shape] : entries_by_name(field, workloads, "workload"))
                f.collect([&, key = key, shape = shape] {
                    read_workload(field, OptionType<std::string>::read(field, key), shape, version, served,
                                  loads);
                });
        });
    else
        f.missing("workloads");
    result.models.push_back(std::move(served));
    f.finish();
}

/// "measured": one entry. The names that it uses are looked up in `named`; null where those could not be read.
void read_measured(const std::string& owner, py::handle value, int version, const s::ServingRequest* named,
                   s::ServingRequest& result) {
    Fields f(owner, value);
    refuse_newer(f, version, owner, value, {"ttft_s", "tpot_s"});
    s::MeasuredThroughput m;
    f.read("ttft_s", m.ttft_s);
    f.read("tpot_s", m.tpot_s);
    f.require("model", m.model);
    f.require("deployment", m.deployment);
    f.require("workload", m.workload);
    f.require("requests_per_s", m.requests_per_s);
    if (named != nullptr && !f.bad("model") && !f.bad("deployment") && !f.bad("workload")) {
        auto alone = *named;
        for (const auto& other : result.measured)
            if (other.model == m.model && other.deployment == m.deployment && other.workload == m.workload)
                alone.measured.push_back(other);
        alone.measured.push_back(m);
        f.judge("measured throughput of " + gpusched::quoted(m.deployment), [&] { s::validate(alone); });
        result.measured.push_back(std::move(m));
    }
    f.finish();
}

/// The rates of a call: of all kinds together, or by name.
struct CallRates {
    std::optional<double> all{};
    std::map<std::string, double> by_name{};
    [[nodiscard]] bool any() const { return all || !by_name.empty(); }
};

/// @throws InvalidInput with everything that is wrong but for names, which a request must know
CallRates read_rates(const py::object& rate) {
    CallRates result;
    if (!rate || rate.is_none()) return result;
    if (!py::isinstance<py::dict>(rate)) {
        const double all = OptionType<double>::read("rate", rate);
        require_range("rate", all, std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
        result.all = all;
        return result;
    }
    Problems problems;
    double sum = 0;
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(rate))
        collect(problems, [&, key = key, value = value] {
            const auto name = OptionType<std::string>::read("rate", key);
            const auto field = "rate[" + gpusched::quoted(name) + "]";
            const double each = OptionType<double>::read(field, value);
            require_range(field, each, 0.0, std::numeric_limits<double>::max());
            result.by_name.emplace(name, each);
            sum += each;
        });
    if (problems.empty() && !(sum > 0))
        problems.add("rate: expected a rate above 0 for some kind of requests");
    problems.throw_if_any();
    return result;
}

s::ServingRequest with_rates(s::ServingRequest request, const CallRates& rates) {
    if (rates.all) return s::with_rate(std::move(request), *rates.all);
    return rates.any() ? s::with_rates(std::move(request), rates.by_name) : request;
}

/// What the library says of the workloads of a request, with their places in its document.
std::vector<std::string> in_places_of(std::vector<std::string> problems, const s::ServingRequest& request) {
    for (auto& problem : problems)
        for (const auto& served : request.models)
            for (const auto& workload : served.workloads) {
                const auto as = "model " + gpusched::quoted(served.model.name) + ": workload " +
                                gpusched::quoted(workload.name) + ": ";
                if (problem.starts_with(as))
                    problem.replace(0, as.size(),
                                    "request.models[" + gpusched::quoted(served.model.name) + "].workloads[" +
                                        gpusched::quoted(workload.name) + "].");
            }
    return problems;
}

}  // namespace

serving::ServingRequest read_serving_request(const py::object& request, const py::object& rate) {
    Fields top("request", request);
    s::ServingRequest result;
    std::string format = "gpusched.serving-request";
    int version = 2;
    top.read("format", format);
    top.read("version", version);
    // Of another document, nothing else is worth telling.
    if (format != "gpusched.serving-request" || (version != 1 && version != 2))
        throw InvalidInput(bad_value("request.format",
                                     gpusched::quoted(format) + " version " + std::to_string(version),
                                     "'gpusched.serving-request' version 1 or 2"));
    refuse_newer(top, version, "request", request, {"targets"});
    // Every entry is read for itself, so that all mistakes are told at once.
    const auto each = [&](const char* name, const char* what, auto&& read) {
        const auto given = top.take(name);
        if (!given) return top.missing(name);
        const auto field = std::string("request.") + name;
        top.collect([&] {
            for (const auto& [key, value] : entries_by_name(field, given, what))
                top.collect([&, key = key, value = value] {
                    read(OptionType<std::string>::read(field, key), value, version, result);
                });
        });
    };
    CallRates rates;
    top.collect([&] { rates = read_rates(rate); });
    const bool called = rate && !rate.is_none();  // with rates, right or wrong
    top.read("budget", result.budget);
    top.judge({}, [&] { s::validate(s::ServingRequest{{}, {}, result.budget}); });
    each("gpus", "GPU type", read_rentable);
    Loads loads;
    each("models", "model", [&](const std::string& name, py::handle value, int, s::ServingRequest&) {
        read_served(name, value, version, result, loads);
    });
    std::size_t kinds = 0;
    for (const auto& served : result.models) kinds += served.workloads.size();
    // Rates by name need none of the request, nor does the rate of its only kind.
    if (!called || (!py::isinstance<py::dict>(rate) && kinds > 1))
        for (const auto& place : loads.neither)
            top.collect([&] { throw InvalidInput(place + ": rate or requests is missing"); });
    const bool batch = !called && !loads.rates;
    if (!request.contains("budget")) {
        if (version == 1 ? kinds > 0 : batch && loads.numbers) top.missing("budget");
        result.budget = std::numeric_limits<double>::infinity();
    }
    s::LatencyTargets targets;
    top.read("targets", targets);
    if (!top.bad("targets")) judge_targets(top, "request", targets);
    if (targets.any() && batch && loads.numbers)
        top.collect([] {
            throw InvalidInput(
                "request.targets: need rates; a batch that is there at once has no latencies to keep");
        });
    for (auto& served : result.models)
        for (auto& workload : served.workloads) workload.targets = s::merged(targets, workload.targets);
    if (const auto measured = top.take("measured")) {
        s::ServingRequest named{result.gpus, result.available};
        for (const auto& served : result.models) {
            named.models.push_back({served.model, {}});
            for (const auto& workload : served.workloads)
                named.models.back().workloads.push_back({workload.name, {1, 1}, 0});
        }
        bool any = !top.bad("models") && py::isinstance<py::dict>(top.take("models"));
        try {
            s::validate(named);
        } catch (const InvalidInput&) {  // which is told already: measurements are compared with names alone
            named.gpus.clear();
            named.available.clear();
            for (auto& served : named.models) {
                const auto name = served.model.name;
                served.model = s::llama3_8b();
                served.model.name = name;
            }
            try {
                s::validate(named);
            } catch (const InvalidInput&) {
                any = false;
            }
        }
        top.collect([&] {
            if (py::isinstance<py::str>(measured) || !py::isinstance<py::sequence>(measured))
                bad_option("request.measured", measured, "a list of dicts");
            int i = 0;
            for (const auto item : measured) {
                const auto owner = "request.measured[" + std::to_string(i++) + "]";
                top.collect([&, item = item] {
                    read_measured(owner, item, version, any ? &named : nullptr, result);
                });
            }
        });
    }
    top.finish();
    if (kinds == 0 && !request.contains("budget"))
        throw InvalidInput(
            "request.models: no workloads; expected some with rates, or with requests and a budget");
    if (kinds > 0 && batch && !loads.numbers)
        throw InvalidInput("request.models: every rate is 0; expected one above 0 for some workload");
    if (result.gpus.empty() && !result.measured.empty())
        throw InvalidInput("request.gpus: {}; expected the GPU types of what was measured");
    result = with_rates(std::move(result), rates);
    try {
        s::validate(result);
    } catch (const InvalidInput& error) {
        throw InvalidInput(in_places_of(error.problems(), result));
    }
    return result;
}

namespace {

/// The fields of a table that have a value, but for some.
template <Described T>
py::dict known_fields(const T& record, std::initializer_list<const char*> except = {}) {
    py::dict result;
    for (const auto& [name, value] : dict_from(record))
        if (!value.is_none()) result[name] = value;
    for (const char* name : except) result.attr("pop")(name);
    return result;
}

}  // namespace

py::dict write_serving_request(const serving::ServingRequest& request) {
    py::dict result, gpus, models;
    py::list measured;
    result["format"] = "gpusched.serving-request";
    result["version"] = 2;
    if (std::isfinite(request.budget)) result["budget"] = request.budget;
    for (std::size_t g = 0; g < request.gpus.size(); ++g) {
        auto entry = known_fields(request.gpus[g], {"name"});
        entry["available"] = request.available[g];
        if (!request.terms.empty() && request.terms[g] != s::RentalTerms{})
            entry.attr("update")(known_fields(request.terms[g]));
        gpus[py::str(request.gpus[g].name)] = entry;
    }
    result["gpus"] = gpus;
    const bool rates = request.has_rates();
    for (const auto& served : request.models) {
        py::dict workloads;
        for (const auto& workload : served.workloads) {
            py::dict entry = known_fields(workload.shape);
            entry[rates ? "rate" : "requests"] = rates ? workload.rate : workload.requests;
            if (workload.targets.any()) entry["targets"] = known_fields(workload.targets);
            workloads[py::str(workload.name)] = entry;
        }
        auto entry = known_fields(served.model, {"name"});
        entry["workloads"] = workloads;
        models[py::str(served.model.name)] = entry;
    }
    result["models"] = models;
    for (const auto& row : request.measured) measured.append(known_fields(row));
    if (!request.measured.empty()) result["measured"] = measured;
    return result;
}

std::vector<serving::PlannedReplicas>
read_running(const py::object& given, const serving::ServingRequest& request, std::string place) {
    auto running = given;
    if (py::isinstance<PlannedServing>(given)) {
        running = given.attr("replicas");
    } else if (py::isinstance<py::dict>(given)) {
        Fields plan(place, given);  // what else a plan says is not needed
        std::string format = "gpusched.serving-plan";
        int version = 2;
        plan.read("format", format);
        plan.read("version", version);
        plan.throw_if_any();
        if (format != "gpusched.serving-plan" || (version != 1 && version != 2))
            throw InvalidInput(bad_value(place + ".format",
                                         gpusched::quoted(format) + " version " + std::to_string(version),
                                         "'gpusched.serving-plan' version 1 or 2"));
        place += ".replicas";
        running = plan.take("replicas");
        if (!running) throw InvalidInput(place + ": expected a list, as in a serving plan");
    }
    if (py::isinstance<py::str>(running) || !py::isinstance<py::sequence>(running))
        bad_option(place, running, "a plan, its document, or a list of dicts");
    std::vector<s::PlannedReplicas> result;
    Problems problems;
    std::int64_t all = 0;
    for (const auto item : running) {
        const auto owner = place + "[" + std::to_string(result.size()) + "]";
        auto& replicas = result.emplace_back();
        collect(problems, [&] {
            Fields f(owner, item);
            f.require("model", replicas.model);
            f.require("count", replicas.count);
            if (replicas.count < 0)
                f.collect([&] {
                    throw InvalidInput(
                        bad_value(owner + ".count", std::to_string(replicas.count), "at least 0"));
                });
            all += std::max(replicas.count, 0);
            bool gone = false;
            const auto stages = f.take("stages");
            if (!stages) f.missing("stages");
            f.collect([&] {
                if (!stages) return;
                if (py::isinstance<py::str>(stages) || !py::isinstance<py::sequence>(stages))
                    bad_option(owner + ".stages", stages, "a list");
                for (const auto stage : stages)
                    f.collect([&, stage = stage] {
                        Fields g(owner + ".stages[" + std::to_string(replicas.deployment.stages.size()) + "]",
                                 stage);
                        std::string gpu;
                        auto& read = replicas.deployment.stages.emplace_back();
                        g.require("gpu", gpu);
                        g.require("degree", read.degree);
                        g.require("layers", read.layers);
                        g.finish();
                        const auto at =
                            std::find_if(request.gpus.begin(), request.gpus.end(),
                                         [&](const s::GpuType& type) { return type.name == gpu; });
                        gone = gone || at == request.gpus.end();
                        read.gpu = static_cast<int>(at - request.gpus.begin());
                    });
            });
            // Replicas on types that the request no longer has are stopped: no deployment equals them.
            if (gone) replicas.deployment.stages.clear();
            // What else a plan says of its replicas is not needed.
            f.throw_if_any();
        });
    }
    problems.throw_if_any();
    check_range(problems, "count of all together", all, 0, 1'000'000'000, place);
    problems.throw_if_any();
    return result;
}

}  // namespace gpusched::python
