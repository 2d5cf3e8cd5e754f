/* glibc 2.36's arc4random, which LLVM's Support library wants, over getrandom(). A hidden definition of our own keeps
   the extension at GLIBC_2.34, so that the wheel is manylinux_2_34. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/random.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (long)sizeof value) {
  }
  return value;
}

/* Rust's f64::hypot would bind to hypot@GLIBC_2.35; the older version computes the same. */
extern double hypot_2_2_5(double x, double y);
__asm__(".symver hypot_2_2_5, hypot@GLIBC_2.2.5");
__attribute__((visibility("hidden"))) double hypot(double x, double y) { return hypot_2_2_5(x, y); }
