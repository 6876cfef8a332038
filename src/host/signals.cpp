// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/host/signals.hpp>

#include <algorithm>
#include <cerrno>

namespace gpusched::host {

GPUSCHED_EXPORT HostSignals::HostSignals(const Host& host, Files& files, MigBackend& mig, SignalSources from)
    : host_(host), files_(files), mig_(mig), from_(std::move(from)), io_(host.tenants.size()),
      links_(host.tenants.size()), pcie_(host.gpus.size()), replays_(host.gpus.size()),
      cores_(host.core_numa.size()), disks_(static_cast<std::size_t>(host.numa_nodes)),
      nics_(host.roots.size()), gpus_(host.gpus.size()) {}

GPUSCHED_EXPORT void HostSignals::read(Observation& seen, double now_s) {
    now_s_ = now_s;
    passed_s_ = started_ && now_s > last_s_ ? now_s - last_s_ : from_.window_s;
    last_s_ = now_s;
    started_ = true;
    roots(seen);
    networks(seen);
    for (std::size_t i = 0; i < from_.tenants.size(); ++i) tenant(seen, i);
    disks(seen);
    interrupts(seen);
    instances(seen);
}

GPUSCHED_EXPORT void HostSignals::tenant(Observation& seen, std::size_t i) {
    auto& out = seen.tenants[i];
    out = {};
    auto& source = from_.tenants[i];
    if (source.latency) {
        const auto w = source.latency->window();
        ignored_ += w.ignored;
        if (w.known) {
            out.p50_ms = w.p50_ms, out.p95_ms = w.p95_ms, out.p99_ms = w.p99_ms, out.p999_ms = w.p999_ms;
            out.count = w.count, out.misses = w.misses;
            out.completed_per_s = static_cast<double>(w.count) / passed_s_;
            if (w.arrived >= 0) out.offered_per_s = static_cast<double>(w.arrived) / passed_s_;
        }
    }
    if (source.cgroup.empty()) return;
    std::string text;
    const int error = files_.read(source.cgroup + "/io.stat", text);
    double bytes = unknown_signal;
    try {
        if (error == 0) bytes = static_cast<double>(parse_io_stat(text, source.disks));
    } catch (const BackendError&) {
    }
    if (error == ENOENT && !host_.tenants[i].is_protected)
        out.present = files_.read(source.cgroup + "/cgroup.procs", text) != ENOENT;
    out.io_bytes_per_s = io_[i].update(bytes, now_s_);
    if (is_usable(out.io_bytes_per_s)) out.io_attribution = Attribution::measured;
    const auto gpu = host_.tenants[i].gpu;
    if (host_.tenants[i].is_protected || gpu < 0) return;
    const auto root = static_cast<std::size_t>(host_.gpus[static_cast<std::size_t>(gpu)].root);
    links_[i].update(out.io_bytes_per_s, seen.roots[root].bytes_per_s);
    out.pcie_attribution = links_[i].attribution();
    if (out.pcie_attribution != Attribution::unknown) out.pcie_bytes_per_s = out.io_bytes_per_s;
}

GPUSCHED_EXPORT void HostSignals::roots(Observation& seen) {
    for (auto& root : seen.roots) root = {0, 0};
    for (std::size_t g = 0; g < host_.gpus.size(); ++g) {
        auto& root = seen.roots[static_cast<std::size_t>(host_.gpus[g].root)];
        double bytes = unknown_signal, replays = unknown_signal;
        if (from_.nvml != nullptr) {
            double x = 0;
            const auto status = from_.nvml->pcie_bytes(from_.handles[g], x);
            if (status == BackendStatus::ok)
                bytes = pcie_[g].update(x, now_s_);
            else if (status == BackendStatus::not_supported &&
                     from_.nvml->pcie_rate(from_.handles[g], x) == BackendStatus::ok)
                bytes = x;
            else
                pcie_[g].lose();
            if (from_.nvml->pcie_replays(from_.handles[g], x) == BackendStatus::ok)
                replays = replays_[g].update(x, now_s_) * passed_s_;
        }
        // NaN where one GPU's traffic is not known: the sum is not known then.
        root.bytes_per_s += bytes;
        root.replays += replays;
    }
}

GPUSCHED_EXPORT void HostSignals::disks(Observation& seen) {
    std::string text;
    std::vector<DiskStats> found;
    bool good = files_.read(from_.proc + "/diskstats", text) == 0;
    try {
        if (good) found = parse_diskstats(text);
    } catch (const BackendError&) {
        good = false;
    }
    for (std::size_t n = 0; n < seen.numa_io_bytes_per_s.size(); ++n) {
        double bytes =
            good && n < from_.numa_disks.size() && !from_.numa_disks[n].empty() ? 0 : unknown_signal;
        if (is_usable(bytes))
            for (const auto& name : from_.numa_disks[n]) {
                const auto at = std::find_if(found.begin(), found.end(),
                                             [&](const DiskStats& d) { return d.name == name; });
                bytes += at == found.end() ? unknown_signal
                                           : static_cast<double>(at->bytes_read + at->bytes_written);
            }
        seen.numa_io_bytes_per_s[n] = disks_[n].update(bytes, now_s_);
    }
}

GPUSCHED_EXPORT void HostSignals::networks(Observation& seen) {
    seen.nic_bytes_per_s.assign(host_.roots.size(), unknown_signal);
    if (from_.root_nics.empty()) return;
    std::string text;
    std::vector<NetStats> found;
    bool good = files_.read(from_.proc + "/net/dev", text) == 0;
    try {
        if (good) found = parse_net_dev(text);
    } catch (const BackendError&) {
        good = false;
    }
    for (std::size_t r = 0; r < std::min(from_.root_nics.size(), nics_.size()); ++r) {
        double bytes = good && !from_.root_nics[r].empty() ? 0 : unknown_signal;
        for (const auto& name : from_.root_nics[r]) {
            const auto at = std::find_if(found.begin(), found.end(),
                                         [&](const NetStats& device) { return device.name == name; });
            bytes += at == found.end() ? unknown_signal : static_cast<double>(at->bytes);
        }
        seen.nic_bytes_per_s[r] = nics_[r].update(bytes, now_s_);
    }
}

GPUSCHED_EXPORT void HostSignals::interrupts(Observation& seen) {
    std::string text;
    std::vector<std::uint64_t> counts;
    try {
        if (files_.read(from_.proc + "/interrupts", text) == 0) counts = parse_interrupts(text);
    } catch (const BackendError&) {
        counts.clear();
    }
    for (std::size_t c = 0; c < seen.irq_per_s.size(); ++c)
        seen.irq_per_s[c] =
            cores_[c].update(c < counts.size() ? static_cast<double>(counts[c]) : unknown_signal, now_s_);
}

GPUSCHED_EXPORT void HostSignals::instances(Observation& seen) {
    const bool look = since_look_ < 0 || ++since_look_ >= from_.layout_every;
    if (look) since_look_ = 0;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
        if (look || !gpus_[g].readable) {
            const auto status = mig_.read(static_cast<int>(g), gpus_[g].layout);
            gpus_[g].lost = status == BackendStatus::gpu_is_lost;
            gpus_[g].readable = status == BackendStatus::ok;
        }
        seen.gpus[g] = gpus_[g];
    }
}

}  // namespace gpusched::host
