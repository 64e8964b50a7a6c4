/* SPDX-License-Identifier: BSD-3-Clause
 *
 * input.h - standard input of rank 0: read here for as much as its agent grants, and sent there. A terminal is read
 * while the launcher is in its foreground only, since it stops processes that read it from the background. An agent of
 * this host lets rank 0 inherit anything but a terminal as it is; then there is nothing to read. */
#ifndef RNL_LAUNCHER_INPUT_H
#define RNL_LAUNCHER_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct rnl_launcher;

struct rnl_input {
    uv_poll_t events;
    uv_timer_t again; /* tries again, as there is no signal for coming back to the foreground */
    uint64_t room;    /* so many bytes are granted */
    bool over, watched, terminal;
};

void rnl_input_new(struct rnl_launcher *, bool inherited);
/* Reads and sends what there is. */
void rnl_input_work(struct rnl_launcher *);

#endif
