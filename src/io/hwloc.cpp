// SPDX-License-Identifier: Apache-2.0
// Reads hwloc XML.
#include "io/hardware_parts.hpp"
#include "io/xml.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/hardware_files.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef GPUSCHED_HAS_PUGIXML

namespace gpusched::io::detail {

/// Libraries through which hwloc finds GPUs, the best numbering first.
inline constexpr std::array<std::string_view, 5> gpu_libraries{"nvml", "rsmi", "cuda", "ze", "opencl"};

/// `nvml3` -> (nvml, 3); `opencl0d2` -> (opencl, 2).
static std::optional<std::pair<std::size_t, int>> gpu_library_device(std::string_view name) {
    for (std::size_t b = 0; b < gpu_libraries.size(); ++b) {
        if (!name.starts_with(gpu_libraries[b])) continue;
        auto digits = name.substr(gpu_libraries[b].size());
        if (gpu_libraries[b] == "opencl") {
            const auto d = digits.find('d');
            if (d == digits.npos) return std::nullopt;
            digits.remove_prefix(d + 1);
        }
        int value = -1;
        if (!read_number(digits, value) || value < 0) return std::nullopt;
        return std::pair(b, value);
    }
    return std::nullopt;
}

/// The kind of a PCI device by its class, vendor and link.
enum class PciKind : std::uint8_t {
    gpu,
    display,  ///< a display adapter of NVIDIA (GeForce), or of AMD with a PCI Express link: likely a GPU
    other,    ///< including display adapters on servers' boards, also old ones of AMD
};

/// @param type "0300 [10de:2684] [subsystem] revision"
static PciKind pci_kind(std::string_view type, double link_gb_s) {
    const auto id = type.substr(std::min<std::size_t>(type.size(), 5));
    const bool nvidia = id.starts_with("[10de:"), amd = id.starts_with("[1002:");
    if (type.starts_with("0302")) return PciKind::gpu;
    if (type.starts_with("0380") || type.starts_with("1200"))
        return nvidia || amd ? PciKind::gpu : PciKind::other;
    if (!type.starts_with("0300")) return PciKind::other;
    return nvidia || (amd && link_gb_s > 0) ? PciKind::display : PciKind::other;
}

/// A NUMA node in hwloc XML.
struct HwlocNuma {
    int id = 0;
    CpuRanges cpus{};
    std::string kind{};  ///< of its memory, such as HBM or NVM; empty if there is one kind
    [[nodiscard]] bool ordinary() const { return kind.empty() || kind == "DRAM"; }
};

[[nodiscard]] static CpuRanges union_of(CpuRanges all, const std::vector<CpuRanges>& more) {
    std::vector<std::pair<int, int>> ranges;
    for (const auto& set : more) ranges.insert(ranges.end(), set.ranges.begin(), set.ranges.end());
    all.add(ranges);
    return all;
}

/// Marks NUMA nodes that are additional memory of CPUs with another NUMA node: in hwloc each kind of memory
/// is a NUMA node. An ordinary one is kept, else the first. O(square of the nodes).
[[nodiscard]] static std::vector<bool> further_memory(const std::vector<HwlocNuma>& nodes) {
    std::map<std::vector<std::pair<int, int>>, const HwlocNuma*> kept;
    for (const bool ordinary : {true, false})
        for (const auto& numa : nodes)
            if (numa.ordinary() == ordinary) kept.emplace(numa.cpus.ranges, &numa);
    std::vector<bool> further;
    for (const auto& numa : nodes) {
        const auto* first = kept.at(numa.cpus.ranges);
        const auto shares = [&](const HwlocNuma& other) {
            return other.ordinary() && other.cpus.meets(numa.cpus);
        };
        // The same id twice is a mistake, not additional memory.
        further.push_back(first != &numa ? first->id != numa.id
                                         : !numa.ordinary() && std::ranges::any_of(nodes, shares));
    }
    return further;
}

/// Collects the objects of a topology and builds the parts of the machine from them.
class HwlocReader {
  public:
    HwlocReader(XmlText& xml, const HardwareReadOptions& options, Problems& problems,
                std::vector<std::string>& notes)
        : xml_(xml), options_(options), problems_(problems), notes_(notes) {}

