// SPDX-License-Identifier: Apache-2.0
// The quota of MPS clients, through `nvidia-cuda-mps-control`.
#pragma once

#include <gpusched/host/names.hpp>
#include <gpusched/host/programs.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::host {

/// The failure that a reply of the MPS control program stands for.
[[nodiscard]] BackendStatus mps_status(const CommandResult& result);

/// The number in the last line of a reply, such as `75.0`; -1 where there is none from 0 to 100.
[[nodiscard]] double parse_mps_percentage(std::string_view reply);

/// Process ids, one per line.
/// @throws BackendError for a line that is none
[[nodiscard]] std::vector<std::int64_t> parse_mps_servers(std::string_view reply);

/// One MPS daemon. A percentage reaches clients that connect afterwards; those that run keep theirs.
class MpsControl {
  public:
    /// @param pipe_directory CUDA_MPS_PIPE_DIRECTORY of the daemon
    MpsControl(Programs& programs, std::string pipe_directory);

    /// Whether the daemon answers; changes nothing.
    [[nodiscard]] BackendStatus probe();
    /// For servers that start later and, so that new clients of theirs get it too, those that run. Read back.
    [[nodiscard]] BackendStatus set_default_percentage(int percent);

  private:
    static bool near(std::string_view reply, int percent);
    BackendStatus ask(std::string command, std::string& reply);

    Programs& programs_;
    std::string pipe_;
};

}  // namespace gpusched::host
