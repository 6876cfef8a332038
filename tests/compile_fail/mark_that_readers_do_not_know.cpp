// expect: documents do not know a mark of this table; give it a json::MarkedForm
// A mark of one's own in a table of fields: silence would drop what it says.
#include <gpusched/json/json.hpp>

#include <string>

using namespace gpusched;

struct InMetres {};
struct Length {
    int number = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<Length>, F&& field) {
    field("number", &Length::number, InMetres{});
}
#ifdef GPUSCHED_CONTROL
template <>
struct gpusched::json::MarkedForm<InMetres> {
    static void read(Reader& reader, std::uint32_t at, int& out) { reader.read(at, out); }
    static void write(Writer& writer, int number) { writer.write(number); }
};
#endif

Length use(const std::string& text) { return json::read_document<Length>(text, "f", {.name = "lengths"}); }
