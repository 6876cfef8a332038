// SPDX-License-Identifier: Apache-2.0
// Parses JSON through nlohmann-json and YAML through libyaml into Documents.
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/document.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>

#ifdef GPUSCHED_HAS_LIBYAML
#include <yaml.h>
#endif

namespace gpusched::json {

namespace detail {

/// Receives the events of nlohmann's parser, which stops if an event returns false.
struct Builder : DocumentBuilder {
    Problems& problems;
    std::string_view text;
    std::string_view source;
    std::vector<std::uint32_t> last_owner{};  // by key: the object that contained it last
    std::string failure{};

    Builder(Document& out, Problems& found, std::string_view parsed, std::string_view name)
        : DocumentBuilder{out}, problems(found), text(parsed), source(name) {}

    bool start(Kind kind) {
        if (begin(kind)) return true;
        failure =
            document.where(open.back()) + "nested deeper than " + std::to_string(deepest_nesting) + " levels";
        return false;
    }

    bool null() { return add_null(), true; }
    bool boolean(bool value) { return add_boolean(value), true; }
    bool number_integer(std::int64_t value) { return add_integer(value), true; }
    bool number_unsigned(std::uint64_t value) {
        if (value <= INT64_MAX) return number_integer(static_cast<std::int64_t>(value));
        return number_float(static_cast<double>(value), {});
    }
    bool number_float(double value, const std::string&) { return add_real(value), true; }
    bool string(const std::string& value) { return add_string(value), true; }
    bool binary(const nlohmann::json::binary_t&) { return false; }  // JSON text has none
    bool start_object(std::size_t) { return start(Kind::object); }
    bool start_array(std::size_t) { return start(Kind::array); }
    bool end_array() { return end(), true; }
    bool key(const std::string& value) { return set_key(value), true; }
    bool end_object() {
        const auto object = open.back();
        end();
        last_owner.resize(key_count(), UINT32_MAX);
        for (const auto at : document.children(object)) {
            auto& owner = last_owner[document[at].key];
            if (owner == object) {  // JSON allows it, and readers disagree about which one counts
                problems.add(problems.full() ? std::string()
                                             : document.where(object) + "key " +
                                                   gpusched::quoted(printable(document.key(document[at]))) +
                                                   " appears more than once");
                hide(at);
            }
            owner = object;
        }
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
        // Without the exception's number and position, which counts columns in another way.
        std::string_view what = error.what();
        if (const auto at = what.find("] "); at != what.npos) what.remove_prefix(at + 2);
        if (what.starts_with("parse error at "))
            if (const auto at = what.find(": "); at != what.npos) what.remove_prefix(at + 2);
        const auto before = text.substr(0, std::min(position, text.size()));
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const auto column =
            std::max<std::size_t>(1, before.size() - (before.rfind('\n') + 1));  // npos + 1 = 0
        failure = std::string(source) + ":" + std::to_string(line) + ":" + std::to_string(column) +
                  ": not a JSON document: " + printable(what, 300);
        return false;
    }
};

#ifdef GPUSCHED_HAS_LIBYAML

/// Turns the events of libyaml into those of a JSON parser.
class YamlReader {
  public:
    YamlReader(std::string_view text, std::string source) : source_(std::move(source)) {
        if (yaml_parser_initialize(&parser_) == 0) throw BackendError(source_ + ": libyaml has no memory");
        if (text.empty()) text = "";  // libyaml needs a pointer even for an empty text
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                     text.size());
    }
    YamlReader(const YamlReader&) = delete;
    YamlReader& operator=(const YamlReader&) = delete;
    ~YamlReader() { yaml_parser_delete(&parser_); }

