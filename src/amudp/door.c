/* SPDX-License-Identifier: BSD-3-Clause
 *
 * door.c - see door.h: listening, guests, and commands, each of which has two processes of its own, one for either
 * direction, so that neither waits for the other. */
#include "amudp/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t rnl_door_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* ---- listening ---- */

static int listen_here(const char *name)
{
    struct sockaddr_un at;
    socklen_t n = rnl_amudp_place_address(name, -1, &at);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 128) == 0)
        return fd;
    int e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return -1;
}

/* On one address; on all, of both kinds, or where there is no IPv6 of IPv4. */
static int listen_far(const char *address)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    struct addrinfo *all;
    int fd = -1, no = 0;
    if (getaddrinfo(address != NULL ? address : "::", "0", &hints, &all) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    fd = socket(all->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && address == NULL)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    int bound = fd >= 0 && bind(fd, all->ai_addr, all->ai_addrlen) == 0;
    freeaddrinfo(all);
    if (bound && listen(fd, 128) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return address == NULL ? listen_far("0.0.0.0") : -1;
}

int rnl_door_open(struct rnl_door *d, const char *name)
{
    d->tcp = -1;
    d->port = 0;
    d->guest = NULL;
    d->guests = d->room = 0;
    d->local = listen_here(name);
    return d->local >= 0 ? 0 : errno == EADDRINUSE ? 1 : -1;
}

int rnl_door_listen(struct rnl_door *d, const char *address)
{
    struct sockaddr_storage at;
    struct sockaddr_in6 in6;
    socklen_t n = sizeof at;
    d->tcp = listen_far(address);
    if (d->tcp < 0 || getsockname(d->tcp, (struct sockaddr *)&at, &n) < 0)
        return -1;
    memcpy(&in6, &at, sizeof in6); /* the port is in the same place */
    d->port = ntohs(in6.sin6_port);
    return 0;
}

static void drop(struct rnl_door *d, size_t i)
{
    if (d->guest[i].fd >= 0)
        close(d->guest[i].fd);
    rnl_channel_free(d->guest[i].channel);
    d->guest[i] = d->guest[--d->guests];
}

void rnl_door_close(struct rnl_door *d)
{
    while (d->guests > 0)
        drop(d, d->guests - 1);
    free(d->guest);
    d->guest = NULL;
    d->room = 0;
    if (d->local >= 0)
        close(d->local);
    if (d->tcp >= 0)
        close(d->tcp);
    d->local = d->tcp = -1;
}

int rnl_door_address(int fd, int ours, char out[RNL_DOOR_ADDRESS])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct sockaddr_storage at;
    struct sockaddr_in6 in6;
    socklen_t n = sizeof at;
    struct sockaddr *sa = (struct sockaddr *)&at;
    if ((ours ? getsockname(fd, sa, &n) : getpeername(fd, sa, &n)) < 0)
        return -1;
    memcpy(&in6, &at, sizeof in6);
    if (at.ss_family == AF_INET6 && memcmp(&in6.sin6_addr, mapped, sizeof mapped) == 0)
        return inet_ntop(AF_INET, (const char *)&in6.sin6_addr + 12, out, RNL_DOOR_ADDRESS) != NULL ? 0 : -1;
    return getnameinfo((struct sockaddr *)&at, n, out, RNL_DOOR_ADDRESS, NULL, 0, NI_NUMERICHOST) == 0 ? 0 : -1;
}

/* ---- commands ---- */

pid_t rnl_amudp_fork(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the parent runs in the child */
    pid_t pid = fork();
    if (pid == 0) {
        for (int s = 1; s < NSIG; s++)
            (void)signal(s, SIG_DFL);
        sigemptyset(&before);
    }
    int e = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = e;
    return pid;
}

static pid_t apart(void) /* ... and the child ends with its parent */
{
    pid_t parent = getpid(), pid = rnl_amudp_fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}

/* What the other side says goes to the command's input, which ends when that does. */
_Noreturn static void feed(struct rnl_channel *c, int to)
{
    enum rnl_channel_step step;
    while ((step = rnl_channel_wait(c, -1)) == RNL_CHANNEL_MESSAGE)
        if (c->type != 'i' || c->bytes == 0 || rnl_channel_pour(c, to) < 0)
            break;
    _exit(0);
}

