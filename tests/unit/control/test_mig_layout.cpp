// SPDX-License-Identifier: Apache-2.0
// MIG layouts: published and brute-force counts, and every operation against enumeration of subsets.
#include "support/catch.hpp"

#include <gpusched/control/control.hpp>
#include <gpusched/core/rng.hpp>

using namespace gpusched;
using namespace gpusched::control;

namespace {

using Keys = std::vector<std::string_view>;

/// Validity from the rules as they are written, over sets of slices instead of masks.
bool valid_by_the_rules(const MigDevice& device, const std::vector<MigInstance>& instances) {
    std::set<int> used;
    std::vector<int> counts(device.profiles.size());
    int media = 0;
    for (const auto& i : instances) {
        const auto& p = device.profiles[i.profile];
        if (!(p.starts >> i.start & 1)) return false;
        if (++counts[i.profile] > p.max_count) return false;
        if (p.media && ++media > 1) return false;
        for (int s = i.start; s < i.start + p.memory_slices; ++s)
            if (s >= device.memory_slices || !used.insert(s).second) return false;
    }
    return true;
}

std::vector<MigInstance> every_placement(const MigDevice& device) {
    std::vector<MigInstance> out;
    for (std::size_t p = 0; p < device.profiles.size(); ++p)
        for (int s = 0; s < 8; ++s)
            out.push_back({static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(s)});
    return out;
}

}  // namespace

TEST_CASE("layouts are as many as published") {
    struct Row {
        const char* device;
        Keys keys;
        std::size_t all, maximal, multisets, maximal_multisets;
    };
    for (const auto& row :
         {Row{"A100-40GB", {"1g", "2g", "3g", "4g", "7g"}, 298, 19, 38, 14},
          Row{"H100-80GB", {"1g", "1g.2mem", "2g", "3g", "4g", "7g"}, 723, 78, 78, 38},
          Row{"B200-180GB", {}, 2319, 239, 128, 64}, Row{"A30-24GB", {"1g", "2g", "4g"}, 26, 5, 10, 4},
          Row{"A30-24GB", {}, 76, 17, 20, 8}}) {
        INFO(row.device);
        const auto& device = mig_device(row.device);
        CHECK(count_layouts(device, {.profiles = row.keys}) == row.all);
        CHECK(count_layouts(device, {.profiles = row.keys, .maximal = true}) == row.maximal);
        CHECK(count_layouts(device, {.profiles = row.keys, .multisets = true}) == row.multisets);
        CHECK(count_layouts(device, {.profiles = row.keys, .maximal = true, .multisets = true}) ==
              row.maximal_multisets);
        CHECK(all_layouts(device, row.keys).size() == row.all);
    }
}

TEST_CASE("the tables are consistent, and seven compute slices are never exceeded") {
    for (const auto& device : mig_devices()) {
        INFO(device.name);
        CHECK(&mig_device(device.name) == &device);
        for (std::size_t p = 0; p < device.profiles.size(); ++p) {
            const auto& profile = device.profiles[p];
            CHECK(device.find(profile.key) == static_cast<int>(p));
            if (p > 0) CHECK(device.profiles[p - 1].sm_count <= profile.sm_count);
            for (int s = 0; s < 8; ++s)
                if (profile.starts >> s & 1) CHECK(s + profile.memory_slices <= device.memory_slices);
        }
        for (const auto& layout : all_layouts(device)) {
            int compute = 0;
            for (const auto& i : layout.instances()) compute += device.profiles[i.profile].compute_slices;
            if (compute > 7) FAIL("more than seven compute slices");
        }
    }
    CHECK_THROWS_WITH(mig_device("V100"), Mentions("mig 'V100' one of A100-40GB"));
    CHECK_THROWS_WITH(count_layouts(mig_device("A30-24GB"), {.profiles = {"3g"}}),
                      Mentions("profiles '3g' profile of A30-24GB"));
}

