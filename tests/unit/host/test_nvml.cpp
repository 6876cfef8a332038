// NVML against a library of the same functions, with failures at every call.
#include "host/nvml_abi.hpp"
#include <gpusched/host/nvml.hpp>
#include <gpusched/host/recovery.hpp>
#include <gpusched/host/replace_instance.hpp>

#include <support/catch.hpp>
#include <support/control_host.hpp>
#include <support/fake_nvml_state.hpp>

#include <cstddef>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Matchers::ContainsSubstring;
using test::FakeNvml;

// The layouts of the 64-bit interface.
static_assert(sizeof(nvml_abi::Placement) == 8 && sizeof(nvml_abi::GpuInstanceInfo) == 24);
static_assert(sizeof(nvml_abi::GpuInstanceProfileInfo) == 48 &&
              offsetof(nvml_abi::GpuInstanceProfileInfo, memory_mib) == 40);
static_assert(sizeof(nvml_abi::ComputeInstanceProfileInfo) == 36);
static_assert(sizeof(nvml_abi::FieldValue) == 40 && offsetof(nvml_abi::FieldValue, value) == 32);
static_assert(sizeof(nvml_abi::GpmMetric) == 40 && offsetof(nvml_abi::GpmMetricsGet, metrics) == 24);

namespace {

const MigDevice& part() { return mig_device("A100-40GB"); }
MigInstance at(const char* key, int start) {
    return {static_cast<std::uint8_t>(part().find(key)), static_cast<std::uint8_t>(start)};
}

struct World {
    ControllerOptions options = test::control_options();
    FakeNvml& state = test::fake_nvml();
    Configuration before{}, after{};

    explicit World(bool disjoint) {
        test::start_afresh(state, part());
        state.has_gpm = true;
        before = {.gpu = 0, .instance = at("2g", 0)};
        after = disjoint ? Configuration{.gpu = 1, .instance = at("2g", 4)}
                         : Configuration{.gpu = 0, .instance = at("4g", 0)};
        put(0, at("2g", 0), true);
        put(0, at("1g", 6), false);
        if (!disjoint) put(0, at("2g", 4), false);
        put(1, at("3g", 0), false);
    }
    void put(unsigned gpu, MigInstance i, bool mine) {
        const auto& p = part().profiles[i.profile];
        constexpr unsigned whole[] = {0, 1, 2, 3,
                                      4, 0, 7, 5};  // profile of the compute instance + 1, by slices
        for (auto& gi : state.gpus[gpu].instances) {
            if (gi.used) continue;
            gi = {gpu,
                  state.next_id++,
                  static_cast<unsigned>(p.id),
                  i.start,
                  static_cast<unsigned>(p.memory_slices),
                  true,
                  mine,
                  false,
                  whole[p.compute_slices]};
            return;
        }
    }
    std::size_t count(bool mine) const {
        std::size_t n = 0;
        for (const auto& gpu : state.gpus)
            for (const auto& gi : gpu.instances) n += gi.used && gi.mine == mine && (mine || gi.compute != 0);
        return n;
    }
    bool stands(const Configuration& c) const {
        for (const auto& gi : state.gpus[static_cast<std::size_t>(c.gpu)].instances)
            if (gi.used && gi.mine && gi.start == c.instance.start &&
                gi.profile == static_cast<unsigned>(part().profiles[c.instance.profile].id))
                return gi.compute != 0;
        return false;
    }
    Feedback change(Nvml& nvml) {
        NvmlMig mig(nvml, options.host.gpus, {0, 1}, {{before.gpu, before.instance}});
        return replace_instance(
            mig, options.host, before, after, [](const Configuration&) { return BackendStatus::ok; },
            [](int) {});
    }
};

/// Both GPUs are found before the calls are counted.
struct Opened {
    Nvml nvml{GPUSCHED_FAKE_NVML};
    explicit Opened(FakeNvml& state) {
        int gpu = -1;
        REQUIRE(nvml.find(0, gpu) == BackendStatus::ok);
        REQUIRE(nvml.find("0000:af:00.0", gpu) == BackendStatus::ok);
        REQUIRE(gpu == 1);
        state.calls = 0;
    }
};

}  // namespace

