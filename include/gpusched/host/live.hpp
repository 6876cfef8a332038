// SPDX-License-Identifier: Apache-2.0
// The controller on a real host: what it needs to know of it, and what it does window by window; its loop is in run.hpp.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/host/names.hpp>
#include <gpusched/host/tenant_access.hpp>
#include <gpusched/json/document.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::host {

/// What a tenant's latencies come from; see `LatencyFile`, `LatencySocket` and `LatencyHistogram`. A document gives it as
/// the field that holds the path.
enum class LatencyKind : std::uint8_t { none, file, socket, prometheus };
constexpr auto enum_names(LatencyKind) {
    return name_table<LatencyKind>({
        {LatencyKind::none, "none"},
        {LatencyKind::file, "file"},
        {LatencyKind::socket, "socket"},
        {LatencyKind::prometheus, "prometheus"},
    });
}

/// How GPU instances are read and changed.
enum class MigControl : std::uint8_t { none, nvidia_smi, nvml };
constexpr auto enum_names(MigControl) {
    return name_table<MigControl>({
        {MigControl::none, "none"},
        {MigControl::nvidia_smi, "nvidia-smi"},
        {MigControl::nvml, "nvml"},
    });
}

/// Where a tenant's latencies come from.
struct LatencySourceOptions {
    LatencyKind kind = LatencyKind::none;
    std::string path{};
    std::string metric{};                         ///< of a histogram, without `_bucket`
    std::map<std::string, std::string> labels{};  ///< of a histogram
    double ms_per_unit = 1000;                    ///< of a histogram's bounds, above 0 and at most 1e6
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencySourceOptions>, F&& field) {
    field("kind", &LatencySourceOptions::kind);
    field("path", &LatencySourceOptions::path);
    field("metric", &LatencySourceOptions::metric);
    field("labels", &LatencySourceOptions::labels);
    field("ms_per_unit", &LatencySourceOptions::ms_per_unit, more_than(0.0, 1e6));
}

/// A tenant of the host as it really is.
struct LiveTenant {
    LatencySourceOptions latency{};
    TenantAccess access{};  ///< its folder of control groups without `LiveOptions::cgroups` before it
};
template <class F>
constexpr void visit_fields(std::type_identity<LiveTenant>, F&& field) {
    field("latency", &LiveTenant::latency);
    field("access", &LiveTenant::access, Inlined{});
}

