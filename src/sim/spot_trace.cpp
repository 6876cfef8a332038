// SPDX-License-Identifier: Apache-2.0
// Generates HP and spot jobs over time, and reads the Alibaba spot-GPU lists of nodes and jobs.
#include "core/csv_reader.hpp"
#include "sim/generator_presets.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/sim/spot_trace.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>

namespace gpusched::sim {
namespace detail {

/// Running times of HP jobs in seconds at 0, 5, .., 100 %, uniform in between. The distribution is log-normal
/// with the published median of 5 hours and 90th percentile of 24 hours (ASI, section 3.2), cut at 2 minutes
/// and 72 hours. A table gives the same values on every platform, unlike the exponential function.
constexpr std::array<std::int64_t, 21> hp_runtime_s{120,   2404,  3750,  5063,  6426,  7884,   9474,
                                                    11232, 13202, 15433, 18000, 20994, 24542,  28846,
                                                    34200, 41097, 50423, 63999, 86400, 134781, 259200};

static std::int64_t draw_runtime(Rng& rng) {
    const auto segment = static_cast<std::size_t>(rng.below(hp_runtime_s.size() - 1));
    return rng.between(hp_runtime_s[segment], hp_runtime_s[segment + 1]);
}

enum class SpotJobKind : std::uint8_t { hp, lp, cpu_only };

struct SpotJobMaker {
    const NodeKind& kind;
    std::int64_t all_gpu_milli, all_cpu_milli;
    const SpotTraceOptions& options;

    [[nodiscard]] SpotJob draw(Rng& rng, SpotJobKind of) const {
        return of == SpotJobKind::cpu_only ? draw_cpu_only(rng) : draw_gpu_job(rng, of == SpotJobKind::hp);
    }

    [[nodiscard]] SpotJob draw_gpu_job(Rng& rng, bool hp) const {
        SpotJob job;
        const auto shape = draw_asi_shape(rng, kind, false);
        auto& pod = job.pod;
        pod.cpu_milli = shape.cpu_milli;
        pod.memory_mib = shape.memory_mib;
        pod.gpu_count = shape.gpu_count;
        pod.gpu_share_milli = shape.gpu_share_milli;
        pod.gpu_models = {std::string(kind.model)};
        pod.priority = hp ? 1000 : 200;
        pod.priority_class = hp ? PriorityClass::hp : PriorityClass::lp;
        if (rng.below(4) == 0) {
            const auto most = all_gpu_milli / 32 / (pod.gpu_count * pod.gpu_share_milli);
            job.pods = std::max<std::int64_t>(1, std::min(rng.between(2, 16), most));
        }
        job.work_s = draw_runtime(rng);
        if (!hp) make_spot(rng, job);
        return job;
    }

    [[nodiscard]] SpotJob draw_cpu_only(Rng& rng) const {
        SpotJob job;
        auto& pod = job.pod;
        pod.cpu_milli = std::min<std::int64_t>(std::int64_t{2000} << rng.below(5), kind.cpu_milli);
        pod.memory_mib = std::min<std::int64_t>(pod.cpu_milli / 1000 * 4096, kind.memory_mib);
        pod.priority = 200;
        pod.priority_class = PriorityClass::lp;
        if (rng.below(4) == 0) {
            const auto most = all_cpu_milli / 32 / pod.cpu_milli;
            job.pods = std::max<std::int64_t>(1, std::min(rng.between(2, 16), most));
        }
        job.work_s = draw_runtime(rng);
        make_spot(rng, job);
        return job;
    }

    void make_spot(Rng& rng, SpotJob& job) const {
        job.work_s = std::max<std::int64_t>(
            60, static_cast<std::int64_t>(options.lp_runtime * static_cast<double>(job.work_s)));
        const auto interval = 60 * rng.between(10, 120);
        job.pod.checkpoint_interval = rng.chance(options.no_checkpoint) ? 0 : interval;
    }

