/* SPDX-License-Identifier: BSD-3-Clause
 *
 * example_iface.c - see example_iface.h. A message is a row of numbers of 8 bytes each, after how many they are. */
#include "iface/example_iface.h"

#include <stdlib.h>

#include "base/iface.h"
#include "stream/stream.h"

enum { HANDLER = 7 };
enum counter { ADDED, COUNTERS };

struct tally {
    rnl_endpoint *ep;
    uint64_t sum;
    unsigned cut;
    uint64_t *count; /* by enum counter */
};

int tally_living;

/* ---- what the interface says about itself ---- */

static struct process {
    unsigned made;
} process = {.made = TALLY_FIRST};
static const struct process initial = {.made = TALLY_FIRST};

static int take(rnl_stream *s, unsigned peer, void *ctx);

static void abandon(struct rnl_endpoint *ep)
{
    if (ep->fast.handlers > HANDLER && ep->fast.handler[HANDLER].stream == take)
        tally_free(ep->fast.handler[HANDLER].ctx);
}

static const struct rnl_counter_text counters[] = {
    [ADDED] = {"added", "numbers added to the sum of this rank"},
    [COUNTERS] = {NULL, NULL},
};
static const struct rnl_iface_row info[] = {
    {"numbers", NULL, 8, "bytes each"},
    {NULL, NULL, 0, NULL},
};
extern const struct rnl_iface rnl_tally_iface;
const struct rnl_iface rnl_tally_iface = {
    .name = "Tally",
    .state = &process,
    .state_bytes = sizeof process,
    .initial = &initial,
    .death_drops_handlers = true,
    .abandon = abandon,
    .counters = counters,
    .info = info,
};

/* ---- the interface ---- */

static int take(rnl_stream *s, unsigned peer, void *ctx)
{
    struct tally *t = ctx;
    uint64_t n, number;
    int status = rnl_receive(s, &n, sizeof n);
    (void)peer;
    for (; status == 0 && n > 0; n--) {
        status = rnl_receive(s, &number, sizeof number);
        if (status == 0) {
            t->sum += number;
            t->count[ADDED]++;
        }
    }
    t->cut += status == RNL_ERR_PEER_DEAD;
    return RNL_DONE;
}

int tally_new(rnl_endpoint *ep, struct tally **out)
{
    struct tally *t = calloc(1, sizeof *t);
    if (!t)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a tally");
    t->ep = ep;
    int status = rnl_iface_counters(&rnl_tally_iface, ep->c, &t->count);
    if (status == 0 && (status = rnl_ep_enter(ep)) == 0) {
        const struct rnl_handler h = {.stream = take, .ctx = t, .flags = rnl_handler_flags(&rnl_tally_iface)};
        status = rnl_stream_register(ep, HANDLER, &h);
        rnl_ep_leave(ep);
    }
    if (status < 0) {
        free(t);
        return status;
    }
    process.made++;
    tally_living++;
    *out = t;
    return 0;
}

void tally_free(struct tally *t)
{
    tally_living--;
    free(t);
}

int tally_add(struct tally *t, unsigned rank, const uint64_t *numbers, size_t n)
{
    const struct rnl_message b = {.peer = rank, .handler = HANDLER, .bound = (n + 1) * sizeof *numbers};
    uint64_t count = n;
    rnl_stream *s;
    int status = rnl_begin(t->ep, &b, &s);
    if (status < 0)
        return status;
    status = rnl_piece(s, &count, sizeof count);
    if (status == 0)
        status = rnl_piece(s, numbers, n * sizeof *numbers);
    int ended = rnl_end(s);
    return status < 0 ? status : ended;
}

uint64_t tally_sum(const struct tally *t)
{
    return t->sum;
}

unsigned tally_cut(const struct tally *t)
{
    return t->cut;
}

unsigned tally_made(void)
{
    return process.made;
}
