// SPDX-License-Identifier: Apache-2.0
#include "consolidation/python_policies.hpp"

#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/python_function.hpp"

#include <cmath>
#include <iterator>
#include <limits>

namespace gpusched::python {

namespace {

namespace c = consolidation;

using NumberByNode = std::vector<std::int64_t>;  // indexed by NodeId

/// Reads the values that a function returned for all nodes or all tasks.
/// @param field name of the function in messages
/// @param ids of all nodes or tasks, ascending
/// @return values indexed by id
template <class Ids>
std::vector<std::int64_t> numbers_by_id(const std::string& field, const py::object& answer, const Ids& ids,
                                        std::size_t slots, const char* what, const Cluster& cluster) {
    const auto count = static_cast<std::int64_t>(std::distance(ids.begin(), ids.end()));
    const std::string each = std::string(", one for each ") + what + " of cluster." + what + "s";
    const auto expected = "an array or a list of " + counted(count, "whole number") + each;
    py::array array;
    try {
        array = py::array(py::module_::import("numpy").attr("asarray")(answer));
    } catch (const py::error_already_set&) {  // nested lists of different lengths
        bad_option(field, answer, expected);
    }
    const auto kind = array.dtype().kind();
    if (array.ndim() == 0) bad_option(field, answer, expected);
    const auto refuse = [&](const std::string& given,
                            const std::string& wanted) {  // messages do not show arrays
        throw InvalidInput(bad_value(field, given, wanted));
    };
    if (array.ndim() != 1)
        refuse("an array of shape " + py::str(array.attr("shape")).cast<std::string>(), expected);
    if (array.size() != count) refuse(counted(array.size(), "number"), std::to_string(count) + each);
    if (kind == 'b') refuse(counted(count, "bool"), expected);

    std::vector<std::int64_t> numbers(slots);
    const auto field_of = [&](auto id) {
        return field + " for " + what + " " + gpusched::quoted(cluster.name(id));
    };
    py::ssize_t at = 0;
    const auto fill = [&](auto&& number_at) {
        for (const auto id : ids) numbers[index(id)] = number_at(at++, id);
    };
    if (kind == 'i') {
        const py::array_t<std::int64_t> whole(array);
        fill([values = whole.unchecked<1>()](py::ssize_t i, auto) { return values(i); });
    } else if (kind == 'f') {
        const py::array_t<double> floating(array);
        fill([&, values = floating.unchecked<1>()](py::ssize_t i, auto id) {
            const auto value = values(i);
            if (!(std::trunc(value) == value && std::abs(value) < 0x1p63))
                return whole_number(field_of(id), py::float_(value));
            return static_cast<std::int64_t>(value);
        });
    } else {
        fill([&](py::ssize_t i, auto id) { return whole_number(field_of(id), array[py::int_(i)]); });
    }
    return numbers;
}

NumberByNode ask(const std::string& function, const py::object& policy, const ClusterPtr& cluster) {
    return numbers_by_id(function + "'s answer", ask_function(function, policy, "(cluster)", cluster),
                         cluster->nodes(), cluster->node_slots(), "node", *cluster);
}

/// Classes below `count`, indexed by id.
std::vector<std::uint32_t> classes(const std::string& field, const std::vector<std::int64_t>& numbers,
                                   py::ssize_t count) {
    std::vector<std::uint32_t> result;
    for (const auto number : numbers) {
        if (number < 0 || number >= count)
            bad_option(field, py::int_(number),
                       "0 to " + std::to_string(count - 1) + ", the size of the table");
        result.push_back(static_cast<std::uint32_t>(number));
    }
    return result;
}

/// The order of the nodes in one round.
class PythonNodeOrder {
  public:
    PythonNodeOrder(std::string name, py::object function)
        : name_(std::move(name)), function_(shared_object(std::move(function))) {}

    PythonNodeOrder for_round(const Cluster& cluster) const {
        const WithLock lock;
        auto order = *this;
        order.keys_ =
            std::make_shared<const NumberByNode>(ask(name_, *function_, std::make_shared<Cluster>(cluster)));
        return order;
    }
    std::int64_t operator()(const Cluster&, NodeId node) const { return (*keys_)[index(node)]; }

