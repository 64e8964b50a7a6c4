/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared memory in the conformance suite: conform_shm hub|threads|three|self [FAULTS]. Besides, peers that break the
 * protocol: they must not hurt anybody but themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conform/conform.h"
#include "conform/faulty.h"
#include "conform/pipe.h"
#include "job/job.h"
#include "transport/shm/pair.h"
#include "transport/shm/shm.h"

static unsigned places;
static const char *faults;

struct hub_net {
    rnl_hub *hub;
    struct rnl_env *env[CONFORM_PLACES];
};

static int make(struct conform_net *net)
{
    static struct hub_net h; /* one at a time */
    int status = rnl_hub_new(places, &h.hub);
    net->state = &h;
    for (uint32_t i = 0; i < places && status == 0; i++) {
        status = rnl_hub_env(h.hub, i, 0, &h.env[i]);
        if (status == 0)
            status = rnl_shm_transport_new(h.env[i], &net->t[i]);
    }
    return status < 0 ? status : faulty_wrap(net, places, faults);
}

static void destroy(struct conform_net *net)
{
    struct hub_net *h = net->state;
    for (uint32_t i = 0; i < places; i++) {
        if (net->t[i])
            net->t[i]->ops->close(net->t[i]);
        h->env[i]->ops->close(h->env[i]);
    }
    rnl_hub_free(h->hub);
}

/* ---- peers that break the protocol ---- */

/* Rank 1 is no transport but a pair that the case writes to by hand. */
struct liar {
    struct rnl_pair pair;
    struct rnl_transport *t; /* rank 0 */
};

static void become_liar(struct conform_case *c, struct liar *l)
{
    struct hub_net *h = c->net.state;
    struct rnl_addr addr;
    c->net.t[1]->ops->close(c->net.t[1]);
    c->net.t[1] = NULL;
    l->t = c->net.t[0];
    assert_int_equal(rnl_pair_open(&l->pair, h->env[1], 0, UINT64_MAX), 0);
    assert_int_equal(c->net.t[2]->ops->address(c->net.t[2], &addr), 0);
    assert_int_equal(l->t->ops->connect(l->t, 1, NULL, 0), 0);
    assert_int_equal(l->t->ops->connect(l->t, 2, &addr, h->env[2]->incarnation), 0);
    assert_int_equal(c->net.t[2]->ops->connect(c->net.t[2], 0, NULL, 0), 0);
}

static void say_line(struct liar *l, unsigned lane, rnl_head key, const void *payload, size_t n)
{
    int fresh = 1;
    struct rnl_tx *t = &l->pair.tx[lane];
    rnl_tx_close_line(t);
    unsigned char *at = rnl_tx_place(t, key, &fresh);
    assert_non_null(at);
    memcpy(at, payload, n);
    rnl_pair_publish(&l->pair, lane, key, at + n, fresh, lane);
    rnl_tx_close_other(t);
}

static void say_extent(struct liar *l, struct rnl_extent e)
{
    say_line(l, 0, rnl_head_key(RNL_LINE_EXTENT, 0, sizeof e), &e, sizeof e);
}

enum { OTHER_VERSION = 18, LIES = 19 };
enum { WHOLE = RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED };

