// SPDX-License-Identifier: Apache-2.0
// MIG backends: how the GPU instances of a machine are read and changed.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/host/names.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::host {

/// A GPU's instance by placement, which, unlike the driver's id, stays the same.
struct OwnedInstance {
    std::int32_t gpu = 0;
    MigInstance instance{};
    friend constexpr bool operator==(const OwnedInstance&, const OwnedInstance&) = default;
};

/// Memory of a GPU instance that is not free: all that share the instance share its memory.
struct InstanceMemory {
    MigInstance instance{};
    BackendStatus status = BackendStatus::ok;  ///< of asking for it
    double mib = 0;
};

/// That of one instance among those of a GPU; not_found where no MIG device is in it, or it does not say.
[[nodiscard]] BackendStatus memory_in_use(MigInstance instance, std::span<const InstanceMemory> all,
                                          double& mib);

/// The GPU instances of the host's GPUs: every call may fail, none throws because of the driver. An instance is created
/// whole (GPU instance and compute instance) or, if that fails half-way, may be left behind for `destroy`; after
/// INSUFFICIENT_RESOURCES nothing is, and what stands in the place is somebody else's.
class GPUSCHED_EXPORT MigBackend {
  public:
    virtual ~MigBackend() = default;

    /// The instances that exist, usable or not.
    [[nodiscard]] virtual BackendStatus read(int gpu, MigLayout& layout) = 0;
    [[nodiscard]] virtual BackendStatus create(int gpu, MigInstance instance) = 0;
    [[nodiscard]] virtual BackendStatus destroy(int gpu, MigInstance instance) = 0;

    /// Gives an instance the compute instance that it lacks, as after a crash between two commands.
    [[nodiscard]] virtual BackendStatus complete(int gpu, MigInstance instance);
    /// Takes a placement over, as that of a tenant for whose instance somebody vouches.
    virtual void adopt(int gpu, MigInstance instance);
    /// Gives up the claim to a placement: what is or comes there is somebody else's.
    virtual void disown(int gpu, MigInstance instance);

    /// Memory that is not free, of each instance with a MIG device that says so.
    [[nodiscard]] virtual BackendStatus memory_used(int gpu, std::vector<InstanceMemory>& out);
    /// By how much the driver's profiles have less memory than those of the table, at most.
    [[nodiscard]] virtual BackendStatus memory_shortfall(int gpu, double& mib);

  protected:
    MigBackend() = default;
    MigBackend(const MigBackend&) = default;
    MigBackend& operator=(const MigBackend&) = default;
};

/// A backend that destroys only what it owns: the instances named at construction, and those that it created. It never
/// changes the MIG mode, resets nothing, and does not touch compute instances of others.
class GPUSCHED_EXPORT OwningMig : public MigBackend {
  public:
    [[nodiscard]] std::span<const OwnedInstance> owned() const noexcept { return owned_; }
    void adopt(int gpu, MigInstance instance) final;
    void disown(int gpu, MigInstance instance) final;

  protected:
    OwningMig(std::vector<HostGpu> gpus, std::vector<OwnedInstance> owned);
    [[nodiscard]] bool owns(int gpu, MigInstance instance) const;
    [[nodiscard]] const MigDevice& device(int gpu) const;

  private:
    std::vector<HostGpu> gpus_;
    std::vector<OwnedInstance> owned_;
};

/// Without a driver: what is configured is held to stand, and nothing is changed.
class GPUSCHED_EXPORT NoMig final : public MigBackend {
  public:
    /// @param host must outlive it
    explicit NoMig(const Host& host);
    [[nodiscard]] BackendStatus read(int gpu, MigLayout& layout) override;
    [[nodiscard]] BackendStatus create(int gpu, MigInstance instance) override;
    [[nodiscard]] BackendStatus destroy(int gpu, MigInstance instance) override;
    [[nodiscard]] BackendStatus complete(int gpu, MigInstance instance) override;

  private:
    const Host& host_;
};

}  // namespace gpusched::host
