/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amudprun_stand_in.c - the stand-in's side of src/amudp/place.h: a rank of the launcher that waits for a worker, gives
 * it all it has, and lives as long as that one. */
#include "amudp/place.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

enum { SYSTEM = 71 };

static int listen_as(const char *name, int rank)
{
    struct sockaddr_un at;
    socklen_t n = rnl_amudp_place_address(name, rank, &at);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 16) == 0)
        return fd;
    fprintf(stderr, "amudprun: the stand-in of rank %d cannot listen: %s\n", rank, strerror(errno));
    return -1;
}

static int ours(int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid();
}

static int hear(int fd, unsigned char *bytes, size_t room, struct rnl_packet *p)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&one, 1, RNL_PLACE_PATIENCE_MS);
    while (n < 0 && errno == EINTR);
    return n == 1 ? rnl_packet_receive(fd, bytes, room, 0, p, 1) : -ETIMEDOUT;
}

static int say_environment(int fd)
{
    unsigned char bytes[RNL_PLACE_PACKET];
    size_t n = 1;
    bytes[0] = 'v';
    for (char **e = environ; *e != NULL; e++) {
        const char *at = *e;
        if (strncmp(at, "RUNNEL_", 7) == 0)
            continue;
        for (size_t left = strlen(at) + 1; left > 0;) {
            size_t m = left < sizeof bytes - n ? left : sizeof bytes - n;
            memcpy(bytes + n, at, m);
            n += m;
            at += m;
            left -= m;
            if (n == sizeof bytes) {
                if (rnl_packet_send(fd, bytes, n, NULL, 0, 1) != 0)
                    return 0;
                n = 1;
            }
        }
    }
    return (n == 1 || rnl_packet_send(fd, bytes, n, NULL, 0, 1) == 0) && rnl_packet_send(fd, "e", 1, NULL, 0, 1) == 0;
}

/* 1 = it has the place now. */
static int hand_over(int fd, const unsigned char *key, int door, int rank)
{
    unsigned char hello[33], heard[80], proof[RNL_PLACE_PROOF], given[37];
    struct rnl_packet p;
    hello[0] = 'n';
    randombytes_buf(hello + 1, 32);
    if (rnl_packet_send(fd, hello, sizeof hello, NULL, 0, 0) != 0 || hear(fd, heard, sizeof heard, &p) != 0)
        return 0;
    if (p.cut || p.n != 65 || heard[0] != 'p')
        return 0;
    rnl_channel_proof(key, "worker", hello + 1, heard + 1, proof);
    if (sodium_memcmp(proof, heard + 33, sizeof proof) != 0)
        return 0;
    given[0] = 'g';
    rnl_channel_proof(key, "stand-in", hello + 1, heard + 1, given + 1);
    memcpy(given + 33, &rank, 4);
    int fds[] = {door, STDOUT_FILENO, STDERR_FILENO};
    return rnl_packet_send(fd, given, sizeof given, fds, 3, 0) == 0 && say_environment(fd);
}

int rnl_amudp_stand_in(const char *file, const char *name)
{
    unsigned char key[RNL_PLACE_KEY], bytes[16];
    const char *text = getenv("RUNNEL_FD"), *number = getenv("RUNNEL_RANK");
    struct rnl_packet p;
    int rank = number != NULL ? atoi(number) : -1, door = text != NULL ? atoi(text) : -1, worker = -1;
    AMX_VerboseErrors = 1;
    if (rank < 0 || door < 0 || rnl_packet_socket_check(door) != 0) {
        fprintf(stderr, "amudprun: --stand-in is for the master's use\n");
        return SYSTEM;
    }
    if (rnl_amudp_place_key(file, key) < 0)
        return SYSTEM;
    int listener = listen_as(name, rank);
    if (listener < 0)
        return SYSTEM;
    while (worker < 0) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && ours(fd) && hand_over(fd, key, door, rank))
            worker = fd;
        else if (fd >= 0)
            close(fd);
        else if (errno != EINTR && errno != ECONNABORTED)
            return SYSTEM;
    }
    close(listener);
    close(door);
    close(STDOUT_FILENO); /* what it holds open the launcher waits for */
    close(STDERR_FILENO);
    sodium_memzero(key, sizeof key);
    if (rnl_packet_receive(worker, bytes, sizeof bytes, 0, &p, 1) == 0 && p.n == 5 && bytes[0] == 'x') {
        int32_t code;
        memcpy(&code, bytes + 1, sizeof code);
        (void)rnl_packet_receive(worker, bytes, sizeof bytes, 0, &p, 1); /* until it has ended */
        return code & 0xff;
    }
    return 1;
}
