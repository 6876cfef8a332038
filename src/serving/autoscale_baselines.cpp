#pragma once

#include <gpusched/serving/autoscale.hpp>
#include <gpusched/serving/impl/pool_sizes.ipp>

#include <algorithm>
#include <cmath>

namespace GPUSCHED_NAMESPACE::serving {

namespace detail {

/// The Horizontal Pod Autoscaler's rule: as many as bring the load of each to the target, unless they are within a tenth of it.
inline int proportional(int now, double load_of_all, double target) {
    const double wanted = load_of_all / target;
    if (now > 0 && std::abs(wanted / now - 1) <= 0.1) return now;
    return static_cast<int>(std::ceil(wanted - 1e-9));
}

}  // namespace detail

GPUSCHED_INLINE PoolSizes Autoscaler::by_utilization(const PoolWindow& window) const {
    const double slots = std::max(1.0, detail::target_batch(options_));
    return {
        detail::proportional(window.ready.prefill + window.starting.prefill, window.prefill_busy,
                             options_.utilization),
        detail::proportional(window.ready.decode + window.starting.decode,
                             (window.decode_requests + static_cast<double>(window.decode_waiting)) / slots,
                             options_.utilization)};
}

GPUSCHED_INLINE PoolSizes Autoscaler::by_token_rate(const PoolWindow& window) const {
    const auto& t = options_.times;
    const double batch = std::max(1.0, detail::target_batch(options_));
    const double most = batch / (t.step_base_s + batch * t.step_s_per_request);  // tokens/s of a replica
    const int decode = detail::proportional(window.ready.decode + window.starting.decode,
                                            window.tokens_per_s / most, options_.utilization);
    return {static_cast<int>(std::ceil(decode * options_.ratio - 1e-9)), decode};
}

}  // namespace GPUSCHED_NAMESPACE::serving
