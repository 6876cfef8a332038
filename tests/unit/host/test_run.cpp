// The controller's loop: when windows begin, late windows, requests to resume and to stop, and what happens at the end.
#include <gpusched/host/run.hpp>

#include <support/catch.hpp>
#include <support/live_host.hpp>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::host;
using test::any;
using test::LiveHost;

namespace {

constexpr std::int64_t second = 1'000'000'000;  // and a window

/// A loop on a clock that moves a quarter of a second whenever the loop waits, so that it never sleeps.
struct Loop {
    LiveHost host{};
    LiveController controller{host.options, host.live, host.audit()};
    ManualClock clock{};
    RunRequests requests{};
    RunOptions options{};
    std::stop_source stop{};
    std::vector<std::string> lines{};
    std::vector<std::int64_t> began{};  ///< the clock when each window had begun, in quarters of a second
    std::function<void(std::int64_t done)> while_waiting{};  ///< after the clock has moved

    Loop() {
        controller.start();
        options.say = [this](const std::string& line) { lines.push_back(line); };
    }
    std::int64_t run() {
        const Context context{
            .stop = stop.get_token(), .clock = &clock, .progress = [this](const Progress& at) {
                if (static_cast<std::size_t>(at.done) > began.size())
                    began.push_back(clock.now_ns() / (second / 4));
                clock.advance(second / 4);
                host.slow();
                if (while_waiting) while_waiting(at.done);
            }};
        const auto windows = host::run(controller, requests, options, context);
        if (static_cast<std::size_t>(windows) > began.size()) began.push_back(clock.now_ns() / (second / 4));
        return windows;
    }
    /// Whether all limits were ended, as the next window says.
    bool released() { return any(controller.window(), "-> disabled (row 1"); }
};

}  // namespace

TEST_CASE("a loop begins a window each window_s, the first after one of them, and releases at the end") {
    Loop loop;
    loop.options.windows = 6;
    CHECK(loop.run() == 6);
    CHECK(loop.began == std::vector<std::int64_t>{4, 8, 12, 16, 20, 24});
    CHECK(loop.lines.front().starts_with("window "));
    CHECK(any(loop.lines, ": reconfigure of T1: ok"));
    CHECK(loop.released());
}

TEST_CASE("a late window begins at once, and those that were missed are not made up for") {
    Loop loop;
    loop.options.windows = 5;
    loop.while_waiting = [&, late = false](std::int64_t done) mutable {
        if (done == 2 && !std::exchange(late, true)) loop.clock.advance(3 * second + second / 4);
    };
    CHECK(loop.run() == 5);
    // The third is due at 12 and begins at 22; the fourth follows it after one look at the clock, and then one a second.
    CHECK(loop.began == std::vector<std::int64_t>{4, 8, 22, 23, 26});
}

TEST_CASE("a loop stops before the next window, by a request or by the context's token") {
    for (const bool by_token : {false, true}) {
        Loop loop;
        loop.while_waiting = [&](std::int64_t done) {
            if (done < 2) return;
            if (by_token)
                loop.stop.request_stop();
            else
                loop.requests.stop();
        };
        CHECK(loop.run() == 2);
        CHECK(loop.released());
    }
    Loop none;
    none.options.windows = 0;
    CHECK(none.run() == 0);
    CHECK(none.released());
}

TEST_CASE("requests to resume are answered while the loop waits, and put off no window") {
    Loop loop;
    loop.options.windows = 3;
    loop.while_waiting = [&](std::int64_t) { loop.requests.resume(); };  // without end
    CHECK(loop.run() == 3);
    CHECK(any(loop.lines, "resume"));
    CHECK(loop.began == std::vector<std::int64_t>{4, 8, 12});
    CHECK_FALSE(any(loop.lines, "window 0: resume"));
}

TEST_CASE("what throws ends the loop after all limits have ended") {
    Loop loop;
    loop.options.windows = 20;
    loop.options.say = [](const std::string&) { throw std::runtime_error("nobody listens"); };
    CHECK_THROWS_WITH(loop.run(), "nobody listens");
    CHECK(loop.released());
    Loop bad;
    bad.options.windows = -1;
    REQUIRE_THROWS_MESSAGE(bad.run(), InvalidInput, "windows: -1; expected at least 0");
}
