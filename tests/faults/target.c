/* SPDX-License-Identifier: BSD-3-Clause
 *
 * target.c - the program whose calls fail: opens, connects, exchanges messages of each kind, closes; as a job of one,
 * as a hub of two threads, as a rank. A negative status ends it with 3 and one sentence; if anything of the library's
 * is left behind after a close or a failed open, with 9. */
#include "faults/faults.h"

#include "runnel/runnel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT = 1, STREAM, WHOLE, KEPT, ASKED, ANSWER };
enum { LONG_BYTES = 300000, BURST = 200, FDS = 256 };

struct place {
    rnl_endpoint *ep;
    unsigned rank, peers;
    unsigned shorts, streams, wholes, kept, asked, answers, posted;
    rnl_kept *keep;
    int bad, closing;
    int sends, hears; /* else it only answers */
};

static int one_way;
static unsigned char bytes_out[LONG_BYTES], had[FDS];

static int say(const struct place *p, const char *what, int status)
{
    fprintf(stderr, "target: rank %u: %s: %s: %s\n", p->rank, what, rnl_status_name(status), rnl_last_error()->text);
    return status;
}

/* ---- what is left ---- */

/* Not by fcntl: those calls would be counted, and fail. */
static int is_open(int fd)
{
    char path[32], target[2];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, target, sizeof target) > 0;
}

static void note_descriptors(void)
{
    for (int fd = 0; fd < FDS; fd++)
        had[fd] = (unsigned char)is_open(fd);
}

static int left_behind(void)
{
    char line[512];
    int left = 0;
    for (int fd = 0; fd < FDS; fd++) {
        if (had[fd] || !is_open(fd))
            continue;
        fprintf(stderr, "target: descriptor %d is left\n", fd);
        left = 1;
    }
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, "memfd:runnel") == NULL)
            continue;
        fprintf(stderr, "target: a mapping is left: %s", line);
        left = 1;
    }
    if (maps != NULL)
        fclose(maps);
    return left;
}

/* ---- handlers ---- */

static int on_short(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct place *p = ctx;
    (void)peer;
    p->bad |= n != 8 || memcmp(buf, "8 bytes", 8) != 0;
    p->shorts++;
    return RNL_DONE;
}

static int on_stream(rnl_stream *s, unsigned peer, void *ctx)
{
    struct place *p = ctx;
    (void)peer;
    for (size_t at = 0; at < LONG_BYTES; at += 50000) {
        unsigned char part[5000];
        for (size_t i = 0; i < 50000; i += sizeof part) {
            int status = rnl_receive(s, part, sizeof part);
            if (status < 0) {
                p->bad |= 1;
                say(p, "rnl_receive", status);
                return RNL_DONE;
            }
            p->bad |= memcmp(part, bytes_out + at + i, sizeof part) != 0;
        }
    }
    p->streams++;
    return RNL_DONE;
}

static int on_whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct place *p = ctx;
    (void)peer;
    if (!buf)
        fprintf(stderr, "target: rank %u: no memory for %zu bytes\n", p->rank, n);
    p->bad |= !buf || n != LONG_BYTES || memcmp(buf, bytes_out, n) != 0;
    p->wholes++;
    return RNL_DONE;
}

static int on_kept(rnl_stream *s, unsigned peer, void *ctx)
{
    struct place *p = ctx;
    (void)peer;
    rnl_kept *before = p->keep;
    if (p->closing)
        return RNL_DONE; /* nobody would free it */
    int status = rnl_keep(s, &p->keep);
    if (status == 0)
        rnl_kept_free(before);
    if (status < 0) {
        p->bad |= 1;
        say(p, "rnl_keep", status);
        return RNL_DONE;
    }
    p->kept++;
    return RNL_KEEP;
}

static int on_asked(rnl_stream *s, unsigned peer, void *ctx)
{
    struct place *p = ctx;
    (void)peer;
    int status = rnl_reply(s, ANSWER, bytes_out, 3000);
    if (status < 0) {
        p->bad |= 1;
        say(p, "rnl_reply", status);
    }
    p->asked++;
    return RNL_DONE;
}

static int on_answer(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct place *p = ctx;
    (void)peer;
    if (!buf)
        fprintf(stderr, "target: rank %u: no memory for an answer\n", p->rank);
    p->bad |= !buf || n != 3000 || memcmp(buf, bytes_out, n) != 0;
    p->answers++;
    return RNL_DONE;
}

static void on_posted(void *arg, int status)
{
    struct place *p = arg;
    p->bad |= status < 0;
    p->posted++;
}

