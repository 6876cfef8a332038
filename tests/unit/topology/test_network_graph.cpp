// SPDX-License-Identifier: Apache-2.0
// Trees from other graph types: an archetype of the concept, and Boost.Graph.
#include "support/catch.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/topology/boost_graph.hpp>
#include <gpusched/topology/topology.hpp>

using namespace gpusched;
using namespace gpusched::topology;

namespace {

// Offers what NetworkGraph asks for and nothing else: no default construction, no comparison, no random access.
class Archetype {
  public:
    class Vertex {
      public:
        Vertex(const Vertex&) = default;
        Vertex& operator=(const Vertex&) = default;

      private:
        friend class Archetype;
        explicit Vertex(int i) : i_(i) {}
        int i_;
    };
    struct End {};
    class Iterator {
      public:
        Vertex operator*() const { return Vertex(*at_); }
        Iterator& operator++() {
            ++at_;
            return *this;
        }
        bool operator!=(End) const { return at_ != end_; }

      private:
        friend class Archetype;
        Iterator(const int* at, const int* end) : at_(at), end_(end) {}
        const int *at_, *end_;
    };
    struct Range {
        Iterator first;
        [[nodiscard]] Iterator begin() const { return first; }
        [[nodiscard]] static End end() { return {}; }
    };

    explicit Archetype(std::map<int, std::vector<int>> below) : below_(std::move(below)) {}
    [[nodiscard]] Vertex root() const { return Vertex(0); }
    [[nodiscard]] Range children(const Vertex& v) const {
        static const std::vector<int> nothing;
        const auto at = below_.find(v.i_);
        const auto& list = at == below_.end() ? nothing : at->second;
        return {Iterator(list.data(), list.data() + list.size())};
    }
    // Vertices from 100 on are nodes.
    [[nodiscard]] NodeId node(const Vertex& v) const {
        return v.i_ < 100 ? none<NodeId> : make_id<NodeId>(static_cast<std::size_t>(v.i_) - 100);
    }
    [[nodiscard]] std::string name(const Vertex& v) const {
        return v.i_ == 99 ? "" : "d" + std::to_string(v.i_ % 50);
    }

  private:
    std::map<int, std::vector<int>> below_;
};
static_assert(NetworkGraph<Archetype>);

struct NoRoot {
    using Vertex = int;
    [[nodiscard]] std::vector<int> children(int) const { return {}; }
    [[nodiscard]] NodeId node(int) const { return none<NodeId>; }
    [[nodiscard]] std::string name(int) const { return {}; }
};
static_assert(!NetworkGraph<NoRoot>);
static_assert(!NetworkGraph<int>);

std::vector<std::size_t> order(const NetworkTree& tree) {
    std::vector<std::size_t> out;
    for (const auto node : tree.locality_order()) out.push_back(index(node));
    return out;
}

}  // namespace

TEST_CASE("any graph that models the concept becomes a tree") {
    const Archetype graph({{0, {1, 2}}, {1, {3, 104, 4}}, {2, {100}}, {3, {101, 102}}, {4, {105}}});
    const auto tree = NetworkTree::from_graph(graph, 7);
    CHECK(tree.levels() == 2);
    CHECK(tree.vertex_count() == 1 + 4 + 7);
    CHECK(order(tree) == std::vector<std::size_t>{1, 2, 5, 4, 0, 3, 6});  // 3 and 6 are not reached
    const auto v = [&](std::size_t i) { return tree.vertex(make_id<NodeId>(i)); };
    CHECK(tree.name(tree.common_ancestor(v(1), v(4))) == "d1");
    CHECK(tree.distance(v(1), v(2)) == 2);
    CHECK(tree.distance(v(1), v(0)) == std::nullopt);
    CHECK(tree.distance(v(3), v(6)) == std::nullopt);
    CHECK(tree.name(tree.vertex(1, make_id<DomainId>(1))) == "d4");
    CHECK(tree.name(tree.vertex(0, make_id<DomainId>(1))) == "d2");
}