TEST_CASE("NVML: profiles as the table has them, layouts, a change with explicit starts") {
    for (const bool disjoint : {false, true}) {
        World w(disjoint);
        Opened o(w.state);
        std::vector<NvmlProfile> profiles;
        REQUIRE(o.nvml.profiles(0, profiles) == BackendStatus::ok);
        REQUIRE(profiles.size() == part().profiles.size());
        for (const auto& f : profiles) {
            const auto& p = part().profiles[static_cast<std::size_t>(part().find_id(f.id))];
            CHECK(f == NvmlProfile{p.id, p.nvml_index, p.memory_slices, p.max_count, p.sm_count, p.memory_mib,
                                   p.starts});
        }
        bool enabled = false, pending = true;
        CHECK(o.nvml.mig_enabled(0, enabled, pending) == BackendStatus::ok);
        CHECK((enabled && !pending));
        CHECK(w.change(o.nvml).status == BackendStatus::ok);
        CHECK(w.stands(w.after));
        CHECK(w.count(true) == 1);
        CHECK(w.count(false) == (disjoint ? 2 : 3));
        CHECK(!w.state.forbidden);
    }
    CHECK(test::fake_nvml().initialised == 0);
    CHECK(test::fake_nvml().samples == 0);
}

TEST_CASE("NVML: instances of others are refused; clients keep an instance; incomplete ones are completed") {
    World w(false);
    Opened o(w.state);
    NvmlMig mig(o.nvml, w.options.host.gpus, {0, 1}, {{0, at("2g", 0)}});
    CHECK(mig.destroy(0, at("1g", 6)) == BackendStatus::no_permission);
    CHECK(mig.complete(1, at("3g", 0)) == BackendStatus::no_permission);
    CHECK(mig.create(1, at("3g", 0)) == BackendStatus::insufficient_resources);
    CHECK(mig.destroy(1, at("3g", 0)) == BackendStatus::no_permission);
    auto& own = w.state.gpus[0].instances[0];
    own.client = true;
    CHECK(mig.destroy(0, at("2g", 0)) == BackendStatus::in_use);
    CHECK(w.stands(w.before));
    own.client = false;
    own.compute = 0;
    CHECK(mig.complete(0, at("2g", 0)) == BackendStatus::ok);
    CHECK(w.stands(w.before));
    w.state.gpus[1].mig = false;
    MigLayout layout;
    CHECK(mig.read(1, layout) == BackendStatus::not_supported);
    CHECK(!w.state.forbidden);
}

TEST_CASE("NVML: somebody else who is quicker keeps the instance, and the tenant keeps its own") {
    World w(true);
    Opened o(w.state);
    const auto others = w.count(false);
    w.state.intrude = true;
    const auto f = w.change(o.nvml);
    CHECK(f.status == BackendStatus::insufficient_resources);
    CHECK(f.restored);
    CHECK(w.stands(w.before));
    CHECK(w.count(false) == others + 1);
    CHECK(!w.state.forbidden);
}

TEST_CASE("NVML: every failure at every call: others untouched, what is reported is true") {
    int runs = 0, restored = 0;
    for (const bool disjoint : {false, true})
        for (const bool after_effect : {false, true})
            for (const int code : {1, 2, 3, 4, 6, 10, 15, 16, 17, 19, 23, 29, 999})
                for (int call = 0;; ++call) {
                    World w(disjoint);
                    Opened o(w.state);
                    w.state.fault_at = call;
                    w.state.fault_code = code;
                    w.state.after_effect = after_effect;
                    const auto others = w.count(false);
                    const auto f = w.change(o.nvml);
                    INFO(disjoint << after_effect << " code " << code << " call " << call << " "
                                  << enum_name(f.status));
                    if (w.state.calls <= call) break;
                    ++runs;
                    REQUIRE(f.finished);
                    REQUIRE(!w.state.forbidden);
                    REQUIRE(w.count(false) == others);
                    if (f.status == BackendStatus::ok) {
                        REQUIRE(w.stands(w.after));
                    } else if (f.restored && !freezes(f.status)) {
                        ++restored;
                        REQUIRE(w.stands(w.before));
                        REQUIRE(w.count(true) == 1);
                    }
                }
    CHECK(runs > 1000);
    CHECK(restored > 200);
}

