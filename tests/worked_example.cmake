# pantala_worked_example(NAME PAGE PATCHED files... [CREATED file]): builds the worked example of a page of docs/. Its patches are applied to
# copies of the files that they name, and the file that it shows is written. The sources are linked in front of the library, so they take the
# place of the library's own, and NAME_test.cpp tests the result.
find_program(PATCH patch REQUIRED)

function(pantala_worked_example name page)
  cmake_parse_arguments(E "" "CREATED" "PATCHED" ${ARGN})
  set(example ${CMAKE_CURRENT_BINARY_DIR}/example)
  set(script ${CMAKE_SOURCE_DIR}/tests/apply_patches.cmake)
  list(TRANSFORM E_PATCHED PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE inputs)
  set(outputs ${E_PATCHED} ${E_CREATED})
  list(TRANSFORM outputs PREPEND ${example}/)
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${CMAKE_COMMAND} -DPAGE=${CMAKE_SOURCE_DIR}/${page} -DSOURCE=${CMAKE_SOURCE_DIR} -DEXAMPLE=${example} -DPATCH=${PATCH}
            "-DFILES=${E_PATCHED}" -DCREATED=${E_CREATED} -P ${script}
    DEPENDS ${CMAKE_SOURCE_DIR}/${page} ${inputs} ${script}
    VERBATIM)
  add_executable(test_${name} ${name}_test.cpp ${outputs})
  target_include_directories(test_${name} BEFORE PRIVATE ${example}/include)
  target_link_libraries(test_${name} PRIVATE test_support)
  gtest_discover_tests(test_${name} PROPERTIES LABELS unit)
endfunction()
