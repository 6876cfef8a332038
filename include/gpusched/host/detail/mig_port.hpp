// MIG backends behind one interface, for the controller of a real host.
#pragma once

#include <gpusched/host/nvidia_smi.hpp>

#include <utility>
#include <vector>

namespace gpusched::host::detail {

/// A `MigBackend` of any kind. A program that cannot be started is a failure like others.
class MigPort {
  public:
    MigPort() = default;
    MigPort(const MigPort&) = delete;
    MigPort& operator=(const MigPort&) = delete;
    virtual ~MigPort() = default;
    virtual BackendStatus read(int gpu, MigLayout& layout) = 0;
    virtual BackendStatus create(int gpu, MigInstance instance) = 0;
    virtual BackendStatus destroy(int gpu, MigInstance instance) = 0;
    virtual BackendStatus complete(int gpu, MigInstance instance) = 0;
    virtual void disown(int gpu, MigInstance instance) = 0;
    virtual void adopt(int gpu, MigInstance instance) = 0;
    virtual BackendStatus memory_used(int gpu, std::vector<InstanceMemory>& out) = 0;
    virtual BackendStatus memory_shortfall(int gpu, double& mib) = 0;
};

template <class B>
class MigPortOf final : public MigPort {
  public:
    template <class... Args>
    explicit MigPortOf(Args&&... arguments) : backend_(std::forward<Args>(arguments)...) {}
    BackendStatus read(int gpu, MigLayout& layout) override {
        return guarded([&] { return backend_.read(gpu, layout); });
    }
    BackendStatus create(int gpu, MigInstance instance) override {
        return guarded([&] { return backend_.create(gpu, instance); });
    }
    BackendStatus destroy(int gpu, MigInstance instance) override {
        return guarded([&] { return backend_.destroy(gpu, instance); });
    }
    BackendStatus complete(int gpu, MigInstance instance) override {
        return guarded([&] { return backend_.complete(gpu, instance); });
    }
    void disown(int gpu, MigInstance instance) override { backend_.disown(gpu, instance); }
    void adopt(int gpu, MigInstance instance) override { backend_.adopt(gpu, instance); }
    BackendStatus memory_used(int gpu, std::vector<InstanceMemory>& out) override {
        return guarded([&] { return backend_.memory_used(gpu, out); });
    }
    BackendStatus memory_shortfall(int gpu, double& mib) override {
        return guarded([&] { return backend_.memory_shortfall(gpu, mib); });
    }

  private:
    template <class F>
    static BackendStatus guarded(const F& call) {
        try {
            return call();
        } catch (const BackendError&) {
            return BackendStatus::unknown;
        }
    }
    B backend_;
};

/// Without a backend: what is configured is held to stand, and nothing is changed.
struct NoMig {
    const Host& host;
    BackendStatus read(int gpu, MigLayout& layout) const {
        layout = {};
        for (const auto& t : host.tenants)
            if (t.is_protected && t.start.gpu == gpu && !layout.contains(t.start.instance) &&
                layout.size() < MigLayout::capacity)
                layout.add(t.start.instance);
        return BackendStatus::ok;
    }
    BackendStatus create(int, MigInstance) const { return BackendStatus::not_supported; }
    BackendStatus destroy(int, MigInstance) const { return BackendStatus::not_supported; }
    BackendStatus complete(int, MigInstance) const { return BackendStatus::not_supported; }
    void disown(int, MigInstance) const {}
    void adopt(int, MigInstance) const {}
    BackendStatus memory_used(int, std::vector<InstanceMemory>&) const {
        return BackendStatus::not_supported;
    }
    BackendStatus memory_shortfall(int, double&) const { return BackendStatus::not_supported; }
};

}  // namespace gpusched::host::detail
