// SPDX-License-Identifier: Apache-2.0
// GPU instances and telemetry through NVML, which is loaded at run time.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/host/mig_backend.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpusched::host {

/// The failure that a return code of NVML stands for.
[[nodiscard]] BackendStatus nvml_status(int code) noexcept;

/// A GPU instance as NVML lists it.
struct NvmlInstance {
    std::int32_t id = 0, profile_id = 0, start = 0, size = 0;
    friend constexpr bool operator==(const NvmlInstance&, const NvmlInstance&) = default;
};

/// A profile as the driver has it: what the tables of `mig_device` should agree with.
struct NvmlProfile {
    std::int32_t id = 0, index = 0, memory_slices = 0, max_count = 0, sm_count = 0, memory_mib = 0;
    std::uint8_t starts = 0;
    friend constexpr bool operator==(const NvmlProfile&, const NvmlProfile&) = default;
};

/// Memory of a GPU instance that is not free, through the MIG device that is in it.
struct NvmlMemory {
    std::int32_t profile_id = 0, start = 0;    ///< of the GPU instance
    BackendStatus status = BackendStatus::ok;  ///< of asking for it
    double mib = 0;
};

/// NVML with the few calls that are needed, every one of which may be missing or fail. It never changes the MIG mode
/// and resets nothing: those functions are not even looked up. Not for use by several threads at once. Calls have no
/// time limit: a driver that hangs holds the caller.
class Nvml {
  public:
    /// @throws BackendError when the library cannot be loaded, has no `nvmlInit_v2`, or that fails
    explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    /// GPUs are meant by index, or by PCI address, which stays the same over boots.
    [[nodiscard]] BackendStatus find(int index, int& gpu);
    [[nodiscard]] BackendStatus find(const std::string& pci_bus_id, int& gpu);

    [[nodiscard]] BackendStatus mig_enabled(int gpu, bool& enabled, bool& pending);
    [[nodiscard]] BackendStatus profiles(int gpu, std::vector<NvmlProfile>& out);

    [[nodiscard]] BackendStatus instances(int gpu, std::vector<NvmlInstance>& out);
    /// The GPU instance alone; a compute instance is another call.
    /// @param id the driver's, of what was made; -1 where nothing was, or it is not known
    [[nodiscard]] BackendStatus create_gpu_instance(int gpu, int profile_id, int start, int size, int& id);
    [[nodiscard]] BackendStatus destroy_gpu_instance(int gpu, int id);
    [[nodiscard]] BackendStatus compute_instances(int gpu, int id, int& count);
    /// One with all of the instance's slices.
    /// @param slices compute slices of the GPU instance
    [[nodiscard]] BackendStatus create_compute_instance(int gpu, int id, int slices, bool media);
    /// All of a GPU instance.
    [[nodiscard]] BackendStatus destroy_compute_instances(int gpu, int id);

    /// Bytes sent and received over PCIe since some time in the past, by the whole GPU.
    [[nodiscard]] BackendStatus pcie_bytes(int gpu, double& bytes);
    /// The same as a rate, over the last 20 ms, where there is no counter.
    [[nodiscard]] BackendStatus pcie_rate(int gpu, double& bytes_per_s);
    [[nodiscard]] BackendStatus pcie_replays(int gpu, double& count);
    /// Of all GPU instances that have a compute instance.
    [[nodiscard]] BackendStatus memory_used(int gpu, std::vector<NvmlMemory>& out);
    /// How busy SMs and memory of a GPU instance were since the call before; not_supported before Hopper, not_found at
    /// the first call for an instance.
    [[nodiscard]] BackendStatus activity(int gpu, int id, double& sm, double& dram);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// A `MigBackend` over NVML with the rules of `SmiMig`: explicit starts, only what is owned is destroyed, a GPU instance
/// that stays gets its compute instance back, a success is believed when the listing agrees.
class GPUSCHED_EXPORT NvmlMig final : public OwningMig {
  public:
    /// @param handles of `Nvml::find`, by the host's GPU
    NvmlMig(Nvml& nvml, std::vector<HostGpu> gpus, std::vector<int> handles,
            std::vector<OwnedInstance> owned);

    [[nodiscard]] BackendStatus read(int gpu, MigLayout& layout) override;
    [[nodiscard]] BackendStatus create(int gpu, MigInstance instance) override;
    [[nodiscard]] BackendStatus complete(int gpu, MigInstance instance) override;
    [[nodiscard]] BackendStatus destroy(int gpu, MigInstance instance) override;
    [[nodiscard]] BackendStatus memory_used(int gpu, std::vector<InstanceMemory>& out) override;
    [[nodiscard]] BackendStatus memory_shortfall(int gpu, double& mib) override;

  private:
    BackendStatus find(int gpu, MigInstance instance, int& id);
    BackendStatus give_compute(int gpu, MigInstance instance, int id);

    Nvml& nvml_;
    std::vector<int> handles_;
};

}  // namespace gpusched::host
