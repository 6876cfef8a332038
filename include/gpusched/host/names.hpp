// SPDX-License-Identifier: Apache-2.0
// Names: what this room takes over from the decision core, so that both speak of the same things by the same words.
#pragma once

#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/control/runner.hpp>

namespace gpusched::host {

// What the host is.
using control::Configuration;
using control::CpuSet;
using control::Host;
using control::HostGpu;
using control::HostTenant;
using control::mig_device;
using control::MigDevice;
using control::MigInstance;
using control::MigLayout;

// What is seen of it in a window.
using control::ActivityCorrelation;
using control::Attribution;
using control::BackendStatus;
using control::Feedback;
using control::GpuSignals;
using control::is_usable;
using control::Observation;
using control::quantile_windows;
using control::unknown_signal;
using control::WindowQuantiles;

// What is decided.
using control::Action;
using control::ActionKind;
using control::ActionOutcome;
using control::ActionReport;
using control::AdmissionAnswer;
using control::AdmissionQueue;
using control::AdmissionVerdict;
using control::ControllerCarryover;
using control::ControllerOptions;
using control::ControllerState;
using control::Decision;
using control::NamedCarryover;
using control::Newcomer;
using control::ResumeVerdict;
using control::StepResult;
using control::TenantCarryover;
using control::WeightedScore;

}  // namespace gpusched::host
