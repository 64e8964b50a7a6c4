/* SPDX-License-Identifier: BSD-3-Clause
 *
 * connect.c - connects the ranks of a job: see process.h. */
#include "process.h"

#include "runnel/fm.h"
#include "runnel/runnel.h"

enum { HELLO = 9 };
#define LIMIT_NS ((int64_t)50 * 1000 * 1000 * 1000) /* then a rank is missing */

static bool talks(unsigned me, unsigned other, unsigned hubs)
{
    return me != other && (me < hubs || other < hubs);
}

static unsigned partners(unsigned me, unsigned ranks, unsigned hubs)
{
    unsigned n = 0;
    for (unsigned r = 0; r < ranks; r++)
        n += talks(me, r, hubs);
    return n;
}

static int on_hello(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer;
    ++*(unsigned *)ctx;
    return RNL_DONE;
}

int bench_connect_native(struct bench_process *s, rnl_endpoint *ep, unsigned hubs)
{
    static unsigned hellos; /* the handler outlives this call */
    unsigned me = rnl_rank(ep), ranks = rnl_size(ep), wanted = partners(me, ranks, hubs);
    if (rnl_handler_whole(ep, HELLO, on_hello, &hellos, 0) < 0)
        return bench_process_fail(s, "%s", rnl_last_error()->text);
    for (unsigned r = 0; r < ranks; r++)
        if (talks(me, r, hubs) && rnl_send(ep, r, HELLO, NULL, 0))
            return bench_process_fail(s, "%s", rnl_last_error()->text);
    while (hellos < wanted) {
        int64_t got = rnl_wait(ep, LIMIT_NS);
        if (got < 0)
            return bench_process_fail(s, "%u of %u peers connected: %s", hellos, wanted,
                                      got == RNL_TIMED_OUT ? "the others did not come" : rnl_last_error()->text);
    }
    return 0;
}

static unsigned fm_hellos;

static int on_fm_hello(FM_stream *stream, unsigned sender)
{
    (void)stream, (void)sender;
    fm_hellos++;
    return FM_CONTINUE;
}

int bench_connect_fm(struct bench_process *s, unsigned hubs)
{
    unsigned me = (unsigned)FM_nodeid, ranks = (unsigned)FM_numnodes, wanted = partners(me, ranks, hubs);
    uint64_t end = bench_now_ns() + (uint64_t)LIMIT_NS;
    FM_register_handler(HELLO, on_fm_hello);
    for (unsigned r = 0; r < ranks && s->status == 0; r++)
        if (talks(me, r, hubs))
            FM_end_message(FM_begin_message(r, 0, HELLO));
    while (fm_hellos < wanted && s->status == 0) {
        (void)FM_wait(1000000);
        if (bench_now_ns() > end)
            return bench_process_fail(s, "%u of %u peers connected: the others did not come", fm_hellos, wanted);
    }
    return s->status;
}