/// How newcomers come to the host.
struct LiveAdmission {
    std::int32_t capacity = 16;  ///< of the queue, for each class
    /// Program that creates the instance and has newcomer `{id}` run in `{gpu}`, `{profile}`, `{slice}`; empty: the caller does.
    std::vector<std::string> start{};
};
template <class F>
constexpr void visit_fields(std::type_identity<LiveAdmission>, F&& field) {
    field("capacity", &LiveAdmission::capacity, within(0, 100'000));
    field("start", &LiveAdmission::start);
}

/// The real host: the section `live` of a configuration.
struct LiveOptions {
    MigControl mig = MigControl::nvidia_smi;
    /// Loaded for PCIe counters, memory in use, looks at the instances, and for `mig = nvml`; empty: not at all.
    std::string nvml_library = "libnvidia-ml.so.1";
    std::vector<std::string>
        pci{};                    ///< PCI address of each GPU of the host, for both backends; empty: by index
    std::string journal{};        ///< file; where it is, is where a restart finds what to mend
    double command_limit_s = 30;  ///< how long a program may take, above 0 and at most 600
    double backoff_s = 0.5;       ///< before what is in use is tried again, doubled each time; 0 to 60
    double lock_wait_s =
        35;  ///< how long a start waits for others, and for what a killed controller left running; 0 to 3600
    /// Windows between looks at the GPU instances, 1 to 1000: by NVML, or else by one `nvidia-smi` per GPU.
    std::int32_t layout_every = 5;
    std::string cgroups = "/sys/fs/cgroup", proc = "/proc";
    std::vector<std::vector<std::string>>
        numa_disks{};  ///< names (`nvme0n1`) of the whole disks of each NUMA node
    std::vector<std::vector<std::string>>
        root_nics{};  ///< names (`eth0`) of the network interfaces of each PCIe root
    LiveAdmission admission{};
    std::vector<LiveTenant> tenants{};  ///< as those of the host
};
template <class F>
constexpr void visit_fields(std::type_identity<LiveOptions>, F&& field) {
    field("mig", &LiveOptions::mig);
    field("nvml_library", &LiveOptions::nvml_library);
    field("pci", &LiveOptions::pci);
    field("journal", &LiveOptions::journal);
    field("command_limit_s", &LiveOptions::command_limit_s, more_than(0, 600));
    field("backoff_s", &LiveOptions::backoff_s, within(0, 60));
    field("lock_wait_s", &LiveOptions::lock_wait_s, within(0, 3600));
    field("layout_every", &LiveOptions::layout_every, within(1, 1000));
    field("cgroups", &LiveOptions::cgroups);
    field("proc", &LiveOptions::proc);
    field("numa_disks", &LiveOptions::numa_disks);
    field("root_nics", &LiveOptions::root_nics);
    field("admission", &LiveOptions::admission);
    field("tenants", &LiveOptions::tenants);
}

/// @throws InvalidInput with all problems of the section `live` of this controller, each with its place in a document
void validate(const LiveOptions& live, const ControllerOptions& options);

/// The section `live` of a document that `parse_config` takes: an object with the fields of `LiveOptions`, tenants by
/// name, and for each of them the fields of `LiveTenant`, `LatencySourceOptions` (as `latency`) and `TenantAccess`.
/// @throws InvalidInput with all problems, each with its place; also when there is no such section
[[nodiscard]] LiveOptions parse_live(std::string_view text, const ControllerOptions& options);
/// The same of a document that is parsed already.
[[nodiscard]] LiveOptions parse_live(const json::Document& document, const ControllerOptions& options);

/// The controller on this machine: looks what is there, mends what a crash left, then reads, decides, writes down and
/// acts, window by window. Not for use by several threads at once.
class LiveController {
  public:
    /// Locks the journal and the control groups, and waits for a tenant's program that a controller which is gone left at
    /// work; a dry run does neither. Nothing is changed yet.
    /// @param audit file to which lines are appended, a record of the start first; empty: none is written
    /// @throws InvalidInput when out of range; BackendError when another process has the journal or the control groups, such
    ///     a program does not end, or a file cannot be opened
    LiveController(ControllerOptions options, LiveOptions live, std::string audit);
    ~LiveController();
    LiveController(const LiveController&) = delete;
    LiveController& operator=(const LiveController&) = delete;

    /// Looks for what the host offers, and switches off the flags of what it does not; then recovery. Once, before the
    /// first window.
    /// @return lines for the operator: one per capability, one per protected tenant, one per limit ended
    /// @throws BackendError when the state is not known: the instances require manual repair
    std::vector<std::string> start();

    /// One window.
    /// @return lines: transitions with reasons, actions and how they ended
    std::vector<std::string> window();

    /// An operator has looked: frozen tenants go on (HOLD ends after ten fresh windows), and after `release` the controller
    /// is enabled again. Refused, with the reasons, unless the instance of every frozen tenant stands where the journal
    /// has it, nothing stands where it was to go, and no program is at work any more; then the tenant is told to run in
    /// its instance, the cut-off change leaves the journal, and the next window looks at the instances once more. Where
    /// nothing waits for an operator nothing happens. In a dry run it looks only.
    /// @return lines: what is resumed, or why not
    std::vector<std::string> resume();

    /// Whether a tenant is frozen until an operator has come: `resume`.
    [[nodiscard]] bool waits_for_operator() const noexcept;

    /// A newcomer arrives: as `AdmissionQueue::offer`, with the state of the last window. The program `LiveAdmission::start` starts an
    /// admitted newcomer; where it fails, the newcomer is rejected. Newcomers are queued, not admitted, while a tenant waits for an operator, after
    /// `release`, and in a dry run. What happened is among the lines of the next window.
    /// @throws InvalidInput before the first window, or when a number of the newcomer is out of range
    AdmissionAnswer offer(Newcomer newcomer);
    /// Takes a newcomer out of the queue. @return false if none with this id waits
    bool withdraw(std::int64_t id);
    /// The waiting newcomers, in order of service.
    [[nodiscard]] const std::vector<Newcomer>& waiting() const noexcept;
    /// Answers to waiting newcomers since the last call; each window admits one newcomer at most.
    std::vector<AdmissionAnswer> take_answers();

    /// Ends all limits of block I/O; the end of a clean shutdown. Windows after it are DISABLED until `resume`.
    /// @return lines, also for those that could not be ended: the next start tries again
    std::vector<std::string> release();

    /// False after `start` has failed for what it found, not for what it could not reach: a state that somebody has to
    /// look at, or a journal that cannot be read. To start again does not help then.
    [[nodiscard]] bool state_known() const noexcept;

    /// As in effect: flags that the host does not support are off, and tenants start where they were found. What
    /// `replay_audit` needs for the log.
    [[nodiscard]] const ControllerOptions& options() const noexcept;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gpusched::host
