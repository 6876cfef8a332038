#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/system_command.hpp>

#include <support/catch.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;

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
    const auto slow = shell("echo begun; sleep 60 & sleep 60", 2);
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

namespace {

/// This process answers a signal in another way for a while.
struct Answer {
    int signal;
    void (*before)(int);
    Answer(int which, void (*how)(int)) : signal(which), before(::signal(which, how)) {}
    ~Answer() { ::signal(signal, before); }
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
};

}  // namespace

TEST_CASE("programs: signals are as usual, whatever this process ignores") {
    {
        const Answer ignored(SIGPIPE, SIG_IGN);
        const auto piped = shell("kill -PIPE $$; echo alive");
        CHECK(piped.code == 128 + SIGPIPE);
        CHECK(piped.output.empty());
    }
    const Answer ignored(SIGCHLD, SIG_IGN);
    CHECK_THROWS_WITH(shell("true"), Catch::Matchers::ContainsSubstring("SIGCHLD is ignored"));
}

TEST_CASE("programs: an end that somebody else has seen is an end, with an effect that is not known") {
    // Whoever reaps all children takes ours as well.
    const Answer reaps(SIGCHLD, [](int) {
        int status = 0;
        while (::waitpid(-1, &status, WNOHANG) > 0) {
        }
    });
    const auto start = std::chrono::steady_clock::now();
    // Now and then the end is ours after all, where we look at the moment it comes.
    bool taken = false;
    for (int k = 0; k < 100 && !taken; ++k) {
        const auto result = shell("exit 0", 20);
        taken = result.timed_out;
        CHECK(result.code == (taken ? 128 + SIGKILL : 0));
    }
    CHECK(taken);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
}

TEST_CASE("programs: a note says which one is at work") {
    const auto note =
        (std::filesystem::temp_directory_path() / ("gpusched-test-note-" + std::to_string(::getpid())))
            .string();
    CHECK(program_at_work(note) == 0);
    const std::vector<std::string> arguments{"sleep", "2"};
    SystemCommand command(20, -1, note);
    CommandResult result;
    std::thread other([&] { result = command.run(arguments); });
    std::int64_t process = 0;
    for (int k = 0; k < 200 && process == 0; ++k) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        process = program_at_work(note);
    }
    CHECK(process > 0);
    other.join();
    CHECK(result.code == 0);
    CHECK(program_at_work(note) == 0);
    // A process of that number that was started at another time is another one.
    std::ofstream(note) << ::getpid() << " 1\n";
    CHECK(program_at_work(note) == 0);
    std::filesystem::remove(note);
}
