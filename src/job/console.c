/* SPDX-License-Identifier: BSD-3-Clause
 *
 * console.c - see console.h. Pipes are watched edge-triggered: a ready one stands in its sink's queue until it was read
 * empty. */
#include "job/console.h"

#include "job/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES = 65536,
    LINE_BYTES = 65536, /* a longer line goes out in parts */
    SINK_BYTES = 65536, /* no more is read for a sink that holds as much */
    BLOCKING_BYTES = 4096
};

struct stream {
    struct sink *sink;
    struct stream *next; /* in the sink's queue */
    char *part;          /* a line that has not ended yet */
    size_t bytes, room;
    uint32_t rank;
    int fd; /* -1 = ended */
    uint8_t ready;
};

struct sink {
    int fd;
    enum { PLAIN, NON_BLOCKING, SOCKET, MAY_BLOCK, ELSEWHERE } how;
    rnl_console_put *put; /* ELSEWHERE */
    void *put_arg;
    int which;
    uint8_t ours, terminal, blocked;
    int error;
    char *data;
    size_t start, end, room;
    struct stream *first, *last;     /* ready to be read */
    const struct stream *unfinished; /* whose line stands open at the end of what was written */
    char last_char;
};

struct rnl_console {
    int epoll, tag;
    uint32_t ranks, sinks;
    struct sink sink[2];
    char *buffer;
    int lost;               /* errno of the first stream that could not be read */
    struct stream stream[]; /* two a rank */
};

/* ---- sinks ---- */

