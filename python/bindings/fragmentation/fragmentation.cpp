// SPDX-License-Identifier: Apache-2.0
// The module gpusched.fragmentation.
#include "fragmentation/fragmentation.hpp"
#include "model/cluster_views.hpp"
#include "model/trace.hpp"
#include "support/fields.hpp"
#include "support/records.hpp"

#include <gpusched/fragmentation/allocation_ratio.hpp>
#include <gpusched/fragmentation/entropy.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/fragmentation/occupancy.hpp>
#include <gpusched/fragmentation/report.hpp>
#include <gpusched/fragmentation/switch_slots.hpp>
#include <gpusched/fragmentation/workload.hpp>

#include <cmath>

namespace gpusched::python {

namespace f = fragmentation;

/// The option "by"; None for no groups.
template <>
struct OptionType<f::GroupBy> {
    static f::GroupBy read(const std::string& field, py::handle value) {
        if (value.is_none()) return f::GroupBy::none;
        for (const auto& [by, name] : enumerators<f::GroupBy>())
            if (by != f::GroupBy::none && py::isinstance<py::str>(value) && value.equal(py::str(name)))
                return by;
        bad_option(field, value, "None, 'gpu_model' or 'cluster'");
    }
    static std::string literal(f::GroupBy) { return "None"; }
    static std::string type() { return "Literal['gpu_model', 'cluster'] | None"; }
};

namespace {

py::object cores(std::int64_t milli);

}  // namespace

py::object report_table(const f::Report& report, f::GroupBy by) {
    py::list columns;
    if (by != f::GroupBy::none) columns.append(gpusched::enum_name(by));
    for (const char* name : {"gpus", "cpu_cores", "fractional", "stranded", "insufficient_cpu", "total_idle",
                             "fractional_pct", "stranded_pct", "insufficient_cpu_pct"})
        columns.append(name);
    py::list rows;
    for (const auto& r : report) {
        py::list row;
        if (by != f::GroupBy::none) row.append(r.group);
        row.append(r.shape.gpus);
        row.append(cores(r.shape.cpu_milli));
        for (const double value : {r.fractional(), r.stranded(), r.insufficient_cpu(), r.total_idle(),
                                   r.fractional_pct(), r.stranded_pct(), r.insufficient_cpu_pct()})
            row.append(value);
        rows.append(row);
    }
    return py::module_::import("gpusched._views.tables").attr("Report")(columns, rows);
}

namespace {

py::object table(const py::object& columns, const py::list& rows) {
    return py::module_::import("gpusched._views.tables").attr("Table")(columns, rows);
}

/// A number of cores for Python: an int if it is whole.
std::int64_t to_milli(const std::string& field, py::handle cores) {
    const double value = OptionType<double>::read(field, cores);
    if (!(value >= 0 && value <= 1e9)) bad_option(field, cores, "a number of cores >= 0");
    return std::llround(value * 1000);
}
py::object cores(std::int64_t milli) {
    if (milli % 1000 == 0) return py::int_(milli / 1000);
    return py::float_(static_cast<double>(milli) / 1000);
}

/// Adds a problem for each value that cannot be read; its default stays.
std::vector<f::Shape> shapes_argument(const Cluster& cluster, const py::object& shapes, Problems& problems) {
    if (shapes.is_none()) return f::own_shapes(cluster);
    if (py::isinstance<py::str>(shapes) && shapes.equal(py::str("asi")))
        return {f::asi_shapes.begin(), f::asi_shapes.end()};
    std::vector<f::Shape> result;
    collect(problems, [&] {
        if (py::isinstance<py::str>(shapes) || !py::isinstance<py::iterable>(shapes))
            result.emplace_back(), bad_option("shapes", shapes, "a list of (gpus, cores), or 'asi'");
        for (const auto shape : shapes) {
            const auto field = "shapes[" + std::to_string(result.size()) + "]";
            auto& read = result.emplace_back();
            collect(problems, [&] {
                if (!py::isinstance<py::sequence>(shape) || py::isinstance<py::str>(shape) ||
                    py::len(shape) != 2)
                    bad_option(field, shape, "a pair (gpus, cores)");
                const auto pair = shape.cast<py::sequence>();
                collect(problems, [&] { read.gpus = OptionType<int>::read(field, pair[0]); });
                read.cpu_milli = to_milli(field, pair[1]);
            });
        }
    });
    return result;
}

void bind_report(py::module_& m) {
    using O = f::ReportOptions;
    const auto options = Keywords<O>().fields().shared_as("fragmentation.report");
    m.def(
        "report",
        [options](const ClusterPtr& cluster,
                  const Typed<"Sequence[tuple[int, float]] | Literal['asi'] | None">& shapes,
                  const py::kwargs& keywords) -> Typed<"gpusched._views.tables.Report"> {
            Problems problems;
            const auto o = options.read("report", keywords, problems);
            const auto wanted = shapes_argument(*cluster, shapes, problems);
            collect(problems, [&] { f::validate(wanted, o); });
            problems.throw_if_any();
            const auto report = unlocked([&] { return f::report(*cluster, wanted, o); });
            return report_table(report, o.by);
        },
        py::arg("cluster"), py::arg("shapes") = py::none(),
        options.documented(
            doc("fragmentation::report") +
            "\n\n"
            "`shapes`: pairs (gpus, cores), or 'asi' for the requests of Fig. 13 of the ASI paper."));

    m.def(
        "own_shapes", [](const ClusterPtr& cluster) -> Typed<"list[tuple[int, float]]"> {
            py::list shapes;
            for (const auto& shape : f::own_shapes(*cluster))
                shapes.append(py::make_tuple(shape.gpus, cores(shape.cpu_milli)));
            return shapes;
        },
        py::arg("cluster"), documented(doc("fragmentation::own_shapes")));
    m.def(
        "unusable_nodes",
        [options](const ClusterPtr& cluster, const Typed<"tuple[int, float]">& shape,
                  const py::kwargs& keywords) -> Typed<"gpusched._views.tables.Table"> {
            Problems problems;
            const auto o = options.read("unusable_nodes", keywords, problems);
            const auto wanted = shapes_argument(*cluster, py::make_tuple(shape), problems);
            collect(problems, [&] { f::validate(wanted, o); });
            problems.throw_if_any();
            py::list rows;
            for (const auto& n : unlocked([&] { return f::unusable_nodes(*cluster, wanted.front(), o); })) {
                py::list tasks;
                for (const auto task : cluster->tasks_on(n.node)) tasks.append(cluster->name(task));
                rows.append(
                    py::make_tuple(cluster->name(n.node), gpusched::enum_name(n.cause), n.gpus(), tasks));
            }
            return table(py::make_tuple("node", "cause", "gpus", "tasks"), rows);
        },
        py::arg("cluster"), py::arg("shape"),
        options.documented(
            doc("fragmentation::unusable_nodes") +
            "\n\n"
            "`shape`: a pair (gpus, cores). Columns: node, cause, gpus, and the names of its tasks."));
}

void bind_slots(py::module_& m) {
    using S = f::SwitchSlotOptions;
    Keywords<S>()
        .fields()
        .shared_as("fragmentation.switch_slots")
        .def(
            m, "switch_slots",
            [](const S& o, const ClusterPtr& cluster) -> Typed<"gpusched._views.tables.Table"> {
                py::list rows;
                for (const auto& r : unlocked([&] { return f::switch_slots(*cluster, o); }))
                    rows.append(py::make_tuple(r.gpu_model, r.across, r.within, r.loss()));
                return table(py::make_tuple("gpu_model", "across", "within", "loss"), rows);
            },
            doc("fragmentation::switch_slots"), py::arg("cluster"));

    using L = f::LargestJobOptions;
    Keywords<L>().fields().def(
        m, "largest_job", [](const L& o, const ClusterPtr& cluster) -> Typed<"gpusched._views.tables.Table"> {
            py::list rows;
            for (const auto& r : unlocked([&] { return f::largest_job(*cluster, o); }))
                rows.append(py::make_tuple(r.gpu_model, r.across, r.within, r.cluster, r.domain));
            return table(py::make_tuple("gpu_model", "across", "within", "cluster", "domain"), rows);
        },
        doc("fragmentation::largest_job"), py::arg("cluster"));
}

// FGD.

/// A shape with any weight above 0.
struct GivenShape : f::WorkloadShape {
    double given_weight = 1;
};
template <class F>
constexpr void visit_fields(std::type_identity<GivenShape>, F&& field) {
    json::visit_other_fields<f::WorkloadShape>({"weight"}, field);
    field("weight", &GivenShape::given_weight, more_than(0.0));
}

/// Whole weights stay as they are; others become ten-millionths of their sum.
f::Workload workload_of(const std::vector<GivenShape>& given) {
    double sum = 0;
    bool whole = true;
    for (const auto& shape : given) {
        sum += shape.given_weight;
        whole = whole && shape.given_weight == std::floor(shape.given_weight) && shape.given_weight < 0x1p53;
    }
    f::Workload workload;
    for (const auto& shape : given)
        workload.shapes.emplace_back(shape).weight = std::max<std::int64_t>(
            1, std::llround(whole ? shape.given_weight : shape.given_weight * 1e7 / sum));
    return workload;
}

}  // namespace

f::Workload workload_argument(const py::object& source, const f::WorkloadOptions& options) {
    if (py::isinstance<f::Workload>(source)) return source.cast<f::Workload>();
    if (py::isinstance<NamedTrace>(source)) {
        const auto trace = source.cast<TracePtr>();
        return unlocked([&] { return f::typical_workload(*trace, options); });
    }
    if (py::isinstance<Cluster>(source)) {
        const auto cluster = source.cast<ClusterPtr>();
        return unlocked([&] { return f::typical_workload(*cluster, options); });
    }
    if (!py::isinstance<py::sequence>(source) || py::isinstance<py::str>(source))
        bad_type("workload", source, "a Workload, a Trace, a Cluster or a list of dicts");
    return workload_of(from_python<std::vector<GivenShape>>("workload", source));
}

namespace {

void bind_fgd(py::module_& m) {
    using S = f::WorkloadShape;
    bind_record<S>(m, "WorkloadShape");
    using W = f::Workload;
    py::class_<W> type(m, "Workload", doc("fragmentation::Workload"));
    type.def(py::init([](const Typed<"Sequence[Mapping[str, Any]] | Trace | Cluster">& shapes) {
                 return workload_argument(shapes);
             }),
             py::arg("shapes"))
        .def("__len__", [](const W& w) { return w.shapes.size(); })
        .def_property_readonly("total_weight", &W::total_weight, "The sum of all weights.");
    define_record(type);

    using O = f::WorkloadOptions;
    const auto typical = Keywords<O>().fields();
    m.def(
        "typical_workload",
        [typical](const Typed<"Trace | Cluster">& tasks, const py::kwargs& keywords) {
            if (!py::isinstance<NamedTrace>(tasks) && !py::isinstance<Cluster>(tasks))
                bad_type("tasks", tasks, "a Trace or a Cluster");
            return workload_argument(tasks, typical.read("typical_workload", keywords));
        },
        py::arg("tasks"), typical.documented(doc("fragmentation::typical_workload")));

    const std::string accepts =
        "\n\n`workload`: a `Workload`, a trace or cluster (its typical tasks), or a list of dicts with the "
        "keys of `WorkloadShape`. Weights that are not integers count as probabilities.";
    using F = f::FgdOptions;
    const auto options = Keywords<F>().fields();
    options.def(
        m, "fgd",
        [](const F& o, const ClusterPtr& cluster, const WorkloadLike& workload) {
            const auto w = workload_argument(workload);
            return unlocked([&] { return f::fgd(*cluster, w, o); });
        },
        doc("fragmentation::fgd") + "\n\n" + doc("fragmentation::Fgd") + accepts, py::arg("cluster"),
        py::arg("workload"));
    options.def(
        m, "fgd_breakdown",
        [](const F& o, const ClusterPtr& cluster, const WorkloadLike& workload) -> Typed<"dict[str, float]"> {
            const auto w = workload_argument(workload);
            const auto b = unlocked([&] { return f::fgd_breakdown(*cluster, w, o); });
            return py::dict(py::arg("satisfied") = b.satisfied, py::arg("lack_gpu") = b.lack_gpu,
                            py::arg("lack_cpu") = b.lack_cpu, py::arg("lack_both") = b.lack_both,
                            py::arg("no_access") = b.no_access,
                            py::arg("cpu_only_satisfied") = b.cpu_only_satisfied,
                            py::arg("cpu_only_lack_cpu") = b.cpu_only_lack_cpu);
        },
        doc("fragmentation::fgd_breakdown") + "\n\n" + doc("fragmentation::FgdClasses") + accepts,
        py::arg("cluster"), py::arg("workload"));
}

// Counts.

void bind_counts(py::module_& m) {
    using O = f::OccupancyOptions;
    const auto occupancy = Keywords<O>().fields();
    using C = f::Occupancy;
    auto counts = bind_record<C>(m, "Occupancy");
    counts.def_property_readonly("nodes", &C::nodes, "All of them.");
    occupancy.def(
        m, "occupancy",
        [](const O& o, const ClusterPtr& cluster) {
            return unlocked([&] { return f::occupancy(*cluster, o); });
        },
        doc("fragmentation::occupancy"), py::arg("cluster"));

    using A = f::AllocationRatio;
    const auto text = [](const char* field) {
        return doc(std::string("fragmentation::AllocationRatio::") + field);
    };
    auto ratio = bind_record<A>(m, "AllocationRatio");
    ratio.def_property_readonly("hp", &A::hp, text("hp"))
        .def_property_readonly("total", &A::total, text("total"));
    m.def(
        "allocation_ratio",
        [](const ClusterPtr& c) { return unlocked([&] { return f::allocation_ratio(*c); }); },
        py::arg("cluster"), documented(doc("fragmentation::allocation_ratio")));

    m.def(
        "server_ratios", [](const ClusterPtr& c) -> Typed<"gpusched._views.tables.Table"> {
            py::list rows;
            for (const auto& r : unlocked([&] { return f::server_ratios(*c); }))
                rows.append(py::make_tuple(r.gpu_model, r.servers, r.hp, r.hp_and_lp, r.standby_servers,
                                           r.standby_used));
            return table(
                py::make_tuple("gpu_model", "servers", "hp", "hp_and_lp", "standby_servers", "standby_used"),
                rows);
        },
        py::arg("cluster"),
        documented(doc("fragmentation::server_ratios") + "\n\n" + doc("fragmentation::NodeRequests")));

    using R = f::FragmentRateOptions;
    Keywords<R>().fields().def(
        m, "fragment_rate",
        [](const R& o, const ClusterPtr& cluster) {
            return unlocked([&] { return f::fragment_rate(*cluster, o).rate(); });
        },
        doc("fragmentation::fragment_rate"), py::arg("cluster"));

    m.def(
        "job_entropies",
        [](const ClusterPtr& cluster, const OptionalLevel& level) -> Typed<"dict[str, float]"> {
            const auto l = read_optional_level("level", level);
            const auto entropies = unlocked([&] { return f::job_entropies(*cluster, l); });
            py::dict result;
            for (std::size_t j = 0; j < entropies.size(); ++j)
                result[py::str(cluster->inventory().job_names[j])] = entropies[j];
            return result;
        },
        py::arg("cluster"), py::kw_only(), py::arg("level") = py::none(),
        documented("Returns the GPU entropy of every job, by name.\n\n" + doc("fragmentation::job_entropy")));
    m.def(
        "job_entropy",
        [](const ClusterPtr& cluster, const std::string& job, const OptionalLevel& level) {
            const auto l = read_optional_level("level", level);
            const auto found = cluster->inventory().job_names.find(job);
            if (!found)
                throw InvalidInput("job: '" + job + "'; expected a job of the cluster" +
                                   did_you_mean(job, cluster->inventory().job_names));
            return unlocked([&] { return f::job_entropy(*cluster, make_id<JobId>(*found), l); });
        },
        py::arg("cluster"), py::arg("job"), py::kw_only(), py::arg("level") = py::none(),
        documented(doc("fragmentation::job_entropy")));
    m.def(
        "entropy",
        [](const Integers& parts) {
            const auto numbers = OptionType<std::vector<std::int64_t>>::read("parts", parts);
            for (const auto number : numbers)
                if (number < 0) bad_option("parts", parts, "no negative part");
            return f::entropy(numbers);
        },
        py::arg("parts"), documented(doc("fragmentation::entropy")));
}

}  // namespace

void bind_fragmentation(py::module_& parent) {
    auto m = submodule(parent, "fragmentation");
    bind_report(m);
    bind_slots(m);
    bind_fgd(m);
    bind_counts(m);
}

}  // namespace gpusched::python
