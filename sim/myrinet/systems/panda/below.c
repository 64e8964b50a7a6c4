/* SPDX-License-Identifier: BSD-3-Clause
 *
 * below.c - Panda's way to FM/MC, whose messages it keeps, and to FM 1.1, whose buffers it has to copy, and to Amoeba's
 * kernel, which has datagrams over Ethernet; see below.h. */
#include "sim/myrinet/systems/panda/below.h"

enum { FOR_PANDA = 1 };
enum { FM_FRAMES = 3 }; /* its send, its extract, what takes a frame */

static void fmmc_came(struct fmmc *f, struct fmmc_message *m)
{
    panda_arrive(f->owner, m->from, m->at, m->bytes, m);
}

static void fmmc_put(struct panda *p, uint32_t to, uint32_t at, uint32_t bytes)
{
    fmmc_send_buf(p->below, to, FOR_PANDA, at, bytes);
}

static void fmmc_take(struct panda *p)
{
    (void)fmmc_extract(p->below);
}

static uint32_t fmmc_flag(const struct panda *p)
{
    const struct fmmc *f = p->below;
    return f->ring + (f->next + 1) * FMMC_FRAGMENT - 4;
}

static void fmmc_give_back(struct panda *p, void *object)
{
    fmmc_free_buf(p->below, object);
}

static void fmmc_interrupts(struct panda *p, int on)
{
    if (on)
        fmmc_enable_intr(p->below);
    else
        fmmc_disable_intr(p->below);
}

static void fmmc_to_all(struct panda *p, uint32_t at, uint32_t bytes)
{
    struct fmmc *f = p->below;
    fmmc_broadcast(f, fmmc_next_seqno_and_credits(f, bytes), FOR_PANDA, at, bytes);
}

static const struct panda_fm on_fmmc = {.send = fmmc_put,
                                        .extract = fmmc_take,
                                        .flag = fmmc_flag,
                                        .free = fmmc_give_back,
                                        .interrupts = fmmc_interrupts,
                                        .multicast = fmmc_to_all,
                                        .frames = FM_FRAMES};

static void fm1_came(struct fm1 *f, uint32_t from, uint32_t at, uint32_t bytes)
{
    panda_arrive(f->owner, from, at, bytes, NULL);
}

static void fm1_put(struct panda *p, uint32_t to, uint32_t at, uint32_t bytes)
{
    fm1_send(p->below, to, FOR_PANDA, at, bytes);
}

static void fm1_take(struct panda *p)
{
    (void)fm1_extract(p->below);
}

static uint32_t fm1_flag(const struct panda *p)
{
    const struct fm1 *f = p->below;
    return f->ring + (f->next + 1) * FM1_FRAME - 4;
}

static const struct panda_fm on_fm1 = {.send = fm1_put, .extract = fm1_take, .flag = fm1_flag, .frames = FM_FRAMES};

static void flip_put(struct panda *p, uint32_t to, uint32_t at, uint32_t bytes)
{
    struct panda_flip *f = p->below;
    myri_ether_send(&f->port, p->side->task, to, at, bytes);
}

static void flip_to_others(struct panda *p, uint32_t at, uint32_t bytes)
{
    flip_put(p, MYRI_ETHER_ALL, at, bytes);
}

static void flip_take(struct panda *p)
{
    struct panda_flip *f = p->below;
    uint32_t from = 0, bytes;
    while ((bytes = myri_ether_take(&f->port, p->side->task, f->in, &from)) != 0)
        panda_arrive(p, from, f->in, bytes, NULL);
}

static uint32_t flip_flag(const struct panda *p)
{
    const struct panda_flip *f = p->below;
    return f->port.flag;
}

static const struct panda_fm on_flip = {
    .send = flip_put, .extract = flip_take, .flag = flip_flag, .broadcast = flip_to_others, .frames = 1, .kernel = 1};

static int open_flip(struct panda_flip *f, struct myri_side *side)
{
    enum { MOST = PANDA_FRAGMENT + PANDA_TRAILER };
    f->in = myri_host_take(side->host, MOST, 0);
    return myri_ether_open(&f->port, side->host, MOST);
}

int panda_open_on(struct panda_on *o, struct myri_side *side, enum panda_below below)
{
    static const struct panda_fm *const on[] = {&on_fmmc, &on_fm1, &on_flip};
    uint32_t largest = side->largest;
    o->panda.fm = on[below];
    o->panda.below = below == PANDA_ON_FMMC  ? (void *)&o->fmmc
                     : below == PANDA_ON_FM1 ? (void *)&o->fm1
                                             : (void *)&o->flip;
    if (panda_init(&o->panda, side) < 0)
        return -1;
    if (below == PANDA_ON_FLIP)
        return open_flip(&o->flip, side);
    side->largest = ((largest + 3) & ~3u) + PANDA_ROOM; /* of FM's messages */
    if (below == PANDA_ON_FM1) {
        o->fm1.owner = &o->panda;
        o->fm1.handler[FOR_PANDA] = fm1_came;
        o->fm1.polls = 1;
        return fm1_initialize(&o->fm1, side);
    }
    o->fmmc.owner = &o->panda;
    o->fmmc.handler[FOR_PANDA] = fmmc_came;
    int notify = side->notify;
    side->notify = !o->panda.lacks.threads; /* until the program waits */
    int rc = fmmc_initialize(&o->fmmc, side, FMMC_FRAGMENT);
    side->notify = notify;
    return rc;
}
