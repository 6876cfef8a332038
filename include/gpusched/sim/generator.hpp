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

/// Shares of nodes and jobs with constraints beyond CPU, memory, GPUs and anti-affinity, each 0 .. 1. Absent = 0, and for preset
/// "constrained" the value in docs/sim.md. All constraints hold in the generated cluster: a job is left without one that its
/// places break.
struct ConstraintShares {
    std::optional<double> mig_fraction{};  ///< of the nodes of 8 GPUs: two cards are split into MIG instances
    std::optional<double>
        shared_fraction{};  ///< of the nodes of 2 or 4 GPUs: one card is shared by 4 replicas
    std::optional<double> large_fraction{};  ///< of the nodes of 8 GPUs: they have four times of everything
    /// Of the jobs with whole GPUs on nodes of 8 or more: they ask for RDMA adapters, of which a node has half as many as GPUs.
    std::optional<double> rdma_fraction{};
    std::optional<double>
        named_node_fraction{};                ///< of the jobs: on certain nodes only, or not on certain ones
    std::optional<double> spread_fraction{};  ///< of the jobs of 3 or more: spread over zones, racks or nodes
    std::optional<double> avoid_fraction{};   ///< of the jobs of several: replicas avoid each other
    std::optional<double> near_fraction{};    ///< of the jobs: near members of another job
    std::optional<double> budget_fraction{};  ///< of the jobs of several: with a disruption budget
    std::optional<double> restart_fraction{};  ///< of the jobs: they restart to move
    std::optional<double> suspend_fraction{};  ///< of the jobs: they are suspended to move
    std::optional<double> fixed_fraction{};    ///< of the jobs: they never move, and may be evicted
    std::optional<double> gang_fraction{};  ///< of the jobs of several: most members must run, some by role
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

/// What to generate. The defaults give the ASI-like cluster at its usual load.
struct GeneratorOptions {
    /// "asi" (14 kinds of nodes, 155,410 GPUs as in Alibaba's ASI), "openb" (nodes and pods like Alibaba's 2023
    /// open trace, 6,212 GPUs), "flextopo-4090" (the saturated RTX 4090 cluster of the FlexTopo paper, Table 3) or
    /// "constrained" (as "asi", with a share of every kind of constraint).
    std::string preset = "asi";
    /// How many nodes, 1 .. 1,000,000, the kinds in proportion; absent = as many as the preset's original:
    /// 37,707 (asi, constrained), 1,213 (openb), 100 (flextopo-4090).
    std::optional<std::int64_t> nodes{};
    std::uint64_t seed = 0;          ///< everything random follows from it
    Layout layout = Layout::random;  ///< where a task goes among the nodes that could take it
    /// Multiplies the allocated share of every kind of node, which is capped at 97 % (100 % for flextopo-4090);
    /// 0 .. 10.
    double load = 1.0;
    /// Tasks ask for about twice the cores per GPU ("asi" and "constrained" only).
    bool cpu_tight = false;
    /// Probability that a task is locked, 0 .. 1; absent = 0.4, and 0 for flextopo-4090.
    std::optional<double> locked_fraction{};
    /// "flextopo-4090" only: GPUs within one socket where possible; false = uniformly chosen GPUs.
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
/// The numbers of nodes and GPUs are those of the ASI paper; kinds of nodes, shares of allocated GPUs and task shapes are
/// assumptions after its figures. docs/sim.md has the tables. Every model (openb: the whole cluster) is filled to its target by a stream of jobs, then
/// churned: 1 to 4 random tasks leave and the stream refills, until three times the number of tasks has left. So
/// the free capacity is scattered as in a cluster that has run for a while. An access switch holds 32 to 64 nodes of
/// one kind, the last one of a kind possibly fewer; an aggregation switch joins 16 access switches. `network` is
/// {"cluster-0", "agg-i", "asw-j"}.
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

}  // namespace gpusched::sim
