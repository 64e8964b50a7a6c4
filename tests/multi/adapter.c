/* SPDX-License-Identifier: BSD-3-Clause
 *
 * adapter.c - the calls of runnel/adapter.h between processes, over whatever carries them: each rank does to the next
 * one what an adapter does, and prints a line for each promise. It is a program of a job, and of the virtual cluster.
 *
 *     runnel run -n N multi-adapter;   runnel sim -n N --hosts N vproc-adapter.so */
#include <poll.h>
#include <runnel/adapter.h>
#include <runnel/counters.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SIZED = 1,
    ASK,
    ANSWER,
    CANCELLED,
    CARD,
    REQUESTS = 60,
    DEFERRED_MAX = 64,
    LONGEST = 200000,
    ROUNDS = 20,
    POLL_MS = 10000
};

static rnl_endpoint *ep;
static unsigned self, next, failed;
static unsigned char bytes[LONGEST];

static void must(const char *what, int64_t result)
{
    if (result >= 0)
        return;
    printf("not ok - rank %u: %s: %s\n", self, what, rnl_last_error()->text);
    exit(1);
}

static void ok(const char *promise, int kept)
{
    printf("%s - rank %u: %s\n", kept ? "ok" : "not ok", self, promise);
    failed |= !kept;
}

/* ---- messages that know their length ---- */

static unsigned came, wrong;
static size_t length_of(unsigned i)
{
    static const size_t lengths[] = {0, 1, 48, 56, 57, 5000, 16384, 20000, LONGEST};
    return lengths[i % (sizeof lengths / sizeof *lengths)];
}

static int sized(rnl_stream *s, unsigned peer, void *ctx)
{
    static unsigned char buf[LONGEST];
    int exact;
    size_t n = rnl_length(s, &exact), expected = length_of(came);
    (void)peer, (void)ctx;
    wrong += exact ? n != expected : n < expected;
    wrong += rnl_receive(s, buf, expected) != 0 || memcmp(buf, bytes, expected) != 0;
    wrong += rnl_length(s, &exact) != expected || !exact;
    came++;
    return RNL_DONE;
}

/* Sends what there is room for, as rnl_room tells, and never waits. Returns 1 if the message went. */
static int send_if_room(size_t n)
{
    struct rnl_room_info room = {.size = sizeof room};
    rnl_stream *s;
    must("rnl_room", rnl_room(ep, next, &room));
    if (room.lacks & ~(unsigned)RNL_ROOM_CONNECTION || (!room.lacks && room.bound < n))
        return 0;
    const struct rnl_message b = {.peer = next, .handler = SIZED, .bound = n, .flags = RNL_NO_WAIT};
    int status = rnl_begin(ep, &b, &s);
    if (status == RNL_NO_ROOM && room.lacks)
        return 0;
    must("rnl_begin where rnl_room tells that there is room", status);
    must("rnl_piece", rnl_piece(s, bytes, n));
    must("rnl_end", rnl_end(s));
    return 1;
}

/* Takes in what there is, or sleeps until there is something. */
static void take_in_or_sleep(void)
{
    int fd, spins = 0;
    while (spins < 50 && rnl_look(ep) == 0)
        spins++;
    int there = rnl_arm(ep, &fd);
    must("rnl_arm", there);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (!there && poll(&p, 1, POLL_MS) < 0)
        must("poll", RNL_ERR_SYSTEM);
    must("rnl_extract", rnl_extract(ep, SIZE_MAX));
}

static void sizes(void)
{
    for (unsigned sent = 0; came < ROUNDS || sent < ROUNDS;) {
        if (sent < ROUNDS && send_if_room(length_of(sent)))
            sent++;
        else
            take_in_or_sleep();
    }
    ok("messages know their length, and go where there is room", came == ROUNDS && !wrong);
    ok("an endpoint that never yields has not", rnl_get_counters(ep)->yields == 0);
}

/* ---- replies that are sent later, and posts that are cancelled ---- */

struct put_off {
    rnl_deferred name;
    unsigned number;
};
static struct put_off put_off[DEFERRED_MAX];
static unsigned put_offs, answered, served, withdrawn, unwanted;

static size_t answer_bytes(unsigned number)
{
    return number % 3 ? sizeof number : 10000 + number;
}

static int on_ask(rnl_stream *s, unsigned peer, void *ctx)
{
    unsigned number;
    (void)peer, (void)ctx;
    must("rnl_receive", rnl_receive(s, &number, sizeof number));
    served++;
    const struct rnl_buffer pieces[] = {{&number, sizeof number}, {bytes, answer_bytes(number) - sizeof number}};
    int status = put_offs < DEFERRED_MAX ? rnl_defer(s, &put_off[put_offs].name) : RNL_NO_ROOM;
    if (status == 0) {
        put_off[put_offs++].number = number;
        return RNL_DONE;
    }
    if (status != RNL_NO_ROOM)
        must("rnl_defer", status);
    must("rnl_reply_pieces", rnl_reply_pieces(s, ANSWER, pieces, 2));
    return RNL_DONE;
}

static int on_answer(rnl_stream *s, unsigned peer, void *ctx)
{
    static unsigned char buf[LONGEST];
    unsigned number;
    (void)peer, (void)ctx;
    size_t n = rnl_length(s, NULL) - sizeof number;
    must("rnl_receive", rnl_receive(s, &number, sizeof number));
    must("rnl_receive", rnl_receive(s, buf, n));
    wrong += n + sizeof number != answer_bytes(number) || memcmp(buf, bytes, n) != 0;
    answered++;
    return RNL_DONE;
}

