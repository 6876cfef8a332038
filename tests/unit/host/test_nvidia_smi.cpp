#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/replace_instance.hpp>

#include <support/catch.hpp>
#include <support/control_host.hpp>
#include <support/fake_smi.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Matchers::ContainsSubstring;
using test::Crash;
using test::FakeSmi;
using Fault = FakeSmi::Fault;

namespace {

const MigDevice& part() { return mig_device("A100-40GB"); }
MigInstance at(const char* key, int start) {
    return {static_cast<std::uint8_t>(part().find(key)), static_cast<std::uint8_t>(start)};
}

struct World {
    ControllerOptions options = test::control_options();
    FakeSmi smi{};
    Configuration before{}, after{};

    explicit World(bool disjoint) {
        before = {.gpu = 0, .instance = at("2g", 0)};
        after = disjoint ? Configuration{.gpu = 1, .instance = at("2g", 4)}
                         : Configuration{.gpu = 0, .instance = at("4g", 0)};
        put(0, at("2g", 0), true);
        put(0, at("1g", 6), false);
        if (!disjoint) put(0, at("2g", 4), false);
        put(1, at("3g", 0), false);
    }
    void put(std::size_t gpu, MigInstance i, bool mine) {
        const auto& p = part().profiles[i.profile];
        smi.gpus[gpu].push_back({p.id, smi.next_id++, i.start, p.memory_slices, true, mine});
    }
    SmiMig backend(bool both = false) {
        std::vector<OwnedInstance> owned{{before.gpu, before.instance}};
        if (both) owned.push_back({after.gpu, after.instance});
        return {smi, options.host.gpus, owned};
    }
    Feedback change(SmiMig& mig) {
        return replace_instance(
            mig, options.host, before, after, [](const Configuration&) { return BackendStatus::ok; },
            [](int) {});
    }
    /// Whether it stands, with its compute instance.
    bool stands(const Configuration& c) const {
        for (const auto& i : smi.gpus[static_cast<std::size_t>(c.gpu)])
            if (i.start == c.instance.start && i.profile == part().profiles[c.instance.profile].id && i.mine)
                return i.compute;
        return false;
    }
    std::size_t mine() const {
        std::size_t n = 0;
        for (const auto& gpu : smi.gpus)
            for (const auto& i : gpu) n += i.mine;
        return n;
    }
    std::size_t foreign() const {
        std::size_t n = 0;
        for (const auto& gpu : smi.gpus)
            for (const auto& i : gpu) n += !i.mine && i.compute;
        return n;
    }
};

}  // namespace

TEST_CASE("a change by nvidia-smi: explicit starts, compute instance before GPU instance") {
    World w(false);
    auto mig = w.backend();
    CHECK(w.change(mig).status == BackendStatus::ok);
    CHECK(w.stands(w.after));
    CHECK(w.mine() == 1);
    std::vector<std::string> writes;
    for (const auto& line : w.smi.log)
        if (line.find("-lgi") == std::string::npos) writes.push_back(line);
    CHECK(writes == std::vector<std::string>{"nvidia-smi mig -dci -gi 1 -i 0 ",
                                             "nvidia-smi mig -dgi -gi 1 -i 0 ",
                                             "nvidia-smi mig -cgi 5:0 -C -i 0 "});
    CHECK(mig.owned().size() == 1);
}

TEST_CASE("instances of others are refused, present or not") {
    World w(false);
    auto mig = w.backend();
    CHECK(mig.destroy(0, at("1g", 6)) == BackendStatus::no_permission);
    CHECK(mig.complete(1, at("3g", 0)) == BackendStatus::no_permission);
    CHECK(mig.create(1, at("3g", 0)) == BackendStatus::insufficient_resources);
    CHECK(mig.destroy(1, at("3g", 0)) == BackendStatus::no_permission);
    // A creation that failed leaves no claim to the place.
    w.smi.fault = Fault::code;
    w.smi.code = 23;
    w.smi.fault_at = w.smi.calls + 1;
    CHECK(mig.create(1, at("2g", 4)) == BackendStatus::insufficient_resources);
    w.put(1, at("2g", 4), false);
    CHECK(mig.destroy(1, at("2g", 4)) == BackendStatus::no_permission);
    CHECK(!w.smi.forbidden);
}

