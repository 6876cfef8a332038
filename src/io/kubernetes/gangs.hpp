// SPDX-License-Identifier: Apache-2.0
// Gangs: which pods form a job, and how many of them must run.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/owners.hpp"
#include "io/kubernetes/pods.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// A number of pods, clamped so that sums fit.
inline std::int64_t limited(std::int64_t count) { return std::clamp<std::int64_t>(count, 0, 1'000'000); }

/// The pods of a gang that must run, in all and of each subgroup.
struct GangNeeds {
    std::int64_t min_members = 0;
    std::vector<SubgroupSpec> subgroups{};

    [[nodiscard]] bool lists(const std::string& subgroup) const {
        return std::ranges::any_of(subgroups, [&](const SubgroupSpec& one) { return one.name == subgroup; });
    }
};

/// `subGroups` of KAI. They form a tree through `parent`; pods belong to its leaves. All leaves must run, or
/// as many parts below the same parent as its `minSubGroup` says.
class KaiSubgroups {
  public:
    explicit KaiSubgroups(const Place& spec) {
        std::set<std::string> names;
        for (const auto& part : spec["subGroups"].items()) {
            const auto name = text_at(part, "name");
            ++left_out_;
            if (!name.empty() && !names.insert(name).second) continue;  // KAI refuses it
            below_[text_at(part, "parent")].push_back(
                {name, limited(integer_at(part, "minMember", 0)), integer_at(part, "minSubGroup", -1)});
            topology_ = topology_ || part["topologyConstraint"];
        }
        needs_.min_members = below("", integer_at(spec, "minSubGroup", -1), 0);
        if (!all_) needs_.subgroups.clear();
    }

    /// Leaves and their sum; no leaves if only some must run.
    [[nodiscard]] const GangNeeds& needs() const noexcept { return needs_; }
    [[nodiscard]] bool all_must_run() const noexcept { return all_; }
    /// Whether some have a name that occurred before, are below themselves, below an unknown parent, or too
    /// deep. KAI refuses such groups.
    [[nodiscard]] bool are_left_out() const noexcept { return left_out_ > 0; }
    [[nodiscard]] bool have_topology() const noexcept { return topology_; }

  private:
    struct Part {
        std::string name;
        std::int64_t least, enough;  ///< pods; parts below it, -1 = all
    };
    /// The least number of pods below a part.
    std::int64_t below(const std::string& parent, std::int64_t enough, int depth) {
        constexpr int deepest = 64;
        const auto parts = below_.find(parent);
        if (parts == below_.end() || depth > deepest) return 0;
        std::vector<std::int64_t> least;
        for (const auto& part : parts->second) {
            --left_out_;
            const bool leaf = part.name.empty() || !below_.contains(part.name);
            least.push_back(leaf ? part.least : below(part.name, part.enough, depth + 1));
            if (leaf && !part.name.empty()) needs_.subgroups.push_back({part.name, part.least});
        }
        if (enough >= 0 && enough < std::ssize(least)) {
            all_ = false;
            std::ranges::sort(least);
            least.resize(static_cast<std::size_t>(enough));
        }
        std::int64_t sum = 0;
        for (const auto pods : least) sum += pods;
        return sum;
    }

    std::map<std::string, std::vector<Part>> below_;  // by parent
    GangNeeds needs_;
    std::ptrdiff_t left_out_ = 0;
    bool all_ = true, topology_ = false;
};

inline GangNeeds kai_needs(const Place& spec, const std::string& name, ReportBuilder& report) {
    GangNeeds needs{.min_members = limited(integer_at(spec, "minMember", 0))};
    if (spec["subGroups"].items().empty()) return needs;
    const KaiSubgroups subgroups(spec);
    needs.min_members = std::max(needs.min_members, subgroups.needs().min_members);
    needs.subgroups = subgroups.needs().subgroups;
    if (subgroups.are_left_out())
        report.approximated("PodGroup", "subgroups", Errs::too_lax,
                            "duplicates and subgroups with an impossible parent are left out", name);
    else if (subgroups.all_must_run())
        report.exact("PodGroup", "subgroups");
    else
        report.approximated("PodGroup", "subgroups", Errs::too_lax,
                            "some of them suffice: one gang with as many pods as the smallest of them need",
                            name);
    if (subgroups.have_topology())
        report.ignored("PodGroup", "topology constraints of subgroups", Errs::too_lax,
                       "their pods may be in several domains", name);
    return needs;
}

