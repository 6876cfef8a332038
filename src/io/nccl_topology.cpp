// SPDX-License-Identifier: Apache-2.0
// Reads the topology XML of NCCL and RCCL.
#include "io/hardware_parts.hpp"
#include "io/xml.hpp"

#include <gpusched/config.hpp>
#include <gpusched/io/hardware_files.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#ifdef GPUSCHED_HAS_PUGIXML

namespace gpusched::io {

namespace detail {

/// GB/s of a PCIe link, without its line code.
static double pcie_gb_s(double gt_s, int lanes) { return gt_s * lanes / 8 * (gt_s > 5 ? 128.0 / 130 : 0.8); }

/// Builds the parts of the machine from `cpu` and `pci` elements.
class NcclReader {
  public:
    NcclReader(XmlText& xml, const HardwareReadOptions& options, Problems& problems,
               std::vector<std::string>& notes)
        : xml_(xml), options_(options), problems_(problems), notes_(notes) {}

    HardwareParts read() {
        std::map<int, NumaReading> numa_nodes;
        std::vector<std::pair<pugi::xml_node, std::optional<int>>> cpus;
        const auto elements = xml_.root().children("cpu");
        const bool only = std::distance(elements.begin(), elements.end()) == 1;
        std::set<int> seen;
        for (const auto& cpu : elements) {
            const auto id = xml_.integer(cpu, "numaid", -1, 1023);
            if (!id) continue;
            NumaReading numa;
            if (const auto affinity = cpu.attribute("affinity")) {
                if (auto mask = parse_cpu_mask(affinity.value()))
                    numa.cpus = std::move(*mask);
                else
                    xml_.expected(cpu, "affinity", "words of hexadecimal digits");
            }
            if (!seen.insert(*id).second)
                xml_.report(cpu, concat("numaid: NUMA node ", *id, " occurs twice; expected one machine"));
            // -1: unknown to the system, as in many virtual machines.
            if (*id < 0)
                notes_.push_back(
                    only ? "NUMA nodes: not known (numaid -1); the machine counts as one"
                         : "NUMA nodes: that of some GPUs is not known (numaid -1); they are near none");
            if (*id < 0 && !only) {
                cpus.emplace_back(cpu, std::nullopt);
            } else {
                numa_nodes.emplace(std::max(*id, 0), std::move(numa));
                cpus.emplace_back(cpu, std::max(*id, 0));
            }
            find_gpus(cpu, 0);
        }
        if (cpus.empty() && problems_.empty()) xml_.report(xml_.root(), "expected cpu elements, found none");
        number_gpus();
        problems_.throw_if_any();
        HardwareParts parts;
        const auto numa_vertex = parts.add_processors(numa_nodes, options_, xml_.source(), problems_, notes_);
        problems_.throw_if_any();
        for (const auto& [cpu, id] : cpus)
            for (const auto& pci : cpu.children("pci"))
                if (has_gpu(pci)) {
                    const auto root = parts.add(topology::HardwareKind::pcie_root, next_root_++);
                    std::optional<HardwareParts::Vertex> numa;
                    if (id) parts.join(*(numa = numa_vertex.at(*id)), root, topology::HardwareRelation::pcie);
                    add(parts, pci, root, numa, std::numeric_limits<double>::infinity());
                }
        add_links(parts);
        return parts;
    }

  private:
    static std::string class_of(const pugi::xml_node& pci) {
        std::string_view text = pci.attribute("class").value();
        if (text.starts_with("0x")) text.remove_prefix(2);
        return std::string(text.substr(0, 4));
    }

    void find_gpus(const pugi::xml_node& above, int depth) {
        if (depth == XmlText::deepest) return xml_.report(above, "nested deeper than 128 levels");
        for (const auto& pci : above.children("pci")) {
            ++devices_;
            const auto gpu = pci.child("gpu");
            const auto kind = class_of(pci);
            if (!kind.empty()) ++classes_;
            if (gpu) with_element_.push_back(pci);
            if (kind == "0302" || kind == "0380" || kind == "1200") by_class_.push_back(pci);
            if (*pci.attribute("busid").value() == '\0') xml_.expected(pci, "busid", "a PCI bus id");
            find_gpus(pci, depth + 1);
        }
    }

    void number_gpus() {
        for (const auto& pci : with_element_) {
            const auto dev = xml_.integer(pci.child("gpu"), "dev", 0, max_gpus_per_node - 1);
            if (!dev) continue;
            if (!taken_.insert(*dev).second)
                xml_.report(pci.child("gpu"), concat("dev: GPU ", *dev, " occurs twice"));
            keep(pci, *dev);
        }
        if (!with_element_.empty()) return;
        if (by_class_.empty()) {
            if (devices_ > 0 && classes_ == 0)
                problems_.add(xml_.source() + ": no device has a class or a gpu element, which would show "
                                              "the GPUs; expected a file that "
                                              "NCCL has completed (NCCL_TOPO_DUMP_FILE)");
            return;
        }
        std::ranges::sort(by_class_, {},
                          [](const auto& pci) { return std::string_view(pci.attribute("busid").value()); });
        if (by_class_.size() > max_gpus_per_node)
            problems_.add(
                concat(xml_.source(), ": ", by_class_.size(), " GPUs; expected at most ", max_gpus_per_node));
        int next = 0;
        for (const auto& pci : by_class_) keep(pci, next++);
        notes_.push_back(
            "GPUs: found by their PCI class and numbered by ascending bus id; the file has no gpu elements");
    }

