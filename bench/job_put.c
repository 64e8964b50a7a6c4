/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_put.c - windows: puts that go to and fro between two processes, each into the other's window, until they have
 * landed, which the receiver sees in their last word, or until they are used, which is when the receiver has copied
 * them out as well, and sends on what it got; puts that notify; fetch-and-add; gets of what was just written; and how
 * long it takes from nothing to an imported window.
 *
 * The baselines are the same loops in the same two processes over bare shared memory (put_area.h), once for each way to
 * copy. Between hosts there is no such memory: there the baselines are messages of the endpoint. */
#include "baseline_copy.h"
#include "process.h"
#include "put_area.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runnel/window.h"

enum { MESSAGE = 1, GOT = 2, WINDOW = 1, FIRST_IMPORT = 2, WORD = 8 };
enum { BYTES = PUT_BYTES_MAX, AREA = BYTES + 4096 }; /* the word that is added to has a page of its own, */
enum { CALLED = BYTES + 2048 };                      /* with the one that says that there is something to get */
#define LIMIT_NS ((int64_t)50 * 1000 * 1000 * 1000)

static rnl_endpoint *ep;
static rnl_import *theirs;
static unsigned char *source, *copy;      /* BYTES each: what is put; what was copied out */
static unsigned char *own[BY_WINDOW + 1]; /* what the other process writes, by way */
static unsigned char *bare;               /* the other process's, mapped */
static uint64_t turns;                    /* round trips of all orders: the last word of a put */
static uint64_t sums[2];                  /* what was added: bare, by window */
static uint64_t notes, messages, gots, areas;
static uint64_t due_messages, due_gots; /* of an order of gets */
static size_t message_bytes, got_bytes;

struct put_board {
    struct put_name name[2];
    _Atomic uint64_t offered, imported;
};
_Static_assert(sizeof(struct put_board) <= sizeof((struct bench_pair *)0)->board, "fits");

static int failed(struct bench_process *s)
{
    return bench_process_fail(s, "%s", rnl_last_error()->text);
}

static struct put_board *board(const struct bench_process *s)
{
    return (struct put_board *)(void *)s->pair->board;
}

/* ---- the processes ---- */

static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    (void)ctx, (void)w, (void)peer, (void)offset, (void)n;
    notes++;
}

static int on_message(rnl_stream *m, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    if (rnl_receive(m, own[BY_MESSAGE], message_bytes) == 0)
        messages++;
    return RNL_DONE;
}

/* Bytes that were asked for: what a get is measured against between hosts. */
static int on_got(rnl_stream *m, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    if (rnl_receive(m, copy, got_bytes) == 0)
        gots++;
    return RNL_DONE;
}

static int look(struct bench_process *s)
{
    return rnl_extract(ep, ~(size_t)0) < 0 ? failed(s) : 0;
}

/* Both are here; calls the library meanwhile. */
static int meet(struct bench_process *s)
{
    bench_meet_begin(s->pair, &s->meet_count);
    while (!bench_met(s->pair, s->meet_count)) {
        if (look(s))
            return -1;
        bench_relax(s);
    }
    return 0;
}

static int open_bare(struct bench_process *s)
{
    struct put_board *b = board(s);
    void *at;
    int file, e = put_area_make(AREA, &at, &file);
    if (e)
        return bench_process_fail(s, "no shared memory: %s", strerror(-e));
    put_area_publish(&b->name[s->rank], file, ++areas);
    own[BARE_PLAIN] = own[BARE_STRING] = own[BARE_STREAM] = at;
    if (meet(s))
        return -1;
    e = put_area_map(&b->name[!s->rank], AREA, &at);
    if (e)
        return bench_process_fail(s, "cannot map the memory of the other process: %s", strerror(-e));
    bare = at;
    if (meet(s))
        return -1;
    close(file);
    return 0;
}

