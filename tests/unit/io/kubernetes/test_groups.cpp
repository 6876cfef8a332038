// SPDX-License-Identifier: Apache-2.0
// Pod affinity and anti-affinity, topology spread, host ports.
#include "objects.hpp"

using namespace kubernetes_text;

namespace {

std::string zone(const std::string& name, const std::string& zone) {
    return node(name, {.labels = R"("kubernetes.io/hostname": ")" + name + R"(", "zone": ")" + zone + "\""});
}
std::string term(const std::string& app, const std::string& key, const std::string& rest = {}) {
    return R"({"labelSelector": {"matchLabels": {"app": ")" + app + R"("}}, "topologyKey": ")" + key + "\"" +
           more(rest) + "}";
}
std::string affinity(const std::string& kind, const std::string& terms) {
    return R"("affinity": {")" + kind + R"(": {"requiredDuringSchedulingIgnoredDuringExecution": [)" + terms +
           "]}}";
}
std::string app(const std::string& name) { return R"("app": ")" + name + "\""; }

std::string where(const io::ClusterReading& reading, const std::string& pod) {
    const auto cluster = Cluster::build(reading.cluster);
    std::string out;
    for (const auto& spec : reading.cluster.nodes)
        if (fits(cluster, pod, spec.name)) out += spec.name + " ";
    return out;
}

}  // namespace

TEST_CASE("Anti-affinity keeps pods apart, both ways", "[io][kubernetes]") {
    const auto reading = read(
        {zone("a0", "a"), zone("a1", "a"), zone("b0", "b"),
         pod("web",
             {.on = "a0", .labels = app("web"), .spec = affinity("podAntiAffinity", term("db", "zone"))}),
         pod("db", {.labels = app("db")}), pod("other", {.labels = app("x")}),
         pod("web2", {.labels = app("web"),
                      .spec = affinity("podAntiAffinity", term("web", "kubernetes.io/hostname"))})});
    CHECK(where(reading, "db") == "b0 ");  // it says nothing itself
    CHECK(where(reading, "other") == "a0 a1 b0 ");
    CHECK(where(reading, "web2") == "a1 b0 ");
    CHECK(reading.cluster.label_levels == std::vector<std::string>{"zone"});
    CHECK(task(reading, "web2").avoid == std::vector<Avoid>{{"default/app=web", node_level}});
    CHECK(task(reading, "web").avoid == std::vector<Avoid>{{"default/app=db", first_label_level}});
    CHECK(row(reading, "Pod", "required pod anti-affinity").count == 2);
}

TEST_CASE("Host names are a label if nodes lack them or share them", "[io][kubernetes]") {
    const auto avoiding = pod(
        "p", {.labels = app("p"), .spec = affinity("podAntiAffinity", term("p", "kubernetes.io/hostname"))});
    CHECK(task(read({node("n0"), avoiding}), "p").avoid.front().level == first_label_level);
    const auto same = NodeText{.labels = R"("kubernetes.io/hostname": "same")"};
    CHECK(task(read({node("n0", same), node("n1", same), avoiding}), "p").avoid.front().level ==
          first_label_level);
    CHECK(task(read({node("n0", same), avoiding}), "p").avoid.front().level == node_level);
}

TEST_CASE("Affinity wants pods near, and lets the first one in", "[io][kubernetes]") {
    const auto near = affinity("podAffinity", term("web", "zone"));
    auto reading = read({zone("a0", "a"), zone("b0", "b"), node("nowhere"),
                         pod("web", {.on = "b0", .labels = app("web")}), pod("p", {.spec = near})});
    CHECK(where(reading, "p") == "b0 ");
    reading = read({zone("a0", "a"), node("nowhere"), pod("p", {.spec = near}),
                    pod("first", {.labels = app("web"), .spec = near})});
    CHECK(where(reading, "p").empty());
    CHECK(where(reading, "first") == "a0 ");
}

