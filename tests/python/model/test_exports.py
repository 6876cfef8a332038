# SPDX-License-Identifier: Apache-2.0
"""Clusters, plans and explanations as notebooks show them, for pandas, for Arrow and for networkx."""

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from html_page import Page
from messages import mentions


def parsed(html):
    """The cells of the tables below their headers."""
    return sum(Page(html).rows[1:], [])


@pytest.fixture
def mixed():
    nodes = [
        make_node("a", gpu_model="<A>", failed_gpus=[7], network=["c", "s0"]),
        make_node("b", gpu_model="<A>", schedulable=False, network=["c", "s0"]),
        make_node("c", gpu_model="B", gpu_count=1, network=["c", "s1"]),
    ]
    tasks = [make_task("t", node="a", gpus=[0]), make_task("u", node="b", gpus=[0]), make_task("waits")]
    return gs.Cluster.from_json(document(nodes, tasks))


def test_clusters_show_failed_and_cordoned(mixed):
    html = mixed._repr_html_()
    assert "3 nodes, 17 GPUs, 3 tasks, 1 pending" in html
    assert parsed(html) == ["<A>", "2", "2", "1", "16", "13", "1", "B", "1", "0", "0", "1", "1", "0"]


def test_plans_show_their_steps(tiny):
    plan = gs.consolidate(tiny)
    html = plan._repr_html_()
    assert mentions(html, "1 move in 1 wave, 1 node vacated") and "at most 8 GPUs" in html
    assert parsed(html)[:5] == ["move", "1", "small", "n0", "n1"]
    frame = plan.to_pandas()
    steps = ["step", "wave", "task", "from", "to", "gpus", "how", "chain", "for"]
    assert list(frame.columns) == [*steps, "namespace", "owner_kind", "task_gpus"]
    assert frame["task"].tolist() == ["small"] and frame["gpus"].tolist() == [plan.moves[0].gpus]


def test_long_plans_are_cut(small):
    plan = gs.consolidate(small)
    assert len(plan.moves) > 21
    assert mentions(plan._repr_html_(), f"and {len(plan.moves) - 20} more rows")
    assert len(plan.to_pandas()) == len(plan.moves)


def test_plans_without_steps():
    empty = gs.Plan.from_json(
        {"format": "gpusched.plan", "version": 1, "waves": 0, "moves": [], "vacated_nodes": []}
    )
    assert "0 moves in 0 waves" in empty._repr_html_()
    assert len(empty.to_pandas()) == 0
    pytest.importorskip("pyarrow")
    assert empty.to_arrow().num_rows == 0


def test_evictions_and_placements_are_steps(mixed):
    task = make_task("big", gpu_count=7, priority=100, priority_class="HP")
    plan = gs.Plan.from_json(
        {
            "format": "gpusched.plan",
            "version": 1,
            "waves": 0,
            "moves": [],
            "vacated_nodes": [],
            "evictions": ["t"],
            "placements": [{"task": task["name"], "node": "a", "gpus": [0, 1, 2, 3, 4, 5, 6]}],
        }
    )
    frame = plan.to_pandas()
    assert frame["step"].tolist() == ["evict", "place"] and frame["wave"].tolist() == [-1, -1]
    assert frame["to"].isna().tolist() == [True, False] and frame["to"].tolist()[1] == "a"


def test_explanations(tiny):
    why = gs.consolidation.explain(tiny, gs.consolidate(tiny), "n1")
    frame = why.to_pandas()
    assert list(frame.columns)[:3] == ["node", "fate", "task"] and len(frame) == len(why.blockers)
    assert "Node n1" in why._repr_html_()
    Page(why._repr_html_())
    why = gs.preemption.explain(tiny, make_task("huge", gpu_count=16))
    assert why.to_pandas()["obstacle"].tolist() == [why.obstacle]
    Page(why._repr_html_())


def test_columns_have_the_names_that_they_have_in_frames(mixed):
    html = mixed._repr_html_()
    columns = "gpu_model nodes occupied cordoned gpu_count idle_gpu_count failed_gpu_count".split()
    assert [f"<th>{name}</th>" in html for name in columns] == [True] * len(columns)


