// SPDX-License-Identifier: Apache-2.0
// The registries of the library's policies, and place() with policies chosen by name.
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/power_of_d.hpp>
#include <gpusched/allocation/ranked_placement.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <memory>
#include <string>

namespace gpusched::allocation {

namespace detail {

static std::shared_ptr<const fragmentation::Fgd> share_fgd(const Inventory& inventory,
                                                           const fragmentation::Workload& workload) {
    return std::make_shared<const fragmentation::Fgd>(workload, inventory);
}
static std::shared_ptr<const fragmentation::ExpectedFill>
share_expected_fill(const Inventory& inventory, const fragmentation::Workload& workload) {
    return std::make_shared<const fragmentation::ExpectedFill>(workload, inventory);
}

static LargestNode published_scale(const Inventory& inventory) noexcept {
    const auto largest = largest_node(inventory);
    const LargestNode published;
    return {std::max(published.cpu_milli, largest.cpu_milli),
            std::max(published.gpu_milli, largest.gpu_milli)};
}

}  // namespace detail

GPUSCHED_EXPORT const PolicyRegistry<AnyRanker>& rankers() {
    using fragmentation::Workload;
    static const auto all = [] {
        PolicyRegistry<AnyRanker> r("ranker");
        r.add<Packing>("packing");
        r.add<Homogeneous>("homogeneous");
        r.add<EvictionHistory>("eviction_history");
        r.add<Interference>("interference");
        r.add<LeastAllocated>("least_allocated");
        r.add<MostAllocated>("most_allocated");
        r.add("best_fit", [](const Inventory& inventory) { return BestFit{largest_node(inventory)}; });
        r.add("dot_product", [](const Inventory& inventory) { return DotProduct{largest_node(inventory)}; });
        r.add<GpuPacking>("gpu_packing");
        r.add("gpu_clustering",
              [](const Inventory& inventory) { return GpuClustering{largest_node(inventory).gpu_milli}; });
        r.add<FirstFit>("first_fit");
        r.add<Random>("random");
        r.add<NetworkWish>("network_wish");
        r.add<HardwareWish>("hardware_wish");
        r.add("fgd", [](const Inventory& inventory, const Workload& workload) {
            return LeastFragmentation{detail::share_fgd(inventory, workload)};
        });
        r.add("expected_fill",
              [](const Inventory& inventory, const Workload& workload) {
                  return LeastFillLoss{detail::share_expected_fill(inventory, workload)};
              },
              {.coverage_percent = 100});
        return r;
    }();
    return all;
}

GPUSCHED_EXPORT const PolicyRegistry<AnyGpuPicker>& gpu_pickers() {
    using fragmentation::Workload;
    static const auto all = [] {
        PolicyRegistry<AnyGpuPicker> r("gpu_picker");
        r.add<ByWish>("by_wish");
        r.add<FewestCrossings>("fewest_crossings");
        r.add<LeastHarm>("least_harm");
        r.add<TightestGpu>("tightest_gpu");
        r.add<RandomGpus>("random");
        r.add<OfflineLimitGpus>("offline_limit");
        r.add("fgd", [](const Inventory& inventory, const Workload& workload) {
            return FgdGpus{detail::share_fgd(inventory, workload)};
        });
        r.add("expected_fill",
              [](const Inventory& inventory, const Workload& workload) {
                  return LeastFillLossGpus{detail::share_expected_fill(inventory, workload)};
              },
              {.coverage_percent = 100});
        return r;
    }();
    return all;
}

GPUSCHED_EXPORT const Registry<AnyFilter>& filters() {
    static const auto all = [] {
        Registry<AnyFilter> r("filter");
        r.add<AnyNode>("any");
        r.add<OccupiedNodes>("occupied");
        r.add<CoLocationLimit>("co_location_limit");
        r.add<OfflineLimit>("offline_limit");
        return r;
    }();
    return all;
}

GPUSCHED_EXPORT const PolicyRegistry<AnyPlacement>& placements() {
    using fragmentation::Workload;
    static const auto all = [] {
        PolicyRegistry<AnyPlacement> r("placement");
        r.add<RankedPlacement<Random, RandomGpus>>("random");
        r.add<RankedPlacement<FirstFit, TightestGpu>>("first_fit");
        r.add("best_fit", [](const Inventory& inventory) {
            return RankedPlacement(BestFit{detail::published_scale(inventory)}, TightestGpu{});
        });
        r.add<RankedPlacement<LeastAllocated, TightestGpu>>("least_allocated");
        r.add<RankedPlacement<MostAllocated, TightestGpu>>("most_allocated");
        r.add("dot_product", [](const Inventory& inventory) {
            return RankedPlacement(DotProduct{detail::published_scale(inventory)}, TightestGpu{});
        });
        r.add("fgd", [](const Inventory& inventory, const Workload& workload) {
            const auto metric = detail::share_fgd(inventory, workload);
            return RankedPlacement(LeastFragmentation{metric}, FgdGpus{metric});
        });
        r.add("asi", [](const Inventory&) {
            const Lexicographic ranker(Packing{}, Homogeneous{}, EvictionHistory{});
            return RankedPlacement(ranker, FewestCrossings{});
        });
        r.add<RankedPlacement<GpuPacking, TightestGpu>>("gpu_packing");
        r.add("gpu_clustering", [](const Inventory& inventory) {
            const GpuClustering ranker{detail::published_scale(inventory).gpu_milli};
            return RankedPlacement(ranker, TightestGpu{});
        });
        r.add<PowerOfD<>>("power_of_d");
        r.add("expected_fill",
              [](const Inventory& inventory, const Workload& workload) {
                  const auto measure = detail::share_expected_fill(inventory, workload);
                  return RankedPlacement(LeastFillLoss{measure}, LeastFillLossGpus{measure});
              },
              {.coverage_percent = 100});
        return r;
    }();
    return all;
}

GPUSCHED_EXPORT const Registries& registries() {
    static const Registries all;
    return all;
}

GPUSCHED_EXPORT std::optional<Destination> place(const Cluster& cluster, TaskId task,
                                                 const PlaceOptions& options, const Registries& known) {
    detail::require_task(cluster, task);
    if (cluster.is_placed(task))
        throw InvalidInput(bad_value("task", gpusched::quoted(cluster.name(task)),
                                     "a pending task; this one runs on node " +
                                         gpusched::quoted(cluster.name(cluster.node_of(task)))));
    if (options.rankers.empty()) throw InvalidInput(bad_value("rankers", "0 entries", "at least 1"));
    const auto make = [&](const auto& registry, const std::string& name) {
        fragmentation::Workload made;
        if (!options.workload && registry.expects_workload(name))
            made = fragmentation::typical_workload(cluster, registry.workload_options(name));
        return registry.make(name, cluster.inventory(), options.workload ? *options.workload : made);
    };
    RankerList ranker;
    for (const auto& name : options.rankers) ranker.rankers.push_back(make(known.rankers, name));
    FilterList filter;
    for (const auto& name : options.filters) filter.filters.push_back(known.filters.make(name));
    const auto picker = make(known.gpu_pickers, options.gpu_picker);
    Rng rng(options.seed);
    return place(cluster, task, ranker, picker, rng, filter);
}

}  // namespace gpusched::allocation
