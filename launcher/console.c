/* SPDX-License-Identifier: BSD-3-Clause
 *
 * console.c - the console of console.h. Its sinks are no streams of libuv, since files cannot be watched and
 * descriptors that others share must keep their flags. */
#include "launcher/console.h"

#include "launcher/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_BYTES = 65536, /* a longer line goes out in parts */
    SINK_BYTES = 65536, /* a sink that holds as much grants no more */
    BLOCKING_BYTES = 4096
};

struct console_bytes { /* [start, end) of `at` */
    char *at;
    size_t start, end, room;
};

struct console_line { /* of a rank, as far as it has come */
    struct console_sink *sink;
    struct console_bytes part;
    uint32_t rank;
};

struct console_sink {
    int fd;
    enum { PLAIN, NON_BLOCKING, SOCKET, MAY_BLOCK } how;
    uv_loop_t *loop;
    uv_poll_t writable;
    bool watched, terminal, blocked;
    int error;
    struct console_bytes queue;
    const struct console_line *unfinished; /* the line that stands open at the end of what was written */
    char last_char;
};

struct rnl_console {
    bool tag;
    uint32_t ranks, sinks;
    struct console_sink sink[2];
    struct console_line line[]; /* two a rank */
};

static bool append(struct console_bytes *b, const char *data, size_t n)
{
    if (b->start > 0 && b->end + n > b->room) {
        memmove(b->at, b->at + b->start, b->end - b->start);
        b->end -= b->start;
        b->start = 0;
    }
    if (b->end + n > b->room) {
        char *grown = realloc(b->at, 2 * (b->end + n));
        if (!grown)
            return false;
        b->at = grown;
        b->room = 2 * (b->end + n);
    }
    if (n > 0)
        memcpy(b->at + b->end, data, n);
    b->end += n;
    return true;
}

static void drop(struct console_bytes *b)
{
    free(b->at);
    *b = (struct console_bytes){.at = NULL};
}

/* ---- sinks ---- */

