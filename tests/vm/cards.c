/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cards.c - questions and answers over cards that this process drives, in a machine of scripts/vm:
 *
 *   cards hold SLOT             takes a card and starts it, says so, and waits to be killed
 *   cards state SLOT            takes a card, without starting it, and says what its receive unit is at
 *   cards answer SLOT SLOT      answers by the card by which a question came, until it is told the end
 *   cards ask SLOT SLOT N MAC-END   asks the machine whose hardware addresses end with that number: first by the first
 *                               card, then by the second, when the first has not answered for PATIENCE_MS
 *
 * root takes the cards. Whoever drives them is nobody, and has no capability. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "net/socket/i8255x/i8255x.h"
#include "net/socket/i8255x/layout.h"
#include "runnel/runnel.h"
#include "support/must.h"
#include "support/random.h"

enum { PORT = 7100, BYTES = 64, PATIENCE_MS = 40, END = 0xe0d, NOBODY = 65534, LONGEST = 1400 };

struct question {
    uint32_t kind, number;
    uint8_t rest[LONGEST - 8];
};

static struct rnl_socket *s;
static uint32_t cards;

static void open_cards(char **slot, uint32_t n)
{
    struct rnl_i8255x_grant g[RNL_I8255X_CARDS];
    for (uint32_t i = 0; i < n; i++)
        if (rnl_i8255x_take(slot[i], RNL_I8255X_UIO, &g[i]) < 0) {
            printf("%s\n", rnl_last_error()->text);
            exit(1);
        } else {
            g[i].wire = i + 1;
        }
    TEST_MUST(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
              setresuid(NOBODY, NOBODY, NOBODY) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (rnl_i8255x_socket_new(g, n, PORT, &s) < 0) {
        printf("%s\n", rnl_last_error()->text);
        exit(1);
    }
    cards = n;
}

static void fill(struct question *q, uint32_t kind, uint32_t number)
{
    struct test_random r = test_random_of(number, 1);
    q->kind = kind;
    q->number = number;
    for (size_t i = 0; i < sizeof q->rest; i++)
        q->rest[i] = (uint8_t)test_random_next(&r);
}

static bool send_to(const struct rnl_socket_addr *to, const struct question *q, uint32_t bytes)
{
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = *to, .at = q, .bytes = bytes};
    return s->ops->send(s, &o, 1, &r) == 1;
}

static bool receive(struct question *q, uint32_t *bytes, struct rnl_socket_addr *from)
{
    struct rnl_socket_in in = {.at = q, .room = sizeof *q};
    if (s->ops->recv(s, &in, 1) != 1)
        return false;
    TEST_MUST(!in.cut && in.bytes >= 8);
    *bytes = in.bytes;
    *from = in.from;
    return true;
}

static void show(void)
{
    struct rnl_i8255x_facts f;
    for (uint32_t i = 0; i < cards; i++) {
        TEST_MUST(rnl_i8255x_socket_facts(s, i, &f));
        printf("card %u: %s, link %s, sent %llu, received %llu, refused %llu, restarts %llu and %llu\n", i,
               f.gone ? "gone" : "there", f.link_up ? "up" : "down", (unsigned long long)f.sent,
               (unsigned long long)f.received, (unsigned long long)f.refused, (unsigned long long)f.rx_restarts,
               (unsigned long long)f.tx_restarts);
    }
}

static int answer(void)
{
    struct question q;
    struct rnl_socket_addr from;
    uint32_t bytes;
    for (uint64_t until = test_now_ns() + 60000000000u; test_now_ns() < until;)
        if (receive(&q, &bytes, &from)) {
            if (q.kind == END)
                break;
            (void)send_to(&from, &q, bytes);
        }
    show();
    return 0;
}

/* The other machine's card on this wire: their hardware addresses differ in the last byte. */
static void peer_of(uint32_t card, uint8_t last, struct rnl_socket_addr *to)
{
    rnl_i8255x_socket_address(s, card, to);
    to->ip[15] = last;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns how many answers were wrong. */
static uint32_t ask(uint32_t n, uint8_t last)
{
    static uint64_t took[100000];
    struct question q, a;
    struct rnl_socket_addr to, from;
    uint32_t bytes, card = 0, wrong = 0, repeated = 0, moved = 0;
    TEST_MUST(n <= sizeof took / sizeof took[0]);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t length = i % 4 ? BYTES : LONGEST;
        uint64_t begin = test_now_ns(), sent = begin;
        fill(&q, 1, i);
        peer_of(card, last, &to);
        (void)send_to(&to, &q, length);
        for (uint64_t now; !receive(&a, &bytes, &from) || a.number != i;) {
            now = test_now_ns();
            TEST_MUST(now - begin < 60000000000u);
            if (now - sent < (uint64_t)PATIENCE_MS * 1000000u)
                continue;
            if (cards > 1 && now - begin > (uint64_t)PATIENCE_MS * 2000000u) {
                card = (card + 1) % cards;
                moved++;
                begin = now;
            }
            peer_of(card, last, &to);
            repeated += send_to(&to, &q, length);
            sent = now;
        }
        took[i] = test_now_ns() - begin;
        wrong += bytes != length || memcmp(&a, &q, length) != 0;
    }
    qsort(took, n, sizeof took[0], compare);
    printf("%u answers, %u wrong, %u questions repeated, moved %u times; ns at least %llu, median %llu\n", n, wrong,
           repeated, moved, (unsigned long long)took[0], (unsigned long long)took[n / 2]);
    return wrong;
}

static void end_answers(uint8_t last)
{
    struct question q;
    struct rnl_socket_addr to;
    fill(&q, END, 0);
    for (uint32_t i = 0; i < 20 * cards; i++) {
        peer_of(i % cards, last, &to);
        (void)send_to(&to, &q, BYTES);
        test_sleep_ms(5);
    }
}

static int say_state(const char *slot)
{
    struct rnl_i8255x_grant g;
    if (rnl_i8255x_take(slot, RNL_I8255X_UIO, &g) < 0) {
        printf("%s\n", rnl_last_error()->text);
        return 1;
    }
    const volatile uint8_t *at = mmap(NULL, RNL_I8255X_REGISTERS, PROT_READ, MAP_SHARED, g.registers, 0);
    TEST_MUST(at != MAP_FAILED);
    printf("receive unit: %d\n", at[RNL_I8255X_STATUS] >> 2 & 15);
    rnl_i8255x_give_back(&g);
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "hold") == 0) {
        open_cards(argv + 2, 1);
        printf("held by %d\n", (int)getpid());
        for (;;)
            (void)s->ops->recv(s, &(struct rnl_socket_in){.at = (char[2048]){0}, .room = 2048}, 1);
    }
    if (argc == 3 && strcmp(argv[1], "state") == 0)
        return say_state(argv[2]);
    if (argc == 4 && strcmp(argv[1], "answer") == 0) {
        open_cards(argv + 2, 2);
        return answer();
    }
    if (argc == 6 && strcmp(argv[1], "ask") == 0) {
        const uint8_t last = (uint8_t)atoi(argv[5]);
        open_cards(argv + 2, 2);
        const uint32_t wrong = ask((uint32_t)atoi(argv[4]), last);
        end_answers(last);
        show();
        s->ops->close(s);
        return wrong > 0;
    }
    return 2;
}
