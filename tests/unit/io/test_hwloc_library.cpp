// SPDX-License-Identifier: Apache-2.0
// The reader of hwloc's XML against the hwloc library, where that is installed: what is where, counted by its own functions.
#include "support/real_data.hpp"

#ifdef GPUSCHED_TEST_HWLOC
#include <gpusched/io/hardware_files.hpp>

#include <hwloc.h>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace gpusched;

namespace {

struct Numa {
    int cores = 0;
    int package = -1;
    int gpus = 0;
};

bool is_gpu(hwloc_obj_t device) {
    const auto& pci = device->attr->pcidev;
    const bool known = pci.vendor_id == 0x10de || pci.vendor_id == 0x1002;
    if (pci.class_id == 0x0300 && (pci.vendor_id == 0x10de || (pci.vendor_id == 0x1002 && pci.linkspeed > 0)))
        return true;
    if (pci.class_id == 0x0302 || ((pci.class_id == 0x0380 || pci.class_id == 0x1200) && known)) return true;
    for (auto child = device->io_first_child; child != nullptr; child = child->next_sibling) {
        if (child->type != HWLOC_OBJ_OS_DEVICE) continue;
        const std::string name = child->name != nullptr ? child->name : "";
        for (const auto* prefix : {"cuda", "nvml", "rsmi", "ze", "opencl"})
            if (name.starts_with(prefix) && child->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK) return true;
    }
    return false;
}

/// NUMA nodes with CPUs, by OS index; what the library makes of a file.
std::map<unsigned, Numa> by_library(hwloc_topology_t topology) {
    std::map<unsigned, Numa> found;
    const auto every = [&](hwloc_obj_type_t type, auto&& visit) {
        for (hwloc_obj_t at = nullptr; (at = hwloc_get_next_obj_by_type(topology, type, at)) != nullptr;)
            visit(at);
    };
    std::map<unsigned, hwloc_const_bitmap_t> cpus;
    every(HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t numa) {
        if (numa->cpuset == nullptr || hwloc_bitmap_iszero(numa->cpuset)) return;
        found[numa->os_index] = {};
        cpus[numa->os_index] = numa->cpuset;
    });
    int number = 0;
    every(HWLOC_OBJ_PACKAGE, [&](hwloc_obj_t package) {
        for (const auto& [id, set] : cpus)
            if (hwloc_bitmap_intersects(package->cpuset, set)) found[id].package = number;
        ++number;
    });
    every(HWLOC_OBJ_CORE, [&](hwloc_obj_t core) {
        for (const auto& [id, set] : cpus)
            if (hwloc_bitmap_intersects(core->cpuset, set)) ++found[id].cores;
    });
    every(HWLOC_OBJ_PCI_DEVICE, [&](hwloc_obj_t device) {
        if (!is_gpu(device)) return;
        const auto near = hwloc_get_non_io_ancestor_obj(topology, device);
        std::vector<unsigned> of;
        for (const auto& [id, set] : cpus)
            if (hwloc_bitmap_intersects(near->cpuset, set)) of.push_back(id);
        if (of.size() == 1) ++found[of.front()].gpus;
    });
    return found;
}

}  // namespace

TEST_CASE("machines agree with the hwloc library", "[io]") {
    if (!io::reads_xml()) return;
    int compared = 0, gpus = 0;
    for (const auto* folder : {"hwloc", "flux/hwloc", "mpibind"})
        for (const auto& file : testing_support::real_files(folder, ".xml")) {
            hwloc_topology_t topology = nullptr;
            REQUIRE(hwloc_topology_init(&topology) == 0);
            hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
            INFO(file.string());
            if (hwloc_topology_set_xml(topology, file.c_str()) != 0 || hwloc_topology_load(topology) != 0) {
                hwloc_topology_destroy(topology);  // a format newer than the library
                continue;
            }
            const auto expected = by_library(topology);
            const int all_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
            hwloc_topology_destroy(topology);
            const auto graph = io::read_hwloc(file.string()).graph;
            const auto machine = graph.hardware();
            std::set<int> ids;  // of our NUMA nodes
            for (const auto v : graph.vertices())
                if (graph.vertex(v).kind == topology::HardwareKind::numa_node) ids.insert(graph.vertex(v).id);
            REQUIRE(machine.numa_nodes.size() == ids.size());
            std::map<int, int> packages;  // ours by theirs
            // The library drops NUMA nodes without memory of old files; the reader keeps them, for their cores.
            for (const auto& [id, numa] : expected) {
                INFO("NUMA node " << id);
                const auto at = ids.find(static_cast<int>(id));
                REQUIRE(at != ids.end());
                const auto& ours =
                    machine.numa_nodes[static_cast<std::size_t>(std::distance(ids.begin(), at))];
                CHECK(ours.cores == numa.cores);
                CHECK(gpu_count(ours.gpus) == numa.gpus);
                CHECK(packages.try_emplace(numa.package, ours.socket).first->second == ours.socket);
                gpus += numa.gpus;
            }
            CHECK(machine.cores() == all_cores);
            ++compared;
        }
    CAPTURE(compared, gpus);
    if (compared > 0) CHECK(gpus >= 30);
}

#endif
