// SPDX-License-Identifier: Apache-2.0
// The module gpusched.milp: builders about pending jobs (joint allocation, priority packing).
#include "allocation/gangs.hpp"
#include "milp/milp.hpp"
#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/fields.hpp"
#include "support/struct_states.hpp"

#include <gpusched/json/forms.hpp>
#include <gpusched/milp/joint_allocation.hpp>
#include <gpusched/milp/priority_packing.hpp>

namespace gpusched::python {

namespace {

struct NamedPacking : milp::PackingResult {
    ClusterPtr cluster;
};
struct NamedPackingModel : milp::PackingModel {
    ClusterPtr cluster;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedPacking>, F&& field) {
    visit_fields(std::type_identity<milp::PackingResult>{}, field);
    field("cluster", &NamedPacking::cluster);
}
static void validate(const NamedPacking& packing) {
    for (const auto task : packing.cluster->tasks()) {
        const bool known = index(task) < packing.placement.size();
        if (const auto node = known ? packing.placement[index(task)] : none<NodeId>;
            !known || (node != none<NodeId> && index(node) >= packing.cluster->node_count()))
            throw InvalidInput("the placement has other tasks or nodes than the cluster");
    }
}
template <class F>
constexpr void visit_fields(std::type_identity<NamedPackingModel>, F&& field) {
    visit_fields(std::type_identity<milp::PackingModel>{}, field);
    field("cluster", &NamedPackingModel::cluster);
}

/// One entry of `jobs`: a job as for `allocate` with one kind of pod. A pod without cores and memory requests
/// none.
JobArgument read_joint_job(const std::string& field, py::handle value, const Cluster& cluster, Level level) {
    if (!is_mapping(value)) bad_option(field, value, "a dict");
    py::dict job;
    job.attr("update")(value);
    if (!job.contains("name")) job["name"] = field;
    if (job.contains("pods") && py::isinstance<py::sequence>(job["pods"]) &&
        !py::isinstance<py::str>(job["pods"])) {
        const py::list kinds(job["pods"]);
        if (kinds.size() != 1)
            throw InvalidInput(
                bad_value(field + ".pods", std::to_string(kinds.size()) + " kinds of pods", "one"));
        if (is_mapping(kinds[0])) {
            py::dict pod(py::arg("cpu_milli") = 0, py::arg("memory_mib") = 0);
            pod.attr("update")(kinds[0]);
            job["pods"] = py::list(py::make_tuple(pod));
        }
    }
    Problems problems;
    JobArgument out;
    collect(problems, [&] { out = job_argument(job, &cluster, field); });
    if (out.options.level && *out.options.level != level)
        problems.add(bad_value(field + ".level", std::to_string(*out.options.level),
                               std::to_string(level) + ", the level of the joint allocation"));
    for (const auto& [name, given] : {std::pair("further", !out.options.further.empty()),
                                      std::pair("traffic", !out.options.traffic.empty())})
        if (given)
            problems.add(field + "." + name + ": not supported by joint allocation; use allocate_many");
    problems.throw_if_any();
    return out;
}

milp::JointProblem read_joint_problem(const ClusterPtr& cluster, py::handle jobs,
                                      std::optional<Level> level) {
    const Level at = level.value_or(cluster->inventory().deepest_level());
    std::vector<JobArgument> arguments;
    std::vector<milp::JobOfSample> samples;
    Problems problems;
    std::size_t j = 0;
    for (const auto item : jobs) {
        const auto field = "jobs[" + std::to_string(j++) + "]";
        collect(problems, [&] {
            auto job = read_joint_job(field, item, *cluster, at);
            auto& pods = job.request.pods.front();
            milp::JobOfSample sample{.name = job.name,
                                     .mode = job.options.mode.value_or(NetworkMode::preferred)};
            require_range(field + ".pods[0].count", pods.count, std::int64_t{1}, std::int64_t{1'000'000});
            sample.pods = static_cast<int>(std::exchange(pods.count, 1));
            arguments.push_back(std::move(job));
            samples.push_back(std::move(sample));
        });
    }
    problems.throw_if_any();
    const auto with = in_cluster(cluster, arguments);
    for (std::size_t k = 0; k < samples.size(); ++k) samples[k].sample = with.jobs[k].pods.front();
    return milp::joint_problem(*with.cluster, samples, level);
}

/// Builds a model that places the most complete jobs, then minimises the total entropy of their spread over
/// the domains of a level, by default the deepest. Jobs are weighted by their part of all GPUs, or of all pods
/// if no job has GPUs. docs/milp.md describes rows and exactness.
///
/// `jobs` are dicts as `allocation.allocate` takes them, each of one kind of pod: {"name", "pods": [{"count",
/// "gpu_count", "cpu_milli", "memory_mib", "gpu_models", ...}], "mode"}. A pod without "cpu_milli" and
/// "memory_mib" asks for none. With "mode" "required" all pods are in one domain. The slots of a domain are the
/// pods that its nodes can host in addition to all running tasks. A node of unknown position is a domain with
/// its own name, with " (node)" after it if another domain has this name.
/// @throws InvalidInput for an unknown level, pods below 1, names that appear twice, and jobs in group
///     constraints, which the model does not support
std::shared_ptr<milp::JointModel> joint_allocation(const ClusterPtr& cluster,
                                                   const Typed<"Iterable[Mapping[str, Any]]">& jobs,
                                                   const OptionalLevel& level) {
    require_list("jobs", jobs, "a list of dicts");
    return std::make_shared<milp::JointModel>(
        milp::joint_allocation(read_joint_problem(cluster, jobs, read_optional_level("level", level))));
}

void bind_joint_model(py::module_& m) {
    using M = milp::JointModel;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "JointModel", doc("milp::JointModel"));
    model.def_readonly("placed_worth", &M::placed_worth, doc("milp::JointModel::placed_worth"))
        .def(
            "decode", [](const M& self, const std::vector<double>& x) -> Typed<"dict[str, dict[str, int]]"> {
                const auto allocation = self.decode(x);
                py::dict result;
                for (std::size_t j = 0; j < allocation.size(); ++j) {
                    py::dict pods;
                    for (std::size_t s = 0; s < allocation[j].size(); ++s)
                        if (allocation[j][s] > 0) pods[py::str(self.problem.switches[s])] = allocation[j][s];
                    result[py::str(self.problem.jobs[j].name)] = pods;
                }
                return result;
            },
            py::arg("x"), documented("Returns {job: {switch: pods}}; empty if the job is not placed."))
        .def(
            "encode",
            [](const M& self,
               const py::typing::Dict<py::str, py::typing::Dict<py::str, py::int_>>& allocation) {
                milp::JointAllocation pods(self.problem.jobs.size(),
                                           std::vector<int>(self.problem.switches.size(), 0));
                const auto find = [](const std::string& what, const auto& all, auto&& name_of,
                                     const std::string& name) {
                    for (std::size_t i = 0; i < all.size(); ++i)
                        if (std::invoke(name_of, all[i]) == name) return i;
                    throw InvalidInput(what + ": there is no " + gpusched::quoted(name));
                };
                using json::ByName;
                Problems problems;
                for (const auto& [job, places] :
                     from_python<ByName<ByName<int>>>("allocation", allocation).entries)
                    collect(problems, [&, &job = job, &places = places] {
                        auto& row =
                            pods[find("allocation: job", self.problem.jobs, &milp::SwitchJob::name, job)];
                        for (const auto& [place, count] : places.entries)
                            collect(problems, [&, &place = place, count = count] {
                                row[find("allocation: switch", self.problem.switches, std::identity{},
                                         place)] = count;
                            });
                    });
                problems.throw_if_any();
                return own(self.encode(pods));
            },
            py::arg("allocation"), documented(doc("milp::JointModel::encode")));
    define_value(model);
    m.def("joint_allocation", joint_allocation, py::arg("cluster"), py::arg("jobs"),
          py::arg("level") = py::none(), documented(doc("python::joint_allocation")));
}

void bind_packing_model(py::module_& m) {
    using M = NamedPackingModel;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "PackingModel", doc("milp::PackingModel"));
    model
        .def(
            "decode",
            [](const M& self, const std::vector<double>& x) {
                return placement_dict(*self.cluster, self.decode(*self.cluster, x));
            },
            py::arg("x"), documented("Returns {task: node or None}."))
        .def(
            "encode",
            [](const M& self, const PlacementDict& placement) {
                return own(self.encode(*self.cluster, read_placement(*self.cluster, placement)));
            },
            py::arg("placement"), documented(doc("milp::PackingModel::encode")));
    define_value(model);
    const auto options = Keywords<milp::PackingOptions>().fields({"allow_moves"});
    m.def(
        "packing_model",
        [options](const ClusterPtr& cluster, const Integer& priority, const Typed<"Sequence[int]">& placed,
                  const py::kwargs& keywords) {
            Problems problems;
            const auto o = options.read("packing_model", keywords, problems);
            std::int64_t of = 0;
            std::vector<std::int64_t> above;
            collect(problems, [&] { of = OptionType<std::int64_t>::read("priority", priority); });
            collect(problems, [&] { above = OptionType<std::vector<std::int64_t>>::read("placed", placed); });
            problems.throw_if_any();
            return std::make_shared<M>(unlocked([&] {
                return M{milp::packing_model(*cluster, of, above, o), cluster};
            }));
        },
        py::arg("cluster"), py::arg("priority"), py::arg("placed") = py::list(),
        options.documented(doc("milp::packing_model")));
}