/// `minTaskMember` of Volcano, which considers roles only if together they need at most as many pods as the
/// gang.
inline GangNeeds volcano_needs(const Place& spec, ReportBuilder& report) {
    GangNeeds needs{.min_members = limited(integer_at(spec, "minMember", 0))};
    const auto roles = spec["minTaskMember"];
    if (!roles) return needs;
    if (!roles.is(json::Kind::object)) throw Unreadable{roles.expected("an object")};
    std::int64_t sum = 0;
    for (const auto& role : roles.items()) {
        const auto name = name_of(std::string(role.key()));
        const auto pods = limited(integer_at(roles, role.key(), 0));
        sum += pods;
        if (!name.empty()) needs.subgroups.push_back({name, pods});
    }
    if (sum > needs.min_members) needs.subgroups.clear();
    report.exact("PodGroup", "minTaskMember");
    return needs;
}

/// Assigns pods to jobs. Pods of one controller are a job but no gang: any one of them may run.
class Gangs {
  public:
    /// @param kai_topology topology constraints of KAI's PodGroups are read elsewhere
    Gangs(const Objects& objects, ReportBuilder& report, bool kai_topology = false)
        : report_(report), kai_topology_(kai_topology) {
        each_readable(objects.of(Kind::pod_group), "PodGroup", Errs::too_lax, report,
                      [&, i = std::size_t{0}](const Place& object) mutable {
                          read_group(object, api_group(objects.version_of(Kind::pod_group, i++)));
                      });
        each_readable(objects.of(Kind::workload), "Workload", Errs::too_lax, report,
                      [&, i = std::size_t{0}](const Place& object) mutable {
                          read_workload(object, api_group(objects.version_of(Kind::workload, i++)));
                      });
        for (const auto& [kind, what] :
             {std::pair(Kind::deployment, "Deployment"), std::pair(Kind::replica_set, "ReplicaSet")})
            each_readable(objects.of(kind), what, Errs::neither, report,
                          [&](const Place& object) { read_refusal(object); });
        each_readable(objects.of(Kind::job), "Job", Errs::neither, report,
                      [&](const Place& object) { read_suspension(object, "its Job is suspended"); });
        each_readable(objects.of(Kind::job_set), "JobSet", Errs::too_lax, report, [&](const Place& object) {
            read_suspension(object, "its JobSet is suspended");
            std::int64_t pods = 0;
            for (const auto& part : object["spec"]["replicatedJobs"].items())
                pods = limited(pods + limited(integer_at(part, "replicas", 1)) *
                                          limited(integer_at(part["template"]["spec"], "parallelism", 1)));
            job_sets_[identity_of(object, true).full()] = pods;
            report_.exact("JobSet", "least number of pods");
        });
        for (const auto& object : objects.of(Kind::leader_worker_set))
            report_.ignored("LeaderWorkerSet", "objects", Errs::neither,
                            "its pods say the size of their group", described(object));
    }

