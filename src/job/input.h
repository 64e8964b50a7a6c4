/* SPDX-License-Identifier: BSD-3-Clause
 *
 * input.h - standard input of rank 0 when ours is a terminal. The ranks are in process groups of their own, and a
 * terminal stops who reads it from the background; so we read it, while we are in the foreground, and pass it on
 * through a pipe. Anything but a terminal is inherited as it is. */
#ifndef RNL_JOB_INPUT_H
#define RNL_JOB_INPUT_H

#include <stdint.h>

struct rnl_input {
    int epoll;
    int pipe; /* our end; -1 = nothing to pass on (any more) */
    unsigned start, end;
    unsigned char watched, waits_for_room;
    uint64_t again_ns; /* to be looked at again then; UINT64_MAX = when something happens */
    char data[4096];
};

/* *childs_end: what rank 0 gets, the caller's to close if it is not STDIN_FILENO. 0 or -errno. */
int rnl_input_new(struct rnl_input *, int epoll, uint64_t now_ns, int *childs_end);
/* RNL_SOURCE_INPUT and RNL_SOURCE_INPUT_ROOM; after SIGCONT; and at again_ns. */
void rnl_input_work(struct rnl_input *, uint64_t now_ns);
void rnl_input_end(struct rnl_input *);

#endif
