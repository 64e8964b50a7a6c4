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

void rnl_trunk_close(struct rnl_trunk *t)
{
    if (t->out >= 0 && t->out != t->in)
        close(t->out);
    if (t->in >= 0)
        close(t->in);
    if (t->wait != NULL)
        explicit_bzero(t->wait, t->wait_room); /* a job's key may have been in it */
    if (t->read != NULL)
        explicit_bzero(t->read, t->read_room);
    free(t->wait);
    free(t->read);
    *t = (struct rnl_trunk){.in = -1, .out = -1, .ended = 1};
}

static void fail(struct rnl_trunk *t, int error)
{
    if (!t->ended)
        t->error = error;
    t->ended = 1;
    t->start = t->end = 0;
}

void rnl_trunk_flush(struct rnl_trunk *t)
{
    while (t->start < t->end && t->out >= 0) {
        ssize_t n = write(t->out, t->wait + t->start, t->end - t->start);
        if (n >= 0) {
            t->start += (size_t)n;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) { /* its reader is gone; what it said before may still be here */
            break;
        }
    }
    t->start = t->end = 0;
}

int rnl_trunk_waits(const struct rnl_trunk *t)
{
    return t->start < t->end;
}

static void put(struct rnl_trunk *t, const void *at, size_t n)
{
    if (t->start > 0 && t->end + n > t->wait_room) {
        memmove(t->wait, t->wait + t->start, t->end - t->start);
        t->end -= t->start;
        t->start = 0;
    }
    if (t->end + n > t->wait_room && rnl_pack_room(&t->wait, &t->wait_room, t->end + n) < 0) {
        fail(t, ENOMEM);
        return;
    }
    if (n > 0)
        memcpy(t->wait + t->end, at, n);
    t->end += n;
}

void rnl_trunk_send_to(struct rnl_trunk *t, enum rnl_frame_kind kind, uint32_t host, const void *body, size_t bytes)
{
    const unsigned char head[RNL_FRAME_HEAD] = {(unsigned char)kind,          0,
                                                (unsigned char)host,          (unsigned char)(host >> 8),
                                                (unsigned char)bytes,         (unsigned char)(bytes >> 8),
                                                (unsigned char)(bytes >> 16), (unsigned char)(bytes >> 24)};
    if (t->out < 0 || t->ended)
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
        ssize_t n = read(t->in, t->read + t->got, t->read_room - t->got);
        if (n > 0)
            t->got += (size_t)n;
        else if (n == 0)
            fail(t, 0);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            fail(t, errno);
        if (n > 0 && n < READ_BYTES) /* most likely all; else the caller is called again */
            return;
    }
}

int rnl_trunk_next(struct rnl_trunk *t, struct rnl_frame *out)
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
