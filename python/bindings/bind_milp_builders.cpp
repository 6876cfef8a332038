// The other builders of gpusched.milp: spot scheduling, consolidation, joint allocation, priority packing.
#include "arrays.hpp"
#include "cluster_views.hpp"
#include "milp.hpp"
#include "milp_members.hpp"

#include <gpusched/milp/consolidation.hpp>
#include <gpusched/milp/joint_allocation.hpp>
#include <gpusched/milp/priority_packing.hpp>
#include <gpusched/milp/spot_schedule.hpp>

namespace gpusched::python {

namespace {

struct NamedConsolidation : milp::ConsolidationModel {
    ClusterPtr cluster;
};
struct NamedPacking : milp::PackingResult {
    ClusterPtr cluster;
};

}  // namespace

template <>
struct Members<milp::SpotTask> {
    static void visit(auto& t, auto&& each) {
        each(t.name);
        each(t.arrival);
        each(t.pods);
        each(t.gpus);
        each(t.hp);
        each(t.checkpoints);
        each(t.max_delay);
    }
};
template <>
struct Members<milp::SpotProblem> {
    static void visit(auto& p, auto&& each) {
        each(p.tasks);
        each(p.nodes);
        each(p.horizon);
        each(p.alpha);
    }
};
template <>
struct Members<milp::SpotModel> {
    static void visit(auto& m, auto&& each) {
        each(base_of<milp::Model>(m));
        each(m.problem);
        each(m.mode);
    }
};
template <>
struct Members<NamedConsolidation> {
    static void visit(auto& m, auto&& each) {
        each(base_of<milp::Model>(m));
        each(m.form);
        each(m.nodes);
        each(m.classes);
        each(m.fixed);
        each(m.task_count);
        each(m.home);
        each(m.movable);
        each(m.cluster);
    }
};
template <>
struct Members<milp::SwitchJob> {
    static void visit(auto& j, auto&& each) {
        each(j.name);
        each(j.pods);
        each(j.gpus);
    }
};
template <>
struct Members<milp::SwitchRoom> {
    static void visit(auto& r, auto&& each) {
        each(r.name);
        each(r.idle);
    }
};
template <>
struct Members<milp::JointProblem> {
    static void visit(auto& p, auto&& each) {
        each(p.jobs);
        each(p.switches);
    }
};
template <>
struct Members<milp::JointModel> {
    static void visit(auto& m, auto&& each) {
        each(base_of<milp::Model>(m));
        each(m.problem);
        each(m.placed_worth);
    }
};
template <>
struct Members<milp::PackingStep> {
    static void visit(auto& s, auto&& each) {
        each(s.priority);
        each(s.pending);
        each(s.placed);
        each(s.bound);
        each(s.status);
    }
};
template <>
struct Members<NamedPacking> {
    static void visit(auto& r, auto&& each) {
        each(r.placement);
        each(r.steps);
        each(r.moves);
        each(r.optimal);
        each(r.cluster);
    }
};

namespace {

py::dict dict_item(const std::string& field, py::handle value) {
    if (!py::isinstance<py::dict>(value)) bad_option(field, value, "a dict");
    return py::reinterpret_borrow<py::dict>(value);
}

/// Reads known keys of a dict into fields; anything else is an error.
class Fields {
  public:
    Fields(std::string owner, py::dict values) : owner_(std::move(owner)), values_(std::move(values)) {}
    template <class T>
    Fields& read(const char* key, T& into, bool required = false) {
        known_.emplace_back(key);
        if (values_.contains(key))
            into = OptionType<T>::read(owner_ + "." + key, values_[key]);
        else if (required)
            throw InvalidInput(owner_ + ": " + key + " is missing");
        return *this;
    }
    void done() const {
        for (const auto& [key, value] : values_) {
            const auto name = OptionType<std::string>::read(owner_, key);
            if (std::find(known_.begin(), known_.end(), name) == known_.end())
                throw InvalidInput(owner_ + ": unknown field " + gpusched::quoted(name));
        }
    }

