# cmake -DOUT=F -DFILES="a;b" -P JoinYaml.cmake: the files as one YAML stream.
set(joined "")
foreach(file ${FILES})
  file(READ ${file} content)
  string(APPEND joined "---\n${content}\n")
endforeach()
file(WRITE ${OUT} "${joined}")
