// SPDX-License-Identifier: Apache-2.0
// Everything in io/.
#pragma once

#include <gpusched/core/file.hpp>
#include <gpusched/io/anonymize.hpp>
#include <gpusched/io/cluster_forms.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/cluster_reading.hpp>
#include <gpusched/io/flextopo.hpp>
#include <gpusched/io/flextopo_json.hpp>
#include <gpusched/io/formats.hpp>
#include <gpusched/io/hardware_files.hpp>
#include <gpusched/io/hardware_reading.hpp>
#include <gpusched/io/hwloc.hpp>
#include <gpusched/io/kai.hpp>
#include <gpusched/io/kubernetes.hpp>
#include <gpusched/io/kubernetes_steps.hpp>
#include <gpusched/io/kubernetes_topology.hpp>
#include <gpusched/io/named_text.hpp>
#include <gpusched/io/nccl_topology.hpp>
#include <gpusched/io/network_reading.hpp>
#include <gpusched/io/node_resource_topology.hpp>
#include <gpusched/io/nvidia_smi_topo.hpp>
#include <gpusched/io/openb.hpp>
#include <gpusched/io/plan_csv.hpp>
#include <gpusched/io/plan_json.hpp>
#include <gpusched/io/pod_migration_jobs.hpp>
#include <gpusched/io/reading_report.hpp>
#include <gpusched/io/slurm.hpp>
#include <gpusched/io/slurm_topology.hpp>
#include <gpusched/io/this_machine.hpp>
