// SPDX-License-Identifier: Apache-2.0
#include "control/document_forms.hpp"

#include <gpusched/config.hpp>
#include <gpusched/host/journal.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>

#include <algorithm>

namespace gpusched::host {

namespace journal_detail {
constexpr std::string_view format = "gpusched.control-journal";
}

GPUSCHED_EXPORT JournalTenant& Journal::of(std::string_view name) {
    for (auto& t : tenants)
        if (t.name == name) return t;
    auto& t = tenants.emplace_back();
    t.name = name;
    return t;
}

GPUSCHED_EXPORT ControllerCarryover remembered(const Journal& journal, const Host& host, double now_s,
                                               double window_s) {
    auto named = journal.carryover;
    const double passed = std::max(0.0, now_s - journal.carryover_s);
    for (auto& m : named) m.carryover = aged(m.carryover, passed, window_s);
    auto out = control::by_tenant(named, host);
    for (std::size_t i = 0; i < out.size(); ++i)
        if (host.tenants[i].is_protected && !out[i].floor) out[i].floor = host.tenants[i].start;
    return out;
}

GPUSCHED_EXPORT Journal believed(const std::optional<Journal>& found, const std::string& boot) {
    Journal out;
    if (found && !boot.empty() && found->boot == boot) {
        out = *found;
    } else if (found) {
        // The monotonic clock begins with the boot: no less than what it shows has passed.
        out.carryover = found->carryover;
        // Instances are gone with the boot: what a tenant is to have at least is as configured now.
        for (auto& m : out.carryover) m.carryover.floor.reset();
    }
    out.boot = boot;
    return out;
}

GPUSCHED_EXPORT std::string write_journal(const Journal& journal, const Host& host) {
    return json::write_document(journal_detail::format, journal, control::detail::document_style(1), 3, host);
}

GPUSCHED_EXPORT Journal parse_journal(std::string_view text, const Host& host) {
    Journal journal;
    try {
        Problems problems;
        const auto document = json::Document::parse(text, "journal", problems);
        json::Reader reader(document, problems);
        json::read_fields(document, {journal_detail::format, 3}, problems, journal, host);
        if (const auto at = document.find(0, "tenants"))
            control::detail::check_protected(reader, *at, journal.tenants, host);
        if (const auto at = document.find(0, "memory"))
            control::detail::check_protected(reader, *at, journal.carryover, host);
        problems.throw_if_any();
    } catch (const InvalidInput& e) {
        throw BackendError(e.what());
    }
    return journal;
}

GPUSCHED_EXPORT BackendStatus set_cores(Files& files, const std::string& cgroup, const CpuSet& cpus,
                                        const std::string& before) {
    Cgroup group(files, cgroup);
    const bool pinned = !(cpus == CpuSet{});
    if (before != "threads") return group.set_cpus(pinned ? cpus_text(cpus) : before, pinned);
    // All cores: the kernel leaves out those that are not there.
    constexpr auto all = CpuSet::all();
    return group.set_affinity(pinned ? cpus : all);
}

GPUSCHED_EXPORT BackendStatus end_lease(Files& files, const JournalLease& lease) {
    const int error = files.write(lease.file, lease.before);
    std::string text;
    if (error == ENODEV || (error == ENOENT && files.read(lease.file, text) == ENOENT))
        return BackendStatus::ok;
    if (error != 0) return errno_status(error);
    if (const int failed = files.read(lease.file, text); failed != 0)
        return failed == ENOENT ? BackendStatus::ok : errno_status(failed);
    const auto disk = std::string_view(lease.before).substr(0, lease.before.find(' '));
    try {
        return parse_io_max(text, disk) == parse_io_max(lease.before, disk) ? BackendStatus::ok
                                                                            : BackendStatus::invalid_state;
    } catch (const BackendError&) {
        return BackendStatus::invalid_state;
    }
}

GPUSCHED_EXPORT JournalFile::JournalFile(Files& files, std::string path)
    : files_(files), path_(std::move(path)) {}

GPUSCHED_EXPORT std::optional<Journal> JournalFile::load(const Host& host) {
    std::string text;
    const int error = files_.read(path_, text);
    if (error == ENOENT) return std::nullopt;
    if (error != 0) throw BackendError(path_ + ": cannot be read: error " + std::to_string(error));
    try {
        return parse_journal(text, host);
    } catch (const BackendError& e) {
        throw BackendError(path_ + ": " + e.what());
    }
}

GPUSCHED_EXPORT BackendStatus JournalFile::save(const Journal& journal, const Host& host) {
    const auto beside = path_ + ".new";
    if (const int error = files_.create(beside, write_journal(journal, host)); error != 0)
        return errno_status(error);
    return errno_status(files_.rename(beside, path_));
}

}  // namespace gpusched::host
