// Latencies from files, sockets and histograms, with garbage and sources that vanish.
#include <gpusched/core/errors.hpp>
#include <gpusched/host/latency_source.hpp>

#include <support/catch.hpp>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Approx;

namespace {

struct Folder {
    std::filesystem::path path{};
    Folder() {
        std::string pattern = "/tmp/gpusched-test-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        path = pattern;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string operator/(const char* name) const { return (path / name).string(); }
};

void append(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::app) << text; }
void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

bool send(const std::string& path, const std::string& text) {
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM, 0);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path.data(), path.size());
    const auto n =
        ::sendto(fd, text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    ::close(fd);
    return n == static_cast<ssize_t>(text.size());
}

constexpr double inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("lines of latencies: requests, arrivals, pieces, garbage") {
    LatencyLines lines(15);
    lines.feed("10\n20.5\r\n+3\n  7 \n");
    auto w = lines.end_window(true);
    CHECK(w.count == 3);
    CHECK(w.misses == 1);
    CHECK(w.arrived == 3);
    CHECK(w.p99_ms == Approx(20.5).epsilon(0.01));
    CHECK(w.ignored == 0);
    lines.feed("1");
    CHECK(lines.end_window(true).count == 0);  // the line has not ended
    lines.feed("5\nx\n1 2\n-3\n1e9\nnan\ninf\n+\n+-1\n++2\n\n");
    lines.feed(std::string(1000, '9') + "\n4\n");
    lines.feed(std::string(1, '\0') + "\xff\xfe\n");
    w = lines.end_window(true);
    CHECK(w.count == 2);
    CHECK(w.misses == 0);
    CHECK(w.arrived == 0);
    CHECK(w.ignored == 11);
    // Three windows count for quantiles, one for counts.
    for (int k = 0; k < 3; ++k) w = lines.end_window(true);
    CHECK(w.count == 0);
    CHECK(std::isnan(w.p99_ms));
    CHECK(LatencyLines(15).end_window(true).arrived == -1);
}

TEST_CASE("the tail of a file: from its end, over rotation, truncation and absence") {
    Folder f;
    const auto path = f / "t1.log";
    append(path, "900\n901\n");
    LatencyFile file(path, 15);
    CHECK(file.window().count == 0);  // what was there before
    append(path, "10\n20\n3");
    auto w = file.window();
    CHECK(w.known);
    CHECK(w.count == 2);
    append(path, "0\n");
    w = file.window();
    CHECK(w.count == 1);  // 30
    CHECK(w.misses == 1);
    // Rotated: the last lines of the old one, all of the new one.
    append(path, "40\n");
    std::filesystem::rename(path, f / "t1.log.1");
    append(path, "50\n51\n");
    w = file.window();
    CHECK(w.count == 3);
    CHECK(w.misses == 3);
    // Truncated and written anew, shorter than before.
    put(path, "6\n");
    w = file.window();
    CHECK(w.count == 1);
    CHECK(w.misses == 0);
    // Gone, and back.
    std::filesystem::remove(path);
    CHECK(!file.window().known);
    CHECK(!file.window().known);
    append(path, "12\n");
    w = file.window();
    CHECK(w.known);
    CHECK(w.count == 1);

    LatencyFile late(f / "later.log", 15);
    CHECK(!late.window().known);
    append(f / "later.log", "12\n13\n");
    CHECK(late.window().count == 2);  // it came while we were looking: all of it is new
    LatencyFile folder(f.path.string(), 15);
    CHECK(!folder.window().known);
}

TEST_CASE(
    "a Unix socket: datagrams of lines, garbage, a file that is removed, one that is served by others") {
    Folder f;
    const auto path = f / "t1.sock";
    {
        LatencySocket source(path, 15);
        CHECK(source.window().known);
        REQUIRE(send(path, "10\n20\n"));
        REQUIRE(send(path, "30"));  // a datagram ends a line
        REQUIRE(send(path, "+4\n"));
        REQUIRE(send(path, std::string("\xff\x00garbage", 9)));
        auto w = source.window();
        CHECK(w.known);
        CHECK(w.count == 3);
        CHECK(w.misses == 2);
        CHECK(w.arrived == 4);
        CHECK(w.ignored == 1);
        // Somebody removes the file: what is under way is read, and it is made again.
        std::filesystem::remove(path);
        CHECK(source.window().known);
        REQUIRE(send(path, "11\n"));
        CHECK(source.window().count == 1);
        // A second one may not take it away.
        LatencySocket second(path, 15);
        CHECK(!second.window().known);
        REQUIRE(send(path, "12\n"));
        CHECK(source.window().count == 1);
    }
    CHECK(!std::filesystem::exists(path));
    // A file that a process left which is gone.
    {
        const int fd = ::socket(AF_UNIX, SOCK_DGRAM, 0);
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::memcpy(at.sun_path, path.data(), path.size());
        REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
        ::close(fd);
    }
    LatencySocket again(path, 15);
    CHECK(again.window().known);
    // Something else of that name is left alone, and there is no source.
    put(f / "file", "text");
    LatencySocket file(f / "file", 15);
    CHECK(!file.window().known);
    CHECK(std::filesystem::file_size(f / "file") == 4);
    CHECK_THROWS_AS(LatencySocket(std::string(200, 'x'), 15), InvalidInput);
    CHECK_THROWS_AS(LatencySocket("", 15), InvalidInput);
    LatencySocket nowhere(f / "no/such/folder", 15);
    CHECK(!nowhere.window().known);
}

