# pantala_python(RESULT CACHE_VARIABLE PROGRAM WHAT): a Python that runs the one-line program, which imports what a test needs: the one
# that the cache variable names, which must, else python3 if it does. Empty where there is none: see pantala_no_exchange().
function(pantala_python result cache_variable program what)
  set(${cache_variable} "" CACHE FILEPATH "A Python that has ${what} (empty: python3, if it has)")
  set(python ${${cache_variable}})
  if(NOT python)
    find_program(PANTALA_PYTHON3 python3)
    set(python ${PANTALA_PYTHON3})
  endif()
  set(${result} "" PARENT_SCOPE)
  if(NOT python)
    return()
  endif()
  execute_process(COMMAND ${python} -c "${program}" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(NOT missing)
    set(${result} ${python} PARENT_SCOPE)
  elseif(${cache_variable})
    message(FATAL_ERROR "${cache_variable}: ${python} cannot import ${what}")
  endif()
endfunction()

# pantala_no_exchange(TEST WHAT): the test cannot run here, for want of Python packages. It counts as skipped, which the summary of ctest
# tells, and `make test` says it before.
function(pantala_no_exchange test what)
  add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo "no Python here has ${what}; make test-exchange gets one")
  set_tests_properties(${test} PROPERTIES LABELS exchange SKIP_REGULAR_EXPRESSION "no Python here has")
  set_property(GLOBAL APPEND PROPERTY PANTALA_NO_EXCHANGE "not run: ${test}: no Python here has ${what}")
endfunction()

# Writes what `make test` says about them: nothing if all run.
function(pantala_report_exchange)
  get_property(lines GLOBAL PROPERTY PANTALA_NO_EXCHANGE)
  if(lines)
    list(APPEND lines "(make test-exchange gets the packages and runs these tests)")
  endif()
  list(TRANSFORM lines APPEND "\n")
  string(JOIN "" text ${lines})
  file(WRITE ${CMAKE_BINARY_DIR}/exchange.txt "${text}")
endfunction()
