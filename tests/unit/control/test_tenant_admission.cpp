// SPDX-License-Identifier: Apache-2.0
// Admission: places for a newcomer, and the queue of waiting newcomers.
#include "support/control_host.hpp"

#include <gpusched/control/control.hpp>

using namespace gpusched;
using namespace gpusched::control;
using test::control_options;
using test::control_window;

namespace {

/// A host after some windows, and the last of them.
struct Scene {
    ControllerOptions o = control_options();
    ControllerState state = initial_state(o);
    Observation seen{};
    StepResult out{};
    std::int64_t window = 0;

    void go(int n, const std::function<void(Observation&)>& change = {}) {
        for (int k = 0; k < n; ++k) {
            auto next = control_window(o, window++);
            if (change) change(next);
            step(state, next, o, out);
            seen = next;
        }
    }
};

std::vector<std::int64_t> ids(const AdmissionQueue& queue) {
    std::vector<std::int64_t> out;
    for (const auto& n : queue.waiting()) out.push_back(n.id);
    return out;
}

}  // namespace

TEST_CASE("a newcomer gets the least exposed place among the existing instances") {
    Scene s;
    CHECK_FALSE(find_place(s.state, control_window(s.o, 0), s.o, {}));  // no tail was seen yet
    s.go(10, [](Observation& x) { x.roots[0].bytes_per_s = 8e9; });
    const auto place = find_place(s.state, s.seen, s.o, {.profile = "2g"});
    REQUIRE(place);
    CHECK(place->gpu == 1);
    CHECK(can_create(mig_device("A100-40GB"), s.seen.gpus[1].layout, place->instance));
    CHECK(place->worst_ratio < 1);
    s.seen.gpus[1].readable = false;
    CHECK(find_place(s.state, s.seen, s.o, {.profile = "2g"})->gpu == 0);
    s.seen.gpus[0].lost = true;
    CHECK_FALSE(find_place(s.state, s.seen, s.o, {.profile = "2g"}));
}

TEST_CASE("no placement at which a protected tenant would miss its target") {
    Scene s;
    // T1 on GPU 0 is close to its target of 15 ms, T4 on GPU 1 is not.
    s.go(30, [](Observation& x) {
        x.tenants[0].p99_ms = 13.5;
        x.tenants[3].p99_ms = 5;
    });
    const Newcomer busy{.profile = "1g", .pcie_bytes_per_s = 15e9};
    REQUIRE(find_place(s.state, s.seen, s.o, busy));
    CHECK(find_place(s.state, s.seen, s.o, busy)->gpu == 1);
    s.go(30, [](Observation& x) { x.tenants[0].p99_ms = x.tenants[3].p99_ms = 13.5; });
    CHECK_FALSE(find_place(s.state, s.seen, s.o, busy));
    CHECK(find_place(s.state, s.seen, s.o, {.profile = "1g"}));  // one that moves nothing does no harm
    // Its own target counts too: what else is on the root is in its way.
    CHECK(find_place(s.state, s.seen, s.o, {.profile = "1g", .tau_ms = 20, .alone_ms = 10}));
    CHECK_FALSE(find_place(s.state, s.seen, s.o, {.profile = "1g", .tau_ms = 10, .alone_ms = 9.95}));
}

TEST_CASE("against all placements: none that is allowed has a lower score, none that is not is taken") {
    Rng rng(9);
    const auto& device = mig_device("A100-40GB");
    const auto layouts = all_layouts(device);
    int found = 0, none = 0;
    for (int round = 0; round < 300; ++round) {
        Scene s;
        const double tails[] = {4 + 11 * rng.uniform(), 4 + 11 * rng.uniform()};
        const double bytes[] = {20e9 * rng.uniform(), 20e9 * rng.uniform()};
        std::vector<MigLayout> extra(2);
        for (auto& l : extra) l = rng.pick(std::span(layouts));
        s.go(5, [&](Observation& x) {
            for (std::size_t g = 0; g < 2; ++g) {
                x.roots[g].bytes_per_s = bytes[g];
                for (const auto& i : extra[g].instances())
                    if (can_create(device, x.gpus[g].layout, i)) x.gpus[g].layout.add(i);
            }
            x.tenants[0].p99_ms = tails[0];
            x.tenants[3].p99_ms = tails[1];
        });
        const Newcomer n{.profile = rng.chance(0.5) ? "1g" : "2g", .pcie_bytes_per_s = 10e9 * rng.uniform()};
        const auto place = find_place(s.state, s.seen, s.o, n);
        double best = 1e300;
        for (std::int32_t g = 0; g < 2 && s.state.admission_open; ++g) {
            // T1 is on GPU 0 and its root, T4 on GPU 1 and its; what a quarter of the target per root means, see TailModel.
            const std::size_t whose = g == 0 ? 0 : 3;
            const auto& t = s.state.tenants[whose];
            const double slope = std::max(0.0, t.seen.model.coefficients()[1]);
            const double predicted = t.seen.ema.value + slope * n.pcie_bytes_per_s / 22e9;
            if (std::max(predicted, s.state.tenants[3 - whose].seen.ema.value) > 15) continue;
            for (std::uint8_t start = 0; start < 8; ++start) {
                const MigInstance at{static_cast<std::uint8_t>(device.find(n.profile)), start};
                const auto& layout = s.seen.gpus[static_cast<std::size_t>(g)].layout;
                if (!can_create(device, layout, at)) continue;
                auto after = layout;
                after.add(at);
                const double lost = largest_free_block(device, layout) - largest_free_block(device, after);
                best = std::min(best, 0.5 * std::min(1.0, bytes[g] / 22e9) + 0.2 * 0.125 + 0.05 * lost / 8);
            }
        }
        CHECK(place.has_value() == (best < 1e300));
        if (place) CHECK(place->score == Catch::Approx(best).margin(1e-9));
        ++(place ? found : none);
    }
    CHECK(found > 50);
    CHECK(none > 50);
}