    /// Reads one document into the builder. @return false at the end of the text
    bool document(Builder& builder) {
        struct Container {
            bool mapping, key_next;
        };
        std::vector<Container> open;
        while (true) {
            yaml_event_t event;
            if (yaml_parser_parse(&parser_, &event) == 0)
                fail(parser_.problem_mark, std::string("not a YAML document: ") +
                                               (parser_.problem != nullptr ? parser_.problem : "unreadable"));
            const std::unique_ptr<yaml_event_t, void (*)(yaml_event_t*)> owned(&event, yaml_event_delete);
            const bool key_now = !open.empty() && open.back().key_next;
            const auto value_done = [&] {
                if (!open.empty() && open.back().mapping) open.back().key_next = true;
            };
            switch (event.type) {
            case YAML_STREAM_END_EVENT:
                return false;
            case YAML_DOCUMENT_END_EVENT:
                return true;
            case YAML_ALIAS_EVENT:
                fail(event.start_mark, "expected no aliases, found *" +
                                           printable(reinterpret_cast<const char*>(event.data.alias.anchor)));
            case YAML_SCALAR_EVENT:
                if (key_now) {
                    builder.key(text_of(event));
                    open.back().key_next = false;
                } else {
                    scalar(event, builder);
                    value_done();
                }
                break;
            case YAML_MAPPING_START_EVENT:
            case YAML_SEQUENCE_START_EVENT: {
                const bool mapping = event.type == YAML_MAPPING_START_EVENT;
                if (key_now) fail(event.start_mark, "expected a name as key");
                if (!(mapping ? builder.start_object(0) : builder.start_array(0)))
                    throw InvalidInput(builder.failure);
                open.push_back({mapping, mapping});
                break;
            }
            case YAML_MAPPING_END_EVENT:
            case YAML_SEQUENCE_END_EVENT:
                if (open.back().mapping)
                    builder.end_object();
                else
                    builder.end_array();
                open.pop_back();
                value_done();
                break;
            default:  // starts of the stream and of documents
                break;
            }
        }
    }

  private:
    [[noreturn]] void fail(const yaml_mark_t& mark, const std::string& what) {
        throw InvalidInput(source_ + ":" + std::to_string(mark.line + 1) + ":" +
                           std::to_string(mark.column + 1) + ": " + what);
    }
    static std::string text_of(const yaml_event_t& event) {
        return {reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length};
    }
    static void scalar(const yaml_event_t& event, Builder& builder) {
        const auto text = text_of(event);
        if (event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE || event.data.scalar.plain_implicit == 0)
            return builder.add_string(text);
        const auto is = [&](std::initializer_list<std::string_view> words) {
            return std::find(words.begin(), words.end(), text) != words.end();
        };
        if (is({"", "~", "null", "Null", "NULL"})) return builder.add_null();
        if (is({"true", "True", "TRUE"})) return builder.add_boolean(true);
        if (is({"false", "False", "FALSE"})) return builder.add_boolean(false);
        auto digits = std::string_view(text);
        if (digits.starts_with('+')) digits.remove_prefix(1);
        std::int64_t integer = 0;
        if (read_number(digits, integer)) return builder.add_integer(integer);
        double real = 0;
        if (read_number(digits, real) && digits.find_first_of("0123456789") != digits.npos &&
            digits.find_first_of("xXpP") == digits.npos)
            return builder.add_real(real);
        builder.add_string(text);
    }

    std::string source_;
    yaml_parser_t parser_{};
};

#endif

}  // namespace detail

GPUSCHED_EXPORT Document Document::parse(std::string_view text, std::string_view source, Problems& problems) {
    if (text.size() > largest_document)
        throw InvalidInput(std::string(source) + ": expected at most " + std::to_string(largest_document) +
                           " bytes");
    // The parser takes a NUL byte for the end and drops the rest.
    if (const auto at = text.find('\0'); at != text.npos && find_invalid_utf8(text) == text.npos)
        throw InvalidInput(
            std::string(source) + ": line " +
            std::to_string(1 +
                           std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
            " holds a NUL byte");
    auto document = DocumentBuilder::start(std::string(source), text.size() / 16);
    detail::Builder builder(document, problems, text, source);
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) throw InvalidInput(builder.failure);
    return document;
}

GPUSCHED_EXPORT bool reads_yaml() noexcept {
#ifdef GPUSCHED_HAS_LIBYAML
    return true;
#else
    return false;
#endif
}

