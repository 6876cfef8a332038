// Memory in use of GPU instances: through NVML, through nvidia-smi, and what the controller makes of it.
#include "host/memory_meter.hpp"
#include "host/nvml_abi.hpp"
#include <gpusched/control/audit.hpp>
#include <gpusched/host/journal.hpp>
#include <gpusched/host/mig_backend.hpp>
#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/nvml.hpp>

#include <support/catch.hpp>
#include <support/fake_smi.hpp>
#include <support/live_host.hpp>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Matchers::ContainsSubstring;
using test::any;
using test::FakeNvml;
using test::FakeSmi;
using test::LiveHost;

// The layouts of the 64-bit interface.
static_assert(sizeof(nvml_abi::Memory) == 24 && sizeof(nvml_abi::MemoryV2) == 40 &&
              offsetof(nvml_abi::MemoryV2, free) == 24 && nvml_abi::memory_v2_version == 0x2000028);

namespace {

const MigDevice& part() { return mig_device("A100-40GB"); }
MigInstance at(const char* key, int start) {
    return {static_cast<std::uint8_t>(part().find(key)), static_cast<std::uint8_t>(start)};
}

/// Memory of one instance, as a backend tells it with those of the whole GPU.
template <class B>
BackendStatus used(B& backend, int gpu, MigInstance instance, double& mib) {
    std::vector<InstanceMemory> all;
    const auto status = backend.memory_used(gpu, all);
    return status == BackendStatus::ok ? memory_in_use(instance, all, mib) : status;
}

/// 2g at 0, somebody's 1g at 6, and a GPU instance without a compute instance between them.
struct Gpus {
    FakeNvml& state = test::fake_nvml();
    Nvml nvml;
    std::vector<int> handles{};
    NvmlMig mig;

    Gpus() : nvml((test::start_afresh(test::fake_nvml(), part()), GPUSCHED_FAKE_NVML)), mig(make()) {
        auto& instances = state.gpus[0].instances;
        instances[3] = {0, 11, 14, 0, 2, true, true, false, 2, 3000};
        instances[1] = {0, 12, 14, 2, 2, true, true, false, 0, 500};
        instances[5] = {0, 13, 19, 6, 1, true, false, false, 1, 4000};
        state.calls = 0;
    }
    NvmlMig make() {
        int gpu = 0;
        REQUIRE(nvml.find(0, gpu) == BackendStatus::ok);
        return {nvml, {HostGpu{}}, {gpu}, {}};
    }
};

}  // namespace

TEST_CASE("memory in use by NVML: of the MIG device in the instance, by either call, or not at all") {
    using enum BackendStatus;
    Gpus g;
    double mib = -1;
    REQUIRE(used(g.mig, 0, at("2g", 0), mib) == ok);
    CHECK(mib == 3000);
    REQUIRE(used(g.mig, 0, at("1g", 6), mib) == ok);
    CHECK(mib == 4000);
    CHECK(used(g.mig, 0, at("2g", 2), mib) == not_found);  // no MIG device in it
    CHECK(used(g.mig, 0, at("2g", 4), mib) == not_found);
    g.state.old_memory = true;
    REQUIRE(used(g.mig, 0, at("2g", 0), mib) == ok);
    CHECK(mib == 3000);
    g.state.gpus[0].instances[3].used_mib = 20000;  // more than there is
    CHECK(used(g.mig, 0, at("2g", 0), mib) == invalid_state);
    g.state.no_memory = true;
    CHECK(used(g.mig, 0, at("2g", 0), mib) == not_supported);
    g.state.gpus[0].mig = false;
    CHECK(used(g.mig, 0, at("2g", 0), mib) == not_found);
    CHECK(mib == 4000 - 1000);

    double lacks = -1;
    CHECK(g.mig.memory_shortfall(0, lacks) == ok);
    CHECK(lacks == 0);
    g.state.profiles[0].memory_mib -= 100;
    g.state.profiles[2].memory_mib += 300;
    CHECK(g.mig.memory_shortfall(0, lacks) == ok);
    CHECK(lacks == 100);

    Nvml old(GPUSCHED_FAKE_NVML_OLD);
    int gpu = -1;
    REQUIRE(old.find(0, gpu) == ok);
    std::vector<NvmlMemory> all;
    CHECK(old.memory_used(gpu, all) == not_supported);
    CHECK(old.memory_used(7, all) == not_supported);
    CHECK(g.nvml.memory_used(7, all) == not_found);
}

