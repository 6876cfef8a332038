// SPDX-License-Identifier: Apache-2.0
// The host simulator: conservation, determinism, what each knob does, and the order of the paper's configurations.
#include "support/catch.hpp"

#include <gpusched/control/audit.hpp>
#include <gpusched/json/json.hpp>
#include <gpusched/sim/sim.hpp>

using namespace gpusched;
using control::Variant;
using control::variant_flags;
using sim::host_scenario;
using sim::HostScenarioName;
using sim::run_host;

TEST_CASE("requests are conserved, and a seed determines the run") {
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.duration_s = 900;
    scenario.pauses.mode = sim::PauseMode::shed;
    const auto run = run_host(scenario, variant_flags(Variant::full), 5);
    const auto again = run_host(scenario, variant_flags(Variant::full), 5);
    CHECK(run.arrived >= run.completed + run.shed);
    CHECK(run.arrived - run.completed - run.shed < 200);  // those in flight at the end
    CHECK(run.shed > 0);
    CHECK(run.missed <= run.completed);
    CHECK(run.p50_ms <= run.p95_ms);
    CHECK(run.p95_ms <= run.p99_ms);
    CHECK(run.p99_ms <= run.p999_ms);
    CHECK(run.p99_ms == again.p99_ms);
    CHECK(run.miss_rate == again.miss_rate);
    CHECK(run.miss_rate == Catch::Approx(static_cast<double>(run.missed + run.shed) /
                                         static_cast<double>(run.completed + run.shed)));
    // Arrivals do not depend on what the controller does.
    CHECK(run_host(scenario, variant_flags(Variant::static_configuration), 5).arrived == run.arrived);
    CHECK(run_host(scenario, variant_flags(Variant::static_configuration), 6).arrived != run.arrived);
}

