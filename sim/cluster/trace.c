/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace.c - writes pcapng: see trace.h. Blocks are composed in one buffer and handed out when it is full. */
#include "sim/cluster/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sim/cluster/net.h"

enum { BUFFER = 1 << 20, BLOCK_MOST = PCAP_HEADERS + 65536 + 512 };

struct vc_trace {
    const struct vc_net *net;
    vc_trace_write *write;
    void *arg;
    uint32_t *interface; /* by host: 1 + its number in the file, 0 = not there yet */
    uint32_t interfaces;
    int failed;
    size_t used;
    unsigned char buffer[BUFFER];
};

int vc_trace_to_file(void *file, const void *bytes, size_t n)
{
    return fwrite(bytes, 1, n, file) == n ? 0 : -1;
}

static void flush(struct vc_trace *t)
{
    if (t->used && !t->failed && t->write(t->arg, t->buffer, t->used) != 0)
        t->failed = 1;
    t->used = 0;
}

/* ---- blocks ---- */

static void add(struct vc_trace *t, const void *bytes, size_t n)
{
    memcpy(t->buffer + t->used, bytes, n);
    t->used += n;
}

static void add16(struct vc_trace *t, uint32_t v)
{
    const unsigned char b[2] = {(unsigned char)v, (unsigned char)(v >> 8)};
    add(t, b, sizeof b);
}

static void add32(struct vc_trace *t, uint32_t v)
{
    add16(t, v & 0xffff);
    add16(t, v >> 16);
}

static void pad4(struct vc_trace *t, size_t n)
{
    static const unsigned char zero[4];
    add(t, zero, (4 - n % 4) % 4);
}

/* Where a block begins; its length is filled in by end_block. */
static size_t begin_block(struct vc_trace *t, uint32_t type)
{
    if (t->used + BLOCK_MOST > BUFFER)
        flush(t);
    size_t at = t->used;
    add32(t, type);
    add32(t, 0);
    return at;
}

static void end_block(struct vc_trace *t, size_t at)
{
    uint32_t length = (uint32_t)(t->used - at) + 4;
    size_t used = t->used;
    t->used = at + 4;
    add32(t, length);
    t->used = used;
    add32(t, length);
}

static void add_option(struct vc_trace *t, uint32_t code, const void *value, size_t n)
{
    n = n > PCAP_OPTION_MOST ? PCAP_OPTION_MOST : n;
    add16(t, code);
    add16(t, (uint32_t)n);
    add(t, value, n);
    pad4(t, n);
}

static void add_text(struct vc_trace *t, uint32_t code, const char *text)
{
    add_option(t, code, text, strlen(text));
}

static void section(struct vc_trace *t, const char *about)
{
    size_t at = begin_block(t, PCAP_SECTION);
    add32(t, PCAP_ORDER);
    add16(t, 1); /* version 1.0 */
    add16(t, 0);
    add32(t, UINT32_MAX); /* of unknown length */
    add32(t, UINT32_MAX);
    if (about)
        add_text(t, PCAP_OPTION_COMMENT, about);
    add_text(t, PCAP_SECTION_PROGRAM, "runnel " RNL_VERSION);
    add32(t, 0); /* end of options */
    end_block(t, at);
}

static uint32_t interface_of(struct vc_trace *t, uint32_t host)
{
    if (t->interface[host])
        return t->interface[host] - 1;
    char name[32];
    const unsigned char nanoseconds = 9;
    size_t at = begin_block(t, PCAP_INTERFACE);
    add16(t, PCAP_IPV4);
    add16(t, 0);
    add32(t, 0); /* packets are whole */
    snprintf(name, sizeof name, "host %u", host);
    add_text(t, PCAP_INTERFACE_NAME, name);
    add_option(t, PCAP_INTERFACE_RESOLUTION, &nanoseconds, 1);
    add32(t, 0);
    end_block(t, at);
    t->interface[host] = ++t->interfaces;
    return t->interfaces - 1;
}

/* ---- packets ---- */

static void put16(unsigned char *at, uint32_t v)
{
    at[0] = (unsigned char)(v >> 8);
    at[1] = (unsigned char)v;
}

