/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace_say.c - a datagram in words: header, acknowledgement, frames. What is encrypted stays so, and no tag is
 * checked: a trace has no keys. */
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "net/wire/frame.h"
#include "net/wire/hello.h"
#include "net/wire/packet.h"
#include "sim/cluster/trace.h"

struct trace_text {
    char *to;
    size_t room;
};

RNL_PRINTF(2, 3) static void say(struct trace_text *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->to, l->room, format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n < l->room ? (size_t)n : l->room - 1;
    l->to += used;
    l->room -= used;
}

static void say_ack(struct trace_text *l, const struct rnl_packet *p)
{
    const struct rnl_ack *a = &p->ack;
    uint64_t low = a->largest - a->run;
    say(l, "; ack %llu", (unsigned long long)a->largest);
    if (a->run)
        say(l, "-%llu", (unsigned long long)low);
    for (uint32_t i = 0; i < a->ranges; i++) {
        uint64_t high = low - a->range[i].gap - 1;
        low = high - a->range[i].length + 1;
        say(l, high == low ? ",%llu" : ",%llu-%llu", (unsigned long long)high, (unsigned long long)low);
    }
    say(l, " held %u.%03u us, window %u", a->hold_ns / 1000, a->hold_ns % 1000, a->window_bytes);
    if (p->flags & RNL_PACKET_ECN)
        say(l, ", CE %u, ECT %u", a->ce, a->ect);
}

static void say_lines(struct trace_text *l, const struct rnl_frame *f)
{
    static const char *const kind[RNL_CELL_KINDS] = {"items", "ask", "extent", "prefix", "refused", "grow"};
    const unsigned char *at = f->at;
    say(l, "; lines lane %u from %u:", f->lane, f->low);
    for (unsigned i = 0; i < f->count; i++) {
        struct rnl_frame_cell line;
        at = rnl_frame_cell(at, &line);
        unsigned k = RNL_HEADER_KIND(line.head);
        say(l, " %s %u x %u for %u", k < RNL_CELL_KINDS ? kind[k] : "?", (unsigned)RNL_HEADER_N(line.head),
            (unsigned)RNL_HEADER_LEN(line.head), (unsigned)RNL_HEADER_HANDLER(line.head));
    }
}

static void say_words(struct trace_text *l, const struct rnl_frame *f)
{
    static const char *const lane_word[3] = {"position", "granted", "bulk read"};
    static const char *const word[] = {"asked back", "gave back", "wants", "most"};
    uint64_t value[RNL_CREDIT_WORDS] = {0};
    rnl_frame_credit(f, value);
    say(l, "; words");
    for (unsigned i = 0; i < RNL_CREDIT_WORDS; i++) {
        if (!(f->count >> i & 1))
            continue;
        if (i < RNL_CREDIT_RECLAIM)
            say(l, " %s[%u]", lane_word[i % 3], i / 3);
        else
            say(l, " %s", word[i - RNL_CREDIT_RECLAIM]);
        say(l, " %llu", (unsigned long long)value[i]);
    }
}

static void say_frames(struct trace_text *l, const unsigned char *body, uint32_t bytes)
{
    struct rnl_frames reader = rnl_frames_of(body, bytes);
    struct rnl_frame f;
    int more;
    while ((more = rnl_frame_next(&reader, &f)) > 0) {
        if (f.kind == RNL_FRAME_CELLS)
            say_lines(l, &f);
        else if (f.kind == RNL_FRAME_BULK)
            say(l, "; bulk lane %u at %u: %u B", f.lane, f.low, (unsigned)f.count);
        else if (f.kind == RNL_FRAME_CREDIT)
            say_words(l, &f);
        else
            say(l, f.kind == RNL_FRAME_CREDIT_REQUEST ? "; ask" : "; ping");
    }
    if (more < 0)
        say(l, "; and what is no frame");
}

static void say_hello(struct trace_text *l, const unsigned char *at, size_t bytes)
{
    uint32_t src, dst;
    if (!rnl_hello_peek(at, bytes, &src, &dst))
        return;
    say(l, " rank %u to rank %u%s%s%s", src, dst, at[1] & RNL_HELLO_WANTS_REPLY ? " wants" : "",
        at[1] & RNL_HELLO_UP ? " has" : "", at[1] & RNL_HELLO_SURE ? " is sure" : "");
}

void vc_trace_describe(const unsigned char *at, size_t bytes, char *to, size_t room)
{
    static const char *const type[RNL_PACKET_TYPES] = {"DATA", "HELLO", "UNKNOWN", "PROBE", "CLOSE", "PATH"};
    struct trace_text l = {to, room};
    struct rnl_packet p;
    struct rnl_probe probe;
    struct rnl_path_word word;
    uint32_t reason;
    if (room == 0)
        return;
    to[0] = '\0';
    enum rnl_packet_verdict verdict = rnl_packet_decode(at, bytes, &p);
    if (verdict != RNL_PACKET_GOOD) {
        say(&l, "%s", rnl_packet_verdict_text(verdict));
        return;
    }
    say(&l, "%s", type[p.type]);
    if (p.type == RNL_PACKET_HELLO) {
        say_hello(&l, at, bytes);
        return;
    }
    say(&l, " %s%llu to %08x", p.control ? "control " : "", (unsigned long long)p.number, p.connection);
    if (p.type == RNL_PACKET_UNKNOWN)
        return;
    say(&l, ", phase %u", (unsigned)(p.flags & RNL_PACKET_PHASE) >> RNL_PACKET_PHASE_SHIFT);
    if (p.flags & RNL_PACKET_ACK_WANTED)
        say(&l, ", wants an ack");
    if (p.flags & RNL_PACKET_ACK)
        say_ack(&l, &p);
    if (p.flags & RNL_PACKET_ENC)
        say(&l, "; %u B encrypted", p.body_bytes);
    else if (p.type == RNL_PACKET_DATA)
        say_frames(&l, at + p.body, p.body_bytes);
    else if (p.type == RNL_PACKET_PROBE && rnl_probe_decode(at, &p, &probe))
        say(&l, "; %s %u B", probe.kind == RNL_PROBE_REQUEST ? "do you get" : "got", probe.bytes);
    else if (p.type == RNL_PACKET_PATH && rnl_path_decode(at, &p, &word))
        say(&l, "; %s %016llx", word.kind == RNL_PATH_CHALLENGE ? "say back" : "said back",
            (unsigned long long)word.value);
    else if (p.type == RNL_PACKET_CLOSE && rnl_close_decode(at, &p, &reason))
        say(&l, "; reason %u", reason);
}
