# A module is a folder of src/ with the public headers that it implements and the modules that it may include.
# The link graph is the layering; tests/tree/layering_test.cpp reads the list written here and fails on any
# #include that it does not allow.

# How the objects of a module are compiled. They are parts of the shared library too (Library.cmake), in which nobody may replace a function.
# What is LIGHT never takes long when it runs, and to optimise it fully would take a third of the time that it compiles.
function(pantala_module_options target light)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  if(light)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

pantala_precompile(pantala_module_headers ${PANTALA_COMMON_HEADERS})
pantala_module_options(pantala_module_headers FALSE)
pantala_precompile(pantala_light_headers ${PANTALA_COMMON_HEADERS})
pantala_module_options(pantala_light_headers TRUE)
# All files of the module onnx read the schema.
pantala_precompile(pantala_onnx_headers ${PANTALA_COMMON_HEADERS} <onnx/onnx_pb.h>)
pantala_module_options(pantala_onnx_headers TRUE)
target_link_libraries(pantala_onnx_headers PRIVATE onnx_proto)

# pantala_module(NAME [HEADERS public headers...] [FACE headers of its folder for those that only use it...] [DEPENDS modules...]
#                [USES modules of which it sees the face alone...] [LIBRARIES external targets...]
#                [PRIVATE_LIBRARIES external targets that its headers do not show...]
#                [LIGHT] [PRECOMPILED the target of its precompiled headers])
function(pantala_module name)
  cmake_parse_arguments(M "LIGHT" "PRECOMPILED" "HEADERS;FACE;DEPENDS;USES;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  add_library(pantala_${name} STATIC ${sources})
  pantala_module_options(pantala_${name} ${M_LIGHT})
  if(NOT M_PRECOMPILED)
    set(M_PRECOMPILED pantala_module_headers)
    if(M_LIGHT)
      set(M_PRECOMPILED pantala_light_headers)
    endif()
  endif()
  pantala_precompiled(pantala_${name} ${M_PRECOMPILED})
  pantala_join_listed(pantala_${name})
  target_include_directories(pantala_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(pantala_${name} PUBLIC fmt::fmt ${M_LIBRARIES} PRIVATE ${M_PRIVATE_LIBRARIES})
  foreach(dependency ${M_DEPENDS} ${M_USES})
    target_link_libraries(pantala_${name} PUBLIC pantala_${dependency})
  endforeach()
  list(JOIN M_HEADERS " " headers)
  list(JOIN M_DEPENDS " " depends)
  list(JOIN M_FACE " " face)
  list(JOIN M_USES " " uses)
  set_property(GLOBAL APPEND PROPERTY PANTALA_MODULES "${name}|${headers}|${depends}|${face}|${uses}")
  set_property(GLOBAL APPEND PROPERTY PANTALA_MODULE_TARGETS pantala_${name})
  set_property(GLOBAL APPEND PROPERTY PANTALA_EXTERNAL_LIBRARIES fmt::fmt ${M_LIBRARIES} ${M_PRIVATE_LIBRARIES})
endfunction()

# Writes one line `module|public headers|dependencies|face|uses` per module for the layering test.
function(pantala_write_module_list)
  get_property(modules GLOBAL PROPERTY PANTALA_MODULES)
  list(JOIN modules "\n" text)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/modules.txt CONTENT "${text}\n")
endfunction()
