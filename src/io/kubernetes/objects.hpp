// SPDX-License-Identifier: Apache-2.0
// Objects of a Kubernetes cluster, sorted by kind, each object once.
#pragma once

#include "io/documents.hpp"

#include <gpusched/core/errors.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// The text at `key` of an object; empty if absent.
/// @throws Unreadable if it is not text
inline std::string text_at(const Place& object, std::string_view key) {
    const auto place = object[key];
    if (!place) return {};
    auto text = place.text();
    if (!text) throw Unreadable{place.expected("text")};
    if (text->find('\0') != text->npos)
        throw Unreadable{place.where() + "expected text without a NUL character"};
    return *std::move(text);
}
/// The integer at `key` of an object; `otherwise` if absent.
/// @throws Unreadable if it is not an integer
inline std::int64_t integer_at(const Place& object, std::string_view key, std::int64_t otherwise) {
    const auto place = object[key];
    if (!place) return otherwise;
    const auto number = place.number();
    if (!number || *number != std::trunc(*number) || !(std::abs(*number) < 1e15))
        throw Unreadable{place.expected("an integer")};
    return static_cast<std::int64_t>(*number);
}
/// The same, clamped to numbers of pods or domains that the model accepts.
inline std::int64_t count_at(const Place& object, std::string_view key, std::int64_t otherwise,
                             std::int64_t least = 0) {
    return std::clamp<std::int64_t>(integer_at(object, key, otherwise), least, 1'000'000'000);
}
/// The text; empty if it is absent or has a NUL character, which no name has.
inline std::string name_of(const std::optional<std::string>& text) {
    return text && text->find('\0') == text->npos ? *text : std::string();
}
inline bool truth_at(const Place& object, std::string_view key) { return object[key].text() == "true"; }
/// Texts by name, such as labels.
/// @throws Unreadable if it is not an object of texts
inline std::map<std::string, std::string> texts_at(const Place& object, std::string_view key) {
    std::map<std::string, std::string> out;
    const auto place = object[key];
    if (!place) return out;
    if (!place.is(json::Kind::object)) throw Unreadable{place.expected("an object")};
    for (const auto& item : place.items()) {
        const auto value = item.kind() == json::Kind::null ? std::optional<std::string>("") : item.text();
        const auto name = std::string(item.key());
        if (!value || name.empty() || value->find('\0') != value->npos || name.find('\0') != name.npos)
            throw Unreadable{item.expected("text with a name, without a NUL character")};
        out.emplace(name, *value);
    }
    return out;
}

/// The group of an apiVersion: `policy` of policy/v1; empty of v1.
inline std::string_view api_group(std::string_view version) {
    const auto slash = version.find('/');
    return slash == version.npos ? std::string_view{} : version.substr(0, slash);
}

/// The kinds that affect placement. Others are counted and ignored.
enum class Kind : std::uint8_t {
    node,
    pod,
    budget,
    priority_class,
    name_space,
    volume,
    claim,
    replica_set,
    deployment,
    stateful_set,
    daemon_set,
    job,
    resource_slice,
    resource_claim,
    resource_claim_template,
    device_class,
    pod_group,
    workload,
    leader_worker_set,
    job_set,
    topology,
    storage_class,
    count,
};

struct KindName {
    std::string_view group, name;
    Kind kind;
};
inline constexpr KindName kind_names[] = {
    {"", "Node", Kind::node},
    {"", "Pod", Kind::pod},
    {"policy", "PodDisruptionBudget", Kind::budget},
    {"scheduling.k8s.io", "PriorityClass", Kind::priority_class},
    {"", "Namespace", Kind::name_space},
    {"", "PersistentVolume", Kind::volume},
    {"", "PersistentVolumeClaim", Kind::claim},
    {"apps", "ReplicaSet", Kind::replica_set},
    {"apps", "Deployment", Kind::deployment},
    {"apps", "StatefulSet", Kind::stateful_set},
    {"apps", "DaemonSet", Kind::daemon_set},
    {"batch", "Job", Kind::job},
    {"resource.k8s.io", "ResourceSlice", Kind::resource_slice},
    {"resource.k8s.io", "ResourceClaim", Kind::resource_claim},
    {"resource.k8s.io", "ResourceClaimTemplate", Kind::resource_claim_template},
    {"resource.k8s.io", "DeviceClass", Kind::device_class},
    {"scheduling.volcano.sh", "PodGroup", Kind::pod_group},
    {"scheduling.run.ai", "PodGroup", Kind::pod_group},
    {"scheduling.x-k8s.io", "PodGroup", Kind::pod_group},
    {"scheduling.sigs.k8s.io", "PodGroup", Kind::pod_group},
    {"scheduling.k8s.io", "PodGroup", Kind::pod_group},
    {"scheduling.k8s.io", "Workload", Kind::workload},
    {"kueue.x-k8s.io", "Workload", Kind::workload},
    {"leaderworkerset.x-k8s.io", "LeaderWorkerSet", Kind::leader_worker_set},
    {"jobset.x-k8s.io", "JobSet", Kind::job_set},
    {"kueue.x-k8s.io", "Topology", Kind::topology},
    {"kai.scheduler", "Topology", Kind::topology},
    {"storage.k8s.io", "StorageClass", Kind::storage_class},
};

inline bool is_namespaced(Kind kind) {
    return kind != Kind::node && kind != Kind::priority_class && kind != Kind::name_space &&
           kind != Kind::volume && kind != Kind::resource_slice && kind != Kind::device_class &&
           kind != Kind::topology && kind != Kind::storage_class;
}

/// An object's names. Namespaced kinds without a namespace belong to `default`.
struct Identity {
    std::string space, name;
    /// As people write it: `namespace/name`.
    [[nodiscard]] std::string full() const { return space.empty() ? name : space + "/" + name; }
};
inline Identity identity_of(const Place& object, bool namespaced) {
    const auto metadata = object["metadata"];
    Identity out{.space = namespaced ? text_at(metadata, "namespace") : "",
                 .name = text_at(metadata, "name")};
    if (namespaced && out.space.empty()) out.space = "default";
    return out;
}
/// For messages: the name, or the position of the object.
inline std::string described(const Place& object) {
    const auto name = object["metadata"]["name"].text().value_or(""),
               space = object["metadata"]["namespace"].text().value_or("");
    return name.empty()    ? object.where() + "an object without a name"
           : space.empty() ? name
                           : space + "/" + name;
}

/// For messages: the object that cannot be read, and why.
inline std::string described(const Place& object, const Unreadable& bad) {
    return described(object) + ": " + bad.why;
}

/// The controller among an object's owners, if any.
inline Place controller_of(const Place& object) {
    for (const auto& owner : object["metadata"]["ownerReferences"].items())
        if (truth_at(owner, "controller")) return owner;
    return {};
}

/// Calls `read` for each object; one that cannot be read is left out and reported.
template <class Read>
void each_readable(const std::vector<Place>& objects, std::string_view kind, Errs errs, ReportBuilder& report,
                   Read&& read) {
    for (const auto& object : objects) {
        try {
            read(object);
        } catch (const Unreadable& bad) {
            report.left_out(kind, "objects", "cannot be read", described(object, bad), errs);
        }
    }
}

class Objects {
  public:
    /// Takes the objects of a document, those of Lists one by one.
    /// @param problems receives the reason if the whole document is unreadable
    void take(const json::Document& document, ReportBuilder& report, Problems& problems) {
        const Place root(document, 0);
        if (const auto found = found_snapshot(root); found.is_not_of(System::kubernetes))
            return problems.add(root.where() + "expected objects of Kubernetes, found " + found.description);
        if (root["kind"].text() == "Status")
            return problems.add(root.where() +
                                "expected objects of Kubernetes, found an error of the API server: " +
                                in_quotes(root["message"].text().value_or("")));
        if (!root.is(json::Kind::object) || !root["kind"].text())
            return problems.add(
                root.where() +
                "expected objects of Kubernetes (a List, or an object with apiVersion and kind), found " +
                document.describe(0) + (root.is(json::Kind::object) ? " without a kind" : ""));
        take_object(root, "", "", report, 0);
    }

    /// Takes the objects of an array; `kind` and `api_version` are those of objects without their own.
    void take_all(const Place& objects, std::string_view kind, std::string_view api_version,
                  ReportBuilder& report) {
        for (const auto& object : objects.items()) take_object(object, kind, api_version, report, 0);
    }

    [[nodiscard]] const std::vector<Place>& of(Kind kind) const {
        return by_kind_[static_cast<std::size_t>(kind)];
    }
    [[nodiscard]] bool any(Kind kind) const { return !of(kind).empty(); }
    /// The objects of a kind by their full names.
    [[nodiscard]] std::map<std::string, Place> by_name(Kind kind) const {
        std::map<std::string, Place> out;
        for (const auto& object : of(kind))
            out.emplace(identity_of(object, is_namespaced(kind)).full(), object);
        return out;
    }
    /// The apiVersion of the object `of(kind)[place]`: its own, or that of its list.
    [[nodiscard]] const std::string& version_of(Kind kind, std::size_t place) const {
        return versions_[static_cast<std::size_t>(kind)][place];
    }
    /// The number of objects of all kinds.
    [[nodiscard]] std::size_t met() const { return met_; }
    /// The kinds that do not affect placement, for a message.
    [[nodiscard]] std::string other_kinds() const {
        std::string out;
        for (const auto& [kind, count] : others_) out += concat(out.empty() ? "" : ", ", count, " ", kind);
        return out;
    }

  private:
    void take_object(const Place& object, std::string_view list_kind, std::string_view list_version,
                     ReportBuilder& report, int depth) {
        if (!object.is(json::Kind::object)) {
            ++met_;
            return report.left_out("(none)", "objects", "not an object", object.where() + "not an object");
        }
        // Objects in a typed list, as the API answers, do not repeat their kind.
        const auto kind = object["kind"].text().value_or(std::string(list_kind));
        const auto version = object["apiVersion"].text().value_or(std::string(list_version));
        if (kind.ends_with("List") && object["items"].is(json::Kind::array)) {
            if (depth == 8)
                return report.left_out("List", "objects", "Lists nested too deeply", object.where());
            const auto of = std::string_view(kind).substr(0, kind.size() - 4);
            for (const auto& item : object["items"].items())
                take_object(item, of, of.empty() ? std::string_view{} : std::string_view(version), report,
                            depth + 1);
            return;
        }
        ++met_;
        if (kind.empty()) return report.left_out("(none)", "objects", "no kind is said", described(object));
        const auto group = api_group(version);
        const auto* const known = std::ranges::find_if(
            kind_names, [&](const KindName& name) { return name.name == kind && name.group == group; });
        if (known == std::end(kind_names)) {
            auto shown = printable(kind);
            ++others_[shown];
            return report.ignored(shown, "objects", Errs::neither, "does not affect placement",
                                  kind == "Secret" ? "" : described(object));
        }
        try {
            take_known(object, known->kind, kind, version, report);
        } catch (const Unreadable& bad) {
            report.left_out(kind, "objects", "cannot be read", described(object, bad));
        }
    }

    void take_known(const Place& object, Kind kind, const std::string& kind_text,
                    const std::string& api_version, ReportBuilder& report) {
        const auto id = identity_of(object, is_namespaced(kind));
        if (id.name.empty())
            return report.left_out(kind_text, "objects", "has no name",
                                   object.where() + "metadata.name is missing");
        const auto uid = text_at(object["metadata"], "uid");
        const auto [found, added] = seen_.try_emplace(
            {static_cast<std::uint8_t>(kind),
             kind == Kind::pod_group || kind == Kind::workload ? api_version + " " + id.full() : id.full()},
            uid);
        if (added) {
            by_kind_[static_cast<std::size_t>(kind)].push_back(object);
            versions_[static_cast<std::size_t>(kind)].push_back(api_version);
        } else if (uid == found->second && !uid.empty()) {
            report.left_out(kind_text, "objects", "the same object occurs again", id.full());
        } else {
            report.left_out(kind_text, "objects", "another object has its name; the first is kept", id.full(),
                            Errs::either);
        }
    }

    std::array<std::vector<Place>, static_cast<std::size_t>(Kind::count)> by_kind_;
    std::array<std::vector<std::string>, static_cast<std::size_t>(Kind::count)> versions_;  // as by_kind_
    std::map<std::pair<std::uint8_t, std::string>, std::string> seen_;  // uid by kind and name
    std::map<std::string, std::int64_t> others_;
    std::size_t met_ = 0;
};

/// Members that are lists everywhere in a spec.
inline constexpr std::string_view list_members[] = {"containers",
                                                    "initContainers",
                                                    "matchExpressions",
                                                    "matchFields",
                                                    "matchLabelKeys",
                                                    "mismatchLabelKeys",
                                                    "namespaces",
                                                    "nodeSelectorTerms",
                                                    "ports",
                                                    "preferredDuringSchedulingIgnoredDuringExecution",
                                                    "resourceClaims",
                                                    "schedulingGates",
                                                    "taints",
                                                    "tolerations",
                                                    "topologySpreadConstraints",
                                                    "values",
                                                    "volumes"};
/// Members that are objects everywhere in a spec.
inline constexpr std::string_view object_members[] = {
    "affinity", "labelSelector", "limits",          "matchLabels", "nodeAffinity", "nodeSelector",
    "overhead", "podAffinity",   "podAntiAffinity", "requests",    "resources",
};
/// Members that are not searched: users choose the names inside them.
inline constexpr std::string_view free_members[] = {
    "annotations", "labels",   "limits",   "matchLabels",      "nodeSelector",
    "options",     "overhead", "requests", "volumeAttributes",
};
static_assert(std::ranges::is_sorted(list_members) && std::ranges::is_sorted(object_members) &&
              std::ranges::is_sorted(free_members));

/// Checks that a member is absent, null or a list. @throws Unreadable
inline void require_list(const Place& object, std::string_view key) {
    if (const auto member = object[key]; member && !member.is(json::Kind::array))
        throw Unreadable{member.expected("a list")};
}
/// Checks that a member is absent, null or an object. @throws Unreadable
inline void require_object(const Place& object, std::string_view key) {
    if (const auto member = object[key]; member && !member.is(json::Kind::object))
        throw Unreadable{member.expected("an object")};
}

/// Checks that the members of a spec, on all levels, are lists and objects as in the API, so that none is
/// read as if it were absent. @throws Unreadable for the first that is not
inline void check_spec(const Place& place) {
    const auto is_one_of = [](const auto& names, std::string_view name) {
        return std::ranges::binary_search(names, name);
    };
    const bool named = place.is(json::Kind::object);
    for (const auto& member : place.items()) {
        const auto kind = member.kind();
        const auto name = named ? member.key() : std::string_view{};
        if (kind != json::Kind::null && kind != json::Kind::array && is_one_of(list_members, name))
            throw Unreadable{member.expected("a list")};
        if (kind != json::Kind::null && kind != json::Kind::object && is_one_of(object_members, name))
            throw Unreadable{member.expected("an object")};
        if ((kind == json::Kind::array || kind == json::Kind::object) && !is_one_of(free_members, name))
            check_spec(member);
    }
}

/// Checks the parts of a node or pod that are read: its spec, and single members of metadata and status. The
/// rest of a status does not affect placement and grows with each version.
/// @throws Unreadable for the first member that is not a list or object as in the API
inline void check_shape(const Place& object) {
    for (const char* const key : {"metadata", "spec", "status"}) require_object(object, key);
    const auto metadata = object["metadata"], status = object["status"];
    require_object(metadata, "labels");
    require_object(metadata, "annotations");
    require_list(metadata, "ownerReferences");
    if (object["spec"]) check_spec(object["spec"]);
    for (const char* const key :
         {"conditions", "containerStatuses", "initContainerStatuses", "resourceClaimStatuses"})
        require_list(status, key);
    for (const char* const key : {"allocatable", "capacity", "extendedResourceClaimStatus", "resources"})
        require_object(status, key);
    for (const char* const key : {"containerStatuses", "initContainerStatuses"})
        for (const auto& container : status[key].items()) {
            require_object(container, "resources");
            require_object(container["resources"], "requests");
            require_object(container, "allocatedResources");
        }
}

}  // namespace gpusched::io::detail::kubernetes
