/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_onesided.c - ranks that access each other's windows as a seed says, while each remembers what the windows of
 * the others have to hold: vproc-onesided.so SEED [STEPS].
 *
 * Each rank offers two windows. In the first one each importer has a slice, whose bytes it alone writes, by puts of any
 * kind and length and by atomics of the first word, and a word that all add to. In the second one, which is revoked and
 * offered again meanwhile, importers put words that tell who wrote them when. After a quiet an importer tells the owner
 * what has to be there. */
#include <runnel/window.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEADY = 1,
    REVOKED = 2,
    END = 1,
    LOOK,
    LOOKED,
    RANKS = 16,
    SLICE = 24576,
    LONGEST = 20000,
    WORDS = 512,
    OPEN_MAX = 64
};
static const int64_t limit_ns = 60000000000;

struct account { /* what a rank has done to a window, as it tells its owner */
    uint64_t hash, notes, adds;
};
struct open_put {
    rnl_token token;
    unsigned char *bytes;
};

static rnl_endpoint *ep;
static unsigned rank, size, ends, looked;
static uint64_t chance;
static unsigned char *own;
static uint64_t *words, notes[RANKS];
static rnl_window *steady, *revoked;
static rnl_import *theirs[RANKS], *words_of[RANKS];
static unsigned char *model[RANKS];
static struct account done[RANKS], told[RANKS], before_end[RANKS];
static uint64_t seen[RANKS], written; /* the greatest value of the shared word; the last word that was put */
static struct open_put opened[OPEN_MAX];
static unsigned revokes, lost;

static _Noreturn void wrong(const char *what, uint64_t n)
{
    printf("wrong: rank %u: %s, %llu: %s\n", rank, what, (unsigned long long)n, rnl_last_error()->text);
    fflush(stdout);
    exit(1);
}

static void need(int64_t status, const char *what)
{
    if (status < 0)
        wrong(what, (uint64_t)-status);
}

static unsigned draw(unsigned below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (unsigned)(chance >> 20) % below;
}

static uint64_t hash_of(const unsigned char *at, size_t n)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * 1099511628211u;
    return h;
}

static size_t slice(unsigned of)
{
    return 64 + (size_t)of * SLICE;
}

static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    (void)ctx;
    if (w != steady || n < 8 || offset < slice(peer) || offset + n > slice(peer + 1))
        wrong("a notification of what was not put", peer);
    notes[peer]++;
}

static int on_end(const void *data, size_t n, unsigned peer, void *ctx)
{
    (void)ctx;
    if (n != sizeof *told)
        wrong("an account of a wrong length", n);
    memcpy(&told[peer], data, n);
    ends++;
    return 0;
}

/* What an importer says after a quiet is true by then. */
static int on_look(const void *data, size_t n, unsigned peer, void *ctx)
{
    uint64_t sum = 0, adds;
    (void)ctx;
    if (n != sizeof *told)
        wrong("an account of a wrong length", n);
    memcpy(&before_end[peer], data, n);
    for (unsigned r = 0; r < size; r++)
        sum += before_end[r].adds;
    memcpy(&adds, own, sizeof adds);
    if (adds < sum)
        wrong("after a quiet the shared word lacks what was added", peer);
    if (hash_of(own + slice(peer), SLICE) != before_end[peer].hash)
        wrong("after a quiet a slice differs from what was put", peer);
    need(rnl_send(ep, peer, LOOKED, NULL, 0), "send");
    return 0;
}

static int on_looked(const void *data, size_t n, unsigned peer, void *ctx)
{
    (void)data, (void)n, (void)peer, (void)ctx;
    looked++;
    return 0;
}

static void progress(int64_t ns)
{
    int64_t did = rnl_wait(ep, ns);
    if (did != RNL_TIMED_OUT)
        need(did, "wait");
}

