// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of sim/: every file of include/gpusched/sim/impl.
#include <gpusched/sim/impl/generator.ipp>
#include <gpusched/sim/impl/harvest.ipp>
#include <gpusched/sim/impl/host_events.ipp>
#include <gpusched/sim/impl/host_scenario.ipp>
#include <gpusched/sim/impl/host_simulation.ipp>
#include <gpusched/sim/impl/llm_trace.ipp>
#include <gpusched/sim/impl/replay.ipp>
#include <gpusched/sim/impl/resample.ipp>
#include <gpusched/sim/impl/simulate_host.ipp>
#include <gpusched/sim/impl/spot_lists.ipp>
#include <gpusched/sim/impl/spot_replay.ipp>
#include <gpusched/sim/impl/spot_trace.ipp>
