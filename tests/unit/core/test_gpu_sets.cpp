// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

using namespace gpusched;

TEST_CASE("masks hold GPUs 0 to 63", "[core]") {
    CHECK(first_gpus(0) == 0);
    CHECK(first_gpus(1) == 1);
    CHECK(first_gpus(16) == 0xFFFF);
    CHECK(first_gpus(64) == ~GpuMask{0});
    CHECK(gpu_count(first_gpus(64)) == 64);
    CHECK(gpu_bit(63) == GpuMask{1} << 63);
    CHECK(lowest_gpus(~GpuMask{0}, 64) == ~GpuMask{0});
    CHECK(lowest_gpus(gpu_bit(63) | gpu_bit(40) | gpu_bit(3), 2) == (gpu_bit(40) | gpu_bit(3)));
    CHECK(gpu_list(gpu_bit(63) | gpu_bit(32) | 1) == std::vector{0, 32, 63});
    Rng rng(1);
    for (int i = 0; i < 10'000; ++i) {
        const GpuMask mask = rng() & rng();
        REQUIRE(gpu_count(mask) == std::popcount(mask));
        const int count = static_cast<int>(rng.between(0, gpu_count(mask)));
        const auto lowest = lowest_gpus(mask, count);
        REQUIRE(gpu_count(lowest) == count);
        REQUIRE((lowest & ~mask) == 0);
        const auto rest = mask & ~lowest;
        REQUIRE(
            (lowest == 0 || rest == 0 || static_cast<int>(std::bit_width(lowest)) <= std::countr_zero(rest)));
    }
}

TEST_CASE("every set of GPUs is visited once, in ascending order", "[core]") {
    const GpuMask mask = gpu_bit(0) | gpu_bit(5) | gpu_bit(31) | gpu_bit(32) | gpu_bit(63);
    for (int count = 1; count <= 5; ++count) {
        std::vector<GpuMask> sets;
        for_each_gpu_set(mask, count, [&](GpuMask set) { sets.push_back(set); });
        CHECK(std::is_sorted(sets.begin(), sets.end()));
        CHECK(std::set(sets.begin(), sets.end()).size() == sets.size());
        CHECK(static_cast<int>(sets.size()) ==
              std::vector{0, 5, 10, 10, 5, 1}[static_cast<std::size_t>(count)]);
        for (const auto set : sets) CHECK((gpu_count(set) == count && (set & ~mask) == 0));
    }
    int sets = 0;
    for_each_gpu_set(first_gpus(16), 8, [&](GpuMask) { ++sets; });
    CHECK(sets == 12'870);
}

TEST_CASE("with many GPUs, one set grows from each GPU in the order of the key", "[core]") {
    // Islands of 8 GPUs: the key counts islands that a set touches.
    const auto islands = [](GpuMask set) {
        int touched = 0;
        for (int island = 0; island < 8; ++island) touched += (set >> (8 * island) & 0xFF) != 0;
        return touched;
    };
    const GpuMask mask = ~GpuMask{0} & ~gpu_bit(0) & ~gpu_bit(9) & ~gpu_bit(10);
    for (const int count : {1, 2, 7, 8, 9, 16, 61}) {
        int visited = 0, fewest = 9;
        for_each_promising_gpu_set(mask, count, islands, [&](GpuMask set) {
            ++visited;
            CHECK(gpu_count(set) == count);
            CHECK((set & ~mask) == 0);
            fewest = std::min(fewest, islands(set));
        });
        CHECK(visited == 61);
        // Not always the fewest possible: two islands are left with fewer than 8.
        CHECK(fewest == (count <= 8 ? 1 : count == 9 ? 2 : count == 16 ? 3 : 8));
    }
    // Up to 16 candidates: all sets, in the same order as for_each_gpu_set.
    std::vector<GpuMask> all, promising;
    for_each_gpu_set(first_gpus(16) << 20, 3, [&](GpuMask set) { all.push_back(set); });
    for_each_promising_gpu_set(first_gpus(16) << 20, 3, islands,
                               [&](GpuMask set) { promising.push_back(set); });
    CHECK(all == promising);
    for_each_promising_gpu_set(first_gpus(20), 21, islands, [](GpuMask) { FAIL("there is no such set"); });
}