static void settle(struct open_put *p)
{
    int state;
    if (!p->bytes)
        return;
    while ((state = rnl_token_state(&p->token)) == 1)
        progress(limit_ns);
    need(state, "an asynchronous put");
    free(p->bytes);
    p->bytes = NULL;
}

/* ---- the steps ---- */

static void put(unsigned to)
{
    const size_t most = draw(4) ? 200 : LONGEST, n = 8 + draw((unsigned)most), at = 8 + draw((unsigned)(SLICE - 8 - n));
    const unsigned flags = draw(4) ? 0 : RNL_PUT_NOTIFY;
    struct open_put *p = &opened[draw(OPEN_MAX)];
    unsigned char *bytes = malloc(n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)draw(256);
    memcpy(model[to] + at, bytes, n);
    done[to].notes += flags != 0;
    if (draw(2)) {
        need(rnl_put(theirs[to], slice(rank) + at, bytes, n, flags), "put");
        free(bytes);
        return;
    }
    settle(p);
    int status;
    while ((status = rnl_put_async(theirs[to], slice(rank) + at, bytes, n, flags, &p->token)) == RNL_NO_ROOM)
        progress(1000000);
    need(status, "put_async");
    p->bytes = bytes;
}

static void get(unsigned from)
{
    static unsigned char back[SLICE];
    const size_t n = 1 + draw(draw(4) ? 200 : LONGEST), at = draw((unsigned)(SLICE - n));
    need(rnl_get(theirs[from], slice(rank) + at, back, n), "get");
    for (size_t i = 0; i < n; i++)
        if (back[i] != model[from][at + i])
            wrong("a byte that was got differs from what was put", at + i);
}

static void quiet(unsigned to)
{
    const unsigned before = looked;
    const int status = rnl_quiet(ep, to, limit_ns);
    lost += status == RNL_ERR_REVOKED;
    if (status != RNL_ERR_REVOKED)
        need(status, "quiet");
    done[to].hash = hash_of(model[to], SLICE);
    need(rnl_send(ep, to, LOOK, &done[to], sizeof done[to]), "send");
    while (looked == before)
        progress(limit_ns);
}

static void add(unsigned to)
{
    uint64_t before;
    if (draw(2)) { /* nobody answers these */
        if (draw(2))
            quiet(to);
        for (unsigned n = draw(4); n > 0; n--, done[to].adds++)
            need(rnl_atomic_any(theirs[to], 0, 8, RNL_ATOMIC_ADD, 1, 0, NULL), "add");
        if (draw(2))
            quiet(to);
        return;
    }
    need(rnl_fetch_add(theirs[to], 0, 1, &before), "add");
    if (done[to].adds && before <= seen[to])
        wrong("the shared word went back", before);
    seen[to] = before;
    done[to].adds++;
}

static void swap(unsigned to)
{
    uint64_t was, before, next = (uint64_t)draw(1 << 30) << 8 | 1, expected;
    memcpy(&was, model[to], sizeof was);
    expected = draw(2) ? was : was + 1;
    need(rnl_compare_swap(theirs[to], slice(rank), expected, next, &before), "compare and swap");
    if (before != was)
        wrong("a word that was swapped differs", before);
    if (expected == was)
        memcpy(model[to], &next, sizeof next);
}

/* The words of the second window: a put of a revoked one may be refused or lost, and then it is imported again. */
static void put_words(unsigned to)
{
    uint64_t run[WORDS];
    const unsigned n = 1 + draw(WORDS - 1), at = draw(WORDS - n);
    if (!words_of[to] && rnl_window_import(ep, to, REVOKED, 1000000, &words_of[to], NULL) < 0) {
        words_of[to] = NULL;
        return;
    }
    written++;
    for (unsigned i = 0; i < n; i++)
        run[i] = (uint64_t)(rank + 1) << 32 | written;
    const int status = rnl_put(words_of[to], at * sizeof *run, run, n * sizeof *run, 0);
    if (status == RNL_ERR_REVOKED) {
        need(rnl_import_drop(words_of[to]), "drop");
        words_of[to] = NULL;
        return;
    }
    need(status, "put of words");
}

