/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_poll.c - the shared-memory transport, whose peer is no transport but writes what it likes into its part of the
 * segment, its version and its armed word included. What is polled and reserved must lie inside the segment, and a peer
 * that is broken stays so. */
#include "fuzz/input.h"
#include "job/job.h"
#include "transport/shm/pair.h"
#include "transport/shm/shm.h"

enum { STEPS = 200, VIEWS = 16 };

struct world {
    rnl_hub *hub;
    struct rnl_env *env[2];
    struct rnl_transport *t;
    struct rnl_pair liar;        /* rank 1's, written by hand */
    const struct rnl_side *ours; /* rank 0's side and far part */
    struct rnl_view view[VIEWS];
    int views, broken;
    uint64_t said[RNL_LANES]; /* the next line it says something in */
};

static int inside(const void *at, size_t n, const void *from, size_t bytes)
{
    uintptr_t a = (uintptr_t)at, f = (uintptr_t)from;
    return a >= f && n <= bytes && a - f <= bytes - n;
}

static void say(struct world *w, struct fuzz_input *in)
{
    unsigned lane = fuzz_below(in, RNL_LANES);
    unsigned big = fuzz_below(in, 2);
    const struct rnl_tx *t = &w->liar.tx[lane];
    struct rnl_line *ring = big && lane == 0 ? (struct rnl_line *)(void *)w->liar.far_mine : t->ring;
    uint64_t wrap = big && lane == 0 ? RNL_WRAP(RNL_BIG) : t->wrap, start = w->said[lane];
    struct rnl_line *line = rnl_line_of(ring, wrap, start);
    rnl_head h = rnl_head_key(fuzz_below(in, RNL_LINE_KINDS), 0, 0);
    unsigned n = 1, flip;
    if (RNL_HEAD_KIND(h) == RNL_LINE_EXTENT) {
        struct rnl_extent e;
        e.start = fuzz_number(in, 0);
        e.reserved = (uint32_t)fuzz_number(in, 128);
        e.published = (uint32_t)fuzz_number(in, 128);
        e.answer = fuzz_below(in, 8) == 7;
        e.flags = fuzz_below(in, 4) ? 7 : fuzz_below(in, 32);
        e.bound = fuzz_below(in, 8) ? e.published : fuzz_number(in, e.published);
        memcpy(line->payload, &e, sizeof e);
        h |= rnl_head_key(0, 0, sizeof e);
    } else {
        n = 1 + fuzz_below(in, 7);
        h |= rnl_head_key(0, fuzz_below(in, 16) == 15, 0);
        h |= rnl_head_key(0, 0, fuzz_below(in, 64));
        fuzz_bytes(in, line->payload, 4);
    }
    h |= (rnl_head)(uint16_t)fuzz_number(in, w->liar.rx[lane].pos) << 16;
    h |= (rnl_head)fuzz_below(in, 4) << 32;
    flip = fuzz_below(in, 256);
    if (flip < 64)
        h ^= (rnl_head)1 << flip;
    atomic_store_explicit(&line->head, h | (uint16_t)(start + n), memory_order_release);
    if (fuzz_below(in, 4))
        w->said[lane] = start + 8;
}

static void scribble(struct world *w, struct fuzz_input *in)
{
    struct rnl_side *s = w->liar.mine;
    struct rnl_back *back = &s->back[fuzz_below(in, RNL_LANES)];
    uint64_t word;
    switch (fuzz_below(in, 8)) {
    case 0:
        atomic_store(&s->version, (uint32_t)fuzz_number(in, RNL_SIDE_VERSION));
        break;
    case 1:
        atomic_store(&s->armed, (uint32_t)fuzz_number(in, RNL_ARMED_LINES | RNL_ARMED_FD));
        break;
    case 2:
        atomic_store(&s->senders_fence, (uint32_t)fuzz_number(in, 1));
        break;
    case 3:
        atomic_store(&back->position, fuzz_number(in, w->liar.rx[0].pos));
        break;
    case 4:
        atomic_store(&back->granted, fuzz_number(in, 4096));
        break;
    case 5:
        atomic_store(&back->bulk_read, fuzz_number(in, 0));
        break;
    default:
        fuzz_bytes(in, &word, sizeof word);
        memcpy((unsigned char *)s + (size_t)fuzz_below(in, sizeof *s / 8) * 8, &word, sizeof word);
        break;
    }
}

