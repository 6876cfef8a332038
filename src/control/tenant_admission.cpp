// SPDX-License-Identifier: Apache-2.0
// Finds places for new tenants, and queues the others.
#include <gpusched/config.hpp>
#include <gpusched/control/tenant_admission.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::control {

namespace admission_detail {

static void validate(const Newcomer& n, const Host& host) {
    Problems problems;
    check_fields(problems, n);
    if (n.tau_ms > 0 && n.alone_ms == 0)
        problems.add(bad_value("alone_ms", number_text(n.alone_ms), "above 0 if tau_ms is set"));
    std::vector<std::string_view> known;
    for (const auto& gpu : host.gpus)
        for (const auto& profile : mig_device(gpu.device).profiles)
            if (std::ranges::find(known, profile.key) == known.end()) known.push_back(profile.key);
    if (std::ranges::find(known, n.profile) == known.end())
        problems.add(bad_value("profile", gpusched::quoted(n.profile), "a profile of one of the GPUs") +
                     did_you_mean(n.profile, known));
    problems.throw_if_any();
}

/// Returns the highest predicted p99 / target with the newcomer on this GPU; NaN if a value is unknown.
static double worst_ratio(const ControllerState& state, const Observation& seen, const ControllerOptions& o,
                          const Newcomer& n, std::size_t gpu) {
    const auto& h = o.host;
    const auto root = static_cast<std::size_t>(h.gpus[gpu].root);
    const double more = n.pcie_bytes_per_s / h.roots[root].capacity_bytes_per_s,
                 more_io = n.io_bytes_per_s / full_io_bytes_per_s;
    double worst = 0;
    for (std::size_t i = 0; i < h.tenants.size(); ++i) {
        if (!h.tenants[i].is_protected) continue;
        const auto& t = state.tenants[i];
        if (!t.seen.model.known() || t.seen.fresh.missing > 0) return unknown_signal;
        const auto& own = h.gpus[static_cast<std::size_t>(t.place.current.gpu)];
        auto there = t.seen.model.seen();
        if (own.root == h.gpus[gpu].root) there.pcie += more;
        if (own.numa == h.gpus[gpu].numa && t.place.current.cpus == CpuSet{}) there.io += more_io;
        worst = std::max(worst, t.seen.model.predict(there, t.seen.ema.value) / h.tenants[i].tau_ms);
    }
    if (n.tau_ms <= 0) return worst;
    TailModel alone;
    alone.update({}, 1, n.alone_ms, n.tau_ms);
    const double others = others_on_root(h, seen, state, h.tenants.size(), gpu, false);
    const double io =
        seen.numa_io_bytes_per_s[static_cast<std::size_t>(h.gpus[gpu].numa)] / full_io_bytes_per_s;
    // Unknown terms count as the worst case.
    const Exposure there{is_usable(others) ? std::min(others, 1.0) : 1, is_usable(io) ? std::min(io, 1.0) : 1,
                         1, 0};
    return std::max(worst, alone.predict(there, n.alone_ms) / n.tau_ms);
}

}  // namespace admission_detail

GPUSCHED_EXPORT std::optional<AdmissionPlace> find_place_with(const ControllerState& state,
                                                              const Observation& seen,
                                                              const ControllerOptions& options,
                                                              const Newcomer& newcomer, ScoreRef score) {
    const auto& h = options.host;
    admission_detail::validate(newcomer, h);
    if (!state.admission_open) return {};
    std::optional<AdmissionPlace> best;
    for (std::size_t g = 0; g < h.gpus.size(); ++g) {
        const auto& gpu = seen.gpus[g];
        if (!gpu.readable || gpu.lost || in_flight_on(state, static_cast<std::int32_t>(g))) continue;
        const auto& device = mig_device(h.gpus[g].device);
        const int profile = device.find(newcomer.profile);
        if (profile < 0) continue;
        const double ratio = admission_detail::worst_ratio(state, seen, options, newcomer, g);
        if (!(ratio <= 1)) continue;
        for_each_free_placement(device, gpu.layout, static_cast<std::size_t>(profile), [&](MigInstance at) {
            const double x = score(placement_terms(h, seen, state, h.tenants.size(), g, at, gpu.layout, {}));
            if (std::isfinite(x) && (!best || x < best->score))
                best = {static_cast<std::int32_t>(g), at, x, ratio};
        });
    }
    return best;
}

GPUSCHED_EXPORT AdmissionQueue::AdmissionQueue(std::size_t capacity) : capacity_(capacity) {
    require_range("capacity", capacity, 0u, 100'000u);
}

GPUSCHED_EXPORT AdmissionAnswer AdmissionQueue::offer(const ControllerState& state, const Observation& seen,
                                                      const ControllerOptions& options, Newcomer newcomer) {
    admission_detail::validate(newcomer, options.host);
    AdmissionAnswer answer;
    std::size_t ahead = 0, of_class = 0;
    for (const auto& other : waiting_) {
        ahead += other.service_class <= newcomer.service_class;
        of_class += other.service_class == newcomer.service_class;
    }
    if (ahead == 0 && seen.window != admitted_in_) answer.place = find_place(state, seen, options, newcomer);
    if (answer.place) {
        admitted_in_ = seen.window;
        answer.verdict = AdmissionVerdict::admitted;
    } else if (of_class >= capacity_ || (newcomer.tau_ms > 0 && newcomer.alone_ms > newcomer.tau_ms)) {
        answer.verdict = AdmissionVerdict::rejected;
    } else {
        waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(ahead), newcomer);
    }
    answer.newcomer = std::move(newcomer);
    return answer;
}

GPUSCHED_EXPORT std::optional<AdmissionAnswer> AdmissionQueue::next(const ControllerState& state,
                                                                    const Observation& seen,
                                                                    const ControllerOptions& options) {
    if (seen.window == admitted_in_) return {};
    for (std::size_t k = 0; k < waiting_.size(); ++k) {
        if (k > 0 && waiting_[k].service_class == waiting_[k - 1].service_class) continue;
        const auto place = find_place(state, seen, options, waiting_[k]);
        if (!place) continue;
        admitted_in_ = seen.window;
        AdmissionAnswer answer{AdmissionVerdict::admitted, std::move(waiting_[k]), place};
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(k));
        return answer;
    }
    return {};
}

GPUSCHED_EXPORT bool AdmissionQueue::withdraw(std::int64_t id) {
    const auto found = std::ranges::find(waiting_, id, &Newcomer::id);
    if (found == waiting_.end()) return false;
    waiting_.erase(found);
    return true;
}

}  // namespace gpusched::control
