// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of control/: every file of include/gpusched/control/impl.
#include <gpusched/control/impl/audit.ipp>
#include <gpusched/control/impl/carryover.ipp>
#include <gpusched/control/impl/config.ipp>
#include <gpusched/control/impl/diagnose.ipp>
#include <gpusched/control/impl/estimators.ipp>
#include <gpusched/control/impl/levers.ipp>
#include <gpusched/control/impl/mig_layout.ipp>
#include <gpusched/control/impl/mig_tables.ipp>
#include <gpusched/control/impl/observe.ipp>
#include <gpusched/control/impl/options.ipp>
#include <gpusched/control/impl/placement_score.ipp>
#include <gpusched/control/impl/relax.ipp>
#include <gpusched/control/impl/signals.ipp>
#include <gpusched/control/impl/state.ipp>
#include <gpusched/control/impl/step.ipp>
#include <gpusched/control/impl/tail_model.ipp>
#include <gpusched/control/impl/tenant_admission.ipp>
