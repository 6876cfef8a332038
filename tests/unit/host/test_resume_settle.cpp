// What it takes to go on once an operator has looked, by hand.
#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/resume.hpp>

#include <support/catch.hpp>
#include <support/control_host.hpp>
#include <support/fake_smi.hpp>

#include <vector>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;

TEST_CASE("what is settled is the controller's again and whole, where it was to go is nobody's claim") {
    test::FakeSmi smi;
    const auto host = test::control_options().host;
    const auto now = host.tenants[0].start;
    const Configuration other{.gpu = 1, .instance = {3, 2}};
    // T1's own was destroyed, which ended the claim to it; the operator made it again, without a compute instance.
    smi.gpus[0] = {{14, 5, 0, 2, false, true}};
    SmiMig mig(smi, host.gpus, {{other.gpu, other.instance}});
    JournalTenant entry{.name = "T1", .now = now, .pending = other, .switched = false, .drained = true};
    std::vector<Configuration> told;
    CHECK(resume_obstacle(mig, host, entry).empty());
    CHECK(resume_settle(mig, entry, [&](const Configuration& to) {
              told.push_back(to);
              return BackendStatus::ok;
          }).empty());
    CHECK(told == std::vector<Configuration>{now});
    CHECK(!entry.pending);
    CHECK(!entry.drained);
    REQUIRE(mig.owned().size() == 1);
    CHECK(mig.owned()[0] == OwnedInstance{now.gpu, now.instance});
    CHECK(smi.gpus[0][0].compute);
}