static void lie(struct liar *l, int which)
{
    static const unsigned char bytes[RNL_LINE_PAYLOAD];
    struct rnl_side *side = l->pair.mine;
    const struct rnl_tx *t = &l->pair.tx[0];
    uint64_t next = RNL_LINE_START(t->pos);
    struct rnl_line *first = rnl_line_of(t->ring, t->wrap, next);
    switch (which) {
    case 0: /* items longer than their line */
        atomic_store(&first->head, (uint16_t)(next + 7) | rnl_head_key(RNL_LINE_ITEMS, 0, 60));
        return;
    case 1: /* items of no bytes */
        say_line(l, 0, rnl_head_key(RNL_LINE_ITEMS, 0, 0), bytes, 0);
        return;
    case 2: /* kinds that are no packets */
        say_line(l, 0, rnl_head_key(RNL_LINE_ASK, 0, 16), bytes, 16);
        return;
    case 3:
        say_line(l, 1, rnl_head_key(RNL_LINE_GROW, 0, 0), bytes, 0);
        return;
    case 4:
        say_line(l, 2, rnl_head_key(31, 0, 8), bytes, 8);
        return;
    case 5: /* has read what was never written */
        atomic_store(&first->head, (uint16_t)(next + 1) | (uint64_t)0x7000 << 16 | rnl_head_key(RNL_LINE_ITEMS, 0, 8));
        return;
    case 6: /* a lane that does not exist */
        atomic_store(&first->head, (uint16_t)(next + 1) | (uint64_t)3 << 32 | rnl_head_key(0, 0, 8));
        return;
    case 7: /* a packet beyond the bulk area */
        say_extent(l, (struct rnl_extent){RNL_BULK_BYTES - 64, 4096, 4096, 4096, 0, WHOLE});
        return;
    case 8:
        say_extent(l, (struct rnl_extent){(uint64_t)1 << 40, 64, 64, 64, 0, WHOLE});
        return;
    case 9: /* more published than reserved; off the grid; in parts; empty; too long; another length than announced */
        say_extent(l, (struct rnl_extent){0, 64, 128, 128, 0, WHOLE});
        return;
    case 10:
        say_extent(l, (struct rnl_extent){8, 64, 64, 64, 0, WHOLE});
        return;
    case 11:
        say_extent(l, (struct rnl_extent){0, 64, 64, 64, 0, RNL_EXTENT_FIRST});
        return;
    case 12:
        say_extent(l, (struct rnl_extent){0, 64, 0, 0, 0, WHOLE});
        return;
    case 13:
        say_extent(l, (struct rnl_extent){0, 2 * RNL_SHM_MTU, 2 * RNL_SHM_MTU, 2 * RNL_SHM_MTU, 0, WHOLE});
        return;
    case 14:
        say_extent(l, (struct rnl_extent){0, 64, 64, 63, 0, WHOLE});
        return;
    case 15: /* two packets in one place */
        say_extent(l, (struct rnl_extent){0, 128, 128, 128, 0, WHOLE});
        say_extent(l, (struct rnl_extent){64, 64, 64, 64, 0, WHOLE});
        return;
    case 16: /* a handler: packets have none */
        say_line(l, 0, rnl_head_key(RNL_LINE_ITEMS, 5, 8), bytes, 8);
        return;
    case 17: /* changes rings twice */
        assert_int_equal(rnl_pair_grow_tx(&l->pair), 0);
        say_line(l, 0, rnl_head_key(RNL_LINE_GROW, 0, 0), bytes, 0);
        return;
    case OTHER_VERSION:
        say_line(l, 0, rnl_head_key(RNL_LINE_ITEMS, 0, 8), bytes, 8);
        atomic_store(&side->version, 77);
        return;
    default:
        break;
    }
}

static void serve_rank_2(struct conform_case *c)
{
    struct rnl_transport *a = c->net.t[2], *b = c->net.t[0];
    struct rnl_room room;
    struct rnl_view v;
    const uint32_t used = 8;
    assert_int_equal(a->ops->reserve(a, 0, 0, 8, &room, 1), 1);
    memcpy(room.at, "goes on", 8);
    assert_int_equal(a->ops->commit(a, 0, 0, &room, &used, 1, conform_now(a)), 1);
    assert_int_equal(b->ops->poll(b, &v, 1, conform_now(b)), 1);
    assert_int_equal(v.peer, 2);
    assert_memory_equal(v.at, "goes on", 8);
    b->ops->release(b, &v, 1);
}

