// Power of d choices: the least loaded of a few random nodes, by loads that may be old.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace gpusched::allocation {

struct PowerOfDOptions {
    int choices = 2;                 ///< d, 1 .. 1000: how many feasible nodes are drawn, with replacement
    std::int64_t refresh_every = 1;  ///< loads are read again before every so-manieth task, >= 1
};

/// Sends a task to the least loaded of d random feasible nodes (Mitzenmacher, "The Power of Two Choices in Randomized
/// Load Balancing", 2001): nearly as even as looking at all nodes, at the price of looking at d.
///
/// A node's load is the larger of its allocated parts of CPU and GPUs, in thousandths. Loads are cached and read again
/// only every `refresh_every` tasks, as in schedulers that learn loads from heartbeats; feasibility is always current.
/// Of equal loads the first drawn wins. Whole GPUs are the lowest idle ones, fractions go to the tightest GPU.
///
/// Complexity: O(d) nodes per task while feasible nodes are common, O(nodes) when they are rare.
class PowerOfD {
  public:
    /// @throws InvalidInput for options out of range
    explicit PowerOfD(const PowerOfDOptions& options = {});

    std::optional<Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng);

  private:
    PowerOfDOptions options_;
    std::vector<std::int32_t> loads_;  // by NodeId, as of the last refresh
    std::vector<NodeId> feasible_;     // scratch
    std::int64_t until_refresh_ = 0;
};

}  // namespace gpusched::allocation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/allocation/impl/power_of_d.ipp>
#endif
