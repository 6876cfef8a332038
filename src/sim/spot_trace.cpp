// SPDX-License-Identifier: Apache-2.0
// Generates HP and spot jobs over time.
#include "sim/generator_presets.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/spot_trace.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
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
    const auto found = std::find_if(detail::asi_kinds.begin(), detail::asi_kinds.end(),
                                    [&](const detail::NodeKind& k) { return k.model == o.gpu_model; });
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
        std::inplace_merge(trace.jobs.begin(), trace.jobs.begin() + before, trace.jobs.end(),
                           [](const SpotJob& a, const SpotJob& b) { return a.arrival_s < b.arrival_s; });
    }
    return trace;
}

}  // namespace gpusched::sim
