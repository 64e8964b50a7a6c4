/* SPDX-License-Identifier: BSD-3-Clause
 *
 * below.h - what Panda 2.0 uses of Panda 4, whose header no file includes together with Panda 2.0's: sending, waiting,
 * threads. Only below.c knows both sides. Functions that can fail for want of memory or of a process end the program.
 *
 * Where there is a thread that takes messages in (the daemon), upcalls may wait, and so does what they send. Where
 * there is none, upcalls run inside calls that wait; what they send is copied to a queue, which the next call that is
 * no upcall empties. */
#ifndef RNL_PANDA2_BELOW_H
#define RNL_PANDA2_BELOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The header of a message, after Panda 4's own. */
struct pan2_head {
    uint32_t kind;  /* by enum pan2_kind */
    uint32_t where; /* access point, map or number of a receive, or group */
    uint32_t flags; /* of a fragment */
    uint32_t token; /* of a message to a group: its sender's number */
};
enum pan2_kind {
    PAN2_FRAGMENT = 1,
    PAN2_SMALL,
    PAN2_MSG,
    PAN2_MP,
    PAN2_JOIN,
    PAN2_LEAVE,
    PAN2_DATA,
    PAN2_BG,
    PAN2_END
};

struct pan2_piece {
    const void *data;
    size_t len;
};
/* A message that came. Who sets data to NULL owns it. */
struct pan2_arrived {
    struct pan2_head head;
    int sender;
    size_t n;
    unsigned char *data; /* of malloc */
};
struct pan2_upcalls {
    void (*one)(struct pan2_arrived *in); /* to this process */
    void (*all)(struct pan2_arrived *in); /* to the group of all, in its order */
    void (*request)(void *upcall, struct pan2_arrived *in);
    void (*death)(int pid);
};

void pan2_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

void pan2_open(const struct pan2_upcalls *upcalls);
void pan2_begin(void);
void pan2_close(void);
int pan2_self(void);
int pan2_size(void);
void pan2_look(void);
bool pan2_in_upcall(void); /* in one that must not wait */

void pan2_send_one(int dest, const struct pan2_head *head, const struct pan2_piece *pieces, int n);
void pan2_send_all(const struct pan2_head *head, const struct pan2_piece *pieces, int n);
/* Waits for the reply: *data belongs to the caller. */
void pan2_call(int dest, const struct pan2_piece *request, void **data, size_t *n);
void pan2_reply(void *upcall, const struct pan2_piece *reply, void (*sent)(void *arg), void *arg);

/* ---- monitors and threads ---- */

void *pan2_lock_new(void);
void pan2_lock_free(void *lock);
void pan2_lock(void *lock);
int pan2_trylock(void *lock);
void pan2_unlock(void *lock);
void *pan2_signal_new(void *lock);
void pan2_signal_free(void *s);
/* With the lock. false: the time has come; negative: no limit. */
bool pan2_signal_wait(void *s, int64_t timeout_ns);
void pan2_signal_one(void *s);
void pan2_signal_all(void *s);
/* NULL: the system has no threads here. */
void *pan2_thread_new(void (*f)(void *arg), void *arg, size_t stack, bool detach);
void pan2_thread_end(void);
void pan2_thread_wait(void *t);
void pan2_thread_give_way(void);
void *pan2_thread_mine(void); /* NULL: the first thread */

#endif