static int may_write(int fd)
{
    return (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/* Our standard streams are shared with others, so they must not be made non-blocking: pipes and terminals are opened
 * once more. */
static void open_sink(struct sink *s, int fd)
{
    struct stat st;
    char path[32];
    memset(s, 0, sizeof *s);
    s->fd = fd;
    s->last_char = '\n';
    s->terminal = isatty(fd) != 0;
    if (fstat(fd, &st) < 0 || S_ISREG(st.st_mode) || !may_write(fd))
        return; /* the last: write(2) will say so */
    if (S_ISSOCK(st.st_mode)) {
        s->how = SOCKET;
        return;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    s->how = own >= 0 ? NON_BLOCKING : MAY_BLOCK;
    if (own >= 0) {
        s->fd = own;
        s->ours = 1;
    }
}

static ssize_t sink_write(struct sink *s, const char *data, size_t n)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    if (s->how == ELSEWHERE) {
        ssize_t went = s->put(s->put_arg, s->which, data, n);
        errno = went < 0 ? EPIPE : EAGAIN;
        return went == 0 ? -1 : went;
    }
    if (s->how == SOCKET)
        return send(s->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (s->how == MAY_BLOCK) {
        if (poll(&p, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        n = n < BLOCKING_BYTES ? n : BLOCKING_BYTES; /* so much a writable pipe takes */
    }
    return write(s->fd, data, n);
}

static void sink_fail(struct sink *s, int error)
{
    s->error = error;
    s->start = s->end = 0;
    s->blocked = 0;
}

static void sink_flush(struct rnl_console *c, struct sink *s)
{
    while (s->start < s->end) {
        ssize_t n = sink_write(s, s->data + s->start, s->end - s->start);
        if (n >= 0) {
            s->start += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!s->blocked && s->how != ELSEWHERE &&
                rnl_source_add(c->epoll, s->fd, RNL_SOURCE_SINK, 0, EPOLLOUT) < 0) {
                sink_fail(s, EIO); /* cannot be waited for, and yet does not take it */
                return;
            }
            s->blocked = 1;
            return;
        } else if (errno != EINTR) {
            int e = errno;
            if (s->blocked && s->how != ELSEWHERE)
                epoll_ctl(c->epoll, EPOLL_CTL_DEL, s->fd, NULL);
            sink_fail(s, e);
            return;
        }
    }
    s->start = s->end = 0;
    if (s->blocked && s->how != ELSEWHERE)
        epoll_ctl(c->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    s->blocked = 0;
}

static void sink_put(struct sink *s, const char *data, size_t n)
{
    if (s->error != 0 || n == 0)
        return;
    if (s->start > 0 && s->end + n > s->room) {
        memmove(s->data, s->data + s->start, s->end - s->start);
        s->end -= s->start;
        s->start = 0;
    }
    if (s->end + n > s->room) {
        size_t room = s->room == 0 ? (size_t)2 * SINK_BYTES : s->room;
        while (s->end + n > room)
            room *= 2;
        char *grown = realloc(s->data, room);
        if (grown == NULL) {
            sink_fail(s, ENOMEM);
            return;
        }
        s->data = grown;
        s->room = room;
    }
    memcpy(s->data + s->end, data, n);
    s->end += n;
    s->last_char = data[n - 1];
}

static void sink_line_start(struct sink *s, const struct stream *by)
{
    if (s->unfinished != NULL && s->unfinished != by)
        sink_put(s, "\n", 1);
    if (s->unfinished != by)
        s->unfinished = NULL;
}

/* Whole lines of one stream, or the open end of one. */
static void emit(struct rnl_console *c, struct stream *t, const char *data, size_t n)
{
    struct sink *s = t->sink;
    char tag[16];
    if (n == 0)
        return;
    sink_line_start(s, t);
    int goes_on = s->unfinished == t && s->last_char != '\r';
    if (!c->tag) {
        sink_put(s, data, n);
    } else {
        size_t tag_bytes = (size_t)snprintf(tag, sizeof tag, "[%u] ", t->rank);
        while (n > 0) {
            const char *newline = memchr(data, '\n', n);
            size_t line = newline == NULL ? n : (size_t)(newline - data) + 1;
            if (!goes_on)
                sink_put(s, tag, tag_bytes);
            sink_put(s, data, line);
            goes_on = 0;
            data += line;
            n -= line;
        }
    }
    s->unfinished = s->last_char == '\n' ? NULL : t;
}

/* ---- streams ---- */

static void drop_part(struct stream *t)
{
    free(t->part);
    t->part = NULL;
    t->bytes = t->room = 0;
}

static void end_stream(struct rnl_console *c, struct stream *t)
{
    if (t->sink != NULL)
        emit(c, t, t->part, t->bytes);
    drop_part(t);
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

static size_t last_end(const struct sink *s, const char *data, size_t n)
{
    const char *newline = memrchr(data, '\n', n), *back = s->terminal ? memrchr(data, '\r', n) : NULL;
    const char *last = back != NULL && (newline == NULL || back > newline) ? back : newline;
    return last == NULL ? 0 : (size_t)(last - data) + 1;
}

static void feed(struct rnl_console *c, struct stream *t, const char *data, size_t n)
{
    size_t whole = last_end(t->sink, data, n);
    if (whole > 0) {
        emit(c, t, t->part, t->bytes);
        emit(c, t, data, whole);
        drop_part(t);
        data += whole;
        n -= whole;
    }
    if (t->bytes + n > t->room && t->bytes + n <= LINE_BYTES) {
        size_t room = t->room == 0 ? 256 : t->room;
        while (t->bytes + n > room)
            room *= 2;
        char *grown = realloc(t->part, room);
        if (grown != NULL) {
            t->part = grown;
            t->room = room;
        }
    }
    if (t->bytes + n > t->room) { /* too long, or no memory: in parts */
        emit(c, t, t->part, t->bytes);
        emit(c, t, data, n);
        drop_part(t);
    } else if (n > 0) {
        memcpy(t->part + t->bytes, data, n);
        t->bytes += n;
    }
}

/* 1 = there may be more to read. */
static int read_some(struct rnl_console *c, struct stream *t)
{
    ssize_t n;
    do {
        n = read(t->fd, c->buffer, READ_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0 && c->lost == 0)
        c->lost = errno;
    if (n <= 0) {
        end_stream(c, t);
        return 0;
    }
    feed(c, t, c->buffer, (size_t)n);
    return 1;
}

void rnl_console_redirect(struct rnl_console *c, rnl_console_put *put, void *arg, int out_terminal, int err_terminal)
{
    c->sinks = 2;
    for (int i = 0; i < 2; i++) {
        if (c->sink[i].ours)
            close(c->sink[i].fd);
        c->sink[i] = (struct sink){.fd = -1,
                                   .how = ELSEWHERE,
                                   .put = put,
                                   .put_arg = arg,
                                   .which = i + 1,
                                   .terminal = (uint8_t)(i == 0 ? out_terminal : err_terminal),
                                   .last_char = '\n'};
    }
}

void rnl_console_feed(struct rnl_console *c, uint32_t rank, int which, const char *data, size_t n)
{
    struct stream *t = &c->stream[2 * rank + (which == 2)];
    t->rank = rank;
    t->sink = &c->sink[which == 2 ? c->sinks - 1 : 0];
    feed(c, t, data, n);
    sink_flush(c, t->sink);
}

int rnl_console_room(const struct rnl_console *c, int which)
{
    const struct sink *s = &c->sink[which == 2 ? c->sinks - 1 : 0];
    return s->error != 0 ? -1 : s->end - s->start < SINK_BYTES;
}

static void enqueue(struct stream *t)
{
    struct sink *s = t->sink;
    if (t->ready || t->fd < 0)
        return;
    t->ready = 1;
    t->next = NULL;
    if (s->first == NULL)
        s->first = t;
    else
        s->last->next = t;
    s->last = t;
}

static struct stream *dequeue(struct sink *s)
{
    struct stream *t = s->first;
    s->first = t->next;
    t->ready = 0;
    return t;
}

/* ---- for the launcher ---- */

void rnl_console_event(struct rnl_console *c, uint32_t index)
{
    if (index < 2 * c->ranks)
        enqueue(&c->stream[index]);
}

int rnl_console_work(struct rnl_console *c)
{
    int more = 0;
    for (uint32_t i = 0; i < c->sinks; i++) {
        struct sink *s = &c->sink[i];
        uint32_t turns = c->ranks * 2; /* each ready stream at most once, then the loop looks at other things */
        sink_flush(c, s);
        while (s->first != NULL && turns-- > 0 && s->end - s->start < SINK_BYTES) {
            struct stream *t = dequeue(s);
            if (t->fd < 0)
                continue;
            if (s->error != 0)
                end_stream(c, t); /* its writers get SIGPIPE */
            else if (read_some(c, t))
                enqueue(t);
            if (s->end - s->start >= SINK_BYTES)
                sink_flush(c, s);
        }
        sink_flush(c, s);
        more |= s->first != NULL && !s->blocked;
    }
    return more;
}

int rnl_console_add(struct rnl_console *c, uint32_t rank, int which, int fd)
{
    uint32_t index = 2 * rank + (which == 2);
    struct stream *t = &c->stream[index];
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        int e = errno;
        close(fd);
        return -e;
    }
    t->fd = fd;
    t->rank = rank;
    t->sink = &c->sink[which == 2 ? c->sinks - 1 : 0];
    int e = rnl_source_add(c->epoll, fd, RNL_SOURCE_STREAM, index, EPOLLIN | EPOLLET);
    if (e < 0) {
        close(fd);
        t->fd = -1;
    }
    return e;
}

unsigned rnl_console_open(const struct rnl_console *c, uint32_t rank, int *unread)
{
    const struct stream *t = &c->stream[2 * rank];
    *unread = t[0].ready || t[1].ready;
    return (unsigned)(t[0].fd >= 0) + (unsigned)(t[1].fd >= 0);
}

void rnl_console_end(struct rnl_console *c, uint32_t rank)
{
    end_stream(c, &c->stream[2 * rank]);
    end_stream(c, &c->stream[2 * rank + 1]);
}

int rnl_console_waiting(const struct rnl_console *c)
{
    int waiting = 0;
    for (uint32_t i = 0; i < c->sinks; i++)
        waiting |= c->sink[i].start < c->sink[i].end;
    return waiting;
}

void rnl_console_say(struct rnl_console *c, const char *line)
{
    struct sink *s = &c->sink[c->sinks - 1];
    sink_line_start(s, NULL);
    sink_put(s, line, strlen(line));
    sink_put(s, "\n", 1);
    sink_flush(c, s);
}

int rnl_console_lost(const struct rnl_console *c)
{
    return c->lost != 0;
}

int rnl_console_error(const struct rnl_console *c)
{
    if (c->lost != 0)
        return c->lost;
    for (uint32_t i = 0; i < c->sinks; i++)
        if (c->sink[i].error != 0 && c->sink[i].error != EPIPE)
            return c->sink[i].error;
    return 0;
}

int rnl_console_new(int epoll, uint32_t ranks, int tag, struct rnl_console **out)
{
    struct stat one, two;
    struct rnl_console *c = calloc(1, sizeof *c + 2 * ranks * sizeof c->stream[0]);
    if (c == NULL || (c->buffer = malloc(READ_BYTES)) == NULL) {
        free(c);
        return -ENOMEM;
    }
    c->epoll = epoll;
    c->ranks = ranks;
    c->tag = tag;
    for (uint32_t i = 0; i < 2 * ranks; i++)
        c->stream[i].fd = -1;
    /* Both into one file: one sink, or a line of the one could land in a half-written line of the other. */
    int same = fstat(STDOUT_FILENO, &one) == 0 && fstat(STDERR_FILENO, &two) == 0 && one.st_dev == two.st_dev &&
               one.st_ino == two.st_ino && may_write(STDOUT_FILENO) == may_write(STDERR_FILENO);
    c->sinks = same ? 1 : 2;
    open_sink(&c->sink[0], STDOUT_FILENO);
    if (!same)
        open_sink(&c->sink[1], STDERR_FILENO);
    *out = c;
    return 0;
}

void rnl_console_free(struct rnl_console *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < 2 * c->ranks; i++) {
        if (c->stream[i].fd >= 0)
            close(c->stream[i].fd);
        free(c->stream[i].part);
    }
    for (uint32_t i = 0; i < c->sinks; i++) {
        if (c->sink[i].ours)
            close(c->sink[i].fd);
        free(c->sink[i].data);
    }
    free(c->buffer);
    free(c);
}
