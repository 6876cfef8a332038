// SPDX-License-Identifier: Apache-2.0
// The decision core of the controller in Python, with its state, its last window and its log.
#pragma once

#include "support/arguments.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"

#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/core/fields.hpp>

#include <limits>

namespace gpusched::python {

/// What the controller may change of a tenant, with names.
struct NamedConfiguration {
    std::int32_t gpu = 0;              ///< Index of the GPU.
    std::string profile;               ///< Key of the instance.
    std::int32_t slice = 0;            ///< Its first memory slice.
    std::int32_t quota_percent = 100;  ///< Active threads of the MPS client in the instance.
    std::string cpus;                  ///< Cores, such as "0-3,8"; empty: not pinned.
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedConfiguration>, F&& field) {
    field("gpu", &NamedConfiguration::gpu);
    field("profile", &NamedConfiguration::profile);
    field("slice", &NamedConfiguration::slice);
    field("quota_percent", &NamedConfiguration::quota_percent);
    field("cpus", &NamedConfiguration::cpus);
}

/// An action with names.
struct NamedAction {
    control::ActionKind kind{};  ///< Kind of the action.
    control::Lever lever{};      ///< Lever of the controller.
    std::string tenant;          ///< Tenant that benefits.
    std::string target;          ///< Tenant that is restricted.
    std::int32_t value = 0;      ///< MB/s or percent.
    NamedConfiguration before;   ///< Present configuration of the tenant.
    NamedConfiguration after;    ///< Configuration after the action.
    std::string text;            ///< Description in words.
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedAction>, F&& field) {
    field("kind", &NamedAction::kind);
    field("lever", &NamedAction::lever);
    field("tenant", &NamedAction::tenant);
    field("target", &NamedAction::target);
    field("value", &NamedAction::value);
    field("before", &NamedAction::before);
    field("after", &NamedAction::after);
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
    control::ControllerCarryover carryover;      ///< of the controller before

    explicit Controller(control::ControllerOptions o, control::ControllerCarryover before = {})
        : options(std::move(o)), state(control::initial_state(options, before)),
          hash(control::options_hash(options)), carryover(std::move(before)) {}

    [[nodiscard]] const std::string& name(std::int32_t tenant) const {
        return options.host.tenants[static_cast<std::size_t>(tenant)].name;
    }
    [[nodiscard]] NamedConfiguration named(const control::Configuration& c) const {
        const auto& gpu = options.host.gpus[static_cast<std::size_t>(c.gpu)];
        return {c.gpu, std::string(control::mig_device(gpu.device).profiles[c.instance.profile].key),
                c.instance.start, c.quota_percent, control::cpus_text(c.cpus)};
    }
    [[nodiscard]] std::vector<NamedAction> named(const std::vector<control::Action>& actions) const {
        std::vector<NamedAction> out;
        for (const auto& a : actions)
            out.push_back({a.kind, a.lever, name(a.tenant), name(a.target), a.value, named(a.before),
                           named(a.after), control::describe(options, a)});
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
            row["lease"] = t.lease.offender < 0 ? py::object(py::none()) : py::str(name(t.lease.offender));
            out[options.host.tenants[i].name.c_str()] = row;
        }
        return out;
    }
};

}  // namespace gpusched::python