static bool may_write(int fd)
{
    return (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/* The launcher's standard streams are shared with other processes, so they must not be made nonblocking: pipes and
 * terminals are opened once more. */
static void open_sink(struct console_sink *s, uv_loop_t *loop, int fd)
{
    struct stat st;
    char path[32];
    *s = (struct console_sink){.fd = fd, .loop = loop, .last_char = '\n', .terminal = isatty(fd) != 0};
    if (fstat(fd, &st) < 0 || S_ISREG(st.st_mode) || !may_write(fd))
        return; /* where it cannot be written, write(2) will say so */
    if (S_ISSOCK(st.st_mode)) {
        s->how = SOCKET;
        return;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    s->how = own >= 0 ? NON_BLOCKING : MAY_BLOCK;
    s->fd = own >= 0 ? own : fd;
}

static ssize_t sink_write(const struct console_sink *s, const char *data, size_t n)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    if (s->how == SOCKET)
        return send(s->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (s->how == MAY_BLOCK && poll(&p, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(s->fd, data, s->how == MAY_BLOCK && n > BLOCKING_BYTES ? BLOCKING_BYTES : n);
}

static void sink_fail(struct console_sink *s, int error)
{
    s->error = error;
    s->queue.start = s->queue.end = 0;
}

static void on_writable(uv_poll_t *handle, int status, int events);

/* Waits for room. */
static void block_sink(struct console_sink *s)
{
    if (s->blocked)
        return;
    if (!s->watched)
        s->watched = rnl_watch_init(s->loop, &s->writable, s->fd, s) == 0;
    s->blocked = s->watched && uv_poll_start(&s->writable, UV_WRITABLE, on_writable) == 0;
    if (!s->blocked)
        sink_fail(s, EIO); /* it cannot be waited for, and yet does not take the bytes */
}

static void sink_flush(struct console_sink *s)
{
    while (s->queue.start < s->queue.end) {
        const ssize_t n = sink_write(s, s->queue.at + s->queue.start, s->queue.end - s->queue.start);
        if (n >= 0) {
            s->queue.start += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            block_sink(s);
            return;
        } else if (errno != EINTR) {
            sink_fail(s, errno);
        }
    }
    s->queue.start = s->queue.end = 0;
    if (s->blocked)
        (void)uv_poll_stop(&s->writable);
    s->blocked = false;
}

static void on_writable(uv_poll_t *handle, int status, int events)
{
    (void)status; /* writing says it better */
    (void)events;
    sink_flush(handle->data);
}

static void sink_put(struct console_sink *s, const char *data, size_t n)
{
    if (s->error != 0 || n == 0)
        return;
    if (!append(&s->queue, data, n))
        sink_fail(s, ENOMEM);
    s->last_char = data[n - 1];
}

static void begin_line(struct console_sink *s, const struct console_line *by)
{
    if (s->unfinished && s->unfinished != by)
        sink_put(s, "\n", 1);
    if (s->unfinished != by)
        s->unfinished = NULL;
}

/* ---- lines ---- */

/* Puts whole lines of one rank, or the open end of one. */
static void emit(const struct rnl_console *c, const struct console_line *t, const char *data, size_t n)
{
    struct console_sink *s = t->sink;
    char tag[16];
    if (n == 0)
        return;
    begin_line(s, t);
    bool goes_on = s->unfinished == t && s->last_char != '\r';
    const size_t tag_bytes = c->tag ? (size_t)snprintf(tag, sizeof tag, "[%u] ", t->rank) : 0;
    while (n > 0) {
        const char *newline = c->tag ? memchr(data, '\n', n) : NULL;
        const size_t line = newline ? (size_t)(newline - data) + 1 : n;
        if (!goes_on)
            sink_put(s, tag, tag_bytes);
        sink_put(s, data, line);
        goes_on = false;
        data += line;
        n -= line;
    }
    s->unfinished = s->last_char == '\n' ? NULL : t;
}

static void emit_part(const struct rnl_console *c, struct console_line *t)
{
    emit(c, t, t->part.at, t->part.end);
    drop(&t->part);
}

void rnl_console_feed(struct rnl_console *c, uint32_t rank, int which, const char *data, size_t n)
{
    struct console_line *t = &c->line[2 * rank + (which == 2)];
    const char *newline = memrchr(data, '\n', n), *back = t->sink->terminal ? memrchr(data, '\r', n) : NULL;
    const char *last = back && (!newline || back > newline) ? back : newline;
    if (last) {
        const size_t whole = (size_t)(last - data) + 1;
        emit_part(c, t);
        emit(c, t, data, whole);
        data += whole;
        n -= whole;
    }
    if (t->part.end + n > LINE_BYTES || !append(&t->part, data, n)) { /* too long, or no memory: in parts */
        emit_part(c, t);
        emit(c, t, data, n);
    }
    sink_flush(t->sink);
}

void rnl_console_end(struct rnl_console *c, uint32_t rank)
{
    for (uint32_t i = 2 * rank; i < 2 * rank + 2; i++) {
        emit_part(c, &c->line[i]);
        sink_flush(c->line[i].sink);
    }
}

int rnl_console_room(const struct rnl_console *c, int which)
{
    const struct console_sink *s = &c->sink[which == 2 ? c->sinks - 1 : 0];
    return s->error != 0 ? -1 : s->queue.end - s->queue.start < SINK_BYTES;
}

bool rnl_console_waiting(const struct rnl_console *c)
{
    bool waiting = false;
    for (uint32_t i = 0; i < c->sinks; i++)
        waiting |= c->sink[i].queue.start < c->sink[i].queue.end;
    return waiting;
}

void rnl_console_report(struct rnl_console *c, const char *line)
{
    struct console_sink *s = &c->sink[c->sinks - 1];
    begin_line(s, NULL);
    sink_put(s, line, strlen(line));
    sink_put(s, "\n", 1);
    sink_flush(s);
}

int rnl_console_error(const struct rnl_console *c)
{
    for (uint32_t i = 0; i < c->sinks; i++)
        if (c->sink[i].error != 0 && c->sink[i].error != EPIPE)
            return c->sink[i].error;
    return 0;
}

int rnl_console_new(uv_loop_t *loop, uint32_t ranks, bool tag, struct rnl_console **out)
{
    struct stat one, two;
    struct rnl_console *c = calloc(1, sizeof *c + 2 * ranks * sizeof c->line[0]);
    if (!c)
        return -ENOMEM;
    c->ranks = ranks;
    c->tag = tag;
    /* Both into one file: one sink, or a line of the one could land in a half-written line of the other. */
    const bool same = fstat(STDOUT_FILENO, &one) == 0 && fstat(STDERR_FILENO, &two) == 0 && one.st_dev == two.st_dev &&
                      one.st_ino == two.st_ino && may_write(STDOUT_FILENO) == may_write(STDERR_FILENO);
    c->sinks = same ? 1 : 2;
    for (uint32_t i = 0; i < c->sinks; i++)
        open_sink(&c->sink[i], loop, i == 0 ? STDOUT_FILENO : STDERR_FILENO);
    for (uint32_t i = 0; i < 2 * ranks; i++)
        c->line[i] = (struct console_line){.sink = &c->sink[i % 2 ? c->sinks - 1 : 0], .rank = i / 2};
    *out = c;
    return 0;
}

void rnl_console_free(struct rnl_console *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < 2 * c->ranks; i++)
        drop(&c->line[i].part);
    for (uint32_t i = 0; i < c->sinks; i++) {
        if (c->sink[i].how == NON_BLOCKING)
            close(c->sink[i].fd);
        drop(&c->sink[i].queue);
    }
    free(c);
}