static int open_put(struct bench_process *s)
{
    const uint32_t flags = s->area->net.udp ? RNL_OFFER_CARRIED : 0; /* as if they were on two hosts */
    const struct rnl_offer offer = {.size = sizeof offer, .id = WINDOW, .flags = flags, .notify = on_note};
    void *at;
    rnl_window *w;
    source = aligned_alloc(4096, BYTES);
    copy = aligned_alloc(4096, BYTES);
    own[BY_MESSAGE] = aligned_alloc(4096, BYTES);
    if (!source || !copy || !own[BY_MESSAGE])
        return bench_process_fail(s, "no memory for three buffers of %d bytes", BYTES);
    if (rnl_open(&ep, NULL))
        return failed(s);
    s->rank = rnl_rank(ep);
    if (bench_process_check_size(s, rnl_size(ep)))
        return -1;
    if (rnl_handler_stream(ep, MESSAGE, on_message, NULL) < 0 || rnl_handler_stream(ep, GOT, on_got, NULL) < 0 ||
        rnl_window_alloc(ep, AREA, &at, &w) < 0 || rnl_window_offer(w, &offer) < 0)
        return failed(s);
    own[BY_WINDOW] = at;
    if (bench_connect_native(s, ep, rnl_size(ep)))
        return -1;
    if (rnl_window_import(ep, !s->rank, WINDOW, LIMIT_NS, &theirs, NULL) < 0)
        return failed(s);
    if (meet(s)) /* also between hosts, where nobody looks into the other's memory */
        return -1;
    return s->area->net.udp ? 0 : open_bare(s);
}

static void close_put(struct bench_process *s)
{
    if (rnl_close(ep))
        failed(s);
    free(source);
    free(copy);
    free(own[BY_MESSAGE]);
}

/* ---- puts ---- */

static inline _Atomic uint64_t *word_at(unsigned char *at)
{
    return (_Atomic uint64_t *)(void *)at;
}

/* Puts n bytes, of which the last word says the turn. */
static inline __attribute__((always_inline)) int put(struct bench_process *s, unsigned char *from, size_t n,
                                                     enum put_way way, baseline_copy *by, uint64_t turn)
{
    rnl_stream *m;
    memcpy(from + n - WORD, &turn, WORD);
    if (way == BY_WINDOW)
        return rnl_put(theirs, 0, from, n, 0) < 0 ? failed(s) : 0;
    if (way == BY_MESSAGE) {
        const struct rnl_message b = {.peer = !s->rank, .handler = MESSAGE, .bound = n};
        return rnl_begin(ep, &b, &m) < 0 || rnl_piece(m, from, n) < 0 || rnl_end(m) < 0 ? failed(s) : 0;
    }
    if (n > WORD)
        by(bare, from, n - WORD);
    atomic_store_explicit(word_at(bare + n - WORD), turn, memory_order_release); /* pairs with the load of `await` */
    return 0;
}

/* Until the put of this turn is here. quiet: nothing of the library has to move for it. */
static inline __attribute__((always_inline)) int await(struct bench_process *s, size_t n, enum put_way way, bool quiet,
                                                       uint64_t turn)
{
    const _Atomic uint64_t *last = word_at(own[way] + n - WORD);
    while (way == BY_MESSAGE ? messages < turn
                             : atomic_load_explicit(last, memory_order_acquire) != turn) { /* pairs with the put's */
        if (!quiet && look(s))
            return -1;
        if (s->one_core)
            sched_yield();
    }
    return 0;
}

static inline __attribute__((always_inline)) int trips(struct bench_process *s, uint64_t count, size_t n,
                                                       enum put_way way, baseline_copy *by, bool used, bool quiet)
{
    unsigned char *from = used ? copy : source;
    for (uint64_t i = 0; i < count; i++) {
        turns++;
        for (unsigned turn = 0; turn < 2; turn++) {
            if (turn == s->rank) {
                if (put(s, from, n, way, by, turns))
                    return -1;
            } else {
                if (await(s, n, way, quiet, turns))
                    return -1;
                if (used)
                    memcpy(copy, own[way], n);
            }
        }
    }
    return 0;
}

