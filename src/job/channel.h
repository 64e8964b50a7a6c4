/* SPDX-License-Identifier: BSD-3-Clause
 *
 * channel.h - messages between processes of a job, over TCP: before it has a launcher (amudp/door.h), and where an
 * agent has lost the pipes to who started it (job/back.h). Both ends prove that they have a key of the job, and what
 * follows is encrypted and in order. A stranger hears 32 random bytes.
 *
 *   server to client   nonce 32
 *   client to server   nonce 32 | proof 32 of "client", both nonces | header 24 of its stream
 *   server to client   proof 32 of "server", both nonces | header 24 of its stream
 *   each to each       bytes 2 | a block of libsodium's secretstream, `bytes` long: type 1 | text
 *
 * Reading and offering never wait; sending does, for PATIENCE at most. */
#ifndef RNL_JOB_CHANNEL_H
#define RNL_JOB_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

enum {
    RNL_CHANNEL_PROOF = 32,
    RNL_CHANNEL_TEXT = 8192,
    RNL_CHANNEL_BLOCK = RNL_CHANNEL_TEXT + 1 + crypto_secretstream_xchacha20poly1305_ABYTES,
    RNL_CHANNEL_PATIENCE_MS = 10000,
    RNL_CHANNEL_IDLE_S = 30, /* then the other host is asked whether it has the connection still, ... */
    RNL_CHANNEL_BETWEEN_S = 10,
    RNL_CHANNEL_ASKED = 6 /* ... so often, until it is dead */
};
enum rnl_channel_step {
    RNL_CHANNEL_END = -1, /* closed, or not one of ours */
    RNL_CHANNEL_WAITS,    /* nothing new: poll its socket */
    RNL_CHANNEL_OPENS,    /* now both are sure: it may be sent on */
    RNL_CHANNEL_MESSAGE   /* type, text and bytes */
};

struct rnl_channel {
    int fd, server, open;
    unsigned char key[32], nonce[32];
    crypto_secretstream_xchacha20poly1305_state in, out;
    size_t got, wanted; /* of buf */
    int type;
    size_t bytes;
    unsigned char text[RNL_CHANNEL_TEXT + 1]; /* a 0 follows */
    unsigned char buf[2 + RNL_CHANNEL_BLOCK];
    size_t leaves, ready; /* [leaves, ready) of block is offered and has not left */
    unsigned char block[2 + RNL_CHANNEL_BLOCK];
};

/* That `who`, one of the two, has the key: by both nonces. */
void rnl_channel_proof(const unsigned char key[32], const char *who, const unsigned char servers[32],
                       const unsigned char clients[32], unsigned char out[RNL_CHANNEL_PROOF]);

/* fd, a stream socket, is the channel's from now on; NULL: no memory, and it is closed. */
struct rnl_channel *rnl_channel_new(int fd, int server, const unsigned char key[32]);
void rnl_channel_free(struct rnl_channel *c);
enum rnl_channel_step rnl_channel_step(struct rnl_channel *c);
/* The same, but waits until something has come, for that long (-1: for ever): RNL_CHANNEL_WAITS = nothing did. */
enum rnl_channel_step rnl_channel_wait(struct rnl_channel *c, int ms);
/* 0 or -1: it has ended. */
int rnl_channel_send(struct rnl_channel *c, int type, const void *text, size_t bytes);
/* The same without waiting: 1 = taken, 0 = what was offered before has not left yet: when there is room, offer again,
 * or flush. -1: it has ended. */
int rnl_channel_offer(struct rnl_channel *c, int type, const void *text, size_t bytes);
int rnl_channel_flush(struct rnl_channel *c); /* 1 = all has left, 0, -1 */
/* The text of the message that has come goes to a pipe or file, all of it: waits as long as that takes. 0 or -1. */
int rnl_channel_pour(const struct rnl_channel *c, int to);

#endif
