// SPDX-License-Identifier: Apache-2.0
// Writes, parses and replays the audit log.
#include "control/documents.hpp"

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
    /// Appends the value of a key: parts as rows, lists of parts as lists of rows, other enumerators by name.
    template <class T>
    void value(const T& x) {
        if constexpr (std::is_same_v<T, double>)
            out_.write_or_null(x);
        else if constexpr (std::is_same_v<T, Row>)  // rows of the table by number
            out_.write(static_cast<std::int64_t>(x));
        else if constexpr (std::is_same_v<T, const char*>)
            out_.write(std::string_view(x));
        else if constexpr (Described<T>)
            row(x);
        else if constexpr (requires { requires Described<typename T::value_type>; })
            list(x, [&](const auto& element) { row(element); });
        else if constexpr (requires { typename T::value_type; })
            row(x);
        else
            out_.write(x);
    }
    /// Appends a list of objects.
    template <Described T>
    void objects(const std::vector<T>& objects) {
        list(objects, [&](const T& x) {
            out_.begin('{');
            visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&...) {
                out_.write_key(name);
                value(x.*member);
            });
            out_.end('}');
        });
    }

  private:
    template <class T, class F>
    void list(const std::vector<T>& elements, const F& append) {
        out_.begin('[');
        for (const auto& element : elements) {
            out_.next();
            append(element);
        }
        out_.end(']');
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
                                              static_cast<std::int64_t>(enumerators<T>().size()) - 1);
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

/// Calls `field` for the parts of an observation in the order of the log, with `UnlessDefault` for parts that
/// may be missing.
template <class F>
constexpr void visit_observation(F&& field) {
    field("window", &Observation::window);
    field("time_s", &Observation::time_s);
    field("wall_time_s", &Observation::wall_time_s);
    field("enabled", &Observation::enabled);
    field("operator_resume", &Observation::operator_resume);
    field("tenants", &Observation::tenants);
    field("feedback", &Observation::feedback);
    field("guards", &Observation::guards, UnlessDefault{});
    field("roots", &Observation::roots);
    field("nic", &Observation::nic_bytes_per_s, UnlessDefault{});
    field("numa_io", &Observation::numa_io_bytes_per_s);
    field("irq", &Observation::irq_per_s);
    field("gpus", &Observation::gpus);
}

/// Returns true if all guards are set.
static bool is_default(const std::vector<BackendStatus>& guards) {
    return std::ranges::all_of(guards, [](BackendStatus status) { return status == BackendStatus::ok; });
}

/// Returns true if no rate is known.
static bool is_default(const std::vector<double>& rates) { return std::ranges::none_of(rates, is_usable); }

static void write_observation(json::Writer& w, const Observation& seen) {
    RowWriter rows(w);
    w.begin('{');
    visit_observation([&](const char* key, auto member, auto... unless_default) {
        const auto& value = seen.*member;
        if constexpr (sizeof...(unless_default) > 0)
            if (is_default(value)) return;
        w.write_key(key);
        rows.value(value);
    });
    w.end('}');
}

/// @param at place of the observation in a line
static Observation read_observation(json::Reader& reader, std::uint32_t at) {
    Observation seen;
    visit_observation([&](const char* key, auto member, auto... unless_default) {
        auto& out = seen.*member;
        const auto found = reader.document().find(at, key);
        if (!found) {
            if (sizeof...(unless_default) == 0) reader.report_missing(at, key);
        } else if constexpr (requires { out.emplace_back(); }) {
            reader.each_element(*found, [&](std::uint32_t element) {
                auto& value = out.emplace_back();
                if constexpr (Described<std::remove_cvref_t<decltype(value)>>)
                    RowReader(reader, element).read(value);
                else
                    RowReader::read_single(reader, element, value);
            });
        } else {
            RowReader::read_single(reader, *found, out);
        }
    });
    return seen;
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

/// A tenant's carryover in the record of a start.
struct NamedCarryover {
    std::string name{};
    TenantCarryover carryover{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedCarryover>, F&& field) {
    field("name", &NamedCarryover::name);
    field("carryover", &NamedCarryover::carryover, Inlined{});
}

/// Reads a list of the carryover of protected tenants.
static ControllerCarryover read_memory(json::Reader& reader, std::uint32_t at, const Host& host) {
    std::vector<NamedCarryover> memory;
    reader.read(at, memory);
    ControllerCarryover out(host.tenants.size());
    auto element = memory.begin();
    for (const auto place : reader.document().children(at)) {
        if (element == memory.end()) break;  // not a list
        const auto& [name, carryover] = *element++;
        const auto found = std::ranges::find_if(host.tenants, [&](const HostTenant& tenant) {
            return tenant.is_protected && tenant.name == name;
        });
        if (found != host.tenants.end())
            out[static_cast<std::size_t>(found - host.tenants.begin())] = carryover;
        else if (reader.kind(place) == json::Kind::object)
            reader.report(reader.place_of(place, "name"),
                          "expected the name of a protected tenant, found " + gpusched::quoted(name));
    }
    return out;
}

/// Applies a record of a start.
static void follow_start(const json::Document& document, ControllerOptions& options, ControllerState& state,
                         std::optional<std::uint64_t>& hash) {
    const auto config = document.find(0, "config"), memory = document.find(0, "memory");
    if (config) options = detail::read_config(document, *config);
    Problems problems;
    json::Reader reader(document, problems, 1, options.host);
    ControllerCarryover carryover;
    if (memory) carryover = read_memory(reader, *memory, options.host);
    problems.throw_if_any();
    state = initial_state(options, carryover);
    hash = config ? std::nullopt : std::optional(options_hash(options));
}

/// Applies a line that is not a window to the replay of later lines.
static void follow(std::string_view line, ControllerOptions& options, ControllerState& state,
                   std::optional<std::uint64_t>& hash) {
    const auto document = detail::parsed(line, "audit record");
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
    rows.value(result.candidates);
    w.end('}');
    line.push_back('\n');
}

GPUSCHED_EXPORT Observation parse_audit_observation(std::string_view line) {
    return parse_audit_observation(detail::parsed(line, "audit line"));
}

GPUSCHED_EXPORT Observation parse_audit_observation(const json::Document& document) {
    Problems problems;
    json::Reader reader(document, problems);
    Observation seen;
    if (const auto at = document.find(0, "observation"))
        seen = audit_detail::read_observation(reader, *at);
    else
        reader.report_missing(0, "observation");
    problems.throw_if_any();
    return seen;
}

GPUSCHED_EXPORT void append_start_record(std::string& line, const ControllerOptions& options,
                                         const ControllerCarryover& carryover) {
    validate(options);
    std::vector<audit_detail::NamedCarryover> memory;
    for (std::size_t i = 0; i < carryover.size(); ++i)
        if (carryover[i] != TenantCarryover{}) memory.push_back({options.host.tenants[i].name, carryover[i]});
    json::Writer w(line, detail::document_style(0), options.host);
    w.begin('{');
    w.write_key("record");
    w.write(audit_detail::Record::start);
    w.write_key("config");
    w.write_document(detail::config_format, 1, detail::document_of(options));
    if (!memory.empty()) {
        w.write_key("memory");
        w.write(memory);
    }
    w.end('}');
    line += '\n';
}

GPUSCHED_EXPORT void append_release_record(std::string& line) { line += "{\"record\":\"release\"}\n"; }

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