GPUSCHED_EXPORT std::vector<Document> Document::parse_yaml(std::string_view text, std::string_view source,
                                                           Problems& problems) {
#ifdef GPUSCHED_HAS_LIBYAML
    std::vector<Document> out;
    detail::YamlReader reader(text, std::string(source));
    while (true) {
        auto document = DocumentBuilder::start(std::string(source));
        detail::Builder builder(document, problems, text, source);
        const bool more = reader.document(builder);
        if (!builder.empty() && document[0].kind != Kind::null) out.push_back(std::move(document));
        if (!more) return out;
    }
#else
    (void)text, (void)problems;
    throw BackendError(
        std::string(source) +
        ": this build of gpusched reads no YAML, only JSON: it was built without libyaml (Debian and "
        "Ubuntu: apt-get install libyaml-dev)");
#endif
}

GPUSCHED_EXPORT Document Document::read(const std::string& path, Problems& problems) {
    const auto text = read_file(path);
    if (!path.ends_with(".yaml") && !path.ends_with(".yml")) return parse(text, path, problems);
    auto all = parse_yaml(text, path, problems);
    if (all.size() != 1)
        throw InvalidInput(path + ": expected one document, found " + std::to_string(all.size()));
    return std::move(all.front());
}

GPUSCHED_EXPORT std::optional<std::uint32_t> Document::find(std::uint32_t object,
                                                            std::string_view key_asked) const {
    if (values_[object].kind != Kind::object) return std::nullopt;
    for (const auto at : children(object))
        if (key(values_[at]) == key_asked) return at;
    return std::nullopt;
}

GPUSCHED_EXPORT std::uint64_t Document::next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

GPUSCHED_EXPORT std::string Document::pointer(std::uint32_t at) const {
    // The last child found on each level: without it, the positions of all elements of a list take quadratic
    // time.
    struct Found {
        std::uint64_t document = 0;
        std::uint32_t parent = 0, child = 0;
        std::size_t position = 0;
    };
    thread_local std::array<Found, deepest_nesting + 1> last;
    std::string path;
    std::size_t level = 0;
    for (std::uint32_t here = 0; here != at;) {
        auto& known = last[level++];
        if (known.document != id_ || known.parent != here || known.child > at)
            known = {id_, here, here + 1, 0};
        auto& [document, parent, child, position] = known;
        for (; values_[child].end <= at; child = values_[child].end) ++position;
        path += '/';
        if (values_[here].kind == Kind::array) {
            path += std::to_string(position);
        } else {
            for (const char c : printable(key(values_[child]))) {
                if (c == '~')
                    path += "~0";
                else if (c == '/')
                    path += "~1";
                else
                    path += c;
            }
        }
        here = child;
    }
    return path;
}

GPUSCHED_EXPORT Document Document::part(std::uint32_t at) const {
    Document part;
    part.source_ = source_ + (at == 0 ? "" : ": " + pointer(at));
    part.values_.assign(values_.begin() + at, values_.begin() + values_[at].end);
    for (auto& value : part.values_) value.end -= at;
    part.strings_ = strings_;
    part.keys_ = keys_;
    return part;
}

GPUSCHED_EXPORT std::string Document::where(std::uint32_t at) const {
    return source_ + ": " + (at == 0 ? std::string() : pointer(at) + ": ");
}

GPUSCHED_EXPORT std::string Document::describe(std::uint32_t at) const {
    const auto& value = values_[at];
    switch (value.kind) {
    case Kind::null:
        return "null";
    case Kind::boolean:
        return value.integer != 0 ? "true" : "false";
    case Kind::integer:
        return std::to_string(value.integer);
    case Kind::string:
        return '"' + printable(string(value)) + '"';
    case Kind::array:
        return "an array";
    case Kind::object:
        return "an object";
    case Kind::real:
        break;
    }
    char digits[32];
    const auto [end, error] =
        std::to_chars(digits, digits + sizeof digits, value.real, std::chars_format::general);
    return {digits, end};
}

}  // namespace gpusched::json
