/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_am.c - AM-2 whose peer speaks the core's language and says what it likes in it: requests, answers to ours, and
 * replies that come back, with heads that are true, nearly so or not at all, cut short or followed by more. Nothing
 * outside the segment may be written, no handler run with a length that it cannot have, and an honest request is served
 * all the same. */
#include "fuzz/input.h"

#include "api/am/core.h"
#include "endpoint/endpoint.h"
#include "job/job.h"

enum { SEG = 4096, GUARD = 512, MESSAGES = 40, TAG = 77, SHORT = 1, LONG, REPLIES, ANSWERED, BODY = 700 };

static struct {
    struct fuzz_input in;
    ep_t ep;
    en_t name;
    unsigned char *segment; /* with a guard on each side */
    unsigned asked, answers, back, handled;
    unsigned char bytes[RNL_AM_HEADER_MAX + BODY];
} z;

/* ---- the honest side, rank 0 ---- */

static void on_short(void *token)
{
    struct rnl_am_token_info info;
    FUZZ_MUST(AM_GetTokenInfo(token, &info) == AM_OK && info.numargs <= RNL_AM_SHORT);
    z.handled++;
}

/* A handler for payload may be asked without: then it has none, as AM-2 has it. 1 = there is some. */
static int look_at(void *token, void *buf, size_t n)
{
    struct rnl_am_token_info info;
    FUZZ_MUST(AM_GetTokenInfo(token, &info) == AM_OK);
    z.handled++;
    if (info.opcode == AM_REQUEST_M || info.opcode == AM_REPLY_M)
        return 0;
    FUZZ_MUST(info.nbytes == n && n <= RNL_AM_LONG);
    if (info.opcode == AM_REQUEST_XFER_M || info.opcode == AM_REPLY_XFER_M || info.opcode == AM_GET_XFER_M)
        FUZZ_MUST(n <= SEG && (unsigned char *)buf >= z.segment + GUARD &&
                  (unsigned char *)buf + n <= z.segment + GUARD + SEG);
    else
        FUZZ_MUST(n <= RNL_AM_MEDIUM);
    return 1;
}

static void on_long(void *token, void *buf, size_t n)
{
    (void)look_at(token, buf, n);
}

static void on_replies(void *token, void *buf, size_t n)
{
    if (look_at(token, buf, n))
        (void)AM_ReplyXfer0(token, fuzz_below(&z.in, 65536), LONG, buf, n <= RNL_AM_MEDIUM ? n : RNL_AM_MEDIUM);
}

static void on_answered(void *token)
{
    on_short(token);
    z.answers++;
}

static void on_returned(int status, op_t opcode, void *token)
{
    struct rnl_am_token_info info;
    FUZZ_MUST(AM_GetTokenInfo(token, &info) == AM_OK && info.numargs <= RNL_AM_SHORT);
    FUZZ_MUST(status >= AM_EBADARGS && status <= AM_EREPLYREJECTED && opcode >= AM_REQUEST_M &&
              opcode <= AM_GET_XFER_M);
    z.back++;
}

/* ---- the other one ---- */

/* A message, drawn: head, extension, arguments, payload. Its bytes. */
static size_t draw(int is_request)
{
    unsigned char *to = z.bytes;
    struct fuzz_input *in = &z.in;
    unsigned op = fuzz_below(in, 6), numargs = fuzz_below(in, 20), handler = fuzz_below(in, 6);
    unsigned number = fuzz_below(in, 8) ? z.name.number : fuzz_below(in, 65536);
    uint32_t generation = fuzz_below(in, 8) ? z.name.generation : (uint32_t)fuzz_number(in, z.name.generation);
    unsigned serial = fuzz_below(in, 65536);
    uint64_t nbytes = fuzz_below(in, BODY), offset = fuzz_below(in, SEG), tag = fuzz_number(in, TAG);
    if (op == 5) { /* anything */
        size_t n = fuzz_below(in, 120);
        fuzz_bytes(in, to, n);
        return n;
    }
    uint64_t what = rnl_am_what(op, numargs, handler, number, 3) | (uint64_t)serial << 48;
    uint64_t who = rnl_am_who(generation, 9);
    memcpy(to, &what, 8);
    memcpy(to + 8, &who, 8);
    size_t n = 16;
    if (is_request) {
        memcpy(to + n, &tag, 8);
        n += 8;
    }
    unsigned words = op == RNL_AM_OP_RETURNED ? RNL_AM_WAS(what) & 3 : op;
    uint64_t ext[3];
    for (unsigned i = 0; i < 3; i++)
        ext[i] = fuzz_number(in, i < 2 ? offset : nbytes);
    memcpy(to + n, ext + (3 - words), words * 8);
    n += words * 8;
    memset(to + n, 5, numargs * 4);
    n += numargs * 4;
    if (words && op != RNL_AM_OP_GET && op != RNL_AM_OP_RETURNED) {
        memset(to + n, 6, (size_t)nbytes);
        n += (size_t)nbytes;
    }
    unsigned end = fuzz_below(in, 8);
    if (end == 1)
        n = n * fuzz_below(in, 256) / 256;
    else if (end == 2)
        n += fuzz_below(in, 20);
    return n < sizeof z.bytes ? n : sizeof z.bytes;
}

/* What it is asked, it answers with anything. */
static int on_request(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    if (fuzz_below(&z.in, 4) == 0)
        return RNL_REJECT(fuzz_below(&z.in, 16));
    size_t n = draw(0);
    (void)!rnl_reply(s, RNL_AM_ID_FIRST + (fuzz_below(&z.in, 8) ? 1 : fuzz_below(&z.in, 3)), z.bytes, n);
    return RNL_DONE;
}