static void copy_out(struct rnl_channel *c, const int from[2])
{
    struct pollfd p[2] = {{.fd = from[0], .events = POLLIN}, {.fd = from[1], .events = POLLIN}};
    unsigned char bytes[RNL_CHANNEL_TEXT];
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++) {
            if (p[i].fd < 0 || p[i].revents == 0)
                continue;
            ssize_t n = read(p[i].fd, bytes, sizeof bytes);
            if (n < 0 && errno == EINTR)
                continue;
            if (rnl_channel_send(c, i == 0 ? 'o' : 'e', bytes, n > 0 ? (size_t)n : 0) < 0)
                return;
            if (n <= 0)
                p[i].fd = -1;
        }
    }
}

_Noreturn static void serve(struct rnl_channel *c, const char *command)
{
    int in[2], out[2], errors[2], status = 0;
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0)
        _exit(1);
    pid_t child = apart();
    if (child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(errors[1], STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    close(errors[1]);
    pid_t feeder = child > 0 ? apart() : -1;
    if (feeder == 0) {
        signal(SIGPIPE, SIG_IGN);
        close(out[0]);
        close(errors[0]);
        feed(c, in[1]);
    }
    close(in[1]);
    const int from[2] = {out[0], errors[0]};
    if (feeder > 0)
        copy_out(c, from);
    if (child > 0 && waitpid(child, &status, 0) == child) {
        int32_t code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        (void)rnl_channel_send(c, 'q', &code, sizeof code);
    }
    _exit(0);
}

/* In a process of its own, which nobody waits for. What the terminal says to the job is the launcher's to pass on. */
static void execute(struct rnl_door *d, struct rnl_channel *c)
{
    pid_t pid = apart();
    if (pid != 0)
        return;
    (void)setpgid(0, 0);
    signal(SIGPIPE, SIG_IGN);
    if (d->local >= 0)
        close(d->local);
    if (d->tcp >= 0)
        close(d->tcp);
    serve(c, (const char *)c->text);
}

/* ---- guests ---- */

static struct rnl_door_guest *add(struct rnl_door *d)
{
    if (d->guests == d->room) {
        size_t room = d->room > 0 ? 2 * d->room : 16;
        struct rnl_door_guest *more = realloc(d->guest, room * sizeof *more);
        if (more == NULL)
            return NULL;
        d->guest = more;
        d->room = room;
    }
    struct rnl_door_guest *g = &d->guest[d->guests++];
    *g = (struct rnl_door_guest){.fd = -1, .wanted = -1, .host = -1};
    return g;
}

static int come_here(struct rnl_door *d) /* 0: nobody waits */
{
    struct ucred who;
    socklen_t n = sizeof who;
    int fd = accept4(d->local, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return 0;
    struct rnl_door_guest *g = NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid())
        g = add(d);
    if (g == NULL)
        close(fd);
    else
        g->fd = fd;
    return 1;
}

/* Whether one more may come by TCP; *make_room (-1: nobody) goes for it. */
static int has_room(const struct rnl_door *d, int *make_room)
{
    size_t unproven = 0, oldest = 0;
    for (size_t i = 0; i < d->guests; i++) {
        const struct rnl_channel *c = d->guest[i].channel;
        if (c == NULL || c->open)
            continue;
        if (unproven++ == 0 || d->guest[i].since_ms < d->guest[oldest].since_ms)
            oldest = i;
    }
    *make_room = unproven < RNL_DOOR_UNPROVEN ? -1 : (int)oldest;
    return unproven < RNL_DOOR_UNPROVEN || rnl_door_ms() - d->guest[oldest].since_ms >= RNL_DOOR_HURRY_MS;
}

static void come_from_afar(struct rnl_door *d)
{
    int make_room;
    if (!has_room(d, &make_room))
        return;
    int fd = accept4(d->tcp, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (make_room >= 0)
        drop(d, (size_t)make_room);
    struct rnl_channel *c = rnl_channel_new(fd, 1, d->key);
    struct rnl_door_guest *g = c != NULL ? add(d) : NULL;
    if (g == NULL) {
        rnl_channel_free(c);
        return;
    }
    g->channel = c;
    g->since_ms = rnl_door_ms();
}

/* 0 = it is gone. */
static int hear_worker(struct rnl_door *d, struct rnl_door_guest *g)
{
    unsigned char said[8];
    int32_t wanted;
    ssize_t n = recv(g->fd, said, sizeof said, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 1;
    if (n == 5 && said[0] == 'w' && g->state == RNL_DOOR_SILENT) {
        memcpy(&wanted, said + 1, sizeof wanted);
        g->state = RNL_DOOR_KNOCKED;
        g->wanted = wanted;
        d->worker(d->ctx, wanted, RNL_DOOR_COME);
        return 1;
    }
    if (n == 1 && said[0] == 't' && g->state == RNL_DOOR_TOLD) {
        g->state = RNL_DOOR_PLACED;
        return 1;
    }
    if (g->state == RNL_DOOR_KNOCKED || g->state == RNL_DOOR_TOLD)
        d->worker(d->ctx, g->wanted, g->state == RNL_DOOR_TOLD ? RNL_DOOR_MISSING : RNL_DOOR_GONE);
    return 0;
}

static int hear_channel(struct rnl_door *d, struct rnl_door_guest *g)
{
    for (;;) {
        enum rnl_channel_step step = rnl_channel_step(g->channel);
        if (step == RNL_CHANNEL_WAITS)
            return g->channel->open || rnl_door_ms() - g->since_ms < RNL_DOOR_PATIENCE_MS;
        if (step == RNL_CHANNEL_OPENS)
            continue;
        if (step == RNL_CHANNEL_END) {
            if (g->channel->open)
                d->message(d->ctx, g, -1, NULL, 0);
            return 0;
        }
        if (g->channel->type == 'c') {
            execute(d, g->channel);
            return 0;
        }
        d->message(d->ctx, g, g->channel->type, g->channel->text, g->channel->bytes);
    }
}

void rnl_door_turn(struct rnl_door *d, int ms, int also)
{
    enum { WHEN_FULL_MS = 50 };
    size_t n = d->guests;
    int somebody, room = has_room(d, &somebody);
    struct pollfd *p = calloc(n + 3, sizeof *p);
    if (p == NULL)
        return;
    p[n] = (struct pollfd){.fd = d->local, .events = POLLIN};
    p[n + 1] = (struct pollfd){.fd = room ? d->tcp : -1, .events = POLLIN};
    p[n + 2] = (struct pollfd){.fd = also, .events = POLLIN};
    for (size_t i = 0; i < n; i++) {
        const struct rnl_door_guest *g = &d->guest[i];
        p[i] = (struct pollfd){.fd = g->channel != NULL ? g->channel->fd : g->fd, .events = POLLIN};
    }
    (void)poll(p, n + 3, room || ms < WHEN_FULL_MS ? ms : WHEN_FULL_MS);
    for (size_t i = n; i-- > 0;) { /* who leaves is replaced by one that was looked at */
        struct rnl_door_guest *g = &d->guest[i];
        if (p[i].revents == 0 && (g->channel == NULL || g->channel->open))
            continue;
        if (!(g->channel != NULL ? hear_channel(d, g) : hear_worker(d, g)))
            drop(d, i);
    }
    if (p[n].revents != 0)
        for (int i = 0; i < SOMAXCONN && come_here(d); i++)
            ;
    if (p[n + 1].revents != 0)
        come_from_afar(d);
    free(p);
}

void rnl_door_shut(struct rnl_door *d)
{
    (void)shutdown(d->local, SHUT_RD); /* Linux: connect is refused, accept hands out those in the queue */
}

void rnl_door_tell(struct rnl_door *d, int type, const void *text, size_t bytes)
{
    unsigned char said[1 + RNL_CHANNEL_TEXT];
    if (bytes > RNL_CHANNEL_TEXT)
        bytes = RNL_CHANNEL_TEXT;
    said[0] = (unsigned char)type;
    memcpy(said + 1, text, bytes);
    for (size_t i = 0; i < d->guests; i++) {
        struct rnl_door_guest *g = &d->guest[i];
        if (g->fd < 0)
            continue;
        (void)send(g->fd, said, bytes + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (type == 'l' && g->state == RNL_DOOR_KNOCKED)
            g->state = RNL_DOOR_TOLD;
    }
}
