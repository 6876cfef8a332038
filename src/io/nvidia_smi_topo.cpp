// SPDX-License-Identifier: Apache-2.0
// Reads the matrix of `nvidia-smi topo -m`.
#include "io/documents.hpp"
#include "io/hardware_parts.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/hardware_files.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace gpusched::io {

namespace detail {

/// An entry: the distance of two devices over PCIe, or the number of links between them.
struct SmiEntry {
    enum class Path : std::uint8_t { pix, pxb, phb, node, sys, links, self };
    Path path = Path::sys;
    int links = 0;
    bool operator==(const SmiEntry&) const = default;
};

struct SmiDevice {
    std::string name{};
    int gpu = -1;
    std::size_t line = 0;  ///< of its row; 0 = it has none
    std::vector<SmiEntry> row{};
    std::optional<CpuRanges> cpus{};
    std::optional<int> numa{};
    bool spread = false;  ///< near several NUMA nodes alike
};

/// Text without the codes that underline it on a terminal.
static std::string without_escapes(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
            i += 2;
            while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
        } else if (text[i] != '\r') {
            out += text[i];
        }
    }
    return out;
}

/// The cells of a line: separated by tabs, or by at least these blanks.
static std::vector<std::string_view> smi_cells(std::string_view line, bool tabs, std::string_view blanks) {
    std::vector<std::string_view> cells;
    if (!tabs) line = trimmed(line);
    while (true) {
        const auto end = std::min(line.find(tabs ? std::string_view("\t") : blanks), line.size());
        cells.push_back(trimmed(line.substr(0, end)));
        if (end == line.size()) return cells;
        line.remove_prefix(end + 1);
        if (!tabs) line = trimmed(line);
    }
}

static std::optional<int> small_number(std::string_view digits, int most) {
    int value = -1;
    return read_number(digits, value) && value >= 0 && value <= most ? std::optional(value) : std::nullopt;
}

static std::optional<SmiEntry> smi_entry(std::string_view text) {
    using Path = SmiEntry::Path;
    if (text == "X") return SmiEntry{Path::self, 0};
    if (text == "PIX") return SmiEntry{Path::pix, 0};
    if (text == "PXB") return SmiEntry{Path::pxb, 0};
    if (text == "PHB") return SmiEntry{Path::phb, 0};
    if (text == "NODE") return SmiEntry{Path::node, 0};
    if (text == "SYS" || text == "SOC") return SmiEntry{Path::sys, 0};  // SOC: the older word
    if (text.starts_with("NV"))
        if (const auto links = small_number(text.substr(2), 1000); links && *links > 0)
            return SmiEntry{Path::links, *links};
    return std::nullopt;
}

static bool is_peer_entry(std::string_view text) {
    static constexpr std::string_view words[] = {"OK", "CNS", "GNS", "TNS", "NS", "U"};
    return contains(words, text);
}

/// `GPU7` -> 7
static std::optional<int> smi_gpu(std::string_view name) {
    return name.starts_with("GPU") ? small_number(name.substr(3), 100000) : std::nullopt;
}

/// Reads lines until the matrix ends.
class SmiParser {
  public:
    /// A machine has a few dozen GPUs and network cards. The time grows with the square of their number.
    static constexpr std::size_t most_devices = 256;

    SmiParser(std::string_view text, std::string source, Problems& problems)
        : source_(std::move(source)), problems_(problems) {
        const auto plain = without_escapes(text);
        std::string_view rest = plain;
        for (std::size_t number = 1; !rest.empty(); ++number) {
            const auto line = take_line(rest);
            if (line.find("Legend:") != line.npos) break;
            if (trimmed(line).empty()) continue;
            if (devices_.empty())
                header(line, number);
            else
                row(line, number);
            if (peer_ || too_many_) break;
        }
        if (peer_)
            problems_.add(source_ +
                          ": a matrix of 'nvidia-smi topo -p2p', which shows whether GPUs reach "
                          "each other but not their positions; expected that of 'nvidia-smi topo -m'");
        else if (devices_.empty())
            problems_.add(source_ +
                          ": expected the matrix of 'nvidia-smi topo -m', a line with GPU0 and so on first");
        else if (!too_many_)
            complete();
    }
    [[nodiscard]] std::vector<SmiDevice> take() { return std::move(devices_); }

  private:
    void report(std::size_t line, const std::string& what) {
        problems_.add(concat(source_, ":", line, ": ", what));
    }

    void header(std::string_view line, std::size_t number) {
        tabs_ = line.find('\t') != line.npos;
        auto cells = smi_cells(line, tabs_, "  ");  // of "CPU Affinity" is one blank
        if (!cells.empty() && cells.front().empty()) cells.erase(cells.begin());
        if (cells.empty() || !smi_gpu(cells.front())) return;  // something else printed before the matrix
        bool devices = true;
        for (const auto cell : cells) {
            if (cell == "CPU Affinity" || cell == "NUMA Affinity" || cell == "GPU NUMA ID") devices = false;
            if (cell == "CPU Affinity") has_cpus_ = true;
            if (cell == "NUMA Affinity") has_numa_ = true;
            if (devices && !cell.empty()) {
                SmiDevice device;
                device.name = cell;
                if (const auto gpu = smi_gpu(cell)) device.gpu = *gpu;
                devices_.push_back(std::move(device));
                too_many_ = devices_.size() > most_devices;
                if (too_many_)
                    return report(number, concat("expected at most ", most_devices, " columns of devices"));
            }
        }
    }

