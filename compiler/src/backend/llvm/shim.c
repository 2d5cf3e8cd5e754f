/* LLVM reports some faults by ending the process: by report_fatal_error, or by an error in a context without a
 * handler. Calls into LLVM that may fail so go through a function of this file, which converts the fault to a return
 * value.
 *
 * Only frames of this file and of LLVM are between setjmp and longjmp, never one of Rust. After a fatal error the
 * context, its modules and the target machine are in an unknown state and must be leaked. */
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef void *Ref;

/* LLVM's C API (llvm-c/Core.h, LLJIT.h, TargetMachine.h, Linker.h, DebugInfo.h). */
extern void LLVMInstallFatalErrorHandler(void (*)(const char *));
extern void LLVMContextSetDiagnosticHandler(Ref, void (*)(Ref, void *), void *);
extern int LLVMGetDiagInfoSeverity(Ref);
extern char *LLVMGetDiagInfoDescription(Ref);
extern void LLVMDisposeMessage(char *);
extern int LLVMTargetMachineEmitToMemoryBuffer(Ref, Ref, int, char **, Ref *);
extern Ref LLVMCreateTargetMachine(Ref, const char *, const char *, const char *, int, int, int);
extern int LLVMLinkModules2(Ref, Ref);
extern Ref LLVMOrcLLJITAddObjectFile(Ref, Ref, Ref);
extern Ref LLVMOrcLLJITLookup(Ref, unsigned long long *, const char *);
extern Ref LLVMDIBuilderCreateCompileUnit(Ref, int, Ref, const char *, size_t, int, const char *, size_t, unsigned,
                                          const char *, size_t, int, unsigned, int, int, const char *, size_t,
                                          const char *, size_t);

extern Ref weft_host_passes(Ref, const char *, Ref, int);
extern Ref weft_nvptx_passes(Ref, const char *, Ref, int);
extern int weft_frames_note(Ref);
extern void weft_gate_generates(int);

static _Thread_local jmp_buf *landing;
static _Thread_local char message[8192];

static void keep(const char *text) {
  strncpy(message, text, sizeof message - 1);
  message[sizeof message - 1] = 0;
}

static void on_fatal(const char *text) {
  if (!landing) {
    fprintf(stderr, "LLVM ERROR: %s\n", text);
    return; /* LLVM ends the process now */
  }
  keep(text);
  longjmp(*landing, 1);
}

static void on_diagnostic(Ref info, void *unused) {
  (void)unused;
  if (weft_frames_note(info)) return;
  if (LLVMGetDiagInfoSeverity(info) != 0 /* LLVMDSError */ || message[0]) return;
  char *text = LLVMGetDiagInfoDescription(info);
  keep(text && *text ? text : "LLVM reports an error without a text");
  LLVMDisposeMessage(text);
}

void weft_shim_install(void) { LLVMInstallFatalErrorHandler(on_fatal); }

void weft_shim_watch(Ref context) { LLVMContextSetDiagnosticHandler(context, on_diagnostic, NULL); }

/* The message of this thread's last caught call; empty if there was no fault. */
const char *weft_shim_message(void) { return message; }

/* Evaluates to 1 after a fatal error, else to 0. The message may be set in both cases. */
#define CAUGHT(expression)        \
  jmp_buf here;                  \
  jmp_buf *outer = landing;      \
  message[0] = 0;                \
  landing = &here;               \
  int fatal = setjmp(here);      \
  if (!fatal) { expression; }    \
  landing = outer;               \
  return fatal

/* LLVM's passes call this within a caught call, so only LLVM's frames are between it and setjmp. */
void weft_shim_leave(const char *text) {
  if (landing) on_fatal(text);
}

static int generate(Ref machine, Ref module, int file_type, char **error, Ref *out) {
  weft_gate_generates(1);
  int failed = LLVMTargetMachineEmitToMemoryBuffer(machine, module, file_type, error, out);
  weft_gate_generates(0);
  return failed;
}

int weft_shim_emit(Ref machine, Ref module, int file_type, char **error, Ref *out, int *failed) {
  CAUGHT(*failed = generate(machine, module, file_type, error, out));
}

int weft_shim_host_passes(Ref module, const char *passes, Ref machine, int large, Ref *error) {
  CAUGHT(*error = weft_host_passes(module, passes, machine, large));
}

int weft_shim_nvptx_passes(Ref module, const char *passes, Ref machine, int large, Ref *error) {
  CAUGHT(*error = weft_nvptx_passes(module, passes, machine, large));
}

int weft_shim_machine(Ref target, const char *triple, const char *cpu, const char *features, int level, int reloc,
                       int model, Ref *out) {
  CAUGHT(*out = LLVMCreateTargetMachine(target, triple, cpu, features, level, reloc, model));
}

int weft_shim_link(Ref into, Ref from, int *failed) { CAUGHT(*failed = LLVMLinkModules2(into, from)); }

int weft_shim_jit_add(Ref jit, Ref library, Ref object, Ref *error) {
  CAUGHT(*error = LLVMOrcLLJITAddObjectFile(jit, library, object));
}

int weft_shim_jit_find(Ref jit, unsigned long long *address, const char *name, Ref *error) {
  CAUGHT(*error = LLVMOrcLLJITLookup(jit, address, name));
}

/* A compile unit of line tables only, in the form that ptxas takes for optimised code: DebugDirectivesOnly, which the
 * enumeration of the C API does not name but its implementation passes on. */
Ref weft_debug_unit(Ref builder, Ref file, const char *producer, int optimised) {
  const int language_python = 19, debug_directives_only = 3;
  return LLVMDIBuilderCreateCompileUnit(builder, language_python, file, producer, strlen(producer), optimised, "", 0, 0,
                                        "", 0, debug_directives_only, 0, 0, 0, "", 0, "", 0);
}
