# Every outside library, found once. Each has one home (docs/architecture.md):
# the folder's own CMakeLists.txt names it, and tools/tidy checks the includes.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(lz4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(deflate REQUIRED IMPORTED_TARGET libdeflate)

# Static: one archive of a few functions, so that a program needs no library of that name where it runs.
find_path(W5XDE_STB_INCLUDE stb_image.h PATH_SUFFIXES stb REQUIRED)
find_library(W5XDE_STB_LIBRARY NAMES libstb.a REQUIRED)
add_library(stb INTERFACE)
target_include_directories(stb SYSTEM INTERFACE ${W5XDE_STB_INCLUDE})
target_link_libraries(stb INTERFACE ${W5XDE_STB_LIBRARY} m)

# Debian ships asio (standalone, header only) without a CMake or pkg-config file.
find_path(W5XDE_ASIO_INCLUDE asio.hpp REQUIRED)
add_library(asio INTERFACE)
target_include_directories(asio SYSTEM INTERFACE ${W5XDE_ASIO_INCLUDE})
# Whether asio 1.22 finds std::aligned_alloc depends on what a file includes before it, and memory that one file
# allocates another frees: it must be the same for all.
target_compile_definitions(asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_DISABLE_STD_ALIGNED_ALLOC)
if(W5XDE_SANITIZE MATCHES thread)
  # The thread sanitizer does not understand fences; asio's locks, which it does, order the same things.
  target_compile_definitions(asio INTERFACE ASIO_DISABLE_FENCED_BLOCK)
endif()
target_link_libraries(asio INTERFACE Threads::Threads)

if(NOT W5XDE_FUZZ)
  find_package(CLI11 REQUIRED)
  if(BUILD_TESTING)
    find_package(GTest REQUIRED)
    include(GoogleTest)
    find_package(rapidcheck REQUIRED)
  endif()
endif()
