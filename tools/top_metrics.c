/* SPDX-License-Identifier: BSD-3-Clause
 *
 * top_metrics.c - the counters of a job's ranks as Prometheus reads them (text format 0.0.4), on a port or in a file
 * (top.h). The server answers one reader after another, each within a bounded time. Without an address it listens on
 * the loopback interface only: who may read the counters is not asked. */
#include "info.h"
#include "top.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

enum { NAMES_MAX = 256, REQUEST_BYTES = 4096, READER_MS = 1000 };

/* ---- the text ---- */

/* "FM.errors" becomes runnel_fm_errors. */
static void put_name(const char *name, FILE *to)
{
    fputs("runnel_", to);
    for (; *name; name++)
        fputc(isalnum((unsigned char)*name) ? tolower((unsigned char)*name) : '_', to);
}

static void put_quoted(const char *text, FILE *to)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', to);
        fputc(*text, to);
    }
}

/* What may also fall: a state, and no count of what has happened. */
static bool is_gauge(const char *name)
{
    static const char *const gauges[] = {"kept_bytes",           "receive_budget_bytes", "stacks_in_use",
                                         "waiting_for_rank",     "waiting_since_ns",     "missing_handler",
                                         "missing_handler_rank", "protection",           "wait_for",
                                         "wait_since_ns",        "suspended_rank"};
    for (unsigned i = 0; i < sizeof gauges / sizeof *gauges; i++)
        if (strcmp(name, gauges[i]) == 0)
            return true;
    return false;
}

static void put_labels(const struct job_look *l, unsigned rank, FILE *to)
{
    char program[64];
    info_program(&l->rank[rank].page.core, l->rank[rank].pid, program, sizeof program);
    fprintf(to, "{job=\"%d\",rank=\"%u\",program=\"", l->job, rank);
    put_quoted(program, to);
    fputs("\"} ", to);
}

/* All samples of one counter, under one head. Ranks may be of different releases, so each is searched for it. */
static void put_counter(const struct job_look *l, const char *name, const char *text, FILE *to)
{
    const char *other, *other_text;
    uint64_t value;
    fputs("# HELP ", to);
    put_name(name, to);
    fprintf(to, " %s\n# TYPE ", text);
    put_name(name, to);
    fprintf(to, " %s\n", is_gauge(name) ? "gauge" : "counter");
    for (unsigned k = 0; k < l->size; k++)
        for (unsigned i = 0; l->rank[k].pid && rnl_counters_item(&l->rank[k].page, i, &other, &other_text, &value);
             i++) {
            if (strcmp(other, name) != 0)
                continue;
            put_name(name, to);
            put_labels(l, k, to);
            fprintf(to, "%llu\n", (unsigned long long)value);
            break;
        }
}

void top_put_metrics(const struct job_look *l, FILE *to)
{
    const char *names[NAMES_MAX], *name, *text;
    unsigned n = 0;
    uint64_t value;
    fprintf(to,
            "# HELP runnel_ranks ranks of the job that have an endpoint on this host\n# TYPE runnel_ranks gauge\n"
            "runnel_ranks{job=\"%d\"} %u\n# HELP runnel_size ranks of the job\n# TYPE runnel_size gauge\n"
            "runnel_size{job=\"%d\"} %u\n",
            l->job, l->found, l->job, l->size);
    for (unsigned k = 0; k < l->size; k++)
        for (unsigned i = 0; l->rank[k].pid && rnl_counters_item(&l->rank[k].page, i, &name, &text, &value); i++) {
            unsigned known = 0;
            while (known < n && strcmp(names[known], name) != 0)
                known++;
            if (known < n || n == NAMES_MAX)
                continue;
            names[n++] = name;
            put_counter(l, name, text, to);
        }
}

/* ---- where it goes ---- */

static volatile sig_atomic_t ended;

static void on_signal(int signal)
{
    (void)signal;
    ended = 1;
}

/* Replaces the file, so that a reader sees one whole state. 0 or errno. */
static int replace(const struct job_look *l, const char *path)
{
    char *beside;
    if (asprintf(&beside, "%s.new", path) < 0)
        return ENOMEM;
    FILE *to = fopen(beside, "we");
    int e = to ? 0 : errno;
    if (to) {
        top_put_metrics(l, to);
        const bool bad = ferror(to) != 0;
        e = (fclose(to) != 0 || bad) && e == 0 ? EIO : e;
    }
    if (e == 0 && rename(beside, path) < 0)
        e = errno;
    if (e != 0)
        (void)unlink(beside);
    free(beside);
    return e;
}

