// Text from other sources, and pickles with old protocols.
#include "support/bindings.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::python {

py::str foreign_text(std::string_view text) {
    return py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "backslashreplace"));
}

py::list foreign_texts(const std::vector<std::string>& texts) {
    py::list out;
    for (const auto& text : texts) out.append(foreign_text(text));
    return out;
}

void allow_old_protocols(const py::handle& scope) {
    // For these protocols, Python calls the constructor of pybind11's base class, which ends the process.
    // Protocol 2 calls a method of the object instead, and its result is also valid for the older protocols.
    const auto reduce = py::module_::import("builtins").attr("object").attr("__reduce_ex__");
    const auto metaclass = reinterpret_cast<PyObject*>(py::detail::get_internals().default_metaclass);
    for (const auto member : scope.attr("__dict__").attr("values")()) {
        if (py::isinstance<py::module_>(member)) {
            allow_old_protocols(member);
        } else if (py::isinstance(member, metaclass)) {
            member.attr("__reduce_ex__") =
                py::cpp_function([reduce](const py::object& self,
                                          int protocol) { return reduce(self, std::max(protocol, 2)); },
                                 py::name("__reduce_ex__"), py::is_method(member), py::arg("protocol"));
            allow_old_protocols(member);
        }
    }
}

}  // namespace gpusched::python