/* The bytes before the last word are those that rank 0 began with, and have crossed as often as there were puts. */
static int check(struct bench_process *s, size_t n, enum put_way way, bool used, uint64_t seed)
{
    const unsigned char *at = used ? copy : own[way];
    if (n > WORD && !bench_filled(at, n - WORD, seed))
        return bench_process_fail(s, "bytes of a put of %zu bytes differ from what was put", n);
    return 0;
}

static int run_put(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    enum put_way way = (enum put_way)o->variant;
    bool used = o->test == BENCH_PUT_USED,
         quiet = way < BY_MESSAGE || (way == BY_WINDOW && rnl_import_is_direct(theirs));
    baseline_copy *by = way < BY_MESSAGE ? baseline_copy_way((enum baseline_copy_way)way) : NULL;
    size_t n = o->bytes;
    uint64_t seed = turns + 1, t0 = 0;
    if (n < WORD || n > BYTES || (way < BY_MESSAGE && !by))
        return bench_process_fail(s, "an order asks for a put of %zu bytes in a way that is not there", n);
    bench_fill(source, n, seed);
    bench_fill(copy, n, seed);
    memset(own[way], 0, n);
    message_bytes = n;
    messages = turns;
    for (int timed = 0; timed < 2; timed++) {
        uint64_t count = timed ? o->count : o->count / 8 + 2;
        if (meet(s))
            return -1;
        t0 = bench_now_ns();
        int e = way == BY_WINDOW && n == WORD && quiet ? trips(s, count, WORD, BY_WINDOW, NULL, used, true)
                : way == BY_WINDOW                     ? trips(s, count, n, BY_WINDOW, NULL, used, quiet)
                : way == BY_MESSAGE                    ? trips(s, count, n, BY_MESSAGE, NULL, used, false)
                : n == WORD                            ? trips(s, count, WORD, BARE_PLAIN, by, used, true)
                                                       : trips(s, count, n, BARE_PLAIN, by, used, true);
        if (e)
            return -1;
        a->value = (double)(bench_now_ns() - t0) / (double)count / 2;
    }
    return meet(s) ? -1 : check(s, n, way, used, seed);
}

/* ---- notifications and atomics ---- */

static int run_notify(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    bool window = o->variant == BY_WINDOW;
    uint64_t *seen = window ? &notes : &messages, t0 = 0;
    message_bytes = WORD;
    messages = turns;
    notes = turns;
    for (int timed = 0; timed < 2; timed++) {
        uint64_t count = timed ? o->count : o->count / 8 + 2;
        if (meet(s))
            return -1;
        t0 = bench_now_ns();
        for (uint64_t i = 0; i < count; i++) {
            turns++;
            for (unsigned turn = 0; turn < 2; turn++) {
                if (turn == s->rank) {
                    int e = window ? rnl_put(theirs, 0, &turns, WORD, RNL_PUT_NOTIFY)
                                   : rnl_send(ep, !s->rank, MESSAGE, &turns, WORD);
                    if (e < 0)
                        return failed(s);
                } else {
                    while (*seen < turns)
                        if (look(s))
                            return -1;
                }
            }
        }
        a->value = (double)(bench_now_ns() - t0) / (double)count / 2;
    }
    return meet(s);
}

static int await_message(struct bench_process *s)
{
    for (due_messages++; messages < due_messages;)
        if (look(s))
            return -1;
    return 0;
}

static int send_word(struct bench_process *s, const uint64_t *word)
{
    return rnl_send(ep, !s->rank, MESSAGE, word, WORD) < 0 ? failed(s) : 0;
}

/* Each adds 1 to a word of the other, once the other has added to its own. Who adds learns what was there before; so
 * the messages that this is compared with are two, one that asks and one that answers. */
