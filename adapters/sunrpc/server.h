/* SPDX-License-Identifier: BSD-3-Clause
 *
 * server.h - a transport (SVCXPRT) of libtirpc whose table of functions is ours: made by libtirpc on the doorbell, so
 * svc_run, svc_fdset, svc_pollfd and event loops see it as any other connection.
 *
 * A table from descriptor to transport lets the interposed waits (waits.c) look into the links before they sleep.
 * Where a process has several threads, a transport may be destroyed while another thread looks: rnl_rpc_watch_begin
 * and _end enclose each look, and what is destroyed meanwhile is freed by whoever ends the last one. */
#ifndef RNL_RPC_SERVER_H
#define RNL_RPC_SERVER_H

#include "greeting.h"
#include "link.h"

#include <rpc/rpc.h>
#include <stdatomic.h>
#include <sys/epoll.h>

enum { RNL_RPC_FDS_MAX = 65536 };

struct rnl_rpc_server {
    struct xp_ops ops; /* first: xp_ops points here */
    const struct xp_ops *real;
    struct rnl_rpc_link *link; /* NULL = the client has not greeted yet */
    XDR in, out;
    uint32_t xid;              /* of the call being served */
    struct rnl_rpc_link *rest; /* what was left of its arguments when its routine forked; else NULL */
    uid_t uid;                 /* of the client, by the kernel */
    int fd;
    void (*greeted)(SVCXPRT *, struct rnl_rpc_server *); /* something came, and there is no link yet */
    uint64_t began_ns;
    _Atomic bool open; /* `link` is set, and stays */
    bool dead;         /* the client was refused */
    bool watched;      /* the loop that serves this transport looks into the link before it sleeps */
    bool uid_known;
    int epoll; /* the epoll descriptor that waits for it, or -1, and how */
    struct epoll_event epoll_event;
    struct rnl_rpc_server *next, *before; /* all of the process */
    struct rnl_rpc_server *next_dead;
};

extern _Atomic unsigned rnl_rpc_servers; /* how many transports have a link */
/* Calls f for every transport, with or without a link. */
void rnl_rpc_server_each(void (*f)(struct rnl_rpc_server *, void *), void *context);

/* Makes a transport on a connected doorbell, which it owns from then on. Until it has a link, `greeted` is called for
 * what arrives. Returns NULL, with fd closed, if it cannot. */
struct rnl_rpc_server *rnl_rpc_server_new(int fd, void (*greeted)(SVCXPRT *, struct rnl_rpc_server *), SVCXPRT **made);
/* The client is refused: the loop that serves the doorbell finds its end, and destroys the transport. */
void rnl_rpc_server_end(struct rnl_rpc_server *);
/* Greeted: from now on calls come over the link. */
void rnl_rpc_server_open(struct rnl_rpc_server *, struct rnl_rpc_link *);

/* Before this thread forks: a child of the routine that serves a call may take its arguments and reply, as with a
 * socket, while the parent goes on. So both get a copy of what was not taken yet, and the link is shared. */
void rnl_rpc_server_before_fork(void);
void rnl_rpc_server_watch_forks(void);
/* This thread serves a call that came from there; NULL: none any more. */
void rnl_rpc_server_serves(struct rnl_rpc_server *);
/* The next call's arguments come from the link again. */
void rnl_rpc_server_forget_rest(struct rnl_rpc_server *);

void rnl_rpc_watch_begin(void);
void rnl_rpc_watch_end(void);
/* The transport of a descriptor, if it has a link; else NULL. Only while watching. */
struct rnl_rpc_server *rnl_rpc_server_of(int fd);
/* The transport of a descriptor, with or without a link. NULL: it has none. */
struct rnl_rpc_server *rnl_rpc_server_at_all(int fd);

#endif
