// SPDX-License-Identifier: Apache-2.0
// Latencies of requests as their server tells them: lines in a file or on a Unix socket, or a Prometheus histogram.
// The text format of Prometheus and its quantiles are read here, because client libraries write that format and none
// reads it; a library of histograms (HdrHistogram) would need the single latencies, of which a server publishes buckets.
#pragma once

#include <gpusched/host/detail/descriptor.hpp>
#include <gpusched/host/names.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::host {

/// What a source knows of one window.
struct LatencyWindow {
    bool known = false;         ///< the source was there and could be read
    std::int64_t count = 0;     ///< requests completed in the window
    std::int64_t misses = 0;    ///< of these, above the target
    std::int64_t arrived = -1;  ///< requests that arrived in the window; -1 where the source does not say
    std::int64_t ignored = 0;   ///< lines that could not be read
    /// Over the last `quantile_windows`.
    double p50_ms = unknown_signal, p95_ms = unknown_signal, p99_ms = unknown_signal,
           p999_ms = unknown_signal;
};

/// A source of latencies.
class GPUSCHED_EXPORT LatencySource {
  public:
    LatencySource() = default;
    LatencySource(const LatencySource&) = delete;
    LatencySource& operator=(const LatencySource&) = delete;
    virtual ~LatencySource() = default;
    /// Ends a window: what has come since the last call. A source that is gone gives a window that is not known, and is
    /// looked for again at the next one.
    virtual LatencyWindow window() = 0;
};

/// Lines of latencies: `12.5` is a request that took 12.5 ms, `+3` says that three requests arrived. Lines that are
/// neither, numbers out of 0 to 1e7, and lines above 256 characters are counted and left out.
class LatencyLines {
  public:
    explicit LatencyLines(double tau_ms) : tau_ms_(tau_ms) {}
    /// Any piece of the text; a line is complete with its newline.
    void feed(std::string_view text);
    /// The rest of a line that will not go on, as at the end of a datagram.
    void end_line();
    /// Forgets the beginning of a line whose end is lost.
    void drop_line() noexcept;
    /// The same, and counts it as one that could not be read.
    void cut_line() noexcept;
    [[nodiscard]] LatencyWindow end_window(bool known);

  private:
    void line(std::string_view text);

    double tau_ms_;
    WindowQuantiles quantiles_{quantile_windows};
    LatencyWindow now_{};
    std::string rest_{};
    bool too_long_ = false, tells_arrivals_ = false;
};

/// The tail of a file to which a server appends lines: what was there at the first window is left out. A file that was
/// replaced (rotated) is read to its end and the new one from its beginning; one that became shorter is read anew.
class GPUSCHED_EXPORT LatencyFile final : public LatencySource {
  public:
    LatencyFile(std::string path, double tau_ms);
    LatencyWindow window() override;

  private:
    bool open();
    bool drain();
    std::string path_;
    LatencyLines lines_;
    detail::Descriptor file_;
    bool first_ = true;
};

/// A Unix datagram socket that servers send lines to, several per datagram if they like, up to 64 KiB; of a longer one
/// the rest is left out and counts as a line that cannot be read. Everybody who may enter its folder may send (mode
/// 0666). A thread of its own takes what comes at once: the kernel holds few datagrams, and then a server would wait. A
/// socket file of that name that nobody serves is replaced; one that was removed meanwhile is made again.
class GPUSCHED_EXPORT LatencySocket final : public LatencySource {
  public:
    /// @throws InvalidInput when the path is too long for a socket (107 characters)
    LatencySocket(std::string path, double tau_ms);
    ~LatencySocket() override;
    LatencyWindow window() override;

  private:
    struct Reader;
    bool open();
    void close();
    bool ours() const;
    std::string path_;
    LatencyLines lines_;
    detail::Descriptor socket_;
    std::uint64_t inode_ = 0;
    std::unique_ptr<Reader> reader_;
};

/// A cumulative histogram of Prometheus: for each upper bound how many are at or below it.
using CumulativeHistogram = std::map<double, double>;

/// The quantile by Prometheus' rule (`histogram_quantile`): linear within the bucket that holds rank q x total, from
/// the bound below it, or from 0 for the first bucket if its bound is above 0; the bound itself for a first bucket at or
/// below 0; the highest finite bound where the rank lies above it. NaN without observations, with fewer than two
/// buckets, or without the bucket +Inf.
/// Source: Prometheus' documentation of the query functions.
[[nodiscard]] double histogram_quantile(double q, const CumulativeHistogram& buckets) noexcept;

/// How many lie at or below a value, by the same rule. 0 for an empty histogram.
[[nodiscard]] double histogram_count_below(double value, const CumulativeHistogram& buckets) noexcept;

/// The buckets of one histogram in the text format of Prometheus, all series of it whose labels fit added up.
/// @param metric without `_bucket`
/// @param labels that a series must have, with these values
/// @param ignored lines that could not be read
/// @return nothing where no series fits
[[nodiscard]] std::optional<CumulativeHistogram>
parse_prometheus_histogram(std::string_view text, std::string_view metric,
                           const std::map<std::string, std::string>& labels, std::int64_t& ignored);

/// The same, each series by itself, under its other labels.
[[nodiscard]] std::map<std::string, CumulativeHistogram>
parse_prometheus_series(std::string_view text, std::string_view metric,
                        const std::map<std::string, std::string>& labels, std::int64_t& ignored);

/// A histogram in Prometheus' text format, in a file that its server (or an exporter) replaces. Windows are differences
/// of counts, series by series, added up. One that is new, or whose counts fall (a restart), counts from its next reading
/// on; a window in which no series goes on is not known.
class GPUSCHED_EXPORT LatencyHistogram final : public LatencySource {
  public:
    /// @param ms_per_unit of the histogram's bounds: 1000 for seconds
    LatencyHistogram(std::string path, std::string metric, std::map<std::string, std::string> labels,
                     double ms_per_unit, double tau_ms);
    LatencyWindow window() override;

  private:
    std::string path_, metric_;
    std::map<std::string, std::string> labels_;
    double ms_per_unit_, tau_ms_;
    std::map<std::string, CumulativeHistogram> last_{};
    std::vector<CumulativeHistogram> windows_{};
};

}  // namespace gpusched::host