struct PackingArguments : milp::PackingOptions, SolverArguments {};

void bind_packing(py::module_& m) {
    const auto options = solver_keywords<PackingArguments, milp::PackingOptions>();
    using Named = NamedPacking;
    py::class_<Named> result(m, "PackingResult", doc("milp::PackingResult"));
    result.def_readonly("optimal", &Named::optimal, doc("milp::PackingResult::optimal"))
        .def_readonly("moves", &Named::moves, doc("milp::PackingResult::moves"))
        .def_property_readonly(
            "placement", [](const Named& r) { return placement_dict(*r.cluster, r.placement); },
            "{task: node or None}.")
        .def_property_readonly(
            "steps", [](const Named& r) -> JsonObjects { return dicts_from(r.steps); },
            "One dict per priority, highest first: priority, pending, placed, bound, status.");
    result.def("__repr__", [](const Named& r) {
        return std::string("<gpusched.milp.PackingResult: ") +
               (r.optimal ? "optimal" : "not proven optimal") + ", " + counted(r.moves, "move") + ">";
    });
    define_value(result);
    options.def(
        m, "priority_packing",
        [](const PackingArguments& arguments, const ClusterPtr& cluster) {
            const auto solver = solver_argument(arguments.solver);
            return Named{Call(arguments.progress).run([&](const Context& context) {
                             return milp::priority_packing(*cluster, arguments, solver, context);
                         }),
                         cluster};
        },
        doc("milp::priority_packing"), py::arg("cluster"));
}

}  // namespace

void bind_milp_jobs(py::module_& m) {
    bind_joint_model(m);
    bind_packing_model(m);
    bind_packing(m);
}

}  // namespace gpusched::python
