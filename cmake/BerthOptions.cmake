# Compile flags of every target: warnings are errors, no fused multiply-add (scores and figures are
# the same on every machine), ccache when it is there.
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror
                    -ffp-contract=off -fno-math-errno
                    -Wno-missing-field-initializers)  # designated initialisers leave defaults on purpose
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of g++ 12 at -O2 inside libstdc++ (std::variant, std::string).
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
else()
  # libstdc++ 12 uses what it deprecates itself (std::stable_sort).
  add_compile_options(-Wthread-safety -Wno-deprecated-declarations)
endif()

# popcount as an instruction: every x86_64 server since 2009 has it; aarch64 always does.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)
endif()

# What a mistake in memory can be made into: frames are guarded, library calls know their buffers, jumps land where
# jumps may land, and nothing that is called through can be written after the start. test/deploy looks at the program.
# Clang's own control flow checks (CFI) hold where all code is linked in whole (LTO): base/ and text/ can be, by gold
# with LLVM's plugin, and pass; calls into Debian's gRPC, curl and SQLite, which are no bitcode, cannot be checked.
if(NOT BERTH_SANITIZE)
  add_compile_options(-fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
  else()
    add_compile_options(-mbranch-protection=standard)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_definitions(_FORTIFY_SOURCE=2)
  endif()
  add_link_options(-pie -Wl,-z,relro,-z,now,-z,noexecstack)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
  # Checked at every access to a member, a third of what an unoptimised file costs to compile: with
  # `address` a null pointer ends the program anyway, and the ubsan preset looks for both.
  if(BERTH_SANITIZE MATCHES "address")
    add_compile_options(-fno-sanitize=null,alignment)
  endif()
endif()
if(BERTH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
