// SPDX-License-Identifier: Apache-2.0
// The lengths of a workload's requests, and the times that a replica needs for them.
#pragma once

#include "serving/batching_replica.hpp"
#include "serving/estimator.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/simulate_latency.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::serving::detail {

/// The lengths of a workload's requests, with their weights.
class RequestMix {
  public:
    explicit RequestMix(const ServingWorkload& workload);

    [[nodiscard]] const std::vector<WeightedShape>& lengths() const { return lengths_; }
    /// The lengths with the most tokens.
    [[nodiscard]] RequestShape longest() const { return lengths_[longest_].shape; }
    /// The index of random lengths. Draws no number if all requests have the same lengths.
    [[nodiscard]] std::size_t draw(Rng& rng) const;
    /// A group of requests that take about as long.
    struct Bucket {
        RequestShape mean{}, least{};
        double part = 0;  ///< of all requests
    };
    /// At most 24.
    [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
    /// Whether some requests have several tokens, and so a TPOT.
    [[nodiscard]] bool has_steps() const { return !by_context_.empty(); }
    /// The index of the lengths of the request with this percentile of TTFT or TPOT on an idle replica. They
    /// grow with the prompt, and with the mean context of a step, of requests for several tokens.
    [[nodiscard]] std::size_t at_percentile(const LatencyPercentile& percentile) const;

    /// The estimate for requests of one shape.
    /// @param max_batch  as in `Estimator::estimate`
    [[nodiscard]] ThroughputEstimate estimate(const Estimator& estimator, const Deployment& deployment,
                                              const RequestShape& shape,
                                              std::optional<int> max_batch = {}) const;
    /// The estimate for the mixture: the requests/s if each bucket has its share of the requests, and means of
    /// the times. All 0 if the longest request does not fit.
    [[nodiscard]] ThroughputEstimate estimate(const Estimator& estimator, const Deployment& deployment,
                                              std::optional<int> max_batch = {}) const;

  private:
    void find_buckets();

    double prefix_hits_;
    std::vector<WeightedShape> lengths_{};
    std::vector<double> until_{};  ///< sum of the weights up to each index
    std::vector<Bucket> buckets_{};
    std::vector<std::size_t> by_prompt_{}, by_context_{};  ///< indices of lengths
    std::size_t longest_ = 0;
};

/// The times of one workload's requests on a replica.
class WorkloadTimes {
  public:
    /// @param rate requests/s of the mixture on a full replica; the times are scaled to it
    WorkloadTimes(const Estimator& estimator, const Deployment& deployment, const RequestMix& mix,
                  double rate);

    /// The times of requests with the lengths of this index.
    [[nodiscard]] KindTimes at(std::size_t lengths) const { return at(mix_->lengths()[lengths].shape); }
    /// A percentile of the latency of an idle replica; for the latency to the last token a lower bound, the
    /// percentile over the shortest request of each bucket.
    [[nodiscard]] double idle(const LatencyPercentile& percentile) const;
    [[nodiscard]] const RequestMix& mix() const { return *mix_; }

  private:
    [[nodiscard]] KindTimes at(const RequestShape& shape) const;

    const Estimator* estimator_;
    const Deployment* deployment_;
    const RequestMix* mix_;
    double rate_;
    double scale_ = 0;  ///< rate over its estimate; 0 = there is no estimate, or all lengths are equal
};

/// The times of all requests of one replica. Entries are made when they are first needed.
class ReplicaTimes {
  public:
    /// Adds the next workload; absent = the replica does not serve it.
    void add(std::optional<WorkloadTimes> workload);
    /// The workload added at this index.
    [[nodiscard]] const std::optional<WorkloadTimes>& workload(std::size_t w) const { return workloads_[w]; }
    /// Draws lengths of a request, unless they are known. @return the index of its times, the kind of a `Job`
    std::size_t draw(std::size_t w, Rng& rng, std::optional<std::size_t> lengths = {});
    /// The times of a replica, by kind of `Job`; grows with `draw`.
    [[nodiscard]] const std::vector<KindTimes>& all() const { return all_; }
    /// The workload of an entry of `all`.
    [[nodiscard]] std::size_t workload_of(std::size_t kind) const { return workload_of_[kind]; }

  private:
    std::vector<std::optional<WorkloadTimes>> workloads_{};
    std::vector<std::vector<std::uint32_t>> entry_{};  ///< [workload][lengths]: 1 + index in `all`; 0 = none
    std::vector<KindTimes> all_{};
    std::vector<std::size_t> workload_of_{};
};

/// The arrivals of several workloads. Those with own arrivals repeat these from a random request on, scaled to
/// their rate; the others are one Poisson process.
class Arrivals {
  public:
    /// A workload, its weight among the requests here, and the part of its requests that arrive here.
    struct Kind {
        const ServingWorkload* workload;
        double weight, part = 1;
    };
    struct Request {
        double time;
        std::size_t kind;
        std::optional<std::size_t> lengths{};  ///< known with own arrivals
    };
    /// @param rate requests/s of all kinds; 0 = all arrive at time 0
    /// @param rng  must outlive this object
    Arrivals(const std::vector<Kind>& kinds, double rate, Rng& rng);

    /// The next request. Draws a time, unless this is the first request and `start` is set, and a kind.
    Request next(bool start = false);

  private:
    /// Repeated arrivals of one workload.
    struct Stream {
        std::size_t kind;
        const std::vector<double>& times;
        double part, scale;  ///< seconds per second of `times`
        std::size_t at;
        double next = 0;
    };
    void advance(Stream& stream);

    Rng& rng_;
    double rate_;                    ///< of the Poisson process
    std::vector<double> weights_{};  ///< in the Poisson process, by kind; 0 with own arrivals
    std::vector<Stream> streams_{};
    double all_ = 0, now_ = 0;         ///< sum of the weights; time of the last request
    std::optional<double> poisson_{};  ///< time of the next request of the Poisson process
};

/// simulate_latency() of valid input with known times.
/// @param times for each replica of the plan, with an entry for each workload of the request
LatencyResult simulate(const ServingRequest& request, const std::vector<PlannedReplicas>& plan,
                       const LatencyOptions& options, const std::vector<ReplicaTimes*>& times);

}  // namespace gpusched::serving::detail
