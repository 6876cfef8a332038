#pragma once

#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/control/detail/json_fields.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::control {

namespace audit_detail {

/// Appends JSON without allocating; commas where they belong. A table of fields is an object, with enumerators by name, or a
/// row: an array with enumerators by number and the fields of parts in place.
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
    /// Literals of ours and names of enumerators: nothing to escape.
    void text(std::string_view value) {
        comma();
        out_.append("\"").append(value).append("\"");
    }
    /// A single value, or all values of a part or list, without brackets.
    template <class T>
    void value(const T& x) {
        if constexpr (std::is_same_v<T, bool>)
            word(x ? "true" : "false");
        else if constexpr (std::is_same_v<T, double>)
            std::isfinite(x) ? number(x) : word("null");
        else if constexpr (std::is_same_v<T, std::uint64_t>)
            number(std::bit_cast<std::int64_t>(x));
        else if constexpr (std::is_same_v<T, CandidateVerdict>)  // the only enumerator of a row by name
            text(enum_name(x));
        else if constexpr (std::is_same_v<T, CpuSet>)  // ends its row: the words in use, at least four
            values(std::span(x.words).first(std::max<std::size_t>(4, x.words_in_use())));
        else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
            number(static_cast<std::int64_t>(x));
        else if constexpr (std::is_same_v<T, const char*>)
            text(x);
        else if constexpr (std::is_same_v<T, MigLayout>)
            values(x.instances());
        else if constexpr (Described<T>)
            visit_fields(std::type_identity<T>{},
                         [&](const char*, auto member, const auto&...) { value(x.*member); });
        else
            values(x);
    }
    template <class T>
    void row(const T& x) {
        open('[');
        value(x);
        close(']');
    }
    template <class List>
    void rows(const List& list) {
        open('[');
        for (const auto& x : list) row(x);
        close(']');
    }
    template <Described T>
    void object(const T& x) {
        open('{');
        visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&...) {
            using Field = std::remove_cvref_t<decltype(x.*member)>;
            key(name);
            if constexpr (NamedEnum<Field> && !std::is_same_v<Field, Row>)  // rows of the table by number
                text(enum_name(x.*member));
            else if constexpr (Described<Field>)
                row(x.*member);
            else
                value(x.*member);
        });
        close('}');
    }
    template <class List>
    void objects(const List& list) {
        open('[');
        for (const auto& x : list) object(x);
        close(']');
    }

  private:
    template <class List>
    void values(const List& list) {
        for (const auto& x : list) value(x);
    }
    template <class Number>
    void number(Number x) {
        char digits[40];
        word({digits,
              static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, x).ptr - digits)});
    }
    void word(std::string_view word) {
        comma();
        out_.append(word);
    }
    void comma() {
        if (!fresh_) out_.push_back(',');
        fresh_ = false;
    }
    std::string& out_;
    bool fresh_ = true;
};

inline void write_observation(Writer& w, const Observation& seen) {
    w.open('{');
    w.key("window").value(seen.window);
    w.key("time_s").value(seen.time_s);
    w.key("wall_time_s").value(seen.wall_time_s);
    w.key("enabled").value(seen.enabled);
    w.key("operator_resume").value(seen.operator_resume);
    w.key("tenants").rows(seen.tenants);
    w.key("feedback").rows(seen.feedback);
    if (std::any_of(seen.guards.begin(), seen.guards.end(),
                    [](BackendStatus status) { return status != BackendStatus::ok; }))
        w.key("guards").row(seen.guards);
    w.key("roots").rows(seen.roots);
    if (std::any_of(seen.nic_bytes_per_s.begin(), seen.nic_bytes_per_s.end(), is_usable))
        w.key("nic").row(seen.nic_bytes_per_s);
    w.key("numa_io").row(seen.numa_io_bytes_per_s);
    w.key("irq").row(seen.irq_per_s);
    w.key("gpus").rows(seen.gpus);
    w.close('}');
}

