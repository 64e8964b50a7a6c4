/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_in.c - the worker's side of place.h. The connection stays: its end means that the launcher ended the job, and a
 * thread that does nothing else waits for that; on it the stand-in is told how we end. */
#include "amudp/door.h"

#include "job/fds.h"
#include "job/job.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WRONG(...) rnl_amudp_wrong(AM_ERR_RESOURCE, "AMUDP_SPMDStartup", __VA_ARGS__)

static int connection = -1;

void rnl_amudp_stand_in_told(int code)
{
    unsigned char packet[5] = {'x'};
    int32_t c = code;
    if (connection < 0)
        return;
    memcpy(packet + 1, &c, sizeof c);
    rnl_packet_send(connection, packet, sizeof packet, NULL, 0, 0);
}

static void on_exit_code(int code, void *arg)
{
    (void)arg;
    rnl_amudp_stand_in_told(code);
}

static void *watch(void *arg)
{
    struct pollfd p = {.fd = connection, .events = 0};
    const struct timespec grace = {.tv_sec = 1};
    (void)arg;
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    kill(getpid(), SIGTERM);
    nanosleep(&grace, NULL);
    kill(getpid(), SIGKILL);
    return NULL;
}

static int start_watch(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's */
    int e = pthread_create(&thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (e == 0)
        pthread_detach(thread);
    return e;
}

static int receive(int fd, unsigned char *bytes, size_t room, unsigned fds, struct rnl_packet *p)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&one, 1, RNL_PLACE_PATIENCE_MS);
    while (n < 0 && errno == EINTR);
    return n == 1 ? rnl_packet_receive(fd, bytes, room, fds, p, 1) : -ETIMEDOUT;
}

/* Its text, in the packets that follow. */
static int take_environment(int fd)
{
    unsigned char *bytes = malloc(RNL_PLACE_PACKET);
    char *text = NULL;
    size_t n = 0;
    struct rnl_packet p;
    int good = 0;
    while (bytes != NULL && receive(fd, bytes, RNL_PLACE_PACKET, 0, &p) == 0 && !p.cut) {
        if (bytes[0] == 'e') {
            good = rnl_amudp_keep_environment(text != NULL ? text : "", n) == 0;
            break;
        }
        char *more = bytes[0] == 'v' ? realloc(text, n + p.n) : NULL;
        if (more == NULL)
            break;
        text = more;
        memcpy(text + n, bytes + 1, p.n - 1);
        n += p.n - 1;
    }
    free(bytes);
    free(text);
    return good;
}

/* A stand-in that is connected: proves, checks, takes. 1 or 0. */
static int take(int fd, const unsigned char *key, int routed)
{
    unsigned char bytes[128], nonce[32], proof[RNL_PLACE_PROOF], text[65];
    struct rnl_packet p;
    if (receive(fd, bytes, sizeof bytes, 0, &p) != 0 || p.n != 33 || bytes[0] != 'n')
        return 0;
    memcpy(nonce, bytes + 1, 32);
    text[0] = 'p';
    randombytes_buf(text + 1, 32);
    rnl_channel_proof(key, "worker", nonce, text + 1, text + 33);
    if (rnl_packet_send(fd, text, sizeof text, NULL, 0, 0) != 0 || receive(fd, bytes, sizeof bytes, 3, &p) != 0)
        return 0;
    rnl_channel_proof(key, "stand-in", nonce, text + 1, proof);
    if (p.n != 37 || p.nfds != 3 || bytes[0] != 'g' || sodium_memcmp(bytes + 1, proof, sizeof proof) != 0 ||
        !take_environment(fd)) {
        rnl_packet_drop(&p);
        return 0;
    }
    char door[16];
    int keep = dup(p.fds[0]); /* not close-on-exec: as a door that was inherited */
    snprintf(door, sizeof door, "%d", keep);
    if (keep < 0 || setenv("RUNNEL_FD", door, 1) != 0 ||
        (routed && (dup2(p.fds[1], STDOUT_FILENO) < 0 || dup2(p.fds[2], STDERR_FILENO) < 0))) {
        rnl_packet_drop(&p);
        return 0;
    }
    rnl_packet_drop(&p);
    return 1;
}

static int try_rank(const char *name, int rank, const unsigned char *key, int routed)
{
    struct sockaddr_un to;
    socklen_t n = rnl_amudp_place_address(name, rank, &to);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, n) == 0 && take(fd, key, routed))
        return fd;
    close(fd);
    return -1;
}

/* Until all have come, and the launcher is about to make their places. AM_OK or AM_ERR_RESOURCE. */
static int await_launch(int door, int *first, int *ranks)
{
    char said[RNL_CHANNEL_TEXT + 1];
    int32_t block[2];
    ssize_t n;
    do
        n = recv(door, said, sizeof said - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n == 1 + (ssize_t)sizeof block && said[0] == 'l') {
        memcpy(block, said + 1, sizeof block);
        *first = block[0];
        *ranks = block[1];
        return block[0] >= 0 && block[1] > 0 ? AM_OK : WRONG("there are no places for workers of this host");
    }
    if (n > 1 && said[0] == 'x') {
        said[n] = '\0';
        return WRONG("%s", said + 1);
    }
    return WRONG("the job ended before all of its workers had come");
}

/* The door is shut: so is the job. */
static int has_ended(int door)
{
    char c;
    return recv(door, &c, 1, MSG_DONTWAIT) == 0;
}

int rnl_amudp_take_place(void)
{
    const char *text = getenv(RNL_AMUDP_STAND_IN), *rank_text = AMUDP_getenv_prefixed("WORKER_RANK");
    unsigned char key[RNL_PLACE_KEY];
    char name[64], file[256];
    int nproc, routed, first = 0, ranks = 0, wanted = rnl_amudp_spmd.wanted;
    if (text == NULL)
        return AM_OK;
    if (sscanf(text, "%d:%d:%63[^:]:%255[^\n]", &nproc, &routed, name, file) != 4 || nproc < 1)
        return WRONG(RNL_AMUDP_STAND_IN " is '%.60s', which leads nowhere: unset it", text);
    if (wanted < 0 && rank_text != NULL)
        wanted = (int)rnl_amudp_setting("WORKER_RANK", 0, nproc - 1, -1);
    if (rnl_amudp_place_key(file, key) < 0)
        return AM_ERR_RESOURCE;
    int door = rnl_amudp_knock(name, file, key, wanted);
    int r = door < 0 ? AM_ERR_RESOURCE : await_launch(door, &first, &ranks);
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int waited = 0; r == AM_OK && connection < 0 && waited < RNL_PLACE_SEARCH_MS; waited += 10) {
        for (int i = 0; connection < 0 && i < ranks; i++)
            connection = try_rank(name, wanted >= 0 ? wanted : first + (i + getpid()) % ranks, key, routed);
        if (connection < 0 && has_ended(door))
            break;
        if (connection < 0)
            nanosleep(&pause, NULL);
    }
    sodium_memzero(key, sizeof key);
    if (connection >= 0)
        (void)send(door, "t", 1, MSG_NOSIGNAL);
    if (door >= 0)
        close(door);
    if (r != AM_OK)
        return r;
    if (connection < 0)
        return WRONG("no place in the job was free for a minute: is a worker too many, or the job over?");
    unsetenv(RNL_AMUDP_STAND_IN); /* the place is taken: not for what this process starts */
    rnl_job_apart = 1;
    on_exit(on_exit_code, NULL);
    int e = start_watch();
    return e == 0 ? AM_OK : WRONG("cannot start a thread: %s", strerror(e));
}