    void row(std::string_view line, std::size_t number) {
        auto cells = smi_cells(line, tabs_, " ");
        if (cells.front().empty() && cells.size() > 1) cells.erase(cells.begin());
        const auto found =
            std::ranges::find_if(devices_, [&](const SmiDevice& d) { return d.name == cells.front(); });
        if (found == devices_.end())
            return report(number, "expected a row of one of the columns, found " + in_quotes(cells.front()));
        if (found->line != 0) return report(number, in_quotes(found->name) + " has a second row");
        found->line = number;
        const auto count = devices_.size();
        if (cells.size() < count + 1)
            return report(number, "expected " + std::to_string(count) + " entries, found " +
                                      std::to_string(cells.size() - 1));
        for (std::size_t i = 0; i < count; ++i) {
            const auto text = cells[i + 1];
            if (is_peer_entry(text)) {
                peer_ = true;
                return;
            }
            const auto entry = smi_entry(text);
            if (!entry)
                report(number,
                       "entry for " + printable(devices_[i].name) +
                           ": expected X, PIX, PXB, PHB, NODE, SYS or NV and a number of links, found " +
                           in_quotes(text));
            else if ((entry->path == SmiEntry::Path::self) != (&devices_[i] == &*found))
                report(number,
                       "entry for " + printable(devices_[i].name) + ": X is only for a device and itself");
            found->row.push_back(entry.value_or(SmiEntry{}));
        }
        if (found->gpu < 0) return;
        const auto cell = [&](std::size_t at) {
            return at < cells.size() && cells[at] != "N/A" ? cells[at] : std::string_view();
        };
        if (has_cpus_ && !cell(count + 1).empty()) {
            found->cpus = parse_cpu_list(cell(count + 1));
            if (!found->cpus)
                report(number, "CPU Affinity: expected numbers and ranges such as 0-31,64-95, found " +
                                   in_quotes(cell(count + 1)));
        }
        const auto numa = cell(count + 1 + (has_cpus_ ? 1 : 0));
        if (!has_numa_ || numa.empty()) return;
        if (const auto nodes = parse_cpu_list(numa)) {
            found->spread = nodes->count() > 1;
            if (!found->spread) found->numa = nodes->ranges.front().first;
        } else {
            report(number,
                   "NUMA Affinity: expected the number of a NUMA node or N/A, found " + in_quotes(numa));
        }
    }

    void complete() {
        for (const auto& device : devices_) {
            if (device.gpu >= 0 && device.line == 0)
                problems_.add(source_ + ": " + device.name + ": its row is missing");
            if (device.gpu >= max_gpus_per_node)
                problems_.add(
                    concat(source_, ": ", device.name, ": expected GPU0 to GPU", max_gpus_per_node - 1));
        }
        for (std::size_t i = 0; i < devices_.size(); ++i)
            for (std::size_t j = i + 1; j < devices_.size(); ++j) {
                if (devices_[i].name == devices_[j].name)
                    problems_.add(source_ + ": " + printable(devices_[i].name) +
                                  ": two columns have this name");
                if (devices_[i].row.size() == devices_.size() && devices_[j].row.size() == devices_.size() &&
                    devices_[i].row[j] != devices_[j].row[i])
                    report(devices_[j].line,
                           concat("entry for ", printable(devices_[i].name), ": differs from that in line ",
                                  devices_[i].line, "; expected the same both ways"));
            }
    }

    std::string source_;
    Problems& problems_;
    std::vector<SmiDevice> devices_;
    bool tabs_ = false, has_cpus_ = false, has_numa_ = false, peer_ = false, too_many_ = false;
};

/// Groups devices that are as close as `path` or closer, directly or through others: a group number per
/// device.
static std::vector<std::size_t> smi_groups(const std::vector<SmiDevice>& devices, SmiEntry::Path path) {
    std::vector<std::size_t> group(devices.size());
    std::iota(group.begin(), group.end(), std::size_t{0});
    for (std::size_t i = 0; i < group.size(); ++i)
        for (std::size_t j = 0; j < devices[i].row.size(); ++j)
            if (devices[i].row[j].path <= path && group[i] != group[j])
                std::ranges::replace(group, std::max(group[i], group[j]), std::min(group[i], group[j]));
    return group;
}

/// Infers NUMA nodes of GPUs without one in the text: GPUs with the same CPUs share one. @return whether
/// there were any
static bool infer_numa(std::vector<SmiDevice>& devices) {
    int next = 0;
    for (const auto& device : devices)
        if (device.numa) next = std::max(next, *device.numa + 1);
    bool inferred = false;
    for (auto& device : devices) {
        if (device.gpu < 0 || device.numa || device.spread || !device.cpus) continue;
        inferred = true;
        for (const auto& other : devices)
            if (other.numa && other.cpus == device.cpus) device.numa = other.numa;
        if (!device.numa) device.numa = next++;
    }
    return inferred;
}