TEST_CASE("fields of a scenario are flat and have unique names") {
    std::vector<std::string> names;
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.controller.threshold_ms = 20;  // which is left out if it is absent
    json::visit_written_fields(scenario,
                               [&](const char* name, const auto&, const auto&...) { names.push_back(name); });
    CHECK(names.size() == 48);
    for (const char* name : {"duration_s", "tau_ms", "hosts", "t2_weight", "t3_on_s", "beta", "mmpp_rates",
                             "pause_s", "pause_mode", "counter_noise", "llm_requests", "dwell"})
        CHECK(std::count(names.begin(), names.end(), name) == 1);
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("without neighbours a request takes host, transfer and compute time") {
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.duration_s = 200;
    scenario.layout.background_weight = {0, 0};
    scenario.t2.bytes_per_s = 0;
    scenario.t3.beta = 0;
    scenario.requests.noise_sigma = scenario.requests.host_jitter_ms = scenario.requests.io_jitter_ms = 0;
    scenario.requests.mmpp_rates = {0.5, 0.5};
    scenario.requests.classes = {{1, 22e6, 6}};
    const auto run = run_host(scenario, variant_flags(Variant::static_configuration), 1);
    // 0.6 + 22 MB at 22 GB/s + 6, as computed on 2g
    CHECK(run.p50_ms == Catch::Approx(7.6).margin(1e-6));
    scenario.layout.start_profile = "7g";
    CHECK(run_host(scenario, variant_flags(Variant::static_configuration), 1).p50_ms ==
          Catch::Approx(1.6 + 6 * (0.82 + 0.18 * 28 / 98)).margin(1e-6));
    // A background flow of weight .35 that asks for as much takes .35 / 1.35 of the root.
    scenario.layout.start_profile = "2g";
    scenario.layout.background_weight = {0.35, 0.35};
    CHECK(run_host(scenario, variant_flags(Variant::static_configuration), 1).p50_ms ==
          Catch::Approx(6.6 + 1.35).margin(1e-6));
}

TEST_CASE("static is worst and full is best, at few actions and little throughput") {
    const std::vector<std::uint64_t> seeds{21, 22, 23};
    const auto scenario = host_scenario(HostScenarioName::table3);
    const auto mean = [](const std::vector<sim::HostRun>& runs, double sim::HostRun::*field) {
        double sum = 0;
        for (const auto& run : runs) sum += run.*field;
        return sum / static_cast<double>(runs.size());
    };
    const auto worst = sim::simulate_host(scenario, Variant::static_configuration, seeds);
    const auto best = sim::simulate_host(scenario, Variant::full, seeds);
    for (const auto variant : {Variant::guards, Variant::placement, Variant::mig}) {
        INFO(enum_name(variant));
        const auto between = sim::simulate_host(scenario, variant, seeds);
        for (const auto field : {&sim::HostRun::miss_rate, &sim::HostRun::p99_ms}) {
            CHECK(mean(between.runs, field) < mean(worst.runs, field));
            CHECK(mean(between.runs, field) > mean(best.runs, field));
        }
    }
    CHECK(mean(best.runs, &sim::HostRun::miss_rate) < 0.68 * mean(worst.runs, &sim::HostRun::miss_rate));
    CHECK(mean(best.runs, &sim::HostRun::p99_ms) < 0.85 * mean(worst.runs, &sim::HostRun::p99_ms));
    for (const double t : best.throughput) CHECK(t > 0.95);
    for (const auto& run : best.runs) CHECK(run.structural_actions_per_hour < 5);
    for (const auto& run : worst.runs) CHECK(run.structural_actions + run.throttles + run.quota_changes == 0);
}

TEST_CASE("the paper's order: a quota comes with an upgrade and holds from then on") {
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.duration_s = 1800;
    std::string log;
    const auto paper = run_host(scenario, variant_flags(Variant::paper), 0, &log);
    const auto full = run_host(scenario, variant_flags(Variant::full), 0);
    const auto alone = run_host(scenario, variant_flags(Variant::no_guards), 0);
    CHECK(paper.structural_actions > 0);
    CHECK(paper.quota_changes > 0);
    CHECK(full.quota_changes > 0);
    CHECK(alone.quota_changes == 0);
    CHECK(paper.t3_work_s < alone.t3_work_s);
    // No quota is changed by itself while there is a better or a larger instance.
    CHECK(log.find("set_quota") == std::string::npos);
    CHECK(run_host(scenario, variant_flags(Variant::no_placement), 0).throttles > 0);
    CHECK(run_host(scenario, variant_flags(Variant::no_mig), 0).quota_changes > 0);
}

TEST_CASE("threshold and persistence decide when the controller acts, the target which requests miss") {
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.duration_s = 900;
    const auto plain = run_host(scenario, variant_flags(Variant::full), 0);
    const auto alone = run_host(scenario, variant_flags(Variant::static_configuration), 0);
    CHECK(plain.structural_actions > 0);
    auto patient = scenario;
    patient.controller.persistence = 1000;
    CHECK(run_host(patient, variant_flags(Variant::full), 0).structural_actions == 0);
    auto never = scenario;
    never.controller.threshold_ms = 1000;
    const auto idle = run_host(never, variant_flags(Variant::full), 0);
    CHECK(idle.structural_actions + idle.throttles + idle.quota_changes == 0);
    CHECK(idle.missed == alone.missed);  // against the target still
    never.tau_ms = 12;
    CHECK(run_host(never, variant_flags(Variant::static_configuration), 0).missed > alone.missed);
    CHECK(sim::host_options(never, variant_flags(Variant::full)).host.tenants[0].tau_ms == 1000);
    never.controller.threshold_ms = 0;
    CHECK_THROWS_WITH(sim::validate(never), Mentions("threshold_ms 0; more than 0"));
    patient.controller.persistence = 0;
    CHECK_THROWS_WITH(run_host(patient, variant_flags(Variant::full), 0), Mentions("persistence 0"));
}

TEST_CASE("scenarios and formulas reject impossible values") {
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.requests.classes[0].share = 0.5;
    scenario.requests.servers = 0;
    CHECK(testing_support::problems_in<InvalidInput>([&] { sim::validate(scenario); }).size() == 2);
    CHECK(sim::kingman_wait(0.5, 1, 1, 3) == 3);    // M/M/1
    CHECK(sim::kingman_wait(0.5, 1, 0, 3) == 1.5);  // M/D/1
    CHECK(std::isinf(sim::kingman_wait(1, 1, 1, 1)));
    CHECK_THROWS_WITH(sim::kingman_wait(1.5, 1, 1, 1), Mentions("rho 1.5"));
    const double inf = std::numeric_limits<double>::infinity();
    const std::vector<double> demand{5, 20}, open{inf, inf}, limited{inf, 4};
    CHECK_FALSE(sim::is_stable(demand, open, 22, 1, 2));
    CHECK(sim::is_stable(demand, limited, 22, 1, 2));
    CHECK_FALSE(sim::is_stable(demand, limited, 22, 2, 2));
    CHECK_THROWS_WITH(sim::is_stable(demand, std::vector<double>{1}, 22, 1, 2), Mentions("throttle 1"));
}

TEST_CASE("two protected tenants: requests of both count, and each has its own instance") {
    auto scenario = host_scenario(HostScenarioName::two_services);
    scenario.duration_s = 900;
    const auto one =
        run_host(host_scenario(HostScenarioName::table3), variant_flags(Variant::static_configuration), 3);
    const auto both = run_host(scenario, variant_flags(Variant::full), 3);
    CHECK(static_cast<double>(both.arrived) > 0.4 * static_cast<double>(one.arrived));
    CHECK(both.arrived - both.completed - both.shed < 400);
    CHECK(both.slice_s >= 2 * 2 * 900 * 0.999);
    // What T4 sends over the other root does not touch T1: T1's arrivals are as without it.
    scenario.layout.second_service = false;
    const auto alone = run_host(scenario, variant_flags(Variant::static_configuration), 3);
    scenario.layout.second_service = true;
    CHECK(run_host(scenario, variant_flags(Variant::static_configuration), 3).arrived > alone.arrived);
}

TEST_CASE("two hosts of eight GPUs: each has its tenants, its requests and its controller") {
    auto scenario = host_scenario(HostScenarioName::two_hosts);
    scenario.duration_s = 900;
    const auto options = sim::host_options(scenario, variant_flags(Variant::full));
    CHECK(options.host.gpus.size() == 8);
    CHECK(options.host.roots.size() == 4);
    CHECK(options.host.core_numa.size() == 32);
    CHECK(options.host.gpus[3].root == 1);
    CHECK(options.host.gpus[3].numa == 0);
    CHECK(options.host.gpus[4].numa == 1);
    auto single = scenario;
    single.layout.hosts = 1;
    std::string log, other;
    for (const auto variant : {Variant::static_configuration, Variant::full}) {
        log.clear();
        other.clear();
        const auto one = run_host(single, variant_flags(variant), 5, &other);
        const auto two = run_host(scenario, variant_flags(variant), 5, &log);
        CHECK(one.services == 1);
        CHECK(two.services == 2);
        // The first host is the single one; the second has requests of its own.
        CHECK(log == other);
        CHECK(two.arrived > one.arrived);
        CHECK(two.arrived != 2 * one.arrived);
        CHECK(two.completed + two.shed <= two.arrived);
        CHECK(two.slice_s >= 2 * 2 * 900 * 0.999);
        CHECK(two.violation_s >= one.violation_s);
        CHECK(two.violation_s <= 2 * 900);
    }
    // On a host of this size T1 is as it is on a small one until something is done about it.
    auto small = host_scenario(HostScenarioName::table3);
    small.duration_s = 900;
    CHECK(run_host(single, variant_flags(Variant::static_configuration), 5).p99_ms ==
          run_host(small, variant_flags(Variant::static_configuration), 5).p99_ms);
}

TEST_CASE("several trios on a host: each with a hog on its root and a client of its own") {
    auto scenario = host_scenario(HostScenarioName::two_hosts);
    scenario.layout.hosts = 1;
    scenario.layout.trios = 4;
    scenario.layout.second_service = true;
    scenario.duration_s = 1800;
    const auto host = sim::host_options(scenario, variant_flags(Variant::full)).host;
    REQUIRE(host.tenants.size() == 13);
    CHECK(host.tenants[3].name == "T1-2");
    CHECK(host.tenants[3].start.gpu == 2);
    CHECK(host.tenants[11].client_of == 9);
    CHECK(host.tenants[12].name == "T4");
    CHECK(host.tenants[12].start.gpu == 7);
    std::string log;
    const auto flags = variant_flags(Variant::full);
    const auto run = run_host(scenario, flags, 5, &log);
    const auto alone = run_host(scenario, variant_flags(Variant::static_configuration), 5);
    CHECK(run.services == 5);
    CHECK(run.arrived == alone.arrived);
    CHECK(run.miss_rate < alone.miss_rate);
    CHECK(run.t2_bytes > 0);
    CHECK(control::replay_audit(log, sim::host_options(scenario, flags)).first_difference < 0);

    scenario.layout.trios = 5;
    CHECK_THROWS_WITH(sim::validate(scenario), Mentions("trios 5 one per root"));
    scenario.layout.gpus_per_root = 5;
    CHECK_THROWS_WITH(sim::validate(scenario), Mentions("at most 16 GPUs 4 roots"));
    auto pair = host_scenario(HostScenarioName::two_services);
    pair.layout.trios = 2;
    CHECK_THROWS_WITH(sim::validate(pair), Mentions("second_service fewer trios"));
}

TEST_CASE(
    "ours: fewer misses, a lower p99 and less above the target than full, at no more structural changes") {
    for (const auto name : {HostScenarioName::table3, HostScenarioName::neighbours}) {
        const auto scenario = host_scenario(name);
        for (const std::uint64_t seed : {21, 22}) {
            INFO(enum_name(name) << ", seed " << seed);
            const auto full = run_host(scenario, variant_flags(Variant::full), seed);
            const auto ours = run_host(scenario, variant_flags(Variant::ours), seed);
            CHECK(ours.miss_rate < full.miss_rate);
            CHECK(ours.p99_ms < full.p99_ms);
            CHECK(ours.excess_ms < full.excess_ms);
            CHECK(ours.violation_s <= full.violation_s);
            CHECK(ours.structural_actions <= full.structural_actions);
            CHECK(static_cast<double>(ours.completed) > 0.95 * static_cast<double>(ours.arrived));
        }
    }
}

TEST_CASE("fixed placements: all that differ, none of a neighbour's, and each can be run") {
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.duration_s = 60;
    const auto all = sim::fixed_starts(scenario);
    CHECK(all.size() == 10);  // 1g with two memory slices, 2g, 3g, 4g and 7g on either GPU
    for (const auto& starts : all) {
        scenario.layout.starts = starts;
        const auto run = run_host(scenario, variant_flags(Variant::static_configuration), 3);
        CHECK(run.completed > 0);
        CHECK(run.structural_actions == 0);
        const auto& device = control::mig_device(scenario.layout.device);
        CHECK(run.slice_s ==
              Catch::Approx(60.0 * device.profiles[starts[0].instance.profile].compute_slices));
    }
    CHECK(sim::fixed_starts(host_scenario(HostScenarioName::neighbours)).size() == 8);  // no 7g
    const auto pairs = sim::fixed_starts(host_scenario(HostScenarioName::two_services));
    CHECK(pairs.size() > 60);
    for (const auto& starts : pairs) REQUIRE(starts.size() == 2);

    scenario.layout.starts = {{.gpu = 2}, {}};
    CHECK_THROWS_WITH(sim::validate(scenario), Mentions("starts 2 1 to 1"));
    scenario.layout.starts = {{.gpu = 2, .quota_percent = 10}};
    CHECK_THROWS_WITH(sim::validate(scenario),
                      Mentions("starts.gpu 2") && Mentions("starts.quota_percent 10"));
    scenario.layout.starts = {{.instance = {4, 3}}};
    CHECK_THROWS_WITH(sim::validate(scenario), Mentions("starts.instance"));
    // Neighbours do not make room.
    scenario.layout.starts = all.back();
    CHECK_NOTHROW(sim::validate(scenario));
    scenario.layout.neighbours = true;
    CHECK_THROWS_WITH(sim::validate(scenario), Mentions("starts.instance"));
}

TEST_CASE("time above the target: all windows or none, and those in which requests are lost or wait") {
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.duration_s = 300;
    scenario.tau_ms = 0.001;
    CHECK(run_host(scenario, variant_flags(Variant::static_configuration), 1).violation_s == 300);
    scenario.tau_ms = 1e5;
    CHECK(run_host(scenario, variant_flags(Variant::static_configuration), 1).violation_s == 0);
    // Too slow until it is enlarged, which takes a minute. Requests are lost or wait, and none is served.
    scenario.layout.background_weight = {0, 0};
    scenario.t2.bytes_per_s = scenario.t3.beta = 0;
    scenario.requests.noise_sigma = scenario.requests.host_jitter_ms = scenario.requests.io_jitter_ms =
        scenario.requests.serial_fraction = 0;
    scenario.requests.classes = {{1, 1e6, 10}};
    scenario.tau_ms = 10;
    scenario.pauses.mean_s = 60;
    scenario.pauses.sigma_s = 0;
    for (const auto mode : {sim::PauseMode::shed, sim::PauseMode::queue}) {
        scenario.pauses.mode = mode;
        const auto run = run_host(scenario, variant_flags(Variant::mig), 21);
        REQUIRE(run.structural_actions == 1);
        CHECK(run.violation_s >= 60);
        CHECK(run.violation_s <= 80);
    }
}

TEST_CASE("requests held up by a pause do not undo the change that made it") {
    auto scenario = host_scenario(HostScenarioName::table3);
    scenario.pauses.mode = sim::PauseMode::queue;
    scenario.duration_s = 1200;
    for (const auto variant : {Variant::full, Variant::ours}) {
        const auto run = run_host(scenario, variant_flags(variant), 21);
        INFO(enum_name(variant));
        CHECK(run.structural_actions >= 1);
        CHECK(run.rollbacks == 0);
    }
}

TEST_CASE("a request by itself: host, transfer, prefill; then it decodes") {
    auto s = sim::host_scenario(sim::HostScenarioName::llm);
    s.duration_s = 399;
    s.layout.background_weight = {0, 0};
    s.t2.bytes_per_s = 0;
    s.t3.beta = s.requests.noise_sigma = s.requests.host_jitter_ms = s.requests.io_jitter_ms = 0;
    s.llm.requests.clear();
    for (int k = 0; k < 100; ++k) s.llm.requests.push_back({10.0 * k, 1000, 50});
    s.llm.requests_per_s = 0.5;
    s.llm.prompt_bytes_per_token = 22'000;  // 22 MB at 22 GB/s
    s.llm.prefill_ms = 10;
    s.llm.prefill_ms_per_token = 0.05;
    const auto run = run_host(s, control::variant_flags(control::Variant::static_configuration), 1);
    CHECK(run.p50_ms == Catch::Approx(0.6 + 1 + 10 + 50).margin(1e-6));
    CHECK(run.p999_ms == Catch::Approx(run.p50_ms).margin(1e-6));
    // One every two seconds, whatever the trace's own rate; each is decoded in 50 x 8 ms.
    CHECK(run.arrived == 200);
    CHECK(run.completed == 200);
    CHECK(run.decoded == 200);
    // Prefill does not wait for decodes, but is slowed by them.
    s.llm.requests_per_s = 5;
    s.llm.decode_slows = 0.5;
    CHECK(run_host(s, control::variant_flags(control::Variant::static_configuration), 1).p50_ms >
          61.6 + 60 * 0.4);
}

TEST_CASE("LLM mode refuses traces that go back in time") {
    auto s = sim::host_scenario(sim::HostScenarioName::llm);
    s.llm.requests = {{1, 5, 5}, {0.5, 5, 5}};
    CHECK_THROWS_WITH(sim::validate(s), Mentions("at: llm_requests: 1"));
}
