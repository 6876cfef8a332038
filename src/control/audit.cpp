// SPDX-License-Identifier: Apache-2.0
// Writes, parses and replays the audit log.
#include "control/config_document.hpp"

#include <gpusched/config.hpp>
#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <type_traits>

namespace gpusched::control {

namespace audit_detail {

/// Appends rows: arrays with enumerators by number and the fields of parts inlined.
class RowWriter {
  public:
    explicit RowWriter(json::Writer& out) : out_(out) {}

    /// Appends a single value, or all values of a part or list, without brackets.
    template <class T>
    void values(const T& x) {
        if constexpr (std::is_same_v<T, std::uint64_t>)
            single(std::bit_cast<std::int64_t>(x));
        else if constexpr (std::is_same_v<T, CpuSet>)  // last in its row: the words in use, at least four
            each(std::span(x.words).first(std::max<std::size_t>(4, x.words_in_use())));
        else if constexpr (std::is_same_v<T, CandidateVerdict>)  // the only enumerator of a row by name
            single(x);
        else if constexpr (std::is_enum_v<T>)
            single(static_cast<std::int64_t>(x));
        else if constexpr (std::is_arithmetic_v<T>)
            single(x);
        else if constexpr (std::is_same_v<T, MigLayout>)
            each(x.instances());
        else if constexpr (Described<T>)
            visit_fields(std::type_identity<T>{},
                         [&](const char*, auto member, const auto&...) { values(x.*member); });
        else
            each(x);
    }
    template <class T>
    void row(const T& x) {
        out_.begin('[');
        values(x);
        out_.end(']');
    }
    template <class List>
    void rows(const List& list) {
        out_.begin('[');
        for (const auto& x : list) {
            out_.next();
            row(x);
        }
        out_.end(']');
    }
    /// Appends objects with enumerators by name and parts as rows.
    template <class List>
    void objects(const List& list) {
        out_.begin('[');
        for (const auto& x : list) {
            out_.next();
            object(x);
        }
        out_.end(']');
    }

  private:
    template <Described T>
    void object(const T& x) {
        out_.begin('{');
        visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&...) {
            const auto& field = x.*member;
            using Field = std::remove_cvref_t<decltype(field)>;
            out_.write_key(name);
            if constexpr (std::is_same_v<Field, Row>)  // rows of the table by number
                out_.write(static_cast<std::int64_t>(field));
            else if constexpr (std::is_same_v<Field, const char*>)
                out_.write(std::string_view(field));
            else if constexpr (Described<Field>)
                row(field);
            else
                write(field);
        });
        out_.end('}');
    }
    template <class List>
    void each(const List& list) {
        for (const auto& x : list) values(x);
    }
    template <class T>
    void single(const T& x) {
        if constexpr (std::is_same_v<T, double>) {
            if (!std::isfinite(x)) return out_.write_next_null();
        }
        out_.write_next(x);
    }
    template <class T>
    void write(const T& x) {
        if constexpr (std::is_same_v<T, double>)
            out_.write_or_null(x);
        else
            out_.write(x);
    }

    json::Writer& out_;
};

/// Reads the output of `RowWriter::values`, one row after the other.
class RowReader {
  public:
    RowReader(json::Reader& reader, std::uint32_t row)
        : reader_(reader), row_(row), at_(row + 1), end_(reader.document()[row].end) {
        if (reader.kind(row) == json::Kind::array) return;
        reader.expected(row, "an array");
        at_ = end_;
    }

    template <class T>
    void read(T& value) {
        if constexpr (std::is_same_v<T, MigLayout>) {  // the rest of the row
            std::vector<MigInstance> instances;
            while (at_ < end_) read(instances.emplace_back());
            if (instances.size() <= MigLayout::capacity)
                value = MigLayout(instances);
            else
                reader_.report(row_, "expected at most 8 instances");
        } else if constexpr (Described<T>) {
            visit_fields(std::type_identity<T>{},
                         [&](const char*, auto member, const auto&...) { read(value.*member); });
        } else if (at_ < end_) {
            read_single(reader_, at_, value);
            at_ = reader_.document()[at_].end;
        } else {
            reader_.report(row_, "expected more elements");
        }
    }

    template <class T>
    static void read_single(json::Reader& reader, std::uint32_t at, T& value) {
        if constexpr (NamedEnum<T>) {
            std::int64_t number = 0;
            reader.read_integer<std::int64_t>(at, number, 0,
                                              static_cast<std::int64_t>(enum_names(T{}).size()) - 1);
            value = static_cast<T>(number);
        } else if constexpr (std::is_same_v<T, double>) {
            reader.read_field(at, value, NullIfUnknown{});
        } else {
            reader.read(at, value);
        }
    }

  private:
    json::Reader& reader_;
    std::uint32_t row_, at_, end_;
};

