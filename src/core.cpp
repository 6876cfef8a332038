// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of core/: every file of include/gpusched/core/impl.
#include <gpusched/core/impl/budget.ipp>
#include <gpusched/core/impl/cpu_ranges.ipp>
#include <gpusched/core/impl/errors.ipp>
#include <gpusched/core/impl/executor.ipp>
#include <gpusched/core/impl/file.ipp>
#include <gpusched/core/impl/lp.ipp>
#include <gpusched/core/impl/name_table.ipp>
#include <gpusched/core/impl/natural_order.ipp>
#include <gpusched/core/impl/text.ipp>
