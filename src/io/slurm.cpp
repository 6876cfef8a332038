// SPDX-License-Identifier: Apache-2.0
#include "io/other_snapshots.hpp"
#include "io/slurm/json.hpp"
#include "io/slurm/reader.hpp"
#include "io/slurm/text.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/slurm.hpp>
#include <gpusched/io/slurm_topology.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace gpusched::io {

namespace detail::slurm {

/// Whether a text that is no JSON is topology.conf: its first line begins a switch or a block.
static bool is_topology(std::string_view text) {
    while (!text.empty()) {
        const auto line = upper_case(trimmed(take_line(text)));
        if (line.empty() || line.front() == '#') continue;
        return line.starts_with("SWITCHNAME=") || line.starts_with("BLOCKNAME=") ||
               line.starts_with("BLOCKSIZES=");
    }
    return false;
}

/// Whether a text that is no JSON is topology.yaml: it has a list of topologies.
static bool is_topology_list(std::string_view text) {
    while (!text.empty()) {
        auto line = trimmed(take_line(text));
        if (line.empty() || line.front() == '#' || line == "---") continue;
        while (!line.empty() && (line.front() == '-' || line.front() == ' ')) line.remove_prefix(1);
        if (line.starts_with("topology:") || line.starts_with("cluster_default:")) return true;
        if (!line.empty()) return false;
    }
    return false;
}

/// Sorts texts by what they are.
class Input {
  public:
    Input(const SlurmReadOptions& options, Records& records, ReportBuilder& report, Problems& problems)
        : options_(options), records_(records), report_(report), problems_(problems) {}

    void take(const NamedText& text) {
        auto begin = text.text;
        if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);
        if (begin.size() > largest_document)
            return problems_.add(text.source + ": expected at most " + std::to_string(largest_document) +
                                 " bytes");
        if (const auto found = found_snapshot(begin); found.is_not_of(System::slurm))
            return problems_.add(text.source + expected_ + found.told);
        const auto first = begin.find_first_not_of(" \t\r\n");
        if (first == begin.npos) return problems_.add(text.source + expected_ + "nothing");
        if (begin[first] == '{' || begin[first] == '[') return take_json(text);
        if (TextRecords::recognises(begin)) return TextRecords(records_, report_).take(begin, text.source);
        if (is_topology(begin)) return network(slurm_topology_from_conf(begin, text.source), text.source);
        if (is_topology_list(begin)) return network(of_yaml(begin, text.source), text.source);
        auto rest = begin.substr(first);
        problems_.add(text.source + expected_ + "a text that begins with " +
                      gpusched::quoted(printable(trimmed(take_line(rest)))));
    }

    void place(ClusterSpec& cluster) const {
        if (!network_) return report_.absent("topology", "where nodes are in the network: unknown");
        const auto placed = set_network(cluster, *network_);
        if (placed > 0) report_.exact("Node", "network", static_cast<std::int64_t>(placed));
        for (const auto& node : cluster.nodes)
            if (node.network.empty())
                report_.ignored("Node", "network", Errs::either,
                                "the topology does not name it: its position is unknown", node.name);
        for (const auto& note : network_->notes)
            report_.approximated("Node", "network", Errs::neither, note, "");
    }

  private:
    void take_json(const NamedText& text) {
        const auto document = json::Document::parse(text.text, text.source, problems_);
        const Place root(document, 0);
        if (root.is(json::Kind::array) && !root.items().empty() && root.items().front()["topology"])
            return network(of_yaml(text.text, text.source), text.source);
        if (const auto format = root["format"].text(); format && format->starts_with("gpusched."))
            return problems_.add(text.source + expected_ + "a document of format " +
                                 gpusched::quoted(printable(*format)) + ", which needs no import");
        if (const auto found = found_snapshot(root); found.is_not_of(System::slurm))
            return problems_.add(text.source + expected_ + found.told);
        if (!JsonRecords::recognises(root))
            return problems_.add(text.source + expected_ + document.describe(0) +
                                 (root.is(json::Kind::object) ? " without nodes, jobs or partitions" : ""));
        JsonRecords(records_, report_).take(root);
    }
    [[nodiscard]] NetworkReading of_yaml(std::string_view text, const std::string& source) const {
        return slurm_topology_from_yaml(text, {.topology = options_.topology}, source);
    }
    void network(NetworkReading read, const std::string& source) {
        if (network_) return problems_.add(source + ": expected one topology, found another");
        network_ = std::move(read);
    }

    static constexpr const char* expected_ = ": expected what `scontrol show nodes`, `jobs` or `partitions` "
                                             "prints, as text or --json, or a topology, found ";
    const SlurmReadOptions& options_;
    Records& records_;
    ReportBuilder& report_;
    Problems& problems_;
    std::optional<NetworkReading> network_{};
};

}  // namespace detail::slurm

GPUSCHED_EXPORT ClusterReading slurm_from_texts(std::span<const NamedText> texts,
                                                const SlurmReadOptions& options) {
    Problems problems;
    check_fields(problems, options);
    if (texts.empty()) problems.add("expected at least one text of scontrol");
    problems.throw_if_any();
    detail::ReportBuilder report(static_cast<std::size_t>(options.examples));
    detail::slurm::Records records;
    detail::slurm::Input input(options, records, report, problems);
    std::string sources;
    for (const auto& text : texts) {
        input.take(text);
        sources += (sources.empty() ? "" : ", ") + text.source;
    }
    problems.throw_if_any();
    ClusterReading out;
    out.cluster = detail::slurm::Reader(records, options, report).read(sources);
    input.place(out.cluster);
    out.report = report.take();
    return out;
}

GPUSCHED_EXPORT ClusterReading slurm_from_text(std::string_view text, const SlurmReadOptions& options,
                                               std::string_view source) {
    const NamedText one{text, std::string(source)};
    return slurm_from_texts({&one, 1}, options);
}

GPUSCHED_EXPORT ClusterReading read_slurm(std::span<const std::string> paths,
                                          const SlurmReadOptions& options) {
    std::vector<std::string> contents;
    std::vector<NamedText> texts;
    contents.reserve(paths.size());
    for (const auto& path : paths) {
        contents.push_back(read_file(path));
        texts.push_back({contents.back(), path});
    }
    return slurm_from_texts(texts, options);
}

}  // namespace gpusched::io
