// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/cpu_ranges.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/cgroup.hpp>

#include <algorithm>
#include <optional>

namespace gpusched::host {

namespace cgroup_detail {

/// Calls `each(key, value)` for the pairs behind the device of a line.
template <class F>
void each_pair(std::string_view line, const char* file, const F& each) {
    auto rest = line;
    static_cast<void>(take_word(rest));
    for (auto word = take_word(rest); !word.empty(); word = take_word(rest)) {
        const auto equals = word.find('=');
        if (equals == std::string_view::npos || !each(word.substr(0, equals), word.substr(equals + 1)))
            throw BackendError(std::string(file) + ": line cannot be read: " + std::string(line));
    }
}

}  // namespace cgroup_detail

GPUSCHED_EXPORT bool same_cores(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const auto x = parse_cpu_list(a), y = parse_cpu_list(b);
    return x && y && *x == *y;
}

GPUSCHED_EXPORT IoMax parse_io_max(std::string_view text, std::string_view device) {
    IoMax out;
    out.device = device;
    while (!text.empty()) {
        const auto line = take_line(text);
        auto rest = line;
        if (take_word(rest) != device) continue;
        cgroup_detail::each_pair(line, "io.max", [&](std::string_view key, std::string_view value) {
            auto* const limit = key == "rbps"    ? &out.read_bytes_per_s
                                : key == "wbps"  ? &out.write_bytes_per_s
                                : key == "riops" ? &out.reads_per_s
                                : key == "wiops" ? &out.writes_per_s
                                                 : nullptr;
            if (limit == nullptr) return true;  // of a kernel to come
            if (value == "max") return true;
            return read_number(value, *limit);
        });
    }
    return out;
}

GPUSCHED_EXPORT std::string io_max_text(const IoMax& limits) {
    const auto text = [](std::uint64_t x) {
        return x == no_io_limit ? std::string("max") : std::to_string(x);
    };
    return limits.device + " rbps=" + text(limits.read_bytes_per_s) +
           " wbps=" + text(limits.write_bytes_per_s) + " riops=" + text(limits.reads_per_s) +
           " wiops=" + text(limits.writes_per_s);
}

GPUSCHED_EXPORT bool parse_threads(std::string_view text, std::vector<std::int64_t>& threads) {
    while (!text.empty()) {
        auto line = take_line(text);
        const auto word = take_word(line);
        if (word.empty()) continue;
        std::int64_t thread = 0;
        if (!read_number(word, thread) || thread <= 0 || !take_word(line).empty()) return false;
        threads.push_back(thread);
    }
    return true;
}

GPUSCHED_EXPORT std::uint64_t parse_io_stat(std::string_view text, const std::vector<std::string>& devices) {
    std::uint64_t bytes = 0;
    while (!text.empty()) {
        const auto line = take_line(text);
        auto rest = line;
        const auto device = take_word(rest);
        if (device.empty() ||
            (!devices.empty() && std::find(devices.begin(), devices.end(), device) == devices.end()))
            continue;
        cgroup_detail::each_pair(line, "io.stat", [&](std::string_view key, std::string_view value) {
            if (key != "rbytes" && key != "wbytes") return true;
            std::uint64_t x = 0;
            if (!read_number(value, x)) return false;
            bytes += x;
            return true;
        });
    }
    return bytes;
}

GPUSCHED_EXPORT Cgroup::Cgroup(Files& files, std::string folder)
    : files_(files), folder_(std::move(folder)) {}

GPUSCHED_EXPORT BackendStatus Cgroup::read(const char* name, std::string& text) {
    return errno_status(files_.read(file(name), text));
}

GPUSCHED_EXPORT BackendStatus Cgroup::io_max(std::string_view device, IoMax& limits) {
    std::string text;
    if (const auto status = read("io.max", text); status != BackendStatus::ok) return status;
    try {
        limits = parse_io_max(text, device);
    } catch (const BackendError&) {
        return BackendStatus::invalid_state;
    }
    return BackendStatus::ok;
}

GPUSCHED_EXPORT BackendStatus Cgroup::set_io_max(const IoMax& limits) {
    const int error = files_.write(file("io.max"), io_max_text(limits));
    if (error != 0) return errno_status(error);
    IoMax now;
    if (const auto status = io_max(limits.device, now); status != BackendStatus::ok) return status;
    return now == limits ? BackendStatus::ok : BackendStatus::invalid_state;
}

GPUSCHED_EXPORT BackendStatus Cgroup::set_cpus(std::string_view list, bool all) {
    // An empty write does nothing; a newline clears.
    const int error = files_.write(file("cpuset.cpus"), std::string(list) + "\n");
    if (error != 0) return errno_status(error);
    std::string now;
    if (const auto status = read("cpuset.cpus", now); status != BackendStatus::ok) return status;
    if (!same_cores(now, list)) return BackendStatus::invalid_state;
    if (list.empty() || !all) return BackendStatus::ok;
    // The group above may have fewer cores: then these are not what the tenant gets.
    if (const auto status = read("cpuset.cpus.effective", now); status != BackendStatus::ok) return status;
    return same_cores(now, list) ? BackendStatus::ok : BackendStatus::not_supported;
}

GPUSCHED_EXPORT BackendStatus Cgroup::set_affinity(const CpuSet& cpus) {
    std::vector<std::int64_t> done;
    // Threads come while others are set; a few looks find them all unless they never stop coming.
    for (int look = 0; look < 8; ++look) {
        std::string text;
        if (const auto status = read("cgroup.threads", text); status != BackendStatus::ok) return status;
        std::vector<std::int64_t> found;
        if (!parse_threads(text, found)) return BackendStatus::invalid_state;
        bool more = false;
        for (const auto thread : found) {
            if (std::find(done.begin(), done.end(), thread) != done.end()) continue;
            more = true;
            done.push_back(thread);
            const auto status = errno_status(files_.set_affinity(thread, cpus));
            // It may have ended meanwhile.
            if (status != BackendStatus::ok && status != BackendStatus::not_found) return status;
        }
        if (!more) return BackendStatus::ok;
    }
    return BackendStatus::timeout;
}

}  // namespace gpusched::host