/* Splits "PORT", "ADDRESS:PORT" and "[ADDRESS]:PORT" in place. Returns false if it is none of these. */
static bool is_port(char *where, const char **address, const char **port)
{
    char *colon = strrchr(where, ':'), *digits = colon ? colon + 1 : where;
    if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0' || atoi(digits) < 1 || atoi(digits) > 65535 ||
        strlen(digits) > 5 || strchr(where, '/'))
        return false;
    *port = digits;
    *address = "127.0.0.1";
    if (!colon)
        return true;
    *colon = '\0';
    const size_t n = strlen(where);
    if (where[0] == '[' && n > 2 && where[n - 1] == ']') {
        where[n - 1] = '\0';
        where++;
    }
    *address = where;
    return true;
}

static int listen_at(const char *address, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int e = getaddrinfo(address, port, &hints, &found), on = 1;
    if (e != 0) {
        fprintf(stderr, "runnel top: --metrics: there is no address %s: %s\n", address, gai_strerror(e));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, 8) < 0) {
        fprintf(stderr, "runnel top: --metrics: cannot listen at %s, port %s: %s; name another port\n", address, port,
                strerror(errno));
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits for a reader. Returns false when its time is over. */
static bool is_ready(int fd, short what, int64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = what};
    const int64_t left = until_ms - now_ms();
    return left > 0 && poll(&p, 1, (int)left) == 1;
}

static void answer(int fd, const char *head, const char *body, size_t bytes, int64_t until_ms)
{
    char line[256];
    const int n =
        snprintf(line, sizeof line, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", head, bytes);
    const char *part[2] = {line, body};
    const size_t size[2] = {(size_t)n, bytes};
    for (int i = 0; i < 2; i++)
        for (size_t done = 0; done < size[i];) {
            const ssize_t went = send(fd, part[i] + done, size[i] - done, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (went < 0 && (errno != EAGAIN || !is_ready(fd, POLLOUT, until_ms)))
                return;
            done += went > 0 ? (size_t)went : 0;
        }
}

/* One reader: GET / or GET /metrics. */
static void serve(struct job_look *l, int fd)
{
    const int64_t until = now_ms() + READER_MS;
    char request[REQUEST_BYTES + 1] = "", *text = NULL;
    size_t have = 0, bytes = 0;
    while (have < REQUEST_BYTES && !strstr(request, "\r\n\r\n") && !strstr(request, "\n\n")) {
        const ssize_t n =
            is_ready(fd, POLLIN, until) ? recv(fd, request + have, REQUEST_BYTES - have, MSG_DONTWAIT) : 0;
        if (n <= 0)
            return;
        have += (size_t)n;
        request[have] = '\0';
    }
    if (strncmp(request, "GET ", 4) != 0) {
        answer(fd, "405 Method Not Allowed", "", 0, until);
        return;
    }
    const size_t path = strcspn(request + 4, " \r\n?");
    if (!(path == 1 && request[4] == '/') && !(path == 8 && strncmp(request + 4, "/metrics", 8) == 0)) {
        answer(fd, "404 Not Found", "", 0, until);
        return;
    }
    (void)job_look_again(l);
    FILE *to = open_memstream(&text, &bytes);
    if (to) {
        top_put_metrics(l, to);
        if (fclose(to) == 0)
            answer(fd, "200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8", text, bytes, until);
    }
    free(text);
}

/* The ranks that are there, and those that have come meanwhile. */
static int look(struct job_look *l)
{
    const int job = l->job, left = job_look_again(l);
    if (left > 0 && l->found == l->size)
        return left;
    job_look_free(l);
    return job_look_find(l, job);
}

int top_metrics(struct job_look *l, const char *where, double interval)
{
    const struct sigaction act = {.sa_handler = on_signal};
    const char *address, *port;
    char *copy = strdup(where);
    int status = copy ? 0 : EX_OSERR, fd = -1, e = 0;
    const bool is_file = copy && !is_port(copy, &address, &port);
    if (copy && !is_file && (fd = listen_at(address, port)) < 0)
        status = EX_UNAVAILABLE;
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    while (status == 0 && !ended) {
        if (is_file && (e = replace(l, where)) != 0) {
            fprintf(stderr, "runnel top: --metrics: cannot write %s: %s\n", where, strerror(e));
            status = EX_CANTCREAT;
            break;
        }
        const int64_t until = now_ms() + (int64_t)(interval * 1000);
        while (!ended && now_ms() < until) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            const int64_t left = until - now_ms();
            if (poll(&p, 1, left > 0 ? (int)left : 0) != 1)
                continue;
            const int reader = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (reader < 0)
                continue;
            serve(l, reader);
            close(reader);
        }
        if (!ended && look(l) <= 0)
            break; /* the job has ended */
    }
    if (fd >= 0)
        close(fd);
    free(copy);
    return status;
}
