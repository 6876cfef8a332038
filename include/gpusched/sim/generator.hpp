// Generated clusters: snapshots that look like production ones, from a seed alone.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::sim {

/// Where a generated task goes among the nodes that could take it.
enum class Layout : std::uint8_t {
    random,  ///< any of them
    spread,  ///< the one with the most idle GPUs of 30 sampled
    packed,  ///< the one with the fewest idle GPUs of 30 sampled
};
constexpr auto enum_names(Layout) {
    return name_table<Layout>({
        {Layout::random, "random"},
        {Layout::spread, "spread"},
        {Layout::packed, "packed"},
    });
}

/// What to generate. The defaults give the ASI-like cluster at its usual load.
struct GeneratorOptions {
    /// "asi" (14 kinds of nodes as in Alibaba's ASI, 155,410 GPUs), "openb" (nodes and pods like Alibaba's 2023
    /// open trace, 6,212 GPUs) or "flextopo-4090" (the saturated RTX 4090 cluster of the FlexTopo paper, Table 3).
    std::string preset = "asi";
    /// How many nodes, 1 .. 1,000,000, the kinds in proportion; absent = as many as the preset's original:
    /// 37,707 (asi), 1,213 (openb), 100 (flextopo-4090).
    std::optional<std::int64_t> nodes{};
    std::uint64_t seed = 0;          ///< everything random follows from it
    Layout layout = Layout::random;  ///< where a task goes among the nodes that could take it
    /// Multiplies the allocated share of every kind of node, which is capped at 97 % (100 % for flextopo-4090);
    /// 0 .. 10.
    double load = 1.0;
    /// Tasks ask for about twice the cores per GPU ("asi" only).
    bool cpu_tight = false;
    /// Probability that a task is locked, 0 .. 1; absent = 0.4, and 0 for flextopo-4090.
    std::optional<double> locked_fraction{};
    /// "flextopo-4090" only: GPUs within one socket where possible; false = uniformly chosen GPUs.
    bool aligned_gpus = true;
};
template <class F>
constexpr void visit_fields(std::type_identity<GeneratorOptions>, F&& field) {
    field("preset", &GeneratorOptions::preset);
    field("nodes", &GeneratorOptions::nodes, within(1, 1'000'000));
    field("seed", &GeneratorOptions::seed);
    field("layout", &GeneratorOptions::layout);
    field("load", &GeneratorOptions::load, within(0, 10));
    field("cpu_tight", &GeneratorOptions::cpu_tight);
    field("locked_fraction", &GeneratorOptions::locked_fraction, within(0, 1));
    field("aligned_gpus", &GeneratorOptions::aligned_gpus);
}

/// @throws InvalidInput with every field that is out of range
void validate(const GeneratorOptions& options);

/// Generates a loaded cluster with network, priorities, spot (LP) tasks and checkpoints.
///
/// Kinds of nodes, shares of allocated GPUs and task shapes follow the figures of the ASI paper; see docs/sim.md
/// for the tables. Every model (openb: the whole cluster) is filled to its target by a stream of jobs, then
/// churned: 1 to 4 random tasks leave and the stream refills, until three times the number of tasks has left. So
/// the free capacity is scattered as in a cluster that has run for a while. Access switches hold 32 to 64 nodes of
/// one kind, aggregation switches 16 access switches; `network` is {"cluster-0", "agg-i", "asw-j"}.
///
/// `Cluster::build` accepts the result. A target that cannot be reached, because 100 jobs in a row found no room,
/// is left where it is.
///
/// @param context stop token, clock and progress hook; a cancelled call returns what it has so far
/// @throws InvalidInput for options out of range
///
/// Complexity: about O(tasks) with small constants; the default takes about a second. The same options give the
/// same bits on every platform.
[[nodiscard]] ClusterSpec generate_cluster(const GeneratorOptions& options = {}, const Context& context = {});

}  // namespace GPUSCHED_NAMESPACE::sim

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/sim/impl/generator.ipp>
#endif
