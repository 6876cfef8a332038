// SPDX-License-Identifier: Apache-2.0
// Reads NodeResourceTopology objects.
#include "io/documents.hpp"
#include "io/hardware_parts.hpp"
#include "io/kubernetes/pods.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/node_resource_topology.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace gpusched::io {

namespace detail {

/// A quantity of Kubernetes in thousandths, rounded up: 2, 1500m, 64Gi, 1e3. None if it is malformed or too
/// large.
static std::optional<std::int64_t> quantity_milli(std::string_view text) {
    const auto quantity = kubernetes::read_quantity(text);
    constexpr std::int64_t too_large = std::int64_t{1} << 62;
    return quantity && quantity->milli() < too_large ? std::optional(quantity->milli()) : std::nullopt;
}

static std::optional<int> trailing_number(std::string_view name) {
    int number = -1;
    return read_number(trailing_digits(name), number) && number <= 1023 ? std::optional(number)
                                                                        : std::nullopt;
}

static void read_numa_resources(const Place& resources, NumaResources& numa, Problems& problems) {
    if (resources && !resources.is(json::Kind::array)) problems.add(resources.expected("an array"));
    for (const auto& resource : resources.items()) {
        const auto name = resource["name"].text();
        if (!name || name->empty()) {
            problems.add(resource.where() + "expected an object with name");
            continue;
        }
        ResourceAmount amount;
        const auto quantity = [&](const char* key) -> std::optional<std::int64_t> {
            const auto place = resource[key];
            if (!place) return std::nullopt;
            const auto text = place.text();
            const auto milli = text ? quantity_milli(*text) : std::nullopt;
            if (!milli) problems.add(place.expected("a quantity such as 2, 1500m or 64Gi"));
            return milli;
        };
        const auto capacity = quantity("capacity"), allocatable = quantity("allocatable"),
                   available = quantity("available");
        if (!capacity && !allocatable && !available)
            problems.add(resource.where() + "expected capacity, allocatable or available");
        // An omitted amount counts as the next given one.
        amount.available_milli = available.value_or(allocatable.value_or(capacity.value_or(0)));
        amount.allocatable_milli = allocatable.value_or(capacity.value_or(amount.available_milli));
        amount.capacity_milli = capacity.value_or(amount.allocatable_milli);
        if (!numa.resources.emplace(*name, amount).second)
            problems.add(resource.where() + in_quotes(*name) + " occurs twice");
    }
}

static void read_costs(const Place& costs, NumaResources& numa, Problems& problems) {
    if (costs && !costs.is(json::Kind::array)) problems.add(costs.expected("an array"));
    for (const auto& cost : costs.items()) {
        const auto name = cost["name"].text();
        const auto value = cost["value"].number();
        if (!name || !value || !(std::abs(*value) < 1e9))
            problems.add(cost.where() + "expected an object with name and value");
        else
            numa.costs[*name] = static_cast<std::int64_t>(*value);
    }
}

/// Reads one object.
static NodeResources read_node_resources(const Place& object, Problems& problems) {
    NodeResources out{.node = object["metadata"]["name"].text().value_or("")};
    if (out.node.empty()) problems.add(object.where() + "expected metadata.name");
    const auto zones = object["zones"];
    if (!zones.is(json::Kind::array)) problems.add(object.where() + "expected zones, an array");
    std::map<std::string, int> sockets;
    for (const auto& zone : zones.items()) {
        const auto name = zone["name"].text(), type = zone["type"].text();
        if (!name || name->empty() || !type) {
            problems.add(zone.where() + "expected an object with name and type");
        } else if (*type == "Package" || *type == "Socket") {
            const auto number = trailing_number(*name);
            if (!number)
                problems.add(zone["name"].expected("a name that ends in a number up to 1023"));
            else if (!sockets.emplace(*name, *number).second)
                problems.add(zone.where() + in_quotes(*name) + " occurs twice");
        }
    }
    std::set<int> ids;
    for (const auto& zone : zones.items()) {
        const auto name = zone["name"].text(), type = zone["type"].text();
        if (!name || (type != "Node" && type != "NUMANode" && type != "NUMA")) continue;
        const auto number = trailing_number(*name);
        if (!number) {
            problems.add(zone["name"].expected("a name that ends in a number up to 1023"));
            continue;
        }
        if (!ids.insert(*number).second)
            problems.add(concat(zone.where(), "NUMA node ", *number, " occurs twice"));
        NumaResources numa{.zone = *name, .id = *number};
        if (const auto parent = zone["parent"].text(); parent && sockets.contains(*parent))
            numa.socket = sockets.at(*parent);
        read_numa_resources(zone["resources"], numa, problems);
        read_costs(zone["costs"], numa, problems);
        out.numa_nodes.push_back(std::move(numa));
    }
    std::ranges::sort(out.numa_nodes, {}, &NumaResources::id);
    return out;
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<NodeResources> node_resource_topology_from_text(std::string_view text,
                                                                            std::string_view source_name) {
    const std::string source(source_name);
    Problems problems;
    const auto documents = detail::read_objects(text, source, problems);
    problems.throw_if_any();
    std::vector<NodeResources> out;
    std::set<std::string> seen;
    for (const auto& object : detail::kubernetes_objects(documents)) {
        if (object["kind"].text() != "NodeResourceTopology") continue;
        out.push_back(detail::read_node_resources(object, problems));
        if (!seen.insert(out.back().node).second && !out.back().node.empty())
            problems.add(object.where() + "node " + detail::in_quotes(out.back().node) + " occurs twice");
    }
    if (out.empty()) problems.add(source + ": expected objects of kind NodeResourceTopology, found none");
    problems.throw_if_any();
    return out;
}

GPUSCHED_EXPORT std::vector<NodeResources> read_node_resource_topology(const std::string& path) {
    return node_resource_topology_from_text(read_file(path), path);
}

GPUSCHED_EXPORT HardwareReading machine_of(const NodeResources& node, const HardwareReadOptions& options) {
    require_fields(options);
    Problems problems;
    const auto owner = "node " + detail::in_quotes(node.node);
    const std::int64_t threads = std::max(options.threads_per_core, 1);
    std::map<int, detail::NumaReading> numa_nodes;
    std::vector<std::pair<int, int>> gpus;  // index, NUMA node
    std::int64_t next_core = 0, gpu_total = 0;
    for (const auto& numa : node.numa_nodes) {
        const auto pieces = [&](const std::string& name) {
            return detail::value_at(numa.resources, name).capacity_milli / 1000;
        };
        const auto cores = pieces("cpu") / threads, here = pieces("nvidia.com/gpu") + pieces("amd.com/gpu");
        gpu_total += std::min<std::int64_t>(here, 1 << 20);
        detail::NumaReading reading{.socket = numa.socket, .cores = std::vector<int>()};
        if (cores > largest_cpu + 1 - next_core) {
            problems.add(concat(owner, ": expected at most ", largest_cpu + 1, " cores"));
        } else {
            for (std::int64_t c = 0; c < cores; ++c) reading.cores->push_back(static_cast<int>(next_core++));
        }
        for (std::int64_t g = 0; g < here && gpus.size() < max_gpus_per_node; ++g)
            gpus.emplace_back(static_cast<int>(gpus.size()), numa.id);
        numa_nodes.emplace(numa.id, std::move(reading));
    }
    if (gpu_total > max_gpus_per_node)
        problems.add(concat(owner, ": ", gpu_total, " GPUs; expected at most ", max_gpus_per_node));
    problems.throw_if_any();
    std::vector<std::string> notes;
    detail::HardwareParts parts;
    const auto numa_vertex = parts.add_processors(numa_nodes, options, owner, problems, notes);
    problems.throw_if_any();
    for (const auto& [gpu, numa] : gpus)
        parts.join(parts.add(topology::HardwareKind::gpu, gpu), numa_vertex.at(numa),
                   topology::HardwareRelation::nearby, options.pcie_gb_s);
    notes.push_back("cores and GPUs: counted, not named; numbered along the NUMA nodes");
    return {detail::finish(parts, owner), std::move(notes)};
}

}  // namespace gpusched::io