static void write_observation(json::Writer& w, const Observation& seen) {
    RowWriter rows(w);
    w.begin('{');
    w.write_key("window");
    w.write(seen.window);
    w.write_key("time_s");
    w.write_or_null(seen.time_s);
    w.write_key("wall_time_s");
    w.write_or_null(seen.wall_time_s);
    w.write_key("enabled");
    w.write(seen.enabled);
    w.write_key("operator_resume");
    w.write(seen.operator_resume);
    w.write_key("tenants");
    rows.rows(seen.tenants);
    w.write_key("feedback");
    rows.rows(seen.feedback);
    if (std::any_of(seen.guards.begin(), seen.guards.end(),
                    [](BackendStatus status) { return status != BackendStatus::ok; })) {
        w.write_key("guards");
        rows.row(seen.guards);
    }
    w.write_key("roots");
    rows.rows(seen.roots);
    if (std::any_of(seen.nic_bytes_per_s.begin(), seen.nic_bytes_per_s.end(), is_usable)) {
        w.write_key("nic");
        rows.row(seen.nic_bytes_per_s);
    }
    w.write_key("numa_io");
    rows.row(seen.numa_io_bytes_per_s);
    w.write_key("irq");
    rows.row(seen.irq_per_s);
    w.write_key("gpus");
    rows.rows(seen.gpus);
    w.end('}');
}

/// @param at place of the observation in a line
static Observation read_observation(json::Reader& reader, std::uint32_t at) {
    Observation seen;
    const auto field = [&](std::string_view key, const auto& read) {
        if (const auto found = reader.document().find(at, key))
            read(*found);
        else
            reader.report(at, "field " + gpusched::quoted(key) + " is missing");
    };
    const auto single = [&](std::string_view key, auto& value) {
        field(key, [&](std::uint32_t place) { RowReader::read_single(reader, place, value); });
    };
    const auto list = [&](std::string_view key, auto& out) {
        field(key, [&](std::uint32_t place) {
            reader.each_element(place, [&](std::uint32_t element) {
                auto& value = out.emplace_back();
                if constexpr (Described<std::remove_cvref_t<decltype(value)>>)
                    RowReader(reader, element).read(value);
                else
                    RowReader::read_single(reader, element, value);
            });
        });
    };
    single("window", seen.window);
    single("time_s", seen.time_s);
    single("wall_time_s", seen.wall_time_s);
    single("enabled", seen.enabled);
    single("operator_resume", seen.operator_resume);
    list("tenants", seen.tenants);
    list("feedback", seen.feedback);
    if (reader.document().find(at, "guards")) list("guards", seen.guards);
    list("roots", seen.roots);
    if (reader.document().find(at, "nic")) list("nic", seen.nic_bytes_per_s);
    list("numa_io", seen.numa_io_bytes_per_s);
    list("irq", seen.irq_per_s);
    list("gpus", seen.gpus);
    return seen;
}

/// Parses a line of the log.
static json::Document parse_line(std::string_view line, std::string_view what) {
    Problems problems;
    auto document = json::Document::parse(line, what, problems);
    problems.throw_if_any();
    return document;
}

/// Returns the hash in the line of a window.
static std::uint64_t hash_in(std::string_view line) {
    constexpr std::string_view before = R"({"config":")";
    std::uint64_t hash = 0;
    if (line.starts_with(before))
        std::from_chars(line.data() + before.size(), line.data() + line.size(), hash, 16);
    return hash;
}

/// The kinds of lines that are not windows.
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

/// Appends a record with the fields that `write` adds.
template <class F>
void append_record(std::string& line, Record kind, const F& write, json::Surroundings surroundings = {}) {
    json::Writer w(line, detail::document_style(0), surroundings);
    w.begin('{');
    w.write_key("record");
    w.write(kind);
    write(w);
    w.end('}');
    line += '\n';
}

/// Applies a record of a start.
static void follow_start(const json::Document& document, ControllerOptions& options, ControllerState& state,
                         std::optional<std::uint64_t>& hash) {
    const auto config = document.find(0, "config"), memory = document.find(0, "memory");
    if (config) options = detail::read_config(document, *config);
    std::vector<NamedCarryover> named;
    Problems problems;
    json::Reader reader(document, problems, 1, options.host);
    if (memory) {
        reader.read(*memory, named);
        detail::check_protected(reader, *memory, named, options.host);
    }
    problems.throw_if_any();
    state = initial_state(options, by_tenant(named, options.host));
    hash = config ? std::nullopt : std::optional(options_hash(options));
}

/// Applies a line that is not a window to the replay of later lines.
static void follow(std::string_view line, ControllerOptions& options, ControllerState& state,
                   std::optional<std::uint64_t>& hash) {
    const auto document = parse_line(line, "audit record");
    Problems problems;
    json::Reader reader(document, problems);
    auto kind = Record::outcome;
    reader.read(reader.place_of(0, "record"), kind);
    problems.throw_if_any();
    if (kind == Record::start)
        follow_start(document, options, state, hash);
    else if (kind == Record::release)
        options.release_on_disable = true;
}

}  // namespace audit_detail

