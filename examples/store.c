/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store - a key-value store: clients read the memory of its keeper and ask the keeper to write.
 *
 *   store &                            keeps the store until it is interrupted; store --anyone: for other users, too
 *   store KEY VALUE                    writes (an empty VALUE removes)
 *   store KEY                          reads
 *   store --times 100000 KEY           reads so often, prints each value that differs from the one before, and the time
 *   store --at USER/store@HOST KEY     the same at another user's store, or at another host's
 *
 * The keeper's table lies in a window. A read is a get of one slot, which takes no time of the keeper; a write is a
 * request with a reply, so the keeper alone changes the table. runnel-window(7) is the tutorial. */
#include <runnel/window.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WRITE = 1, WRITTEN = 2 };                /* handlers */
enum { TABLE = 1, SLOTS = 4096, AGAIN = 1000 }; /* the offer; AGAIN: reads of one slot before the reader gives up */
static const int64_t patience_ns = 5000000000;

struct entry {
    char key[56], value[192]; /* both end with a 0; an empty key: nothing is here */
};
struct slot {
    uint64_t sum; /* of the entry: a slot that is being written does not match */
    struct entry e;
};

static int fail(const char *what)
{
    fprintf(stderr, "store: %s: %s\n", what, rnl_last_error()->text);
    return 1;
}

static uint64_t hash(const void *from, size_t n)
{
    const unsigned char *at = from;
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * 0x100000001b3u;
    return h;
}

static size_t place_of(const char *key)
{
    return hash(key, strlen(key)) % SLOTS;
}

/* ---- the keeper ---- */

static struct entry own[SLOTS]; /* what is true; importers can write into the window, so nothing is read there */
static struct slot *table;      /* the window */

static void publish(size_t i)
{
    struct slot s = {.sum = hash(&own[i], sizeof own[i]), .e = own[i]};
    memcpy(&table[i], &s, sizeof s);
}

/* Returns the slot of the key, or the empty one that it may have; SLOTS: there is none. */
static size_t find(const char *key)
{
    size_t i = place_of(key);
    for (size_t n = 0; n < SLOTS; n++, i = (i + 1) % SLOTS)
        if (own[i].key[0] == '\0' || strcmp(own[i].key, key) == 0)
            return i;
    return SLOTS;
}

/* A request to write. What comes from a peer is checked: its length, and that both strings end. */
static int on_write(rnl_stream *s, unsigned peer, void *ctx)
{
    struct entry e;
    int32_t status = -1;
    size_t i;
    (void)peer, (void)ctx;
    if (rnl_peek(s, NULL) != sizeof e || rnl_receive(s, &e, sizeof e) < 0)
        return RNL_DONE;
    e.key[sizeof e.key - 1] = e.value[sizeof e.value - 1] = '\0';
    if (e.key[0] && (i = find(e.key)) < SLOTS) {
        own[i] = e;
        publish(i);
        status = 0;
    }
    (void)!rnl_reply(s, WRITTEN, &status, sizeof status);
    return RNL_DONE;
}

static void on_death(void *ep, unsigned peer, enum rnl_death_reason why)
{
    (void)why;
    (void)rnl_leave(ep, peer); /* its number may be given to the next one */
}

static int keep(rnl_endpoint *ep, const struct rnl_admit *who)
{
    const struct rnl_offer offer = {.size = sizeof offer, .id = TABLE, .who = who};
    rnl_window *w;
    void *at;
    if (rnl_window_alloc(ep, SLOTS * sizeof *table, &at, &w) < 0)
        return fail("cannot make the table");
    table = at;
    for (size_t i = 0; i < SLOTS; i++)
        publish(i);
    rnl_on_death(ep, on_death, ep);
    if (rnl_window_offer(w, &offer) < 0 || rnl_handler_stream(ep, WRITE, on_write, NULL) < 0 ||
        rnl_serve(ep, "store", who, NULL, NULL) < 0)
        return fail("cannot keep a store");
    printf("the store is open\n");
    fflush(stdout);
    while (rnl_wait(ep, -1) >= 0)
        ;
    return fail("cannot go on");
}

/* ---- who writes ---- */

static int32_t written = 1; /* 1 = not yet */

static int on_written(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    if (rnl_receive(s, &written, sizeof written) < 0 || written > 0)
        written = -1;
    return RNL_DONE;
}

static int write_entry(rnl_endpoint *ep, unsigned keeper, const struct entry *e)
{
    const struct rnl_message ask = {.peer = keeper, .handler = WRITE, .bound = sizeof *e, .answer = sizeof written};
    rnl_stream *s;
    written = 1;
    if (rnl_begin(ep, &ask, &s) < 0 || rnl_piece(s, e, sizeof *e) < 0 || rnl_end(s) < 0)
        return fail("cannot ask");
    while (written > 0)
        if (rnl_wait(ep, patience_ns) < 0)
            return fail("the keeper does not answer");
    if (written == 0)
        return 0;
    fprintf(stderr, "store: there is no room for '%s': the store has %d keys\n", e->key, SLOTS);
    return 1;
}

