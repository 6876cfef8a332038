// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/io/hwloc.hpp>
#include <gpusched/io/this_machine.hpp>

#include <dlfcn.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace gpusched::io {

namespace detail {

/// The hwloc library, loaded: the few functions that lead from the machine to its XML.
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
            throw BackendError(name_ + ": expected version 2 of the interface, found " +
                               std::to_string(version >> 16));
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
