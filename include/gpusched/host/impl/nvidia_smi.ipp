#pragma once

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

GPUSCHED_INLINE std::vector<SmiInstance> parse_lgi(std::string_view text) {
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

GPUSCHED_INLINE std::vector<SmiProfile> parse_lgip(std::string_view text) {
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

GPUSCHED_INLINE std::vector<SmiPlacements> parse_lgipp(std::string_view text) {
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

GPUSCHED_INLINE std::vector<std::int32_t> parse_created(std::string_view text) {
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
inline std::optional<std::string_view> element(std::string_view xml, const std::string& name) {
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

GPUSCHED_INLINE std::vector<SmiMemory> parse_memory(std::string_view xml) {
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

GPUSCHED_INLINE BackendStatus memory_of(MigInstance instance, std::span<const InstanceMemory> all,
                                        double& mib) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const InstanceMemory& one) { return one.instance == instance; });
    if (at == all.end()) return BackendStatus::not_found;
    if (at->status == BackendStatus::ok) mib = at->mib;
    return at->status;
}

GPUSCHED_INLINE BackendStatus smi_status(const CommandResult& result) {
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

}  // namespace gpusched::host