static int on_answer(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    return RNL_DONE;
}

static void say(rnl_endpoint *liar)
{
    int is_request = fuzz_below(&z.in, 8) != 0;
    size_t n = draw(is_request), cut = fuzz_below(&z.in, 3) ? 0 : n * fuzz_below(&z.in, 256) / 256;
    struct rnl_message b = {.peer = 0,
                            .handler = is_request ? RNL_AM_ID_REQUEST : RNL_AM_ID_REJECTED,
                            .bound = n,
                            .answer = fuzz_below(&z.in, 8) ? RNL_REPLY_MAX : fuzz_below(&z.in, 100),
                            .flags = RNL_NO_WAIT};
    rnl_stream *s;
    if (rnl_begin(liar, &b, &s) != 0)
        return;
    if (rnl_piece(s, z.bytes, cut) < 0 || rnl_piece(s, z.bytes + cut, n - cut) < 0 || rnl_end(s) < 0)
        rnl_abort(s);
}

static void ask(void)
{
    unsigned how = fuzz_below(&z.in, 3);
    static const unsigned char data[100];
    int r = how == 0   ? AM_Request1(z.ep, 1, SHORT, 1)
            : how == 1 ? AM_RequestI0(z.ep, 1, LONG, data, sizeof data)
                       : AM_GetXfer0(z.ep, 1, 0, LONG, fuzz_below(&z.in, SEG), fuzz_below(&z.in, SEG));
    FUZZ_MUST(r == AM_OK || r == AM_ERR_NOT_SENT);
    z.asked++;
}

static void set_up(rnl_endpoint **ep, eb_t *eb)
{
    FUZZ_MUST(AM_Init() == AM_OK && AM_AllocateBundleOn(ep[0], AM_SEQ, eb) == AM_OK);
    FUZZ_MUST(AM_AllocateEndpoint(*eb, &z.ep, &z.name) == AM_OK && AM_SetTag(z.ep, TAG) == AM_OK);
    FUZZ_MUST(AM_SetHandler(z.ep, 0, on_returned) == AM_OK && AM_SetHandler(z.ep, SHORT, on_short) == AM_OK);
    FUZZ_MUST(AM_SetHandler(z.ep, LONG, on_long) == AM_OK && AM_SetHandler(z.ep, REPLIES, on_replies) == AM_OK);
    FUZZ_MUST(AM_SetHandler(z.ep, ANSWERED, on_answered) == AM_OK);
    FUZZ_MUST(AM_Map(z.ep, 0, z.name, TAG) == AM_OK && AM_Map(z.ep, 1, AM_NameOf(1, 0), TAG) == AM_OK);
    z.segment = malloc(SEG + 2 * GUARD);
    FUZZ_MUST(z.segment != NULL);
    memset(z.segment, 0xa5, SEG + 2 * GUARD);
    FUZZ_MUST(AM_SetSeg(z.ep, z.segment + GUARD, SEG) == AM_OK);
    const struct rnl_handler request = {.stream = on_request}, answer = {.stream = on_answer};
    FUZZ_MUST(rnl_stream_register(ep[1], RNL_AM_ID_REQUEST, &request) >= 0);
    FUZZ_MUST(rnl_stream_register(ep[1], RNL_AM_ID_REPLY, &answer) >= 0);
    FUZZ_MUST(rnl_stream_register(ep[1], RNL_AM_ID_REJECTED, &answer) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rnl_hub *hub;
    rnl_endpoint *ep[2];
    eb_t eb;
    memset(&z, 0, sizeof z);
    z.in = (struct fuzz_input){data, data + size};
    if (rnl_hub_new(2, &hub) < 0)
        return 0;
    for (unsigned i = 0; i < 2; i++) {
        struct rnl_options opt = {.size = sizeof opt, .hub = hub, .hub_rank = i, .stacks = 2};
        FUZZ_MUST(rnl_open(&ep[i], &opt) == 0);
    }
    set_up(ep, &eb);
    for (unsigned i = 0; i < MESSAGES && fuzz_more(&z.in); i++) {
        if (fuzz_below(&z.in, 4) == 0)
            ask();
        else
            say(ep[1]);
        (void)!rnl_extract(ep[1], SIZE_MAX);
        int r = AM_Poll(eb);
        FUZZ_MUST(r == AM_OK || r == AM_ERR_NOT_SENT);
    }
    z.answers = 0;
    FUZZ_MUST(AM_Request0(z.ep, 0, ANSWERED) == AM_OK); /* it still serves itself */
    for (unsigned i = 0; i < 100 && z.answers == 0; i++)
        FUZZ_MUST(AM_Poll(eb) == AM_OK);
    FUZZ_MUST(z.answers == 1);
    for (unsigned i = 0; i < GUARD; i++)
        FUZZ_MUST(z.segment[i] == 0xa5 && z.segment[GUARD + SEG + i] == 0xa5);
    rnl_hub_kill(hub, 1, RNL_DEATH_SIGNAL, 9);
    (void)AM_Poll(eb);
    FUZZ_MUST(AM_FreeBundle(eb) == AM_OK);
    for (unsigned i = 0; i < 2; i++)
        rnl_ep_free(ep[i]);
    rnl_hub_free(hub);
    FUZZ_MUST(AM_Terminate() == AM_OK);
    free(z.segment);
    return 0;
}
