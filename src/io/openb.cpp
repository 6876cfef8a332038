// SPDX-License-Identifier: Apache-2.0
// Reads the lists of Alibaba's openb trace.
#include "core/csv_reader.hpp"
#include "io/documents.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/openb.hpp>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

namespace gpusched::io {

namespace detail {

template <std::size_t Columns>
void check_openb_name(csv::Reader<Columns>& table, std::unordered_set<std::string>& seen,
                      const std::string& name) {
    if (name.empty())
        table.report(0, "expected a name, found nothing");
    else if (!seen.insert(name).second)
        table.report(0, in_quotes(name) + " occurs twice");
}

static std::vector<NodeSpec> openb_nodes(std::string_view text, const std::string& source,
                                         bool gpu_nodes_only, Problems& problems) {
    enum { sn, cpu_milli, memory_mib, gpu, model };
    csv::Reader<5> table(text, source, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}, 5, problems);
    std::vector<NodeSpec> nodes;
    std::unordered_set<std::string> seen;
    while (table.next()) {
        NodeSpec node;
        node.name = table.cell(sn);
        check_openb_name(table, seen, node.name);
        node.cpu_milli = table.integer(cpu_milli, 0, largest_quantity);
        node.memory_mib = table.integer(memory_mib, 0, largest_quantity);
        node.gpu_count = table.integer(gpu, 0, max_gpus_per_node);
        node.gpu_model = table.cell(model);
        if (node.gpu_count > 0 || !gpu_nodes_only) nodes.push_back(std::move(node));
    }
    return nodes;
}

static std::optional<PriorityClass> openb_priority_class(std::string_view qos) {
    for (const auto* name : {"LS", "LSR", "LSE", "SYSTEM", "Guaranteed"})
        if (qos == name) return PriorityClass::hp;
    for (const auto* name : {"BE", "BestEffort"})
        if (qos == name) return PriorityClass::lp;
    if (qos.empty() || qos == "Burstable") return PriorityClass::other;
    return std::nullopt;
}

/// The parts of "A|B|A" without empty ones and repetitions, in order.
static std::vector<std::string> openb_models(std::string_view spec) {
    std::vector<std::string> models;
    while (!spec.empty()) {
        const auto model = take_until(spec, '|');
        if (!model.empty() && std::ranges::find(models, model) == models.end()) models.emplace_back(model);
    }
    return models;
}

static std::vector<TraceTask> openb_pods(std::string_view text, const std::string& source,
                                         Problems& problems) {
    enum {
        name,
        cpu_milli,
        memory_mib,
        num_gpu,
        gpu_milli,
        gpu_spec,
        qos,
        phase,
        created,
        deleted,
        scheduled
    };
    csv::Reader<11> table(text, source,
                          {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos",
                           "pod_phase", "creation_time", "deletion_time", "scheduled_time"},
                          5, problems);
    std::vector<TraceTask> pods;
    std::unordered_set<std::string> seen;
    while (table.next()) {
        auto& [task, creation_time, deletion_time, scheduled_time] = pods.emplace_back();
        task.name = table.cell(name);
        check_openb_name(table, seen, task.name);
        task.cpu_milli = table.integer(cpu_milli, 0, largest_quantity);
        task.memory_mib = table.integer(memory_mib, 0, largest_quantity);
        task.gpu_count = table.integer(num_gpu, 0, max_gpus_per_node);
        // Several GPUs are always whole; without GPUs the share has no meaning.
        const bool fraction_allowed = task.gpu_count == 1;
        const auto share = table.integer(gpu_milli,
                                         task.gpu_count == 0 ? 0
                                         : fraction_allowed  ? 1
                                                             : whole_gpu_milli,
                                         whole_gpu_milli);
        if (task.gpu_count > 0) task.gpu_share_milli = share;
        task.gpu_models = openb_models(table.cell(gpu_spec));
        if (const auto priority_class = openb_priority_class(table.cell(qos)))
            task.priority_class = *priority_class;
        else
            table.report(
                qos,
                "expected LS, LSR, LSE, SYSTEM, Guaranteed, BE, BestEffort, Burstable or nothing, found " +
                    in_quotes(table.cell(qos)));
        const auto time = [&](std::size_t column) {
            return table.optional_integer(column, -largest_quantity, largest_quantity);
        };
        const auto creation = time(created);
        creation_time = creation.value_or(0);
        const bool known = creation || table.cell(created).empty();
        deletion_time = time(deleted);
        scheduled_time = time(scheduled);
        if (known && deletion_time && *deletion_time < creation_time)
            table.report(deleted, concat(*deletion_time, " is before the creation_time ", creation_time));
        if (known && scheduled_time && *scheduled_time < creation_time)
            table.report(scheduled, concat(*scheduled_time, " is before the creation_time ", creation_time));
    }
    return pods;
}

static Trace openb_trace(std::string_view nodes, const std::string& node_source, std::string_view pods,
                         const std::string& pod_source, const OpenbOptions& options) {
    Problems problems;
    Trace trace;
    trace.nodes = openb_nodes(nodes, node_source, options.gpu_nodes_only, problems);
    trace.tasks = openb_pods(pods, pod_source, problems);
    problems.throw_if_any();
    return trace;
}

}  // namespace detail

GPUSCHED_EXPORT Trace read_openb(const std::string& node_csv, const std::string& pod_csv,
                                 const OpenbOptions& options) {
    const auto nodes = read_file(node_csv);
    return detail::openb_trace(nodes, node_csv, read_file(pod_csv), pod_csv, options);
}

GPUSCHED_EXPORT Trace openb_from_csv(std::string_view nodes, std::string_view pods,
                                     const OpenbOptions& options) {
    return detail::openb_trace(nodes, "<nodes>", pods, "<pods>", options);
}

}  // namespace gpusched::io
