/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranks.c - what groups promise between processes: a program for launched jobs and for the virtual cluster.
 *
 *     ranks order METHOD COUNT    each rank sends COUNT messages of many lengths
 *     ranks death VICTIM COUNT [METHOD]    the same, and rank VICTIM, if there is one, kills itself on its way
 *     ranks join VICTIM COUNT [METHOD]     the same; the lower half of the ranks joins once the others have sent some
 *     ranks slow                  the last rank takes nothing in for a while
 *     ranks hostile               rank 1 sends what is no message of the protocol
 *     ranks time COUNT METHOD     the last rank sends messages, each once it has got the one before, and then as many
 *                                 as it may; it prints what they take
 *     ranks pace COUNT US         rank 1 sends COUNT messages, and the last rank takes US for each that it delivers; it
 *                                 prints how many rank 1 sent ahead, when it had those back, and what each then took
 *     ranks gap SILENCE [ALONE]   each rank sends now and then, for 8 times SILENCE ms, after which a silent one is
 *                                 dead; it prints the longest time without a delivery, all but that of rank ALONE
 *     ranks astray                rank 1 gives the set of all ranks, and the others one without it: it goes on alone
 *     ranks part                  a group of the odd ranks beside one of all; and one more after it was left
 *
 * Ranks that are in the group to its end print "MODE: rank R agrees on HASH". */
#include <runnel/group.h>

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HANDLER = 3, RANKS = 256, LONGEST = 100000 };

struct state {
    rnl_endpoint *ep;
    uint64_t hash, done[RANKS], total, view_hash, last;
    unsigned in_view, sequencer;
    bool lives[RANKS], bad, over, begun, any; /* any: messages of any contents */
    bool messages_only;                       /* no views in the hash */
    unsigned joiners;                         /* the ranks below join */
    unsigned pieces;                          /* of the state that have come; all, or no state */
    unsigned expected;                        /* members when all has been delivered */
    uint64_t die_at, commands; /* messages of each rank, of which all have been delivered when it is over */
    unsigned delay_us;         /* of each delivery */
    double last_us, gap_us;    /* when something was delivered last, and the longest time between two */
    double ahead_us;           /* when `ahead` messages of rank 1 had been delivered */
    uint64_t ahead;
};

static unsigned char bytes[LONGEST + 256];

