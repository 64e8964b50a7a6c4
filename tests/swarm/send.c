/* SPDX-License-Identifier: BSD-3-Clause
 *
 * send.c - all the ways in which a host's program sends. Each message is told to the oracle, and whether it is given
 * up. */
#include "swarm/program.h"

#include "runnel/adapter.h"

enum way { SHORT, STREAM, POST, REQUEST, WAYS };

static uint64_t draw_bulk(struct swarm_host *h, uint64_t below)
{
    return swarm_draw(h->w->plan.seed, SWARM_STREAM_FAULT + SWARM_BULK, h->rank, h->drawn_bulk++, below);
}

static uint32_t length(struct swarm_host *h, size_t *left)
{
    const struct swarm_plan *p = &h->w->plan;
    uint64_t most = (uint64_t)1 << draw(h, 20), n;
    if (most > p->longest)
        most = p->longest;
    n = draw(h, most + 1);
    if (n > *left)
        n = *left < RNL_SHORT_MAX ? *left : draw(h, RNL_SHORT_MAX + 1);
    *left -= n;
    return (uint32_t)n;
}

static void pieces(struct swarm_host *h, rnl_stream *s, const struct swarm_letter *l)
{
    int calls = draw(h, 4) == 0, status = 0;
    for (size_t at = 0; at < l->n && status == 0;) {
        size_t n = draw(h, 2) ? l->n - at : 1 + draw(h, l->n - at);
        if (taken_back(h) && at == 0 && n < TELLING)
            n = TELLING;
        status = rnl_piece(s, test_pattern(l->id, at), n);
        at += n;
        if (calls && draw(h, 4) == 0)
            extracts(h);
    }
    int ended = rnl_end(s);
    if ((status < 0 && !gone(status)) || (ended < 0 && !gone(ended) && !(gone(status) && ended == RNL_ERR_ABORTED)))
        swarm_wrong("rank %u, a message of %u bytes: %d, %d, %s", h->rank, l->n, status, ended, rnl_last_error()->text);
}

static void posted(void *arg, int status)
{
    struct swarm_host *h = arg;
    if (status < 0 && !gone(status) && status != RNL_ERR_JOB)
        swarm_wrong("rank %u, a post ends with %d", h->rank, status);
}

/* What becomes of a post of which the program has to know. */
static void ended(void *arg, int status)
{
    struct swarm_host *h = arg;
    h->posts_ended++;
    if (status != RNL_ERR_ABORTED)
        posted(h, status);
}

/* Posts a message on the bulk lane, and withdraws it while it may be sent in part, or whole. */
static void send_cut(struct swarm_host *h, unsigned to, uint32_t n)
{
    const struct rnl_message b = {.peer = to, .handler = H_BULK_CUT, .bound = n, .flags = RNL_BULK};
    struct swarm_letter l = swarm_sent(swarm_bulk(oracle(h)), h->rank, to, n, H_BULK_CUT, 0);
    const struct rnl_buffer p = {test_pattern(l.id, 0), n};
    const uint64_t before = h->posts_ended;
    rnl_posted *cut;
    int status = rnl_post_held(h->ep, &b, &p, 1, ended, h, &cut);
    if (status < 0) {
        swarm_unsent(swarm_bulk(oracle(h)), h->rank, to, &l);
        if (!gone(status) && status != RNL_NO_ROOM)
            swarm_wrong("rank %u, a post of %u bytes: %s", h->rank, n, rnl_last_error()->text);
        return;
    }
    for (uint64_t k = draw_bulk(h, 4); k > 0 && h->posts_ended == before; k--)
        extracts(h);
    if (h->posts_ended == before && rnl_cancel(cut) == 1)
        swarm_gives_up(swarm_bulk(oracle(h)), h->rank, to, &l);
}