TEST_CASE("newcomers wait in turn, by class, in a queue of limited length") {
    Scene s;
    s.go(10);
    AdmissionQueue queue(2);
    CHECK(queue.offer(s.state, s.seen, s.o, {.id = 1}).verdict == AdmissionVerdict::admitted);
    s.state.admission_open = false;  // a protected tenant is out of levers
    CHECK(queue.offer(s.state, s.seen, s.o, {.id = 2, .service_class = 1}).verdict ==
          AdmissionVerdict::queued);
    CHECK(queue.offer(s.state, s.seen, s.o, {.id = 3, .service_class = 1}).verdict ==
          AdmissionVerdict::queued);
    CHECK(queue.offer(s.state, s.seen, s.o, {.id = 4, .service_class = 1}).verdict ==
          AdmissionVerdict::rejected);
    CHECK(queue.offer(s.state, s.seen, s.o, {.id = 5, .service_class = 0}).verdict ==
          AdmissionVerdict::queued);
    CHECK(ids(queue) == std::vector<std::int64_t>{5, 2, 3});
    CHECK_FALSE(queue.next(s.state, s.seen, s.o));
    s.go(1);
    s.state.admission_open = true;
    // No newcomer overtakes a lower class or its own one.
    CHECK(queue.offer(s.state, s.seen, s.o, {.id = 6, .service_class = 0}).verdict ==
          AdmissionVerdict::queued);
    const auto first = queue.next(s.state, s.seen, s.o);
    REQUIRE(first);
    CHECK(first->newcomer.id == 5);
    CHECK(first->verdict == AdmissionVerdict::admitted);
    CHECK(queue.withdraw(6));
    CHECK_FALSE(queue.withdraw(6));
    s.go(1);
    CHECK(queue.next(s.state, s.seen, s.o)->newcomer.id == 2);
    s.go(1);
    CHECK(queue.next(s.state, s.seen, s.o)->newcomer.id == 3);
    s.go(1);
    CHECK_FALSE(queue.next(s.state, s.seen, s.o));
}

TEST_CASE("no place is given twice: an admission shows in the next window, not in this one") {
    Scene s;
    s.go(10);
    AdmissionQueue queue;
    const auto first = queue.offer(s.state, s.seen, s.o, {.id = 1});
    REQUIRE(first.verdict == AdmissionVerdict::admitted);
    CHECK(queue.offer(s.state, s.seen, s.o, {.id = 2}).verdict == AdmissionVerdict::queued);
    CHECK_FALSE(queue.next(s.state, s.seen, s.o));
    s.go(1, [&](Observation& x) {
        x.gpus[static_cast<std::size_t>(first.place->gpu)].layout.add(first.place->instance);
    });
    const auto second = queue.next(s.state, s.seen, s.o);
    REQUIRE(second);
    CHECK((second->place->gpu != first.place->gpu || second->place->instance != first.place->instance));
    CHECK(queue.offer(s.state, s.seen, s.o, {.id = 3}).verdict == AdmissionVerdict::queued);
    CHECK(AdmissionQueue(0).offer(s.state, s.seen, s.o, {.id = 4}).verdict == AdmissionVerdict::admitted);
}

TEST_CASE("the first of a class holds up its class only") {
    Scene s;
    s.go(10);
    AdmissionQueue queue;
    s.state.admission_open = false;
    const auto add = [&](std::int64_t id, std::int32_t service_class, const char* profile) {
        static_cast<void>(queue.offer(s.state, s.seen, s.o,
                                      {.id = id, .service_class = service_class, .profile = profile}));
    };
    add(1, 0, "7g");  // never fits beside what is there
    add(2, 0, "1g");
    add(3, 4, "1g");
    s.state.admission_open = true;
    CHECK(queue.next(s.state, s.seen, s.o)->newcomer.id == 3);
    s.go(1);
    CHECK_FALSE(queue.next(s.state, s.seen, s.o));
    CHECK(queue.withdraw(1));
    CHECK(queue.next(s.state, s.seen, s.o)->newcomer.id == 2);
}

TEST_CASE("newcomers that cannot be are refused by message") {
    Scene s;
    s.go(10);
    CHECK_THROWS_WITH(find_place(s.state, s.seen, s.o, {.profile = "9g"}), Mentions("profile '9g'"));
    CHECK_THROWS_WITH(find_place(s.state, s.seen, s.o, {.pcie_bytes_per_s = unknown_signal}),
                      Mentions("pcie_bytes_per_s nan 0"));
    AdmissionQueue queue(0);
    CHECK_THROWS_WITH(queue.offer(s.state, s.seen, s.o, {.tau_ms = -1}), Mentions("tau_ms -1"));
    CHECK_THROWS_WITH(find_place(s.state, s.seen, s.o, {.tau_ms = 15}),
                      Mentions("alone_ms 0; above 0 tau_ms"));
    // A target that it misses by itself is no matter of waiting.
    CHECK(AdmissionQueue().offer(s.state, s.seen, s.o, {.tau_ms = 5, .alone_ms = 6}).verdict ==
          AdmissionVerdict::rejected);
    s.state.admission_open = false;
    CHECK(queue.offer(s.state, s.seen, s.o, {}).verdict == AdmissionVerdict::rejected);
    CHECK_THROWS_WITH(AdmissionQueue(100'001), Mentions("capacity 100001 0 100000"));
}
