// gpusched.sim: the simulated harvest of Standby GPUs.
#include "keywords.hpp"
#include "preemption.hpp"
#include "records.hpp"

#include <gpusched/sim/harvest.hpp>

#include <string>

namespace gpusched::python {

void bind_harvest(py::module_& m) {
    using R = sim::HarvestResult;
    const auto at = [](const char* name) { return doc(std::string("sim::HarvestResult::") + name); };
    auto result = py::class_<R>(m, "HarvestResult", "What `simulate_harvest` counted.");
    define_record(
        result, attribute("standby_gpu_h", &R::standby_gpu_h, at("standby_gpu_h")),
        attribute("borrowed_gpu_h", &R::borrowed_gpu_h, at("borrowed_gpu_h")),
        attribute("useful_gpu_h", &R::useful_gpu_h, at("useful_gpu_h")),
        attribute("lost_gpu_h", &R::lost_gpu_h, at("lost_gpu_h")),
        attribute("evictions", &R::evictions, "Spot tasks that owners sent away."),
        attribute("killed", &R::killed, "Of these, how many took SIGKILL."),
        attribute("completed", &R::completed, "Spot tasks that ended by themselves."),
        attribute("eviction_mean_s", &R::eviction_mean_s, "Mean seconds until the owner's GPUs were free."),
        attribute("eviction_p95_s", &R::eviction_p95_s, "Their 95th percentile."),
        attribute("eviction_max_s", &R::eviction_max_s, "Their maximum."),
        attribute("standby_by_hour", &R::standby_by_hour, "Lent GPU-hours by hour of the day."),
        attribute("borrowed_by_hour", &R::borrowed_by_hour, "Borrowed GPU-hours by hour of the day."));
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
