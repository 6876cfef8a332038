// SPDX-License-Identifier: Apache-2.0
// How tenants of a real host are reached: their control groups, and the programs that the controller starts for them.
#pragma once

#include <gpusched/host/names.hpp>
#include <gpusched/host/programs.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gpusched::host {

/// How a tenant of the host is reached.
struct TenantAccess {
    std::string cgroup{};              ///< folder of its control group; empty: none
    std::vector<std::string> disks{};  ///< major:minor of the whole disks whose use is limited
    /// Program that has the (protected) tenant run in the instance given and nowhere else; may be called again for the
    /// same one. `{gpu}`, `{profile}` and `{slice}` stand for the instance. Without it the instance is never changed.
    std::vector<std::string> switch_over{};
    /// Program that stops the tenant, before its only instance is destroyed; empty: `switch_over` alone is enough.
    std::vector<std::string> drain{};
    std::string mps_pipe{};  ///< of an MPS client: CUDA_MPS_PIPE_DIRECTORY of its daemon
    std::vector<std::string>
        restart{};  ///< of an MPS client: program that restarts it, for its quota to take effect
};
template <class F>
constexpr void visit_fields(std::type_identity<TenantAccess>, F&& field) {
    field("cgroup", &TenantAccess::cgroup);
    field("disks", &TenantAccess::disks);
    field("switch_over", &TenantAccess::switch_over);
    field("drain", &TenantAccess::drain);
    field("mps_pipe", &TenantAccess::mps_pipe);
    field("restart", &TenantAccess::restart);
}

/// Puts a value in every place of a name such as `{gpu}`.
void replace_all(std::string& text, std::string_view name, const std::string& value);

/// A program's arguments for an instance.
[[nodiscard]] std::vector<std::string> hook_arguments(const std::vector<std::string>& program,
                                                      const Host& host, const Configuration& at);

/// What an operator has to know of a program that failed: how it ended, and the last line that it wrote.
[[nodiscard]] std::string hook_failure(const std::vector<std::string>& arguments,
                                       const CommandResult& result);

/// Sleeps; a signal ends it early.
void pause_for(double seconds);

}  // namespace gpusched::host