TEST_CASE("Namespaces of a term", "[io][kubernetes]") {
    const auto with = [](const std::string& rest) {
        return pod("p", {.spec = affinity("podAntiAffinity", term("web", "kubernetes.io/hostname", rest))});
    };
    const std::vector<std::string> others{zone("n0", "a"), zone("n1", "a"),
                                          pod("w", {.on = "n0", .labels = app("web"), .space = "shop"}),
                                          pod("v", {.on = "n1", .labels = app("web"), .space = "test"})};
    const auto placed = [&](const std::string& rest, const std::string& extra = "") {
        auto items = others;
        items.push_back(with(rest));
        if (!extra.empty()) items.push_back(extra);
        return where(read(items), "p");
    };
    CHECK(placed("") == "n0 n1 ");
    CHECK(placed(R"("namespaces": ["shop"])") == "n1 ");
    CHECK(placed(R"("namespaces": ["shop", "test"])").empty());
    CHECK(placed(R"("namespaceSelector": {})").empty());
    CHECK(placed(R"("namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "test"}})") ==
          "n0 ");
    const auto of_team = R"("namespaceSelector": {"matchLabels": {"team": "x"}})";
    CHECK(placed(of_team) == "n0 n1 ");
    CHECK(placed(of_team, R"({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", )"
                          R"("labels": {"team": "x"}}})") == "n1 ");
    auto items = others;
    items.push_back(with(of_team));
    CHECK(row(read(items), "Pod", "namespaceSelector").errs == io::Errs::either);
}

TEST_CASE("Selectors with expressions and label keys", "[io][kubernetes]") {
    const auto with = [](const std::string& selector, const std::string& rest = {}) {
        return pod("p", {.labels = R"("app": "web", "rev": "2")",
                         .spec = affinity("podAntiAffinity",
                                          R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": )" +
                                              selector + more(rest) + "}")});
    };
    const auto placed = [&](const std::string& selector, const std::string& rest = {}) {
        return where(
            read({zone("n0", "a"), zone("n1", "a"),
                  pod("one", {.on = "n0", .labels = R"("app": "web", "rev": "1")"}),
                  pod("two", {.on = "n1", .labels = R"("app": "db", "rev": "2")"}), with(selector, rest)}),
            "p");
    };
    const auto expression = [](const std::string& text) {
        return R"({"matchExpressions": [{"key": "app", )" + text + "}]}";
    };
    CHECK(placed(expression(R"("operator": "In", "values": ["db", "x"])")) == "n0 ");
    CHECK(placed(expression(R"("operator": "NotIn", "values": ["db"])")) == "n1 ");
    CHECK(placed(expression(R"("operator": "Exists")")).empty());
    CHECK(placed(expression(R"("operator": "DoesNotExist")")) == "n0 n1 ");
    CHECK(placed("{}").empty());
    CHECK(placed("null") == "n0 n1 ");  // no selector selects nothing
    CHECK(placed("{}", R"("matchLabelKeys": ["rev"])") == "n0 ");
    CHECK(placed("{}", R"("mismatchLabelKeys": ["rev"])") == "n1 ");
    const auto bad = read({zone("n0", "a"), with(expression(R"("operator": "Like", "values": ["w"])"))});
    CHECK(row(bad, "Pod", "pod affinity and spread").errs == io::Errs::too_lax);
}

TEST_CASE("Topology spread with DoNotSchedule", "[io][kubernetes]") {
    const auto spread = [](const std::string& rest) {
        return R"("topologySpreadConstraints": [{"topologyKey": "zone", )"
               R"("labelSelector": {"matchLabels": {"app": "s"}}, )" +
               rest + "}]";
    };
    const auto make = [&](const std::string& rest, const std::string& metadata = {}) {
        return read({zone("a0", "a"), zone("b0", "b"),
                     pod("one", {.on = "a0", .labels = app("s"), .metadata = metadata}),
                     pod("p", {.labels = app("s"), .spec = spread(rest)})});
    };
    const auto hard = std::string(R"("maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule")");
    CHECK(where(make(hard), "p") == "b0 ");
    CHECK(where(make(R"("maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule")"), "p") == "a0 b0 ");
    CHECK(where(make(R"("maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway")"), "p") == "a0 b0 ");
    // A pod on its way out does not count.
    const auto leaving = make(hard, R"("deletionTimestamp": "2026-01-01T00:00:00Z")");
    CHECK(where(leaving, "p") == "a0 b0 ");
    CHECK(task(leaving, "p").spread.front().group == "default/app=s (not terminating)");
    const auto full =
        make(hard + R"(, "minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor")");
    CHECK(task(full, "p").spread == std::vector<Spread>{{.group = "default/app=s",
                                                         .level = first_label_level,
                                                         .max_skew = 1,
                                                         .min_domains = 3,
                                                         .honor_node_affinity = false,
                                                         .honor_taints = true}});
    // A selector without conditions counts no pod, as in kube-scheduler; the label is required all the same.
    const auto everybody = read(
        {zone("a0", "a"), zone("b0", "b"), node("bare"), pod("one", {.on = "a0"}),
         pod("p", {.spec = R"("topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {}, )" +
                           hard + "}]"})});
    CHECK(where(everybody, "p") == "a0 b0 ");
    CHECK(row(make(R"("whenUnsatisfiable": "ScheduleAnyway")"), "Pod", "topology spread with ScheduleAnyway")
              .count == 1);
}

