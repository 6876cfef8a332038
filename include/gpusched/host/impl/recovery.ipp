#pragma once

#include <gpusched/config.hpp>
#include <gpusched/host/recovery.hpp>

#include <algorithm>

namespace gpusched::host {

GPUSCHED_INLINE std::vector<OwnedInstance>
owned_instances(const Host& host, const std::optional<Journal>& journal, const std::string& boot) {
    std::vector<OwnedInstance> owned;
    const auto add = [&](const Configuration& c) {
        const OwnedInstance one{c.gpu, c.instance};
        if (std::find(owned.begin(), owned.end(), one) == owned.end()) owned.push_back(one);
    };
    for (const auto& tenant : host.tenants) {
        if (!tenant.is_protected) continue;
        bool recorded = false;
        if (journal && !boot.empty() && journal->boot == boot)
            for (const auto& t : journal->tenants) {
                if (t.name != tenant.name) continue;
                recorded = true;
                add(t.now);
                if (t.pending) add(*t.pending);
            }
        // A tenant that has moved away has no claim to where it started: somebody else may be there now.
        if (!recorded) add(tenant.start);
    }
    return owned;
}

GPUSCHED_INLINE bool is_limit_file(std::string_view path, std::string_view folder) {
    return path.starts_with(folder) && path.substr(folder.size()).starts_with('/') &&
           path.ends_with("/io.max") && path.find("/../") == std::string_view::npos;
}

}  // namespace gpusched::host
