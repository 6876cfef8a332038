// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of milp/: every file of include/gpusched/milp/impl.
#include <gpusched/milp/impl/cbc.ipp>
#include <gpusched/milp/impl/clp.ipp>
#include <gpusched/milp/impl/consolidation.ipp>
#include <gpusched/milp/impl/evaluate.ipp>
#include <gpusched/milp/impl/highs.ipp>
#include <gpusched/milp/impl/joint_allocation.ipp>
#include <gpusched/milp/impl/model.ipp>
#include <gpusched/milp/impl/priority_packing.ipp>
#include <gpusched/milp/impl/solver.ipp>
#include <gpusched/milp/impl/spot_schedule.ipp>
#include <gpusched/milp/impl/write.ipp>
