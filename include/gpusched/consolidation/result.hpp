// What consolidation returns: the plan, what it gains and costs, and how the search went.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/consolidation/plan_statistics.hpp>
#include <gpusched/core/stop_reason.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

/// What one round found.
struct RoundStatistics {
    std::int64_t vacated_nodes = 0;
    std::int64_t vacated_gpus = 0;
    std::int64_t moves = 0;  ///< moves of its chains, before chains of several rounds are joined
    bool operator==(const RoundStatistics&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RoundStatistics>, F&& field) {
    field("vacated_nodes", &RoundStatistics::vacated_nodes);
    field("vacated_gpus", &RoundStatistics::vacated_gpus);
    field("moves", &RoundStatistics::moves);
}

/// Numbers about a plan and about the search for it. The search counters do not depend on the machine.
struct Statistics : PlanStatistics {
    std::int64_t hops = 0;            ///< moves to a temporary place
    std::int64_t dropped_chains = 0;  ///< nodes that the search vacated, but whose moves could not be ordered
    std::vector<RoundStatistics> rounds;

    std::int64_t nodes_tried = 0;           ///< attempts to vacate a node
    std::int64_t eject_calls = 0;           ///< requests for a place, at all depths
    std::int64_t destinations_scanned = 0;  ///< destinations looked at
    std::int64_t requests_dominated = 0;    ///< requests answered by an earlier, easier one that failed
    bool operator==(const Statistics&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Statistics>, F&& field) {
    visit_fields(std::type_identity<PlanStatistics>{}, field);
    field("hops", &Statistics::hops);
    field("dropped_chains", &Statistics::dropped_chains);
    field("nodes_tried", &Statistics::nodes_tried);
    field("eject_calls", &Statistics::eject_calls);
    field("destinations_scanned", &Statistics::destinations_scanned);
    field("requests_dominated", &Statistics::requests_dominated);
}

/// A plan (with its bound inside), what it is worth, and why the search ended.
struct Result {
    Plan plan;
    Statistics stats;
    StopReason stop_reason = StopReason::completed;
};

/// The statistics as `gpusched.plan` files have them (`PlanSpec::stats`): every number under its name here, the number of
/// `rounds`, and what each of them found as `round_1_vacated_nodes` and so on.
[[nodiscard]] std::map<std::string, double> to_stats(const Statistics& statistics);

/// The rounds that `stats` of a plan tells of; none for plans of other origin.
[[nodiscard]] std::vector<RoundStatistics> rounds_of(const PlanSpec& plan);

}  // namespace GPUSCHED_NAMESPACE::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/result.ipp>
#endif
