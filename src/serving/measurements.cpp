// SPDX-License-Identifier: Apache-2.0
#include "serving/calibrator.hpp"

#include <gpusched/config.hpp>
#include <gpusched/serving/plan_serving.hpp>

namespace gpusched::serving {

GPUSCHED_EXPORT Calibration calibrate(const ServingRequest& request, const EstimateOptions& options) {
    validate(request);
    validate(options);
    return detail::Calibrator(request, options).report();
}

}  // namespace gpusched::serving
