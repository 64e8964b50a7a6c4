/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame.c - writes and reads frames. */
#include "net/socket/xdp/frame.h"

enum {
    TYPE_IPV4 = 0x0800,
    TYPE_IPV6 = 0x86dd,
    TYPE_TAG = 0x8100,
    IPV4_BYTES = 20,
    IPV6_BYTES = 40,
    UDP_BYTES = 8,
    PROTOCOL_UDP = 17,
    HOPS = 64
};
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void put16(uint8_t *at, uint32_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* ---- sums (RFC 1071), in the byte order of the host ---- */

static uint32_t fold(uint64_t sum)
{
    sum = (sum & UINT32_MAX) + (sum >> 32);
    sum = (sum & UINT32_MAX) + (sum >> 32);
    sum = (sum & UINT16_MAX) + (sum >> 16);
    sum = (sum & UINT16_MAX) + (sum >> 16);
    sum = (sum & UINT16_MAX) + (sum >> 16);
    return (uint32_t)sum;
}

static uint64_t sum_of(const void *from, uint32_t bytes)
{
    const uint8_t *at = from;
    uint64_t sum = 0, word;
    uint16_t two;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        memcpy(&word, at, 8);
        sum += (word & UINT32_MAX) + (word >> 32);
    }
    for (; bytes >= 2; at += 2, bytes -= 2) {
        memcpy(&two, at, 2);
        sum += two;
    }
    two = 0;
    if (bytes)
        memcpy(&two, at, 1);
    return sum + two;
}

static uint16_t big(uint32_t v)
{
    const uint8_t at[2] = {(uint8_t)(v >> 8), (uint8_t)v};
    uint16_t out;
    memcpy(&out, at, 2);
    return out;
}

static bool is_ipv4(const struct rnl_socket_addr *a)
{
    return memcmp(a->ip, mapped, sizeof mapped) == 0;
}

/* ---- writing ---- */

void rnl_xdp_head_make(struct rnl_xdp_head *h, const uint8_t to_mac[6], const uint8_t from_mac[6], uint16_t tag,
                       const struct rnl_socket_addr *to, const struct rnl_socket_addr *from)
{
    memset(h, 0, sizeof *h);
    h->v6 = !is_ipv4(to);
    memcpy(h->at, to_mac, 6);
    memcpy(h->at + 6, from_mac, 6);
    h->ip = RNL_XDP_ETHERNET;
    if (tag != RNL_XDP_TAG_NONE) {
        put16(h->at + 12, TYPE_TAG);
        put16(h->at + 14, tag);
        h->ip = RNL_XDP_ETHERNET + RNL_XDP_TAG;
    }
    uint8_t *ip = h->at + h->ip, *udp = ip + (h->v6 ? IPV6_BYTES : IPV4_BYTES);
    put16(ip - 2, h->v6 ? TYPE_IPV6 : TYPE_IPV4);
    h->bytes = (uint8_t)(udp + UDP_BYTES - h->at);
    if (h->v6) {
        ip[0] = 0x60;
        ip[6] = PROTOCOL_UDP;
        ip[7] = HOPS;
        memcpy(ip + 8, from->ip, 16);
        memcpy(ip + 24, to->ip, 16);
        h->sum = fold(sum_of(ip + 8, 32));
    } else {
        ip[0] = 0x45;
        put16(ip + 6, 0x4000); /* never fragmented, so it needs no number */
        ip[8] = HOPS;
        ip[9] = PROTOCOL_UDP;
        memcpy(ip + 12, from->ip + sizeof mapped, 4);
        memcpy(ip + 16, to->ip + sizeof mapped, 4);
        h->ip_sum = fold(sum_of(ip, IPV4_BYTES));
        h->sum = fold(sum_of(ip + 12, 8));
    }
    put16(udp, from->port);
    put16(udp + 2, to->port);
    h->sum = fold((uint64_t)h->sum + sum_of(udp, 4) + big(PROTOCOL_UDP));
}