void swarm_send_post(struct swarm_host *h, unsigned to, uint32_t n)
{
    unsigned handler = lives(h) ? H_STREAM : H_ANEW, flags = 0;
    if (swarm_has(&h->w->plan, SWARM_BULK) && lives(h) && draw_bulk(h, 4)) {
        if (n && draw_bulk(h, 4) == 0) {
            send_cut(h, to, n);
            return;
        }
        handler = n < 64000 && draw_bulk(h, 3) == 0 ? H_BULK_WHOLE : H_BULK, flags = RNL_BULK;
    }
    const struct rnl_message b = {.peer = to, .handler = handler, .bound = n, .flags = flags};
    struct swarm_letter l = swarm_sent(lane_of(h, handler), h->rank, to, n, handler, 0);
    const struct rnl_buffer p = {test_pattern(l.id, 0), n};
    int status = rnl_post(h->ep, &b, &p, 1, posted, h);
    if (status == 0)
        return;
    swarm_unsent(lane_of(h, handler), h->rank, to, &l);
    if (!gone(status) && status != RNL_NO_ROOM)
        swarm_wrong("rank %u, a post of %u bytes: %s", h->rank, n, rnl_last_error()->text);
}

static void send_short(struct swarm_host *h, unsigned to, uint32_t n)
{
    unsigned handler = draw(h, 2) ? H_STREAM : H_WHOLE;
    struct swarm_letter l = swarm_sent(oracle(h), h->rank, to, n, handler, 0);
    h->sending = to + 1;
    int status = rnl_send(h->ep, to, handler, test_pattern(l.id, 0), n);
    h->sending = 0;
    if (status == 0)
        return;
    swarm_unsent(oracle(h), h->rank, to, &l);
    if (!gone(status))
        swarm_wrong("rank %u, %u bytes: %s", h->rank, n, rnl_last_error()->text);
}

static void send_stream(struct swarm_host *h, unsigned to, uint32_t n, uint32_t answer)
{
    unsigned handler = draw(h, 2) || answer || n > 64000 ? H_STREAM : H_WHOLE;
    const struct rnl_message b = {
        .peer = to, .handler = handler, .bound = n + draw(h, 2) * draw(h, 100), .answer = answer};
    rnl_stream *s;
    int status = rnl_begin(h->ep, &b, &s);
    if (gone(status))
        return;
    must(h, status, "begin");
    h->asked += answer != 0;
    struct swarm_letter l = swarm_sent(oracle(h), h->rank, to, n, handler, answer);
    pieces(h, s, &l);
}

/* Some of a message; then it is given up. */
static void send_part(struct swarm_host *h, unsigned to, uint32_t n)
{
    const struct rnl_message b = {.peer = to, .handler = H_GIVEN_UP, .bound = (size_t)n + PIECE_MAX};
    rnl_stream *s;
    int status = rnl_begin(h->ep, &b, &s);
    if (gone(status))
        return;
    must(h, status, "begin");
    struct swarm_letter l = swarm_sent(oracle(h), h->rank, to, n, H_GIVEN_UP, 0);
    swarm_gives_up(oracle(h), h->rank, to, &l);
    for (size_t at = 0; at < l.n && status == 0;) {
        size_t piece = 1 + draw(h, l.n - at);
        status = rnl_piece(s, test_pattern(l.id, at), piece);
        at += piece;
        if (draw(h, 3) == 0)
            extracts(h);
    }
    if (status < 0 && !gone(status))
        swarm_wrong("rank %u, part of a message: %s", h->rank, rnl_last_error()->text);
    must(h, rnl_abort(s), "abort");
}

void swarm_sends_to(struct swarm_host *h, unsigned to, size_t *left)
{
    const struct swarm_plan *p = &h->w->plan;
    unsigned way = (unsigned)draw(h, WAYS);
    uint32_t n = least(h, length(h, left));
    if (to == h->rank)
        return;
    if (p->pattern == SWARM_PINGPONG && draw(h, 4))
        way = REQUEST;
    if (swarm_has(p, SWARM_ABORT) && draw(h, 3) == 0)
        send_part(h, to, n);
    else if (way == SHORT && n <= RNL_SHORT_MAX)
        send_short(h, to, n);
    else if (way == POST)
        swarm_send_post(h, to, n);
    else
        send_stream(h, to, n, way == REQUEST && lives(h) ? 1 + (uint32_t)draw(h, ANSWER_MAX) : 0);
}
