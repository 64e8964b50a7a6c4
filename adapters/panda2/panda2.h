/* SPDX-License-Identifier: BSD-3-Clause
 *
 * panda2.h - what the parts of Panda 2.0 know of each other. */
#ifndef RNL_PANDA2_H
#define RNL_PANDA2_H

#include <stdint.h>
#include <string.h>

#include <panda/pan_bg.h>
#include <panda/pan_group.h>
#include <panda/pan_mp.h>
#include <panda/pan_rpc.h>

#include "below.h"

/* The headers map pan_msg to pan2_msg, and so on (panda/pan_names.h).
 *
 * A stack that grows upwards, of blocks of multiples of 8 bytes; all that is on it is what travels. */
struct release {
    pan_msg_release_f f;
    void *arg;
};
struct pan2_msg {
    struct pan2_msg *next; /* in a queue of Panda's */
    unsigned char *data;
    size_t size, room;
    struct release *release;
    int releases, release_room;
    size_t cut; /* how much of it is in fragments that were made */
    struct pan2_fragment *fragment;
};
struct pan2_fragment {
    pan_nsap_p nsap;
    unsigned char *data, *own; /* own: to be freed with it */
    size_t n;
    int flags;
    _Alignas(8) unsigned char header[MAX_HEADER_SIZE];
};
struct pan2_time {
    int64_t s;
    long ns; /* 0 to 999999999 */
};

/* A message of n bytes at data, which it owns. */
pan_msg_p pan2_msg_of(void *data, size_t n);
/* What came as a message. */
pan_msg_p pan2_msg_take(struct pan2_arrived *in);
int64_t pan2_time_left(const struct pan2_time *until); /* ns; negative: no limit */
void pan2_take_comm(struct pan2_arrived *in);
void pan2_take_mp(struct pan2_arrived *in);
void pan2_take_all(struct pan2_arrived *in);
void pan2_take_request(void *upcall, struct pan2_arrived *in);
void pan2_group_death(int pid);
void pan2_mp_open(void);
void pan2_mp_close(void);
void pan2_group_open(void);
void pan2_group_close(void);
/* Clears the replies that have been sent. */
void pan2_rpc_tidy(void);

#endif
