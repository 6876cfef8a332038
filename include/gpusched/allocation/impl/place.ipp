#pragma once

#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/fragmentation/workload.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace gpusched::allocation {
namespace detail {

/// Rankers chosen at run time, one after the other.
struct RankerList {
    static constexpr std::size_t most = 8;
    using Scores = std::array<std::int64_t, most>;
    std::vector<AnyRanker> rankers;

    Scores operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        Scores scores{};
        for (std::size_t i = 0; i < rankers.size(); ++i) scores[i] = rankers[i](cluster, task, node, rng);
        return scores;
    }
};

}  // namespace detail

GPUSCHED_INLINE std::optional<Destination> place(const Cluster& cluster, TaskId task,
                                                 const PlaceOptions& options) {
    const auto& names = options.rankers;
    if (names.empty() || names.size() > detail::RankerList::most)
        throw InvalidInput("rankers has " + std::to_string(names.size()) + " entries; expected 1 to " +
                           std::to_string(detail::RankerList::most));
    fragmentation::Workload workload;
    const auto expects = [](const std::string& name) { return name == "fgd" || name == "expected_fill"; };
    if (std::any_of(names.begin(), names.end(), expects))
        workload = fragmentation::typical_workload(cluster.to_spec().tasks);
    detail::RankerList list;
    for (const auto& name : names) list.rankers.push_back(make_ranker(name, cluster.inventory(), workload));

    Rng rng(options.seed);
    if (options.gpu_picker == "fewest_crossings") return place(cluster, task, list, FewestCrossings{}, rng);
    if (options.gpu_picker == "least_harm") return place(cluster, task, list, LeastHarm{}, rng);
    if (options.gpu_picker == "tightest_gpu") return place(cluster, task, list, TightestGpu{}, rng);
    if (options.gpu_picker == "random") return place(cluster, task, list, RandomGpus{}, rng);
    throw InvalidInput("gpu_picker is " + gpusched::quoted(options.gpu_picker) +
                       "; expected fewest_crossings, least_harm, tightest_gpu or random");
}

}  // namespace gpusched::allocation
