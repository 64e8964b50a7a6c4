/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A socket over cards beside one of the kernel: which way datagrams go, and what becomes of runs. Cards are played. */
#include "net/socket/i8255x/beside.h"

#include <poll.h>
#include <stdlib.h>

#include "net/socket/kernel.h"
#include "support/unit.h"

enum { ROOM = 8, BYTES = 64 };

static struct played {
    struct rnl_socket s; /* first */
    unsigned room, sent, closed;
    uint32_t bytes[ROOM];
    uint8_t first[ROOM]; /* the first byte of each */
    bool arrived;
} cards;
static struct rnl_socket *both;
static struct rnl_socket_addr card_at, kernel_at;

static int played_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    (void)s;
    *result = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    for (int i = 0; i < n; i++) {
        if (cards.sent == cards.room) {
            *result = (struct rnl_socket_result){RNL_SOCKET_FULL, 11};
            return i;
        }
        assert_int_equal(out[i].segment, 0);
        assert_int_equal(out[i].to.scope, 1);
        cards.bytes[cards.sent] = out[i].bytes;
        cards.first[cards.sent++] = *(const uint8_t *)out[i].at;
    }
    return n;
}

static int played_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    (void)s;
    if (!cards.arrived || n == 0)
        return 0;
    cards.arrived = false;
    memset(in->at, 'c', BYTES);
    in->bytes = BYTES;
    in->segment = 0;
    in->from = card_at;
    return 1;
}

static void played_close(struct rnl_socket *s)
{
    (void)s;
    cards.closed++;
}

static struct rnl_socket_frames played_frames;
static const struct rnl_socket_ops played_ops = {
    .size = sizeof played_ops, .send = played_send, .recv = played_recv, .close = played_close};

static int set_up(void **state)
{
    const uint8_t mac[6] = {0x52, 0x54, 0, 0, 0, 1};
    struct rnl_socket_addr loopback = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, 0, 0, 1}};
    struct rnl_socket *kernel;
    cards = (struct played){.s = {.ops = &played_ops, .frames = &played_frames, .receive_bytes = 10}, .room = ROOM};
    assert_int_equal(rnl_kernel_socket_open(&loopback, NULL, &kernel), 0);
    kernel_at = kernel->self;
    rnl_i8255x_address_of(mac, 1, 7, &card_at);
    assert_int_equal(rnl_i8255x_beside(&cards.s, kernel, &both), 0);
    assert_ptr_equal(rnl_i8255x_beside_cards(both), &cards.s);
    assert_int_equal(both->receive_bytes, 10); /* the lesser of both */
    (void)state;
    return 0;
}

static int tear_down(void **state)
{
    both->ops->close(both);
    assert_int_equal(cards.closed, 1);
    (void)state;
    return 0;
}

static int send_to(const struct rnl_socket_addr *const *to, const uint16_t *segment, int n, enum rnl_socket_stop *why)
{
    static uint8_t data[4][3 * BYTES];
    struct rnl_socket_out out[4];
    struct rnl_socket_result r;
    for (int i = 0; i < n; i++) {
        memset(data[i], 'a' + i, sizeof data[i]);
        data[i][BYTES] = (uint8_t)('A' + i);
        out[i] = (struct rnl_socket_out){
            .to = *to[i], .at = data[i], .bytes = segment[i] ? 2 * BYTES + 5 : BYTES, .segment = segment[i]};
    }
    const int went = both->ops->send(both, out, n, &r);
    *why = (enum rnl_socket_stop)r.stop;
    return went;
}

/* What comes by the kernel, as the first byte of each; waits for `n`. */
static void arrives_by_kernel(const char *bytes)
{
    char room[65536];
    for (; *bytes; bytes++) {
        struct rnl_socket_in in = {.at = room, .room = sizeof room};
        struct pollfd p = {.fd = both->ops->fd(both), .events = POLLIN};
        assert_int_equal(poll(&p, 1, 5000), 1);
        assert_int_equal(both->ops->recv(both, &in, 1), 1);
        assert_int_equal(room[0], *bytes);
        assert_true(rnl_socket_addr_equal(&in.from, &kernel_at));
    }
}

