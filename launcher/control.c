/* SPDX-License-Identifier: BSD-3-Clause
 *
 * control.c - frames, their bodies and the greeting: see control.h. Whatever arrives is copied out of the frame and
 * checked before it is used. */
#include "launcher/control.h"

#include "base/error.h"
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

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bodies are sent as they lie in memory");
enum { TEXTS_MAX = 1 << 20 };

static int garbled(const char *what)
{
    return rnl_fail(RNL_ERR_JOB, "%s that came from another host is not understood: use one release everywhere", what);
}

void rnl_pack_bytes(struct rnl_pack *p, const void *at, size_t n)
{
    if (!p->failed && n > 0) /* JOB has the keys of the job */
        p->failed = !rnl_secret_grow(&p->at, &p->room, p->bytes, p->bytes + n);
    if (p->failed || n == 0)
        return;
    memcpy(p->at + p->bytes, at, n);
    p->bytes += n;
}

void rnl_pack_free(struct rnl_pack *p)
{
    rnl_secret_free(p->at, p->room);
    *p = (struct rnl_pack){.at = NULL};
}

void rnl_unpack_bytes(struct rnl_unpack *u, void *at, size_t n)
{
    u->bad |= n > u->left;
    if (u->bad) {
        memset(at, 0, n);
        return;
    }
    if (n > 0)
        memcpy(at, u->at, n);
    u->at += n;
    u->left -= n;
}

uint32_t rnl_unpack_32(struct rnl_unpack *u)
{
    uint32_t value;
    rnl_unpack_bytes(u, &value, sizeof value);
    return value;
}

/* ---- JOB ---- */

static uint32_t pack_texts(struct rnl_pack *p, char *const *text)
{
    uint32_t n = 0;
    for (; text[n]; n++)
        rnl_pack_bytes(p, text[n], strlen(text[n]) + 1);
    return n;
}

void rnl_job_spec_pack(struct rnl_pack *p, struct rnl_job_spec *s)
{
    struct rnl_pack texts = {.at = NULL};
    rnl_pack_bytes(&texts, s->folder, strlen(s->folder) + 1);
    s->arguments = pack_texts(&texts, s->argv);
    s->variables = pack_texts(&texts, s->environment);
    rnl_pack_bytes(p, s, offsetof(struct rnl_job_spec, at));
    rnl_pack_bytes(p, s->at, s->hosts * sizeof *s->at);
    rnl_pack_bytes(p, texts.at, texts.bytes);
    p->failed |= texts.failed;
    rnl_pack_free(&texts);
}

/* The hosts' blocks of ranks follow each other and are the whole job. */
static bool are_hosts(const struct rnl_job_spec *s)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->hosts; i++) {
        const struct rnl_job_host *h = &s->at[i];
        if (!memchr(h->name, '\0', sizeof h->name) || h->first != next || h->count == 0 || h->count > s->size - next)
            return false;
        next += h->count;
    }
    return next == s->size;
}

/* Returns the next text, or NULL when there is none. */
static char *next_text(struct rnl_unpack *u, char **at)
{
    char *text = *at, *end = u->left > 0 ? memchr(text, '\0', u->left) : NULL;
    if (!end)
        return NULL;
    u->left -= (size_t)(end + 1 - text);
    *at = end + 1;
    return text;
}

/* The texts are copied once, behind the array of those that point to them. */
static bool unpack_texts(struct rnl_unpack *u, struct rnl_job_spec *s)
{
    const size_t pointers = (size_t)s->arguments + s->variables + 2;
    s->argv = malloc(pointers * sizeof *s->argv + u->left);
    if (!s->argv)
        return false;
    char *at = (char *)(s->argv + pointers);
    memcpy(at, u->at, u->left);
    s->environment = s->argv + s->arguments + 1;
    s->folder = next_text(u, &at);
    bool good = s->folder != NULL;
    for (uint32_t i = 0; i < s->arguments && good; i++)
        good = (s->argv[i] = next_text(u, &at)) != NULL;
    for (uint32_t i = 0; i < s->variables && good; i++)
        good = (s->environment[i] = next_text(u, &at)) != NULL;
    s->argv[s->arguments] = s->environment[s->variables] = NULL;
    return good && u->left == 0;
}

int rnl_job_spec_unpack(const void *body, size_t bytes, struct rnl_job_spec *out)
{
    struct rnl_unpack u = {.at = body, .left = bytes};
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(&u, out, offsetof(struct rnl_job_spec, at));
    if (u.bad || out->size == 0 || out->size > RNL_JOB_RANKS_MAX || out->hosts == 0 || out->hosts > RNL_HOSTS_MAX ||
        out->host >= out->hosts || (out->flags & ~(uint32_t)RNL_JOB_FLAGS) != 0 || out->arguments == 0 ||
        out->arguments > TEXTS_MAX || out->variables > TEXTS_MAX)
        return garbled("a job");
    out->at = calloc(out->hosts, sizeof *out->at);
    if (!out->at)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the names of %u hosts", out->hosts);
    rnl_unpack_bytes(&u, out->at, out->hosts * sizeof *out->at);
    if (!u.bad && are_hosts(out) && unpack_texts(&u, out))
        return 0;
    rnl_job_spec_free(out);
    return garbled("a job");
}

