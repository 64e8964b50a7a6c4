/* SPDX-License-Identifier: BSD-3-Clause
 *
 * server_fork.c - servers whose routines fork for a call. The child takes the arguments and replies, and the parent,
 * which returns at once, serves the next calls of the same client. So before a fork what is left of the call that this
 * thread serves is taken off the link into memory that each of the two then has for itself. */
#include "server.h"

#include "remote.h"
#include "stream.h"

#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { REST_MIN = 4096, REST_MAX = 256 << 20 };

struct rest {
    struct rnl_rpc_link link; /* first: what the XDR stream reads, which ends where the bytes end */
    unsigned char bytes[];
};

static _Thread_local struct rnl_rpc_server *serving;

void rnl_rpc_server_serves(struct rnl_rpc_server *s)
{
    serving = s;
}

static bool no_more(struct rnl_rpc_link *link)
{
    (void)link;
    return false;
}
static const struct rnl_rpc_link_ops rest_ops = {.next = no_more};

/* Returns the rest of the record, or NULL if there is no memory, it is too long, or the link broke. */
static struct rest *take_rest(struct rnl_rpc_link *link)
{
    size_t room = REST_MIN, n = 0;
    struct rest *rest = malloc(sizeof *rest + room);
    bool more = true;
    while (rest && more) {
        size_t part = (size_t)(link->in_end - link->in_at);
        while (n + part > room && room <= REST_MAX)
            room *= 2;
        struct rest *larger = n + part > room ? NULL : realloc(rest, sizeof *rest + room);
        if (!larger) {
            free(rest);
            return NULL;
        }
        rest = larger;
        memcpy(rest->bytes + n, link->in_at, part);
        link->in_at += part;
        n += part;
        more = link->ops->next(link);
    }
    if (!rest || link->broken) {
        free(rest);
        return NULL;
    }
    memset(&rest->link, 0, sizeof rest->link);
    rest->link.ops = &rest_ops;
    rest->link.in_at = rest->bytes;
    rest->link.in_end = rest->bytes + n;
    rest->link.in_private = rest->link.in_open = rest->link.in_last = true;
    return rest;
}

void rnl_rpc_server_before_fork(void)
{
    struct rnl_rpc_server *s = serving;
    if (!s || !s->link || s->link->broken)
        return;
    s->link->ops->share(s->link);
    if (!s->link->in_open)
        return;
    struct rest *rest = take_rest(s->link);
    if (!rest || !s->link->ops->leave(s->link)) {
        free(rest);
        s->link->broken = true; /* as if the connection had ended: the client is told */
        return;
    }
    s->rest = &rest->link;
    rnl_rpc_stream_in(&s->in, s->rest);
}

void rnl_rpc_server_forget_rest(struct rnl_rpc_server *s)
{
    if (!s->rest)
        return;
    free(s->rest);
    s->rest = NULL;
    rnl_rpc_stream_in(&s->in, s->link);
}

static void watch(void)
{
    (void)pthread_atfork(rnl_rpc_server_before_fork, NULL, NULL);
}

void rnl_rpc_server_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch);
}
