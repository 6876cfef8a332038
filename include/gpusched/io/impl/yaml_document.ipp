#pragma once

#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/detail/json_builder.hpp>
#include <gpusched/io/detail/yaml_document.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#ifdef GPUSCHED_HAS_LIBYAML
#include <yaml.h>
#endif

namespace GPUSCHED_NAMESPACE::io::detail {

GPUSCHED_INTERNAL Place Place::operator[](std::string_view key_asked) const {
    if (!is(JsonKind::object)) return {};
    for (auto at = at_ + 1; at < (*document_)[at_].end; at = (*document_)[at].end)
        if (document_->key((*document_)[at]) == key_asked && (*document_)[at].kind != JsonKind::null)
            return {*document_, at};
    return {};
}

GPUSCHED_INTERNAL std::vector<Place> Place::items() const {
    std::vector<Place> out;
    if (document_ == nullptr || (kind() != JsonKind::array && kind() != JsonKind::object)) return out;
    out.reserve((*document_)[at_].size);
    for (auto at = at_ + 1; at < (*document_)[at_].end; at = (*document_)[at].end)
        out.emplace_back(*document_, at);
    return out;
}

GPUSCHED_INTERNAL std::optional<std::string> Place::text() const {
    if (document_ == nullptr) return std::nullopt;
    const auto& value = (*document_)[at_];
    if (value.kind == JsonKind::string) return std::string(document_->string(value));
    if (value.kind == JsonKind::integer || value.kind == JsonKind::real || value.kind == JsonKind::boolean)
        return document_->describe(at_);
    return std::nullopt;
}

GPUSCHED_INTERNAL std::optional<double> Place::number() const {
    if (document_ == nullptr) return std::nullopt;
    const auto& value = (*document_)[at_];
    if (value.kind == JsonKind::integer) return static_cast<double>(value.integer);
    if (value.kind == JsonKind::real) return value.real;
    if (value.kind != JsonKind::string) return std::nullopt;
    double out = 0;
    return read_number(document_->string(value), out) ? std::optional(out) : std::nullopt;
}

#ifdef GPUSCHED_HAS_LIBYAML

/// Turns the events of libyaml into those of a JSON parser.
class YamlReader {
  public:
    YamlReader(std::string_view text, std::string source) : source_(std::move(source)) {
        if (yaml_parser_initialize(&parser_) == 0) throw BackendError(source_ + ": libyaml has no memory");
        if (text.empty()) text = "";  // libyaml wants a pointer even to nothing
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                     text.size());
    }
    YamlReader(const YamlReader&) = delete;
    YamlReader& operator=(const YamlReader&) = delete;
    ~YamlReader() { yaml_parser_delete(&parser_); }