TEST_CASE("somebody else who is quicker keeps the instance, and the tenant keeps its own") {
    World w(true);
    const auto others = w.foreign();
    auto mig = w.backend();
    w.smi.intrude = true;
    const auto f = w.change(mig);
    CHECK(f.status == BackendStatus::insufficient_resources);
    CHECK(f.restored);
    CHECK(w.stands(w.before));
    CHECK(w.foreign() == others + 1);
    CHECK(mig.owned().size() == 1);
    CHECK(mig.destroy(w.after.gpu, w.after.instance) == BackendStatus::no_permission);
    CHECK(!w.smi.forbidden);
}

TEST_CASE("a creation is claimed by the id that is reported") {
    CHECK(parse_created(
              "Successfully created GPU instance ID  9 on GPU  0 using profile MIG 3g.20gb (ID  9)\n"
              "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  9 using profile "
              "MIG 3g.20gb (ID  2)\n") == std::vector<std::int32_t>{9});
    CHECK(parse_created("Successfully created GPU instance ID on\n") == std::vector<std::int32_t>{-1});
    CHECK(parse_created("Unable to create a GPU instance\n").empty());
    // A failure that does not say what it made: what stands there may be anybody's.
    World w(true);
    auto mig = w.backend();
    w.smi.fault = Fault::code_after_effect;
    w.smi.code = 4;
    w.smi.fault_at = 1;
    CHECK(mig.create(1, at("2g", 4)) == BackendStatus::no_permission);
    CHECK(w.smi.gpus[1].size() == 2);
    CHECK(mig.destroy(1, at("2g", 4)) == BackendStatus::no_permission);
    // One that does is ours, half made or not.
    World v(true);
    auto other = v.backend();
    v.smi.fault = Fault::partial;
    v.smi.code = 4;
    v.smi.fault_at = 1;
    CHECK(other.create(1, at("2g", 4)) == BackendStatus::no_permission);
    CHECK(other.destroy(1, at("2g", 4)) == BackendStatus::ok);
    // INSUFFICIENT_RESOURCES for the compute instance: nothing is left behind.
    World u(true);
    auto third = u.backend();
    u.smi.fault = Fault::partial;
    u.smi.code = 23;
    u.smi.fault_at = 1;
    CHECK(third.create(1, at("2g", 4)) == BackendStatus::insufficient_resources);
    CHECK(u.smi.gpus[1].size() == 1);
    CHECK(third.owned().size() == 1);
}

TEST_CASE("GPUs by PCI address, whatever index nvidia-smi has for them") {
    struct Swapped final : Programs {
        FakeSmi& smi;
        explicit Swapped(FakeSmi& on) : smi(on) {}
        CommandResult run(std::span<const std::string> arguments, std::string_view) override {
            std::vector<std::string> mine(arguments.begin(), arguments.end());
            REQUIRE(mine[mine.size() - 2] == "-i");
            const bool first = mine.back() == "0000:3b:00.0";
            REQUIRE((first || mine.back() == "0000:af:00.0"));
            mine.back() = first ? "0" : "1";
            auto result = smi.run(mine);
            // This driver counts the other way round.
            for (auto at = result.output.find("|   "); at != std::string::npos;
                 at = result.output.find("|   ", at + 4))
                if (result.output[at + 4] == '0' || result.output[at + 4] == '1')
                    result.output[at + 4] = first ? '1' : '0';
            return result;
        }
    };
    World w(false);
    Swapped run{w.smi};
    SmiMig mig(run, w.options.host.gpus, {{0, at("2g", 0)}}, {"0000:3b:00.0", "0000:af:00.0"});
    MigLayout layout;
    REQUIRE(mig.read(0, layout) == BackendStatus::ok);
    CHECK(layout.size() == 3);
    CHECK(layout.contains(at("2g", 4)));
    REQUIRE(mig.read(1, layout) == BackendStatus::ok);
    CHECK(layout.contains(at("3g", 0)));
    CHECK(mig.create(1, at("2g", 4)) == BackendStatus::ok);
    CHECK(w.smi.gpus[1].size() == 2);
    CHECK(mig.destroy(1, at("2g", 4)) == BackendStatus::ok);
}

