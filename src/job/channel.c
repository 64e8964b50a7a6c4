/* SPDX-License-Identifier: BSD-3-Clause
 *
 * channel.c - see channel.h. */
#include "job/channel.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { NONCE = 32, HEADER = crypto_secretstream_xchacha20poly1305_HEADERBYTES, PROVEN = RNL_CHANNEL_PROOF + HEADER };
static_assert(HEADER == 24 && crypto_secretstream_xchacha20poly1305_KEYBYTES == RNL_CHANNEL_PROOF, "as drawn");
static_assert(RNL_CHANNEL_BLOCK < 65536, "its length has two bytes");

static int send_all(int fd, const unsigned char *at, size_t n)
{
    while (n > 0) {
        ssize_t went = send(fd, at, n, MSG_NOSIGNAL);
        if (went < 0 && errno == EINTR)
            continue;
        if (went <= 0)
            return -1;
        at += went;
        n -= (size_t)went;
    }
    return 0;
}

struct rnl_channel *rnl_channel_new(int fd, int server, const unsigned char key[32])
{
    const struct timeval patience = {.tv_sec = RNL_CHANNEL_PATIENCE_MS / 1000};
    const int yes = 1, idle = RNL_CHANNEL_IDLE_S, between = RNL_CHANNEL_BETWEEN_S, asked = RNL_CHANNEL_ASKED;
    struct rnl_channel *c = calloc(1, sizeof *c);
    if (c == NULL) {
        close(fd);
        return NULL;
    }
    c->fd = fd;
    c->server = server;
    memcpy(c->key, key, sizeof c->key);
    randombytes_buf(c->nonce, sizeof c->nonce);
    c->wanted = server ? NONCE + PROVEN : NONCE;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &asked, sizeof asked);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    if (server)
        (void)send_all(fd, c->nonce, NONCE); /* a failure is seen when reading */
    return c;
}

void rnl_channel_free(struct rnl_channel *c)
{
    if (c == NULL)
        return;
    close(c->fd);
    sodium_memzero(c, sizeof *c);
    free(c);
}

void rnl_channel_proof(const unsigned char key[32], const char *who, const unsigned char servers[32],
                       const unsigned char clients[32], unsigned char out[RNL_CHANNEL_PROOF])
{
    unsigned char text[16 + 64];
    memset(text, 0, sizeof text);
    memcpy(text, who, strlen(who) < 16 ? strlen(who) : 16);
    memcpy(text + 16, servers, 32);
    memcpy(text + 48, clients, 32);
    crypto_auth(out, text, sizeof text, key);
}

/* One direction's key, from the job's: nobody else's proof is one. */
static void prove(const struct rnl_channel *c, const char *what, const unsigned char other[NONCE], unsigned char *out)
{
    rnl_channel_proof(c->key, what, c->server ? c->nonce : other, c->server ? other : c->nonce, out);
}

static int open_out(struct rnl_channel *c, const unsigned char other[NONCE], unsigned char header[HEADER])
{
    unsigned char key[RNL_CHANNEL_PROOF];
    prove(c, c->server ? "server's stream" : "client's stream", other, key);
    int r = crypto_secretstream_xchacha20poly1305_init_push(&c->out, header, key);
    sodium_memzero(key, sizeof key);
    return r;
}

/* `at`: proof and header of the other side. */
static int open_in(struct rnl_channel *c, const unsigned char other[NONCE], const unsigned char *at)
{
    unsigned char key[RNL_CHANNEL_PROOF];
    prove(c, c->server ? "client" : "server", other, key);
    int r = sodium_memcmp(key, at, sizeof key);
    prove(c, c->server ? "client's stream" : "server's stream", other, key);
    if (r == 0)
        r = crypto_secretstream_xchacha20poly1305_init_pull(&c->in, at + RNL_CHANNEL_PROOF, key);
    sodium_memzero(key, sizeof key);
    return r;
}

static enum rnl_channel_step opens(struct rnl_channel *c)
{
    c->open = 1;
    c->wanted = 2;
    return RNL_CHANNEL_OPENS;
}

static enum rnl_channel_step serve(struct rnl_channel *c)
{
    unsigned char out[PROVEN];
    if (open_in(c, c->buf, c->buf + NONCE) != 0 || open_out(c, c->buf, out + RNL_CHANNEL_PROOF) != 0)
        return RNL_CHANNEL_END;
    prove(c, "server", c->buf, out);
    return send_all(c->fd, out, sizeof out) == 0 ? opens(c) : RNL_CHANNEL_END;
}

