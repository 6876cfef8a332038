// SPDX-License-Identifier: Apache-2.0
// Every component of the library. Prefer the headers of the components you use: they cost less to compile.
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
