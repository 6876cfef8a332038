// The kernel's files and the MPS control program: recorded texts, a tree of files in memory, and failures at every call.
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/cgroup.hpp>
#include <gpusched/host/journal.hpp>
#include <gpusched/host/mps.hpp>
#include <gpusched/host/proc_signals.hpp>
#include <gpusched/host/signals.hpp>
#include <gpusched/host/system_command.hpp>

#include <support/catch.hpp>
#include <support/control_host.hpp>

#include <cerrno>
#include <map>
#include <utility>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {
/// /proc, /sys and control groups in memory.
struct Tree final : Files {
    std::map<std::string, std::string> texts{};
    int calls = 0, fault_at = -1, error = EIO;
    bool swallow = false;  ///< writes say that all is well, and do nothing

    bool faulty() { return calls++ == fault_at; }
    int read(const std::string& path, std::string& text) override {
        text.clear();
        if (faulty()) return error;
        const auto at = texts.find(path);
        if (at == texts.end()) return ENOENT;
        text = at->second;
        return 0;
    }
    int write(const std::string& path, std::string_view text) override {
        if (faulty()) return error;
        if (!texts.contains(path)) return ENOENT;
        if (!swallow) texts[path] = text;
        if (!swallow && path.ends_with("/cpuset.cpus"))
            texts[path + ".effective"] = text == "\n" ? "0-7" : text;
        return 0;
    }
    std::map<std::int64_t, CpuSet> threads{};
    std::int64_t newcomer = 0;  ///< a thread that appears after the first look
    int set_affinity(std::int64_t thread, const CpuSet& cpus) override {
        if (faulty()) return error;
        if (thread == 13) return ESRCH;
        threads[thread] = cpus;
        if (newcomer != 0) texts["/g/cgroup.threads"] += std::to_string(std::exchange(newcomer, 0)) + "\n";
        return 0;
    }
    int create(const std::string& path, std::string_view text) override {
        texts[path] = text;
        return 0;
    }
    int rename(const std::string&, const std::string&) override { return 0; }
};

constexpr const char* interrupts =
    "            CPU0       CPU1       CPU3       \n"
    "   1:          9          0          2  IR-IO-APIC    1-edge      i8042\n"
    " 128:     100000         50          0  IR-PCI-MSI 524288-edge      nvme0q0\n"
    " NMI:         12         11         10   Non-maskable interrupts\n"
    " LOC:   98765432   98765431   98765430   Local timer interrupts\n"
    " ERR:          0\n"
    " MIS:          0\n";

constexpr const char* diskstats =
    " 259       0 nvme0n1 1284 16 81922 217 3312 1090 409600 5210 0 2144 5427 0 0 0 0 12 3\n"
    " 259       1 nvme0n1p1 100 0 2048 17 1 0 8 0 0 12 17\n"
    "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

}  // namespace

TEST_CASE("interrupts of devices by core, with gaps; garbage is told") {
    const auto counts = parse_interrupts(interrupts);
    CHECK(counts == std::vector<std::uint64_t>{100009, 50, 0, 2});
    CHECK_THROWS_WITH(parse_interrupts(""), ContainsSubstring("no heading"));
    CHECK_THROWS_WITH(parse_interrupts("CPU0 CORE1\n"), ContainsSubstring("CORE1"));
    CHECK_THROWS_WITH(parse_interrupts("CPU0 CPU1\n 5: 1 x\n"), ContainsSubstring("row cannot be read"));
    CHECK_THROWS_WITH(parse_interrupts("CPU0 CPU1\n 5: 1\n"), ContainsSubstring("row cannot be read"));
    CHECK_THROWS_AS(parse_interrupts("CPU99999999\n"), BackendError);
}

