// SPDX-License-Identifier: Apache-2.0
// Records from scontrol's text output: fields key=value, over several lines or in one.
#pragma once

#include "io/slurm/values.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gpusched::io::detail::slurm {

/// The keys with which records begin.
inline constexpr std::string_view record_keys[] = {"NodeName", "JobId", "PartitionName"};

/// Keys of other records that scontrol shows; they are counted and ignored.
inline constexpr std::string_view other_record_keys[] = {"ReservationName", "LicenseName", "StepId",
                                                         "Aliases",         "BurstBuffer", "FrontendName"};

/// Whether scontrol writes the key in records of nodes, jobs or partitions. Other words are parts of a value
/// with blanks.
inline bool is_key(std::string_view word) {
    static const std::unordered_set<std::string_view> known = [] {
        std::string_view keys =
            R"(Account AccrueTime ActiveFeatures AdminComment AllocMem AllocNode:Sid AllocNodes
        AllocTRES AllowAccounts AllowGroups AllowQos Alternate Arch ArrayJobId ArrayTaskId
        ArrayTaskThrottle AvailableFeatures AveWatts BatchFeatures BatchFlag BatchHost BcastAddr
        Boards BootTime BurstBuffer BurstBufferState CPUAlloc CPUEfctv CPUErr CPULoad
        CPUSpecList CPUTot CPU_IDs CPUs/Task CapWatts CfgTRES Cluster ClusterFeatures Command
        Comment Container ContainerID Contiguous CoreSpec CoreSpecCount CoresPerSocket CpuBind
        CpusPerTres CronJob CrontabSpec CurrentWatts Deadline DefMemPerCPU DefMemPerNode Default
        DefaultTime DelayBoot DenyAccounts DenyQos Dependency DerivedExitCode DisableRootJobs
        EligibleTime EndTime ExcNodeList ExclusiveTopo ExclusiveUser ExitCode ExtSensorsJoules
        ExtSensorsTemp ExtSensorsWatts Extra FailedNode Features FedOrigin FedSiblingsActive
        FedSiblingsViable FreeMem GRES GRES_IDX GraceTime Gres GresDrain GresUsed GroupId
        HetJobId HetJobIdSet HetJobOffset Hidden InstanceId InstanceType JOB_GRES JobDefaults
        JobId JobName JobState KillOInInvalidDependent LLN LastBusyTime LastSchedEval Licenses
        LicensesAlloc MCS_label MailType MailUser MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU
        MaxMemPerNode MaxNodes MaxTime Mem MemPerTres MemSpecLimit MinCPUsNode MinMemoryCPU
        MinMemoryNode MinNodes MinTmpDiskNode Network NextState Nice NodeAddr NodeHostName
        NodeList NodeName Nodes NtasksPerN:B:S:C NtasksPerTRES NumCPUs NumNodes NumTasks OS
        OverSubscribe OverTimeLimit Owner Partition PartitionName Partitions Port Power
        PreSusTime PreemptEligibleTime PreemptMode PreemptTime Prefer Priority PriorityJobFactor
        PriorityTier QOS QoS RealMemory Reason Reboot ReqB:S:C:T ReqNodeList ReqResv ReqSwitch
        ReqTRES Requeue Reservation ReservationName ResizeTime Restarts RestrictedCoresPerGPU
        ResumeAfterTime ResumeTimeout RootOnly RunTime SLUID SchedNodeList Scheduler
        SecsPreSuspend SegmentSize SelectTypeParameters Shared SlurmdStartTime Sockets
        Socks/Node StartTime State StdErr StdIn StdOut StepMgrEnabled SubmitLine SubmitTime
        SuspendTime SuspendTimeout Switches SystemComment TRES TRESBillingWeights ThreadsPerCore
        TimeLimit TimeMin TmpDisk Topology TotalCPUs TotalNodes TresBind TresFreq TresPerJob
        TresPerNode TresPerSocket TresPerTask UserId Version WCKey Weight WorkDir mcs_label)";
        std::unordered_set<std::string_view> out;
        while (!keys.empty()) {
            auto line = take_line(keys);
            for (auto key = take_word(line); !key.empty(); key = take_word(line)) out.insert(key);
        }
        return out;
    }();
    return known.contains(word);
}

