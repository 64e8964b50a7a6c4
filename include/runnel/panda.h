/* SPDX-License-Identifier: BSD-3-Clause
 *
 * panda.h - Panda: threads, remote procedure calls and totally ordered multicast for run-time systems of parallel
 * languages, with the names of Panda 4: data is gathered when it is sent and consumed as a stream when it arrives,
 * and headers travel apart from it. panda(3) is its page.
 *
 * Every process of a job calls pan_init, registers its handlers, and calls pan_start; messages are handled from then
 * on. Handlers are upcalls: they run in the thread that takes messages in, which is whoever waits in one of the
 * calls below or calls pan_poll. While a thread holds a pan_mutex that an upcall locks, it must not call pan_poll,
 * pan_wait, pan_rpc_trans or pan_cond_wait of another mutex. While a process has one thread, upcalls run where the
 * message lies, and must not call a function that waits; what they send waits in a queue if there is no room. Once
 * it has more, upcalls run one after another, without any lock of Panda's, on a copy of the message.
 *
 * A header ("proto") is a block of at most pan_proto_max_size() bytes, in which Panda writes its own part, the first
 * pan_rpc_proto_offset() or pan_group_proto_offset() bytes; the program's part follows, and psize counts both.
 * Handlers get such a block, too.
 *
 * Functions return 0 or more, or a negative enum rnl_status; those that make something return NULL instead. A record
 * is left either way (rnl_last_error). */
#ifndef RNL_PANDA_H
#define RNL_PANDA_H

#include "runnel/runnel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pan_msg *pan_msg_p;
typedef struct pan_upcall *pan_upcall_p;
typedef struct pan_thread *pan_thread_p;
typedef struct pan_mutex *pan_mutex_p;
typedef struct pan_cond *pan_cond_p;
typedef struct pan_iovec {
    const void *data;
    size_t len;
} pan_iovec_t, *pan_iovec_p;

enum { PAN_PIECES_MAX = 62, PAN_PORTS_MAX = 64 };

/* ---- life ---- */

/* Joins the job, as rnl_open does. argc and argv are left as they are and may be NULL. Returns 0, RNL_ERR_CONTEXT (it
 * was called before), or what rnl_open returns. */
RNL_PUBLIC RNL_CHECK int pan_init(int *argc, char **argv);
/* Begins to handle messages. The ports of groups are those registered by now, the same and in the same order at all
 * processes. */
RNL_PUBLIC RNL_CHECK int pan_start(void);
/* Leaves the job, as rnl_close does: all processes call it, after their other threads have ended. Upcalls may still
 * run. RNL_ERR_CONTEXT: in an upcall. */
RNL_PUBLIC RNL_CHECK int pan_end(void);
RNL_PUBLIC int pan_my_pid(void);       /* the rank of this process */
RNL_PUBLIC int pan_nr_processes(void); /* how many there are */
/* The endpoint, for functions of runnel.h that neither wait nor extract. NULL outside pan_init and pan_end. */
RNL_PUBLIC rnl_endpoint *pan_endpoint(void);
/* Takes in what has arrived and runs upcalls. Returns 0, or what rnl_extract returns if it fails. */
RNL_PUBLIC int pan_poll(void);
/* Waits until something was taken in and runs upcalls; timeout_ns bounds it (negative: no limit). Of several threads
 * another may have taken in before the call what this one waits for: it uses a condition then, or a limit. Returns 0,
 * RNL_TIMED_OUT, RNL_INTERRUPTED (rnl_wake), or what rnl_wait returns if it fails. */
RNL_PUBLIC int pan_wait(int64_t timeout_ns);
/* Sleeps; upcalls run meanwhile. */
RNL_PUBLIC void pan_sleep(int64_t ns);
/* f(arg, rank) is an upcall for each process that dies. */
RNL_PUBLIC void pan_on_death(void (*f)(void *arg, int pid), void *arg);

