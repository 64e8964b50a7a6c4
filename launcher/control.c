/* SPDX-License-Identifier: BSD-3-Clause
 *
 * control.c - frames and the greeting: see control.h. The bodies of frames are in control_bodies.c. */
#include "launcher/control.h"

#include "base/secret.h"
#include "net/wire/packet.h"
#include "runnel/runnel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 65536 };
static const char greeting[] = "runnel-agent ";

/* ---- frames out of bytes ---- */

unsigned char *rnl_reader_space(struct rnl_reader *r, size_t n)
{
    if (r->taken > 0) {
        memmove(r->at, r->at + r->taken, r->end - r->taken);
        r->end -= r->taken;
        r->taken = 0;
    }
    if (r->error == 0 && !rnl_secret_grow(&r->at, &r->room, r->end, r->end + n)) /* JOB has the keys of the job */
        r->error = ENOMEM;
    return r->error != 0 ? NULL : r->at + r->end;
}

void rnl_reader_add(struct rnl_reader *r, size_t n)
{
    r->end += n;
}

void rnl_reader_free(struct rnl_reader *r)
{
    rnl_secret_free(r->at, r->room);
    *r = (struct rnl_reader){.at = NULL};
}

static void refuse(struct rnl_reader *r)
{
    r->taken = r->end;
    r->error = EPROTO;
}

bool rnl_reader_next(struct rnl_reader *r, struct rnl_control_frame *out)
{
    uint32_t header[2]; /* kind and bytes */
    const size_t left = r->end - r->taken;
    if (r->error != 0 || left < sizeof header)
        return false;
    memcpy(header, r->at + r->taken, sizeof header);
    if (header[0] > RNL_CONTROL_PATHS || header[1] > RNL_CONTROL_FRAME_MAX) {
        refuse(r);
        return false;
    }
    if (left - sizeof header < header[1])
        return false;
    *out = (struct rnl_control_frame){.kind = header[0], .bytes = header[1], .body = r->at + r->taken + sizeof header};
    r->taken += sizeof header + header[1];
    return true;
}

const char *rnl_control_release(char out[RNL_CONTROL_RELEASE_BYTES])
{
    snprintf(out, RNL_CONTROL_RELEASE_BYTES, "%d.%d %s", RNL_CONTROL_VERSION, RNL_WIRE_VERSION, RNL_VERSION);
    return out;
}

void rnl_control_greet(int fd)
{
    char own[RNL_CONTROL_RELEASE_BYTES];
    (void)!dprintf(fd, "%s%s\n", greeting, rnl_control_release(own));
}

static void keep_text(char *to, size_t room, const unsigned char *line, size_t n)
{
    const size_t k = n < room - 1 ? n : room - 1;
    for (size_t i = 0; i < k; i++)
        to[i] = line[i] < ' ' || line[i] == 127 ? ' ' : (char)line[i];
    to[k] = '\0';
}

int rnl_reader_greeting(struct rnl_reader *r, char release[RNL_CONTROL_RELEASE_BYTES], char *noise, size_t noise_room)
{
    char own[RNL_CONTROL_RELEASE_BYTES];
    const size_t own_bytes = strlen(rnl_control_release(own)), skip = sizeof greeting - 1;
    while (r->error == 0 && r->taken < r->end) {
        const unsigned char *line = r->at + r->taken, *end = memchr(line, '\n', r->end - r->taken);
        const size_t bytes = end ? (size_t)(end - line) : r->end - r->taken;
        if (r->noise_bytes + bytes >= RNL_CONTROL_NOISE_MAX)
            refuse(r);
        if (!end || r->error != 0)
            return 0;
        r->taken += bytes + 1;
        r->noise_bytes += bytes + 1;
        if (bytes > skip && memcmp(line, greeting, skip) == 0) {
            keep_text(release, RNL_CONTROL_RELEASE_BYTES, line + skip, bytes - skip);
            return bytes - skip == own_bytes && memcmp(line + skip, own, own_bytes) == 0 ? 1 : -1;
        }
        if (bytes > 0)
            keep_text(noise, noise_room, line, bytes);
    }
    return 0;
}

