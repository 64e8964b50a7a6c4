/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sides.h - tests of two processes that talk by libfabric over the provider that FI_PROVIDER_PATH names. Each case is a
 * function that both run, as side 0 and side 1. They meet at barriers of pipes, which carry their names too. A test
 * defines `cases` and calls run_cases, which prints "ok - case" or "not ok - case: why". */
#ifndef TEST_OFI_SIDES_H
#define TEST_OFI_SIDES_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_S = 40 };

struct side_case {
    const char *name;
    void (*run)(void);
    enum fi_threading threading;
    uint64_t op_flags;
    enum fi_wait_obj wait;
    int mr_mode;
    enum fi_progress progress;
    bool kills; /* side 1 is killed */
    bool unmet; /* the sides do not greet each other, and do not meet at the end */
};

static int side, to_other, from_other;
static const char *running;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_cntr *counter;
static struct fid_ep *ep;
static fi_addr_t other;

#define MUST(x)                                                                         \
    do {                                                                                \
        if (!(x)) {                                                                     \
            printf("not ok - %s, side %d: %s, line %d\n", running, side, #x, __LINE__); \
            fflush(stdout);                                                             \
            _exit(1);                                                                   \
        }                                                                               \
    } while (0)

/* Progress is manual, so who waits for the other one makes some. */
static void barrier(void)
{
    char c = 'b';
    struct pollfd p = {.fd = from_other, .events = POLLIN};
    MUST(write(to_other, &c, 1) == 1);
    while (poll(&p, 1, 0) == 0)
        (void)fi_cq_read(cq, NULL, 0);
    MUST(read(from_other, &c, 1) == 1);
    (void)fi_cq_read(cq, NULL, 0); /* what was sent before comes in */
}

/* ---- an endpoint ---- */

static void open_with(const struct side_case *c)
{
    struct fi_info *hints = fi_allocinfo();
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = c->wait};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cntr_attr counter_attr = {.events = FI_CNTR_EVENTS_COMP};
    unsigned char name[64], theirs[64];
    size_t n = 0;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
    hints->domain_attr->threading = c->threading;
    hints->tx_attr->op_flags = c->op_flags;
    hints->domain_attr->mr_mode = c->mr_mode;
    hints->domain_attr->data_progress = c->progress;
    hints->fabric_attr->prov_name = strdup("rnl");
    MUST(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info) == 0);
    fi_freeinfo(hints);
    MUST(info->domain_attr->mr_mode == c->mr_mode);
    MUST(!c->progress || info->domain_attr->data_progress == c->progress);
    MUST(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
    MUST(fi_domain(fabric, info, &domain, NULL) == 0);
    MUST(fi_av_open(domain, &av_attr, &av, NULL) == 0);
    MUST(fi_cq_open(domain, &cq_attr, &cq, NULL) == 0);
    MUST(fi_cntr_open(domain, &counter_attr, &counter, NULL) == 0);
    MUST(fi_endpoint(domain, info, &ep, NULL) == 0);
    MUST(fi_enable(ep) == -FI_ENOAV);
    MUST(fi_ep_bind(ep, &av->fid, 0) == 0);
    MUST(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) == 0);
    MUST(fi_ep_bind(ep, &counter->fid, FI_RECV) == 0);
    MUST(fi_enable(ep) == 0);
    MUST(fi_getname(&ep->fid, NULL, &n) == -FI_ETOOSMALL && n == sizeof name);
    MUST(fi_getname(&ep->fid, name, &n) == 0);
    MUST(write(to_other, name, n) == (ssize_t)n && read(from_other, theirs, n) == (ssize_t)n);
    MUST(fi_av_insert(av, theirs, 1, &other, 0, NULL) == 1 && other == 0);
}

static void shut(void)
{
    MUST(fi_close(&domain->fid) == -FI_EBUSY);
    MUST(fi_close(&ep->fid) == 0);
    MUST(fi_close(&counter->fid) == 0);
    MUST(fi_close(&cq->fid) == 0);
    MUST(fi_close(&av->fid) == 0);
    MUST(fi_close(&domain->fid) == 0);
    MUST(fi_close(&fabric->fid) == 0);
    fi_freeinfo(info);
}

static bool late(time_t begun)
{
    return time(NULL) - begun > WAIT_S;
}

/* Waits for the next completion; with an error, returns its number. */
static int next(struct fi_cq_tagged_entry *e, fi_addr_t *source)
{
    struct fi_cq_err_entry error = {0};
    time_t begun = time(NULL);
    for (;;) {
        ssize_t n = fi_cq_readfrom(cq, e, 1, source);
        if (n == 1)
            return 0;
        if (n == -FI_EAVAIL) {
            MUST(fi_cq_readerr(cq, &error, 0) == 1);
            e->op_context = error.op_context;
            e->len = error.len;
            return error.err;
        }
        MUST(n == -FI_EAGAIN && !late(begun));
    }
}

static struct fi_cq_tagged_entry await(void *context)
{
    struct fi_cq_tagged_entry e;
    fi_addr_t source;
    MUST(next(&e, &source) == 0);
    MUST(e.op_context == context);
    return e;
}

/* After this the two are connected, and what is injected goes at once. */
static void greet(void)
{
    char ctx[2], to[8];
    MUST(fi_recv(ep, to, 8, NULL, other, &ctx[0]) == 0 && fi_send(ep, "hi", 2, NULL, other, &ctx[1]) == 0);
    struct fi_cq_tagged_entry e;
    for (int i = 0; i < 2; i++)
        MUST(next(&e, &(fi_addr_t){0}) == 0);
    barrier();
}

static inline void fill(unsigned char *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static void run_side(const struct side_case *c, int number, int out, int in)
{
    side = number;
    to_other = out;
    from_other = in;
    running = c->name;
    alarm(2 * WAIT_S);
    open_with(c);
    if (!c->unmet)
        greet();
    c->run();
    if (!c->kills && !c->unmet)
        barrier();
    shut();
    exit(0);
}

/* Runs the cases that the arguments name, or all. Returns what main returns. */
static int run_cases(const struct side_case *cases, size_t count, int argc, char **argv)
{
    int failed = 0;
    for (unsigned i = 0; i < count; i++) {
        int pipes[2][2], status, bad = 0;
        if (argc > 1 && strcmp(argv[1], "all") != 0 && strcmp(argv[1], cases[i].name) != 0)
            continue;
        fflush(stdout);
        if (pipe(pipes[0]) || pipe(pipes[1]))
            return 1;
        for (int s = 0; s < 2; s++)
            if (fork() == 0)
                run_side(&cases[i], s, pipes[s][1], pipes[1 - s][0]);
        for (int s = 0; s < 2; s++) {
            MUST(wait(&status) > 0);
            bool killed = cases[i].kills && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            bad += status != 0 && !killed;
            if (bad && WIFSIGNALED(status))
                printf("# %s: signal %d\n", cases[i].name, WTERMSIG(status));
        }
        for (int s = 0; s < 4; s++)
            close(pipes[s / 2][s % 2]);
        printf("%s - %s\n", bad ? "not ok" : "ok", cases[i].name);
        failed += bad;
    }
    return failed != 0;
}

#endif
