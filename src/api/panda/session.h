/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session.h - the inside of Panda. Its functions name no session, so what they share belongs to the process (iface.c
 * registers it) and points to memory of its own.
 *
 * While the process has one thread nothing is locked, and upcalls run inside the handlers of the endpoint, on the bytes
 * where they lie. From pan_thread_create on the endpoint's lock is Panda's (rnl_ep_guard): all of the session is used
 * with it, waiting gives it away, and upcalls wait in a queue with a copy of their message until the thread that took
 * them in runs them without it. */
#ifndef RNL_API_PANDA_SESSION_H
#define RNL_API_PANDA_SESSION_H

#include <stdlib.h>

#include "api/group/group.h"
#include "base/iface.h"
#include "base/notes.h"
#include "runnel/panda.h"
#include "stream/stream.h"

enum rnl_pan_counter {
    RNL_PAN_CALLS,
    RNL_PAN_SERVED,
    RNL_PAN_SENT,
    RNL_PAN_DELIVERED,
    RNL_PAN_QUEUED,
    RNL_PAN_COUNTERS
};
enum {
    RNL_PAN_REQUEST = 1016,
    RNL_PAN_REPLY,
    RNL_PAN_GROUP,
    RNL_PAN_PORT
}; /* numbers in the endpoint's handler table */
enum { RNL_PAN_PROTO_MAX = 128, RNL_PAN_RPC_OFFSET = 16, RNL_PAN_GROUP_OFFSET = 8, RNL_PAN_SHORT = RNL_CELL_PAYLOAD };

/* What a request and its reply begin with, in the byte order of the job. The program's header follows, then the data.
 *
 *       0               8      12      16
 *       +---------------+-------+-------+----------------+------
 *       |    ticket     | psize |refused| header         | data
 *       +---------------+-------+-------+----------------+------
 *                                        <- psize - 16 ->
 * The client makes the ticket: the number of the call << 32 | its place in the client's table. `refused`: 1 in a reply
 * that says that its sender has no handler of requests. */
struct rnl_pan_rpc_head {
    uint64_t ticket;
    uint32_t psize, refused;
};
/* A message to the group, or to a port of one process:
 *
 *       0       4       8
 *       +-------+-------+---------------+------
 *       | port  | psize | header        | data
 *       +-------+-------+---------------+------
 *                        <- psize - 8 ->         */
struct rnl_pan_group_head {
    uint32_t port, psize;
};
_Static_assert(sizeof(struct rnl_pan_rpc_head) == RNL_PAN_RPC_OFFSET, "as drawn");
_Static_assert(sizeof(struct rnl_pan_group_head) == RNL_PAN_GROUP_OFFSET, "as drawn");

struct pan_upcall { /* a request that waits for pan_rpc_reply */
    struct pan_upcall *next;
    uint64_t ticket;
    uint32_t client;
};

enum rnl_pan_kind { RNL_PAN_OF_REQUEST, RNL_PAN_OF_REPLY, RNL_PAN_OF_GROUP, RNL_PAN_OF_PORT, RNL_PAN_OF_DEATH };
struct pan_msg {
    struct pan_msg *next; /* of the queue, or of those that are free */
    rnl_stream *stream;   /* the bytes are there; NULL: at `at` */
    const unsigned char *at;
    unsigned char *own; /* to be freed with the message */
    size_t left;
    uint32_t sender;
    uint8_t kind, cleared, in_upcall;
    int status;
    /* what the upcall gets */
    pan_upcall_p upcall;
    pan_rpc_done *done;
    pan_group_handler *group;
    void *arg;
    _Alignas(8) unsigned char proto[RNL_PAN_PROTO_MAX];
};

/* A thread that waits. */
struct rnl_pan_waiter {
    struct rnl_pan_waiter *next;
    struct rnl_pan_waiter *queued; /* of a condition, or of `any` */
    pthread_cond_t cond;           /* made only where threads are */
    bool done;
};

struct rnl_pan_call {
    uint64_t ticket; /* 0: free */
    uint32_t dest;
    uint32_t next_free;
    pan_rpc_done *done;
    void *arg;
};

struct rnl_panda {
    rnl_endpoint *ep;
    rnl_group *group;
    uint64_t *count; /* by enum rnl_pan_counter */
    struct rnl_ep_watch watch;
    pan_rpc_handler *request;
    pan_group_handler *port[PAN_PORTS_MAX];
    pan_mp_handler *own_port[PAN_PORTS_MAX]; /* of messages to this process only */
    void (*death)(void *arg, int pid);
    void *death_arg;
    uint32_t ports, own_ports;
    bool started, threaded, dispatching, leaving;
    uint32_t held; /* mutexes that are locked, while there is one thread */

    struct rnl_pan_call *call;
    uint32_t calls, free_call; /* 1 + place; 0 = none */
    uint64_t numbers;

    struct pan_msg *first, **last; /* upcalls that wait */
    struct pan_msg *free_msgs;
    struct pan_upcall *free_upcalls;

    struct rnl_pan_waiter *waiters, *poller;
    struct rnl_pan_waiter *any; /* those in pan_wait */
    pthread_t poll_thread;
    struct rnl_notes *notes;
};
struct rnl_panda_process {
    struct rnl_panda *session;
};
extern struct rnl_panda_process rnl_panda_process __attribute__((visibility("hidden")));
extern const struct rnl_iface rnl_panda_iface;

static inline void rnl_pan_lock(struct rnl_panda *p)
{
    if (RNL_UNLIKELY(p->threaded))
        pthread_mutex_lock(&p->ep->lock);
}
static inline void rnl_pan_unlock(struct rnl_panda *p)
{
    if (RNL_UNLIKELY(p->threaded))
        pthread_mutex_unlock(&p->ep->lock);
}

