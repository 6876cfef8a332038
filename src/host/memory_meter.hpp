// SPDX-License-Identifier: Apache-2.0
// Memory in use of the protected tenants' instances, for the live controller.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/host/mig_backend.hpp>
#include <gpusched/host/names.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::host::detail {

/// Asks one of several interfaces. What it does not say is unknown, and then no instance is made smaller.
class MemoryMeter {
  public:
    struct Source {
        const char* name = "";
        MigBackend* mig = nullptr;
    };

    /// Takes the first source that knows the memory of all profiles of all GPUs and what one of the tenants uses.
    /// @return a line per protected tenant
    std::vector<std::string> choose(const Host& host, const std::vector<Source>& sources) {
        std::vector<std::string> lines;
        for (const auto& source : sources) {
            source_ = source;
            lines.clear();
            bool any = false;
            gpus_.assign(host.gpus.size(), {});
            auto status = shortfalls(host);
            for (const auto& tenant : host.tenants) {
                if (!tenant.is_protected) continue;
                double mib = 0;
                const auto one = status == BackendStatus::ok
                                     ? measure(tenant.start.gpu, tenant.start.instance, mib)
                                     : status;
                any |= one == BackendStatus::ok;
                lines.push_back(tenant.name + ": memory in use " +
                                (one == BackendStatus::ok
                                     ? number_text(std::llround(mib)) + " MiB, by " + source.name
                                     : std::string("not known to ") + source.name + ": " + enum_name(one) +
                                           "; while it is not, the instance is not made smaller"));
            }
            if (any) return lines;
        }
        source_ = {};
        return lines;
    }

    /// Fills in the window what tenants use where they are, `where(i)`, on GPUs whose instances were just read.
    /// @return a line where the source is given up: one that hangs would hold up every window
    template <class F>
    std::string read(const Host& host, Observation& seen, const F& where) {
        for (auto& gpu : gpus_) gpu.asked = false;
        for (std::size_t i = 0; source_.mig != nullptr && i < host.tenants.size(); ++i) {
            if (!host.tenants[i].is_protected) continue;
            const Configuration at = where(i);
            const auto& gpu = seen.gpus[static_cast<std::size_t>(at.gpu)];
            double mib = 0;
            if (gpu.lost || !gpu.readable || !gpu.layout.contains(at.instance)) continue;
            const auto status = measure(at.gpu, at.instance, mib);
            if (status == BackendStatus::ok) seen.tenants[i].memory_used_mib = mib;
            if (status == BackendStatus::timeout)
                return "memory in use: " + std::string(std::exchange(source_, {}).name) +
                       " took too long and is not asked again; instances are not made smaller";
        }
        return {};
    }

  private:
    /// A GPU is asked once for all of its tenants.
    struct Gpu {
        double shortfall_mib = 0;
        bool asked = false;
        BackendStatus status = BackendStatus::ok;
        std::vector<InstanceMemory> used{};
    };

    /// The decision core compares with the tables' sizes: where the driver's are smaller, as much more counts as used.
    BackendStatus measure(std::int32_t gpu, MigInstance instance, double& mib) {
        auto& g = gpus_[static_cast<std::size_t>(gpu)];
        if (!g.asked) g.status = source_.mig->memory_used(gpu, g.used);
        g.asked = true;
        const auto status = g.status == BackendStatus::ok ? memory_in_use(instance, g.used, mib) : g.status;
        mib += g.shortfall_mib;
        return status;
    }
    BackendStatus shortfalls(const Host& host) {
        for (std::size_t g = 0; g < host.gpus.size(); ++g)
            if (const auto status =
                    source_.mig->memory_shortfall(static_cast<int>(g), gpus_[g].shortfall_mib);
                status != BackendStatus::ok)
                return status;
        return BackendStatus::ok;
    }

    Source source_{};
    std::vector<Gpu> gpus_{};
};

}  // namespace gpusched::host::detail
