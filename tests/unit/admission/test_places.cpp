// What displaced tasks need elsewhere: in the order of the search, and in the bound of gangs.
#include "support/admissions.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::admission;
using testing_support::waiting;

namespace places_tests {

ClusterSpec nodes(int count) {
    ClusterSpec spec;
    spec.now = 100'000;
    for (int n = 0; n < count; ++n)
        spec.nodes.push_back({.name = "n" + std::to_string(n), .gpu_model = "A", .gpu_count = 8});
    return spec;
}

void run(ClusterSpec& spec, int node, int first, int gpus, std::int64_t age = 0) {
    auto& task = testing_support::run(spec, "t" + std::to_string(spec.tasks.size()),
                                      "n" + std::to_string(node), first, gpus);
    task.start_time = spec.now - age;
    task.preemptible = true;
}

Admission admitted(const allocation::ClusterWithJob& with, const Options& options = {}) {
    auto made = testing_support::verified(with, options);
    REQUIRE(made.admitted);
    return made;
}

Options counted() {
    Options options{
        .prices = {.move_price_s = 0, .restart_s = 0, .loss_s = 0, .recall_price_s = 0, .task_price_s = 1}};
    options.prices.work = false;
    return options;
}

TEST_CASE("a gang on nodes of 4 + 2 and 4 + 1 + 1: three moves for each pod, proven") {
    // To free 8 GPUs, 4 + 2 must leave; and on the destination of the 4, 2 more must leave.
    auto spec = nodes(50);
    for (int n = 0; n < 50; ++n) {
        run(spec, n, 0, 4);
        if (n % 2 == 0) {
            run(spec, n, 4, 2);
        } else {
            run(spec, n, 4, 1);
            run(spec, n, 5, 1);
        }
    }
    const auto with = waiting(spec, 4, 8);
    const auto by_count = admitted(with, counted());
    CHECK(by_count.plan.moves.size() == 12);
    CHECK(by_count.proven);
    const auto by_price = admitted(with);
    CHECK(by_price.cost.total() == 4 * (4 + 2 + 2) * 30 * 1000);
    CHECK(by_price.proven);
}

TEST_CASE("places that are free for some of the displaced add nothing to the bound") {
    // As above, but 4 GPUs are idle on one node: by the bound a place for a 4 costs nothing then.
    auto spec = nodes(10);
    for (int n = 0; n < 9; ++n) {
        run(spec, n, 0, 4);
        run(spec, n, 4, 2);
    }
    run(spec, 9, 0, 4);
    const auto made = admitted(waiting(spec, 2, 8), counted());
    // The 4 of n9 alone leaves for the first pod; the second takes 4 + 2.
    CHECK(made.plan.moves.size() <= 5);
    REQUIRE(made.bound);
    CHECK(*made.bound <= made.cost.total());
    CHECK(*made.bound >= 3 * 1000);
}

TEST_CASE("on a full cluster the tasks with the least work are lost, wherever they are") {
    // Every node holds 4 + 4 of old work, except one young task on each of n2 and n3.
    auto spec = nodes(6);
    for (int n = 0; n < 6; ++n)
        for (int half = 0; half < 2; ++half)
            run(spec, n, 4 * half, 4, (n == 2 || n == 3) && half == 0 ? 100 : 50'000 + 1000 * n);
    const auto made = admitted(waiting(spec, 1, 8, 10));
    CHECK(made.lost == std::vector{TaskId{4}, TaskId{6}});
    // The old half of one of these nodes takes the place of the young one on the other.
    CHECK(made.plan.moves.size() == 1);
    CHECK(made.cost.moves == 4 * 30 * 1000);
    CHECK(made.cost.lost_work == 2 * 4 * 100 * 1000);
    REQUIRE(made.bound);
    CHECK(*made.bound <= made.cost.total());
    CHECK(*made.bound * 100 >= made.cost.total() * 99);

    // For a gang as many more: those with the next least work.
    const auto gang = admitted(waiting(spec, 2, 8, 10));
    CHECK(gang.lost.size() == 4);
    CHECK(std::count(gang.lost.begin(), gang.lost.end(), TaskId{4}) == 1);
    CHECK(std::count(gang.lost.begin(), gang.lost.end(), TaskId{6}) == 1);
    CHECK(gang.cost.lost_work == 4 * (100 + 100 + 50'000 + 50'000) * std::int64_t{1000});
    CHECK(gang.cost.moves == 4 * 30 * 1000);
}

}  // namespace places_tests
