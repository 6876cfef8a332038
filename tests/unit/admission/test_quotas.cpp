// SPDX-License-Identifier: Apache-2.0
// Quotas of tenants: what is held and asked for, each limit by itself, and admission under them.
#include "support/catch.hpp"

#include <gpusched/admission/admission.hpp>

using namespace gpusched;
using namespace gpusched::admission;

namespace {

TaskSpec task(const std::string& name, std::vector<std::string> groups, std::int64_t gpus) {
    return {.name = name,
            .cpu_milli = 4000 * gpus,
            .memory_mib = 100 * gpus,
            .gpu_count = gpus,
            .groups = std::move(groups)};
}

/// Eight GPUs, of which tenant `ads` holds four and lends two more; `mine`, `half`, `both` and `cores` wait.
Cluster cluster() {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_count = 8, .cpu_milli = 64'000, .memory_mib = 10'000});
    auto running = task("running", {"ads"}, 4);
    running.node = "n";
    running.gpus = {0, 1, 2, 3};
    auto lends = task("lends", {"ads"}, 2);
    lends.node = "n";
    lends.gpus = {4, 5};
    lends.standby = true;
    lends.priority_class = PriorityClass::hp;
    auto half = task("half", {"ads"}, 1);
    half.gpu_share_milli = 500;
    auto cores = task("cores", {"maps"}, 0);
    cores.cpu_milli = 9000;
    spec.tasks = {running,
                  lends,
                  half,
                  cores,
                  task("mine", {"ads"}, 2),
                  task("both", {"ads", "maps"}, 1),
                  task("free", {}, 2)};
    return Cluster::build(spec);
}

std::optional<QuotaBreach> breach(const std::vector<std::string>& pods,
                                  const std::vector<TenantQuota>& quotas) {
    const auto snapshot = cluster();
    std::vector<TaskId> ids;
    for (const auto& pod : pods) ids.push_back(snapshot.find_task(pod));
    return find_quota_breach(snapshot, ids, quotas);
}

}  // namespace

TEST_CASE("a tenant's running and lending tasks count, and jobs beyond its quota are refused") {
    CHECK_FALSE(breach({"mine"}, {{.tenant = "ads", .gpu_milli = 8000}}));
    const auto refused = breach({"mine"}, {{.tenant = "ads", .gpu_milli = 7999}});
    REQUIRE(refused);
    CHECK(refused->obstacle == Obstacle::gpu);
    CHECK_THAT(refused->reason, Mentions("quota of tenant 'ads' is 7.999 GPUs: 6 in use, 2 more"));
    // Fractions count as such, pods of a job together; other pending tasks hold nothing.
    CHECK_FALSE(breach({"half"}, {{.tenant = "ads", .gpu_milli = 6500}}));
    CHECK(breach({"half", "mine"}, {{.tenant = "ads", .gpu_milli = 8000}}));
    // Other tenants and tasks without one are not limited; a pod of two tenants counts for both.
    CHECK_FALSE(breach({"free"}, {{.tenant = "ads", .gpu_milli = 0}, {.tenant = "maps", .gpu_milli = 0}}));
    CHECK(breach({"both"}, {{.tenant = "ads"}, {.tenant = "maps", .gpu_milli = 0}})->obstacle ==
          Obstacle::gpu);
    // Above its quota already: only what it would add to is refused.
    CHECK_FALSE(breach({"cores"}, {{.tenant = "maps", .gpu_milli = 0, .cpu_milli = 9000}}));
    CHECK(breach({"half"}, {{.tenant = "ads", .gpu_milli = 1000}}));
    CHECK_FALSE(breach({}, {{.tenant = "ads", .gpu_milli = 0}}));
}

TEST_CASE("quotas of cores, memory and cores per GPU") {
    CHECK_FALSE(breach({"mine"}, {{.tenant = "ads", .cpu_milli = 32'000, .memory_mib = 800}}));
    CHECK_THAT(breach({"mine"}, {{.tenant = "ads", .cpu_milli = 31'999}})->reason,
               Mentions("quota of tenant 'ads' is 31.999 cores: 24 in use, 8 more"));
    const auto memory = breach({"mine"}, {{.tenant = "ads", .memory_mib = 799}});
    CHECK(memory->obstacle == Obstacle::memory);
    CHECK_THAT(memory->reason, Mentions("quota of tenant 'ads' is 799 MiB of memory: 600 in use, 200 more"));
    CHECK_FALSE(breach({"mine"}, {{.tenant = "ads", .cpu_milli_per_gpu = 4000}}));
    const auto many = breach({"mine"}, {{.tenant = "ads", .cpu_milli_per_gpu = 3999}});
    CHECK(many->obstacle == Obstacle::cpu);
    CHECK_THAT(many->reason,
               Mentions("quota of tenant 'ads' is 3.999 cores each GPU: task 'mine' requests 8 for 2 GPUs"));
    // Half a GPU has half of the cores; a task without GPUs has no such limit.
    CHECK(breach({"half"}, {{.tenant = "ads", .cpu_milli_per_gpu = 7999}}));
    CHECK_FALSE(breach({"half"}, {{.tenant = "ads", .cpu_milli_per_gpu = 8000}}));
    CHECK_FALSE(breach({"cores"}, {{.tenant = "maps", .cpu_milli_per_gpu = 0}}));
}

TEST_CASE("no job is admitted beyond a quota, even if evictions are possible") {
    const auto snapshot = cluster();
    const std::vector<TaskId> pods{snapshot.find_task("mine")};
    CHECK(admit(snapshot, pods).admitted);
    CHECK(admit(snapshot, pods, {.quotas = {{.tenant = "ads", .gpu_milli = 8000}}}).admitted);
    const auto refused = admit(snapshot, pods, {.quotas = {{.tenant = "ads", .gpu_milli = 6000}}});
    CHECK_FALSE(refused.admitted);
    CHECK(refused.proven);
    CHECK_FALSE(refused.bound);
    CHECK(refused.obstacle == Obstacle::gpu);
    CHECK_THAT(refused.reason, Mentions("quota of tenant 'ads' is 6 GPUs: 6 in use, 2 more"));
    CHECK(refused.plan == Plan{});
}

TEST_CASE("malformed quotas are refused by message") {
    CHECK_THROWS_MESSAGE(breach({}, {{.gpu_milli = 1}}), InvalidInput, "quotas[0]: tenant: empty");
    CHECK_THROWS_MESSAGE(breach({}, {{.tenant = "a"}, {.tenant = "b", .cpu_milli = -1}}), InvalidInput,
                         "quotas[1]: cpu_milli: -1;");
    const auto snapshot = cluster();
    const std::vector<TaskId> pods{snapshot.find_task("mine")};
    CHECK_THROWS_MESSAGE(admit(snapshot, pods, {.quotas = {{}}}), InvalidInput, "quotas[0]: tenant: empty");
}
