/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.h - the words of agents (job/agent.h) between two hosts that only datagrams connect, as in jobs of others
 * (job/keeper.h): each once and in order, however many datagrams are lost, repeated or overtaken. Time is an argument;
 * what carries them proves from whom they are (job/search.h).
 *
 *   0          8            16      20     24
 *   +----------+------------+-------+------+--------------------+
 *   | have had | first here | count | 0    | count words of 36  |    numbers of words count from 0
 *   +----------+------------+-------+------+--------------------+
 *   word: | kind 4 | rank 4 | other 4 | why 4 | detail 4 | wave 8 | activity 8 |
 *
 * What a stranger plays back is from this job, so it is old: its words have been had, and what it has had is less than
 * what is known. */
#ifndef RNL_JOB_WORDS_H
#define RNL_JOB_WORDS_H

#include "job/agent.h"

#include <stddef.h>
#include <stdint.h>

enum { RNL_WORDS_HEAD = 24, RNL_WORDS_EACH = 36 };

struct rnl_words {
    struct rnl_word *wait; /* those that the other has not had: first .. next - 1 */
    size_t room;
    uint64_t first, next, had; /* had: so many of the other's */
    uint64_t again_ns, gap_ns; /* when to say them once more */
    uint8_t owes, failed;      /* the other is to be told what we had; there was no memory */
};

void rnl_words_free(struct rnl_words *); /* one of zeros is ready for use */
/* To be said. 0 or RNL_ERR_NO_MEMORY: nothing can be said any more. */
int rnl_words_put(struct rnl_words *, const struct rnl_word *, uint64_t now_ns);
/* A datagram that is due, of at most `room` bytes: its length, or 0 = none. */
size_t rnl_words_compose(struct rnl_words *, unsigned char *at, size_t room, uint64_t now_ns);
uint64_t rnl_words_deadline_ns(const struct rnl_words *); /* when compose has something next; UINT64_MAX = never */
/* One came: calls `take` for each word that is new. 0, or -1: no agent of this release says that. */
int rnl_words_hear(struct rnl_words *, const unsigned char *at, size_t bytes, uint64_t now_ns,
                   void (*take)(void *arg, const struct rnl_word *), void *arg);
int rnl_words_waits(const struct rnl_words *); /* for the other to have had them */

#endif
