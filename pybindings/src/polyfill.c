/* The extension's glibc functions, by names that glibc 2.28 has, so that the wheel is manylinux_2_28.

   The machine that builds has a newer glibc, whose headers and linker give the newest version of each name. A hidden
   definition of our own comes before those: `old(f)` calls the version of 2.2.5, which all later ones still have. In glibc
   before 2.34 some of them are in libpthread and libdl, which build.rs has the extension name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* `pthread_setspecific` takes what it does not read. */
#endif

#define hidden __attribute__((visibility("hidden")))
/* `name` calls `name@version`. */
#define old_at(version, type, name, parameters, arguments) \
  extern type old_##name parameters;                       \
  __asm__(".symver old_" #name ", " #name "@" version);    \
  hidden type name parameters { return old_##name arguments; }
#define old(type, name, parameters, arguments) old_at("GLIBC_2.2.5", type, name, parameters, arguments)

/* New in 2.36: LLVM's Support library wants it. */
hidden uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (long)sizeof value) {
  }
  return value;
}

/* 2.35 and 2.29: the older versions compute the same, and set `errno` besides. */
old(double, hypot, (double x, double y), (x, y))
old(double, pow, (double x, double y), (x, y))
old(double, exp, (double x), (x))
old(double, exp2, (double x), (x))
old(double, log, (double x), (x))
old(double, log2, (double x), (x))

/* 2.34: they were in libdl and libpthread before. */
old(void *, dlopen, (const char *file, int mode), (file, mode))
old(void *, dlsym, (void *restrict handle, const char *restrict name), (handle, name))
old(int, dlclose, (void *handle), (handle))
old(char *, dlerror, (void), ())
old(int, dladdr, (const void *address, Dl_info *info), (address, info))
old(int, pthread_create,
    (pthread_t *restrict thread, const pthread_attr_t *restrict attr, void *(*run)(void *), void *restrict arg),
    (thread, attr, run, arg))
old(int, pthread_join, (pthread_t thread, void **result), (thread, result))
old(int, pthread_detach, (pthread_t thread), (thread))
old(int, pthread_once, (pthread_once_t *once, void (*run)(void)), (once, run))
old(int, pthread_key_create, (pthread_key_t *key, void (*drop)(void *)), (key, drop))
old(int, pthread_key_delete, (pthread_key_t key), (key))
old(void *, pthread_getspecific, (pthread_key_t key), (key))
old(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
old(int, pthread_attr_getstack, (const pthread_attr_t *restrict attr, void **restrict address, size_t *restrict size),
    (attr, address, size))
old(int, pthread_attr_setstacksize, (pthread_attr_t *attr, size_t size), (attr, size))
old(int, pthread_rwlock_rdlock, (pthread_rwlock_t *lock), (lock))
old(int, pthread_rwlock_wrlock, (pthread_rwlock_t *lock), (lock))
old(int, pthread_rwlock_unlock, (pthread_rwlock_t *lock), (lock))
old_at("GLIBC_2.12", int, pthread_setname_np, (pthread_t thread, const char *name), (thread, name))
/* 2.32: the same. */
old(int, pthread_getattr_np, (pthread_t thread, pthread_attr_t *attr), (thread, attr))
old(int, pthread_sigmask, (int how, const sigset_t *restrict set, sigset_t *restrict before), (how, set, before))

/* 2.33: headers had them call these functions before, with the version of the structure. On x86-64 `struct stat` and
   `struct stat64` are the same. */
#define STAT_VERSION 1
#define MKNOD_VERSION 0
#define old_stat(name, of, kind, first)                                     \
  extern int old_##of(int version, first, struct kind *found);              \
  __asm__(".symver old_" #of ", " #of "@GLIBC_2.2.5");                      \
  hidden int name(first, struct kind *found) { return old_##of(STAT_VERSION, file, found); }
old_stat(stat, __xstat, stat, const char *restrict file)
old_stat(lstat, __lxstat, stat, const char *restrict file)
old_stat(fstat, __fxstat, stat, int file)
old_stat(stat64, __xstat64, stat64, const char *restrict file)
old_stat(lstat64, __lxstat64, stat64, const char *restrict file)
old_stat(fstat64, __fxstat64, stat64, int file)
extern int old_fstatat64(int version, int folder, const char *file, struct stat64 *found, int flags);
__asm__(".symver old_fstatat64, __fxstatat64@GLIBC_2.4");
hidden int fstatat64(int folder, const char *restrict file, struct stat64 *restrict found, int flags) {
  return old_fstatat64(STAT_VERSION, folder, file, found, flags);
}
extern int old_mknod(int version, const char *file, mode_t mode, dev_t *device);
__asm__(".symver old_mknod, __xmknod@GLIBC_2.2.5");
hidden int mknod(const char *file, mode_t mode, dev_t device) {
  return old_mknod(MKNOD_VERSION, file, mode, &device);
}

/* 2.33: LLVM's statistics call it. */
hidden struct mallinfo2 mallinfo2(void) {
  struct mallinfo2 nothing = {0};
  return nothing;
}

/* 2.32: libstdc++ counts references without atomics where it is true. */
hidden char __libc_single_threaded = 0;

/* 2.30. */
hidden pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* 2.29: Rust's standard library uses it where it is there, and else starts a process in another folder by `fork`. It is
   what that finds of a function that is not there: an address of zero. */
__asm__(".hidden posix_spawn_file_actions_addchdir_np\n"
        ".globl posix_spawn_file_actions_addchdir_np\n"
        ".set posix_spawn_file_actions_addchdir_np, 0\n");