uint32_t rnl_xdp_frame_write(const struct rnl_xdp_head *h, void *frame, const void *datagram, uint32_t bytes,
                             uint8_t ecn)
{
    uint8_t *at = frame, *ip = at + h->ip, *udp = at + h->bytes - UDP_BYTES;
    const uint32_t length = UDP_BYTES + bytes, end = h->bytes + bytes;
    memcpy(at, h->at, h->bytes);
    memcpy(at + h->bytes, datagram, bytes);
    put16(udp + 4, length);
    if (h->v6) {
        ip[1] = (uint8_t)((ecn & 3) << 4);
        put16(ip + 4, length);
    } else {
        ip[1] = ecn & 3;
        put16(ip + 2, IPV4_BYTES + length);
        const uint16_t sum = (uint16_t)~fold((uint64_t)h->ip_sum + big(IPV4_BYTES + length) + big(ecn & 3));
        memcpy(ip + 10, &sum, 2);
    }
    uint16_t sum = (uint16_t)~fold((uint64_t)h->sum + 2 * (uint64_t)big(length) + sum_of(at + h->bytes, bytes));
    sum = sum ? sum : UINT16_MAX; /* 0 would say that there is none */
    memcpy(udp + 6, &sum, 2);
    if (end >= RNL_XDP_FRAME_LEAST)
        return end;
    memset(at + end, 0, RNL_XDP_FRAME_LEAST - end);
    return RNL_XDP_FRAME_LEAST;
}

/* ---- reading ---- */

/* Reads an IP header of `room` bytes at most. Returns its length, 0 = it is none of a whole UDP datagram; *after is how
 * many bytes follow it. */
static uint32_t read_ip(const uint8_t *ip, uint32_t room, bool v6, struct rnl_xdp_datagram *out, uint32_t *after)
{
    const uint32_t head = v6 ? IPV6_BYTES : IPV4_BYTES;
    if (room < head + UDP_BYTES)
        return 0;
    const uint32_t says = v6 ? get16(ip + 4) : get16(ip + 2) - head;
    if (says > room - head || says < UDP_BYTES)
        return 0;
    *after = says;
    if (v6) {
        if (ip[0] >> 4 != 6 || ip[6] != PROTOCOL_UDP)
            return 0;
        out->ecn = ip[1] >> 4 & 3;
        memcpy(out->from.ip, ip + 8, 16);
        memcpy(out->to.ip, ip + 24, 16);
        return is_ipv4(&out->from) ? 0 : head; /* nobody is reached by a mapped address in IPv6 */
    }
    if (ip[0] != 0x45 || get16(ip + 6) & 0x3fff || ip[9] != PROTOCOL_UDP || fold(sum_of(ip, IPV4_BYTES)) != UINT16_MAX)
        return 0;
    out->ecn = ip[1] & 3;
    memcpy(out->from.ip, mapped, sizeof mapped);
    memcpy(out->to.ip, mapped, sizeof mapped);
    memcpy(out->from.ip + sizeof mapped, ip + 12, 4);
    memcpy(out->to.ip + sizeof mapped, ip + 16, 4);
    return head;
}

bool rnl_xdp_frame_read(const void *frame, uint32_t bytes, struct rnl_xdp_datagram *out)
{
    const uint8_t *at = frame;
    uint32_t ip = RNL_XDP_ETHERNET, after = 0;
    struct rnl_xdp_datagram d = {.tag = RNL_XDP_TAG_NONE};
    if (bytes < RNL_XDP_FRAME_LEAST - 18) /* headers of Ethernet, IPv4 and UDP: a virtual wire fills nothing */
        return false;
    uint32_t type = get16(at + 12);
    if (type == TYPE_TAG) {
        d.tag = (uint16_t)(get16(at + 14) & 0xfff);
        type = get16(at + 16);
        ip += RNL_XDP_TAG;
    }
    if (type != TYPE_IPV4 && type != TYPE_IPV6)
        return false;
    const uint32_t head = read_ip(at + ip, bytes - ip, type == TYPE_IPV6, &d, &after);
    if (head == 0)
        return false;
    const uint8_t *udp = at + ip + head;
    const uint32_t length = get16(udp + 4);
    if (length < UDP_BYTES || length > after)
        return false;
    d.from.port = (uint16_t)get16(udp);
    d.to.port = (uint16_t)get16(udp + 2);
    d.at = ip + head + UDP_BYTES;
    d.bytes = length - UDP_BYTES;
    const uint32_t addresses = type == TYPE_IPV6 ? 32 : 8;
    const uint64_t pseudo = sum_of(udp - addresses, addresses) + big(PROTOCOL_UDP) + big(length);
    uint16_t sum;
    memcpy(&sum, udp + 6, 2);
    if (d.from.port == 0 || d.to.port == 0 || (sum == 0 && type == TYPE_IPV6))
        return false;
    if (sum != 0 && sum != fold(pseudo) && fold(pseudo + sum_of(udp, length)) != UINT16_MAX)
        return false;
    *out = d;
    return true;
}
