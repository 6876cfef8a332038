#pragma once

#include <gpusched/serving/detail/calibrator.hpp>
#include <gpusched/serving/plan_serving.hpp>

namespace GPUSCHED_NAMESPACE::serving {

GPUSCHED_INLINE Calibration calibrate(const ServingRequest& request, const EstimateOptions& options) {
    validate(request);
    validate(options);
    return detail::Calibrator(request, options).report();
}

}  // namespace GPUSCHED_NAMESPACE::serving
