// SPDX-License-Identifier: Apache-2.0
// The module gpusched.model: tasks.
#include "model/cluster_views.hpp"
#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"

#include <cstddef>

namespace gpusched::python {

namespace {

OptionalString job(const TaskView& t) {
    const auto job = t.table().job[t.at()];
    if (job == none<JobId>) return py::none();
    return py::str(t.cluster->inventory().job_names[index(job)]);
}

OptionalString subgroup(const TaskView& t) {
    const auto& inv = t.cluster->inventory();
    const auto id = inv.subgroup_of(t.id);
    if (id == none<SubgroupId>) return py::none();
    return py::str(inv.subgroups[index(id)].name);
}

OptionalString node(const TaskView& t) {
    if (!t.cluster->is_placed(t.id)) return py::none();
    return py::str(t.cluster->name(t.cluster->node_of(t.id)));
}

std::vector<std::string> gpu_models(const TaskView& t) {
    std::vector<std::string> names;
    for (const auto model : t.requirement().gpu_models)
        names.push_back(t.cluster->inventory().gpu_models[index(model)]);
    return names;
}

/// A level as in the formats, including labels.
py::object any_level_object(const TaskView& t, Level level) {
    if (level < first_label_level) return level_object(level);
    return py::str(
        t.cluster->inventory().label_levels[static_cast<std::size_t>(level - first_label_level)].key);
}

/// A term as a dict.
template <Described Term>
py::dict term_dict(const TaskView& t, const Term& term) {
    auto dict = dict_from(term);
    if constexpr (std::is_same_v<decltype(term.level), Level>)
        dict["level"] = any_level_object(t, term.level);
    return dict;
}

/// Affinities of the task as dicts.
template <class Term>
auto affinities(std::vector<Term> TaskAffinities::*terms) {
    return [terms](const TaskView& t) -> JsonObjects {
        py::list result;
        for (const auto& term : t.affinities().*terms) result.append(term_dict(t, term));
        return result;
    };
}

/// Terms about groups as dicts.
template <class Term>
auto group_terms(std::vector<Term> GroupTerms::*terms) {
    return [terms](const TaskView& t) -> JsonObjects {
        py::list result;
        for (const auto& term : t.cluster->inventory().terms(t.id).*terms) result.append(term_dict(t, term));
        return result;
    };
}

Typed<"dict[str, Any] | None"> network_affinity(const TaskView& t) {
    const auto& affinity = t.affinities().network_affinity;
    return affinity ? py::object(term_dict(t, *affinity)) : py::none();
}

std::map<std::string, std::int64_t> resources(const TaskView& t) {
    std::map<std::string, std::int64_t> found;
    for (const auto& [resource, amount] : t.extras().resources)
        found.emplace(t.cluster->inventory().resource_names[resource], amount);
    return found;
}

std::vector<std::string> device_classes(const TaskView& t) {
    std::vector<std::string> names;
    for (const auto one : t.extras().device_classes)
        names.push_back(t.cluster->inventory().device_classes[one]);
    return names;
}

/// A flag or quantity of every task, as stored.
template <class T>
auto stored(std::vector<T> TaskTable::*column) {
    return [column](const TaskSequence& s) { return view(s.cluster->inventory().tasks.*column, s.cluster); };
}
auto stored_flags(std::vector<std::uint8_t> TaskTable::*column) {
    return [column](const TaskSequence& s) { return flags(s.cluster->inventory().tasks.*column, s.cluster); };
}
template <class T>
auto one(std::vector<T> TaskTable::*column) {
    return [column](const TaskView& t) { return (t.table().*column)[t.at()]; };
}
auto flag(std::vector<std::uint8_t> TaskTable::*column) {
    return [column](const TaskView& t) { return (t.table().*column)[t.at()] != 0; };
}

/// A value of every task, as an array or as a list.
template <class F>
auto computed(F value) {
    return [value](const TaskSequence& s) {
        std::vector<std::decay_t<decltype(value(s.view(0)))>> values(s.size());
        for (std::size_t i = 0; i < s.size(); ++i) values[i] = value(s.view(i));
        return own(std::move(values));
    };
}
template <class List, class F>
auto computed_list(F value) {
    return [value](const TaskSequence& s) -> List {
        py::list values(s.size());
        for (std::size_t i = 0; i < s.size(); ++i) values[i] = value(s.view(i));
        return values;
    };
}

PriorityClass priority_class(const TaskView& t) { return t.table().priority_class[t.at()]; }
std::int64_t node_index(const TaskView& t) {
    const auto node = t.cluster->node_of(t.id);
    return node == none<NodeId> ? -1 : static_cast<std::int64_t>(index(node));
}
GpuMask gpu_mask(const TaskView& t) { return t.cluster->gpus_of(t.id); }
std::int64_t requested_devices(const TaskView& t) { return t.extras().device_count; }

}  // namespace

void bind_tasks(py::module_& m) {
    using T = TaskTable;
    py::class_<TaskView> task(m, "Task", doc("TaskSpec"));
    task.def_property_readonly(
            "name", [](const TaskView& t) { return t.cluster->name(t.id); }, "Name, unique in the cluster.")
        .def_property_readonly("job", job, "Name of the job; None for a task without a job.")
        .def_property_readonly("subgroup", subgroup, "Subgroup of the job; None = none.")
        .def_property_readonly("node", node, "Name of the node; None while pending.")
        .def_property_readonly(
            "gpus", [](const TaskView& t) { return gpu_list(t.cluster->gpus_of(t.id)); },
            doc("TaskSpec::gpus"))
        .def_property_readonly("cpu_milli", one(&T::cpu_milli), doc("TaskSpec::cpu_milli"))
        .def_property_readonly("memory_mib", one(&T::memory_mib), "In MiB.")
        .def_property_readonly("gpu_count", one(&T::gpu_count), doc("TaskSpec::gpu_count"))
        .def_property_readonly("gpu_share_milli", one(&T::gpu_share_milli), doc("TaskSpec::gpu_share_milli"))
        .def_property_readonly(
            "gpu_milli", [](const TaskView& t) { return t.cluster->gpu_milli(t.id); },
            doc("Cluster::gpu_milli"))
        .def_property_readonly("gpu_memory_mib", one(&T::gpu_memory_mib), doc("TaskSpec::gpu_memory_mib"))
        .def_property_readonly("gpu_models", gpu_models, "Acceptable GPU models; empty = any.")
        .def_property_readonly("priority", one(&T::priority), "Priority; higher is more important.")
        .def_property_readonly("priority_class", priority_class, doc("PriorityClass"))
        .def_property_readonly("locked", flag(&T::locked), doc("TaskSpec::locked"))
        .def_property_readonly("preemptible", flag(&T::preemptible), "May be evicted.")
        .def_property_readonly(
            "how", [](const TaskView& t) { return t.table().how(t.id); }, doc("Mobility"))
        .def_property_readonly("standby", flag(&T::standby), doc("TaskSpec::standby"))
        .def_property_readonly("daemon", flag(&T::daemon), doc("TaskSpec::daemon"))
        .def_property_readonly(
            "movable", [](const TaskView& t) { return t.cluster->is_movable(t.id); },
            doc("Cluster::is_movable"))
        .def_property_readonly(
            "node_selector", [](const TaskView& t) { return t.cluster->inventory().node_selector(t.id); },
            doc("TaskSpec::node_selector"))
        .def_property_readonly(
            "node_affinity",
            [](const TaskView& t) -> JsonObjects {
                return dicts_from(t.cluster->inventory().node_affinity(t.id));
            },
            doc("TaskSpec::node_affinity"))
        .def_property_readonly("resources", resources, "Requested amounts of named resources.")
        .def_property_readonly("device_count", requested_devices, doc("TaskSpec::device_count"))
        .def_property_readonly("device_classes", device_classes, doc("TaskSpec::device_classes"))
        .def_property_readonly(
            "tolerations", [](const TaskView& t) -> Typed<"list[dict[str, str]]"> {
                return dicts_from(t.requirement().tolerations);
            },
            "Tolerations: dicts with key, operator, value and effect.")
        .def_property_readonly("anti_affinity", affinities(&TaskAffinities::anti_affinity),
                               doc("AntiAffinity"))
        .def_property_readonly("affinity", affinities(&TaskAffinities::affinity), doc("Affinity"))
        .def_property_readonly(
            "groups", [](const TaskView& t) { return t.cluster->inventory().terms(t.id).groups; },
            doc("TaskSpec::groups"))
        .def_property_readonly("avoid", group_terms(&GroupTerms::avoid), doc("Avoid"))
        .def_property_readonly("near", group_terms(&GroupTerms::near), doc("Near"))
        .def_property_readonly("spread", group_terms(&GroupTerms::spread), doc("Spread"))
        .def_property_readonly("network_affinity", network_affinity, doc("NetworkAffinity"))
        .def_property_readonly(
            "hardware_affinity", [](const TaskView& t) -> Typed<"list[dict[str, str]]"> {
                return dicts_from(t.affinities().hardware_affinity);
            },
            doc("HardwareAffinity"))
        .def_property_readonly(
            "cpu_local", [](const TaskView& t) { return t.affinities().cpu_local; },
            doc("TaskSpec::cpu_local"))
        .def_property_readonly(
            "cores", [](const TaskView& t) { return t.affinities().cores; }, doc("TaskSpec::cores"))
        .def_property_readonly("move_cost", one(&T::move_cost), doc("TaskSpec::move_cost"))
        .def_property_readonly("start_time", one(&T::start_time), "In seconds.")
        .def_property_readonly(
            "last_checkpoint_time",
            [](const TaskView& t) -> std::optional<std::int64_t> {
                const auto time = t.table().last_checkpoint_time[t.at()];
                return time == T::no_time ? std::nullopt : std::optional(time);
            },
            doc("TaskSpec::last_checkpoint_time"))
        .def_property_readonly("checkpoint_interval", one(&T::checkpoint_interval),
                               doc("TaskSpec::checkpoint_interval"))
        .def_property_readonly("eviction_count", one(&T::eviction_count), "Number of earlier evictions.")
        .def(
            "__eq__", [](const TaskView& a, const TaskView& b) { return a == b; }, py::is_operator())
        .def("__hash__", [](const TaskView& t) { return std::hash<std::size_t>{}(t.at()); })
        .def("__repr__", [](const TaskView& t) {
            const auto where = node(t);
            return "<gpusched.Task '" + t.cluster->name(t.id) +
                   "': " + std::to_string(t.cluster->gpu_milli(t.id)) + " gpu_milli, " +
                   (where.is_none() ? std::string("pending") : "on '" + where.cast<std::string>() + "'") +
                   ">";
        });

    define_view_pickling(task);

    py::class_<TaskSequence> tasks(
        m, "Tasks",
        "All tasks of a cluster: a sequence with access by position or name. Attributes are read-only "
        "arrays.");
    define_sequence(tasks);
    tasks.def_property_readonly("cpu_milli", stored(&T::cpu_milli), "Thousandths of a core.")
        .def_property_readonly("memory_mib", stored(&T::memory_mib), "Memory in MiB.")
        .def_property_readonly("gpu_count", stored(&T::gpu_count), "Number of GPUs; 1 for a part of a GPU.")
        .def_property_readonly("gpu_share_milli", stored(&T::gpu_share_milli),
                               "Thousandths of each GPU; 1000 except for a part of a GPU.")
        .def_property_readonly("priority", stored(&T::priority), "Priority; higher is more important.")
        .def_property_readonly("start_time", stored(&T::start_time), "Start time in seconds.")
        .def_property_readonly("move_cost", stored(&T::move_cost), doc("TaskSpec::move_cost"))
        .def_property_readonly("eviction_count", stored(&T::eviction_count),
                               "Number of earlier evictions of each task.")
        .def_property_readonly("locked", stored_flags(&T::locked), doc("TaskSpec::locked"))
        .def_property_readonly("preemptible", stored_flags(&T::preemptible), "May be evicted.")
        .def_property_readonly("standby", stored_flags(&T::standby), doc("TaskSpec::standby"))
        .def_property_readonly("daemon", stored_flags(&T::daemon), doc("TaskSpec::daemon"))
        .def_property_readonly("priority_class", computed_list<Strings>(priority_class),
                               "Class of every task: 'HP', 'LP' or 'other'.")
        .def_property_readonly("job", computed_list<Typed<"list[str | None]">>(job),
                               "Job of every task, or None.")
        .def_property_readonly("node_index", computed(node_index),
                               "Position of every task's node in `nodes`; -1 while pending.")
        .def_property_readonly("gpu_mask", computed(gpu_mask),
                               "Bit masks of the GPUs and other devices of each task: bit i is GPU i.")
        .def_property_readonly("device_count", computed(requested_devices), doc("TaskSpec::device_count"));
}

}  // namespace gpusched::python
