/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - Orca as experiments see it (paper 003, 3.2): an object on each node, whose operation other nodes call (ROI),
 * and one that all nodes have a copy of (GOI). An operation takes an array and adds one to a count; the first kind
 * gives one back, too. The program waits with a guard for the count. */
#include "sim/myrinet/systems/orca/jacobi.h"

#include <string.h>

enum { ADD = 0, AWAIT = 1 };

struct count {
    uint32_t is;
};

struct orca_state {
    struct orca orca; /* first */
    struct count here, everywhere;
    struct orca_object *object[MYRI_HW_NODES], *replicated;
    struct jacobi jacobi;
    uint32_t number, results; /* host addresses */
};

static int add(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    struct count *c = x->state;
    struct myri_side *side = o->side;
    myri_task_operate(side->task, PANDA_HANDLER, "add");
    side->got = a->in;
    side->from = a->from;
    if (side->handled)
        side->handled(side, a->in_bytes);
    c->is++;
    if (x->owner != ORCA_EVERYWHERE) {
        a->out = side->out;
        a->out_bytes = a->in_bytes;
    }
    return 1;
}

static int await(struct orca *o, struct orca_object *x, struct orca_arguments *a)
{
    const struct count *c = x->state;
    myri_task_operate(o->side->task, PANDA_HANDLER, "await");
    return c->is >= myri_host_word(o->side->host, a->in);
}

static const struct orca_type counter = {{[ADD] = add, [AWAIT] = await}, 1u << ADD};

static int open_with(struct myri_side *side, struct orca_lacks lacks, enum panda_below below)
{
    struct orca_state *st = side->state;
    uint32_t most = side->largest / JACOBI_NUMBER;
    st->orca.lacks = lacks;
    side->largest += JACOBI_HEAD;
    if (below != PANDA_ON_FMMC)
        st->orca.on.panda.lacks = PANDA_INITIAL;
    st->number = myri_host_take(side->host, 4, 0);
    st->results = myri_host_take(side->host, side->largest, 0);
    if (orca_open(&st->orca, side, below) < 0)
        return -1;
    for (uint32_t i = 0; i < side->nodes && i + 2 < ORCA_OBJECTS; i++)
        st->object[i] = orca_new(&st->orca, &counter, i, &st->here);
    st->replicated = orca_new(&st->orca, &counter, ORCA_EVERYWHERE, &st->everywhere);
    if (most && most <= JACOBI_MOST)
        jacobi_open(&st->jacobi, &st->orca, most);
    return 0;
}

static int open_final(struct myri_side *side)
{
    return open_with(side, (struct orca_lacks){0, 0}, PANDA_ON_FMMC);
}

static int open_initial(struct myri_side *side)
{
    return open_with(side, (struct orca_lacks){1, 1}, PANDA_ON_FM1);
}

static int open_ethernet(struct myri_side *side)
{
    return open_with(side, (struct orca_lacks){1, 1}, PANDA_ON_FLIP);
}

static int open_generic(struct myri_side *side)
{
    return open_with(side, (struct orca_lacks){.marshalling = 1}, PANDA_ON_FMMC);
}

static uint32_t call(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct orca_state *st = side->state;
    struct orca_arguments a = {.in = side->out, .in_bytes = bytes, .out = st->results};
    if (!st->object[to] || !orca_invoke(&st->orca, st->object[to], ADD, &a))
        return 0;
    side->got = a.out;
    side->from = to;
    return a.out_bytes;
}

static void to_all(struct myri_side *side, uint32_t bytes)
{
    struct orca_state *st = side->state;
    struct orca_arguments a = {.in = side->out, .in_bytes = bytes};
    (void)orca_invoke(&st->orca, st->replicated, ADD, &a);
}

static int until(struct orca_state *st, struct orca_object *x, uint32_t n)
{
    struct orca_arguments a = {.in = st->number, .in_bytes = 4};
    myri_host_set_word(st->orca.side->host, st->number, n);
    return x && orca_invoke(&st->orca, x, AWAIT, &a);
}

static int serve(struct myri_side *side, uint32_t calls, uint32_t multicasts)
{
    struct orca_state *st = side->state;
    return (calls == 0 || until(st, st->object[side->node], calls)) &&
           (multicasts == 0 || until(st, st->replicated, multicasts));
}

static uint32_t jacobi(struct myri_side *side, uint32_t bytes, uint32_t iterations)
{
    struct orca_state *st = side->state;
    if (bytes % JACOBI_NUMBER == 0 && st->jacobi.equations * JACOBI_NUMBER == bytes)
        return jacobi_run(&st->jacobi, &st->orca, iterations);
    myri_hw_fault(side->hw, "a vector of %u bytes: it has 8 for each equation, of which there can be up to %u", bytes,
                  JACOBI_MOST);
    return 0;
}

#define ORCA_SYSTEM(called, words, firmware, crc, opener)                                                 \
    {                                                                                                     \
        .name = called, .title = words, .source = "Bal et al. 1997, sections 2.1, 3.1, 4.3 and 5.1.3",    \
        .object = firmware, .machines = "H-A", .state_bytes = sizeof(struct orca_state), .most = 1 << 18, \
        .on_crc = crc, .open = opener, .call = call, .serve = serve, .jacobi = jacobi, .to_all = to_all   \
    }
const struct myri_system myri_system_orca =
    ORCA_SYSTEM("orca", "Orca", "systems/fmmc/firmware", FMMC_ON_CRC, open_final);
const struct myri_system myri_system_orca_initial = ORCA_SYSTEM("orca-initial", "Orca as first ported, on FM 1.1",
                                                                "systems/fm1/firmware-whole", FM1_ON_CRC, open_initial);
const struct myri_system myri_system_orca_generic = ORCA_SYSTEM("orca-generic", "Orca that marshals by descriptors",
                                                                "systems/fmmc/firmware", FMMC_ON_CRC, open_generic);
const struct myri_system myri_system_orca_ethernet = {.name = "orca-ethernet",
                                                      .title = "Orca over Ethernet, on the kernel's datagrams",
                                                      .source = "Bal et al. 1997, section 3.2",
                                                      .object = "systems/probe/firmware",
                                                      .machines = "H-A",
                                                      .state_bytes = sizeof(struct orca_state),
                                                      .most = 1 << 14,
                                                      .open = open_ethernet,
                                                      .call = call,
                                                      .serve = serve,
                                                      .jacobi = jacobi,
                                                      .to_all = to_all};
