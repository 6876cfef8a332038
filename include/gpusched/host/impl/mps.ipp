#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/mps.hpp>

#include <algorithm>
#include <cctype>

namespace gpusched::host {

GPUSCHED_INLINE BackendStatus mps_status(const CommandResult& result) {
    using enum BackendStatus;
    if (result.timed_out) return timeout;
    std::string text = result.output;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // The program may end with 0 after an error.
    constexpr std::pair<std::string_view, BackendStatus> texts[] = {
        {"cannot find mps control daemon", not_found},
        {"server not found", not_found},
        {"not found", not_found},
        {"permission denied", no_permission},
        {"not permitted", no_permission},
        {"not supported", not_supported},
        {"invalid", not_supported},
        {"unrecognized", not_supported}};
    for (const auto& [part, status] : texts)
        if (text.find(part) != std::string::npos) return status;
    if (result.code == 127) return not_found;
    if (result.code != 0 || text.find("fail") != std::string::npos || text.find("error") != std::string::npos)
        return unknown;
    return ok;
}

GPUSCHED_INLINE double parse_mps_percentage(std::string_view reply) {
    std::string_view last;
    while (!reply.empty()) {
        auto line = take_line(reply);
        if (const auto word = take_word(line); !word.empty()) last = word;
    }
    double value = -1;
    return read_number(last, value) && value >= 0 && value <= 100 ? value : -1;
}

GPUSCHED_INLINE std::vector<std::int64_t> parse_mps_servers(std::string_view reply) {
    std::vector<std::int64_t> servers;
    while (!reply.empty()) {
        auto line = take_line(reply);
        const auto all = line;
        const auto word = take_word(line);
        if (word.empty()) continue;
        std::int64_t pid = 0;
        if (!read_number(word, pid) || pid <= 0 || !take_word(line).empty())
            throw BackendError("nvidia-cuda-mps-control: server cannot be read: " + std::string(all));
        servers.push_back(pid);
    }
    return servers;
}

}  // namespace gpusched::host