    /// One document into the builder. @return false at the end of the text
    bool document(JsonBuilder& builder) {
        std::vector<bool> wants_key;  // of each open container: a mapping before a key
        while (true) {
            yaml_event_t event;
            if (yaml_parser_parse(&parser_, &event) == 0)
                fail(parser_.problem_mark, std::string("not a YAML document: ") +
                                               (parser_.problem != nullptr ? parser_.problem : "unreadable"));
            const std::unique_ptr<yaml_event_t, void (*)(yaml_event_t*)> owned(&event, yaml_event_delete);
            const auto value_done = [&](std::size_t containers) {
                if (containers > 0 && is_mapping_[containers - 1]) wants_key[containers - 1] = true;
            };
            const bool key_now = !wants_key.empty() && wants_key.back();
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
                    wants_key.back() = false;
                } else {
                    scalar(event, builder);
                    value_done(wants_key.size());
                }
                break;
            case YAML_MAPPING_START_EVENT:
            case YAML_SEQUENCE_START_EVENT: {
                const bool mapping = event.type == YAML_MAPPING_START_EVENT;
                if (key_now) fail(event.start_mark, "expected a name as key");
                if (!(mapping ? builder.start_object(0) : builder.start_array(0)))
                    throw InvalidInput(builder.failure);
                wants_key.push_back(mapping);
                is_mapping_.push_back(mapping);
                break;
            }
            case YAML_MAPPING_END_EVENT:
                builder.end_object();
                wants_key.pop_back(), is_mapping_.pop_back();
                value_done(wants_key.size());
                break;
            case YAML_SEQUENCE_END_EVENT:
                builder.end_array();
                wants_key.pop_back(), is_mapping_.pop_back();
                value_done(wants_key.size());
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
    static void scalar(const yaml_event_t& event, JsonBuilder& builder) {
        const auto text = text_of(event);
        if (event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE || event.data.scalar.plain_implicit == 0) {
            builder.string(text);
            return;
        }
        const auto is = [&](std::initializer_list<std::string_view> words) {
            return std::find(words.begin(), words.end(), text) != words.end();
        };
        if (is({"", "~", "null", "Null", "NULL"})) return void(builder.null());
        if (is({"true", "True", "TRUE"})) return void(builder.boolean(true));
        if (is({"false", "False", "FALSE"})) return void(builder.boolean(false));
        auto digits = std::string_view(text);
        if (digits.starts_with('+')) digits.remove_prefix(1);
        std::int64_t whole = 0;
        if (read_number(digits, whole)) return void(builder.number_integer(whole));
        double real = 0;
        if (read_number(digits, real) && digits.find_first_of("0123456789") != digits.npos &&
            digits.find_first_of("xXpP") == digits.npos)
            return void(builder.number_float(real, {}));
        builder.string(text);
    }

    std::string source_;
    std::vector<bool> is_mapping_;
    yaml_parser_t parser_{};
};

#endif

GPUSCHED_INLINE std::vector<JsonDocument>
JsonDocument::parse_yaml(std::string_view text, std::string_view source, Problems& problems) {
#ifdef GPUSCHED_HAS_LIBYAML
    std::vector<JsonDocument> out;
    YamlReader reader(text, std::string(source));
    while (true) {
        JsonDocument document;
        document.source_ = source;
        JsonBuilder builder{document, problems, text};
        const bool more = reader.document(builder);
        if (!document.values_.empty() && document.values_.front().kind != JsonKind::null)
            out.push_back(std::move(document));
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

/// Takes the first of several JSON documents off a text, as two calls of kubectl print them into one file: an object that begins a
/// line after the end of another. Within a document a comma stands there, and no string holds a line break.
[[nodiscard]] inline std::string_view take_json(std::string_view& text) {
    for (auto at = text.find("\n{"); at != text.npos; at = text.find("\n{", at + 1)) {
        const auto last = text.find_last_not_of(" \t\r\n", at);
        if (last == text.npos || text[last] != '}') continue;
        const auto first = text.substr(0, at + 1);
        text.remove_prefix(at + 1);
        return first;
    }
    return std::exchange(text, {});
}

GPUSCHED_INTERNAL std::vector<JsonDocument> read_objects(std::string_view text, const std::string& source,
                                                         Problems& problems) {
    if (text.size() > largest_document)
        throw InvalidInput(source + ": expected at most " + std::to_string(largest_document) + " bytes");
    const auto start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    std::vector<JsonDocument> out;
    if (start == text.npos || (text[start] != '{' && text[start] != '['))
        return JsonDocument::parse_yaml(text, source, problems);
    while (!text.empty()) {
        const auto name =
            out.empty() ? source : source + " (document " + std::to_string(out.size() + 1) + ")";
        out.push_back(JsonDocument::parse(take_json(text), name, problems));
    }
    return out;
}

GPUSCHED_INTERNAL std::vector<Place> kubernetes_objects(const std::vector<JsonDocument>& documents) {
    std::vector<Place> out;
    for (const auto& document : documents) {
        const Place root(document, 0);
        const auto kind = root["kind"].text();
        if (kind && kind->ends_with("List") && root["items"].is(JsonKind::array)) {
            for (const auto& item : root["items"].items()) out.push_back(item);
        } else {
            out.push_back(root);
        }
    }
    return out;
}

}  // namespace GPUSCHED_NAMESPACE::io::detail
