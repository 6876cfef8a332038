// SPDX-License-Identifier: Apache-2.0
// Everything in host/: the controller on a real machine. Experimental: it has not run on a GPU yet.
#pragma once

#include <gpusched/host/actuator.hpp>
#include <gpusched/host/cgroup.hpp>
#include <gpusched/host/files.hpp>
#include <gpusched/host/journal.hpp>
#include <gpusched/host/latency_source.hpp>
#include <gpusched/host/live.hpp>
#include <gpusched/host/mig_backend.hpp>
#include <gpusched/host/mps.hpp>
#include <gpusched/host/names.hpp>
#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/nvml.hpp>
#include <gpusched/host/proc_signals.hpp>
#include <gpusched/host/programs.hpp>
#include <gpusched/host/recovery.hpp>
#include <gpusched/host/replace_instance.hpp>
#include <gpusched/host/resume.hpp>
#include <gpusched/host/run.hpp>
#include <gpusched/host/signals.hpp>
#include <gpusched/host/system_command.hpp>
#include <gpusched/host/tenant_access.hpp>
