#pragma once

#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/control/detail/carryover_json.hpp>
#include <gpusched/core/checks.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace GPUSCHED_NAMESPACE::control {

namespace audit_detail {

/// Appends JSON; commas where they belong.
class Writer {
  public:
    explicit Writer(std::string& out) : out_(out) {}

    Writer& key(std::string_view name) {
        comma();
        out_.append("\"").append(name).append("\":");
        fresh_ = true;
        return *this;
    }
    void open(char bracket) {
        comma();
        out_.push_back(bracket);
        fresh_ = true;
    }
    void close(char bracket) {
        out_.push_back(bracket);
        fresh_ = false;
    }
    void number(double value) {
        if (!std::isfinite(value)) return word("null");
        char text[40];
        const auto end = std::to_chars(text, text + sizeof text, value).ptr;
        word({text, static_cast<std::size_t>(end - text)});
    }
    void integer(std::int64_t value) {
        char text[24];
        const auto end = std::to_chars(text, text + sizeof text, value).ptr;
        word({text, static_cast<std::size_t>(end - text)});
    }
    void boolean(bool value) { word(value ? "true" : "false"); }
    /// Literals of ours and names of enumerators: nothing to escape.
    void text(std::string_view value) {
        comma();
        out_.append("\"").append(value).append("\"");
    }

