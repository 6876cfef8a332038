// SPDX-License-Identifier: Apache-2.0
// Reads records from the JSON of `scontrol --json`, of data parsers v0.0.39 to v0.0.44.
#pragma once

#include "io/documents.hpp"
#include "io/slurm/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::slurm {

/// A text; empty if absent. @throws Unreadable if it is not text
inline std::string text_at(const Place& object, std::string_view key) {
    const auto place = object[key];
    if (!place) return {};
    auto text = place.text();
    if (!text || text->find('\0') != text->npos) throw Unreadable{place.expected("text")};
    return std::string(value_of(*text));
}

/// An integer: as such, as text, or as {"set", "infinite", "number"}; none if it is not set, or infinite.
/// @throws Unreadable if it is something else
inline std::optional<std::int64_t> number_at(const Place& object, std::string_view key) {
    auto place = object[key];
    if (!place) return std::nullopt;
    if (place.is(json::Kind::object)) {
        if (place["set"].text() == "false" || place["infinite"].text() == "true") return std::nullopt;
        place = place["number"];
        if (!place) return std::nullopt;
    }
    if (const auto text = place.text(); text && value_of(*text).empty()) return std::nullopt;
    const auto number = place.number();
    if (!number || !std::isfinite(*number) || *number < 0)
        throw Unreadable{place.expected("a number, or an object with set, infinite and number")};
    return *number >= static_cast<double>(largest_quantity) ? largest_quantity
                                                            : static_cast<std::int64_t>(std::ceil(*number));
}
inline std::optional<bool> truth_at(const Place& object, std::string_view key) {
    const auto text = object[key].text();
    if (!text || (*text != "true" && *text != "false")) return std::nullopt;
    return *text == "true";
}
/// Texts: an array of them, or one text with commas; empty if absent.
inline std::vector<std::string> texts_at(const Place& object, std::string_view key) {
    const auto place = object[key];
    if (!place) return {};
    if (place.is(json::Kind::array)) {
        std::vector<std::string> out;
        for (const auto& item : place.items()) {
            const auto text = item.text();
            if (!text || text->find('\0') != text->npos) throw Unreadable{item.expected("text")};
            if (!value_of(*text).empty()) out.emplace_back(value_of(*text));
        }
        return out;
    }
    return words_of(text_at(object, key));
}
/// States: an array of words, or one text.
inline Words states_at(const Place& object, std::string_view key) {
    Words out;
    for (const auto& text : texts_at(object, key))
        for (auto& word : states_of(text)) out.push_back(std::move(word));
    return out;
}

/// Reads records from JSON.
class JsonRecords {
  public:
    JsonRecords(Records& out, ReportBuilder& report) : out_(out), report_(report) {}

    /// Whether the document is one of scontrol: an object with nodes, jobs, partitions or reservations in a
    /// list.
    static bool recognises(const Place& root) {
        if (!root.is(json::Kind::object) || root["format"] || root["apiVersion"] || root["kind"])
            return false;
        for (const char* const key : {"nodes", "jobs", "partitions", "reservations", "licenses"})
            if (root[key].is(json::Kind::array)) return true;
        return false;
    }

    void take(const Place& root) {
        if (const auto parser = parser_of(root); !parser.empty() && !is_known(parser))
            report_.approximated("(all)", "data parser " + parser, Errs::either,
                                 "not one of v0.0.39 to v0.0.44: read as these", "");
        for (const auto& error : root["errors"].items())
            report_.ignored(
                "(all)", "errors that Slurm reports", Errs::either,
                "the parts that it could not report are missing",
                error["error"].text().value_or(error["description"].text().value_or(error.where())));
        const auto each = [&](const char* key, const char* kind, auto&& read) {
            for (const auto& object : root[key].items()) {
                try {
                    if (!object.is(json::Kind::object)) throw Unreadable{object.expected("an object")};
                    read(object);
                } catch (const Unreadable& bad) {
                    report_.left_out(kind, "objects", "cannot be read", bad.why,
                                     std::string_view(kind) == "Job" ? Errs::too_lax : Errs::too_strict);
                }
            }
        };
        each("nodes", "Node", [&](const Place& object) { out_.nodes.push_back(node(object)); });
        each("jobs", "Job", [&](const Place& object) { out_.jobs.push_back(job(object)); });
        each("partitions", "Partition",
             [&](const Place& object) { out_.partitions.push_back(partition(object)); });
        each("reservations", "Reservation", [&](const Place& object) {
            report_.ignored("Reservation", "objects", Errs::too_lax,
                            "resources reserved for later count as free; nodes say which are reserved now",
                            text_at(object, "name"));
        });
        each("licenses", "License", [&](const Place& object) {
            report_.ignored("License", "objects", Errs::neither, "does not affect where jobs may run",
                            object["LicenseName"].text().value_or(object["name"].text().value_or("")));
        });
        out_.any_jobs = out_.any_jobs || root["jobs"].is(json::Kind::array);
        out_.any_partitions = out_.any_partitions || root["partitions"].is(json::Kind::array);
        try {
            for (const char* const key : {"last_update", "last_backfill"})
                if (const auto time = number_at(root, key); time && *time > 0)
                    out_.now = std::max(out_.now.value_or(*time), *time);
        } catch (const Unreadable&) {  // the time is optional
        }
    }

