/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_semantics.c - what FM 2.x promises, one case per run: runnel run -n N multi-fm_semantics CASE. Without a case: a
 * job of one says hello to itself. Exits with 1 and a sentence when a promise is broken.
 *
 *   half         half a message, the reply to that half, then the rest; a third rank's messages flow meanwhile
 *   suspended    handlers of all senders are suspended at once, and end in any order
 *   stall        a rank that does not extract blocks its senders, and loses nothing
 *   late         messages wait for their handler to be registered; those of others flow
 *   missing      FM_finalize drops messages whose handler never came, and says so
 *   pieces       the pieces of the two sides are independent; length is an upper bound; extract counts bytes, and stops
 *                when told
 *   threads      with FM_THREADS any thread may call */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"
#include "runnel/runnel.h"

enum { MAIN = 1, ANSWER, FLOOD, DONE, LATE, NEVER };

static unsigned long me, ranks;

static void begin(void)
{
    FM_initialize();
    me = check_rank = FM_nodeid;
    ranks = FM_numnodes;
}

static void send(unsigned long to, unsigned long handler, const void *buf, unsigned long n)
{
    FM_stream *s = FM_begin_message(to, n, handler);
    CHECK(s != NULL);
    FM_send_piece(s, buf, n);
    FM_end_message(s);
}

static void send_checked(unsigned long to, unsigned long handler, uint64_t key, unsigned long n)
{
    void *buf = malloc(n + 1);
    CHECK(buf != NULL);
    check_fill(key, 0, buf, n);
    send(to, handler, buf, n);
    free(buf);
}

/* In a handler: takes in n bytes in pieces of `step` and checks them. */
static void receive_checked(FM_stream *s, uint64_t key, uint64_t at, uint64_t n, unsigned long step, const char *what)
{
    unsigned char *buf = malloc(step);
    CHECK(buf != NULL);
    for (uint64_t end = at + n; at < end; at += step) {
        if (step > end - at)
            step = end - at;
        FM_receive(buf, s, step);
        check_bytes(key, at, buf, step, what);
    }
    free(buf);
}

/* ---- done: rank 0 tells everybody, or everybody tells rank 0 ---- */

static unsigned long dones;

static int on_done(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    dones++;
    return FM_CONTINUE;
}

static void await_dones(unsigned long n)
{
    while (dones < n)
        (void)FM_wait(-1);
}

static void tell_done(unsigned long to)
{
    send(to, DONE, "", 0);
}

/* ---- half ---- */

static const unsigned long half_sizes[] = {2, 16, 56, 57, 112, 1000, 40000, 200000, 600000, 3000000};
enum { HALF_SIZES = sizeof half_sizes / sizeof *half_sizes };
static uint64_t half_round, halves_seen, answers, floods, flood_seen[64];
static int flooding_ended;

static int on_half(FM_stream *s, unsigned from)
{
    uint64_t key = check_key(MAIN, from, me, half_round);
    unsigned long n = half_sizes[half_round % HALF_SIZES];
    receive_checked(s, key, 0, n / 2, 777, "first half");
    halves_seen++; /* the program answers */
    receive_checked(s, key, n / 2, n - n / 2, 1234, "second half");
    half_round++;
    return FM_CONTINUE;
}

static int on_answer(FM_stream *s, unsigned from)
{
    uint64_t k;
    (void)from;
    FM_receive(&k, s, sizeof k);
    CHECK(k == answers);
    answers++;
    return FM_CONTINUE;
}

static int on_flood(FM_stream *s, unsigned from)
{
    receive_checked(s, check_key(FLOOD, from, me, flood_seen[from]), 0, 24, 5, "flood");
    flood_seen[from]++;
    floods++;
    return FM_CONTINUE;
}

static void half_sender(uint64_t rounds)
{
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t key = check_key(MAIN, me, 1, round), before = floods;
        unsigned long n = half_sizes[round % HALF_SIZES];
        unsigned char *buf = malloc(n);
        CHECK(buf != NULL);
        check_fill(key, 0, buf, n);
        FM_stream *s = FM_begin_message(1, n, MAIN);
        CHECK(s != NULL);
        FM_send_piece(s, buf, n / 2);
        while (answers <= round) /* the answer to the half that it has */
            (void)FM_extract(~0ul);
        FM_send_piece(s, buf + n / 2, n - n / 2);
        FM_end_message(s);
        free(buf);
        while (round % 10 == 9 && floods == before && !dones)
            (void)FM_extract(~0ul); /* others flow */
    }
}

