/* The library of a profiler, as NVTX finds it by NVTX_INJECTION64_PATH: it writes the ranges that it receives to the file
   that FAKE_NVTX names, a line each with a tab between the fields. With FAKE_NVTX_REFUSES it refuses to attach.
   The structures are those of version 3 of NVTX (nvtxDetail/nvtxTypes.h, nvToolsExt.h). */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);

struct callbacks {
    size_t size;
    int (*get_module)(unsigned module, function ***table, unsigned *size);
};

struct version_info {
    size_t size;
    uint32_t version, reserved;
    void (*set_version)(uint32_t);
};

struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    union { uint64_t bytes; double real; } payload;
    int32_t message_type;
    union { const char *ascii; const void *other; } message;
};

enum { CALLBACKS = 1, VERSION_INFO = 3, CORE = 1, SYNC = 6, CORE2 = 5 };
enum { PUSH = 4, POP = 5, NAME_CATEGORY = 8, CREATE_DOMAIN = 12 };

static FILE *out;
static struct { char name[32]; } domain;
static __thread int depth;

static void *create_domain(const char *name) {
    strncpy(domain.name, name, sizeof domain.name - 1);
    fprintf(out, "domain\t%s\n", name);
    return &domain;
}

static void name_category(void *of, uint32_t number, const char *name) {
    if (of != &domain) abort();
    fprintf(out, "category\t%u\t%s\n", number, name);
}

static int push(void *of, const struct attributes *range) {
    if (of != &domain || range->version != 3 || range->size != sizeof *range || range->message_type != 1) abort();
    if (range->payload_type != 0 && range->payload_type != 1) abort();
    char payload[24] = "-";
    if (range->payload_type) snprintf(payload, sizeof payload, "%llu", (unsigned long long)range->payload.bytes);
    fprintf(out, "push\t%d\t%u\t%s\t%s\n", depth, range->category, payload, range->message.ascii);
    fflush(out);
    return depth++;
}

static int pop(void *of) {
    if (of != &domain || depth == 0) abort();
    fprintf(out, "pop\t%d\n", --depth);
    fflush(out);
    return depth;
}

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t)) {
    static const unsigned sizes[] = {0, 16, 9, 15, 7, 16, 7};
    const char *path = getenv("FAKE_NVTX");
    if (!path || !(out = fopen(path, "a"))) return 0;
    fprintf(out, "opened\n");
    fflush(out);
    if (getenv("FAKE_NVTX_REFUSES")) return 0;
    const struct callbacks *callbacks = get_table(CALLBACKS);
    const struct version_info *version = get_table(VERSION_INFO);
    if (!callbacks || callbacks->size != sizeof *callbacks || get_table(2) || get_table(99)) abort();
    if (!version || version->size != sizeof *version || version->version != 3) abort();
    version->set_version(3);
    function **table;
    unsigned size;
    if (callbacks->get_module(0, &table, &size) || callbacks->get_module(7, NULL, NULL)) abort();
    for (unsigned module = CORE; module <= SYNC; module++) {
        if (!callbacks->get_module(module, &table, &size) || size != sizes[module]) abort();
        if (table[0] || table[size]) abort();
        for (unsigned k = 1; k < size; k++)
            if (!table[k]) abort();
    }
    callbacks->get_module(CORE2, &table, &size);
    *table[PUSH] = (function)push;
    *table[POP] = (function)pop;
    *table[NAME_CATEGORY] = (function)name_category;
    *table[CREATE_DOMAIN] = (function)create_domain;
    return 1;
}
