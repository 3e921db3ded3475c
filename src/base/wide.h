// Code of the library itself that is worth the machine's widest vectors: it is compiled for several
// processors, and the version for this one is run. The compiler makes the vectors; what is
// computed must not depend on which version runs.
#pragma once

#define PANTALA_INLINED __attribute__((always_inline))

namespace pantala {

#if defined(__x86_64__)

template <class Body>
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,prefer-vector-width=512"))) auto
run_with_avx512(const Body& body) {
  return body();
}

template <class Body>
__attribute__((target("avx2,fma"))) auto run_with_avx2(const Body& body) {
  return body();
}

// `body` is a lambda that is PANTALA_INLINED, as are the functions that it calls.
template <class Body>
auto run_wide(const Body& body) {
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw"))
    return run_with_avx512(body);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_with_avx2(body);
  return body();
}

#else

template <class Body>
auto run_wide(const Body& body) {
  return body();
}

#endif

}  // namespace pantala
