/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pan_sys.h - the system interface of Panda 2.0, over Panda 4 (runnel/panda.h): threads, monitors, time, messages,
 * fragments, access points, sets of processes, and unicast and multicast of these. For programs that were written to
 * it.
 *
 *     cc program.c $(pkg-config --cflags --libs runnel-panda)
 *
 * What it needs and cannot have (memory, a process that has died, a call that is not allowed where it was made) ends
 * the program with a sentence, as pan_panic does: the interface has no errors. pan_start makes the thread that takes
 * messages in and calls handlers, one at a time. Where there are no threads (runnel-sim(1)) they are called inside
 * calls that wait and inside pan_poll, and must not wait.
 *
 * Names are mapped to others for the linker, since Panda 4 has some of them with other arguments. panda(3) has what
 * differs. */
#ifndef RNL_PAN_SYS_H
#define RNL_PAN_SYS_H

#ifdef RNL_PANDA_H
#error "runnel/panda.h is Panda 4: a file is written to it or to Panda 2.0"
#endif

#include <stddef.h>
#include <stdlib.h>

#include <panda/pan_names.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pan_thread *pan_thread_p;
typedef struct pan_time *pan_time_p;
typedef struct pan_mutex *pan_mutex_p;
typedef struct pan_cond *pan_cond_p;
typedef struct pan_msg *pan_msg_p;
typedef struct pan_fragment *pan_fragment_p;
typedef struct pan_pset *pan_pset_p;
typedef struct pan_nsap *pan_nsap_p;
typedef struct pan_key *pan_key_p;
typedef void (*pan_thread_func_p)(void *arg);

/* ---- life ---- */

/* Joins the job. All that is registered, and access points, are made between it and pan_start, in the same order
 * everywhere. */
PAN_PUBLIC void pan_init(int *argc, char *argv[]);
PAN_PUBLIC void pan_start(void);
/* All processes call it, after their other threads have ended. */
PAN_PUBLIC void pan_end(void);
PAN_PUBLIC int pan_my_pid(void);
PAN_PUBLIC int pan_nr_platforms(void);
/* Takes in what has arrived. */
PAN_PUBLIC void pan_poll(void);
/* Prints the sentence and ends the program with status 1. */
PAN_PUBLIC void pan_panic(const char *format, ...) PAN_PRINTF;
/* Parameters: a list of names and values that ends with NULL. "PAN_SYS_statistics" gives a text that the caller
 * frees; what is not known is left as it is. */
PAN_PUBLIC void pan_sys_va_set_params(void *first, ...);
PAN_PUBLIC void pan_sys_va_get_params(void *first, ...);

/* ---- threads: priorities are kept and otherwise ignored ---- */

PAN_PUBLIC pan_thread_p pan_thread_create(pan_thread_func_p func, void *arg, long stacksize, int priority, int detach);
PAN_PUBLIC void pan_thread_clear(pan_thread_p thread); /* of one that was joined */
PAN_PUBLIC void pan_thread_exit(void);
PAN_PUBLIC void pan_thread_join(pan_thread_p thread);
PAN_PUBLIC void pan_thread_yield(void);
PAN_PUBLIC pan_thread_p pan_thread_self(void);
PAN_PUBLIC int pan_thread_getprio(void);
PAN_PUBLIC int pan_thread_setprio(int priority); /* returns the old one */
PAN_PUBLIC int pan_thread_minprio(void);
PAN_PUBLIC int pan_thread_maxprio(void);

/* Values of each thread. */
PAN_PUBLIC pan_key_p pan_key_create(void);
PAN_PUBLIC void pan_key_clear(pan_key_p key);
PAN_PUBLIC void pan_key_setspecific(pan_key_p key, void *ptr);
PAN_PUBLIC void *pan_key_getspecific(pan_key_p key);

/* ---- monitors ---- */

PAN_PUBLIC pan_mutex_p pan_mutex_create(void);
PAN_PUBLIC void pan_mutex_clear(pan_mutex_p mutex);
PAN_PUBLIC void pan_mutex_lock(pan_mutex_p mutex);
PAN_PUBLIC void pan_mutex_unlock(pan_mutex_p mutex);
PAN_PUBLIC int pan_mutex_trylock(pan_mutex_p mutex); /* returns 1 if it was free */
PAN_PUBLIC pan_cond_p pan_cond_create(pan_mutex_p mutex);
PAN_PUBLIC void pan_cond_clear(pan_cond_p cond);
PAN_PUBLIC void pan_cond_wait(pan_cond_p cond);
PAN_PUBLIC int pan_cond_timedwait(pan_cond_p cond,
                                  pan_time_p abstime); /* returns 0 at that time, 1 if it was signalled */
