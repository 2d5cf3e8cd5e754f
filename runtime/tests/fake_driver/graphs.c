/* Graphs of the fake driver. A launch executes the nodes one by one. Among the ready nodes it chooses the one added last,
 * so that a missing edge changes the result. `FAKE_TRACE` records the numbers of a node's predecessors.
 *
 * Using a graph from two threads at once, or after its destruction, aborts the process.
 */
#include <stdatomic.h>

struct node_params {
    struct function *function;
    unsigned gx, gy, gz, bx, by, bz, shared;
    void **params, **extra;
    void *kernel, *context;
};
/* Copies rows from and to the host (memory type 1), the device (2), or an address that the driver inspects (4). */
struct copy_3d {
    size_t from_x, from_y, from_z, from_lod; int from_type; const char *from_host; uint64_t from_device;
    void *from_array, *reserved0; size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_lod; int to_type; char *to_host; uint64_t to_device;
    void *to_array, *reserved1; size_t to_pitch, to_height;
    size_t width, height, depth;
};
struct node { int is_copy, is_fill, is_done; unsigned char value; size_t n_behind, behind[64]; struct node_params kernel; uint64_t slots[64]; struct copy_3d copy; };
struct graph { struct node *nodes[64]; size_t count; };
struct exec { struct graph graph; struct node *own; atomic_int users; int ended; };

static size_t slots_of(const struct function *function)
{
    return strncmp(function->name, "sum", 3) ? 0 : (size_t)atol(function->name + 3);
}

/* Copies a kernel's parameters: the caller's are invalid afterwards. */
static void set_params(struct node *node, const struct node_params *params)
{
    node->kernel = *params;
    for (size_t i = 0; i < slots_of(params->function); i++)
        node->slots[i] = *(uint64_t *)params->params[i];
}

/* Fails unless the predecessors exist and are named once each. */
static result add_node(struct node **made, struct graph *graph, struct node *const *behind, size_t n_behind)
{
    if (graph->count == 64)
        return INVALID;
    struct node *node = calloc(1, sizeof *node);
    char call[400] = "node after";
    for (size_t i = 0; i < n_behind; i++) {
        size_t at = 0;
        while (at < graph->count && graph->nodes[at] != behind[i])
            at++;
        for (size_t j = 0; j < i; j++)
            if (node->behind[j] == at)
                at = graph->count;
        if (at == graph->count)
            return free(node), INVALID;
        node->behind[node->n_behind++] = at;
        snprintf(call + strlen(call), sizeof call - strlen(call), " %zu", at);
    }
    trace(call);
    *made = graph->nodes[graph->count++] = node;
    return OK;
}

/* The most recently added node whose predecessors are done; -1 when all nodes are done. */
static long next_node(const struct exec *exec)
{
    for (long i = (long)exec->graph.count - 1; i >= 0; i--) {
        int is_next = !exec->own[i].is_done;
        for (size_t j = 0; j < exec->own[i].n_behind; j++)
            is_next = is_next && exec->own[exec->own[i].behind[j]].is_done;
        if (is_next)
            return i;
    }
    return -1;
}

static struct graph *new_graph(void) { return calloc(1, sizeof(struct graph)); }

/* Adds a node of a stream capture, after the previous node. */
static result captured_node(struct node **node, struct graph *graph)
{
    return add_node(node, graph, graph->count ? &graph->nodes[graph->count - 1] : NULL, graph->count ? 1 : 0);
}

static result capture_kernel(struct graph *graph, void *function, const unsigned *sizes, void **params)
{
    struct node *node;
    struct node_params described = {function, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], params, 0, 0, 0};
    result added = captured_node(&node, graph);
    if (added == OK)
        set_params(node, &described);
    return added;
}

static result capture_copy(struct graph *graph, uint64_t to, uint64_t from, size_t n)
{
    struct node *node;
    result added = captured_node(&node, graph);
    if (added == OK) {
        node->is_copy = 1;
        node->copy = (struct copy_3d){.from_type = 2, .from_device = from, .to_type = 2, .to_device = to, .width = n, .height = 1, .depth = 1};
    }
    return added;
}

static result capture_fill(struct graph *graph, uint64_t to, unsigned char value, size_t n)
{
    result added = capture_copy(graph, to, to, n);
    if (added == OK)
        graph->nodes[graph->count - 1]->is_fill = 1, graph->nodes[graph->count - 1]->value = value;
    return added;
}

result cuGraphCreate(struct graph **graph, unsigned flags) { ENTER(); (void)flags; *graph = calloc(1, sizeof **graph); return OK; }

result cuGraphDestroy(struct graph *graph)
{
    ENTER();
    for (size_t i = 0; i < graph->count; i++)
        free(graph->nodes[i]);
    free(graph);
    return OK;
}

result cuGraphAddKernelNode_v2(struct node **node, struct graph *graph, struct node *const *behind, size_t n_behind,
                               const struct node_params *params)
{
    ENTER();
    if (number("FAKE_NODES", 0))
        return number("FAKE_NODES", 0);
    result added = add_node(node, graph, behind, n_behind);
    if (added == OK)
        set_params(*node, params);
    return added;
}

