// SPDX-License-Identifier: Apache-2.0
// Hosts whose GPUs are not all the same part.
#include "support/control_host.hpp"

using namespace gpusched;
using namespace gpusched::control;

TEST_CASE("no tenant moves to a part on which its profile has less memory") {
    const auto& device = mig_device("A100-80GB");
    const auto two = static_cast<std::uint8_t>(device.find("2g"));
    for (const auto variant : {Variant::placement, Variant::full, Variant::ours})
        for (const bool less : {true, false}) {
            CAPTURE(enum_name(variant), less);
            auto o = test::control_options();
            o.flags = variant_flags(variant);
            o.flags.guard_io = false;
            o.host.gpus[less ? 0 : 1].device = "A100-80GB";
            test::ControlHost host(o);
            auto state = initial_state(o);
            StepResult out;
            int moved = 0;
            for (std::int64_t window = 0; window < 60; ++window) {
                auto seen = test::control_window(o, window);
                host.fill(seen);
                // T1 is on a busy root, and instances of others leave no room for a larger one.
                seen.tenants[0].p99_ms = 20;
                seen.roots[0].bytes_per_s = 16e9;
                seen.tenants[1].pcie_bytes_per_s = 12e9;
                seen.tenants[1].pcie_attribution = Attribution::measured;
                for (const auto& [gpu, start] : {std::pair<std::size_t, std::uint8_t>{0, 2}, {0, 4}, {1, 4}})
                    if (auto& layout = seen.gpus[gpu].layout; can_create(device, layout, {two, start}))
                        layout.add({two, start});
                step(state, seen, o, out);
                for (const auto& a : out.actions) {
                    if (a.kind != ActionKind::reconfigure) continue;
                    moved += a.after.gpu == 1;
                    host.start(a, window, 5);
                }
            }
            CHECK((moved > 0) == !less);
        }
}
