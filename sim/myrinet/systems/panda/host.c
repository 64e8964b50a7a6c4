/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - Panda as a system of its own: the final one of paper 003, the initial one, and those that lack one of the
 * optimizations of its section 4. */
#include "sim/myrinet/systems/panda/below.h"

struct panda_state {
    struct panda_on on;
    struct panda_message *first, **last, *kept; /* that have come; the one that the experiment looks at */
    int came, served_all;
    uint32_t calls, multicasts, calls_wanted, multicasts_wanted; /* served, ever; that the program waits for */
};

static void served(struct panda_state *st, const struct panda_message *m)
{
    struct myri_side *side = st->on.panda.side;
    side->got = m->at;
    side->from = m->from;
    if (side->handled)
        side->handled(side, m->bytes);
    *(m->kind == PANDA_REQUEST ? &st->calls : &st->multicasts) += 1;
    if (st->calls == st->calls_wanted && st->multicasts == st->multicasts_wanted)
        panda_signal(&st->on.panda, &st->served_all);
}

static void on_request(struct panda *p, struct panda_message *m)
{
    struct panda_state *st = p->owner;
    served(st, m);
    panda_rpc_reply(p, m, p->side->out, m->bytes);
    panda_free(p, m);
}

static void on_message(struct panda *p, struct panda_message *m)
{
    struct panda_state *st = p->owner;
    *st->last = m;
    st->last = &m->link;
    panda_signal(p, &st->came);
}

/* Who serves has no need of it any more; who receives does. */
static void on_multicast(struct panda *p, struct panda_message *m)
{
    struct panda_state *st = p->owner;
    if (p->side->handled) {
        served(st, m);
        panda_free(p, m);
    } else if (m->from == p->side->node) {
        panda_free(p, m);
    } else {
        on_message(p, m);
    }
}

static int open_with(struct myri_side *side, struct panda_lacks lacks, enum panda_below below)
{
    struct panda_state *st = side->state;
    struct panda *p = &st->on.panda;
    p->owner = st;
    p->lacks = lacks;
    p->on_request = on_request;
    p->on_message = on_message;
    p->on_multicast = on_multicast;
    st->last = &st->first;
    return panda_open_on(&st->on, side, below);
}

static int open_final(struct myri_side *side)
{
    return open_with(side, (struct panda_lacks){0}, PANDA_ON_FMMC);
}

static int open_initial(struct myri_side *side)
{
    return open_with(side, PANDA_INITIAL, PANDA_ON_FM1);
}

static int open_ethernet(struct myri_side *side)
{
    return open_with(side, PANDA_INITIAL, PANDA_ON_FLIP);
}

static int open_no_multicast(struct myri_side *side)
{
    return open_with(side, (struct panda_lacks){.multicast = 1}, PANDA_ON_FMMC);
}

static int open_kernel_threads(struct myri_side *side)
{
    return open_with(side, (struct panda_lacks){.threads = 1}, PANDA_ON_FMMC);
}

static int open_copies(struct myri_side *side)
{
    return open_with(side, (struct panda_lacks){.buffers = 1}, PANDA_ON_FMMC);
}

static int open_fragments(struct myri_side *side)
{
    return open_with(side, (struct panda_lacks){.whole = 1}, PANDA_ON_FMMC);
}

static int open_windows(struct myri_side *side)
{
    return open_with(side, (struct panda_lacks){.flat = 1}, PANDA_ON_FMMC);
}

static void drop_kept(struct panda_state *st)
{
    if (st->kept)
        panda_free(&st->on.panda, st->kept);
    st->kept = NULL;
}

