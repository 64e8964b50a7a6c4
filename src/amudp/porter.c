/* SPDX-License-Identifier: BSD-3-Clause
 *
 * porter.c - a worker's knock at the door of its host, and the porter, whom the first worker leaves there if the master
 * is on another host. Where the master listens is in the file that has the key:
 *
 *   key 32 | lines: "master ADDRESS PORT", "host NAME ADDRESS PORT" (gather.c) */
#include "amudp/door.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WRONG(...) (rnl_amudp_wrong(AM_ERR_RESOURCE, "AMUDP_SPMDStartup", __VA_ARGS__), -1)

enum {
    KNOCKS = 500,
    BETWEEN_NS = 10000000,
    FAREWELL_MS = 1000,
    SEEK_MS = 30000, /* until then a porter looks for its master */
    PAUSE_MS = 50,   /* between the first two times, then twice that each time */
    PAUSE_MAX_MS = 2000
};

int rnl_amudp_call(const char *address, const char *port)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    const struct timeval patience = {.tv_sec = RNL_CHANNEL_PATIENCE_MS / 1000}; /* for connecting, too */
    struct addrinfo *to;
    if (getaddrinfo(address, port, &hints, &to) != 0) {
        errno = EINVAL;
        return -1;
    }
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), e = 0;
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) < 0)
        e = errno;
    freeaddrinfo(to);
    if (e != 0 && fd >= 0)
        close(fd);
    errno = e == EINPROGRESS ? ETIMEDOUT : e;
    return e == 0 ? fd : -1;
}

struct rnl_channel *rnl_amudp_channel_to(int fd, const unsigned char key[RNL_PLACE_KEY])
{
    struct rnl_channel *c = rnl_channel_new(fd, 0, key);
    if (c != NULL && rnl_channel_wait(c, RNL_CHANNEL_PATIENCE_MS) != RNL_CHANNEL_OPENS) {
        rnl_channel_free(c);
        c = NULL;
    }
    return c;
}

/* ---- the porter ---- */

struct porter {
    struct rnl_door *door;
    struct rnl_channel *master;
};

static void tell_master(void *ctx, int wanted, enum rnl_door_event event)
{
    struct porter *p = ctx;
    int32_t w = wanted;
    int type = event == RNL_DOOR_COME ? 'w' : event == RNL_DOOR_GONE ? 'g' : 'm';
    (void)rnl_channel_send(p->master, type, &w, sizeof w); /* its end is seen when reading */
}

static void no_worker(void *ctx, int wanted, enum rnl_door_event event)
{
    (void)ctx, (void)wanted, (void)event;
}

static void no_message(void *ctx, struct rnl_door_guest *from, int type, const unsigned char *text, size_t bytes)
{
    (void)ctx, (void)from, (void)type, (void)text, (void)bytes;
}

/* Tries each address; the sentence is about the last one. *definite: nobody listens there, at none of them. */
static struct rnl_channel *try_master(const char *file, const unsigned char *key, char *sentence, size_t room,
                                      int *definite)
{
    char line[512], address[RNL_DOOR_ADDRESS], port[8];
    FILE *f = fopen(file, "re");
    *definite = 1;
    snprintf(sentence, room, "%s names no address of the master", file);
    if (f == NULL || fseek(f, RNL_PLACE_KEY, SEEK_SET) != 0) {
        if (f != NULL)
            (void)fclose(f);
        return NULL;
    }
    struct rnl_channel *c = NULL;
    while (c == NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "master %63s %7s", address, port) != 2)
            continue;
        int fd = rnl_amudp_call(address, port);
        if (fd < 0) {
            *definite = *definite && errno == ECONNREFUSED;
            snprintf(sentence, room,
                     "the master cannot be reached at %s, port %s (%s): MASTERIP says which of its "
                     "addresses to use",
                     address, port, strerror(errno));
            continue;
        }
        c = rnl_amudp_channel_to(fd, key);
        *definite = 0; /* it may have had too many callers */
        if (c == NULL)
            snprintf(sentence, room, "who answers at %s, port %s, is not the master of this job", address, port);
    }
    (void)fclose(f);
    return c;
}

static struct rnl_channel *find_master(const char *file, const unsigned char *key, char *sentence, size_t room)
{
    const uint64_t until = rnl_door_ms() + SEEK_MS;
    int definite;
    for (long pause_ms = PAUSE_MS;; pause_ms = 2 * pause_ms < PAUSE_MAX_MS ? 2 * pause_ms : PAUSE_MAX_MS) {
        const struct timespec pause = {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000};
        struct rnl_channel *c = try_master(file, key, sentence, room, &definite);
        if (c != NULL || definite || rnl_door_ms() >= until)
            return c;
        nanosleep(&pause, NULL);
    }
}

/* An idle channel asks whether the other host is there; while something has not been acknowledged the kernel does not,
 * and goes on for a quarter of an hour. Only here, where little is said: who is stopped takes in no stream either. */
