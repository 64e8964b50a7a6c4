/* SPDX-License-Identifier: BSD-3-Clause
 *
 * packet.c - the codec of header, acknowledgement block and control bodies. Each byte that arrives is read here once,
 * with its bounds checked; callers get private copies. */
#include "net/wire/packet.h"
#include <stdbool.h>

#include "net/wire/bytes.h"

enum { /* offsets of the fields that packet.h draws, bytes */
       AT_VERSION = 0,
       AT_FLAGS = 1,
       AT_BYTES = 2,
       AT_CONNECTION = 4,
       AT_NUMBER = 8,
       AT_LARGEST = 16,
       AT_HOLD = 24,
       AT_RUN = 26,
       AT_WINDOW = 28,
       AT_CE = 32,
       AT_ECT = 36
};
static_assert(AT_NUMBER + 8 == (int)RNL_PACKET_HEAD && AT_LARGEST == (int)RNL_PACKET_HEAD, "header");
static_assert(AT_WINDOW + 4 == RNL_PACKET_HEAD + RNL_ACK_FIXED && AT_CE == AT_WINDOW + 4, "block");
static_assert(AT_ECT + 4 == RNL_PACKET_HEAD + RNL_ACK_FIXED + RNL_ACK_ECN, "ECN counts");
static_assert(RNL_PACKET_TYPES <= 16 && RNL_WIRE_VERSION < RNL_WIRE_VERSIONS && RNL_ACK_RANGES_MAX < 256, "widths");
static_assert(RNL_PACKET_MAX <= UINT16_MAX, "length");

#define SPACE_BIT ((uint64_t)1 << 63)

const char *rnl_packet_verdict_text(enum rnl_packet_verdict verdict)
{
    static const char *const text[RNL_PACKET_VERDICTS] = {
        [RNL_PACKET_GOOD] = "a packet",
        [RNL_PACKET_SHORT] = "too short for a packet",
        [RNL_PACKET_VERSION] = "another version of the packets",
        [RNL_PACKET_LENGTH] = "a length that is not its own",
        [RNL_PACKET_HEADER] = "a type or flags that do not exist",
        [RNL_PACKET_ACK_BAD] = "an acknowledgement of impossible numbers",
    };
    return (unsigned)verdict < RNL_PACKET_VERDICTS ? text[verdict] : "no verdict";
}

uint32_t rnl_packet_connection(const unsigned char *at, size_t bytes)
{
    return bytes < RNL_PACKET_HEAD ? 0 : rnl_get32(at + AT_CONNECTION);
}

int rnl_packet_is_control(const unsigned char *at)
{
    return (int)(rnl_get64(at + AT_NUMBER) >> 63);
}

unsigned rnl_packet_version(const unsigned char *at, size_t bytes)
{
    return bytes == 0 ? (unsigned)RNL_WIRE_VERSIONS : at[AT_VERSION] & 15u;
}

/* Returns the flags that packets of a type may have. */
static unsigned flags_of(unsigned type)
{
    switch (type) {
    case RNL_PACKET_DATA:
        return RNL_PACKET_FLAGS | RNL_PACKET_FLOW;
    case RNL_PACKET_PROBE:
        return (RNL_PACKET_FLAGS | RNL_PACKET_FLOW) & ~(unsigned)RNL_PACKET_ACK_WANTED;
    case RNL_PACKET_CLOSE:
    case RNL_PACKET_PATH:
        return RNL_PACKET_FLAGS & ~(unsigned)RNL_PACKET_ACK_WANTED;
    case RNL_PACKET_HELLO:
        return 7; /* HELLO has three flags of its own (hello.h) */
    default:
        return 0;
    }
}

