// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of preemption/: every file of include/gpusched/preemption/impl.
#include <gpusched/preemption/impl/explain.ipp>
#include <gpusched/preemption/impl/gang_table.ipp>
#include <gpusched/preemption/impl/index.ipp>
#include <gpusched/preemption/impl/named.ipp>
#include <gpusched/preemption/impl/node_answer.ipp>
#include <gpusched/preemption/impl/node_bind.ipp>
#include <gpusched/preemption/impl/node_problem.ipp>
#include <gpusched/preemption/impl/node_read.ipp>
#include <gpusched/preemption/impl/online.ipp>
#include <gpusched/preemption/impl/options.ipp>
#include <gpusched/preemption/impl/placement_check.ipp>
#include <gpusched/preemption/impl/preempt.ipp>
#include <gpusched/preemption/impl/preempt_gang.ipp>
#include <gpusched/preemption/impl/replace_victims.ipp>
#include <gpusched/preemption/impl/request.ipp>
#include <gpusched/preemption/impl/search.ipp>
#include <gpusched/preemption/impl/search_linear.ipp>
#include <gpusched/preemption/impl/standby.ipp>