template <class T>
void read_value(const detail::Json& j, T& value) {
    if constexpr (std::is_same_v<T, double>) {
        value = j.is_null() ? unknown_signal : j.get<double>();
    } else if constexpr (NamedEnum<T>) {
        const auto number = j.get<std::int64_t>();
        const auto last = static_cast<std::int64_t>(enum_names(T{}).size()) - 1;
        if (number < 0 || number > last)
            throw InvalidInput(bad_value("enumerator", number_text(number), "0 to " + number_text(last)));
        value = static_cast<T>(number);
    } else {
        value = j.get<T>();
    }
}

/// Reads what `Writer::value` has written, from element `at` on.
template <class T>
void read_row(const detail::Json& row, std::size_t& at, T& value) {
    if constexpr (std::is_same_v<T, MigLayout>) {  // the rest of the row
        std::vector<MigInstance> instances;
        while (at + 1 < row.size()) read_row(row, at, instances.emplace_back());
        value = MigLayout(instances);
    } else if constexpr (Described<T>) {
        visit_fields(std::type_identity<T>{},
                     [&](const char*, auto member, const auto&...) { read_row(row, at, value.*member); });
    } else {
        read_value(row.at(at++), value);
    }
}

/// A list of rows, or of single values.
template <class T>
void read_list(const detail::Json& j, std::vector<T>& out) {
    for (const auto& element : j) {
        std::size_t at = 0;
        if constexpr (Described<T>)
            read_row(element, at, out.emplace_back());
        else
            read_value(element, out.emplace_back());
    }
}

inline Observation read_observation(const detail::Json& j) {
    Observation seen;
    read_value(j.at("window"), seen.window);
    read_value(j.at("time_s"), seen.time_s);
    read_value(j.at("wall_time_s"), seen.wall_time_s);
    read_value(j.at("enabled"), seen.enabled);
    read_value(j.at("operator_resume"), seen.operator_resume);
    read_list(j.at("tenants"), seen.tenants);
    read_list(j.at("feedback"), seen.feedback);
    if (j.contains("guards")) read_list(j.at("guards"), seen.guards);
    read_list(j.at("roots"), seen.roots);
    if (j.contains("nic")) read_list(j.at("nic"), seen.nic_bytes_per_s);
    read_list(j.at("numa_io"), seen.numa_io_bytes_per_s);
    read_list(j.at("irq"), seen.irq_per_s);
    read_list(j.at("gpus"), seen.gpus);
    return seen;
}

/// The hash that a line of a window carries.
inline std::uint64_t hash_in(std::string_view line) {
    constexpr std::string_view before = R"({"config":")";
    std::uint64_t hash = 0;
    if (line.starts_with(before))
        std::from_chars(line.data() + before.size(), line.data() + line.size(), hash, 16);
    return hash;
}

/// What a line that is no window records.
enum class Record : std::uint8_t { start, release, outcome, resume, admission };
constexpr auto enum_names(Record) {
    return name_table<Record>({
        {Record::start, "start"},
        {Record::release, "release"},
        {Record::outcome, "outcome"},
        {Record::resume, "resume"},
        {Record::admission, "admission"},
    });
}

/// Appends a record with these fields.
inline void append_record(std::string& line, Record kind,
                          const detail::OrderedJson& fields = detail::OrderedJson::object()) {
    detail::OrderedJson record;
    record["record"] = enum_name(kind);
    record.update(fields);
    line += detail::text_of(record, -1) + "\n";
}