static void half_receiver(uint64_t rounds)
{
    uint64_t answered = 0;
    while (half_round < rounds) {
        (void)FM_extract(~0ul);
        for (; answered < halves_seen; answered++)
            send(0, ANSWER, &answered, sizeof answered);
    }
}

static void flood(void)
{
    for (uint64_t k = 0; !flooding_ended; k++) {
        for (unsigned long to = 0; to < 2; to++)
            send_checked(to, FLOOD, check_key(FLOOD, me, to, k), 24);
        (void)FM_extract(~0ul);
        flooding_ended = dones > 0;
    }
}

static void half(void)
{
    const uint64_t rounds = FM_COUNT(300);
    begin();
    CHECK(ranks >= 3 && ranks <= 64);
    FM_register_handler(MAIN, on_half);
    FM_register_handler(ANSWER, on_answer);
    FM_register_handler(FLOOD, on_flood);
    FM_register_handler(DONE, on_done);
    if (me == 0)
        half_sender(rounds);
    else if (me == 1)
        half_receiver(rounds);
    else
        flood();
    for (unsigned long to = 2; me == 0 && to < ranks; to++)
        tell_done(to);
    FM_finalize();
    CHECK(me > 1 || floods > 0);
    CHECK(me != 1 || half_round == rounds);
}

/* ---- suspended ---- */

static unsigned long inside, most_inside, finished;
static uint64_t part_key;

static int on_part(FM_stream *s, unsigned from)
{
    uint64_t key = check_key(MAIN, from, 0, part_key);
    inside++;
    most_inside = inside > most_inside ? inside : most_inside;
    receive_checked(s, key, 0, 5000 + from, 999, "a part");
    receive_checked(s, key, 5000 + from, 60000 + from, 4096, "the rest");
    inside--;
    finished++;
    return FM_CONTINUE;
}

static int on_go(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    answers++;
    return FM_CONTINUE;
}

static void suspended(void)
{
    const uint64_t rounds = FM_COUNT(30);
    begin();
    FM_register_handler(MAIN, on_part);
    FM_register_handler(ANSWER, on_go);
    for (part_key = 0; part_key < rounds; part_key++) {
        if (me == 0) {
            while (inside < ranks - 1)
                (void)FM_wait(-1); /* all have begun, none can end */
            CHECK(finished == part_key * (ranks - 1));
            uint64_t random = part_key;
            unsigned long first = check_below(&random, (uint32_t)ranks - 1);
            for (unsigned long i = 0; i < ranks - 1; i++)
                send(1 + (first + i) % (ranks - 1), ANSWER, "", 0);
            while (inside > 0)
                (void)FM_wait(-1);
            /* Nobody begins the next round before this one is over for all. */
            for (unsigned long to = 1; to < ranks; to++)
                send(to, ANSWER, "", 0);
            continue;
        }
        uint64_t key = check_key(MAIN, me, 0, part_key);
        unsigned long n = 65000 + 2 * me;
        unsigned char *buf = malloc(n);
        CHECK(buf != NULL);
        check_fill(key, 0, buf, n);
        FM_stream *s = FM_begin_message(0, n + check_mix(key) % 100, MAIN); /* an upper bound */
        FM_send_piece(s, buf, 5000 + me);
        while (answers < 2 * part_key + 1)
            (void)FM_wait(-1);
        for (unsigned long at = 5000 + me; at < n; at += 7001)
            FM_send_piece(s, buf + at, n - at < 7001 ? n - at : 7001);
        FM_end_message(s);
        free(buf);
        while (answers < 2 * part_key + 2)
            (void)FM_wait(-1);
    }
    FM_finalize();
    if (me == 0) {
        CHECK(most_inside == ranks - 1);
        CHECK(finished == rounds * (ranks - 1));
    }
}

/* ---- stall ---- */

static uint64_t stall_got[64], stall_finished_ns[64];
static unsigned long stall_reports;
enum { STALL_BYTES = 3000 };

static int on_stalled(FM_stream *s, unsigned from)
{
    receive_checked(s, check_key(MAIN, from, me, stall_got[from]), 0, stall_got[from] % 2 ? 40 : STALL_BYTES, 2048,
                    "after the stall");
    stall_got[from]++;
    return FM_CONTINUE;
}

static int on_finished(FM_stream *s, unsigned from)
{
    FM_receive(&stall_finished_ns[from], s, sizeof(uint64_t));
    stall_reports++;
    return FM_CONTINUE;
}

