/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm1.h - Illinois Fast Messages 1.1 (same paper, Table 1) on runnel.h. The names map to FM1_ symbols, since FM_extract
 * has another shape in FM 2.x. Exclusive with fm.h in one source file. Errors as in fm.h. */
#ifndef RNL_FM1_H
#define RNL_FM1_H
#ifdef RNL_FM_H
#error "fm.h and fm1.h share the name FM_extract: include one of them in a file"
#endif

#if defined(__GNUC__)
#define FM_PUBLIC __attribute__((visibility("default")))
#else
#define FM_PUBLIC
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Runs once the whole message is here; must be done with buffer on return. May send: what finds no room is queued
 * within a budget. */
typedef void FM1_handler(void *buffer, unsigned size);
#define FM_ANY_ID (~0ul)
enum { FM1_MAX = 1 << 20 }; /* longest FM_send, bytes: the receiver needs it in one piece */

/* Four words to a handler. Outside handlers waits for room (running handlers meanwhile); inside, queues. */
FM_PUBLIC void FM1_send_4(unsigned long dest, unsigned long handler, int i0, int i1, int i2, int i3);
/* size bytes to a handler; buf is the caller's again on return. */
FM_PUBLIC void FM1_send(unsigned long dest, unsigned long handler, const void *buf, unsigned long size);
/* Runs the handlers of all messages that were there at the call; returns how many. Not inside a handler. */
FM_PUBLIC int FM1_extract(void);
/* id, or FM_ANY_ID for the next free one from 1 up; replaces a binding; returns the id. */
FM_PUBLIC unsigned long FM1_register_handler(unsigned long id, FM1_handler *);
/* Keys and arguments of fm.h (same numbers), and FM1_POLL_ON_SEND. */
FM_PUBLIC void FM1_set_parameter(int key, ...);
enum {
    FM_QUIET = 1,
    FM_MAX_HANDLERS,
    FM_GRM_NAME,
    FM_GRM_PORT,
    FM_CM_PORT,
    FM_KEY_NAME,
    FM_THREADS = 100,
    FM_ERROR_HANDLER,
    FM1_POLL_ON_SEND = 200 /* int: 1 = every send outside handlers also extracts; default 0: only when it must wait */
};
typedef void FM1_error(int status, unsigned long peer, const char *sentence);
/* Joins the job; alone, a job of one. */
FM_PUBLIC void FM1_initialize(void);
/* A collective: runs handlers, returns when all peers have finished or died and every message has been handled. A rank
 * that exits without it is dead to its peers; what it had not taken in is lost, and the error handlers are told. */
FM_PUBLIC void FM1_finalize(void);
/* Our rank in the job, 0 to FM_numnodes - 1. */
FM_PUBLIC unsigned long FM1_nodeid(void);
/* Ranks in the job. */
FM_PUBLIC unsigned long FM1_numnodes(void);

#define FM_send_4           FM1_send_4
#define FM_send             FM1_send
#define FM_extract          FM1_extract
#define FM_handler          FM1_handler
#define FM_error            FM1_error
#define FM_register_handler FM1_register_handler
#define FM_set_parameter    FM1_set_parameter
#define FM_initialize       FM1_initialize
#define FM_finalize         FM1_finalize
#define FM_nodeid           (FM1_nodeid())
#define FM_numnodes         (FM1_numnodes())

#ifdef __cplusplus
}
#endif
#endif
