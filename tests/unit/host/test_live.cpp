// The controller on a host whose NVML is the one of the tests; the console's tests go through nvidia-smi.
#include <gpusched/control/audit.hpp>
#include <gpusched/host/live.hpp>

#include <support/catch.hpp>
#include <support/live_host.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Matchers::ContainsSubstring;
using test::any;
using test::LiveHost;

TEST_CASE("a host over NVML: what it has, windows, an enlargement, what the next start finds") {
    LiveHost h;
    {
        LiveController controller(h.options, h.live, h.audit());
        CHECK_THROWS_AS(controller.window(), InvalidInput);
        const auto lines = controller.start();
        CHECK(any(lines, "2 GPUs"));
        CHECK(any(lines, "GPU 0: PCIe bytes counted"));
        CHECK(any(lines, "GPU 0: 2 instances by nvml"));
        CHECK(any(lines, "guard_io is off"));
        CHECK(any(lines, "T1: as_configured, GPU 0 2g at 0"));
        CHECK(!controller.options().flags.guard_io);
        CHECK_THROWS_AS(controller.start(), InvalidInput);
        CHECK_THROWS_WITH(LiveController(h.options, h.live, ""), ContainsSubstring("another controller"));
        bool changed = false;
        for (int k = 0; k < 6 && !changed; ++k) {
            h.slow();
            changed = any(controller.window(), "reconfigure of T1: ok");
        }
        CHECK(changed);
        controller.release();
        std::ostringstream log;
        log << std::ifstream(h.audit()).rdbuf();
        const auto replay = replay_audit(log.str(), controller.options());
        CHECK(replay.first_difference == -1);
        CHECK(replay.actions == 1);
    }
    CHECK(!test::fake_nvml().forbidden);
    CHECK(test::fake_nvml().initialised == 0);
    LiveController again(h.options, h.live, "");
    const auto lines = again.start();
    CHECK(any(lines, "T1: as_recorded"));
    CHECK(!any(lines, "T1: as_recorded, GPU 0 2g at 0"));
    CHECK(again.options().host.tenants[0].start.instance != h.options.host.tenants[0].start.instance);
}