static void stall(void)
{
    const uint64_t messages = 4000; /* 6 MB from each: more than rings and bulk areas hold */
    begin();
    CHECK(ranks <= 64);
    FM_register_handler(MAIN, on_stalled);
    FM_register_handler(ANSWER, on_finished);
    if (me > 0) {
        for (uint64_t k = 0; k < messages; k++)
            send_checked(0, MAIN, check_key(MAIN, me, 0, k), k % 2 ? 40 : STALL_BYTES);
        uint64_t now = check_now_ns();
        send(0, ANSWER, &now, sizeof now);
        FM_finalize();
        return;
    }
    check_sleep_ms(400);
    uint64_t began_ns = check_now_ns();
    while (stall_reports < ranks - 1)
        (void)FM_extract(10000);
    for (unsigned long from = 1; from < ranks; from++) {
        CHECK(stall_got[from] == messages);
        if (stall_finished_ns[from] < began_ns)
            check_fail("rank %lu was not blocked by a receiver that did not extract", from);
    }
    FM_finalize();
}

/* ---- late, missing ---- */

static uint64_t late_got;

static int on_late(FM_stream *s, unsigned from)
{
    receive_checked(s, check_key(LATE, from, me, late_got), 0, late_got % 5 == 4 ? 100000 : 30, 3000, "late");
    late_got++;
    return FM_CONTINUE;
}

static void late(void)
{
    const uint64_t messages = 200;
    begin();
    CHECK(ranks >= 3);
    FM_register_handler(FLOOD, on_flood);
    FM_register_handler(DONE, on_done);
    if (me == 0) {
        while (floods < messages) /* rank 2's pass, rank 1's wait */
            (void)FM_extract(~0ul);
        CHECK(late_got == 0);
        CHECK(FM_register_handler(LATE, on_late) == LATE);
        while (late_got < messages)
            (void)FM_wait(-1);
        for (unsigned long to = 1; to < ranks; to++)
            tell_done(to);
    } else if (me == 1) {
        for (uint64_t k = 0; k < messages; k++)
            send_checked(0, LATE, check_key(LATE, me, 0, k), k % 5 == 4 ? 100000 : 30);
    } else if (me == 2) {
        check_sleep_ms(50);
        for (uint64_t k = 0; k < messages; k++)
            send_checked(0, FLOOD, check_key(FLOOD, me, 0, k), 24);
    }
    FM_finalize();
}

static int told_status, told_times;

static void on_error(int status, unsigned long peer, const char *sentence)
{
    (void)peer;
    CHECK(sentence != NULL && sentence[0] != '\0');
    told_status = status;
    told_times++;
}

static void missing(void)
{
    begin();
    FM_set_parameter(FM_ERROR_HANDLER, on_error);
    FM_register_handler(FLOOD, on_flood);
    if (me > 0) {
        send_checked(0, NEVER, 1, 20);
        send_checked(0, FLOOD, check_key(FLOOD, me, 0, 0), 24); /* behind the other: waits with it */
        send_checked(0, NEVER, 2, 300000);
    }
    FM_finalize();
    if (me == 0) {
        CHECK(told_times == 1);
        CHECK(told_status == RNL_ERR_HANDLER);
        CHECK(floods == ranks - 1);
    } else {
        CHECK(told_times == 0);
    }
}

/* ---- pieces ---- */

static const unsigned long piece_steps[] = {1, 3, 7, 8, 55, 56, 57, 64, 1000, 32768, 1000000};
static const unsigned long piece_sizes[] = {0, 1, 8, 55, 56, 57, 112, 1000, 20000, 262144, 262145, 700000};
enum { STEPS = sizeof piece_steps / sizeof *piece_steps, SIZES = sizeof piece_sizes / sizeof *piece_sizes };
static uint64_t piece_k, piece_total;

/* Message k: its size, and the steps of the two sides. Single bytes only where they are few. */
static unsigned long piece_size(uint64_t k)
{
    return piece_sizes[k % SIZES];
}
static unsigned long piece_step(uint64_t k, unsigned side)
{
    unsigned long step = piece_steps[(side ? k / SIZES : k / SIZES / STEPS) % STEPS];
    return piece_size(k) > 1000 * step ? piece_size(k) / 1000 : step;
}

static int on_pieces(FM_stream *s, unsigned from)
{
    unsigned long size = piece_size(piece_k);
    if (piece_k % 7 == 6)
        size = size / 2; /* what it does not take is dropped */
    receive_checked(s, check_key(MAIN, from, me, piece_k), 0, size, piece_step(piece_k, 1), "pieces");
    piece_k++;
    return piece_k % 5 == 0 ? FM_QUIT : FM_CONTINUE;
}

