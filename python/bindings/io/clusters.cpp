// SPDX-License-Identifier: Apache-2.0
// The module gpusched.io: readers of clusters (Kubernetes, KAI, Slurm), and reading reports.
#include "model/cluster_views.hpp"
#include "support/arguments.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/core/file.hpp>
#include <gpusched/io/cluster_reading.hpp>
#include <gpusched/io/kubernetes.hpp>
#include <gpusched/io/slurm.hpp>

#include <tuple>

namespace gpusched::python {

namespace {

/// A cluster from another system, with a report on how it was read.
struct ClusterReading {
    ClusterPtr cluster{};
    io::ReadingReport report{};

    /// From the result of a reader of the library.
    template <class Reading>
    static ClusterReading of(Reading read) {
        return {std::make_shared<Cluster>(Cluster::build(read.cluster)), std::move(read.report)};
    }
};

constexpr const char* path_or_document = "a path (a string or an os.PathLike) or a dict";

/// Texts and their names in messages.
struct Sources {
    std::vector<std::string> contents{}, names{};
    [[nodiscard]] std::vector<io::NamedText> texts() const {
        std::vector<io::NamedText> out;
        for (std::size_t i = 0; i < contents.size(); ++i) out.push_back({contents[i], names[i]});
        return out;
    }
    void add(std::string content, std::string name) {
        contents.push_back(std::move(content));
        names.push_back(std::move(name));
    }
    /// Adds a document from `json.load`. Returns false for other objects.
    bool add_document(py::handle source) {
        if (!is_mapping(source)) return false;
        add(json_text(to_document(source, "<dict>")), "<dict>");
        return true;
    }
};

using io::AbsentKind;
using io::ReadingReport;
using io::ReadingRow;

void bind_import_report(py::module_& m) {
    auto row = bind_record<ReadingRow>(m, "ReadingRow");
    Keywords<ReadingRow>().fields().def_init(row);
    bind_record<AbsentKind>(m, "AbsentKind");
    auto report = bind_record<ReadingReport>(m, "ReadingReport");
    report
        .def(py::init([](const Typed<"Sequence[ReadingRow]">& rows) {
                 ReadingReport made;
                 for (const auto& one : OptionType<std::vector<py::object>>::read("rows", rows))
                     made.rows.push_back(one.cast<ReadingRow>());
                 return made;
             }),
             py::arg("rows"), documented("Makes the report of a custom reader."))
        .def("__str__", [](const ReadingReport& r) { return io::reading_report_to_text(r); })
        .def("__repr__",
             [](const ReadingReport& r) {
                 return "<gpusched.io.ReadingReport: " + counted(r.rows, "row") + ">";
             })
        .def(
            "to_json", [](const ReadingReport& r) { return io::reading_report_to_json(r); },
            documented(doc("io::reading_report_to_json")));
}

/// Most bytes that an archive may unpack to: a few can stand for a thousand times as many.
std::size_t most_unpacked(std::size_t packed) {
    return std::min(largest_document, (std::size_t{16} << 20) + 64 * packed);
}
[[noreturn]] void refuse_unpacked(const std::string& name, std::size_t packed) {
    throw InvalidInput(concat(name, ": expected at most ", most_unpacked(packed),
                              " bytes unpacked: 16 MiB, and 64 "
                              "for each byte of the archive; unpack it first"));
}

/// The text of a gzip archive, with Python's gzip; other texts stay as they are.
std::string unpacked(std::string text, const std::string& name) {
    if (!text.starts_with("\x1f\x8b")) return text;
    try {
        const auto file = py::module_::import("gzip").attr("GzipFile")(
            py::arg("fileobj") = py::module_::import("io").attr("BytesIO")(py::bytes(text)));
        const auto most = most_unpacked(text.size());
        auto out = file.attr("read")(most + 1).cast<std::string>();
        if (out.size() > most) refuse_unpacked(name, text.size());
        return out;
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        throw InvalidInput(name + ": expected gzip data: " + py::str(error.value()).cast<std::string>());
    }
}

/// A document, or the texts of the files at a path.
void take_source(const py::handle& source, Sources& out) {
    if (out.add_document(source)) return;
    const std::vector<std::string> path{
        path_text(py::reinterpret_borrow<py::object>(source), "path", path_or_document)};
    for (auto& file : unlocked([&] { return io::kubernetes_files(path); })) {
        out.add(unpacked(unlocked([&] { return read_file(file); }), file), file);
    }
}

/// The text of snapshot.json in a zip archive, with Python's zipfile.
std::string archived_text(const py::object& path, const std::string& name, std::size_t packed) {
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
        const auto most = most_unpacked(packed);
        auto out = archive.attr("open")(*found).attr("read")(most + 1).cast<std::string>();
        if (out.size() > most) refuse_unpacked(name + ": snapshot.json", packed);
        return out;
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_Exception) || error.matches(PyExc_OSError)) throw;
        throw InvalidInput(
            name + ": expected a readable zip archive: " + py::str(error.value()).cast<std::string>());
    }
}

