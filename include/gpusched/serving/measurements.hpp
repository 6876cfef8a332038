// SPDX-License-Identifier: Apache-2.0
// What was measured: throughputs and latencies of deployments, and how estimates are calibrated by them.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/estimate.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// Where a number of a plan comes from.
enum class Source : std::uint8_t {
    measured,    ///< a row of `measured`
    calibrated,  ///< an estimate times the factor that measurements of this GPU type and model give
    estimated,   ///< nothing of this GPU type and model was measured
};
constexpr auto enum_names(Source) {
    return name_table<Source>({
        {Source::measured, "measured"},
        {Source::calibrated, "calibrated"},
        {Source::estimated, "estimated"},
    });
}

/// A measured throughput, which goes before every estimate; or a load at which latencies were measured.
///
/// Several rows may be about the same deployment and workload where their loads differ: the highest is the throughput.
struct MeasuredThroughput {
    std::string model{};
    std::string deployment{};  ///< name as `enumerate_deployments` gives it, such as `H100 4x2`
    std::string workload{};
    double requests_per_s = 0;  ///< >= 0; 0 = cannot serve
    std::optional<double>
        ttft_s{};  ///< to the first token at this load, the percentile that is asked for, > 0
    std::optional<double> tpot_s{};  ///< per further token at this load, likewise, > 0
    bool operator==(const MeasuredThroughput&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<MeasuredThroughput>, F&& field) {
    field("model", &MeasuredThroughput::model, Required{});
    field("deployment", &MeasuredThroughput::deployment, Required{});
    field("workload", &MeasuredThroughput::workload, Required{});
    field("requests_per_s", &MeasuredThroughput::requests_per_s, Required{},
          within(0.0, detail::largest_finite));
    field("ttft_s", &MeasuredThroughput::ttft_s, Since{2},
          within(detail::smallest_positive, detail::largest_finite));
    field("tpot_s", &MeasuredThroughput::tpot_s, Since{2},
          within(detail::smallest_positive, detail::largest_finite));
}

/// What estimates of a model on a GPU type are multiplied by.
struct CalibrationFactor {
    std::string model{};
    std::string gpu{};
    double factor = 1;  ///< geometric mean of measured over estimated throughput
    int rows = 0;       ///< measured throughputs of this model on this type alone; 0 = the factor is borrowed
    double spread = 0;  ///< standard deviation of the logarithm of those ratios; 0 for fewer than two rows
    bool operator==(const CalibrationFactor&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<CalibrationFactor>, F&& field) {
    field("model", &CalibrationFactor::model);
    field("gpu", &CalibrationFactor::gpu);
    field("factor", &CalibrationFactor::factor);
    field("rows", &CalibrationFactor::rows);
    field("spread", &CalibrationFactor::spread);
}

/// One measured throughput beside what would have been believed without it.
struct MeasurementResidual {
    std::string model{};
    std::string deployment{};
    std::string workload{};
    double measured = 0;    ///< requests/s
    double estimated = 0;   ///< requests/s, without any measurement
    double calibrated = 0;  ///< requests/s, by the measurements of all other deployments
    /// Seconds measured and estimated (an idle replica's; a load makes them longer), where the row has them; 0 = it has not.
    double ttft_s = 0, ttft_idle_s = 0, tpot_s = 0, tpot_idle_s = 0;
    bool operator==(const MeasurementResidual&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<MeasurementResidual>, F&& field) {
    field("model", &MeasurementResidual::model);
    field("deployment", &MeasurementResidual::deployment);
    field("workload", &MeasurementResidual::workload);
    field("measured", &MeasurementResidual::measured);
    field("estimated", &MeasurementResidual::estimated);
    field("calibrated", &MeasurementResidual::calibrated);
    field("ttft_s", &MeasurementResidual::ttft_s);
    field("ttft_idle_s", &MeasurementResidual::ttft_idle_s);
    field("tpot_s", &MeasurementResidual::tpot_s);
    field("tpot_idle_s", &MeasurementResidual::tpot_idle_s);
}

/// How far estimates are from what was measured, and what they are multiplied by therefore.
struct Calibration {
    std::vector<CalibrationFactor> factors{};      ///< one per model and GPU type
    std::vector<MeasurementResidual> residuals{};  ///< one per deployment and workload measured
    bool operator==(const Calibration&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Calibration>, F&& field) {
    field("factors", &Calibration::factors);
    field("residuals", &Calibration::residuals);
}

}  // namespace gpusched::serving