/* Reads nothing: what arrives of a message that came too far to be withdrawn is passed over. */
static int on_unwanted(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    unwanted++;
    return RNL_DONE;
}

static unsigned done_runs;
static void on_done(void *arg, int status)
{
    *(rnl_posted **)arg = NULL; /* the name is valid until now */
    withdrawn += status == RNL_ERR_ABORTED;
    done_runs++;
}

static void answer_one(void)
{
    const struct put_off *p = &put_off[--put_offs]; /* the latest first */
    const struct rnl_buffer pieces[] = {{&p->number, sizeof p->number},
                                        {bytes, answer_bytes(p->number) - sizeof p->number}};
    must("rnl_answer", rnl_answer(ep, p->name, ANSWER, pieces, 2));
}

static void later(void)
{
    unsigned asked = 0;
    for (unsigned turn = 0; answered < REQUESTS || served < REQUESTS || put_offs; turn++) {
        const struct rnl_message b = {
            .peer = next, .handler = ASK, .bound = sizeof asked, .answer = 20000, .flags = RNL_NO_WAIT};
        rnl_stream *s;
        int status = asked < REQUESTS ? rnl_begin(ep, &b, &s) : RNL_NO_ROOM;
        if (status == 0) {
            must("rnl_piece", rnl_piece(s, &asked, sizeof asked));
            must("rnl_end", rnl_end(s));
            asked++;
        } else if (status != RNL_NO_ROOM) {
            must("rnl_begin", status);
        }
        must("rnl_extract", rnl_extract(ep, SIZE_MAX));
        if (put_offs > (turn % 40 == 0 ? 0u : 6u) || (put_offs && (asked == REQUESTS || served == REQUESTS)))
            answer_one();
    }
    ok("replies are sent later than their handlers return", answered == REQUESTS && !wrong);
}

static void cancelling(void)
{
    static unsigned char much[8 << 20];
    const struct rnl_message b = {.peer = next, .handler = CANCELLED, .bound = sizeof much};
    const struct rnl_buffer piece = {much, sizeof much};
    rnl_posted *posted[3];
    for (unsigned i = 0; i < 3; i++)
        must("rnl_post_held", rnl_post_held(ep, &b, &piece, 1, on_done, &posted[i], &posted[i]));
    must("rnl_extract", rnl_extract(ep, SIZE_MAX)); /* of the first some is on its way */
    unsigned in_time = 0;
    for (unsigned i = 3; i-- > 0;)
        in_time += posted[i] && rnl_cancel(posted[i]) == 1;
    while (done_runs < 3)
        must("rnl_extract", rnl_extract(ep, SIZE_MAX));
    ok("held posts are withdrawn, and done runs once for each", withdrawn == in_time && done_runs == 3);
}

/* ---- who is where ---- */

struct card {
    unsigned char job[16];
    int32_t pid;
};
static unsigned cards, wrong_cards;

static void fill_card(struct card *c)
{
    memset(c, 0, sizeof *c);
    must("rnl_job_id", rnl_job_id(ep, c->job));
    c->pid = getpid();
}

static int on_card(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct card c, own;
    struct rnl_place place = {.size = sizeof place};
    (void)ctx;
    memcpy(&c, buf, sizeof c);
    fill_card(&own);
    must("rnl_peer_place", rnl_peer_place(ep, peer, &place));
    wrong_cards += n != sizeof c || memcmp(c.job, own.job, sizeof c.job) != 0;
    wrong_cards += place.where == RNL_ON_OTHER_HOST ? place.pid != 0 : place.pid != c.pid;
    wrong_cards += (place.where == RNL_IN_PROCESS) != (peer == self);
    cards++;
    return RNL_DONE;
}

static void places(void)
{
    struct card own;
    fill_card(&own);
    for (unsigned i = 0; i < rnl_size(ep); i++)
        must("rnl_send", rnl_send(ep, i, CARD, &own, sizeof own));
    while (cards < rnl_size(ep))
        must("rnl_extract", rnl_extract(ep, SIZE_MAX));
    ok("all ranks know one job, and where each other is", !wrong_cards);
    if (self == 0)
        printf("# job %02x%02x%02x%02x%02x%02x\n", own.job[0], own.job[1], own.job[2], own.job[3], own.job[4],
               own.job[5]);
}

int main(void)
{
    const struct rnl_options opt = {.size = sizeof opt, .flags = RNL_NO_YIELD};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    must("rnl_open", rnl_open(&ep, &opt));
    self = rnl_rank(ep);
    next = (self + 1) % rnl_size(ep);
    must("rnl_handler_stream", rnl_handler_stream(ep, SIZED, sized, NULL));
    must("rnl_handler_stream", rnl_handler_stream(ep, ASK, on_ask, NULL));
    must("rnl_handler_stream", rnl_handler_stream(ep, ANSWER, on_answer, NULL));
    must("rnl_handler_whole", rnl_handler_stream(ep, CANCELLED, on_unwanted, NULL));
    must("rnl_handler_whole", rnl_handler_whole(ep, CARD, on_card, NULL, 0));
    places();
    sizes();
    later();
    cancelling();
    must("rnl_close", rnl_close(ep));
    return failed != 0;
}
