// SPDX-License-Identifier: Apache-2.0
// Reads machines: nvidia-smi topo, NCCL and hwloc XML, FlexTopo objects, this machine; writes FlexTopo.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::io {

/// Assumptions about a machine for facts that its description omits. Bandwidths are nominal, in GB/s and one
/// direction.
struct HardwareReadOptions {
    int core_group_size = 8;           ///< cores per core group, >= 1; used if the text has no core groups
    int threads_per_core = 0;          ///< logical CPUs per core, >= 1; 0 = inferred from the CPU numbers
    int numa_nodes_per_socket = 1;     ///< >= 1; used if the text does not assign NUMA nodes to sockets
    double pcie_gb_s = 31.5;           ///< of a PCIe link without a given speed (4.0 x16), > 0
    double interconnect_gb_s = 32;     ///< between each two sockets, > 0
    double nvlink_gb_s_per_link = 25;  ///< of each NVLink or xGMI link, > 0 (NVLink 2 to 4: 25, 5: 50)
};
template <class F>
constexpr void visit_fields(std::type_identity<HardwareReadOptions>, F&& field) {
    field("core_group_size", &HardwareReadOptions::core_group_size, at_least(1));
    field("threads_per_core", &HardwareReadOptions::threads_per_core, at_least(0));
    field("numa_nodes_per_socket", &HardwareReadOptions::numa_nodes_per_socket, at_least(1));
    field("pcie_gb_s", &HardwareReadOptions::pcie_gb_s, more_than(0));
    field("interconnect_gb_s", &HardwareReadOptions::interconnect_gb_s, more_than(0));
    field("nvlink_gb_s_per_link", &HardwareReadOptions::nvlink_gb_s_per_link, more_than(0));
}

/// A machine as it was read.
struct HardwareReading {
    topology::HardwareGraph graph;
    std::vector<std::string>
        notes;  ///< facts that were inferred because the text omits them; in a fixed order
};

/// The formats of machines.
enum class HardwareFormat : std::uint8_t { nvidia_smi, nccl, hwloc, flextopo };

/// Guesses the format of a text from a few characteristic words; none if it has none of these formats.
[[nodiscard]] std::optional<HardwareFormat> hardware_format(std::string_view text);

/// Whether the library was built with pugixml. Without it, the readers of XML throw BackendError.
[[nodiscard]] bool reads_xml() noexcept;

/// Reads a machine in any of the formats.
/// @throws InvalidInput if the file has none of these formats, and as the reader of its format does
/// @throws BackendError if the file cannot be read, and as the reader of its format does
[[nodiscard]] HardwareReading read_hardware(const std::string& path, const HardwareReadOptions& options = {});
/// Reads a text as `read_hardware` reads a file.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
[[nodiscard]] HardwareReading hardware_from_text(std::string_view text,
                                                 const HardwareReadOptions& options = {},
                                                 std::string_view source = "<text>");

/// Reads the matrix that `nvidia-smi topo -m` prints.
///
/// Columns may be aligned by tabs or by two and more spaces; reading stops at a line that has "Legend:". Rows
/// and columns of other devices (network cards) only show which GPUs share a PCIe switch or host bridge. PIX
/// and PXB become PCIe switches, PHB a common PCIe root, NV# an NVLink edge of # links. The matrix hides the
/// PCIe path between NVLink neighbours, so those share a root only if a third device shows it.
///
/// NUMA nodes come from the column "NUMA Affinity". If it is missing or N/A, GPUs with the same CPUs share
/// one. The matrix has no sockets: `numa_nodes_per_socket` NUMA nodes, by ascending id, make one. It lists
/// only CPUs near GPUs; other NUMA nodes and their cores are unknown.
/// @throws InvalidInput with every problem, each with source and line: no matrix, a matrix of `nvidia-smi
///         topo -p2p`, unknown entries, rows that are missing or too short, contradictory entries, more than
///         64 GPUs; and for options out of range
/// @throws BackendError if the file cannot be read
[[nodiscard]] HardwareReading read_nvidia_smi_topo(const std::string& path,
                                                   const HardwareReadOptions& options = {});
/// Reads a text as `read_nvidia_smi_topo` reads a file.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
[[nodiscard]] HardwareReading nvidia_smi_topo_from_text(std::string_view text,
                                                        const HardwareReadOptions& options = {},
                                                        std::string_view source = "<text>");

/// Reads a topology in the XML of NCCL (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) or RCCL.
///
/// `cpu` is a NUMA node with its CPUs, nested `pci` are PCIe switches with their link's speed, `gpu` a GPU
/// with the index `dev`, `nvlink` and `xgmi` its links; through NVSwitches they reach every GPU that has
/// links to the same ones. Everything below one outermost `pci` shares a PCIe root. Without any `gpu`
/// element, devices of the PCI classes 0302, 0380 and 1200 are the GPUs, numbered by ascending bus id as the
/// driver does. The file has no sockets: `numa_nodes_per_socket` NUMA nodes, by ascending id, make one.
/// Network cards are left out.
/// @throws InvalidInput with every problem, each with source and line: a text that is not XML, a file of
///         graphs (NCCL_GRAPH_FILE), attributes that are missing or out of range, NUMA nodes or GPUs that
///         occur twice, no hint which devices are GPUs; and for options out of range
/// @throws BackendError if the file cannot be read, or the library was built without pugixml
[[nodiscard]] HardwareReading read_nccl_topology(const std::string& path,
                                                 const HardwareReadOptions& options = {});
