// SPDX-License-Identifier: Apache-2.0
// Reads the Alibaba spot-GPU lists of nodes and jobs.
#include "core/csv_reader.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/sim/spot_lists.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace gpusched::sim {

namespace spot_detail {

constexpr std::int64_t most_cores = 1'000'000;
constexpr std::int64_t most_workers = 10'000;

template <std::size_t Columns>
void take_name(csv::Reader<Columns>& table, std::unordered_set<std::string>& seen, std::string& name) {
    name = table.cell(0);
    if (name.empty())
        table.report(0, "expected a name, found nothing");
    else if (!seen.insert(name).second)
        table.report(0, gpusched::quoted(printable(name)) + " occurs twice");
}

/// Reads a quantity in thousandths, at most `most` wholes; a positive quantity becomes at least 1.
template <std::size_t Columns>
std::int64_t milli(csv::Reader<Columns>& table, std::size_t column, std::int64_t most) {
    const auto number = table.quantity(column);
    if (!number) return 0;
    if (*number > static_cast<double>(most)) {
        table.expected(column, "at most " + std::to_string(most));
        return 0;
    }
    return std::max<std::int64_t>(*number > 0 ? 1 : 0, std::llround(1000 * *number));
}

static std::vector<NodeSpec> nodes_of(std::string_view text, const std::string& source, Problems& problems) {
    enum { name, model, gpus, cores };
    csv::Reader<4> table(text, source, {"node_name", "gpu_model", "gpu_capacity_num", "cpu_num"}, 4,
                         problems);
    std::vector<NodeSpec> nodes;
    std::unordered_set<std::string> seen;
    while (table.next()) {
        auto& node = nodes.emplace_back();
        take_name(table, seen, node.name);
        node.gpu_model = table.cell(model);
        node.gpu_count = table.integer(gpus, 0, max_gpus_per_node);
        node.cpu_milli = milli(table, cores, most_cores);
    }
    return nodes;
}

/// Reads whole GPUs, or a fraction of one.
template <std::size_t Columns>
void take_gpus(csv::Reader<Columns>& table, std::size_t column, TaskSpec& pod) {
    const auto amount = milli(table, column, max_gpus_per_node);
    pod.gpu_count = (amount + whole_gpu_milli - 1) / whole_gpu_milli;
    if (amount % whole_gpu_milli == 0) return;
    if (pod.gpu_count == 1)
        pod.gpu_share_milli = amount;
    else
        table.expected(column, "a whole number, or a part of one GPU");
}

static std::vector<SpotJob> jobs_of(std::string_view text, const std::string& source,
                                    const SpotListOptions& options, Problems& problems) {
    enum { name, model, cores, gpus, workers, submitted, duration, type, organization };
    csv::Reader<9> table(text, source,
                         {"job_name", "gpu_model", "cpu_request", "gpu_request", "worker_num", "submit_time",
                          "duration", "job_type", "organization"},
                         8, problems);
    std::vector<SpotJob> jobs;
    std::unordered_set<std::string> seen;
    while (table.next()) {
        auto& job = jobs.emplace_back();
        take_name(table, seen, job.pod.name);
        if (const auto wanted = table.cell(model); !wanted.empty())
            job.pod.gpu_models = {std::string(wanted)};
        job.pod.cpu_milli = milli(table, cores, most_cores);
        take_gpus(table, gpus, job.pod);
        job.pods = table.integer(workers, 1, most_workers);
        job.arrival_s = table.integer(submitted, 0, longest_replay_s);
        job.work_s = std::max<std::int64_t>(1, table.integer(duration, 0, longest_replay_s));
        const auto kind = table.cell(type);
        if (kind != "HP" && kind != "Spot") table.expected(type, "HP or Spot");
        const bool hp = kind == "HP";
        job.pod.priority = hp ? 1000 : 200;
        job.pod.priority_class = hp ? PriorityClass::hp : PriorityClass::lp;
        if (!hp) job.pod.checkpoint_interval = options.checkpoint_interval;
    }
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const SpotJob& a, const SpotJob& b) { return a.arrival_s < b.arrival_s; });
    return jobs;
}

static SpotTrace trace_of(std::string_view nodes, const std::string& node_source, std::string_view jobs,
                          const std::string& job_source, const SpotListOptions& options) {
    Problems problems;
    check_fields(problems, options);
    SpotTrace trace;
    trace.nodes = nodes_of(nodes, node_source, problems);
    trace.jobs = jobs_of(jobs, job_source, options, problems);
    problems.throw_if_any();
    return trace;
}

}  // namespace spot_detail

GPUSCHED_EXPORT SpotTrace read_spot_trace(const std::string& node_csv, const std::string& job_csv,
                                          const SpotListOptions& options) {
    const auto nodes = read_file(node_csv);
    return spot_detail::trace_of(nodes, node_csv, read_file(job_csv), job_csv, options);
}

GPUSCHED_EXPORT SpotTrace spot_trace_from_csv(std::string_view nodes, std::string_view jobs,
                                              const SpotListOptions& options) {
    return spot_detail::trace_of(nodes, "<nodes>", jobs, "<jobs>", options);
}

}  // namespace gpusched::sim
