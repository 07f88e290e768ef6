// Kernels that are also compiled for processors with wider vectors and bit counts; the choice is made when the module is
// loaded. Results do not depend on it: contraction of floating-point operations is off everywhere.
// (Not in sanitizer builds: their runtimes are not up yet at that moment.)
#pragma once
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define BURNISH_CLONES __attribute__((target_clones("default", "arch=haswell")))
#else
#define BURNISH_CLONES
#endif