TEST_CASE("NVML: a process that ends at any call: recovery leads to the old or the new instance") {
    int runs = 0;
    for (const bool disjoint : {false, true})
        for (const bool after_effect : {false, true})
            for (int call = 0;; ++call) {
                World w(disjoint);
                const auto others = w.count(false);
                {
                    Opened o(w.state);
                    w.state.fault_at = call;
                    w.state.fault_code = 999;
                    w.state.after_effect = after_effect;
                    w.state.for_good = true;
                    static_cast<void>(w.change(o.nvml));
                }
                if (w.state.calls <= call) break;
                ++runs;
                w.state.fault_at = -1;
                INFO(disjoint << after_effect << " call " << call);
                Opened o(w.state);
                NvmlMig mig(o.nvml, w.options.host.gpus, {0, 1},
                            {{w.before.gpu, w.before.instance}, {w.after.gpu, w.after.instance}});
                Configuration stands;
                REQUIRE(recover_change(
                            mig, w.before, w.after, false,
                            [](const Configuration&) { return BackendStatus::ok; }, [](int) {},
                            stands) == BackendStatus::ok);
                REQUIRE((stands == w.before || stands == w.after));
                REQUIRE(w.stands(stands));
                REQUIRE(w.count(true) == 1);
                REQUIRE(w.count(false) == others);
                REQUIRE(!w.state.forbidden);
            }
    CHECK(runs > 100);
}

TEST_CASE("NVML: PCIe counters and activity, and what drivers have not") {
    World w(false);
    Opened o(w.state);
    auto& gpu = w.state.gpus[0];
    gpu.tx = 5'000'000'000'000ULL, gpu.rx = 7;
    gpu.tx_kb = 3, gpu.rx_kb = 4, gpu.replays = 9;
    double x = 0, sm = 0, dram = 0;
    CHECK(o.nvml.pcie_bytes(0, x) == BackendStatus::ok);
    CHECK(x == 5'000'000'000'007.0);
    CHECK(o.nvml.pcie_rate(0, x) == BackendStatus::ok);
    CHECK(x == 7000);
    CHECK(o.nvml.pcie_replays(0, x) == BackendStatus::ok);
    CHECK(x == 9);
    gpu.sm = 75, gpu.dram = 50;
    CHECK(o.nvml.activity(0, 1, sm, dram) == BackendStatus::not_found);  // one sample only
    CHECK(o.nvml.activity(0, 1, sm, dram) == BackendStatus::ok);
    CHECK(sm == 0.75);
    CHECK(dram == 0.5);
    w.state.has_counters = w.state.has_gpm = false;
    CHECK(o.nvml.pcie_bytes(0, x) == BackendStatus::not_supported);
    CHECK(o.nvml.activity(0, 1, sm, dram) == BackendStatus::not_supported);
    CHECK(o.nvml.pcie_bytes(7, x) == BackendStatus::not_found);

    Nvml old(GPUSCHED_FAKE_NVML_OLD);
    int handle = -1;
    REQUIRE(old.find(0, handle) == BackendStatus::ok);
    CHECK(old.find("0000:3b:00.0", handle) == BackendStatus::not_supported);
    std::vector<NvmlInstance> instances;
    CHECK(old.instances(0, instances) == BackendStatus::not_supported);
    CHECK(old.pcie_bytes(0, x) == BackendStatus::not_supported);
    CHECK(old.activity(0, 1, sm, dram) == BackendStatus::not_supported);
    int made = 0;
    CHECK(old.create_gpu_instance(0, 19, 0, 1, made) == BackendStatus::not_supported);
    CHECK(made == -1);

    CHECK_THROWS_WITH(Nvml("libno-such-library.so.9"), ContainsSubstring("cannot be loaded"));
    CHECK_THROWS_WITH(Nvml("libm.so.6"), ContainsSubstring("no nvmlInit_v2"));
    w.state.init_code = 9;
    CHECK_THROWS_WITH(Nvml(GPUSCHED_FAKE_NVML), ContainsSubstring("nvmlInit_v2 failed: 9"));
}

TEST_CASE("NVML: return codes become failures") {
    using enum BackendStatus;
    for (const auto& [code, status] :
         {std::pair{0, ok}, std::pair{1, invalid_state}, std::pair{3, not_supported},
          std::pair{4, no_permission}, std::pair{6, not_found}, std::pair{10, timeout},
          std::pair{13, not_supported}, std::pair{15, gpu_is_lost}, std::pair{16, reset_required},
          std::pair{17, no_permission}, std::pair{19, in_use}, std::pair{23, insufficient_resources},
          std::pair{29, invalid_state}, std::pair{999, unknown}, std::pair{12345, unknown}})
        CHECK(nvml_status(code) == status);
}