/// Reads a text as `read_nccl_topology` reads a file.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
[[nodiscard]] HardwareReading nccl_topology_from_xml(std::string_view text,
                                                     const HardwareReadOptions& options = {},
                                                     std::string_view source = "<text>");

/// Reads a topology in the XML of hwloc (`lstopo --of xml`), versions 1 to 3 of the format.
///
/// Packages are sockets, in their order. NUMA nodes keep their OS index; those without CPUs (memory of GPUs)
/// are left out. Cores have the number of their first CPU. Host bridges are PCIe roots, the bridges above a
/// GPU PCIe switches with the current speed of their link. GPUs are PCI devices of class 0302, 0380 or 1200
/// (docs/io-machines.md) and devices of NVML, RSMI, CUDA, Level Zero or OpenCL; they have the index of the first of
/// these that knows them, else by ascending bus id. A GPU is near a NUMA node if the CPUs next to it belong to
/// that node alone. Matrices of links (NVLinkBandwidth, XGMIBandwidth) are read.
/// @throws InvalidInput with every problem, each with source and line: a text that is not XML or of another
///         kind, attributes that are missing or out of range, CPUs of two NUMA nodes, more than 64 GPUs; and
///         for options out of range
/// @throws BackendError if the file cannot be read, or the library was built without pugixml
[[nodiscard]] HardwareReading read_hwloc(const std::string& path, const HardwareReadOptions& options = {});
/// Reads a text as `read_hwloc` reads a file.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
[[nodiscard]] HardwareReading hwloc_from_xml(std::string_view text, const HardwareReadOptions& options = {},
                                             std::string_view source = "<text>");

/// Reads the machine that the program runs on, through the hwloc library. `read_hwloc` says how objects are
/// read.
///
/// The library is loaded by this call, so that only its callers need it. It finds GPUs and links through its
/// plugins (CUDA, NVML, RSMI); without them GPUs are known by their PCI class. It honours its environment
/// variables: with HWLOC_XMLFILE it reads a file of another machine, in older versions of the format, too.
/// @param library  name or path of the shared library, of version 2 of its interface
/// @throws BackendError if the library cannot be loaded, is of another version, or fails, and if gpusched was
///         built without pugixml
/// @throws InvalidInput as `read_hwloc` does
[[nodiscard]] HardwareReading read_this_machine(const HardwareReadOptions& options = {},
                                                const std::string& library = "libhwloc.so.15");

/// Reads a FlexTopo custom resource (YAML or JSON): sockets, NUMA nodes, core groups, cores and GPUs, and
/// their users.
///
/// The id of a vertex ends in its number. The kinds of its two ends give an edge its meaning, in either
/// direction: those of the paper and those that the collector writes (docs/io-machines.md). Attributes may be
/// text or numbers; their names are compared without case and underscores: status (free; used, allocated; failed,
/// unhealthy), usedBy, uuid, name or model, memoryTotal or memory (MiB).
///
/// If no GPU has an edge, GPUs are spread evenly over the NUMA nodes by ascending number, and `notes` says
/// so. Of `options`, only the bandwidths are used.
/// @throws InvalidInput with every problem, each with source and JSON pointer: no FlexTopo object or several,
///         ids without a number, unknown types, edges between unrelated vertices, cores in no group, groups near
///         no NUMA node; and for options out of range
/// @throws BackendError if the file cannot be read, and for YAML if the library was built without libyaml
[[nodiscard]] HardwareReading read_flextopo(const std::string& path, const HardwareReadOptions& options = {});
/// Reads a text as `read_flextopo` reads a file.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
[[nodiscard]] HardwareReading flextopo_from_text(std::string_view text,
                                                 const HardwareReadOptions& options = {},
                                                 std::string_view source = "<text>");

/// Writes a machine as a FlexTopo custom resource (JSON, which YAML readers read too): its sockets, NUMA
/// nodes, core groups, cores and GPUs, and their users.
///
/// Vertices are written as the collector of the FlexTopo authors writes them (`socket-0`, `numa-0`,
/// `coregroup-0`, `core-0`, `gpu-0`; attributes status, usedBy, uuid, name, memoryTotal), edges as in Table 2
/// of the paper: host (also of a NUMA node without core groups), contain, localized, nearby. The object does
/// not hold PCIe, NVLink, links of sockets and bandwidths. `flextopo_from_text` reads the rest back, except
/// that it spreads GPUs over the NUMA nodes if none has an edge. Vertices and edges come in the graph's
/// order, so equal graphs give equal text.
/// @param name  of the object, which is cluster-wide: the node's name
/// @throws InvalidInput for a name that Kubernetes would not accept
[[nodiscard]] std::string flextopo_to_json(const topology::HardwareGraph& graph, std::string_view name);

}  // namespace gpusched::io
