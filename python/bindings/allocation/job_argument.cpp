// Jobs as callers describe them: dicts, or names of jobs of the cluster.
#include "allocation/gangs.hpp"
#include "core/keywords.hpp"
#include "model/task_argument.hpp"

#include <gpusched/io/cluster_json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace gpusched::python {

namespace {

std::int64_t pod_count(const std::string& field, py::handle value) {
    try {
        return OptionType<std::int64_t>::read(field, value);  // how many there may be is looked at later
    } catch (const InvalidInput&) {
        bad_option(field, value, "an integer from 1 to 1000000");
    }
}

allocation::PodRequest pod_request(const std::string& field, py::handle value, const Cluster* cluster) {
    if (!py::isinstance<py::dict>(value)) bad_option(field, value, "a dict");
    py::dict task;
    allocation::PodRequest request;
    auto keys = io::task_keys();
    keys.insert(keys.begin(), "count");
    Problems problems;
    for (const auto& [key, part] : value.cast<py::dict>())
        collect(problems, [&, key = key, part = part] {
            const auto name = OptionType<std::string>::read(field + ", a key", key);
            if (name == "count") {
                request.count = pod_count(field + ".count", part);
            } else if (name.starts_with("x-") || std::find(keys.begin(), keys.end(), name) != keys.end()) {
                task[key] = part;
            } else {
                throw InvalidInput(bad_key(field, name, keys));
            }
        });
    task["name"] = field;
    collect(problems, [&] { request.pod = task_spec(task, field, cluster); });
    problems.throw_if_any();
    return request;
}

std::vector<SubgroupSpec> subgroups_of(py::handle value) {
    if (py::isinstance<py::str>(value) || !py::isinstance<py::sequence>(value))
        bad_option("subgroups", value, "a list of {\"name\": ..., \"min_members\": ...}");
    std::vector<SubgroupSpec> subgroups;
    for (const auto& item : value) {
        const auto field = "subgroups[" + std::to_string(subgroups.size()) + "]";
        if (!py::isinstance<py::dict>(item)) bad_option(field, item, "{\"name\": ..., \"min_members\": ...}");
        auto& subgroup = subgroups.emplace_back();
        for (const auto& [key, part] : item.cast<py::dict>()) {
            const auto name = OptionType<std::string>::read(field + ", a key", key);
            if (name == "name")
                subgroup.name = OptionType<std::string>::read(field + ".name", part);
            else if (name == "min_members")
                subgroup.min_members = OptionType<std::int64_t>::read(field + ".min_members", part);
            else
                bad_option(field, item, "the keys 'name' and 'min_members' only");
        }
    }
    return subgroups;
}

}  // namespace

std::vector<NetworkAffinity> further_levels(py::handle value) {
    if (py::isinstance<py::str>(value) || !py::isinstance<py::sequence>(value))
        bad_option("further", value, "a list of {\"level\": ..., \"mode\": ...}");
    std::vector<NetworkAffinity> wishes;
    for (const auto& item : value) {
        const auto field = "further[" + std::to_string(wishes.size()) + "]";
        if (!py::isinstance<py::dict>(item)) bad_option(field, item, "{\"level\": ..., \"mode\": ...}");
        auto& wish = wishes.emplace_back();
        const auto keys = item.cast<py::dict>();
        bool has_level = false;
        for (const auto& [key, part] : keys) {
            const auto name = OptionType<std::string>::read(field, key);
            if (name == "level") {
                wish.level = read_level(field + ".level", part);
                has_level = true;
            } else if (name == "mode") {
                wish.mode = OptionType<NetworkMode>::read(field + ".mode", part);
            } else {
                bad_option(field, item, "the keys 'level' and 'mode' only");
            }
        }
        if (!has_level) bad_option(field, item, "a 'level'");
    }
    return wishes;
}

JobArgument job_argument(const py::object& job, const Cluster* cluster) {
    JobArgument out;
    if (py::isinstance<py::str>(job)) {
        out.name = OptionType<std::string>::read("job", job);
        return out;
    }
    if (!py::isinstance<py::dict>(job)) bad_type("job", job, "a dict, or the name of a job of the cluster");
    Problems problems;
    bool has_pods = false;
    for (const auto& [key, value] : job.cast<py::dict>()) {
        const auto field = OptionType<std::string>::read("job, a key", key);
        try {
            if (field == "name") {
                out.name = out.request.name = OptionType<std::string>::read("name", value);
            } else if (field == "pods") {
                has_pods = true;
                if (py::isinstance<py::str>(value) || !py::isinstance<py::sequence>(value))
                    bad_option("pods", value, "a list of dicts");
                Problems of_pods;
                for (const auto& item : value) {
                    const auto group = "pods[" + std::to_string(out.request.pods.size()) + "]";
                    auto& pods = out.request.pods.emplace_back();
                    collect(of_pods, [&] { pods = pod_request(group, item, cluster); });
                }
                of_pods.throw_if_any();
            } else if (field == "min_members") {
                out.request.min_members = OptionType<std::int64_t>::read("min_members", value);
            } else if (field == "subgroups") {
                out.request.subgroups = subgroups_of(value);
            } else if (field == "mode") {
                out.options.mode = OptionType<std::optional<NetworkMode>>::read("mode", value);
            } else if (field == "level") {
                out.options.level = read_optional_level("level", value);
            } else if (field == "further") {
                out.options.further = further_levels(value);
            } else if (field == "traffic") {
                out.options.traffic = TrafficMatrix::read("traffic", value);
            } else {
                static constexpr std::array<std::string_view, 8> keys{
                    "name", "pods", "min_members", "subgroups", "mode", "level", "further", "traffic"};
                problems.add(bad_key("job", field, keys));
            }
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) problems.add("job: " + problem);
        }
    }
    if (out.name.empty()) problems.add("job: name: missing");
    if (!has_pods) problems.add("job: pods: missing");
    problems.throw_if_any();
    return out;
}

JobsInCluster in_cluster(const ClusterPtr& cluster, const std::vector<JobArgument>& jobs) {
    JobsInCluster out{cluster, std::vector<allocation::JobPods>(jobs.size())};
    std::vector<allocation::JobRequest> fresh;
    for (const auto& job : jobs)
        if (!job.request.name.empty()) fresh.push_back(job.request);
    return unlocked([&] {
        std::vector<allocation::JobPods> made;
        if (!fresh.empty()) {
            auto with = allocation::with_jobs(*cluster, fresh);
            out.cluster = std::make_shared<Cluster>(std::move(with.cluster));
            made = std::move(with.jobs);
        }
        std::size_t next = 0;
        // Of the cluster that has the new pods: they shift the ids of the caller's.
        const auto& known = out.cluster->inventory().job_names;
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            if (!jobs[j].request.name.empty())
                out.jobs[j] = std::move(made[next++]);
            else
                out.jobs[j].pods = allocation::pending_pods(*out.cluster, jobs[j].name);
            if (out.jobs[j].pods.empty())
                throw InvalidInput(bad_value("job", gpusched::quoted(jobs[j].name), "one with pending pods") +
                                   (known.find(jobs[j].name) ? "" : did_you_mean(jobs[j].name, known)));
        }
        return std::move(out);
    });
}

}  // namespace gpusched::python