static size_t length_of(unsigned rank, uint64_t i)
{
    static const size_t lengths[] = {8, 16, 17, 300, 0, 5000, 20000, LONGEST};
    return lengths[(i * 5 + rank + i / 7) % 8] >> (i % 3 == 0 ? 0 : i % 2);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void deliver(rnl_group *g, const struct rnl_group_message *m, void *ctx)
{
    struct state *s = ctx;
    uint64_t i = s->done[m->sender]++;
    (void)g;
    if (s->delay_us)
        nanosleep(&(struct timespec){.tv_nsec = (long)s->delay_us * 1000}, NULL);
    if (s->any) {
        const double now = now_us();
        s->gap_us = s->last_us > 0 && now - s->last_us > s->gap_us ? now - s->last_us : s->gap_us;
        s->last_us = now;
        s->ahead_us = s->done[m->sender] == s->ahead ? now : s->ahead_us;
        return;
    }
    s->bad |= m->number != ++s->last || m->sender >= RANKS || m->n != length_of(m->sender, i) ||
              (m->n && memcmp(m->buf, bytes + (m->sender + i) % 256, m->n) != 0);
    if (s->over)
        return;
    s->hash = (s->hash ^ m->sender ^ m->number << 8) * 0x100000001b3u;
    s->total++;
    if (s->die_at && s->total >= s->die_at)
        raise(SIGKILL);
    s->over = s->in_view >= s->expected;
    for (unsigned r = 0; r < rnl_size(s->ep); r++)
        s->over &= !s->lives[r] || s->done[r] >= s->commands;
}

static void changed(rnl_group *g, const struct rnl_group_view *v, void *ctx)
{
    struct state *s = ctx;
    (void)g;
    s->bad |= v->number != ++s->last;
    s->in_view = v->count;
    s->sequencer = v->sequencer;
    memset(s->lives, 0, sizeof s->lives);
    for (unsigned i = 0; i < v->count; i++)
        s->lives[v->ranks[i]] = true;
    if (s->over || s->messages_only)
        return;
    s->hash = (s->hash ^ v->count ^ v->number << 8) * 0x100000001b3u;
    s->over = s->commands && v->number > 1 && s->in_view >= s->expected;
    for (unsigned r = 0; r < rnl_size(s->ep); r++)
        s->over &= !s->lives[r] || s->done[r] >= s->commands;
}

static void ended(rnl_group *g, int status, void *ctx)
{
    (void)g, (void)ctx;
    printf("ended: %s\n", rnl_status_name(status));
}

/* What the state is for those who join: that of the sums, and a long piece between two empty ones. */
static void save(rnl_group *g, void *ctx)
{
    struct state *s = ctx;
    s->bad |= rnl_group_put_state(g, s, sizeof *s) < 0 || rnl_group_put_state(g, NULL, 0) < 0 ||
              rnl_group_put_state(g, bytes, LONGEST) < 0 || rnl_group_put_state(g, bytes, 0) < 0;
}

static void load(rnl_group *g, const void *buf, size_t n, void *ctx)
{
    struct state *s = ctx, from;
    (void)g;
    static const size_t pieces[] = {sizeof from, 0, LONGEST, 0};
    s->bad |= s->pieces >= 4 || n != pieces[s->pieces] || (n == LONGEST && memcmp(buf, bytes, n) != 0);
    if (s->pieces++)
        return;
    memcpy(&from, buf, n);
    s->hash = from.hash;
    s->total = from.total;
    s->last = from.last;
    memcpy(s->done, from.done, sizeof s->done);
    printf("rank %u joins after %llu messages\n", rnl_rank(s->ep), (unsigned long long)s->total);
}

static int begin(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct state *s = ctx;
    (void)buf, (void)n, (void)peer;
    s->begun = true;
    return RNL_DONE;
}

static bool fails(const char *what, int64_t status)
{
    if (status < 0)
        printf("%s: %s\n", what, rnl_last_error()->text);
    return status < 0;
}

static bool open_group(struct state *s, int handler, unsigned method, size_t budget, rnl_group **g)
{
    struct rnl_group_options opt = {.size = sizeof opt,
                                    .handler = handler,
                                    .budget = budget,
                                    .method = (enum rnl_group_method)(method % 4),
                                    .flat = method / 4,
                                    .deliver = deliver,
                                    .changed = changed,
                                    .ended = ended,
                                    .ctx = s};
    unsigned first[RANKS];
    if (s->joiners) {
        for (unsigned r = s->joiners; r < rnl_size(s->ep); r++)
            first[opt.first_count++] = r;
        opt.first_ranks = first;
        opt.save = save;
        opt.load = load;
    }
    return !fails("rnl_group_open", rnl_group_open(s->ep, &opt, g));
}

/* Sends all, waits for all, leaves. */
static bool traffic(struct state *s, rnl_group *g, const char *mode)
{
    const unsigned rank = rnl_rank(s->ep);
    for (uint64_t i = 0; i < s->commands; i++) {
        size_t n = length_of(rank, i);
        const struct rnl_buffer pieces[] = {{bytes + (rank + i) % 256, n / 3},
                                            {bytes + (rank + i) % 256 + n / 3, n - n / 3}};
        if (fails("rnl_group_send", rnl_group_send(g, pieces, 2, 0)))
            return false;
        for (unsigned r = 0; i == 3 && rank >= s->joiners && r < s->joiners; r++)
            if (fails("rnl_send", rnl_send(s->ep, r, HANDLER + 3, NULL, 0)))
                return false;
    }
    while (!s->over)
        if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
            return false;
    printf("%s: rank %u agrees on %016llx\n", mode, rank, (unsigned long long)s->hash);
    if (strcmp(mode, "odd") != 0) /* the other group still sends */
        rnl_wake(s->ep);          /* is not what ends a leave */
    return !fails("rnl_group_leave", rnl_group_leave(g, 60000000000)) && !s->bad &&
           (rank >= s->joiners || s->pieces == 4);
}

static bool joins(struct state *s, unsigned victim, unsigned method)
{
    rnl_group *g;
    const unsigned size = rnl_size(s->ep), rank = rnl_rank(s->ep);
    s->joiners = size / 2;
    s->expected = size - (victim < size);
    s->die_at = victim == rank ? s->commands + 5 : 0;
    if (fails("handler", rnl_handler_whole(s->ep, HANDLER + 3, begin, s, 0)))
        return false;
    while (rank < s->joiners && !s->begun)
        if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
            return false;
    return open_group(s, HANDLER, method, 0, &g) && traffic(s, g, "join");
}

/* While one member takes nothing in, the others may send what their share holds, and no more. It looks again once
 * rank 0 has made the file `go`. */
static bool slow(struct state *s)
{
    enum { TRIES = 1000, SENT_MAX = 100000 };
    const size_t budget = 256 << 10;
    const unsigned last = rnl_size(s->ep) - 1;
    static uint64_t sent;
    struct rnl_group_stats stats;
    rnl_group *g;
    if (!open_group(s, HANDLER, 0, budget, &g))
        return false;
    s->commands = UINT64_MAX; /* not over */
    s->messages_only = true;  /* who is late may see others leave before it knows that it has had the last one */
    if (rnl_rank(s->ep) == 0) {
        for (unsigned tries = 0; tries < TRIES && sent < SENT_MAX; tries++) {
            const struct rnl_buffer piece = {bytes + sent % 256, length_of(0, sent)};
            if (rnl_group_send(g, &piece, 1, RNL_NO_WAIT) == 0) {
                sent++;
                tries = 0;
            }
            if (rnl_extract(s->ep, SIZE_MAX) < 0)
                return false;
        }
        rnl_group_get_stats(g, &stats);
        printf("held back: %d, %d\n", sent < SENT_MAX, stats.kept_bytes <= budget / 2 + LONGEST);
        FILE *file = fopen("go", "w");
        if (!file || fclose(file))
            return false;
        for (unsigned r = 1; r <= last; r++)
            if (fails("rnl_send", rnl_send(s->ep, r, HANDLER + 1, &sent, sizeof sent)))
                return false;
        s->commands = sent;
    }
    for (unsigned i = 0; rnl_rank(s->ep) == last && i < 6000 && access("go", F_OK) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    while (s->commands == UINT64_MAX || s->done[0] < s->commands)
        if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
            return false;
    printf("slow: rank %u agrees on %016llx\n", rnl_rank(s->ep), (unsigned long long)s->hash);
    return !fails("rnl_group_leave", rnl_group_leave(g, 60000000000)) && !s->bad;
}

static int go_on(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct state *s = ctx;
    uint64_t sent;
    (void)peer, (void)n;
    memcpy(&sent, buf, sizeof sent);
    s->commands = sent;
    return RNL_DONE;
}

/* What one that is slow costs the others: nothing until their credit is used. */
static bool pace(struct state *s, unsigned count, unsigned us)
{
    const size_t budget = 256 << 10;
    const unsigned last = rnl_size(s->ep) - 1, rank = rnl_rank(s->ep);
    const struct rnl_buffer piece = {bytes, 8};
    rnl_group *g;
    s->commands = UINT64_MAX;
    s->any = true;
    if (!open_group(s, HANDLER, 0, budget, &g))
        return false;
    double begin = 0, middle = 0;
    s->delay_us = rank == last ? us : 0;
    for (unsigned i = 0; rank == 1 && i < count + 1; i++) { /* the first one connects */
        int status = rnl_group_send(g, &piece, 1, i && !s->ahead ? RNL_NO_WAIT : 0);
        if (status == RNL_NO_ROOM) {
            s->ahead = i--;
            continue;
        }
        while (i == 0 && status == 0 && s->done[1] == 0)
            if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
                return false;
        if (fails("rnl_group_send", status))
            return false;
        begin = i == 0 ? now_us() : begin;
        middle = i == count / 2 ? now_us() : middle;
    }
    const double end = now_us();
    while (s->done[1] < count + 1)
        if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
            return false;
    if (rank == 1)
        printf("pace: %llu ahead, back after %.0f us, then %.1f us each\n", (unsigned long long)s->ahead,
               s->ahead_us - begin, (end - middle) / (count - count / 2));
    return !fails("rnl_group_leave", rnl_group_leave(g, 60000000000));
}

/* For how long nothing is delivered when one of them falls silent. */
static bool gap(struct state *s, unsigned silence_ms, unsigned alone)
{
    const struct rnl_buffer piece = {bytes, 8};
    rnl_group *g;
    s->commands = UINT64_MAX;
    s->any = true;
    if (!open_group(s, HANDLER, 0, 0, &g))
        return false;
    const double end = now_us() + 8e3 * silence_ms;
    while (now_us() < end) {
        const int status = rnl_group_send(g, &piece, 1, RNL_NO_WAIT);
        if (status == RNL_ERR_REFUSED && rnl_rank(s->ep) == alone)
            break;
        if (status != RNL_NO_ROOM && fails("rnl_group_send", status))
            return false;
        const double until = now_us() + 50e3 * silence_ms / 1000;
        while (now_us() < until) {
            const int64_t got = rnl_wait(s->ep, 1000000);
            if (got != RNL_TIMED_OUT && fails("rnl_wait", got))
                return false;
        }
    }
    if (rnl_rank(s->ep) != alone)
        printf("gap: %.0f us, %u members, sequencer %u\n", s->gap_us, s->in_view, s->sequencer);
    return !fails("rnl_group_leave", rnl_group_leave(g, 60000000000));
}

static bool times(struct state *s, unsigned count, unsigned method)
{
    rnl_group *g;
    const unsigned last = rnl_size(s->ep) - 1, rank = rnl_rank(s->ep);
    s->commands = UINT64_MAX;
    s->any = true;
    if (!open_group(s, HANDLER, method, 0, &g))
        return false;
    double begin = 0, single = 0;
    static const size_t lengths[] = {8, 1024};
    for (unsigned i = 0; rank == last && i < 4 * count;
         i++) { /* one by one, and then at once; the first ones connect */
        const struct rnl_buffer piece = {bytes, lengths[i / (2 * count)]};
        if (i == count || i == 2 * count)
            single = now_us() - begin, begin = now_us();
        if (fails("rnl_group_send", rnl_group_send(g, &piece, 1, 0)))
            return false;
        while (i < 2 * count && s->done[last] <= i)
            if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
                return false;
    }
    while (s->done[last] < 4 * (uint64_t)count)
        if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
            return false;
    if (rank == last)
        printf("time: %u members, %.1f us a message of 8 bytes, %.0f messages of 1 KiB in a ms\n", last + 1,
               single / count, 2 * count * 1e3 / (now_us() - begin));
    /* Nobody leaves while messages are under way, which would be sent once more to those who lack them. */
    if (fails("rnl_group_send", rnl_group_send(g, NULL, 0, 0)))
        return false;
    for (unsigned r = 0; r <= last; r++)
        while (s->done[r] < (r == last ? 4 * (uint64_t)count : 0) + 1)
            if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
                return false;
    return !fails("rnl_group_leave", rnl_group_leave(g, 60000000000));
}

/* Rank 1 says everything once, at each of its turns, and is excluded by the others, who go on. */
static bool hostile(struct state *s)
{
    const unsigned rank = rnl_rank(s->ep);
    rnl_group *g;
    if (rank == 1) {
        for (unsigned i = 0; i < 400; i++) {
            unsigned char junk[48] = {(unsigned char)(1 + i % 20), (unsigned char)(i % 3), 0, 0, 1};
            junk[8] = (unsigned char)(i % 11);
            junk[16] = (unsigned char)(i % 4);
            junk[i % 7 + 17] = (unsigned char)(i / 7);
            for (unsigned r = 0; r < rnl_size(s->ep); r++)
                if (r != 1 && rnl_send(s->ep, r, HANDLER, junk, i % 49) < 0)
                    return false;
        }
        printf("hostile: rank 1 has said it\n");
        return rnl_handler_stream(s->ep, HANDLER, (rnl_stream_handler *)NULL, NULL) < 0;
    }
    if (!open_group(s, HANDLER, 0, 0, &g))
        return false;
    s->commands = UINT64_MAX;
    while (s->lives[1])
        if (fails("rnl_wait", rnl_wait(s->ep, 60000000000)))
            return false;
    printf("hostile: rank %u goes on without rank 1\n", rank);
    return !fails("rnl_group_leave", rnl_group_leave(g, 60000000000)) && !s->bad;
}

static int ignore(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    return RNL_DONE;
}

static bool astray(struct state *s)
{
    const unsigned others[] = {0, 2};
    const bool alone = rnl_rank(s->ep) == 1;
    const struct rnl_buffer piece = {bytes, 8};
    struct rnl_group_options opt = {.size = sizeof opt,
                                    .handler = HANDLER,
                                    .count = alone ? 0 : 2,
                                    .ranks = alone ? NULL : others,
                                    .deliver = deliver,
                                    .changed = changed,
                                    .ctx = s};
    rnl_group *g;
    s->any = s->messages_only = true;
    if (fails("open", rnl_group_open(s->ep, &opt, &g)) || fails("send", rnl_group_send(g, &piece, 1, 0)))
        return false;
    for (int64_t got = 0; got >= 0 && s->done[0] + s->done[1] + s->done[2] < (alone ? 1u : 2u);)
        got = rnl_wait(s->ep, -1);
    return (!alone || s->in_view == 1) && !fails("leave", rnl_group_leave(g, -1)) &&
           printf("astray: rank %u agrees on %u\n", rnl_rank(s->ep), alone ? 1 : 2) > 0;
}

/* The word for a program that is wrong, and a group of some ranks beside one of all. */
static bool part(struct state *s)
{
    static struct state odd;
    const unsigned rank = rnl_rank(s->ep), odds[] = {1, 3}, wrong[] = {3, 1};
    struct rnl_group_options opt = {.size = sizeof opt,
                                    .handler = HANDLER + 2,
                                    .count = 2,
                                    .ranks = wrong,
                                    .deliver = deliver,
                                    .changed = changed,
                                    .ctx = &odd};
    rnl_group *all, *some = NULL;
    odd = *s;
    if (rnl_group_open(s->ep, &opt, &some) != RNL_ERR_ARG)
        return false;
    opt.ranks = odds;
    opt.size = offsetof(struct rnl_group_options, ctx);
    if (rnl_group_open(s->ep, &opt, &some) != RNL_ERR_ARG)
        return false;
    opt.size = offsetof(struct rnl_group_options, first_count); /* of a program that knows of no joiners */
    opt.first_count = 7;
    int status = rnl_group_open(s->ep, &opt, &some);
    if (status != (rank % 2 ? 0 : RNL_ERR_RANK) || !open_group(s, HANDLER, 0, 0, &all))
        return false;
    opt.handler = HANDLER;
    if (rank % 2 && rnl_group_open(s->ep, &opt, &all) != RNL_ERR_HANDLER)
        return false;
    const struct rnl_buffer too_long = {bytes, RNL_GROUP_MESSAGE_MAX + 1};
    if (rnl_group_send(all, &too_long, 1, 0) != RNL_ERR_TOO_LONG || rnl_group_send(all, NULL, 0, 64) != RNL_ERR_ARG)
        return false;
    return (rank % 2 == 0 || traffic(&odd, some, "odd")) && traffic(s, all, "part");
}

int main(int argc, char **argv)
{
    static struct state s;
    rnl_group *g;
    bool good = false;
    const char *mode = argc > 1 ? argv[1] : "order";
    const unsigned number = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * i >> 3 ^ i);
    s.hash = 1;
    s.commands = argc > 3 ? strtoull(argv[3], NULL, 10) : 40;
    const struct rnl_options opt = {.size = sizeof opt, .silence_ms = strcmp(mode, "gap") == 0 ? number : 0};
    if (fails("rnl_open", rnl_open(&s.ep, &opt)) ||
        fails("handler", rnl_handler_whole(s.ep, HANDLER + 1, go_on, &s, 0)))
        return 1;
    if (strcmp(mode, "order") == 0) {
        good = open_group(&s, HANDLER, number, 0, &g) && traffic(&s, g, mode);
    } else if (strcmp(mode, "death") == 0) {
        s.die_at = number == rnl_rank(s.ep) ? s.commands + 5 : 0;
        good = open_group(&s, HANDLER, argc > 4 ? (unsigned)atoi(argv[4]) : 0, 0, &g) && traffic(&s, g, mode);
    } else if (strcmp(mode, "join") == 0) {
        good = joins(&s, number, argc > 4 ? (unsigned)atoi(argv[4]) : 0);
    } else if (strcmp(mode, "time") == 0) {
        good = times(&s, number, argc > 3 ? (unsigned)atoi(argv[3]) : 0);
    } else if (strcmp(mode, "pace") == 0) {
        good = pace(&s, number, argc > 3 ? (unsigned)atoi(argv[3]) : 0);
    } else if (strcmp(mode, "gap") == 0) {
        good = gap(&s, number, argc > 3 ? (unsigned)atoi(argv[3]) : RANKS);
    } else if (strcmp(mode, "slow") == 0) {
        good = slow(&s);
    } else if (strcmp(mode, "hostile") == 0) {
        good = hostile(&s);
        if (rnl_rank(s.ep) == 1 && fails("handler", rnl_handler_stream(s.ep, HANDLER, ignore, NULL)))
            return 1;
    } else if (strcmp(mode, "astray") == 0) {
        good = astray(&s);
    } else if (strcmp(mode, "part") == 0) {
        good = part(&s);
    }
    fflush(stdout);
    return fails("rnl_close", rnl_close(s.ep)) || !good;
}