/* ---- the exchange ---- */

static int listen_to_all(struct place *p)
{
    int status = rnl_handler_whole(p->ep, SHORT, on_short, p, 0);
    if (status >= 0)
        status = rnl_handler_stream(p->ep, STREAM, on_stream, p);
    if (status >= 0)
        status = rnl_handler_whole(p->ep, WHOLE, on_whole, p, 0);
    if (status >= 0)
        status = rnl_handler_stream(p->ep, KEPT, on_kept, p);
    if (status >= 0)
        status = rnl_handler_stream(p->ep, ASKED, on_asked, p);
    if (status >= 0)
        status = rnl_handler_whole(p->ep, ANSWER, on_answer, p, 0);
    return status < 0 ? say(p, "registering", status) : 0;
}

static int send_long(struct place *p, unsigned peer, unsigned handler, size_t answer, size_t n)
{
    const struct rnl_message b = {.peer = peer, .handler = handler, .bound = n, .answer = answer};
    rnl_stream *s;
    int status = rnl_begin(p->ep, &b, &s);
    for (size_t at = 0; status == 0 && at < n; at += 10000)
        status = rnl_piece(s, bytes_out + at, n - at < 10000 ? n - at : 10000);
    return status < 0 ? status : rnl_end(s);
}

static int send_all(struct place *p, unsigned peer)
{
    const struct rnl_message b = {.peer = peer, .handler = WHOLE, .bound = LONG_BYTES};
    const struct rnl_buffer piece = {bytes_out, LONG_BYTES};
    int status = 0;
    for (int i = 0; status == 0 && i < BURST; i++)
        status = rnl_send(p->ep, peer, SHORT, "8 bytes", 8);
    if (status < 0)
        return say(p, "rnl_send", status);
    status = send_long(p, peer, STREAM, 0, LONG_BYTES);
    if (status == 0)
        status = send_long(p, peer, WHOLE, 0, LONG_BYTES);
    if (status == 0)
        status = send_long(p, peer, KEPT, 0, 100);
    if (status == 0)
        status = send_long(p, peer, ASKED, 3000, 20);
    if (status < 0)
        return say(p, "a stream", status);
    status = rnl_post(p->ep, &b, &piece, 1, on_posted, p);
    return status < 0 ? say(p, "rnl_post", status) : 0;
}

static int all_here(const struct place *p)
{
    unsigned in = p->hears ? p->peers : 0, out = p->sends ? p->peers : 0;
    return p->shorts == BURST * in && p->streams == in && p->wholes == 2 * in && p->kept == in && p->asked == in &&
           p->answers == out && p->posted == out;
}

static int take_all(struct place *p)
{
    struct pollfd fd = {.fd = rnl_fd(p->ep), .events = POLLIN};
    if (fd.fd < 0)
        return say(p, "rnl_fd", fd.fd);
    for (int turn = 0; !all_here(p); turn++) {
        int64_t n;
        if (p->bad)
            return -1;
        if (turn % 2 == 0) {
            n = rnl_extract(p->ep, SIZE_MAX);
            if (n == 0 && poll(&fd, 1, 100) < 0 && errno != EINTR) {
                fprintf(stderr, "target: poll: %s\n", strerror(errno));
                return -1;
            }
        } else {
            n = rnl_wait(p->ep, 20000000);
        }
        if (n < 0 && n != RNL_TIMED_OUT)
            return say(p, turn % 2 == 0 ? "rnl_extract" : "rnl_wait", (int)n);
    }
    return 0;
}

/* Negative: said why. */
static int live(struct place *p, const struct rnl_options *opt)
{
    int status = rnl_open(&p->ep, opt);
    if (status < 0)
        return say(p, "rnl_open", status);
    p->rank = rnl_rank(p->ep);
    unsigned size = rnl_size(p->ep), first = size > 1 ? p->rank + 1 : 0;
    p->peers = size > 1 ? size - 1 : 1;
    status = listen_to_all(p);
    p->sends = !one_way || p->rank == 0;
    p->hears = !one_way || p->rank != 0;
    for (unsigned i = 0; status == 0 && p->sends && i < p->peers; i++)
        status = send_all(p, (first + i) % size);
    if (status == 0)
        status = take_all(p);
    if (status == 0 && p->bad) {
        fprintf(stderr, "target: rank %u: a wrong byte\n", p->rank);
        status = -1;
    }
    if (status < 0 && size > 1) {
        fflush(NULL);
        _exit(FAULTS_FAILED); /* the others would wait in vain for what was to come */
    }
    rnl_kept_free(p->keep);
    p->closing = 1;
    int closed = rnl_close(p->ep);
    if (closed < 0)
        say(p, "rnl_close", closed);
    return status < 0 ? status : closed;
}

