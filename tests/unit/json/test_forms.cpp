// SPDX-License-Identifier: Apache-2.0
// What rules and marks of fields mean in documents, read and written.
#include "support/catch.hpp"

#include <gpusched/json/json.hpp>

using namespace gpusched;

namespace {

enum class Colour : std::uint8_t { red, green };
constexpr auto enum_names(Colour) {
    return name_table<Colour>({{Colour::red, "red"}, {Colour::green, "green"}});
}

struct Part {
    int length = 1;
    double weight = 0.5;
    bool operator==(const Part&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Part>, F&& field) {
    field("length", &Part::length, within(1, 9), Since{2});
    field("weight", &Part::weight, Required{}, within(0.0, 1.0), UnlessDefault{});
}

struct Thing {
    std::string name{};
    Part part{};
    std::vector<Part> spare{};
    double signal = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> signals{};
    std::optional<double> limit{};
    std::vector<int> levels{3, 4};
    std::optional<Colour> colour{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Thing>, F&& field) {
    field("name", &Thing::name);
    field("part", &Thing::part, Inlined{});
    field("spare", &Thing::spare);
    field("signal", &Thing::signal, NullIfUnknown{});
    field("signals", &Thing::signals, NullIfUnknown{}, at_least(0.0));
    field("limit", &Thing::limit, more_than(0.0, 5.0));
    field("levels", &Thing::levels, within(0, 9));
    field("colour", &Thing::colour, NullIfAbsent{});
}

/// Without its name, with what stands around it.
struct Nameless : Thing {
    std::string around{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Nameless>, F&& field) {
    json::visit_other_fields<Thing>({"name", "spare"}, field);
}

struct Unit {
    std::string text{};
};

/// A length in a unit that the document does not say.
struct Length {
    int number = 0;
};

constexpr json::Format things{.name = "things", .newest = 2};

Thing read(const std::string& fields, const json::Format& format = things) {
    return json::read_document<Thing>(R"({"format": "things", "version": 2, )" + fields + "}", "f", format);
}

std::vector<std::string> problems_of(const std::string& fields, const json::Format& format = things) {
    return testing_support::problems_in<InvalidInput>([&] { static_cast<void>(read(fields, format)); });
}

std::string written(const Thing& thing, const json::Style& style = {}) {
    return json::write_document("things", thing, style, json::version_for(thing));
}

}  // namespace

template <>
struct gpusched::json::Form<Length> {
    static void read(Reader& reader, std::uint32_t at, Length& out) {
        reader.read(at, out.number);
        if (reader.surroundings().get<Unit>().text != "m") reader.report(at, "expected metres");
    }
    static void write(Writer& writer, const Length& length) {
        writer.write(std::to_string(length.number) + " " + writer.surroundings().get<Unit>().text);
    }
};

TEST_CASE("the fields of an inlined struct are next to the others, with their rules", "[json]") {
    const auto thing = read(R"("name": "a", "length": 7, "weight": 0.25)");
    CHECK(thing.part == Part{7, 0.25});
    CHECK_THAT(problems_of(R"("length": 10, "part": {})"),
               MentionsEach({"f /length 1 9 10",
                             "f /part unknown format version name length weight spare signal signals limit "
                             "levels colour or 'spare'",
                             "f 'weight' missing"}));
    CHECK(written({.name = "a", .part = {7, 0.25}, .signal = 1}) ==
          R"({"format":"things","version":2,"name":"a","length":7,"weight":0.25,"spare":[],"signal":1,)"
          R"("signals":[],"levels":[3,4],"colour":null})");
    // A field of the inlined struct that the first version lacks makes it the second.
    CHECK(json::version_for(Thing{}) == 2);
    const auto problems = [&] {
        try {
            static_cast<void>(json::read_document<Thing>(
                R"({"format": "things", "version": 1, "weight": 0, "length": 2})", "f", things));
        } catch (const InvalidInput& error) {
            return error.problems();
        }
        return std::vector<std::string>();
    }();
    CHECK_THAT(problems, MentionsEach({"f /length field version 2 1"}));
}

TEST_CASE("rules hold for real numbers, optional ones and those in lists", "[json]") {
    CHECK(problems_of(R"("weight": 1.5, "limit": 0, "signals": [0, -1, null], "levels": [1, 10])") ==
          std::vector<std::string>{"f: /weight: expected a number from 0 to 1, found 1.5",
                                   "f: /limit: expected a number above 0, at most 5, found 0",
                                   "f: /signals/1: expected a number of at least 0, found -1",
                                   "f: /levels/1: expected an integer from 0 to 9, found 10"});
    CHECK_THAT(problems_of(R"("weight": null, "limit": "x")"),
               MentionsEach({"f /weight number null", "f /limit number \"x\""}));
    // A list takes the place of the default, also an empty one.
    CHECK(read(R"("weight": 1, "levels": [])").levels.empty());
    CHECK(read(R"("weight": 1)").levels == std::vector<int>{3, 4});
    CHECK(read(R"("weight": 1, "limit": 5)").limit == 5);
    CHECK_FALSE(read(R"("weight": 1, "limit": null, "colour": null)").limit);
}

TEST_CASE("numbers that are not known are null", "[json]") {
    const auto thing = read(R"("weight": 1, "signal": null, "signals": [2.5, null])");
    CHECK(std::isnan(thing.signal));
    REQUIRE(thing.signals.size() == 2);
    CHECK((thing.signals[0] == 2.5 && std::isnan(thing.signals[1])));
    CHECK_THAT(written(thing), Catch::Matchers::ContainsSubstring(R"("signal":null,"signals":[2.5,null])"));
    CHECK_THROWS_MESSAGE(written({.limit = std::nan("")}), InvalidInput, "JSON no number nan");
}

TEST_CASE("a table of a document may leave out fields of another", "[json]") {
    const Nameless thing = json::read_document<Nameless>(
        R"({"format": "things", "version": 2, "weight": 1, "around": 3})", "f",
        {.name = "things", .newest = 2, .other_fields = std::array<std::string_view, 1>{"around"}});
    CHECK(thing.part.weight == 1);
    std::string out;
    json::Writer(out).write(thing);
    CHECK(out == R"({"length":1,"weight":1,"signal":null,"signals":[],"levels":[3,4],"colour":null})");
}

namespace {

struct Extra {
    int a = 1;
    double b = 2;
};
template <class F>
constexpr void visit_fields(std::type_identity<Extra>, F&& field) {
    field("a", &Extra::a, at_least(1));
    field("b", &Extra::b);
}

struct Holder {
    int n = 0;
    std::optional<Extra> extra{};
    json::ByName<Extra> named{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Holder>, F&& field) {
    field("n", &Holder::n, at_least(1));
    field("extra", &Holder::extra, Inlined{});
    field("named", &Holder::named);
}

Holder holder_of(const std::string& text) {
    Problems problems;
    const auto document = json::Document::parse(text, "f", problems);
    json::Reader reader(document, problems);
    Holder holder;
    reader.read(0, holder);
    reader.require_given(0, holder);
    problems.throw_if_any();
    return holder;
}

std::string text_of(const Holder& holder) {
    std::string out;
    json::Writer(out).write(holder);
    return out;
}

}  // namespace

TEST_CASE("an inlined optional is set if one of its fields is", "[json]") {
    CHECK_FALSE(holder_of(R"({"n": 1})").extra);
    const auto holder = holder_of(R"({"n": 1, "a": 3})");
    REQUIRE(holder.extra);
    CHECK((holder.extra->a == 3 && holder.extra->b == 2));
    CHECK(text_of(holder) == R"({"n":1,"a":3,"b":2,"named":{}})");
    CHECK(text_of({.n = 2}) == R"({"n":2,"named":{}})");
}

TEST_CASE("things by name keep their order", "[json]") {
    const auto holder = holder_of(R"({"n": 1, "named": {"z": {"a": 2}, "a \"b\"/~": {}, "": {"b": 3}}})");
    REQUIRE(holder.named.entries.size() == 3);
    CHECK((holder.named.entries[0].first == "z" && holder.named.entries[0].second.a == 2));
    CHECK(text_of(holder) ==
          R"({"n":1,"named":{"z":{"a":2,"b":2},"a \"b\"/~":{"a":1,"b":2},"":{"a":1,"b":3}}})");
    CHECK_THROWS_MESSAGE(holder_of(R"({"n": 1, "named": {"a \"b\"/~": {"a": 0}}})"), InvalidInput,
                         R"(f /named/a "b"~1~0/a 1 2147483647 0)");
    CHECK_THROWS_MESSAGE(holder_of(R"({"n": 1, "named": []})"), InvalidInput, "f /named object array");
}

