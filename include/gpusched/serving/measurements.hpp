// SPDX-License-Identifier: Apache-2.0
// Measurements: throughputs and latencies of deployments, and the calibration of estimates by them.
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
    calibrated,  ///< an estimate times the factor measured for this GPU type and model
    estimated,   ///< an estimate; no measurement of this GPU type and model exists
};
constexpr auto enum_names(Source) {
    return name_table<Source>({
        {Source::measured, "measured"},
        {Source::calibrated, "calibrated"},
        {Source::estimated, "estimated"},
    });
}

/// A measured throughput, or a load at which latencies were measured. It takes precedence over every
/// estimate.
///
/// A deployment and workload can have several rows with different loads; the highest load counts as the
/// throughput.
struct MeasuredThroughput {
    std::string model{};        ///< name of the language model
    std::string deployment{};   ///< name as in `enumerate_deployments`, such as `H100 4x2`
    std::string workload{};     ///< name of the workload
    double requests_per_s = 0;  ///< requests/s, >= 0; 0 = cannot serve
    /// Seconds to the first token at this load, as the target's percentile, > 0.
    std::optional<double> ttft_s{};
    std::optional<double> tpot_s{};  ///< seconds per further token at this load, likewise, > 0
    bool operator==(const MeasuredThroughput&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<MeasuredThroughput>, F&& field) {
    field("model", &MeasuredThroughput::model, Required{});
    field("deployment", &MeasuredThroughput::deployment, Required{});
    field("workload", &MeasuredThroughput::workload, Required{});
    field("requests_per_s", &MeasuredThroughput::requests_per_s, Required{}, detail::not_negative);
    field("ttft_s", &MeasuredThroughput::ttft_s, Since{2}, detail::positive);
    field("tpot_s", &MeasuredThroughput::tpot_s, Since{2}, detail::positive);
}

/// The factor that multiplies estimates of a model on a GPU type.
struct CalibrationFactor {
    std::string model{};  ///< name of the language model
    std::string gpu{};    ///< name of the GPU type
    double factor = 1;    ///< geometric mean of measured over estimated throughput
    int rows = 0;  ///< measured throughputs on this type alone; 0 = the factor comes from other measurements
    double spread = 0;  ///< standard deviation of the logarithm of the ratios; 0 for fewer than two rows
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

/// One measured throughput, compared with the values used without it.
struct MeasurementResidual {
    std::string model{};       ///< name of the language model
    std::string deployment{};  ///< name of the deployment
    std::string workload{};    ///< name of the workload
    double measured = 0;       ///< requests/s
    double estimated = 0;      ///< requests/s, without any measurement
    double calibrated = 0;     ///< requests/s, calibrated by all other deployments
    /// Seconds, measured at the load and estimated for an idle replica; 0 = not measured.
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

/// The errors of the estimates, and the factors that correct them.
struct Calibration {
    std::vector<CalibrationFactor> factors{};      ///< one per model and GPU type
    std::vector<MeasurementResidual> residuals{};  ///< one per measured deployment and workload
    bool operator==(const Calibration&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Calibration>, F&& field) {
    field("factors", &Calibration::factors);
    field("residuals", &Calibration::residuals);
}

}  // namespace gpusched::serving