static void offer(rnl_window *w, uint32_t id)
{
    const struct rnl_offer o = {
        .size = sizeof o, .id = id, .flags = draw(2) ? RNL_OFFER_CARRIED : 0, .notify = on_note};
    need(rnl_window_offer(w, &o), "offer");
}

static void revoke(void)
{
    static uint64_t still[WORDS];
    need(rnl_window_revoke(revoked, draw(2) ? 0 : 5000000), "revoke");
    memcpy(still, words, sizeof still);
    progress(draw(2000000));
    if (memcmp(still, words, sizeof still) != 0)
        wrong("a revoked window was written", revokes);
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] >> 32 > size || words[i] >> 32 == rank + 1)
            wrong("a word that nobody has put", words[i]);
    revokes++;
    offer(revoked, REVOKED);
}

static void step(void)
{
    const unsigned peer = (rank + 1 + draw(size - 1)) % size, what = draw(100);
    if (what < 40)
        put(peer);
    else if (what < 60)
        get(peer);
    else if (what < 70)
        add(peer);
    else if (what < 80)
        swap(peer);
    else if (what < 92)
        put_words(peer);
    else if (what < 95)
        quiet(peer);
    else if (what < 96)
        revoke();
    else
        progress(draw(500000));
}

/* ---- the end ---- */

static void compare(void)
{
    uint64_t sum = 0, adds;
    for (unsigned r = 0; r < size; r++) {
        if (r == rank)
            continue;
        while (notes[r] < told[r].notes)
            progress(limit_ns);
        if (notes[r] != told[r].notes)
            wrong("more notifications than there were puts", r);
        if (hash_of(own + slice(r), SLICE) != told[r].hash)
            wrong("a slice differs from what was put", r);
        sum += told[r].adds;
    }
    memcpy(&adds, own, sizeof adds);
    if (adds != sum)
        wrong("the shared word differs from what was added", adds);
}

int main(int argc, char **argv)
{
    void *at;
    need(rnl_open(&ep, NULL), "open");
    rank = rnl_rank(ep);
    size = rnl_size(ep);
    const unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1, steps = argc > 2 ? (unsigned)atoi(argv[2]) : 300;
    if (size < 2 || size > RANKS)
        wrong("ranks", size);
    chance = 0x9e3779b97f4a7c15u * (seed * RANKS + rank + 1);
    need(rnl_handler_whole(ep, END, on_end, NULL, 0), "handler");
    need(rnl_handler_whole(ep, LOOK, on_look, NULL, 0), "handler");
    need(rnl_handler_whole(ep, LOOKED, on_looked, NULL, 0), "handler");
    need(rnl_window_alloc(ep, slice(size), &at, &steady), "alloc");
    own = at;
    need(rnl_window_alloc(ep, WORDS * sizeof *words, &at, &revoked), "alloc");
    words = at;
    offer(steady, STEADY);
    offer(revoked, REVOKED);
    for (unsigned r = 0; r < size; r++)
        if (r != rank) {
            need(rnl_window_import(ep, r, STEADY, limit_ns, &theirs[r], NULL), "import");
            model[r] = calloc(1, SLICE);
        }
    for (unsigned i = 0; i < steps; i++)
        step();
    for (unsigned i = 0; i < OPEN_MAX; i++)
        settle(&opened[i]);
    for (unsigned r = 0; r < size; r++)
        if (r != rank) {
            quiet(r);
            need(rnl_send(ep, r, END, &done[r], sizeof done[r]), "send");
        }
    while (ends < size - 1)
        progress(limit_ns);
    compare();
    printf("rank %u: as it has to be; %u revokes, %u quiets told of a loss\n", rank, revokes, lost);
    fflush(stdout);
    need(rnl_close(ep), "close");
    return 0;
}