    void keep(const pugi::xml_node& pci, int gpu) {
        gpu_of_[pci] = gpu;
        if (!gpu_at_.emplace(pci.attribute("busid").value(), gpu).second)
            xml_.report(pci, "busid: " + printable(pci.attribute("busid").value()) + " is that of two GPUs");
        for (auto above = pci; above; above = above.parent()) leads_to_gpu_.insert(above);
    }
    [[nodiscard]] bool has_gpu(const pugi::xml_node& pci) const { return leads_to_gpu_.contains(pci); }

    double speed(const pugi::xml_node& pci) {
        const auto gt_s = leading_number(pci.attribute("link_speed").value());
        const auto lanes = leading_number(pci.attribute("link_width").value());
        if (gt_s && lanes && *gt_s > 0 && *gt_s <= 1000 && *lanes >= 1 && *lanes <= 64)
            return pcie_gb_s(*gt_s, static_cast<int>(*lanes));
        return options_.pcie_gb_s;
    }

    /// Adds a device and everything below it. @param so_far the narrowest link above
    void add(HardwareParts& parts, const pugi::xml_node& pci, HardwareParts::Vertex above,
             std::optional<HardwareParts::Vertex> numa, double so_far) {
        using Kind = topology::HardwareKind;
        using Relation = topology::HardwareRelation;
        const double own = speed(pci);
        so_far = std::min(so_far, own);
        if (const auto gpu = gpu_of_.find(pci); gpu != gpu_of_.end()) {
            const auto vertex = gpus_[gpu->second] = parts.add(Kind::gpu, gpu->second);
            parts.join(above, vertex, Relation::pcie, own);
            if (numa) parts.join(vertex, *numa, Relation::nearby, so_far);
            for (const auto& below : pci.children("pci"))
                if (has_gpu(below)) add(parts, below, above, numa, so_far);
            return;
        }
        // Some files list a switch once per device below it.
        const auto key = std::pair(above, std::string(pci.attribute("busid").value()));
        auto found = switches_.find(key);
        if (found == switches_.end()) {
            found = switches_.emplace(key, parts.add(Kind::pcie_switch, next_switch_++)).first;
            parts.join(above, found->second, Relation::pcie, own);
        }
        for (const auto& below : pci.children("pci"))
            if (has_gpu(below)) add(parts, below, found->second, numa, so_far);
    }

    void add_links(HardwareParts& parts) {
        GpuLinks links;
        bool itself = false, unknown = false;
        for (const auto& pci : with_element_) {
            const int gpu = gpu_of_.at(pci);
            for (const auto& link : pci.child("gpu").children()) {
                const std::string_view kind = link.name();
                if (kind != "nvlink" && kind != "xgmi") continue;
                const auto count = xml_.integer(link, "count", 1, 1000);
                const std::string target = link.attribute("target").value();
                if (!count) continue;
                const double gb_s = *count * options_.nvlink_gb_s_per_link;
                const auto other = gpu_at_.find(target);
                if (other != gpu_at_.end() && other->second == gpu)
                    itself = true;
                else if (other != gpu_at_.end())
                    links.between(gpu, other->second, gb_s);
                else if (std::string_view(link.attribute("tclass").value()) == "0x068000")
                    links.to_switch(gpu, target, gb_s);
                else
                    unknown = true;
            }
        }
        problems_.throw_if_any();
        if (itself) notes_.push_back("NVLink: links from a GPU to itself are left out");
        if (unknown)
            notes_.push_back(
                "NVLink: links to devices that are neither GPUs of the file nor switches are left out");
        links.join(parts, gpus_);
    }

    XmlText& xml_;
    const HardwareReadOptions& options_;
    Problems& problems_;
    std::vector<std::string>& notes_;
    std::size_t devices_ = 0, classes_ = 0;
    int next_root_ = 0, next_switch_ = 0;
    std::vector<pugi::xml_node> with_element_, by_class_;
    std::map<pugi::xml_node, int> gpu_of_;
    std::map<std::string, int> gpu_at_;
    std::set<int> taken_;
    std::set<pugi::xml_node> leads_to_gpu_;
    std::map<std::pair<HardwareParts::Vertex, std::string>, HardwareParts::Vertex> switches_;
    std::map<int, HardwareParts::Vertex> gpus_;
};

}  // namespace detail

GPUSCHED_EXPORT HardwareReading nccl_topology_from_xml(std::string_view text,
                                                       const HardwareReadOptions& options,
                                                       std::string_view source) {
    require_fields(options);
    Problems problems;
    detail::XmlText xml(text, std::string(source), problems);
    const std::string_view name = xml.root().name();
    if (name == "graphs")
        throw InvalidInput(xml.where(xml.root()) +
                           "a file of graphs (NCCL_GRAPH_FILE), which has channels but no machine; "
                           "expected a topology, with <system>");
    if (name != "system")
        throw InvalidInput(xml.where(xml.root()) + "expected <system>, the topology of NCCL");
    std::vector<std::string> notes;
    const auto parts = detail::NcclReader(xml, options, problems, notes).read();
    return {detail::finish(parts, xml.source()), std::move(notes)};
}

}  // namespace gpusched::io

#endif
