// SPDX-License-Identifier: Apache-2.0
// Everything in io/.
#pragma once

#include <gpusched/core/file.hpp>
#include <gpusched/io/anonymize.hpp>
#include <gpusched/io/cluster_forms.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/cluster_reading.hpp>
#include <gpusched/io/hardware_files.hpp>
#include <gpusched/io/kubernetes.hpp>
#include <gpusched/io/network_files.hpp>
#include <gpusched/io/node_resource_topology.hpp>
#include <gpusched/io/openb.hpp>
#include <gpusched/io/plan_export.hpp>
#include <gpusched/io/plan_json.hpp>
#include <gpusched/io/slurm.hpp>