static void reserve(struct world *w, struct fuzz_input *in)
{
    static const uint32_t lengths[] = {1, 8, 40, 56, 57, 1000, 40000, RNL_SHM_MTU};
    struct rnl_room room[4];
    uint32_t used[4], bytes = lengths[fuzz_below(in, 8)];
    unsigned lane = fuzz_below(in, RNL_LANES);
    int got = w->t->ops->reserve(w->t, 1, lane, bytes, room, 1 + (int)fuzz_below(in, 4));
    if (got < 0) {
        FUZZ_MUST(got == RNL_ERR_PEER_BROKEN);
        w->broken = 1;
        return;
    }
    FUZZ_MUST(!w->broken);
    for (int i = 0; i < got; i++) {
        const unsigned char *far = (const unsigned char *)w->liar.far_theirs;
        FUZZ_MUST(inside(room[i].at, bytes, w->ours, sizeof *w->ours) || inside(room[i].at, bytes, far, RNL_FAR_BYTES));
        used[i] = fuzz_below(in, 4) ? bytes : fuzz_below(in, bytes < 256 ? bytes : 256);
        memset(room[i].at, 0x5a, used[i]);
    }
    if (fuzz_below(in, 4) == 0)
        scribble(w, in); /* between the two */
    if (got > 0)
        got = w->t->ops->commit(w->t, 1, lane, room, used, got, 0);
    FUZZ_MUST(got >= 0 || got == RNL_ERR_PEER_BROKEN);
    w->broken |= got < 0;
}

static void poll_some(struct world *w, struct fuzz_input *in)
{
    volatile unsigned char sum = 0;
    int n = 1 + (int)fuzz_below(in, VIEWS), got;
    if (w->views) { /* some of them, in order, or all */
        w->t->ops->release(w->t, w->view, w->views);
        if (fuzz_below(in, 8) == 0)
            w->t->ops->release(w->t, w->view, w->views); /* does nothing */
    }
    got = w->t->ops->poll(w->t, w->view, n, 0);
    FUZZ_MUST(got >= 0 && got <= n && (got == 0 || !w->broken));
    for (int i = 0; i < got; i++) {
        const struct rnl_view *v = &w->view[i];
        FUZZ_MUST(v->peer == 1 && v->lane < RNL_LANES && v->bytes > 0 && v->bytes <= RNL_SHM_MTU);
        FUZZ_MUST(inside(v->at, v->bytes, w->liar.mine, sizeof *w->liar.mine) ||
                  inside(v->at, v->bytes, w->liar.far_mine, RNL_FAR_BYTES));
        for (uint32_t k = 0; k < v->bytes; k += 61)
            sum = (unsigned char)(sum + ((const unsigned char *)v->at)[k]);
    }
    w->views = got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    struct world w = {.views = 0};
    FUZZ_MUST(rnl_hub_new(2, &w.hub) == 0);
    for (uint32_t i = 0; i < 2; i++)
        FUZZ_MUST(rnl_hub_env(w.hub, i, 0, &w.env[i]) == 0);
    FUZZ_MUST(rnl_shm_transport_new(w.env[0], &w.t) == 0);
    FUZZ_MUST(rnl_pair_open(&w.liar, w.env[1], 0, UINT64_MAX) == 0);
    FUZZ_MUST(w.t->ops->connect(w.t, 1, NULL, 0) == 0);
    w.ours = w.liar.theirs;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        w.said[lane] = RNL_LINE_START(w.liar.tx[lane].pos);
    for (int i = 0; i < STEPS && fuzz_more(&in); i++) {
        unsigned what = fuzz_below(&in, 12);
        if (what < 5)
            say(&w, &in);
        else if (what < 7)
            scribble(&w, &in);
        else if (what < 10)
            poll_some(&w, &in);
        else if (what == 10)
            reserve(&w, &in);
        else
            FUZZ_MUST(w.t->ops->arm(w.t) >= 0);
    }
    FUZZ_MUST(w.t->ops->disconnect(w.t, 1) == 0);
    rnl_pair_close(&w.liar);
    w.t->ops->close(w.t);
    for (int i = 0; i < 2; i++)
        w.env[i]->ops->close(w.env[i]);
    rnl_hub_free(w.hub);
    return 0;
}
