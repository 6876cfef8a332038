// SPDX-License-Identifier: Apache-2.0
// Reading what was written gives the same data, whatever the data within the ranges of single values: also what no cluster would accept.
#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/io/io.hpp>

using namespace gpusched;

namespace {

/// Puts every number of a value into the range of its field.
template <class T, class... Rules>
void put_into_range(T& value, const Rules&... rules) {
    if constexpr (Described<T>) {
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&... own) {
            put_into_range(value.*member, own...);
        });
    } else if constexpr (std::is_same_v<T, Hardware>) {
        if (value.preset.empty()) put_into_range(value.numa_nodes);
    } else if constexpr (requires { value.has_value(); }) {
        if (value) put_into_range(*value, rules...);
    } else if constexpr (requires { value.emplace_back(); } && !std::is_same_v<T, std::string>) {
        for (auto& element : value) put_into_range(element, rules...);
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        const auto range = range_of<T>(rules...);
        value = std::clamp(value, range.low, range.high);
    }
}

class Anything {
  public:
    explicit Anything(std::uint64_t seed) : rng_(seed) {}

    bool flag() { return rng_.chance(0.5); }

    std::int64_t integer() {
        switch (rng_.below(4)) {
        case 0:
            return rng_.between(-3, 3);
        case 1:
            return flag() ? INT64_MAX : INT64_MIN;
        case 2:
            return static_cast<std::int64_t>(rng_() >> rng_.below(64));
        default:
            return -static_cast<std::int64_t>(rng_() >> (1 + rng_.below(63)));
        }
    }
    int small() {
        return flag() ? static_cast<int>(rng_.below(16))
                      : static_cast<int>(static_cast<std::uint32_t>(rng_()));
    }
    double real() {
        for (;;)
            if (const auto value = std::bit_cast<double>(rng_()); std::isfinite(value)) return value;
    }
    /// Every kind of code point that UTF-8 has.
    std::string text() {
        static constexpr std::array<const char*, 16> parts{
            "a",    "Z9", "\"",     "\\",     "/",      "\n",     "\t",         "\x01",
            "\x7f", " ",  "\u00e9", "\u20ac", "\ufeff", "\uffff", "\U0001F600", "\U0010ffff"};
        std::string out;
        for (auto n = rng_.below(6); n > 0; --n) out += parts[rng_.below(parts.size())];
        if (rng_.chance(0.05)) out += '\0';
        return out;
    }
    template <class Make>
    auto several(Make make) {
        std::vector<decltype(make())> out;
        for (auto n = rng_.below(4); n > 0; --n) out.push_back(make());
        return out;
    }
    template <class Make>
    auto perhaps(Make make) {
        return flag() ? std::optional(make()) : std::nullopt;
    }
    Labels labels() {
        Labels out;
        for (auto n = rng_.below(4); n > 0; --n) out[text()] = text();
        return out;
    }
    Level level() { return flag() ? node_level : static_cast<Level>(rng_() >> 33); }
    /// One that the cluster's label levels have, too.
    Level any_level() {
        return static_cast<Level>(rng_.below(first_label_level + label_levels_.size() + 1)) - 1;
    }
    template <class E>
    E one_of(std::initializer_list<E> values) {
        return *(values.begin() + rng_.below(values.size()));
    }

