/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trunk.c - see trunk.h. */
#include "job/trunk.h"

#include "job/here.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 65536 };
static const char greeting[] = "runnel-agent ";

/* ---- the stream ---- */

int rnl_trunk_open(struct rnl_trunk *t, int in, int out)
{
    *t = (struct rnl_trunk){.in = in, .out = out};
    int a = fcntl(in, F_GETFL), b = fcntl(out, F_GETFL);
    if (a < 0 || b < 0 || fcntl(in, F_SETFL, a | O_NONBLOCK) < 0 || fcntl(out, F_SETFL, b | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

void rnl_trunk_cut(struct rnl_trunk *t)
{
    if (t->out >= 0 && t->out != t->in)
        close(t->out);
    if (t->channel != NULL)
        rnl_channel_free(t->channel); /* and `in` */
    else if (t->in >= 0)
        close(t->in);
    t->channel = NULL;
    t->in = t->out = -1;
    t->ended = 1;
}

void rnl_trunk_close(struct rnl_trunk *t)
{
    rnl_trunk_cut(t);
    if (t->read != NULL)
        explicit_bzero(t->read, t->read_room);
    free(t->read);
    rnl_resend_free(&t->kept);
    *t = (struct rnl_trunk){.in = -1, .out = -1, .ended = 1};
}

static void fail(struct rnl_trunk *t, int error)
{
    if (!t->ended)
        t->error = error;
    t->ended = t->mute = 1;
}

void rnl_trunk_keep(struct rnl_trunk *t)
{
    t->kept.keeps = 1;
    t->kept.base = t->kept.taken = t->kept.told = 0;
}

int rnl_trunk_may_go_on(const struct rnl_trunk *t)
{
    return t->kept.keeps && t->error != EPROTO && t->error != ENOMEM && t->error != EMSGSIZE;
}

uint64_t rnl_trunk_taken(struct rnl_trunk *t)
{
    t->taken = t->got;
    return t->kept.taken;
}

int rnl_trunk_go_on(struct rnl_trunk *t, struct rnl_channel *c, uint64_t theirs)
{
    int may = rnl_trunk_may_go_on(t);
    rnl_trunk_cut(t);
    t->channel = c;
    t->in = c->fd;
    t->out = fcntl(c->fd, F_DUPFD_CLOEXEC, 3);
    t->got = t->taken = 0; /* what was not taken in comes again */
    t->ended = t->mute = 0;
    t->error = 0;
    t->kept.told = t->kept.taken;
    if (t->out < 0) { /* who came sees that it ends, and comes again */
        rnl_trunk_cut(t);
        return 0;
    }
    if (!may || rnl_resend_again(&t->kept, theirs) < 0) {
        fail(t, EPROTO);
        return -1;
    }
    rnl_trunk_flush(t);
    return 0;
}

/* How many bytes have left; -1 with errno. */
static ssize_t write_some(struct rnl_trunk *t, const unsigned char *at, size_t n)
{
    if (t->channel == NULL)
        return write(t->out, at, n);
    n = n < RNL_CHANNEL_TEXT ? n : RNL_CHANNEL_TEXT;
    int r = rnl_channel_offer(t->channel, 'd', at, n);
    if (r <= 0)
        errno = r == 0 ? EAGAIN : EPIPE;
    return r > 0 ? (ssize_t)n : -1;
}

void rnl_trunk_flush(struct rnl_trunk *t)
{
    const unsigned char *at;
    size_t n;
    while (!t->mute && t->out >= 0 && (n = rnl_resend_ready(&t->kept, &at)) > 0) {
        ssize_t went = write_some(t, at, n);
        if (went >= 0)
            rnl_resend_left(&t->kept, (size_t)went);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR) /* its reader is gone; what it said before may still be here */
            t->mute = 1;
    }
    if (t->channel != NULL && !t->mute && rnl_channel_flush(t->channel) < 0)
        t->mute = 1;
    if (t->mute && !t->kept.keeps)
        rnl_resend_left(&t->kept, rnl_resend_ready(&t->kept, &at));
}

int rnl_trunk_waits(const struct rnl_trunk *t)
{
    const unsigned char *at;
    return rnl_resend_ready(&t->kept, &at) > 0 || (t->channel != NULL && t->channel->leaves < t->channel->ready);
}

static void put(struct rnl_trunk *t, const void *at, size_t n)
{
    if (rnl_resend_put(&t->kept, at, n) < 0)
        fail(t, ENOMEM);
}

void rnl_trunk_send_to(struct rnl_trunk *t, enum rnl_frame_kind kind, uint32_t host, const void *body, size_t bytes)
{
    const unsigned char head[RNL_FRAME_HEAD] = {(unsigned char)kind,          0,
                                                (unsigned char)host,          (unsigned char)(host >> 8),
                                                (unsigned char)bytes,         (unsigned char)(bytes >> 8),
                                                (unsigned char)(bytes >> 16), (unsigned char)(bytes >> 24)};
    if ((t->out < 0 || t->ended) && !rnl_trunk_may_go_on(t))
        return;
    if (bytes > RNL_FRAME_MAX) {
        fail(t, EMSGSIZE);
        return;
    }
    put(t, head, sizeof head);
    put(t, body, bytes);
    rnl_trunk_flush(t);
}

void rnl_trunk_send(struct rnl_trunk *t, enum rnl_frame_kind kind, const void *body, size_t bytes)
{
    rnl_trunk_send_to(t, kind, t->host, body, bytes);
}

void rnl_trunk_send_pack(struct rnl_trunk *t, enum rnl_frame_kind kind, const struct rnl_pack *p)
{
    if (p->failed)
        fail(t, ENOMEM);
    else
        rnl_trunk_send(t, kind, p->at, p->bytes);
}

/* Behind what is there: how many bytes, 0 = the end, -1 with errno. */
static ssize_t read_channel(struct rnl_trunk *t)
{
    switch (rnl_channel_step(t->channel)) {
    case RNL_CHANNEL_WAITS:
        errno = EAGAIN;
        return -1;
    case RNL_CHANNEL_MESSAGE:
        if (t->channel->type == 'd' && t->channel->bytes > 0) {
            memcpy(t->read + t->got, t->channel->text, t->channel->bytes);
            return (ssize_t)t->channel->bytes;
        }
        return 0;
    default:
        return 0;
    }
}

void rnl_trunk_read(struct rnl_trunk *t)
{
    while (!t->ended) {
        if (t->taken > 0) {
            memmove(t->read, t->read + t->taken, t->got - t->taken);
            t->got -= t->taken;
            t->taken = 0;
        }
        if (t->got >= (size_t)2 * RNL_FRAME_MAX)
            return; /* frames are waiting to be taken */
        if (rnl_pack_room(&t->read, &t->read_room, t->got + READ_BYTES) < 0) {
            fail(t, ENOMEM);
            return;
        }
        ssize_t n = t->channel != NULL ? read_channel(t) : read(t->in, t->read + t->got, t->read_room - t->got);
        if (n > 0)
            t->got += (size_t)n;
        else if (n == 0)
            fail(t, 0);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            fail(t, errno);
        if (n > 0 && n < READ_BYTES && t->channel == NULL) /* most likely all; else the caller is called again */
            return;
    }
}

static void acknowledge(struct rnl_trunk *t)
{
    const uint64_t n = t->kept.taken;
    unsigned char body[8];
    for (int i = 0; i < 8; i++)
        body[i] = (unsigned char)(n >> 8 * i);
    t->kept.told = n;
    rnl_trunk_send(t, RNL_FRAME_ACK, body, sizeof body);
}

/* Of the frames that both sides count. 1 = it is for the caller. */
static int count(struct rnl_trunk *t, const struct rnl_frame *f)
{
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    t->kept.taken += RNL_FRAME_HEAD + f->bytes;
    if (f->kind == RNL_FRAME_ACK) {
        uint64_t through = rnl_unpack_64(&u);
        if (u.bad || u.left != 0 || rnl_resend_acknowledged(&t->kept, through) < 0)
            fail(t, EPROTO);
        return 0;
    }
    if (f->kind == RNL_FRAME_PING || f->kind == RNL_FRAME_PONG || t->kept.taken - t->kept.told >= RNL_ACK_BYTES)
        acknowledge(t);
    return 1;
}

static int next(struct rnl_trunk *t, struct rnl_frame *out)
{
    struct rnl_unpack u = {.at = t->read + t->taken, .left = t->got - t->taken};
    if (u.left < RNL_FRAME_HEAD)
        return 0;
    uint32_t first = rnl_unpack_32(&u), kind = first & 0xffff, host = first >> 16, bytes = rnl_unpack_32(&u);
    if (kind > UINT8_MAX || bytes > RNL_FRAME_MAX) {
        t->taken = t->got;
        t->ended = 1;
        t->error = EPROTO;
        return 0;
    }
    if (u.left < bytes)
        return 0;
    *out = (struct rnl_frame){.kind = kind, .host = host, .bytes = bytes, .body = u.at};
    t->taken += RNL_FRAME_HEAD + bytes;
    return 1;
}

int rnl_trunk_next(struct rnl_trunk *t, struct rnl_frame *out)
{
    while (next(t, out))
        if (!t->kept.keeps || count(t, out))
            return 1;
    return 0;
}

/* ---- the first word ---- */

void rnl_trunk_greet(struct rnl_trunk *t)
{
    char line[sizeof greeting + RNL_RELEASE_BYTES], own[RNL_RELEASE_BYTES];
    int n = snprintf(line, sizeof line, "%s%s\n", greeting, rnl_here_release(own));
    put(t, line, (size_t)n);
    rnl_trunk_flush(t);
}

static void keep(char *to, size_t room, const unsigned char *line, size_t n)
{
    size_t k = n < room - 1 ? n : room - 1;
    for (size_t i = 0; i < k; i++)
        to[i] = line[i] < ' ' || line[i] == 127 ? ' ' : (char)line[i];
    to[k] = '\0';
}

int rnl_trunk_greeting(struct rnl_trunk *t, char *release, size_t room, char *noise, size_t noise_room)
{
    char want[RNL_RELEASE_BYTES];
    size_t n = strlen(rnl_here_release(want));
    while (t->taken < t->got) {
        const unsigned char *line = t->read + t->taken, *end = memchr(line, '\n', t->got - t->taken);
        if (end == NULL) {
            if (t->noise + t->got - t->taken > RNL_NOISE_MAX)
                fail(t, EPROTO);
            return 0;
        }
        size_t bytes = (size_t)(end - line), skip = sizeof greeting - 1;
        t->taken += bytes + 1;
        t->noise += bytes + 1;
        if (t->noise > RNL_NOISE_MAX) {
            fail(t, EPROTO);
            return 0;
        }
        if (bytes > skip && memcmp(line, greeting, skip) == 0) {
            line += skip;
            bytes -= skip;
            keep(release, room, line, bytes);
            t->greeted = bytes == n && memcmp(line, want, bytes) == 0;
            return t->greeted ? 1 : -1;
        }
        if (bytes > 0)
            keep(noise, noise_room, line, bytes);
    }
    return 0;
}