/* ---- session.c ---- */

/* Leaves a record that says why the function cannot be called. */
RNL_COLD void rnl_pan_refuse(const char *function);
/* The session, locked, or NULL with a record. */
static inline struct rnl_panda *rnl_pan_enter(const char *function)
{
    struct rnl_panda *p = rnl_panda_process.session;
    if (RNL_UNLIKELY(!p || rnl_ep_forked(p->ep))) {
        rnl_pan_refuse(function);
        return NULL;
    }
    rnl_pan_lock(p);
    return p;
}
/* Copies a header, which is seldom longer than 64 bytes. */
static inline void rnl_pan_copy(void *to, const void *from, size_t n)
{
    if (RNL_LIKELY(n <= 64))
        rnl_copy_words(to, from, n);
    else
        memcpy(to, from, n);
}
RNL_COLD int rnl_pan_must_not_wait(const char *function);
/* Returns RNL_ERR_CONTEXT where waiting is not allowed. */
static inline int rnl_pan_may_wait(struct rnl_panda *p, const char *function)
{
    return RNL_LIKELY(!p->ep->fast.in_handler) ? 0 : rnl_pan_must_not_wait(function);
}
/* Takes messages in, or waits for a thread that does, until w->done. deadline_ns: UINT64_MAX = none. */
int rnl_pan_block(struct rnl_panda *p, struct rnl_pan_waiter *w, uint64_t deadline_ns);
void rnl_pan_complete(struct rnl_panda *p, struct rnl_pan_waiter *w);
void rnl_pan_free(struct rnl_panda *p);

/* ---- message.c ---- */

/* A message without bytes, or NULL. Those that are free own nothing. */
static inline struct pan_msg *rnl_pan_msg_new(struct rnl_panda *p)
{
    struct pan_msg *m = p->free_msgs;
    if (RNL_LIKELY(m != NULL))
        p->free_msgs = m->next;
    else if (!(m = malloc(sizeof *m)))
        return NULL;
    m->stream = NULL;
    m->own = NULL;
    m->left = 0;
    m->cleared = m->in_upcall = 0;
    m->status = 0;
    return m;
}
static inline void rnl_pan_msg_free(struct rnl_panda *p, struct pan_msg *m)
{
    if (RNL_UNLIKELY(m->own != NULL))
        free(m->own);
    m->next = p->free_msgs;
    p->free_msgs = m;
}
/* Runs the upcall of the message now or later. */
void rnl_pan_upcall(struct rnl_panda *p, struct pan_msg *m);
/* Whether an upcall may run in the handler that has taken its message in. */
static inline bool rnl_pan_at_once(const struct rnl_panda *p)
{
    return !p->threaded && !p->held && !p->first;
}
/* Keeps what the upcall of a message has left of it. */
void rnl_pan_keep(struct pan_msg *m);
static inline void rnl_pan_after_upcall(struct rnl_panda *p, struct pan_msg *m)
{
    m->in_upcall = 0;
    if (RNL_LIKELY(m->cleared))
        rnl_pan_msg_free(p, m);
    else
        rnl_pan_keep(m);
}
/* Runs those that wait, unless another thread does. */
void rnl_pan_run_queue(struct rnl_panda *p);
int rnl_pan_send_any(struct rnl_panda *p, uint32_t dest, unsigned handler, const void *proto, size_t psize,
                     const pan_iovec_t *iov, int n, size_t bytes);
/* Sends the header, then the pieces, of so many bytes, as one message. Waits if it may; else it may be RNL_NO_ROOM. */
static inline int rnl_pan_send(struct rnl_panda *p, uint32_t dest, unsigned handler, const void *proto, size_t psize,
                               const pan_iovec_t *iov, int n, size_t bytes)
{
    if (RNL_LIKELY(n <= 1 && psize + bytes <= RNL_PAN_SHORT) &&
        RNL_LIKELY(rnl_stream_send_parts(p->ep, dest, handler, proto, psize, bytes ? iov->data : NULL, bytes)))
        return 0;
    return rnl_pan_send_any(p, dest, handler, proto, psize, iov, n, bytes);
}
int64_t rnl_pan_check_any(const pan_iovec_t *iov, int n, const void *proto, size_t psize, size_t offset);
/* The bytes of the pieces, or RNL_ERR_ARG. */
static inline int64_t rnl_pan_check(const pan_iovec_t *iov, int n, const void *proto, size_t psize, size_t offset)
{
    if (RNL_LIKELY(proto && psize >= offset && psize <= RNL_PAN_PROTO_MAX) &&
        (n == 0 || RNL_LIKELY(n == 1 && iov->len <= UINT32_MAX)))
        return n ? (int64_t)iov->len : 0;
    return rnl_pan_check_any(iov, n, proto, psize, offset);
}
/* Takes in a header that is known to have arrived with its message, or waits for it. */
static inline int rnl_pan_take(rnl_stream *s, void *to, size_t n)
{
    return RNL_LIKELY(rnl_stream_receive_short(s, to, n)) ? 0 : rnl_receive(s, to, n);
}

/* ---- rpc.c, group.c, port.c ---- */

int rnl_pan_take_request(rnl_stream *s, unsigned peer, void *ctx);
int rnl_pan_take_reply(rnl_stream *s, unsigned peer, void *ctx);
void rnl_pan_fail_calls(struct rnl_panda *p, uint32_t rank, int status);
int rnl_pan_open_group(struct rnl_panda *p);
int rnl_pan_take_port(rnl_stream *s, unsigned peer, void *ctx);

#endif
