// The programs beside a live controller, for its benchmark: one process that writes the latencies of all tenants, so
// that the time it takes is not that of the controller.
#pragma once

#include <gpusched/core/errors.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpusched::bench {

/// What each tenant's server does in a window.
struct ServerLoad {
    std::string source{};  ///< `file`, `socket` or `prometheus`
    int requests = 100;
    double ms = 8;         ///< of the slowest; targets are at 15
    int per_datagram = 1;  ///< requests that a socket is told of at once
};

/// The page of metrics of a server: the histogram of its requests among others of the same kind, as servers have them.
class MetricsPage {
  public:
    static constexpr const char* metric = "request_latency_seconds";

    void serve(double ms) {
        for (std::size_t b = 0; b < bounds.size(); ++b) counts_[b] += ms <= 1000 * bounds[b];
        ++total_;
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        for (int other = 0; other < 16; ++other) {
            const auto name = other == 8 ? std::string(metric) : "stage" + std::to_string(other) + "_seconds";
            out += "# HELP " + name + " Seconds.\n# TYPE " + name + " histogram\n";
            for (std::size_t b = 0; b < bounds.size(); ++b)
                out += name + R"(_bucket{model="m",le=")" + std::to_string(bounds[b]) + "\"} " +
                       std::to_string(counts_[b]) + "\n";
            out += name + R"(_bucket{model="m",le="+Inf"} )" + std::to_string(total_) + "\n";
        }
        return out;
    }

  private:
    static constexpr std::array<double, 20> bounds{.001, .002, .003, .004, .005, .006, .008, .01, .012, .014,
                                                   .016, .018, .02,  .025, .03,  .04,  .06,  .1,  .3,   1};
    std::array<long, bounds.size()> counts_{};
    long total_ = 0;
};

/// A process that, for each call of `window`, writes what the servers of all tenants tell of one window.
class Servers {
  public:
    /// @param paths of the tenants' files or sockets
    Servers(const ServerLoad& load, const std::vector<std::string>& paths) {
        int ask[2], answer[2];
        if (::pipe2(ask, O_CLOEXEC) != 0 || ::pipe2(answer, O_CLOEXEC) != 0)
            throw BackendError("no pipe for the servers");
        child_ = ::fork();
        if (child_ < 0) throw BackendError("no process for the servers");
        ask_ = child_ == 0 ? ask[0] : ask[1];
        answer_ = child_ == 0 ? answer[1] : answer[0];
        ::close(child_ == 0 ? ask[1] : ask[0]);
        ::close(child_ == 0 ? answer[0] : answer[1]);
        if (child_ == 0) serve(load, paths);
    }
    ~Servers() {
        ::close(ask_);
        ::close(answer_);
        ::waitpid(child_, nullptr, 0);
    }
    Servers(const Servers&) = delete;
    Servers& operator=(const Servers&) = delete;

    /// Returns when all of it is written.
    void window() const {
        char c = 'w';
        if (::write(ask_, &c, 1) != 1 || ::read(answer_, &c, 1) != 1) throw BackendError("the servers ended");
    }

  private:
    [[noreturn]] void serve(const ServerLoad& load, const std::vector<std::string>& paths) const {
        std::vector<MetricsPage> pages(paths.size());
        const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        char c = 0;
        for (int w = 0; ::read(ask_, &c, 1) == 1; ++w) {
            for (std::size_t t = 0; t < paths.size(); ++t) {
                std::vector<double> ms;
                for (int r = 0; r < load.requests; ++r)
                    ms.push_back(load.ms * (0.3 + 0.007 * ((r * 37 + w * 11 + static_cast<int>(t)) % 100)));
                if (load.source == "file")
                    std::ofstream(paths[t], std::ios::app) << lines(ms);
                else if (load.source == "socket")
                    send(socket, paths[t], ms, load.per_datagram);
                else
                    publish(pages[t], paths[t], ms);
            }
            if (::write(answer_, &c, 1) != 1) break;
        }
        ::_exit(0);
    }
    static std::string line(double ms) {
        char text[32];
        std::snprintf(text, sizeof text, "%.3f\n", ms);
        return text;
    }
    static std::string lines(const std::vector<double>& ms) {
        auto text = "+" + std::to_string(ms.size()) + "\n";
        for (const double x : ms) text += line(x);
        return text;
    }
    static void send(int socket, const std::string& path, const std::vector<double>& ms, int per_datagram) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.data(), path.size());
        const auto* const name = reinterpret_cast<const sockaddr*>(&address);
        std::string text;
        for (std::size_t r = 0; r < ms.size(); ++r) {
            text += line(ms[r]);
            if ((r + 1) % static_cast<std::size_t>(per_datagram) != 0 && r + 1 < ms.size()) continue;
            if (::sendto(socket, text.data(), text.size(), 0, name, sizeof address) < 0) ::_exit(1);
            text.clear();
        }
    }
    /// The page in place of the one before, as exporters for files do it.
    static void publish(MetricsPage& page, const std::string& path, const std::vector<double>& ms) {
        for (const double x : ms) page.serve(x);
        std::ofstream(path + ".new") << page.text();
        std::rename((path + ".new").c_str(), path.c_str());
    }

    pid_t child_ = -1;
    int ask_ = -1, answer_ = -1;
};

}  // namespace gpusched::bench
