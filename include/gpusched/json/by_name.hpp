// SPDX-License-Identifier: Apache-2.0
// ByName: an object with a member for each of some things, in the order of the document.
#pragma once

#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::json {

/// Things by name, in the order in which a document lists them.
template <class T>
struct ByName {
    std::vector<std::pair<std::string, T>> entries{};
};

template <class T>
struct Form<ByName<T>> {
    static void read(Reader& reader, std::uint32_t at, ByName<T>& out) {
        if (reader.kind(at) != Kind::object) return reader.expected(at, "an object by name");
        reader.each_member(at, [&](std::string_view name, std::uint32_t child) {
            reader.read(child, out.entries.emplace_back(std::string(name), T{}).second);
        });
    }
    static void write(Writer& writer, const ByName<T>& things) {
        writer.begin('{');
        for (const auto& [name, thing] : things.entries) {
            writer.write_name(name);
            writer.write(thing);
        }
        writer.end('}');
    }
};

}  // namespace gpusched::json
