/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel.h - the part of AM-II that is the host kernel's: it gives endpoints their names and areas, and moves them
 * between the frames of its card and its memory, by orders that the card obeys. A message, or its process, that finds
 * an endpoint in the host has it brought in, and the one that has been on the card longest moved out for it. */
#ifndef MYRI_AM2_KERNEL_H
#define MYRI_AM2_KERNEL_H

#include "sim/myrinet/os/space.h"
#include "sim/myrinet/systems/am2/layout.h"

enum am2_place { AM2_PLACE_NONE, AM2_PLACE_HOST, AM2_PLACE_COMING, AM2_PLACE_CARD, AM2_PLACE_GOING };

struct am2_kernel;
struct am2_resident { /* what the kernel knows of an endpoint */
    struct am2_kernel *kernel;
    struct myri_space *space;
    struct myri_task *task; /* whose program has it */
    uint32_t endpoint, image, frame;
    enum am2_place place;
    uint64_t since_ps;
    uint32_t held, asked; /* calls of the library that are at it; it is to leave as soon as none is */
};
struct am2_kernel { /* of a node */
    struct myri_hw *hw;
    struct myri_host *host;
    struct myri_card *card_of;
    uint32_t card;
    struct am2_resident *of[AM2_ENDPOINTS], *in[AM2_FRAMES];
    struct am2_resident *moves, *next; /* the card has an order for it; that comes in when its frame is free */
    uint32_t moved_out, moved_in, faults;
};

/* Set-up, without time: the kernel makes an endpoint, in a frame if one has had none; `own` is used for the first of a
 * node, and stays. 0, or -1: there is such an endpoint, or a fault of the machine. */
int am2_kernel_open(struct am2_resident *, struct am2_kernel *own, struct myri_hw *, uint32_t node, uint32_t endpoint,
                    struct myri_space *, uint32_t out_at, uint32_t in_at);
/* Without time: it may send to that endpoint, as number k. */
void am2_kernel_name(struct am2_resident *, uint32_t k, uint32_t node, uint32_t endpoint);
/* Inside its task: the endpoint is on the card, and its process sees it, until it is released. Nothing holds it when
 * the machine has a fault. */
void am2_hold(struct am2_resident *);
void am2_release(struct am2_resident *);
/* Inside its task: it is an endpoint no more. Messages for it come back to their senders. */
void am2_kernel_close(struct am2_resident *);
/* Without time: a word of the endpoint, wherever it is. */
uint32_t am2_kernel_peek(const struct am2_resident *, uint32_t offset);

#endif
