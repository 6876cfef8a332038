// Structural changes with a failure at every call.
#include <gpusched/host/replace_instance.hpp>

#include <support/catch.hpp>
#include <support/control_host.hpp>

#include <optional>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;

namespace {

/// A MIG interface that fails at one chosen call, before or after its effect.
struct FakeMig final : MigBackend {
    const MigDevice& device = mig_device("A100-40GB");
    std::vector<MigLayout> layouts{2};
    int fail_at = -1;
    bool after_effect = false;
    BackendStatus with = BackendStatus::ok;
    bool every = false;
    int calls = 0;
    bool broke_rules = false;

    BackendStatus call(const auto& effect) {
        const bool fails = calls == fail_at || (every && fail_at >= 0 && calls >= fail_at);
        ++calls;
        if (fails && !after_effect) return with;
        const auto status = effect();
        return fails ? with : status;
    }
    std::optional<std::pair<int, MigInstance>> tenant{};  ///< where it runs: that instance is in use

    BackendStatus create(int gpu, MigInstance instance) override {
        // INSUFFICIENT_RESOURCES says that nothing was made.
        const bool before =
            std::exchange(after_effect, after_effect && with != BackendStatus::insufficient_resources);
        const auto status = made(gpu, instance);
        after_effect = before;
        return status;
    }
    BackendStatus made(int gpu, MigInstance instance) {
        return call([&] {
            auto& layout = layouts[static_cast<std::size_t>(gpu)];
            if (!can_create(device, layout, instance)) return BackendStatus::insufficient_resources;
            layout.add(instance);
            return BackendStatus::ok;
        });
    }
    BackendStatus destroy(int gpu, MigInstance instance) override {
        return call([&] {
            if (tenant == std::pair{gpu, instance}) return BackendStatus::in_use;
            return layouts[static_cast<std::size_t>(gpu)].remove(instance) ? BackendStatus::ok
                                                                           : BackendStatus::not_found;
        });
    }
    BackendStatus read(int gpu, MigLayout& layout) override {
        return call([&] {
            layout = layouts[static_cast<std::size_t>(gpu)];
            return BackendStatus::ok;
        });
    }
};

}  // namespace

TEST_CASE("a change that fails at any call leaves others alone and says what stands") {
    const auto o = test::control_options();
    const auto& device = mig_device("A100-40GB");
    const auto at = [&](const char* key, int start) {
        return MigInstance{static_cast<std::uint8_t>(device.find(key)), static_cast<std::uint8_t>(start)};
    };
    const Configuration before{.gpu = 0, .instance = at("2g", 0)};
    const MigInstance foreign = at("1g", 2), foreign1 = at("2g", 0);
    int restored = 0, done = 0, left = 0;
    for (const auto& after : {Configuration{.gpu = 0, .instance = at("3g", 4)},   // beside
                              Configuration{.gpu = 0, .instance = at("1g", 0)},   // in its place
                              Configuration{.gpu = 1, .instance = at("2g", 2)}})  // elsewhere
        for (int status = 1; status <= 10; ++status)
            for (int fail_at = 0; fail_at < 14; ++fail_at)
                for (int mode = 0; mode < 4; ++mode) {
                    FakeMig mig;
                    mig.layouts[0].add(before.instance);
                    mig.layouts[0].add(foreign);
                    mig.layouts[1].add(foreign1);
                    mig.fail_at = fail_at;
                    mig.with = static_cast<BackendStatus>(status);
                    mig.after_effect = mode & 1;
                    mig.every = mode & 2;
                    int waits = 0;
                    bool moved = false;
                    const auto out = replace_instance(
                        mig, o.host, before, after,
                        [&](const Configuration& to) {
                            moved = to == after;
                            return BackendStatus::ok;
                        },
                        [&](int) { ++waits; });
                    const auto& l0 = mig.layouts[0];
                    const auto& l1 = mig.layouts[1];
                    if (!l0.contains(foreign) || !l1.contains(foreign1)) FAIL("touched another's instance");
                    if (!is_valid(device, l0) || !is_valid(device, l1)) FAIL("an invalid layout");
                    if (!out.finished || waits > 9) FAIL("did not end");
                    const bool has_before = l0.contains(before.instance);
                    const bool has_after =
                        mig.layouts[static_cast<std::size_t>(after.gpu)].contains(after.instance);
                    CAPTURE(status, fail_at, mode);
                    if (out.status == BackendStatus::ok) {
                        ++done;
                        if (has_before || !has_after || !moved) FAIL("claims to be done");
                    } else if (out.restored) {
                        ++restored;
                        if (!has_before) FAIL("claims to have restored");
                        if (has_after && !freezes(out.status)) FAIL("leaves an orphan");
                    } else {
                        ++left;  // the controller freezes
                    }
                }
    CHECK(done > 100);
    CHECK(restored > 100);
    CHECK(left > 100);
}

TEST_CASE("a tenant that went and says that it did not is called back before its new instance is destroyed") {
    const auto o = test::control_options();
    const auto& device = mig_device("A100-40GB");
    const auto at = [&](const char* key, int start) {
        return MigInstance{static_cast<std::uint8_t>(device.find(key)), static_cast<std::uint8_t>(start)};
    };
    const Configuration before{.gpu = 0, .instance = at("2g", 0)}, after{.gpu = 0, .instance = at("3g", 4)};
    for (const bool goes : {false, true})
        for (const bool returns : {false, true}) {
            FakeMig mig;
            mig.layouts[0].add(before.instance);
            mig.tenant = {0, before.instance};
            std::vector<Configuration> asked;
            const auto out = replace_instance(
                mig, o.host, before, after,
                [&](const Configuration& to) {
                    asked.push_back(to);
                    if (to == after ? goes : returns) mig.tenant = {to.gpu, to.instance};
                    return to == before && returns ? BackendStatus::ok : BackendStatus::not_supported;
                },
                [](int) {});
            CHECK(out.status == BackendStatus::not_supported);
            CHECK(asked == std::vector{after, before});
            // Where it cannot be called back both instances stay, and somebody has to look.
            CHECK(out.restored == returns);
            CHECK(mig.layouts[0].contains(before.instance));
            CHECK(mig.layouts[0].contains(after.instance) == !returns);
        }
}
