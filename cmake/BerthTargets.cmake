# berth_library(NAME [FOLDERS x y ...] LINK a b ...): the library of this folder, and of those in it that have none of their
# own, and, from *_test.cc, its test program.
#
# One folder is one library; what it may include is what it links, so the include rule of
# ARCHITECTURE.md is a build fact (test/tidy checks the #include lines as well).
function(berth_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;LINK;TEST_LINK" ${ARGN})
  set(places *.cc)
  foreach(folder ${ARG_FOLDERS})
    list(APPEND places ${folder}/*.cc)
  endforeach()
  list(TRANSFORM places PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${places})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_for_test\\.cc$")  # a library of its own
  if(NOT sources)
    add_library(berth_${name} INTERFACE)
    target_include_directories(berth_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(berth_${name} INTERFACE ${ARG_LINK})
    return()
  endif()
  add_library(berth_${name} STATIC ${sources})
  target_include_directories(berth_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(berth_${name} PUBLIC ${ARG_LINK})
  if(BERTH_TESTS AND tests)
    add_executable(${name}_test ${tests})
    berth_quick_to_compile(${name}_test)
    target_link_libraries(${name}_test PRIVATE berth_${name} ${ARG_TEST_LINK} GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name}_test)
  endif()
endfunction()

# For the libraries that tests spend their time in: optimised in every build. With sanitizers -O1 costs
# three times as much to compile as -O0, so the asan preset leaves it to these.
function(berth_quick_to_run target)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# For test sources, which are compiled far more often than they are waited for; what they test is in
# libraries with the preset's own flags.
function(berth_quick_to_compile target)
  target_compile_options(${target} PRIVATE -O0 -g0 -U_FORTIFY_SOURCE)  # which needs an optimiser
endfunction()

# berth_program(NAME SOURCES LINK a b ... DIR sub): a program at build/<preset>/DIR/NAME.
function(berth_program name)
  cmake_parse_arguments(ARG "" "DIR" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${ARG_DIR})
endfunction()