    /// Returns the mean GPU-milli-seconds of a job, or core-milli-seconds of a CPU-only one, from a separate
    /// sample.
    [[nodiscard]] double mean_size(Rng rng, SpotJobKind of) const {
        constexpr int samples = 20'000;
        double sum = 0;
        for (int i = 0; i < samples; ++i) {
            const auto job = draw(rng, of);
            const auto each =
                of == SpotJobKind::cpu_only ? job.pod.cpu_milli : job.pod.gpu_count * job.pod.gpu_share_milli;
            sum += static_cast<double>(job.pods * each) * static_cast<double>(job.work_s);
        }
        return sum / samples;
    }
};

/// Returns the relative arrival rate at this time of day, 1 on average.
static double arrivals_at(std::int64_t second, double swing) {
    const double hour = static_cast<double>(second % 86'400) / 3600;
    const double off = std::abs(hour - 15);
    return 1 + swing * (1 - std::min(off, 24 - off) / 6);
}

}  // namespace detail

GPUSCHED_EXPORT SpotTrace generate_spot_trace(const SpotTraceOptions& o) {
    const auto found = std::ranges::find(detail::asi_kinds, o.gpu_model, &detail::NodeKind::model);
    Problems problems;
    if (found == detail::asi_kinds.end())
        problems.add(
            bad_value("gpu_model", gpusched::quoted(o.gpu_model), "a GPU model of the preset \"asi\""));
    check_fields(problems, o);
    if (!(o.lp_runtime > 0 && o.lp_runtime <= 10))
        problems.add(bad_value("lp_runtime", number_text(o.lp_runtime), "above 0, at most 10"));
    problems.throw_if_any();

    const auto& kind = *found;
    SpotTrace trace;
    for (std::int64_t i = 0; i < o.nodes; ++i) {
        NodeSpec node;
        node.name = "node-" + std::to_string(i);
        node.gpu_model = std::string(kind.model);
        node.gpu_count = kind.gpus;
        node.cpu_milli = kind.cpu_milli;
        node.memory_mib = kind.memory_mib;
        node.network = {"cluster-0", "agg-" + std::to_string(i / 512), "asw-" + std::to_string(i / 32)};
        trace.nodes.push_back(std::move(node));
    }

    const auto all_milli = o.nodes * kind.gpus * 1000;
    const detail::SpotJobMaker maker{kind, all_milli, o.nodes * kind.cpu_milli, o};
    const Rng seed(o.seed);
    struct Arrivals {
        detail::SpotJobKind kind;
        const char* name;
        double load;
        std::int64_t all_milli;
        double swing;
        std::uint64_t stream;
    };
    using Kind = detail::SpotJobKind;
    for (const auto& of : {Arrivals{Kind::hp, "hp-", o.hp_load, all_milli, o.hp_swing, 10},
                           Arrivals{Kind::lp, "lp-", o.lp_load, all_milli, 0, 20},
                           Arrivals{Kind::cpu_only, "cpu-", o.cpu_load, maker.all_cpu_milli, 0, 30}}) {
        if (of.load <= 0) continue;
        // Steps are so short that two jobs in one step do not matter.
        const double per_second =
            of.load * static_cast<double>(of.all_milli) / maker.mean_size(Rng(1).split(of.stream), of.kind);
        const double most = per_second * (1 + of.swing);
        const auto steps = static_cast<std::int64_t>(std::ceil(std::max(1.0, most / 0.05)));
        Rng when = seed.split(of.stream + 1), what = seed.split(of.stream + 2);
        std::int64_t count = 0;
        const auto before = static_cast<std::ptrdiff_t>(trace.jobs.size());
        for (std::int64_t second = 0; second < o.hours * 3600; ++second) {
            const double rate = per_second * detail::arrivals_at(second, of.swing);
            for (std::int64_t step = 0; step < steps; ++step) {
                if (!when.chance(rate / static_cast<double>(steps))) continue;
                auto job = maker.draw(what, of.kind);
                job.pod.name = of.name + std::to_string(count++);
                job.arrival_s = second;
                trace.jobs.push_back(std::move(job));
            }
        }
        // Each kind is in order; within a second HP jobs come first, CPU-only jobs last.
        std::ranges::inplace_merge(trace.jobs, trace.jobs.begin() + before, {}, &SpotJob::arrival_s);
    }
    return trace;
}

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
    std::ranges::stable_sort(jobs, {}, &SpotJob::arrival_s);
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
