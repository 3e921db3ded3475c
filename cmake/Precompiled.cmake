# Headers that nearly every file reads are read once. They are no substitute for #include: the preset `tsan` builds without them, and
# public headers are compiled alone (tests/install).
set(PANTALA_COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string> <string_view>
                           <utility> <variant> <vector> <fmt/format.h>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-fpch-preprocess)  # lets ccache see them
endif()

# pantala_precompile(NAME headers...): a target whose headers others share: pantala_precompiled(TARGET NAME). Both must be compiled alike.
function(pantala_precompile name)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE fmt::fmt)
endfunction()

function(pantala_precompiled target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

# Compiling several files as one: reading the same headers and making the same code of templates again takes most of the time of a build. The
# presets `dev` and `tsan` compile every file alone, which shows that each includes what it needs.
option(PANTALA_JOIN_SOURCES "Compile several files as one" ON)

function(pantala_joins target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # It takes a joined file for a header, in which a type of an unnamed namespace would be another one for each reader.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# pantala_join(TARGET): joins the files of each folder of a test, a few at a time. Where names of a folder's files clash, each file has a
# namespace of its own around the unnamed one, like pantala::tests::train_test.
set(PANTALA_JOINED_FILES 8)
function(pantala_join target)
  if(NOT PANTALA_JOIN_SOURCES)
    return()
  endif()
  pantala_joins(${target})
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    if(NOT source MATCHES "\\.cpp$")
      continue()
    endif()
    string(MAKE_C_IDENTIFIER ${folder} group)
    math(EXPR part "${members_${group}}+0")
    math(EXPR members_${group} "${part} + 1")
    math(EXPR part "${part} / ${PANTALA_JOINED_FILES}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${part})
  endforeach()
endfunction()

# pantala_join_listed(TARGET): joins the files that stand in a line of joined_sources.txt. What is shipped is joined by that list alone: a name of one file's
# unnamed namespace would silently stand before a header's name in all files behind it, and a test sees to it that no line has such names.
set(PANTALA_JOINED_LIST ${CMAKE_CURRENT_LIST_DIR}/joined_sources.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PANTALA_JOINED_LIST})
function(pantala_join_listed target)
  if(NOT PANTALA_JOIN_SOURCES)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  file(STRINGS ${PANTALA_JOINED_LIST} lines REGEX "^[^#]")
  set(number 0)
  foreach(line ${lines})
    string(REPLACE " " ";" files ${line})
    list(TRANSFORM files PREPEND ${CMAKE_SOURCE_DIR}/)
    list(GET files 0 first)
    if(first IN_LIST sources)
      math(EXPR number "${number} + 1")
      set_source_files_properties(${files} PROPERTIES UNITY_GROUP joined_${number})
    endif()
  endforeach()
  if(number)
    pantala_joins(${target})
  endif()
endfunction()
