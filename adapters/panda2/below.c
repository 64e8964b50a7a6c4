/* SPDX-License-Identifier: BSD-3-Clause
 *
 * below.c - what Panda 2.0 uses of Panda 4 (below.h). */
#include "below.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <runnel/panda.h>

enum { RETRY_NS = 50000, BLOCK = 128 };

struct queued { /* by an upcall that must not wait */
    struct queued *next;
    int dest; /* -1: the group */
    struct pan2_head head;
    size_t n;
    unsigned char data[];
};

static const struct pan2_upcalls *up;
static int port_one, port_all;
static pan_thread_p daemon_thread;
static bool threaded; /* there is a daemon, and so there may be more */
static bool ending;
static int depth; /* of upcalls; written only where there is no daemon, so that threads race for nothing */
static void *end_lock, *end_signal;
static bool *at_end; /* of each process: it has come to its end, or died. Under end_lock */
static struct queued *queue, **queue_end = &queue;

void pan2_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fprintf(stderr, "panda: process %d: ", pan_my_pid());
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

static void check(int status, const char *what)
{
    if (status < 0)
        pan2_fail("%s: %s", what, rnl_last_error()->text);
}

static void *need(void *p)
{
    if (!p)
        pan2_fail("no memory");
    return p;
}

/* ---- arriving ---- */

/* The bytes come before the upcall begins, since whoever waits for them lets others run, for whom `depth` must not
 * count. */
static bool receive(pan_msg_p msg, const void *proto, size_t offset, struct pan2_arrived *in)
{
    memcpy(&in->head, (const char *)proto + offset, sizeof in->head);
    in->sender = pan_msg_sender(msg);
    in->n = pan_msg_left(msg);
    in->data = need(malloc(in->n ? in->n : 1));
    bool came = pan_msg_consume(msg, in->data, in->n) == 0;
    pan_msg_clear(msg);
    if (!threaded)
        depth++;
    return came; /* or its sender died */
}

static void done_with(struct pan2_arrived *in)
{
    free(in->data);
    if (!threaded)
        depth--;
}

static void note_end(int pid)
{
    pan2_lock(end_lock);
    at_end[pid] = true;
    pan2_signal_all(end_signal);
    pan2_unlock(end_lock);
}

static void on_one(pan_msg_p msg, void *proto)
{
    struct pan2_arrived in;
    if (receive(msg, proto, pan_group_proto_offset(), &in)) {
        if (in.head.kind == PAN2_END)
            note_end(in.sender);
        else
            up->one(&in);
    }
    done_with(&in);
}

static void on_all(pan_msg_p msg, void *proto)
{
    struct pan2_arrived in;
    if (receive(msg, proto, pan_group_proto_offset(), &in))
        up->all(&in);
    done_with(&in);
}

static void on_request(pan_upcall_p upcall, pan_msg_p msg, void *proto)
{
    struct pan2_arrived in;
    if (receive(msg, proto, pan_rpc_proto_offset(), &in))
        up->request(upcall, &in);
    done_with(&in);
}

static void on_death(void *arg, int pid)
{
    (void)arg;
    if (!threaded)
        depth++;
    up->death(pid);
    note_end(pid);
    if (!threaded)
        depth--;
}

/* ---- life ---- */

static void take_in(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
        int status = pan_wait(-1);
        if (status != RNL_INTERRUPTED)
            check(status, "taking messages in");
    }
}

void pan2_open(const struct pan2_upcalls *upcalls)
{
    up = upcalls;
    check(pan_init(NULL, NULL), "pan_init");
    end_lock = pan2_lock_new();
    end_signal = pan2_signal_new(end_lock);
    at_end = need(calloc((size_t)pan_nr_processes(), sizeof *at_end));
    pan_rpc_register(on_request);
    pan_on_death(on_death, NULL);
    check(port_one = pan_mp_register_port(on_one), "pan_init");
    check(port_all = pan_group_register_port(on_all), "pan_init");
}

void pan2_begin(void)
{
    check(pan_start(), "pan_start");
    threaded = true; /* before it makes upcalls */
    daemon_thread = pan_thread_create(take_in, NULL, 0, 0, 0);
    if (!daemon_thread)
        threaded = false;
}

static int send(int dest, const struct pan2_head *head, const pan_iovec_t *iov, int n);
static void flush(bool may_wait);