TEST_CASE("disks, links and PCIe errors") {
    const auto disks = parse_diskstats(diskstats);
    REQUIRE(disks.size() == 3);
    CHECK(disks[0] == DiskStats{"nvme0n1", "259:0", 81922 * 512ull, 409600 * 512ull});
    CHECK(disks[1].name == "nvme0n1p1");
    CHECK_THROWS_AS(parse_diskstats("259 0 nvme0n1 1 2 3\n"), BackendError);
    CHECK_THROWS_AS(parse_diskstats("259 0 nvme0n1 1 2 99999999999999999999 4 5 6 7\n"), BackendError);
    CHECK_THROWS_AS(parse_diskstats("a 0 nvme0n1 1 2 3 4 5 6 7\n"), BackendError);
    CHECK(parse_aer_correctable("RxErr 0\nBadTLP 3\nTOTAL_ERR_COR 7\n") == 7);
    CHECK_THROWS_AS(parse_aer_correctable("RxErr 0\n"), BackendError);
    CHECK(parse_numa_node("1\n") == 1);
    CHECK(parse_numa_node("-1\n") == -1);
    CHECK(parse_numa_node("") == -1);
    CHECK(pcie_bytes_per_s("16.0 GT/s PCIe\n", "16\n") == Approx(31.508e9).epsilon(1e-3));
    CHECK(pcie_bytes_per_s("5.0 GT/s PCIe", "8") == Approx(4e9));
    CHECK(pcie_bytes_per_s("64.0 GT/s PCIe", "16") == Approx(121e9));
    CHECK(std::isnan(pcie_bytes_per_s("Unknown", "16")));
    CHECK(std::isnan(pcie_bytes_per_s("16.0 GT/s", "255")));
}

TEST_CASE("network interfaces as the kernel writes them") {
    const std::string heads =
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n";
    const auto found = parse_net_dev(heads + "    lo: 12 1 0 0 0 0 0 0 12 1 0 0 0 0 0 0\n"
                                             "  eth0:9000 8 0 0 0 0 0 3 1000 5 0 0 0 0 0 0\n");
    CHECK(found == std::vector<NetStats>{{"lo", 24}, {"eth0", 10000}});
    CHECK(parse_net_dev(heads).empty());
    CHECK_THROWS_WITH(parse_net_dev(heads + "eth0 1 2\n"), ContainsSubstring("row cannot be read: eth0 1 2"));
    CHECK_THROWS_AS(parse_net_dev(heads + "eth0: 1 2 3\n"), BackendError);
    CHECK_THROWS_AS(parse_net_dev(heads + ": 1 2 3 4 5 6 7 8 9\n"), BackendError);
}

TEST_CASE("rates: no value from the first, from counters that fall, or from the same moment") {
    CounterRate r;
    CHECK(std::isnan(r.update(100, 1)));
    CHECK(r.update(300, 3) == 100);
    CHECK(std::isnan(r.update(10, 4)));  // reset
    CHECK(r.update(20, 5) == 10);
    CHECK(std::isnan(r.update(30, 5)));
    CHECK(std::isnan(r.update(unknown_signal, 6)));
    CHECK(std::isnan(r.update(40, 7)));
    CHECK(r.update(50, 8) == 10);
    r.lose();
    CHECK(std::isnan(r.update(60, 9)));
}

TEST_CASE("io.max and io.stat as the kernel writes them") {
    const auto m = parse_io_max(
        "8:0 rbps=1 wbps=2 riops=3 wiops=4\n259:0 rbps=2097152 wbps=max riops=max wiops=120\n", "259:0");
    CHECK(m == IoMax{"259:0", 2097152, no_io_limit, no_io_limit, 120});
    CHECK(io_max_text(m) == "259:0 rbps=2097152 wbps=max riops=max wiops=120");
    CHECK(parse_io_max("", "8:16") == IoMax{.device = "8:16"});
    CHECK(parse_io_max("8:1 rbps=5\n", "8:16") == IoMax{.device = "8:16"});
    CHECK(parse_io_max(io_max_text(m), "259:0") == m);
    CHECK_THROWS_WITH(parse_io_max("8:0 rbps=fast\n", "8:0"), ContainsSubstring("8:0 rbps=fast"));
    CHECK_THROWS_AS(parse_io_max("8:0 rbps\n", "8:0"), BackendError);
    constexpr const char* stat = "8:0 rbytes=90 wbytes=10 rios=1 wios=1 dbytes=5 dios=1\n259:0 rbytes=1000 "
                                 "wbytes=0 rios=9 wios=0\n7:0 \n";
    CHECK(parse_io_stat(stat, {}) == 1100);
    CHECK(parse_io_stat(stat, {"259:0"}) == 1000);
    CHECK(parse_io_stat("", {}) == 0);
    CHECK_THROWS_AS(parse_io_stat("8:0 rbytes=-1\n", {}), BackendError);
}

