// The module gpusched.sim: generated clusters.
#include "model/cluster_views.hpp"
#include "model/trace.hpp"
#include "support/call.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"

#include <gpusched/sim/generator.hpp>
#include <gpusched/sim/resample.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::python {

namespace {
struct GeneratorArguments : sim::GeneratorOptions {
    ProgressLike progress = py::none();
};

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
}  // namespace

void bind_generate(py::module_& m) {
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

}  // namespace gpusched::python