static uint32_t keep(struct myri_side *side, struct panda_message *m)
{
    struct panda_state *st = side->state;
    st->kept = m;
    side->got = m->at;
    side->from = m->from;
    return m->bytes;
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct panda_state *st = side->state;
    panda_send(&st->on.panda, to, side->out, bytes);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct panda_state *st = side->state;
    (void)bytes;
    drop_kept(st);
    if (!st->first && !panda_wait(&st->on.panda, &st->came, until))
        return 0;
    struct panda_message *m = st->first;
    if (!(st->first = m->link))
        st->last = &st->first;
    m->link = NULL;
    st->came = st->first != NULL;
    return keep(side, m);
}

static uint32_t call(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct panda_state *st = side->state;
    drop_kept(st);
    struct panda_message *m = panda_rpc_trans(&st->on.panda, to, side->out, bytes);
    return m ? keep(side, m) : 0;
}

static int serve(struct myri_side *side, uint32_t calls, uint32_t multicasts)
{
    struct panda_state *st = side->state;
    if (st->calls >= calls && st->multicasts >= multicasts)
        return 1;
    st->calls_wanted = calls;
    st->multicasts_wanted = multicasts;
    st->served_all = 0;
    return panda_wait(&st->on.panda, &st->served_all, RNL_SIM_NEVER);
}

static void send_to_all(struct myri_side *side, uint32_t bytes)
{
    struct panda_state *st = side->state;
    panda_group_send(&st->on.panda, side->out, bytes);
}

#define PANDA_SYSTEM(called, words, firmware, crc, opener)                                                             \
    {                                                                                                                  \
        .name = called, .title = words, .source = "Bal et al. 1997, sections 3.1, 4 and 5.1.2", .object = firmware,    \
        .machines = "H-A", .state_bytes = sizeof(struct panda_state), .most = 1 << 20, .look = PANDA_CALL,             \
        .on_crc = crc, .open = opener, .send = send_message, .receive = receive_message, .call = call, .serve = serve, \
        .to_all = send_to_all                                                                                          \
    }
#define ON_FMMC "systems/fmmc/firmware"
const struct myri_system myri_system_panda = PANDA_SYSTEM("panda", "Panda", ON_FMMC, FMMC_ON_CRC, open_final);
const struct myri_system myri_system_panda_initial = PANDA_SYSTEM(
    "panda-initial", "Panda as first ported, on FM 1.1", "systems/fm1/firmware-whole", FM1_ON_CRC, open_initial);
const struct myri_system myri_system_panda_no_multicast =
    PANDA_SYSTEM("panda-no-multicast", "Panda whose hosts forward multicasts", "systems/fmmc/firmware-plain",
                 FMMC_ON_CRC, open_no_multicast);
const struct myri_system myri_system_panda_threads =
    PANDA_SYSTEM("panda-threads", "Panda with threads of the kernel", ON_FMMC, FMMC_ON_CRC, open_kernel_threads);
const struct myri_system myri_system_panda_copies =
    PANDA_SYSTEM("panda-copies", "Panda that copies what FM/MC hands over", ON_FMMC, FMMC_ON_CRC, open_copies);
const struct myri_system myri_system_panda_fragments =
    PANDA_SYSTEM("panda-fragments", "Panda that makes fragments of its own", ON_FMMC, FMMC_ON_CRC, open_fragments);
const struct myri_system myri_system_panda_windows =
    PANDA_SYSTEM("panda-windows", "Panda with register windows", ON_FMMC, FMMC_ON_CRC, open_windows);
/* Its card has a program that does nothing. Nobody sends but by call and multicast, for which there is always room. */
const struct myri_system myri_system_panda_ethernet = {.name = "panda-ethernet",
                                                       .title = "Panda over Ethernet, on the kernel's datagrams",
                                                       .source = "Bal et al. 1997, section 3.2",
                                                       .object = "systems/probe/firmware",
                                                       .machines = "H-A",
                                                       .state_bytes = sizeof(struct panda_state),
                                                       .most = 1 << 15,
                                                       .open = open_ethernet,
                                                       .call = call,
                                                       .serve = serve,
                                                       .to_all = send_to_all};
