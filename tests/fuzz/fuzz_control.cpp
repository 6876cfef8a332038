// SPDX-License-Identifier: Apache-2.0
// Any bytes are either documents of the controller, of which a configuration survives writing and reading, or an error that says why not.
#include <gpusched/control/audit.hpp>
#include <gpusched/control/carryover.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/core/errors.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace control = gpusched::control;

namespace {

/// A host with two GPUs, two protected tenants and another one.
const control::ControllerOptions& options() {
    static const auto made = control::parse_config(
        R"({"format": "gpusched.control", "version": 1,
         "host": {"roots": [{}], "gpus": [{}, {"device": "A100-80GB"}],
            "core_numa": [0, 0], "tenants": [
              {"name": "T1", "protected": true, "start": {"profile": "2g", "slice": 2, "cpus": "0-1"}},
              {"name": "T2", "protected": true, "start": {"gpu": 1, "profile": "3g"}},
               {"name": "T3", "gpu": 0}]}})");
    return made;
}

template <class F>
void told(const F& read) {
    try {
        read();
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
    } catch (const gpusched::BackendError&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto layouts = control::initial_state(options()).layouts;
    told([&] {
        const auto written = control::write_config(control::parse_config(text));
        if (control::write_config(control::parse_config(written)) != written) std::abort();
    });
    told([&] {
        const auto read = [](std::string_view document) {
            gpusched::Problems problems;
            const auto parsed = gpusched::json::Document::parse(document, "carryover", problems);
            problems.throw_if_any();
            return control::parse_carryover(parsed, options().host);
        };
        const auto carryover = read(text);
        if (read(control::write_carryover(carryover, options().host)) != carryover) std::abort();
    });
    told([&] { static_cast<void>(control::parse_signals(text, options(), 0, layouts)); });
    told([&] { static_cast<void>(control::replay_audit(std::string(text) + "\n", options())); });
    return 0;
}