  private:
    std::string owner_;
    py::dict values_;
    std::vector<std::string> known_;
};

void bind_spot(py::module_& m) {
    using M = milp::SpotModel;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "SpotModel", doc("milp::SpotModel").c_str());
    model
        .def(
            "decode", [](const M& self, const std::vector<double>& x) { return self.decode(x).pods; },
            py::arg("x"), documented("decode(self, x)", "Pods as [task][slot][node].").c_str())
        .def(
            "encode",
            [](const M& self, const std::vector<std::vector<std::vector<int>>>& pods) {
                return own(self.encode({pods}));
            },
            py::arg("pods"), documented("encode(self, pods)", doc("milp::SpotModel::encode")).c_str())
        .def(
            "schedule_value",
            [](const M& self, const std::vector<std::vector<std::vector<int>>>& pods) {
                const auto v = milp::spot_value(self.problem, {pods}, self.mode);
                py::dict result;
                result["objective"] = v.objective;
                result["restarts"] = v.restarts;
                result["starts"] = v.starts;
                result["useful"] = v.useful;
                result["runs"] = v.runs;
                result["committed"] = v.committed;
                return result;
            },
            py::arg("pods"), documented("schedule_value(self, pods)", doc("milp::spot_value")).c_str());
    define_pickling(model);
    m.def(
        "spot_schedule",
        [](const py::object& tasks, const py::object& nodes, const py::object& horizon,
           const py::object& alpha, const py::object& mode) {
            milp::SpotProblem p;
            for (const auto item : tasks) {
                const auto field = "tasks[" + std::to_string(p.tasks.size()) + "]";
                milp::SpotTask task;
                Fields fields(field, dict_item(field, item));
                fields.read("name", task.name)
                    .read("arrival", task.arrival)
                    .read("pods", task.pods)
                    .read("gpus", task.gpus)
                    .read("hp", task.hp)
                    .read("checkpoints", task.checkpoints, true)
                    .read("max_delay", task.max_delay)
                    .done();
                if (task.name.empty()) task.name = std::to_string(p.tasks.size());
                p.tasks.push_back(std::move(task));
            }
            p.nodes = OptionType<std::vector<int>>::read("nodes", nodes);
            p.horizon = OptionType<int>::read("horizon", horizon);
            p.alpha = OptionType<double>::read("alpha", alpha);
            return std::make_shared<M>(
                milp::spot_schedule(p, OptionType<milp::SpotMode>::read("mode", mode)));
        },
        py::arg("tasks"), py::arg("nodes"), py::arg("horizon"), py::arg("alpha"), py::arg("mode") = "meaning",
        documented("spot_schedule(tasks, nodes, horizon, alpha, mode='meaning')", doc("milp::spot_schedule"))
            .c_str());
}

py::dict placement_dict(const Cluster& cluster, const std::vector<NodeId>& placement) {
    py::dict result;
    for (const auto task : cluster.tasks())
        result[py::str(cluster.name(task))] = placement[index(task)] == none<NodeId>
                                                  ? py::object(py::none())
                                                  : py::object(py::str(cluster.name(placement[index(task)])));
    return result;
}
std::vector<NodeId> read_placement(const Cluster& cluster, const py::dict& places) {
    std::vector<NodeId> placement;
    for (const auto task : cluster.tasks()) placement.push_back(cluster.node_of(task));
    for (const auto& [key, value] : places) {
        const auto task = cluster.find_task(OptionType<std::string>::read("placement", key));
        placement[index(task)] = value.is_none()
                                     ? none<NodeId>
                                     : cluster.find_node(OptionType<std::string>::read("placement", value));
    }
    return placement;
}

void bind_consolidation_model(py::module_& m) {
    using M = NamedConsolidation;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "ConsolidationModel",
                                                         doc("milp::ConsolidationModel").c_str());
    model
        .def(
            "decode",
            [](const M& self, const std::vector<double>& x) {
                return placement_dict(*self.cluster, self.decode(x));
            },
            py::arg("x"), documented("decode(self, x)", "{task: node or None}.").c_str())
        .def(
            "encode",
            [](const M& self, const py::dict& placement) {
                return own(self.encode(read_placement(*self.cluster, placement)));
            },
            py::arg("placement"),
            documented("encode(self, placement)", doc("milp::ConsolidationModel::encode")).c_str())
        .def(
            "occupied",
            [](const M& self, const py::dict& placement) {
                return self.occupied(read_placement(*self.cluster, placement));
            },
            py::arg("placement"),
            documented("occupied(self, placement)", "How many nodes it occupies.").c_str())
        .def(
            "moves",
            [](const M& self, const py::dict& placement) {
                return self.moves(read_placement(*self.cluster, placement));
            },
            py::arg("placement"), documented("moves(self, placement)", "How many tasks it moves.").c_str());
    const auto options =
        Options<milp::ConsolidationOptions>("milp::ConsolidationOptions")
            .field("form", &milp::ConsolidationOptions::form, "'plain' (F1) or 'classes' (F3).")
            .field("locks", &milp::ConsolidationOptions::locks, doc("milp::LockForm"))
            .field("goal", &milp::ConsolidationOptions::goal, doc("milp::ConsolidationGoal"))
            .field("memory", &milp::ConsolidationOptions::memory)
            .field("max_moves", &milp::ConsolidationOptions::max_moves)
            .field("occupied_at_least", &milp::ConsolidationOptions::occupied_at_least);
    define_pickling(model);
    m.def(
        "consolidation",
        [options](const ClusterPtr& cluster, const py::kwargs& keywords) {
            const auto o = options.read("consolidation", keywords);
            return std::make_shared<M>(unlocked([&] {
                return M{milp::consolidation(*cluster, o), cluster};
            }));
        },
        py::arg("cluster"), options.documented("consolidation(cluster", doc("milp::consolidation")).c_str());
}

