/* SPDX-License-Identifier: BSD-3-Clause
 *
 * two.c - messages between two processes, with tags and without: `two CASE`, or `two all`. */
#include "sides.h"

#include <pthread.h>
#include <semaphore.h>

enum { FLOOD = 1000, FLOOD_BYTES = 64 << 10, FLOOD_MOST_KIB = 40 << 10 };
enum { SENDERS = 3, EACH = 300, AT_ONCE = 4, LONG_BYTES = 100000, SHORT_BYTES = 48, FORKS = 100 };

static void tsend(const void *buf, size_t n, uint64_t tag, void *context)
{
    MUST(fi_tsend(ep, buf, n, NULL, other, tag, context) == 0);
}

/* ---- cases ---- */

/* A receive takes the first message that fits, a message the first receive, whatever the bits are that each ignores. */
static void order(void)
{
    char ctx[8], to[8][8];
    struct fi_cq_tagged_entry e;
    if (side == 0) {
        barrier();
        for (uint64_t i = 0; i < 4; i++)
            MUST(fi_tinject(ep, &i, sizeof i, other, 0x10 + i) == 0);
        barrier();
        for (uint64_t i = 0; i < 4; i++)
            MUST(fi_tinject(ep, &i, sizeof i, other, 0x20 + i) == 0);
        barrier();
        return;
    }
    /* posted first: any of 0x1?, exactly 0x11, from the other any, exactly 0x12 */
    MUST(fi_trecv(ep, to[0], 8, NULL, FI_ADDR_UNSPEC, 0x10, 0xf, &ctx[0]) == 0);
    MUST(fi_trecv(ep, to[1], 8, NULL, other, 0x11, 0, &ctx[1]) == 0);
    MUST(fi_trecv(ep, to[2], 8, NULL, other, 0, ~0ull, &ctx[2]) == 0);
    MUST(fi_trecv(ep, to[3], 8, NULL, FI_ADDR_UNSPEC, 0x13, 0, &ctx[3]) == 0);
    barrier();
    for (unsigned i = 0; i < 4; i++) {
        e = await(&ctx[i]);
        MUST(e.tag == 0x10 + i && e.len == 8 && memcmp(to[i], &(uint64_t){i}, 8) == 0);
    }
    barrier();
    /* come first */
    barrier();
    MUST(fi_trecv(ep, to[0], 8, NULL, other, 0x22, 0, &ctx[0]) == 0);
    MUST(fi_trecv(ep, to[1], 8, NULL, FI_ADDR_UNSPEC, 0x20, 0xf, &ctx[1]) == 0);
    MUST(fi_trecv(ep, to[2], 8, NULL, other, 0x3, ~0x3ull, &ctx[2]) == 0);
    MUST(fi_trecv(ep, to[3], 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &ctx[3]) == 0);
    static const unsigned tag[4] = {0x22, 0x20, 0x23, 0x21};
    for (unsigned i = 0; i < 4; i++)
        MUST(await(&ctx[i]).tag == tag[i]);
}

/* More classes of receives than have tables of their own. */
static void classes(void)
{
    char ctx[16], to[8];
    if (side == 0) {
        barrier();
        for (unsigned i = 0; i < 16; i++)
            MUST(fi_tinject(ep, "x", 1, other, 1ull << i) == 0);
        barrier();
        for (unsigned i = 0; i < 16; i++)
            MUST(fi_tinject(ep, "x", 1, other, 1ull << i) == 0);
        barrier();
        return;
    }
    for (unsigned i = 0; i < 16; i++)
        MUST(fi_trecv(ep, to, 8, NULL, i % 2 ? other : FI_ADDR_UNSPEC, 1ull << i, 1ull << i, &ctx[i]) == 0);
    barrier();
    for (unsigned i = 0; i < 16; i++) { /* the first ignores its own bit only, so each fits one receive */
        struct fi_cq_tagged_entry e = await(&ctx[i]);
        MUST(e.tag == 1ull << i);
    }
    barrier();
    barrier();
    for (unsigned i = 16; i-- > 0;) {
        MUST(fi_trecv(ep, to, 8, NULL, other, 1ull << i, 1ull << (16 + i), &ctx[i]) == 0);
        MUST(await(&ctx[i]).tag == 1ull << i);
    }
}