    /// Assigns the pod to its job. Call it for all pods before `jobs`.
    void fill(const Pod& pod, const Owner& owner, TaskSpec& out) {
        if (out.daemon) return;
        const auto& space = pod.id.space;
        const auto gang = [&](const std::string& name, const std::map<std::string, GangNeeds>& groups,
                              const char* what, const std::string& subgroup = {}) {
            const auto full = space + "/" + name;
            const auto found = groups.find(full);
            if (found == groups.end()) {
                report_.approximated("Pod", what, Errs::too_lax,
                                     "the group was not read: any number of its pods may run", out.name);
                join(out, full, {}, false);
                return;
            }
            report_.exact("Pod", what);
            join(out, full, found->second, false);
            if (const auto queued = not_admitted_.find("PodGroup " + full);
                queued != not_admitted_.end() && &groups == &volcano_ && !pod.bound() &&
                (!out.waiting || out.waiting->waits_for == WaitingFor::other_scheduler))
                out.waiting = queued->second;
            if (found->second.lists(subgroup))
                out.subgroup = subgroup;
            else if (!subgroup.empty() && !found->second.subgroups.empty())
                report_.approximated("Pod", "subgroup", Errs::too_lax,
                                     "its PodGroup does not list it: it counts in the whole gang only",
                                     out.name);
        };
        if (const auto group = name_of(pod.spec()["schedulingGroup"]["podGroupName"].text()); !group.empty())
            return gang(group, upstream_, "PodGroup (scheduling.k8s.io)");
        for (const char* const key : {"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"})
            if (const auto name = pod.annotation(key); !name.empty())
                return gang(name, volcano_, "PodGroup (Volcano)", pod.annotation("volcano.sh/task-spec"));
        if (const auto name = pod.annotation("pod-group-name"); !name.empty())
            return gang(name, kai_, "PodGroup (KAI)", pod.label("kai.scheduler/subgroup-name"));
        for (const char* const key : {"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"})
            if (const auto name = pod.label(key); !name.empty())
                return gang(name, coscheduling_, "PodGroup (coscheduling)");
        const auto of_known_size = [&](const std::string& name, const char* annotation, const char* what) {
            std::int64_t size = 0;
            const bool said = read_number(pod.annotation(annotation), size) && size > 0;
            if (said)
                report_.exact("Pod", what);
            else
                report_.approximated("Pod", what, Errs::either,
                                     "the size of its group is unknown: its pods in the input form the gang",
                                     out.name);
            join(out, name, {said ? limited(size) : 0}, !said);
        };
        if (const auto name = pod.label("leaderworkerset.sigs.k8s.io/name"); !name.empty())
            return of_known_size(space + "/" + name + "/" +
                                     pod.label("leaderworkerset.sigs.k8s.io/group-index"),
                                 "leaderworkerset.sigs.k8s.io/size", "LeaderWorkerSet");
        if (const auto name = pod.label("jobset.sigs.k8s.io/jobset-name"); !name.empty()) {
            const auto found = job_sets_.find(space + "/" + name);
            if (found == job_sets_.end())
                report_.approximated("Pod", "JobSet", Errs::either,
                                     "the JobSet was not read: its pods in the input form the gang",
                                     out.name);
            else
                report_.exact("Pod", "JobSet");
            return join(out, space + "/" + name, {found == job_sets_.end() ? 0 : found->second},
                        found == job_sets_.end());
        }
        if (const auto name = pod.label("kueue.x-k8s.io/pod-group-name"); !name.empty())
            return of_known_size(space + "/" + name, "kueue.x-k8s.io/pod-group-total-count",
                                 "pod group (Kueue)");
        if (owner.kind.empty()) return;
        const auto full = space + "/" + owner.name;
        // Controllers of different kinds may share a name.
        const auto [kind, first] = kinds_.try_emplace(full, owner.kind);
        const auto name = first || kind->second == owner.kind ? full : full + " (" + owner.kind + ")";
        const auto workload = workloads_.find(owner.kind + " " + full);
        if (workload == workloads_.end()) return join(out, name, {}, false);
        if (const auto found = not_admitted_.find(owner.kind + " " + full);
            found != not_admitted_.end() && !pod.bound())
            out.waiting = found->second;
        report_.approximated("Pod", "Workload (Kueue)", Errs::too_lax,
                             "a gang of all its pods; quotas are not read", out.name);
        join(out, name, {workload->second}, false);
    }

    /// Adds all jobs. A job that is not a gang needs one member; 0 would mean all of them.
    void jobs(ClusterSpec& cluster) const {
        for (const auto& [name, gang] : jobs_) {
            auto least = gang.counted ? gang.pods : gang.needs.min_members;
            std::int64_t sum = 0;  // groups of several schedulers may share a name
            for (const auto& subgroup : gang.needs.subgroups) sum += subgroup.min_members;
            least = std::max({std::int64_t{1}, least, sum});
            cluster.jobs.push_back({.name = name, .min_members = least, .subgroups = gang.needs.subgroups});
            if (const auto found = refused_.find(name); found != refused_.end() && !gang.pending)
                cluster.jobs.back().waiting = found->second;
        }
        // A suspended job has no pods yet.
        auto without_pods = suspended_;
        without_pods.insert(refused_.begin(), refused_.end());
        for (const auto& [name, reason] : without_pods)
            if (!jobs_.contains(name)) cluster.jobs.push_back({.name = name, .waiting = reason});
    }

  private:
    struct Gang {
        GangNeeds needs{};
        std::int64_t pods = 0;
        bool counted = false;  // all its pods must run
        bool pending = false;  // some of its pods have no node
    };

    void join(TaskSpec& task, const std::string& job, const GangNeeds& needs, bool count) {
        task.job = job;
        auto& gang = jobs_[job];
        gang.needs.min_members = std::max(gang.needs.min_members, needs.min_members);
        for (const auto& subgroup : needs.subgroups)
            if (!gang.needs.lists(subgroup.name)) gang.needs.subgroups.push_back(subgroup);
        gang.counted = gang.counted || count;
        gang.pending = gang.pending || !task.node;
        ++gang.pods;
    }

    void read_group(const Place& object, std::string_view api_group) {
        const auto name = identity_of(object, true).full();
        const auto spec = object["spec"];
        if (api_group == "scheduling.k8s.io")
            upstream_[name] = {limited(integer_at(spec["schedulingPolicy"]["gang"], "minCount", 0))};
        else if (api_group == "scheduling.volcano.sh")
            read_volcano(object, name);
        else if (api_group == "scheduling.run.ai")
            kai_[name] = kai_needs(spec, name, report_);
        else
            coscheduling_[name] = {limited(integer_at(spec, "minMember", 0))};
        if ((spec["topologyConstraint"] && !(kai_topology_ && api_group == "scheduling.run.ai")) ||
            spec["networkTopology"] || spec["schedulingConstraints"])
            report_.ignored("PodGroup", "topology constraints", Errs::too_lax,
                            "its pods may be in several domains", name);
        if (spec["minResources"])
            report_.ignored("PodGroup", "minResources", Errs::neither, "the requests of its pods count",
                            name);
        report_.exact("PodGroup", "least number of pods");
    }

