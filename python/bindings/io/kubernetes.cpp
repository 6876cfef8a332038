// Within gpusched.io: the reader of Kubernetes objects, and reports of readings.
#include "core/arguments.hpp"
#include "core/keywords.hpp"
#include "core/pickles.hpp"
#include "io/cluster_reading.hpp"
#include "model/cluster_views.hpp"
#include "model/plan.hpp"

#include <gpusched/core/file.hpp>
#include <gpusched/io/kai.hpp>
#include <gpusched/io/kubernetes.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::python {

namespace {

using io::AbsentKind;
using io::ReadingReport;
using io::ReadingRow;

py::tuple row_state(const ReadingRow& r) {
    return py::make_tuple(r.kind, r.what, static_cast<int>(r.fidelity), static_cast<int>(r.errs), r.count,
                          r.how, r.examples);
}

ReadingRow row_of(const py::tuple& s) {
    return {.kind = s[0].cast<std::string>(),
            .what = s[1].cast<std::string>(),
            .fidelity = static_cast<io::Fidelity>(s[2].cast<int>()),
            .errs = static_cast<io::Errs>(s[3].cast<int>()),
            .count = s[4].cast<std::int64_t>(),
            .how = s[5].cast<std::string>(),
            .examples = s[6].cast<std::vector<std::string>>()};
}

py::tuple report_state(const ReadingReport& r) {
    py::list rows, absent;
    for (const auto& row : r.rows) rows.append(row_state(row));
    for (const auto& kind : r.absent) absent.append(py::make_tuple(kind.kind, kind.undecided));
    return py::make_tuple(rows, absent);
}

ReadingReport report_of(const py::tuple& s) {
    ReadingReport r;
    for (const auto row : s[0].cast<py::list>()) r.rows.push_back(row_of(row.cast<py::tuple>()));
    for (const auto kind : s[1].cast<py::list>()) {
        const auto pair = kind.cast<py::tuple>();
        r.absent.push_back({pair[0].cast<std::string>(), pair[1].cast<std::string>()});
    }
    return r;
}

template <class T>
void define_copies(py::class_<T>& type) {
    type.def("__copy__", [](const T& value) { return value; })
        .def(
            "__deepcopy__", [](const T& value, const py::dict&) { return value; }, py::arg("memo"));
}

void bind_import_report(py::module_& m) {
    const auto of = [](const char* name) { return doc(std::string("io::") + name); };
    py::class_<ReadingRow> row(m, "ReadingRow", of("ReadingRow").c_str());
    define_equality(row, row_state);
    define_copies(row);
    const auto fields = Keywords<ReadingRow>().fields();
    row.def(py::init([fields](const py::kwargs& given) { return fields.read("ReadingRow", given); }),
            fields.documented("__init__(self", of("ReadingRow")).c_str());
    row.def_readonly("kind", &ReadingRow::kind, of("ReadingRow::kind").c_str())
        .def_readonly("what", &ReadingRow::what, of("ReadingRow::what").c_str())
        .def_readonly(
            "fidelity", &ReadingRow::fidelity,
            "How it was read: exact, approximated, ignored (the snapshot does not say it) or left_out (the "
            "whole object).")
        .def_readonly(
            "errs", &ReadingRow::errs,
            "Which way the snapshot errs: too_strict refuses what the cluster's scheduler would allow, "
            "too_lax the reverse.")
        .def_readonly("count", &ReadingRow::count, of("ReadingRow::count").c_str())
        .def_readonly("how", &ReadingRow::how, of("ReadingRow::how").c_str())
        .def_readonly("examples", &ReadingRow::examples, of("ReadingRow::examples").c_str())
        .def("__repr__",
             [](const ReadingRow& r) {
                 return "<gpusched.io.ReadingRow: " + std::to_string(r.count) + " " + r.kind + ", " + r.what +
                        ", " + enum_name(r.fidelity) + ">";
             })
        .def(py::pickle(&row_state, &row_of));

    py::class_<AbsentKind> absent(m, "AbsentKind", of("AbsentKind").c_str());
    const auto absent_state = [](const AbsentKind& a) { return py::make_tuple(a.kind, a.undecided); };
    define_equality(absent, absent_state);
    define_copies(absent);
    absent.def_readonly("kind", &AbsentKind::kind, "Of objects.")
        .def_readonly("undecided", &AbsentKind::undecided, of("AbsentKind::undecided").c_str())
        .def("__repr__",
             [](const AbsentKind& a) {
                 return "<gpusched.io.AbsentKind: " + a.kind + ", " + a.undecided + ">";
             })
        .def(py::pickle(absent_state, [](const py::tuple& s) {
            return AbsentKind{s[0].cast<std::string>(), s[1].cast<std::string>()};
        }));

    py::class_<ReadingReport> report(m, "ReadingReport", of("ReadingReport").c_str());
    define_equality(report, report_state);
    define_copies(report);
    report
        .def(py::init([](const Typed<"Sequence[ReadingRow]">& rows) {
                 ReadingReport made;
                 for (const auto& one : OptionType<std::vector<py::object>>::read("rows", rows))
                     made.rows.push_back(one.cast<ReadingRow>());
                 return made;
             }),
             py::arg("rows"),
             documented("__init__(self, rows)", "A report of a reader of one's own.").c_str())
        .def_readonly("rows", &ReadingReport::rows,
                      "Each thing of each kind of object, and how all of these were read.")
        .def_readonly("absent", &ReadingReport::absent, "The kinds of objects that the input does not hold.")
        .def("__str__", [](const ReadingReport& r) { return io::reading_report_to_text(r); })
        .def("__repr__",
             [](const ReadingReport& r) {
                 return "<gpusched.io.ReadingReport: " + counted(r.rows, "row") + ">";
             })
        .def(
            "to_json", [](const ReadingReport& r) { return io::reading_report_to_json(r); },
            documented("to_json(self)", doc("io::reading_report_to_json")).c_str())
        .def(py::pickle(&report_state, &report_of));
}

/// The text that gzip packed, by Python's gzip; another text as it is.
std::string unpacked(std::string text, const std::string& name) {
    if (!text.starts_with("\x1f\x8b")) return text;
    try {
        const auto file = py::module_::import("gzip").attr("GzipFile")(
            py::arg("fileobj") = py::module_::import("io").attr("BytesIO")(py::bytes(text)));
        auto out = file.attr("read")(largest_document + 1).cast<std::string>();
        if (out.size() > largest_document)
            throw InvalidInput(name + ": expected at most " + std::to_string(largest_document) +
                               " bytes unpacked");
        return out;
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        throw InvalidInput(name +
                           ": expected what gzip packed: " + py::str(error.value()).cast<std::string>());
    }
}

/// A document, or the texts of the files that a path stands for.
void take_source(const py::handle& source, Sources& out) {
    if (py::isinstance(source, py::module_::import("collections.abc").attr("Mapping"))) {
        out.contents.push_back(json_text(py::reinterpret_borrow<py::object>(source)));
        out.names.emplace_back("<dict>");
        return;
    }
    const std::vector<std::string> path{path_text(py::reinterpret_borrow<py::object>(source))};
    for (auto& file : unlocked([&] { return io::kubernetes_files(path); })) {
        out.contents.push_back(unpacked(unlocked([&] { return read_file(file); }), file));
        out.names.push_back(std::move(file));
    }
}

/// The text of snapshot.json, which a zip archive holds, by Python's zipfile.
std::string archived_text(const py::object& path, const std::string& name) {
    const auto zipfile = py::module_::import("zipfile");
    try {
        const auto archive = zipfile.attr("ZipFile")(path);
        const auto names = archive.attr("namelist")().cast<std::vector<std::string>>();
        const auto found = std::find_if(names.begin(), names.end(), [](const std::string& entry) {
            return entry == "snapshot.json" || entry.ends_with("/snapshot.json");
        });
        if (found == names.end())
            throw InvalidInput(name + ": expected a zip archive with snapshot.json, found " +
                               std::to_string(names.size()) + " other files");
        if (archive.attr("getinfo")(*found).attr("file_size").cast<std::uint64_t>() > largest_document)
            throw InvalidInput(name + ": snapshot.json: expected at most " +
                               std::to_string(largest_document) + " bytes");
        return archive.attr("read")(*found).cast<std::string>();
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_Exception) || error.matches(PyExc_OSError)) throw;
        throw InvalidInput(name + ": expected a zip archive that can be read: " +
                           py::str(error.value()).cast<std::string>());
    }
}

