#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/detail/carryover_json.hpp>
#include <gpusched/host/journal.hpp>

#include <algorithm>

namespace GPUSCHED_NAMESPACE::host {

GPUSCHED_INLINE JournalTenant& Journal::of(std::string_view name) {
    for (auto& t : tenants)
        if (t.name == name) return t;
    auto& t = tenants.emplace_back();
    t.name = name;
    return t;
}

GPUSCHED_INLINE ControllerCarryover remembered(const Journal& journal, const Host& host, double now_s,
                                               double window_s) {
    ControllerCarryover out(host.tenants.size());
    const double passed = std::max(0.0, now_s - journal.carryover_s);
    for (const auto& m : journal.carryover)
        if (auto* const to = control::detail::carryover_of_tenant(out, host, m.name))
            *to = aged(m.carryover, passed, window_s);
    for (std::size_t i = 0; i < out.size(); ++i)
        if (host.tenants[i].is_protected && !out[i].floor) out[i].floor = host.tenants[i].start;
    return out;
}

GPUSCHED_INLINE Journal believed(const std::optional<Journal>& found, const std::string& boot) {
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

GPUSCHED_INLINE std::string write_journal(const Journal& journal, const Host& host) {
    nlohmann::ordered_json j;
    j["format"] = "gpusched.control-journal";
    j["version"] = 3;
    j["boot"] = journal.boot;
    j["tenants"] = j["leases"] = nlohmann::ordered_json::array();
    for (const auto& t : journal.tenants) {
        auto& out = j["tenants"].emplace_back();
        out["name"] = t.name;
        out["now"] = control::detail::write_configuration(t.now, host);
        if (t.pending) out["pending"] = control::detail::write_configuration(*t.pending, host);
        if (t.switched) out["switched"] = true;
        if (t.drained) out["drained"] = true;
        if (t.cpuset) out["cpuset"] = *t.cpuset;
    }
    for (const auto& l : journal.leases)
        j["leases"].push_back({{"tenant", l.tenant}, {"file", l.file}, {"before", l.before}});
    j["memory_s"] = journal.carryover_s;
    j["memory"] = nlohmann::ordered_json::array();
    for (const auto& m : journal.carryover)
        j["memory"].push_back(control::detail::write_carryover(m.name, m.carryover, host));
    return j.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

GPUSCHED_INLINE Journal parse_journal(std::string_view text, const Host& host) {
    Problems problems;
    Journal journal;
    try {
        const auto j = control::detail::parse_document(text, "journal");
        const control::detail::FieldReader reader(j, "", problems);
        std::string format;
        std::int32_t version = 0;
        reader("format", format);
        reader("version", version);
        reader("boot", journal.boot);
        if (format != "gpusched.control-journal" || version < 1 || version > 3)
            problems.add("format, version: " + gpusched::quoted(format) + ", " + number_text(version) +
                         "; expected gpusched.control-journal, 1 to 3");
        reader.elements("tenants", [&](const control::detail::Json& item, const std::string& path) {
            const control::detail::FieldReader fields(item, path, problems);
            auto& t = journal.tenants.emplace_back();
            fields("name", t.name);
            fields("switched", t.switched);
            fields("drained", t.drained);
            if (fields.take("cpuset") != nullptr) fields("cpuset", t.cpuset.emplace());
            bool known = false;
            for (const auto& other : host.tenants) known |= other.is_protected && other.name == t.name;
            if (!known) fields.bad(path + "/name", t.name, "the name of a protected tenant");
            if (const auto* now = fields.take("now"))
                control::detail::read_configuration(fields, *now, path + "/now", host, t.now, problems);
            else
                problems.add(path + "/now: missing");
            if (const auto* pending = fields.take("pending"))
                control::detail::read_configuration(fields, *pending, path + "/pending", host,
                                                    t.pending.emplace(), problems);
            fields.finish();
        });
        reader.elements("leases", [&](const control::detail::Json& item, const std::string& path) {
            const control::detail::FieldReader fields(item, path, problems);
            auto& l = journal.leases.emplace_back();
            fields("tenant", l.tenant);
            fields("file", l.file);
            fields("before", l.before);
            fields.finish();
        });
        if (version >= 2) {
            reader("memory_s", journal.carryover_s);
            if (!(journal.carryover_s >= 0 && journal.carryover_s <= 1e12))
                problems.add(bad_value("/memory_s", number_text(journal.carryover_s), "0 to 1e12"));
            control::detail::read_carryovers(
                reader, "memory", host, problems, [&](const std::string& name) -> TenantCarryover* {
                    for (const auto& tenant : host.tenants)
                        if (tenant.is_protected && tenant.name == name)
                            return &journal.carryover.emplace_back(JournalCarryover{name}).carryover;
                    return nullptr;
                });
        }
        reader.finish();
        problems.throw_if_any();
    } catch (const InvalidInput& e) {
        throw BackendError(std::string("journal: ") + e.what());
    }
    return journal;
}

GPUSCHED_INLINE BackendStatus set_cores(Files& files, const std::string& cgroup, const CpuSet& cpus,
                                        const std::string& before) {
    Cgroup group(files, cgroup);
    const bool pinned = !(cpus == CpuSet{});
    if (before != "threads") return group.set_cpus(pinned ? cpus_text(cpus) : before, pinned);
    // All cores: the kernel leaves out those that are not there.
    constexpr CpuSet all{{~0ull, ~0ull, ~0ull, ~0ull}};
    return group.set_affinity(pinned ? cpus : all);
}

GPUSCHED_INLINE BackendStatus end_lease(Files& files, const JournalLease& lease) {
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

GPUSCHED_INLINE JournalFile::JournalFile(Files& files, std::string path)
    : files_(files), path_(std::move(path)) {}

GPUSCHED_INLINE std::optional<Journal> JournalFile::load(const Host& host) {
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

GPUSCHED_INLINE BackendStatus JournalFile::save(const Journal& journal, const Host& host) {
    const auto beside = path_ + ".new";
    if (const int error = files_.create(beside, write_journal(journal, host)); error != 0)
        return errno_status(error);
    return errno_status(files_.rename(beside, path_));
}

}  // namespace GPUSCHED_NAMESPACE::host
