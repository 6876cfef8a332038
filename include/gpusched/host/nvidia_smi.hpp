// GPU instances through `nvidia-smi mig`: readers of its output, and a `MigBackend` that runs it.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/host/runner.hpp>

#include <algorithm>
#include <concepts>
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

/// What a command did.
struct CommandResult {
    int code = 0;
    bool timed_out = false;  ///< it was killed; whether it had an effect is not known
    std::string output{};    ///< standard output and error
};

/// The failure that an exit code and output of `nvidia-smi mig` stand for. Codes are those of NVML; texts win, because not
/// every driver sets the code.
[[nodiscard]] BackendStatus smi_status(const CommandResult& result);

/// Runs a program with these arguments, the first being its name, and waits for its end or a time limit.
template <class R>
concept CommandRunner = requires(R& runner, std::span<const std::string> arguments) {
    { runner.run(arguments) } -> std::same_as<CommandResult>;
};

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
[[nodiscard]] BackendStatus memory_of(MigInstance instance, std::span<const InstanceMemory> all, double& mib);

/// A `MigBackend` over `nvidia-smi mig`, always with explicit starts.
///
/// It destroys only what it owns: the instances named at construction, and those that it created: a new id at the place
/// asked for, of a creation that succeeded or whose output names that id. What appears there otherwise is somebody
/// else's. It never changes the MIG mode, resets nothing, and does not touch compute instances of others. When a GPU
/// instance cannot be destroyed after its compute instance was, the compute instance is made again, so that the tenant
/// can go on.
template <CommandRunner Run>
class SmiMig {
  public:
    /// @param gpus the host's
    /// @param owned the protected tenants' instances
    /// @param pci the GPUs' PCI addresses, given to `nvidia-smi -i`; empty: the host's indices are those of nvidia-smi
    SmiMig(Run& run, std::vector<HostGpu> gpus, std::vector<OwnedInstance> owned,
           std::vector<std::string> pci = {})
        : run_(run), gpus_(std::move(gpus)), owned_(std::move(owned)), pci_(std::move(pci)) {}

    BackendStatus read(int gpu, MigLayout& layout) {
        std::vector<SmiInstance> found;
        if (const auto status = list(gpu, found); status != BackendStatus::ok) return status;
        return layout_of(gpu, found, layout);
    }

    BackendStatus create(int gpu, MigInstance instance) {
        std::vector<SmiInstance> before, now;
        if (const auto status = list(gpu, before); status != BackendStatus::ok) return status;
        MigLayout there;
        if (const auto status = layout_of(gpu, before, there); status != BackendStatus::ok) return status;
        // The driver says so too, but also when just this instance exists: then it is not ours to use.
        if (!can_create(device(gpu), there, instance)) return BackendStatus::insufficient_resources;
        const auto& profile = device(gpu).profiles[instance.profile];
        const auto result =
            call({"-cgi", std::to_string(profile.id) + ":" + std::to_string(instance.start), "-C"}, gpu);
        const auto status = smi_status(result);
        if (list(gpu, now) != BackendStatus::ok)
            return freezes(status) ? status : BackendStatus::invalid_state;
        const auto row = std::find_if(now.begin(), now.end(),
                                      [&](const SmiInstance& i) { return known(gpu, i) == instance; });
        const auto created = parse_created(result.output);
        const auto holds = [](const auto& all, const auto& match) {
            return std::any_of(all.begin(), all.end(), match);
        };
        // The command may have an effect and fail, and somebody else may have been quicker.
        const bool ours = row != now.end() &&
                          !holds(before, [&](const SmiInstance& i) { return i.instance == row->instance; }) &&
                          (created.empty() ? status == BackendStatus::ok
                                           : holds(created, [&](int id) { return id == row->instance; }));
        if (ours) owned_.push_back({gpu, instance});
        // A GPU instance without room for its compute instance: this status says that nothing was made.
        if (ours && status == BackendStatus::insufficient_resources &&
            destroy(gpu, instance) != BackendStatus::ok)
            return BackendStatus::invalid_state;
        return status == BackendStatus::ok && !ours ? BackendStatus::invalid_state : status;
    }

