/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apart.c - two processes of which one is not there: they have not met, it makes no progress, has no room, or dies:
 * `apart CASE`, or `apart all`. */
#include "sides.h"

enum { CROWD = 20000, SELDOM = 20 };

static void tsend(const void *buf, size_t n, uint64_t tag, void *context)
{
    MUST(fi_tsend(ep, buf, n, NULL, other, tag, context) == 0);
}

/* The other one dies, with a message announced, one asked for, and one that a receive waits for. What it had sent whole
 * is received later; a receive of what it has only announced is told, and so is one that it cannot fill any more. */
static void death(void)
{
    static char big[1 << 20], to[8], ctx[3];
    struct iovec iov = {to, sizeof to};
    struct fi_msg several = {.msg_iov = &iov, .iov_count = 1, .addr = other, .context = &ctx[2]};
    struct fi_msg_tagged probe = {.addr = other, .tag = 4, .context = &ctx[0]};
    struct fi_cq_tagged_entry e;
    fi_addr_t source;
    if (side == 1) {
        MUST(fi_tinject(ep, "x", 1, other, 1) == 0);
        tsend(big, sizeof big, 2, &ctx[0]);
        MUST(fi_tinject(ep, "y", 1, other, 4) == 0);
        barrier();
        raise(SIGKILL);
    }
    MUST(fi_trecv(ep, to, 8, NULL, other, 1, 0, &ctx[0]) == 0);
    await(&ctx[0]);
    tsend(big, sizeof big, 3, &ctx[1]);
    MUST(fi_trecv(ep, to, 8, NULL, other, 9, 0, &ctx[2]) == 0); /* nobody else can fill it */
    barrier();
    MUST(next(&e, &source) == FI_ECONNRESET && e.op_context == &ctx[1]);
    MUST(next(&e, &source) == FI_ECONNRESET && e.op_context == &ctx[2]);
    MUST(fi_cntr_readerr(counter) == 1);
    MUST(fi_trecvmsg(ep, &probe, FI_PEEK) == 0 && await(&ctx[0]).len == 1);
    MUST(fi_trecv(ep, to, 8, NULL, other, 4, 0, &ctx[0]) == 0);
    MUST(await(&ctx[0]).len == 1 && to[0] == 'y');
    MUST(fi_trecvmsg(ep, &probe, FI_PEEK) == -FI_ECONNRESET);
    MUST(fi_trecv(ep, big, sizeof big, NULL, FI_ADDR_UNSPEC, 2, 0, &ctx[1]) == 0);
    MUST(next(&e, &source) == FI_ECONNRESET && e.op_context == &ctx[1]);
    MUST(fi_trecv(ep, to, 8, NULL, other, 9, 0, &ctx[2]) == 0);
    MUST(next(&e, &source) == FI_ECONNRESET && e.op_context == &ctx[2]);
    MUST(fi_recvmsg(ep, &several, FI_MULTI_RECV) == 0);
    MUST(next(&e, &source) == FI_ECONNRESET && e.op_context == &ctx[2]);
    MUST(fi_cntr_readerr(counter) == 4);
    MUST(fi_tinject(ep, "x", 1, other, 3) == -FI_ECONNRESET);
    MUST(fi_tsend(ep, to, 8, NULL, other, 3, &ctx[1]) == -FI_ECONNRESET);
}

/* Both make progress seldom, and send to each other: they have met, and have what was sent, after few calls. */
static void seldom(void)
{
    char ctx[2], to[8], c = 'c';
    unsigned done = 0, calls = 0;
    struct fi_cq_tagged_entry e;
    MUST(fi_trecv(ep, to, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &ctx[0]) == 0);
    tsend("x", 1, 1, &ctx[1]);
    for (char other_done = 0; done < 2 || other_done < 2; calls++) { /* by turns */
        ssize_t n = fi_cq_read(cq, &e, 1);
        MUST(n == 1 || n == -FI_EAGAIN);
        done += n == 1;
        c = (char)done;
        MUST(write(to_other, &c, 1) == 1 && read(from_other, &other_done, 1) == 1);
        usleep(1000); /* a while has passed */
    }
    MUST(calls < SELDOM);
}

/* Side 1 dies before the two have met: who waits for what it alone could send is told, even if it sleeps. */
static void unmet_death(void)
{
    char to[8], ctx, c = 'c';
    struct fi_cq_tagged_entry e;
    struct fi_cq_err_entry error = {0};
    time_t begun = time(NULL);
    ssize_t n;
    if (side == 1) {
        MUST(read(from_other, &c, 1) == 1);
        raise(SIGKILL);
    }
    MUST(fi_trecv(ep, to, 8, NULL, other, 1, 0, &ctx) == 0);
    MUST(write(to_other, &c, 1) == 1);
    while ((n = fi_cq_sread(cq, &e, 1, NULL, WAIT_S * 1000)) == -FI_EAGAIN)
        MUST(!late(begun));
    MUST(n == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1);
    MUST(error.op_context == &ctx && (error.err == FI_EHOSTUNREACH || error.err == FI_ECONNRESET));
}

/* The same for who only probes for it. */
static void unmet_probe(void)
{
    char ctx, c = 'c';
    struct fi_msg_tagged m = {.addr = other, .tag = 1, .context = &ctx};
    time_t begun = time(NULL);
    int status;
    if (side == 1) {
        MUST(read(from_other, &c, 1) == 1);
        raise(SIGKILL);
    }
    MUST(write(to_other, &c, 1) == 1);
    while ((status = (int)fi_trecvmsg(ep, &m, FI_PEEK)) == 0)
        MUST(next(&(struct fi_cq_tagged_entry){0}, &(fi_addr_t){0}) == FI_ENOMSG && !late(begun));
    MUST(status == -FI_ECONNRESET);
}

