// gpusched.sim: generated clusters.
#include "core/call.hpp"
#include "core/keywords.hpp"
#include "model/cluster_views.hpp"
#include "model/trace.hpp"

#include <gpusched/sim/generator.hpp>
#include <gpusched/sim/resample.hpp>

namespace gpusched::python {

namespace {
struct GeneratorArguments : sim::GeneratorOptions {
    ProgressLike progress = py::none();
};
}  // namespace

void bind_sim(py::module_& parent) {
    auto m = submodule(parent, "sim");
    bind_trace(m);
    bind_replay(m);
    bind_host_simulation(m);
    bind_spot_jobs(m);
    bind_harvest(m);
    using G = GeneratorArguments;
    const auto options = Keywords<G>()
                             .fields<sim::GeneratorOptions>()
                             .field("progress", &G::progress, progress_text)
                             .shared_as("sim.generate_cluster");
    m.def(
        "generate_cluster",
        [options](const py::kwargs& keywords) {
            Problems problems;
            const auto arguments = options.read("generate_cluster", keywords, problems);
            const sim::GeneratorOptions& o = arguments;
            collect(problems, [&] { sim::validate(o); });
            problems.throw_if_any();
            return Call(arguments.progress).run([&](const Context& context) -> ClusterPtr {
                const auto spec = sim::generate_cluster(o, context);
                if (context.stop.stop_requested()) return nullptr;  // an exception is on its way
                return std::make_shared<Cluster>(Cluster::build(spec));
            });
        },
        options.documented("generate_cluster(", doc("sim::generate_cluster")).c_str());
    m.def(
        "resample",
        [](const TracePtr& trace, const Number& ratio, const Integer& seed) {
            const auto wanted = OptionType<double>::read("ratio", ratio);
            Rng rng(OptionType<std::uint64_t>::read("seed", seed));
            return unlocked([&] {
                return std::make_shared<NamedTrace>(NamedTrace{sim::resample(*trace, wanted, rng), {}, {}});
            });
        },
        py::arg("trace"), py::arg("ratio"), py::kw_only(), py::arg("seed") = 0,
        documented("resample(trace, ratio, *, seed=0)",
                   doc("sim::resample") + "\n\n`seed` is where random choices start.")
            .c_str());
}

}  // namespace gpusched::python
