/* SPDX-License-Identifier: BSD-3-Clause
 *
 * search.h - finds, before the ranks start, by which addresses the hosts of a job reach each other. Of each pair the
 * host with the lower number asks, at every address that the other has, all at once; what leads nowhere does not
 * answer.
 *
 *   ASK      a short and a long datagram to each address
 *   ANSWER   back to where it came from, as long as the question
 *   CHOSEN   the first address for which the long ANSWER came from the address that was asked: both ways work, and for
 *            both sides the other is where its datagrams come from
 *   AGREED   the other will use the address that CHOSEN came from
 *   ALIVE    later, now and then: a bit for each rank of the sender's host that lives and is not stopped. `which` is 1
 *            if the other's last ALIVE is not long ago, so that the way back works, too; `nonce` counts them
 *   WORDS    what agents without pipes between them say to each other (job/words.h)
 *
 * Datagrams, little-endian; all that is not proved by the key of the job is dropped:
 *
 *   0      4      8      12     16      20    24      32      48
 *   +------+------+------+------+-------+-----+-------+-------+------------------------------+
 *   | RNLQ | kind | from | to   | which | 0   | nonce | tag   | bits; zeros up to its length |
 *   +------+------+------+------+-------+-----+-------+-------+------------------------------+
 *
 * Time is an argument. */
#ifndef RNL_JOB_SEARCH_H
#define RNL_JOB_SEARCH_H

#include "job/here.h"
#include "transport/socket.h"

enum {
    RNL_SEARCH_SHORT = 64,
    RNL_SEARCH_ALIVE_EVERY_S = 7,
    RNL_SEARCH_LONG = 1200,                 /* what flows begin with (reliable/flow.c) */
    RNL_SEARCH_WORDS = RNL_SEARCH_LONG - 48 /* behind the tag */
};

struct rnl_search;

/* The socket of a probe: all that comes can be waited for at `fd`, which is its own from success on. As
 * rnl_kernel_socket_adopt. */
int rnl_search_adopt(int fd, struct rnl_socket **out);
/* `here` (one for each host, the caller's for as long as this lives) says whom to ask where; `socket` is the probe's
 * from success on. 0, RNL_ERR_NO_MEMORY. */
int rnl_search_new(uint32_t host, uint32_t hosts, const struct rnl_here *here,
                   const unsigned char key[RNL_JOB_KEY_BYTES], uint64_t nonce, struct rnl_socket *socket,
                   uint64_t now_ns, struct rnl_search **out);
void rnl_search_free(struct rnl_search *);
/* When its socket is readable, and at its deadline. */
void rnl_search_step(struct rnl_search *, uint64_t now_ns);
uint64_t rnl_search_deadline_ns(const struct rnl_search *); /* UINT64_MAX = none */
/* 1 = every pair with this host has an address, or it has been tried for long enough. Steps answer others still. */
int rnl_search_done(const struct rnl_search *);
/* Where `other` is: 1 and its IP address, or 0. */
int rnl_search_way(const struct rnl_search *, uint32_t other, uint8_t ip[16]);
/* Further addresses by which `other` may be reached if that one dies, at most `most`: how many. First those by which it
 * is reached now; of the rest only such as belong to other interfaces. None that this host has, too. */
unsigned rnl_search_further(const struct rnl_search *, uint32_t other, uint8_t (*ip)[16], unsigned most);
/* What was tried in vain: 1, or 0 = there is a way. */
int rnl_search_vain(const struct rnl_search *, uint32_t other, struct rnl_vain *out);

/* Tells all others which of this host's ranks live, `bits` being of `bytes`; each at all addresses that work. */
void rnl_search_alive(struct rnl_search *, const unsigned char *bits, size_t bytes, uint64_t now_ns);
/* What came of that from others: 1, the host, and bits of its ranks; 0 = nothing (more). */
int rnl_search_vouched(struct rnl_search *, uint32_t *host, unsigned char *bits, size_t bytes);

/* When something of `other` came last, by the times of steps; 0 = never. */
uint64_t rnl_search_heard_ns(const struct rnl_search *, uint32_t other);

/* Nothing is said to `other` from now on, nor taken in. */
void rnl_search_drop(struct rnl_search *, uint32_t other);

/* WORDS: sent as they are, at most RNL_SEARCH_WORDS bytes, to a host that was found; what comes of them is told in a
 * step, with zeros behind it up to that length. */
void rnl_search_say_words(struct rnl_search *, uint32_t other, const unsigned char *at, size_t bytes);
void rnl_search_on_words(struct rnl_search *, void (*hear)(void *arg, uint32_t other, const unsigned char *at),
                         void *arg);

/* The addresses of this host that others may reach it by, the loopback's last. `here`: kernel, way, ways are set. 0 or
 * -errno. */
int rnl_search_ways(struct rnl_here *here);

#endif