/* The server's nonce stays in front: its proof follows behind it. */
static enum rnl_channel_step call(struct rnl_channel *c)
{
    unsigned char out[NONCE + PROVEN];
    if (c->wanted == NONCE + PROVEN)
        return open_in(c, c->buf, c->buf + NONCE) == 0 ? opens(c) : RNL_CHANNEL_END;
    memcpy(out, c->nonce, NONCE);
    prove(c, "client", c->buf, out + NONCE);
    if (open_out(c, c->buf, out + NONCE + RNL_CHANNEL_PROOF) != 0 || send_all(c->fd, out, sizeof out) != 0)
        return RNL_CHANNEL_END;
    c->got = NONCE;
    c->wanted = NONCE + PROVEN;
    return RNL_CHANNEL_WAITS;
}

static enum rnl_channel_step message(struct rnl_channel *c)
{
    size_t n = (size_t)(c->buf[0] | c->buf[1] << 8);
    unsigned char plain[RNL_CHANNEL_TEXT + 1];
    unsigned long long bytes;
    if (n <= crypto_secretstream_xchacha20poly1305_ABYTES || n > RNL_CHANNEL_BLOCK)
        return RNL_CHANNEL_END;
    if (c->wanted == 2) {
        c->got = 2;
        c->wanted = 2 + n;
        return RNL_CHANNEL_WAITS;
    }
    if (crypto_secretstream_xchacha20poly1305_pull(&c->in, plain, &bytes, NULL, c->buf + 2, n, NULL, 0) != 0)
        return RNL_CHANNEL_END;
    c->wanted = 2;
    c->type = plain[0];
    c->bytes = (size_t)bytes - 1;
    memcpy(c->text, plain + 1, c->bytes);
    c->text[c->bytes] = '\0';
    return RNL_CHANNEL_MESSAGE;
}

enum rnl_channel_step rnl_channel_step(struct rnl_channel *c)
{
    for (;;) {
        ssize_t n = recv(c->fd, c->buf + c->got, c->wanted - c->got, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return RNL_CHANNEL_WAITS;
        if (n <= 0)
            return RNL_CHANNEL_END;
        c->got += (size_t)n;
        if (c->got < c->wanted)
            continue;
        c->got = 0;
        enum rnl_channel_step step = c->open ? message(c) : c->server ? serve(c) : call(c);
        if (step != RNL_CHANNEL_WAITS)
            return step;
    }
}

enum rnl_channel_step rnl_channel_wait(struct rnl_channel *c, int ms)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    for (;;) {
        enum rnl_channel_step step = rnl_channel_step(c);
        if (step != RNL_CHANNEL_WAITS)
            return step;
        int n = poll(&p, 1, ms);
        if (n == 0)
            return RNL_CHANNEL_WAITS;
        if (n < 0 && errno != EINTR)
            return RNL_CHANNEL_END;
    }
}

/* Its bytes in `block`, or 0. */
static size_t seal(struct rnl_channel *c, int type, const void *text, size_t bytes, unsigned char *block)
{
    unsigned char plain[RNL_CHANNEL_TEXT + 1];
    if (!c->open || bytes > RNL_CHANNEL_TEXT)
        return 0;
    size_t n = bytes + 1 + crypto_secretstream_xchacha20poly1305_ABYTES;
    plain[0] = (unsigned char)type;
    if (bytes > 0)
        memcpy(plain + 1, text, bytes);
    block[0] = (unsigned char)n;
    block[1] = (unsigned char)(n >> 8);
    return crypto_secretstream_xchacha20poly1305_push(&c->out, block + 2, NULL, plain, bytes + 1, NULL, 0, 0) == 0
               ? 2 + n
               : 0;
}

int rnl_channel_send(struct rnl_channel *c, int type, const void *text, size_t bytes)
{
    unsigned char block[2 + RNL_CHANNEL_BLOCK];
    size_t n = seal(c, type, text, bytes, block);
    return n > 0 ? send_all(c->fd, block, n) : -1;
}

int rnl_channel_flush(struct rnl_channel *c)
{
    while (c->leaves < c->ready) {
        ssize_t n = send(c->fd, c->block + c->leaves, c->ready - c->leaves, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno != EINTR)
            return -1;
        c->leaves += n > 0 ? (size_t)n : 0;
    }
    return 1;
}

int rnl_channel_offer(struct rnl_channel *c, int type, const void *text, size_t bytes)
{
    int r = rnl_channel_flush(c);
    if (r <= 0)
        return r;
    c->leaves = 0;
    c->ready = seal(c, type, text, bytes, c->block);
    return c->ready > 0 && rnl_channel_flush(c) >= 0 ? 1 : -1;
}

int rnl_channel_pour(const struct rnl_channel *c, int to)
{
    for (size_t done = 0; done < c->bytes;) {
        ssize_t went = write(to, c->text + done, c->bytes - done);
        if (went < 0 && errno == EINTR)
            continue;
        if (went <= 0)
            return -1;
        done += (size_t)went;
    }
    return 0;
}
