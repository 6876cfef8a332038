// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of host/: every file of include/gpusched/host/impl.
#include <gpusched/host/impl/actuator.ipp>
#include <gpusched/host/impl/cgroup.ipp>
#include <gpusched/host/impl/files.ipp>
#include <gpusched/host/impl/journal.ipp>
#include <gpusched/host/impl/latency_histogram.ipp>
#include <gpusched/host/impl/latency_source.ipp>
#include <gpusched/host/impl/live.ipp>
#include <gpusched/host/impl/live_admission.ipp>
#include <gpusched/host/impl/live_config.ipp>
#include <gpusched/host/impl/live_probe.ipp>
#include <gpusched/host/impl/live_resume.ipp>
#include <gpusched/host/impl/live_state.ipp>
#include <gpusched/host/impl/mig_backend.ipp>
#include <gpusched/host/impl/mps.ipp>
#include <gpusched/host/impl/nvidia_smi.ipp>
#include <gpusched/host/impl/nvml.ipp>
#include <gpusched/host/impl/nvml_library.ipp>
#include <gpusched/host/impl/nvml_mig.ipp>
#include <gpusched/host/impl/nvml_signals.ipp>
#include <gpusched/host/impl/proc_signals.ipp>
#include <gpusched/host/impl/recovery.ipp>
#include <gpusched/host/impl/replace_instance.ipp>
#include <gpusched/host/impl/resume.ipp>
#include <gpusched/host/impl/signals.ipp>
#include <gpusched/host/impl/system_command.ipp>
#include <gpusched/host/impl/tenant_access.ipp>