static void each_datagram_goes_where_its_address_leads(void **state)
{
    (void)state;
    const struct rnl_socket_addr *const to[] = {&kernel_at, &card_at, &card_at, &kernel_at};
    enum rnl_socket_stop why;
    assert_int_equal(send_to(to, (const uint16_t[4]){0}, 4, &why), 4);
    assert_int_equal(why, RNL_SOCKET_WENT);
    assert_int_equal(cards.sent, 2);
    assert_true(cards.first[0] == 'b' && cards.first[1] == 'c');
    arrives_by_kernel("ad");
}

static void a_run_goes_by_cards_as_single_datagrams(void **state)
{
    (void)state;
    const struct rnl_socket_addr *const to[] = {&card_at, &card_at};
    enum rnl_socket_stop why;
    assert_int_equal(send_to(to, (const uint16_t[2]){BYTES, 0}, 2, &why), 2);
    assert_int_equal(cards.sent, 4);
    assert_memory_equal(cards.first, "aAab", 4);
    assert_true(cards.bytes[0] == BYTES && cards.bytes[1] == BYTES && cards.bytes[2] == 5 && cards.bytes[3] == BYTES);
}

static void what_cards_have_no_room_for_is_the_callers(void **state)
{
    (void)state;
    const struct rnl_socket_addr *const to[] = {&card_at, &card_at, &kernel_at};
    enum rnl_socket_stop why;
    cards.room = 1;
    assert_int_equal(send_to(to, (const uint16_t[3]){0}, 3, &why), 1);
    assert_int_equal(why, RNL_SOCKET_FULL);
    assert_int_equal(send_to(to + 1, (const uint16_t[2]){0}, 2, &why), 0);
    assert_int_equal(why, RNL_SOCKET_FULL);
    assert_int_equal(send_to(to + 2, (const uint16_t[1]){0}, 1, &why), 1); /* that is the kernel's */
    assert_int_equal(why, RNL_SOCKET_WENT);
    arrives_by_kernel("a");
}

static void a_run_whose_first_has_room_is_taken(void **state)
{
    (void)state;
    const struct rnl_socket_addr *const to[] = {&card_at, &card_at};
    enum rnl_socket_stop why;
    cards.room = 2;
    assert_int_equal(send_to(to, (const uint16_t[2]){BYTES, BYTES}, 2, &why), 1); /* its end is lost, as in any queue */
    assert_int_equal(why, RNL_SOCKET_FULL);
    assert_int_equal(cards.sent, 2);
}

static void arrivals_of_both_come_by_one_call(void **state)
{
    (void)state;
    const struct rnl_socket_addr *const to[] = {&kernel_at};
    char room[2][65536];
    struct rnl_socket_in in[2] = {{.at = room[0], .room = sizeof room[0]}, {.at = room[1], .room = sizeof room[1]}};
    enum rnl_socket_stop why;
    assert_int_equal(send_to(to, (const uint16_t[1]){0}, 1, &why), 1);
    struct pollfd p = {.fd = both->ops->fd(both), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 5000), 1);
    int looks = 0, got = 0;
    while (got < 2 && looks++ < 64) { /* cards that bring something keep the kernel waiting for some looks only */
        cards.arrived = true;
        got = both->ops->recv(both, in, 2);
    }
    assert_int_equal(got, 2);
    assert_true(looks <= 16 && room[0][0] == 'c' && room[1][0] == 'a');
    assert_true(rnl_socket_addr_equal(&in[0].from, &card_at) && rnl_socket_addr_equal(&in[1].from, &kernel_at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_datagram_goes_where_its_address_leads), TEST(a_run_goes_by_cards_as_single_datagrams),
        TEST(what_cards_have_no_room_for_is_the_callers), TEST(a_run_whose_first_has_room_is_taken),
        TEST(arrivals_of_both_come_by_one_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
