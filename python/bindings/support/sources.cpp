#include "support/sources.hpp"

#include "support/option_types.hpp"

namespace gpusched::python {

bool is_path(const py::object& source) {
    return py::isinstance<py::str>(source) || py::hasattr(source, "__fspath__");
}

std::string path_text(const py::object& source, const char* argument) {
    if (!is_path(source) && !py::isinstance<py::bytes>(source))
        bad_type(argument, source, "a path: a string or an os.PathLike");
    std::string path;
    try {
        path = py::module_::import("os").attr("fsencode")(source).cast<std::string>();
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_UnicodeEncodeError)) throw;
        bad_option(argument, source, "text, found half of a surrogate pair");
    }
    // The system reads a path up to the first NUL, which would name another file.
    if (path.find('\0') != path.npos) bad_option(argument, source, "no NUL character");
    return path;
}

}  // namespace gpusched::python
