/* SPDX-License-Identifier: BSD-3-Clause
 *
 * space.h - address spaces of a host's processes. A page of a space lies in a frame of the host's memory that chance
 * (the seed) has dealt, so neighbours in a space are none in memory, and firmware that leaves translation out fails.
 *
 * A driver hands a card a frame's bus address, which has the space's number in bits 31..24 (MYRI_SPACE_OF); a transfer
 * to a frame that is another space's by then is a fault. That check is the model's: real memory would be overwritten in
 * silence. Address 0 of a space is no page's. Paged out, a page has no frame, and its bytes wait elsewhere; who touches
 * it pays for a system call and has it in again. Pinned pages stay. */
#ifndef MYRI_SPACE_H
#define MYRI_SPACE_H

#include "sim/myrinet/hw/hw.h"

enum { MYRI_SPACE_PAGES = 4096 };

struct myri_space {
    struct myri_host *host;
    uint32_t id, pages;                /* 1 to 255; mapped */
    uint32_t frame[MYRI_SPACE_PAGES];  /* 0: it is paged out */
    uint32_t pinned[MYRI_SPACE_PAGES]; /* how often */
    uint8_t *away[MYRI_SPACE_PAGES];   /* bytes of one that is paged out */
    uint64_t page_ins, page_outs;
};

/* A number that no other space of this host has. 0, or -1 with a fault of the machine. */
int myri_space_init(struct myri_space *, struct myri_host *);
void myri_space_fini(struct myri_space *);
/* Whole pages, zero. Their address in the space, or 0 with a fault: too many. */
uint32_t myri_space_map(struct myri_space *, uint32_t bytes);
/* Maps pages in frames in a row, pinned for good: what a kernel sets aside for a card that translates nothing. */
uint32_t myri_space_map_area(struct myri_space *, uint32_t bytes);
/* The page's frame, for a driver: pins it, in if it was out. The address for a card, or 0: no page of the space. */
uint32_t myri_space_pin(struct myri_space *, uint32_t at);
void myri_space_unpin(struct myri_space *, uint32_t at);
/* Takes a page's frame away. -1: it is pinned, out already, or no page of the space. */
int myri_space_page_out(struct myri_space *, uint32_t at);
/* Bytes in the space, as the program of a task (or, with NULL, someone who takes no time) sees them. */
void myri_space_read(struct myri_space *, struct myri_task *, uint32_t at, void *out, uint32_t bytes);
void myri_space_write(struct myri_space *, struct myri_task *, uint32_t at, const void *from, uint32_t bytes);
/* What a program copies within its space, in the time of a copy. */
void myri_space_copy(struct myri_space *, struct myri_task *, uint32_t to, uint32_t from, uint32_t bytes);
uint32_t myri_space_word(struct myri_space *, struct myri_task *, uint32_t at);
void myri_space_set_word(struct myri_space *, struct myri_task *, uint32_t at, uint32_t value);
/* Where a byte lies in the host's memory now, or 0. */
uint32_t myri_space_at(struct myri_space *, struct myri_task *, uint32_t at);

#endif
