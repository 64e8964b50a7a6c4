/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace_read.c - a trace as lines to read. It takes what vc_trace_tap writes, and looks at each length before it
 * believes it: the file may be anybody's. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/wire/bytes.h"
#include "sim/cluster/trace.h"

enum { BLOCK_LEAST = 12, BLOCK_MOST = 1 << 20, LINE = 1024, INTERFACES_MOST = 1 << 22 };

struct reader {
    FILE *in, *out;
    const struct vc_trace_filter *filter;
    unsigned char *block; /* without its type and the two lengths */
    uint32_t bytes, interfaces;
    uint32_t *host; /* by interface */
    int sections;
    uint64_t blocks;
};

static int damaged(const struct reader *r, const char *what)
{
    return rnl_fail(RNL_ERR_ARG, "block %llu of the trace: %s", (unsigned long long)r->blocks, what);
}

/* The option of that code behind `at`: its length, or -1. */
static int find_option(const struct reader *r, uint32_t at, uint32_t code, const unsigned char **value)
{
    while (r->bytes - at >= 4) {
        uint32_t here = rnl_get16(r->block + at), length = rnl_get16(r->block + at + 2);
        at += 4;
        if (here == 0 || length > r->bytes - at)
            return -1;
        if (here == code) {
            *value = r->block + at;
            return (int)length;
        }
        at += (length + 3) & ~3u;
        if (at > r->bytes)
            return -1;
    }
    return -1;
}

static int read_interface(struct reader *r)
{
    const unsigned char *name, *resolution;
    char text[32] = "";
    if (r->bytes < 8 || rnl_get16(r->block) != PCAP_IPV4)
        return damaged(r, "an interface that is not of raw IPv4 packets: not a trace of runnel sim");
    int length = find_option(r, 8, PCAP_INTERFACE_NAME, &name);
    if (length > 0 && (size_t)length < sizeof text)
        memcpy(text, name, (size_t)length);
    unsigned host;
    if (sscanf(text, "host %u", &host) != 1)
        return damaged(r, "an interface that is no host: not a trace of runnel sim");
    if (find_option(r, 8, PCAP_INTERFACE_RESOLUTION, &resolution) != 1 || *resolution != 9)
        return damaged(r, "times that are not in nanoseconds");
    if (r->interfaces == INTERFACES_MOST)
        return damaged(r, "too many interfaces");
    if ((r->interfaces & (r->interfaces - 1)) == 0) { /* at each power of two */
        uint32_t *more = realloc(r->host, (r->interfaces ? 2 * (size_t)r->interfaces : 1) * sizeof *more);
        if (!more)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u interfaces", r->interfaces);
        r->host = more;
    }
    r->host[r->interfaces++] = host;
    return 0;
}

