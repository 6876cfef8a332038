// The decision core of the controller in Python, with its state, its last window and its log.
#pragma once

#include "support/arguments.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"

#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/core/fields.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::python {

/// An action with names.
struct NamedAction {
    control::ActionKind kind{};  ///< Kind of the action.
    control::Lever lever{};      ///< Lever of the controller.
    std::string tenant;          ///< Tenant that benefits.
    std::string target;          ///< Tenant that is restricted.
    std::int32_t value = 0;      ///< MB/s or percent.
    std::string text;            ///< Description in words.
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedAction>, F&& field) {
    field("kind", &NamedAction::kind);
    field("lever", &NamedAction::lever);
    field("tenant", &NamedAction::tenant);
    field("target", &NamedAction::target);
    field("value", &NamedAction::value);
    field("text", &NamedAction::text);
}
/// An event with names.
struct NamedEvent {
    std::string tenant;       ///< Tenant of the event.
    control::Row row{};       ///< Row of the transition table in docs/control.md; "remark" if there is none.
    control::Phase before{};  ///< State before.
    control::Phase after{};   ///< State after.
    control::Cause cause{};   ///< Suspected cause of the violation.
    std::string reason;       ///< Reason.
    double loss = 0;          ///< Predicted, of the tenant's throughput over the hour.
    std::string text;         ///< Description in words.
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedEvent>, F&& field) {
    field("tenant", &NamedEvent::tenant);
    field("row", &NamedEvent::row);
    field("before", &NamedEvent::before);
    field("after", &NamedEvent::after);
    field("cause", &NamedEvent::cause);
    field("reason", &NamedEvent::reason);
    field("loss", &NamedEvent::loss);
    field("text", &NamedEvent::text);
}

/// A document of the controller: a dict, or JSON text.
inline json::Document control_document(const py::object& given, const char* source) {
    if (!py::isinstance<py::str>(given)) return to_document(given, source);
    Problems problems;
    auto document = json::Document::parse(OptionType<std::string>::read("document", given), source, problems);
    problems.throw_if_any();
    return document;
}

/// The decision core with its state and log.
struct Controller {
    control::ControllerOptions options;
    control::ControllerState state;
    control::StepResult result{};
    std::uint64_t hash = 0;
    std::int64_t next = 0;
    std::string log{};
    std::optional<control::Observation> seen{};  ///< the last window

    explicit Controller(control::ControllerOptions o)
        : options(std::move(o)), state(control::initial_state(options)),
          hash(control::options_hash(options)) {}

    [[nodiscard]] const std::string& name(std::int32_t tenant) const {
        return options.host.tenants[static_cast<std::size_t>(tenant)].name;
    }
    [[nodiscard]] std::vector<NamedAction> named(const std::vector<control::Action>& actions) const {
        std::vector<NamedAction> out;
        for (const auto& a : actions)
            out.push_back(
                {a.kind, a.lever, name(a.tenant), name(a.target), a.value, control::describe(options, a)});
        return out;
    }
    [[nodiscard]] std::vector<NamedEvent> events() const {
        std::vector<NamedEvent> out;
        for (const auto& e : result.events)
            out.push_back({name(e.tenant), e.row, e.from, e.to, e.cause, e.reason, e.loss,
                           control::describe(options, e)});
        return out;
    }
    void step(const json::Document& signals) {
        auto read = control::parse_signals(signals, options, next, state.layouts);
        control::step(state, read, options, result);
        next = read.window + (read.window < std::numeric_limits<std::int64_t>::max());
        control::append_audit_line(log, read, state, result, hash);
        seen = std::move(read);
    }
    [[nodiscard]] Typed<"dict[str, dict[str, Any]]"> states() const {
        py::dict out;
        for (std::size_t i = 0; i < state.tenants.size(); ++i) {
            if (!options.host.tenants[i].is_protected) continue;
            const auto& t = state.tenants[i];
            const auto& gpu = options.host.gpus[static_cast<std::size_t>(t.place.current.gpu)];
            py::dict row;
            row["phase"] = t.phase;
            row["counter"] = t.counter;
            row["ema_ms"] = t.seen.ema.known ? py::object(py::float_(t.seen.ema.value)) : py::none();
            row["gpu"] = t.place.current.gpu;
            row["profile"] = control::mig_device(gpu.device).profiles[t.place.current.instance.profile].key;
            row["slice"] = int{t.place.current.instance.start};
            row["quota_percent"] = t.place.current.quota_percent;
            row["cpus"] = control::cpus_text(t.place.current.cpus);
            row["frozen"] = t.frozen;
            out[options.host.tenants[i].name.c_str()] = row;
        }
        return out;
    }
};

}  // namespace gpusched::python