static void *live_in_hub(void *arg)
{
    const struct rnl_options *opt = arg;
    struct place p = {.rank = opt->hub_rank};
    if (live(&p, opt) < 0) {
        fflush(NULL);
        _exit(FAULTS_FAILED); /* the other thread would wait in vain */
    }
    return NULL;
}

static int live_as_hub(void)
{
    rnl_hub *hub;
    pthread_t thread;
    struct place p = {.rank = 0};
    int status = rnl_hub_new(2, &hub);
    if (status < 0)
        return say(&p, "rnl_hub_new", status);
    struct rnl_options opt[2] = {{.size = sizeof opt[0], .hub = hub},
                                 {.size = sizeof opt[0], .hub = hub, .hub_rank = 1}};
    status = pthread_create(&thread, NULL, live_in_hub, &opt[1]);
    if (status != 0) {
        fprintf(stderr, "target: pthread_create: %s\n", strerror(status));
        rnl_hub_free(hub);
        return -1;
    }
    live_in_hub(&opt[0]);
    pthread_join(thread, NULL);
    rnl_hub_free(hub);
    return 0;
}

/* ---- places: what tests/multi/test_places.sh needs besides ---- */

/* With a limit of 64 descriptors it shows whether each close gives all of them back. */
static int live_often(void)
{
    for (int i = 0; i < 100; i++) {
        struct place p = {.rank = 0};
        p.peers = 1;
        if (live(&p, NULL) < 0)
            return -1;
    }
    return 0;
}

/* Of the kinds that the library makes. */
static void show_descriptors(void)
{
    char path[32], target[200];
    for (int fd = 3; fd < FDS; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        if (n > 0 && (strncmp(target, "/memfd:", 7) == 0 || strncmp(target, "socket:", 7) == 0 ||
                      strncmp(target, "anon_inode:", 11) == 0))
            printf("inherited %d %s\n", fd, target);
    }
}

/* A child is refused; what it executes inherits nothing; the parent goes on. */
static int live_and_fork(void)
{
    struct place p = {.rank = 0};
    int status = rnl_open(&p.ep, NULL), ended = 0;
    if (status < 0)
        return say(&p, "rnl_open", status);
    unsigned next = (rnl_rank(p.ep) + 1) % rnl_size(p.ep);
    status = listen_to_all(&p);
    if (status == 0 && rnl_fd(p.ep) < 0)
        status = -1;
    if (status == 0)
        status = rnl_send(p.ep, next, SHORT, "8 bytes", 8);
    fflush(NULL);
    pid_t pid = status == 0 ? fork() : -1;
    if (pid == 0) {
        if (rnl_send(p.ep, next, SHORT, "8 bytes", 8) != RNL_ERR_FORKED || rnl_close(p.ep) != RNL_ERR_FORKED)
            _exit(1);
        execl("/proc/self/exe", "faults", "target", "show", (char *)NULL);
        _exit(2);
    }
    if (pid < 0 || waitpid(pid, &ended, 0) != pid || ended != 0) {
        fprintf(stderr, "target: the child ended with %d\n", ended);
        _exit(FAULTS_FAILED);
    }
    status = rnl_send(p.ep, next, SHORT, "8 bytes", 8);
    int closed = rnl_close(p.ep);
    if (status < 0 || closed < 0 || p.shorts != 2 || p.bad)
        return say(&p, "after a fork", status < 0 ? status : closed);
    return 0;
}

int faults_target(const char *as)
{
    struct place p = {.rank = 0};
    for (size_t i = 0; i < sizeof bytes_out; i++)
        bytes_out[i] = (unsigned char)(i * 7 + i / 256);
    one_way = strcmp(as, "listen") == 0;
    note_descriptors();
    if (strcmp(as, "show") == 0) {
        show_descriptors();
        return 0;
    }
    int status = strcmp(as, "hub") == 0     ? live_as_hub()
                 : strcmp(as, "often") == 0 ? live_often()
                 : strcmp(as, "fork") == 0  ? live_and_fork()
                                            : live(&p, NULL);
    if (left_behind())
        return FAULTS_LEFT;
    if (status < 0)
        return FAULTS_FAILED;
    printf("done\n");
    return 0;
}
