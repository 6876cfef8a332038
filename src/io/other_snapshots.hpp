// SPDX-License-Identifier: Apache-2.0
// Which import reads a document that is a cluster in the words of some system.
#pragma once

#include "io/yaml_document.hpp"

#include <gpusched/core/text.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusched::io::detail {

enum class System : std::uint8_t { unknown, kubernetes, kai, slurm, packed };

/// What a document is, for a message: "found <told>".
struct FoundSnapshot {
    System system = System::unknown;
    std::string told{};
    /// Whether it is a snapshot that the import of `own` does not read.
    [[nodiscard]] bool is_not_of(System own) const { return system != System::unknown && system != own; }
};

inline FoundSnapshot found_kubernetes(const std::string& how) {
    return {System::kubernetes,
            "objects of Kubernetes " + how +
                ": `gpusched import kubernetes`, io::read_kubernetes and gs.io.read_kubernetes read them"};
}
inline FoundSnapshot found_slurm(const std::string& how) {
    return {System::slurm, "what Slurm's scontrol prints " + how +
                               ": `gpusched import slurm`, io::read_slurm and gs.io.read_slurm read it"};
}

/// What a JSON document is.
inline FoundSnapshot found_snapshot(const Place& root) {
    if (!root.is(json::Kind::object) || root["format"]) return {};
    if (root["meta"].is(json::Kind::object))
        for (const char* const key : {"nodes", "jobs", "partitions"})
            if (root[key].is(json::Kind::array)) return found_slurm("as JSON");
    if (root["rawObjects"].is(json::Kind::object))
        return {System::kai, "a snapshot of KAI-Scheduler: `gpusched import kai`, io::read_kai_snapshot and "
                             "gs.io.read_kai_snapshot read it"};
    const auto kind = root["kind"].text();
    if (!kind || !root["apiVersion"].text()) return {};
    return found_kubernetes("(kind " + gpusched::quoted(printable(*kind)) + ")");
}

/// What a text is that is not JSON; nothing is found in JSON.
inline FoundSnapshot found_snapshot(std::string_view text) {
    if (text.starts_with("PK\x03\x04"))
        return {System::kai, "a zip archive: `gpusched import kai` and gs.io.read_kai_snapshot read those of "
                             "KAI-Scheduler"};
    if (text.starts_with("\x1f\x8b"))
        return {System::packed, "what gzip packed: unpack it first, as by `gunzip --keep FILE`"};
    if (const auto start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
        start != text.npos && (text[start] == '{' || text[start] == '['))
        return {};
    for (auto rest = text.substr(0, 4096); !rest.empty();) {
        const auto line = take_line(rest);
        for (const std::string_view key : {"NodeName=", "JobId=", "PartitionName="})
            if (line.starts_with(key)) return found_slurm("as text");
        if (line.starts_with("apiVersion:")) return found_kubernetes("as YAML");
    }
    return {};
}

}  // namespace gpusched::io::detail