    /// Makes a compute instance where an owned GPU instance has none, as after a crash between two commands.
    BackendStatus complete(int gpu, MigInstance instance) {
        if (!owns(gpu, instance)) return BackendStatus::no_permission;
        std::vector<SmiInstance> found;
        if (const auto status = list(gpu, found); status != BackendStatus::ok) return status;
        for (const auto& row : found) {
            if (known(gpu, row) != instance) continue;
            const auto id = std::to_string(row.instance);
            const auto status = command({"-lci", "-gi", id}, gpu);
            return status == BackendStatus::not_found ? command({"-cci", "-gi", id}, gpu) : status;
        }
        return BackendStatus::not_found;
    }

    BackendStatus destroy(int gpu, MigInstance instance) {
        if (!owns(gpu, instance)) return BackendStatus::no_permission;
        std::vector<SmiInstance> found;
        if (const auto status = list(gpu, found); status != BackendStatus::ok) return status;
        for (const auto& row : found) {
            if (known(gpu, row) != instance) continue;
            const auto id = std::to_string(row.instance);
            auto status = command({"-dci", "-gi", id}, gpu);
            if (status == BackendStatus::ok || status == BackendStatus::not_found)
                status = command({"-dgi", "-gi", id}, gpu);
            if (status != BackendStatus::ok && !freezes(status)) {
                // A command may have an effect and fail. If the instance stands, the tenant needs its compute instance.
                const auto left = complete(gpu, instance);
                if (left == BackendStatus::not_found)
                    status = BackendStatus::ok;
                else if (left != BackendStatus::ok)
                    status = BackendStatus::invalid_state;
            }
            if (status != BackendStatus::ok) return status;
            // Success is believed when the listing says so too.
            MigLayout now;
            if (read(gpu, now) != BackendStatus::ok || now.contains(instance))
                return BackendStatus::invalid_state;
            std::erase(owned_, OwnedInstance{gpu, instance});
            return status;
        }
        std::erase(owned_, OwnedInstance{gpu, instance});
        return BackendStatus::not_found;
    }

    /// Memory that is not free, of each instance with a MIG device that says so.
    BackendStatus memory_used(int gpu, std::vector<InstanceMemory>& out) {
        out.clear();
        std::vector<SmiInstance> found;
        if (const auto status = list(gpu, found); status != BackendStatus::ok) return status;
        const std::string arguments[] = {"nvidia-smi", "-q", "-x", "-i", address(gpu)};
        const auto result = run_.run(std::span<const std::string>(arguments));
        if (const auto status = smi_status(result); status != BackendStatus::ok) return status;
        try {
            for (const auto& device : parse_memory(result.output))
                for (const auto& row : found)
                    if (const auto instance = known(gpu, row); instance && row.instance == device.instance)
                        out.push_back({*instance, BackendStatus::ok, device.used_mib});
        } catch (const BackendError&) {
            return BackendStatus::unknown;
        }
        return BackendStatus::ok;
    }

    /// By how much the driver's profiles have less memory than those of the table, at most. It tells hundredths of a GiB.
    BackendStatus memory_shortfall(int gpu, double& mib) {
        const auto result = call({"-lgip"}, gpu);
        if (const auto status = smi_status(result); status != BackendStatus::ok) return status;
        bool any = false;
        mib = 0;
        try {
            for (const auto& row : parse_lgip(result.output)) {
                const int p = device(gpu).find_id(row.id);
                if (p < 0) continue;
                any = true;
                mib = std::max(mib, device(gpu).profiles[static_cast<std::size_t>(p)].memory_mib -
                                        (row.memory_gib - 0.005) * 1024);
            }
        } catch (const BackendError&) {
            return BackendStatus::unknown;
        }
        return any ? BackendStatus::ok : BackendStatus::not_supported;
    }

    [[nodiscard]] std::span<const OwnedInstance> owned() const noexcept { return owned_; }
    /// Gives up the claim to a placement: what is or comes there is somebody else's.
    void disown(int gpu, MigInstance instance) { std::erase(owned_, OwnedInstance{gpu, instance}); }
    /// Takes a placement over, as that of a tenant for whose instance somebody vouches.
    void adopt(int gpu, MigInstance instance) {
        if (!owns(gpu, instance)) owned_.push_back({gpu, instance});
    }

