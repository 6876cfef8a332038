// SPDX-License-Identifier: Apache-2.0
// Every room of the library but `host/`, the real host under the controller (`gpusched/host/host.hpp`). Prefer the headers of
// the rooms you use: they cost less to compile.
#pragma once

// First: the fewer files lie between, the earlier a wrong policy is named in the compiler's message.
#include <gpusched/allocation/detail/policy_checks.hpp>
#include <gpusched/consolidation/concepts.hpp>

#include <gpusched/admission/admission.hpp>
#include <gpusched/allocation/allocation.hpp>
#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/control/control.hpp>
#include <gpusched/core/core.hpp>
#include <gpusched/fragmentation/fragmentation.hpp>
#include <gpusched/io/io.hpp>
#include <gpusched/json/json.hpp>
#include <gpusched/milp/milp.hpp>
#include <gpusched/model/model.hpp>
#include <gpusched/preemption/preemption.hpp>
#include <gpusched/serving/serving.hpp>
#include <gpusched/sim/sim.hpp>
#include <gpusched/topology/topology.hpp>
#include <gpusched/verify/verify.hpp>
#include <gpusched/version.hpp>
