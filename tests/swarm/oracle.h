/* SPDX-License-Identifier: BSD-3-Clause
 *
 * oracle.h - what must be true whatever the network does. It stands outside the library: it is told what programs sent
 * and what their handlers got, and who died, and knows nothing else.
 *
 *   - From each sender each receiver gets the messages in the order sent, each once, with the bytes sent, and none that
 *     was not sent. Contents are a function of (sender, its life, receiver, ordinal).
 *   - Between two processes there are eras: one ends when either begins anew, or takes the other back (rnl_readmit). Of
 *     each era of a sender one era of the receiver hears, from its first message on, and no older one after a newer
 * one.
 *   - Each answer, and each refusal, comes back to its asker, in order.
 *   - A message that its sender gave up comes in part or not at all, and its handler is told; the others keep their
 * order.
 *   - Those that ended are reported to each survivor, once. Nobody else ever is but who was not heard for the bound, or
 *     has given us up himself.
 *   - When all is over, what was sent between survivors has come. */
#ifndef RNL_TESTS_SWARM_ORACLE_H
#define RNL_TESTS_SWARM_ORACLE_H

#include <stddef.h>
#include <stdint.h>

enum { SWARM_LIVES = 4 };

struct swarm_letter {
    uint64_t id; /* of its bytes: test_pattern */
    uint32_t n, answer;
    uint16_t era; /* of its sender */
    uint8_t handler;
    uint8_t given_up; /* ... after n bytes: there are more to come, and they never do */
};
struct swarm_oracle;
/* silent_ns: who is not heard for so long is dead. knows_lives: nobody hears, or is heard by, another life than the
 * first.
 */
struct swarm_oracle *swarm_oracle_new(unsigned ranks, uint64_t silent_ns, int knows_lives);
void swarm_oracle_free(struct swarm_oracle *);
/* The same for what is sent and comes on the bulk lane. What happens to processes is told to the first alone. */
struct swarm_oracle *swarm_bulk(struct swarm_oracle *);

/* A process begins. in_job: the others can take it back; else it is one that nobody asked for. */
void swarm_begins(struct swarm_oracle *, unsigned rank, unsigned life, int in_job);
/* `at` has taken `rank` back. */
void swarm_takes_back(struct swarm_oracle *, unsigned at, unsigned rank);

/* A message has its place in the order: what it is, until the next one to that receiver. */
struct swarm_letter swarm_sent(struct swarm_oracle *, unsigned from, unsigned to, uint32_t n, unsigned handler,
                               uint32_t answer);
/* That message, the last one to that receiver, never was: its call failed. */
void swarm_unsent(struct swarm_oracle *, unsigned from, unsigned to, const struct swarm_letter *letter);
/* A handler begins; `head` are the first bytes of its message, as far as they are here. */
struct swarm_letter swarm_comes(struct swarm_oracle *, unsigned to, unsigned from, unsigned handler, const void *head,
                                size_t bytes);
/* That message is given up, or is going to be: it has a handler of its own. */
void swarm_gives_up(struct swarm_oracle *, unsigned from, unsigned to, const struct swarm_letter *letter);
/* Its handler has its first bytes. Before that nobody can tell which it is. */
struct swarm_letter swarm_part_comes(struct swarm_oracle *, unsigned to, unsigned from, const void *head, size_t bytes);
/* More of it, as swarm_bytes. Where its first bytes were those of several, *letter becomes the one that it is. */
void swarm_part_goes_on(struct swarm_oracle *, unsigned to, unsigned from, struct swarm_letter *letter, size_t at,
                        const void *bytes, size_t n);
/* Notes that the receiver was told, after `at` bytes, that the message is whole, or that it was given up. */
void swarm_part_ends(const struct swarm_oracle *, unsigned to, unsigned from, const struct swarm_letter *letter,
                     size_t at, int whole);
/* It has bytes [at, at + n) of it. */
void swarm_bytes(const struct swarm_letter *, size_t at, const void *bytes, size_t n);

/* The handler of `letter` answers with n bytes, or refuses; then it comes. */
void swarm_replies(struct swarm_oracle *, unsigned replier, unsigned asker, const struct swarm_letter *letter,
                   uint32_t n, int refused, unsigned reason);
uint64_t swarm_reply_id(const struct swarm_letter *letter);
void swarm_reply_comes(struct swarm_oracle *, unsigned asker, unsigned replier, const void *bytes, size_t n,
                       int refused, unsigned reason);

void swarm_ended(struct swarm_oracle *, unsigned rank);     /* its process did, before the job was closed */
void swarm_job_tells(struct swarm_oracle *, unsigned rank); /* ... of that: now, or again */
/* It had agreed to the end before: all that it sent, and that was sent to it, has to be there as with the living. */
void swarm_agreed(struct swarm_oracle *, unsigned rank);
/* From then on, for so long, nobody hears `rank`; deaf: nor does it hear anybody. */
void swarm_is_silent(struct swarm_oracle *, unsigned rank, uint64_t since_ns, uint64_t for_ns, int deaf);
/* `at` is told that `rank` is dead. news: nobody has closed yet. */
void swarm_told(struct swarm_oracle *, unsigned at, unsigned rank, uint64_t now_ns, int news);
/* All survivors have closed. Returns messages that came. */
uint64_t swarm_oracle_settle(struct swarm_oracle *);

/* Something is not as it must be: says so, with the time and the schedule, and ends this run. run.c. */
_Noreturn void swarm_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