void rnl_job_spec_free(struct rnl_job_spec *s)
{
    free(s->at);
    free(s->argv);
    explicit_bzero(s, sizeof *s);
}

/* ---- HERE and HOSTS ---- */

void rnl_host_info_pack(struct rnl_pack *p, const struct rnl_host_info *h)
{
    rnl_pack_bytes(p, h, offsetof(struct rnl_host_info, address));
    rnl_pack_bytes(p, h->address, h->addresses * sizeof h->address[0]);
    rnl_pack_bytes(p, h->port, h->ranks * sizeof h->port[0]);
}

int rnl_host_info_unpack(struct rnl_unpack *u, uint32_t hosts, const struct rnl_job_host *at, struct rnl_host_info *out)
{
    static const char what[] = "the address of a host";
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(u, out, offsetof(struct rnl_host_info, address));
    if (u->bad || out->host >= hosts || out->probe_port == 0 || out->addresses > RNL_HOST_ADDRESSES_MAX ||
        out->ranks > RNL_JOB_RANKS_MAX || out->ranks != at[out->host].count)
        return garbled(what);
    rnl_unpack_bytes(u, out->address, out->addresses * sizeof out->address[0]);
    for (uint32_t i = 0; i < out->addresses; i++)
        out->address[i].interface[sizeof out->address[i].interface - 1] = '\0';
    rnl_unpack_bytes(u, out->port, out->ranks * sizeof out->port[0]);
    for (uint32_t i = 0; i < out->ranks; i++)
        u->bad |= out->port[i] == 0;
    return u->bad ? garbled(what) : 0;
}

/* ---- PROBED ---- */

void rnl_probe_failure_pack(struct rnl_pack *p, const struct rnl_probe_failure *f)
{
    rnl_pack_bytes(p, f, offsetof(struct rnl_probe_failure, address));
    rnl_pack_bytes(p, f->address, f->addresses * sizeof f->address[0]);
}

int rnl_probe_failure_unpack(struct rnl_unpack *u, uint32_t hosts, struct rnl_probe_failure *out)
{
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(u, out, offsetof(struct rnl_probe_failure, address));
    u->bad |= out->other >= hosts || out->heard > 1 || out->asked > 1 || out->addresses > RNL_HOST_ADDRESSES_MAX;
    if (!u->bad)
        rnl_unpack_bytes(u, out->address, out->addresses * sizeof out->address[0]);
    for (uint32_t i = 0; i < out->addresses && !u->bad; i++)
        u->bad |= out->address[i].sys_errno < 0;
    return u->bad ? garbled("the result of a host's probes") : 0;
}

/* ---- PATHS ---- */

void rnl_path_report_pack(struct rnl_pack *p, const struct rnl_path_report *r)
{
    rnl_pack_bytes(p, r, offsetof(struct rnl_path_report, attempts));
    rnl_probe_failure_pack(p, &r->attempts);
}

int rnl_path_report_unpack(struct rnl_unpack *u, uint32_t hosts, struct rnl_path_report *out)
{
    const struct rnl_path_result *r = &out->result;
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(u, out, offsetof(struct rnl_path_report, attempts));
    u->bad |= out->agreed > 1 || r->done > 1 || r->sent > RNL_PATH_TRAIN_MOST || r->counts.came > r->sent ||
              r->counts.reordered > r->counts.came || r->echoes > r->sent;
    return u->bad ? garbled("the result of a host's measurements") : rnl_probe_failure_unpack(u, hosts, &out->attempts);
}

/* ---- ARRIVALS ---- */

void rnl_arrivals_pack(struct rnl_pack *p, const struct rnl_arrivals *a)
{
    rnl_pack_bytes(p, a, offsetof(struct rnl_arrivals, wanted));
    rnl_pack_bytes(p, a->wanted, a->count * sizeof a->wanted[0]);
}

int rnl_arrivals_unpack(struct rnl_unpack *u, struct rnl_arrivals *out)
{
    memset(out, 0, sizeof *out);
    rnl_unpack_bytes(u, out, offsetof(struct rnl_arrivals, wanted));
    out->name[sizeof out->name - 1] = '\0';
    u->bad |= out->count > RNL_JOB_RANKS_MAX;
    if (!u->bad)
        rnl_unpack_bytes(u, out->wanted, out->count * sizeof out->wanted[0]);
    return u->bad ? garbled("who waits on a host") : 0;
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
