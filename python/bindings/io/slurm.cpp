// The module gpusched.io: the reader of the output of Slurm's scontrol.
#include "io/cluster_reading.hpp"
#include "support/arguments.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"
#include "support/sources.hpp"

#include <gpusched/core/file.hpp>
#include <gpusched/io/slurm.hpp>

namespace gpusched::python {

namespace {

/// A document or a file.
void take_slurm_source(const py::handle& source, Sources& out) {
    if (is_mapping(source)) {
        out.contents.push_back(json_text(to_document(source, "<dict>")));
        out.names.emplace_back("<dict>");
        return;
    }
    auto path = path_text(py::reinterpret_borrow<py::object>(source));
    out.contents.push_back(unlocked([&] { return read_file(path); }));
    out.names.push_back(std::move(path));
}

}  // namespace

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

}  // namespace gpusched::python
