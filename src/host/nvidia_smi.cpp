// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/nvidia_smi.hpp>

#include <optional>

namespace gpusched::host {

namespace smi_detail {

/// Reads one row from left to right; whatever does not fit is an error that shows the row.
class Row {
  public:
    explicit Row(std::string_view row) : row_(row), rest_(row) {}

    void skip() {
        while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
    }
    bool accept(std::string_view word) {
        skip();
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    void expect(std::string_view word) {
        if (!accept(word)) fail();
    }
    std::int32_t integer() { return number<std::int32_t>(); }
    double real() { return number<double>(); }
    std::string_view word() {
        skip();
        const auto length = std::min(rest_.find_first_of(" |\t"), rest_.size());
        const auto found = rest_.substr(0, length);
        if (found.empty()) fail();
        rest_.remove_prefix(length);
        return found;
    }
    [[noreturn]] void fail() const {
        throw BackendError("nvidia-smi mig: row cannot be read: " + std::string(row_));
    }

  private:
    template <class T>
    T number() {
        skip();
        T value{};
        if (!take_number(rest_, value)) fail();
        return value;
    }
    std::string_view row_, rest_;
};

template <class F>
void each_line(std::string_view text, const F& each) {
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        each(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

/// Rows of a table that begin with a GPU's number; borders, headings and second lines of a row do not.
template <class F>
void each_row(std::string_view text, const F& each) {
    each_line(text, [&](std::string_view line) {
        if (!line.starts_with('|')) return;
        const auto first = line.find_first_not_of(" \t", 1);
        if (first == std::string_view::npos || line[first] < '0' || line[first] > '9') return;
        if (line.find("MIG ") == std::string_view::npos) {
            // The second line of a row of -lgip holds numbers only, far to the right.
            if (first < 12) Row(line).fail();
            return;
        }
        Row row(line);
        row.expect("|");
        each(row);
    });
}

}  // namespace smi_detail

GPUSCHED_EXPORT std::vector<SmiInstance> parse_lgi(std::string_view text) {
    std::vector<SmiInstance> out;
    smi_detail::each_row(text, [&](smi_detail::Row& row) {
        SmiInstance i;
        i.gpu = row.integer();
        row.expect("MIG");
        static_cast<void>(row.word());
        i.profile_id = row.integer();
        i.instance = row.integer();
        i.start = row.integer();
        row.expect(":");
        i.size = row.integer();
        out.push_back(i);
    });
    return out;
}

GPUSCHED_EXPORT std::vector<SmiProfile> parse_lgip(std::string_view text) {
    std::vector<SmiProfile> out;
    smi_detail::each_row(text, [&](smi_detail::Row& row) {
        SmiProfile p;
        p.gpu = row.integer();
        row.expect("MIG");
        p.name = row.word();
        p.id = row.integer();
        p.free = row.integer();
        row.expect("/");
        p.total = row.integer();
        p.memory_gib = row.real();
        static_cast<void>(row.word());  // P2P
        p.sm_count = row.integer();
        out.push_back(std::move(p));
    });
    return out;
}

GPUSCHED_EXPORT std::vector<SmiPlacements> parse_lgipp(std::string_view text) {
    std::vector<SmiPlacements> out;
    smi_detail::each_line(text, [&](std::string_view line) {
        smi_detail::Row row(line);
        if (!row.accept("GPU")) return;
        SmiPlacements p;
        p.gpu = row.integer();
        row.expect("Profile");
        row.expect("ID");
        p.profile_id = row.integer();
        if (!row.accept("Placements")) row.expect("Placement");
        row.expect(":");
        row.expect("{");
        do p.starts.push_back(row.integer());
        while (row.accept(","));
        row.expect("}");
        row.expect(":");
        p.size = row.integer();
        out.push_back(std::move(p));
    });
    return out;
}

GPUSCHED_EXPORT std::vector<std::int32_t> parse_created(std::string_view text) {
    std::vector<std::int32_t> out;
    smi_detail::each_line(text, [&](std::string_view line) {
        smi_detail::Row row(line);
        if (!row.accept("Successfully created GPU instance ID")) return;
        try {
            out.push_back(row.integer());
        } catch (const BackendError&) {
            out.push_back(-1);  // one whose id cannot be read is none that is known
        }
    });
    return out;
}

namespace smi_detail {

/// The text of the first element of a name; nothing where there is none.
static std::optional<std::string_view> element(std::string_view xml, const std::string& name) {
    const auto open = "<" + name + ">", close = "</" + name + ">";
    const auto begin = xml.find(open);
    if (begin == std::string_view::npos) return std::nullopt;
    const auto rest = xml.substr(begin + open.size());
    const auto end = rest.find(close);
    if (end == std::string_view::npos) return std::nullopt;
    return rest.substr(0, end);
}

template <class T>
std::optional<T> number_in(std::optional<std::string_view> text, std::string_view unit) {
    T value{};
    if (!text || !take_number(*text, value) || *text != unit) return std::nullopt;
    return value;
}

}  // namespace smi_detail

GPUSCHED_EXPORT std::vector<SmiMemory> parse_memory(std::string_view xml) {
    using namespace smi_detail;
    constexpr std::string_view open = "<mig_device>", close = "</mig_device>";
    std::vector<SmiMemory> out;
    for (auto at = xml.find(open); at != std::string_view::npos; at = xml.find(open, at)) {
        const auto end = xml.find(close, at);
        const auto device = xml.substr(at, end - at);
        const auto id = number_in<std::int32_t>(element(device, "gpu_instance_id"), "");
        if (end == std::string_view::npos || !id)
            throw BackendError("nvidia-smi -q -x: MIG device cannot be read: " +
                               std::string(device.substr(0, 200)));
        at = end;
        const auto memory = element(device, "fb_memory_usage");
        if (!memory) continue;
        const auto total = number_in<double>(element(*memory, "total"), " MiB");
        const auto free = number_in<double>(element(*memory, "free"), " MiB");
        if (total && free && *free >= 0 && *free <= *total && *total < 1e9)
            out.push_back({*id, *total - *free});
    }
    return out;
}

GPUSCHED_EXPORT BackendStatus smi_status(const CommandResult& result) {
    using enum BackendStatus;
    if (result.timed_out) return timeout;
    if (result.code == 0) return ok;
    constexpr std::pair<std::string_view, BackendStatus> texts[] = {
        {"In use by another client", in_use},
        {"Insufficient Resources", insufficient_resources},
        {"Insufficient Permissions", no_permission},
        {"Not Found", not_found},
        {"Not Supported", not_supported},
        {"GPU is lost", gpu_is_lost},
        {"requires reset", reset_required},
        {"pending enable", reset_required}};
    for (const auto& [text, status] : texts)
        if (result.output.find(text) != std::string::npos) return status;
    switch (result.code) {
    case 3:
        return not_supported;
    case 4:
        return no_permission;
    case 6:
        return not_found;
    case 10:
        return timeout;
    case 15:
        return gpu_is_lost;
    case 16:
        return reset_required;
    case 19:
        return in_use;
    case 23:
        return insufficient_resources;
    case 29:
        return invalid_state;
    default:
        return unknown;
    }
}

GPUSCHED_EXPORT SmiMig::SmiMig(Programs& programs, std::vector<HostGpu> gpus,
                               std::vector<OwnedInstance> owned, std::vector<std::string> pci)
    : OwningMig(std::move(gpus), std::move(owned)), programs_(programs), pci_(std::move(pci)) {}

GPUSCHED_EXPORT BackendStatus SmiMig::read(int gpu, MigLayout& layout) {
    std::vector<SmiInstance> found;
    if (const auto status = list(gpu, found); status != BackendStatus::ok) return status;
    return layout_of(gpu, found, layout);
}

GPUSCHED_EXPORT BackendStatus SmiMig::create(int gpu, MigInstance instance) {
    std::vector<SmiInstance> before, now;
    if (const auto status = list(gpu, before); status != BackendStatus::ok) return status;
    MigLayout there;
    if (const auto status = layout_of(gpu, before, there); status != BackendStatus::ok) return status;
    // The driver says so too, but also when just this instance exists: then it is not ours to use.
    if (!can_create(device(gpu), there, instance)) return BackendStatus::insufficient_resources;
    const auto& profile = device(gpu).profiles[instance.profile];
    const auto result =
        call({"-cgi", std::to_string(profile.id) + ":" + std::to_string(instance.start), "-C"}, gpu);
    const auto status = smi_status(result);
    if (list(gpu, now) != BackendStatus::ok) return freezes(status) ? status : BackendStatus::invalid_state;
    const auto row =
        std::find_if(now.begin(), now.end(), [&](const SmiInstance& i) { return known(gpu, i) == instance; });
    const auto created = parse_created(result.output);
    const auto holds = [](const auto& all, const auto& match) {
        return std::any_of(all.begin(), all.end(), match);
    };
    // The command may have an effect and fail, and somebody else may have been quicker.
    const bool ours = row != now.end() &&
                      !holds(before, [&](const SmiInstance& i) { return i.instance == row->instance; }) &&
                      (created.empty() ? status == BackendStatus::ok
                                       : holds(created, [&](int id) { return id == row->instance; }));
    if (ours) adopt(gpu, instance);
    // A GPU instance without room for its compute instance: this status says that nothing was made.
    if (ours && status == BackendStatus::insufficient_resources &&
        destroy(gpu, instance) != BackendStatus::ok)
        return BackendStatus::invalid_state;
    return status == BackendStatus::ok && !ours ? BackendStatus::invalid_state : status;
}

GPUSCHED_EXPORT BackendStatus SmiMig::complete(int gpu, MigInstance instance) {
    if (!owns(gpu, instance)) return BackendStatus::no_permission;
    std::vector<SmiInstance> found;
    if (const auto status = list(gpu, found); status != BackendStatus::ok) return status;
    for (const auto& row : found) {
        if (known(gpu, row) != instance) continue;
        const auto id = std::to_string(row.instance);
        const auto status = command({"-lci", "-gi", id}, gpu);
        return status == BackendStatus::not_found ? command({"-cci", "-gi", id}, gpu) : status;
    }
    return BackendStatus::not_found;
}

GPUSCHED_EXPORT BackendStatus SmiMig::destroy(int gpu, MigInstance instance) {
    if (!owns(gpu, instance)) return BackendStatus::no_permission;
    std::vector<SmiInstance> found;
    if (const auto status = list(gpu, found); status != BackendStatus::ok) return status;
    for (const auto& row : found) {
        if (known(gpu, row) != instance) continue;
        const auto id = std::to_string(row.instance);
        auto status = command({"-dci", "-gi", id}, gpu);
        if (status == BackendStatus::ok || status == BackendStatus::not_found)
            status = command({"-dgi", "-gi", id}, gpu);
        if (status != BackendStatus::ok && !freezes(status)) {
            // A command may have an effect and fail. If the instance stands, the tenant needs its compute instance.
            const auto left = complete(gpu, instance);
            if (left == BackendStatus::not_found)
                status = BackendStatus::ok;
            else if (left != BackendStatus::ok)
                status = BackendStatus::invalid_state;
        }
        if (status != BackendStatus::ok) return status;
        // Success is believed when the listing says so too.
        MigLayout now;
        if (read(gpu, now) != BackendStatus::ok || now.contains(instance))
            return BackendStatus::invalid_state;
        disown(gpu, instance);
        return status;
    }
    disown(gpu, instance);
    return BackendStatus::not_found;
}

GPUSCHED_EXPORT BackendStatus SmiMig::memory_used(int gpu, std::vector<InstanceMemory>& out) {
    out.clear();
    std::vector<SmiInstance> found;
    if (const auto status = list(gpu, found); status != BackendStatus::ok) return status;
    const std::string arguments[] = {"nvidia-smi", "-q", "-x", "-i", address(gpu)};
    const auto result = run(arguments);
    if (const auto status = smi_status(result); status != BackendStatus::ok) return status;
    try {
        for (const auto& device : parse_memory(result.output))
            for (const auto& row : found)
                if (const auto instance = known(gpu, row); instance && row.instance == device.instance)
                    out.push_back({*instance, BackendStatus::ok, device.used_mib});
    } catch (const BackendError&) {
        return BackendStatus::unknown;
    }
    return BackendStatus::ok;
}

GPUSCHED_EXPORT BackendStatus SmiMig::memory_shortfall(int gpu, double& mib) {
    const auto result = call({"-lgip"}, gpu);
    if (const auto status = smi_status(result); status != BackendStatus::ok) return status;
    bool any = false;
    mib = 0;
    try {
        for (const auto& row : parse_lgip(result.output)) {
            const int p = device(gpu).find_id(row.id);
            if (p < 0) continue;
            any = true;
            mib = std::max(mib, device(gpu).profiles[static_cast<std::size_t>(p)].memory_mib -
                                    (row.memory_gib - 0.005) * 1024);
        }
    } catch (const BackendError&) {
        return BackendStatus::unknown;
    }
    return any ? BackendStatus::ok : BackendStatus::not_supported;
}

GPUSCHED_EXPORT std::optional<MigInstance> SmiMig::known(int gpu, const SmiInstance& row) const {
    const int p = device(gpu).find_id(row.profile_id);
    if (p < 0 || row.start < 0 || row.start > 7 ||
        device(gpu).profiles[static_cast<std::size_t>(p)].memory_slices != row.size)
        return std::nullopt;
    return MigInstance{static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(row.start)};
}

GPUSCHED_EXPORT BackendStatus SmiMig::layout_of(int gpu, const std::vector<SmiInstance>& rows,
                                                MigLayout& layout) const {
    layout = {};
    for (const auto& row : rows) {
        const auto instance = known(gpu, row);
        if (!instance || layout.size() == MigLayout::capacity) return BackendStatus::not_supported;
        layout.add(*instance);
    }
    return BackendStatus::ok;
}

GPUSCHED_EXPORT BackendStatus SmiMig::list(int gpu, std::vector<SmiInstance>& rows) {
    const auto result = call({"-lgi"}, gpu);
    const auto status = smi_status(result);
    rows.clear();
    if (status == BackendStatus::not_found) return BackendStatus::ok;  // no instances
    if (status != BackendStatus::ok) return status;
    try {
        for (const auto& row : parse_lgi(result.output)) {
            // Asked for by address, a GPU answers with its own index, whatever that is: there is one in the answer.
            if (!pci_.empty() && !rows.empty() && rows.front().gpu != row.gpu) return BackendStatus::unknown;
            if (!pci_.empty() || row.gpu == gpu) rows.push_back(row);
        }
    } catch (const BackendError&) {
        return BackendStatus::unknown;
    }
    return status;
}

GPUSCHED_EXPORT BackendStatus SmiMig::command(std::vector<std::string> what, int gpu) {
    return smi_status(call(std::move(what), gpu));
}

GPUSCHED_EXPORT std::string SmiMig::address(int gpu) const {
    return pci_.empty() ? std::to_string(gpu) : pci_[static_cast<std::size_t>(gpu)];
}

GPUSCHED_EXPORT CommandResult SmiMig::run(std::span<const std::string> arguments) {
    try {
        return programs_.run(arguments);
    } catch (const BackendError& e) {
        return {127, false, e.what()};  // as a shell says of a program that it cannot start
    }
}

GPUSCHED_EXPORT CommandResult SmiMig::call(std::vector<std::string> what, int gpu) {
    std::vector<std::string> arguments{"nvidia-smi", "mig"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    arguments.insert(arguments.end(), {"-i", address(gpu)});
    return run(arguments);
}

}  // namespace gpusched::host