/// A document, an archive, or the text of a file.
void take_kai_source(const py::object& source, Sources& out) {
    if (out.add_document(source)) return;
    const auto name = path_text(source, "path", path_or_document);
    auto text = unlocked([&] { return read_file(name); });
    const bool packed =
        text.starts_with("PK") || py::module_::import("zipfile").attr("is_zipfile")(source).cast<bool>();
    out.add(packed ? archived_text(source, name, text.size()) : std::move(text), name);
}

/// A document or a file.
void take_slurm_source(const py::handle& source, Sources& out) {
    if (out.add_document(source)) return;
    const auto path = path_text(py::reinterpret_borrow<py::object>(source), "path", path_or_document);
    out.add(unlocked([&] { return read_file(path); }), path);
}

void bind_slurm(py::module_& m) {
    using O = io::SlurmReadOptions;
    const auto options = Keywords<O>().fields().shared_as("io.read_slurm");
    m.def(
        "read_slurm",
        [options](const py::args& paths, const py::kwargs& keywords) {
            const auto given = options.read("read_slurm", keywords);
            Sources read;
            for (const auto path : paths)
                if (py::isinstance<py::list>(path) || py::isinstance<py::tuple>(path))
                    for (const auto one : py::reinterpret_borrow<py::iterable>(path))
                        take_slurm_source(one, read);
                else
                    take_slurm_source(path, read);
            return unlocked([&] { return ClusterReading::of(io::slurm_from_texts(read.texts(), given)); });
        },
        options.documented(doc("io::slurm_from_texts") +
                               "\n\n`paths`: files, documents from `json.load`, or lists of these.",
                           "*paths"));
}

void bind_kubernetes(py::module_& m) {
    py::class_<ClusterReading> reading(
        m, "ClusterReading", "A cluster from another system, with a report on how each part was read.");
    define_value(
        reading, [](const ClusterReading& r) { return std::tuple(r.cluster, r.report); },
        [](const std::tuple<ClusterPtr, ReadingReport>& state) {
            return ClusterReading{std::get<0>(state), std::get<1>(state)};
        });
    reading
        .def(py::init([](const ClusterPtr& cluster, const ReadingReport& report) {
                 return ClusterReading{cluster, report};
             }),
             py::arg("cluster"), py::arg("report"), documented("Makes the result of a custom reader."))
        .def_readonly("cluster", &ClusterReading::cluster, "The snapshot.")
        .def_readonly("report", &ClusterReading::report,
                      "Report on the parts that were read exactly, approximated, ignored or left out.")
        .def("__str__", [](const ClusterReading& r) { return io::reading_report_to_text(r.report); })
        .def("__repr__", [](const ClusterReading& r) {
            return "<gpusched.io.ClusterReading: " +
                   counted(static_cast<std::int64_t>(r.cluster->node_count()), "node") + ", " +
                   counted(static_cast<std::int64_t>(r.cluster->task_count()), "task") + ">";
        });
    using O = io::KubernetesReadOptions;
    Keywords<O>()
        .fields()
        .shared_as("io.read_kubernetes")
        .def(
            m, "read_kubernetes",
            [](const O& given,
               const Typed<"str | PathLike[str] | Mapping[str, Any] | Sequence[str | PathLike[str] | "
                           "Mapping[str, Any]]">& paths) {
                Sources read;
                if (py::isinstance<py::list>(paths) || py::isinstance<py::tuple>(paths))
                    for (const auto path : paths) take_source(path, read);
                else
                    take_source(paths, read);
                return unlocked(
                    [&] { return ClusterReading::of(io::kubernetes_from_texts(read.texts(), given)); });
            },
            doc("io::kubernetes_from_texts") +
                "\n\n`paths`: a file, a folder, a document from `json.load`, or a list of these.",
            py::arg("paths"));
    Keywords<O>()
        .fields()
        .shared_as("io.read_kai_snapshot")
        .def(
            m, "read_kai_snapshot",
            [](const O& given, const Typed<"str | PathLike[str] | Mapping[str, Any]">& path) {
                Sources read;
                take_kai_source(path, read);
                return unlocked([&] {
                    return ClusterReading::of(
                        io::kai_snapshot_from_text(read.contents[0], given, read.names[0]));
                });
            },
            doc("io::kai_snapshot_from_text") +
                "\n\n"
                "`path`: the zip archive, its snapshot.json, or this document from `json.load`.",
            py::arg("path"));
}

}  // namespace

void bind_clusters(py::module_& m) {
    bind_import_report(m);
    bind_kubernetes(m);
    bind_slurm(m);
}

}  // namespace gpusched::python