TEST_CASE("a field is required if its default breaks its rule", "[json]") {
    CHECK_THROWS_MESSAGE(holder_of("{}"), InvalidInput, "f 'n' missing");
    CHECK_THROWS_MESSAGE(holder_of(R"({"n": 0})"), InvalidInput, "f /n integer 1 0");
}

TEST_CASE("a document that is read partly may have any other fields", "[json]") {
    const json::Format partly{.name = "things", .newest = 2, .implied = true, .partly = true};
    CHECK(json::read_document<Thing>(R"({"weight": 1, "other": []})", "f", partly).part.weight == 1);
    CHECK_THROWS_MESSAGE(json::read_document<Thing>(R"({"weight": 2, "other": []})", "f", partly),
                         InvalidInput, "f /weight 0 1 2");
}

TEST_CASE("forms know the surroundings of a document", "[json]") {
    const Unit unit{"m"}, other{"ft"};
    std::string out;
    json::Writer(out, {}, unit).write(std::vector<Length>{{3}, {4}});
    CHECK(out == R"(["3 m","4 m"])");
    Problems problems;
    const auto document = json::Document::parse("[3, 4]", "f", problems);
    std::vector<Length> lengths;
    json::Reader(document, problems, 1, unit).read(0, lengths);
    CHECK((problems.empty() && lengths.size() == 2 && lengths[1].number == 4));
    json::Reader(document, problems, 1, other).read(0, lengths);
    CHECK_THROWS_MESSAGE(problems.throw_if_any(), InvalidInput, "f /1 metres");
}