TEST_CASE("memory in use by NVML: every failure at every call is a failure, or costs nothing") {
    int runs = 0, fine = 0;
    for (const bool old_call : {false, true})
        for (const bool after_effect : {false, true})
            for (const int code : {1, 2, 3, 4, 6, 10, 13, 15, 16, 17, 19, 23, 25, 29, 999})
                for (int call = 0;; ++call) {
                    Gpus g;
                    g.state.old_memory = old_call;
                    g.state.calls = 0;
                    g.state.fault_at = call;
                    g.state.fault_code = code;
                    g.state.after_effect = after_effect;
                    double mib = -1;
                    const auto status = used(g.mig, 0, at("2g", 0), mib);
                    if (g.state.calls <= call) break;
                    INFO(old_call << after_effect << " code " << code << " call " << call << " "
                                  << enum_name(status));
                    ++runs;
                    fine += status == BackendStatus::ok;
                    REQUIRE(mib == (status == BackendStatus::ok ? 3000 : -1));
                    REQUIRE(!g.state.forbidden);
                }
    CHECK(runs > 200);
    CHECK(fine >
          0);  // another device's handle that is not found; the newer call that the driver does not know
    CHECK(fine < runs / 2);
}

TEST_CASE("memory in use: a GPU is asked once, however many of its tenants want to know") {
    Gpus g;
    NvmlMig port(g.nvml, std::vector<HostGpu>(1), std::vector<int>{0}, std::vector<OwnedInstance>{});
    Host host;
    host.gpus.resize(1);
    int calls[2];
    for (const std::size_t tenants : {1u, 2u}) {
        host.tenants.resize(tenants);
        for (std::size_t i = 0; i < tenants; ++i)
            host.tenants[i] = {
                .name = "T", .is_protected = true, .start = {.instance = i == 0 ? at("2g", 0) : at("1g", 6)}};
        Observation seen;
        seen.tenants.resize(tenants);
        seen.gpus.resize(1);
        REQUIRE(port.read(0, seen.gpus[0].layout) == BackendStatus::ok);
        host::detail::MemoryMeter meter;
        meter.choose(host, {{"nvml", &port}});
        g.state.calls = 0;
        CHECK(meter.read(host, seen, [&](std::size_t i) { return host.tenants[i].start; }).empty());
        calls[tenants - 1] = g.state.calls;
        CHECK(seen.tenants[0].memory_used_mib == 3000);
        if (tenants == 2) CHECK(seen.tenants[1].memory_used_mib == 4000);
        // Asked anew in each look.
        g.state.gpus[0].instances[3].used_mib = 3500;
        CHECK(meter.read(host, seen, [&](std::size_t i) { return host.tenants[i].start; }).empty());
        CHECK(seen.tenants[0].memory_used_mib == 3500);
        g.state.gpus[0].instances[3].used_mib = 3000;
    }
    CHECK(calls[0] > 0);
    CHECK(calls[1] == calls[0]);
}

