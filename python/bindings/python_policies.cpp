#include "python_policies.hpp"

#include "call.hpp"
#include "fields.hpp"
#include "python_function.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::python {

namespace {

namespace c = consolidation;

using NumberByNode = std::vector<std::int64_t>;  // by NodeId

/// A function's answer about all nodes.
/// @param function how messages call it
NumberByNode numbers_by_node(const std::string& function, const py::object& answer, const Cluster& cluster) {
    const auto field = function + "'s answer";
    const auto count = static_cast<std::int64_t>(cluster.node_count());
    const std::string each = ", one for each node of cluster.nodes";
    const auto expected = "an array or a list of " + counted(count, "whole number") + each;
    py::array array;
    try {
        array = py::array(py::module_::import("numpy").attr("asarray")(answer));
    } catch (const py::error_already_set&) {  // nested lists of different lengths
        bad_option(field, answer, expected);
    }
    const auto kind = array.dtype().kind();
    if (array.ndim() == 0) bad_option(field, answer, expected);
    const auto refuse = [&](const std::string& given, const std::string& wanted) {  // arrays are not shown
        throw InvalidInput(bad_value(field, given, wanted));
    };
    if (array.ndim() != 1)
        refuse("an array of shape " + py::str(array.attr("shape")).cast<std::string>(), expected);
    if (array.size() != count) refuse(counted(array.size(), "number"), std::to_string(count) + each);
    if (kind == 'b') refuse(counted(count, "bool"), expected);

    NumberByNode numbers(cluster.node_slots());
    const auto field_of = [&](NodeId node) {
        return field + " for node " + gpusched::quoted(cluster.name(node));
    };
    py::ssize_t at = 0;
    const auto fill = [&](auto&& number_at) {
        for (const auto node : cluster.nodes()) numbers[index(node)] = number_at(at++, node);
    };
    if (kind == 'i') {
        const py::array_t<std::int64_t> whole(array);
        fill([values = whole.unchecked<1>()](py::ssize_t i, NodeId) { return values(i); });
    } else if (kind == 'f') {
        const py::array_t<double> floating(array);
        fill([&, values = floating.unchecked<1>()](py::ssize_t i, NodeId node) {
            const auto value = values(i);
            if (!(std::trunc(value) == value && std::abs(value) < 0x1p63))
                return whole_number(field_of(node), py::float_(value));
            return static_cast<std::int64_t>(value);
        });
    } else {
        fill([&](py::ssize_t i, NodeId node) { return whole_number(field_of(node), array[py::int_(i)]); });
    }
    return numbers;
}

NumberByNode ask(const std::string& function, const py::object& policy, const ClusterPtr& cluster) {
    return numbers_by_node(function, ask_function(function, policy, "(cluster)", cluster), *cluster);
}

/// The keys of one round.
class PythonNodeOrder {
  public:
    PythonNodeOrder(std::string name, py::object function)
        : name_(std::move(name)), function_(shared_object(std::move(function))) {}

    PythonNodeOrder for_round(const Cluster& cluster) const {
        const py::gil_scoped_acquire lock;
        auto order = *this;
        order.keys_ =
            std::make_shared<const NumberByNode>(ask(name_, *function_, std::make_shared<Cluster>(cluster)));
        return order;
    }
    std::int64_t operator()(const Cluster&, NodeId node) const { return (*keys_)[index(node)]; }

  private:
    std::string name_;
    std::shared_ptr<py::object> function_;  // shared: references are counted only while the lock is held
    std::shared_ptr<const NumberByNode> keys_;
};

/// Nodes with the same number are a group; those with a negative one are in none. Groups come in the order of their numbers.
c::Partition partition_of(const NumberByNode& group_of, const Cluster& cluster) {
    std::map<std::int64_t, std::vector<NodeId>> groups;
    for (const auto node : cluster.nodes())
        if (group_of[index(node)] >= 0) groups[group_of[index(node)]].push_back(node);
    c::Partition partition;
    for (auto& [number, nodes] : groups) partition.push_back(std::move(nodes));
    return partition;
}

/// Adds a policy that the function makes to the registry of its kind.
/// @return whether policies of this kind may be functions
bool add_function(c::Registries& known, std::string_view kind, const std::string& name,
                  const py::object& function, const ClusterPtr& cluster) {
    if (kind == "node_order") {
        known.node_orders.add(name, [order = PythonNodeOrder(name, function)] { return order; });
    } else if (kind == "partitioner") {
        known.partitioners.add(name, [partition = partition_of(ask(name, function, cluster), *cluster)] {
            return [partition](const Cluster&, std::size_t, Rng&) { return partition; };
        });
    } else if (kind == "weight") {
        auto weights = ask(name, function, cluster);
        const auto most = std::numeric_limits<std::int64_t>::max() /
                          std::max<std::int64_t>(1, static_cast<std::int64_t>(cluster->node_count()));
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

ChosenPolicies chosen_policies(const py::object& choice, const ClusterPtr& cluster) {
    ChosenPolicies chosen;
    Fields fields("policies", choice);
    visit_fields(std::type_identity<c::PolicyNames>{}, [&](const char* kind, auto member, const auto&...) {
        const auto value = fields.take(kind);
        if (!value || value.is_none()) return;
        fields.collect([&] {
            const auto field = std::string("policies.") + kind;
            if (py::isinstance<py::str>(value)) {
                chosen.names.*member = OptionType<std::string>::read(field, value);
                return;
            }
            if (PyCallable_Check(value.ptr()) == 0)
                bad_option(field, value, "a name, or for some kinds a callable (cluster)");
            if (!add_function(chosen.known, kind, field, value, cluster))
                bad_option(field, value,
                           "a name: policies of this kind are asked within the search and cannot be "
                           "written in Python; a node_order, a partitioner and a weight can");
            chosen.names.*member = field;
        });
    });
    fields.finish();
    return chosen;
}

}  // namespace gpusched::python