/// Whether the value of a key may hold blanks up to the end of its line.
inline bool is_free_text(std::string_view key) {
    static constexpr std::string_view known[] = {
        "AdminComment", "Command", "Comment", "Extra",      "JobName",       "OS",     "Reason",
        "StdErr",       "StdIn",   "StdOut",  "SubmitLine", "SystemComment", "WorkDir"};
    return std::ranges::binary_search(known, key);
}

/// The one of these keys with which a line begins; empty if none.
template <std::size_t N>
std::string_view leading_key(std::string_view line, const std::string_view (&keys)[N]) {
    for (const auto key : keys)
        if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '=') return key;
    return {};
}

/// Fields of one record, by key. Those of a job's parts, which occur several times, are separate.
struct Fields {
    std::map<std::string, std::string, std::less<>> values{};
    std::vector<std::map<std::string, std::string, std::less<>>> parts{};
    std::string where{};

    [[nodiscard]] std::string text(std::string_view key) const {
        return std::string(value_of(value_at(values, key)));
    }
    /// @throws Unreadable if it is not an amount
    [[nodiscard]] std::optional<std::int64_t> amount(std::string_view key, char unit = 0) const {
        const auto found = text(key);
        if (found.empty() || found == "UNLIMITED" || found == "*") return std::nullopt;
        const auto read = amount_of(found, unit);
        if (!read)
            throw Unreadable{where + std::string(key) + ": expected a number, found " + in_quotes(found)};
        return read;
    }
    [[nodiscard]] std::optional<bool> truth(std::string_view key) const {
        const auto found = upper_case(text(key));
        return found.empty() ? std::nullopt : std::optional(found == "1" || found == "YES");
    }
};

/// Reads records from text.
class TextRecords {
  public:
    TextRecords(Records& out, ReportBuilder& report) : out_(out), report_(report) {}

    /// Whether the text is output of scontrol: its first line that is not blank begins a record, or says that
    /// there is none.
    static bool recognises(std::string_view text) {
        while (!text.empty()) {
            const auto line = trimmed(take_line(text));
            if (line.empty()) continue;
            return !leading_key(line, record_keys).empty() || !leading_key(line, other_record_keys).empty() ||
                   none_of(line);
        }
        return false;
    }

    void take(std::string_view text, const std::string& source) {
        Fields fields;
        std::string_view kind;
        const auto finish = [&] {
            if (!kind.empty()) record(kind, fields);
            kind = {};
            fields = {};
        };
        for (std::size_t number = 1; !text.empty(); ++number) {
            const auto line = take_line(text);
            const auto words = trimmed(line);
            const auto starts = leading_key(line, record_keys), other = leading_key(line, other_record_keys);
            if (words.empty() || !starts.empty() || !other.empty()) finish();
            if (words.empty()) continue;
            const auto where = concat(source, ":", number, ": ");
            if (!other.empty()) {
                auto rest = words.substr(other.size() + 1);
                const auto is_reservation = other == "ReservationName";
                report_.ignored(is_reservation ? "Reservation" : std::string(other), "objects",
                                is_reservation ? Errs::too_lax : Errs::neither,
                                is_reservation ? "resources reserved for later count as free; nodes say "
                                                 "which are reserved now"
                                               : "does not affect where jobs may run",
                                take_word(rest));
                skipping_ = true;
                continue;
            }
            if (!starts.empty()) {
                kind = starts;
                fields.where = where;
                skipping_ = false;
            } else if (kind.empty()) {
                if (skipping_) continue;
                if (none_of(words)) {
                    out_.any_jobs = out_.any_jobs || words.find("job") != words.npos;
                    out_.any_partitions = out_.any_partitions || words.find("partition") != words.npos;
                    continue;
                }
                report_.left_out("(none)", "lines", "belong to no record", where + std::string(words));
                continue;
            }
            take_line_of(line, fields);
        }
        finish();
    }

