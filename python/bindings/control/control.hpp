// The decision core of the controller in Python: with its state, its last window and its log.
#pragma once

#include "core/arguments.hpp"
#include "core/keywords.hpp"

#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::python {

/// An action with names.
struct NamedAction {
    Name<control::ActionKind> kind;
    std::string lever, tenant, target, text;
    int value = 0;
};
struct NamedEvent {
    std::string tenant, before, after;
    Name<control::Cause> cause;
    std::string reason, text;
    int row = 0;
    double loss = 0;
};

inline std::string config_text(const py::object& options) {
    return py::isinstance<py::str>(options) ? OptionType<std::string>::read("document", options)
                                            : json_text(options);
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

    [[nodiscard]] std::vector<NamedAction> named(const std::vector<control::Action>& actions) const {
        std::vector<NamedAction> out;
        const auto name = [&](std::int32_t i) {
            return options.host.tenants[static_cast<std::size_t>(i)].name;
        };
        for (const auto& a : actions)
            out.push_back({std::string(enum_name(a.kind)), std::string(enum_name(a.lever)), name(a.tenant),
                           name(a.target), control::describe(options, a), a.value});
        return out;
    }
    [[nodiscard]] std::vector<NamedEvent> events() const {
        std::vector<NamedEvent> out;
        for (const auto& e : result.events)
            out.push_back({options.host.tenants[static_cast<std::size_t>(e.tenant)].name,
                           std::string(enum_name(e.from)), std::string(enum_name(e.to)),
                           std::string(enum_name(e.cause)), e.reason, control::describe(options, e),
                           static_cast<int>(e.row), e.loss});
        return out;
    }
    void step(const std::string& signals) {
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
            row["phase"] = enum_name(t.phase);
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

void bind_tenant_admission(py::module_& m);  // within gpusched.control

}  // namespace gpusched::python
