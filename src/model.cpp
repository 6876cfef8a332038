// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of model/: every file of include/gpusched/model/impl.
#include <gpusched/model/impl/apply.ipp>
#include <gpusched/model/impl/cluster.ipp>
#include <gpusched/model/impl/cluster_to_spec.ipp>
#include <gpusched/model/impl/describe_obstacle.ipp>
#include <gpusched/model/impl/domain_counts.ipp>
#include <gpusched/model/impl/event_log.ipp>
#include <gpusched/model/impl/feasibility.ipp>
#include <gpusched/model/impl/hardware.ipp>
#include <gpusched/model/impl/inventory.ipp>
#include <gpusched/model/impl/membership.ipp>
#include <gpusched/model/impl/membership_budgets.ipp>
#include <gpusched/model/impl/plan.ipp>
