/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_flooded.c - what strangers cost those that they send to, beside what they cost the machine:
 *
 *   fm_flooded stream SECONDS              two ranks: 1 KiB messages from 0 to 1
 *   fm_flooded sink PORT SECONDS           a bystander, who reads what comes and forgets it
 *   fm_flooded flood PER_MS SECONDS SINK IP PORT...    a stranger: so many datagrams a ms of lengths from 0 to 1472,
 *                                          half of them with headers that may be true, to port SINK or to the PORTs
 *
 * By turns of a quarter of a second, by the clock that all share, the stranger sends nothing, to the bystander, and to
 * the ranks' ports; rank 1 counts each for itself and prints messages a second. Times fail nothing. Without arguments:
 * a job of one joins and leaves. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "multi/fm_check.h"
#include "runnel/fm.h"

enum { NOTE = 1, STOP, BYTES = 1024, LONGEST = 1472, PORTS_MAX = 16 };
enum { NOBODY, BYSTANDER, RANKS, TURNS };
#define TURN_NS   ((uint64_t)250 * 1000 * 1000)
#define SETTLE_NS ((uint64_t)50 * 1000 * 1000) /* of a turn, not counted */

static uint64_t got;
static int stopped;

static int turn_at(uint64_t now_ns)
{
    return (int)(now_ns / TURN_NS % TURNS);
}

static int on_note(FM_stream *s, unsigned from)
{
    static unsigned char to[BYTES];
    uint64_t number;
    (void)from;
    FM_receive(to, s, BYTES);
    memcpy(&number, to, sizeof number);
    CHECK(number == got);
    got++;
    return FM_CONTINUE;
}

static int on_stop(FM_stream *s, unsigned from)
{
    (void)s, (void)from;
    stopped = 1;
    return FM_CONTINUE;
}

static void say(unsigned long to, unsigned long handler, const void *buf, unsigned long n)
{
    FM_stream *s = FM_begin_message(to, n, handler);
    CHECK(s != NULL);
    FM_send_piece(s, buf, n);
    FM_end_message(s);
}

static void give(void)
{
    static unsigned char from[BYTES];
    for (uint64_t number = 0; !stopped; number++) {
        memcpy(from, &number, sizeof number);
        say(1, NOTE, from, sizeof from);
        if (number % 64 == 0)
            FM_extract(~0ul);
    }
}

static void take(unsigned seconds)
{
    static const char *const names[TURNS] = {"nobody is sent to", "a bystander is", "the ranks are"};
    uint64_t ns[TURNS] = {0}, n[TURNS] = {0}, last = check_now_ns(), until = last + seconds * UINT64_C(1000000000), now;
    for (uint64_t before = got; (now = check_now_ns()) < until; before = got, last = now) {
        FM_extract(~0ul);
        now = check_now_ns();
        if (last % TURN_NS < SETTLE_NS || turn_at(last) != turn_at(now))
            continue;
        ns[turn_at(now)] += now - last;
        n[turn_at(now)] += got - before;
    }
    say(0, STOP, "", 0);
    for (int i = 0; i < TURNS; i++) {
        printf("%s: %.0f messages a second\n", names[i], ns[i] ? (double)n[i] * 1e9 / (double)ns[i] : 0);
        CHECK(n[i] > 0);
    }
}

static int bound(uint16_t port)
{
    const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    const struct timeval patience = {.tv_usec = 100000};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(fd >= 0 && bind(fd, (const void *)&a, sizeof a) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static void sink(uint16_t port, uint64_t until)
{
    char at[LONGEST];
    uint64_t n = 0;
    int fd = bound(port);
    while (check_now_ns() < until)
        n += recv(fd, at, sizeof at, 0) >= 0;
    printf("the bystander took in %llu\n", (unsigned long long)n);
}

static void flood(unsigned per_ms, uint64_t until, char **to, int ports)
{
    struct sockaddr_in at[PORTS_MAX] = {{0}};
    unsigned char data[LONGEST];
    uint64_t sent[TURNS] = {0}, now, draw = 7;
    int fd = bound(0);
    CHECK(ports >= 2 && ports <= PORTS_MAX); /* the first is the bystander's */
    for (int i = 0; i < ports; i++) {
        at[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(to[i ? i + 1 : 0]))};
        CHECK(inet_pton(AF_INET, to[1], &at[i].sin_addr) == 1);
    }
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)((draw = draw * 6364136223846793005u + 1442695040888963407u) >> 56);
    for (uint64_t next = check_now_ns(); (now = check_now_ns()) < until;) {
        int turn = turn_at(now);
        if (now < next || turn == NOBODY) {
            usleep(200);
            continue;
        }
        next = now > next + 10000000 ? now : next + 1000000;
        for (unsigned i = 0; i < per_ms; i++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            size_t bytes = (draw >> 33) % (LONGEST + 1);
            data[0] = draw >> 63 ? 2 : (unsigned char)(draw >> 50); /* a version that may be true */
            const struct sockaddr_in *a = &at[turn == BYSTANDER ? 0 : 1 + (draw >> 20) % (unsigned)(ports - 1)];
            sent[turn] += sendto(fd, data, bytes, MSG_DONTWAIT, (const void *)a, sizeof *a) >= 0;
        }
    }
    printf("the stranger sent %llu to the bystander, %llu to the ranks\n", (unsigned long long)sent[BYSTANDER],
           (unsigned long long)sent[RANKS]);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "sink") == 0 && argc == 4) {
        sink((uint16_t)atoi(argv[2]), check_now_ns() + (uint64_t)atoi(argv[3]) * 1000000000);
        return 0;
    }
    if (strcmp(mode, "flood") == 0 && argc > 6) {
        flood((unsigned)atoi(argv[2]), check_now_ns() + (uint64_t)atoi(argv[3]) * 1000000000, argv + 4, argc - 5);
        return 0;
    }
    FM_initialize();
    check_rank = FM_nodeid;
    FM_register_handler(NOTE, on_note);
    FM_register_handler(STOP, on_stop);
    if (strcmp(mode, "stream") == 0 && argc == 3) {
        if (FM_nodeid == 0)
            give();
        else
            take((unsigned)atoi(argv[2]));
    }
    FM_finalize();
    return 0;
}
