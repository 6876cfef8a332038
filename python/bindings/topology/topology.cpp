// SPDX-License-Identifier: Apache-2.0
// The module gpusched.topology: the network tree, with vertices as light views that keep it alive.
#include "model/cluster_views.hpp"
#include "model/task_argument.hpp"
#include "support/keywords.hpp"

#include <gpusched/topology/dot.hpp>
#include <gpusched/topology/network_tree.hpp>

namespace gpusched::python {

// The part of the module in the other file.
void bind_hardware(py::module_& m);

namespace {

using topology::NetworkTree;

struct Tree {
    explicit Tree(ClusterPtr snapshot) : cluster(std::move(snapshot)), tree(cluster->inventory()) {}
    ClusterPtr cluster;
    NetworkTree tree;
};
using TreePtr = std::shared_ptr<Tree>;

struct VertexView {
    TreePtr tree;
    NetworkTree::Vertex id;
    [[nodiscard]] const NetworkTree& of() const { return tree->tree; }
    bool operator==(const VertexView&) const = default;
};

template <class Vertices>
py::list views(const TreePtr& tree, const Vertices& vertices) {
    py::list list;
    for (const auto v : vertices) list.append(VertexView{tree, v});
    return list;
}

Strings node_names(const Tree& tree, std::span<const NodeId> nodes) {
    py::list names(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) names[i] = py::str(tree.cluster->name(nodes[i]));
    return names;
}

const std::string& name(const VertexView& v) {
    const auto node = v.of().node(v.id);
    return node == none<NodeId> ? v.of().name(v.id) : v.tree->cluster->name(node);
}

OptionalLevel level(const VertexView& v) {
    if (v.id == NetworkTree::root()) return py::none();
    return level_object(v.of().level(v.id));
}

Level known_level(const Tree& tree, const py::object& value) {
    const auto level = read_level("level", value);
    if (level >= tree.tree.levels())
        bad_option("level", value, "'node' or an index below " + std::to_string(tree.tree.levels()));
    return level;
}

void same_tree(const VertexView& a, const VertexView& b) {
    if (a.tree != b.tree)
        throw InvalidInput("the vertices belong to different trees; expected vertices of one tree");
}

void bind_vertex(py::module_& m) {
    using V = VertexView;
    py::class_<V> type(m, "Vertex", "A vertex of a `NetworkTree`: the root, a domain or a node.");
    type.def_property_readonly("name", name, "Name of the domain or node; empty for the root.")
        .def_property_readonly("level", level,
                               "Level: 0 to levels - 1 from the top, \"node\" for a node, None for the root.")
        .def_property_readonly(
            "depth", [](const V& v) { return v.of().depth(v.id); }, "Number of edges to the root.")
        .def_property_readonly(
            "parent", [](const V& v) -> Typed<"Vertex | None"> {
                if (v.id == NetworkTree::root()) return py::none();
                return py::cast(V{v.tree, v.of().parent(v.id)});
            },
            "The parent vertex; None for the root.")
        .def_property_readonly(
            "children",
            [](const V& v) -> Typed<"list[Vertex]"> { return views(v.tree, v.of().children(v.id)); },
            "The child vertices, domains before nodes.")
        .def_property_readonly(
            "nodes", [](const V& v) { return node_names(*v.tree, v.of().nodes_under(v.id)); },
            "Names of all nodes below, in the order of the network; for a node, its own name.")
        .def(
            "__eq__", [](const V& a, const V& b) { return a == b; }, py::is_operator())
        .def("__hash__",
             [](const V& v) {
                 return std::hash<const void*>{}(v.tree.get()) ^ (static_cast<std::size_t>(v.id) << 4);
             })
        .def("__repr__", [](const V& v) {
            if (v.id == NetworkTree::root()) return std::string("<gpusched.topology.Vertex: the root>");
            return "<gpusched.topology.Vertex '" + name(v) + "'>";
        });
    define_pickling(
        type, [](const V& v) { return std::tuple(v.tree, static_cast<std::uint32_t>(v.id)); },
        [](const std::tuple<TreePtr, std::uint32_t>& state) {
            const auto& [network, at] = state;
            const V vertex{network, static_cast<NetworkTree::Vertex>(at)};
            if (at >= vertex.of().vertex_count()) throw InvalidInput(concat("vertex ", at, " of its tree"));
            return vertex;
        });
}

void bind_network(py::module_& m) {
    bind_vertex(m);
    py::class_<Tree, TreePtr> tree(m, "NetworkTree", doc("topology::NetworkTree"));
    tree.def(py::init([](const ClusterPtr& cluster) {
                 return unlocked([&] { return std::make_shared<Tree>(cluster); });
             }),
             py::arg("cluster"), documented("Makes the network of a snapshot."))
        .def_property_readonly(
            "levels", [](const Tree& t) { return t.tree.levels(); }, "Number of levels of domains.")
        .def_property_readonly(
            "vertex_count", [](const Tree& t) { return t.tree.vertex_count(); },
            "Number of vertices: the root, all domains and all nodes.")
        .def_property_readonly(
            "node_count", [](const Tree& t) { return t.tree.node_count(); }, "Number of nodes.")
        .def_property_readonly(
            "root",
            [](const TreePtr& t) {
                return VertexView{t, NetworkTree::root()};
            },
            "The root, which is above all domains and stands for everything outside the cluster.")
        .def(
            "vertex",
            [](const TreePtr& t, const NodeArgument& node) {
                return VertexView{t, t->tree.vertex(node_of(*t->cluster, node))};
            },
            py::arg("node"), documented("Returns the vertex of a node by its name."))
        .def(
            "domains", [](const TreePtr& t, const LevelLike& which) -> Typed<"list[Vertex]"> {
                const auto at = known_level(*t, which);
                if (at != node_level) return views(t, t->tree.domains(at));
                py::list list;
                for (const auto node : t->cluster->nodes()) list.append(VertexView{t, t->tree.vertex(node)});
                return list;
            },
            py::arg("level"),
            documented(
                "Returns the domains of a level, or the nodes at \"node\". Nodes of unknown position are in "
                "no domain."))
        .def(
            "ancestor",
            [](const TreePtr& t, const NodeArgument& node, const LevelLike& which) {
                const auto at = known_level(*t, which);
                const auto id = node_of(*t->cluster, node);
                return VertexView{t, at == node_level ? t->tree.vertex(id) : t->tree.ancestor(id, at)};
            },
            py::arg("node"), py::arg("level"), documented(doc("topology::NetworkTree::ancestor")))
        .def(
            "common_ancestor",
            [](const TreePtr& t, const VertexView& a, const VertexView& b) {
                same_tree(a, {t, a.id}), same_tree(b, {t, b.id});
                return VertexView{t, t->tree.common_ancestor(a.id, b.id)};
            },
            py::arg("a"), py::arg("b"), documented(doc("topology::NetworkTree::common_ancestor")))
        .def(
            "distance",
            [](const TreePtr& t, const VertexView& a, const VertexView& b) {
                same_tree(a, {t, a.id}), same_tree(b, {t, b.id});
                return t->tree.distance(a.id, b.id);
            },
            py::arg("a"), py::arg("b"), documented(doc("topology::NetworkTree::distance")))
        .def(
            "locality_order", [](const Tree& t) { return node_names(t, t.tree.locality_order()); },
            documented(doc("topology::NetworkTree::locality_order")))
        .def("__repr__", [](const Tree& t) {
            return "<gpusched.topology.NetworkTree: " + counted(t.tree.levels(), "level") + ", " +
                   counted(static_cast<std::int64_t>(t.tree.node_count()), "node") + ">";
        });
    define_value(
        tree, [](const Tree& t) { return std::tuple(t.cluster); },
        [](const std::tuple<ClusterPtr>& state) { return std::make_shared<Tree>(std::get<0>(state)); });

    define_in_python<Typed<"networkx.DiGraph">>(
        tree, "to_networkx", "_views.networkx.network_tree",
        "Returns the tree as a directed networkx graph from the root (0) down. Vertices are numbered "
        "and have the attributes name and level (\"root\", an index or \"node\").");

    using O = topology::DotOptions;
    Keywords<O>().fields().def(
        m, "to_dot",
        [](const O& o, const TreePtr& t) {
            return unlocked([&] { return topology::to_dot(t->tree, t->cluster->inventory(), o); });
        },
        "Returns the tree in the DOT language: domains are boxes, nodes are ellipses with their "
        "GPUs.\n\n"
        "Nodes of unknown position are not connected. Equal trees give equal texts.",
        py::arg("tree"));
}

}  // namespace

void bind_topology(py::module_& parent) {
    auto m = submodule(parent, "topology");
    bind_network(m);
    bind_hardware(m);
}

}  // namespace gpusched::python
