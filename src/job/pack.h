/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pack.h - numbers, little-endian, texts and bytes behind one another: what launcher, agents and ranks of a job on
 * several hosts tell each other of it. */
#ifndef RNL_JOB_PACK_H
#define RNL_JOB_PACK_H

#include <stddef.h>
#include <stdint.h>

struct rnl_pack { /* grows; `failed`: there was no memory, and what is in it is of no use */
    unsigned char *at;
    size_t bytes, room;
    int failed;
};
void rnl_pack_bytes(struct rnl_pack *, const void *at, size_t n);
void rnl_pack_32(struct rnl_pack *, uint32_t value);
void rnl_pack_64(struct rnl_pack *, uint64_t value);
void rnl_pack_text(struct rnl_pack *, const char *text); /* its length 4, and it without its 0 */
void rnl_pack_free(struct rnl_pack *); /* fine when empty; empty afterwards; what was in it is wiped */

/* Room for `need` bytes at *at: 0, or -1 and nothing is changed. */
int rnl_pack_room(unsigned char **at, size_t *room, size_t need);

struct rnl_unpack { /* `bad`: it held less than was asked for; what is read from then on is 0 */
    const unsigned char *at;
    size_t left;
    int bad;
};
uint32_t rnl_unpack_32(struct rnl_unpack *);
uint64_t rnl_unpack_64(struct rnl_unpack *);
void rnl_unpack_bytes(struct rnl_unpack *, void *at, size_t n);
/* Malloced, the caller's, without a 0 in it; NULL: bad, or no memory (which is bad, too). */
char *rnl_unpack_text(struct rnl_unpack *);

#endif