/* All lengths around the limits of the ways, posted before and after, from pieces to pieces. */
static void lengths(void)
{
    static const size_t length[] = {0, 1, 40, 41, 64, 65, 4096, 65535, 65536, 65537, 300000, 5000000};
    char ctx[2];
    for (unsigned i = 0; i < 2 * sizeof length / sizeof *length; i++) {
        size_t n = length[i / 2], cut = n / 3;
        unsigned char *a = malloc(n + 1), *b = calloc(1, n + 1);
        struct iovec from[3] = {{a, cut}, {a + cut, 0}, {a + cut, n - cut}}, to[2] = {{b, n - cut}, {b + n - cut, cut}};
        fill(a, n, i);
        if (side == 0) {
            barrier();
            MUST(fi_tsendv(ep, from, NULL, 3, other, i, &ctx[0]) == 0);
            if (i % 2)
                barrier();
            await(&ctx[0]);
        } else {
            if (i % 2 == 0)
                MUST(fi_trecvv(ep, to, NULL, 2, other, i, 0, &ctx[1]) == 0);
            barrier();
            if (i % 2) {
                barrier();
                struct fi_cq_tagged_entry e;
                MUST(fi_cq_read(cq, &e, 1) == -FI_EAGAIN);
                MUST(fi_trecvv(ep, to, NULL, 2, other, i, 0, &ctx[1]) == 0);
            }
            MUST(await(&ctx[1]).len == n && memcmp(a, b, n) == 0);
        }
        free(a);
        free(b);
        barrier();
    }
}

static void probes(void)
{
    struct fi_context ctx, got;
    char to[8];
    struct fi_cq_tagged_entry e;
    fi_addr_t source;
    struct iovec iov = {to, sizeof to};
    struct fi_msg_tagged m = {.msg_iov = &iov, .iov_count = 1, .addr = other, .tag = 1, .context = &ctx};
    if (side == 0) {
        for (uint64_t tag = 1; tag < 5; tag++)
            MUST(fi_tinjectdata(ep, &tag, 8, 70 + tag, other, tag) == 0);
        barrier();
        barrier();
        return;
    }
    barrier();
    m.tag = 9;
    MUST(fi_trecvmsg(ep, &m, FI_PEEK) == 0 && next(&e, &source) == FI_ENOMSG && e.op_context == &ctx);
    m.tag = 2;
    for (int i = 0; i < 2; i++) {
        MUST(fi_trecvmsg(ep, &m, FI_PEEK) == 0);
        e = await(&ctx);
        MUST(e.len == 8 && e.tag == 2 && e.data == 72 && e.flags & FI_REMOTE_CQ_DATA);
    }
    MUST(fi_trecvmsg(ep, &m, FI_PEEK | FI_CLAIM) == 0);
    await(&ctx);
    m.tag = 3;
    MUST(fi_trecvmsg(ep, &m, FI_PEEK | FI_DISCARD) == 0);
    await(&ctx);
    MUST(fi_trecv(ep, to, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &got) == 0 && await(&got).tag == 1);
    MUST(fi_trecv(ep, to, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &got) == 0 && await(&got).tag == 4);
    memset(&got, 0, sizeof got);
    m.tag = 2;
    m.context = &got;
    got.internal[0] = ctx.internal[0]; /* a claim is taken by the context that claimed */
    MUST(fi_trecvmsg(ep, &m, FI_CLAIM) == 0 && await(&got).len == 8 && to[0] == 2);
    barrier();
}

static void multi(void)
{
    char buf[4096], ctx;
    struct iovec iov = {buf, sizeof buf};
    struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &ctx};
    size_t least = 1024, got = 0;
    if (side == 0) {
        char some[1000];
        barrier();
        for (int i = 0; i < 4; i++) {
            memset(some, i, sizeof some);
            MUST(fi_send(ep, some, sizeof some, NULL, other, &ctx) == 0);
            await(&ctx);
            if (i == 1)
                barrier();
        }
        barrier();
        return;
    }
    MUST(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least) == 0);
    barrier();
    barrier(); /* two have come */
    MUST(fi_recvmsg(ep, &m, FI_MULTI_RECV) == 0);
    for (int i = 0;; i++) {
        struct fi_cq_tagged_entry e = await(&ctx);
        MUST(e.len == 1000 && (char *)e.buf == buf + got && *(char *)e.buf == i);
        got += e.len;
        if (e.flags & FI_MULTI_RECV)
            break;
    }
    MUST(got == 4000); /* after the fourth less than 1,024 are left */
    barrier();
}