  private:
    std::string name_;
    std::shared_ptr<py::object> function_;  // shared, because references are counted only under the lock
    std::shared_ptr<const NumberByNode> keys_;
};

/// Nodes with the same number form a group, and groups are ordered by number. Nodes with a negative number
/// are in no group.
c::Partition partition_of(const NumberByNode& group_of, const Cluster& cluster) {
    std::map<std::int64_t, std::vector<NodeId>> groups;
    for (const auto node : cluster.nodes())
        if (group_of[index(node)] >= 0) groups[group_of[index(node)]].push_back(node);
    c::Partition partition;
    for (auto& [number, nodes] : groups) partition.push_back(std::move(nodes));
    return partition;
}

/// Adds a policy made by the function to the registry of its kind.
/// @return false if policies of this kind cannot be functions
bool add_function(c::Registries& known, std::string_view kind, const std::string& name,
                  const py::object& function, const ClusterPtr& cluster) {
    if (kind == "node_order") {
        known.node_orders.add(name, [order = PythonNodeOrder(name, function)] { return order; });
    } else if (kind == "partitioner") {
        known.partitioners.add(name, [partition = partition_of(ask(name, function, cluster), *cluster)] {
            return [partition](const Cluster&, std::size_t, Rng&) { return partition; };
        });
    } else if (kind == "node_weight") {
        auto weights = ask(name, function, cluster);
        const auto most = c::most_node_weight(*cluster);
        for (const auto node : cluster->nodes())
            if (const auto weight = weights[index(node)]; weight < 0 || weight > most)
                bad_option(name + "'s answer for node " + gpusched::quoted(cluster->name(node)),
                           py::int_(weight), "0 to " + std::to_string(most));
        known.node_weights.add(name, [shared = std::make_shared<const NumberByNode>(std::move(weights))] {
            return [shared](const Cluster&, NodeId node) { return (*shared)[index(node)]; };
        });
    } else {
        return false;
    }
    return true;
}

}  // namespace

c::AnyPlacementRule chosen_rule(const py::object& choice, const ClusterPtr& cluster) {
    if (choice.is_none()) return {};
    if (PyCallable_Check(choice.ptr()) == 0) bad_option("rule", choice, "a callable (cluster), or None");
    const auto answer = ask_function("rule", choice, "(cluster)", cluster);
    const char* expected = "three arrays: classes of tasks, classes of nodes, and a table of bools";
    if (!py::isinstance<py::sequence>(answer) || py::len(answer) != 3)
        bad_option("rule's answer", answer, expected);
    const auto parts = py::list(answer);
    py::array table;
    try {
        table = py::array(py::module_::import("numpy").attr("asarray")(parts[2]));
    } catch (const py::error_already_set&) {  // nested lists of different lengths
        bad_option("rule's table", parts[2], "a table of bools");
    }
    if (table.ndim() != 2 || table.dtype().kind() != 'b')
        throw InvalidInput(bad_value("rule's table",
                                     "an array of shape " + py::str(table.attr("shape")).cast<std::string>() +
                                         " and type " + py::str(table.dtype()).cast<std::string>(),
                                     "a table of bools, by class of the task and class of the node"));
    c::AllowedClasses rule;
    if (py::hasattr(choice, "__name__")) rule.text = py::str(choice.attr("__name__")).cast<std::string>();
    const std::string of_tasks = "rule's classes of tasks", of_nodes = "rule's classes of nodes";
    rule.task_class =
        classes(of_tasks,
                numbers_by_id(of_tasks, parts[0], cluster->tasks(), cluster->task_slots(), "task", *cluster),
                table.shape(0));
    rule.node_class =
        classes(of_nodes,
                numbers_by_id(of_nodes, parts[1], cluster->nodes(), cluster->node_slots(), "node", *cluster),
                table.shape(1));
    rule.node_classes = static_cast<std::size_t>(table.shape(1));
    const py::array_t<bool> bools(table);
    const auto values = bools.unchecked<2>();
    for (py::ssize_t i = 0; i < table.shape(0); ++i)
        for (py::ssize_t j = 0; j < table.shape(1); ++j) rule.allowed.push_back(values(i, j));
    return rule;
}

ChosenPolicies chosen_policies(const py::object& choice, const ClusterPtr& cluster) {
    ChosenPolicies chosen;
    if (!is_mapping(choice)) bad_option("policies", choice, "a dict");
    // A function is registered under a generated name, which replaces it.
    py::dict names;
    names.attr("update")(choice);
    Problems problems;
    visit_fields(std::type_identity<c::PolicyNames>{}, [&](const char* kind, auto, const auto&...) {
        if (!names.contains(kind)) return;
        const py::object value = names[kind];
        const auto field = std::string("policies.") + kind;
        if (value.is_none()) names.attr("pop")(kind);
        if (PyCallable_Check(value.ptr()) == 0) return;
        names[kind] = field;
        collect(problems, [&] {
            if (!add_function(chosen.known, kind, field, value, cluster))
                bad_option(field, value,
                           "a name; policies of this kind cannot be Python functions, because the search "
                           "calls them too often (a node_order, a partitioner and a node_weight can)");
        });
    });
    collect(problems, [&] { chosen.names = from_python<c::PolicyNames>("policies", names); });
    problems.throw_if_any();
    return chosen;
}

}  // namespace gpusched::python