static int run_add(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    enum put_way way = (enum put_way)o->variant;
    bool window = way == BY_WINDOW, quiet = !window || rnl_import_is_direct(theirs);
    uint64_t t0 = 0, before, wanted = way == BY_MESSAGE ? 0 : sums[window];
    messages = due_messages = 0;
    message_bytes = WORD;
    for (int timed = 0; timed < 2; timed++) {
        uint64_t count = timed ? o->count : o->count / 8 + 2;
        if (meet(s))
            return -1;
        t0 = bench_now_ns();
        for (uint64_t i = 0; i < count; i++) {
            wanted++;
            for (unsigned turn = 0; turn < 2; turn++) {
                if (way == BY_MESSAGE) {
                    if (turn == s->rank ? send_word(s, &wanted) || await_message(s)
                                        : await_message(s) || send_word(s, &wanted))
                        return -1;
                } else if (turn == s->rank && window) {
                    if (rnl_fetch_add(theirs, BYTES, 1, &before) < 0)
                        return failed(s);
                } else if (turn == s->rank) {
                    (void)atomic_fetch_add_explicit(word_at(bare + BYTES), 1, memory_order_seq_cst);
                } else {
                    while (atomic_load_explicit(word_at(own[way] + BYTES), memory_order_acquire) != wanted) {
                        if (!quiet && look(s))
                            return -1;
                        if (s->one_core)
                            sched_yield();
                    }
                }
            }
        }
        a->value = (double)(bench_now_ns() - t0) / (double)count / 2;
    }
    if (way != BY_MESSAGE)
        sums[window] = wanted;
    return meet(s);
}

/* ---- gets ---- */

/* Each writes n bytes to its own window and says so by a put of a word; the other one gets them. Both is timed. */
static int offer_to_get(struct bench_process *s, enum put_way way, size_t n)
{
    memcpy(own[way], source, n);
    if (way == BY_WINDOW)
        return rnl_put(theirs, CALLED, &turns, WORD, 0) < 0 ? failed(s) : 0;
    if (way < BY_MESSAGE) {
        atomic_store_explicit(word_at(bare + CALLED), turns, memory_order_release); /* as in `put` */
        return 0;
    }
    const struct rnl_message b = {.peer = !s->rank, .handler = GOT, .bound = n};
    rnl_stream *m;
    if (rnl_send(ep, !s->rank, MESSAGE, &turns, WORD) < 0)
        return failed(s);
    for (due_messages++; messages < due_messages;)
        if (look(s))
            return -1;
    return rnl_begin(ep, &b, &m) < 0 || rnl_piece(m, source, n) < 0 || rnl_end(m) < 0 ? failed(s) : 0;
}

static int get(struct bench_process *s, enum put_way way, baseline_copy *by, bool quiet, size_t n)
{
    due_messages++;
    while (way == BY_MESSAGE ? messages < due_messages
                             : atomic_load_explicit(word_at(own[way] + CALLED), memory_order_acquire) != turns) {
        if (!quiet && look(s))
            return -1;
        if (s->one_core)
            sched_yield();
    }
    if (way == BY_WINDOW)
        return rnl_get(theirs, 0, copy, n) < 0 ? failed(s) : 0;
    if (way < BY_MESSAGE) {
        by(copy, bare, n);
        return 0;
    }
    if (rnl_send(ep, !s->rank, MESSAGE, &turns, WORD) < 0)
        return failed(s);
    for (due_gots++; gots < due_gots;)
        if (look(s))
            return -1;
    return 0;
}