/* Checks one side of a copy: several rows need a pitch, and a memory type uses its own address field. */
static int is_side(const struct copy_3d *copy, int type, const char *host, uint64_t device, size_t pitch, size_t rows)
{
    int rows_fit = copy->height == 1 ? !pitch && !rows : pitch >= copy->width && pitch <= 2147483647 && rows >= copy->height;
    if (type == 1)
        return rows_fit && host && !device;
    pthread_mutex_lock(&order);
    struct memory *memory = *find_memory(device);
    int managed = memory && memory->managed, known = memory && !managed;
    pthread_mutex_unlock(&order);
    /* Type 2 requires device memory. Managed memory counts as unified only if all devices can access it concurrently.
       */
    return rows_fit && device && !host && (type == 2 ? known || !number("FAKE_CONCURRENT", 1) : type == 4 && !known && number("FAKE_CONCURRENT", 1));
}

static int is_copy_3d(const struct copy_3d *copy)
{
    return !copy->from_x && !copy->from_y && !copy->from_z && !copy->to_x && !copy->to_y && !copy->to_z
        && copy->depth == 1 && copy->height && copy->width
        && is_side(copy, copy->from_type, copy->from_host, copy->from_device, copy->from_pitch, copy->from_height)
        && is_side(copy, copy->to_type, copy->to_host, copy->to_device, copy->to_pitch, copy->to_height);
}

static void copy_rows(const struct copy_3d *copy, void *stream)
{
    uint64_t from = copy->from_type == 1 ? copy->to_device : copy->from_device;
    uint64_t to = copy->to_type == 1 ? copy->from_device : copy->to_device;
    touch(stream, to, from);
    for (size_t row = 0; row < copy->height; row++)
        memmove((copy->to_type == 1 ? copy->to_host : (char *)copy->to_device) + row * copy->to_pitch,
                (copy->from_type == 1 ? copy->from_host : (char *)copy->from_device) + row * copy->from_pitch, copy->width);
}

result cuMemcpy3DAsync_v2(const struct copy_3d *copy, void *stream)
{
    ENTER();
    if (!is_copy_3d(copy))
        return INVALID;
    copy_rows(copy, stream);
    return OK;
}

result cuGraphAddMemcpyNode(struct node **node, struct graph *graph, struct node *const *behind, size_t n_behind,
                            const struct copy_3d *copy, void *context)
{
    ENTER();
    if (context != current || !is_copy_3d(copy))
        return INVALID;
    result added = add_node(node, graph, behind, n_behind);
    if (added == OK)
        (*node)->is_copy = 1, (*node)->copy = *copy;
    return added;
}

result cuGraphInstantiateWithFlags(struct exec **exec, const struct graph *graph, unsigned long long flags)
{
    ENTER();
    if (flags)
        return INVALID;
    *exec = calloc(1, sizeof **exec);
    (*exec)->graph = *graph;
    (*exec)->own = calloc(graph->count + 1, sizeof *(*exec)->own);
    for (size_t i = 0; i < graph->count; i++)
        (*exec)->own[i] = *graph->nodes[i];
    return OK;
}

static void hold(struct exec *exec)
{
    if (exec->ended || atomic_fetch_add(&exec->users, 1))
        abort();
}

result cuGraphExecKernelNodeSetParams_v2(struct exec *exec, const struct node *node, const struct node_params *params)
{
    ENTER();
    hold(exec);
    result found = INVALID;
    for (size_t i = 0; i < exec->graph.count; i++)
        if (exec->graph.nodes[i] == node && !exec->own[i].is_copy)
            set_params(&exec->own[i], params), found = OK;
    atomic_fetch_sub(&exec->users, 1);
    return found;
}

result cuGraphLaunch(struct exec *exec, void *stream)
{
    ENTER();
    hold(exec);
    result done = OK;
    for (size_t i = 0; i < exec->graph.count; i++)
        exec->own[i].is_done = 0;
    for (long i; (i = next_node(exec)) >= 0 && done == OK;) {
        struct node *node = &exec->own[i];
        node->is_done = 1;
        if (node->is_fill) {
            done = cuMemsetD8Async(node->copy.to_device, node->value, node->copy.width, stream);
            continue;
        }
        if (node->is_copy && captured(stream)) {
            done = capture_copy(captured(stream)->captured, node->copy.to_device, node->copy.from_device, node->copy.width);
            continue;
        }
        if (node->is_copy) {
            copy_rows(&node->copy, stream);
            continue;
        }
        void *params[64];
        for (size_t slot = 0; slot < 64; slot++)
            params[slot] = &node->slots[slot];
        struct node_params *k = &node->kernel;
        done = cuLaunchKernel(k->function, k->gx, k->gy, k->gz, k->bx, k->by, k->bz, k->shared, stream, params, NULL);
    }
    atomic_fetch_sub(&exec->users, 1);
    return done;
}

result cuGraphExecDestroy(struct exec *exec)
{
    ENTER();
    hold(exec);
    exec->ended = 1;
    free(exec->own);
    return OK;  /* the rest is preserved, so that a use after the end is detected */
}
