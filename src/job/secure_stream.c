/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secure_stream.c - the handshake, the messages and the relay of secure_stream.h. */
#include "job/secure_stream.h"

#include "base/env.h"
#include "base/error.h"
#include "base/secret.h"
#include "net/wire/bytes.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NONCE = 32,
    PROOF = 32,
    HEADER = crypto_secretstream_xchacha20poly1305_HEADERBYTES,
    PROVEN = PROOF + HEADER,
    OVERHEAD = crypto_secretstream_xchacha20poly1305_ABYTES,
    BLOCKS = 4, /* that may wait to be sent */
    LABEL = 16,
    BACKLOG = 64,
    VERSION = 1,
    KIND_RELAY = 3, /* beside those of daemons */
    RELAY_BYTES = 8192
};
static_assert(HEADER == 24 && crypto_secretstream_xchacha20poly1305_KEYBYTES == (int)PROOF &&
                  (int)RNL_SECURE_STREAM_KEY == (int)PROOF,
              "as drawn");
static_assert(crypto_auth_BYTES == (int)PROOF && crypto_auth_KEYBYTES == (int)RNL_SECURE_STREAM_KEY, "a keyed hash");

enum stream_state { AWAITS_NONCE = 0, AWAITS_PROOF, UP, ENDED };

struct rnl_secure_stream {
    int fd;
    bool server, heard; /* heard: a byte of the other end */
    enum stream_state state;
    uint32_t kind;
    unsigned char key[RNL_SECURE_STREAM_KEY], nonce[NONCE], other[NONCE];
    crypto_secretstream_xchacha20poly1305_state in, out;
    size_t most, block; /* bytes of a message, and of what it becomes */
    size_t got, ready;  /* bytes of `taken`, and of `sent` */
    unsigned char *taken, *sent, space[];
};

/* Makes 32 bytes from a label, the kind, both nonces and the key. */
static void derive(const struct rnl_secure_stream *l, const char *label, unsigned char out[PROOF])
{
    unsigned char text[LABEL + 8 + 2 * NONCE] = {0};
    memcpy(text, label, strnlen(label, LABEL));
    rnl_put32(text + LABEL, VERSION);
    rnl_put32(text + LABEL + 4, l->kind);
    memcpy(text + LABEL + 8, l->server ? l->nonce : l->other, NONCE);
    memcpy(text + LABEL + 8 + NONCE, l->server ? l->other : l->nonce, NONCE);
    (void)crypto_auth(out, text, sizeof text, l->key);
}

void rnl_secure_stream_pair_key(const struct rnl_secure_stream *l, unsigned char out[RNL_SECURE_STREAM_KEY])
{
    derive(l, "pair", out);
}

/* ---- sending ---- */