static int run_get(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    enum put_way way = (enum put_way)o->variant;
    baseline_copy *by = way < BY_MESSAGE ? baseline_copy_way((enum baseline_copy_way)way) : NULL;
    const bool quiet = way < BY_MESSAGE || (way == BY_WINDOW && rnl_import_is_direct(theirs));
    size_t n = o->bytes;
    uint64_t seed = turns + 1, t0 = 0;
    if (n < WORD || n > BYTES || (way < BY_MESSAGE && !by))
        return bench_process_fail(s, "an order asks for a get of %zu bytes in a way that is not there", n);
    bench_fill(source, n, seed);
    memset(copy, 0, n);
    message_bytes = WORD;
    got_bytes = n;
    messages = gots = due_messages = due_gots = 0;
    for (int timed = 0; timed < 2; timed++) {
        uint64_t count = timed ? o->count : o->count / 8 + 2;
        if (meet(s))
            return -1;
        t0 = bench_now_ns();
        for (uint64_t i = 0; i < count; i++) {
            turns++;
            for (unsigned turn = 0; turn < 2; turn++)
                if (turn == s->rank ? offer_to_get(s, way, n) : get(s, way, by, quiet, n))
                    return -1;
        }
        a->value = (double)(bench_now_ns() - t0) / (double)count / 2;
    }
    if (meet(s))
        return -1;
    return bench_filled(copy, n, seed) ? 0 : bench_process_fail(s, "bytes of a get of %zu bytes differ", n);
}

/* ---- from nothing to an imported window ---- */

static int export_one(struct bench_process *s, bool window, uint32_t id)
{
    struct put_board *b = board(s);
    const struct rnl_offer offer = {.size = sizeof offer, .id = id};
    rnl_window *w = NULL;
    void *at;
    int file = -1, e = 0;
    if (window ? rnl_window_alloc(ep, BYTES, &at, &w) < 0 || rnl_window_offer(w, &offer) < 0
               : (e = put_area_make(BYTES, &at, &file)) != 0)
        return window ? failed(s) : bench_process_fail(s, "no shared memory: %s", strerror(-e));
    if (!window)
        put_area_publish(&b->name[s->rank], file, ++areas);
    while (atomic_load_explicit(&b->imported, memory_order_acquire) != id) { /* pairs with the store of import_one */
        if (window && look(s))
            return -1;
        bench_relax(s);
    }
    if (!window) {
        munmap(at, BYTES);
        close(file);
    }
    return rnl_window_free(w) < 0 ? failed(s) : 0;
}

static int import_one(struct bench_process *s, bool window, uint32_t id, uint64_t published, uint64_t *ns)
{
    struct put_board *b = board(s);
    rnl_import *m = NULL;
    void *at;
    uint64_t t0 = bench_now_ns();
    if (window) {
        if (rnl_window_import(ep, !s->rank, id, LIMIT_NS, &m, NULL) < 0)
            return failed(s);
    } else {
        while (atomic_load_explicit(&b->name[!s->rank].number, memory_order_acquire) !=
               published) /* pairs with publish */
            bench_relax(s);
        int e = put_area_map(&b->name[!s->rank], BYTES, &at);
        if (e)
            return bench_process_fail(s, "cannot map the memory of the other process: %s", strerror(-e));
    }
    *ns += bench_now_ns() - t0;
    if (window)
        rnl_import_drop(m);
    else
        munmap(at, BYTES);
    atomic_store_explicit(&b->imported, id, memory_order_release); /* pairs with the load of export_one */
    return 0;
}

static int run_import(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    static uint32_t id = FIRST_IMPORT;
    static uint64_t published = 1; /* open_bare's was the first */
    bool window = o->variant == BY_WINDOW;
    uint64_t ns = 0;
    for (uint64_t i = 0; i < o->count; i++) {
        id++;
        published += !window;
        if (meet(s))
            return -1;
        if (s->rank ? export_one(s, window, id) : import_one(s, window, id, published, &ns))
            return -1;
    }
    a->value = (double)ns / (double)o->count / 1e3;
    return meet(s);
}

static int run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    switch (o->test) {
    case BENCH_PUT_NOTIFY:
        return run_notify(s, o, a);
    case BENCH_PUT_ADD:
        return run_add(s, o, a);
    case BENCH_PUT_GET:
        return run_get(s, o, a);
    case BENCH_PUT_IMPORT:
        return run_import(s, o, a);
    default:
        return run_put(s, o, a);
    }
}

const struct bench_api bench_role_put = {
    .name = "put", .moves_when_called = true, .open = open_put, .close = close_put, .poll = look, .run = run};
