// A plug-in as one of another version would be: everything is there, but its number is another.
#include <cstdint>

extern "C" {
extern const std::uint32_t w5xde_engine_interface;
const std::uint32_t w5xde_engine_interface = 4711;
void w5xde_engine_make() {}
}