/* Decodes the block at `at`, in `room` bytes. Returns its length, or 0 with *verdict set. */
static uint32_t decode_ack(const unsigned char *at, uint32_t room, int ecn, struct rnl_ack *ack,
                           enum rnl_packet_verdict *verdict)
{
    const unsigned char *block = at - RNL_PACKET_HEAD;
    uint32_t fixed = RNL_ACK_FIXED + (ecn ? RNL_ACK_ECN : 0);
    *verdict = RNL_PACKET_LENGTH;
    if (room < fixed)
        return 0;
    uint32_t last = rnl_get32(block + AT_WINDOW);
    uint32_t ranges = last & 0xff, bytes = fixed + ranges * RNL_ACK_RANGE;
    if (room < bytes)
        return 0;
    *verdict = RNL_PACKET_ACK_BAD;
    ack->largest = rnl_get64(block + AT_LARGEST);
    ack->hold_ns = (uint32_t)rnl_get16(block + AT_HOLD) * RNL_ACK_HOLD_UNIT_NS;
    ack->run = rnl_get16(block + AT_RUN);
    ack->ranges = (uint16_t)ranges;
    ack->window_bytes = (last >> 8) * RNL_ACK_WINDOW_UNIT;
    ack->ce = ecn ? rnl_get32(block + AT_CE) : 0;
    ack->ect = ecn ? rnl_get32(block + AT_ECT) : 0;
    if (ranges > RNL_ACK_RANGES_MAX || ack->largest > RNL_PACKET_NUMBER_MAX || ack->run > ack->largest)
        return 0;
    uint64_t below = ack->largest - ack->run; /* the lowest number named so far */
    for (uint32_t i = 0; i < ranges; i++) {
        struct rnl_ack_range r = {rnl_get16(at + fixed + i * RNL_ACK_RANGE),
                                  rnl_get16(at + fixed + i * RNL_ACK_RANGE + 2)};
        uint32_t both = (uint32_t)r.gap + r.length;
        if (r.gap == 0 || r.length == 0 || both > below)
            return 0;
        below -= both;
        ack->range[i] = r;
    }
    return bytes;
}

enum rnl_packet_verdict rnl_packet_decode(const unsigned char *at, size_t bytes, struct rnl_packet *p)
{
    enum rnl_packet_verdict verdict;
    if (bytes < RNL_PACKET_MIN)
        return RNL_PACKET_SHORT;
    p->type = at[AT_VERSION] >> 4;
    p->flags = at[AT_FLAGS];
    p->bytes = rnl_get16(at + AT_BYTES);
    if (p->bytes != bytes || bytes > RNL_PACKET_MAX)
        return RNL_PACKET_LENGTH;
    if (rnl_packet_version(at, bytes) != RNL_WIRE_VERSION)
        return RNL_PACKET_VERSION;
    uint64_t number = rnl_get64(at + AT_NUMBER);
    p->connection = rnl_get32(at + AT_CONNECTION);
    p->number = number & RNL_PACKET_NUMBER_MAX;
    p->control = number >> 63;
    if (p->type >= RNL_PACKET_TYPES || (p->flags & ~flags_of(p->type)) != 0)
        return RNL_PACKET_HEADER;
    if ((p->flags & RNL_PACKET_ECN) && !(p->flags & RNL_PACKET_ACK))
        return RNL_PACKET_HEADER; /* ECN counts without a block */
    if ((p->type == RNL_PACKET_PROBE || p->type == RNL_PACKET_CLOSE || p->type == RNL_PACKET_PATH) && !p->control)
        return RNL_PACKET_HEADER;
    if (p->type == RNL_PACKET_HELLO && (number != 0 || p->connection != 0))
        return RNL_PACKET_HEADER;
    p->body = RNL_PACKET_HEAD;
    if (p->type != RNL_PACKET_HELLO && (p->flags & RNL_PACKET_ACK)) {
        uint32_t n = decode_ack(at + RNL_PACKET_HEAD, (uint32_t)bytes - RNL_PACKET_MIN, p->flags & RNL_PACKET_ECN,
                                &p->ack, &verdict);
        if (n == 0)
            return verdict;
        p->body += n;
    }
    p->body_bytes = (uint32_t)bytes - RNL_PACKET_TAG - p->body;
    return RNL_PACKET_GOOD;
}

uint32_t rnl_ack_bytes(const struct rnl_ack *ack, int ecn)
{
    return RNL_ACK_FIXED + (ecn ? RNL_ACK_ECN : 0) + (uint32_t)ack->ranges * RNL_ACK_RANGE;
}

