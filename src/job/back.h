/* SPDX-License-Identifier: BSD-3-Clause
 *
 * back.h - how an agent comes back to who started it when their pipes (ssh) fail or fall silent, as when a host loses
 * one of its addresses. Who starts agents over ssh listens, at one TCP port of its host, and tells each in JOB which
 * port, at which addresses, and a key that was drawn for that; an agent tries all addresses at once (job/rejoin.h).
 * What is said there is a channel (job/channel.h): fresh challenges both ways, so that what was recorded is of no use,
 * and all encrypted. Strangers hear 32 random bytes, and are listened to for PATIENCE at most, GUESTS at a time.
 *
 *   agent to its starter   'r' | host 4 | taken 8     so many bytes of frames it has taken in
 *   back                   'r' | taken 8              and from then on
 *   each to each           'd' | bytes of the stream  (job/resend.h), from there on
 *   or back                'x'                        it has been given up */
#ifndef RNL_JOB_BACK_H
#define RNL_JOB_BACK_H

#include "job/brief.h"
#include "job/channel.h"

enum {
    RNL_BACK_GUESTS = 16,
    RNL_BACK_PATIENCE_MS = 3000,
    RNL_BACK_DEAF_MS = 500 /* when descriptors or memory are short: until callers are asked in again */
};

struct rnl_back {
    int fd, epoll;
    uint64_t listens_ns; /* 0 = it does; else again from then on */
    struct rnl_back_at at;
    struct rnl_back_guest {
        struct rnl_channel *channel; /* NULL: free */
        uint64_t since_ns;
    } guest[RNL_BACK_GUESTS];
};
struct rnl_back_come { /* somebody who has proved to be of the job */
    uint32_t host;
    uint64_t taken;
    struct rnl_channel *channel; /* the caller's; watched by nobody */
};

/* 0; negative, and *out is NULL: nobody can come back, and the job runs all the same. */
int rnl_back_open(int epoll, struct rnl_back **out);
void rnl_back_close(struct rnl_back *); /* NULL is fine */
/* An event of RNL_SOURCE_BACK: 1 = *out has come. */
int rnl_back_event(struct rnl_back *, uint32_t index, uint64_t now_ns, struct rnl_back_come *out);
/* In each turn, and at its deadline. */
void rnl_back_look(struct rnl_back *, uint64_t now_ns);
uint64_t rnl_back_deadline_ns(const struct rnl_back *);
/* Whom it answers so: 'r' and what was taken in here, or 'x'. 0 or -1. */
int rnl_back_answer(struct rnl_channel *, int yes, uint64_t taken);
/* "10.1.0.1, 10.2.0.1": at most four; returns out. */
const char *rnl_back_addresses(const struct rnl_back_at *, char *out, size_t room);

#endif
