// SPDX-License-Identifier: Apache-2.0
// Bodies of writer.hpp.
#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/writer.hpp>

#include <nlohmann/json.hpp>

namespace gpusched::json::detail {

GPUSCHED_EXPORT void append_with_point(std::string& out, double value) {
    out += nlohmann::json(value).dump();
}

GPUSCHED_EXPORT void append_mended(std::string& out, std::string_view value) {
    if (find_invalid_utf8(value) == std::string_view::npos) return append_quoted(out, value);
    out += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

GPUSCHED_EXPORT void append_quoted(std::string& out, std::string_view value) {
    if (find_invalid_utf8(value) != std::string_view::npos)
        throw InvalidInput("JSON cannot hold " + gpusched::quoted(printable(value)) + ", which is not UTF-8");
    static constexpr char hex[] = "0123456789abcdef";
    out += '"';
    std::size_t plain = 0;  // from here on nothing has to be escaped
    for (std::size_t at = 0; at < value.size(); ++at) {
        const auto byte = static_cast<std::uint8_t>(value[at]);
        if (byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7F) continue;
        out += value.substr(plain, at - plain);
        plain = at + 1;
        out += '\\';
        if (byte == '"' || byte == '\\')
            out += static_cast<char>(byte);
        else if (byte == '\n')
            out += 'n';
        else if (byte == '\r')
            out += 'r';
        else if (byte == '\t')
            out += 't';
        else
            out += {'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    }
    out += value.substr(plain);
    out += '"';
}

}  // namespace gpusched::json::detail
