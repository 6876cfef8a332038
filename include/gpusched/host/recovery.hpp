// SPDX-License-Identifier: Apache-2.0
// After a start: from what the journal says and what the hardware shows to a state that is known.
#pragma once

#include <gpusched/host/journal.hpp>
#include <gpusched/host/mig_backend.hpp>
#include <gpusched/host/tenant_access.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::host {

/// What was found of a protected tenant.
enum class RecoveryVerdict : std::uint8_t {
    as_configured,  ///< no journal: the instance of the configuration stands
    as_recorded,    ///< the instance of the journal stands
    restored,       ///< a change was cut off; the tenant is where it was
    completed,      ///< a change was cut off; the tenant is where it was to go
    restarted,      ///< the machine was started anew, and the instance of the configuration stands
    missing,        ///< nothing that is known stands; nothing was touched
    failed          ///< a call failed on the way; the journal still says what was meant
};
constexpr auto enum_names(RecoveryVerdict) {
    return name_table<RecoveryVerdict>({
        {RecoveryVerdict::as_configured, "as_configured"},
        {RecoveryVerdict::as_recorded, "as_recorded"},
        {RecoveryVerdict::restored, "restored"},
        {RecoveryVerdict::completed, "completed"},
        {RecoveryVerdict::restarted, "restarted"},
        {RecoveryVerdict::missing, "missing"},
        {RecoveryVerdict::failed, "failed"},
    });
}

struct RecoveredTenant {
    std::string name{};
    RecoveryVerdict verdict = RecoveryVerdict::missing;
    BackendStatus status = BackendStatus::ok;
    Configuration now{};
};

struct Recovery {
    std::vector<RecoveredTenant> tenants{};  ///< the protected ones, in the host's order
    std::int32_t leases_ended = 0;
    std::vector<std::string> problems{};  ///< what an operator has to see to
    Journal journal{};                    ///< what stands now; saved
    /// Whether everything is in a known state, so that control may start.
    [[nodiscard]] bool known() const noexcept { return problems.empty(); }
};

/// The controller's own instances: those that the journal has, cut-off changes included, or, where it has none of this
/// boot, those of the configuration. GPU instances do not outlive a boot: what an older journal says is no claim.
[[nodiscard]] std::vector<OwnedInstance>
owned_instances(const Host& host, const std::optional<Journal>& journal, const std::string& boot);

/// The identity of the running kernel; empty where it cannot be read, which is no boot that a journal is of.
[[nodiscard]] std::string boot_id(Files& files, const std::string& proc = "/proc");

/// Whether a path is that of an io.max below a folder, without steps upwards.
[[nodiscard]] bool is_limit_file(std::string_view path, std::string_view folder);

/// To be called before anything else at a start. Ends limits that the journal still has, brings cut-off changes to an
/// end, adopts what stands, restores cores, and saves the journal. After a restart of the machine (another boot id)
/// limits and cut-off changes are gone with it. An instance that is not the journal's or the configuration's is not
/// touched, whatever it looks like; where none of them stands nothing is done and `problems` says so. Without `boot`
/// nothing is done at all.
/// @param structural whether instances are looked at at all; false without a MIG backend: then a cut-off change stays in
///     the journal, and is a problem
/// @param cgroups folder; a limit elsewhere is not written, whatever the journal says. Empty: anywhere
/// @throws BackendError when the journal cannot be read
[[nodiscard]] Recovery recover_host(MigBackend& mig, Files& files, Programs& programs, const Host& host,
                                    const std::vector<TenantAccess>& access, JournalFile& file,
                                    const std::string& boot, bool structural, double backoff_s = 0.5,
                                    std::string_view cgroups = {});

}  // namespace gpusched::host