  private:
    void word(std::string_view value) {
        comma();
        out_.append(value);
    }
    void comma() {
        if (!fresh_) out_.push_back(',');
        fresh_ = false;
    }
    std::string& out_;
    bool fresh_ = true;
};

inline void write_configuration(Writer& w, const Configuration& c) {
    w.open('[');
    w.integer(c.gpu);
    w.integer(c.instance.profile);
    w.integer(c.instance.start);
    w.integer(c.quota_percent);
    for (const auto word : c.cpus.words) w.integer(std::bit_cast<std::int64_t>(word));
    w.close(']');
}

inline void write_observation(Writer& w, const Observation& seen) {
    w.open('{');
    w.key("window").integer(seen.window);
    w.key("time_s").number(seen.time_s);
    w.key("wall_time_s").number(seen.wall_time_s);
    w.key("enabled").boolean(seen.enabled);
    w.key("operator_resume").boolean(seen.operator_resume);
    w.key("tenants").open('[');
    for (const auto& t : seen.tenants) {
        w.open('[');
        w.boolean(t.present);
        for (const double x : {t.p50_ms, t.p95_ms, t.p99_ms, t.p999_ms, t.ttft_p99_ms}) w.number(x);
        w.integer(t.count);
        w.integer(t.misses);
        for (const double x : {t.offered_per_s, t.completed_per_s, t.pcie_bytes_per_s, t.io_bytes_per_s,
                               t.sm_active, t.dram_active, t.memory_used_mib})
            w.number(x);
        w.integer(static_cast<int>(t.pcie_attribution));
        w.integer(static_cast<int>(t.io_attribution));
        w.close(']');
    }
    w.close(']');
    w.key("feedback").open('[');
    for (const auto& f : seen.feedback) {
        w.open('[');
        w.boolean(f.finished);
        w.integer(static_cast<int>(f.status));
        w.boolean(f.restored);
        w.close(']');
    }
    w.close(']');
    bool failed = false;
    for (const auto status : seen.guards) failed |= status != BackendStatus::ok;
    if (failed) {
        w.key("guards").open('[');
        for (const auto status : seen.guards) w.integer(static_cast<int>(status));
        w.close(']');
    }
    w.key("roots").open('[');
    for (const auto& r : seen.roots) {
        w.open('[');
        w.number(r.bytes_per_s);
        w.number(r.replays);
        w.close(']');
    }
    w.close(']');
    w.key("numa_io").open('[');
    for (const double x : seen.numa_io_bytes_per_s) w.number(x);
    w.close(']');
    w.key("irq").open('[');
    for (const double x : seen.irq_per_s) w.number(x);
    w.close(']');
    w.key("gpus").open('[');
    for (const auto& g : seen.gpus) {
        w.open('[');
        w.boolean(g.lost);
        w.boolean(g.readable);
        for (const auto& i : g.layout.instances()) {
            w.integer(i.profile);
            w.integer(i.start);
        }
        w.close(']');
    }
    w.close(']');
    w.close('}');
}

inline double real(const nlohmann::json& j) { return j.is_null() ? unknown_signal : j.get<double>(); }

template <class E>
E enumerator(const nlohmann::json& j) {
    const auto value = j.get<std::int64_t>();
    if (value < 0 || value >= static_cast<std::int64_t>(enum_names(E{}).size()))
        throw InvalidInput(
            bad_value("enumerator", number_text(value), "0 to " + number_text(enum_names(E{}).size() - 1)));
    return static_cast<E>(value);
}

inline Observation read_observation(const nlohmann::json& j) {
    Observation seen;
    seen.window = j.at("window").get<std::int64_t>();
    seen.time_s = real(j.at("time_s"));
    seen.wall_time_s = real(j.at("wall_time_s"));
    seen.enabled = j.at("enabled").get<bool>();
    seen.operator_resume = j.at("operator_resume").get<bool>();
    for (const auto& row : j.at("tenants")) {
        TenantSignals t;
        std::size_t k = 0;
        t.present = row.at(k++).get<bool>();
        for (double* x : {&t.p50_ms, &t.p95_ms, &t.p99_ms, &t.p999_ms, &t.ttft_p99_ms})
            *x = real(row.at(k++));
        t.count = row.at(k++).get<std::int64_t>();
        t.misses = row.at(k++).get<std::int64_t>();
        for (double* x : {&t.offered_per_s, &t.completed_per_s, &t.pcie_bytes_per_s, &t.io_bytes_per_s,
                          &t.sm_active, &t.dram_active, &t.memory_used_mib})
            *x = real(row.at(k++));
        t.pcie_attribution = enumerator<Attribution>(row.at(k++));
        t.io_attribution = enumerator<Attribution>(row.at(k++));
        seen.tenants.push_back(t);
    }
    for (const auto& row : j.at("feedback"))
        seen.feedback.push_back(
            {row.at(0).get<bool>(), enumerator<BackendStatus>(row.at(1)), row.at(2).get<bool>()});
    if (j.contains("guards"))
        for (const auto& x : j.at("guards")) seen.guards.push_back(enumerator<BackendStatus>(x));
    for (const auto& row : j.at("roots")) seen.roots.push_back({real(row.at(0)), real(row.at(1))});
    for (const auto& x : j.at("numa_io")) seen.numa_io_bytes_per_s.push_back(real(x));
    for (const auto& x : j.at("irq")) seen.irq_per_s.push_back(real(x));
    for (const auto& row : j.at("gpus")) {
        GpuSignals g;
        g.lost = row.at(0).get<bool>();
        g.readable = row.at(1).get<bool>();
        std::vector<MigInstance> instances;
        for (std::size_t k = 2; k + 1 < row.size(); k += 2)
            instances.push_back({row.at(k).get<std::uint8_t>(), row.at(k + 1).get<std::uint8_t>()});
        g.layout = MigLayout(instances);
        seen.gpus.push_back(g);
    }
    return seen;
}

/// What a line that is no window changes for those after it.
inline void follow(std::string_view line, ControllerOptions& options, ControllerState& state,
                   std::uint64_t& hash) {
    try {
        const auto j = detail::parse_document(line, "audit record");
        const auto kind = j.at("record").get<std::string>();
        if (kind == "start") {
            if (j.contains("config")) options = parse_config(j.at("config").dump());
            ControllerCarryover carryover(options.host.tenants.size());
            Problems problems;
            const detail::FieldReader reader(j, "", problems);
            detail::read_carryovers(reader, "memory", options.host, problems, [&](const std::string& name) {
                return detail::carryover_of_tenant(carryover, options.host, name);
            });
            problems.throw_if_any();
            state = initial_state(options, carryover);
            hash = options_hash(options);
        } else if (kind == "release") {
            options.release_on_disable = true;
        } else if (kind != "outcome" && kind != "resume") {
            throw InvalidInput(
                bad_value("record", gpusched::quoted(kind), "start, release, outcome or resume"));
        }
    } catch (const nlohmann::json::exception& e) {
        throw InvalidInput(std::string("audit record: ") + e.what());
    }
}

}  // namespace audit_detail