GPUSCHED_EXPORT std::uint64_t options_hash(const ControllerOptions& options) {
    std::uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a
    for (const unsigned char byte : write_config(options)) hash = (hash ^ byte) * 0x100000001B3ull;
    return hash;
}

GPUSCHED_EXPORT void append_audit_line(std::string& line, const Observation& seen,
                                       const ControllerState& state, const StepResult& result,
                                       std::uint64_t hash) {
    json::Writer w(line);
    audit_detail::RowWriter rows(w);
    char hex[20];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
    w.begin('{');
    w.write_key("config");
    w.write(std::string_view(hex));
    w.write_key("observation");
    audit_detail::write_observation(w, seen);
    w.write_key("states");
    w.begin('[');
    for (const auto& t : state.tenants) {
        w.next();
        w.begin('[');
        w.next();
        w.write(t.phase);
        rows.values(t.counter);
        rows.values(t.seen.ema.value);
        rows.values(t.flags.now.bits());
        w.next();
        rows.row(t.place.current);
        w.next();
        rows.row(t.place.good);
        w.end(']');
    }
    w.end(']');
    w.write_key("admission_open");
    w.write(state.admission_open);
    w.write_key("actions");
    rows.objects(result.wished);
    w.write_key("done");
    w.write(result.actions.size());
    w.write_key("events");
    rows.objects(result.events);
    w.write_key("candidates");
    rows.rows(result.candidates);
    w.end('}');
    line.push_back('\n');
}

GPUSCHED_EXPORT Observation parse_audit_observation(std::string_view line) {
    return parse_audit_observation(audit_detail::parse_line(line, "audit line"));
}

GPUSCHED_EXPORT Observation parse_audit_observation(const json::Document& document) {
    Problems problems;
    json::Reader reader(document, problems);
    Observation seen;
    if (const auto at = document.find(0, "observation"))
        seen = audit_detail::read_observation(reader, *at);
    else
        reader.report(0, "field 'observation' is missing");
    problems.throw_if_any();
    return seen;
}

GPUSCHED_EXPORT void append_start_record(std::string& line, const ControllerOptions& options,
                                         const ControllerCarryover& carryover) {
    validate(options);
    std::vector<NamedCarryover> memory;
    for (std::size_t i = 0; i < carryover.size(); ++i)
        if (carryover[i] != TenantCarryover{}) memory.push_back({options.host.tenants[i].name, carryover[i]});
    const auto fields = [&](json::Writer& w) {
        w.write_key("config");
        w.write_document(detail::config_format, 1, detail::document_of(options));
        if (memory.empty()) return;
        w.write_key("memory");
        w.write(memory);
    };
    audit_detail::append_record(line, audit_detail::Record::start, fields, options.host);
}

GPUSCHED_EXPORT void append_release_record(std::string& line) {
    audit_detail::append_record(line, audit_detail::Record::release, [](json::Writer&) {});
}

GPUSCHED_EXPORT void append_outcome_record(std::string& line, ActionKind kind, std::string_view target,
                                           BackendStatus status) {
    audit_detail::append_record(line, audit_detail::Record::outcome, [&](json::Writer& w) {
        w.write_key("kind");
        w.write(kind);
        w.write_key("target");
        w.write(target);
        w.write_key("status");
        w.write(status);
    });
}

GPUSCHED_EXPORT void append_resume_record(std::string& line, ResumeVerdict verdict,
                                          const std::vector<std::string>& reasons) {
    audit_detail::append_record(line, audit_detail::Record::resume, [&](json::Writer& w) {
        w.write_key("verdict");
        w.write(verdict);
        w.write_key("reasons");
        w.write(reasons);
    });
}

GPUSCHED_EXPORT void append_admission_record(std::string& line, const AdmissionAnswer& answer,
                                             const Host& host) {
    audit_detail::append_record(line, audit_detail::Record::admission, [&](json::Writer& w) {
        w.write_key("id");
        w.write(answer.newcomer.id);
        w.write_key("verdict");
        w.write(answer.verdict);
        if (!answer.place) return;
        const auto& device = mig_device(host.gpus[static_cast<std::size_t>(answer.place->gpu)].device);
        w.write_key("gpu");
        w.write(answer.place->gpu);
        w.write_key("profile");
        w.write(std::string_view(device.profiles[answer.place->instance.profile].key));
        w.write_key("slice");
        w.write(static_cast<std::int64_t>(answer.place->instance.start));
    });
}

GPUSCHED_EXPORT AuditReplay replay_audit(std::string_view log, const ControllerOptions& given) {
    constexpr std::string_view record = R"({"record":)", start = R"({"record":"start")";
    AuditReplay out;
    auto options = given;
    auto state = initial_state(options);
    // If the log has the options itself, its hash comes from the version that wrote it.
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
            // The writer died while it wrote this line; the next writer began a new line.
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

}  // namespace gpusched::control
