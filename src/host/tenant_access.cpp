// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/host/tenant_access.hpp>

#include <algorithm>
#include <ctime>

namespace gpusched::host {

GPUSCHED_EXPORT void replace_all(std::string& text, std::string_view name, const std::string& value) {
    for (auto k = text.find(name); k != std::string::npos; k = text.find(name, k + value.size()))
        text.replace(k, name.size(), value);
}

GPUSCHED_EXPORT std::vector<std::string> hook_arguments(const std::vector<std::string>& program,
                                                        const Host& host, const Configuration& at) {
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(at.gpu)].device);
    const std::pair<std::string_view, std::string> values[] = {
        {"{gpu}", number_text(at.gpu)},
        {"{profile}", std::string(device.profiles[at.instance.profile].key)},
        {"{slice}", number_text(int{at.instance.start})},
        {"{quota}", number_text(at.quota_percent)}};
    auto arguments = program;
    for (auto& text : arguments)
        for (const auto& [name, value] : values) replace_all(text, name, value);
    return arguments;
}

GPUSCHED_EXPORT std::string hook_failure(const std::vector<std::string>& arguments,
                                         const CommandResult& result) {
    std::string_view text = result.output;
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
        text.remove_suffix(1);
    const auto line = text.rfind('\n');
    if (line != std::string_view::npos) text.remove_prefix(line + 1);
    // Not in the middle of a character.
    auto size = std::min<std::size_t>(text.size(), 200);
    while (size > 0 && size < text.size() && (text[size] & 0xC0) == 0x80) --size;
    text = text.substr(0, size);
    return "program " + gpusched::quoted(arguments[0]) +
           (result.timed_out ? " took too long" : " ended with code " + number_text(result.code)) +
           (text.empty() ? "" : ": " + std::string(text));
}

GPUSCHED_EXPORT void pause_for(double seconds) {
    if (!(seconds > 0)) return;
    const auto whole = static_cast<std::time_t>(seconds);
    std::timespec left{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    // Interrupted by a signal, it ends early: whoever asked looks again.
    nanosleep(&left, nullptr);
}

}  // namespace gpusched::host