/* ---- the stream ---- */

struct control_write {
    uv_write_t request;
    size_t bytes;
    unsigned char at[];
};

static void written(uv_write_t *request, int status)
{
    struct rnl_control *c = request->data;
    struct control_write *w = (struct control_write *)request;
    (void)status; /* when the reader is gone, `in` says so, behind what the peer had sent before */
    c->writes--;
    explicit_bzero(w->at, w->bytes); /* JOB holds keys */
    free(w);
}

void rnl_control_send_parts(struct rnl_control *c, enum rnl_control_kind kind, const void *first, size_t first_bytes,
                            const void *second, size_t second_bytes)
{
    const size_t body = first_bytes + second_bytes;
    const uint32_t header[2] = {kind, (uint32_t)body};
    if (!c->opened)
        return;
    struct control_write *w = body > RNL_CONTROL_FRAME_MAX ? NULL : malloc(sizeof *w + sizeof header + body);
    if (!w) {
        c->reader.error = body > RNL_CONTROL_FRAME_MAX ? EMSGSIZE : ENOMEM;
        return;
    }
    memcpy(w->at, header, sizeof header);
    if (first_bytes > 0)
        memcpy(w->at + sizeof header, first, first_bytes);
    if (second_bytes > 0)
        memcpy(w->at + sizeof header + first_bytes, second, second_bytes);
    w->bytes = sizeof header + body;
    w->request.data = c;
    const uv_buf_t buffer = {.base = (char *)w->at, .len = w->bytes};
    c->writes++;
    const int e = uv_write(&w->request, c->writer, &buffer, 1, written);
    if (e < 0)
        written(&w->request, e);
}

void rnl_control_send(struct rnl_control *c, enum rnl_control_kind kind, const void *body, size_t bytes)
{
    rnl_control_send_parts(c, kind, body, bytes, NULL, 0);
}

void rnl_control_send_pack(struct rnl_control *c, enum rnl_control_kind kind, const struct rnl_pack *p)
{
    if (p->failed)
        c->reader.error = ENOMEM;
    else
        rnl_control_send(c, kind, p->at, p->bytes);
}

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct rnl_control *c = handle->data;
    (void)suggested;
    out->base = (char *)rnl_reader_space(&c->reader, READ_BYTES);
    out->len = out->base ? READ_BYTES : 0;
}

static void arrived(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct rnl_control *c = stream->data;
    (void)buffer;
    if (n == 0)
        return;
    if (n > 0)
        rnl_reader_add(&c->reader, (size_t)n);
    if (n < 0) {
        c->ended = true;
        (void)uv_read_stop(stream);
    }
    c->came(c->arg);
}

int rnl_control_open(struct rnl_control *c, uv_loop_t *loop, int in, int out, void (*came)(void *), void *arg)
{
    *c = (struct rnl_control){.came = came, .arg = arg, .opened = true};
    (void)uv_pipe_init(loop, &c->in, 0);
    (void)uv_pipe_init(loop, &c->out, 0);
    c->in.data = c->out.data = c;
    c->writer = (uv_stream_t *)(in == out ? &c->in : &c->out);
    int e = uv_pipe_open(&c->in, in), f = e;
    if (e < 0)
        close(in);
    if (in != out && (f = uv_pipe_open(&c->out, out)) < 0)
        close(out);
    e = e < 0 ? e : f < 0 ? f : uv_read_start((uv_stream_t *)&c->in, give_space, arrived);
    if (e < 0)
        rnl_control_close(c);
    return e;
}

void rnl_control_close(struct rnl_control *c)
{
    if (!c->opened)
        return;
    c->opened = false;
    c->ended = true;
    uv_close((uv_handle_t *)&c->in, NULL);
    uv_close((uv_handle_t *)&c->out, NULL);
    rnl_reader_free(&c->reader);
}
