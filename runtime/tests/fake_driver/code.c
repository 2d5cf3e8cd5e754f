/* Modules, libraries and links. Part of libcuda.c. */

/* The prefix of linked code. Loading it is a call and a line "cubin". */
static const char cubin_mark[] = "cubin of ";
static int is_cubin(const char *image) { return !strncmp(image, cubin_mark, sizeof cubin_mark - 1); }

/* PTX with "wrong" in it does not compile, with "newer" it is not understood. */
result cuModuleLoadDataEx(void **module, const char *image, unsigned n, const int *options, void **values)
{
    ENTER(); REFUSE(unsafe_call());
    if (is_cubin(image)) {
        trace("cubin");
        if (number("FAKE_CUBIN", 0))
            return number("FAKE_CUBIN", 0);
    }
    if (strstr(image, "newer"))
        return 222;
    if (strstr(image, "wrong")) {
        for (unsigned i = 0; i + 1 < n; i++)
            if (options[i] == 5 && options[i + 1] == 6) {
                size_t room = (size_t)values[i + 1];
                char *log = values[i];
                size_t at = 0;
                for (int line = 1; line <= 20; line++)
                    at += snprintf(log + at, room - at, "ptxas application ptx input, line %d; error   : Unknown modifier\n", line);
                values[i + 1] = (void *)at;
            }
        return 218;
    }
    *module = strdup(image);
    return OK;
}

/* NVRTC queries it where there is a driver, and works without. */
result cuGetExportTable(const void **table, const void *id) { (void)id; *table = NULL; return INVALID; }

/* A link concatenates its inputs after a mark. Input that contains "wrong" does not link. */
struct link { char *log; size_t room; size_t *used; char *image; size_t size; };

result cuLinkCreate_v2(unsigned n, const int *options, void **values, struct link **link)
{
    ENTER();
    *link = calloc(1, sizeof **link);
    (*link)->image = strdup(cubin_mark);
    (*link)->size = strlen(cubin_mark);
    for (unsigned i = 0; i + 1 < n; i++)
        if (options[i] == 5 && options[i + 1] == 6) {
            (*link)->log = values[i];
            (*link)->room = (size_t)values[i + 1];
        }
    return OK;
}

result cuLinkAddData_v2(struct link *link, unsigned kind, const char *data, size_t size, const char *name, unsigned n,
                        const int *options, void **values)
{
    ENTER();
    (void)n, (void)options, (void)values;
    char call[300];
    snprintf(call, sizeof call, "cuLinkAddData_v2 %u %s", kind, name);
    trace(call);
    if (memmem(data, size, "wrong", 5)) {
        snprintf(link->log, link->room, "ptxas application ptx input, line 7; fatal   : wrong in %s", name);
        return 218;
    }
    link->image = realloc(link->image, link->size + size + 1);
    for (size_t i = 0; i < size; i++)
        link->image[link->size++] = data[i] ? data[i] : ' ';
    link->image[link->size] = 0;
    return OK;
}

/* Whether a function is declared that the driver does not have, as it has vprintf. */
static int is_foreign(const char *image)
{
    static const char declared[] = ".extern .func";
    for (const char *at = strstr(image, declared); at; at = strstr(at + 1, declared)) {
        const char *end = strchr(at, ';'), *known = strstr(at, "vprintf");
        if (!known || (end && known > end))
            return 1;
    }
    return 0;
}

result cuLinkComplete(struct link *link, void **cubin, size_t *size)
{
    ENTER();
    if (number("FAKE_LINK", 0))
        return number("FAKE_LINK", 0);
    if (is_foreign(link->image) && !strstr(link->image, ".visible .func")) {
        snprintf(link->log, link->room, "error   : Undefined reference to 'f' in 'k'");
        return 200;
    }
    *cubin = link->image;
    *size = link->size;
    return OK;
}

result cuLinkDestroy(struct link *link) { ENTER(); free(link->image); free(link); return OK; }

static void forget_functions(const char *module);

static void unload(char *module)
{
    forget_functions(module);
    struct words *words = words_of(module);
    if (words)
        words->module = NULL;
    free(module);
}

result cuModuleUnload(void *module) { ENTER(); REFUSE(unsafe_call()); unload(module); return OK; }

#ifndef WITHOUT_LIBRARIES
/* A library holds its only module. */
struct library { void *module; };

result cuLibraryLoadData(struct library **library, const char *code, int *options, void **values, unsigned n,
                         int *library_options, void **library_values, unsigned n_library)
{
    ENTER();
    (void)library_options, (void)library_values, (void)n_library;
    void *module;
    result loaded = cuModuleLoadDataEx(&module, code, n, options, values);
    if (loaded != OK)
        return loaded;
    *library = malloc(sizeof **library);
    (*library)->module = module;
    return OK;
}

result cuLibraryGetModule(void **module, struct library *library) { ENTER(); *module = library->module; return OK; }

struct function;
result cuModuleGetFunction(struct function **function, const char *module, const char *name);
result cuLibraryGetKernel(struct function **kernel, struct library *library, const char *name)
{
    return cuModuleGetFunction(kernel, library->module, name);
}

result cuLibraryUnload(struct library *library) { ENTER(); REFUSE(unsafe_call()); unload(library->module); free(library); return OK; }
#endif

result cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, char *module, const char *name)
{
    ENTER();
    if (!strstr(module, name))
        return NOT_FOUND;
    struct words *words = words_of(module);
    if (!words) {
        words = calloc(1, sizeof *words);
        words->module = module;
        words->next = all_words;
        all_words = words;
    }
    *address = (uint64_t)&words->at[strstr(name, "print_page") ? 2 : strstr(name, "page") != NULL];
    *bytes = 8;
    return OK;
}
