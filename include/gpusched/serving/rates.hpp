// SPDX-License-Identifier: Apache-2.0
// Rates of requests that take the place of those of a serving request.
#pragma once

#include <gpusched/serving/serving_request.hpp>

#include <map>
#include <optional>
#include <string>

namespace gpusched::serving {

/// How many requests arrive per second: of all kinds together, or of each kind by its name.
///
/// A kind's name is `KIND`, or `MODEL/KIND` where several models have a kind of this name.
struct RequestRates {
    std::optional<double> all{};  ///< requests/s of all kinds, in the proportions of the request; > 0
    std::map<std::string, double> by_kind{};  ///< requests/s, >= 0; kinds that are not named have none
    [[nodiscard]] bool any() const noexcept { return all || !by_kind.empty(); }
};

/// @throws InvalidInput with every rate out of range, and where all are 0
void validate(const RequestRates& rates);

/// The request with the rates of all kinds scaled so that they are `rate` together; a request without rates takes its numbers of
/// requests as proportions, and its only kind needs neither.
/// @throws InvalidInput for a rate that is not above 0, and a request that asks for nothing
[[nodiscard]] ServingRequest with_rate(ServingRequest request, double rate);

/// The request with these rates; as it is where there are none.
/// @throws InvalidInput as `validate` and `with_rate`, for names of no kind or of several, and for kinds that are named twice
[[nodiscard]] ServingRequest with_rates(ServingRequest request, const RequestRates& rates);

}  // namespace gpusched::serving
