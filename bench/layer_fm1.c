/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layer_fm1.c - the layer over FM 1.1. A message is one buffer: the sender copies header and payload together, the
 * receiver's handler is given both in FM's buffer and copies the payload to where it belongs. What comes before its
 * receive is posted has to be stored by the layer, for FM 1.1 hands over all there is: a copy more. Variant 0 of an
 * order is bare FM 1.1, whose handler reads the message where it lies. */
#include "layer.h"
#include "process.h"

#include "runnel/fm1.h"

#include <stdlib.h>

enum { BARE = 1, BARE_4 = 2, LAYERED = 3 }; /* the first two are bench_api_fm1's, with handlers that copy nothing */

struct unexpected {
    struct unexpected *next;
    struct layer_header header;
    size_t room;
    unsigned char bytes[];
};

static struct layer layer;
static struct bench_process *self; /* FM handlers have no argument for it */
static bool bare;
static unsigned char *memory, *staging; /* header and payload, the latter aligned: copies are faster */
static struct unexpected *early, **early_last, *spare;

static void on_bare(void *buffer, unsigned size)
{
    bench_count(self, buffer, size);
}

static void deliver(struct bench_process *s, struct layer_receive *r, const void *payload, size_t n)
{
    memcpy(r->to, payload, n);
    bench_count(s, r->to, n);
}

static void store(struct bench_process *s, const struct layer_header *h, const void *payload)
{
    struct unexpected *u = spare;
    if (u && u->room >= h->bytes) {
        spare = u->next;
    } else if (!(u = malloc(sizeof *u + h->bytes))) {
        bench_process_fail(s, "no memory for a message without a receive");
        return;
    } else {
        u->room = h->bytes;
    }
    u->next = NULL;
    u->header = *h;
    memcpy(u->bytes, payload, h->bytes);
    *early_last = u;
    early_last = &u->next;
}

static void on_layered(void *buffer, unsigned size)
{
    struct bench_process *s = self;
    struct layer_header h;
    memcpy(&h, buffer, sizeof h);
    if (size != sizeof h + h.bytes) {
        bench_process_fail(s, "a message of %u bytes says that it has %llu", size, (unsigned long long)h.bytes);
        return;
    }
    const unsigned char *payload = (unsigned char *)buffer + sizeof h;
    struct layer_receive *r = layer_match(&layer, &h);
    if (r)
        deliver(s, r, payload, h.bytes);
    else
        store(s, &h, payload);
}

static inline int send_one(struct bench_process *s)
{
    const struct layer_header h = {.source = s->rank, .tag = LAYER_TAG, .context = LAYER_CONTEXT, .bytes = s->bytes};
    memcpy(staging, &h, sizeof h);
    memcpy(staging + sizeof h, s->pool, s->bytes);
    FM_send(1 - s->rank, LAYERED, staging, sizeof h + s->bytes);
    return s->status;
}

/* A receive first looks among what came early. */
static inline int post_one(struct bench_process *s)
{
    if (!layer_post(&layer, 1 - s->rank, LAYER_TAG, s->to, s->bytes))
        return bench_process_fail(s, "more receives than the layer has room for");
    struct unexpected *u = early;
    if (__builtin_expect(u != NULL, 0)) {
        struct layer_receive *r = layer_match(&layer, &u->header);
        if (r) {
            early = u->next;
            if (!early)
                early_last = &early;
            deliver(s, r, u->bytes, u->header.bytes);
            u->next = spare;
            spare = u;
        }
    }
    return 0;
}

static inline int look(struct bench_process *s)
{
    FM_extract();
    return s->status;
}

static void drop(struct unexpected **list)
{
    while (*list) {
        struct unexpected *u = *list;
        *list = u->next;
        free(u);
    }
}

static int layered_open(struct bench_process *s)
{
    self = s;
    early_last = &early;
    memory = aligned_alloc(64, 64 + FM1_MAX);
    if (!memory)
        return bench_process_fail(s, "no memory for a message of FM 1.1");
    staging = memory + 64 - sizeof(struct layer_header);
    if (bench_api_fm1.open(s))
        return -1;
    FM_register_handler(BARE, on_bare);
    FM_register_handler(BARE_4, on_bare);
    FM_register_handler(LAYERED, on_layered);
    return s->status;
}

static int layered_prepare(struct bench_process *s, const struct bench_order *o)
{
    bare = o->variant == 0;
    layer_start(&layer);
    drop(&early);
    drop(&spare); /* they have the size of the last order */
    early_last = &early;
    return bare ? 0 : layer_post_first(s, o, &layer, post_one);
}

static int layered_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    return bare ? bench_api_fm1.ping(s, n, h) : layer_ping(s, n, h, send_one, post_one, look);
}

static int layered_stream(struct bench_process *s, uint64_t n)
{
    return bare ? bench_api_fm1.stream(s, n) : layer_stream(s, n, &layer, send_one, post_one, look);
}

static void layered_close(struct bench_process *s)
{
    bench_api_fm1.close(s);
    drop(&early);
    drop(&spare);
    free(memory);
}

const struct bench_api bench_role_layer_fm1 = {
    .name = "layer-fm1",
    .moves_when_called = true,
    .most_bytes = FM1_MAX - sizeof(struct layer_header),
    .open = layered_open,
    .close = layered_close,
    .prepare = layered_prepare,
    .ping = layered_ping,
    .stream = layered_stream,
    .poll = look,
};