/// A document, an archive, or the text of a file.
void take_kai_source(const py::object& source, Sources& out) {
    if (py::isinstance(source, py::module_::import("collections.abc").attr("Mapping"))) {
        out.contents.push_back(json_text(source));
        out.names.emplace_back("<dict>");
        return;
    }
    auto name = path_text(source);
    auto text = unlocked([&] { return read_file(name); });
    const bool packed =
        text.starts_with("PK") || py::module_::import("zipfile").attr("is_zipfile")(source).cast<bool>();
    out.contents.push_back(packed ? archived_text(source, name) : std::move(text));
    out.names.push_back(std::move(name));
}

}  // namespace

void bind_kubernetes(py::module_& parent) {
    py::module_ m = parent.attr("io");
    bind_import_report(m);
    py::class_<ClusterReading> reading(
        m, "ClusterReading", "A cluster that was read from elsewhere, and how each part of it was read.");
    const auto state = [](const ClusterReading& r) {
        return py::make_tuple(r.cluster, report_state(r.report));
    };
    define_equality(reading, state);
    define_copies(reading);
    reading
        .def(py::init([](const ClusterPtr& cluster, const ReadingReport& report) {
                 return ClusterReading{cluster, report};
             }),
             py::arg("cluster"), py::arg("report"),
             documented("__init__(self, cluster, report)", "What a reader of one's own has read.").c_str())
        .def_readonly("cluster", &ClusterReading::cluster, "The snapshot.")
        .def_readonly("report", &ClusterReading::report,
                      "What was read exactly, approximated, ignored or left out.")
        .def("__str__", [](const ClusterReading& r) { return io::reading_report_to_text(r.report); })
        .def("__repr__",
             [](const ClusterReading& r) {
                 return "<gpusched.io.ClusterReading: " +
                        counted(static_cast<std::int64_t>(r.cluster->node_count()), "node") + ", " +
                        counted(static_cast<std::int64_t>(r.cluster->task_count()), "task") + ">";
             })
        .def(py::pickle(state, [](const py::tuple& s) {
            return ClusterReading{s[0].cast<ClusterPtr>(), report_of(s[1].cast<py::tuple>())};
        }));
    using O = io::KubernetesReadOptions;
    const auto options = Keywords<O>().fields().shared_as("io.read_kubernetes");
    m.def(
        "read_kubernetes",
        [options](const Typed<"str | PathLike[str] | Mapping[str, Any] | Sequence[str | PathLike[str] | "
                              "Mapping[str, Any]]">& sources,
                  const py::kwargs& keywords) {
            const auto given = options.read("read_kubernetes", keywords);
            Sources read;
            if (py::isinstance<py::list>(sources) || py::isinstance<py::tuple>(sources))
                for (const auto source : sources) take_source(source, read);
            else
                take_source(sources, read);
            return unlocked(
                [&] { return ClusterReading::of(io::kubernetes_from_texts(read.texts(), given)); });
        },
        py::arg("sources"),
        options
            .documented("read_kubernetes(sources", doc("io::kubernetes_from_texts") +
                                                       "\n\n`sources` is a file, a folder, a document as "
                                                       "`json.load` gives it, or a list of these.")
            .c_str());
    const auto kai = Keywords<O>().fields().shared_as("io.read_kai_snapshot");
    m.def(
        "read_kai_snapshot",
        [kai](const Typed<"str | PathLike[str] | Mapping[str, Any]">& source, const py::kwargs& keywords) {
            const auto given = kai.read("read_kai_snapshot", keywords);
            Sources read;
            take_kai_source(source, read);
            return unlocked([&] {
                return ClusterReading::of(io::kai_snapshot_from_text(read.contents[0], given, read.names[0]));
            });
        },
        py::arg("source"),
        kai.documented("read_kai_snapshot(source",
                       doc("io::kai_snapshot_from_text") +
                           "\n\n`source` is the zip archive, its snapshot.json, or "
                           "that document as `json.load` gives it.")
            .c_str());
}

}  // namespace gpusched::python
