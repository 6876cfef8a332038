// SPDX-License-Identifier: Apache-2.0
// GPU instances through `nvidia-smi mig`: readers of its output, and a `MigBackend` that runs it.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/host/mig_backend.hpp>
#include <gpusched/host/programs.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::host {

/// A GPU instance as `nvidia-smi mig -lgi` lists it.
struct SmiInstance {
    std::int32_t gpu = 0;
    std::int32_t profile_id = 0;
    std::int32_t instance = 0;         ///< the driver's id: opaque, reused, another one after each creation
    std::int32_t start = 0, size = 0;  ///< memory slices
    friend constexpr bool operator==(const SmiInstance&, const SmiInstance&) = default;
};

/// A profile as `-lgip` lists it.
struct SmiProfile {
    std::int32_t gpu = 0;
    std::string name{};  ///< such as `1g.10gb+me`
    std::int32_t id = 0;
    std::int32_t free = 0, total = 0;  ///< instances
    double memory_gib = 0;
    std::int32_t sm_count = 0;
};

/// Where a profile may start, as `-lgipp` lists it.
struct SmiPlacements {
    std::int32_t gpu = 0, profile_id = 0, size = 0;
    std::vector<std::int32_t> starts{};
};

/// The rows of `nvidia-smi mig -lgi`, `-lgip` and `-lgipp`; text without rows gives none.
/// @throws BackendError for a row that cannot be read, with the row
[[nodiscard]] std::vector<SmiInstance> parse_lgi(std::string_view text);
[[nodiscard]] std::vector<SmiProfile> parse_lgip(std::string_view text);
[[nodiscard]] std::vector<SmiPlacements> parse_lgipp(std::string_view text);

/// The GPU instances whose creation the output of `-cgi` reports, by the driver's ids.
[[nodiscard]] std::vector<std::int32_t> parse_created(std::string_view text);

/// Memory of a GPU instance, as `nvidia-smi -q -x` lists it with each MIG device.
struct SmiMemory {
    std::int32_t instance = 0;  ///< the driver's id of the GPU instance
    double used_mib = 0;        ///< what is not free
};

/// The MIG devices in the output of `nvidia-smi -q -x` for one GPU. Those whose memory is not given (`N/A`) are left out.
/// @throws BackendError when a device cannot be read
[[nodiscard]] std::vector<SmiMemory> parse_memory(std::string_view xml);

/// The failure that an exit code and output of `nvidia-smi mig` stand for. Codes are those of NVML; texts win, because not
/// every driver sets the code.
[[nodiscard]] BackendStatus smi_status(const CommandResult& result);

/// A `MigBackend` over `nvidia-smi mig`, always with explicit starts.
///
/// It created what has a new id at the place asked for, of a creation that succeeded or whose output names that id. What
/// appears there otherwise is somebody else's. When a GPU instance cannot be destroyed after its compute instance was,
/// the compute instance is made again, so that the tenant can go on. A program that cannot be started is a failure like
/// others: `unknown`.
class GPUSCHED_EXPORT SmiMig final : public OwningMig {
  public:
    /// @param gpus the host's
    /// @param owned the protected tenants' instances
    /// @param pci the GPUs' PCI addresses, given to `nvidia-smi -i`; empty: the host's indices are those of nvidia-smi
    SmiMig(Programs& programs, std::vector<HostGpu> gpus, std::vector<OwnedInstance> owned,
           std::vector<std::string> pci = {});

    [[nodiscard]] BackendStatus read(int gpu, MigLayout& layout) override;

    [[nodiscard]] BackendStatus create(int gpu, MigInstance instance) override;

    [[nodiscard]] BackendStatus complete(int gpu, MigInstance instance) override;

    [[nodiscard]] BackendStatus destroy(int gpu, MigInstance instance) override;

    [[nodiscard]] BackendStatus memory_used(int gpu, std::vector<InstanceMemory>& out) override;

    /// The listing has hundredths of a GiB.
    [[nodiscard]] BackendStatus memory_shortfall(int gpu, double& mib) override;

  private:
    [[nodiscard]] std::optional<MigInstance> known(int gpu, const SmiInstance& row) const;
    BackendStatus layout_of(int gpu, const std::vector<SmiInstance>& rows, MigLayout& layout) const;
    BackendStatus list(int gpu, std::vector<SmiInstance>& rows);
    BackendStatus command(std::vector<std::string> what, int gpu);
    [[nodiscard]] std::string address(int gpu) const;
    CommandResult run(std::span<const std::string> arguments);
    CommandResult call(std::vector<std::string> what, int gpu);

    Programs& programs_;
    std::vector<std::string> pci_;
};

}  // namespace gpusched::host
