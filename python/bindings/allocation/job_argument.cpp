// SPDX-License-Identifier: Apache-2.0
// Reads jobs as callers describe them: dicts, or names of jobs of the cluster.
#include "allocation/gangs.hpp"
#include "model/task_argument.hpp"
#include "support/documents.hpp"

#include <gpusched/io/cluster_forms.hpp>
#include <gpusched/model/gpu_names.hpp>

namespace gpusched::python {

namespace {

/// A group of pods: a task of the cluster format without the fields that the job or the placement determines.
struct PodsDocument : TaskSpec {
    std::int64_t count = 1;
};
template <class F>
constexpr void visit_fields(std::type_identity<PodsDocument>, F&& field) {
    field("count", &PodsDocument::count, within(1, 1'000'000));
    json::visit_other_fields<TaskSpec>({"name", "job", "node", "gpus"}, field);
}

struct JobDocument {
    std::string name{};
    std::vector<PodsDocument> pods{};
    std::int64_t min_members = 0;
    std::vector<SubgroupSpec> subgroups{};
    std::optional<NetworkMode> mode{};
    std::optional<Level> level{};
    std::vector<NetworkAffinity> further{};
    std::vector<std::vector<double>> traffic{};
};
template <class F>
constexpr void visit_fields(std::type_identity<JobDocument>, F&& field) {
    field("name", &JobDocument::name, Required{});
    field("pods", &JobDocument::pods, Required{});
    field("min_members", &JobDocument::min_members, any_amount);
    field("subgroups", &JobDocument::subgroups);
    field("mode", &JobDocument::mode);
    field("level", &JobDocument::level, IsLevel{});
    field("further", &JobDocument::further);
    field("traffic", &JobDocument::traffic);
}

/// The label keys that levels of the cluster's tasks may name.
std::vector<std::string> label_keys(const Cluster* cluster) {
    std::vector<std::string> keys;
    if (cluster != nullptr)
        for (const auto& level : cluster->inventory().label_levels) keys.push_back(level.key);
    return keys;
}

}  // namespace

TaskSpec task_spec(py::handle task, const Cluster* cluster) {
    const auto keys = label_keys(cluster);
    const io::LabelLevels levels{keys};
    auto spec = from_python<TaskSpec>("<task>", task, {}, levels);
    if (cluster != nullptr) resolve_gpu_models(spec, *cluster);
    return spec;
}

std::vector<NetworkAffinity> further_levels(py::handle value) {
    return from_python<std::vector<NetworkAffinity>>("further", value);
}

JobArgument job_argument(const py::object& job, const Cluster* cluster, const std::string& source) {
    JobArgument out;
    if (py::isinstance<py::str>(job)) {
        out.name = OptionType<std::string>::read(source, job);
        return out;
    }
    if (!is_mapping(job)) bad_type(source, job, "a dict, or the name of a job of the cluster");
    const auto keys = label_keys(cluster);
    const io::LabelLevels levels{keys};
    auto given = from_python<JobDocument>(source, job, {}, levels);
    if (given.name.empty()) throw InvalidInput(source + ": /name: expected a name, found \"\"");
    out.name = out.request.name = std::move(given.name);
    for (auto& pods : given.pods) {
        const auto count = pods.count;
        out.request.pods.push_back({count, std::move(pods)});
    }
    out.request.min_members = given.min_members;
    out.request.subgroups = std::move(given.subgroups);
    out.options.mode = given.mode;
    out.options.level = given.level;
    out.options.further = std::move(given.further);
    out.options.traffic = std::move(given.traffic);
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
        // Ids refer to the cluster with the new pods, which shift the ids of the caller's cluster.
        const auto& known = out.cluster->inventory().job_names;
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            if (!jobs[j].request.name.empty())
                out.jobs[j] = std::move(made[next++]);
            else
                out.jobs[j].pods = allocation::pending_pods(*out.cluster, jobs[j].name);
            if (out.jobs[j].pods.empty())
                throw InvalidInput(
                    bad_value("job", gpusched::quoted(jobs[j].name), "a job with pending tasks") +
                    (known.find(jobs[j].name) ? "" : did_you_mean(jobs[j].name, known)));
        }
        return std::move(out);
    });
}

std::vector<TaskId> pending_pods_argument(const char* argument, const py::object& pods,
                                          const Cluster& cluster) {
    constexpr const char* expected =
        "a job (a dict, or the name of one of the cluster) or a list of names of pending tasks";
    if (!py::isinstance<py::iterable>(pods)) bad_type(argument, pods, expected);
    std::vector<TaskId> out;
    for (const auto& pod : pods) {
        if (!py::isinstance<py::str>(pod)) bad_type(argument, pods, expected);
        out.push_back(cluster.find_task(OptionType<std::string>::read(argument, pod)));
    }
    return out;
}

}  // namespace gpusched::python
