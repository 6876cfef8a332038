// SPDX-License-Identifier: Apache-2.0
// Validates workloads and derives them from task lists.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/fragmentation/workload.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace gpusched::fragmentation {
namespace detail {

constexpr std::int64_t largest_weight = 100'000'000;  // keeps sums over a million nodes in 64 bits

// Counts equal shapes. The key order is the order of shapes with equal frequency.
class ShapeCounter {
  public:
    explicit ShapeCounter(const WorkloadOptions& options) : options_(options) { require_fields(options); }

    void add(const TaskSpec& task) {
        add({task.cpu_milli, task.gpu_count, task.gpu_share_milli, task.gpu_models}, 1,
            std::clamp<std::int64_t>(task.memory_mib, 0, largest_quantity));  // not validated yet
    }

    void add(const Cluster& cluster) {
        // Counts by numeric keys first, so that names are copied once per shape instead of once per task.
        const auto& inv = cluster.inventory();
        const auto& t = inv.tasks;
        std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint32_t>, Tally> tallies;
        for (const auto task : cluster.tasks()) {
            const auto i = index(task);
            auto& tally = tallies[{t.cpu_milli[i], t.gpu_count[i], t.gpu_share_milli[i], t.requirement[i]}];
            ++tally.count;
            tally.memory_mib += t.memory_mib[i];
        }
        for (const auto& [key, tally] : tallies) {
            const auto& [cpu, gpus, share, requirement] = key;
            std::vector<std::string> models;
            for (const auto model : inv.requirements[requirement].gpu_models)
                models.push_back(inv.gpu_models[index(model)]);
            add({cpu, gpus, share, std::move(models)}, tally.count, tally.memory_mib);
        }
    }

    Workload most_frequent() && {
        std::vector<std::pair<const Key*, Tally>> order;
        for (const auto& [key, tally] : counts_) order.emplace_back(&key, tally);
        std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
            return a.second.count != b.second.count ? a.second.count > b.second.count : *a.first < *b.first;
        });
        Workload workload;
        std::int64_t covered = 0;
        for (const auto& [key, tally] : order) {
            if (covered * 100 >= total_ * options_.coverage_percent) break;
            const auto& [cpu, gpus, share, models] = *key;
            workload.shapes.push_back(
                {cpu, gpus, share, models, tally.count, tally.memory_mib / tally.count});
            covered += tally.count;
        }
        return workload;
    }

  private:
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::vector<std::string>>;
    struct Tally {
        std::int64_t count = 0;
        std::int64_t memory_mib = 0;  // sum
    };
    void add(Key key, std::int64_t count, std::int64_t memory_mib) {
        if (std::get<1>(key) == 0 && !options_.include_cpu_only) return;
        auto& models = std::get<3>(key);
        std::sort(models.begin(), models.end());
        models.erase(std::unique(models.begin(), models.end()), models.end());
        auto& tally = counts_[std::move(key)];
        tally.count += count;
        tally.memory_mib += memory_mib;
        total_ += count;
    }
    WorkloadOptions options_;
    std::map<Key, Tally> counts_;
    std::int64_t total_ = 0;
};

}  // namespace detail

GPUSCHED_EXPORT void validate(const Workload& workload) {
    Problems problems;
    if (workload.shapes.empty()) problems.add("workload has no shapes");
    std::int64_t total = 0;
    for (std::size_t i = 0; i < workload.shapes.size(); ++i) {
        const auto& shape = workload.shapes[i];
        const auto check = [&](const char* field, std::int64_t value, std::int64_t low, std::int64_t high) {
            check_range(problems, field, value, low, high, "workload shape " + std::to_string(i));
        };
        check("cpu_milli", shape.cpu_milli, 0, largest_quantity);
        check("gpu_count", shape.gpu_count, 0, max_gpus_per_node);
        check("gpu_share_milli", shape.gpu_share_milli, 1, whole_gpu_milli);
        check("memory_mib", shape.memory_mib, 0, largest_quantity);
        check("weight", shape.weight, 1, detail::largest_weight);
        if (shape.gpu_share_milli < whole_gpu_milli && shape.gpu_count != 1)
            problems.add("workload shape " + std::to_string(i) + ": gpu_share_milli is " +
                         std::to_string(shape.gpu_share_milli) + " with gpu_count " +
                         std::to_string(shape.gpu_count) + "; a share goes with gpu_count 1");
        total += std::clamp<std::int64_t>(shape.weight, 0, detail::largest_weight);
    }
    if (total > detail::largest_weight)
        problems.add(bad_value("sum of workload weights", number_text(total),
                               "at most " + number_text(detail::largest_weight)));
    problems.throw_if_any();
}

GPUSCHED_EXPORT Workload typical_workload(std::span<const TaskSpec> tasks, const WorkloadOptions& options) {
    detail::ShapeCounter counter(options);
    for (const auto& task : tasks) counter.add(task);
    return std::move(counter).most_frequent();
}

GPUSCHED_EXPORT Workload typical_workload(const Trace& trace, const WorkloadOptions& options) {
    detail::ShapeCounter counter(options);
    for (const auto& entry : trace.tasks) counter.add(entry.task);
    return std::move(counter).most_frequent();
}

GPUSCHED_EXPORT Workload typical_workload(const Cluster& cluster, const WorkloadOptions& options) {
    detail::ShapeCounter counter(options);
    counter.add(cluster);
    return std::move(counter).most_frequent();
}

}  // namespace gpusched::fragmentation
