// State of the NVML in tests (fake_nvml.cpp, a shared library of its own): two GPUs or more, and a fault at a call of
// one's choice.
#pragma once

namespace gpusched::test {

struct FakeNvml {
    struct Profile {
        unsigned id, index, slices, memory_slices, max_count, sm_count, memory_mib, starts;
    };
    struct Gi {
        unsigned gpu, id, profile, start, size;
        bool used, mine, client;
        unsigned compute;       ///< profile of its compute instance + 1; 0: none
        unsigned used_mib = 0;  ///< memory that is not free
    };
    struct Gpu {
        Gi instances[8];
        bool mig;
        unsigned long long tx, rx;  ///< bytes over PCIe
        unsigned tx_kb, rx_kb, replays;
        double sm, dram;  ///< percent
    };
    Profile profiles[16];
    unsigned profile_count;
    Gpu gpus[16];
    unsigned gpu_count = 2;  ///< of them that there are
    unsigned next_id;
    int calls, fault_at, fault_code;
    bool after_effect;  ///< the failing call does its work first
    bool for_good;      ///< all later calls fail as well, without effect: as if the process were gone
    bool intrude;       ///< another client is quicker than the next creation
    bool forbidden;     ///< the MIG mode was changed, a GPU reset, or an instance of another touched
    int initialised, samples;
    bool has_counters, has_gpm;
    int init_code;
    bool old_memory, no_memory;  ///< memory by the older call only, or by none
};

}  // namespace gpusched::test

extern "C" gpusched::test::FakeNvml* fake_nvml_state();
