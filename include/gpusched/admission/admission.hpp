// SPDX-License-Identifier: Apache-2.0
// Everything in admission/.
#pragma once

#include <gpusched/admission/admit.hpp>
#include <gpusched/admission/options.hpp>
#include <gpusched/admission/quotas.hpp>
#include <gpusched/admission/why.hpp>
