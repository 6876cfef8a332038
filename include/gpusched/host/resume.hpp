// SPDX-License-Identifier: Apache-2.0
// An operator has come to a frozen controller: whether it may go on, and what it takes.
#pragma once

#include <gpusched/host/journal.hpp>
#include <gpusched/host/replace_instance.hpp>

#include <string>

namespace gpusched::host {

/// What is in the way of going on with a tenant whose change came to an unknown end, or whose instance or GPU was gone;
/// empty where nothing is: its instance stands where the journal has it, and nothing is left of a change. Looks only.
[[nodiscard]] std::string resume_obstacle(MigBackend& mig, const Host& host, const JournalTenant& entry);

/// Brings such a tenant back to where the journal has it: the instance gets the compute instance that it may lack, and
/// is the controller's again; the tenant is told to run there where a change had begun; the change is forgotten. What a
/// process that dies here leaves behind is what `recover_host` expects.
/// @param switch_over as for `recover_change`
/// @return why that failed; empty where it did not
[[nodiscard]] std::string resume_settle(MigBackend& mig, JournalTenant& entry, const TenantMove& switch_over);

}  // namespace gpusched::host