TEST_CASE("validity, creation and enlargement agree with the rules on random sets") {
    Rng rng(1);
    for (const auto& device : mig_devices()) {
        const auto placements = every_placement(device);
        const auto layouts = all_layouts(device);
        for (int round = 0; round < 4000; ++round) {
            std::vector<MigInstance> some;
            for (auto n = rng.below(6); n > 0; --n)
                some.push_back(placements[static_cast<std::size_t>(rng.below(placements.size()))]);
            if (is_valid(device, MigLayout(some)) != valid_by_the_rules(device, some))
                FAIL("validity differs");

            const auto& layout = layouts[static_cast<std::size_t>(rng.below(layouts.size()))];
            std::vector<MigInstance> with(layout.instances().begin(), layout.instances().end());
            const auto more = placements[static_cast<std::size_t>(rng.below(placements.size()))];
            with.push_back(more);
            if (can_create(device, layout, more) != valid_by_the_rules(device, with))
                FAIL("creation differs");
            with.pop_back();
            if (with.empty()) continue;

            const auto own = with[static_cast<std::size_t>(rng.below(with.size()))];
            const auto rest = [&] {
                auto copy = with;
                copy.erase(std::find(copy.begin(), copy.end(), own));
                return copy;
            }();
            std::set<MigInstance> expected;
            for (const auto& candidate : placements) {
                auto after = rest;
                after.push_back(candidate);
                const auto& profile = device.profiles[candidate.profile];
                const auto& now = device.profiles[own.profile];
                const bool larger =
                    profile.sm_count > now.sm_count ||
                    (profile.sm_count == now.sm_count && profile.memory_slices > now.memory_slices);
                if (valid_by_the_rules(device, after) && !profile.media && larger) expected.insert(candidate);
            }
            std::array<MigInstance, 16> found{};
            const auto count = enlargements(device, layout, own, found);
            const std::set<MigInstance> got(found.begin(),
                                            found.begin() + static_cast<std::ptrdiff_t>(count));
            if (got != expected || got.size() != count) FAIL("enlargements differ");
            for (std::size_t i = 1; i < count; ++i)
                if (device.profiles[found[i - 1].profile].sm_count >
                    device.profiles[found[i].profile].sm_count)
                    FAIL("enlargements are not sorted by SMs");
            std::array<MigInstance, 16> falling{};
            const auto again = enlargements(device, layout, own, falling, true);
            if (std::set<MigInstance>(falling.begin(),
                                      falling.begin() + static_cast<std::ptrdiff_t>(again)) != got)
                FAIL("the largest first are other enlargements");
            for (std::size_t i = 1; i < again; ++i)
                if (device.profiles[falling[i - 1].profile].sm_count <
                    device.profiles[falling[i].profile].sm_count)
                    FAIL("the largest enlargements do not come first");
        }
    }
}

TEST_CASE("transitions are valid at every step, complete, and leave common instances alone") {
    Rng rng(2);
    for (const auto& device : mig_devices()) {
        const auto layouts = all_layouts(device);
        for (int round = 0; round < 6000; ++round) {
            const auto& from = layouts[static_cast<std::size_t>(rng.below(layouts.size()))];
            const auto& to = layouts[static_cast<std::size_t>(rng.below(layouts.size()))];
            const auto plan = transition(device, from, to);
            auto now = from;
            bool destroyed = false, created_after_destroying = false;
            for (const auto& step : plan.span()) {
                if (step.kind == MigStep::Kind::create) {
                    if (!can_create(device, now, step.instance) || from.contains(step.instance))
                        FAIL("bad create");
                    now.add(step.instance);
                    created_after_destroying |= destroyed;
                } else {
                    if (to.contains(step.instance) || !now.remove(step.instance)) FAIL("bad destroy");
                    destroyed = true;
                }
                if (!is_valid(device, now)) FAIL("an invalid layout on the way");
            }
            if (!(now == to)) FAIL("the transition does not end where it should");
            if (plan.make_before_break == created_after_destroying) FAIL("make_before_break is wrong");
        }
    }
    const auto& device = mig_device("A100-40GB");
    MigLayout twice;
    twice.add({6, 0});
    twice.add({6, 0});
    CHECK_THROWS_WITH(transition(device, twice, {}), Mentions("from: valid layout"));
}

TEST_CASE("an instance is placed to keep the largest block free") {
    const auto& device = mig_device("A100-40GB");
    const auto at = [&](std::string_view key, int start) {
        return MigInstance{static_cast<std::uint8_t>(device.find(key)), static_cast<std::uint8_t>(start)};
    };
    // Slice 6 leaves 0-5 free; slice 7 cannot be a start.
    CHECK(least_fragmenting(device, {}, device.find("1g")) == at("1g", 0));
    CHECK(least_fragmenting(device, {}, device.find("3g")) == at("3g", 4));
    MigLayout layout;
    layout.add(at("1g", 0));
    CHECK(largest_free_block(device, layout) == 7);
    CHECK(least_fragmenting(device, layout, device.find("1g")) == at("1g", 1));
    CHECK(least_fragmenting(device, layout, device.find("2g")) == at("2g", 2));
    CHECK_FALSE(least_fragmenting(device, layout, device.find("7g")).has_value());
    CHECK_FALSE(least_fragmenting(device, layout, -1).has_value());

    // Against enumeration: nothing that fits leaves a larger block.
    for (const auto& some : all_layouts(device))
        for (std::size_t p = 0; p < device.profiles.size(); ++p) {
            int best = -1;
            for (int s = 0; s < 8; ++s) {
                auto after = some;
                const MigInstance candidate{static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(s)};
                if (!can_create(device, some, candidate)) continue;
                after.add(candidate);
                best = std::max(best, largest_free_block(device, after));
            }
            const auto chosen = least_fragmenting(device, some, static_cast<int>(p));
            if (chosen.has_value() != (best >= 0)) FAIL("a placement is missed");
            if (!chosen) continue;
            auto after = some;
            after.add(*chosen);
            if (largest_free_block(device, after) != best) FAIL("not the largest block");
        }
}
