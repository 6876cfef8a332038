// The module gpusched.sim: the simulated harvest of Standby GPUs.
#include "preemption/preemption.hpp"
#include "support/call.hpp"
#include "support/records.hpp"

#include <gpusched/sim/harvest.hpp>

namespace gpusched::python {

namespace {

struct HarvestArguments : sim::HarvestOptions {
    ProgressLike progress = py::none();
};

}  // namespace

void bind_harvest(py::module_& m) {
    auto result = bind_record<sim::HarvestResult>(m, "HarvestResult", "Counts of `simulate_harvest`.");
    result.def_property_readonly("harvested", &sim::HarvestResult::harvested, "Borrowed / lent GPU-hours.");
    const auto options = Keywords<HarvestArguments>().fields<sim::HarvestOptions>().field(
        "progress", &HarvestArguments::progress, progress_text);
    m.def(
        "simulate_harvest",
        [options](const py::kwargs& keywords) {
            const auto o = options.read("simulate_harvest", keywords);
            return Call(o.progress).run([&](const Context& context) {
                return sim::simulate_harvest(o, context);
            });
        },
        options.documented(doc("sim::HarvestOptions")));
}

}  // namespace gpusched::python