PAN_PUBLIC void pan_cond_signal(pan_cond_p cond);
PAN_PUBLIC void pan_cond_broadcast(pan_cond_p cond);

/* ---- time ---- */

typedef struct pan_time_fix {
    long t_sec, t_nsec;
} pan_time_fix_t, *pan_time_fix_p;
PAN_PUBLIC extern pan_time_p pan_time_infinity, pan_time_zero;
PAN_PUBLIC pan_time_p pan_time_create(void);
PAN_PUBLIC void pan_time_clear(pan_time_p time);
PAN_PUBLIC void pan_time_copy(pan_time_p to, pan_time_p from);
PAN_PUBLIC void pan_time_get(pan_time_p now);
PAN_PUBLIC void pan_time_set(pan_time_p time, long seconds, unsigned long nanoseconds);
PAN_PUBLIC int pan_time_cmp(pan_time_p t1, pan_time_p t2); /* -1, 0, 1 */
PAN_PUBLIC void pan_time_add(pan_time_p res, pan_time_p delta);
PAN_PUBLIC void pan_time_sub(pan_time_p res, pan_time_p delta);
PAN_PUBLIC void pan_time_mul(pan_time_p res, int nr);
PAN_PUBLIC void pan_time_div(pan_time_p res, int nr);
PAN_PUBLIC void pan_time_mulf(pan_time_p res, double nr);
PAN_PUBLIC void pan_time_d2t(pan_time_p t, double seconds);
PAN_PUBLIC double pan_time_t2d(pan_time_p t);
PAN_PUBLIC void pan_time_t2fix(pan_time_p t, pan_time_fix_p f);
PAN_PUBLIC void pan_time_fix2t(pan_time_fix_p f, pan_time_p t);
/* Puts the nanoseconds between t2 and t1 into *d and returns 1 if they fit. */
PAN_PUBLIC int pan_time_sub_fix_small(pan_time_p t1, pan_time_p t2, long *d);
PAN_PUBLIC int pan_time_size(void); /* bytes of a marshalled time */
PAN_PUBLIC void pan_time_marshall(pan_time_p p, void *buffer);
PAN_PUBLIC void pan_time_unmarshall(pan_time_p p, void *buffer);

/* ---- messages: stacks of blocks, each aligned to 8 ---- */

#ifndef alignof
#define alignof(type) \
    (sizeof(struct {  \
         char rnl_i;  \
         type rnl_c;  \
     }) -             \
     sizeof(type))
#endif

typedef void (*pan_msg_release_f)(pan_msg_p msg, void *arg);
PAN_PUBLIC pan_msg_p pan_msg_create(void);
/* Calls the release function that was pushed last, once, or frees the message. */
PAN_PUBLIC void pan_msg_clear(pan_msg_p msg);
PAN_PUBLIC void pan_msg_empty(pan_msg_p msg);
PAN_PUBLIC void *pan_msg_push(pan_msg_p msg, int length, int align);
PAN_PUBLIC void *pan_msg_pop(pan_msg_p msg, int length, int align);  /* NULL: the message is empty */
PAN_PUBLIC void *pan_msg_look(pan_msg_p msg, int length, int align); /* NULL: the message is empty */
PAN_PUBLIC void pan_msg_copy(pan_msg_p msg, pan_msg_p copy);
PAN_PUBLIC void pan_msg_release_push(pan_msg_p msg, pan_msg_release_f func, void *arg);
PAN_PUBLIC void pan_msg_release_pop(pan_msg_p msg);

/* ---- fragments of messages ---- */