/* Has `runnel info --pid` show lines of text about this process, n bytes of which at most 16368 are kept, until the
 * next call. Returns 0 or RNL_ERR_NO_MEMORY. */
RNL_PUBLIC int pan_show(const char *text, size_t n);

/* ---- headers and messages ---- */

/* Bytes of the largest header; of Panda's part in those of calls; and of messages to the group. */
RNL_PUBLIC size_t pan_proto_max_size(void);
/* See pan_proto_max_size. */
RNL_PUBLIC size_t pan_rpc_proto_offset(void);
/* See pan_proto_max_size. */
RNL_PUBLIC size_t pan_group_proto_offset(void);
/* Allocates a block of pan_proto_max_size() bytes, or of `size` if that is more; free() frees it. NULL: no memory. Any
 * other memory that is aligned to 8 bytes does as well. */
RNL_PUBLIC void *pan_proto_create(size_t size);

/* Copies the next len bytes to dst, or skips them if dst is NULL. In a process of one thread it waits for bytes that
 * have not arrived. Returns 0; RNL_ERR_PAST_END: the message has fewer, and nothing was copied; RNL_ERR_PEER_DEAD:
 * the rest never comes. */
RNL_PUBLIC RNL_CHECK int pan_msg_consume(pan_msg_p msg, void *dst, size_t len);
RNL_PUBLIC size_t pan_msg_left(pan_msg_p msg); /* bytes that were not consumed */
RNL_PUBLIC int pan_msg_sender(pan_msg_p msg);
/* Gives the message back. One that an upcall keeps is copied when it returns, and then belongs to whoever clears it. */
RNL_PUBLIC void pan_msg_clear(pan_msg_p msg);

/* ---- remote procedure calls ---- */

/* An upcall for each request. It, or any thread at any time later, replies once with pan_rpc_reply. proto is valid
 * until msg is cleared. */
typedef void pan_rpc_handler(pan_upcall_p upcall, pan_msg_p msg, void *proto);
/* Registers the handler of requests; requests that come while there is none are dropped. */
RNL_PUBLIC void pan_rpc_register(pan_rpc_handler *h);
/* Sends the pieces to process dest and waits for the reply, which the caller clears; *proto is part of it. Not in
 * upcalls of a process of one thread. Returns 0, RNL_ERR_RANK, RNL_ERR_ARG, RNL_ERR_TOO_LONG (4 GiB),
 * RNL_ERR_PEER_DEAD, RNL_ERR_CONTEXT, RNL_ERR_NO_MEMORY, or what rnl_wait returns. */
RNL_PUBLIC RNL_CHECK int pan_rpc_trans(int dest, const pan_iovec_t *iov, int n, void *proto, size_t psize,
                                       pan_msg_p *reply, void **reply_proto);
/* An upcall for the reply, with status 0, or with an error and a reply of NULL. It clears the reply. */
typedef void pan_rpc_done(void *arg, int status, pan_msg_p reply, void *proto);
/* The same without waiting for the reply, for which `done` is called. The pieces belong to the caller again on
 * return. */
RNL_PUBLIC RNL_CHECK int pan_rpc_start(int dest, const pan_iovec_t *iov, int n, void *proto, size_t psize,
                                       pan_rpc_done *done, void *arg);
/* Replies. The pieces belong to Panda until clear(arg) was called, which may be in this call; clear may be NULL, and
 * must not call Panda. proto belongs to the caller again on return. RNL_NO_ROOM, in upcalls only: nothing was done,
 * try again later. The upcall ends in every other case. */
RNL_PUBLIC RNL_CHECK int pan_rpc_reply(pan_upcall_p upcall, const pan_iovec_t *iov, int n, void *proto, size_t psize,
                                       void (*clear)(void *arg), void *arg);

/* ---- messages to ports of one process ---- */

/* An upcall for each message to the port. */
typedef void pan_mp_handler(pan_msg_p msg, void *proto);
/* Returns the number of the port, the same at all processes that register theirs in the same order. Before pan_start.
 * RNL_ERR_TOO_LONG: there are PAN_PORTS_MAX. */
