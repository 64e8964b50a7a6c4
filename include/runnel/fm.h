/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm.h - Illinois Fast Messages 2.x (Lauria, Pakin, Chien: "Efficient Layering for High Speed Communication: Fast
 * Messages 2.x", Table 2) on runnel.h. One endpoint per process. Exclusive with fm1.h in one source file.
 *
 * FM has no way to return an error. Errors go to the handler set with FM_ERROR_HANDLER; the default explains on
 * standard error and ends the program with status 70. After a peer's death in a job run with --keep-going the default
 * explains once and goes on. */
#ifndef RNL_FM_H
#define RNL_FM_H
#ifdef RNL_FM1_H
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

typedef struct FM_stream FM_stream;
/* Runs inside FM_extract, FM_wait, FM_finalize or a send that waits, as soon as the message's first packet is here: one
 * logical thread per message. A suspended handler has a stack of 64 KiB; large arrays belong into static or allocated
 * memory. Returns FM_CONTINUE, or FM_QUIT to make this extract return. */
typedef int FM_handler(FM_stream *, unsigned sender);
enum { FM_QUIT = 0, FM_CONTINUE = 1 };
#define FM_ANY_ID (~0ul)

/* Takes in packets until maxbytes of payload (rounded up to a packet), a handler's FM_QUIT, or all that was there at
 * the call. Returns bytes taken in, at most INT_MAX; 0 = found nothing, and such calls in a row give the processor
 * away. FM_extract(0): credit and deaths only. Never blocks. Not inside a handler. */
FM_PUBLIC int FM_extract(unsigned long maxbytes);
/* In a handler: the next `bytes` bytes to buffer, in pieces of any size; may be suspended until they are here. If the
 * sender dies first, or gives the message up, the handler is never resumed: its stack is released without unwinding,
 * what it had open is given up, and of a death the error handler is told. Asking past the end is an error: the error
 * handler is told, and if it returns the buffer is filled with zeros.
 */
FM_PUBLIC void FM_receive(void *buffer, FM_stream *, unsigned long bytes);

/* length: upper bound on the bytes that follow. One message can be open to a peer. Outside handlers waits for room,
 * running handlers meanwhile; NULL when a message to that peer is open that another thread (FM_THREADS) or a suspended
 * handler will end: extract, then try again. One that the caller must end itself is an error. Inside a handler: NULL
 * when the whole bound cannot be reserved now (no room, or a message to that peer is open): do not spin there, send
 * later from the program. NULL also after an error, if the error handler returns. To a dead peer: the error handler is
 * told once, then messages are swallowed. */
FM_PUBLIC FM_stream *FM_begin_message(unsigned long dest, unsigned long length, unsigned long handler);
/* Any size, any alignment, any number of pieces. The buffer is the caller's again after FM_end_message. Neither takes
 * NULL. */
FM_PUBLIC void FM_send_piece(FM_stream *, const void *, unsigned long bytes);
FM_PUBLIC void FM_end_message(FM_stream *);

/* id, or FM_ANY_ID for the next free one from 1 up; replaces a binding; returns the id. Ids travel, never addresses. A
 * message that arrives before its handler is registered waits. */
FM_PUBLIC unsigned long FM_register_handler(unsigned long id, FM_handler *);
/* Redistributes receive credit: peers that do not use theirs are asked to give it back. */
FM_PUBLIC void FM_reallocate_credit(void);
/* Extension: waits until something was taken in or timeout_us passed (negative: for ever), using no CPU while idle.
 * Bytes as FM_extract. */
FM_PUBLIC int FM_wait(long timeout_us);
/* Extension: a level-triggered descriptor for poll or epoll, readable while FM_extract would find something. */
FM_PUBLIC int FM_fd(void);

/* Keys and the type of the one argument. Before FM_initialize, except FM_ERROR_HANDLER and FM_QUIET. */
enum {
    FM_QUIET = 1,     /* int: 1 = the default error handler prints nothing when it goes on */
    FM_MAX_HANDLERS,  /* int: default 1024, at most 65536 */
    FM_GRM_NAME,      /* const char *: accepted, unused: the launcher replaces FM's resource manager */
    FM_GRM_PORT,      /* int: accepted, unused */
    FM_CM_PORT,       /* int: accepted, unused */
    FM_KEY_NAME,      /* const char *: shown by `runnel info` */
    FM_THREADS = 100, /* int: 1 = any thread may call */
    FM_ERROR_HANDLER  /* FM_error *: NULL = the default */
};
/* status: an enum rnl_status; peer: the rank it is about, or FM_ANY_ID. */
typedef void FM_error(int status, unsigned long peer, const char *sentence);
/* Sets one parameter: a key from above and its argument. What is wrong with it goes to the error handler. */
FM_PUBLIC void FM_set_parameter(int key, ...);
/* Joins the job; alone, a job of one. */
FM_PUBLIC void FM_initialize(void);
/* A collective: runs handlers, returns when all peers have finished or died and every message has been handled. A rank
 * that exits without it is dead to its peers; what it had not taken in is lost, and the error handlers are told. */
FM_PUBLIC void FM_finalize(void);

/* Our rank in the job, 0 to FM_numnodes - 1. From FM_initialize on; after FM_finalize both are those of the last job.
 */
FM_PUBLIC unsigned long FM_nodeid_of_endpoint(void);
/* Ranks in the job. */
FM_PUBLIC unsigned long FM_numnodes_of_endpoint(void);
#define FM_nodeid   (FM_nodeid_of_endpoint())
#define FM_numnodes (FM_numnodes_of_endpoint())

#ifdef __cplusplus
}
#endif
#endif
