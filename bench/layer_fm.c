/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layer_fm.c - the layer over FM 2.x. Sending gathers: header and payload are two pieces. Receiving reads the header,
 * picks the buffer, and lets FM put the payload there. When no receive is posted the handler ends the extract: what
 * comes next waits with FM until there is one. Variant 0 of an order is bare FM 2.x. */
#include "layer.h"
#include "process.h"

#include "runnel/fm.h"

enum { LAYERED = 2 };

static struct layer layer;
static struct bench_process *self; /* FM handlers have no argument for it */
static bool bare;

static int on_layered(FM_stream *stream, unsigned sender)
{
    struct bench_process *s = self;
    struct layer_header h;
    (void)sender;
    FM_receive(&h, stream, sizeof h);
    struct layer_receive *r = layer_match(&layer, &h);
    if (!r) {
        bench_process_fail(s, "a message came that no receive was posted for");
        return FM_QUIT;
    }
    void *to = r->to; /* once the handler waits for bytes the program may post again */
    FM_receive(to, stream, h.bytes);
    bench_count(s, to, h.bytes);
    return layer.first ? FM_CONTINUE : FM_QUIT;
}

static inline int send_one(struct bench_process *s)
{
    const struct layer_header h = {.source = s->rank, .tag = LAYER_TAG, .context = LAYER_CONTEXT, .bytes = s->bytes};
    FM_stream *stream = FM_begin_message(1 - s->rank, sizeof h + s->bytes, LAYERED);
    if (!stream)
        return bench_process_fail(s, "FM_begin_message returned NULL outside a handler");
    FM_send_piece(stream, &h, sizeof h);
    FM_send_piece(stream, s->pool, s->bytes);
    FM_end_message(stream);
    return 0;
}

static inline int post_one(struct bench_process *s)
{
    return layer_post(&layer, 1 - s->rank, LAYER_TAG, s->to, s->bytes)
               ? 0
               : bench_process_fail(s, "more receives than the layer has room for");
}

static inline int look(struct bench_process *s)
{
    FM_extract(~0ul);
    return s->status;
}

static int layered_open(struct bench_process *s)
{
    self = s;
    if (bench_api_fm.open(s))
        return -1;
    FM_register_handler(LAYERED, on_layered);
    return s->status;
}

static int layered_prepare(struct bench_process *s, const struct bench_order *o)
{
    bare = o->variant == 0;
    layer_start(&layer);
    return bare ? 0 : layer_post_first(s, o, &layer, post_one);
}

static int layered_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    return bare ? bench_api_fm.ping(s, n, h) : layer_ping(s, n, h, send_one, post_one, look);
}

static int layered_stream(struct bench_process *s, uint64_t n)
{
    return bare ? bench_api_fm.stream(s, n) : layer_stream(s, n, &layer, send_one, post_one, look);
}

static void layered_close(struct bench_process *s)
{
    bench_api_fm.close(s);
}

const struct bench_api bench_role_layer_fm = {
    .name = "layer-fm",
    .moves_when_called = true,
    .open = layered_open,
    .close = layered_close,
    .prepare = layered_prepare,
    .ping = layered_ping,
    .stream = layered_stream,
    .poll = look,
};
