// SPDX-License-Identifier: Apache-2.0
// Placement policies written in Python: functions of the cluster, a task and a node.
#pragma once

#include "model/cluster_views.hpp"
#include "support/call.hpp"
#include "support/python_function.hpp"

#include <gpusched/allocation/named.hpp>
#include <gpusched/core/text.hpp>

namespace gpusched::python {

/// A Python function of a task and a node of one cluster. Takes the interpreter lock if the thread does not
/// hold it.
struct PythonPolicy {
    ClusterPtr cluster;
    std::shared_ptr<py::object> function;  // shared, because references are counted only under the lock
    std::string name;                      // its name in messages
    [[nodiscard]] py::object ask(TaskId task, NodeId node) const {
        return ask_function(name, *function, "(cluster, task, node)", cluster, TaskView{cluster, task},
                            NodeView{cluster, node});
    }
    [[nodiscard]] std::string answer_about(TaskId task, NodeId node) const {
        return name + "'s answer for task " + gpusched::quoted(cluster->name(task)) + " and node " +
               gpusched::quoted(cluster->name(node));
    }
};
struct PythonFilter : PythonPolicy {
    bool operator()(const Cluster&, TaskId task, NodeId node) const {
        const WithLock lock;  // algorithms without the lock also call it
        return OptionType<bool>::read(answer_about(task, node), ask(task, node));
    }
};

struct PythonRanker : PythonPolicy {
    std::int64_t operator()(const Cluster&, TaskId task, NodeId node) const {
        const WithLock lock;
        return whole_number(answer_about(task, node), ask(task, node));
    }
};

/// A policy: `make(name)` for a name, a `Python` for a Python function.
/// @param name name of the function in messages
template <class Any, class Python, class Make>
Any policy(const char* field, const std::string& name, const py::object& which, const ClusterPtr& cluster,
           Make&& make) {
    if (py::isinstance<py::str>(which)) return make(OptionType<std::string>::read(field, which));
    if (PyCallable_Check(which.ptr()) == 0)
        bad_option(name, which, "a name or a callable (cluster, task, node)");
    return Python{{cluster, shared_object(which), name}};
}

using RankerChoice = Typed<"str | Callable[[Cluster, Task, Node], int]">;
using FilterChoice = Typed<"str | Callable[[Cluster, Task, Node], bool]">;

/// A filter from its name, or from a Python function.
/// @param name name of the function in messages
inline allocation::AnyFilter chosen_filter(const char* field, const std::string& name,
                                           const py::object& which, const ClusterPtr& cluster) {
    return policy<allocation::AnyFilter, PythonFilter>(
        field, name, which, cluster,
        [](const std::string& known) { return allocation::filters().make(known); });
}

}  // namespace gpusched::python