TEST_CASE("formats: the header of a document", "[json]") {
    const auto told = [](const std::string& text, bool implied) {
        try {
            static_cast<void>(
                json::read_document<Thing>(text, "f", {.name = "things", .newest = 2, .implied = implied}));
        } catch (const InvalidInput& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(told(R"({"weight": 1})", true).empty());
    CHECK(told(R"({"weight": 1, "length": 3})", true).empty());  // of the newest version
    CHECK_THAT(told(R"({"weight": 1})", false), Mentions("f 'format' 'version' missing"));
    for (const bool implied : {false, true}) {
        CHECK_THAT(told(R"({"format": "other", "version": 1, "y": 1})", implied),
                   Mentions("f /format \"things\" \"other\""));
        CHECK_THAT(told(R"({"format": "things", "version": 3, "y": 1})", implied),
                   Mentions("f /version 1 2 3"));
        CHECK_THAT(told("[]", implied), Mentions("f object array"));
    }
}

TEST_CASE("a document within another is read and written in its place", "[json]") {
    Problems problems;
    const auto document = json::Document::parse(
        R"({"kind": "record", "thing": {"format": "things", "version": 2, "weight": 3}})", "f", problems);
    Thing thing;
    CHECK(json::read_fields(document, things, problems, thing, {}, *document.find(0, "thing")) == 2);
    CHECK_THROWS_MESSAGE(problems.throw_if_any(), InvalidInput, "f /thing/weight 0 1 3");
    std::string out;
    json::Writer writer(out);
    writer.begin('{');
    writer.write_key("thing");
    writer.write_document("part", 1, Part{});
    writer.end('}');
    CHECK(out == R"({"thing":{"format":"part","version":1,"length":1}})");
}

TEST_CASE("styles: lines, points, and text that is not UTF-8", "[json]") {
    const Thing thing{.name = "a\xff\n", .spare = {{2, 1}}, .signal = 5, .limit = 1e20, .levels = {}};
    CHECK_THROWS_MESSAGE(written(thing), InvalidInput, "not UTF-8");
    CHECK(
        written(thing, {.indent = 2, .line_per_value = true, .point = true, .mend_text = true}) ==
        "{\n  \"format\": \"things\",\n  \"version\": 2,\n  \"name\": \"a\xEF\xBF\xBD\\n\",\n"
        "  \"length\": 1,\n  \"spare\": [\n    {\n      \"length\": 2,\n      \"weight\": 1.0\n    }\n  ],\n"
        "  \"signal\": 5.0,\n  \"signals\": [],\n  \"limit\": 1e+20,\n  \"levels\": [],\n"
        "  \"colour\": null\n}\n");
    auto plain = thing;
    plain.name = "a";
    CHECK(written(plain, {.indent = 1}) ==
          "{\n \"format\": \"things\",\n \"version\": 2,\n \"name\": \"a\",\n \"length\": 1,\n \"spare\": [\n"
          "  {\"length\": 2, \"weight\": 1}\n ],\n \"signal\": 5,\n \"signals\": [],\n \"limit\": 1e+20,\n"
          " \"levels\": [],\n \"colour\": null\n}\n");
    CHECK_THROWS_MESSAGE(written(plain, {.indent = 17}), InvalidInput, "indent 17 0 16");
    std::string out;
    json::Writer(out).write(std::string("\"\\\x01\x7F/\t\r\nz"));
    CHECK(out == R"("\"\\\u0001\u007f/\t\r\nz")");
}