static void lies(struct conform_case *c)
{
    for (int which = 0; which < LIES; which++) {
        struct liar l;
        struct rnl_view v[16];
        struct rnl_room room;
        become_liar(c, &l);
        serve_rank_2(c);
        if (which != OTHER_VERSION) {
            assert_int_equal(l.t->ops->reserve(l.t, 1, 0, 8, &room, 1), 1);
            assert_int_equal(l.t->ops->commit(l.t, 1, 0, &room, &(uint32_t){0}, 1, 0), 0);
        }
        lie(&l, which);
        int got = l.t->ops->poll(l.t, v, 16, conform_now(l.t)), status = 0;
        assert_in_range(got, 0, 16);
        l.t->ops->release(l.t, v, got);
        for (unsigned lane = 0; lane < RNL_LANES; lane++) {
            status = l.t->ops->reserve(l.t, 1, lane, 8, &room, 1);
            if (status != RNL_ERR_PEER_BROKEN)
                fail_msg("lie %d was believed (%d)", which, status);
        }
        assert_int_equal(l.t->ops->connect(l.t, 1, NULL, 0), RNL_ERR_PEER_BROKEN);
        serve_rank_2(c);
        assert_int_equal(l.t->ops->disconnect(l.t, 1), 0);
        rnl_pair_close(&l.pair);
        conform_renew(c);
    }
}

static void reads_on(struct liar *l)
{
    struct rnl_rx *r = &l->pair.rx[0];
    for (rnl_head h; (h = rnl_rx_peek(r)) != 0;)
        rnl_rx_read(r, h, RNL_HEAD_N(h));
    rnl_rx_tell(r);
}

static void false_credit(struct conform_case *c)
{
    static const char *const lie_about[] = {"positions", "bulk positions", "grants"};
    for (int which = 0; which < 3; which++) {
        struct liar l;
        struct rnl_room room[4];
        const uint32_t bytes = which == 0 ? 40 : 1000, used[4] = {bytes, bytes, bytes, bytes};
        int got = 0, went;
        become_liar(c, &l);
        struct rnl_back *back = &l.pair.mine->back[0];
        if (which > 0)
            rnl_rx_grant(&l.pair.rx[0], 1 << 20);
        for (int i = 0; i < 5000 && got >= 0; i++) {
            if (which > 0)
                reads_on(&l);
            if (which == 0)
                atomic_store(&back->position, (uint64_t)1 << 50);
            if (which == 1)
                atomic_store(&back->bulk_read, (uint64_t)1 << 50);
            got = l.t->ops->reserve(l.t, 1, 0, bytes, room, 4);
            if (which == 2) /* takes it back while rooms are reserved */
                atomic_store(&back->granted, i % 3 ? 0 : 1 << 20);
            if (got > 0) {
                went = l.t->ops->commit(l.t, 1, 0, room, used, got, conform_now(l.t));
                assert_true(went == got || went == RNL_ERR_PEER_BROKEN);
            }
        }
        if (which < 2 && got != RNL_ERR_PEER_BROKEN)
            fail_msg("false %s were believed", lie_about[which]);
        serve_rank_2(c);
        assert_int_equal(l.t->ops->disconnect(l.t, 1), 0);
        rnl_pair_close(&l.pair);
        conform_renew(c);
    }
}

static const struct conform_body extra[] = {
    {"a peer that breaks the protocol is broken for itself alone", 0, 0, 3, 3, 0, lies},
    {"credit that cannot be true is not used", 0, 0, 3, 3, 0, false_credit},
    {NULL, 0, 0, 0, 0, 0, NULL},
};

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "hub";
    char name[64];
    struct conform_fixture f = {.name = name, .make = make, .destroy = destroy, .extra = extra};
    faults = argc > 2 ? argv[2] : NULL;
    if (faults)
        f.extra = NULL; /* those look below the transport */
    snprintf(name, sizeof name, "shm-%s", kind);
    f.threads = strcmp(kind, "threads") == 0;
    f.places = places = strcmp(kind, "self") == 0 ? 1 : strcmp(kind, "three") == 0 ? 3 : 2;
    return conform_run(&f);
}
