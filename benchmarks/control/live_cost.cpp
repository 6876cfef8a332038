// SPDX-License-Identifier: Apache-2.0
// What the controller of a real host costs, reading its signals included: CPU time of a window of `LiveController`, which
// is what `gpusched control` runs, with 32 protected tenants in MIG instances of 8 GPUs.
//
// Real: files, sockets, /proc/interrupts and /proc/diskstats of this machine, the audit log, the journal, programs that
// are started. Not real: the driver (the NVML of the tests, whose calls cost nothing; their number is told), and the
// control groups, which are files of a temporary folder. `256 cores` stands for /proc of a large host, as files too.
//
// User and system time of all of the process, threads of sockets included; what writes the latencies is another process.
// Windows follow at once; with --paced there are as many as the seconds given, one a second, where caches are cold.
// Loads: quiet, and all tenants above their targets. One JSON line per case; on standard error the same as a table.
#include "../support/command_line.hpp"
#include "../support/enumerator.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"
#include "live_servers.hpp"

#include <gpusched/host/live.hpp>

#include <support/fake_nvml_state.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>

#include <sys/resource.h>
#include <sys/sysinfo.h>

using namespace gpusched;

namespace {

constexpr int tenants = 32, gpus = 8;

struct Case {
    bench::ServerLoad load{};
    bool large = false;  ///< /proc of a host of 256 cores
    [[nodiscard]] bool above() const { return load.ms > 15; }
};

/// A table as /proc/interrupts has it.
std::string interrupts(int cores, int rows) {
    std::string text = " ";
    for (int c = 0; c < cores; ++c) text += " CPU" + std::to_string(c);
    for (int r = 0; r < rows; ++r) {
        text += "\n" + std::to_string(r) + ":";
        for (int c = 0; c < cores; ++c) text += "  " + std::to_string((r * 7919 + c * 104729) % 100'000);
        text += "  IR-PCI-MSIX-0000:3b:00.0 " + std::to_string(r) + "-edge nvme0q" + std::to_string(r);
    }
    return text + "\n";
}

/// The host of a case: a folder, the driver's state, and the configuration.
struct Host {
    std::filesystem::path folder{};
    control::ControllerOptions options{};
    host::LiveOptions live{};

    explicit Host(const Case& c) {
        auto pattern = (std::filesystem::temp_directory_path() / "gpusched-bench-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw BackendError("no temporary folder");
        folder = pattern;
        const auto& device = control::mig_device("A100-40GB");
        auto& driver = test::fake_nvml();
        test::start_afresh(driver, device);
        driver.gpu_count = gpus;
        options.window_s = 1;
        options.host.roots = {{.numa = 0}, {.numa = 0}, {.bridge = 1, .numa = 1}, {.bridge = 1, .numa = 1}};
        options.host.numa_nodes = 2;
        options.host.core_numa.assign(
            c.large ? 256 : static_cast<std::size_t>(std::clamp(get_nprocs_conf(), 1, 256)), 0);
        live.mig = host::MigControl::nvml;
        live.nvml_library = GPUSCHED_FAKE_NVML;
        live.journal = path("journal.json");
        live.cgroups = folder.string();
        live.numa_disks = {disks()};
        live.tenants.resize(tenants);
        for (int g = 0; g < gpus; ++g) options.host.gpus.push_back({.root = g / 2, .numa = g / 4});
        for (int t = 0; t < tenants; ++t) place(t, device, driver, c.load.source);
        if (c.large) write_proc();
    }
    ~Host() { std::filesystem::remove_all(folder); }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }
    [[nodiscard]] std::vector<std::string> sources() const {
        std::vector<std::string> out;
        for (const auto& t : live.tenants) out.push_back(t.latency.path);
        return out;
    }

  private:
    /// Four tenants of a GPU in the first half of it.
    void place(int t, const control::MigDevice& device, test::FakeNvml& driver, const std::string& source) {
        const auto name = "T" + std::to_string(t);
        const auto gpu = static_cast<unsigned>(t % gpus), start = static_cast<unsigned>(t / gpus);
        const auto profile = static_cast<std::uint8_t>(device.find("1g"));
        driver.gpus[gpu].instances[start] = {gpu,
                                             driver.next_id++,
                                             static_cast<unsigned>(device.profiles[profile].id),
                                             start,
                                             1,
                                             true,
                                             true,
                                             false,
                                             1};
        options.host.tenants.push_back({.name = name,
                                        .is_protected = true,
                                        .start = {.gpu = static_cast<std::int32_t>(gpu),
                                                  .instance = {profile, static_cast<std::uint8_t>(start)}}});
        auto& to = live.tenants[static_cast<std::size_t>(t)];
        to.latency.kind = bench::enumerator<host::LatencyKind>(source);
        to.latency.path = path(name + ".latency");
        to.latency.metric = bench::MetricsPage::metric;
        to.access.cgroup = name;
        to.access.switch_over = {"true"};
        std::filesystem::create_directories(folder / name);
        std::ofstream(folder / name / "io.stat")
            << "259:0 rbytes=87654321 wbytes=7654321 rios=4321 wios=321 dbytes=0 dios=0\n"
               "259:1 rbytes=87654321 wbytes=7654321 rios=4321 wios=321 dbytes=0 dios=0\n";
        if (source != "socket") std::ofstream(to.latency.path) << "";
    }
    static std::vector<std::string> disks() {
        std::vector<std::string> out;
        for (const auto& entry : std::filesystem::directory_iterator("/sys/block"))
            if (std::filesystem::exists(entry.path() / "device"))
                out.push_back(entry.path().filename().string());
        return out;
    }
    void write_proc() {
        live.proc = path("proc");
        std::filesystem::create_directories(folder / "proc/sys/kernel/random");
        std::ofstream(folder / "proc/sys/kernel/random/boot_id") << "b\n";
        std::ofstream(folder / "proc/interrupts") << interrupts(256, 600);
        std::ofstream(folder / "proc/diskstats") << std::ifstream("/proc/diskstats").rdbuf();
    }
};

double cpu_ms() { return 1e3 * bench::processor_s(); }
/// Of the CPU time so far, what was spent in the kernel, ms.
double kernel_ms() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return 1e3 * static_cast<double>(used.ru_stime.tv_sec) +
           1e-3 * static_cast<double>(used.ru_stime.tv_usec);
}

void measure(const Case& c, int windows, bool paced) {
    Host host(c);
    const bench::Servers servers(c.load, host.sources());
    host::LiveController controller(host.options, host.live, host.path("audit.jsonl"));
    controller.start();
    std::vector<double> ms;
    std::vector<int> calls;
    std::size_t lines = 0;
    double kernel = 0;
    const auto every = std::chrono::seconds(paced ? 1 : 0);
    auto due = std::chrono::steady_clock::now();
    // The first windows make what later ones find made.
    for (int w = -5; w < windows; ++w) {
        if (w == 0) kernel = kernel_ms();
        const double before = cpu_ms();
        const int calls_before = test::fake_nvml().calls;
        servers.window();
        std::this_thread::sleep_until(due += every);
        lines += controller.window().size();
        if (w < 0) continue;
        ms.push_back(cpu_ms() - before);
        calls.push_back(test::fake_nvml().calls - calls_before);
    }
    kernel = (kernel_ms() - kernel) / windows;
    const double mean = std::accumulate(ms.begin(), ms.end(), 0.0) / windows;
    const double mean_calls = std::accumulate(calls.begin(), calls.end(), 0.0) / windows;
    const auto at = [&](double q) { return bench::quantile(ms, q); };
    const auto least = *std::min_element(calls.begin(), calls.end()),
               most = *std::max_element(calls.begin(), calls.end());
    using bench::rounded;
    const auto* const load = c.above() ? "all above" : "quiet";
    const auto* const proc = c.large ? "256 cores" : "this machine";
    bench::print({{"source", c.load.source},
                  {"requests", c.load.requests},
                  {"per_datagram", c.load.per_datagram},
                  {"load", load},
                  {"proc", proc},
                  {"paced", paced},
                  {"tenants", tenants},
                  {"windows", windows},
                  {"mean_ms", rounded(mean, 4)},
                  {"median_ms", rounded(at(0.5), 4)},
                  {"p99_ms", rounded(at(0.99), 4)},
                  {"kernel_ms", rounded(kernel, 4)},
                  {"nvml_calls", rounded(mean_calls, 1)},
                  {"nvml_calls_least", least},
                  {"nvml_calls_most", most},
                  {"lines", lines},
                  {"core_share_at_1s", rounded(1e-3 * mean, 6)}});
    std::fprintf(
        stderr,
        "%-10s %5d requests (%d)  %-9s  %-12s %s %7.3f ms (median %.3f, p99 %.3f), %.3f in the kernel;"
        " NVML calls %d to %d, mean %.0f: %.3f %% of a core\n",
        c.load.source.c_str(), c.load.requests, c.load.per_datagram, load, proc,
        paced ? "a second" : "at once ", mean, at(0.5), at(0.99), kernel, least, most, mean_calls,
        0.1 * mean);
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("What the controller of a real host costs, reading its signals included.", argc,
                            argv);
    int seconds = 0;
    std::string source;
    line.option("--source", source, "of the latencies; all without it")
        ->check(CLI::IsMember({"file", "socket", "prometheus"}));
    line.option("--paced", seconds, "windows, one a second instead of at once")->check(bench::at_least(1));
    line.read();
    const Case cases[] = {{{"file", 100, 8}},        {{"file", 1000, 8}},      {{"file", 1000, 30}},
                          {{"socket", 100, 8}},      {{"socket", 1000, 8}},    {{"socket", 1000, 8, 20}},
                          {{"prometheus", 1000, 8}}, {{"file", 1000, 8}, true}};
    for (const auto& c : cases)
        if (source.empty() || c.load.source == source)
            measure(c, line.smoke() ? 5 : seconds > 0 ? seconds : 500, seconds > 0);
}
