// JSON of the controller's documents: reads and writes tables of fields, and reports everything that is wrong.
#pragma once

#include <gpusched/control/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/detail/document_rules.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/nearest_names.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::control::detail {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
/// What messages say where a list of cores is none.
inline std::string cores_expected() {
    return "cores from 0 to " + number_text(most_cores - 1) + ", such as 0-3,8";
}

using FieldNames = std::initializer_list<std::string_view>;

using gpusched::detail::has_mark;

inline bool among(FieldNames names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// Reads an object's fields; whatever does not fit becomes a problem with its JSON pointer.
class FieldReader {
  public:
    /// @param host whose GPUs configurations name; documents without configurations need none
    FieldReader(const Json& j, std::string path, Problems& problems, const Host* host = nullptr)
        : j_(j), path_(std::move(path)), problems_(problems), host_(host) {
        if (!j.is_object()) bad(path_, j, "an object");
    }

    template <class T>
    void operator()(const char* name, T& value) const {
        if (const auto* found = take(name)) read(*found, at(name), value);
    }
    /// Reads the fields of a table, each under its name and by its rules.
    /// @param except names that are read otherwise, or not at all
    template <Described T>
    void read_all(T& object, FieldNames except = {}) const {
        visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
            auto& value = object.*member;
            if constexpr (has_mark<Inlined, decltype(rules)...>) {
                read_all(value, except);
            } else if (!among(except, name)) {
                const auto* found = take(name);
                if (found != nullptr) {
                    read(*found, at(name), value);
                    (gpusched::detail::check_rule(problems_, at(name), value, rules, {}), ...);
                } else if (has_mark<Required, decltype(rules)...> && j_.is_object()) {
                    problems_.add(at(name) + ": missing");
                }
            }
        });
    }
    /// The value of a field, or nullptr; either way the field is known.
    const Json* take(const char* name) const {
        known_.emplace_back(name);
        if (!j_.is_object()) return nullptr;
        const auto found = j_.find(name);
        return found == j_.end() ? nullptr : &*found;
    }
    /// Reports fields that nobody took.
    void finish() const {
        if (!j_.is_object()) return;
        for (const auto& [name, value] : j_.items())
            if (std::find(known_.begin(), known_.end(), name) == known_.end())
                problems_.add(at(name) + ": unknown field" + did_you_mean(name, known_));
    }
    /// Calls `each(element, path)` for the elements of an array.
    template <class F>
    void elements(const char* name, const F& each) const {
        const auto* list = take(name);
        if (list == nullptr) return;
        if (!list->is_array()) return bad(at(name), *list, "an array");
        for (std::size_t i = 0; i < list->size(); ++i) each((*list)[i], at(name) + "/" + number_text(i));
    }
    /// A part of the document, read with the same problems and host.
    [[nodiscard]] FieldReader within(const Json& j, std::string path) const {
        return {j, std::move(path), problems_, host_};
    }
    [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
    void bad(const std::string& where, const Json& value, std::string_view expected) const {
        auto text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
        if (text.size() > 60) text = text.substr(0, 60) + "...";
        problems_.add(bad_value(where.empty() ? "/" : where, text, expected));
    }

    template <class T>
    void read(const Json& v, const std::string& where, T& value) const {
        if constexpr (std::is_same_v<T, bool>) {
            if (!v.is_boolean()) return bad(where, v, "true or false");
            value = v.get<bool>();
        } else if constexpr (std::is_same_v<T, std::string>) {
            if (!v.is_string()) return bad(where, v, "a string");
            value = v.get<std::string>();
        } else if constexpr (std::is_same_v<T, double>) {
            if (!v.is_null() && !v.is_number()) return bad(where, v, "a number");
            value = v.is_null() ? unknown_signal : v.get<double>();
        } else if constexpr (NamedEnum<T>) {
            read_name(v, where, value);
        } else if constexpr (std::is_integral_v<T>) {
            // Unsigned numbers beyond int64 would wrap.
            const bool fits = v.is_number_integer() &&
                              (!v.is_number_unsigned() ||
                               v.get<std::uint64_t>() <=
                                   static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) &&
                              v.get<std::int64_t>() >= std::numeric_limits<T>::min() &&
                              v.get<std::int64_t>() <= std::numeric_limits<T>::max();
            if (!fits)
                return bad(where, v,
                           "an integer from " + number_text(std::numeric_limits<T>::min()) + " to " +
                               number_text(std::numeric_limits<T>::max()));
            value = static_cast<T>(v.get<std::int64_t>());
        } else if constexpr (std::is_same_v<T, CpuSet>) {
            try {
                value = parse_cpus(v.is_string() ? v.get<std::string>() : "?");
            } catch (const InvalidInput&) {
                bad(where, v, cores_expected());
            }
        } else if constexpr (std::is_same_v<T, Configuration>) {
            read_configuration(v, where, value);
        } else if constexpr (Described<T>) {
            const auto fields = within(v, where);
            fields.read_all(value);
            fields.finish();
        } else if constexpr (requires { typename T::mapped_type; }) {
            if (!v.is_object()) return bad(where, v, "an object");
            for (const auto& [name, item] : v.items()) read(item, where + "/" + name, value[name]);
        } else if constexpr (requires { value.has_value(); }) {
            read(v, where, value.emplace());
        } else {
            if (!v.is_array()) return bad(where, v, "an array");
            value.clear();
            for (std::size_t i = 0; i < v.size(); ++i)
                read(v[i], where + "/" + number_text(i), value.emplace_back());
        }
    }

  private:
    template <class E>
    void read_name(const Json& v, const std::string& where, E& value) const {
        if (!v.is_string()) return bad(where, v, "a string");
        std::vector<std::string> names;
        for (const auto& [enumerator, name] : enum_names(E{})) {
            if (v.get<std::string>() == name) {
                value = enumerator;
                return;
            }
            names.emplace_back(name);
        }
        problems_.add(bad_name(where, v.get<std::string>(), names));
    }

    /// `{"gpu": 0, "profile": "2g", "slice": 0, "quota_percent": 100, "cpus": "0-3"}`
    void read_configuration(const Json& v, const std::string& where, Configuration& value) const {
        const auto fields = within(v, where);
        std::string profile;
        int slice = 0;
        fields.read_all(value, {"instance"});
        fields("profile", profile);
        fields("slice", slice);
        fields.finish();
        if (value.gpu < 0 || static_cast<std::size_t>(value.gpu) >= host_->gpus.size())
            return bad(where + "/gpu", value.gpu, "an index into /host/gpus");
        int p = -1;
        try {
            p = mig_device(host_->gpus[static_cast<std::size_t>(value.gpu)].device).find(profile);
        } catch (const InvalidInput&) {
            return;  // the device's name is reported where it stands
        }
        if (p < 0) return bad(where + "/profile", profile, "the key of a profile of the GPU, such as 2g");
        if (slice < 0 || slice > 7) return bad(where + "/slice", slice, "0 to 7");
        value.instance = {static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(slice)};
    }

    const Json& j_;
    std::string path_;
    Problems& problems_;
    const Host* host_;
    mutable std::vector<std::string> known_{};
};

