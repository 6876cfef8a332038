// The state of the NVML in tests, and how it starts: two GPUs of one model in MIG mode, without instances.
#pragma once

#include <gpusched/control/mig_tables.hpp>
#include <gpusched/core/errors.hpp>
#include <support/fake_nvml.hpp>

#include <dlfcn.h>

namespace gpusched::test {

/// Loaded once more, the same library has the same state.
inline FakeNvml& fake_nvml() {
    static void* const library = ::dlopen(GPUSCHED_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw BackendError(::dlerror());
    return *reinterpret_cast<FakeNvml* (*)()>(::dlsym(library, "fake_nvml_state"))();
}

inline void start_afresh(FakeNvml& state, const control::MigDevice& model) {
    state = {};
    state.fault_at = -1;
    state.next_id = 1;
    state.has_counters = true;
    for (const auto& p : model.profiles)
        state.profiles[state.profile_count++] = {static_cast<unsigned>(p.id),
                                                 static_cast<unsigned>(p.nvml_index),
                                                 static_cast<unsigned>(p.compute_slices),
                                                 static_cast<unsigned>(p.memory_slices),
                                                 static_cast<unsigned>(p.max_count),
                                                 static_cast<unsigned>(p.sm_count),
                                                 static_cast<unsigned>(p.memory_mib),
                                                 p.starts};
    for (auto& gpu : state.gpus) gpu.mig = true;
}

}  // namespace gpusched::test
