/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.c - few datagrams are under way at a time, so they stand in a plain list. */
#include "flow/pair.h"
#include "support/unit.h"

struct pair *pair_new(uint32_t unit, void (*set)(struct pair *))
{
    struct pair *p = calloc(1, sizeof *p);
    if (!p || upper_keys_init(&p->keys, 1) < 0)
        return NULL;
    p->now = 1000000;
    upper_pair(&p->side[0], &p->side[1], unit);
    for (int i = 0; i < 2; i++)
        rnl_flow_defaults(&p->config[i]);
    if (set)
        set(p);
    for (unsigned i = 0; i < 2; i++) {
        struct rnl_keys k;
        upper_keys_make(&p->keys, &k, 0, i == 0);
        struct rnl_flow_setup setup = {
            .config = &p->config[i],
            .ops = &upper_ops,
            .path = &p->path[i],
            .count = &p->side[i].count,
            .ctx = &p->side[i],
            .connection = i + 1,
            .window_bytes = p->side[!i].window,
            .mtu_bytes = 8972,
            .peer_ack_delay_ns = p->config[!i].ack_delay_ns,
            .sealer = &p->keys.sealer,
            .keys = &k,
        };
        rnl_flow_init(&p->side[i].flow, &setup, p->now);
    }
    return p;
}

void pair_free(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        rnl_flow_fini(&p->side[i].flow);
        assert_int_equal(p->side[i].memory, 0);
        upper_free(&p->side[i]);
    }
    for (unsigned i = 0; i < p->flights; i++)
        free(p->flight[i]);
    upper_keys_free(&p->keys);
    free(p);
}

static void launch(struct pair *p, const struct pair_flight *what, uint64_t at)
{
    assert_true(p->flights < PAIR_FLIGHTS);
    struct pair_flight *f = malloc(sizeof *f);
    memcpy(f, what, offsetof(struct pair_flight, data) + what->bytes);
    f->at = at;
    f->order = p->order++;
    p->flight[p->flights++] = f;
}

static void call(struct pair *p, unsigned side)
{
    static struct pair_flight f;
    struct rnl_flow *flow = &p->side[side].flow;
    while ((f.bytes = rnl_flow_output(flow, f.data, sizeof f.data, p->now)) > 0) {
        struct pair_fate fate = {0};
        f.to = !side;
        f.ecn = rnl_flow_ecn(flow);
        if (p->fate)
            p->fate(p, p->sent, side, &f, &fate);
        p->sent++;
        if (!fate.drop)
            launch(p, &f, p->now + PAIR_DELAY_NS + fate.late_ns);
        if (fate.twice)
            launch(p, &f, p->now + 2 * PAIR_DELAY_NS + fate.late_ns);
    }
}

/* The first datagram that is due for a side that is being called. */
static struct pair_flight *next_of(struct pair *p, unsigned *where)
{
    struct pair_flight *best = NULL;
    for (unsigned i = 0; i < p->flights; i++) {
        struct pair_flight *f = p->flight[i];
        uint64_t at = f->at > p->away_until[f->to] ? f->at : p->away_until[f->to];
        uint64_t best_at = best && best->at < p->away_until[best->to] ? p->away_until[best->to] : best ? best->at : 0;
        if (!best || at < best_at || (at == best_at && f->at < best->at) ||
            (at == best_at && f->at == best->at && f->order < best->order)) {
            best = f;
            *where = i;
        }
    }
    return best;
}

int pair_run(struct pair *p, uint64_t until_ns, int (*done)(struct pair *))
{
    for (;;) {
        uint64_t next = UINT64_MAX;
        unsigned where = 0;
        for (unsigned i = 0; i < 2; i++)
            if (p->now >= p->away_until[i])
                call(p, i);
        if (done && done(p))
            return 1;
        for (unsigned i = 0; i < 2; i++) {
            uint64_t due = rnl_flow_deadline(&p->side[i].flow);
            if (due <= p->now)
                due = p->now + 1;
            if (due < p->away_until[i] && due != UINT64_MAX)
                due = p->away_until[i];
            if (due < next)
                next = due;
        }
        struct pair_flight *f = next_of(p, &where);
        uint64_t arrives = UINT64_MAX;
        if (f)
            arrives = f->at > p->away_until[f->to] ? f->at : p->away_until[f->to];
        if (arrives < next)
            next = arrives;
        if (next > until_ns) {
            p->now = until_ns;
            return 0;
        }
        p->now = next;
        /* A side takes in everything that is there before it is asked for output. */
        while (f && (f->at > p->away_until[f->to] ? f->at : p->away_until[f->to]) <= p->now) {
            p->flight[where] = p->flight[--p->flights];
            if (rnl_flow_input(&p->side[f->to].flow, f->data, f->bytes, f->ecn, p->now) < 0)
                p->broken++;
            free(f);
            f = next_of(p, &where);
        }
    }
}

int pair_all_done(struct pair *p)
{
    return p->side[0].done == p->side[0].known && p->side[1].done == p->side[1].known;
}

void pair_check(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        const char *bad = p->side[i].wrong ? p->side[i].wrong : rnl_flow_valid(&p->side[i].flow);
        if (bad)
            fail_msg("side %d: %s", i, bad);
    }
}
