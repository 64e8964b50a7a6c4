/* SPDX-License-Identifier: BSD-3-Clause
 *
 * post.h - a message that is queued, or sent and not told yet. */
#ifndef RNL_STREAM_POST_H
#define RNL_STREAM_POST_H

#include "endpoint/endpoint.h"

struct rnl_post {
    struct rnl_post *next;
    struct rnl_begin begin;
    struct rnl_stream *stream; /* NULL = not begun */
    uint64_t charge;           /* bytes of the queue's budget, its own memory included, until it is told */
    void (*done)(void *arg, int status);
    void *arg;
    int status;
    unsigned piece, count;
    size_t offset;
    struct rnl_piece pieces[];
};

/* Notes that `done` is to be called with this status; the post belongs to calls.c from now on. */
void rnl_stream_done(struct rnl_endpoint *ep, struct rnl_post *p, int status);

#endif
