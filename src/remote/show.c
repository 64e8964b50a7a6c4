/* SPDX-License-Identifier: BSD-3-Clause
 *
 * show.c - composes what `runnel info --pid` says of each path to a peer that is sent to by several at once. */
#include "remote/remote_internal.h"

#include "net/socket/socket.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 250, LINE = 256, TEXT = 16000 };

/* "10.0.0.2", or "fe80::1 on wire 2" where a card leads there. */
static void name_path(const struct rnl_addr *path, char *text, size_t room)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct rnl_socket_addr a = {.port = 0};
    char ip[INET6_ADDRSTRLEN] = "?";
    if (path->len == sizeof a) {
        memcpy(&a, path->bytes, sizeof a);
        const bool v4 = memcmp(a.ip, mapped, sizeof mapped) == 0;
        (void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a.ip + sizeof mapped : a.ip, ip, sizeof ip);
    }
    if (a.scope)
        snprintf(text, room, "%s on wire %u", ip, a.scope);
    else
        snprintf(text, room, "%s", ip);
}

static size_t show_flow(const struct rnl_remote_conn *rc, unsigned number, uint64_t passed_ns, char *text)
{
    struct rnl_remote_paths *w = rc->paths;
    const struct rnl_remote_stripe *s = number ? w->stripe[number - 1] : NULL;
    const struct rnl_flow *f = s ? &s->flow : &rc->flow;
    const unsigned path = s ? s->path : w->set.active;
    const uint64_t bytes = f->went.bytes, since = bytes < w->shown[number] ? 0 : bytes - w->shown[number];
    const char *state = !f->went.packets                    ? "has sent nothing"
                        : number == w->lead                 ? "leads"
                        : (s ? !s->works : f->timeouts > 0) ? "does not respond"
                                                            : "helps";
    char name[INET6_ADDRSTRLEN + 24];
    name_path(&w->addr[path], name, sizeof name);
    w->shown[number] = bytes;
    const int n = snprintf(text, LINE,
                           "path to rank %u by %s: %s, %" PRIu64 " kB/s, %" PRIu64 " bytes in %" PRIu64
                           " packets, %" PRIu64 " lost, round trip %u us\n",
                           rc->rank, name, state, passed_ns / 1000 ? since * 1000 / (passed_ns / 1000) : 0, bytes,
                           f->went.packets, f->went.lost, f->rtt.smoothed_ns / 1000);
    return n < 0 ? 0 : n < LINE ? (size_t)n : LINE - 1;
}

void rnl_remote_show(struct rnl_remote *r, uint64_t now_ns)
{
    struct rnl_env *env = r->env;
    if (now_ns < r->shown_ns + (uint64_t)EVERY_MS * 1000000 || env->ops->size <= offsetof(struct rnl_env_ops, show) ||
        !env->ops->show)
        return;
    const uint64_t passed_ns = r->shown_ns ? now_ns - r->shown_ns : 0;
    char *text = malloc(TEXT);
    size_t used = 0;
    r->shown_ns = now_ns;
    for (uint32_t rank = 0; text && rank < env->size; rank++) {
        const struct rnl_remote_conn *rc = r->conn[rank];
        for (unsigned k = 0; rc && rc->paths && rc->paths->stripes && k < RNL_FLOW_PATHS_MAX; k++)
            if ((k == 0 || rc->paths->stripe[k - 1]) && TEXT - used >= LINE)
                used += show_flow(rc, k, passed_ns, text + used);
    }
    if (text)
        env->ops->show(env, text, used);
    free(text);
}