    HardwareParts read() {
        std::vector<Bridge> bridges;
        for (const auto& object : xml_.root().children("object")) walk(object, {}, bridges, 0);
        if (!seen_any_ && problems_.empty()) xml_.report(xml_.root(), "expected object elements, found none");
        if (numa_.size() > most_numa_nodes)
            problems_.add(
                concat(xml_.source(), ": ", numa_.size(), " NUMA nodes; expected at most ", most_numa_nodes));
        problems_.throw_if_any();
        number_gpus();
        problems_.throw_if_any();

        HardwareParts parts;
        const auto numa_nodes = numa_readings();
        const auto numa_vertex = parts.add_processors(numa_nodes, options_, xml_.source(), problems_, notes_);
        problems_.throw_if_any();
        GpuLinks links;
        for (const auto& matrix : xml_.root().children()) {
            const std::string_view name = matrix.attribute("name").value();
            if (std::string_view(matrix.name()).starts_with("distances2") &&
                (name == "NVLinkBandwidth" || name == "XGMIBandwidth"))
                read_links(matrix, links);
        }
        problems_.throw_if_any();
        add_gpus(parts, numa_nodes, numa_vertex);
        links.join(parts, vertex_of_gpu_);
        return parts;
    }

  private:
    static constexpr std::size_t most_numa_nodes = 1024;  // of Linux
    enum class Role : std::uint8_t { gpu, package, other };

    struct Bridge {
        pugi::xml_node node{};
        bool host = false;
    };
    struct Gpu {
        pugi::xml_node node{};
        std::string bus{};
        std::array<std::optional<int>, gpu_libraries.size()> index{};
        std::vector<Bridge> above{};
        CpuRanges near{};
        std::string model{}, uuid{};
        std::int64_t memory_mib = 0;
        double own_gb_s = 0, cpu_link_gb_s = 0;
        int id = -1;
    };

    std::optional<CpuRanges> cpus_of(const pugi::xml_node& object) {
        const auto found = object.attribute("cpuset");
        if (!found) return std::nullopt;
        auto set = parse_cpu_mask(found.value());
        if (!set) xml_.expected(object, "cpuset", "words of hexadecimal digits");
        return set;
    }

    static void describe(const pugi::xml_node& device, Gpu& gpu) {
        for (const auto& info : device.children("info")) {
            const std::string_view name = info.attribute("name").value();
            const std::string value = info.attribute("value").value();
            if (name == "GPUModel" && gpu.model.empty()) gpu.model = value;
            if ((name == "NVIDIAUUID" || name == "AMDUUID") && gpu.uuid.empty()) gpu.uuid = value;
            if (name == "CUDAGlobalMemorySize" || name == "RSMIVRAMSize" || name == "OpenCLGlobalMemorySize")
                if (const auto kib = leading_number(value); kib && *kib >= 0 && *kib < 1e15)
                    gpu.memory_mib = std::max(gpu.memory_mib, static_cast<std::int64_t>(*kib / 1024));
        }
    }

    double speed(const pugi::xml_node& object) const {
        const auto gb_s = leading_number(object.attribute("pci_link_speed").value());
        return gb_s && *gb_s > 0 && *gb_s < 1e6 ? *gb_s : options_.pcie_gb_s;
    }

