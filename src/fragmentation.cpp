// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of fragmentation/: every file of include/gpusched/fragmentation/impl.
#include <gpusched/fragmentation/impl/allocation_ratio.ipp>
#include <gpusched/fragmentation/impl/entropy.ipp>
#include <gpusched/fragmentation/impl/expected_fill.ipp>
#include <gpusched/fragmentation/impl/fgd.ipp>
#include <gpusched/fragmentation/impl/fragment_rate.ipp>
#include <gpusched/fragmentation/impl/largest_job.ipp>
#include <gpusched/fragmentation/impl/occupancy.ipp>
#include <gpusched/fragmentation/impl/own_shapes.ipp>
#include <gpusched/fragmentation/impl/report.ipp>
#include <gpusched/fragmentation/impl/server_ratios.ipp>
#include <gpusched/fragmentation/impl/slot_sums.ipp>
#include <gpusched/fragmentation/impl/switch_slots.ipp>
#include <gpusched/fragmentation/impl/unusable_nodes.ipp>
#include <gpusched/fragmentation/impl/workload.ipp>
