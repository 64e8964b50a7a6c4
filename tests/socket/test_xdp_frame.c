/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of AF_XDP: what is written can be read, and nothing that is not so. */
#include "net/socket/xdp/frame.h"
#include "support/unit.h"

enum { MOST = 1500 };
static const uint8_t here[6] = {2, 1, 1, 1, 1, 1}, there[6] = {2, 2, 2, 2, 2, 2};
static uint8_t frame[MOST + 100], data[MOST];

static void addresses(bool six, struct rnl_socket_addr *to, struct rnl_socket_addr *from)
{
    *to = (struct rnl_socket_addr){.ip = {[10] = 0xff, 0xff, 10, 1, 2, 3}, .port = 40001};
    *from = (struct rnl_socket_addr){.ip = {[10] = 0xff, 0xff, 10, 1, 2, 4}, .port = 40002};
    if (six) {
        memcpy(to->ip, (const uint8_t[16]){0xfd, 1, [15] = 3}, 16);
        memcpy(from->ip, (const uint8_t[16]){0xfd, 1, [15] = 4}, 16);
    }
}

static uint32_t compose(bool six, uint16_t tag, uint32_t bytes, uint8_t ecn)
{
    struct rnl_socket_addr to, from;
    struct rnl_xdp_head h;
    addresses(six, &to, &from);
    for (uint32_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 7 + bytes);
    rnl_xdp_head_make(&h, there, here, tag, &to, &from);
    memset(frame, 0xee, sizeof frame);
    return rnl_xdp_frame_write(&h, frame, data, bytes, ecn);
}

static void what_is_written_is_read(void **state)
{
    struct rnl_socket_addr to, from;
    (void)state;
    for (uint32_t bytes = 0; bytes < 1452; bytes += bytes < 70 ? 1 : 97)
        for (int kind = 0; kind < 4; kind++) {
            struct rnl_xdp_datagram d;
            const uint32_t length = compose(kind & 1, kind & 2 ? 77 : 0, bytes, bytes & 3);
            addresses(kind & 1, &to, &from);
            assert_true(length >= RNL_XDP_FRAME_LEAST);
            assert_int_equal(frame[length], 0xee);
            assert_memory_equal(frame, there, 6);
            assert_memory_equal(frame + 6, here, 6);
            assert_true(rnl_xdp_frame_read(frame, length, &d));
            assert_int_equal(d.bytes, bytes);
            assert_int_equal(d.ecn, bytes & 3);
            assert_int_equal(d.tag, kind & 2 ? 77 : 0);
            assert_true(rnl_socket_addr_equal(&d.from, &from) && rnl_socket_addr_equal(&d.to, &to));
            assert_memory_equal(frame + d.at, data, bytes);
        }
}

/* A sum is enough for one changed bit anywhere that it covers: all but the Ethernet header and IPv6's first words. */
static void one_changed_bit_is_found(void **state)
{
    (void)state;
    for (int six = 0; six < 2; six++) {
        const uint32_t length = compose(six, 0, 100, 0), from = RNL_XDP_ETHERNET + (six ? 8 : 0);
        for (uint32_t bit = from * 8; bit < length * 8; bit++) {
            struct rnl_xdp_datagram d;
            frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(rnl_xdp_frame_read(frame, length, &d));
            frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

static void a_cut_frame_is_none(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        const uint32_t length = compose(kind & 1, kind & 2 ? 5 : 0, 200, 0);
        for (uint32_t bytes = 0; bytes < length; bytes++) {
            struct rnl_xdp_datagram d;
            uint8_t *exact = malloc(bytes ? bytes : 1); /* for the address sanitizer */
            memcpy(exact, frame, bytes);
            assert_false(rnl_xdp_frame_read(exact, bytes, &d));
            free(exact);
        }
    }
}

/* A sender on a virtual wire leaves the sum of the pseudo header where the checksum goes; IPv4 may have none. */
static void checksums_that_are_left_out(void **state)
{
    struct rnl_xdp_datagram d;
    (void)state;
    uint32_t length = compose(false, 0, 33, 0), pseudo = 17 + 8 + 33;
    uint8_t *udp = frame + 34;
    for (int i = -8; i < 0; i += 2)
        pseudo += (uint32_t)udp[i] << 8 | udp[i + 1];
    pseudo = (pseudo & 0xffff) + (pseudo >> 16);
    udp[6] = (uint8_t)(pseudo >> 8);
    udp[7] = (uint8_t)pseudo;
    assert_true(rnl_xdp_frame_read(frame, length, &d));
    udp[7] ^= 1;
    assert_false(rnl_xdp_frame_read(frame, length, &d));
    udp[6] = udp[7] = 0;
    assert_true(rnl_xdp_frame_read(frame, length, &d));
    length = compose(true, 0, 33, 0);
    frame[14 + 40 + 6] = frame[14 + 40 + 7] = 0;
    assert_false(rnl_xdp_frame_read(frame, length, &d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(one_changed_bit_is_found),
        cmocka_unit_test(a_cut_frame_is_none),
        cmocka_unit_test(checksums_that_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