  private:
    /// `v0.0.42` in the document's metadata; empty if absent.
    static std::string parser_of(const Place& root) {
        const auto text = root["meta"]["plugin"]["data_parser"].text().value_or("");
        const auto at = text.rfind('/');
        return at == text.npos ? text : text.substr(at + 1);
    }
    static bool is_known(std::string_view parser) {
        int number = 0;
        return parser.starts_with("v0.0.") && read_number(parser.substr(5, 2), number) && number >= 39 &&
               number <= 44;
    }

    static NodeRecord node(const Place& object) {
        NodeRecord out{.name = text_at(object, "name"),
                       .cpus = number_at(object, "cpus"),
                       .effective_cpus = number_at(object, "effective_cpus"),
                       .allocated_cpus = number_at(object, "alloc_cpus"),
                       .memory_mib = number_at(object, "real_memory"),
                       .allocated_mib = number_at(object, "alloc_memory"),
                       .specialized_mib = number_at(object, "specialized_memory"),
                       .disk_mib = number_at(object, "temporary_disk"),
                       .gres = text_at(object, "gres"),
                       .gres_used = text_at(object, "gres_used"),
                       .gres_drained = text_at(object, "gres_drained"),
                       .state = states_at(object, "state"),
                       .features =
                           texts_at(object, object["active_features"] ? "active_features" : "features"),
                       .partitions = texts_at(object, "partitions"),
                       .reservation = text_at(object, "reservation"),
                       .reason = text_at(object, "reason")};
        for (auto& flag : states_at(object, "state_flags")) out.state.push_back(std::move(flag));
        return out;
    }

    static JobRecord job(const Place& object) {
        JobRecord out{.state = states_at(object, "job_state"),
                      .reason = text_at(object, "state_reason"),
                      .dependency = text_at(object, "dependency"),
                      .partition = text_at(object, "partition"),
                      .qos = text_at(object, "qos"),
                      .planned_start = utc_of(number_at(object, "start_time").value_or(0)),
                      .priority = number_at(object, "priority"),
                      .submitted = number_at(object, "submit_time"),
                      .started = number_at(object, "start_time"),
                      .requeues = number_at(object, "restart_cnt"),
                      .requeue = truth_at(object, "requeue"),
                      .batch = truth_at(object, "batch_flag"),
                      .nodes = text_at(object, "nodes"),
                      .required_nodes = text_at(object, "required_nodes"),
                      .excluded_nodes = text_at(object, "excluded_nodes"),
                      .node_count = number_at(object, "node_count"),
                      .most_nodes = number_at(object, "max_nodes"),
                      .cpus = number_at(object, "cpus"),
                      .tasks = number_at(object, "tasks"),
                      .cpus_per_node = number_at(object, "minimum_cpus_per_node"),
                      .mib_per_node = number_at(object, "memory_per_node"),
                      .mib_per_cpu = number_at(object, "memory_per_cpu"),
                      .disk_mib = number_at(object, "minimum_tmp_disk_per_node"),
                      .cpus_per_gpu = text_at(object, "cpus_per_tres"),
                      .mib_per_gpu = text_at(object, "memory_per_tres"),
                      .requested = text_at(object, "tres_req_str"),
                      .allocated = text_at(object, "tres_alloc_str"),
                      .per_node = text_at(object, "tres_per_node"),
                      .per_task = text_at(object, "tres_per_task"),
                      .per_job = text_at(object, "tres_per_job"),
                      .per_socket = text_at(object, "tres_per_socket"),
                      .features = text_at(object, "features"),
                      .licenses = text_at(object, "licenses"),
                      .reservation = text_at(object, "resv_name")};
        if (out.most_nodes == 0) out.most_nodes.reset();
        if (object["hold"].text() == "true") out.priority = 0;
        for (const char* const key :
             {"required_switches", "core_spec", "thread_spec", "sockets_per_node", "cores_per_socket",
              "threads_per_core", "tasks_per_node", "tasks_per_board", "tasks_per_socket", "tasks_per_core",
              "segment_size"})
            if (const auto number = number_at(object, key); number.value_or(0) > 0 && *number < 0xfffe)
                out.unread.push_back(concat(key, "=", *number));
        if (truth_at(object, "contiguous").value_or(false)) out.unread.emplace_back("contiguous=true");
        if (const auto network = text_at(object, "network"); !network.empty())
            out.unread.push_back("network=" + network);
        for (const auto& word : states_at(object, "shared"))
            out.sharing.push_back(word == "NONE" ? "NO" : word == "OVERSUBSCRIBE" ? "YES" : word);
        for (const auto& word : states_at(object, "exclusive")) {
            if (word == "TRUE") out.sharing.emplace_back("NO");
            if (word == "USER" || word == "MCS" || word == "TOPO") out.sharing.push_back(word);
        }
        const auto id = number_at(object, "job_id");
        if (!id) throw Unreadable{object.where() + "expected job_id, a number"};
        out.id = std::to_string(*id);
        if (const auto array = number_at(object, "array_job_id"); array && *array != 0) {
            if (const auto task = number_at(object, "array_task_id"))
                out.id = concat(*array, "_", *task);
            else
                out.array_tasks = text_at(object, "array_task_string");
            out.throttled = number_at(object, "array_max_tasks").value_or(0) > 0 ||
                            out.array_tasks.find('%') != std::string::npos;
        }
        out.job = out.id;
        if (const auto whole = number_at(object, "het_job_id"); whole && *whole != 0) {
            out.job = std::to_string(*whole);
            out.id = concat(out.job, "+", number_at(object, "het_job_offset").value_or(0));
        }
        parts(object, out);
        return out;
    }