/* ---- who reads ---- */

static unsigned again;

/* Copies a slot that nobody was writing meanwhile: its sum is right. */
static int read_slot(rnl_endpoint *ep, rnl_import *m, size_t i, struct slot *s)
{
    for (unsigned n = 0; n < AGAIN; n++) {
        if (rnl_get(m, i * sizeof *s, s, sizeof *s) < 0)
            return fail("cannot read");
        if (s->sum == hash(&s->e, sizeof s->e)) {
            s->e.key[sizeof s->e.key - 1] = s->e.value[sizeof s->e.value - 1] = '\0';
            return 0;
        }
        again++;
        int64_t status = rnl_wait(ep, 1000000); /* learns of the keeper's death, too */
        if (status < 0 && status != RNL_TIMED_OUT)
            return fail("cannot go on");
    }
    fprintf(stderr, "store: the keeper was stopped or killed while it wrote slot %zu\n", i);
    return 1;
}

static int read_value(rnl_endpoint *ep, rnl_import *m, const char *key, struct slot *s)
{
    size_t i = place_of(key);
    for (size_t n = 0; n < SLOTS; n++, i = (i + 1) % SLOTS) {
        if (read_slot(ep, m, i, s))
            return 1;
        if (strcmp(s->e.key, key) == 0 && s->e.value[0])
            return 0;
        if (s->e.key[0] == '\0' || strcmp(s->e.key, key) == 0)
            break;
    }
    fprintf(stderr, "store: there is no '%s'\n", key);
    return 1;
}

/* ---- the program ---- */

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static int use(rnl_endpoint *ep, const char *service, long times, const struct entry *e, int writes)
{
    struct slot s;
    char last[sizeof e->value] = "";
    unsigned keeper;
    rnl_import *m;
    size_t bytes;
    if (rnl_handler_stream(ep, WRITTEN, on_written, NULL) < 0 || rnl_reach(ep, service, patience_ns, &keeper) < 0)
        return fail("cannot reach the store");
    if (!writes && rnl_window_import(ep, keeper, TABLE, patience_ns, &m, &bytes) < 0)
        return fail("cannot import the table");
    if (!writes && bytes < SLOTS * sizeof s) {
        fprintf(stderr, "store: the table has %zu bytes, not %zu\n", bytes, SLOTS * sizeof s);
        return 1;
    }
    int64_t begin = now_ns();
    for (long i = 0; i < times; i++) {
        if (writes ? write_entry(ep, keeper, e) : read_value(ep, m, e->key, &s))
            return 1;
        if (!writes && strcmp(s.e.value, last) != 0)
            printf("%s\n", strcpy(last, s.e.value));
    }
    if (times > 1)
        printf("%ld %s, %.2f us each, %u again%s\n", times, writes ? "writes" : "reads",
               (double)(now_ns() - begin) / 1e3 / (double)times, again,
               writes                    ? ""
               : rnl_import_is_direct(m) ? ", from mapped memory"
                                         : ", by messages");
    return 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: store [--anyone]\n"
                    "       store [--at SERVICE] [--times N] KEY [VALUE]   (up to 55 and 191 bytes)\n");
    return 2;
}

int main(int argc, char **argv)
{
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE}, *who = NULL;
    const char *service = "store";
    struct entry e = {.key = ""};
    rnl_endpoint *ep;
    long times = 1;
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--anyone") == 0)
            who = &anyone;
        else if (strcmp(argv[i], "--at") == 0 && i + 1 < argc)
            service = argv[++i];
        else if (strcmp(argv[i], "--times") == 0 && i + 1 < argc)
            times = strtol(argv[++i], NULL, 10);
        else
            return usage();
    }
    int words = argc - i, writes = words == 2;
    if (words > 2 || times < 1 || (who && words > 0) ||
        (words > 0 && (argv[i][0] == '\0' || strlen(argv[i]) >= sizeof e.key)) ||
        (writes && strlen(argv[i + 1]) >= sizeof e.value))
        return usage();
    if (words > 0)
        strcpy(e.key, argv[i]);
    if (writes)
        strcpy(e.value, argv[i + 1]);
    if (rnl_open(&ep, &alone) < 0)
        return fail("cannot open an endpoint");
    int status = words == 0 ? keep(ep, who) : use(ep, service, times, &e, writes);
    if (rnl_close(ep) < 0 && status == 0)
        status = fail("close");
    return status;
}