/// What a line that is no window changes for those after it.
inline void follow(std::string_view line, ControllerOptions& options, ControllerState& state,
                   std::optional<std::uint64_t>& hash) {
    try {
        const auto j = detail::parse_document(line, "audit record");
        const auto name = j.at("record").get<std::string>();
        const auto is = [&](Record kind) { return name == enum_name(kind); };
        if (is(Record::start)) {
            if (j.contains("config")) options = parse_config(j.at("config").dump());
            Problems problems;
            std::vector<NamedCarryover> memory;
            detail::FieldReader(j, "", problems, &options.host)("memory", memory);
            detail::check_protected(memory, "/memory", options.host, problems);
            problems.throw_if_any();
            state = initial_state(options, by_tenant(memory, options.host));
            hash = j.contains("config") ? std::nullopt : std::optional(options_hash(options));
        } else if (is(Record::release)) {
            options.release_on_disable = true;
        } else if (!is(Record::outcome) && !is(Record::resume) && !is(Record::admission)) {
            throw InvalidInput(
                bad_value("record", gpusched::quoted(name), "start, release, outcome, resume or admission"));
        }
    } catch (const nlohmann::json::exception& e) {
        throw InvalidInput(std::string("audit record: ") + e.what());
    }
}

}  // namespace audit_detail

GPUSCHED_INLINE std::uint64_t options_hash(const ControllerOptions& options) {
    std::uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a
    for (const unsigned char byte : write_config(options)) hash = (hash ^ byte) * 0x100000001B3ull;
    return hash;
}

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
        w.value(t.counter);
        w.value(t.seen.ema.value);
        w.value(t.flags.now.bits());
        w.row(t.place.current);
        w.row(t.place.good);
        w.close(']');
    }
    w.close(']');
    w.key("admission_open").value(state.admission_open);
    w.key("actions").objects(result.wished);
    w.key("done").value(result.actions.size());
    w.key("events").objects(result.events);
    w.key("candidates").rows(result.candidates);
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
    detail::OrderedJson fields;
    fields["config"] = detail::OrderedJson::parse(write_config(options));
    std::vector<NamedCarryover> memory;
    for (std::size_t i = 0; i < carryover.size(); ++i)
        if (carryover[i] != TenantCarryover{}) memory.push_back({options.host.tenants[i].name, carryover[i]});
    if (!memory.empty()) fields["memory"] = detail::json_of(memory, options.host);
    audit_detail::append_record(line, audit_detail::Record::start, fields);
}

GPUSCHED_INLINE void append_release_record(std::string& line) {
    audit_detail::append_record(line, audit_detail::Record::release);
}

GPUSCHED_INLINE void append_outcome_record(std::string& line, ActionKind kind, std::string_view target,
                                           BackendStatus status) {
    audit_detail::append_record(
        line, audit_detail::Record::outcome,
        {{"kind", enum_name(kind)}, {"target", target}, {"status", enum_name(status)}});
}

GPUSCHED_INLINE void append_resume_record(std::string& line, ResumeVerdict verdict,
                                          const std::vector<std::string>& reasons) {
    audit_detail::append_record(line, audit_detail::Record::resume,
                                {{"verdict", enum_name(verdict)}, {"reasons", reasons}});
}

GPUSCHED_INLINE void append_admission_record(std::string& line, const AdmissionAnswer& answer,
                                             const Host& host) {
    detail::OrderedJson fields;
    fields["id"] = answer.newcomer.id;
    fields["verdict"] = enum_name(answer.verdict);
    if (answer.place) {
        const auto& device = mig_device(host.gpus[static_cast<std::size_t>(answer.place->gpu)].device);
        fields["gpu"] = answer.place->gpu;
        fields["profile"] = device.profiles[answer.place->instance.profile].key;
        fields["slice"] = answer.place->instance.start;
    }
    audit_detail::append_record(line, audit_detail::Record::admission, fields);
}

GPUSCHED_INLINE AuditReplay replay_audit(std::string_view log, const ControllerOptions& given) {
    constexpr std::string_view record = R"({"record":)", start = R"({"record":"start")";
    AuditReplay out;
    auto options = given;
    auto state = initial_state(options);
    // Where the log gives the options itself, its hash is that of the version that wrote it.
    std::optional hash = options_hash(options);
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
        if (!hash) hash = audit_detail::hash_in(recorded);
        line.clear();
        append_audit_line(line, seen, state, result, *hash);
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
