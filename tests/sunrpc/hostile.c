/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostile.c - clients that do harm to a server which runs with librunnel-rpc: hostile HOW PORT [SEED]. They find the
 * listener as a good client does, by TCP, and then
 *
 *   scribble   write anything anywhere into the segment for 400 ms
 *   cells      send records whose contents are random
 *   token      show tokens that nobody gave them, a thousand times
 *   half       say half a greeting and stay, some hundred times
 *   silent     come to the listener some hundred times, say nothing and stay: most have to be hung up on
 *   slow       come to the listener and say nothing for five seconds: then it has to be hung up on, and not before
 *   stop       begin a record and never end it
 *   bell       ring all the time, and send nothing
 * Ends with status 0 when it has done so. */
#include "adapters/sunrpc/greeting.h"
#include "adapters/sunrpc/host.h"
#include "adapters/sunrpc/pair.h"
#include "adapters/sunrpc/stream.h"

#include "support/random.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <rpc/rpc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HARM_MS = 400, MANY = 300, MANY_MS = 20000, LET_STAY = 64 };
static struct test_random r;

static void fail(const char *what)
{
    fprintf(stderr, "hostile: %s\n", what);
    exit(1);
}

static void ask(uint16_t port, struct rnl_rpc_answer *answer)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct rnl_rpc_place place;
    int sock = RPC_ANYSOCK;
    a.sin_port = htons(port);
    CLIENT *c = clnttcp_create(&a, RNL_RPC_PROGRAM, RNL_RPC_VERSION, &sock, 0, 0);
    if (!c || !rnl_rpc_place_here(&place) ||
        clnt_call(c, RNL_RPC_INTRODUCE, (xdrproc_t)rnl_rpc_xdr_place, (char *)&place, (xdrproc_t)rnl_rpc_xdr_answer,
                  (char *)answer, ((struct timeval){5, 0})) != RPC_SUCCESS ||
        answer->refused)
        fail("the server does not say where its listener is");
    clnt_destroy(c);
}

static int connect_listener(const struct rnl_rpc_answer *answer)
{
    struct sockaddr_un listener = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(listener.sun_path + 1, answer->name, answer->name_bytes);
    if (fd < 0 || connect(fd, (struct sockaddr *)&listener,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + answer->name_bytes)) < 0)
        fail("the listener is closed");
    return fd;
}

static struct rnl_rpc_segment *enter(const struct rnl_rpc_answer *answer, int *fd)
{
    struct rnl_rpc_hello welcome;
    int memory = -1, came = 0;
    *fd = connect_listener(answer);
    if (!rnl_rpc_hello_send(*fd, answer->token, -1))
        fail("no greeting");
    for (int i = 0; i < 100 && came == 0; i++) {
        struct pollfd p = {.fd = *fd, .events = POLLIN};
        (void)poll(&p, 1, 50);
        came = rnl_rpc_hello_receive(*fd, &welcome, &memory);
    }
    struct rnl_rpc_segment *s = memory >= 0 ? rnl_rpc_segment_map(memory) : NULL;
    if (!s)
        fail("not welcomed");
    close(memory);
    return s;
}

static void ring(int fd)
{
    (void)!send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void scribble(struct rnl_rpc_segment *s, int fd)
{
    for (uint64_t until = rnl_rpc_now_ns() + HARM_MS * 1000000u; rnl_rpc_now_ns() < until;) {
        struct rnl_rpc_ring *into = &s->ring[test_random_below(&r, 2)];
        struct rnl_rpc_cell *cell = &into->cell[test_random_below(&r, RNL_RPC_CELLS)];
        uint64_t word = test_random_next(&r), number = test_random_below(&r, 300);
        switch (test_random_below(&r, 7)) {
        case 0:
            atomic_store(&into->cells_read, number);
            break;
        case 1:
            atomic_store(&into->bulk_read, word % (4u << 20));
            break;
        case 2:
            atomic_store(test_random_below(&r, 2) ? &into->record_armed : &into->room_armed, (uint32_t)word);
            break;
        case 3:
            memcpy(cell->payload + 8 * test_random_below(&r, 7), &word, 8);
            break;
        case 4:
            atomic_store(&cell->header, number | (word & 0xff) << 32 | (word >> 8 & 3) << 56);
            break;
        case 5:
            memcpy(into->bulk + word % (RNL_RPC_BULK_BYTES - 8), &word, 8);
            break;
        default:
            ring(fd);
            break;
        }
    }
}

static void come_and_say_nothing(const struct rnl_rpc_answer *answer)
{
    struct pollfd p[MANY];
    int shown_out = 0;
    for (int i = 0; i < MANY; i++)
        p[i] = (struct pollfd){.fd = connect_listener(answer), .events = POLLIN};
    for (uint64_t until = rnl_rpc_now_ns() + MANY_MS * 1000000ull; shown_out < MANY - LET_STAY;) {
        if (rnl_rpc_now_ns() > until)
            fail("the server lets all stay who say nothing");
        (void)poll(p, MANY, 100);
        shown_out = 0;
        for (int i = 0; i < MANY; i++)
            shown_out += (p[i].revents & POLLHUP) != 0;
        usleep(10000);
    }
    usleep(HARM_MS * 1000);
}

static bool is_shown_out(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) > 0 && p.revents & POLLHUP;
}