/* What is injected goes on its way before the call says that it has: no more progress is needed. */
static void inject(const char *text, uint64_t tag)
{
    time_t begun = time(NULL);
    int status;
    while ((status = (int)fi_tinject(ep, text, strlen(text) + 1, other, tag)) == -FI_EAGAIN)
        MUST(!late(begun));
    MUST(status == 0);
}

/* Side 0 injects what introduces it, and waits by other means then, as MPI does that asks its launcher. Side 1 calls
 * nothing before that, so that the introduction comes after the call. */
static void injected(void)
{
    char ctx, to[8], c = 'c';
    if (side == 0) {
        inject("alone", 1);
        MUST(write(to_other, &c, 1) == 1 && read(from_other, &c, 1) == 1);
        return;
    }
    MUST(read(from_other, &c, 1) == 1);
    MUST(fi_trecv(ep, to, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &ctx) == 0);
    await(&ctx);
    MUST(strcmp(to, "alone") == 0 && write(to_other, &c, 1) == 1);
}

/* Side 0 injects more than side 1 has room for, which receives only when side 0 waits by other means. */
static void overfull(void)
{
    unsigned count = 0;
    char ctx, c = 'c';
    uint64_t block[8] = {0};
    if (side == 0) {
        for (; fi_tinject(ep, block, sizeof block, other, 1) == 0; block[0] = ++count)
            ;
        MUST(write(to_other, &count, sizeof count) == sizeof count && read(from_other, &c, 1) == 1);
    } else {
        MUST(read(from_other, &count, sizeof count) == sizeof count && count > 0);
        for (unsigned i = 0; i < count; i++) {
            MUST(fi_trecv(ep, block, sizeof block, NULL, other, 1, 0, &ctx) == 0);
            await(&ctx);
            MUST(block[0] == i);
        }
        MUST(write(to_other, &c, 1) == 1);
    }
    barrier();
}

/* Side 1 has sent more than side 0 takes in, when it matches a message of which side 0 awaits that. Then it waits by
 * other means: side 0 is told all the same. */
static void matched(void)
{
    char to[8], c = 'c', ctx;
    struct fi_cq_tagged_entry e;
    struct iovec iov = {to, sizeof to};
    struct fi_msg_tagged m = {.msg_iov = &iov, .iov_count = 1, .addr = other, .tag = 1, .context = &ctx};
    time_t begun = time(NULL);
    if (side == 0) {
        MUST(fi_tsendmsg(ep, &m, FI_MATCH_COMPLETE) == 0);
        barrier();
        MUST(read(from_other, &c, 1) == 1);
        await(&ctx);
        MUST(write(to_other, &c, 1) == 1);
    } else {
        barrier();
        while (!(fi_trecvmsg(ep, &m, FI_PEEK) == 0 && next(&e, &(fi_addr_t){0}) == 0))
            MUST(!late(begun));
        for (unsigned i = 0; i < CROWD; i++)
            tsend(to, sizeof to, 2, &c);
        MUST(fi_trecv(ep, to, sizeof to, NULL, other, 1, 0, &ctx) == 0);
        while (next(&e, &(fi_addr_t){0}) == 0 && e.op_context != &ctx)
            ;
        MUST(e.op_context == &ctx && write(to_other, &c, 1) == 1 && read(from_other, &c, 1) == 1);
    }
    barrier();
}

/* Side 0 is introduced by its first send, and leaves at once: what it sent is taken in all the same. */
static void leaving(void)
{
    char to[4][16], ctx[4];
    if (side == 0) {
        MUST(fi_send(ep, "one", 4, NULL, other, &ctx[0]) == 0);
        inject("two", 2);
        await(&ctx[0]);
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        MUST((i ? fi_trecv(ep, to[i], 16, NULL, FI_ADDR_UNSPEC, 2, 0, &ctx[i])
                : fi_recv(ep, to[i], 16, NULL, FI_ADDR_UNSPEC, &ctx[i])) == 0);
    await(&ctx[0]);
    await(&ctx[1]);
    MUST(strcmp(to[0], "one") == 0 && strcmp(to[1], "two") == 0);
}

static const struct side_case cases[] = {
    {.name = "injected", .run = injected, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE, .unmet = true},
    {.name = "injected by one thread", .run = injected, .threading = FI_THREAD_DOMAIN, .unmet = true},
    {.name = "injected without room", .run = overfull, .threading = FI_THREAD_DOMAIN, .wait = FI_WAIT_NONE},
    {.name = "matched without room", .run = matched, .threading = FI_THREAD_DOMAIN, .wait = FI_WAIT_NONE},
    {.name = "seldom", .run = seldom, .threading = FI_THREAD_DOMAIN, .wait = FI_WAIT_NONE, .unmet = true},
    {.name = "leaving", .run = leaving, .threading = FI_THREAD_DOMAIN, .wait = FI_WAIT_NONE, .unmet = true},
    {.name = "death", .run = death, .threading = FI_THREAD_SAFE, .wait = FI_WAIT_NONE, .kills = true},
    {.name = "death of one not met", .run = unmet_death, .wait = FI_WAIT_FD, .kills = true, .unmet = true},
    {.name = "death of one not met that is probed for", .run = unmet_probe, .kills = true, .unmet = true},
};

int main(int argc, char **argv)
{
    return run_cases(cases, sizeof cases / sizeof *cases, argc, argv);
}