TEST_CASE("every fault at every call: others untouched, and what is reported is true") {
    int runs = 0, restored = 0;
    for (const bool disjoint : {false, true})
        for (const auto fault :
             {Fault::code, Fault::code_after_effect, Fault::hang, Fault::garbage, Fault::partial})
            for (const int code : {3, 4, 6, 10, 15, 16, 19, 23, 29, 999})
                for (int call = 0; call < 30; ++call) {
                    World w(disjoint);
                    const auto others = w.foreign();
                    w.smi.fault = fault;
                    w.smi.code = code;
                    w.smi.fault_at = call;
                    auto mig = w.backend();
                    const auto f = w.change(mig);
                    INFO(disjoint << " fault " << static_cast<int>(fault) << " code " << code << " call "
                                  << call);
                    std::string trace;
                    for (const auto& line : w.smi.log) trace += line + "\n";
                    INFO(trace << enum_name(f.status));
                    if (w.smi.calls <= call) break;  // the change was over before
                    ++runs;
                    REQUIRE(f.finished);
                    REQUIRE(!w.smi.forbidden);
                    REQUIRE(w.foreign() == others);
                    REQUIRE(w.mine() <= 2);
                    if (f.status == BackendStatus::ok) {
                        REQUIRE(w.stands(w.after));
                    } else if (f.restored && !freezes(f.status)) {
                        ++restored;
                        REQUIRE(w.stands(w.before));
                        REQUIRE(w.mine() == 1);
                    }
                }
    CHECK(runs > 200);
    CHECK(restored > 20);
}

TEST_CASE(
    "I18 a crash at any call, before or after its effect: recovery leads to the old or the new instance") {
    int runs = 0;
    for (const bool disjoint : {false, true})
        for (const auto fault : {Fault::crash_before, Fault::crash_after})
            for (int call = 0; call < 30; ++call) {
                World w(disjoint);
                const auto others = w.foreign();
                w.smi.fault = fault;
                w.smi.fault_at = call;
                bool crashed = false;
                try {
                    auto mig = w.backend();
                    static_cast<void>(w.change(mig));
                } catch (const Crash&) {
                    crashed = true;
                }
                if (!crashed) break;
                ++runs;
                INFO(disjoint << " fault " << static_cast<int>(fault) << " call " << call);
                auto restarted = w.backend(true);
                Configuration found;
                const auto status = recover_change(
                    restarted, w.before, w.after, false,
                    [](const Configuration&) { return BackendStatus::ok; }, [](int) {}, found);
                REQUIRE(status == BackendStatus::ok);
                REQUIRE((found == w.before || found == w.after));
                REQUIRE(w.stands(found));
                REQUIRE(w.mine() == 1);
                REQUIRE(w.foreign() == others);
                REQUIRE(!w.smi.forbidden);
            }
    CHECK(runs >= 16);
}

TEST_CASE("exit codes and texts become failures") {
    const auto of = [](int code, const char* text = "", bool timed_out = false) {
        return smi_status({code, timed_out, text});
    };
    CHECK(of(0) == BackendStatus::ok);
    CHECK(of(0, "", true) == BackendStatus::timeout);
    CHECK(of(1, "Unable to destroy: In use by another client") == BackendStatus::in_use);
    CHECK(of(1, "Insufficient Resources") == BackendStatus::insufficient_resources);
    CHECK(of(1, "Insufficient Permissions") == BackendStatus::no_permission);
    CHECK(of(4) == BackendStatus::no_permission);
    CHECK(of(6) == BackendStatus::not_found);
    CHECK(of(15) == BackendStatus::gpu_is_lost);
    CHECK(of(16) == BackendStatus::reset_required);
    CHECK(of(2) == BackendStatus::unknown);
}

