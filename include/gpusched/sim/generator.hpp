// SPDX-License-Identifier: Apache-2.0
// Generated clusters: snapshots that look like production ones, from a seed alone.
#pragma once

#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace gpusched::sim {

/// The rule that picks a node for a generated task from the nodes with room for it.
enum class Layout : std::uint8_t {
    random,  ///< any node, uniformly
    spread,  ///< the node with the most idle GPUs of 30 sampled ones
    packed,  ///< the node with the fewest idle GPUs of 30 sampled ones
};

/// Shares of nodes and jobs with constraints beyond CPU, memory, GPUs and anti-affinity, each 0 to 1. An
/// absent share is 0, or the value in docs/sim.md for preset "constrained". All constraints hold in the
/// generated cluster: a job does not get a constraint that its placements violate.
struct ConstraintShares {
    std::optional<double> mig_fraction{};  ///< nodes with 8 GPUs: two cards are split into MIG instances
    /// Nodes with 2 or 4 GPUs: one card is shared by 4 replicas.
    std::optional<double> shared_fraction{};
    std::optional<double> large_fraction{};  ///< nodes with 8 GPUs: four times all resources
    /// Jobs with whole GPUs on nodes with 8 or more: they request RDMA adapters. A node has half as many
    /// adapters as GPUs.
    std::optional<double> rdma_fraction{};
    /// Jobs that must run on certain nodes, or must avoid certain nodes.
    std::optional<double> named_node_fraction{};
    std::optional<double> spread_fraction{};   ///< jobs of 3 or more tasks: spread over zones, racks or nodes
    std::optional<double> avoid_fraction{};    ///< jobs of several tasks: replicas avoid each other
    std::optional<double> near_fraction{};     ///< jobs that run near members of another job
    std::optional<double> budget_fraction{};   ///< jobs of several tasks: with a disruption budget
    std::optional<double> restart_fraction{};  ///< jobs that move by a restart
    std::optional<double> suspend_fraction{};  ///< jobs that move by suspension
    std::optional<double> fixed_fraction{};    ///< jobs that never move, but may be evicted
    std::optional<double> gang_fraction{};     ///< jobs of several tasks: most members must run, some by role
};
template <class F>
constexpr void visit_fields(std::type_identity<ConstraintShares>, F&& field) {
    field("mig_fraction", &ConstraintShares::mig_fraction, within(0, 1));
    field("shared_fraction", &ConstraintShares::shared_fraction, within(0, 1));
    field("large_fraction", &ConstraintShares::large_fraction, within(0, 1));
    field("rdma_fraction", &ConstraintShares::rdma_fraction, within(0, 1));
    field("named_node_fraction", &ConstraintShares::named_node_fraction, within(0, 1));
    field("spread_fraction", &ConstraintShares::spread_fraction, within(0, 1));
    field("avoid_fraction", &ConstraintShares::avoid_fraction, within(0, 1));
    field("near_fraction", &ConstraintShares::near_fraction, within(0, 1));
    field("budget_fraction", &ConstraintShares::budget_fraction, within(0, 1));
    field("restart_fraction", &ConstraintShares::restart_fraction, within(0, 1));
    field("suspend_fraction", &ConstraintShares::suspend_fraction, within(0, 1));
    field("fixed_fraction", &ConstraintShares::fixed_fraction, within(0, 1));
    field("gang_fraction", &ConstraintShares::gang_fraction, within(0, 1));
}

/// Options of `generate_cluster`. The defaults give the ASI-like cluster at its usual load.
struct GeneratorOptions {
    /// The kind of cluster:
    /// - "asi": 14 kinds of nodes, 155,410 GPUs as in Alibaba's ASI;
    /// - "openb": nodes and pods like Alibaba's open trace of 2023, 6,212 GPUs;
    /// - "flextopo-4090": the saturated RTX 4090 cluster of the FlexTopo paper, Table 3;
    /// - "constrained": as "asi", with a share of every kind of constraint.
    std::string preset = "asi";
    /// Number of nodes, 1 to 1,000,000, in the preset's proportions of kinds. Absent: as many as the preset's
    /// original, 37,707 (asi, constrained), 1,213 (openb) or 100 (flextopo-4090).
    std::optional<std::int64_t> nodes{};
    std::uint64_t seed = 0;          ///< determines all random choices
    Layout layout = Layout::random;  ///< rule that picks a node for a task
    /// Multiplies the allocated share of every kind of node, 0 to 10. The result is capped at 97 % (100 % for
    /// flextopo-4090).
    double load = 1.0;
    /// Makes tasks request about twice the cores per GPU ("asi" and "constrained" only).
    bool cpu_tight = false;
    /// Probability that a task is locked, 0 to 1. Absent: 0.4, or 0 for flextopo-4090.
    std::optional<double> locked_fraction{};
    /// Picks GPUs within one socket if possible; false = uniformly chosen GPUs ("flextopo-4090" only).
    bool aligned_gpus = true;
    ConstraintShares constraints{};  ///< not for "flextopo-4090"
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
    field("constraints", &GeneratorOptions::constraints, Inlined{});
}

/// @throws InvalidInput with every field that is out of range
void validate(const GeneratorOptions& options);

/// Generates a loaded cluster with network, priorities, spot (LP) tasks and checkpoints.
///
/// The numbers of nodes and GPUs are those of the ASI paper. Kinds of nodes, shares of allocated GPUs and
/// task shapes are assumptions based on its figures; docs/sim-clusters.md has the tables.
///
/// A stream of jobs fills every GPU model (openb: the whole cluster) to its target. Then 1 to 4 random tasks leave
/// and the stream refills, until three times the number of tasks has left, which scatters the free capacity. If 100
/// jobs in a row find no room, filling stops short of the target.
///
/// `network` is {"cluster-0", "agg-i", "asw-j"}. `Cluster::build` accepts the result.
/// @param context stop token, clock and progress hook; a cancelled call returns the cluster generated so far
/// @throws InvalidInput for options out of range
/// @note the same options give the same bits on every platform
/// About O(tasks) with small constants; the default takes about a second.
[[nodiscard]] ClusterSpec generate_cluster(const GeneratorOptions& options = {}, const Context& context = {});

}  // namespace gpusched::sim