int rnl_secure_stream_flush(struct rnl_secure_stream *l)
{
    while (l->state != ENDED && l->ready > 0) {
        const ssize_t n = send(l->fd, l->sent, l->ready, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return 1;
        if (n < 0) {
            l->state = ENDED;
            break;
        }
        memmove(l->sent, l->sent + n, l->ready - (size_t)n);
        l->ready -= (size_t)n;
    }
    return l->state == ENDED ? RNL_ERR_UNREACHABLE : 0;
}

static void push(struct rnl_secure_stream *l, const void *at, size_t n)
{
    memcpy(l->sent + l->ready, at, n);
    l->ready += n;
}

/* Sends the proof and the header of the own stream; a client also its nonce. */
static void prove(struct rnl_secure_stream *l)
{
    unsigned char key[PROOF], at[PROVEN];
    derive(l, l->server ? "server" : "client", at);
    derive(l, l->server ? "server's stream" : "client's stream", key);
    (void)crypto_secretstream_xchacha20poly1305_init_push(&l->out, at + PROOF, key);
    sodium_memzero(key, sizeof key);
    if (!l->server)
        push(l, l->nonce, NONCE);
    push(l, at, sizeof at);
}

int rnl_secure_stream_send(struct rnl_secure_stream *l, const void *msg, size_t n)
{
    unsigned char *at = l->sent + l->ready;
    if (l->state != UP || n > l->most || l->ready + l->block > BLOCKS * l->block)
        return RNL_ERR_UNREACHABLE;
    rnl_put16(at, (uint16_t)(n + OVERHEAD));
    (void)crypto_secretstream_xchacha20poly1305_push(&l->out, at + 2, NULL, msg, n, NULL, 0, 0);
    l->ready += 2 + n + OVERHEAD;
    return rnl_secure_stream_flush(l) < 0 ? RNL_ERR_UNREACHABLE : 0;
}

/* ---- receiving ---- */

/* How many bytes make the next part whole; 0 = what came is no part. */
static size_t wanted(const struct rnl_secure_stream *l)
{
    if (l->state == AWAITS_NONCE)
        return l->server ? NONCE + PROVEN : NONCE;
    if (l->state == AWAITS_PROOF)
        return PROVEN;
    if (l->got < 2)
        return 2;
    const size_t bytes = rnl_get16(l->taken);
    return bytes < OVERHEAD || bytes > l->most + OVERHEAD ? 0 : 2 + bytes;
}

/* Checks the proof of the other end, and takes in the header of its stream. */
static bool check(struct rnl_secure_stream *l, const unsigned char at[PROVEN])
{
    unsigned char key[PROOF];
    derive(l, l->server ? "client" : "server", key);
    bool good = sodium_memcmp(key, at, sizeof key) == 0;
    derive(l, l->server ? "client's stream" : "server's stream", key);
    good = good && crypto_secretstream_xchacha20poly1305_init_pull(&l->in, at + PROOF, key) == 0;
    sodium_memzero(key, sizeof key);
    return good;
}

/* Takes in a part of the handshake. */
static bool shake(struct rnl_secure_stream *l)
{
    if (l->state == AWAITS_NONCE)
        memcpy(l->other, l->taken, NONCE);
    if (l->state == AWAITS_NONCE && !l->server) {
        l->state = AWAITS_PROOF;
        prove(l);
        return true;
    }
    if (!check(l, l->taken + (l->server ? NONCE : 0)))
        return false;
    l->state = UP;
    if (l->server)
        prove(l);
    return true;
}

static int ended(struct rnl_secure_stream *l)
{
    l->state = ENDED;
    return RNL_ERR_UNREACHABLE;
}

int rnl_secure_stream_receive(struct rnl_secure_stream *l, unsigned char *out, size_t *n)
{
    if (rnl_secure_stream_flush(l) < 0)
        return RNL_ERR_UNREACHABLE;
    for (;;) {
        const size_t want = wanted(l);
        if (want == 0)
            return ended(l);
        if (l->got < want) {
            const ssize_t k = recv(l->fd, l->taken + l->got, want - l->got, MSG_DONTWAIT);
            if (k < 0 && errno == EINTR)
                continue;
            if (k < 0 && (errno == EAGAIN || errno == ENOTCONN))
                return 0;
            if (k <= 0)
                return ended(l);
            l->got += (size_t)k;
            l->heard = true;
            continue;
        }
        l->got = 0;
        if (l->state == UP) {
            unsigned long long bytes;
            if (crypto_secretstream_xchacha20poly1305_pull(&l->in, out, &bytes, NULL, l->taken + 2, want - 2, NULL,
                                                           0) != 0)
                return ended(l);
            *n = (size_t)bytes;
            return 1;
        }
        if (!shake(l) || rnl_secure_stream_flush(l) < 0)
            return ended(l);
        if (l->state == UP)
            return 0; /* the caller may have something to say first */
    }
}

bool rnl_secure_stream_is_up(const struct rnl_secure_stream *l)
{
    return l->state == UP;
}

int rnl_secure_stream_fd(const struct rnl_secure_stream *l)
{
    return l->fd;
}

/* ---- life ---- */

struct rnl_secure_stream *rnl_secure_stream_new(int fd, bool server, const unsigned char key[RNL_SECURE_STREAM_KEY],
                                                uint32_t kind, size_t most)
{
    const size_t block = 2 + most + OVERHEAD;
    struct rnl_secure_stream *l = sodium_init() < 0 ? NULL : rnl_secret_new(sizeof *l + (1 + BLOCKS) * block);
    if (!l) {
        close(fd);
        return NULL;
    }
    l->fd = fd;
    l->server = server;
    l->kind = kind;
    l->most = most;
    l->block = block;
    l->taken = l->space;
    l->sent = l->space + block;
    memcpy(l->key, key, sizeof l->key);
    randombytes_buf(l->nonce, sizeof l->nonce);
    if (server) {
        push(l, l->nonce, NONCE);
        (void)rnl_secure_stream_flush(l);
    }
    return l;
}

void rnl_secure_stream_free(struct rnl_secure_stream *l)
{
    if (!l)
        return;
    close(l->fd);
    rnl_secret_free(l, sizeof *l + (1 + BLOCKS) * l->block);
}

/* ---- a stream that is waited for, and its relay ---- */

struct rnl_secure_stream *rnl_secure_stream_open(int fd, bool server, const unsigned char key[RNL_SECURE_STREAM_KEY],
                                                 bool *answered)
{
    /* After 30 s without a byte TCP asks the other host every 10 s whether it has the connection still, 6 times. */
    static const int options[][3] = {{IPPROTO_TCP, TCP_KEEPIDLE, 30},
                                     {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                                     {IPPROTO_TCP, TCP_KEEPCNT, 6},
                                     {SOL_SOCKET, SO_KEEPALIVE, 1}};
    const uint64_t until_ns = rnl_host_now_ns(NULL) + RNL_SECURE_STREAM_LIMIT_MS * UINT64_C(1000000);
    struct rnl_secure_stream *l = rnl_secure_stream_new(fd, server, key, KIND_RELAY, RELAY_BYTES);
    size_t n;
    *answered = false;
    for (size_t i = 0; l && i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i][0], options[i][1], &options[i][2], sizeof options[i][2]);
    for (uint64_t now; l && (now = rnl_host_now_ns(NULL)) < until_ns;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int got = rnl_secure_stream_receive(l, NULL, &n); /* no message comes before the handshake ends */
        *answered = l->heard;
        if (l->state == UP)
            return l;
        if (got < 0 || (poll(&p, 1, (int)((until_ns - now) / 1000000) + 1) < 0 && errno != EINTR))
            break;
    }
    rnl_secure_stream_free(l);
    return NULL;
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

/* Each of these returns false when a side has ended. */
static bool relay_out(struct rnl_secure_stream *l, int in, unsigned char *text)
{
    const ssize_t n = read(in, text, l->most);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    return rnl_secure_stream_send(l, text, (size_t)n) == 0;
}

static bool relay_in(struct rnl_secure_stream *l, int out, unsigned char *text)
{
    size_t n;
    int got;
    while ((got = rnl_secure_stream_receive(l, text, &n)) == 1)
        if (!write_all(out, text, n))
            return false;
    return got == 0;
}

void rnl_secure_stream_relay(struct rnl_secure_stream *l, int in, int out)
{
    unsigned char *text = rnl_secret_new(l->most);
    for (bool goes = text; goes;) {
        const int left = rnl_secure_stream_flush(l);
        struct pollfd p[2] = {{.fd = l->fd, .events = (short)(POLLIN | (left ? POLLOUT : 0))},
                              {.fd = left ? -1 : in, .events = POLLIN}};
        if (left < 0 || poll(p, 2, -1) < 0)
            goes = left >= 0 && errno == EINTR;
        else
            goes = (p[1].revents == 0 || relay_out(l, in, text)) && (p[0].revents == 0 || relay_in(l, out, text));
    }
    if (text)
        rnl_secret_free(text, l->most);
}

/* ---- sockets ---- */

int rnl_secure_stream_dial(const unsigned char ip[16], uint16_t port)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    const bool is_ipv4 = memcmp(ip, mapped, sizeof mapped) == 0;
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&in6.sin6_addr, ip, 16);
    memcpy(&in.sin_addr, ip + 12, 4);
    int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    const struct sockaddr *at = is_ipv4 ? (const struct sockaddr *)&in : (const struct sockaddr *)&in6;
    if (connect(fd, at, is_ipv4 ? sizeof in : sizeof in6) == 0 || errno == EINPROGRESS)
        return fd;
    int e = -errno;
    close(fd);
    return e;
}

int rnl_secure_stream_listen(uint16_t port)
{
    const int on = 1, off = 0;
    const struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool is_both = fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
    if (!is_both) {
        if (fd >= 0)
            close(fd);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const struct sockaddr *at = is_both ? (const struct sockaddr *)&in6 : (const struct sockaddr *)&in;
    if (bind(fd, at, is_both ? sizeof in6 : sizeof in) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int e = -errno;
    close(fd);
    return e;
}

int rnl_secure_stream_accept(int listener, unsigned char ip[16])
{
    struct sockaddr_in6 from = {.sin6_family = AF_UNSPEC};
    socklen_t n = sizeof from;
    const int fd = accept4(listener, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (from.sin6_family == AF_INET6) {
        memcpy(ip, &from.sin6_addr, 16);
    } else {
        struct sockaddr_in in;
        memcpy(&in, &from, sizeof in);
        memset(ip, 0, 16);
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, &in.sin_addr, 4);
    }
    return fd;
}