TEST_CASE("control groups: what is written is read back, and every error is told") {
    const auto tree = [] {
        Tree t;
        t.texts = {{"/g/io.max", ""}, {"/g/cpuset.cpus", "\n"}, {"/g/cpuset.cpus.effective", "0-7\n"}};
        return t;
    };
    auto t = tree();
    Cgroup group(t, "/g");
    const IoMax limits{"259:0", 500'000'000, 500'000'000, no_io_limit, no_io_limit};
    CHECK(group.set_io_max(limits) == BackendStatus::ok);
    CHECK(t.texts["/g/io.max"] == "259:0 rbps=500000000 wbps=500000000 riops=max wiops=max");
    CHECK(group.set_cpus("2-3") == BackendStatus::ok);
    CHECK(group.set_cpus("") == BackendStatus::ok);
    CHECK(t.texts["/g/cpuset.cpus"] == "\n");
    // Taken and not done.
    t.swallow = true;
    CHECK(group.set_io_max({"259:0", 1, 1, 1, 1}) == BackendStatus::invalid_state);
    CHECK(group.set_cpus("4") == BackendStatus::invalid_state);
    t.swallow = false;
    for (const auto& [error, status] :
         {std::pair{EACCES, BackendStatus::no_permission}, std::pair{ENODEV, BackendStatus::not_found},
          std::pair{EINVAL, BackendStatus::not_supported}, std::pair{EBUSY, BackendStatus::in_use},
          std::pair{EIO, BackendStatus::unknown}, std::pair{ENOSPC, BackendStatus::insufficient_resources}})
        for (int call = 0; call < 5; ++call) {
            auto faulty = tree();
            faulty.fault_at = call;
            faulty.error = error;
            Cgroup g(faulty, "/g");
            const BackendStatus results[] = {g.set_io_max(limits), g.set_cpus("1")};
            int failed = 0;
            for (const auto r : results) {
                CHECK((r == BackendStatus::ok || r == status));
                failed += r != BackendStatus::ok;
            }
            CHECK(failed == 1);
        }
    Cgroup gone(t, "/gone");
    CHECK(gone.set_io_max(limits) == BackendStatus::not_found);
}

TEST_CASE("cores of threads where there is no cpuset: threads that come and go, failures, and the way back") {
    Tree t;
    t.texts["/g/cgroup.threads"] = "11\n12\n13\n";
    t.newcomer = 14;
    const auto cpus = parse_cpus("2-3");
    CHECK(set_cores(t, "/g", cpus, "threads") == BackendStatus::ok);
    CHECK(t.threads.size() == 3);  // 13 had ended
    CHECK(t.threads[14] == cpus);
    CHECK(set_cores(t, "/g", {}, "threads") == BackendStatus::ok);
    CHECK((t.threads[11].contains(0) && t.threads[11].contains(255)));
    for (int call = 0; call < 4; ++call) {
        t.calls = 0;
        t.fault_at = call;
        t.error = EPERM;
        CHECK(set_cores(t, "/g", cpus, "threads") == BackendStatus::no_permission);
    }
    t.fault_at = -1;
    t.texts["/g/cgroup.threads"] = "11\nx\n";
    CHECK(set_cores(t, "/g", cpus, "threads") == BackendStatus::invalid_state);
    t.texts.erase("/g/cgroup.threads");
    CHECK(set_cores(t, "/g", cpus, "threads") == BackendStatus::not_found);
    CHECK(SystemFiles().set_affinity(0, {}) == EINVAL);  // no cores at all: this thread keeps its own
}

namespace {

/// nvidia-cuda-mps-control: the commands that are used, and a fault at a call of one's choice.
struct FakeMps final : Programs {
    double percentage = 100;
    std::map<std::int64_t, double> servers{};
    int calls = 0, fault_at = -1;
    CommandResult fault{1, false, "Cannot find MPS control daemon process\n"};
    std::string pipe{};
    bool after_effect = false;

