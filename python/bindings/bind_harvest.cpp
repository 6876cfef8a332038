// gpusched.sim: the simulated harvest of Standby GPUs.
#include "keywords.hpp"
#include "preemption.hpp"
#include "records.hpp"

#include <gpusched/sim/harvest.hpp>

#include <string>

namespace gpusched::python {

void bind_harvest(py::module_& m) {
    using R = sim::HarvestResult;
    auto result = py::class_<R>(m, "HarvestResult", "What `simulate_harvest` counted.");
    define_record(result);
    result.def_property_readonly("harvested", &R::harvested, "Borrowed / lent GPU-hours.");
    using O = sim::HarvestOptions;
    const auto options = Keywords<O>().fields();
    m.def(
        "simulate_harvest",
        [options](const py::kwargs& keywords) {
            const auto o = options.read("simulate_harvest", keywords);
            return unlocked([&] { return sim::simulate_harvest(o); });
        },
        options.documented("simulate_harvest(", doc("sim::HarvestOptions")).c_str());
}

}  // namespace gpusched::python