    void walk(const pugi::xml_node& object, CpuRanges near, std::vector<Bridge>& bridges, int depth) {
        if (depth == XmlText::deepest) return xml_.report(object, "nested deeper than 128 levels");
        seen_any_ = true;
        const std::string_view type = object.attribute("type").value();
        if (type.empty()) return xml_.expected(object, "type", "a type of object");
        const auto cpus = cpus_of(object);
        if (cpus) near = *cpus;
        const bool bridge = type == "Bridge";
        if (type == "Package" || type == "Socket") {
            if (const auto gp = object.attribute("gp_index")) role_of_[gp.value()] = {Role::package, 0};
            packages_.push_back(near);
        } else if (type == "NUMANode") {
            const auto id = xml_.integer(object, "os_index", 0, 65535);
            if (id && !cpus) xml_.expected(object, "cpuset", "words of hexadecimal digits");
            if (id && cpus) numa_.push_back({*id, *cpus, object.attribute("subtype").value()});
        } else if (type == "Core" && cpus && !cpus->empty()) {
            cores_.push_back(*cpus);
        } else if (type == "PU" && cpus && !cpus->empty()) {
            pus_.push_back(*cpus);
        } else if (type == "Machine" && cpus) {
            machine_ = *cpus;
        } else if (bridge) {
            bridges.push_back(
                {object, std::string_view(object.attribute("bridge_type").value()).starts_with("0-")});
        } else if (type == "PCIDev") {
            pci_device(object, near, bridges);
        } else if (type == "OSDev") {
            if (const auto known =
                    gpu_library_device(object.attribute("name").value())) {  // on a chip without PCI
                Gpu gpu{.node = object, .near = near};
                gpu.index[known->first] = known->second;
                describe(object, gpu);
                on_chip_.push_back(std::move(gpu));
            }
        }
        for (const auto& below : object.children("object"))
            if (type != "PCIDev") walk(below, near, bridges, depth + 1);
        if (bridge) bridges.pop_back();
    }

    void pci_device(const pugi::xml_node& object, const CpuRanges& near, const std::vector<Bridge>& bridges) {
        Gpu gpu{.node = object, .bus = object.attribute("pci_busid").value(), .above = bridges, .near = near};
        const auto kind = pci_kind(object.attribute("pci_type").value(),
                                   leading_number(object.attribute("pci_link_speed").value()).value_or(0));
        bool is_gpu = kind == PciKind::gpu;
        for (const auto& below : object.children("object")) {
            if (std::string_view(below.attribute("type").value()) != "OSDev") continue;
            const auto known = gpu_library_device(below.attribute("name").value());
            if (!known) continue;
            is_gpu = true;
            gpu.index[known->first] = known->second;
            describe(below, gpu);
        }
        if (!is_gpu && kind != PciKind::display) return;
        if (!is_gpu && displays_++ == 0)
            notes_.push_back(
                "GPUs: display adapters of NVIDIA, and of AMD with a PCI Express link, count as GPUs, "
                "though no GPU library names them");
        gpu.own_gb_s = speed(object);
        gpus_.push_back(std::move(gpu));
    }

    void number_gpus() {
        // Several libraries may know the same GPU of a chip; the first library counts.
        for (std::size_t b = 0; b < gpu_libraries.size(); ++b) {
            const auto known = [&](const Gpu& gpu) { return gpu.index[b].has_value(); };
            if (std::ranges::none_of(on_chip_, known)) continue;
            std::ranges::copy_if(on_chip_, std::back_inserter(gpus_), known);
            break;
        }
        if (gpus_.empty()) return;
        if (gpus_.size() > max_gpus_per_node)
            problems_.add(
                concat(xml_.source(), ": ", gpus_.size(), " GPUs; expected at most ", max_gpus_per_node));
        for (std::size_t b = 0; b < gpu_libraries.size() && gpus_.front().id < 0; ++b) {
            std::set<int> ids;
            for (const auto& gpu : gpus_)
                if (gpu.index[b] && *gpu.index[b] < max_gpus_per_node) ids.insert(*gpu.index[b]);
            if (ids.size() != gpus_.size()) continue;
            for (auto& gpu : gpus_) gpu.id = *gpu.index[b];
        }
        if (gpus_.front().id < 0) {
            std::ranges::sort(gpus_, {}, [](const Gpu& gpu) {
                return std::pair(std::string_view(gpu.bus),
                                 std::string_view(gpu.node.attribute("name").value()));
            });
            for (std::size_t i = 0; i < gpus_.size(); ++i) gpus_[i].id = static_cast<int>(i);
            notes_.push_back(
                "GPUs: numbered by ascending bus id; the text has no index of one kind for all of them");
        }
        for (const auto& gpu : gpus_) {
            if (const auto gp = gpu.node.attribute("gp_index")) role_of_[gp.value()] = {Role::gpu, gpu.id};
            for (const auto& below : gpu.node.children("object"))
                if (const auto gp = below.attribute("gp_index")) role_of_[gp.value()] = {Role::gpu, gpu.id};
        }
    }

