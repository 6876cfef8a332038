// SPDX-License-Identifier: Apache-2.0
// Recognises the format of a machine's description, and asks hwloc for this machine.
#include "io/documents.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/io/hardware_files.hpp>

#include <dlfcn.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace gpusched::io {

#ifdef GPUSCHED_HAS_PUGIXML
GPUSCHED_EXPORT bool reads_xml() noexcept { return true; }
#else
GPUSCHED_EXPORT bool reads_xml() noexcept { return false; }

static HardwareReading no_xml(std::string_view source) {
    throw BackendError(std::string(source) +
                       ": this build of gpusched reads no XML: it was built without pugixml "
                       "(Debian and Ubuntu: apt-get install libpugixml-dev)");
}
GPUSCHED_EXPORT HardwareReading hwloc_from_xml(std::string_view, const HardwareReadOptions&,
                                               std::string_view source) {
    return no_xml(source);
}
GPUSCHED_EXPORT HardwareReading nccl_topology_from_xml(std::string_view, const HardwareReadOptions&,
                                                       std::string_view source) {
    return no_xml(source);
}
#endif

GPUSCHED_EXPORT std::optional<HardwareFormat> hardware_format(std::string_view text) {
    const auto start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (start == text.npos) return std::nullopt;
    if (text[start] == '<') {
        if (text.find("<system") != text.npos || text.find("<graphs") != text.npos)
            return HardwareFormat::nccl;
        if (text.find("<topology") != text.npos) return HardwareFormat::hwloc;
        return std::nullopt;
    }
    if (text.find("FlexTopo") != text.npos) return HardwareFormat::flextopo;
    if (text.find("GPU0") != text.npos) return HardwareFormat::nvidia_smi;
    return std::nullopt;
}

GPUSCHED_EXPORT HardwareReading hardware_from_text(std::string_view text, const HardwareReadOptions& options,
                                                   std::string_view source) {
    const auto format = hardware_format(text);
    if (format == HardwareFormat::nvidia_smi) return nvidia_smi_topo_from_text(text, options, source);
    if (format == HardwareFormat::nccl) return nccl_topology_from_xml(text, options, source);
    if (format == HardwareFormat::hwloc) return hwloc_from_xml(text, options, source);
    if (format == HardwareFormat::flextopo) return flextopo_from_text(text, options, source);
    const auto found = detail::found_snapshot(text);
    throw InvalidInput(std::string(source) +
                       ": expected a machine: the matrix of 'nvidia-smi topo -m', topology XML of NCCL or "
                       "hwloc, or a FlexTopo object" +
                       (found.description.empty() ? "" : ", found " + found.description));
}

GPUSCHED_EXPORT HardwareReading read_hardware(const std::string& path, const HardwareReadOptions& options) {
    return hardware_from_text(read_file(path), options, path);
}
GPUSCHED_EXPORT HardwareReading read_nccl_topology(const std::string& path,
                                                   const HardwareReadOptions& options) {
    return nccl_topology_from_xml(read_file(path), options, path);
}
GPUSCHED_EXPORT HardwareReading read_hwloc(const std::string& path, const HardwareReadOptions& options) {
    return hwloc_from_xml(read_file(path), options, path);
}

namespace detail {

/// The loaded hwloc library, with the functions that write the machine's XML.
class HwlocLibrary {
  public:
    explicit HwlocLibrary(const std::string& name)
        : name_(name), handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL), ::dlclose) {
        if (handle_ == nullptr) {
            const char* const why = ::dlerror();
            throw BackendError(
                "the hwloc library cannot be loaded (Debian, Ubuntu: apt-get install libhwloc15): " +
                std::string(why != nullptr ? why : "no reason given"));
        }
        const auto version = function<unsigned (*)()>("hwloc_get_api_version")();
        if (version >> 16 != 2)
            throw BackendError(concat(name_, ": expected version 2 of the interface, found ", version >> 16));
    }

    /// The XML of the machine that the program runs on.
    [[nodiscard]] std::string xml() const {
        const auto init = function<int (*)(Topology*)>("hwloc_topology_init");
        const auto destroy = function<void (*)(Topology)>("hwloc_topology_destroy");
        const auto io_types = function<int (*)(Topology, int)>("hwloc_topology_set_io_types_filter");
        const auto load = function<int (*)(Topology)>("hwloc_topology_load");
        const auto write =
            function<int (*)(Topology, char**, int*, unsigned long)>("hwloc_topology_export_xmlbuffer");
        const auto release = function<void (*)(Topology, char*)>("hwloc_free_xmlbuffer");

        Topology made = nullptr;
        check(init(&made), "hwloc_topology_init");
        const std::unique_ptr<std::remove_pointer_t<Topology>, decltype(destroy)> topology(made, destroy);
        constexpr int keep_all = 0;  // HWLOC_TYPE_FILTER_KEEP_ALL: bridges and devices of PCI as well
        check(io_types(made, keep_all), "hwloc_topology_set_io_types_filter");
        check(load(made), "hwloc_topology_load");
        char* text = nullptr;
        int length = 0;  // with the 0 at the end
        check(write(made, &text, &length, 0), "hwloc_topology_export_xmlbuffer");
        std::string out(text);
        release(made, text);
        return out;
    }

  private:
    using Topology = struct hwloc_topology*;

    template <class Function>
    Function function(const char* symbol) const {
        auto* const found = ::dlsym(handle_.get(), symbol);
        if (found == nullptr) throw BackendError(name_ + ": has no " + symbol + ": not hwloc, or too old");
        return reinterpret_cast<Function>(found);
    }
    void check(int status, const char* call) const {
        if (status != 0)
            throw BackendError(name_ + ": " + call + " failed: " + std::generic_category().message(errno));
    }

    std::string name_;
    std::unique_ptr<void, int (*)(void*)> handle_;
};

}  // namespace detail

GPUSCHED_EXPORT HardwareReading read_this_machine(const HardwareReadOptions& options,
                                                  const std::string& library) {
    return hwloc_from_xml(detail::HwlocLibrary(library).xml(), options, "this machine");
}

}  // namespace gpusched::io