static void come_and_be_slow(const struct rnl_rpc_answer *answer, uint16_t port)
{
    struct rnl_rpc_answer again = {0};
    uint64_t began = rnl_rpc_now_ns();
    int fd = connect_listener(answer);
    ask(port, &again); /* the server looks who is at its listener when somebody asks for it */
    if (is_shown_out(fd, 0) && rnl_rpc_now_ns() - began < 4500000000u)
        fail("the server waits for nobody");
    usleep(5300000);
    ask(port, &again);
    if (!is_shown_out(fd, MANY_MS))
        fail("the server waits for ever");
}

static void send_nonsense(struct rnl_rpc_segment *s, int fd)
{
    struct rnl_rpc_link *link = rnl_rpc_pair_new(s, fd, false, true);
    for (uint64_t until = rnl_rpc_now_ns() + HARM_MS * 1000000u; link && rnl_rpc_now_ns() < until;) {
        /* A call as it should be, or nearly, then whatever. */
        uint32_t head[10] = {
            htonl(1), htonl(0), htonl(2), htonl(0x20000642), htonl(1), htonl(test_random_below(&r, 14)), 0, 0, 0, 0};
        unsigned char rest[400];
        for (unsigned i = 0; i < sizeof rest; i++)
            rest[i] = (unsigned char)(test_random_below(&r, 3) ? 0 : test_random_next(&r));
        if (ntohl(head[5]) == 9 || ntohl(head[5]) == 13)
            head[5] = 0; /* not to sleep, not to make gigabytes */
        if (test_random_one_in(&r, 3))
            head[test_random_below(&r, 10)] ^= htonl((uint32_t)test_random_next(&r));
        link->deadline_ns = rnl_rpc_now_ns() + 100000000;
        if (!rnl_rpc_stream_put(link, head, sizeof head) ||
            !rnl_rpc_stream_put(link, rest, test_random_below(&r, sizeof rest)) || !link->ops->end(link))
            break;
        while (link->ops->here(link) && link->ops->next(link) && link->ops->leave(link))
            ;
    }
}

int main(int argc, char **argv)
{
    struct rnl_rpc_answer answer = {0};
    int fd;
    if (argc < 3)
        fail("usage: hostile HOW PORT");
    signal(SIGPIPE, SIG_IGN);
    alarm(60);
    r = test_random_of(argc > 3 ? (uint64_t)atoi(argv[3]) : 1, 0);
    ask((uint16_t)atoi(argv[2]), &answer);
    rnl_rpc_host_begin();
    if (strcmp(argv[1], "token") == 0) {
        for (int i = 0; i < 1000; i++) {
            char token[RNL_RPC_TOKEN_BYTES];
            for (unsigned k = 0; k < sizeof token; k++)
                token[k] = (char)test_random_next(&r);
            fd = connect_listener(&answer);
            (void)rnl_rpc_hello_send(fd, token, -1);
            close(fd);
        }
        return 0;
    }
    if (strcmp(argv[1], "half") == 0) {
        for (int i = 0; i < MANY; i++)
            (void)!send(connect_listener(&answer), "half a", 6, MSG_NOSIGNAL);
        usleep(HARM_MS * 1000);
        return 0;
    }
    if (strcmp(argv[1], "silent") == 0) {
        come_and_say_nothing(&answer);
        return 0;
    }
    if (strcmp(argv[1], "slow") == 0) {
        come_and_be_slow(&answer, (uint16_t)atoi(argv[2]));
        return 0;
    }
    struct rnl_rpc_segment *s = enter(&answer, &fd);
    if (strcmp(argv[1], "scribble") == 0)
        scribble(s, fd);
    else if (strcmp(argv[1], "cells") == 0)
        send_nonsense(s, fd);
    else if (strcmp(argv[1], "bell") == 0)
        for (uint64_t until = rnl_rpc_now_ns() + HARM_MS * 1000000u; rnl_rpc_now_ns() < until;)
            ring(fd);
    else if (strcmp(argv[1], "stop") == 0) {
        atomic_store(&s->ring[RNL_RPC_CALLS].cell[0].header, 1 | (uint64_t)8 << 32);
        ring(fd);
        usleep(HARM_MS * 1000);
    } else
        fail("no such harm");
    return 0;
}