    /// The allocation of the job on each of its nodes: job_resources, in the forms of the parsers, and
    /// gres_detail, in the same order.
    static void parts(const Place& object, JobRecord& out) {
        const auto resources = object["job_resources"];
        std::vector<std::string> gres;
        for (const auto& item : object["gres_detail"].items()) gres.push_back(item.text().value_or(""));
        const auto add = [&](std::string nodes, std::int64_t cpus, std::int64_t memory) {
            const auto n = out.parts.size();
            out.parts.push_back({.nodes = std::move(nodes),
                                 .cpus = cpus,
                                 .memory_mib = memory,
                                 .gres = n < gres.size() ? gres[n] : ""});
        };
        if (resources["nodes"].is(json::Kind::object)) {
            for (const auto& node : resources["nodes"]["allocation"].items())
                add(text_at(node, "name"), number_at(node["cpus"], "count").value_or(0),
                    number_at(node["memory"], "allocated").value_or(0));
        } else {
            for (const auto& node : resources["allocated_nodes"].items()) {
                std::int64_t cores = 0;
                for (const auto& socket : node["sockets"].items())
                    cores += static_cast<std::int64_t>(socket["cores"].items().size());
                add(text_at(node, "nodename"), std::max(number_at(node, "cpus_used").value_or(0), cores),
                    number_at(node, "memory_allocated").value_or(0));
            }
        }
        while (out.parts.size() < gres.size()) add("", 0, 0);  // in the order of the nodes
    }

    static PartitionRecord partition(const Place& object) {
        PartitionRecord out{.name = text_at(object, "name"),
                            .nodes = text_at(object["nodes"], "configured"),
                            .tier = number_at(object["priority"], "tier").value_or(1),
                            .state = states_at(object["partition"], "state")};
        for (const char* const key : {"preempt_mode", "preemption_mode"})
            if (object[key]) out.preempt_mode = states_at(object, key);
        // OverSubscribe=EXCLUSIVE is a share of 0 jobs.
        const auto share = object["maximums"]["oversubscribe"];
        out.exclusive = share && number_at(share, "jobs") == 0 && share["flags"].items().empty();
        if (object["maximums"]["shares"]) out.exclusive = number_at(object["maximums"], "shares") == 0;
        for (const char* const key : {"nodes", "cpus_per_node", "cpus_per_socket", "memory_per_cpu",
                                      "partition_memory_per_node", "partition_memory_per_cpu", "time"})
            if (const auto number = number_at(object["maximums"], key); number.value_or(0) > 0)
                out.limits.push_back(concat("maximums/", key, "=", *number));
        for (const auto& [part, key] :
             {std::pair{"accounts", "allowed"}, std::pair{"accounts", "deny"}, std::pair{"groups", "allowed"},
              std::pair{"qos", "allowed"}, std::pair{"qos", "deny"}, std::pair{"qos", "assigned"}})
            if (const auto value = text_at(object[part], key); !value.empty() && value != "ALL")
                out.limits.push_back(std::string(part) + "/" + key + "=" + value);
        out.job_defaults = text_at(object["defaults"], "job");
        return out;
    }

    Records& out_;
    ReportBuilder& report_;
};

}  // namespace gpusched::io::detail::slurm