  private:
    static bool none_of(std::string_view line) {
        return line.starts_with("No ") && line.find(" in the system") != line.npos;
    }

    void take_line_of(std::string_view line, Fields& fields) {
        std::size_t indent = 0;
        while (indent < line.size() && line[indent] == ' ') ++indent;
        std::string key;
        if (indent >= 8 && !last_.empty()) key = last_;  // scontrol continues a reason of several lines
        auto words = trimmed(line);
        bool first = true;
        while (!words.empty()) {
            const auto before = words;
            const auto word = take_word(words);
            const auto equals = word.find('=');
            const bool is_one = equals != word.npos && is_key(word.substr(0, equals)) &&
                                !(indent >= 8 && first && !last_.empty());
            first = false;
            if (!is_one) {
                if (key.empty()) continue;
                auto& value = *into(key, fields);
                if (!value.empty()) value += ' ';
                value += clean(word);
                continue;
            }
            key = word.substr(0, equals);
            last_ = key;
            start(key, word.substr(equals + 1), fields);
            // In records of several lines the rest of the line is the value: text of users may look like
            // fields.
            const bool alone = key == "JobName"
                                   ? words.find("UserId=") == words.npos
                                   : indent > 0 && (key != "Reason" || fields.values.contains("NodeName"));
            if (is_free_text(key) && alone) {
                *into(key, fields) = clean(trimmed(before.substr(equals + 1)));
                break;
            }
        }
    }

    /// Begins a field. Of several fields with one key the first counts: later ones are text of users.
    void start(const std::string& key, std::string_view value, Fields& fields) {
        twice_ = false;
        if (key == "Nodes" && fields.values.contains("JobId")) {
            fields.parts.emplace_back();
            fields.parts.back()["Nodes"] = clean(value);
            return;
        }
        if (!fields.parts.empty() &&
            (key == "CPU_IDs" || key == "Mem" || key == "GRES" || key == "GRES_IDX")) {
            fields.parts.back()[key] = clean(value);
            return;
        }
        twice_ = !fields.values.try_emplace(key, clean(value)).second;
        if (twice_)
            report_.ignored("(all)", "fields that occur twice", Errs::either,
                            "the first one counts; text of users can look like fields in output of -o",
                            fields.where + key);
    }
    /// The value of the last field, which grows by further words.
    std::string* into(const std::string& key, Fields& fields) {
        dropped_.clear();
        if (twice_) return &dropped_;
        if (!fields.parts.empty() && fields.parts.back().contains(key) && !fields.values.contains(key))
            return &fields.parts.back()[key];
        return &fields.values[key];
    }
    static std::string clean(std::string_view text) {
        return find_invalid_utf8(text) == text.npos && text.find('\0') == text.npos
                   ? std::string(text)
                   : printable(text, text.size() * 4 + 4);
    }

    void record(std::string_view kind, const Fields& fields) {
        const auto name = std::string(kind == "NodeName" ? "Node" : kind == "JobId" ? "Job" : "Partition");
        try {
            if (kind == "NodeName") {
                out_.nodes.push_back(node(fields));
            } else if (kind == "JobId") {
                out_.any_jobs = true;
                out_.jobs.push_back(job(fields));
                if (out_.jobs.back().submitted || out_.jobs.back().started)
                    report_.approximated("Job", "times", Errs::neither, "no zone is said: read as UTC",
                                         out_.jobs.back().id);
                if (const auto& read = out_.jobs.back();
                    read.started && read.run_time_s && contains(read.state, "RUNNING"))
                    out_.now = std::max(out_.now.value_or(INT64_MIN), *read.started + *read.run_time_s);
            } else {
                out_.any_partitions = true;
                out_.partitions.push_back(partition(fields));
            }
        } catch (const Unreadable& bad) {
            report_.left_out(name, "objects", "cannot be read", bad.why,
                             name == "Job" ? Errs::too_lax : Errs::too_strict);
        }
    }