def awkward_clusters():
    """Clusters of which some columns hold nothing, or None alone."""
    network = {"network": ["c", "s0"]}
    plain = [make_node("a", **network), make_node("b", **network)]
    yield document(plain, [make_task("t", node="a", gpus=[0], job="j")], jobs=[{"name": "j"}])
    yield document(plain, [make_task("waits")])  # no task runs, none has a job
    yield document([make_node("a", gpu_model=None, **network)], [make_task("t", node="a", gpus=[0])])
    yield document(plain, [])


def test_types_of_columns_do_not_depend_on_the_data():
    pa = pytest.importorskip("pyarrow")
    clusters = [gs.Cluster.from_json(one) for one in awkward_clusters()]
    for kind in (0, 1):
        tables = [cluster.to_arrow()[kind] for cluster in clusters]
        assert all(table.schema == tables[0].schema for table in tables), kind
        assert pa.concat_tables(tables).num_rows == sum(table.num_rows for table in tables)
        frames = [cluster.to_pandas()[kind] for cluster in clusters]
        for frame in frames:
            assert [str(t) for t in frame.dtypes] == [str(t) for t in frames[0].dtypes], kind
    assert tables[0].schema.field("node").type == pa.string()
    plans = [gs.consolidate(cluster) for cluster in clusters]
    plans.append(gs.consolidate(gs.sim.generate_cluster(nodes=100)))
    assert not plans[-2].moves and plans[-1].moves
    assert len({str(plan.to_arrow().schema) for plan in plans}) == 1
    assert len({str([*map(str, plan.to_pandas().dtypes)]) for plan in plans}) == 1
    empty = gs.Cluster.from_json(document([], []))
    assert str(empty.to_arrow()[1].schema) == str(clusters[0].to_arrow()[1].schema)
    reports = [
        gs.fragmentation.report(c, [(1, cores)], by="gpu_model")
        for c in (empty, clusters[0])
        for cores in (8, 0.5)
    ]
    assert len({str(report.to_arrow().schema) for report in reports}) == 1
    assert len({str(list(report.to_pandas().dtypes)) for report in reports}) == 1


def test_arrow_and_pandas_hold_the_same_data(mixed, small):
    pa = pytest.importorskip("pyarrow")
    for cluster in (mixed, small):
        for table, frame in zip(cluster.to_arrow(), cluster.to_pandas()):
            assert table.column_names == list(frame.columns)
            for name in table.column_names:
                seen = [None if value is None or value != value else value for value in frame[name].tolist()]
                assert table[name].to_pylist() == seen, name
    nodes, tasks = mixed.to_arrow()
    assert nodes.schema.field("gpu_count").type == pa.int64()
    assert tasks.schema.field("locked").type == pa.bool_()
    assert mixed.tasks["waits"].node is None and tasks["node"].to_pylist()[-1] is None
    plan = gs.consolidate(small)
    assert plan.to_arrow()["task"].to_pylist() == plan.to_pandas()["task"].tolist()
    report = gs.fragmentation.report(small, [(1, 8)])
    assert report.to_arrow()["stranded"].to_pylist() == report.column("stranded")


def test_network_as_a_graph(mixed):
    nx = pytest.importorskip("networkx")
    graph = gs.topology.NetworkTree(mixed).to_networkx()
    assert nx.is_arborescence(graph) and graph.nodes[0]["level"] == "root"
    by_name = {(data["level"], data["name"]): number for number, data in graph.nodes(data=True)}
    nodes = {("node", "a"), ("node", "b"), ("node", "c")}
    assert set(by_name) == {("root", ""), (0, "c"), (1, "s0"), (1, "s1"), *nodes}
    undirected = graph.to_undirected()
    tree = gs.topology.NetworkTree(mixed)
    between = nx.shortest_path_length(undirected, by_name["node", "a"], by_name["node", "c"])
    assert between == tree.distance(tree.vertex("a"), tree.vertex("c"))


def test_machine_as_a_graph():
    nx = pytest.importorskip("networkx")
    machine = gs.topology.HardwareGraph.preset("rtx4090x8")
    graph = machine.to_networkx()
    assert graph.number_of_nodes() == len(machine.vertices) and graph.number_of_edges() == len(machine.edges)
    at = {v["id"]: n for n, v in graph.nodes(data=True) if v["kind"] == "gpu"}
    assert nx.shortest_path_length(graph, at[0], at[7]) == machine.distance(0, 7)
    assert {data["kind"] for _, _, data in graph.edges(data=True)} == {
        kind for _, _, kind, _ in machine.edges
    }