static void cancels(void)
{
    char ctx[2], to[4];
    struct fi_cq_tagged_entry e;
    fi_addr_t source;
    if (side == 1) {
        MUST(fi_trecv(ep, to, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &ctx[0]) == 0);
        MUST(fi_cancel(&ep->fid, &ctx[1]) == -FI_ENOENT && fi_cancel(&ep->fid, &ctx[0]) == 0);
        MUST(next(&e, &source) == FI_ECANCELED && e.op_context == &ctx[0]);
        MUST(fi_trecv(ep, to, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &ctx[1]) == 0);
        barrier();
        MUST(next(&e, &source) == FI_ETRUNC && e.op_context == &ctx[1] && e.len == 4 && memcmp(to, "abcd", 4) == 0);
    } else {
        barrier();
        tsend("abcdefgh", 8, 1, &ctx[0]);
        await(&ctx[0]);
        char big[65]; /* one more than inject_size */
        memset(big, 0, sizeof big);
        MUST(fi_tinject(ep, big, sizeof big, other, 1) == -FI_EINVAL);
        MUST(fi_tsend(ep, big, 1, NULL, 77, 1, &ctx[0]) == -FI_EINVAL);
    }
    barrier();
}

/* Sends that are complete when they have come, or have been matched. */
static void acknowledged(void)
{
    char ctx, to[8];
    struct fi_cq_tagged_entry e;
    struct iovec iov = {to, sizeof to};
    struct fi_msg_tagged m = {.msg_iov = &iov, .iov_count = 1, .addr = other, .tag = 1, .context = &ctx};
    if (side == 0) {
        MUST(fi_tsendmsg(ep, &m, FI_DELIVERY_COMPLETE) == 0);
        await(&ctx);
        m.tag = 2;
        MUST(fi_tsendmsg(ep, &m, FI_MATCH_COMPLETE) == 0);
        barrier();
        barrier();
        MUST(fi_cq_read(cq, &e, 1) == -FI_EAGAIN);
        barrier();
        await(&ctx);
        barrier();
        return;
    }
    time_t begun = time(NULL);
    while (!(m.tag = 1, fi_trecvmsg(ep, &m, FI_PEEK) == 0 && next(&e, &(fi_addr_t){0}) == 0))
        MUST(!late(begun));
    barrier();
    m.tag = 2;
    while (!(fi_trecvmsg(ep, &m, FI_PEEK) == 0 && next(&e, &(fi_addr_t){0}) == 0))
        MUST(!late(begun));
    barrier();
    barrier();
    MUST(fi_trecv(ep, to, 8, NULL, other, 2, 0, &ctx) == 0);
    await(&ctx);
    barrier();
}

/* Both send a thousand of 64 KiB before they receive one, and take them in reverse order. */
static void flood(void)
{
    unsigned char *a = malloc(FLOOD_BYTES), *b = malloc(FLOOD_BYTES);
    static char sent[FLOOD], ctx;
    struct rusage before, after;
    fill(a, FLOOD_BYTES, 3);
    getrusage(RUSAGE_SELF, &before);
    for (uint64_t i = 0; i < FLOOD; i++)
        tsend(a, FLOOD_BYTES, i, &sent[i]);
    unsigned done = 0;
    for (uint64_t i = FLOOD; i-- > 0;) {
        MUST(fi_trecv(ep, b, FLOOD_BYTES, NULL, other, i, 0, &ctx) == 0);
        struct fi_cq_tagged_entry e;
        fi_addr_t source;
        for (bool got = false; !got; done += !got) {
            MUST(next(&e, &source) == 0);
            got = e.op_context == &ctx;
        }
        MUST(e.tag == i && source == other && memcmp(a, b, FLOOD_BYTES) == 0);
    }
    struct fi_cq_tagged_entry e;
    fi_addr_t source;
    for (; done < FLOOD; done++)
        MUST(next(&e, &source) == 0);
    getrusage(RUSAGE_SELF, &after);
    MUST(fi_cntr_read(counter) >= FLOOD);
    printf("# side %d grew by %ld KiB\n", side, after.ru_maxrss - before.ru_maxrss);
    MUST(after.ru_maxrss - before.ru_maxrss < FLOOD_MOST_KIB);
    barrier();
    free(a);
    free(b);
}