TEST_CASE("memory in use by nvidia-smi: of the same id as in its listing, or not at all") {
    using enum BackendStatus;
    FakeSmi smi;
    smi.gpus[0] = {{14, 7, 0, 2, true, true, true, 3000}, {19, 9, 6, 1, true, false, true, 4000}};
    SmiMig mig(smi, {HostGpu{}}, {});
    double mib = -1;
    REQUIRE(used(mig, 0, at("2g", 0), mib) == ok);
    CHECK(mib == 3000);
    REQUIRE(used(mig, 0, at("1g", 6), mib) == ok);
    CHECK(mib == 4000);
    CHECK(used(mig, 0, at("2g", 4), mib) == not_found);
    double lacks = -1;
    REQUIRE(mig.memory_shortfall(0, lacks) == ok);
    CHECK(lacks >= 0);
    CHECK(lacks <= 11);  // hundredths of a GiB
    smi.lacks_gib = 1;
    REQUIRE(mig.memory_shortfall(0, lacks) == ok);
    CHECK(lacks >= 1024);
    CHECK(lacks <= 1035);
    smi.no_memory = true;
    CHECK(used(mig, 0, at("2g", 0), mib) == not_found);
    smi.no_memory = false;
    smi.gpus[0][0].compute = false;
    CHECK(used(mig, 0, at("2g", 0), mib) == not_found);
    CHECK(mib == 4000);
    CHECK(!smi.forbidden);
    using Fault = FakeSmi::Fault;
    for (const auto& [fault, status] : {std::pair{Fault::code, in_use}, std::pair{Fault::hang, timeout},
                                        std::pair{Fault::code_after_effect, in_use}})
        for (const int call : {0, 1}) {
            smi.calls = 0;
            smi.fault = fault;
            smi.fault_at = call;
            CHECK(used(mig, 0, at("1g", 6), mib) == status);
        }
    smi.calls = 0;
    smi.fault = Fault::garbage;
    smi.fault_at = 0;
    CHECK(used(mig, 0, at("1g", 6), mib) == unknown);
    smi.calls = 0;
    smi.fault_at = 1;
    CHECK(used(mig, 0, at("1g", 6), mib) == not_found);  // text without MIG devices
    smi.calls = 0;
    smi.fault_at = 0;
    CHECK(mig.memory_shortfall(0, lacks) == unknown);
}

TEST_CASE("MIG devices of nvidia-smi -q -x") {
    const std::string one =
        "<mig_device><index>0</index><gpu_instance_id>5</gpu_instance_id><compute_instance_id>0</"
        "compute_instance_id>"
        "<fb_memory_usage><total>19968 MiB</total><reserved>1 MiB</reserved><used>24 MiB</used>"
        "<free>19943 MiB</free></fb_memory_usage></mig_device>";
    const auto found = parse_memory(
        "<fb_memory_usage><total>1 MiB</total><free>0 MiB</free></fb_memory_usage>" + one + "\n" + one);
    REQUIRE(found.size() == 2);
    CHECK(found[0].instance == 5);
    CHECK(found[1].used_mib == 25);
    CHECK(parse_memory("").empty());
    CHECK(parse_memory("<mig_devices>None</mig_devices>").empty());
    const auto with = [&](const std::string& what, const std::string& instead) {
        auto text = one;
        text.replace(text.find(what), what.size(), instead);
        return text;
    };
    for (const auto& [what, instead] :
         {std::pair{"19968 MiB", "N/A"}, std::pair{"19943 MiB", "19943 GiB"}, std::pair{"19943", "19969"},
          std::pair{"19943", "-1"}, std::pair{"19943", "nan"}, std::pair{"<fb_memory_usage>", ""},
          std::pair{"</free>", ""}, std::pair{"19968", "inf"}})
        CHECK(parse_memory(with(what, instead)).empty());
    for (const auto& [what, instead] :
         {std::pair{"</mig_device>", ""}, std::pair{"<gpu_instance_id>5", "<gpu_instance_id>N/A"},
          std::pair{"gpu_instance_id>5", "gpu_instance>5"}})
        CHECK_THROWS_WITH(parse_memory(with(what, instead)), ContainsSubstring("MIG device cannot be read"));
}

namespace {

/// T1 in 3g, which a controller before made of its 2g, far below its target for as long as it takes.
struct Calm : LiveHost {
    FakeNvml& state = test::fake_nvml();
    Calm() {
        options.flags.relax = true;
        options.flags.place = false;
        options.relax_after = 3;
        options.dwell = 2;
        Journal journal{.boot = "b1"};
        for (const std::size_t i : {0u, 3u})
            journal.of(options.host.tenants[i].name).now = options.host.tenants[i].start;
        journal.of("T1").now.instance = at("3g", 0);
        std::ofstream(live.journal) << write_journal(journal, options.host);
        state.gpus[0].instances[0] = {0, 1, 9, 0, 4, true, true, false, 3, 3000};
        std::ofstream(folder / "diskstats") << " 259 0 nvme0n1 1 0 0 0 0 0 0 0 0 0 0 0\n";
        live.numa_disks = {{"nvme0n1"}, {"nvme0n1"}};
    }
    /// Whether the instance was made smaller within some windows. @param lines what was told
    bool smaller(std::vector<std::string>& lines, int windows = 30) const {
        LiveController controller(options, live, audit());
        lines = controller.start();
        for (int k = 0; k < windows; ++k) {
            std::ofstream(log(0), std::ios::app) << "+2\n3\n3\n";
            std::ofstream(log(3), std::ios::app) << "+2\n14\n14\n";
            for (auto& line : controller.window()) lines.push_back(std::move(line));
        }
        std::ostringstream text;
        text << std::ifstream(audit()).rdbuf();
        const auto replay = replay_audit(text.str(), options);
        CHECK(replay.first_difference == -1);
        CHECK(!state.forbidden);
        return any(lines, "T1: relax from GPU 0 3g at 0");
    }
};

}  // namespace