uint32_t rnl_packet_encode(unsigned char *at, size_t room, const struct rnl_packet *p)
{
    int ecn = p->flags & RNL_PACKET_ECN;
    uint32_t body = RNL_PACKET_HEAD + (p->flags & RNL_PACKET_ACK ? rnl_ack_bytes(&p->ack, ecn) : 0);
    if (room < body + RNL_PACKET_TAG)
        return 0;
    at[AT_VERSION] = (unsigned char)(RNL_WIRE_VERSION | p->type << 4);
    at[AT_FLAGS] = p->flags;
    rnl_put16(at + AT_BYTES, 0);
    rnl_put32(at + AT_CONNECTION, p->connection);
    rnl_put64(at + AT_NUMBER, (p->number & RNL_PACKET_NUMBER_MAX) | (p->control ? SPACE_BIT : 0));
    if (!(p->flags & RNL_PACKET_ACK))
        return body;
    const struct rnl_ack *ack = &p->ack;
    uint32_t hold = ack->hold_ns / RNL_ACK_HOLD_UNIT_NS, window = ack->window_bytes / RNL_ACK_WINDOW_UNIT;
    rnl_put64(at + AT_LARGEST, ack->largest);
    rnl_put16(at + AT_HOLD, (uint16_t)(hold > 0xffff ? 0xffff : hold));
    rnl_put16(at + AT_RUN, ack->run);
    rnl_put32(at + AT_WINDOW, (window > 0xffffff ? 0xffffff : window) << 8 | ack->ranges);
    unsigned char *range = at + AT_CE;
    if (ecn) {
        rnl_put32(at + AT_CE, ack->ce);
        rnl_put32(at + AT_ECT, ack->ect);
        range += RNL_ACK_ECN;
    }
    for (unsigned i = 0; i < ack->ranges; i++, range += RNL_ACK_RANGE) {
        rnl_put16(range, ack->range[i].gap);
        rnl_put16(range + 2, ack->range[i].length);
    }
    return body;
}

uint32_t rnl_packet_finish(unsigned char *at, uint32_t end)
{
    uint32_t bytes = end + RNL_PACKET_TAG;
    rnl_put16(at + AT_BYTES, (uint16_t)bytes);
    return bytes;
}

uint32_t rnl_probe_encode(unsigned char *at, uint32_t body, uint32_t room, const struct rnl_probe *probe)
{
    uint32_t end = body + RNL_PROBE_BODY;
    if (probe->kind == RNL_PROBE_REQUEST) {
        if (probe->bytes < end + RNL_PACKET_TAG)
            return 0;
        end = (uint32_t)probe->bytes - RNL_PACKET_TAG;
    }
    if (end - body > room)
        return 0;
    memset(at + body, 0, end - body);
    at[body] = probe->kind;
    rnl_put16(at + body + 2, probe->bytes);
    return end - body;
}

static int all_zero(const unsigned char *at, uint32_t bytes)
{
    return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

bool rnl_probe_decode(const unsigned char *at, const struct rnl_packet *p, struct rnl_probe *probe)
{
    const unsigned char *b = at + p->body;
    if (p->type != RNL_PACKET_PROBE || p->body_bytes < RNL_PROBE_BODY || b[0] > RNL_PROBE_REPLY || b[1] != 0)
        return false;
    uint16_t bytes = rnl_get16(b + 2);
    if (!all_zero(b + 4, p->body_bytes - 4))
        return false;
    if (b[0] == RNL_PROBE_REQUEST ? bytes != p->bytes : p->body_bytes != RNL_PROBE_BODY)
        return false;
    probe->kind = b[0];
    probe->bytes = bytes;
    return true;
}

uint32_t rnl_path_encode(unsigned char *at, uint32_t body, uint32_t room, uint32_t bytes,
                         const struct rnl_path_word *word)
{
    if (bytes < body + RNL_PATH_BODY + RNL_PACKET_TAG || bytes - body - RNL_PACKET_TAG > room)
        return 0;
    uint32_t used = bytes - body - RNL_PACKET_TAG;
    memset(at + body, 0, used);
    at[body] = word->kind;
    rnl_put64(at + body + 8, word->value);
    return used;
}

bool rnl_path_decode(const unsigned char *at, const struct rnl_packet *p, struct rnl_path_word *word)
{
    const unsigned char *b = at + p->body;
    if (p->type != RNL_PACKET_PATH || p->body_bytes < RNL_PATH_BODY || b[0] > RNL_PATH_RESPONSE ||
        !all_zero(b + 1, 7) || !all_zero(b + RNL_PATH_BODY, p->body_bytes - RNL_PATH_BODY) || rnl_get64(b + 8) == 0)
        return false;
    *word = (struct rnl_path_word){b[0], rnl_get64(b + 8)};
    return true;
}

uint32_t rnl_close_encode(unsigned char *at, uint32_t body, uint32_t room, uint32_t reason)
{
    if (room < RNL_CLOSE_BODY)
        return 0;
    rnl_put32(at + body, reason);
    rnl_put32(at + body + 4, 0);
    return RNL_CLOSE_BODY;
}

bool rnl_close_decode(const unsigned char *at, const struct rnl_packet *p, uint32_t *reason)
{
    if (p->type != RNL_PACKET_CLOSE || p->body_bytes != RNL_CLOSE_BODY || rnl_get32(at + p->body + 4) != 0)
        return false;
    *reason = rnl_get32(at + p->body);
    return true;
}
