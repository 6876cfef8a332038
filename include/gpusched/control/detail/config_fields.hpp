// Fields of the controller's documents, and a reader that finds everything that is wrong with them.
#pragma once

#include <gpusched/control/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/nearest_names.hpp>

#include <nlohmann/json.hpp>

#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::control::detail {

template <class O, class F>
void flag_fields(O& f, const F& field) {
    field("guard_io", f.guard_io), field("guard_mps", f.guard_mps), field("place", f.place);
    field("mig", f.mig), field("pin", f.pin), field("relax", f.relax), field("rollback", f.rollback);
    field("admission", f.admission), field("dry_run", f.dry_run);
    field("predict", f.predict);
}

template <class O, class F>
void option_fields(O& o, const F& field) {
    field("release_on_disable", o.release_on_disable), field("window_s", o.window_s);
    field("least_samples", o.least_samples), field("stale_after", o.stale_after);
    field("persistence", o.persistence), field("dwell", o.dwell), field("guard_dwell", o.guard_dwell);
    field("cool_down", o.cool_down), field("validation", o.validation), field("relax_after", o.relax_after);
    field("reconfigure_timeout", o.reconfigure_timeout), field("lease_s", o.lease_s);
    field("ema_weight", o.ema_weight), field("low_factor", o.low_factor);
    field("worse_factor", o.worse_factor), field("relax_below", o.relax_below);
    field("relax_limit", o.relax_limit), field("pcie_high", o.pcie_high), field("pcie_low", o.pcie_low);
    field("io_high", o.io_high), field("io_low", o.io_low), field("irq_high", o.irq_high);
    field("irq_low", o.irq_low), field("sm_high", o.sm_high), field("sm_low", o.sm_low);
    field("io_levels_mb_s", o.io_levels_mb_s), field("quota_levels", o.quota_levels);
    field("better_by", o.better_by), field("relax_score", o.relax_score), field("pause_s", o.pause_s);
    field("loss_budget", o.loss_budget), field("system_loss_budget", o.system_loss_budget);
    field("structural_per_hour", o.structural_per_hour), field("hour_s", o.hour_s);
}

template <class O, class F>
void root_fields(O& r, const F& field) {
    field("capacity_bytes_per_s", r.capacity_bytes_per_s), field("bridge", r.bridge), field("numa", r.numa);
}

template <class O, class F>
void gpu_fields(O& g, const F& field) {
    field("device", g.device), field("root", g.root), field("numa", g.numa);
}

template <class O, class F>
void tenant_fields(O& t, const F& field) {
    field("name", t.name), field("protected", t.is_protected), field("tau_ms", t.tau_ms);
    field("gpu", t.gpu), field("numa", t.numa), field("follows", t.follows);
}

template <class O, class F>
void signal_fields(O& t, const F& field) {
    field("present", t.present), field("p50_ms", t.p50_ms), field("p95_ms", t.p95_ms);
    field("p99_ms", t.p99_ms), field("p999_ms", t.p999_ms), field("ttft_p99_ms", t.ttft_p99_ms);
    field("count", t.count), field("misses", t.misses), field("offered_per_s", t.offered_per_s);
    field("completed_per_s", t.completed_per_s), field("pcie_bytes_per_s", t.pcie_bytes_per_s);
    field("io_bytes_per_s", t.io_bytes_per_s), field("sm_active", t.sm_active);
    field("dram_active", t.dram_active), field("memory_used_mib", t.memory_used_mib);
}

using Json = nlohmann::json;

/// Reads an object's fields; whatever does not fit becomes a problem with its JSON pointer.
class FieldReader {
  public:
    FieldReader(const Json& j, std::string path, Problems& problems)
        : j_(j), path_(std::move(path)), problems_(problems) {
        if (!j.is_object()) bad(path_, j, "an object");
    }

    template <class T>
    void operator()(const char* name, T& value) const {
        if (const auto* found = take(name)) read(*found, at(name), value);
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
        for (const auto& [name, value] : j_.items()) {
            bool known = false;
            for (const auto& k : known_) known |= k == name;
            if (!known) problems_.add(at(name.c_str()) + ": unknown field" + did_you_mean(name, known_));
        }
    }
    /// Calls `each(element, path)` for the elements of an array.
    template <class F>
    void elements(const char* name, const F& each) const {
        const auto* list = take(name);
        if (list == nullptr) return;
        if (!list->is_array()) return bad(at(name), *list, "an array");
        for (std::size_t i = 0; i < list->size(); ++i) each((*list)[i], at(name) + "/" + number_text(i));
    }
    [[nodiscard]] std::string at(const char* name) const { return path_ + "/" + name; }
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
            if (v.is_null()) {
                value = unknown_signal;
                return;
            }
            if (!v.is_number()) return bad(where, v, "a number");
            value = v.get<double>();
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
        } else {
            if (!v.is_array()) return bad(where, v, "an array");
            value.clear();
            for (std::size_t i = 0; i < v.size(); ++i) {
                typename T::value_type item{};
                read(v[i], where + "/" + number_text(i), item);
                value.push_back(item);
            }
        }
    }

  private:
    const Json& j_;
    std::string path_;
    Problems& problems_;
    mutable std::vector<std::string> known_{};
};

/// JSON text as an object. @throws InvalidInput naming `what`; also where it is nested deeper than any document, which
///     to tell of would need a stack as deep
inline Json parse_document(std::string_view text, std::string_view what) {
    // The parser takes a NUL byte for the end and drops what follows.
    if (text.find('\0') != text.npos) throw InvalidInput(std::string(what) + ": holds a NUL byte");
    const auto shallow = [&](int depth, Json::parse_event_t, const Json&) {
        constexpr int deepest = 64;
        if (depth > deepest)
            throw InvalidInput(std::string(what) + ": nested deeper than " + number_text(deepest) +
                               " levels");
        return true;
    };
    try {
        return Json::parse(text, shallow);
    } catch (const Json::exception& e) {
        throw InvalidInput(std::string(what) + ": " + e.what());
    }
}

}  // namespace GPUSCHED_NAMESPACE::control::detail
