// The quota of MPS clients, through `nvidia-cuda-mps-control`.
#pragma once

#include <gpusched/host/nvidia_smi.hpp>

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::host {

/// A `CommandRunner` that can also give a program its standard input.
template <class R>
concept InputRunner = CommandRunner<R> && requires(R& runner, std::span<const std::string> arguments) {
    { runner.run(arguments, std::string_view()) } -> std::same_as<CommandResult>;
};

/// The failure that a reply of the MPS control program stands for.
[[nodiscard]] BackendStatus mps_status(const CommandResult& result);

/// The number in the last line of a reply, such as `75.0`; -1 where there is none from 0 to 100.
[[nodiscard]] double parse_mps_percentage(std::string_view reply);

/// Process ids, one per line.
/// @throws BackendError for a line that is none
[[nodiscard]] std::vector<std::int64_t> parse_mps_servers(std::string_view reply);

/// One MPS daemon. A percentage reaches clients that connect afterwards; those that run keep theirs.
template <CommandRunner Run>
class MpsControl {
  public:
    /// @param pipe_directory CUDA_MPS_PIPE_DIRECTORY of the daemon
    MpsControl(Run& run, std::string pipe_directory) : run_(run), pipe_(std::move(pipe_directory)) {}

    /// Whether the daemon answers; changes nothing.
    [[nodiscard]] BackendStatus probe() {
        if constexpr (!InputRunner<Run>) {
            return BackendStatus::not_supported;
        } else {
            try {
                std::string reply;
                const auto status = ask("get_default_active_thread_percentage", reply);
                if (status != BackendStatus::ok) return status;
                return parse_mps_percentage(reply) >= 0 ? status : BackendStatus::invalid_state;
            } catch (const BackendError&) {
                return BackendStatus::not_found;
            }
        }
    }
    /// For servers that start later and, so that new clients of theirs get it too, those that run. Read back.
    [[nodiscard]] BackendStatus set_default_percentage(int percent) {
        using enum BackendStatus;
        if constexpr (!InputRunner<Run>) {
            return not_supported;
        } else {
            const auto value = std::to_string(percent);
            std::string reply;
            if (const auto status = ask("set_default_active_thread_percentage " + value, reply); status != ok)
                return status;
            if (const auto status = ask("get_default_active_thread_percentage", reply); status != ok)
                return status;
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
    }

  private:
    static bool near(std::string_view reply, int percent) {
        const double x = parse_mps_percentage(reply);
        return x > percent - 0.6 && x < percent + 0.6;
    }
    BackendStatus ask(std::string command, std::string& reply) {
        const std::vector<std::string> arguments{"env", "CUDA_MPS_PIPE_DIRECTORY=" + pipe_,
                                                 "nvidia-cuda-mps-control"};
        command += '\n';
        auto result = run_.run(std::span<const std::string>(arguments), std::string_view(command));
        const auto status = mps_status(result);
        reply = std::move(result.output);
        return status;
    }

    Run& run_;
    std::string pipe_;
};

}  // namespace gpusched::host

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/host/impl/mps.ipp>
#endif
