# Writes pages with `pantala explain --html`, clicks through them in headless Chromium (click_through.js) and leaves pictures.
#   cmake -DPANTALA=build/release/bin/pantala -DOUT=build/pages -P tests/pages/check_pages.cmake
find_program(CHROMIUM chromium REQUIRED)
file(REAL_PATH ${PANTALA} PANTALA)
file(MAKE_DIRECTORY ${OUT})
file(REAL_PATH ${OUT} OUT)
file(READ ${CMAKE_CURRENT_LIST_DIR}/click_through.js click_through)

# Runs Chromium on a page; what it prints is in `dom`.
function(browse)
  execute_process(COMMAND ${CHROMIUM} --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1600,1000
                          --user-data-dir=${OUT}/profile ${ARGN}
                  OUTPUT_VARIABLE printed ERROR_VARIABLE errors RESULT_VARIABLE code TIMEOUT 300)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "chromium: ${code}\n${errors}")
  endif()
  set(dom "${printed}" PARENT_SCOPE)
endfunction()

# check_page(NAME ARGUMENTS...): the page of `pantala explain ARGUMENTS`.
function(check_page name)
  execute_process(COMMAND ${PANTALA} explain ${ARGN} --html ${OUT}/${name}.html OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${OUT}/${name}.html page)
  string(REPLACE "http://www.w3.org/2000/svg" "" rest "${page}")  # a name, not an address
  if(rest MATCHES "://|src=|href=|@import|url\\(")
    message(FATAL_ERROR "${name}.html refers to something outside: ${CMAKE_MATCH_0}")
  endif()
  string(REPLACE "<head>" "<head><script>const pageErrors = [];
window.addEventListener('error', (event) => pageErrors.push(event.message));</script>" page "${page}")
  string(REPLACE "</body>" "<script>\n${click_through}</script>\n</body>" page "${page}")
  file(WRITE ${OUT}/${name}.clicked.html "${page}")
  browse(--dump-dom file://${OUT}/${name}.clicked.html)
  if(NOT dom MATCHES "data-click-through=\"([^\"]*)\"")
    message(FATAL_ERROR "${name}.html: the clicks did not come to an end")
  endif()
  if(NOT CMAKE_MATCH_1 STREQUAL "passed")
    message(FATAL_ERROR "${name}.html: ${CMAKE_MATCH_1}")
  endif()
  browse(--screenshot=${OUT}/${name}.png file://${OUT}/${name}.html)
  browse(--screenshot=${OUT}/${name}-kernel.png file://${OUT}/${name}.clicked.html)
  browse(--screenshot=${OUT}/${name}-both.png "file://${OUT}/${name}.clicked.html#both")
  message(STATUS "${name}.html: passed; pictures are in ${OUT}")
endfunction()

check_page(lenet lenet --batch 16 --measure)
check_page(resnet18 resnet18 --batch 8)
check_page(resnet18-inference resnet18 --batch 8 --inference)
check_page(onnx ${CMAKE_CURRENT_LIST_DIR}/../fixtures/onnx_training/norms_newer_train.onnx --size batch=4)
check_page(mlp-accumulated mlp --accumulate 2)
check_page(awkward-names ${CMAKE_CURRENT_LIST_DIR}/awkward_names.txt --loss loss)
