// SPDX-License-Identifier: Apache-2.0
#include "io/kubernetes/kai.hpp"
#include "io/kubernetes/reader.hpp"
#include "io/other_snapshots.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/io/kai.hpp>

#include <cstddef>

namespace gpusched::io {

GPUSCHED_EXPORT ClusterReading kai_snapshot_from_text(std::string_view text,
                                                      const KubernetesReadOptions& options,
                                                      std::string_view source_name) {
    const std::string source(source_name);
    Problems problems;
    check_fields(problems, options);
    if (options.network_labels.size() > 16)
        problems.add(bad_value("network_labels", std::to_string(options.network_labels.size()) + " labels",
                               "at most 16"));
    problems.throw_if_any();
    if (text.starts_with("PK\x03\x04"))
        throw InvalidInput(source +
                           ": expected snapshot.json, found a zip archive: `gpusched import kai` and "
                           "gs.io.read_kai_snapshot take it out");
    const auto require_own = [&](const detail::FoundSnapshot& found) {
        if (found.is_not_of(detail::System::kai))
            throw InvalidInput(source + ": expected snapshot.json of KAI-Scheduler, found " + found.told);
    };
    require_own(detail::found_snapshot(text));
    const auto document = json::Document::parse(text, source, problems);
    const detail::Place root(document, 0);
    require_own(detail::found_snapshot(root));
    const auto raw = root["rawObjects"];
    if (!raw.is(json::Kind::object))
        problems.add(source + ": expected snapshot.json of KAI-Scheduler, an object with rawObjects, found " +
                     document.describe(0) + (root.is(json::Kind::object) ? " without them" : ""));
    problems.throw_if_any();
    detail::ReportBuilder report(static_cast<std::size_t>(options.examples));
    detail::kubernetes::Objects objects;
    const detail::kubernetes::Kai kai(root, objects, report);
    auto own = options;
    if (own.schedulers.empty()) {
        auto name = detail::kubernetes::name_of(root["schedulerParams"]["SchedulerName"].text());
        if (name.empty()) name = detail::kubernetes::name_of(root["schedulerParams"]["schedulerName"].text());
        own.schedulers.push_back(name.empty() ? "kai-scheduler" : name);
    }
    ClusterReading out;
    out.cluster = detail::kubernetes::Reader(objects, own, report, &kai).read(source);
    out.report = report.take();
    return out;
}

GPUSCHED_EXPORT ClusterReading read_kai_snapshot(const std::string& path,
                                                 const KubernetesReadOptions& options) {
    const auto text = read_file(path);
    return kai_snapshot_from_text(text, options, path);
}

}  // namespace gpusched::io
