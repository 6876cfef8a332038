// SPDX-License-Identifier: Apache-2.0
// The hwloc library takes another machine for this one when its environment says so: one made up, or a file.
#include "support/real_data.hpp"

#include <dlfcn.h>
#include <gpusched/io/io.hpp>
#include <unistd.h>

#include <fstream>

using namespace gpusched;

namespace {

bool hwloc_is_there() {
    static void* const library = ::dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) WARN("skipped: the hwloc library is not installed");
    return library != nullptr && io::reads_xml();
}

/// An environment variable for as long as this lives.
struct Environment {
    const char* name;
    Environment(const char* variable, const std::string& value) : name(variable) {
        ::setenv(name, value.c_str(), 1);
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() { ::unsetenv(name); }
};

std::string failure(const std::string& library) {
    try {
        (void)io::read_this_machine({}, library);
    } catch (const BackendError& error) {
        return error.what();
    }
    return "nothing";
}

}  // namespace

TEST_CASE("this machine as the hwloc library sees it", "[io]") {
    if (!hwloc_is_there()) return;
    {
        const auto here = io::read_this_machine().graph.hardware();
        CHECK(here.cores() >= 1);
        CHECK_FALSE(here.numa_nodes.empty());
    }
    const Environment made_up("HWLOC_SYNTHETIC", "package:2 numa:2 core:4 pu:2");
    const auto machine = io::read_this_machine().graph.hardware();
    REQUIRE(machine.numa_nodes.size() == 4);
    CHECK(machine.cores() == 16);
    CHECK(machine.numa_nodes[1].socket == machine.numa_nodes[0].socket);
    CHECK(machine.numa_nodes[2].socket != machine.numa_nodes[0].socket);
    CHECK(machine.numa_nodes[3].cores == 4);
}

TEST_CASE("a machine through the hwloc library is that of its file", "[io]") {
    if (!hwloc_is_there()) return;
    int compared = 0;
    for (const auto* folder : {"hwloc", "flux/hwloc", "mpibind"})
        for (const auto& file : testing_support::real_files(folder, ".xml")) {
            INFO(file.string());
            const Environment elsewhere("HWLOC_XMLFILE", file.string());
            const auto expected = io::read_hwloc(file.string()).graph;
            std::optional<topology::HardwareGraph> machine;
            try {
                machine = io::read_this_machine().graph;
            } catch (const BackendError& error) {
                WARN("skipped: " << error.what());  // a format that this version of the library does not read
                continue;
            }
            // The library drops NUMA nodes without memory of old files; the reader keeps them, for their cores.
            const auto found = machine->hardware(), wanted = expected.hardware();
            if (found.numa_nodes.size() != wanted.numa_nodes.size()) continue;
            CHECK(found == wanted);
            std::vector<int> gpus;
            for (const auto& numa : expected.hardware().numa_nodes)
                for (int gpu = 0; gpu < max_gpus_per_node; ++gpu)
                    if ((numa.gpus & gpu_bit(gpu)) != 0) gpus.push_back(gpu);
            for (const int a : gpus)
                for (const int b : gpus)
                    if (a != b) CHECK(machine->bandwidth(a, b) == expected.bandwidth(a, b));
            ++compared;
        }
    if (!testing_support::real_files("mpibind", ".xml").empty()) CHECK(compared >= 5);
}

TEST_CASE("this machine's display adapters may be GPUs", "[io]") {
    if (!hwloc_is_there()) return;
    const std::string sets = R"(cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" )";
    const auto object = [&](const std::string& type, int number) {
        return "<object type=\"" + type + "\" os_index=\"0\" gp_index=\"" + std::to_string(number) + "\" " +
               sets;
    };
    const auto file =
        std::filesystem::temp_directory_path() / ("gpusched-display-" + std::to_string(::getpid()) + ".xml");
    std::ofstream(file) << R"(<topology version="2.0">)" << object("Machine", 1)
                        << R"(allowed_cpuset="0x1" allowed_nodeset="0x1">)" << object("Package", 2) << ">"
                        << object("NUMANode", 3) << R"(local_memory="1024"/>)" << object("Core", 4) << ">"
                        << object("PU", 5)
                        << R"(/></object><object type="Bridge" gp_index="6" bridge_type="0-1" depth="0"
         bridge_pci="0000:[00-02]">
           <object type="PCIDev" gp_index="7" pci_busid="0000:01:00.0"
            pci_type="0300 [10de:2684] [1043:88a7] a1"
            pci_link_speed="31.507692"/></object></object></object></topology>)";
    const Environment elsewhere("HWLOC_XMLFILE", file.string());
    const auto machine = io::read_this_machine();
    std::filesystem::remove(file);
    CHECK(machine.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 1, 0b1}});
    REQUIRE(machine.notes.size() >= 1);
    CHECK_THAT(machine.notes.front(), Mentions("GPUs display adapters NVIDIA"));
}

TEST_CASE("other libraries than hwloc are refused", "[io]") {
    CHECK(failure("libnothing-of-the-kind.so").find("apt-get install libhwloc15") != std::string::npos);
    CHECK_THAT(failure("libm.so.6"), Mentions("libm.so.6 no hwloc_get_api_version"));
}
