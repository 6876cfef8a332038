// SPDX-License-Identifier: Apache-2.0
// Ids, GPU masks and errors.
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

using namespace gpusched;

namespace {
enum class Local : std::uint8_t { unused, of_this_file };
}

template <class A, class B>
concept mixes = requires(A a, B b) { a = b; } || requires(A a, B b) { a == b; } || std::convertible_to<A, B>;

TEST_CASE("ids convert to nothing but themselves") {
    static_assert(!mixes<NodeId, TaskId>);
    static_assert(!mixes<TaskId, JobId>);
    static_assert(!mixes<GpuModelId, DomainId>);
    static_assert(!mixes<NodeId, std::uint32_t>);
    static_assert(mixes<NodeId, NodeId>);
    static_assert(sizeof(TaskId) == 4);
    REQUIRE(index(make_id<NodeId>(7)) == 7);
    REQUIRE(none<NodeId> != make_id<NodeId>(0));
}

TEST_CASE("a range of ids counts from zero and skips free slots") {
    const auto visited = [](const LiveIds<NodeId>& ids) {
        std::vector<std::size_t> seen;
        for (const auto node : ids) seen.push_back(index(node));
        return seen;
    };
    REQUIRE(visited({nullptr, 3, 3}) == std::vector<std::size_t>{0, 1, 2});
    REQUIRE(LiveIds<TaskId>(nullptr, 0, 0).begin() == LiveIds<TaskId>(nullptr, 0, 0).end());
    REQUIRE(LiveIds<TaskId>(nullptr, 9, 9).size() == 9);
    const std::uint8_t dead[] = {1, 0, 1, 1, 0, 1};
    REQUIRE(visited({dead, 6, 2}) == std::vector<std::size_t>{1, 4});
    REQUIRE(visited({dead, 1, 0}).empty());
    REQUIRE(LiveIds<NodeId>(dead, 6, 2).size() == 2);
}

TEST_CASE("GPU masks") {
    static_assert(first_gpus(0) == 0);
    static_assert(first_gpus(16) == 0xFFFF);
    static_assert(gpu_bit(15) == 0x8000);
    static_assert(lowest_gpus(0b1011'0100, 2) == 0b0001'0100);
    static_assert(lowest_gpus(0b1011, 0) == 0);
    static_assert(lowest_gpus(0xFFFF, 16) == 0xFFFF);
    REQUIRE(gpu_count(0b1011) == 3);
    std::vector<int> seen;
    for_each_gpu(0b1000'0000'0010'0001, [&](int g) { seen.push_back(g); });
    REQUIRE(seen == std::vector{0, 5, 15});
}

TEST_CASE("problems are thrown together, up to a limit") {
    Problems none_found;
    REQUIRE_NOTHROW(none_found.throw_if_any());

    Problems one;
    one.add("field: is 3; expected 4");
    REQUIRE_THROWS_MATCHES(
        one.throw_if_any(), InvalidInput,
        Catch::Matchers::MessageMatches(Catch::Matchers::Equals("field: is 3; expected 4")));

    Problems many(2);
    for (int i = 0; i < 5; ++i) many.add("problem " + std::to_string(i));
    REQUIRE(many.count() == 5);
    try {
        many.throw_if_any();
        FAIL("nothing was thrown");
    } catch (const InvalidInput& error) {
        REQUIRE(error.problems() == std::vector<std::string>{"problem 0", "problem 1", "... and 3 more"});
        REQUIRE(std::string(error.what()) == "3 problems:\n  - problem 0\n  - problem 1\n  - ... and 3 more");
    }
}

TEST_CASE("values out of range are reported in one form of words, all of them") {
    Problems problems;
    CHECK(check_range(problems, "depth", 16, 1, 16));
    CHECK_FALSE(check_range(problems, "depth", 0, 1, 16));
    CHECK_FALSE(check_range(problems, "gpu_count", std::int64_t{17}, 0, 16, "node 'n'"));
    CHECK_FALSE(check_range(problems, "load", std::numeric_limits<double>::quiet_NaN(), 0, 1.5));
    CHECK_FALSE(check_at_least(problems, "time_limit", -0.5, 0));
    CHECK(check_at_least(problems, "rounds", 1, 1));
    CHECK(testing_support::problems_in<InvalidInput>([&] { problems.throw_if_any(); }) ==
          std::vector<std::string>{"depth: 0; expected 1 to 16", "node 'n': gpu_count: 17; expected 0 to 16",
                                   "load: nan; expected 0 to 1.5", "time_limit: -0.5; expected at least 0"});
    CHECK_THROWS_MESSAGE(require_range("indent", -1, 0, 16), InvalidInput, "indent -1 0 16");
    require_range("indent", 0, 0, 16);
}

TEST_CASE("lists of GPUs and masks") {
    CHECK(gpu_list(0b1001'0010) == std::vector{1, 4, 7});
    CHECK(gpu_list(0).empty());
    std::vector<int> lacking, repeated;
    const std::vector list{3, 0, 4, 3, -1};
    CHECK(gpu_mask(
              list, 4, [&](int gpu) { lacking.push_back(gpu); }, [&](int gpu) { repeated.push_back(gpu); }) ==
          0b1001);
    CHECK(lacking == std::vector{4, -1});
    CHECK(repeated == std::vector{3});
}

TEST_CASE("an order by keys keeps equal ones as they were") {
    const std::vector keys{2, 1, 2, 0, 1};
    CHECK(order_by(keys.size(), [&](std::size_t i) { return keys[i]; }) ==
          std::vector<std::size_t>{3, 1, 4, 0, 2});
    CHECK(order_by(0, [](std::size_t) { return 0; }).empty());
}

TEST_CASE("enumerators have names") {
    CHECK(std::string(enum_name(StopReason::move_budget)) == "move_budget");
    CHECK(std::string(enum_name(static_cast<StopReason>(99))) == "unknown");
    CHECK(std::string(enum_name(Local::of_this_file)) == "of_this_file");
    static_assert(NamedEnum<StopReason> && !NamedEnum<NodeId> && !NamedEnum<int>);
}

TEST_CASE("a reference to a function leaves its object as const as it is") {
    struct Which {
        int operator()(int x) { return x; }
        int operator()(int x) const { return -x; }
    } changeable;
    const Which constant;
    CHECK(FunctionRef<int(int)>(changeable)(3) == 3);
    CHECK(FunctionRef<int(int)>(constant)(3) == -3);
}