  private:
    [[nodiscard]] bool owns(int gpu, MigInstance instance) const {
        return std::find(owned_.begin(), owned_.end(), OwnedInstance{gpu, instance}) != owned_.end();
    }
    [[nodiscard]] const MigDevice& device(int gpu) const {
        return mig_device(gpus_[static_cast<std::size_t>(gpu)].device);
    }
    [[nodiscard]] std::optional<MigInstance> known(int gpu, const SmiInstance& row) const {
        const int p = device(gpu).find_id(row.profile_id);
        if (p < 0 || row.start < 0 || row.start > 7 ||
            device(gpu).profiles[static_cast<std::size_t>(p)].memory_slices != row.size)
            return std::nullopt;
        return MigInstance{static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(row.start)};
    }
    BackendStatus layout_of(int gpu, const std::vector<SmiInstance>& rows, MigLayout& layout) const {
        layout = {};
        for (const auto& row : rows) {
            const auto instance = known(gpu, row);
            if (!instance || layout.size() == MigLayout::capacity) return BackendStatus::not_supported;
            layout.add(*instance);
        }
        return BackendStatus::ok;
    }
    BackendStatus list(int gpu, std::vector<SmiInstance>& rows) {
        const auto result = call({"-lgi"}, gpu);
        const auto status = smi_status(result);
        rows.clear();
        if (status == BackendStatus::not_found) return BackendStatus::ok;  // no instances
        if (status != BackendStatus::ok) return status;
        try {
            for (const auto& row : parse_lgi(result.output)) {
                // Asked for by address, a GPU answers with its own index, whatever that is: there is one in the answer.
                if (!pci_.empty() && !rows.empty() && rows.front().gpu != row.gpu)
                    return BackendStatus::unknown;
                if (!pci_.empty() || row.gpu == gpu) rows.push_back(row);
            }
        } catch (const BackendError&) {
            return BackendStatus::unknown;
        }
        return status;
    }
    BackendStatus command(std::vector<std::string> what, int gpu) {
        return smi_status(call(std::move(what), gpu));
    }
    [[nodiscard]] std::string address(int gpu) const {
        return pci_.empty() ? std::to_string(gpu) : pci_[static_cast<std::size_t>(gpu)];
    }
    CommandResult call(std::vector<std::string> what, int gpu) {
        std::vector<std::string> arguments{"nvidia-smi", "mig"};
        arguments.insert(arguments.end(), what.begin(), what.end());
        arguments.insert(arguments.end(), {"-i", address(gpu)});
        return run_.run(std::span<const std::string>(arguments));
    }

    Run& run_;
    std::vector<HostGpu> gpus_;
    std::vector<OwnedInstance> owned_;
    std::vector<std::string> pci_;
};

/// After a crash in the middle of a change from `before` to `after`: brings the host to one of the two. The old instance
/// stays where it exists, and the new one goes; where only the new one exists it is kept; where neither does, the old
/// one is made again. Instances are found by enumeration, so that one without a compute instance is found as well.
/// @param backend owns both placements
/// @return the configuration that stands, or nothing when the backend failed: then somebody has to look
template <MigBackend B>
[[nodiscard]] std::optional<Configuration> recover_instance(B& backend, const Configuration& before,
                                                            const Configuration& after) {
    using enum BackendStatus;
    const auto exists = [&](const Configuration& c) -> std::optional<bool> {
        MigLayout now;
        if (backend.read(c.gpu, now) != ok) return std::nullopt;
        return now.contains(c.instance);
    };
    // An instance may have lost its compute instance, or not have got it yet.
    const auto keep = [&](const Configuration& c) -> std::optional<Configuration> {
        if constexpr (requires { backend.complete(c.gpu, c.instance); })
            if (backend.complete(c.gpu, c.instance) != ok) return std::nullopt;
        return c;
    };
    const auto old_there = exists(before), new_there = exists(after);
    if (!old_there || !new_there) return std::nullopt;
    const bool same = before.gpu == after.gpu && before.instance == after.instance;
    if (*old_there) {
        if (*new_there && !same && backend.destroy(after.gpu, after.instance) != ok) return std::nullopt;
        return keep(before);
    }
    if (*new_there) return keep(after);
    if (backend.create(before.gpu, before.instance) != ok) return std::nullopt;
    return before;
}

}  // namespace gpusched::host

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/host/impl/nvidia_smi.ipp>
#endif