static void pieces_sender(uint64_t messages)
{
    unsigned char *buf = malloc(1 << 20);
    CHECK(buf != NULL);
    for (uint64_t k = 0; k < messages; k++) {
        unsigned long size = piece_size(k), step = piece_step(k, 0);
        check_fill(check_key(MAIN, me, 1, k), 0, buf, size);
        FM_stream *s = FM_begin_message(1, k % 3 ? size : size + k % 1000, MAIN);
        CHECK(s != NULL);
        for (unsigned long at = 0; at < size; at += step)
            FM_send_piece(s, buf + at, size - at < step ? size - at : step);
        FM_end_message(s);
    }
    free(buf);
}

static void pieces_receiver(uint64_t messages)
{
    uint64_t random = 5;
    while (piece_k < messages) {
        uint64_t before = piece_k;
        unsigned long most = 1 + check_below(&random, 3000);
        int bytes = FM_extract(most);
        CHECK(bytes >= 0);
        piece_total += (uint64_t)bytes;
        for (uint64_t k = before + 1; k < piece_k; k++)
            CHECK(k % 5 != 0);                                  /* FM_QUIT ended the extract */
        CHECK((unsigned long)bytes < most + (1 << 18) + 32768); /* rounded up to a packet */
        CHECK(FM_extract(0) == 0);
    }
    uint64_t sent = 0;
    for (uint64_t k = 0; k < messages; k++)
        sent += piece_size(k);
    if (piece_total != sent)
        check_fail("FM_extract returned %llu bytes in all, %llu were sent", (unsigned long long)piece_total,
                   (unsigned long long)sent);
}

static void pieces(void)
{
    const uint64_t messages = FM_SANITIZED ? 3 * SIZES * STEPS : SIZES * STEPS * STEPS;
    begin();
    FM_register_handler(MAIN, on_pieces);
    if (me == 0)
        pieces_sender(messages);
    else if (me == 1)
        pieces_receiver(messages);
    FM_finalize();
}

/* ---- threads ---- */

enum { SENDERS = 3 };
static uint64_t thread_got; /* by handlers, which run one at a time */
static uint64_t thread_messages;
static _Atomic int threads_ended;

static int on_thread(FM_stream *s, unsigned from)
{
    uint64_t head[2];
    FM_receive(head, s, sizeof head);
    receive_checked(s, check_key(MAIN, from, head[0], head[1]), 0, head[1] % 3000, 1111, "from a thread");
    thread_got++;
    return FM_CONTINUE;
}

static void *thread_sender(void *arg)
{
    uint64_t id = (uint64_t)(uintptr_t)arg;
    unsigned char buf[3000];
    for (uint64_t k = 0; k < thread_messages; k++) {
        unsigned long to = (me + 1 + k % (ranks - 1)) % ranks, n = k % 3000;
        uint64_t head[2] = {id, k};
        FM_stream *s;
        check_fill(check_key(MAIN, me, id, k), 0, buf, n);
        while ((s = FM_begin_message(to, sizeof head + n, MAIN)) == NULL)
            (void)FM_extract(~0ul); /* another thread holds this peer's queue */
        FM_send_piece(s, head, sizeof head);
        FM_send_piece(s, buf, n / 2);
        FM_send_piece(s, buf + n / 2, n - n / 2);
        FM_end_message(s);
        if (k % 50 == 0)
            (void)FM_extract(1000);
    }
    threads_ended++;
    return NULL;
}

static void threads(void)
{
    pthread_t thread[SENDERS];
    thread_messages = FM_COUNT(3000);
    FM_set_parameter(FM_THREADS, 1);
    begin();
    CHECK(ranks >= 2);
    FM_register_handler(MAIN, on_thread);
    for (uintptr_t i = 0; i < SENDERS; i++)
        CHECK(pthread_create(&thread[i], NULL, thread_sender, (void *)i) == 0);
    while (threads_ended < SENDERS)
        (void)FM_wait(1000);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(thread[i], NULL);
    FM_finalize();
    CHECK(ranks > 2 || thread_got == SENDERS * thread_messages);
}

/* ---- a job of one ---- */

static void alone(void)
{
    begin();
    FM_register_handler(DONE, on_done);
    for (int i = 0; i < 100; i++)
        tell_done(me);
    await_dones(100);
    FM_finalize();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"half", half},       {"suspended", suspended}, {"stall", stall},    {"late", late},
                 {"missing", missing}, {"pieces", pieces},       {"threads", threads}};
    if (argc < 2) {
        alone();
        return 0;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "multi-fm_semantics: there is no case '%s'\n", argv[1]);
    return 64;
}
