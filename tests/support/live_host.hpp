// A folder that looks like a host whose NVML is the one of the tests, for the live controller.
#pragma once

#include <gpusched/host/live.hpp>

#include <support/control_host.hpp>
#include <support/fake_nvml_state.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::test {

/// T1 in 2g at 0 of GPU 0, T4 in 1g at 0 of GPU 1, another client behind them; a folder for files.
struct LiveHost {
    control::ControllerOptions options = control_options();
    host::LiveOptions live{};
    std::filesystem::path folder{};

    LiveHost() {
        std::string pattern = "/tmp/gpusched-test-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        folder = pattern;
        auto& state = fake_nvml();
        start_afresh(state, control::mig_device("A100-40GB"));
        state.gpus[0].instances[0] = {0, state.next_id++, 14, 0, 2, true, true, false, 2};
        state.gpus[0].instances[1] = {0, state.next_id++, 19, 6, 1, true, false, false, 1};
        state.gpus[1].instances[0] = {1, state.next_id++, 19, 0, 1, true, true, false, 1};
        options.window_s = 1;
        options.least_samples = options.persistence = 1;
        options.flags.rollback = options.flags.relax = false;
        live.mig = host::MigControl::nvml;
        live.nvml_library = GPUSCHED_FAKE_NVML;
        live.pci = {"0000:3b:00.0", "0000:af:00.0"};
        live.journal = (folder / "journal.json").string();
        live.backoff_s = live.lock_wait_s = 0;
        live.layout_every = 1;
        live.proc = live.cgroups = folder.string();
        live.tenants.resize(4);
        for (const std::size_t i : {0u, 3u}) {
            live.tenants[i].latency = {.kind = host::LatencyKind::file, .path = log(i)};
            live.tenants[i].access.switch_over = {"true"};
            std::ofstream(log(i)) << "";
        }
        std::filesystem::create_directories(folder / "sys/kernel/random");
        std::ofstream(folder / "sys/kernel/random/boot_id") << "b1\n";
    }
    ~LiveHost() { std::filesystem::remove_all(folder); }
    LiveHost(const LiveHost&) = delete;
    LiveHost& operator=(const LiveHost&) = delete;
    std::string log(std::size_t i) const { return (folder / ("t" + std::to_string(i))).string(); }
    void slow() const {
        std::ofstream(log(0), std::ios::app) << "+2\n40\n41\n";
        std::ofstream(log(3), std::ios::app) << "+2\n4\n4\n";
    }
    std::string audit() const { return (folder / "audit.jsonl").string(); }
};

inline bool any(const std::vector<std::string>& lines, std::string_view part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace gpusched::test
