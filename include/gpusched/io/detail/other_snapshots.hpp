// Which import reads a document that is no snapshot of ours.
#pragma once

#include <gpusched/core/text.hpp>
#include <gpusched/io/detail/yaml_document.hpp>

#include <string>
#include <string_view>

namespace GPUSCHED_NAMESPACE::io::detail {

inline std::string import_for_slurm(std::string_view form) {
    return "expected a document of format 'gpusched.cluster', found what Slurm's scontrol prints " +
           std::string(form) + ": `gpusched import slurm`, io::read_slurm and gs.io.read_slurm read it";
}

/// What to say of a JSON document that is a cluster in the words of another system; empty where it is none.
inline std::string import_for(const Place& root) {
    if (!root.is(JsonKind::object) || root["format"]) return {};
    if (root["meta"].is(JsonKind::object))
        for (const char* const key : {"nodes", "jobs", "partitions"})
            if (root[key].is(JsonKind::array)) return import_for_slurm("as JSON");
    if (root["rawObjects"].is(JsonKind::object))
        return "expected a document of format 'gpusched.cluster', found a snapshot of KAI-Scheduler: "
               "`gpusched import "
               "kai`, io::read_kai_snapshot and gs.io.read_kai_snapshot read it";
    const auto kind = root["kind"].text();
    if (!kind || !root["apiVersion"].text()) return {};
    return "expected a document of format 'gpusched.cluster', found objects of Kubernetes (kind " +
           gpusched::quoted(printable(*kind)) +
           "): `gpusched import kubernetes`, io::read_kubernetes and gs.io.read_kubernetes read them";
}

/// The same for a text that is not JSON.
inline std::string import_for(std::string_view text) {
    if (text.starts_with("PK\x03\x04"))
        return "expected a document of format 'gpusched.cluster', found a zip archive: `gpusched import kai` "
               "and "
               "gs.io.read_kai_snapshot read those of KAI-Scheduler";
    for (auto rest = text.substr(0, 4096); !rest.empty();) {
        const auto line = take_line(rest);
        for (const std::string_view key : {"NodeName=", "JobId=", "PartitionName="})
            if (line.starts_with(key)) return import_for_slurm("as text");
        if (line.starts_with("apiVersion:"))
            return "expected a document of format 'gpusched.cluster', found objects of Kubernetes as YAML: "
                   "`gpusched import kubernetes`, io::read_kubernetes and gs.io.read_kubernetes read them";
    }
    return {};
}

}  // namespace GPUSCHED_NAMESPACE::io::detail