    static NodeRecord node(const Fields& fields) {
        NodeRecord out{
            .name = fields.text("NodeName"),
            .cpus = fields.amount("CPUTot"),
            .effective_cpus = fields.amount("CPUEfctv"),
            .allocated_cpus = fields.amount("CPUAlloc"),
            .memory_mib = fields.amount("RealMemory", 'M'),
            .allocated_mib = fields.amount("AllocMem", 'M'),
            .specialized_mib = fields.amount("MemSpecLimit", 'M'),
            .disk_mib = fields.amount("TmpDisk", 'M'),
            .gres = fields.text("Gres"),
            .gres_used = fields.text("GresUsed"),
            .gres_drained = fields.text("GresDrain"),
            .state = states_of(fields.text("State")),
            .features = words_of(fields.text(fields.values.contains("ActiveFeatures") ? "ActiveFeatures"
                                                                                      : "AvailableFeatures")),
            .partitions = words_of(fields.text("Partitions")),
            .reservation = fields.text("ReservationName"),
            .reason = fields.text("Reason")};
        return out;
    }

    /// `2`, or `2-4`: the fewest and the most.
    static void node_count(const Fields& fields, JobRecord& out) {
        auto text = fields.text("NumNodes");
        std::string_view rest = text;
        const auto low = take_until(rest, '-');
        if (low.empty()) return;
        out.node_count = amount_of(low);
        if (!out.node_count || (!rest.empty() && !(out.most_nodes = amount_of(rest))))
            throw Unreadable{fields.where + "NumNodes: expected a number, found " + in_quotes(text)};
    }

    static JobRecord job(const Fields& fields) {
        JobRecord out{
            .state = states_of(fields.text("JobState")),
            .reason = fields.text("Reason"),
            .dependency = fields.text("Dependency"),
            .partition = fields.text("Partition"),
            .qos = fields.text("QOS"),
            .planned_start = time_of(fields.text("StartTime")) ? fields.text("StartTime") : "",
            .priority = fields.amount("Priority"),
            .submitted = time_of(fields.text("SubmitTime")),
            .started = time_of(fields.text("StartTime")),
            .run_time_s = duration_of(fields.text("RunTime")),
            .requeues = fields.amount("Restarts"),
            .requeue = fields.truth("Requeue"),
            .batch = fields.truth("BatchFlag"),
            .nodes = fields.text("NodeList"),
            .required_nodes = fields.text("ReqNodeList"),
            .excluded_nodes = fields.text("ExcNodeList"),
            .cpus = fields.amount(fields.text("NumCPUs").find('-') == std::string::npos ? "NumCPUs" : ""),
            .tasks = fields.amount("NumTasks"),
            .cpus_per_node = fields.amount("MinCPUsNode"),
            .mib_per_node = fields.amount("MinMemoryNode", 'M'),
            .mib_per_cpu = fields.amount("MinMemoryCPU", 'M'),
            .disk_mib = fields.amount("MinTmpDiskNode", 'M'),
            .cpus_per_gpu = fields.text("CpusPerTres"),
            .mib_per_gpu = fields.text("MemPerTres"),
            .requested = fields.text(fields.values.contains("ReqTRES") ? "ReqTRES" : "TRES"),
            .allocated = fields.text(fields.values.contains("AllocTRES") ? "AllocTRES" : "TRES"),
            .per_node = fields.text(fields.values.contains("TresPerNode") ? "TresPerNode" : "Gres"),
            .per_task = fields.text("TresPerTask"),
            .per_job = fields.text("TresPerJob"),
            .per_socket = fields.text("TresPerSocket"),
            .features = fields.text("Features"),
            .licenses = fields.text("Licenses"),
            .reservation = fields.text("Reservation"),
            .sharing =
                states_of(fields.text(fields.values.contains("OverSubscribe") ? "OverSubscribe" : "Shared"))};
        node_count(fields, out);
        // Shapes without a number above 0 request nothing.
        for (const char* const key :
             {"Contiguous", "CoreSpec", "Network", "NtasksPerN:B:S:C", "NtasksPerTRES", "ReqB:S:C:T",
              "ReqSwitch", "SegmentSize", "Socks/Node", "Switches"})
            if (const auto value = fields.text(key); value.find_first_not_of("0:*") != value.npos)
                out.unread.push_back(std::string(key) + "=" + value);
        out.throttled = fields.amount("ArrayTaskThrottle").value_or(0) > 0 ||
                        fields.text("ArrayTaskId").find('%') != std::string::npos;
        const auto id = fields.text("JobId"), array = fields.text("ArrayJobId"),
                   task = fields.text("ArrayTaskId"), whole = fields.text("HetJobId");
        std::int64_t number = 0;
        if (!read_number(id, number) || number < 0)
            throw Unreadable{fields.where + "JobId: expected a number, found " + in_quotes(id)};
        out.id = id;
        if (!array.empty() && !task.empty()) {
            if (read_number(task, number))
                out.id = array + "_" + task;
            else
                out.array_tasks = task, out.id = array;
        }
        out.job = out.id;
        if (!whole.empty()) {
            out.id = whole + "+" + fields.text("HetJobOffset");
            out.job = whole;
        }
        for (const auto& part : fields.parts) {
            const auto at = [&](std::string_view key) { return std::string(value_of(value_at(part, key))); };
            const auto cpus = indices_of(at("CPU_IDs"));
            const auto memory = amount_of(at("Mem").empty() ? "0" : at("Mem"), 'M');
            if (!cpus || !memory)
                throw Unreadable{fields.where + "Nodes=" + printable(at("Nodes")) +
                                 ": expected CPU_IDs such as 0-15 and Mem, a number"};
            out.parts.push_back({.nodes = at("Nodes"),
                                 .cpus = static_cast<std::int64_t>(cpus->size()),
                                 .memory_mib = *memory,
                                 .gres = at(part.contains("GRES") ? "GRES" : "GRES_IDX")});
        }
        return out;
    }

