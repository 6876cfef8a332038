#include <gpusched/control/system_command.hpp>

#include <support/catch.hpp>

#include <chrono>
#include <string>
#include <vector>

using namespace gpusched;
using namespace gpusched::control;

namespace {
CommandResult shell(const char* script, double limit_s = 20) {
    const std::vector<std::string> arguments{"sh", "-c", script};
    return SystemCommand(limit_s).run(arguments);
}
}  // namespace

TEST_CASE("programs: output, errors, codes and signals") {
    const auto both = shell("echo out; echo err >&2; exit 19");
    CHECK(both.code == 19);
    CHECK(both.output == "out\nerr\n");
    CHECK(!both.timed_out);
    CHECK(smi_status(both) == BackendStatus::in_use);
    CHECK(shell("true").code == 0);
    CHECK(shell("kill -9 $$").code == 137);
    CHECK(shell("cat").output.empty());                          // no input
    CHECK(shell("exec >&- 2>&-; sleep 0.1; exit 3").code == 3);  // goes on without output
    CHECK(shell("yes | head -c 3000000").output.size() < 1'100'000);
    const std::vector<std::string> literal{"echo", "$HOME; *"};
    CHECK(SystemCommand().run(literal).output == "$HOME; *\n");  // no shell
}

TEST_CASE("programs: limits, and what cannot be started") {
    const auto start = std::chrono::steady_clock::now();
    const auto slow = shell("echo begun; sleep 60 & sleep 60", 0.3);
    CHECK(slow.timed_out);
    CHECK(slow.output == "begun\n");
    CHECK(smi_status(slow) == BackendStatus::timeout);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    const std::vector<std::string> missing{"no-such-program-anywhere"};
    CHECK_THROWS_AS(SystemCommand().run(missing), BackendError);
    CHECK_THROWS_AS(SystemCommand().run({}), InvalidInput);
    CHECK_THROWS_AS(SystemCommand(0), InvalidInput);
    CHECK_THROWS_AS(SystemCommand(601), InvalidInput);
}
