/* SPDX-License-Identifier: BSD-3-Clause
 *
 * auth_stream.c - the handshake, the blocks and the relay of auth_stream.h. */
#include "job/auth_stream.h"

#include "base/env.h"
#include "base/secret.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NONCE = 32,
    PROOF = 32,
    HEADER = crypto_secretstream_xchacha20poly1305_HEADERBYTES,
    PROVEN = PROOF + HEADER,
    TEXT = 8192,
    OVERHEAD = crypto_secretstream_xchacha20poly1305_ABYTES,
    BLOCK = 2 + TEXT + OVERHEAD
};
static_assert(HEADER == 24 && crypto_secretstream_xchacha20poly1305_KEYBYTES == PROOF, "as drawn");
static_assert(BLOCK < 65536, "its length has two bytes");

struct rnl_auth_stream {
    int fd;
    bool server;
    unsigned char key[32], nonce[NONCE];
    crypto_secretstream_xchacha20poly1305_state in, out;
    size_t got;         /* bytes of `taken` */
    size_t left, ready; /* [left, ready) of `sent` is to be sent */
    unsigned char text[TEXT], taken[BLOCK], sent[BLOCK];
};

/* ---- the handshake ---- */

/* Whether all of it came before that time. *some: at least a byte did. */
static bool receive(int fd, unsigned char *at, size_t n, uint64_t until_ns, bool *some)
{
    for (size_t got = 0; got < n;) {
        const uint64_t now = rnl_host_now_ns(NULL);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= until_ns || (poll(&p, 1, (int)((until_ns - now) / 1000000) + 1) < 0 && errno != EINTR))
            return false;
        const ssize_t k = recv(fd, at + got, n - got, MSG_DONTWAIT);
        if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        got += k > 0 ? (size_t)k : 0;
        *some = *some || k > 0;
    }
    return true;
}