TEST_CASE("a controller that ends in the middle and is started again acts no more often") {
    LiveHost h;
    h.options.dwell = 100'000;
    h.options.cool_down = 1;
    const auto acts = [](const std::vector<std::string>& lines) { return any(lines, "reconfig"); };
    {
        // It ends as a crash does: nothing is released, the journal is what it was.
        LiveController controller(h.options, h.live, h.audit());
        controller.start();
        bool changed = false;
        for (int k = 0; k < 6 && !changed; ++k) {
            h.slow();
            changed = any(controller.window(), "reconfigure of T1: ok");
        }
        REQUIRE(changed);
    }
    for (const char* boot : {"b1", "b2"}) {
        std::ofstream(h.folder / "sys/kernel/random/boot_id") << boot << "\n";
        LiveController again(h.options, h.live, h.audit());
        const auto lines = again.start();
        CHECK(any(lines, "T1: remembered: 1 structural actions, 0 changes not to be repeated"));
        CHECK(!any(lines, "T4: remembered"));
        // What nothing is given back below is as configured, not what the change before made of it.
        std::ostringstream so_far;
        so_far << std::ifstream(h.audit()).rdbuf();
        auto start = so_far.str();
        start.erase(0, start.rfind(R"({"record":"start")"));
        const auto& least = h.options.host.tenants[0].start;
        const auto profile = std::string(mig_device("A100-40GB").profiles[least.instance.profile].key);
        CHECK_THAT(start, ContainsSubstring(R"("floor":{"gpu":)" + std::to_string(least.gpu) +
                                            R"(,"profile":")" + profile));
        bool gate = false;
        for (int k = 0; k < 6; ++k) {
            h.slow();
            const auto told = again.window();
            CHECK(!acts(told));
            gate |= any(told, "gate");
        }
        CHECK(gate);
        // After a boot whoever sets the machine up puts T1 where the configuration has it.
        h.options.host.tenants[0].start = again.options().host.tenants[0].start;
    }
    std::ostringstream log;
    log << std::ifstream(h.audit()).rdbuf();
    const auto replay = replay_audit(log.str(), h.options);
    CHECK(replay.first_difference == -1);
    CHECK(replay.actions == 1);
    std::filesystem::remove(h.live.journal);
    LiveController forgetful(h.options, h.live, "");
    CHECK(!any(forgetful.start(), "remembered"));
    bool acted = false;
    for (int k = 0; k < 6; ++k) {
        h.slow();
        acted |= acts(forgetful.window());
    }
    CHECK(acted);
}

TEST_CASE("a host over NVML: a lost GPU is seen, a missing library or instance is not passed over") {
    LiveHost h;
    {
        LiveController controller(h.options, h.live, h.audit());
        controller.start();
        h.slow();
        controller.window();
        test::fake_nvml().fault_at = test::fake_nvml().calls;
        test::fake_nvml().fault_code = 15;
        test::fake_nvml().for_good = true;
        h.slow();
        CHECK(any(controller.window(), "hold"));
        test::fake_nvml().fault_at = -1;
    }
    auto gone = h.live;
    gone.nvml_library = "libno-such-library.so.9";
    CHECK_THROWS_WITH(LiveController(h.options, gone, "").start(), ContainsSubstring("cannot be loaded"));
    gone.mig = MigControl::none;
    {
        LiveController controller(h.options, gone, "");
        const auto lines = controller.start();
        CHECK(any(lines, "cannot be loaded"));
        CHECK(any(lines, "mig is off: no MIG backend"));
        h.slow();
        controller.window();
    }
    std::filesystem::remove(h.live.journal);
    test::fake_nvml().gpus[0].instances[0].used = false;
    CHECK_THROWS_WITH(LiveController(h.options, h.live, "").start(), ContainsSubstring("'T1': missing"));
}

TEST_CASE("options in code are checked as those in a document, under the same names") {
    const auto refused = [](const auto& change, const std::string& problem) {
        LiveHost h;
        change(h.live);
        CHECK_THROWS_WITH(LiveController(h.options, h.live, ""), ContainsSubstring(problem));
        CHECK_THROWS_WITH(validate(h.live, h.options), ContainsSubstring(problem));
    };
    using O = LiveOptions;
    refused([](O& o) { o.mig = static_cast<MigControl>(9); }, "/live/mig: 9; expected one of none");
    refused([](O& o) { o.nvml_library = ""; }, "/live/nvml_library: empty");
    refused([](O& o) { o.journal = ""; }, "/live/journal: missing");
    refused([](O& o) { o.pci = {"a"}; }, "/live/pci: 1 elements");
    refused([](O& o) { o.command_limit_s = 0; }, "/live/command_limit_s: 0");
    refused([](O& o) { o.backoff_s = 61; }, "/live/backoff_s: 61");
    refused([](O& o) { o.layout_every = 0; }, "/live/layout_every: 0");
    refused([](O& o) { o.tenants.pop_back(); }, "/live/tenants: 3 elements; expected one per tenant");
    refused([](O& o) { o.tenants[0].latency = {}; }, "/live/tenants/T1/latency: missing");
    refused([](O& o) { o.tenants[0].latency.kind = static_cast<LatencyKind>(9); },
            "/live/tenants/T1/latency/kind: 9; expected one of none");
    refused([](O& o) { o.tenants[0].latency.path = ""; }, "/live/tenants/T1/latency/file: empty");
    refused([](O& o) { o.tenants[0].latency.kind = LatencyKind::prometheus; },
            "/live/tenants/T1/latency/metric: missing");
    refused([](O& o) { o.tenants[0].latency.ms_per_unit = 0; }, "/live/tenants/T1/latency/ms_per_unit: 0");
    refused([](O& o) { o.tenants[0].access.disks = {"sda"}; }, "/live/tenants/T1/disks: 'sda'");
    refused([](O& o) { o.tenants[0].access.cgroup = ".."; }, "/live/tenants/T1/cgroup: '..'");
    const LiveHost h;
    CHECK_NOTHROW(validate(h.live, h.options));
}

namespace {

/// An `nvidia-smi` on the path that lists what NVML's double has, and counts how often it is started.
struct SmiOnPath {
    std::filesystem::path folder;
    std::string before = std::getenv("PATH");

    SmiOnPath(std::filesystem::path where, const std::string& start_of_second) : folder(std::move(where)) {
        std::ofstream(folder / "nvidia-smi")
            << "#!/bin/sh\necho \"$*\" >> " << (folder / "started").string() << "\ncase \"$*\" in\n"
            << "*-lci*) exit 0 ;;\n"
               "*-lgi*3b:00.0) echo '|   0  MIG 2g.10gb  14   1   0:2   |'\n"
               "               echo '|   0  MIG 1g.5gb   19   2   6:1   |' ;;\n"
               "*-lgi*) echo '|   1  MIG 1g.5gb   19   3   0:1   |'\n"
               "        echo '|   1  MIG 1g.5gb   19   4   "
            << start_of_second << ":1   |' ;;\n*) exit 3 ;;\nesac\n";
        std::filesystem::permissions(folder / "nvidia-smi", std::filesystem::perms::owner_all);
        ::setenv("PATH", (folder.string() + ":" + before).c_str(), 1);
    }
    ~SmiOnPath() { ::setenv("PATH", before.c_str(), 1); }
    SmiOnPath(const SmiOnPath&) = delete;
    SmiOnPath& operator=(const SmiOnPath&) = delete;
    [[nodiscard]] int started() const {
        std::ifstream lines(folder / "started");
        int count = 0;
        for (std::string line; std::getline(lines, line);) ++count;
        return count;
    }
};

}  // namespace

TEST_CASE("where nvidia-smi changes the instances, windows look at them by NVML if both tell the same") {
    for (const bool same : {true, false}) {
        LiveHost h;
        h.live.mig = MigControl::nvidia_smi;
        auto& gpu = test::fake_nvml().gpus[1];
        gpu.instances[1] = {1, 9, 19, 3, 1, true, false, false, 1};
        const SmiOnPath smi(h.folder, same ? "3" : "4");
        LiveController controller(h.options, h.live, h.audit());
        CHECK(any(controller.start(), "windows look at the instances by nvml") == same);
        const int before = smi.started(), calls = test::fake_nvml().calls;
        CHECK(before > 0);
        for (int k = 0; k < 3; ++k) {
            std::ofstream(h.log(0), std::ios::app) << "4\n";
            std::ofstream(h.log(3), std::ios::app) << "4\n";
            CHECK(!any(controller.window(), "hold"));
        }
        CHECK(smi.started() - before == (same ? 0 : 3 * 2));
        CHECK(test::fake_nvml().calls > calls);
        // An instance that goes is seen, by whom windows look with.
        gpu.instances[0].used = false;
        CHECK(any(controller.window(), "hold") == same);
    }
}

TEST_CASE("control groups of two tenants are two, neither within the other") {
    const auto options = parse_config(R"({"format": "gpusched.control", "version": 1, "host": {
        "roots": [{}], "gpus": [{}], "tenants": [{"name": "T1", "protected": true, "start": {"profile": "2g", "slice": 0}}, {"name": "T2"}]}})");
    const auto parse = [&](const std::string& first, const std::string& second) {
        return parse_live(
            R"({"live": {"journal": "j", "tenants": {"T1": {"latency": {"file": "f"}, "cgroup": ")" + first +
                R"("}, "T2": {"cgroup": ")" + second + R"("}}}})",
            options);
    };
    CHECK(parse("a.slice/t1", "a.slice/t2").tenants.size() == 2);
    CHECK(parse("t1", "t10").tenants.size() == 2);
    for (const auto& [first, second] :
         {std::pair{"t1", "t1"}, std::pair{"t1", "/t1/"}, std::pair{"t1", "./t1"}, std::pair{"a//b", "a/b/c"},
          std::pair{"a/b", "a"}})
        CHECK_THROWS_WITH(parse(first, second), ContainsSubstring("/live/tenants/T2/cgroup") &&
                                                    ContainsSubstring("a group of its own"));
    for (const char* group : {"/", ".", "../x", "a/../b"})
        CHECK_THROWS_WITH(parse("t1", group), ContainsSubstring("a folder below"));
}
