/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hub.c - fixtures of endpoints in one process. */
#include "support/hub.h"

#include <pthread.h>
#include <string.h>

#include "endpoint/endpoint.h"
#include "job/job.h"
#include "support/wires.h"

static rnl_endpoint *open_one(rnl_hub *hub, struct test_wires *wires, unsigned rank, const struct rnl_options *opt)
{
    rnl_endpoint *ep;
    struct rnl_options o = {0};
    if (opt)
        o = *opt;
    o.size = sizeof o;
    o.hub = hub;
    o.hub_rank = rank;
    TEST_MUST(rnl_open(&ep, &o) == 0);
    if (wires)
        test_wires_attach(wires, ep);
    return ep;
}

void test_hub_open(struct test_hub *h, unsigned size, const struct rnl_options *opt)
{
    memset(h, 0, sizeof *h);
    TEST_MUST(size <= TEST_HUB_MAX);
    TEST_MUST(rnl_hub_new(size, &h->hub) == 0);
    h->wires = test_wires_wanted(size);
    h->size = size;
    for (unsigned i = 0; i < size; i++)
        h->ep[i] = open_one(h->hub, h->wires, i, opt);
    test_wires_connect_wanted(h->wires);
}

struct closing {
    pthread_t thread;
    rnl_endpoint *ep;
    int *status;
};

static void *close_one(void *arg)
{
    struct closing *c = arg;
    *c->status = rnl_close(c->ep);
    return NULL;
}

void test_hub_kill(struct test_hub *h, unsigned rank, enum rnl_death_reason why, int detail)
{
    h->dead[rank] = 1;
    rnl_hub_kill(h->hub, rank, (int)why, detail);
}

int test_hub_close(struct test_hub *h)
{
    struct closing c[TEST_HUB_MAX];
    int worst = 0;
    test_wires_threads(h->wires);
    for (unsigned i = 0; i < h->size; i++) {
        h->closed[i] = 0;
        c[i] = (struct closing){.ep = h->ep[i], .status = &h->closed[i]};
        if (h->ep[i] && !h->dead[i])
            TEST_MUST(pthread_create(&c[i].thread, NULL, close_one, &c[i]) == 0);
    }
    for (unsigned i = 0; i < h->size; i++) {
        if (h->ep[i] && !h->dead[i])
            TEST_MUST(pthread_join(c[i].thread, NULL) == 0);
        else if (h->ep[i])
            rnl_ep_free(h->ep[i]);
        if (h->closed[i] < worst)
            worst = h->closed[i];
        h->ep[i] = NULL;
    }
    rnl_hub_free(h->hub);
    test_wires_free(h->wires);
    h->hub = NULL;
    h->wires = NULL;
    return worst;
}

struct running {
    pthread_t thread;
    struct test_thread t;
    const struct rnl_options *opt;
    void (*body)(struct test_thread *);
};

static void *run_one(void *arg)
{
    struct running *r = arg;
    r->t.ep = open_one(r->t.hub, r->t.wires, r->t.rank, r->opt);
    r->body(&r->t);
    r->t.closed = rnl_close(r->t.ep);
    return NULL;
}

int test_hub_threads(unsigned size, const struct rnl_options *opt, void (*body)(struct test_thread *), void *arg)
{
    struct running r[TEST_HUB_MAX];
    rnl_hub *hub;
    int worst = 0;
    TEST_MUST(size <= TEST_HUB_MAX);
    TEST_MUST(rnl_hub_new(size, &hub) == 0);
    struct test_wires *wires = test_wires_wanted(size);
    for (unsigned i = 0; i < size; i++) {
        r[i] = (struct running){
            .t = {.rank = i, .size = size, .hub = hub, .wires = wires, .arg = arg}, .opt = opt, .body = body};
        TEST_MUST(pthread_create(&r[i].thread, NULL, run_one, &r[i]) == 0);
    }
    for (unsigned i = 0; i < size; i++) {
        TEST_MUST(pthread_join(r[i].thread, NULL) == 0);
        if (r[i].t.closed < worst)
            worst = r[i].t.closed;
    }
    rnl_hub_free(hub);
    test_wires_free(wires);
    return worst;
}