/* The parts of a handshake are shorter than a socket's buffer. */
static bool send_part(int fd, const void *at, size_t n)
{
    return send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* Makes 32 bytes from a label, both nonces and the join key: a proof, or the key of one direction. */
static void derive(const struct rnl_auth_stream *s, const char *label, const unsigned char other[NONCE],
                   unsigned char out[PROOF])
{
    unsigned char text[16 + 2 * NONCE] = {0};
    memcpy(text, label, strlen(label));
    memcpy(text + 16, s->server ? s->nonce : other, NONCE);
    memcpy(text + 16 + NONCE, s->server ? other : s->nonce, NONCE);
    crypto_auth(out, text, sizeof text, s->key);
}

/* Sends the proof and the header of the own stream. */
static bool prove(struct rnl_auth_stream *s, const unsigned char other[NONCE])
{
    unsigned char key[PROOF], at[NONCE + PROVEN];
    memcpy(at, s->nonce, NONCE);
    derive(s, s->server ? "server" : "client", other, at + NONCE);
    derive(s, s->server ? "server's stream" : "client's stream", other, key);
    (void)crypto_secretstream_xchacha20poly1305_init_push(&s->out, at + NONCE + PROOF, key);
    sodium_memzero(key, sizeof key);
    return s->server ? send_part(s->fd, at + NONCE, PROVEN) : send_part(s->fd, at, sizeof at);
}

/* Checks the proof of the other end, and takes in the header of its stream. */
static bool check(struct rnl_auth_stream *s, const unsigned char other[NONCE], const unsigned char at[PROVEN])
{
    unsigned char key[PROOF];
    derive(s, s->server ? "client" : "server", other, key);
    bool good = sodium_memcmp(key, at, sizeof key) == 0;
    derive(s, s->server ? "client's stream" : "server's stream", other, key);
    good = good && crypto_secretstream_xchacha20poly1305_init_pull(&s->in, at + PROOF, key) == 0;
    sodium_memzero(key, sizeof key);
    return good;
}

static bool shake(struct rnl_auth_stream *s, bool *answered)
{
    const uint64_t until_ns = rnl_host_now_ns(NULL) + RNL_AUTH_STREAM_LIMIT_MS * UINT64_C(1000000);
    unsigned char other[NONCE + PROVEN];
    if (s->server)
        return send_part(s->fd, s->nonce, NONCE) && receive(s->fd, other, sizeof other, until_ns, answered) &&
               check(s, other, other + NONCE) && prove(s, other);
    return receive(s->fd, other, NONCE, until_ns, answered) && prove(s, other) &&
           receive(s->fd, other + NONCE, PROVEN, until_ns, answered) && check(s, other, other + NONCE);
}

struct rnl_auth_stream *rnl_auth_stream_open(int fd, bool server, const unsigned char key[32], bool *answered)
{
    /* After 30 s without a byte TCP asks the other host every 10 s whether it has the connection still, 6 times. */
    static const struct {
        int level, name, value;
    } options[] = {{IPPROTO_TCP, TCP_KEEPIDLE, 30},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                   {IPPROTO_TCP, TCP_KEEPCNT, 6},
                   {SOL_SOCKET, SO_KEEPALIVE, 1}};
    struct rnl_auth_stream *s = rnl_secret_new(sizeof *s);
    *answered = false;
    if (!s) {
        close(fd);
        return NULL;
    }
    s->fd = fd;
    s->server = server;
    memcpy(s->key, key, sizeof s->key);
    randombytes_buf(s->nonce, sizeof s->nonce);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
    if (shake(s, answered))
        return s;
    rnl_auth_stream_free(s);
    return NULL;
}

void rnl_auth_stream_free(struct rnl_auth_stream *s)
{
    if (!s)
        return;
    close(s->fd);
    rnl_secret_free(s, sizeof *s);
}

/* ---- the relay: each of these returns false when a side has ended ---- */

static bool flush(struct rnl_auth_stream *s)
{
    while (s->left < s->ready) {
        const ssize_t n = send(s->fd, s->sent + s->left, s->ready - s->left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR)
            return errno == EAGAIN;
        s->left += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool seal_from(struct rnl_auth_stream *s, int in)
{
    const ssize_t n = read(in, s->text, TEXT);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    const size_t bytes = (size_t)n + OVERHEAD;
    s->sent[0] = (unsigned char)bytes;
    s->sent[1] = (unsigned char)(bytes >> 8);
    (void)crypto_secretstream_xchacha20poly1305_push(&s->out, s->sent + 2, NULL, s->text, (size_t)n, NULL, 0, 0);
    s->left = 0;
    s->ready = 2 + bytes;
    return flush(s);
}

static bool write_all(int to, const unsigned char *at, size_t n)
{
    while (n > 0) {
        const ssize_t went = write(to, at, n);
        if (went <= 0 && !(went < 0 && errno == EINTR))
            return false;
        at += went > 0 ? went : 0;
        n -= went > 0 ? (size_t)went : 0;
    }
    return true;
}

static bool open_to(struct rnl_auth_stream *s, int out)
{
    for (;;) {
        const size_t bytes = s->got < 2 ? 0 : (size_t)(s->taken[0] | s->taken[1] << 8), wanted = 2 + bytes;
        if (s->got >= 2 && (bytes < OVERHEAD || wanted > BLOCK))
            return false;
        if (s->got >= 2 && s->got == wanted) {
            unsigned long long n;
            s->got = 0;
            if (crypto_secretstream_xchacha20poly1305_pull(&s->in, s->text, &n, NULL, s->taken + 2, bytes, NULL, 0) !=
                    0 ||
                !write_all(out, s->text, (size_t)n))
                return false;
            continue;
        }
        const ssize_t k = recv(s->fd, s->taken + s->got, wanted - s->got, MSG_DONTWAIT);
        if (k <= 0)
            return k < 0 && (errno == EAGAIN || errno == EINTR);
        s->got += (size_t)k;
    }
}

void rnl_auth_stream_relay(struct rnl_auth_stream *s, int in, int out)
{
    for (bool goes = true; goes;) {
        const bool sent = s->left == s->ready;
        struct pollfd p[2] = {{.fd = s->fd, .events = (short)(POLLIN | (sent ? 0 : POLLOUT))},
                              {.fd = sent ? in : -1, .events = POLLIN}};
        if (poll(p, 2, -1) < 0)
            goes = errno == EINTR;
        else
            goes = (p[1].revents == 0 || seal_from(s, in)) && flush(s) && (p[0].revents == 0 || open_to(s, out));
    }
    sodium_memzero(s->text, sizeof s->text);
}
