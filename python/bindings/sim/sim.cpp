// SPDX-License-Identifier: Apache-2.0
// The module gpusched.sim: its parts, generated clusters, and the simulated harvest of Standby GPUs.
#include "model/cluster_views.hpp"
#include "model/trace.hpp"
#include "support/call.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/sim/generator.hpp>
#include <gpusched/sim/harvest.hpp>
#include <gpusched/sim/replay.hpp>

namespace gpusched::python {

// The parts of the module in other files.
void bind_trace(py::module_& m);
void bind_replay(py::module_& m);
void bind_host_simulation(py::module_& m);
void bind_spot_jobs(py::module_& m);

namespace {

/// The columns of these entries.
std::string picked_columns(const std::string& columns, const std::vector<std::size_t>& entries) {
    if (columns.empty()) return {};
    py::dict picked;
    for (const auto& [name, column] : py::dict(parsed(columns))) {
        const auto values = column.cast<py::list>();
        py::list of;
        for (const auto entry : entries) of.append(values[entry]);
        picked[name] = of;
    }
    return json_text(to_document(picked, "<tasks>"));
}

void bind_generate(py::module_& m) {
    const auto options = keywords_with_progress<sim::GeneratorOptions>().shared_as("sim.generate_cluster");
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
                if (context.stop.stop_requested()) return nullptr;  // an exception is being raised
                return std::make_shared<Cluster>(Cluster::build(spec));
            });
        },
        options.documented(doc("sim::generate_cluster")));
    m.def(
        "resample",
        [](const TracePtr& trace, const Number& ratio, const Integer& seed) {
            const auto wanted = OptionType<double>::read("ratio", ratio);
            Rng rng(OptionType<std::uint64_t>::read("seed", seed));
            std::vector<std::size_t> originals;
            auto made = unlocked([&] { return sim::resample(*trace, wanted, rng, &originals); });
            return std::make_shared<NamedTrace>(NamedTrace{std::move(made), trace->node_columns,
                                                           picked_columns(trace->task_columns, originals)});
        },
        py::arg("trace"), py::arg("ratio"), py::kw_only(), py::arg("seed") = 0,
        documented(doc("sim::resample") + "\n\n`seed`: seed of the random choices."));
}

void bind_harvest(py::module_& m) {
    auto result = bind_record<sim::HarvestResult>(m, "HarvestResult", "Counts of `simulate_harvest`.");
    result.def_property_readonly("harvested", &sim::HarvestResult::harvested, "Borrowed / lent GPU-hours.");
    keywords_with_progress<sim::HarvestOptions>().def(
        m, "simulate_harvest",
        [](const WithProgress<sim::HarvestOptions>& o) {
            return Call(o.progress).run([&](const Context& context) {
                return sim::simulate_harvest(o, context);
            });
        },
        doc("sim::HarvestOptions"));
}

}  // namespace

void bind_sim(py::module_& parent) {
    auto m = submodule(parent, "sim");
    bind_trace(m);
    bind_replay(m);
    bind_host_simulation(m);
    bind_spot_jobs(m);
    bind_harvest(m);
    bind_generate(m);
}

}  // namespace gpusched::python
