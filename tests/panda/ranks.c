/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranks.c - what Panda promises between processes: a program for launched jobs.
 *
 *     ranks rpc        calls of many lengths, replies at once, later and from another thread
 *     ranks group      all send to two ports; all deliver the same
 *     ranks threads    threads that call, wait for conditions and share a mutex with upcalls
 *     ranks death      the last rank kills itself; who called it is told
 *     ranks hostile    the last rank sends what is no message of Panda
 *     ranks alone      what is refused
 *     ranks mute       the last rank has registered no handler of requests
 *
 * Each rank prints "MODE: rank R is right", and in group mode the hash of what it has delivered. */
#include <runnel/panda.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 400000, THREADS = 4 };

static unsigned char bytes[LONGEST + 256];
static const char *mode;
static _Atomic unsigned served, failures; /* of several threads */

#define MUST(x)                     \
    do {                            \
        if (!(x))                   \
            complain(__LINE__, #x); \
    } while (0)

static void complain(int line, const char *what)
{
    printf("%s: rank %d, line %d: %s\n  last error: %s\n", mode, pan_my_pid(), line, what, rnl_last_error()->text);
    failures++;
}

/* The program's header of a request: how to reply, and with how much. */
struct ask {
    uint32_t how, n, from;
};
enum { AT_ONCE, LATER, BY_THREAD, LOCKED };

static struct held {
    struct held *next;
    pan_upcall_p upcall;
    struct ask ask;
} * held;
static _Atomic unsigned cleared;
static pan_mutex_p mutex;
static pan_cond_p cond;
static uint64_t shared_sum;
static bool stop;

static void clear(void *arg)
{
    ++*(_Atomic unsigned *)arg;
}

static void reply(pan_upcall_p upcall, const struct ask *ask)
{
    _Alignas(8) unsigned char proto[128];
    size_t at = pan_rpc_proto_offset();
    memcpy(proto + at, ask, sizeof *ask);
    const pan_iovec_t iov[] = {{bytes + ask->from, ask->n / 3}, {bytes + ask->from + ask->n / 3, ask->n - ask->n / 3}};
    MUST(pan_rpc_reply(upcall, iov, 2, proto, at + sizeof *ask, clear, &cleared) == 0);
}

static void on_request(pan_upcall_p upcall, pan_msg_p msg, void *proto)
{
    struct ask ask;
    static unsigned char got[LONGEST];
    memcpy(&ask, (char *)proto + pan_rpc_proto_offset(), sizeof ask);
    size_t n = pan_msg_left(msg);
    MUST(pan_msg_consume(msg, got, n / 2) == 0 && pan_msg_consume(msg, got + n / 2, n - n / 2) == 0);
    MUST(n == ask.n && memcmp(got, bytes + ask.from, n) == 0);
    MUST(pan_msg_consume(msg, got, 1) == RNL_ERR_PAST_END);
    pan_msg_clear(msg);
    served++;
    if (ask.how == AT_ONCE) {
        reply(upcall, &ask);
        return;
    }
    if (ask.how == LOCKED) {
        pan_mutex_lock(mutex);
        shared_sum += ask.n;
        pan_cond_signal(cond);
        pan_mutex_unlock(mutex);
        reply(upcall, &ask);
        return;
    }
    struct held *h = malloc(sizeof *h);
    if (!h)
        abort();
    *h = (struct held){.upcall = upcall, .ask = ask};
    if (ask.how == BY_THREAD)
        pan_mutex_lock(mutex);
    h->next = held;
    held = h;
    if (ask.how == BY_THREAD) {
        pan_cond_signal(cond);
        pan_mutex_unlock(mutex);
    }
}

static int call(int dest, struct ask ask)
{
    _Alignas(8) unsigned char proto[128];
    size_t at = pan_rpc_proto_offset();
    pan_msg_p msg = NULL;
    void *back = NULL;
    memcpy(proto + at, &ask, sizeof ask);
    const pan_iovec_t iov[] = {
        {bytes + ask.from, ask.n / 2}, {NULL, 0}, {bytes + ask.from + ask.n / 2, ask.n - ask.n / 2}};
    int status = pan_rpc_trans(dest, iov, 3, proto, at + sizeof ask, &msg, &back);
    if (status < 0)
        return status;
    unsigned char *got = malloc(ask.n + 1);
    MUST(memcmp((char *)back + at, &ask, sizeof ask) == 0 && pan_msg_sender(msg) == dest);
    MUST(pan_msg_left(msg) == ask.n && pan_msg_consume(msg, got, ask.n) == 0);
    MUST(memcmp(got, bytes + ask.from, ask.n) == 0);
    free(got);
    pan_msg_clear(msg);
    return 0;
}

static void release_held(void)
{
    while (held) {
        struct held *h = held;
        held = h->next;
        reply(h->upcall, &h->ask);
        free(h);
    }
}

/* A message to the group ends a round: each rank has sent one for it. */
static int ends_port;
static _Atomic int ends;
static void on_end(pan_msg_p msg, void *proto)
{
    (void)proto;
    ends++;
    pan_msg_clear(msg);
}
static void end_round(void)
{
    _Alignas(8) unsigned char proto[8];
    static int rounds;
    rounds++;
    MUST(pan_group_send(ends_port, NULL, 0, proto, sizeof proto) == 0);
    while (ends < rounds * pan_nr_processes()) {
        int status = pan_wait(5000000);
        MUST(status >= 0 || status == RNL_INTERRUPTED || status == RNL_TIMED_OUT);
    }
}

/* ---- rpc ---- */

static _Atomic unsigned done_count;
static void done(void *arg, int status, pan_msg_p msg, void *proto)
{
    const struct ask *ask = arg;
    (void)proto;
    MUST(status == 0 && msg && pan_msg_left(msg) == ask->n);
    if (msg)
        pan_msg_clear(msg); /* what was not consumed is dropped */
    done_count++;
}

static void rpc(void)
{
    static const uint32_t lengths[] = {0, 1, 4, 20, 21, 50, 1000, 5000, 70000, LONGEST};
    static struct ask asks[64];
    int next = (pan_my_pid() + 1) % pan_nr_processes();
    for (unsigned i = 0; i < 60; i++)
        MUST(call(next, (struct ask){AT_ONCE, lengths[i % 10], i}) == 0);
    end_round();
    MUST(served >= 60 && cleared == 60);
    for (unsigned i = 0; i < 40; i++) { /* many under way, answered in another order and all together */
        _Alignas(8) unsigned char proto[128];
        size_t at = pan_rpc_proto_offset();
        asks[i] = (struct ask){LATER, lengths[i % 9], i};
        memcpy(proto + at, &asks[i], sizeof asks[i]);
        const pan_iovec_t iov = {bytes + i, asks[i].n};
        MUST(pan_rpc_start(next, &iov, 1, proto, at + sizeof asks[i], done, &asks[i]) == 0);
    }
    while (served < 100)
        (void)pan_wait(-1);
    MUST(done_count == 0 || pan_nr_processes() > 1);
    release_held();
    while (done_count < 40)
        (void)pan_wait(-1);
    end_round();
}

/* ---- group ---- */

static int ports[2];
static uint64_t hash = 1, next_of[64];
static _Atomic uint64_t delivered;

static void take(pan_msg_p msg, const char *proto, uint64_t port)
{
    uint64_t i;
    unsigned char got[3000];
    unsigned from = (unsigned)pan_msg_sender(msg);
    size_t n = pan_msg_left(msg);
    memcpy(&i, proto + pan_group_proto_offset(), sizeof i);
    MUST(from < 64 && i == next_of[from]++ && i % 2 == port);
    MUST(n == i * 37 % 3000 && pan_msg_consume(msg, got, n) == 0 && memcmp(got, bytes + i % 256, n) == 0);
    hash = (hash ^ from ^ i << 8) * 0x100000001b3u;
    delivered++;
    pan_msg_clear(msg);
}
static void take_even(pan_msg_p msg, void *proto)
{
    take(msg, proto, 0);
}
static void take_odd(pan_msg_p msg, void *proto)
{
    take(msg, proto, 1);
}

static void group(void)
{
    for (uint64_t i = 0; i < 200; i++) {
        _Alignas(8) unsigned char proto[16];
        const pan_iovec_t iov = {bytes + i % 256, i * 37 % 3000};
        memcpy(proto + pan_group_proto_offset(), &i, sizeof i);
        MUST(pan_group_send(ports[i % 2], &iov, 1, proto, sizeof proto) == 0);
    }
    end_round();
    MUST(delivered == 200u * (unsigned)pan_nr_processes());
    printf("group: rank %d agrees on %016llx\n", pan_my_pid(), (unsigned long long)hash);
}

/* ---- threads ---- */

static void answerer(void *arg)
{
    (void)arg;
    pan_mutex_lock(mutex);
    while (!stop) {
        struct held *list = held;
        held = NULL;
        pan_mutex_unlock(mutex);
        while (list) {
            struct held *h = list;
            list = h->next;
            reply(h->upcall, &h->ask);
            free(h);
        }
        pan_mutex_lock(mutex);
        if (!held && !stop)
            (void)pan_cond_wait(cond);
    }
    pan_mutex_unlock(mutex);
}

static void caller(void *arg)
{
    unsigned self = *(unsigned *)arg;
    for (unsigned i = 0; i < 100; i++) {
        int dest = (pan_my_pid() + 1 + (int)(i % (unsigned)(pan_nr_processes() - 1))) % pan_nr_processes();
        MUST(call(dest, (struct ask){i % 2 ? BY_THREAD : LOCKED, i % 10 == 0 ? 30000 : i, self}) == 0);
    }
}

static void threads(void)
{
    pan_thread_p t[THREADS], a;
    static unsigned self[THREADS] = {0, 1, 2, 3};
    pan_cond_p never = pan_cond_create(mutex);
    a = pan_thread_create(answerer, NULL, 0, 0, 0);
    for (unsigned i = 0; i < THREADS; i++)
        MUST((t[i] = pan_thread_create(caller, &self[i], 1 << 18, 0, 0)) != NULL);
    pan_mutex_lock(mutex);
    MUST(pan_cond_timedwait(never, 2000000) == RNL_TIMED_OUT);
    pan_mutex_unlock(mutex);
    group(); /* its upcalls wait in the queue, with a copy of their message */
    for (unsigned i = 0; i < THREADS; i++)
        pan_thread_join(t[i]);
    end_round();
    pan_mutex_lock(mutex);
    stop = true;
    pan_cond_broadcast(cond);
    pan_mutex_unlock(mutex);
    pan_thread_join(a);
    pan_cond_clear(never);
}

/* ---- death, hostile, alone ---- */

static int dead = -1, dead_status;
static void on_death(void *arg, int pid)
{
    (void)arg;
    dead = pid;
}
static void done_dead(void *arg, int status, pan_msg_p msg, void *proto)
{
    (void)arg, (void)msg, (void)proto;
    dead_status = status;
}

static void death(void)
{
    int victim = pan_nr_processes() - 1;
    _Alignas(8) unsigned char proto[128];
    size_t at = pan_rpc_proto_offset();
    const struct ask ask = {LATER, 0, 0};
    memcpy(proto + at, &ask, sizeof ask);
    if (pan_my_pid() == victim) {
        while (served < 2u * (unsigned)victim)
            (void)pan_wait(-1);
        raise(SIGKILL);
    }
    MUST(pan_rpc_start(victim, NULL, 0, proto, at + sizeof ask, done_dead, NULL) == 0);
    MUST(call(victim, ask) == RNL_ERR_PEER_DEAD);
    while (dead < 0 || dead_status == 0)
        (void)pan_wait(-1);
    MUST(dead == victim && dead_status == RNL_ERR_PEER_DEAD);
    MUST(call(victim, ask) == RNL_ERR_PEER_DEAD);
}

static void on_port(pan_msg_p msg, void *proto)
{
    (void)proto;
    pan_msg_clear(msg);
}

static void hostile(void)
{
    int last = pan_nr_processes() - 1;
    if (pan_my_pid() == last) {
        uint64_t seed = 88172645463325252u;
        for (unsigned i = 0; i < 600; i++) {
            unsigned char junk[48];
            for (unsigned k = 0; k < sizeof junk; k++) {
                seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
                junk[k] = k < 8 || i % 3 == 0 ? (unsigned char)seed : 0;
            }
            if (i % 3)
                junk[8] = (unsigned char)(i % 60), memset(junk, 0, i % 5 ? 8 : 0);
            MUST(rnl_send(pan_endpoint(), 0, 1017, junk, i % 49) == 0); /* replies that nobody asked for */
            MUST(rnl_send(pan_endpoint(), 0, 1019, junk, i % 49) ==
                 0); /* and messages to ports that may not be there */
        }
    }
    for (unsigned i = 0; pan_my_pid() == 0 && i < 50; i++)
        MUST(call(1, (struct ask){AT_ONCE, i * 10, i}) == 0);
    end_round();
}

static void alone(void)
{
    _Alignas(8) unsigned char proto[256];
    pan_msg_p msg;
    void *back;
    const struct ask ask = {AT_ONCE, 4, 0};
    memcpy(proto + pan_rpc_proto_offset(), &ask, sizeof ask);
    const pan_iovec_t iov = {bytes, 4};
    MUST(pan_init(NULL, NULL) == RNL_ERR_CONTEXT && pan_start() == RNL_ERR_CONTEXT);
    MUST(pan_rpc_trans(0, &iov, 1, proto, 15, &msg, &back) == RNL_ERR_ARG);
    MUST(pan_rpc_trans(0, &iov, 1, proto, pan_proto_max_size() + 1, &msg, &back) == RNL_ERR_ARG);
    MUST(pan_rpc_trans(0, &iov, PAN_PIECES_MAX + 1, proto, 32, &msg, &back) == RNL_ERR_ARG);
    MUST(pan_rpc_trans(pan_nr_processes(), &iov, 1, proto, 32, &msg, &back) == RNL_ERR_RANK);
    MUST(pan_group_send(77, NULL, 0, proto, 8) == RNL_ERR_ARG);
    MUST(pan_group_register_port(on_end) == RNL_ERR_CONTEXT);
    MUST(call(0, ask) == 0); /* itself */
    MUST(pan_wait(1000) == RNL_TIMED_OUT);
    pan_sleep(1000);
    MUST(pan_mutex_trylock(mutex) != 0);
    MUST(pan_thread_create(caller, NULL, 0, 0, 0) == NULL); /* with a mutex held */
    pan_mutex_unlock(mutex);
    pan_mutex_lock(mutex); /* what a send delivers meanwhile is due when somebody waits */
    MUST(pan_group_send(ends_port, NULL, 0, proto, 8) == 0 && ends == 0);
    pan_mutex_unlock(mutex);
    MUST(pan_wait(60000000000) == 0 && ends == 1);
    ends = 0;
    MUST(pan_mp_send(0, 0, NULL, 0, proto, 8) == RNL_ERR_ARG && pan_mp_register_port(on_end) == RNL_ERR_CONTEXT);
    void *block = pan_proto_create(300);
    MUST(block != NULL);
    free(block);
    end_round();
}

/* Calls of a process without a handler end with RNL_ERR_HANDLER, as a wait and as an upcall. */
static void mute(void)
{
    int last = pan_nr_processes() - 1;
    _Alignas(8) unsigned char proto[128];
    size_t at = pan_rpc_proto_offset();
    const struct ask ask = {AT_ONCE, 30000, 0};
    memcpy(proto + at, &ask, sizeof ask);
    if (pan_my_pid() != last) {
        MUST(call(last, ask) == RNL_ERR_HANDLER && strstr(rnl_last_error()->text, "pan_rpc_register"));
        MUST(pan_rpc_start(last, NULL, 0, proto, at + sizeof ask, done_dead, NULL) == 0);
        while (dead_status == 0)
            (void)pan_wait(-1);
        MUST(dead_status == RNL_ERR_HANDLER);
    } else {
        MUST(call(0, ask) == 0);
    }
    end_round();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*f)(void);
    } modes[] = {{"rpc", rpc},         {"group", group}, {"threads", threads}, {"death", death},
                 {"hostile", hostile}, {"alone", alone}, {"mute", mute}};
    mode = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    if (pan_init(&argc, argv) < 0)
        return 1;
    mutex = pan_mutex_create();
    cond = pan_cond_create(mutex);
    if (strcmp(mode, "mute") != 0 || pan_my_pid() < pan_nr_processes() - 1)
        pan_rpc_register(on_request);
    pan_on_death(on_death, NULL);
    ports[0] = pan_group_register_port(take_even);
    ports[1] = pan_group_register_port(take_odd);
    ends_port = pan_group_register_port(on_end);
    if (strcmp(mode, "hostile") == 0)
        MUST(pan_mp_register_port(on_port) == 0);
    if (pan_start() < 0)
        return 1;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i].name) == 0)
            modes[i].f();
    int rank = pan_my_pid(), status = pan_end();
    pan_cond_clear(cond);
    pan_mutex_clear(mutex);
    if (status < 0) {
        printf("%s: rank %d: pan_end: %s\n", mode, rank, rnl_last_error()->text);
        failures++;
    }
    if (!failures)
        printf("%s: rank %d is right\n", mode, rank);
    return failures > 0;
}