static void add_smi_gpus(const std::vector<SmiDevice>& devices, HardwareParts& parts,
                         const std::map<int, std::size_t>& numa_vertex, const HardwareReadOptions& options) {
    using Kind = topology::HardwareKind;
    using Relation = topology::HardwareRelation;
    using Path = SmiEntry::Path;
    const std::vector<std::size_t> root_of = smi_groups(devices, Path::phb),
                                   wide = smi_groups(devices, Path::pxb),
                                   narrow = smi_groups(devices, Path::pix);
    std::map<std::size_t, std::size_t> roots, wide_switches, narrow_switches;
    int next_root = 0, next_switch = 0;
    const auto members = [](const std::vector<std::size_t>& groups, std::size_t of) {
        return std::ranges::count(groups, groups[of]);
    };
    std::vector<std::size_t> vertex(devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const auto& device = devices[i];
        if (device.gpu < 0) continue;
        const auto gpu = vertex[i] = parts.add(Kind::gpu, device.gpu);
        if (!roots.contains(root_of[i])) {
            const auto root = roots[root_of[i]] = parts.add(Kind::pcie_root, next_root++);
            if (device.numa) parts.join(numa_vertex.at(*device.numa), root, Relation::pcie);
        }
        auto above = roots[root_of[i]];
        const auto below = [&](std::map<std::size_t, std::size_t>& switches, std::size_t group) {
            if (!switches.contains(group)) {
                switches[group] = parts.add(Kind::pcie_switch, next_switch++);
                parts.join(above, switches[group], Relation::pcie, options.pcie_gb_s);
            }
            above = switches[group];
        };
        // A switch for devices that share bridges, and below it one for those that share a single bridge.
        if (members(wide, i) > 1 && members(wide, i) != members(narrow, i)) below(wide_switches, wide[i]);
        if (members(narrow, i) > 1) below(narrow_switches, narrow[i]);
        parts.join(above, gpu, Relation::pcie, options.pcie_gb_s);
        if (device.numa) parts.join(gpu, numa_vertex.at(*device.numa), Relation::nearby, options.pcie_gb_s);
    }
    for (std::size_t i = 0; i < devices.size(); ++i)
        for (std::size_t j = i + 1; j < devices[i].row.size(); ++j)
            if (devices[i].gpu >= 0 && devices[j].gpu >= 0 && devices[i].row[j].path == Path::links)
                parts.join(vertex[i], vertex[j], Relation::nvlink,
                           devices[i].row[j].links * options.nvlink_gb_s_per_link);
}

}  // namespace detail

GPUSCHED_EXPORT HardwareReading nvidia_smi_topo_from_text(std::string_view text,
                                                          const HardwareReadOptions& options,
                                                          std::string_view source_name) {
    using detail::SmiEntry;
    const std::string source(source_name);
    require_fields(options);
    require_text(text, source);
    Problems problems;
    auto devices = detail::SmiParser(text, source, problems).take();
    problems.throw_if_any();

    std::vector<std::string> notes;
    if (detail::infer_numa(devices))
        notes.push_back(
            "NUMA nodes: not in the text for some GPUs; those with the same CPU affinity share one");
    const auto root_of = detail::smi_groups(devices, SmiEntry::Path::phb);
    std::map<int, detail::NumaReading> numa_nodes;
    bool nowhere = false, hidden = false;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (devices[i].gpu < 0) continue;
        nowhere = nowhere || !devices[i].numa;
        if (devices[i].numa) {
            auto& cpus = numa_nodes[*devices[i].numa].cpus;
            if (devices[i].cpus) cpus.add(devices[i].cpus->ranges);
        }
        for (std::size_t j = i + 1; j < devices.size(); ++j) {
            if (devices[j].gpu < 0) continue;
            hidden = hidden || (devices[i].row[j].path == SmiEntry::Path::links && root_of[i] != root_of[j]);
            if (root_of[i] == root_of[j] && devices[i].numa != devices[j].numa)
                problems.add(source + ": " + devices[i].name + " and " + devices[j].name +
                             ": share a PCIe host bridge but not a NUMA node");
        }
    }
    detail::HardwareParts parts;
    const auto numa_vertex = parts.add_processors(numa_nodes, options, source, problems, notes);
    problems.throw_if_any();
    if (nowhere)
        notes.push_back(
            "NUMA nodes: some GPUs have no affinity, or one to several NUMA nodes, and are near none");
    if (hidden)
        notes.push_back(
            "PCIe roots: the matrix shows NVLink instead of the path over PCIe; GPUs share a root only if "
            "a third device shows it");
    detail::add_smi_gpus(devices, parts, numa_vertex, options);
    return {detail::finish(parts, source), std::move(notes)};
}

GPUSCHED_EXPORT HardwareReading read_nvidia_smi_topo(const std::string& path,
                                                     const HardwareReadOptions& options) {
    return nvidia_smi_topo_from_text(read_file(path), options, path);
}

}  // namespace gpusched::io