/* The headers that it would have had, in the byte order of the network. */
static void headers(unsigned char h[PCAP_HEADERS], const struct vc_net_tap_packet *p)
{
    uint32_t sum = 0;
    memset(h, 0, PCAP_HEADERS);
    h[0] = 0x45;
    h[1] = p->ecn & 3;
    put16(h + 2, PCAP_HEADERS + p->bytes);
    h[6] = 0x40; /* may not be fragmented */
    h[8] = 64;
    h[9] = PCAP_UDP;
    memcpy(h + 12, p->from.ip + 12, 4);
    memcpy(h + 16, p->to.ip + 12, 4);
    for (int i = 0; i < PCAP_IP_HEADER; i += 2)
        sum += (uint32_t)h[i] << 8 | h[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    put16(h + 10, ~sum & 0xffff);
    put16(h + 20, p->from.port);
    put16(h + 22, p->to.port);
    put16(h + 24, 8 + p->bytes);
}

static void say_drop(const struct vc_trace *t, const struct vc_net_tap_packet *p, char *to, size_t room)
{
    static const char *const fault[RNL_FAULT_KINDS] = {"", "loss", "burst", "nth", "drop", "mtu", "blocked"};
    char where[64] = "";
    if (p->link != UINT32_MAX) {
        uint32_t from, at, hosts = vc_net_hosts(t->net);
        vc_net_link_ends(t->net, p->link, &from, &at);
        snprintf(where, sizeof where, " at %s%u>%s%u", from < hosts ? "" : "s", from < hosts ? from : from - hosts,
                 at < hosts ? "" : "s", at < hosts ? at : at - hosts);
    }
    const char *why = p->drop == VC_NET_DROP_FAULT && p->fault < RNL_FAULT_KINDS ? fault[p->fault] : "";
    snprintf(to, room, "dropped%s: %s%s%s", where, vc_net_drop_name(p->drop), why[0] ? ", " : "", why);
}

void vc_trace_tap(void *trace, const struct vc_net_tap_packet *p)
{
    struct vc_trace *t = trace;
    unsigned char h[PCAP_HEADERS];
    char comment[160];
    uint64_t ns = rnl_sim_now(vc_net_sim(t->net)) / VC_TICKS_PER_NS;
    uint32_t interface = interface_of(t, p->host);
    const unsigned char flags[4] = {p->what == VC_NET_TAP_DELIVERED ? PCAP_INBOUND : PCAP_OUTBOUND};
    headers(h, p);
    size_t at = begin_block(t, PCAP_PACKET);
    add32(t, interface);
    add32(t, (uint32_t)(ns >> 32));
    add32(t, (uint32_t)ns);
    add32(t, PCAP_HEADERS + p->bytes);
    add32(t, PCAP_HEADERS + p->bytes);
    add(t, h, sizeof h);
    add(t, p->at, p->bytes);
    pad4(t, PCAP_HEADERS + p->bytes);
    add_option(t, PCAP_PACKET_FLAGS, flags, sizeof flags);
    if (p->what == VC_NET_TAP_DROPPED) {
        say_drop(t, p, comment, sizeof comment);
        add_text(t, PCAP_OPTION_COMMENT, comment);
    }
    add32(t, 0);
    end_block(t, at);
}

/* ---- begin and end ---- */

int vc_trace_new(const struct vc_net *net, vc_trace_write *write, void *arg, const char *about, struct vc_trace **out)
{
    struct vc_trace *t = malloc(sizeof *t);
    uint32_t *interface = calloc(vc_net_hosts(net), sizeof *interface);
    if (!t || !interface) {
        free(t);
        free(interface);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a trace of %u hosts", vc_net_hosts(net));
    }
    t->net = net;
    t->write = write;
    t->arg = arg;
    t->interface = interface;
    t->interfaces = 0;
    t->failed = 0;
    t->used = 0;
    section(t, about);
    *out = t;
    return 0;
}

int vc_trace_end(struct vc_trace *t)
{
    if (!t)
        return 0;
    flush(t);
    int failed = t->failed;
    free(t->interface);
    free(t);
    return failed ? rnl_fail(RNL_ERR_SYSTEM, "the trace is not complete: writing it failed") : 0;
}