/* A wait sleeps, and ends when something comes, by its descriptor, too. */
static void waits(void)
{
    char ctx, to[8];
    struct fi_cq_tagged_entry e;
    struct fid *fid = &cq->fid;
    struct timespec begun, ended;
    int fd;
    if (side == 0) {
        usleep(100000);
        MUST(fi_tinject(ep, "x", 1, other, 1) == 0);
        barrier();
        MUST(fi_tinject(ep, "x", 1, other, 1) == 0);
        barrier();
        return;
    }
    MUST(fi_cq_sread(cq, &e, 1, NULL, 10) == -FI_EAGAIN);
    MUST(fi_trecv(ep, to, 8, NULL, other, 1, 0, &ctx) == 0);
    MUST(fi_cq_sread(cq, &e, 1, NULL, WAIT_S * 1000) == 1);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    MUST(fi_cq_sread(cq, &e, 1, NULL, 200) == -FI_EAGAIN);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    MUST((ended.tv_sec - begun.tv_sec) * 1000 + (ended.tv_nsec - begun.tv_nsec) / 1000000 >= 198);
    barrier();
    MUST(fi_control(fid, FI_GETWAIT, &fd) == 0 && fd >= 0);
    barrier();
    MUST(fi_trecv(ep, to, 8, NULL, other, 1, 0, &ctx) == 0);
    MUST(fi_trywait(fabric, &fid, 1) == -FI_EAGAIN); /* it is here */
    await(&ctx);
    MUST(fi_cq_signal(cq) == 0 && fi_cq_sread(cq, &e, 1, NULL, WAIT_S * 1000) == -FI_EAGAIN);
}

/* Threads send and post receives while another one sleeps for all of their completions. */
struct exchange {
    unsigned char *from, *to;
    size_t bytes;
    unsigned number, left;
    sem_t *room;
};
static struct exchange exchanges[SENDERS][EACH];
static sem_t rooms[SENDERS];

