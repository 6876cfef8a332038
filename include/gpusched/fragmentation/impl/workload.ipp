#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/fragmentation/workload.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace gpusched::fragmentation {
namespace detail {

// Counts equal shapes; the key order is the order among shapes of equal frequency.
class ShapeCounter {
  public:
    explicit ShapeCounter(const WorkloadOptions& options) : options_(options) {
        if (options.coverage_percent < 1 || options.coverage_percent > 100)
            throw InvalidInput("coverage_percent is " + std::to_string(options.coverage_percent) +
                               "; expected 1 to 100");
    }

    void add(const TaskSpec& task) {
        if (task.gpu_count == 0 && !options_.include_cpu_only) return;
        auto models = task.gpu_models;
        std::sort(models.begin(), models.end());
        models.erase(std::unique(models.begin(), models.end()), models.end());
        ++counts_[{task.cpu_milli, task.gpu_count, task.gpu_share_milli, std::move(models)}];
        ++total_;
    }

    Workload most_frequent() && {
        std::vector<std::pair<const Key*, std::int64_t>> order;
        for (const auto& [key, count] : counts_) order.emplace_back(&key, count);
        std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
            return a.second != b.second ? a.second > b.second : *a.first < *b.first;
        });
        Workload workload;
        std::int64_t covered = 0;
        for (const auto& [key, count] : order) {
            if (covered * 100 >= total_ * options_.coverage_percent) break;
            const auto& [cpu, gpus, share, models] = *key;
            workload.shapes.push_back({cpu, gpus, share, models, count});
            covered += count;
        }
        return workload;
    }

  private:
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::vector<std::string>>;
    WorkloadOptions options_;
    std::map<Key, std::int64_t> counts_;
    std::int64_t total_ = 0;
};

}  // namespace detail

GPUSCHED_INLINE Workload typical_workload(std::span<const TaskSpec> tasks, const WorkloadOptions& options) {
    detail::ShapeCounter counter(options);
    for (const auto& task : tasks) counter.add(task);
    return std::move(counter).most_frequent();
}

GPUSCHED_INLINE Workload typical_workload(const Trace& trace, const WorkloadOptions& options) {
    detail::ShapeCounter counter(options);
    for (const auto& entry : trace.tasks) counter.add(entry.task);
    return std::move(counter).most_frequent();
}

}  // namespace gpusched::fragmentation