/* Host numbers where the address is one of ours. */
static void say_address(char *to, size_t room, const unsigned char *ip, uint32_t port)
{
    uint32_t n = (uint32_t)ip[1] << 16 | (uint32_t)ip[2] << 8 | ip[3];
    if (ip[0] == 10 && n > 0)
        snprintf(to, room, "%u:%u", n - 1, port);
    else
        snprintf(to, room, "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3], port);
}

static uint32_t get16_network(const unsigned char *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static int read_packet(struct reader *r)
{
    static const char *const ecn[] = {"", " ECT1", " ECT0", " CE"};
    if (r->bytes < 20)
        return damaged(r, "a packet that is too short");
    uint32_t interface = rnl_get32(r->block), length = rnl_get32(r->block + 12);
    uint64_t ns = (uint64_t)rnl_get32(r->block + 4) << 32 | rnl_get32(r->block + 8);
    const unsigned char *ip = r->block + 20, *flags = NULL, *comment = NULL;
    if (interface >= r->interfaces || length > r->bytes - 20)
        return damaged(r, "a packet of an interface that is not there, or longer than its block");
    if (length < PCAP_HEADERS || ip[0] != 0x45 || ip[9] != PCAP_UDP || get16_network(ip + 2) != length ||
        get16_network(ip + 24) != length - PCAP_IP_HEADER)
        return damaged(r, "a packet that is no UDP over IPv4, or not whole");
    uint32_t options = 20 + ((length + 3) & ~3u);
    int has_flags = 0, commented = 0;
    if (options < r->bytes) {
        has_flags = find_option(r, options, PCAP_PACKET_FLAGS, &flags) == 4;
        commented = find_option(r, options, PCAP_OPTION_COMMENT, &comment);
    }
    int dropped = commented > 0, inbound = has_flags && (flags[0] & 3) == PCAP_INBOUND;
    char from[32], to[32], text[LINE];
    say_address(from, sizeof from, ip + 12, get16_network(ip + 20));
    say_address(to, sizeof to, ip + 16, get16_network(ip + 22));
    if (r->filter->only_dropped && !dropped)
        return 0;
    if (r->filter->host != UINT32_MAX) {
        char wanted[32];
        int n = snprintf(wanted, sizeof wanted, "%u:", r->filter->host);
        if (strncmp(from, wanted, (size_t)n) != 0 && strncmp(to, wanted, (size_t)n) != 0)
            return 0;
    }
    vc_trace_describe(ip + PCAP_HEADERS, length - PCAP_HEADERS, text, sizeof text);
    fprintf(r->out, "%7llu.%09llu %s %s > %s %u B%s  %s", (unsigned long long)(ns / 1000000000u),
            (unsigned long long)(ns % 1000000000u),
            dropped   ? "lost"
            : inbound ? "got "
                      : "sent",
            from, to, length - PCAP_HEADERS, ecn[ip[1] & 3], text);
    if (dropped) {
        fputs("  [", r->out);
        for (int i = 0; i < commented; i++) /* whatever it holds: one line, no control codes */
            fputc(comment[i] >= ' ' && comment[i] < 127 ? comment[i] : '?', r->out);
        fputc(']', r->out);
    }
    return fputc('\n', r->out) == EOF ? rnl_fail(RNL_ERR_SYSTEM, "writing fails") : 0;
}

/* The next block: 1, 0 = end of file. */
static int read_block(struct reader *r, uint32_t *type)
{
    unsigned char head[8], tail[4];
    size_t got = fread(head, 1, sizeof head, r->in);
    r->blocks++;
    if (got == 0 && feof(r->in))
        return 0;
    if (got != sizeof head)
        return ferror(r->in) ? rnl_fail(RNL_ERR_SYSTEM, "reading fails") : damaged(r, "it ends in its middle");
    uint32_t length = rnl_get32(head + 4);
    *type = rnl_get32(head);
    if (r->blocks == 1 && *type != PCAP_SECTION)
        return rnl_fail(RNL_ERR_ARG, "this is no pcapng file: runnel sim --trace FILE writes one");
    if (length < BLOCK_LEAST || length % 4 || length > BLOCK_MOST)
        return damaged(r, "a length that cannot be, or the byte order of another machine");
    r->bytes = length - BLOCK_LEAST;
    if (fread(r->block, 1, r->bytes, r->in) != r->bytes || fread(tail, 1, sizeof tail, r->in) != sizeof tail)
        return ferror(r->in) ? rnl_fail(RNL_ERR_SYSTEM, "reading fails") : damaged(r, "it ends in its middle");
    return rnl_get32(tail) == length ? 1 : damaged(r, "its two lengths differ");
}

int vc_trace_decode(FILE *in, FILE *out, const struct vc_trace_filter *filter)
{
    static const struct vc_trace_filter all = {.host = UINT32_MAX};
    struct reader r = {.in = in, .out = out, .filter = filter ? filter : &all, .block = malloc(BLOCK_MOST)};
    uint32_t type = 0;
    int status = r.block ? 1 : rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a block of a trace");
    while (status > 0 && (status = read_block(&r, &type)) > 0) {
        int wrong = 0;
        if (type == PCAP_SECTION)
            wrong = r.bytes < 16 || rnl_get32(r.block) != PCAP_ORDER || r.sections++ > 0
                        ? damaged(&r, "a section that is not the only one, or not ours")
                        : 0;
        else if (type == PCAP_INTERFACE)
            wrong = read_interface(&r);
        else if (type == PCAP_PACKET)
            wrong = read_packet(&r);
        if (wrong < 0)
            status = wrong;
    }
    if (status == 0 && r.sections == 0)
        status = rnl_fail(RNL_ERR_ARG, "the trace is empty");
    free(r.block);
    free(r.host);
    return status;
}
