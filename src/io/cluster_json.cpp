// SPDX-License-Identifier: Apache-2.0
// Reads and writes `gpusched.cluster` documents.
#include "io/documents.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/io/cluster_forms.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
#include <gpusched/model/cluster.hpp>

#include <string>
#include <unordered_set>
#include <vector>

namespace gpusched::io {

namespace detail {

constexpr std::string_view cluster_format = "gpusched.cluster";
constexpr int newest_cluster_version = 2;

/// The part of a document with mistakes of form that the model can check without follow-up errors:
/// well-formed nodes, tasks and jobs. Unless every node is well-formed, tasks on other nodes are left out.
/// Unless every job is, subgroups are left out.
static ClusterSpec well_formed_part(const json::Document& document, int version) {
    ClusterSpec part;
    const auto elements = [&](std::string_view key, auto& out) {
        bool all = false;
        for (const auto list : document.children(0)) {
            if (document.key(document[list]) != key) continue;
            all = document[list].kind == json::Kind::array;
            if (!all) continue;
            for (const auto at : document.children(list)) {
                Problems own(0);  // reported before; their positions take long to find
                json::Reader reader(document, own, version);
                reader.read(at, out.emplace_back());
                if (reader.well_formed()) continue;
                out.pop_back();
                all = false;
            }
        }
        return all;
    };
    elements("label_levels", part.label_levels);
    const bool all_nodes = elements("nodes", part.nodes);
    elements("tasks", part.tasks);
    const bool all_jobs = elements("jobs", part.jobs);
    if (!all_jobs)
        for (auto& task : part.tasks) task.subgroup.clear();
    if (!all_nodes) {
        std::unordered_set<std::string_view> known;
        for (const auto& node : part.nodes) known.insert(node.name);
        std::erase_if(part.tasks,
                      [&](const TaskSpec& task) { return task.node && !known.contains(*task.node); });
    }
    return part;
}

static void require_no_other_snapshot(const std::string& where, const FoundSnapshot& found) {
    if (found.is_not_of(System::gpusched))
        throw InvalidInput(where + "expected a document of format 'gpusched.cluster', found " +
                           found.description);
}

static ClusterSpec cluster_of(const json::Document& document, Problems& problems) {
    require_no_other_snapshot(document.where(0), found_snapshot(Place(document, 0)));
    ClusterSpec spec;
    const int version = json::read_fields(document, {cluster_format, newest_cluster_version}, problems, spec);
    if (version > 0 && !problems.empty())
        collect(problems, [&] { static_cast<void>(Cluster::build(well_formed_part(document, version))); });
    problems.throw_if_any();
    return spec;
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<std::string_view> task_keys() {
    std::vector<std::string_view> keys;
    visit_fields(std::type_identity<TaskSpec>{},
                 [&](const char* name, auto, const auto&...) { keys.emplace_back(name); });
    return keys;
}

GPUSCHED_EXPORT ClusterSpec cluster_from_json(std::string_view text, std::string_view source) {
    detail::require_no_other_snapshot(std::string(source) + ": ", detail::found_snapshot(text));
    Problems problems;
    const auto document = json::Document::parse(text, source, problems);
    return detail::cluster_of(document, problems);
}

GPUSCHED_EXPORT ClusterSpec cluster_from_json(const json::Document& document) {
    Problems problems;
    return detail::cluster_of(document, problems);
}

GPUSCHED_EXPORT ClusterSpec read_cluster(const std::string& path) {
    return cluster_from_json(read_file(path), path);
}

GPUSCHED_EXPORT std::string cluster_to_json(const ClusterSpec& cluster, int indent) {
    const LabelLevels levels{cluster.label_levels};
    return json::write_document(detail::cluster_format, cluster, {.indent = indent},
                                json::version_for(cluster), levels);
}

GPUSCHED_EXPORT void write_cluster(const ClusterSpec& cluster, const std::string& path) {
    write_file(path, cluster_to_json(cluster));
}

}  // namespace gpusched::io