TEST_CASE("Volumes of one zone count as one resource for pods with topology spread", "[io][kubernetes]") {
    std::vector<std::string> items{zone("a0", "a"), zone("b0", "b")};
    for (const std::string of : {"a", "b"})
        for (int i = 0; i < 3; ++i) {
            const auto name = of + std::to_string(i);
            items.push_back(object("v1", "PersistentVolume", "pv-" + name,
                                   R"("spec": {"accessModes": ["ReadWriteOnce"],
                 "claimRef": {"namespace": "default", "name": "c-)" +
                                       name + R"("}})",
                                   R"("labels": {"topology.kubernetes.io/zone": ")" + of + "\"}"));
            items.push_back(
                object("v1", "PersistentVolumeClaim", "c-" + name,
                       R"("spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv-)" + name + "\"}"));
            items.push_back(
                pod(name, {.labels = app("s"),
                           .spec = R"("volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c-)" +
                                   name + R"("}}], "topologySpreadConstraints": [{"maxSkew": 3, )" +
                                   R"("topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", )" +
                                   R"("labelSelector": {"matchLabels": {"app": "s"}}}])"}));
        }
    for (std::size_t i = 0; i < 2; ++i) {
        auto& text = items[i];
        const auto at = text.find(R"("zone": )");
        text.insert(at, i == 0 ? R"("topology.kubernetes.io/zone": "a", )"
                               : R"("topology.kubernetes.io/zone": "b", )");
    }
    const auto reading = read(items);
    for (const auto& node : reading.cluster.nodes) {
        INFO(node.name);
        CHECK(std::count_if(node.resources.begin(), node.resources.end(),
                            [](const auto& one) { return one.first.starts_with("volumes like "); }) == 1);
    }
    CHECK(where(reading, "a2") == "a0 ");
    CHECK(where(reading, "b0") == "b0 ");
}

TEST_CASE("Preferences are ignored, and reported", "[io][kubernetes]") {
    const auto reading = read({node("n0"), pod("p", {.spec = R"("affinity": {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}})"})});
    CHECK(row(reading, "Pod", "preferred node affinity").count == 1);
    CHECK(row(reading, "Pod", "preferred pod affinity and anti-affinity").count == 1);
    CHECK(task(reading, "p").avoid.empty());
}

TEST_CASE("Host ports, by protocol and address", "[io][kubernetes]") {
    const auto port = [](const std::string& name, const std::string& text, const std::string& on = {},
                         const std::string& spec = {}) {
        return pod(name,
                   {.on = on, .spec = spec, .containers = R"({"name": "c", "ports": [{)" + text + "}]}"});
    };
    const auto reading = read(
        {node("n0"), node("n1"), node("n2"), port("any", R"("hostPort": 80)", "n0"),
         port("one", R"("hostPort": 80, "hostIP": "10.0.0.1")", "n1"), port("p", R"("hostPort": 80)"),
         port("udp", R"("hostPort": 80, "protocol": "UDP")"),
         port("same", R"("hostPort": 80, "hostIP": "10.0.0.1")"),
         port("else", R"("hostPort": 80, "hostIP": "10.0.0.2")"), port("inside", R"("containerPort": 80)"),
         port("network", R"("containerPort": 80)", "", R"("hostNetwork": true)"),
         pod("side",
             {.spec =
                  R"("initContainers": [{"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 80}]},
                                 {"name": "i", "ports": [{"hostPort": 81}]}])"})});
    CHECK(where(reading, "p") == "n2 ");
    CHECK(where(reading, "udp") == "n0 n1 n2 ");
    CHECK(where(reading, "same") == "n2 ");
    CHECK(where(reading, "else") == "n1 n2 ");
    CHECK(where(reading, "inside") == "n0 n1 n2 ");
    CHECK(where(reading, "network") == "n2 ");
    CHECK(where(reading, "side") == "n2 ");
    CHECK(task(reading, "side").groups == std::vector<std::string>{"host port TCP/80"});
}

TEST_CASE("Groups of all pods for each pod are refused before they fill the memory", "[io][kubernetes]") {
    std::vector<std::string> objects{node("a")};
    for (int i = 0; i < 2'000; ++i) {
        const auto selector =
            R"({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [")" +
            std::to_string(i) + R"("]}]}, "topologyKey": "zone"})";
        objects.push_back(pod("p" + std::to_string(i), {.spec = affinity("podAntiAffinity", selector)}));
    }
    CHECK_THROWS_MESSAGE(read(objects), InvalidInput, "pod stands more than 96 MiB");
}
