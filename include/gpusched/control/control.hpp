// Everything in control/ but what touches a real host (live.hpp and what it is made of), which is included by name.
#pragma once

#include <gpusched/control/admission.hpp>
#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/control/estimators.hpp>
#include <gpusched/control/host.hpp>
#include <gpusched/control/memory.hpp>
#include <gpusched/control/mig_layout.hpp>
#include <gpusched/control/mig_tables.hpp>
#include <gpusched/control/nvidia_smi.hpp>
#include <gpusched/control/observation.hpp>
#include <gpusched/control/options.hpp>
#include <gpusched/control/placement_score.hpp>
#include <gpusched/control/runner.hpp>
#include <gpusched/control/state.hpp>
#include <gpusched/control/step.hpp>
#include <gpusched/control/tail_model.hpp>