void bind_joint(py::module_& m) {
    using M = milp::JointModel;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "JointModel", doc("milp::JointModel").c_str());
    model.def_readonly("placed_worth", &M::placed_worth, doc("milp::JointModel::placed_worth").c_str())
        .def(
            "decode",
            [](const M& self, const std::vector<double>& x) {
                const auto allocation = self.decode(x);
                py::dict result;
                for (std::size_t j = 0; j < allocation.size(); ++j) {
                    py::dict pods;
                    for (std::size_t s = 0; s < allocation[j].size(); ++s)
                        if (allocation[j][s] > 0)
                            pods[py::str(self.problem.switches[s].name)] = allocation[j][s];
                    result[py::str(self.problem.jobs[j].name)] = pods;
                }
                return result;
            },
            py::arg("x"),
            documented("decode(self, x)", "{job: {switch: pods}}; empty = not placed.").c_str());
    define_pickling(model);
    m.def(
        "joint_allocation",
        [](const ClusterPtr& cluster, const py::object& jobs, const py::object& level) {
            milp::JointProblem p{{}, milp::switch_rooms(*cluster, read_optional_level("level", level))};
            for (const auto item : jobs) {
                const auto field = "jobs[" + std::to_string(p.jobs.size()) + "]";
                const auto values = dict_item(field, item);
                milp::SwitchJob job;
                if (values.contains("pods") && py::isinstance<py::list>(values["pods"])) {
                    const auto kinds = values["pods"].cast<py::list>();
                    if (kinds.size() != 1) throw InvalidInput(field + ".pods: expected one kind of pod");
                    const auto kind = dict_item(field + ".pods[0]", kinds[0]);
                    for (const char* key : {"count", "gpu_count"})
                        if (!kind.contains(key))
                            throw InvalidInput(field + ".pods[0]: " + key + " is missing");
                    job.pods = OptionType<int>::read(field + ".pods[0].count", kind["count"]);
                    job.gpus = OptionType<int>::read(field + ".pods[0].gpu_count", kind["gpu_count"]);
                    if (values.contains("name"))
                        job.name = OptionType<std::string>::read(field + ".name", values["name"]);
                } else {
                    Fields(field, values)
                        .read("name", job.name)
                        .read("pods", job.pods, true)
                        .read("gpus", job.gpus)
                        .done();
                }
                if (job.name.empty()) job.name = std::to_string(p.jobs.size());
                p.jobs.push_back(std::move(job));
            }
            return std::make_shared<M>(milp::joint_allocation(p));
        },
        py::arg("cluster"), py::arg("jobs"), py::arg("level") = py::none(),
        documented("joint_allocation(cluster, jobs, level=None)", doc("milp::joint_allocation")).c_str());
}

struct PackingArguments : milp::PackingOptions, SolveArguments {};

void bind_packing(py::module_& m) {
    const auto options =
        Options<PackingArguments>("milp::PackingOptions")
            .field("allow_moves", &PackingArguments::allow_moves)
            .field("solver", &PackingArguments::solver, "As for Model.solve.")
            .field("time_limit", &PackingArguments::time_limit, "Seconds per priority.")
            .field("threads", &PackingArguments::threads, "Threads the solver may use.")
            .field("seed", &PackingArguments::seed, "Where the solver's random choices start, >= 0.")
            .field("progress", &PackingArguments::progress, progress_text);
    using Named = NamedPacking;
    py::class_<Named> result(m, "PackingResult", doc("milp::PackingResult").c_str());
    result.def_readonly("optimal", &Named::optimal, doc("milp::PackingResult::optimal").c_str())
        .def_readonly("moves", &Named::moves, doc("milp::PackingResult::moves").c_str())
        .def_property_readonly(
            "placement", [](const Named& r) { return placement_dict(*r.cluster, r.placement); },
            "{task: node or None}.")
        .def_property_readonly(
            "steps",
            [](const Named& r) {
                py::list steps;
                for (const auto& s : r.steps) {
                    py::dict step;
                    step["priority"] = s.priority;
                    step["pending"] = s.pending;
                    step["placed"] = s.placed;
                    step["bound"] = s.bound;
                    step["status"] = to_string(s.status);
                    steps.append(step);
                }
                return steps;
            },
            "One dict per priority, highest first: priority, pending, placed, bound, status.");
    define_pickling(result);
    m.def(
        "priority_packing",
        [options](const ClusterPtr& cluster, const py::kwargs& keywords) {
            const auto arguments = options.read("priority_packing", keywords);
            const auto solver = solver_argument(arguments.solver);
            milp::PackingOptions o = arguments;
            o.solve = arguments;
            return Named{Call(arguments.progress).run([&](const Context& context) {
                             return milp::priority_packing(*cluster, o, solver, context);
                         }),
                         cluster};
        },
        py::arg("cluster"),
        options.documented("priority_packing(cluster", doc("milp::priority_packing")).c_str());
}

}  // namespace

void bind_milp_builders(py::module_& m) {
    bind_spot(m);
    bind_consolidation_model(m);
    bind_joint(m);
    bind_packing(m);
}

}  // namespace gpusched::python