    CommandResult run(std::span<const std::string> arguments, std::string_view input) override {
        pipe = arguments[1];
        const bool fails = calls++ == fault_at;
        if (fails && !after_effect) return fault;
        auto line = take_line(input);
        const std::string command(take_word(line));
        const auto number = [](double x) { return CommandResult{0, false, number_text(x) + ".0\n"}; };
        CommandResult out;
        std::int64_t pid = 0;
        if (command == "get_default_active_thread_percentage") {
            out = number(percentage);
        } else if (command == "set_default_active_thread_percentage") {
            static_cast<void>(read_number(take_word(line), percentage));
            out = number(percentage);
        } else if (command == "get_server_list") {
            for (const auto& [server, value] : servers) out.output += std::to_string(server) + "\n";
        } else {
            static_cast<void>(read_number(take_word(line), pid));
            if (!servers.contains(pid)) return {0, false, "Server not found\n"};
            if (command == "set_active_thread_percentage")
                static_cast<void>(read_number(take_word(line), servers[pid]));
            out = number(servers[pid]);
        }
        return fails ? fault : out;
    }
};

}  // namespace

TEST_CASE("MPS: quotas for servers that run and those that come, read back; failures at every call") {
    FakeMps mps;
    mps.servers = {{41, 100}, {42, 100}};
    MpsControl control(mps, "/run/mps");
    CHECK(control.probe() == BackendStatus::ok);
    CHECK(control.set_default_percentage(75) == BackendStatus::ok);
    CHECK(mps.percentage == 75);
    CHECK(mps.servers[42] == 75);
    CHECK(mps.pipe == "CUDA_MPS_PIPE_DIRECTORY=/run/mps");
    const int calls = 3 + 2 * 2;
    for (const auto& [fault, status] :
         {std::pair{CommandResult{1, false, "Cannot find MPS control daemon process\n"},
                    BackendStatus::not_found},
          std::pair{CommandResult{0, true, ""}, BackendStatus::timeout},
          std::pair{CommandResult{0, false, "garbage\n"}, BackendStatus::invalid_state},
          std::pair{CommandResult{1, false, "Permission denied"}, BackendStatus::no_permission},
          std::pair{CommandResult{3, false, ""}, BackendStatus::unknown}})
        for (const bool after : {false, true})
            for (int call = 0; call < calls; ++call) {
                FakeMps bad;
                bad.servers = mps.servers;
                bad.fault_at = call;
                bad.fault = fault;
                bad.after_effect = after;
                INFO(call << " " << fault.output);
                const auto result = MpsControl(bad, "/p").set_default_percentage(50);
                // The reply to a set is not looked at, but for errors; a server that is gone is none.
                const bool set = call == 0 || call == 3 || call == 5;
                if (set && status == BackendStatus::invalid_state)
                    CHECK((result == BackendStatus::ok) == after);
                else if (call >= 3 && status == BackendStatus::not_found && set)
                    CHECK(result == BackendStatus::ok);
                else
                    CHECK(result == status);
            }
    CHECK(parse_mps_percentage("75.0\n") == 75);
    CHECK(parse_mps_percentage("") == -1);
    CHECK(parse_mps_percentage("175\n") == -1);
    CHECK(parse_mps_servers("12\n\n13\n") == std::vector<std::int64_t>{12, 13});
    CHECK_THROWS_AS(parse_mps_servers("12 13\n"), BackendError);
}

TEST_CASE("programs get their input") {
    SystemCommand command(20);
    const std::vector<std::string> cat{"cat"}, nothing{"true"};
    CHECK(command.run(cat, "a line\n").output == "a line\n");
    CHECK(command.run(nothing, std::string(4096, 'x')).code == 0);  // not read: no signal, no wait
    CHECK_THROWS_AS(command.run(cat, std::string(4097, 'x')), InvalidInput);
}

namespace {
struct FixedMig final : MigBackend {
    BackendStatus status = BackendStatus::ok;
    int reads = 0;
    BackendStatus read(int gpu, MigLayout& layout) override {
        ++reads;
        layout = {};
        if (gpu == 0) layout.add({2, 0});
        return status;
    }
    BackendStatus create(int, MigInstance) override { return BackendStatus::ok; }
    BackendStatus destroy(int, MigInstance) override { return BackendStatus::ok; }
};

struct Signals {
    ControllerOptions options = test::control_options();
    Tree tree{};
    FixedMig mig{};
    Observation seen{};
    std::unique_ptr<HostSignals> source{};

