# How every target is compiled, and the two functions that declare one: a folder's library and its tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# The engine is a shared library that links the folders' static ones.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# -ffp-contract=off: a fused multiply-add rounds once where two operations round twice, so letting the compiler
# choose would make the bits of a training step depend on the compiler and the machine.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
                    -Woverloaded-virtual -Werror -ffp-contract=off)
# Leaving fields of an options struct to their defaults is what they are for.
add_compile_options(-Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options(-Wthread-safety)
else()
  # GCC 12 reports overflows inside its own std::string and std::variant at -O3 that are not there.
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized)
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
# What is tested is optimised as ever; optimising the tests themselves only costs time.
set(W5XDE_TEST_OPTIMISATION -O1)

if(W5XDE_SANITIZE)
  # Line numbers, which reports need, are in -g1. Not -Og: xxhash's functions that must be inlined are not.
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
  set(W5XDE_TEST_OPTIMISATION -O0)
  add_compile_options(-fsanitize=${W5XDE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${W5XDE_SANITIZE})
endif()
if(W5XDE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(W5XDE_CCACHE ccache)
if(W5XDE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${W5XDE_CCACHE})
endif()

# w5xde_folder(NAME SOURCES a.cpp ... [DEPENDS folder ...] [LIBRARIES target ...]
#              [TESTS a_test.cpp ...] [TEST_LIBRARIES target ...])
#
# Declares the static library of one folder under src/. DEPENDS names other folders, and users of this one see
# them too; LIBRARIES are heavy dependencies whose home this folder is. TESTS become one gtest program.
function(w5xde_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;TESTS;TEST_LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_LIBRARIES})
  if(ARG_TESTS)
    w5xde_test(${name}_test SOURCES ${ARG_TESTS} DEPENDS ${name} ${ARG_TEST_LIBRARIES})
  endif()
endfunction()

# w5xde_test(NAME SOURCES a_test.cpp ... DEPENDS target ... [LABELS label ...] [FIXTURES fixture ...])
function(w5xde_test name)
  if(W5XDE_FUZZ OR NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LABELS;FIXTURES" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS core)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE ${W5XDE_TEST_OPTIMISATION})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} test_folder GTest::gtest_main rapidcheck)
  # Property tests draw from a fixed seed, so that a red run is red again; rapidcheck prints it.
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 300 LABELS "${ARG_LABELS}" ENVIRONMENT "RC_PARAMS=seed=20240817"
                       FIXTURES_REQUIRED "${ARG_FIXTURES}")
endfunction()
