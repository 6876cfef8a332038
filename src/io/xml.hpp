// SPDX-License-Identifier: Apache-2.0
// XML text through pugixml, with lines for messages.
#pragma once

#include "io/documents.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#ifdef GPUSCHED_HAS_PUGIXML
#include <pugixml.hpp>

namespace gpusched::io::detail {

/// A parsed text and its name.
class XmlText {
  public:
    /// Deepest nesting of elements that is read.
    static constexpr int deepest = 128;

    /// @throws InvalidInput with the line if the text is not UTF-8 or not XML
    XmlText(std::string_view text, std::string source, Problems& problems)
        : source_(std::move(source)), problems_(problems) {
        require_text(text, source_);  // the parser accepts any bytes
        for (std::size_t at = 0; at < text.size(); ++at)
            if (text[at] == '\n') line_ends_.push_back(at);
        const auto result =
            document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
        if (!result)
            throw InvalidInput(concat(source_, ":", line_at(static_cast<std::size_t>(result.offset)),
                                      ": not an XML document: ", result.description()));
    }

    [[nodiscard]] pugi::xml_node root() const { return document_.document_element(); }
    [[nodiscard]] const std::string& source() const noexcept { return source_; }
    [[nodiscard]] std::string where(const pugi::xml_node& node) const {
        const auto offset = node.offset_debug();
        return source_ +
               (offset < 0 ? std::string()
                           : ":" + std::to_string(line_at(static_cast<std::size_t>(offset)))) +
               ": <" + printable(node.name()) + ">: ";
    }
    void report(const pugi::xml_node& node, const std::string& what) { problems_.add(where(node) + what); }
    void expected(const pugi::xml_node& node, const char* attribute, const std::string& what) {
        const auto found = node.attribute(attribute);
        report(node, std::string(attribute) + ": expected " + what + ", found " +
                         (found ? in_quotes(found.value()) : std::string("nothing")));
    }
    /// An integer in digits alone; none, with a problem, if it is not one in the range.
    std::optional<int> integer(const pugi::xml_node& node, const char* attribute, int low, int high) {
        const std::string_view digits = node.attribute(attribute).value();
        int value = 0;
        if (read_number(digits, value) && value >= low && value <= high) return value;
        expected(node, attribute, concat("an integer from ", low, " to ", high));
        return std::nullopt;
    }

  private:
    [[nodiscard]] std::size_t line_at(std::size_t offset) const {
        const auto found = std::ranges::lower_bound(line_ends_, offset);
        return 1 + static_cast<std::size_t>(found - line_ends_.begin());
    }
    std::string source_;
    Problems& problems_;
    std::vector<std::size_t> line_ends_;
    pugi::xml_document document_;
};

/// The number at the beginning of a text.
inline std::optional<double> leading_number(std::string_view text) {
    double value = 0;
    return take_number(text, value) ? std::optional(value) : std::nullopt;
}

}  // namespace gpusched::io::detail

#endif
