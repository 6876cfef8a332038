// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of allocation/: every file of include/gpusched/allocation/impl.
#include <gpusched/allocation/impl/allocate.ipp>
#include <gpusched/allocation/impl/allocate_many.ipp>
#include <gpusched/allocation/impl/exact_packing.ipp>
#include <gpusched/allocation/impl/gang.ipp>
#include <gpusched/allocation/impl/gang_binding.ipp>
#include <gpusched/allocation/impl/gang_groups.ipp>
#include <gpusched/allocation/impl/gang_spread.ipp>
#include <gpusched/allocation/impl/gpu_pickers.ipp>
#include <gpusched/allocation/impl/job_request.ipp>
#include <gpusched/allocation/impl/named.ipp>
#include <gpusched/allocation/impl/place.ipp>
#include <gpusched/allocation/impl/place_by_name.ipp>
#include <gpusched/allocation/impl/power_of_d.ipp>
#include <gpusched/allocation/impl/slowdown.ipp>
#include <gpusched/allocation/impl/switch_counts.ipp>
#include <gpusched/allocation/impl/wishes.ipp>
