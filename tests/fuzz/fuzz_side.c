/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_side.c - an endpoint whose peer writes any words about credit, arming, its version, its wishes, and any bells,
 * while we send, post, wait, arm a descriptor and close. The endpoint's budget must hold, no call may wait longer than
 * it was told, and each returns what runnel.h says it may. (What the peer says in lines: fuzz_take.c.) */
#include <errno.h>
#include <poll.h>

#include "base/bell.h"
#include "endpoint/endpoint.h"
#include "fuzz/input.h"
#include "job/job.h"

enum { STEPS = 120, BUDGET = 1 << 20 };

static unsigned char bytes_out[200000];

struct world {
    rnl_endpoint *ep;
    struct rnl_conn *conn;
    struct rnl_env *env; /* rank 1's: bells and its own descriptor */
    unsigned done;
};

static int on_whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer, (void)ctx;
    return RNL_DONE;
}

static void on_posted(void *arg, int status)
{
    struct world *w = arg;
    (void)status;
    w->done++;
}

static void spoil(struct world *w, struct fuzz_input *in)
{
    struct rnl_control_page *s = w->conn->channel.theirs; /* in a hub both sides have one mapping */
    const struct rnl_tx *t = &w->conn->channel.tx[0];
    struct rnl_credit_words *back = &s->credit[fuzz_below(in, RNL_LANES)];
    struct rnl_bell *bell;
    switch (fuzz_below(in, 13)) {
    case 0:
        atomic_store(&s->version, (uint32_t)fuzz_number(in, RNL_CONTROL_PAGE_VERSION));
        break;
    case 1:
    case 2:
        atomic_store(&s->armed, (uint32_t)fuzz_number(in, fuzz_below(in, 64)));
        break;
    case 3:
        atomic_store(&s->senders_fence, (uint32_t)fuzz_number(in, 0));
        break;
    case 4:
        atomic_store(&back->position, fuzz_number(in, t->pos));
        break;
    case 5:
        atomic_store(&back->granted, fuzz_number(in, t->granted));
        break;
    case 6:
        atomic_store(&back->bulk_read, fuzz_number(in, t->bulk_head));
        break;
    case 7:
        atomic_store(&s->credit_reclaim, fuzz_number(in, t->credit_returned));
        break;
    case 8:
        atomic_store(&s->credit_returned, fuzz_number(in, w->conn->channel.rx[0].reclaim_requested));
        break;
    case 9:
        atomic_store(&s->credit_wanted, fuzz_number(in, w->conn->channel.rx[0].outstanding_max));
        break;
    case 10:
        atomic_store(&s->credit_max, fuzz_number(in, 4096));
        break;
    default:
        bell = w->env->bell_of(w->env, fuzz_below(in, 2));
        atomic_store(&bell->word, (uint32_t)fuzz_number(in, w->ep->wait.fd_word));
        break;
    }
}

static int fine(int64_t status)
{
    return status >= 0 || status == RNL_NO_ROOM || status == RNL_BUSY || status == RNL_TIMED_OUT ||
           status == RNL_ERR_TOO_LONG || status == RNL_ERR_PEER_BROKEN;
}

static void send_something(struct world *w, struct fuzz_input *in)
{
    static const unsigned lengths[] = {0, 8, 48, 56, 57, 3000, 60000, sizeof bytes_out};
    struct rnl_message b = {.peer = 1, .flags = RNL_NO_WAIT};
    b.bound = lengths[fuzz_below(in, 8)];
    b.answer = fuzz_below(in, 4) ? 0 : fuzz_below(in, 3000);
    const struct rnl_buffer piece = {bytes_out, b.bound};
    rnl_stream *s;
    if (fuzz_below(in, 3) == 0) {
        FUZZ_MUST(fine(rnl_post(w->ep, &b, &piece, 1, on_posted, w)));
        return;
    }
    int status = rnl_begin(w->ep, &b, &s);
    FUZZ_MUST(fine(status));
    if (status < 0)
        return;
    status = rnl_piece(s, bytes_out, fuzz_below(in, 4) ? b.bound : b.bound / 2);
    FUZZ_MUST(fine(status));
    FUZZ_MUST(fine(status < 0 || fuzz_below(in, 16) == 0 ? rnl_abort(s) : rnl_end(s)));
}

static void step(struct world *w, struct fuzz_input *in)
{
    struct pollfd fd = {.events = POLLIN};
    uint64_t before = rnl_host_now_ns(NULL);
    switch (fuzz_below(in, 8)) {
    case 0:
    case 1:
        send_something(w, in);
        break;
    case 2:
    case 3:
        FUZZ_MUST(fine(rnl_extract(w->ep, SIZE_MAX)));
        break;
    case 4:
        FUZZ_MUST(fine(rnl_wait(w->ep, (int64_t)fuzz_below(in, 4) * 20000)));
        break;
    case 5:
        rnl_ep_reallocate(w->ep);
        rnl_ep_credit(w->ep);
        break;
    case 6:
        fd.fd = rnl_fd(w->ep);
        FUZZ_MUST(fd.fd >= 0 && (poll(&fd, 1, 0) >= 0 || errno == EINTR)); /* the fuzzer's alarm */
        break;
    default:
        (void)rnl_ep_look(w->ep);
        break;
    }
    FUZZ_MUST(rnl_host_now_ns(NULL) - before < 5000000000u); /* a bound for a machine that is busy */
    FUZZ_MUST(w->ep->credit.granted <= w->ep->credit.budget);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    struct world w = {.done = 0};
    rnl_hub *hub;
    unsigned posted = 0;
    FUZZ_MUST(rnl_hub_new(2, &hub) == 0);
    struct rnl_options opt = {.size = sizeof opt, .hub = hub, .handlers = 2, .receive_budget = BUDGET};
    FUZZ_MUST(rnl_open(&w.ep, &opt) == 0 && rnl_hub_env(hub, 1, 0, &w.env) == 0);
    FUZZ_MUST(rnl_ep_connect(w.ep, 1, &w.conn) == 0);
    FUZZ_MUST(rnl_handler_whole(w.ep, 0, on_whole, NULL, 0) >= 0);
    for (int i = 0; i < STEPS && fuzz_more(&in); i++) {
        if (fuzz_below(&in, 2))
            spoil(&w, &in);
        else
            step(&w, &in);
    }
    posted = w.ep->work.posts;
    rnl_hub_kill(hub, 1, RNL_DEATH_SIGNAL, 9);
    unsigned done = w.done;
    for (int i = 0; i < 3; i++)
        (void)!rnl_extract(w.ep, SIZE_MAX);
    FUZZ_MUST(w.done - done >= posted); /* nobody waits for the dead */
    rnl_ep_free(w.ep);
    w.env->ops->close(w.env);
    rnl_hub_free(hub);
    return 0;
}
