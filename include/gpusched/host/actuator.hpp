// SPDX-License-Identifier: Apache-2.0
// Actions on a real host: GPU instances, limits of block I/O, cores, quotas; each written into the journal before.
#pragma once

#include <gpusched/host/journal.hpp>
#include <gpusched/host/mig_backend.hpp>
#include <gpusched/host/programs.hpp>
#include <gpusched/host/tenant_access.hpp>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::host {

/// The `Actuator` of a real host. Actions are done when `act` returns. A change that the journal cannot take is not begun.
class HostActuator {
  public:
    /// @param access by tenant, as long as the host's
    /// @param journal what stands, as `recover_host` left it
    /// @param backoff_s wait before something in use is tried again; doubled each time
    HostActuator(MigBackend& mig, Files& files, Programs& programs, const Host& host,
                 std::vector<TenantAccess> access, JournalFile file, Journal journal, double backoff_s = 0.5);

    /// The act phase of a window: limits that could not be ended are tried again, what must outlive the controller is brought
    /// into the journal, then the actions.
    [[nodiscard]] ActionReport act(const Decision& decision);
    /// One action by itself.
    [[nodiscard]] ActionReport act(const Action& action);
    /// Tries again to end limits that could not be ended. @return whether none is left
    bool retry_releases();
    /// What became of a resumption.
    struct Resumption {
        std::vector<std::string> reasons{};  ///< what is in the way; empty: nothing is
        std::vector<std::string> notes{};    ///< lines on programs that failed
    };
    /// An operator has looked: lets frozen tenants go on, all of them or none.
    /// @param looks_only nothing is done, as in a dry run
    [[nodiscard]] Resumption resume(const std::vector<std::int32_t>& tenants, bool looks_only);
    [[nodiscard]] const Journal& journal() const noexcept { return journal_; }

  private:
    using enum BackendStatus;
    class DrainingMig;

    void carry_out(const Action& action);
    /// Brings what must outlive the controller into the journal, whenever it is more than the same grown older. Not in a dry
    /// run. What cannot be written is tried again in the next window; actions that cannot be written are not begun.
    void remember(const Decision& decision);
    BackendStatus save() { return file_.save(journal_, host_); }
    const TenantAccess& access(std::int32_t tenant) const;
    const std::string& name(std::int32_t tenant) const;
    void perform(const Action& action, ActionOutcome& out);

    BackendStatus throttle(const Action& action);

    bool is_limited(std::int32_t target) const;

    BackendStatus release(std::int32_t target);

    BackendStatus quota(const Action& action);

    BackendStatus pin(std::int32_t tenant, const CpuSet& cpus);

    BackendStatus hook(const std::vector<std::string>& program, const Configuration& at);

    Feedback reconfigure(const Action& action);

    BackendStatus join_guards(const Action& action, JournalTenant& entry);

    Feedback replace(const Action& action, JournalTenant& entry);

    MigBackend& mig_;
    Files& files_;
    Programs& programs_;
    const Host& host_;
    std::vector<TenantAccess> access_;
    JournalFile file_;
    Journal journal_;
    double backoff_s_;
    ActionReport report_{};
    std::vector<std::int32_t> ending_{};  ///< tenants whose limit should have ended and has not
    std::int64_t deeds_ = 0;              ///< of the state that the journal has
    bool forgetful_ = false;              ///< the journal could not take it
};

}  // namespace gpusched::host