TEST_CASE("a socket file that is removed while servers send") {
    const Folder f;
    const auto path = f / "s";
    LatencySocket source(path, 15);
    std::atomic<bool> stop = false;
    std::atomic<std::int64_t> sent = 0;
    std::thread server([&] {
        while (!stop)
            if (send(path, "1\n")) ++sent;
    });
    std::int64_t received = 0;
    for (int i = 0; i < 200; ++i) {
        if (i % 2 == 0) std::filesystem::remove(path);
        const auto w = source.window();
        CHECK(w.known);
        CHECK(w.ignored == 0);
        received += w.count;
    }
    while (sent == 0) std::this_thread::yield();
    stop = true;
    server.join();
    received += source.window().count;
    CHECK(received > 0);
    CHECK(received <= sent);
}

TEST_CASE("a Unix socket: a server never waits for the end of a window, and others than root may send") {
    Folder f;
    const auto path = f / "t1.sock";
    LatencySocket source(path, 15);
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) ==
          static_cast<std::filesystem::perms>(0666));
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, path.data(), path.size());
    REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    const timeval patience{10, 0};
    REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0);
    for (int k = 0; k < 500; ++k) REQUIRE(::send(fd, "10\n", 3, 0) == 3);
    CHECK(source.window().count == 500);
    // A datagram that is too long is cut: what was a number there is none.
    const int room = 400'000;
    REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    const auto text = std::string(65534, '\n') + "1500.0\n";
    REQUIRE(::send(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    const auto w = source.window();
    CHECK(w.count == 0);
    CHECK(w.ignored == 1);
    ::close(fd);
}

TEST_CASE(
    "a histogram of several series: one that is new brings no past, one that restarts takes none away") {
    Folder f;
    const auto path = f / "metrics.prom";
    const auto series = [](const char* pod, int a, int b) {
        const auto line = [&](const char* bound, int n) {
            return std::string("r_bucket{pod=\"") + pod + "\",le=\"" + bound + "\"} " + std::to_string(n) +
                   "\n";
        };
        return line("0.01", a) + line("1", b) + line("+Inf", b);
    };
    LatencyHistogram source(path, "r", {}, 1000, 15);
    put(path, series("a", 100, 100));
    CHECK(!source.window().known);
    put(path, series("a", 200, 200));
    CHECK(source.window().count == 100);
    put(path, series("a", 300, 300) + series("b", 0, 1'000'000));
    auto w = source.window();
    CHECK(w.count == 100);
    CHECK(w.misses == 0);
    put(path, series("a", 5, 5) + series("b", 200, 1'000'500));
    w = source.window();
    CHECK(w.known);
    CHECK(w.count == 500);
    CHECK(w.misses > 250);
    put(path, series("b", 200, 1'000'500));
    CHECK(source.window().count == 0);
}

TEST_CASE("quantiles of a Prometheus histogram by its rule") {
    const CumulativeHistogram h{{0.01, 50}, {0.02, 90}, {0.05, 99}, {inf, 100}};
    CHECK(histogram_quantile(0.5, h) == Approx(0.01));
    CHECK(histogram_quantile(0.25, h) == Approx(0.005));
    CHECK(histogram_quantile(0.7, h) == Approx(0.015));
    CHECK(histogram_quantile(0.99, h) == Approx(0.05));
    CHECK(histogram_quantile(0.999, h) == Approx(0.05));  // beyond the last finite bound
    CHECK(histogram_quantile(0, h) == 0);
    CHECK(histogram_quantile(0.1, {{-1, 5}, {0, 10}, {inf, 10}}) == -1);
    CHECK(histogram_quantile(0.9, {{0, 0}, {1, 10}, {inf, 10}}) == Approx(0.9));
    CHECK(std::isnan(histogram_quantile(0.5, {})));
    CHECK(std::isnan(histogram_quantile(0.5, {{inf, 5}})));
    CHECK(std::isnan(histogram_quantile(0.5, {{1, 5}, {2, 5}})));  // no +Inf
    CHECK(std::isnan(histogram_quantile(0.5, {{1, 0}, {inf, 0}})));
    CHECK(std::isnan(histogram_quantile(unknown_signal, h)));
    CHECK(histogram_quantile(0.5, {{1, 10}, {2, 4}, {inf, 10}}) == Approx(0.5));  // torn: counts do not fall
    CHECK(histogram_count_below(0.015, h) == Approx(70));
    CHECK(histogram_count_below(0.02, h) == 90);
    CHECK(histogram_count_below(7, h) == 99);
    CHECK(histogram_count_below(0, h) == 0);
    CHECK(histogram_count_below(1, {}) == 0);
}

TEST_CASE("Prometheus text: series that fit, escapes, and lines that cannot be read") {
    constexpr const char* text = "# HELP t_seconds requests\n# TYPE t_seconds histogram\n"
                                 "t_seconds_bucket{model=\"a\",le=\"0.01\"} 5\n"
                                 "t_seconds_bucket{model=\"a\",le=\"+Inf\"} 7 1700000000000\n"
                                 "t_seconds_bucket{le=\"0.01\",model=\"b \\\"x\\\"\",} 1\n"
                                 "t_seconds_bucket{le=\"+Inf\",model=\"b \\\"x\\\"\"} 2\n"
                                 "t_seconds_bucket_other{le=\"1\"} 99\nt_seconds_sum 3\nt_seconds_count 9\n"
                                 "t_seconds_bucket{model=\"a\"} 5\n"
                                 "t_seconds_bucket{model=\"a\",le=\"0.02\"} many\n"
                                 "t_seconds_bucket{model=\"a\",le=\"0.02\n"
                                 "t_seconds_bucket{model=\"a\",le=\"0.02\"} -1\n";
    std::int64_t ignored = 0;
    const auto all = parse_prometheus_histogram(text, "t_seconds", {}, ignored);
    REQUIRE(all.has_value());
    CHECK(*all == CumulativeHistogram{{0.01, 6}, {inf, 9}});
    CHECK(ignored == 4);
    const auto b = parse_prometheus_histogram(text, "t_seconds", {{"model", "b \"x\""}}, ignored);
    REQUIRE(b.has_value());
    CHECK(*b == CumulativeHistogram{{0.01, 1}, {inf, 2}});
    CHECK(!parse_prometheus_histogram(text, "t_seconds", {{"model", "c"}}, ignored).has_value());
    CHECK(!parse_prometheus_histogram("\xff{}\n\n}}}}", "t_seconds", {}, ignored).has_value());
}

TEST_CASE("a histogram that grows, is reset, changes its buckets, vanishes and comes back") {
    Folder f;
    const auto path = f / "metrics.prom";
    const auto write = [&](int a, int b, int c) {
        put(path, "r_bucket{le=\"0.01\"} " + std::to_string(a) + "\nr_bucket{le=\"0.02\"} " +
                      std::to_string(b) + "\nr_bucket{le=\"+Inf\"} " + std::to_string(c) + "\n");
    };
    LatencyHistogram source(path, "r", {}, 1000, 15);
    CHECK(!source.window().known);
    write(1000, 1000, 1000);
    CHECK(!source.window().known);  // nothing to compare with
    write(1050, 1090, 1100);
    auto w = source.window();
    CHECK(w.known);
    CHECK(w.count == 100);
    CHECK(w.misses == 30);  // half of the bucket from 10 to 20 ms, and those above
    CHECK(w.p50_ms == Approx(10));
    CHECK(w.p99_ms == Approx(20));
    write(1050, 1090, 1100);
    w = source.window();
    CHECK(w.count == 0);
    CHECK(w.p50_ms == Approx(10));  // over three windows
    source.window();
    w = source.window();
    CHECK(w.known);
    CHECK(std::isnan(w.p50_ms));
    write(5, 6, 7);
    CHECK(!source.window().known);
    write(6, 8, 10);
    CHECK(source.window().count == 3);
    put(path, "r_bucket{le=\"0.01\"} 20\nr_bucket{le=\"+Inf\"} 20\n");
    CHECK(!source.window().known);
    std::filesystem::remove(path);
    CHECK(!source.window().known);
    write(1, 1, 1);
    CHECK(!source.window().known);
    write(1, 1, 3);
    w = source.window();
    CHECK(w.count == 2);
    CHECK(w.misses == 2);
    put(path, "\xff\xfe garbage");
    CHECK(!source.window().known);
}
