// A tenant's configuration in documents: `{"gpu": 0, "profile": "2g", "slice": 0, "quota_percent": 100, "cpus": "0-3"}`.
#pragma once

#include <gpusched/control/config.hpp>
#include <gpusched/control/detail/config_fields.hpp>

#include <string>

namespace GPUSCHED_NAMESPACE::control::detail {

inline void read_configuration(const FieldReader& owner, const Json& j, const std::string& path,
                               const Host& host, Configuration& start, Problems& problems) {
    const FieldReader reader(j, path, problems);
    std::string profile, cpus;
    int slice = 0;
    reader("gpu", start.gpu);
    reader("profile", profile);
    reader("slice", slice);
    reader("quota_percent", start.quota_percent);
    reader("cpus", cpus);
    reader.finish();
    if (start.quota_percent < 50 || start.quota_percent > 100)
        owner.bad(path + "/quota_percent", start.quota_percent, "50 to 100");
    try {
        start.cpus = parse_cpus(cpus);
    } catch (const InvalidInput& e) {
        problems.add(path + "/" + e.problems().front());
    }
    if (start.gpu < 0 || static_cast<std::size_t>(start.gpu) >= host.gpus.size())
        return owner.bad(path + "/gpu", start.gpu, "an index into /host/gpus");
    int p = -1;
    try {
        p = mig_device(host.gpus[static_cast<std::size_t>(start.gpu)].device).find(profile);
    } catch (const InvalidInput&) {
        return;  // the device's name is reported where it stands
    }
    if (p < 0) return owner.bad(path + "/profile", profile, "the key of a profile of the GPU, such as 2g");
    if (slice < 0 || slice > 7) return owner.bad(path + "/slice", slice, "0 to 7");
    start.instance = {static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(slice)};
}

inline nlohmann::ordered_json write_configuration(const Configuration& c, const Host& host) {
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(c.gpu)].device);
    nlohmann::ordered_json out;
    out["gpu"] = c.gpu;
    out["profile"] = device.profiles[c.instance.profile].key;
    out["slice"] = c.instance.start;
    out["quota_percent"] = c.quota_percent;
    out["cpus"] = cpus_text(c.cpus);
    return out;
}

}  // namespace GPUSCHED_NAMESPACE::control::detail
