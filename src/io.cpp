// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of io/: every file of include/gpusched/io/impl.
#include <gpusched/io/impl/anonymize.ipp>
#include <gpusched/io/impl/cluster_json.ipp>
#include <gpusched/io/impl/flextopo.ipp>
#include <gpusched/io/impl/formats.ipp>
#include <gpusched/io/impl/gpu_links.ipp>
#include <gpusched/io/impl/hardware_files.ipp>
#include <gpusched/io/impl/hardware_parts.ipp>
#include <gpusched/io/impl/host_list.ipp>
#include <gpusched/io/impl/hwloc.ipp>
#include <gpusched/io/impl/json_document.ipp>
#include <gpusched/io/impl/kubernetes.ipp>
#include <gpusched/io/impl/kubernetes_steps.ipp>
#include <gpusched/io/impl/kubernetes_topology.ipp>
#include <gpusched/io/impl/nccl_topology.ipp>
#include <gpusched/io/impl/network_reading.ipp>
#include <gpusched/io/impl/node_resource_topology.ipp>
#include <gpusched/io/impl/nvidia_smi_topo.ipp>
#include <gpusched/io/impl/openb.ipp>
#include <gpusched/io/impl/plan_csv.ipp>
#include <gpusched/io/impl/plan_json.ipp>
#include <gpusched/io/impl/pod_migration_jobs.ipp>
#include <gpusched/io/impl/reading_report.ipp>
#include <gpusched/io/impl/slurm.ipp>
#include <gpusched/io/impl/slurm_topology.ipp>
#include <gpusched/io/impl/this_machine.ipp>
#include <gpusched/io/impl/yaml_document.ipp>
