// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/mps.hpp>

#include <algorithm>
#include <cctype>

namespace gpusched::host {

GPUSCHED_EXPORT BackendStatus mps_status(const CommandResult& result) {
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

GPUSCHED_EXPORT double parse_mps_percentage(std::string_view reply) {
    std::string_view last;
    while (!reply.empty()) {
        auto line = take_line(reply);
        if (const auto word = take_word(line); !word.empty()) last = word;
    }
    double value = -1;
    return read_number(last, value) && value >= 0 && value <= 100 ? value : -1;
}

GPUSCHED_EXPORT std::vector<std::int64_t> parse_mps_servers(std::string_view reply) {
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

GPUSCHED_EXPORT MpsControl::MpsControl(Programs& programs, std::string pipe_directory)
    : programs_(programs), pipe_(std::move(pipe_directory)) {}

GPUSCHED_EXPORT BackendStatus MpsControl::probe() {
    try {
        std::string reply;
        const auto status = ask("get_default_active_thread_percentage", reply);
        if (status != BackendStatus::ok) return status;
        return parse_mps_percentage(reply) >= 0 ? status : BackendStatus::invalid_state;
    } catch (const BackendError&) {
        return BackendStatus::not_found;
    }
}

GPUSCHED_EXPORT BackendStatus MpsControl::set_default_percentage(int percent) {
    using enum BackendStatus;
    const auto value = std::to_string(percent);
    std::string reply;
    if (const auto status = ask("set_default_active_thread_percentage " + value, reply); status != ok)
        return status;
    if (const auto status = ask("get_default_active_thread_percentage", reply); status != ok) return status;
    if (!near(reply, percent)) return invalid_state;
    if (const auto status = ask("get_server_list", reply); status != ok) return status;
    std::vector<std::int64_t> servers;
    try {
        servers = parse_mps_servers(reply);
    } catch (const BackendError&) {
        return invalid_state;
    }
    for (const auto server : servers) {
        const auto pid = std::to_string(server);
        auto status = ask("set_active_thread_percentage " + pid + " " + value, reply);
        if (status == not_found) continue;  // it ended meanwhile
        if (status == ok) status = ask("get_active_thread_percentage " + pid, reply);
        if (status != ok) return status;
        if (!near(reply, percent)) return invalid_state;
    }
    return ok;
}

GPUSCHED_EXPORT bool MpsControl::near(std::string_view reply, int percent) {
    const double x = parse_mps_percentage(reply);
    return x > percent - 0.6 && x < percent + 0.6;
}

GPUSCHED_EXPORT BackendStatus MpsControl::ask(std::string command, std::string& reply) {
    const std::vector<std::string> arguments{"env", "CUDA_MPS_PIPE_DIRECTORY=" + pipe_,
                                             "nvidia-cuda-mps-control"};
    command += '\n';
    auto result = programs_.run(std::span<const std::string>(arguments), std::string_view(command));
    const auto status = mps_status(result);
    reply = std::move(result.output);
    return status;
}

}  // namespace gpusched::host
