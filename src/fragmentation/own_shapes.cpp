// SPDX-License-Identifier: Apache-2.0
// Derives request shapes from a cluster.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/own_shapes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace gpusched::fragmentation {

namespace detail {

static std::int64_t upper_median(std::vector<std::int64_t>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<Shape> own_shapes(const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    std::map<int, std::vector<std::int64_t>> asked;  // CPU of the tasks, by GPU count
    std::vector<std::int64_t> per_gpu;
    for (const auto task : cluster.tasks()) {
        const int gpus = inv.tasks.gpu_count[index(task)];
        if (gpus == 0 || inv.tasks.is(TaskTrait::daemon, task)) continue;
        asked[gpus].push_back(inv.tasks.cpu_milli[index(task)]);
        per_gpu.push_back(inv.tasks.cpu_milli[index(task)] / gpus);
    }
    for (const auto node : cluster.nodes())
        if (!inv.nodes.is_cordoned(node) && cluster.gpu_count(node) > 0)
            (void)asked[cluster.gpu_count(node)];  // no tasks if none requests this GPU count
    const auto usual = per_gpu.empty() ? 0 : detail::upper_median(per_gpu);
    std::vector<Shape> shapes;
    for (auto& [gpus, cpu] : asked)
        shapes.push_back({gpus, cpu.empty() ? usual * gpus : detail::upper_median(cpu)});
    if (shapes.empty()) shapes.push_back({1, 0});
    return shapes;
}

}  // namespace gpusched::fragmentation