static void *exchange(void *arg)
{
    struct exchange *x = arg;
    for (unsigned i = 0; i < EACH; i++, x++) {
        x->bytes = i % 16 == 15 ? LONG_BYTES : SHORT_BYTES;
        x->number = (unsigned)(x - exchanges[0]);
        x->left = 2;
        x->from = malloc(x->bytes);
        x->to = calloc(1, x->bytes);
        fill(x->from, x->bytes, x->number);
        while (sem_wait(x->room) < 0)
            ;
        MUST(fi_trecv(ep, x->to, x->bytes, NULL, other, x->number, 0, x) == 0);
        tsend(x->from, x->bytes, x->number, x);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[SENDERS];
    struct fi_cq_tagged_entry e;
    barrier();
    for (unsigned t = 0; t < SENDERS; t++) {
        MUST(sem_init(&rooms[t], 0, AT_ONCE) == 0);
        for (unsigned i = 0; i < EACH; i++)
            exchanges[t][i].room = &rooms[t];
        MUST(pthread_create(&thread[t], NULL, exchange, exchanges[t]) == 0);
    }
    for (unsigned done = 0; done < SENDERS * EACH;) {
        ssize_t n = fi_cq_sread(cq, &e, 1, NULL, WAIT_S * 1000);
        if (n == -FI_EAGAIN)
            continue;
        MUST(n == 1);
        struct exchange *x = e.op_context;
        if (--x->left)
            continue;
        MUST(memcmp(x->from, x->to, x->bytes) == 0);
        free(x->from);
        free(x->to);
        sem_post(x->room);
        done++;
    }
    for (unsigned t = 0; t < SENDERS; t++)
        MUST(pthread_join(thread[t], NULL) == 0);
}

/* A sleep on the descriptor of a queue ends by whatever another call completes meanwhile, and not by what was read. */
static void descriptor(void)
{
    struct fid *fid = &cq->fid;
    struct pollfd p = {.events = POLLIN};
    struct fi_cq_tagged_entry e;
    char c;
    barrier();
    MUST(fi_control(fid, FI_GETWAIT, &p.fd) == 0);
    for (unsigned i = 0; i < 10; i++) {
        int status;
        while ((status = fi_trywait(fabric, &fid, 1)) == -FI_EAGAIN)
            MUST(fi_cq_read(cq, &e, 1) == -FI_EAGAIN);
        MUST(status == 0);
        tsend("x", 1, i, &c);
        MUST(poll(&p, 1, 0) == 1);
        await(&c);
    }
    barrier();
}

/* A signal ends the waits of all threads, and one that nobody waits for ends the next wait. */
static void *sleeps(void *arg)
{
    struct fi_cq_tagged_entry e;
    MUST(fi_cq_sread(cq, &e, 1, NULL, -1) == -FI_EAGAIN);
    return arg;
}

static void signals(void)
{
    pthread_t thread[SENDERS];
    barrier();
    for (unsigned t = 0; t < SENDERS; t++)
        MUST(pthread_create(&thread[t], NULL, sleeps, NULL) == 0);
    usleep(200000);
    MUST(fi_cq_signal(cq) == 0);
    for (unsigned t = 0; t < SENDERS; t++)
        MUST(pthread_join(thread[t], NULL) == 0);
    barrier();
}

/* A child that is forked while another thread is in a call is refused, and does not wait for that thread. */
static _Atomic bool calls_end;
static void *calls(void *arg)
{
    struct fi_cq_tagged_entry e;
    while (!calls_end)
        MUST(fi_cq_read(cq, &e, 1) == -FI_EAGAIN);
    return arg;
}

static void forked(void)
{
    pthread_t thread;
    struct fi_cq_tagged_entry e;
    barrier();
    MUST(pthread_create(&thread, NULL, calls, NULL) == 0);
    for (unsigned i = 0; i < FORKS; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(WAIT_S); /* which is not inherited */
            ssize_t n = fi_cq_read(cq, &e, 1);
            _exit(n < 0 && n != -FI_EAGAIN ? 0 : 1);
        }
        MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    calls_end = true;
    MUST(pthread_join(thread, NULL) == 0);
    barrier();
}

/* What is no name, and what the provider cannot do, is refused. */
static void refusals(void)
{
    unsigned char name[64] = "RNLF";
    fi_addr_t address = 7;
    struct fi_info *hints = fi_allocinfo(), *found;
    MUST(fi_av_insert(av, name, 1, &address, 0, NULL) == 0 && address == FI_ADDR_NOTAVAIL);
    hints->fabric_attr->prov_name = strdup("rnl");
    hints->caps = FI_MSG | FI_COLLECTIVE;
    MUST(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &found) == -FI_ENODATA);
    hints->caps = FI_MSG;
    hints->ep_attr->type = FI_EP_MSG;
    MUST(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &found) == -FI_ENODATA);
    fi_freeinfo(hints);
    MUST(fi_ep_bind(ep, &cq->fid, FI_RECV) == -FI_EOPBADSTATE);
    MUST(fi_ep_bind(ep, &counter->fid, FI_SEND | FI_WRITE) == 0); /* as OpenSHMEM does, when it is enabled */
    barrier();
}

static const struct side_case cases[] = {
    {.name = "order", .run = order, .threading = FI_THREAD_DOMAIN, .wait = FI_WAIT_NONE},
    {.name = "classes", .run = classes, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE},
    {.name = "lengths", .run = lengths, .threading = FI_THREAD_DOMAIN, .wait = FI_WAIT_NONE},
    {.name = "lengths of acknowledged sends",
     .run = lengths,
     .threading = FI_THREAD_SAFE,
     .op_flags = FI_DELIVERY_COMPLETE,
     .wait = FI_WAIT_NONE},
    {.name = "probes", .run = probes, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE},
    {.name = "multi-receives", .run = multi, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE},
    {.name = "cancelled and cut off", .run = cancels, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE},
    {.name = "acknowledged", .run = acknowledged, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE},
    {.name = "flood", .run = flood, .threading = FI_THREAD_DOMAIN, .wait = FI_WAIT_NONE},
    {.name = "waits", .run = waits, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_FD},
    {.name = "threads", .run = threads, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_FD},
    {.name = "threads that help a thread",
     .run = threads,
     .threading = FI_THREAD_SAFE,
     .wait = FI_WAIT_FD,
     .progress = FI_PROGRESS_AUTO},
    {.name = "descriptor", .run = descriptor, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_FD},
    {.name = "signals", .run = signals, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_FD},
    {.name = "forked", .run = forked, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE},
    {.name = "refusals", .run = refusals, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE},
};

int main(int argc, char **argv)
{
    return run_cases(cases, sizeof cases / sizeof *cases, argc, argv);
}
