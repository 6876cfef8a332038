// `nvidia-smi mig` in memory: its arguments, tables and exit codes, with a fault at a call of one's choice.
#pragma once

#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/programs.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace gpusched::test {

struct Crash {};

/// `nvidia-smi mig` as it behaves, in memory: the same arguments, tables and exit codes.
struct FakeSmi : host::Programs {
    enum class Fault { none, code, code_after_effect, hang, garbage, partial, crash_before, crash_after };
    struct Gi {
        int profile = 0, id = 0, start = 0, size = 0;
        bool compute = true, mine = false;
        bool client = false;  ///< a program runs in it
        int used_mib = 0;     ///< memory that is not free
    };
    std::array<std::vector<Gi>, 2> gpus{};
    int next_id = 1;
    int calls = 0, fault_at = -1;
    Fault fault = Fault::none;
    int code = 19;
    std::vector<std::string> log{};
    bool intrude = false;    ///< another client is quicker than the next creation
    bool forbidden = false;  ///< a command that must never be run, or one on an instance of another

    using Programs::run;
    host::CommandResult run(std::span<const std::string> arguments, std::string_view) override {
        std::string text;
        for (const auto& a : arguments) text += a + " ";
        log.push_back(text);
        const bool now = calls++ == fault_at;
        if (now && fault == Fault::crash_before) throw Crash{};
        if (now && fault == Fault::code) return {code, false, "failed"};
        if (now && fault == Fault::garbage) return {0, false, "|   0  MIG what\n"};
        const bool partial = now && fault == Fault::partial;
        // INSUFFICIENT_RESOURCES says that nothing was made.
        const bool creates = std::find(arguments.begin(), arguments.end(), "-cgi") != arguments.end();
        if (now && fault == Fault::code_after_effect && code == 23 && creates) return {code, false, "failed"};
        auto result = effect(arguments, partial);
        if (now && fault == Fault::crash_after) throw Crash{};
        if (now && fault == Fault::hang) return {0, true, ""};
        if (now && fault == Fault::code_after_effect) return {code, false, "failed"};
        // Half of a creation is told; what else may fail half-way says nothing.
        if (partial) return {code, false, (creates ? result.output : std::string()) + "failed"};
        return result;
    }

    bool no_memory = false;  ///< `N/A` instead of it
    double lacks_gib = 0;    ///< of each profile, against the table

    /// The MIG devices of `-q -x`; what else is in it is of other names, or of the GPU.
    std::string devices(const std::vector<Gi>& gpu) const {
        std::string out = "<gpu id=\"00000000:3B:00.0\">\n<fb_memory_usage>\n<total>40960 MiB</total>\n"
                          "<free>1 MiB</free>\n</fb_memory_usage>\n<mig_devices>\n";
        const auto& device = control::mig_device("A100-40GB");
        for (const auto& i : gpu) {
            if (!i.compute) continue;
            const int total = device.profiles[static_cast<std::size_t>(device.find_id(i.profile))].memory_mib;
            const auto mib = [&](int value) {
                return no_memory ? std::string("N/A") : std::to_string(value) + " MiB";
            };
            out += "<mig_device>\n<index>0</index>\n<gpu_instance_id>" + std::to_string(i.id) +
                   "</gpu_instance_id>\n<compute_instance_id>0</"
                   "compute_instance_id>\n<fb_memory_usage>\n<total>" +
                   mib(total) + "</total>\n<reserved>0 MiB</reserved>\n<used>" + mib(i.used_mib) +
                   "</used>\n<free>" + mib(total - i.used_mib) +
                   "</free>\n</fb_memory_usage>\n<bar1_memory_usage>\n<total>32767 MiB</total>\n"
                   "<used>0 MiB</used>\n<free>32767 MiB</free>\n</bar1_memory_usage>\n</mig_device>\n";
        }
        return out + "</mig_devices>\n</gpu>\n";
    }
    std::string profiles(const std::string& gpu) const {
        std::string out;
        for (const auto& p : control::mig_device("A100-40GB").profiles) {
            char row[120];
            std::snprintf(row, sizeof row,
                          "|   %s  MIG %-12s %3d     0/%d        %.2f       No     %d     0     0   |\n",
                          gpu.c_str(), std::string(p.name).c_str(), p.id, p.max_count,
                          p.memory_mib / 1024.0 - lacks_gib, p.sm_count);
            out += row;
        }
        return out;
    }

    host::CommandResult effect(std::span<const std::string> a, bool partial) {
        const auto has = [&](const char* flag) { return std::find(a.begin(), a.end(), flag) != a.end(); };
        const auto value = [&](const char* flag) { return *(std::find(a.begin(), a.end(), flag) + 1); };
        const bool query = a[1] == "-q" && has("-x");
        if (a[0] != "nvidia-smi" || (a[1] != "mig" && !query) || has("-mig") || has("-r")) forbidden = true;
        auto& gpu = gpus[static_cast<std::size_t>(std::stoi(value("-i")))];
        if (query) return {0, false, devices(gpu)};
        if (has("-lgip")) return {0, false, profiles(value("-i"))};
        if (has("-lgi")) {
            if (gpu.empty()) return {6, false, "No GPU instances found: Not Found\n"};
            std::string out =
                "+----+\n| GPU instances: |\n| GPU   Name   Profile  Instance   Placement  |\n|===|\n";
            for (const auto& i : gpu)
                out += "|   " + value("-i") + "  MIG 1g.5gb   " + std::to_string(i.profile) + "   " +
                       std::to_string(i.id) + "    " + std::to_string(i.start) + ":" +
                       std::to_string(i.size) + "     |\n+----+\n";
            return {0, false, out};
        }
        if (has("-cgi")) {
            const auto what = value("-cgi");
            const auto& device = control::mig_device("A100-40GB");
            const int profile = std::stoi(what), start = std::stoi(what.substr(what.find(':') + 1));
            const int p = device.find_id(profile);
            const int size = device.profiles[static_cast<std::size_t>(p)].memory_slices;
            if (intrude) gpu.push_back({profile, next_id++, start, size, true, false});
            intrude = false;
            for (const auto& i : gpu)
                if (start < i.start + i.size && i.start < start + size)
                    return {23, false, "Unable to create a GPU instance: Insufficient Resources\n"};
            gpu.push_back({profile, next_id++, start, size, !partial && has("-C"), true});
            return {0, false,
                    "Successfully created GPU instance ID " + std::to_string(next_id - 1) +
                        " on GPU  0 using " + "profile MIG 1g.5gb (ID " + std::to_string(profile) + ")\n"};
        }
        const int id = std::stoi(value("-gi"));
        const auto found = std::find_if(gpu.begin(), gpu.end(), [&](const Gi& i) { return i.id == id; });
        if (found == gpu.end()) return {6, false, "Not Found\n"};
        if (!found->mine) forbidden = true;
        if (has("-lci"))
            return found->compute ? host::CommandResult{} : host::CommandResult{6, false, "Not Found\n"};
        if (has("-dci")) {
            if (!found->compute) return {6, false, "Not Found\n"};
            if (found->client) return {19, false, "In use by another client\n"};
            found->compute = false;
        } else if (has("-cci")) {
            found->compute = true;
        } else if (has("-dgi")) {
            if (found->compute) return {19, false, "In use by another client\n"};
            gpu.erase(found);
        } else {
            forbidden = true;
        }
        return {};
    }
};

}  // namespace gpusched::test
