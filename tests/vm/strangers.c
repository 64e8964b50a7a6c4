/* SPDX-License-Identifier: BSD-3-Clause
 *
 * strangers.c - frames of strangers on a wire between two machines of QEMU, while these talk:
 *
 *   strangers DUMP SOCKET MAC-END SEED
 *
 * DUMP is the file in which QEMU writes the frames of that wire, SOCKET where the machine takes frames whose hardware
 * address ends with that number. For each of its UDP frames a hostile one follows, in turn: random bytes; the frame
 * cut; with a byte changed; for another port and changed, under a right checksum; and the same frame once more. None of
 * these but the last gets past a look at headers and checksum. After SIGUSR1: frames for the right port, under a right
 * checksum, whose datagram was changed. Until it is terminated; then it says how many of each it has sent. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/must.h"
#include "support/random.h"

enum {
    FILE_HEAD = 24,
    RECORD_HEAD = 16,
    LONGEST = 1518,
    ETHERNET = 14,
    IPV6 = 40,
    UDP = 8,
    DATA = ETHERNET + IPV6 + UDP
};
enum kind { RANDOM, CUT, CHANGED, OTHER_PORT, AGAIN, FORGED, KINDS };

static volatile sig_atomic_t ends, forges;
static struct test_random random_state;
static uint64_t sent[KINDS];

static void on_signal(int signal)
{
    if (signal == SIGUSR1)
        forges = 1;
    else
        ends = 1;
}

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(test_random_next(&random_state) % below);
}

/* Reads from the dump, which grows. False: it was told to end. */
static bool read_all(int fd, void *at, size_t bytes)
{
    for (size_t got = 0; got < bytes && !ends;) {
        const ssize_t n = read(fd, (char *)at + got, bytes - got);
        TEST_MUST(n >= 0);
        got += (size_t)n;
        if (n == 0)
            test_sleep_ms(2);
    }
    return !ends;
}

/* The number of bytes of a UDP datagram of IPv6 in a frame, 0 = it holds none. */
static uint32_t datagram_of(const uint8_t *frame, uint32_t bytes)
{
    const uint32_t says = (uint32_t)frame[ETHERNET + 4] << 8 | frame[ETHERNET + 5];
    if (bytes < DATA || frame[12] != 0x86 || frame[13] != 0xdd || frame[ETHERNET + 6] != 17)
        return 0;
    return says > UDP + 1 && ETHERNET + IPV6 + says <= bytes ? says - UDP : 0;
}

/* Adds a number to a 16-bit word in network byte order and takes it out of the checksum: it stays right. */
static void add_to_word(uint8_t *frame, uint32_t at, uint16_t by)
{
    uint8_t *sum = frame + ETHERNET + IPV6 + 6;
    const uint16_t was = (uint16_t)(frame[at] << 8 | frame[at + 1]), is = (uint16_t)(was + by);
    uint32_t s = (uint16_t) ~(sum[0] << 8 | sum[1]);
    s += (uint16_t)~was;
    s += is;
    s = (s & 0xffff) + (s >> 16);
    s = (s & 0xffff) + (s >> 16);
    s = (uint16_t)~s ? (uint16_t)~s : 0xffff;
    frame[at] = (uint8_t)(is >> 8);
    frame[at + 1] = (uint8_t)is;
    sum[0] = (uint8_t)(s >> 8);
    sum[1] = (uint8_t)s;
}

/* Changes a word of the datagram, whose begin is even in the frame. */
static void change_datagram(uint8_t *frame, uint32_t datagram)
{
    add_to_word(frame, DATA + draw(datagram / 2) * 2, (uint16_t)(1 + draw(60000)));
}

/* Makes a hostile frame of one that is right. Returns its length, 0 = none. */
static uint32_t spoil(enum kind kind, uint8_t *frame, uint32_t bytes, uint32_t datagram)
{
    switch (kind) {
    case RANDOM:
        bytes = ETHERNET + draw(LONGEST - ETHERNET);
        for (uint32_t i = draw(2) ? ETHERNET : 12; i < bytes; i++) /* sometimes the type, too */
            frame[i] = (uint8_t)draw(256);
        return bytes;
    case CUT:
        return DATA + datagram > 61 ? 61 + draw(DATA + datagram - 61) : 0; /* what is shorter, the card fills up */
    case CHANGED:
        frame[ETHERNET + IPV6 + draw(UDP + datagram)] ^= (uint8_t)(1 + draw(255));
        return bytes;
    case OTHER_PORT:
        add_to_word(frame, ETHERNET + IPV6 + 2, (uint16_t)(1 + draw(60000)));
        change_datagram(frame, datagram);
        return bytes;
    case FORGED:
        change_datagram(frame, datagram);
        return bytes;
    default:
        return bytes;
    }
}

int main(int argc, char **argv)
{
    static const char *const names[KINDS] = {"random", "cut", "changed", "other port", "again", "forged"};
    static uint8_t frame[65536];
    uint8_t head[FILE_HEAD];
    if (argc != 5)
        return 2;
    const uint8_t last = (uint8_t)atoi(argv[3]);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const struct sigaction on_end = {.sa_handler = on_signal};
    random_state = test_random_of(strtoull(argv[4], NULL, 0), 1);
    TEST_MUST(prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && sigaction(SIGTERM, &on_end, NULL) == 0 &&
              sigaction(SIGUSR1, &on_end, NULL) == 0);
    TEST_MUST(strlen(argv[2]) < sizeof to.sun_path);
    memcpy(to.sun_path, argv[2], strlen(argv[2]));
    const int dump = open(argv[1], O_RDONLY | O_CLOEXEC), out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    TEST_MUST(dump >= 0 && out >= 0);
    enum kind turn = RANDOM;
    if (read_all(dump, head, sizeof head))
        for (uint8_t record[RECORD_HEAD]; read_all(dump, record, sizeof record);) {
            uint32_t bytes;
            memcpy(&bytes, record + 8, sizeof bytes);
            TEST_MUST(bytes <= sizeof frame);
            if (!read_all(dump, frame, bytes))
                break;
            const uint32_t datagram = datagram_of(frame, bytes);
            if (!datagram || frame[0] & 1 || frame[5] != last)
                continue;
            const enum kind kind = forges ? FORGED : turn;
            turn = (turn + 1) % FORGED;
            const uint32_t length = spoil(kind, frame, bytes, datagram);
            if (length && sendto(out, frame, length, MSG_DONTWAIT, (void *)&to, sizeof to) == (ssize_t)length)
                sent[kind]++;
        }
    printf("strangers sent");
    for (int i = 0; i < KINDS; i++)
        printf("%s %llu %s", i ? "," : "", (unsigned long long)sent[i], names[i]);
    printf("\n");
    return 0;
}