    static PartitionRecord partition(const Fields& fields) {
        PartitionRecord out{.name = fields.text("PartitionName"),
                            .nodes = fields.text("Nodes"),
                            .tier = fields.amount("PriorityTier").value_or(1),
                            .state = states_of(fields.text("State")),
                            .exclusive = fields.text("OverSubscribe") == "EXCLUSIVE" ||
                                         fields.text("Shared") == "EXCLUSIVE"};
        if (const auto mode = fields.text("PreemptMode"); !mode.empty())
            out.preempt_mode = words_of(upper_case(mode));
        for (const auto& [key, none] :
             {std::pair{"MaxNodes", "UNLIMITED"}, std::pair{"MaxCPUsPerNode", "UNLIMITED"},
              std::pair{"MaxCPUsPerSocket", "UNLIMITED"}, std::pair{"MaxMemPerNode", "UNLIMITED"},
              std::pair{"MaxMemPerCPU", "UNLIMITED"}, std::pair{"MaxTime", "UNLIMITED"},
              std::pair{"AllowGroups", "ALL"}, std::pair{"AllowAccounts", "ALL"},
              std::pair{"AllowQos", "ALL"}, std::pair{"DenyAccounts", ""}, std::pair{"DenyQos", ""},
              std::pair{"QoS", "N/A"}, std::pair{"ReqResv", "NO"}, std::pair{"RootOnly", "NO"}})
            if (const auto value = fields.text(key); !value.empty() && value != none)
                out.limits.push_back(std::string(key) + "=" + value);
        out.job_defaults = fields.text("JobDefaults");
        return out;
    }

    Records& out_;
    ReportBuilder& report_;
    std::string last_{}, dropped_{};
    bool twice_ = false, skipping_ = false;
};

}  // namespace gpusched::io::detail::slurm