TEST_CASE("memory in use is asked of the first that knows, and of nobody where nobody does") {
    const auto options = test::control_options();
    const auto& host = options.host;
    FakeSmi smi;
    smi.gpus[0] = {{14, 1, 0, 2, true, true, false, 3000}};
    smi.gpus[1] = {{19, 2, 0, 1, true, true, false, 500}};
    NoMig none(host);
    SmiMig real(smi, host.gpus, std::vector<OwnedInstance>{});
    const auto where = [&](std::size_t i) { return host.tenants[i].start; };
    host::detail::MemoryMeter meter;
    for (const bool knows : {true, false}) {
        std::vector<host::detail::MemoryMeter::Source> sources{{"none", &none}};
        if (knows) sources.push_back({"nvidia-smi", &real});
        const auto lines = meter.choose(host, sources);
        REQUIRE(lines.size() == 2);
        CHECK_THAT(lines[0], ContainsSubstring(knows ? "MiB, by nvidia-smi" : "not known to none"));
        auto seen = test::control_window(options, 0);
        for (auto& tenant : seen.tenants) tenant.memory_used_mib = unknown_signal;
        CHECK(meter.read(host, seen, where).empty());
        CHECK((seen.tenants[0].memory_used_mib >= 3000) == knows);
        CHECK((seen.tenants[3].memory_used_mib >= 500) == knows);
    }
}

TEST_CASE("on a host an instance is made smaller where what is in use fits, and is known to") {
    std::vector<std::string> lines;
    {
        Calm h;
        CHECK(h.smaller(lines));
        CHECK(any(lines, "T1: memory in use 3000 MiB, by nvml"));
        CHECK(any(lines, "reconfigure of T1: ok"));
    }
    {
        Calm h;
        h.state.gpus[0].instances[0].used_mib = 10000;  // no smaller profile has that
        CHECK(!h.smaller(lines));
    }
    {
        // What the table's 2g has, and the driver's has not.
        Calm h;
        h.state.gpus[0].instances[0].used_mib = 9800;
        for (unsigned k = 0; k < h.state.profile_count; ++k)
            if (h.state.profiles[k].id == 14) h.state.profiles[k].memory_mib = 9700;
        CHECK(!h.smaller(lines));
        CHECK(any(lines, "T1: memory in use 9956 MiB, by nvml"));
    }
    {
        Calm h;
        h.state.no_memory = true;
        CHECK(!h.smaller(lines));
        CHECK(any(lines, "T1: memory in use not known to nvml: not_supported; while it is not, the instance "
                         "is not made smaller"));
    }
    {
        Calm h;
        h.options.flags.relax = false;
        CHECK(!h.smaller(lines));
        CHECK(!any(lines, "memory in use"));
    }
}

TEST_CASE("memory in use: between looks at the instances it is unknown, and failures come and go") {
    Calm h;
    h.options.flags.dry_run = true;
    h.live.layout_every = 3;
    std::vector<std::string> lines;
    static_cast<void>(h.smaller(lines, 7));
    std::ostringstream text;
    text << std::ifstream(h.audit()).rdbuf();
    std::istringstream log(text.str());
    std::string known;
    for (std::string line; std::getline(log, line);)
        if (!line.starts_with("{\"record\""))
            known += parse_audit_observation(line).tenants[0].memory_used_mib == 3000 ? '1' : '0';
    CHECK(known == "1001001");
}