TEST_CASE("a tree made from a tree is the same tree") {
    ClusterSpec spec;
    const std::vector<std::vector<std::string>> paths{{"b", "x"},      {"a"},      {},
                                                      {"b", "y", "z"}, {"b", "x"}, {"a", "w"}};
    for (std::size_t i = 0; i < paths.size(); ++i)
        spec.nodes.push_back({.name = std::to_string(i), .network = paths[i]});
    const auto cluster = Cluster::build(spec);
    const NetworkTree tree(cluster.inventory());
    const auto again = NetworkTree::from_graph(tree, 6);
    CHECK(again.vertex_count() == tree.vertex_count());
    CHECK(order(again) == order(tree));
    for (const auto a : cluster.nodes())
        for (const auto b : cluster.nodes()) {
            CHECK(again.distance(again.vertex(a), again.vertex(b)) ==
                  tree.distance(tree.vertex(a), tree.vertex(b)));
            CHECK(again.name(again.common_ancestor(again.vertex(a), again.vertex(b))) ==
                  tree.name(tree.common_ancestor(tree.vertex(a), tree.vertex(b))));
        }
}

TEST_CASE("graphs that are no such tree are refused") {
    const auto fails = [](std::map<int, std::vector<int>> below, std::size_t nodes, const std::string& text) {
        REQUIRE_THROWS_MESSAGE(NetworkTree::from_graph(Archetype(below), nodes), InvalidInput, text);
    };
    fails({{0, {1}}, {1, {2}}, {2, {1}}}, 0, "more than 16 levels cycle");
    fails({{0, {1, 2}}, {1, {100}}, {2, {100}}}, 1, "node #0 reached twice");
    fails({{0, {1}}, {1, {103}}}, 3, "node #3 out of range 3");
    fails({{0, {100}}, {100, {101}}}, 2, "node #0 children");
    fails({{0, {1, 51}}}, 0, "duplicate domain name 'd1'");
    fails({{0, {99}}}, 0, "domain no name");
    std::map<int, std::vector<int>> chain;
    for (int i = 0; i < 16; ++i) chain[i] = {i + 1};
    chain[16] = {100};
    CHECK(NetworkTree::from_graph(Archetype(chain), 1).levels() == 16);
    chain[16] = {17};
    fails(chain, 0, "more than 16 levels cycle");
}

TEST_CASE("a Boost.Graph of the caller's own becomes a tree") {
    struct Switch {
        std::string label;
        int machine = -1;
    };
    using Mine = boost::adjacency_list<boost::listS, boost::vecS, boost::directedS, Switch>;
    Mine mine;
    const auto top = add_vertex({"fabric", -1}, mine);
    const auto left = add_vertex({"left", -1}, mine);
    const auto right = add_vertex({"right", -1}, mine);
    add_edge(top, left, mine);
    add_edge(top, right, mine);
    for (int i = 0; i < 4; ++i) add_edge(i < 3 ? left : right, add_vertex({"", i}, mine), mine);
    const BoostNetwork network(
        mine, top,
        [&](auto v) {
            return mine[v].machine < 0 ? none<NodeId>
                                       : make_id<NodeId>(static_cast<std::size_t>(mine[v].machine));
        },
        [&](auto v) { return mine[v].label; });
    static_assert(NetworkGraph<decltype(network)>);
    const auto tree = NetworkTree::from_graph(network, 4);
    CHECK(tree.levels() == 1);
    CHECK(order(tree) == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(tree.name(tree.parent(tree.vertex(make_id<NodeId>(3)))) == "right");
}

TEST_CASE("Boost.Graph algorithms run on the tree") {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "a", .network = {"c", "s"}});
    spec.nodes.push_back({.name = "b", .network = {"c"}});
    spec.nodes.push_back({.name = "x"});
    const auto cluster = Cluster::build(spec);
    const NetworkTree tree(cluster.inventory());
    const BoostTree& graph = tree.boost_tree();
    REQUIRE(num_vertices(graph) == tree.vertex_count());
    std::vector<int> depth(num_vertices(graph));
    boost::breadth_first_search(graph, 0,
                                boost::visitor(boost::make_bfs_visitor(
                                    boost::record_distances(depth.data(), boost::on_tree_edge{}))));
    for (BoostTree::vertex_descriptor i = 0; i < tree.vertex_count(); ++i) {
        const NetworkTree::Vertex v{static_cast<std::uint32_t>(i)};
        CHECK(depth[i] == tree.depth(v));
        CHECK(graph[i].name == tree.name(v));
        CHECK(graph[i].node == tree.node(v));
        CHECK(out_degree(i, graph) == tree.children(v).size());
    }
}
