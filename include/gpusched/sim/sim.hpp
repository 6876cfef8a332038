// SPDX-License-Identifier: Apache-2.0
// Includes all headers of sim/.
#pragma once

#include <gpusched/sim/generator.hpp>
#include <gpusched/sim/harvest.hpp>
#include <gpusched/sim/host_scenario.hpp>
#include <gpusched/sim/replay.hpp>
#include <gpusched/sim/simulate_host.hpp>
#include <gpusched/sim/spot_replay.hpp>
#include <gpusched/sim/spot_trace.hpp>