    std::map<int, NumaReading> numa_readings() {
        if (numa_.empty()) {
            numa_.push_back({.cpus = union_of(machine_, packages_)});
            notes_.push_back("NUMA nodes: not in the text; the machine counts as one");
        }
        std::map<int, NumaReading> out;
        bool memory_only = false, spans = false, several_kinds = false;
        const auto further = further_memory(numa_);
        const auto& cores = cores_.empty() ? pus_ : cores_;
        if (cores_.empty() && !pus_.empty())
            notes_.push_back("cores: not in the text; every CPU counts as one");
        for (std::size_t n = 0; n < numa_.size(); ++n) {
            const auto& numa = numa_[n];
            if (numa.cpus.empty() && numa_.size() > 1) {
                memory_only = true;
                continue;
            }
            if (further[n]) {
                several_kinds = true;
                continue;
            }
            NumaReading reading{.cpus = numa.cpus, .cores = std::vector<int>()};
            for (const auto& core : cores)
                if (core.meets(numa.cpus)) reading.cores->push_back(core.ranges.front().first);
            reading.socket = packages_.empty() ? 0 : -1;
            for (std::size_t p = 0; p < packages_.size(); ++p) {
                if (!packages_[p].meets(numa.cpus)) continue;
                spans = spans || *reading.socket >= 0;
                if (*reading.socket < 0) reading.socket = static_cast<int>(p);
            }
            if (*reading.socket < 0) reading.socket = 0;
            if (!out.emplace(numa.id, std::move(reading)).second)
                problems_.add(concat(xml_.source(), ": NUMA node ", numa.id, " occurs twice"));
        }
        if (memory_only) notes_.push_back("NUMA nodes: those without CPUs are left out");
        if (several_kinds)
            notes_.push_back("NUMA nodes: of those for the same CPUs (DRAM and HBM, say) one is kept");
        if (spans) notes_.push_back("NUMA nodes: one that spans several sockets counts as part of the first");
        if (packages_.empty()) notes_.push_back("sockets: not in the text; the machine counts as one");
        return out;
    }

    void read_links(const pugi::xml_node& matrix, GpuLinks& links) {
        const auto count = xml_.integer(matrix, "nbobjs", 1, 256);
        if (!count) return;
        const auto n = static_cast<std::size_t>(*count);
        std::vector<std::string> names;
        std::vector<double> values;
        for (const auto& child : matrix.children()) {
            const std::string_view kind = child.name();
            std::string text = child.child_value();
            std::ranges::replace(text, '\n', ' ');
            std::string_view line = text;
            for (auto word = take_word(line); !word.empty(); word = take_word(line)) {
                const auto colon = word.find(':');
                if (kind == "indexes") names.emplace_back(colon == word.npos ? word : word.substr(colon + 1));
                if (kind == "u64values") values.push_back(leading_number(word).value_or(-1));
                if (names.size() > n || values.size() > n * n) break;
            }
        }
        if (names.size() != n || values.size() != n * n ||
            std::ranges::any_of(values, [](double v) { return !(v >= 0 && v < 1e15); }))
            return xml_.report(matrix, concat("expected ", n, " indexes and ", n * n, " values >= 0"));
        const auto role = [&](std::size_t i) {
            const auto found = role_of_.find(names[i]);
            return found == role_of_.end() ? std::pair(Role::other, 0) : found->second;
        };
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) {
                const double gb_s = values[i * n + j] / 1000;  // from MB/s
                if (i == j || gb_s == 0) continue;
                const auto [a, gpu] = role(i);
                const auto [b, other] = role(j);
                if (a == Role::gpu && b == Role::gpu && gpu != other) links.between(gpu, other, gb_s);
                if (a == Role::gpu && b == Role::other) links.to_switch(gpu, names[j], gb_s);
                if (a == Role::other && b == Role::other) links.switches(names[i], names[j]);
                if (a == Role::gpu && b == Role::package)
                    for (auto& known : gpus_)
                        if (known.id == gpu) known.cpu_link_gb_s = std::max(known.cpu_link_gb_s, gb_s);
            }
    }