    Hardware hardware() {
        if (flag()) return *hardware_preset(one_of<const char*>({"rtx4090x8", "a100x8", "h100x8"}));
        return {"", several([&] { return NumaNode{small(), small(), static_cast<GpuMask>(rng_())}; })};
    }
    NodeSpec node() {
        return {.name = text(),
                .gpu_model = text(),
                .gpu_count = integer(),
                .cpu_milli = integer(),
                .memory_mib = integer(),
                .gpu_memory_mib = perhaps([&] { return integer(); }),
                .schedulable = flag(),
                .network = several([&] { return text(); }),
                .labels = labels(),
                .taints = several([&] {
                    return Taint{text(), text(), text()};
                }),
                .hardware = perhaps([&] { return hardware(); }),
                .failed_gpus = several([&] { return small(); }),
                .resources = resources(),
                .devices = several([&] {
                    return DeviceSpec{text(), integer(), several([&] { return small(); }), integer()};
                }),
                .eviction_count = integer()};
    }
    Resources resources() {
        Resources out;
        for (auto n = rng_.below(3); n > 0; --n) out[text()] = integer();
        return out;
    }
    NodeMatch match() {
        return {text(),
                one_of({MatchOperator::in, MatchOperator::not_in, MatchOperator::exists,
                        MatchOperator::does_not_exist, MatchOperator::gt, MatchOperator::lt}),
                several([&] { return text(); })};
    }
    TaskSpec task() {
        TaskSpec t{.name = text(),
                   .job = text(),
                   .cpu_milli = integer(),
                   .memory_mib = integer(),
                   .gpu_count = integer(),
                   .gpu_share_milli = integer(),
                   .gpu_memory_mib = integer(),
                   .gpu_models = several([&] { return text(); }),
                   .priority = integer(),
                   .priority_class = one_of({PriorityClass::hp, PriorityClass::lp, PriorityClass::other}),
                   .locked = flag(),
                   .preemptible = perhaps([&] { return flag(); }),
                   .standby = flag(),
                   .daemon = flag(),
                   .node_selector = labels()};
        t.tolerations = several([&] { return Toleration{text(), text(), text(), text()}; });
        t.anti_affinity = several([&] { return AntiAffinity{text(), any_level(), small()}; });
        t.affinity = several([&] { return Affinity{text(), any_level()}; });
        t.network_affinity = perhaps([&] {
            return NetworkAffinity{level(), one_of({NetworkMode::required, NetworkMode::preferred})};
        });
        t.hardware_affinity = several([&] {
            return HardwareAffinity{one_of({HardwareLevel::numa, HardwareLevel::socket}),
                                    one_of({HardwareQos::guaranteed, HardwareQos::best_effort})};
        });
        t.cpu_local = flag();
        t.cores = perhaps([&] { return several([&] { return small(); }); });
        t.move_cost = integer();
        t.start_time = integer();
        t.last_checkpoint_time = perhaps([&] { return integer(); });
        t.checkpoint_interval = integer();
        t.eviction_count = integer();
        t.node = perhaps([&] { return text(); });
        t.gpus = several([&] { return small(); });
        if (flag()) return t;
        t.how = one_of({Mobility::copy, Mobility::restart, Mobility::suspend, Mobility::none});
        t.resources = resources();
        t.device_count = integer();
        t.device_classes = several([&] { return text(); });
        t.node_affinity = several([&] {
            return NodeTerm{several([&] { return match(); }), several([&] { return match(); })};
        });
        t.groups = several([&] { return text(); });
        t.avoid = several([&] { return Avoid{text(), any_level()}; });
        t.near = several([&] { return Near{text(), any_level()}; });
        t.spread = several([&] { return Spread{text(), any_level(), integer(), integer(), flag(), flag()}; });
        if (flag()) t.subgroup = text();
        // Only of a task that runs and asks for some can the GPUs be unknown.
        t.assign_gpus = t.node && t.gpus.empty() && (t.gpu_count > 0 || t.device_count > 0) && flag();
        return t;
    }
    ClusterSpec cluster() {
        label_levels_.clear();
        for (auto n = rng_.below(3); n > 0; --n) label_levels_.push_back(std::to_string(n) + text());
        return {.now = integer(),
                .nodes = several([&] { return node(); }),
                .tasks = several([&] { return task(); }),
                .jobs = several([&] {
                    return JobSpec{text(), integer(), perhaps([&] { return integer(); }), several([&] {
                                       return SubgroupSpec{text(), integer()};
                                   })};
                }),
                .budgets = several([&] {
                    return BudgetSpec{text(), several([&] { return text(); }),
                                      several([&] { return text(); }), integer(), flag()};
                }),
                .label_levels = label_levels_};
    }
    PlanSpec plan() {
        const auto gpus = [&] {
            auto distinct = several([&] { return static_cast<int>(rng_.below(64)); });
            std::sort(distinct.begin(), distinct.end());
            distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
            return distinct;
        };
        const auto wave = [&] { return static_cast<std::int64_t>(rng_.below(std::uint64_t{1} << 32)); };
        PlanSpec p{.waves = wave(),
                   .moves = several([&] {
                       PlanSpec::Move m{text(), text(), text(), gpus(), wave()};
                       if (flag()) return m;
                       if (flag()) m.how = MoveMode::restart;
                       m.chain = perhaps([&] { return wave() % INT32_MAX; });
                       if (flag()) m.serves = text();
                       return m;
                   }),
                   .vacated_nodes = several([&] { return text(); }),
                   .evictions = several([&] { return text(); }),
                   .placements = several([&] {
                       return PlanSpec::Placement{text(), text(), gpus()};
                   }),
                   .bound = {integer(), integer(), integer(), text()}};
        for (auto n = rng_.below(4); n > 0; --n) p.stats[text()] = real();
        if (flag()) p.opened_nodes = several([&] { return text(); });
        p.goal = perhaps([&] {
            return Goal{perhaps([&] { return integer(); }), perhaps([&] {
                            return SlotShape{static_cast<int>(wave() % 64), integer(), integer()};
                        }),
                        perhaps([&] { return integer(); }), text()};
        });
        p.goal_reached = perhaps([&] { return flag(); });
        return p;
    }
    int indent() { return static_cast<int>(rng_.below(3)); }

  private:
    Rng rng_;
    std::vector<std::string> label_levels_{};
};

}  // namespace

TEST_CASE("Clusters survive writing and reading", "[property]") {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        INFO("seed " << seed);
        Anything anything(seed);
        auto spec = anything.cluster();
        put_into_range(spec);
        for (auto& task : spec.tasks)  // what asks for none can say that it holds none
            task.assign_gpus = task.assign_gpus && (task.gpu_count > 0 || task.device_count > 0);
        const auto text = io::cluster_to_json(spec, anything.indent());
        const auto back = io::cluster_from_json(text);
        REQUIRE(back == spec);
        REQUIRE(io::cluster_to_json(back) == io::cluster_to_json(spec));
    }
}

TEST_CASE("Plans survive writing and reading", "[property]") {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        INFO("seed " << seed);
        Anything anything(seed);
        auto plan = anything.plan();
        put_into_range(plan);
        const auto text = io::plan_to_json(plan, anything.indent());
        const auto back = io::plan_from_json(text);
        REQUIRE(back == plan);
        REQUIRE(io::plan_to_json(back) == io::plan_to_json(plan));
    }
}