/* Waits until each process that lives has come to its end: until then it may wait for what an upcall here sends. */
static void meet_at_end(void)
{
    const struct pan2_head head = {.kind = PAN2_END};
    const int self = pan_my_pid(), size = pan_nr_processes();
    for (int pid = 0; pid < size; pid++) {
        int status = pid == self ? 0 : send(pid, &head, NULL, 0);
        if (status != RNL_ERR_PEER_DEAD)
            check(status, "pan_end");
    }
    pan2_lock(end_lock);
    for (int pid = 0; pid < size; pid++)
        while (pid != self && !at_end[pid])
            (void)pan2_signal_wait(end_signal, -1);
    pan2_unlock(end_lock);
}

void pan2_close(void)
{
    flush(true);
    meet_at_end();
    flush(true);
    if (threaded) {
        __atomic_store_n(&ending, true, __ATOMIC_RELEASE);
        rnl_wake(pan_endpoint());
        pan_thread_join(daemon_thread);
        threaded = false;
    }
    check(pan_end(), "pan_end");
    ending = false;
    while (queue) { /* of upcalls of the end itself, for whose messages nobody waits */
        struct queued *q = queue;
        queue = q->next;
        free(q);
    }
    queue_end = &queue;
    free(at_end);
    pan2_signal_free(end_signal);
    pan2_lock_free(end_lock);
}

int pan2_self(void)
{
    return pan_my_pid();
}

int pan2_size(void)
{
    return pan_nr_processes();
}

bool pan2_in_upcall(void)
{
    return depth > 0;
}

void pan2_look(void)
{
    flush(false);
    check(pan_poll(), "pan_poll");
}

/* ---- sending ---- */

static int send(int dest, const struct pan2_head *head, const pan_iovec_t *iov, int n)
{
    _Alignas(8) unsigned char proto[BLOCK];
    const size_t offset = pan_group_proto_offset();
    memcpy(proto + offset, head, sizeof *head);
    if (dest < 0)
        return pan_group_send(port_all, iov, n, proto, offset + sizeof *head);
    return pan_mp_send(dest, port_one, iov, n, proto, offset + sizeof *head);
}

/* Sends what upcalls left, in the order in which they did. */
static void flush(bool may_wait)
{
    while (queue && !depth) {
        struct queued *q = queue;
        const pan_iovec_t iov = {q->data, q->n};
        queue = q->next;
        if (!queue)
            queue_end = &queue;
        check(send(q->dest, &q->head, &iov, 1), "a message that an upcall had sent");
        free(q);
        if (!may_wait)
            break; /* upcalls that it waited for may have left more */
    }
}

static void leave_for_later(int dest, const struct pan2_head *head, const pan_iovec_t *iov, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += iov[i].len;
    struct queued *q = need(malloc(sizeof *q + bytes));
    unsigned char *at = q->data;
    q->next = NULL;
    q->dest = dest;
    q->head = *head;
    q->n = bytes;
    for (int i = 0; i < n; i++) {
        if (iov[i].len)
            memcpy(at, iov[i].data, iov[i].len);
        at += iov[i].len;
    }
    *queue_end = q;
    queue_end = &q->next;
}

static void send_or_queue(int dest, const struct pan2_head *head, const struct pan2_piece *pieces, int n)
{
    pan_iovec_t iov[PAN_PIECES_MAX];
    for (int i = 0; i < n; i++)
        iov[i] = (pan_iovec_t){pieces[i].data, pieces[i].len};
    if (depth) {
        leave_for_later(dest, head, iov, n);
        return;
    }
    flush(true);
    check(send(dest, head, iov, n), dest < 0 ? "a message to a group" : "a message");
}

void pan2_send_one(int dest, const struct pan2_head *head, const struct pan2_piece *pieces, int n)
{
    if (dest < 0 || dest >= pan_nr_processes())
        pan2_fail("there is no process %d to send to: they are 0 to %d", dest, pan_nr_processes() - 1);
    send_or_queue(dest, head, pieces, n);
}

void pan2_send_all(const struct pan2_head *head, const struct pan2_piece *pieces, int n)
{
    send_or_queue(-1, head, pieces, n);
}

/* ---- calls ---- */

struct awaited_reply {
    bool done;
    int status;
    void *data;
    size_t n;
};

static int keep(pan_msg_p msg, void **data, size_t *n)
{
    *n = pan_msg_left(msg);
    *data = need(malloc(*n ? *n : 1));
    return pan_msg_consume(msg, *data, *n);
}

static void on_reply(void *arg, int status, pan_msg_p msg, void *proto)
{
    struct awaited_reply *r = arg;
    (void)proto;
    r->status = status < 0 ? status : keep(msg, &r->data, &r->n);
    r->done = true;
    pan_msg_clear(msg);
}

