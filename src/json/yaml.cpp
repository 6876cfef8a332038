// SPDX-License-Identifier: Apache-2.0
#include "json/builder.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/document.hpp>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>

#ifdef GPUSCHED_HAS_LIBYAML
#include <yaml.h>
#endif

namespace gpusched::json {

#ifdef GPUSCHED_HAS_LIBYAML

namespace detail {

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
    bool document(Builder& builder) {
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
    static void scalar(const yaml_event_t& event, Builder& builder) {
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

}  // namespace detail

#endif

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
        Document document;
        document.source_ = source;
        detail::Builder builder(document, problems, text);
        const bool more = reader.document(builder);
        if (!document.values_.empty() && document.values_.front().kind != Kind::null)
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

GPUSCHED_EXPORT Document Document::read(const std::string& path, Problems& problems) {
    const auto text = read_file(path);
    if (!path.ends_with(".yaml") && !path.ends_with(".yml")) return parse(text, path, problems);
    auto all = parse_yaml(text, path, problems);
    if (all.size() != 1)
        throw InvalidInput(path + ": expected one document, found " + std::to_string(all.size()));
    return std::move(all.front());
}

}  // namespace gpusched::json
