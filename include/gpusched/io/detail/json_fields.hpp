// How structs appear as JSON objects: described once, for the reader and the writer alike.
#pragma once

#include <gpusched/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::io::detail {

enum class Need : std::uint8_t { optional, required };

/// The default codec: the JSON form follows from the member's type.
struct ByType {
    template <class Reader, class T>
    static void read(Reader& reader, std::uint32_t at, T& out) {
        reader.read(at, out);
    }
    template <class Writer, class T>
    static void write(Writer& writer, const T& value) {
        writer.write(value);
    }
    template <class T>
    static bool absent(const T& value) {
        if constexpr (requires { value.has_value(); })
            return !value.has_value();
        else
            return false;
    }
};

/// What is left out where there is none: an empty list or map, and 0.
struct IfAny : ByType {
    template <class T>
    static bool absent(const T& value) {
        if constexpr (requires { value.empty(); })
            return value.empty();
        else
            return value == T{};
    }
};

/// A member of `T` and its key. The codec may choose another form, or to leave the key out (`absent`; or `absent_of`, which
/// sees all of `T`). `version` is the first of the format that has it.
template <class T, class Member, class Codec>
struct Field {
    std::string_view key;
    Member T::*member;
    Need need;
    int version;
    using codec = Codec;
};

template <class Codec = ByType, class T, class Member>
constexpr Field<T, Member, Codec> field(std::string_view key, Member T::*member, Need need = Need::optional,
                                        int version = 1) {
    return {key, member, need, version};
}

/// The fields of `T` as a tuple, in the order in which they are written. Specialised next to each format.
template <class T>
inline constexpr auto fields = nullptr;

template <class T>
concept Described = !std::is_same_v<decltype(fields<T>), const std::nullptr_t>;

/// Types whose JSON form does not follow from their structure: `read(reader, at, value)` and `write(writer, value)`.
template <class T>
struct Form;

}  // namespace GPUSCHED_NAMESPACE::io::detail