static void wait_once(int64_t timeout_ns)
{
    int status = pan_wait(queue && (timeout_ns < 0 || timeout_ns > RETRY_NS) ? RETRY_NS : timeout_ns);
    if (status != RNL_TIMED_OUT && status != RNL_INTERRUPTED)
        check(status, "waiting");
}

void pan2_call(int dest, const struct pan2_piece *request, void **data, size_t *n)
{
    _Alignas(8) unsigned char proto[BLOCK];
    const pan_iovec_t iov = {request->data, request->len};
    const size_t psize = pan_rpc_proto_offset() + sizeof(struct pan2_head);
    memset(proto, 0, psize);
    if (depth)
        pan2_fail("pan_rpc_trans was called in an upcall, where there are no threads that could wait");
    if (threaded) {
        pan_msg_p msg;
        void *back;
        check(pan_rpc_trans(dest, &iov, 1, proto, psize, &msg, &back), "pan_rpc_trans");
        check(keep(msg, data, n), "pan_rpc_trans");
        pan_msg_clear(msg);
        return;
    }
    struct awaited_reply r = {.done = false};
    flush(true);
    check(pan_rpc_start(dest, &iov, 1, proto, psize, on_reply, &r), "pan_rpc_trans");
    while (!r.done) {
        wait_once(-1);
        flush(false);
    }
    if (r.status < 0)
        pan2_fail("pan_rpc_trans: process %d died before it replied", dest);
    *data = r.data;
    *n = r.n;
}

void pan2_reply(void *upcall, const struct pan2_piece *reply, void (*sent)(void *arg), void *arg)
{
    _Alignas(8) unsigned char proto[BLOCK];
    const pan_iovec_t iov = {reply->data, reply->len};
    int status = pan_rpc_reply(upcall, &iov, 1, proto, pan_rpc_proto_offset(), sent, arg);
    if (status != RNL_ERR_PEER_DEAD)
        check(status, "pan_rpc_reply");
}

/* ---- monitors ---- */

struct signal {
    pan_mutex_p lock;
    pan_cond_p cond;
    bool given; /* where there is no daemon, and so one thread */
};

void *pan2_lock_new(void)
{
    return need(pan_mutex_create());
}
void pan2_lock_free(void *lock)
{
    pan_mutex_clear(lock);
}
void pan2_lock(void *lock)
{
    pan_mutex_lock(lock);
}
int pan2_trylock(void *lock)
{
    return pan_mutex_trylock(lock);
}
void pan2_unlock(void *lock)
{
    pan_mutex_unlock(lock);
}

void *pan2_signal_new(void *lock)
{
    struct signal *s = need(malloc(sizeof *s));
    *s = (struct signal){.lock = lock, .cond = need(pan_cond_create(lock)), .given = false};
    return s;
}

void pan2_signal_free(void *signal)
{
    struct signal *s = signal;
    if (s)
        pan_cond_clear(s->cond);
    free(s);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool pan2_signal_wait(void *signal, int64_t timeout_ns)
{
    struct signal *s = signal;
    if (depth)
        pan2_fail("a condition was waited for in an upcall, where there are no threads that could wait");
    if (threaded) {
        int status = timeout_ns < 0 ? pan_cond_wait(s->cond) : pan_cond_timedwait(s->cond, timeout_ns);
        if (status != RNL_TIMED_OUT)
            check(status, "a condition");
        return status == 0;
    }
    int64_t end = timeout_ns < 0 ? 0 : now_ns() + timeout_ns, left = timeout_ns;
    s->given = false;
    pan_mutex_unlock(s->lock);
    while (!s->given && (timeout_ns < 0 || left > 0)) {
        flush(false);
        if (!s->given)
            wait_once(left);
        left = timeout_ns < 0 ? -1 : end - now_ns();
    }
    pan_mutex_lock(s->lock);
    return s->given;
}

void pan2_signal_one(void *signal)
{
    struct signal *s = signal;
    s->given = true;
    pan_cond_signal(s->cond);
}
void pan2_signal_all(void *signal)
{
    struct signal *s = signal;
    s->given = true;
    pan_cond_broadcast(s->cond);
}

/* ---- threads ---- */

void *pan2_thread_new(void (*f)(void *arg), void *arg, size_t stack, bool detach)
{
    return pan_thread_create(f, arg, stack, 0, detach);
}
void pan2_thread_end(void)
{
    pan_thread_exit();
}
void pan2_thread_wait(void *t)
{
    pan_thread_join(t);
}
void pan2_thread_give_way(void)
{
    if (!threaded)
        pan2_look();
    pan_thread_yield();
}
void *pan2_thread_mine(void)
{
    return pan_thread_self();
}
