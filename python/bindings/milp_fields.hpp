// What the builders' bindings share: dicts with known keys, placements by name.
#pragma once

#include "cluster_views.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::python {

inline py::dict dict_item(const std::string& field, py::handle value) {
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
    Fields& skip(const char* key) {
        known_.emplace_back(key);
        return *this;
    }
    void done() const {
        for (const auto& [key, value] : values_) {
            const auto name = OptionType<std::string>::read(owner_, key);
            if (std::find(known_.begin(), known_.end(), name) == known_.end())
                throw InvalidInput(owner_ + ": unknown field " + gpusched::quoted(name) + "; expected " +
                                   known_text());
        }
    }

  private:
    [[nodiscard]] std::string known_text() const {
        std::string text;
        for (const auto& name : known_) text += (text.empty() ? "" : ", ") + name;
        return text;
    }
    std::string owner_;
    py::dict values_;
    std::vector<std::string> known_;
};

inline py::dict placement_dict(const Cluster& cluster, const std::vector<NodeId>& placement) {
    py::dict result;
    for (const auto task : cluster.tasks())
        result[py::str(cluster.name(task))] = placement[index(task)] == none<NodeId>
                                                  ? py::object(py::none())
                                                  : py::object(py::str(cluster.name(placement[index(task)])));
    return result;
}

/// Tasks that are not named are where they are.
inline std::vector<NodeId> read_placement(const Cluster& cluster, const py::dict& places) {
    std::vector<NodeId> placement;
    Problems problems;
    for (const auto task : cluster.tasks()) placement.push_back(cluster.node_of(task));
    for (const auto& [key, value] : places) {
        collect(problems, [&, key = key, value = value] {
            const auto task = cluster.find_task(OptionType<std::string>::read("placement", key));
            placement[index(task)] =
                value.is_none() ? none<NodeId>
                                : cluster.find_node(OptionType<std::string>::read("placement", value));
        });
    }
    problems.throw_if_any();
    return placement;
}

}  // namespace gpusched::python