GPUSCHED_INLINE void append_audit_line(std::string& line, const Observation& seen,
                                       const ControllerState& state, const StepResult& result,
                                       std::uint64_t hash) {
    audit_detail::Writer w(line);
    w.open('{');
    char hex[20];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
    w.key("config").text(hex);
    w.key("observation");
    audit_detail::write_observation(w, seen);
    w.key("states").open('[');
    for (const auto& t : state.tenants) {
        w.open('[');
        w.text(enum_name(t.phase));
        w.integer(t.counter);
        w.number(t.seen.ema.value);
        w.integer(t.flags.now.bits());
        audit_detail::write_configuration(w, t.place.current);
        audit_detail::write_configuration(w, t.place.good);
        w.close(']');
    }
    w.close(']');
    w.key("admission_open").boolean(state.admission_open);
    w.key("actions").open('[');
    for (const auto& a : result.wished) {
        w.open('{');
        w.key("kind").text(enum_name(a.kind));
        w.key("lever").text(enum_name(a.lever));
        w.key("tenant").integer(a.tenant);
        w.key("target").integer(a.target);
        w.key("value").integer(a.value);
        w.key("before");
        audit_detail::write_configuration(w, a.before);
        w.key("after");
        audit_detail::write_configuration(w, a.after);
        w.key("make_before_break").boolean(a.make_before_break);
        w.close('}');
    }
    w.close(']');
    w.key("done").integer(static_cast<std::int64_t>(result.actions.size()));
    w.key("events").open('[');
    for (const auto& e : result.events) {
        w.open('{');
        w.key("tenant").integer(e.tenant);
        w.key("row").integer(static_cast<int>(e.row));
        w.key("from").text(enum_name(e.from));
        w.key("to").text(enum_name(e.to));
        w.key("cause").text(enum_name(e.cause));
        w.key("reason").text(e.reason);
        w.key("loss").number(e.loss);
        w.close('}');
    }
    w.close(']');
    w.key("candidates").open('[');
    for (const auto& c : result.candidates) {
        w.open('[');
        w.integer(c.tenant);
        w.integer(c.gpu);
        w.integer(c.instance.profile);
        w.integer(c.instance.start);
        w.number(c.score);
        w.text(c.verdict);
        w.close(']');
    }
    w.close(']');
    w.close('}');
    line.push_back('\n');
}

GPUSCHED_INLINE Observation parse_audit_observation(std::string_view line) {
    try {
        return audit_detail::read_observation(detail::parse_document(line, "audit line").at("observation"));
    } catch (const nlohmann::json::exception& e) {
        throw InvalidInput(std::string("audit line: ") + e.what());
    }
}

GPUSCHED_INLINE void append_start_record(std::string& line, const ControllerOptions& options,
                                         const ControllerCarryover& carryover) {
    line += R"({"record":"start","config":)";
    line += nlohmann::ordered_json::parse(write_config(options)).dump();
    auto remembered = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < carryover.size(); ++i)
        if (carryover[i] != TenantCarryover{})
            remembered.push_back(
                detail::write_carryover(options.host.tenants[i].name, carryover[i], options.host));
    if (!remembered.empty())
        line += R"(,"memory":)" +
                remembered.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    line += "}\n";
}

GPUSCHED_INLINE AuditReplay replay_audit(std::string_view log, const ControllerOptions& given) {
    constexpr std::string_view record = R"({"record":)", start = R"({"record":"start")";
    AuditReplay out;
    auto options = given;
    auto state = initial_state(options);
    auto hash = options_hash(options);
    StepResult result;
    std::string line;
    std::int64_t number = 0;
    for (std::size_t at = 0;; ++number) {
        const auto end = log.find('\n', at);
        if (end == std::string_view::npos) return out;
        const auto recorded = log.substr(at, end + 1 - at);
        at = end + 1;
        Observation seen;
        try {
            if (recorded.starts_with(record)) {
                audit_detail::follow(recorded, options, state, hash);
                continue;
            }
            seen = parse_audit_observation(recorded);
            step(state, seen, options, result);
        } catch (const InvalidInput& e) {
            // Whoever wrote it died; the next one began a new line.
            if (log.substr(at).starts_with(start)) continue;
            throw InvalidInput("line " + number_text(number) + ": " + e.what());
        }
        line.clear();
        append_audit_line(line, seen, state, result, hash);
        if (line != recorded) {
            out.first_difference = number;
            out.expected = std::string(recorded);
            out.found = line;
            return out;
        }
        ++out.windows;
        out.actions += static_cast<std::int64_t>(result.actions.size());
    }
}

}  // namespace GPUSCHED_NAMESPACE::control