#define PAN_FRAGMENT_FIRST 0x01
#define PAN_FRAGMENT_LAST  0x02
PAN_PUBLIC pan_fragment_p pan_msg_fragment(pan_msg_p msg, pan_nsap_p nsap); /* the first; it belongs to the message */
PAN_PUBLIC pan_fragment_p pan_msg_next(pan_msg_p msg); /* the next one in the same place, or NULL */
PAN_PUBLIC void pan_msg_assemble(pan_msg_p msg, pan_fragment_p frag, int preserve);
PAN_PUBLIC pan_fragment_p pan_fragment_create(void);
PAN_PUBLIC void pan_fragment_clear(pan_fragment_p frag);
PAN_PUBLIC void pan_fragment_nsap(pan_fragment_p frag, pan_nsap_p nsap);
PAN_PUBLIC int pan_fragment_copy(pan_fragment_p frag, pan_fragment_p copy, int preserve); /* 1: frag is as it was */
PAN_PUBLIC void *pan_fragment_header(pan_fragment_p frag);
PAN_PUBLIC int pan_fragment_flags(pan_fragment_p frag);
PAN_PUBLIC int pan_fragment_length(pan_fragment_p frag);

/* ---- access points ---- */

#define MAX_HEADER_SIZE    128
#define MAX_SMALL_SIZE     16
#define PAN_NSAP_UNICAST   0x01
#define PAN_NSAP_MULTICAST 0x02
PAN_PUBLIC pan_nsap_p pan_nsap_create(void);
PAN_PUBLIC void pan_nsap_clear(pan_nsap_p nsap);
/* The fragment belongs to Panda, which takes it back when the handler returns. */
PAN_PUBLIC void pan_nsap_fragment(pan_nsap_p nsap, void rec_frag(pan_fragment_p frag), int header_size, int flags);
PAN_PUBLIC void pan_nsap_small(pan_nsap_p nsap, void rec_small(void *data), int len, int flags);
/* The handler clears the message. */
PAN_PUBLIC void pan_nsap_msg(pan_nsap_p nsap, void rec_msg(pan_msg_p msg), int flags);

/* ---- sets of processes ---- */

PAN_PUBLIC pan_pset_p pan_pset_create(void);
PAN_PUBLIC void pan_pset_clear(pan_pset_p pset);
PAN_PUBLIC int pan_pset_isempty(pan_pset_p pset);
PAN_PUBLIC void pan_pset_add(pan_pset_p pset, int pid);
PAN_PUBLIC void pan_pset_del(pan_pset_p pset, int pid);
PAN_PUBLIC void pan_pset_fill(pan_pset_p pset);
PAN_PUBLIC void pan_pset_empty(pan_pset_p pset);
PAN_PUBLIC int pan_pset_find(pan_pset_p pset, int from); /* the first one from there on, or -1 */
PAN_PUBLIC void pan_pset_copy(pan_pset_p pset, pan_pset_p copy);
PAN_PUBLIC int pan_pset_ismember(pan_pset_p pset, int pid);
PAN_PUBLIC int pan_pset_nr_members(pan_pset_p pset);
PAN_PUBLIC int pan_pset_size(void); /* bytes of a marshalled set */
PAN_PUBLIC void pan_pset_marshall(pan_pset_p pset, void *buffer);
PAN_PUBLIC void pan_pset_unmarshall(pan_pset_p pset, void *buffer);

/* ---- sending: reliable, and in order from each process; what is sent belongs to the caller again on return ---- */

PAN_PUBLIC void pan_comm_unicast_fragment(int dest, pan_fragment_p frag);
PAN_PUBLIC void pan_comm_multicast_fragment(pan_pset_p pset, pan_fragment_p frag);
PAN_PUBLIC void pan_comm_unicast_small(int dest, pan_nsap_p nsap, void *data);
PAN_PUBLIC void pan_comm_multicast_small(pan_pset_p pset, pan_nsap_p nsap, void *data);
PAN_PUBLIC void pan_comm_unicast_msg(int dest, pan_msg_p msg, pan_nsap_p nsap);
PAN_PUBLIC void pan_comm_multicast_msg(pan_pset_p pset, pan_msg_p msg, pan_nsap_p nsap);

/* ---- memory: never NULL ---- */

PAN_PUBLIC void *pan_malloc(size_t size);
PAN_PUBLIC void *pan_calloc(size_t nelem, size_t elsize);
PAN_PUBLIC void *pan_realloc(void *ptr, size_t size);
PAN_PUBLIC void pan_free(void *ptr);

#ifdef __cplusplus
}
#endif
#endif