    void add_gpus(HardwareParts& parts, const std::map<int, NumaReading>& numa_nodes,
                  const std::map<int, HardwareParts::Vertex>& numa_vertex) {
        using Kind = topology::HardwareKind;
        using Relation = topology::HardwareRelation;
        std::map<pugi::xml_node, HardwareParts::Vertex> vertex_of;
        int next_root = 0, next_switch = 0;
        bool nowhere = false;
        for (const auto& gpu : gpus_) {
            HardwareParts::Vertex numa = 0;
            int near = 0;
            for (const auto& [id, reading] : numa_nodes)
                if (reading.cpus.meets(gpu.near)) {
                    numa = numa_vertex.at(id);
                    ++near;
                }
            const bool placed = near == 1;
            nowhere = nowhere || !placed;
            double so_far = std::numeric_limits<double>::infinity();
            HardwareParts::Vertex above = 0;
            bool attached = false;
            for (const auto& [node, host] : gpu.above) {
                if (!host && !attached) continue;  // a bridge without a host bridge
                const double gb_s = host ? so_far : speed(node);
                if (auto found = vertex_of.find(node); found != vertex_of.end()) {
                    above = found->second;
                } else {
                    const auto made = host ? parts.add(Kind::pcie_root, next_root++)
                                           : parts.add(Kind::pcie_switch, next_switch++);
                    if (host && placed) parts.join(numa, made, Relation::pcie);
                    if (!host) parts.join(above, made, Relation::pcie, gb_s);
                    vertex_of[node] = made;
                    above = made;
                }
                attached = true;
                so_far = std::min(so_far, gb_s);
            }
            const auto vertex = vertex_of_gpu_[gpu.id] = parts.add(Kind::gpu, gpu.id);
            parts.at(vertex).model = gpu.model;
            parts.at(vertex).uuid = gpu.uuid;
            parts.at(vertex).memory_mib = gpu.memory_mib;
            const double own = gpu.own_gb_s > 0 ? gpu.own_gb_s : std::numeric_limits<double>::infinity();
            if (attached) parts.join(above, vertex, Relation::pcie, own);
            if (placed)
                parts.join(vertex, numa, Relation::nearby,
                           std::max(std::min(so_far, own), gpu.cpu_link_gb_s));
        }
        if (nowhere) notes_.push_back("NUMA nodes: some GPUs are next to several and count as near none");
    }

    XmlText& xml_;
    const HardwareReadOptions& options_;
    Problems& problems_;
    std::vector<std::string>& notes_;
    bool seen_any_ = false;
    int displays_ = 0;  // display adapters that count as GPUs
    CpuRanges machine_;
    std::vector<CpuRanges> packages_, cores_, pus_;
    std::vector<HwlocNuma> numa_;
    std::vector<Gpu> gpus_, on_chip_;
    std::map<std::string, std::pair<Role, int>> role_of_;  // by gp_index
    std::map<int, HardwareParts::Vertex> vertex_of_gpu_;
};

}  // namespace gpusched::io::detail

namespace gpusched::io {

GPUSCHED_EXPORT HardwareReading hwloc_from_xml(std::string_view text, const HardwareReadOptions& options,
                                               std::string_view source) {
    require_fields(options);
    Problems problems;
    detail::XmlText xml(text, std::string(source), problems);
    const auto root = xml.root();
    if (std::string_view(root.name()) != "topology")
        throw InvalidInput(xml.where(root) + "expected <topology>, that of hwloc");
    if (const auto version = root.attribute("version")) {
        const auto number = detail::leading_number(version.value());
        if (!number || *number < 1 || *number >= 4) xml.expected(root, "version", "1 to 3");
    }
    problems.throw_if_any();
    std::vector<std::string> notes;
    const auto parts = detail::HwlocReader(xml, options, problems, notes).read();
    return {detail::finish(parts, xml.source()), std::move(notes)};
}

}  // namespace gpusched::io

#endif