    Signals() {
        std::vector<TenantSource> tenants(4);
        tenants[1].cgroup = "/g/t2";
        tenants[1].disks = {"259:0"};
        set(0);
        source = std::make_unique<HostSignals>(options.host, tree, mig,
                                               SignalSources{.tenants = std::move(tenants),
                                                             .numa_disks = {{"nvme0n1"}, {}},
                                                             .root_nics = {{"eth0", "eth1"}},
                                                             .layout_every = 3});
        seen.tenants.resize(4), seen.feedback.resize(4), seen.roots.resize(2), seen.gpus.resize(2);
        seen.numa_io_bytes_per_s.resize(2), seen.irq_per_s.resize(8);
    }
    void set(std::uint64_t n) {
        tree.texts["/g/t2/io.stat"] =
            "259:0 rbytes=" + std::to_string(n * 100) + " wbytes=0\n8:0 rbytes=5 wbytes=5\n";
        tree.texts["/proc/diskstats"] = " 259 0 nvme0n1 1 2 " + std::to_string(n * 2) + " 4 5 6 0 8\n";
        tree.texts["/proc/interrupts"] = "CPU0 CPU1\n 9: " + std::to_string(n) + " 0 chip\n";
        tree.texts["/proc/net/dev"] = "\n\neth0: " + std::to_string(n * 10) +
                                      " 0 0 0 0 0 0 0 5\neth1: 0 0 0 0 0 0 0 0 " + std::to_string(n * 20) +
                                      "\n";
    }
};

}  // namespace

TEST_CASE("signals of a host: rates, layouts, what is not there is unknown") {
    Signals s;
    s.source->read(s.seen, 10);
    CHECK(std::isnan(s.seen.tenants[1].io_bytes_per_s));
    CHECK(std::isnan(s.seen.roots[0].bytes_per_s));  // no NVML
    CHECK(s.seen.gpus[0].layout.contains({2, 0}));
    s.set(40);
    s.source->read(s.seen, 12);
    CHECK(s.seen.tenants[1].io_bytes_per_s == 2000);
    CHECK(s.seen.tenants[1].io_attribution == Attribution::measured);
    CHECK(s.seen.tenants[1].present);
    CHECK(s.seen.numa_io_bytes_per_s[0] == 20480);
    CHECK(std::isnan(s.seen.numa_io_bytes_per_s[1]));
    CHECK(s.seen.nic_bytes_per_s[0] == 600);
    CHECK(std::isnan(s.seen.nic_bytes_per_s[1]));
    CHECK(s.seen.irq_per_s[0] == 20);
    CHECK(s.seen.irq_per_s[1] == 0);
    CHECK(std::isnan(s.seen.irq_per_s[2]));
    CHECK(s.mig.reads == 2);  // the instances are not looked at in every window
    s.mig.status = BackendStatus::gpu_is_lost;
    s.source->look_again();
    s.source->read(s.seen, 14);
    CHECK(s.seen.gpus[0].lost);
    CHECK(!s.seen.gpus[0].readable);
    s.mig.status = BackendStatus::ok;
    s.source->read(s.seen, 16);  // at once, because it could not be read
    CHECK(s.seen.gpus[0].readable);
    s.tree.texts.erase("/g/t2/io.stat");
    s.source->read(s.seen, 18);
    CHECK(!s.seen.tenants[1].present);
    CHECK(std::isnan(s.seen.tenants[1].io_bytes_per_s));
}

TEST_CASE(
    "signals of a host: garbage or a failure of any file leaves that one unknown, and the others alone") {
    int unknown = 0;
    for (int call = 0;; ++call)
        for (const bool garbage : {false, true}) {
            Signals s;
            s.source->read(s.seen, 10);
            s.set(40);
            s.tree.calls = 0;
            if (!garbage) s.tree.fault_at = call;
            const char* const names[] = {"/proc/net/dev", "/g/t2/io.stat", "/proc/diskstats",
                                         "/proc/interrupts"};
            if (call == 4) {
                CHECK(unknown == 8);
                return;
            }
            if (garbage) s.tree.texts[names[call]] = "259:0 x\n\x01\xff 1 2";
            s.source->read(s.seen, 12);
            const double values[] = {s.seen.nic_bytes_per_s[0], s.seen.tenants[1].io_bytes_per_s,
                                     s.seen.numa_io_bytes_per_s[0], s.seen.irq_per_s[0]};
            for (int k = 0; k < 4; ++k) CHECK(std::isnan(values[k]) == (k == call));
            unknown += std::isnan(values[call]);
            CHECK(s.seen.tenants[1].present);
        }
}
