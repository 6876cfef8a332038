// SPDX-License-Identifier: Apache-2.0
#include "host/live_state.hpp"

#include <gpusched/config.hpp>

#include <string>
#include <vector>

#include <unistd.h>

namespace gpusched::host {

GPUSCHED_EXPORT void LiveController::Impl::load_nvml() {
    if (live.nvml_library.empty()) return say("NVML: not asked for; PCIe traffic is unknown");
    try {
        nvml.emplace(live.nvml_library);
        for (std::size_t g = 0; g < options.host.gpus.size(); ++g) {
            int handle = 0;
            const auto status =
                live.pci.empty() ? nvml->find(static_cast<int>(g), handle) : nvml->find(live.pci[g], handle);
            if (status != BackendStatus::ok)
                throw BackendError("NVML: GPU " + number_text(g) + ": " + enum_name(status));
            handles.push_back(handle);
        }
        say("NVML: " + live.nvml_library + ", " + number_text(handles.size()) + " GPUs");
    } catch (const BackendError& e) {
        nvml.reset();
        if (live.mig == MigControl::nvml) throw;
        say(std::string(e.what()) + "; PCIe traffic is unknown");
    }
}

GPUSCHED_EXPORT void LiveController::Impl::check_tables() {
    for (std::size_t g = 0; nvml && g < handles.size(); ++g) {
        std::vector<NvmlProfile> found;
        double x = 0;
        const auto pcie = nvml->pcie_bytes(handles[g], x);
        say("GPU " + number_text(g) + ": PCIe bytes " +
            (pcie == BackendStatus::ok ? "counted" : std::string("not counted (") + enum_name(pcie) + ")"));
        if (nvml->profiles(handles[g], found) != BackendStatus::ok) continue;
        for (const auto& p : mig_device(options.host.gpus[g].device).profiles)
            for (const auto& f : found)
                if (f.id == p.id && (f.starts != p.starts || f.sm_count != p.sm_count))
                    say("GPU " + number_text(g) + ": the driver has " + number_text(f.sm_count) +
                        " SMs for " + std::string(p.key) + ", the table of " + options.host.gpus[g].device +
                        " " + number_text(p.sm_count) + (f.starts != p.starts ? ", and other starts" : ""));
    }
}

GPUSCHED_EXPORT void LiveController::Impl::probe_mig() {
    auto& f = options.flags;
    bool readable = live.mig != MigControl::none, programs = false;
    eyes = mig.get();
    if (nvml && live.mig == MigControl::nvidia_smi) {
        by_nvml = std::make_unique<NvmlMig>(*nvml, options.host.gpus, handles, std::vector<OwnedInstance>{});
        eyes = by_nvml.get();
    }
    for (std::size_t g = 0; readable && g < options.host.gpus.size(); ++g) {
        MigLayout layout, same;
        const auto status = mig->read(static_cast<int>(g), layout);
        if (by_nvml && (by_nvml->read(static_cast<int>(g), same) != BackendStatus::ok || same != layout))
            eyes = mig.get();
        readable = status == BackendStatus::ok;
        say("GPU " + number_text(g) + ": " +
            (readable ? number_text(layout.size()) + " instances by " + enum_name(live.mig)
                      : std::string("instances cannot be read by ") + enum_name(live.mig) + ": " +
                            enum_name(status)));
    }
    if (readable && eyes != mig.get())
        say("windows look at the instances by nvml: no program is started for that");
    for (std::size_t i = 0; i < access.size(); ++i)
        programs |= options.host.tenants[i].is_protected && !access[i].switch_over.empty();
    const auto why = live.mig == MigControl::none ? "no MIG backend"
                     : !readable                  ? "instances cannot be read"
                     : !programs                  ? "no tenant has a switch_over program"
                                                  : "";
    if (*why != '\0') {
        off(f.place, "place", why);
        off(f.mig, "mig", why);
    }
}

GPUSCHED_EXPORT void LiveController::Impl::probe_guards() {
    auto& f = options.flags;
    bool io = false, pin = false, mps = false;
    for (std::size_t i = 0; i < access.size(); ++i) {
        const auto& a = access[i];
        const auto& tenant = options.host.tenants[i];
        if (!tenant.is_protected && !a.cgroup.empty() && !a.disks.empty()) {
            const bool good = live_detail::writable(a.cgroup + "/io.max");
            say(name(i) + ": io.max " + (good ? "can be written" : "cannot be written"));
            io |= good;
        }
        if (tenant.is_protected && !a.cgroup.empty()) {
            const bool cpuset = live_detail::writable(a.cgroup + "/cpuset.cpus");
            const bool threads = !cpuset && live_detail::writable(a.cgroup + "/cgroup.threads") &&
                                 ::access((a.cgroup + "/cpuset.cpus").c_str(), F_OK) != 0;
            say(name(i) + ": " +
                (cpuset    ? "cpuset.cpus can be written"
                 : threads ? "no cpuset.cpus; the cores of its threads are set"
                           : "neither cpuset.cpus nor cgroup.threads can be written"));
            pin |= cpuset || threads;
        }
        if (tenant.client_of >= 0 && !a.mps_pipe.empty()) {
            const auto status = MpsControl(commands, a.mps_pipe).probe();
            say(name(i) + ": MPS daemon " +
                (status == BackendStatus::ok ? "answers"
                                             : std::string("does not answer: ") + enum_name(status)) +
                (a.restart.empty() ? "; without a restart program quotas reach new clients only" : ""));
            mps |= status == BackendStatus::ok;
        }
    }
    if (!io) off(f.guard_io, "guard_io", "no other tenant's io.max can be written");
    if (!pin) off(f.pin, "pin", "no protected tenant's cores can be set");
    if (!mps) off(f.guard_mps, "guard_mps", "no MPS daemon answers");
}

GPUSCHED_EXPORT void LiveController::Impl::probe_memory() {
    if (live.mig == MigControl::none || !options.flags.relax || !options.flags.mig) return;
    std::vector<detail::MemoryMeter::Source> from;
    if (by_nvml) from.push_back({"nvml", by_nvml.get()});
    from.push_back({enum_name(live.mig), mig.get()});
    for (const auto& line : meter.choose(options.host, from)) say(line);
}

}  // namespace gpusched::host
