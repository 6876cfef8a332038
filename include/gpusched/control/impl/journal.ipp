#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/detail/configuration_json.hpp>
#include <gpusched/control/journal.hpp>

namespace gpusched::control {

GPUSCHED_INLINE JournalTenant& Journal::of(std::string_view name) {
    for (auto& t : tenants)
        if (t.name == name) return t;
    auto& t = tenants.emplace_back();
    t.name = name;
    return t;
}

GPUSCHED_INLINE std::string write_journal(const Journal& journal, const Host& host) {
    nlohmann::ordered_json j;
    j["format"] = "gpusched.control-journal";
    j["version"] = 1;
    j["boot"] = journal.boot;
    j["tenants"] = j["leases"] = nlohmann::ordered_json::array();
    for (const auto& t : journal.tenants) {
        auto& out = j["tenants"].emplace_back();
        out["name"] = t.name;
        out["now"] = detail::write_configuration(t.now, host);
        if (t.pending) out["pending"] = detail::write_configuration(*t.pending, host);
        if (t.switched) out["switched"] = true;
        if (t.drained) out["drained"] = true;
        if (t.cpuset) out["cpuset"] = *t.cpuset;
    }
    for (const auto& l : journal.leases)
        j["leases"].push_back({{"tenant", l.tenant}, {"file", l.file}, {"before", l.before}});
    return j.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

GPUSCHED_INLINE Journal parse_journal(std::string_view text, const Host& host) {
    Problems problems;
    Journal journal;
    try {
        const auto j = detail::parse_document(text, "journal");
        const detail::FieldReader reader(j, "", problems);
        std::string format;
        std::int32_t version = 0;
        reader("format", format);
        reader("version", version);
        reader("boot", journal.boot);
        if (format != "gpusched.control-journal" || version != 1)
            problems.add("format, version: " + gpusched::quoted(format) + ", " + number_text(version) +
                         "; expected gpusched.control-journal, 1");
        reader.elements("tenants", [&](const detail::Json& item, const std::string& path) {
            const detail::FieldReader fields(item, path, problems);
            auto& t = journal.tenants.emplace_back();
            fields("name", t.name);
            fields("switched", t.switched);
            fields("drained", t.drained);
            if (fields.take("cpuset") != nullptr) fields("cpuset", t.cpuset.emplace());
            bool known = false;
            for (const auto& other : host.tenants) known |= other.is_protected && other.name == t.name;
            if (!known) fields.bad(path + "/name", t.name, "the name of a protected tenant");
            if (const auto* now = fields.take("now"))
                detail::read_configuration(fields, *now, path + "/now", host, t.now, problems);
            else
                problems.add(path + "/now: missing");
            if (const auto* pending = fields.take("pending"))
                detail::read_configuration(fields, *pending, path + "/pending", host, t.pending.emplace(),
                                           problems);
            fields.finish();
        });
        reader.elements("leases", [&](const detail::Json& item, const std::string& path) {
            const detail::FieldReader fields(item, path, problems);
            auto& l = journal.leases.emplace_back();
            fields("tenant", l.tenant);
            fields("file", l.file);
            fields("before", l.before);
            fields.finish();
        });
        reader.finish();
        problems.throw_if_any();
    } catch (const InvalidInput& e) {
        throw BackendError(std::string("journal: ") + e.what());
    }
    return journal;
}

}  // namespace gpusched::control
