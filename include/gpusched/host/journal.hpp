// SPDX-License-Identifier: Apache-2.0
// Journal: what the controller is about to do, and must undo if it dies, on disk.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/host/cgroup.hpp>
#include <gpusched/host/names.hpp>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::host {

/// A protected tenant in the journal.
struct JournalTenant {
    std::string name{};
    Configuration now{};                     ///< as last settled
    std::optional<Configuration> pending{};  ///< a change of instance that has begun
    bool switched = false;                   ///< the tenant already runs in `pending`
    bool drained = false;                    ///< the tenant was stopped for the change
    /// Text of cpuset.cpus before it was pinned; `threads` where the cores of its threads are set instead.
    std::optional<std::string> cpuset{};
    friend bool operator==(const JournalTenant&, const JournalTenant&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<JournalTenant>, F&& field) {
    field("name", &JournalTenant::name);
    field("now", &JournalTenant::now, Required{});
    field("pending", &JournalTenant::pending);
    field("switched", &JournalTenant::switched, UnlessDefault{});
    field("drained", &JournalTenant::drained, UnlessDefault{});
    field("cpuset", &JournalTenant::cpuset);
}

/// A limit of block I/O that ends with the controller.
struct JournalLease {
    std::string tenant{};  ///< whom it hits
    std::string file{};    ///< of its cgroup: .../io.max
    std::string before{};  ///< what to write to have it as it was, such as `259:0 rbps=max wbps=max`
    friend bool operator==(const JournalLease&, const JournalLease&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<JournalLease>, F&& field) {
    field("tenant", &JournalLease::tenant);
    field("file", &JournalLease::file);
    field("before", &JournalLease::before);
}

struct Journal {
    std::string boot{};  ///< of the kernel: GPU instances and cgroups do not outlive it
    std::vector<JournalTenant> tenants{};
    std::vector<JournalLease> leases{};
    double carryover_s = 0;  ///< of the monotonic clock of that boot: when `carryover` was so
    std::vector<NamedCarryover> carryover{};
    friend bool operator==(const Journal&, const Journal&) = default;

    /// The entry of a tenant, made if need be.
    JournalTenant& of(std::string_view name);
};
template <class F>
constexpr void visit_fields(std::type_identity<Journal>, F&& field) {
    field("boot", &Journal::boot);
    field("tenants", &Journal::tenants);
    field("leases", &Journal::leases);
    field("memory_s", &Journal::carryover_s, within(0.0, 1e12));
    field("memory", &Journal::carryover);
}

/// What a start at `now_s` of the monotonic clock must respect. It is kept over a boot, where the time in between is not
/// known and counts as none.
/// @param host as configured: its `start` is the floor of those for whom the journal has none
[[nodiscard]] ControllerCarryover remembered(const Journal& journal, const Host& host, double now_s,
                                             double window_s);

/// Where a start stands with a journal: all of it in the same boot, nothing but the carryover after another, and of that not
/// the floors.
[[nodiscard]] Journal believed(const std::optional<Journal>& found, const std::string& boot);

/// The document of format `gpusched.control-journal`, version 3. Version 2, which has no floors, and 1, which has no carryover,
/// are read too.
[[nodiscard]] std::string write_journal(const Journal& journal, const Host& host);

/// The inverse.
/// @throws BackendError when it is no such document or does not fit the host, with all problems: somebody has to look
///     before anything is changed
[[nodiscard]] Journal parse_journal(std::string_view text, const Host& host);

/// Puts a tenant on cores, none meaning those that it had before.
/// @param before `JournalTenant::cpuset`
[[nodiscard]] BackendStatus set_cores(Files& files, const std::string& cgroup, const CpuSet& cpus,
                                      const std::string& before);

/// Ends a limit, and reads back that it has. A control group or disk that is gone has none.
[[nodiscard]] BackendStatus end_lease(Files& files, const JournalLease& lease);

/// A journal in a file that is replaced as a whole: written beside it, brought to the disk, renamed. Whoever reads it
/// finds the old or the new one, whenever the writer or the machine stops.
class JournalFile {
  public:
    JournalFile(Files& files, std::string path);

    /// Nothing where there is no file.
    /// @throws BackendError when it cannot be read
    [[nodiscard]] std::optional<Journal> load(const Host& host);
    [[nodiscard]] BackendStatus save(const Journal& journal, const Host& host);
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

  private:
    Files& files_;
    std::string path_;
};

}  // namespace gpusched::host
