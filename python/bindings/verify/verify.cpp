// SPDX-License-Identifier: Apache-2.0
// The module gpusched.verify.
#include "model/cluster_views.hpp"
#include "model/plan.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"
#include "support/python_function.hpp"
#include "support/records.hpp"

#include <gpusched/verify/plan.hpp>

namespace gpusched::python {

namespace {

struct VerifyArguments : verify::Options {
    /// Additional constraint: a callable (task, node) of two names that returns True if the task may run on the
    /// node; called for every move and placement.
    Typed<"Callable[[str, str], bool] | None"> own_rule = py::none();
};

/// The options with the caller's function as rule, which takes the interpreter lock for each call.
verify::Options with_rule(const VerifyArguments& arguments) {
    verify::Options options = arguments;
    if (arguments.own_rule.is_none()) return options;
    if (PyCallable_Check(arguments.own_rule.ptr()) == 0)
        bad_option("rule", arguments.own_rule, "a callable (task, node), or None");
    options.rule = [function = shared_object(arguments.own_rule)](const TaskSpec& task, const NodeSpec& node,
                                                                  std::span<const verify::Copy>) {
        const WithLock lock;
        const auto answer = ask_function("rule", *function, "(task, node)", task.name, node.name);
        return py::cast<bool>(py::bool_(answer)) ? std::string() : "refuses it";
    };
    return options;
}

}  // namespace

void bind_verify(py::module_& parent) {
    auto m = submodule(parent, "verify");
    using verify::Report;
    auto report = bind_record<Report>(
        m, "Report", "Result of the checker. True in a condition if the plan has no violations.");
    report.def("__bool__", [](const Report& r) { return r.ok; });

    const auto options =
        Keywords<VerifyArguments>()
            .fields<verify::Options>()
            .field("rule", &VerifyArguments::own_rule, doc("python::VerifyArguments::own_rule"))
            .shared_as("verify.plan");
    m.def(
        "plan",
        [options](const Typed<"Cluster | Mapping[str, Any] | str | PathLike[str]">& cluster,
                  const PlanLike& plan, const py::kwargs& keywords) {
            const auto o = with_rule(options.read("plan", keywords));
            if (py::isinstance<Cluster>(cluster)) {
                const auto snapshot = cluster.cast<ClusterPtr>();
                const auto named = named_plan(plan);
                const WithoutLock unlocked;
                auto data = snapshot->to_spec();
                add(data, named.brought);
                return verify::plan(data, named.spec, o);
            }
            auto snapshot = read_cluster(cluster, "cluster", "a Cluster, a dict or the path of a file");
            const auto named = named_plan(plan);
            const WithoutLock unlocked;
            add(snapshot, named.brought);
            // Rejects invalid snapshots. The check itself uses the data as it was read.
            static_cast<void>(Cluster::build(snapshot));
            return verify::plan(snapshot, named.spec, o);
        },
        py::arg("cluster"), py::arg("plan"),
        options.documented(
            doc("verify::plan") +
            "\n\n`cluster`: a `Cluster`, the path of a file, or a dict. For a file or a dict, the check does "
            "not depend on the class `Cluster` at all. Pods that a plan of `admit` adds are added to the "
            "cluster if it lacks them."));
}

}  // namespace gpusched::python