RNL_PUBLIC RNL_CHECK int pan_mp_register_port(pan_mp_handler *h);
/* Sends the pieces to that port of process dest, once and in order with calls to it. The header is one of messages to
 * the group. The pieces belong to the caller again on return. Returns 0, RNL_ERR_RANK, RNL_ERR_ARG, RNL_ERR_TOO_LONG
 * (4 GiB), RNL_ERR_PEER_DEAD, or what rnl_wait returns. RNL_NO_ROOM, in upcalls of a process of one thread only: try
 * again later. */
RNL_PUBLIC RNL_CHECK int pan_mp_send(int dest, int port, const pan_iovec_t *iov, int n, void *proto, size_t psize);

/* ---- totally ordered group communication: one group of all processes ---- */

/* An upcall for each message to a port, the own ones included, in one order at all processes. */
typedef void pan_group_handler(pan_msg_p msg, void *proto);
/* Returns the number of the port. Before pan_start. RNL_ERR_TOO_LONG: there are PAN_PORTS_MAX. */
RNL_PUBLIC RNL_CHECK int pan_group_register_port(pan_group_handler *h);
/* Sends the pieces to all. They are copied, and belong to the caller again on return. Waits as rnl_group_send does, and
 * returns what that returns, or RNL_ERR_ARG. At most RNL_GROUP_MESSAGE_MAX bytes with the header. */
RNL_PUBLIC RNL_CHECK int pan_group_send(int port, const pan_iovec_t *iov, int n, void *proto, size_t psize);

/* ---- threads ---- */

/* Starts a thread. stack: bytes, or 0; prio: ignored, as the system decides. detach: it is not joined. NULL: no thread
 * can be made, or this is an upcall. */
RNL_PUBLIC pan_thread_p pan_thread_create(void (*f)(void *arg), void *arg, size_t stack, int prio, int detach);
RNL_PUBLIC void pan_thread_join(pan_thread_p t);
RNL_PUBLIC void pan_thread_yield(void);
/* Ends the thread that calls it, which pan_thread_create made. */
RNL_PUBLIC void pan_thread_exit(void);
/* What pan_thread_create returned for the thread that calls it, or NULL: it was not made by that. Not of a detached
 * one once it has ended. */
RNL_PUBLIC pan_thread_p pan_thread_self(void);

/* Makes a mutex, or returns NULL. */
RNL_PUBLIC pan_mutex_p pan_mutex_create(void);
/* Frees one that nobody holds; NULL is allowed. */
RNL_PUBLIC void pan_mutex_clear(pan_mutex_p m);
/* Waits for the mutex without taking messages in. Its holder cannot lock it again. */
RNL_PUBLIC void pan_mutex_lock(pan_mutex_p m);
RNL_PUBLIC int pan_mutex_trylock(pan_mutex_p m); /* returns 1 if it was free */
/* Lets it go. */
RNL_PUBLIC void pan_mutex_unlock(pan_mutex_p m);

/* A condition belongs to one mutex, which who waits or signals holds. */
RNL_PUBLIC pan_cond_p pan_cond_create(pan_mutex_p m);
RNL_PUBLIC void pan_cond_clear(pan_cond_p c);
/* Releases the mutex and waits for a signal; takes messages in and runs upcalls if no other thread does. Not in upcalls
 * of a process of one thread. Returns 0, or what rnl_wait returns if it fails; the mutex is held again either way. */
RNL_PUBLIC int pan_cond_wait(pan_cond_p c);
/* The same, for at most timeout_ns. Also returns RNL_TIMED_OUT. */
RNL_PUBLIC int pan_cond_timedwait(pan_cond_p c, int64_t timeout_ns);
RNL_PUBLIC void pan_cond_signal(pan_cond_p c);
RNL_PUBLIC void pan_cond_broadcast(pan_cond_p c);

#ifdef __cplusplus
}
#endif
#endif
