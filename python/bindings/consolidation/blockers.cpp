// The function gpusched.consolidation.blockers.
#include "model/cluster_views.hpp"
#include "model/named.hpp"
#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"

#include <gpusched/consolidation/blockers.hpp>

namespace gpusched::python {

namespace c = consolidation;

void bind_blockers(py::module_& m) {
    bind_record<Named<c::FixedTasks>>(m, "FixedTasks");
    bind_record<Named<c::RankedBlocker>>(m, "RankedBlocker");
    auto ranking = bind_record<Named<c::BlockerRanking>>(
        m, "BlockerRanking",
        "What keeps nodes from being freed, ranked; `str` gives it in words. `len` and indices go over "
        "`ranked`.");
    define_in_python<py::str>(ranking, "__str__", "_views.maintenance.blockers_text",
                              "The ranking in words.");
    ranking.def("__len__", [](const py::object& self) { return py::len(self.attr("ranked")); });
    ranking.def(
        "__getitem__", [](const py::object& self, std::int64_t index) -> Typed<"RankedBlocker"> {
            return self.attr("ranked")[py::int_(index)];
        },
        py::arg("index"));
    define_in_python<Frame>(ranking, "to_pandas", "_views.maintenance.blockers_to_pandas",
                            "A pandas DataFrame with one row per blocker or pair that helps.");
    define_in_python<py::str>(ranking, "_repr_html_", "_views.maintenance.blockers_html",
                              "The ranking as HTML, for notebooks.");
    const auto keywords = keywords_with_progress<c::BlockerOptions>().shared_as("consolidation.blockers");
    m.def(
        "blockers",
        [keywords](const ClusterPtr& cluster, const py::kwargs& given) {
            const auto o = keywords.read("blockers", given, cluster.get());
            return with_names(*cluster, Call(o.progress).run([&](const Context& context) {
                return c::blockers(*cluster, o, context);
            }));
        },
        py::arg("cluster"), keywords.documented(doc("consolidation::blockers")));
}

}  // namespace gpusched::python