    void read_volcano(const Place& object, const std::string& name) {
        volcano_[name] = volcano_needs(object["spec"], report_);
        if (text_at(object["status"], "phase") != "Pending") return;
        auto queue = text_at(object["spec"], "queue");
        if (queue.empty()) queue = "default";
        const WaitingReason reason{WaitingFor::quota,
                                   "Volcano has not admitted its PodGroup to queue " + queue};
        not_admitted_.emplace("PodGroup " + name, reason);
        suspended_.emplace(name, reason);  // Volcano creates the pods of its Jobs later
        report_.exact_of("PodGroup", "not admitted to its queue", name);
    }

    /// Reads whether a ResourceQuota refuses the pods of a controller.
    void read_refusal(const Place& object) {
        static constexpr std::string_view refused = "exceeded quota: ";
        for (const auto& condition : object["status"]["conditions"].items()) {
            const auto message = condition["message"].text().value_or("");
            const auto at = message.find(refused);
            if (condition["type"].text() != "ReplicaFailure" || condition["status"].text() != "True" ||
                at == message.npos)
                continue;
            const auto id = identity_of(object, true);
            const auto above = controller_of(object);
            const auto name = above ? id.space + "/" + text_at(above, "name") : id.full();
            refused_.emplace(name, WaitingReason{WaitingFor::quota,
                                                 "ResourceQuota " + message.substr(at + refused.size())});
            report_.exact_of("ResourceQuota", "refuses pods of a controller", name);
        }
    }

    /// A Workload of Kueue or a refusal says more, if there is one.
    void read_suspension(const Place& object, const char* detail) {
        if (!truth_at(object["spec"], "suspend")) return;
        for (const auto& condition : object["status"]["conditions"].items())
            if (const auto type = condition["type"].text();
                condition["status"].text() == "True" &&
                (type == "Complete" || type == "Completed" || type == "Failed"))
                return;
        suspended_.emplace(identity_of(object, true).full(), WaitingReason{WaitingFor::held, detail});
    }

    void read_workload(const Place& object, std::string_view api_group) {
        const auto id = identity_of(object, true);
        if (api_group != "kueue.x-k8s.io")
            return report_.ignored("Workload", "objects (scheduling.k8s.io)", Errs::neither,
                                   "templates of PodGroups, which are read themselves", id.full());
        std::int64_t pods = 0;
        for (const auto& set : object["spec"]["podSets"].items())
            pods += limited(integer_at(set, "minCount", integer_at(set, "count", 1)));
        const auto reason = why_not_admitted(object);
        for (const auto& owner : object["metadata"]["ownerReferences"].items()) {
            const auto full = id.space + "/" + text_at(owner, "name");
            workloads_[text_at(owner, "kind") + " " + full] = limited(pods);
            if (!reason) continue;
            not_admitted_.emplace(text_at(owner, "kind") + " " + full, *reason);
            suspended_.emplace(full, *reason);
        }
        report_.exact("Workload", "pod sets (Kueue)");
    }

    /// Why Kueue has not admitted a Workload; absent if it has, or if the Workload has ended.
    static std::optional<WaitingReason> why_not_admitted(const Place& workload) {
        std::string message;
        for (const auto& condition : workload["status"]["conditions"].items()) {
            const auto type = condition["type"].text();
            const bool holds = condition["status"].text() == "True";
            if (holds && (type == "Admitted" || type == "Finished")) return std::nullopt;
            if (!holds && type == "QuotaReserved") message = name_of(condition["message"].text());
        }
        if (workload["spec"]["active"].text() == "false")
            return WaitingReason{WaitingFor::held, "its Workload is not active"};
        return WaitingReason{WaitingFor::quota,
                             "Kueue has not admitted its Workload" + (message.empty() ? "" : ": " + message)};
    }

    ReportBuilder& report_;
    bool kai_topology_;
    std::map<std::string, WaitingReason> not_admitted_;  // by kind and name of the owner or the PodGroup
    std::map<std::string, WaitingReason> suspended_;     // by name of the owner, which may have no pods
    std::map<std::string, WaitingReason> refused_;       // the same, by a ResourceQuota
    std::map<std::string, GangNeeds> upstream_, volcano_, kai_, coscheduling_;
    std::map<std::string, std::int64_t> workloads_, job_sets_;  // pods needed
    std::map<std::string, std::string> kinds_;                  // of the owner that has a job's name
    std::map<std::string, Gang> jobs_;
};

}  // namespace gpusched::io::detail::kubernetes