static void bound_silence(const struct rnl_channel *master)
{
    const unsigned ms = (RNL_CHANNEL_IDLE_S + RNL_CHANNEL_BETWEEN_S * RNL_CHANNEL_ASKED) * 1000;
    (void)setsockopt(master->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static int greet(struct rnl_door *d, struct rnl_channel *master)
{
    unsigned char text[2 + RNL_DOOR_HOST] = {(unsigned char)d->port, (unsigned char)(d->port >> 8)};
    if (gethostname((char *)text + 2, RNL_DOOR_HOST - 1) < 0)
        text[2] = '\0';
    return rnl_channel_send(master, 'h', text, 2 + strlen((char *)text + 2));
}

/* At the address by which the master was reached, and at no other. */
static int listen_beside(struct rnl_door *d, const struct rnl_channel *master, char *sentence, size_t room)
{
    char address[RNL_DOOR_ADDRESS] = "?";
    if (rnl_door_address(master->fd, 1, address) == 0 && rnl_door_listen(d, address) == 0)
        return 1;
    snprintf(sentence, room, "cannot listen for the launcher at %s: %s", address, strerror(errno));
    return 0;
}

/* The master is gone, or the way to it, and agents that we have started may know another (job/back.h): they end with
 * us.
 */
_Noreturn static void leave(struct rnl_door *d)
{
    rnl_door_close(d);
    while (wait(NULL) > 0 || errno == EINTR) /* children are ignored: until there is none */
        ;
    _exit(0);
}

/* Who knocks hears why, and the last ones, too: an end with knocks that were not read would take the answer along. */
static void say_farewell(struct rnl_door *d, const char *sentence)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (uint64_t until = rnl_door_ms() + FAREWELL_MS; rnl_door_ms() < until;) {
        rnl_door_turn(d, 50, -1);
        rnl_door_tell(d, 'x', sentence, strlen(sentence));
    }
    rnl_door_shut(d);
    uint64_t until = rnl_door_ms() + FAREWELL_MS;
    do {
        rnl_door_turn(d, 0, -1);
        rnl_door_tell(d, 'x', sentence, strlen(sentence));
        nanosleep(&pause, NULL);
    } while (d->guests > 0 && rnl_door_ms() < until);
}

_Noreturn void rnl_amudp_porter(struct rnl_door *d, const char *file)
{
    char sentence[400];
    struct porter p = {.door = d, .master = find_master(file, d->key, sentence, sizeof sentence)};
    d->worker = tell_master;
    d->message = no_message;
    d->ctx = &p;
    if (p.master != NULL)
        bound_silence(p.master);
    if (p.master == NULL || !listen_beside(d, p.master, sentence, sizeof sentence) || greet(d, p.master) < 0) {
        d->worker = no_worker;
        say_farewell(d, sentence);
        _exit(1);
    }
    for (;;) {
        enum rnl_channel_step step = rnl_channel_step(p.master);
        if (step == RNL_CHANNEL_END)
            leave(d);
        if (step == RNL_CHANNEL_MESSAGE)
            rnl_door_tell(d, p.master->type, p.master->text, p.master->bytes);
        else
            rnl_door_turn(d, 1000, p.master->fd);
    }
}

/* A process that nobody of this program knows or waits for, with nothing of its files. */
static int leave_porter(struct rnl_door *d, const char *file)
{
    pid_t child = rnl_amudp_fork();
    if (child < 0)
        return -1;
    if (child > 0)
        return waitpid(child, NULL, 0) == child || errno == ECHILD ? 0
                                                                   : -1; /* ECHILD: the program ignores its children */
    setsid();
    if (fork() != 0)
        _exit(0);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(nothing, fd);
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
        if (fd != d->local && fd != d->tcp)
            close(fd);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    unsetenv("RUNNEL_FD");
    rnl_amudp_porter(d, file);
}

/* ---- knocking ---- */

static int connect_door(const char *name)
{
    struct sockaddr_un at;
    struct ucred who;
    socklen_t n = rnl_amudp_place_address(name, -1, &at), m = sizeof who;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&at, n) == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &m) == 0 &&
        who.uid == geteuid())
        return fd;
    close(fd);
    return -1;
}

int rnl_amudp_knock(const char *name, const char *file, const unsigned char key[RNL_PLACE_KEY], int wanted)
{
    const struct timespec pause = {.tv_nsec = BETWEEN_NS};
    unsigned char said[5] = {'w'};
    int32_t w = wanted;
    memcpy(said + 1, &w, sizeof w);
    for (int i = 0; i < KNOCKS; i++) {
        int fd = connect_door(name);
        if (fd >= 0 && send(fd, said, sizeof said, MSG_NOSIGNAL) == (ssize_t)sizeof said)
            return fd;
        if (fd >= 0)
            close(fd);
        struct rnl_door d;
        int r = rnl_door_open(&d, name);
        if (r < 0)
            return WRONG("cannot listen for the workers of this host: %s", strerror(errno));
        if (r > 0) {
            nanosleep(&pause, NULL);
            continue;
        }
        memcpy(d.key, key, sizeof d.key);
        r = leave_porter(&d, file);
        int e = errno;
        rnl_door_close(&d);
        sodium_memzero(d.key, sizeof d.key);
        if (r < 0)
            return WRONG("cannot start a process that meets the workers of this host: %s", strerror(e));
    }
    return WRONG("the workers of this host do not come together: is the job over?");
}
