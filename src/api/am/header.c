/* SPDX-License-Identifier: BSD-3-Clause
 *
 * header.c - encodes and decodes the headers of messages, which core.h draws. */
#include "api/am/core.h"

static size_t write_rest(unsigned char *to, const struct rnl_am_message *m)
{
    size_t words = m->op; /* the op's number is the number of words: see take_rest */
    const uint64_t all[3] = {m->source_offset, m->dest_offset, m->nbytes};
    memcpy(to, all + (3 - words), words * 8);
    rnl_am_copy_args(to + words * 8, m->args, m->numargs);
    return words * 8 + (size_t)m->numargs * 4;
}

static struct rnl_am_header head_of(const struct rnl_am_message *m)
{
    unsigned op = m->status ? (unsigned)RNL_AM_OP_RETURNED : m->op, was = m->status ? m->op : 0;
    return (struct rnl_am_header){
        .what = rnl_am_what(op, m->numargs, m->handler, m->to, m->from) |
                (m->status ? (uint64_t)m->status << 48 | (uint64_t)was << 56 : (uint64_t)m->serial << 48),
        .who = rnl_am_who(m->to_generation, m->from_generation)};
}

size_t rnl_am_write_request(unsigned char *to, const struct rnl_am_message *m)
{
    struct rnl_am_request_header h = {.h = head_of(m), .tag = m->tag};
    memcpy(to, &h, sizeof h);
    return sizeof h + write_rest(to + sizeof h, m);
}

size_t rnl_am_write_reply(unsigned char *to, const struct rnl_am_message *m)
{
    struct rnl_am_header h = head_of(m);
    memcpy(to, &h, sizeof h);
    return sizeof h + write_rest(to + sizeof h, m);
}

void rnl_am_read_record(struct rnl_am_message *m, const struct rnl_am_record *r, unsigned lane)
{
    struct rnl_am_header h = {r->head[0], r->head[1]};
    rnl_am_read_header(m, &h);
    const uint64_t *rest = r->head + (lane ? 2 : 3);
    m->tag = lane ? 0 : r->head[2];
    if (m->op > 0)
        m->nbytes = rest[m->op - 1];
    if (m->op > 1)
        m->dest_offset = rest[m->op - 2];
    if (m->op > 2)
        m->source_offset = rest[0];
    memcpy(m->args, rest + m->op, (size_t)m->numargs * 4);
}

op_t rnl_am_opcode(const struct rnl_am_message *m, int is_request)
{
    if (m->op == RNL_AM_OP_GET)
        return AM_GET_XFER_M;
    return (is_request ? AM_REQUEST_M : AM_REPLY_M) + (op_t)m->op;
}
