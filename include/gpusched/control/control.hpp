// SPDX-License-Identifier: Apache-2.0
// Includes all of control/: the decision core of the tail-latency controller. It does no I/O and reads no
// clock.
#pragma once

#include <gpusched/control/audit.hpp>
#include <gpusched/control/carryover.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/control/estimators.hpp>
#include <gpusched/control/host_description.hpp>
#include <gpusched/control/mig_layout.hpp>
#include <gpusched/control/observation.hpp>
#include <gpusched/control/options.hpp>
#include <gpusched/control/placement_score.hpp>
#include <gpusched/control/runner.hpp>
#include <gpusched/control/state.hpp>
#include <gpusched/control/step.hpp>
#include <gpusched/control/tenant_admission.hpp>