TEST_CASE("rows that cannot be read are told") {
    CHECK(parse_lgi("").empty());
    CHECK(parse_lgi("No GPU instances found: Not Found\n").empty());
    CHECK_THROWS_WITH(parse_lgi("|   0  MIG 1g.5gb   x |\n"),
                      ContainsSubstring("row cannot be read: |   0  MIG"));
    CHECK_THROWS_AS(parse_lgi("|   0  MIG 1g.5gb   19   7   0-1 |\n"), BackendError);
    CHECK_THROWS_AS(parse_lgi("|   0  something else |\n"), BackendError);
    CHECK_THROWS_AS(parse_lgip("|   0  MIG 1g.5gb   19   7   0:1 |\n"), BackendError);
    CHECK_THROWS_AS(parse_lgipp("GPU  0 Profile ID 19 Placements: {0,1:1\n"), BackendError);
    CHECK_THROWS_AS(parse_lgipp("GPU  0 Profile ID 99999999999 Placements: {0}:1\n"), BackendError);
}

TEST_CASE("the output of real drivers agrees with the tables") {
    const char* data = std::getenv("GPUSCHED_DATA");
    std::filesystem::path folder = data != nullptr ? data : GPUSCHED_SOURCE_DIR "/../shared/data";
    folder /= "mig";
    if (!std::filesystem::exists(folder)) {
        WARN("no data folder: set GPUSCHED_DATA");
        return;
    }
    const auto text = [&](const char* name) {
        std::ostringstream out;
        out << std::ifstream(folder / name).rdbuf();
        return out.str();
    };
    const auto three = parse_lgi(text("lgi_a30_three_instances.txt"));
    CHECK(three == std::vector<SmiInstance>{{0, 14, 3, 0, 1}, {0, 14, 4, 1, 1}, {0, 5, 2, 2, 2}});
    CHECK(parse_lgi(text("lgi_80gb_fragmented_0_1_5.txt")).back() == SmiInstance{3, 19, 12, 5, 1});
    for (const auto& [file, device] :
         {std::pair{"lgipp_a100_40gb_new_driver.txt", "A100-40GB"},
          std::pair{"lgipp_a100_40gb_old_driver.txt", "A100-40GB"},
          std::pair{"lgipp_a30_24gb_driver535.txt", "A30-24GB"},
          std::pair{"lgipp_h100_80gb.txt", "H100-80GB"}, std::pair{"lgipp_h100_nvl_94gb.txt", "H100-94GB"}}) {
        const auto rows = parse_lgipp(text(file));
        CHECK(rows.size() >= 5);
        for (const auto& row : rows) {
            INFO(file << " profile " << row.profile_id);
            const auto& d = mig_device(device);
            REQUIRE(d.find_id(row.profile_id) >= 0);
            const auto& p = d.profiles[static_cast<std::size_t>(d.find_id(row.profile_id))];
            std::uint8_t starts = 0;
            for (const auto s : row.starts) starts = static_cast<std::uint8_t>(starts | 1u << s);
            CHECK(p.starts == starts);
            CHECK(p.memory_slices == row.size);
        }
    }
    for (const auto& [file, device] :
         {std::pair{"lgip_a30_24gb_driver535.txt", "A30-24GB"}, std::pair{"lgip_h100_80gb.txt", "H100-80GB"},
          std::pair{"lgip_h200_141gb_partial.txt", "H200-141GB"}}) {
        const auto rows = parse_lgip(text(file));
        CHECK(rows.size() >= 5);
        for (const auto& row : rows) {
            INFO(file << " " << row.name);
            const auto& d = mig_device(device);
            REQUIRE(d.find_id(row.id) >= 0);
            const auto& p = d.profiles[static_cast<std::size_t>(d.find_id(row.id))];
            CHECK(p.name == row.name);
            CHECK(p.sm_count == row.sm_count);
            CHECK(p.max_count == row.total);
        }
    }
}