template <class T>
OrderedJson json_of(const T& value, const Host& host);

/// Writes the fields of a table, each under its name. What is absent is left out.
/// @param except names that are written otherwise, or not at all
template <Described T>
void write_all(OrderedJson& out, const T& object, const Host& host, FieldNames except = {}) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        const auto& value = object.*member;
        if constexpr (has_mark<Inlined, decltype(rules)...>) {
            write_all(out, value, host, except);
        } else {
            if (among(except, name)) return;
            if constexpr (has_mark<UnlessDefault, decltype(rules)...>)
                if (value == T{}.*member) return;
            if constexpr (requires { value.has_value(); }) {
                if (value) out[name] = json_of(*value, host);
            } else {
                out[name] = json_of(value, host);
            }
        }
    });
}

/// A value as documents hold it.
/// @param host whose GPUs configurations name
template <class T>
OrderedJson json_of(const T& value, const Host& host) {
    if constexpr (std::is_same_v<T, Configuration>) {
        const auto& device = mig_device(host.gpus[static_cast<std::size_t>(value.gpu)].device);
        return {{"gpu", value.gpu},
                {"profile", device.profiles[value.instance.profile].key},
                {"slice", value.instance.start},
                {"quota_percent", value.quota_percent},
                {"cpus", cpus_text(value.cpus)}};
    } else if constexpr (std::is_same_v<T, CpuSet>) {
        return cpus_text(value);
    } else if constexpr (Described<T>) {
        OrderedJson out = OrderedJson::object();
        write_all(out, value, host);
        return out;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
        return value;
    } else {
        auto out = OrderedJson::array();
        for (const auto& element : value) out.push_back(json_of(element, host));
        return out;
    }
}

/// A document as text; bytes that are no UTF-8 are replaced.
inline std::string text_of(const OrderedJson& document, int indent) {
    return document.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Adds a problem for each list element that names no protected tenant.
/// @param path of the list
template <class Named>
void check_protected(const std::vector<Named>& list, const std::string& path, const Host& host,
                     Problems& problems) {
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto& name = list[i].name;
        const auto is = [&](const HostTenant& t) { return t.is_protected && t.name == name; };
        if (std::none_of(host.tenants.begin(), host.tenants.end(), is))
            problems.add(bad_value(path + "/" + number_text(i) + "/name", gpusched::quoted(name),
                                   "the name of a protected tenant"));
    }
}

/// Parses JSON text.
/// @throws InvalidInput naming `what`; also where it breaks one of the rules for documents (document_rules.hpp)
inline Json parse_document(std::string_view text, std::string_view what) {
    // The parser takes a NUL byte for the end and drops what follows.
    if (text.find('\0') != text.npos) throw InvalidInput(std::string(what) + ": holds a NUL byte");
    std::vector<std::set<std::string, std::less<>>> keys;  // of the objects that are open, by depth
    const auto rules = [&](int depth, Json::parse_event_t event, const Json& parsed) {
        const auto at = static_cast<std::size_t>(depth);
        if (at > gpusched::detail::deepest_nesting)
            throw InvalidInput(std::string(what) + ": " + gpusched::detail::nested_too_deeply());
        if (event == Json::parse_event_t::object_start) {
            keys.resize(std::max(keys.size(), at + 2));
            keys[at + 1].clear();
        } else if (event == Json::parse_event_t::key) {
            const auto& key = parsed.get_ref<const std::string&>();
            if (!keys[at].insert(key).second)
                throw InvalidInput(std::string(what) + ": " + gpusched::detail::repeated_key(key));
        }
        return true;
    };
    try {
        return Json::parse(text, rules);
    } catch (const Json::exception& e) {
        // Without the exception's number, and without a line where the text is one.
        std::string_view why = e.what();
        if (const auto at = why.find("] "); at != why.npos) why.remove_prefix(at + 2);
        constexpr std::string_view first_line = "parse error at line 1, ";
        if (why.starts_with(first_line)) why.remove_prefix(first_line.size());
        throw InvalidInput(std::string(what) + ": not a JSON document: " + std::string(why));
    }
}

}  // namespace GPUSCHED_NAMESPACE::control::detail
