/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replica - a table of counters that every rank has whole, on totally ordered multicast.
 *
 *     runnel run -n 3 replica 1000
 *
 * To add to a counter is a message to the group; each rank changes its table when the message is delivered, which
 * happens everywhere in the same order. So "take the counter, unless it is taken" needs no lock: the first message
 * wins, and all ranks agree which one that was. With --keep-going a rank may die: the others go on. */
#include <runnel/group.h>
#include <stdio.h>
#include <stdlib.h>

enum { HANDLER = 1, KEYS = 64, WAIT_S = 60 };

enum { ADD, TAKE };
struct command {
    uint32_t what, key;
    uint64_t amount;
};
struct table {
    uint64_t counter[KEYS];
    unsigned owner[KEYS]; /* 1 + rank of the first that took it */
    uint64_t hash;        /* of all that happened, in order */
    uint64_t *done;       /* commands of each rank */
    unsigned ranks;
    unsigned char *lives;
};

static void note(struct table *t, uint64_t what)
{
    t->hash = (t->hash ^ what) * 0x100000001b3u;
}

static void apply(rnl_group *g, const struct rnl_group_message *m, void *ctx)
{
    struct table *t = ctx;
    const struct command *c = m->buf;
    (void)g;
    if (m->n != sizeof *c || c->key >= KEYS)
        return;
    if (c->what == ADD)
        t->counter[c->key] += c->amount;
    else if (t->owner[c->key] == 0)
        t->owner[c->key] = 1 + m->sender;
    t->done[m->sender]++;
    note(t, (uint64_t)m->sender << 32 | c->key);
}

static void changed(rnl_group *g, const struct rnl_group_view *v, void *ctx)
{
    struct table *t = ctx;
    (void)g;
    for (unsigned i = 0; i < t->ranks; i++)
        t->lives[i] = 0;
    for (unsigned i = 0; i < v->count; i++)
        t->lives[v->ranks[i]] = 1;
}

/* All commands of all ranks that are in the group have been applied. */
static int is_complete(const struct table *t, unsigned ranks, uint64_t commands)
{
    for (unsigned i = 0; i < ranks; i++)
        if (t->lives[i] && t->done[i] < commands)
            return 0;
    return 1;
}

static int fails(const char *what, int64_t status)
{
    if (status < 0)
        fprintf(stderr, "%s: %s\n", what, rnl_last_error()->text);
    return status < 0;
}

static int run(rnl_endpoint *ep, struct table *t, uint64_t commands)
{
    const unsigned rank = rnl_rank(ep), size = rnl_size(ep);
    struct rnl_group_options opt = {
        .size = sizeof opt, .handler = HANDLER, .deliver = apply, .changed = changed, .ctx = t};
    rnl_group *g;
    if (fails("rnl_group_open", rnl_group_open(ep, &opt, &g)))
        return 1;
    for (uint64_t i = 0; i < commands; i++) {
        const struct command c = {.what = i % 2 ? TAKE : ADD, .key = (uint32_t)(i * 7 % KEYS), .amount = rank + i};
        const struct rnl_buffer piece = {&c, sizeof c};
        if (fails("rnl_group_send", rnl_group_send(g, &piece, 1, 0)))
            return 1;
    }
    while (!is_complete(t, size, commands))
        if (fails("rnl_wait", rnl_wait(ep, WAIT_S * (int64_t)1000000000)))
            return 1;
    uint64_t hash = t->hash;
    for (unsigned i = 0; i < KEYS; i++)
        hash = (hash ^ t->counter[i] ^ t->owner[i]) * 0x100000001b3u;
    printf("rank %u: table %016llx\n", rank, (unsigned long long)hash);
    return fails("rnl_group_leave", rnl_group_leave(g, -1));
}

int main(int argc, char **argv)
{
    uint64_t commands = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    struct table t = {.hash = 1};
    rnl_endpoint *ep;
    if (fails("rnl_open", rnl_open(&ep, NULL)))
        return 1;
    t.ranks = rnl_size(ep);
    t.done = calloc(t.ranks, sizeof *t.done);
    t.lives = calloc(t.ranks, 1);
    int failed = !t.done || !t.lives || run(ep, &t, commands);
    free(t.done);
    free(t.lives);
    return fails("rnl_close", rnl_close(ep)) || failed;
}
