// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/proc_signals.hpp>

#include <algorithm>
#include <utility>

namespace gpusched::host {

GPUSCHED_EXPORT std::vector<std::uint64_t> parse_interrupts(std::string_view text) {
    auto heading = take_line(text);
    std::vector<std::size_t> cores;
    std::size_t most = 0;
    for (auto word = take_word(heading); !word.empty(); word = take_word(heading)) {
        std::size_t core = 0;
        if (!word.starts_with("CPU") || !read_number(word.substr(3), core) || core > 65535)
            throw BackendError("interrupts: heading cannot be read: " + std::string(word));
        cores.push_back(core);
        most = std::max(most, core + 1);
    }
    if (cores.empty()) throw BackendError("interrupts: no heading with cores");
    std::vector<std::uint64_t> counts(most, 0);
    while (!text.empty()) {
        const auto line = take_line(text);
        auto rest = line;
        auto label = take_word(rest);
        if (label.empty()) continue;
        unsigned number = 0;
        if (!label.ends_with(':') || !read_number(label.substr(0, label.size() - 1), number)) continue;
        // On ARM the timers have numbers too: they say how busy a core is.
        const auto name_at = line.find_last_not_of(" \t\r");
        const auto name = name_at == std::string_view::npos ? line : line.substr(0, name_at + 1);
        if (name.ends_with(" timer") || name.ends_with("_timer")) continue;
        for (const auto core : cores) {
            std::uint64_t count = 0;
            if (!read_number(take_word(rest), count))
                throw BackendError("interrupts: row cannot be read: " + std::string(line));
            counts[core] += count;
        }
    }
    return counts;
}

GPUSCHED_EXPORT std::vector<DiskStats> parse_diskstats(std::string_view text) {
    constexpr std::uint64_t sector = 512;
    std::vector<DiskStats> out;
    while (!text.empty()) {
        const auto line = take_line(text);
        auto rest = line;
        const auto major = take_word(rest);
        if (major.empty()) continue;
        const auto minor = take_word(rest);
        DiskStats disk;
        disk.name = take_word(rest);
        disk.device = std::string(major) + ":" + std::string(minor);
        std::uint64_t n[7]{};
        unsigned a = 0, b = 0;
        bool good = read_number(major, a) && read_number(minor, b) && !disk.name.empty();
        for (auto& x : n) good = good && read_number(take_word(rest), x);
        // Reads, merged, sectors, ms; writes, merged, sectors.
        if (!good || n[2] > ~std::uint64_t{0} / sector || n[6] > ~std::uint64_t{0} / sector)
            throw BackendError("diskstats: row cannot be read: " + std::string(line));
        disk.bytes_read = n[2] * sector;
        disk.bytes_written = n[6] * sector;
        out.push_back(std::move(disk));
    }
    return out;
}

GPUSCHED_EXPORT std::vector<NetStats> parse_net_dev(std::string_view text) {
    std::vector<NetStats> out;
    for (int row = 0; !text.empty(); ++row) {
        const auto line = take_line(text);
        const auto colon = line.find(':');
        if (row < 2 || line.find_first_not_of(' ') == std::string_view::npos) continue;  // two headings
        auto name = line.substr(0, colon == std::string_view::npos ? 0 : colon);
        auto rest = line.substr(colon == std::string_view::npos ? line.size() : colon + 1);
        std::uint64_t n[9]{};  // received: bytes, packets and six more; then bytes sent
        bool good = true;
        for (auto& x : n) good = good && read_number(take_word(rest), x);
        NetStats device{std::string(take_word(name)), n[0] + n[8]};
        if (!good || device.name.empty() || n[8] > ~std::uint64_t{0} - n[0])
            throw BackendError("net/dev: row cannot be read: " + std::string(line));
        out.push_back(std::move(device));
    }
    return out;
}

GPUSCHED_EXPORT std::uint64_t parse_aer_correctable(std::string_view text) {
    while (!text.empty()) {
        auto line = take_line(text);
        if (take_word(line) != "TOTAL_ERR_COR") continue;
        std::uint64_t count = 0;
        if (read_number(take_word(line), count)) return count;
    }
    throw BackendError("aer_dev_correctable: no TOTAL_ERR_COR");
}

GPUSCHED_EXPORT std::int32_t parse_numa_node(std::string_view text) noexcept {
    std::int32_t node = -1;
    auto line = take_line(text);
    return read_number(take_word(line), node) && node >= 0 ? node : -1;
}

GPUSCHED_EXPORT double pcie_bytes_per_s(std::string_view speed, std::string_view width) noexcept {
    double transfers = 0;
    int lanes = 0;
    auto line = take_line(width);
    if (!read_number(take_word(speed), transfers) || take_word(speed) != "GT/s" ||
        !read_number(take_word(line), lanes) || !(transfers > 0) || lanes < 1 || lanes > 32)
        return unknown_signal;
    // 8b/10b up to 5 GT/s, 128b/130b above; from 64 GT/s fixed-size packets: 242 of 256 bytes.
    const double part = transfers <= 5 ? 0.8 : transfers < 64 ? 128.0 / 130 : 242.0 / 256;
    return transfers * 1e9 / 8 * part * lanes;
}

}  // namespace gpusched::host
