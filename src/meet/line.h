/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line.h - an authenticated and encrypted stream of short messages over TCP, between the daemons of two hosts that have
 * one node key (node_key.h). Nothing here waits. Both ends prove that they have the key before either sends anything of
 * value; a stranger receives 32 random bytes.
 *
 *   server to client   nonce 32
 *   client to server   nonce 32 | proof 32 of "client" by both nonces | header 24 of its stream
 *   server to client   proof 32 of "server" by both nonces | header 24 of its stream
 *   each to each       bytes 2 | a block of libsodium's secretstream, `bytes` long: one message
 *
 * Everything is derived from the node key, the kind of the daemons and both nonces, by a keyed hash with a label: the
 * proofs, the keys of both directions, and the key of the pair of processes that the line is about. So no line has
 * the keys of another one, nothing that was recorded counts again, and a daemon of a user and one of the node do not
 * talk to each other. Who records lines and gets the node key later can read them. */
#ifndef RNL_MEET_LINE_H
#define RNL_MEET_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RNL_LINE_KEY = 32, RNL_LINE_BYTES = 256 /* a message is no longer */ };

struct rnl_line;

/* Takes over fd, a TCP socket that is connected or about to be, and does not block. NULL: no memory; fd is closed. */
struct rnl_line *rnl_line_new(int fd, bool server, const unsigned char key[RNL_LINE_KEY], uint32_t kind);
void rnl_line_free(struct rnl_line *); /* fine on NULL */
int rnl_line_fd(const struct rnl_line *);
/* Takes in what has come. 1 = a message, of *n bytes; 0 = there is none now; RNL_ERR_UNREACHABLE: the other end is
 * gone, or has not the key, or what came is forged. */
int rnl_line_receive(struct rnl_line *, unsigned char out[RNL_LINE_BYTES], size_t *n);
bool rnl_line_is_up(const struct rnl_line *); /* both ends have proved themselves */
/* Sends a message. 0; RNL_ERR_UNREACHABLE: the line is not up, has ended, or its reader does not read. */
int rnl_line_send(struct rnl_line *, const void *msg, size_t n);
/* Sends what is left. 1 = something still is; 0; RNL_ERR_UNREACHABLE. */
int rnl_line_flush(struct rnl_line *);
/* The key of the pair of processes that are introduced by this line; both ends have the same. */
void rnl_line_pair_key(const struct rnl_line *, unsigned char out[RNL_LINE_KEY]);

/* Begins to connect to the daemon at an IPv6 address, or a mapped IPv4 one, which may take a while; listens at a port
 * of each address of this host. Both return a socket that does not block, or the failed call's negative errno. */
int rnl_line_dial(const unsigned char ip[16], uint16_t port);
int rnl_line_listen(uint16_t port);
/* Accepts who calls there. Returns a descriptor or -errno, and the address that the call comes from. */
int rnl_line_accept(int listener, unsigned char ip[16]);

#endif
