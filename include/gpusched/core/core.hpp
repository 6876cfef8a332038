// SPDX-License-Identifier: Apache-2.0
// Everything in core/.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/cpu_ranges.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/executor.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/core/lp.hpp>
#include <gpusched/core/name_table.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/registry.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/core/text.hpp>
