#include <support/catch.hpp>

#include <gpusched/model/cluster.hpp>
#include <gpusched/topology/dot.hpp>

using namespace gpusched;
using namespace gpusched::topology;

namespace {

ClusterSpec spec() {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n0", .gpu_model = "A100", .gpu_count = 8, .network = {"c", "s\"0\\"}});
    spec.nodes.push_back({.name = "n1", .gpu_count = 2, .network = {"c"}});
    spec.nodes.push_back({.name = "n2"});
    return spec;
}

}  // namespace

TEST_CASE("the tree as DOT") {
    const auto cluster = Cluster::build(spec());
    const NetworkTree tree(cluster.inventory());
    CHECK(to_dot(tree, cluster.inventory()) == R"(digraph network {
  node [shape=box];
  v1 [label="c"];
  v2 [label="s\"0\\"];
  v1 -> v2;
  v3 [label="n0\n8 x A100", shape=ellipse];
  v2 -> v3;
  v4 [label="n1\n2 x GPU", shape=ellipse];
  v1 -> v4;
  v5 [label="n2", shape=ellipse];
}
)");
}

TEST_CASE("the tree as DOT without its nodes") {
    const auto cluster = Cluster::build(spec());
    const NetworkTree tree(cluster.inventory());
    CHECK(to_dot(tree, cluster.inventory(), {.nodes = false}) == R"(digraph network {
  node [shape=box];
  v1 [label="c\n2 nodes, 10 GPUs"];
  v2 [label="s\"0\\\n1 nodes, 8 GPUs"];
  v1 -> v2;
}
)");
}
